//! The client over a line in memory, on a clock that tests move.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::mem::{self, MemDialer, MemListener, MemTransport};
use rpc_core::net::{DialError, Dialer, LinkConfig, LinkEvent, LinkState, QueueConfig};
use rpc_core::reconnect::{ReconnectPolicy, ResetOn};
use rpc_core::{CloseReason, Refused};
use serde_json::json;
use smarthole_proto::client::{ClientConfig, reconnect_policy};
use smarthole_proto::frame::{Answer, Notification};
use smarthole_proto::net::{Client, DROPPED, Event, Events, InboundMessage, connect_with};
use tokio::time::{Instant, advance};

use crate::harness::comes_true;
use crate::played::{Router, acked, config, rejected, response};

const SECOND: Duration = Duration::from_secs(1);

fn open(link: LinkConfig) -> (Client, Events, MemListener) {
    let (dialer, listener) = mem::listen(64);
    // No one reads pings while the clock jumps.
    let config = ClientConfig {
        keep_alive: KeepAlive::off(),
        ..config()
    };
    let (client, events, connection) = connect_with(dialer, ClientConfig { link, ..config });
    tokio::spawn(connection.run());
    (client, events, listener)
}

async fn registered() -> (Client, Events, Router, MemListener) {
    let (client, events, mut listener) = open(config().link);
    let router = Router::registered(&mut listener).await;
    client.ready().await.unwrap();
    (client, events, router, listener)
}

/// The next event of the protocol but the registration.
async fn event(events: &mut Events) -> Event {
    loop {
        match events.next_link().await.expect("an event") {
            LinkEvent::Event(Event::Registered { .. }) | LinkEvent::State(_) => {}
            LinkEvent::Event(event) => return event,
            other => panic!("{other:?}"),
        }
    }
}

