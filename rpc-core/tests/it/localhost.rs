//! `localhost`: both of its addresses belong to a server, and clients begin with IPv4.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rpc_core::net::Dialer as _;
use rpc_core::net::server::{HttpConfig, Listener};
use rpc_core::net::ws::WsDialer;
use tokio::net::{TcpListener, TcpStream};

use crate::server::Server;

/// As most systems have it.
async fn six_first(port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(vec![
        (Ipv6Addr::LOCALHOST, port).into(),
        (Ipv4Addr::LOCALHOST, port).into(),
    ])
}

async fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").await.is_ok()
}

#[tokio::test]
async fn a_server_on_a_loopback_address_takes_both_families() {
    if !has_ipv6().await {
        return;
    }
    for address in ["127.0.0.1:0", "[::1]:0", "localhost:0"] {
        let listener = Listener::bind(address).await.unwrap();
        let local = listener.local_addr().unwrap();
        assert_eq!(local.is_ipv6(), address.starts_with('['), "{local}");
        for ip in [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ] {
            let client = TcpStream::connect((ip, local.port())).await.unwrap();
            let (_, peer) = listener.accept().await.unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
        }
        TcpListener::bind(("::1", local.port())).await.unwrap_err();
    }
    // Other addresses are not loopback, or are not what the name means.
    for address in ["0.0.0.0:0", "127.0.0.2:0"] {
        let listener = Listener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv6Addr::LOCALHOST, port))
            .await
            .unwrap_err();
    }
}

#[tokio::test]
async fn a_loopback_server_starts_when_one_family_is_taken() {
    if !has_ipv6().await {
        return;
    }
    let stranger = TcpListener::bind("[::1]:0").await.unwrap();
    let port = stranger.local_addr().unwrap().port();
    let server = Server::bind(("localhost", port), |_| async {}, HttpConfig::default()).await;
    // Unless that port is taken in this family too.
    let Ok(server) = server else { return };
    assert_eq!(server.local_addr(), (Ipv4Addr::LOCALHOST, port).into());
    let shutdown = server.handle();
    tokio::spawn(server.run());
    let url = format!("ws://localhost:{port}/");
    WsDialer::new(&url).unwrap().dial().await.unwrap();
    shutdown.drain(Duration::ZERO).await;
    // Its own port is not replaced by that of the other family.
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    Listener::bind(("localhost", port)).await.unwrap_err();
}

#[tokio::test]
async fn a_client_of_localhost_tries_ipv4_first() {
    let server = Server::bind("127.0.0.1:0", |_| async {}, HttpConfig::default());
    let server = server.await.unwrap();
    let port = server.local_addr().port();
    tokio::spawn(server.run());
    let dialer = WsDialer::new(&format!("ws://LocalHost:{port}/")).unwrap();
    let others = dialer.clone().with_resolver(|_, port| six_first(port));
    for dialer in [dialer, others] {
        // Also where a round would go on behind the last address.
        for _ in 0..3 {
            let _connection = dialer.dial().await.unwrap();
            let node = dialer.node().unwrap();
            assert_eq!(node.address(), (Ipv4Addr::LOCALHOST, port).into());
            dialer.leave(&node);
        }
    }
}
