//! Client and server over real sockets: the backend, its faults, slow readers, shutdown.

use std::sync::Arc;
use std::time::Duration;

use rpc_core::keepalive::KeepAlive;
use rpc_core::net::{LinkConfig, LinkEvent, LinkState};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Machine as _, Secret, Str};
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::error::RpcError;
use snek_proto::frame::Call;
use snek_proto::frame::NoKwargs;
use snek_proto::frame::{Final, User};
use snek_proto::net::{
    Backend, CallReply, Client, Events, MemoryBackend, Peer, Replied, Server, ServerHandle,
    ServerOptions, connect_with, dialer,
};
use snek_proto::server::ServerConfig;
use tokio::net::TcpListener;

fn backend() -> MemoryBackend {
    MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("ann", "a", "Ann")
        .with_user("bob", "b", "Bob")
}

async fn serve<B: Backend>(backend: B, options: ServerOptions) -> (String, ServerHandle) {
    let server = Server::bind("127.0.0.1:0", backend, options).await.unwrap();
    let found = (server.url(), server.handle());
    tokio::spawn(server.run());
    found
}

fn client(url: &str, config: ClientConfig) -> (Client, Events) {
    let link = LinkConfig {
        reconnect: ReconnectPolicy::off(),
        connect_timeout: Duration::from_millis(300),
        ..LinkConfig::default()
    };
    let dialer = dialer(url, &config).unwrap();
    let (client, events, connection) = connect_with(dialer, ClientConfig { link, ..config });
    tokio::spawn(connection.run());
    (client, events)
}

async fn login(url: &str, name: &str, password: &str) -> (Client, Events) {
    let (client, events) = client(url, ClientConfig::new(name, password));
    client.ready().await.unwrap();
    (client, events)
}

/// The next message's sender and text, and whether it is final.
async fn message(events: &mut Events) -> (String, String, Final) {
    loop {
        let event = events.next_link().await.expect("an event");
        if let LinkEvent::Event(ClientEvent::Message(message)) = event {
            let (sender, text) = (message.username.to_string(), message.message.to_string());
            return (sender, text, message.is_final);
        }
    }
}

#[tokio::test]
async fn a_message_reaches_all_members_including_its_sender() {
    let (url, _handle) = serve(backend(), ServerOptions::default()).await;
    let (ann, mut ann_events) = login(&url, "ann", "a").await;
    let (bob, mut bob_events) = login(&url, "bob", "b").await;
    ann.send_message("general", "hello", Final::Yes)
        .await
        .unwrap();
    bob.send_message("general", "hi", Final::No).await.unwrap();
    for events in [&mut ann_events, &mut bob_events] {
        for (sender, text, is_final) in [("ann", "hello", Final::Yes), ("bob", "hi", Final::No)] {
            let expected = (sender.to_owned(), text.to_owned(), is_final);
            assert_eq!(message(events).await, expected);
        }
    }
}