async fn received(events: &mut Events) -> InboundMessage {
    match event(events).await {
        Event::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_can_be_answered_several_times() {
    let (client, mut events, mut router, _listener) = registered().await;
    let registered = events.next_link().await;
    assert!(matches!(
        registered,
        Some(LinkEvent::State(LinkState::Connecting { attempt: 0 }))
    ));
    router.route("msg-1", "buy milk").await;
    let message = received(&mut events).await;
    assert_eq!((&*message.id, &*message.text), ("msg-1", "buy milk"));
    assert!(!message.metadata.direct_routed);
    assert_eq!(message.time_left(), 30 * SECOND);
    assert!(message.frame().get().contains("timestamp"));
    assert!(!message.is_answered());
    message.ack().await.unwrap();
    assert!(message.is_answered());
    message.notify(Notification::new("noted")).await.unwrap();
    drop(message);
    client.respond("old", Answer::Ack).await.unwrap();
    client
        .respond("old", Answer::reject(Some("not mine".into())))
        .await
        .unwrap();
    client
        .respond("old", Answer::Notification(Notification::new("done")))
        .await
        .unwrap();
    for frame in [
        acked("msg-1"),
        response("msg-1", "notification", &json!({"body": "noted"})),
        acked("old"),
        rejected("old", "not mine"),
        response("old", "notification", &json!({"body": "done"})),
    ] {
        assert_eq!(router.recv().await, frame);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_message_is_rejected_once() {
    let (client, mut events, mut router, _listener) = registered().await;
    router.route("1", "a").await;
    router.route("2", "b").await;
    drop(received(&mut events).await);
    let second = received(&mut events).await;
    second.reject("not mine").await.unwrap();
    drop(second);
    client.close();
    // Commands go before what was left.
    assert_eq!(router.recv().await, rejected("2", "not mine"));
    assert_eq!(router.recv().await, rejected("1", DROPPED));
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
}

#[tokio::test(start_paused = true)]
async fn a_message_evicted_from_the_queue_is_rejected() {
    let queue = QueueConfig {
        max_items: 2,
        ..QueueConfig::default()
    };
    let (client, mut events, mut listener) = open(LinkConfig {
        events: queue,
        ..config().link
    });
    let mut router = Router::registered(&mut listener).await;
    client.ready().await.unwrap();
    for id in ["1", "2", "3", "4"] {
        router.route(id, "text").await;
    }
    assert_eq!(router.recv().await, rejected("1", DROPPED));
    assert_eq!(router.recv().await, rejected("2", DROPPED));
    let mut kept = Vec::new();
    while let Some(Some(event)) = events.next_link().now_or_never() {
        if let LinkEvent::Event(Event::Message(message)) = event {
            message.ack().await.unwrap();
            kept.push(message.id.clone());
        }
    }
    assert_eq!(kept, ["3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn unread_messages_are_rejected() {
    let (_client, events, mut router, _listener) = registered().await;
    router.route("1", "waits in the queue").await;
    tokio::time::sleep(SECOND).await;
    drop(events);
    assert_eq!(router.recv().await, rejected("1", DROPPED));
    router.route("2", "comes after").await;
    assert_eq!(router.recv().await, rejected("2", DROPPED));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_message_has_exactly_one_response_across_threads() {
    const COUNT: usize = 2_000;
    let (client, mut events, mut router, _listener) = registered().await;
    tokio::spawn(async move {
        while let Some(event) = events.next_link().await {
            if let LinkEvent::Event(Event::Message(message)) = event {
                tokio::spawn(async move {
                    match message.id.len() % 3 {
                        0 => drop(message),
                        1 => drop(message.ack().now_or_never()),
                        _ => message.reject("no").await.unwrap(),
                    }
                });
            }
        }
    });
    let ids: Vec<String> = (0..COUNT)
        .map(|n| "x".repeat(n % 7) + &n.to_string())
        .collect();
    let mut seen = std::collections::HashSet::new();
    for some in ids.chunks(50) {
        for id in some {
            router.route(id, "text").await;
        }
        for _ in some {
            let frame = router.recv().await;
            let id = frame["payload"]["messageId"].as_str().unwrap().to_owned();
            assert!(seen.insert(id), "twice: {frame}");
        }
    }
    // Behind whatever else may be on its way.
    client.command(|_, _| ()).await.unwrap();
    client.close();
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
    assert!(ids.iter().all(|id| seen.contains(id)));
}

#[tokio::test(start_paused = true)]
async fn a_message_dropped_after_its_deadline_is_not_rejected() {
    let (client, mut events, mut router, _listener) = registered().await;
    router.route("1", "text").await;
    let message = received(&mut events).await;
    advance(29 * SECOND).await;
    assert_eq!(message.time_left(), SECOND);
    let overdue = event(&mut events).await;
    assert!(matches!(overdue, Event::Overdue { id } if id == "1"));
    assert_eq!(message.time_left(), Duration::ZERO);
    drop(message);
    client.close();
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
}

#[tokio::test(start_paused = true)]
async fn a_message_dropped_while_disconnected_is_rejected_after_the_reconnect() {
    let (client, mut events, mut router, mut listener) = registered().await;
    for id in ["1", "2"] {
        router.route(id, "text").await;
    }
    let (first, second) = (received(&mut events).await, received(&mut events).await);
    router.cut();
    comes_true(|| !client.state().is_ready()).await;
    drop(first);
    let mut router = Router::accept(&mut listener).await;
    drop(second);
    router.register().await;
    assert_eq!(router.recv().await, rejected("1", DROPPED));
    assert_eq!(router.recv().await, rejected("2", DROPPED));
}

#[tokio::test(start_paused = true)]
async fn a_message_dropped_while_long_disconnected_is_not_rejected() {
    let (client, mut events, mut router, mut listener) = registered().await;
    router.route("1", "text").await;
    let message = received(&mut events).await;
    router.cut();
    comes_true(|| !client.state().is_ready()).await;
    drop(message);
    let router = Router::accept(&mut listener).await;
    tokio::time::sleep(9 * SECOND).await;
    router.cut();
    let router = Router::accept(&mut listener).await;
    tokio::time::sleep(9 * SECOND).await;
    router.cut();
    let router = Router::accept(&mut listener).await;
    tokio::time::sleep(9 * SECOND).await;
    router.cut();
    let mut router = Router::registered(&mut listener).await;
    client.ready().await.unwrap();
    client.close();
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
}

#[tokio::test(start_paused = true)]
async fn a_responder_outlives_its_message_and_a_disconnect() {
    let (client, mut events, mut router, mut listener) = registered().await;
    router.route("1", "text").await;
    let message = received(&mut events).await;
    let responder = message.responder();
    message.ack().await.unwrap();
    drop(message);
    assert_eq!(router.recv().await, acked("1"));
    router.cut();
    comes_true(|| !client.state().is_ready()).await;
    assert_eq!(
        client.respond("1", Answer::Ack).await,
        Err(Refused::NotConnected)
    );
    let late = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        responder.notify(Notification::new("done")).await
    });
    let mut router = Router::accept(&mut listener).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(
        client.respond("1", Answer::Ack).await,
        Err(Refused::NotReady)
    );
    router.register().await;
    let expected = response("1", "notification", &json!({"body": "done"}));
    assert_eq!(router.recv().await, expected);
    assert_eq!(late.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_held_message_does_not_keep_the_connection_open() {
    let (client, mut events, mut router, _listener) = registered().await;
    router.route("1", "text").await;
    let message = received(&mut events).await;
    drop(client);
    assert_eq!(router.recv().await, json!([1000, ""]));
    assert_eq!(message.ack().await, Err(Refused::Closed));
    assert!(!message.is_answered());
}

#[tokio::test(start_paused = true)]
async fn a_deferred_answer_is_sent_unless_another_was() {
    let (_client, mut events, mut router, _listener) = registered().await;
    router.route("1", "text").await;
    let message = received(&mut events).await;
    message.answer_later(Answer::Ack);
    message.answer_later(Answer::reject(None));
    assert!(message.is_answered());
    drop(message);
    assert_eq!(router.recv().await, acked("1"));
    assert!(router.try_recv().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_ack_future_sends_no_rejection() {
    let (_client, mut events, mut router, _listener) = registered().await;
    router.route("1", "text").await;
    let message = received(&mut events).await;
    assert!(message.ack().now_or_never().is_none());
    drop(message);
    assert_eq!(router.recv().await, acked("1"));
    assert!(router.try_recv().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_all_responses() {
    let (client, mut events, mut router, _listener) = registered().await;
    for id in ["1", "2"] {
        router.route(id, "text").await;
    }
    let (first, second) = (received(&mut events).await, received(&mut events).await);
    let draining = tokio::spawn(async move { client.drain(5 * SECOND).await });
    tokio::time::sleep(SECOND).await;
    first.ack().await.unwrap();
    assert_eq!(router.recv().await, acked("1"));
    let report = draining.await.unwrap();
    assert_eq!((report.finished, report.aborted), (1, 1));
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
    drop(second);
}

/// Notes when it dials, and reaches no one or someone.
struct Dials {
    times: Arc<Mutex<Vec<Instant>>>,
    inner: Option<MemDialer>,
}

impl Dialer for Dials {
    type Transport = MemTransport;

    async fn dial(&self) -> Result<MemTransport, DialError> {
        self.times.lock().unwrap().push(Instant::now());
        match &self.inner {
            Some(dialer) => dialer.dial().await,
            None => Err(DialError::Exhausted),
        }
    }
}

/// The delays in seconds between the dials so far.
fn delays(times: &Mutex<Vec<Instant>>) -> Vec<u64> {
    let times = times.lock().unwrap();
    times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect()
}

const SCHEDULE: [u64; 10] = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30];

/// A client whose registration is refused with this code every time.
async fn always_refused(code: &str, link: LinkConfig, dials: usize) -> (Vec<u64>, LinkState) {
    let (dialer, mut listener) = mem::listen(64);
    let times = Arc::<Mutex<Vec<Instant>>>::default();
    let dialer = Dials {
        times: Arc::clone(&times),
        inner: Some(dialer),
    };
    let (client, _events, connection) = connect_with(dialer, ClientConfig { link, ..config() });
    let task = tokio::spawn(connection.run());
    for _ in 0..dials {
        let mut router = Router::accept(&mut listener).await;
        router.refuse(code).await;
        assert_eq!(router.recv().await, json!([4000, "Registration failed"]));
    }
    if client.state().ended().is_none() {
        let _ = tokio::time::timeout(SECOND / 10, client.closed()).await;
    }
    task.abort();
    (delays(&times), client.state())
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_router_is_retried_ten_times() {
    let times = Arc::<Mutex<Vec<Instant>>>::default();
    let dialer = Dials {
        times: Arc::clone(&times),
        inner: Some(mem::listen(1).0),
    };
    let (client, _events, connection) = connect_with(dialer, config());
    tokio::spawn(connection.run());
    let reason = client.closed().await;
    assert!(matches!(reason, CloseReason::Connect { .. }), "{reason}");
    assert_eq!(delays(&times), SCHEDULE);
    assert_eq!(client.state(), LinkState::GaveUp { cause: reason });
}

#[tokio::test(start_paused = true)]
async fn the_literal_reconnect_policy_retries_every_second_forever() {
    let literal = LinkConfig {
        reconnect: ReconnectPolicy {
            reset_on: ResetOn::Open,
            ..reconnect_policy()
        },
        ..config().link
    };
    let (delays, state) = always_refused("DUPLICATE_NAME", literal, 15).await;
    assert_eq!(delays, [1; 14]);
    assert!(matches!(state, LinkState::Lost { .. }), "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_registration_is_not_retried() {
    let (delays, state) = always_refused("INVALID_NAME", config().link, 1).await;
    assert_eq!(delays, [] as [u64; 0]);
    let retryable = false;
    let message = "INVALID_NAME: no".to_owned();
    let cause = CloseReason::Refused { message, retryable };
    assert_eq!(state, LinkState::GaveUp { cause });
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_event_before_the_disconnect() {
    let (_client, mut events, mut listener) = open(config().link);
    let mut router = Router::accept(&mut listener).await;
    router.refuse("DUPLICATE_NAME").await;
    let Event::Refused(error) = event(&mut events).await else {
        panic!("not refused")
    };
    assert_eq!(error.code.name(), "DUPLICATE_NAME");
    assert!(matches!(
        events.next_link().await,
        Some(LinkEvent::State(LinkState::Lost { .. }))
    ));
    // By then the name is free.
    let _router = Router::registered(&mut listener).await;
    assert!(matches!(
        events.next_link().await,
        Some(LinkEvent::State(LinkState::Connecting { attempt: 1 }))
    ));
}

#[tokio::test(start_paused = true)]
async fn unknown_and_invalid_frames_are_events() {
    let (_client, mut events, mut router, _listener) = registered().await;
    router.send(&json!({"type": "later", "payload": 1})).await;
    router.send_text("junk").await;
    let unknown = event(&mut events).await;
    assert!(matches!(unknown, Event::Unknown { tag, .. } if tag == "later"));
    assert!(matches!(event(&mut events).await, Event::Warning(_)));
}
