//! The server over real sockets in trouble: clients that vanish or never read, routers that fail, the
//! end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use rpc_core::net::{LinkEvent, QueueConfig};
use smarthole_proto::hub::{HubError, Input, Outcome, Unroutable};
use smarthole_proto::net::{RouterOptions, ServerOptions};
use smarthole_proto::router::RouterError;

use crate::harness::{Running, comes_true, start, start_with_timeout};
use crate::raw_client::ack;
use crate::wire::{Frame, Wire, frame};

async fn open() -> Running {
    start(ServerOptions::default()).await
}

#[tokio::test]
async fn a_vanished_clients_message_goes_to_another() {
    let server = start_with_timeout(100).await;
    let mut notes = Wire::client(server.address, "notes").await;
    let mut lights = Wire::client(server.address, "lights").await;
    let runtime = server.runtime.clone();
    let asked = tokio::spawn(async move { runtime.ask(Input::text("buy milk")).await });
    notes.id().await;
    drop(notes);
    let message = lights.message().await;
    let reason = "as told; Response timeout";
    assert_eq!(message["metadata"]["routingReason"], reason);
    lights.send(&ack(message["id"].as_str().unwrap())).await;
    let outcomes = asked.await.unwrap().unwrap().outcomes;
    assert_eq!(outcomes[0].outcome, Outcome::TimedOut);
    assert_eq!(outcomes[1].outcome, Outcome::Acked);
}

#[tokio::test]
async fn a_response_before_leaving_counts() {
    let server = open().await;
    for _ in 0..20 {
        let mut notes = Wire::client(server.address, "notes").await;
        let runtime = server.runtime.clone();
        let asked = tokio::spawn(async move { runtime.ask(Input::text("buy milk")).await });
        let id = notes.id().await;
        // In one write with the Close.
        let mut last = frame(1, ack(&id).as_bytes());
        last.extend(frame(8, &1000_u16.to_be_bytes()));
        notes.write(&last).await;
        assert!(asked.await.unwrap().unwrap().is_taken());
        assert_eq!(notes.next().await, Frame::Close(1000, String::new()));
    }
}

#[tokio::test]
async fn router_failures_are_reported_and_survived() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    for (text, why) in [
        (
            "fail",
            Unroutable::Router(RouterError::Unavailable("asked to".into())),
        ),
        (
            "panic",
            Unroutable::Router(RouterError::Failed("internal error".into())),
        ),
        ("nobody", Unroutable::NobodyChosen),
    ] {
        let settled = server.runtime.ask(Input::text(text)).await.unwrap();
        assert_eq!(settled.unroutable, Some(why), "{text}");
        assert!(settled.outcomes.is_empty() && !settled.is_taken());
    }
    server.runtime.submit(Input::text("a")).unwrap();
    notes.id().await;
}

#[tokio::test]
async fn a_hanging_router_does_not_block_other_messages() {
    let after = Duration::from_millis(100);
    let router = RouterOptions { timeout: after };
    let server = start(ServerOptions {
        router,
        ..ServerOptions::default()
    })
    .await;
    let mut notes = Wire::client(server.address, "notes").await;
    let hanging = (0..16).map(|_| server.runtime.ask(Input::text("hang")));
    let work = async {
        server.runtime.submit(Input::text("a")).unwrap();
        notes.id().await
    };
    // The next question waits until the others are given up.
    let (settled, _) = tokio::join!(join_all(hanging), work);
    let why = Unroutable::Router(RouterError::TimedOut(after));
    for settled in settled {
        assert_eq!(settled.unwrap().unroutable, Some(why.clone()));
    }
    let asked = &server.router.0;
    assert_eq!(asked.ever.load(Ordering::Relaxed), 17);
}

#[tokio::test]
async fn a_drain_awaits_responses_and_closes_with_1001() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    let mut idle = Wire::open(server.address).await;
    let runtime = server.runtime.clone();
    let asked = tokio::spawn(async move { runtime.ask(Input::text("a")).await });
    let id = notes.id().await;
    let handle = server.handle.clone();
    let drain = tokio::spawn(async move { handle.drain(Duration::from_secs(5)).await });
    // Nothing new from now on, but what is open may end.
    comes_true(|| server.runtime.submit(Input::text("b")) == Err(HubError::Closed)).await;
    notes.send(&ack(&id)).await;
    assert!(asked.await.unwrap().unwrap().is_taken());
    for wire in [&mut notes, &mut idle] {
        loop {
            match wire.next().await {
                // Taken before the drain began.
                Frame::Text(text) => {
                    let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
                    wire.send(&ack(frame["payload"]["id"].as_str().unwrap()))
                        .await;
                }
                other => {
                    let close = Frame::Close(1001, "Server shutting down".to_owned());
                    assert_eq!(other, close);
                    break;
                }
            }
        }
        wire.write(&frame(8, &1001_u16.to_be_bytes())).await;
    }
    let report = drain.await.unwrap();
    assert_eq!((report.finished, report.aborted), (2, 0));
    assert_eq!(server.task.await.unwrap(), report);
    assert!(Wire::open_refused(server.address).await);
}

#[tokio::test]
async fn unanswered_messages_are_reported_at_shutdown() {
    let timeout = Duration::from_millis(50);
    let server = start(ServerOptions {
        shutdown_timeout: timeout,
        ..ServerOptions::default()
    })
    .await;
    let mut events = server.runtime.events();
    let mut notes = Wire::client(server.address, "notes").await;
    let runtime = server.runtime.clone();
    let asked = tokio::spawn(async move { runtime.ask(Input::text("a")).await });
    let id = notes.id().await;
    let report = server.handle.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (1, 0));
    let close = Frame::Close(1001, "Server shutting down".to_owned());
    assert_eq!(notes.next().await, close);
    server.task.await.unwrap();
    let ended = asked.await.unwrap().unwrap_err();
    assert!(
        matches!(&ended, HubError::Ended { message } if message.as_str() == id),
        "{ended:?}"
    );
    assert_eq!(server.runtime.in_flight(), 1);
    assert_eq!(
        server.runtime.submit(Input::text("b")),
        Err(HubError::Closed)
    );
    while events.next().await.is_some() {}
    assert!(server.runtime.events().next().await.is_none());
}

#[tokio::test]
async fn a_shutdown_waits_a_second_for_a_silent_client() {
    let server = open().await;
    let mut silent = Wire::client(server.address, "silent").await;
    server.runtime.submit(Input::text("a")).unwrap();
    silent.id().await;
    // From here on the clock moves only while everything waits for it.
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    let report = server.handle.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (1, 0));
    let taken = start.elapsed();
    assert!((1_000..1_100).contains(&taken.as_millis()), "{taken:?}");
    tokio::time::resume();
    let close = Frame::Close(1001, "Server shutting down".to_owned());
    assert_eq!(silent.next().await, close);
}

#[tokio::test]
async fn a_slow_listener_loses_the_oldest_events_and_their_count() {
    let server = open().await;
    let mut slow = server.runtime.events_with(QueueConfig {
        max_items: 2,
        ..QueueConfig::default()
    });
    drop(server.runtime.events());
    for name in ["a", "b", "c", "d"] {
        Wire::client(server.address, name).await;
    }
    let mut lost = 0;
    comes_true(|| slow.total_lost() >= 2).await;
    if let Some(LinkEvent::Lagged(events)) = slow.next_link().await {
        lost = events;
    }
    assert!(lost >= 2, "{lost}");
    assert!(slow.next().await.is_some());
}
