//! Tests of relayed connections: two nodes on a store in memory, in virtual time.

use proptest::prelude::*;
use rpc_core::net::mem::{self, MemTransport};
use rpc_core::store::{MemoryStore, Messages};
use tokio::task::JoinSet;

use super::super::relays::{Relays, Request};
use super::super::{ClusterOptions, Origin};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A connection of a client through one node to another one.
struct Line {
    /// The connections of the nodes to the store.
    stores: [MemoryStore; 2],
    relays: [Arc<Relays>; 2],
    /// The client, and what serves it.
    ends: [MemTransport; 2],
    tasks: JoinSet<()>,
}

/// Where a client comes from that nothing is known of.
fn origin() -> Origin {
    Origin {
        peer: None,
        head: None,
        cancellation: rpc_core::net::Cancellation::new().1,
        clock: rpc_core::net::time::system_now,
    }
}

async fn route(relays: Arc<Relays>, mut messages: Messages, opened: mpsc::Sender<MemTransport>) {
    let mut tasks = JoinSet::new();
    while let Some(request) = relays.next(&mut messages).await {
        if let Request::Open(opening) = request {
            let (ours, theirs) = mem::duplex(1);
            tasks.spawn(opening.relayed.run(ours, std::future::pending()));
            opened.send(theirs).await.unwrap();
        }
    }
}

async fn line(options: ClusterOptions) -> Line {
    let store = MemoryStore::new();
    let stores = [store.connect(), store.connect()];
    let node = |number: usize| {
        let store = Arc::new(stores[number].clone());
        Arc::new(Relays::new(store, number.to_string().into(), &options))
    };
    let relays = [node(0), node(1)];
    let (opened, mut served) = mpsc::channel(1);
    let mut tasks = JoinSet::new();
    for it in &relays {
        let messages = it.subscribe().await.unwrap();
        tasks.spawn(route(Arc::clone(it), messages, opened.clone()));
    }
    let relayed = relays[0].connect("1", &origin()).await.unwrap();
    let (client, ours) = mem::duplex(1);
    tasks.spawn(relayed.run(ours, std::future::pending()));
    let ends = [client, served.recv().await.unwrap()];
    Line {
        stores,
        relays,
        ends,
        tasks,
    }
}

impl Line {
    async fn send(&mut self, from: usize, frame: Outgoing) {
        self.ends[from].send(frame).await.unwrap();
    }

    async fn next(&mut self, at: usize) -> Option<Message> {
        let next = timeout(60 * SECOND, self.ends[at].next()).await;
        next.expect("in time").and_then(Result::ok)
    }

    /// The code with which an end is closed.
    async fn close_code(&mut self, at: usize) -> u16 {
        loop {
            match self.next(at).await {
                Some(Message::Close(Some(frame))) => return frame.code,
                Some(_) => {}
                None => return 0,
            }
        }
    }
}

fn text(len: usize) -> Outgoing {
    Outgoing::Text("x".repeat(len).into())
}

