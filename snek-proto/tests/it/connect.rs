//! Connecting: one attempt that says why it failed.

use rpc_core::net::server::HttpConfig;
use snek_proto::CloseReason;
use snek_proto::client::ClientConfig;
use snek_proto::net::{ConnectError, MemoryBackend, Server, ServerOptions, connect, http_config};

fn config(password: &str) -> ClientConfig {
    ClientConfig::new("ann", password)
}

#[tokio::test]
async fn connect_fails_at_once_with_the_reason() {
    let backend = MemoryBackend::new().with_user("ann", "a", "Ann");
    let options = ServerOptions {
        http: HttpConfig {
            paths: vec!["/rpc.ws".into()],
            ..http_config()
        },
        ..ServerOptions::default()
    };
    let server = Server::bind("127.0.0.1:0", backend, options).await.unwrap();
    let url = server.url();
    tokio::spawn(server.run());
    let (client, _events, _connection) = connect(&url, config("a")).await.unwrap();
    assert!(client.state().is_ready());

    let refused = connect(&url, config("b")).await.map(drop);
    assert!(
        matches!(
            refused,
            Err(ConnectError::Failed(CloseReason::Authentication { .. }))
        ),
        "{refused:?}"
    );
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("ws://{}", free.local_addr().unwrap());
    drop(free);
    let lost = url.replace("/rpc.ws", "/elsewhere");
    for (url, retryable) in [(nobody, true), (lost, false)] {
        let error = connect(&url, config("a")).await.map(drop).unwrap_err();
        let ConnectError::Failed(CloseReason::Connect { retryable: is, .. }) = &error else {
            panic!("{url}: {error:?}")
        };
        assert_eq!(*is, retryable, "{url}: {error}");
    }
    let invalid = connect("ftp://example.org", config("a")).await.map(drop);
    assert!(matches!(invalid, Err(ConnectError::Dial(_))), "{invalid:?}");
}
