//! Clients with several addresses: which one they dial, and what they say about it.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use rpc_core::CloseReason;
use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::server::HttpConfig;
use rpc_core::net::ws::{WsConfig, WsDialer};
use rpc_core::net::{DialError, Dialer as _, LinkConfig, LinkState, Node};
use rpc_core::reconnect::ReconnectPolicy;

use crate::server::Server;
use crate::toy::house::{DEADLINE, House, config, eager};
use crate::toy::net::{End, GuestSide};

/// Answers names from a table; a name that is not in it hangs.
#[derive(Default)]
struct Table {
    answers: HashMap<&'static str, Vec<SocketAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Table {
    fn new(answers: impl IntoIterator<Item = (&'static str, Vec<SocketAddr>)>) -> Arc<Self> {
        Arc::new(Self {
            answers: answers.into_iter().collect(),
            asked: Mutex::default(),
        })
    }
}

impl Table {
    async fn resolve(self: Arc<Self>, host: String) -> io::Result<Vec<SocketAddr>> {
        let answers = self.answers.get(&*host).cloned();
        self.asked.lock().unwrap().push(host);
        match answers {
            Some(answers) => Ok(answers),
            None => std::future::pending().await,
        }
    }
}

fn listed(urls: &str) -> WsDialer {
    let ws = WsConfig {
        connect_timeout: DEADLINE,
        ..WsConfig::default()
    };
    let dialer = WsDialer::new(urls).unwrap().with_config(ws);
    dialer.in_listed_order()
}

/// A dialer with names of its own, which the servers of this machine would refuse as `Host`.
fn named(urls: &str, table: &Arc<Table>) -> WsDialer {
    let dialer = listed(urls).with_header("Host", "localhost").unwrap();
    let table = Arc::clone(table);
    dialer.with_resolver(move |host, _| Arc::clone(&table).resolve(host.to_owned()))
}

fn guest(dialer: WsDialer, config: LinkConfig) -> End<GuestSide> {
    let side = GuestSide {
        handshake: DEADLINE,
        ..GuestSide::new("ann")
    };
    End::spawn(rpc_core::net::open(side, dialer, config))
}

fn address(node: Option<Node>) -> Option<SocketAddr> {
    node.map(|node| node.address())
}

/// An address where nothing listens.
async fn nowhere() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// Returns the address of a server that answers every request with this status.
async fn refusing(status: StatusCode) -> SocketAddr {
    let config =
        HttpConfig::default().with_on_upgrade(move |_, _| Err((status, "not here".to_owned())));
    let server = Server::bind("127.0.0.1:0", |_| async {}, config)
        .await
        .unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    address
}

#[tokio::test]
async fn the_client_of_a_dead_node_reconnects_to_the_next() {
    let (mut a, mut b) = (House::open().await, House::open().await);
    let urls = format!("ws://{}/?token=hunter2,ws://{}", a.address, b.address);
    let guest = guest(listed(&urls), eager());
    let room = a.room().await;
    assert_eq!(guest.link.ready().await, Ok(1));
    let node = guest.link.node().unwrap();
    assert_eq!((node.index(), node.address()), (0, a.address));
    assert_eq!(node.to_string(), format!("ws://{}/", a.address));

    let mut states = guest.link.states();
    a.task.abort();
    room.link.cut();
    let _room = b.room().await;
    let again = LinkState::Ready { generation: 2 };
    states.wait_for(|state| *state == again).await.unwrap();
    let node = guest.link.node().unwrap();
    assert_eq!((node.index(), node.address()), (1, b.address));
}

#[tokio::test]
async fn a_draining_node_is_left_for_the_next() {
    let (mut a, mut b) = (House::open().await, House::open().await);
    let urls = format!("ws://{},ws://{}", a.address, b.address);
    let guest = guest(listed(&urls), eager());
    let _room = a.room().await;
    // It says goodbye with 1001.
    tokio::spawn(async move { a.shutdown.drain(DEADLINE).await });
    let _room = b.room().await;
    assert_eq!(address(guest.link.node()), Some(b.address));
}

#[tokio::test]
async fn unreachable_addresses_are_skipped_in_one_attempt() {
    let mut b = House::open().await;
    let urls = format!(
        "ws://{},ws://{},ws://{}",
        nowhere().await,
        b.address,
        nowhere().await
    );
    // No second attempt.
    let guest = guest(listed(&urls), config());
    let _room = b.room().await;
    assert_eq!(guest.link.ready().await, Ok(1));
    assert_eq!(guest.link.node().map(|node| node.index()), Some(1));
}

#[tokio::test]
async fn a_busy_node_ends_the_attempt_and_the_next_goes_elsewhere() {
    let busy = refusing(StatusCode::SERVICE_UNAVAILABLE).await;
    let b = House::open().await;
    let dialer = listed(&format!("ws://{busy},ws://{}", b.address));
    for _ in 0..2 {
        let refused = dialer.dial().await.map(drop);
        assert!(
            matches!(refused, Err(DialError::Status { status: 503, .. })),
            "{refused:?}"
        );
        dialer.dial().await.unwrap();
        assert_eq!(address(dialer.node()), Some(b.address));
    }
}

#[tokio::test]
async fn a_node_without_the_path_is_skipped() {
    let lost = refusing(StatusCode::NOT_FOUND).await;
    let b = House::open().await;
    let dialer = listed(&format!("ws://{lost},ws://{}", b.address));
    dialer.dial().await.unwrap();
    assert_eq!(address(dialer.node()), Some(b.address));
    let also = refusing(StatusCode::GONE).await;
    let refused = listed(&format!("ws://{lost},ws://{also}")).dial().await;
    assert!(refused.is_err_and(|error| !error.is_retryable()));
    // The second one may come back.
    let refused = listed(&format!("ws://{lost},ws://{}", nowhere().await))
        .dial()
        .await;
    assert!(refused.is_err_and(|error| error.is_retryable()));
}

#[tokio::test]
async fn a_refused_login_is_not_retried_elsewhere() {
    let locked = refusing(StatusCode::UNAUTHORIZED).await;
    let b = House::open().await;
    let guest = guest(
        listed(&format!("ws://{locked},ws://{}", b.address)),
        eager(),
    );
    let refused = guest.link.ready().await;
    assert!(
        matches!(refused, Err(CloseReason::Authentication { .. })),
        "{refused:?}"
    );
    assert_eq!(b.counters.upgraded(), 0);
}

#[tokio::test]
async fn the_addresses_of_one_name_are_nodes_too() {
    let (mut a, mut b) = (House::open().await, House::open().await);
    let table = Table::new([("cluster.example", vec![a.address, b.address])]);
    let guest = guest(named("ws://cluster.example/", &table), eager());
    let room = a.room().await;
    let node = guest.link.node().unwrap();
    let printed = format!("ws://cluster.example/ ({})", a.address);
    assert_eq!(node.to_string(), printed);
    a.task.abort();
    room.link.cut();
    let _room = b.room().await;
    assert_eq!(address(guest.link.node()), Some(b.address));
}

#[tokio::test]
async fn a_hanging_name_uses_only_its_share_of_the_timeout() {
    let b = House::open().await;
    let table = Table::new([("b.example", vec![b.address])]);
    let dialer = named("ws://a.example,ws://b.example", &table);
    dialer.dial().await.unwrap();
    assert_eq!(address(dialer.node()), Some(b.address));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_dead_nodes_keeps_the_delays_of_one() {
    let names = ["a.example", "b.example", "c.example"];
    let table = Table::new(names.map(|name| (name, Vec::new())));
    let backoff = BackoffPolicy {
        max_attempts: Some(3),
        ..BackoffPolicy::new(Duration::from_secs(1), 2.0)
    };
    let config = LinkConfig {
        reconnect: ReconnectPolicy::new(backoff),
        ..LinkConfig::default()
    };
    let urls = names.map(|name| format!("ws://{name}")).join(",");
    let dialer = named(&urls, &table);
    let start = tokio::time::Instant::now();
    let guest = guest(dialer, config);
    let gave_up = guest.link.ready().await;
    assert!(
        matches!(gave_up, Err(CloseReason::Connect { .. })),
        "{gave_up:?}"
    );
    // The delays 1, 2 and 4 s; each name once in each of the four attempts.
    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(table.asked.lock().unwrap().len(), 12);
}

#[tokio::test]
async fn plain_http_uses_the_node_of_the_connection() {
    let (a, b) = (House::open().await, House::open().await);
    let dialer = listed(&format!("ws://{},ws://{}", a.address, b.address));
    for _ in 0..3 {
        let (_, node) = dialer.open().await.unwrap();
        assert_eq!(node.address(), a.address);
        let host = &dialer.node_headers(&node).unwrap()["host"];
        assert_eq!(host, &a.address.to_string());
    }
    let (_, left) = dialer.open().await.unwrap();
    dialer.leave(&left);
    let (_, node) = dialer.open().await.unwrap();
    assert_eq!(node.address(), b.address);
    // News about a node that was left already.
    dialer.leave(&left);
    let (_, node) = dialer.open().await.unwrap();
    assert_eq!(node.address(), b.address);
    let host = &dialer.node_headers(&node).unwrap()["host"];
    assert_eq!(host, &b.address.to_string());
}

#[test]
fn each_url_of_a_list_is_checked() {
    for (urls, exposed) in [
        ("wss://a.example,wss://b.example", None),
        ("ws://127.0.0.1:1,wss://b.example", None),
        ("wss://a.example,ws://b.example", Some("b.example")),
        ("ws://127.0.0.1,ws://10.0.0.1", Some("10.0.0.1")),
    ] {
        assert_eq!(
            WsDialer::new(urls).unwrap().exposed_host(),
            exposed,
            "{urls}"
        );
    }
    for urls in [
        "ws://a.example,ftp://b.example",
        "ws://a,ws://u:p@",
        "ws://a,b",
    ] {
        let bad = WsDialer::new(urls).map(drop);
        assert!(matches!(bad, Err(DialError::BadUrl { .. })), "{urls}");
    }
    let dialer = WsDialer::new("ws://a,ws://b/c,ws://d/?e=hunter2").unwrap();
    let shown = format!("{:?}", dialer.or_path("/rpc").unwrap());
    assert!(
        shown.contains("\"ws://a/rpc,ws://b/c,ws://d/rpc\""),
        "{shown}"
    );
}