fn len_of(message: Option<Message>) -> usize {
    match message {
        Some(Message::Text(text)) => text.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn frames_of_any_size_arrive_whole_and_in_order() {
    let mut line = line(ClusterOptions::default()).await;
    for len in [0, 1, MAX_PIECE, MAX_PIECE + 1, 256 * 1024, 3_000_000] {
        for from in 0..2 {
            line.send(from, text(len)).await;
            assert_eq!(len_of(line.next(1 - from).await), len);
        }
    }
    let bytes = Bytes::from_static(b"\xff");
    line.send(0, Outgoing::Binary(bytes.clone())).await;
    assert!(matches!(line.next(1).await, Some(Message::Binary(it)) if it == bytes));
    let close = Outgoing::Close(CloseFrame::new(1013, "later"));
    line.send(1, close).await;
    assert_eq!(line.close_code(0).await, 1013);
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_holds_at_most_the_window_and_stays_connected() {
    let mut line = line(ClusterOptions {
        relay_window: 10_000,
        ..ClusterOptions::default()
    })
    .await;
    let mut sent = 0;
    while timeout(100 * SECOND, line.ends[1].send(text(1_000)))
        .await
        .is_ok()
    {
        sent += 1;
        assert!(sent < 30);
    }
    assert!(sent > 7, "{sent}");
    for _ in 0..sent {
        assert_eq!(len_of(line.next(0).await), 1_000);
    }
    line.send(1, text(7)).await;
    while len_of(line.next(0).await) != 7 {}
}

#[tokio::test(start_paused = true)]
async fn a_lost_frame_ends_the_connection_with_the_next_one_or_without() {
    for more in [1, 0] {
        let mut line = line(ClusterOptions::default()).await;
        line.send(0, text(1)).await;
        assert_eq!(len_of(line.next(1).await), 1);
        // The second node hears nothing for a moment.
        line.stores[1].set_cut(true);
        line.send(0, text(2)).await;
        sleep(SECOND / 10).await;
        line.stores[1].set_cut(false);
        for _ in 0..more {
            line.send(0, text(3)).await;
        }
        assert_eq!(line.close_code(1).await, SERVICE_RESTART);
        assert_eq!(line.close_code(0).await, SERVICE_RESTART);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_stays_until_the_other_node_has_forgotten_it() {
    let mut line = line(ClusterOptions::default()).await;
    sleep(3_600 * SECOND).await;
    line.send(0, text(1)).await;
    assert_eq!(len_of(line.next(1).await), 1);
    line.relays[1].end("0");
    assert_eq!(line.close_code(1).await, SERVICE_RESTART);
    assert_eq!(line.close_code(0).await, SERVICE_RESTART);
}

#[tokio::test(start_paused = true)]
async fn connections_to_a_node_that_is_gone_or_leaves_end() {
    let mut dead = line(ClusterOptions::default()).await;
    dead.tasks.abort_all();
    dead.relays[0].end("1");
    assert!(dead.relays[0].nodes().is_empty());
    let mut lost = line(ClusterOptions::default()).await;
    lost.relays[0].close();
    assert_eq!(lost.close_code(0).await, SERVICE_RESTART);
    assert!(lost.relays[0].connect("1", &origin()).await.is_err());
    let mut leaving = line(ClusterOptions::default()).await;
    leaving.relays[1].give_up().await;
    for at in 0..2 {
        assert_eq!(leaving.close_code(at).await, SERVICE_RESTART);
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_above_the_limit_ends_the_connection() {
    let mut line = line(ClusterOptions {
        max_frame_bytes: 100_000,
        ..ClusterOptions::default()
    })
    .await;
    line.send(0, text(100_001)).await;
    assert_eq!(line.close_code(0).await, SERVICE_RESTART);
    assert_eq!(line.close_code(1).await, SERVICE_RESTART);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_full_refuses_connections() {
    let line = line(ClusterOptions {
        max_relayed: 1,
        ..ClusterOptions::default()
    })
    .await;
    let refused = line.relays[0].connect("1", &origin()).await;
    assert!(matches!(
        refused,
        Err(super::super::relays::OpenError::Refused)
    ));
}

fn packets() -> impl Strategy<Value = Packet> {
    let kinds = [
        Kind::More,
        Kind::Text,
        Kind::Close,
        Kind::Sync,
        Kind::Question,
    ];
    let kinds = prop::sample::select(kinds.to_vec());
    (kinds, any::<(u64, u64)>(), any::<Vec<u8>>()).prop_map(|(kind, (id, number), bytes)| Packet {
        kind,
        id,
        number,
        bytes: bytes.into(),
    })
}

proptest! {
    #[test]
    fn packets_round_trip(packet in packets()) {
        prop_assert_eq!(Packet::decode(packet.encode()), Some(packet));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = Packet::decode(bytes.into());
    }

    #[test]
    fn frames_sent_both_ways_arrive_in_order(
        steps in prop::collection::vec((0..2_usize, 0..3_000_usize), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
        let arrived = runtime.block_on(async {
            let Line { ends, mut tasks, .. } = line(ClusterOptions {
                relay_window: 4_000,
                ..ClusterOptions::default()
            })
            .await;
            let (from, to): (Vec<_>, Vec<_>) = ends.into_iter().map(StreamExt::split).unzip();
            let mut reading = to.into_iter();
            for (number, mut sink) in from.into_iter().enumerate() {
                let frames: Vec<_> = steps.iter().filter(|it| it.0 == number).map(|it| it.1).collect();
                tasks.spawn(async move {
                    for len in frames {
                        sink.send(text(len)).await.unwrap();
                    }
                    std::future::pending::<()>().await;
                });
            }
            let mut arrived = Vec::new();
            for from in [1, 0] {
                let count = steps.iter().filter(|it| it.0 == from).count();
                let stream = reading.next().unwrap().take(count);
                arrived.push(stream.map(|it| len_of(it.ok())).collect::<Vec<_>>());
            }
            let arrived: Vec<_> = futures_util::future::join_all(arrived).await;
            arrived
        });
        for (from, arrived) in [1, 0].into_iter().zip(arrived) {
            let sent: Vec<_> = steps.iter().filter(|it| it.0 == from).map(|it| it.1).collect();
            prop_assert_eq!(arrived, sent);
        }
    }
}