#[tokio::test]
async fn every_method_of_the_specification_is_answered() {
    let (url, _handle) = serve(backend(), ServerOptions::default()).await;
    let (ann, _events) = login(&url, "ann", "a").await;
    assert_eq!(ann.get_user(None).await.unwrap(), User::new("ann", "Ann"));
    assert_eq!(ann.get_user(Some("bob")).await.unwrap().nick, "Bob");
    let channels = ann.get_channels().await.unwrap();
    assert_eq!(channels[0].uid.as_str(), "general");
    assert_eq!(ann.ping().await.unwrap().data().get(), r#"{"pong":[]}"#);
    ann.set_typing("general", "#FF6B35").await.unwrap();
    ann.send_message("general", "x", Final::Yes).await.unwrap();
    let unknown = ann.call("dance", &[1], &NoKwargs {}).await.unwrap_err();
    assert!(matches!(&unknown, CallError::Remote(error) if error.message().contains("dance")));
    let nowhere = ann.send_message("nowhere", "x", Final::Yes).await;
    assert!(matches!(nowhere, Err(CallError::Remote(_))), "{nowhere:?}");
}

#[tokio::test]
async fn notifications_arrive_and_leave_no_pending_call() {
    let (url, _handle) = serve(backend(), ServerOptions::default()).await;
    let (ann, mut events) = login(&url, "ann", "a").await;
    let args = ("general", "so far", Final::No);
    let sent = ann.notify("send_message", &args, &NoKwargs {}).await;
    sent.unwrap();
    let whole = ("general", "so far so good", true);
    let sent = ann.notify("send_message", &whole, &NoKwargs {}).await;
    sent.unwrap();
    for (text, is_final) in [("so far", false), ("so far so good", true)] {
        let received = loop {
            let event = events.next_link().await.expect("an event");
            if let LinkEvent::Event(ClientEvent::Message(message)) = event {
                break message;
            }
        };
        assert_eq!(
            (&*received.message, received.is_final),
            (text, is_final.into())
        );
    }
    let open = ann.command(|conn, _| conn.in_flight()).await;
    assert_eq!(open, Ok(0));
}

#[tokio::test]
async fn a_wrong_password_ends_the_client_with_the_servers_message() {
    let (url, _handle) = serve(backend(), ServerOptions::default()).await;
    let (client, _events) = client(&url, ClientConfig::new("ann", "wrong"));
    let message = "invalid credentials".to_owned();
    assert_eq!(
        client.ready().await,
        Err(CloseReason::Authentication { message })
    );
}

#[tokio::test]
async fn an_open_server_refuses_blank_and_control_character_names() {
    let (url, _handle) = serve(backend().open(), ServerOptions::default()).await;
    for name in [
        "",
        " ",
        "\u{a0}\t",
        "a\nb",
        "\u{1b}[2J",
        "a\u{9b}",
        "\u{202e}nna",
        "a\u{2067}",
    ] {
        let (client, _events) = client(&url, ClientConfig::new(name, "p"));
        let refused = client.ready().await;
        assert!(
            matches!(refused, Err(CloseReason::Authentication { .. })),
            "{name:?}"
        );
    }
    login(&url, "Zoë 👩‍🚀", "p").await;
}

/// Knows one user; panics, sleeps or answers as it is told.
#[derive(Default)]
struct TestBackend {
    napping: Arc<tokio::sync::Notify>,
}

impl Backend for TestBackend {
    async fn login(
        &self,
        _: &Arc<Peer>,
        username: &str,
        _: &Secret<Str>,
    ) -> Result<User, RpcError> {
        Ok(User::new(username, username))
    }

    async fn call(
        &self,
        peer: &Arc<Peer>,
        call: &Call,
        reply: CallReply<'_>,
    ) -> Result<Replied, RpcError> {
        match call {
            Call::GetUser { .. } => reply.send(&User::new("ann", "Ann")),
            Call::GetChannels => reply.send(&[(); 0]),
            Call::Unknown { method, .. } => match method.as_str() {
                "panic" => panic!("as asked"),
                "sleep" => {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    reply.send(&())
                }
                "nap" => {
                    self.napping.notify_one();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    reply.send(&"awake")
                }
                "host" => reply.send(
                    &peer
                        .parts()
                        .headers
                        .get("host")
                        .map(|host| host.to_str().unwrap()),
                ),
                _ => reply.send(&"x".repeat(5 << 20)),
            },
            other => reply.send(&other.method()),
        }
    }
}

#[tokio::test]
async fn a_panicking_backend_yields_an_error_reply() {
    let (url, _handle) = serve(TestBackend::default(), ServerOptions::default()).await;
    let (ann, _events) = login(&url, "ann", "a").await;
    let panicked = ann.call("panic", &[0; 0], &NoKwargs {}).await.unwrap_err();
    assert!(
        matches!(&panicked, CallError::Remote(error) if error.message() == "internal error"),
        "{panicked:?}"
    );
    assert_eq!(ann.ping().await.unwrap().data().get(), "\"ping\"");
}

#[tokio::test]
async fn an_oversized_reply_becomes_an_error() {
    let (url, _handle) = serve(TestBackend::default(), ServerOptions::default()).await;
    let (ann, _events) = login(&url, "ann", "a").await;
    let large = ann.call("large", &[0; 0], &NoKwargs {}).await.unwrap_err();
    assert!(matches!(large, CallError::Remote(error) if error.message().contains("too large")));
}

#[tokio::test]
async fn a_slow_call_does_not_block_others() {
    let (url, _handle) = serve(TestBackend::default(), ServerOptions::default()).await;
    let (ann, _events) = login(&url, "ann", "a").await;
    let slow = ann.call("sleep", &[0; 0], &NoKwargs {});
    tokio::select! {
        biased;
        _ = slow => panic!("it sleeps"),
        answer = ann.ping() => drop(answer.unwrap()),
    }
    let timeout = Some(Duration::from_millis(50));
    let late = ann
        .call_within(timeout, "sleep", &[0; 0], &NoKwargs {})
        .await;
    assert!(matches!(late, Err(CallError::TimedOut { .. })));
}

#[tokio::test]
async fn a_backend_sees_the_upgrade_request() {
    let (url, _handle) = serve(TestBackend::default(), ServerOptions::default()).await;
    let (ann, _events) = login(&url, "ann", "a").await;
    let host = ann.call("host", &[0; 0], &NoKwargs {}).await.unwrap();
    let host: String = host.data().parse().unwrap();
    assert!(url.contains(&host) && !host.is_empty(), "{host}");
}

#[tokio::test]
async fn idle_connections_survive_many_heartbeats_on_both_sides() {
    let beat = KeepAlive::every(Duration::from_millis(30), Duration::from_millis(200));
    let options = ServerOptions {
        connection: ServerConfig {
            keep_alive: beat,
            ..ServerConfig::default()
        },
        ..ServerOptions::default()
    };
    let (url, _handle) = serve(backend(), options).await;
    let config = ClientConfig {
        keep_alive: beat,
        ..ClientConfig::new("ann", "a")
    };
    let (ann, _events) = client(&url, config);
    ann.ready().await.unwrap();
    // Real time passes here because real pings have to: at least five of them.
    let idle = tokio::time::timeout(Duration::from_millis(180), ann.closed()).await;
    assert!(idle.is_err(), "{idle:?}");
    assert!(ann.ping().await.is_ok());
}

#[tokio::test]
async fn a_silent_server_times_out_at_the_handshake_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let (ann, _events) = client(&url, ClientConfig::new("ann", "a"));
    let reason = ann.ready().await.unwrap_err();
    assert!(
        matches!(
            reason,
            CloseReason::Connect {
                retryable: true,
                ..
            }
        ),
        "{reason:?}"
    );
    assert!(matches!(ann.state(), LinkState::GaveUp { .. }));
}
