//! Calls over a link: answers, streams, failures, closing and draining. In memory, paused clock.

use std::future::Future as _;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use rpc_core::net::{DrainReport, Frame, LinkConfig, LinkState};
use rpc_core::{CallError, CloseReason, Delivery, Machine as _, Refused};
use tokio::time::Instant;

use crate::toy::ANSWER;
use crate::toy::guest::GuestEvent;
use crate::toy::net::{HostLink, connected, echo};

fn config() -> LinkConfig {
    LinkConfig::default()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_at_once_get_their_own_answers() {
    let (guest, host, _) = connected(config(), config()).await;
    tokio::spawn(echo(guest));
    let calls = (0..1000).map(|n| {
        let link = host.link.clone();
        async move {
            link.call_with("ask", move |m, now| m.ask(&n.to_string(), now))
                .await
        }
    });
    let answers = futures_util::future::join_all(calls).await;
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer, Ok(n.to_string()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_machine_reaches_the_caller_at_once() {
    let (_guest, host, _) = connected(config(), config()).await;
    let long = "x".repeat(5 << 20);
    let refused = host
        .link
        .call_with("ask", move |m, now| m.ask(&long, now))
        .await;
    assert!(
        matches!(refused, Err(CallError::Refused(Refused::TooLarge { .. }))),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_remote_error_is_the_peers_error() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let call = host.asking(ANSWER);
    let id = guest.asked().await;
    guest.does(move |m| m.answer(&id, Err("no"))).await;
    assert_eq!(call.await.unwrap(), Err(CallError::Remote("no".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_call_times_out() {
    let (_guest, host, _) = connected(config(), config()).await;
    let outcome = host.ask("?").await;
    assert_eq!(
        outcome,
        Err(CallError::TimedOut {
            delivery: Delivery::Unknown
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_ends_all_calls_with_the_reason() {
    let (mut guest, host, cutter) = connected(config(), config()).await;
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let link = host.link.clone();
            tokio::spawn(async move { link.call_with("ask", |m, now| m.ask("?", now)).await })
        })
        .collect();
    for _ in 0..10 {
        guest.event().await;
    }
    cutter.cut();
    for call in calls {
        let reason = CloseReason::Lost;
        let delivery = Delivery::Unknown;
        assert_eq!(
            call.await.unwrap(),
            Err(CallError::Closed { reason, delivery })
        );
    }
    assert_eq!(host.task.await.unwrap(), CloseReason::Lost);
}

/// Notes the state of a link whenever it is woken.
struct Noting {
    link: HostLink,
    seen: Mutex<Vec<LinkState>>,
}

impl Wake for Noting {
    fn wake(self: Arc<Self>) {
        self.seen.lock().unwrap().push(self.link.state());
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_is_not_ready_after_a_call_fails_with_its_connection() {
    let (mut guest, host, cutter) = connected(config(), config()).await;
    let noting = Arc::new(Noting {
        link: host.link.clone(),
        seen: Mutex::default(),
    });
    let waker = Waker::from(Arc::clone(&noting));
    let mut call = pin!(host.link.call_with("ask", |m, now| m.ask("?", now)));
    let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    guest.event().await;
    cutter.cut();
    host.task.await.unwrap();
    assert_eq!(*noting.seen.lock().unwrap(), [LinkState::Closing]);
    assert!(call.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_task_ends_all_calls() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let call = host.asking(ANSWER);
    guest.event().await;
    let mut queued = pin!(host.link.call_with("ask", |m, now| m.ask("?", now)));
    assert!(futures_util::poll!(queued.as_mut()).is_pending());
    host.task.abort();
    let closed = |delivery| {
        let reason = CloseReason::TaskGone;
        Err(CallError::Closed { reason, delivery })
    };
    assert_eq!(call.await.unwrap(), closed(Delivery::Unknown));
    assert_eq!(queued.await, closed(Delivery::NotSent));
    let after = host.ask("?").await;
    assert_eq!(after.unwrap_err().delivery(), Delivery::NotSent);
    assert_eq!(host.link.closed().await, CloseReason::TaskGone);
}

#[tokio::test(start_paused = true)]
async fn a_stream_yields_its_items_and_then_its_outcome() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let mut stream = host.stream(ANSWER).await;
    let id = guest.asked().await;
    guest
        .link
        .command(move |m, _| {
            m.part(&id, "a").unwrap();
            m.part(&id, "b").unwrap();
            m.answer(&id, Ok("end")).unwrap();
        })
        .await
        .unwrap();
    assert_eq!(stream.next().await, Some("a".to_owned()));
    assert_eq!(stream.next().await, Some("b".to_owned()));
    assert_eq!(stream.next().await, None);
    assert_eq!(stream.outcome().await, Some(Ok("end".to_owned())));
    assert_eq!(stream.outcome().await, None);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it_at_the_peer() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let call = host.asking(ANSWER);
    let id = guest.asked().await;
    call.abort();
    assert_eq!(guest.event().await, Some(GuestEvent::Cancelled { id }));
    assert_eq!(host.link.command(|m, _| m.in_flight()).await, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_stream_cancels_it_at_the_peer() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let stream = host.stream(ANSWER).await;
    let id = guest.asked().await;
    drop(stream);
    assert_eq!(guest.event().await, Some(GuestEvent::Cancelled { id }));
}

#[tokio::test(start_paused = true)]
async fn a_weak_handle_does_not_keep_the_connection_open() {
    let (guest, host, _) = connected(config(), config()).await;
    let weak = host.link.downgrade();
    let strong = weak.upgrade().expect("the connection is there");
    drop(host.link);
    tokio::spawn(echo(guest));
    let answer = strong.call_with("ask", |m, now| m.ask("hi", now)).await;
    assert_eq!(answer, Ok("hi".to_owned()));
    drop(strong);
    assert!(weak.upgrade().is_none());
    weak.wake();
    assert_eq!(host.task.await.unwrap(), CloseReason::Local);
    assert!(weak.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes_and_dropping_a_clone_does_not() {
    let (guest, host, _) = connected(config(), config()).await;
    drop(host.link.clone());
    host.does(|m| m.tell("still here")).await;
    drop(host.link);
    assert_eq!(host.task.await.unwrap(), CloseReason::Local);
    let CloseReason::Peer(frame) = guest.task.await.unwrap() else {
        panic!("not closed")
    };
    assert_eq!(frame.code, 1000);
}

#[tokio::test(start_paused = true)]
async fn dropping_events_stops_delivery_but_no_call() {
    let (guest, host, _) = connected(config(), config()).await;
    tokio::spawn(echo(guest));
    drop(host.events);
    let answer = host.link.call_with("ask", |m, now| m.ask("hi", now)).await;
    assert_eq!(answer, Ok("hi".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn close_ends_calls_in_flight_and_refuses_new_ones() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let call = host.asking(ANSWER);
    guest.event().await;
    host.link.close();
    host.link.close();
    let reason = CloseReason::Local;
    let delivery = Delivery::Unknown;
    assert_eq!(
        call.await.unwrap(),
        Err(CallError::Closed { reason, delivery })
    );
    assert_eq!(host.link.closed().await, CloseReason::Local);
    let after = host.ask("?").await;
    assert_eq!(after.unwrap_err().delivery(), Delivery::NotSent);
    assert_eq!(
        host.link.state(),
        LinkState::Closed {
            reason: CloseReason::Local
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_finishes_calls_and_refuses_new_ones() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let call = host.asking(ANSWER);
    let id = guest.asked().await;
    let start = Instant::now();
    let drain = tokio::spawn({
        let link = host.link.clone();
        async move { link.drain(Duration::from_secs(5)).await }
    });
    tokio::task::yield_now().await;
    let refused = host.ask("new").await;
    assert_eq!(refused, Err(CallError::Refused(Refused::Draining)));
    guest.does(move |m| m.answer(&id, Ok("done"))).await;
    assert_eq!(call.await.unwrap(), Ok("done".to_owned()));
    let report = drain.await.unwrap();
    assert_eq!((report.finished, report.aborted), (1, 0));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(host.task.await.unwrap(), CloseReason::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_drain_aborts_unfinished_calls_at_its_deadline() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let call = host.asking(Duration::from_secs(99));
    guest.event().await;
    let start = Instant::now();
    let report: DrainReport = host.link.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (0, 1));
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    assert!(matches!(call.await.unwrap(), Err(CallError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_every_frame_and_no_secret() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let observer = Arc::new(move |frame: &Frame<'_>| {
        let text = frame.text().unwrap_or_default().into_owned();
        log.lock()
            .unwrap()
            .push(format!("{:?} {text}", frame.direction()));
        assert_eq!((frame.generation(), frame.peer()), (1, None));
        assert_eq!(frame.method(), None);
        assert!(frame.connection() > 0);
    });
    let mut watched = config();
    watched.driver.observer = Some(observer);
    let (mut guest, host, _) = connected(watched, config()).await;
    host.does(|m| m.tell("the secret word")).await;
    guest.event().await;
    let seen = seen.lock().unwrap().join("\n");
    let expected =
        "Out {\"hello\":\"ann\"}\nIn {\"welcome\":\"ann\"}\nIn {\"tell\":\"the *** word\"}";
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_task_is_visible_to_all_watchers() {
    let (_guest, mut host, _) = connected(config(), config()).await;
    host.task.abort();
    assert_eq!(host.link.closed().await, CloseReason::TaskGone);
    assert_eq!(host.link.ready().await, Err(CloseReason::TaskGone));
    let state = LinkState::Closed {
        reason: CloseReason::TaskGone,
    };
    assert_eq!(host.link.state(), state);
    while host.events.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_command_ends_every_call() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let call = host.asking(ANSWER);
    guest.event().await;
    let panicking = host.link.command(|_, _| panic!("asked to")).await;
    assert_eq!(panicking, Err::<(), _>(Refused::Closed));
    assert!(host.task.await.unwrap_err().is_panic());
    let reason = CloseReason::TaskGone;
    let delivery = Delivery::Unknown;
    let expected = CallError::Closed { reason, delivery };
    assert_eq!(call.await.unwrap(), Err(expected));
    assert_eq!(host.link.ready().await, Err(CloseReason::TaskGone));
}
