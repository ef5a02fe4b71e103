//! Events over a link: lag policies, and that replies do not wait behind events.

use std::time::Duration;

use rpc_core::net::{LagPolicy, LinkConfig, LinkEvent, QueueConfig};
use rpc_core::{CallError, CloseReason, Delivery};

use crate::toy::ANSWER;
use crate::toy::guest::GuestEvent;
use crate::toy::host::Host;
use crate::toy::net::{connected, echo};

const LONG: Duration = Duration::from_secs(99);
const BLOCK: LagPolicy = LagPolicy::Block {
    deadline: Duration::from_secs(30),
};

fn events(items: usize, policy: LagPolicy) -> LinkConfig {
    let queue = QueueConfig {
        max_items: items,
        policy,
        ..QueueConfig::default()
    };
    LinkConfig {
        events: queue,
        ..LinkConfig::default()
    }
}

async fn tell(host: &crate::toy::net::HostLink, n: usize) {
    for n in 0..n {
        host.command(move |m, _| m.tell(&n.to_string()))
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn drop_oldest_keeps_the_newest_events_and_reports_the_loss() {
    let (mut guest, host, _) =
        connected(events(2, LagPolicy::DropOldest), LinkConfig::default()).await;
    tell(&host.link, 10).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let Some(LinkEvent::Lagged(lost)) = guest.events.try_next_link() else {
        panic!("no loss")
    };
    assert_eq!(lost, 8);
    let waiting: Vec<_> = std::iter::from_fn(|| guest.events.try_next_link()).collect();
    let [states @ .., eighth, ninth] = &waiting[..] else {
        panic!("{waiting:?}")
    };
    for (event, n) in [(eighth, "8"), (ninth, "9")] {
        let expected = LinkEvent::Event(GuestEvent::Told(n.to_owned()));
        assert_eq!(*event, expected);
    }
    // Changes of state are not lost to events.
    let is_state = |item: &_| matches!(item, LinkEvent::State(_));
    assert!(
        !states.is_empty() && states.iter().all(is_state),
        "{states:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn block_loses_nothing_with_a_slow_consumer() {
    let (mut guest, host, _) = connected(events(1, BLOCK), LinkConfig::default()).await;
    let teller = tokio::spawn(async move {
        tell(&host.link, 200).await;
        host
    });
    for n in 0..200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(guest.event().await, Some(GuestEvent::Told(n.to_string())));
    }
    teller.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn block_closes_at_its_deadline() {
    let (guest, host, _) = connected(events(1, BLOCK), LinkConfig::default()).await;
    tell(&host.link, 10).await;
    assert_eq!(guest.task.await.unwrap(), CloseReason::SlowConsumer);
    assert!(matches!(host.task.await.unwrap(), CloseReason::Peer(_)));
}

#[tokio::test(start_paused = true)]
async fn close_closes_at_the_first_event_without_room() {
    let (guest, host, _) = connected(events(4, LagPolicy::Close), LinkConfig::default()).await;
    let many = |m: &mut Host, _| (0..10).try_for_each(|n| m.tell(&n.to_string()));
    host.link.command(many).await.unwrap().unwrap();
    assert_eq!(guest.task.await.unwrap(), CloseReason::SlowConsumer);
}

#[tokio::test(start_paused = true)]
async fn replies_do_not_wait_behind_unread_events() {
    for policy in [LagPolicy::DropOldest, LagPolicy::Latest] {
        let (guest, host, _) = connected(LinkConfig::default(), events(1, policy)).await;
        tokio::spawn(echo(guest));
        for _ in 0..10 {
            assert_eq!(host.ask("hi").await, Ok("hi".to_owned()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_call_back_at_any_capacity() {
    let one = LinkConfig {
        max_commands: 1,
        ..events(1, LagPolicy::DropOldest)
    };
    let (guest, mut host, _) = connected(one.clone(), one).await;
    tokio::spawn(echo(guest));
    let link = host.link.clone();
    let handler = tokio::spawn(async move {
        // The event of the handshake is the handler's cue; it calls from inside.
        let cue = host.event().await;
        for _ in 0..5 {
            link.call_with("ask", |m, now| m.ask("from a handler", now))
                .await
                .unwrap();
        }
        cue.is_some()
    });
    assert!(handler.await.unwrap());
}

fn streams(policy: LagPolicy) -> LinkConfig {
    LinkConfig {
        streams: QueueConfig {
            max_items: 2,
            policy,
            ..QueueConfig::default()
        },
        ..LinkConfig::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_stream_ends_that_stream_and_not_the_connection() {
    for policy in [LagPolicy::Close, BLOCK] {
        let (mut guest, host, _) = connected(LinkConfig::default(), streams(policy)).await;
        let mut stream = host.stream(LONG).await;
        let id = guest.asked().await;
        guest
            .does(move |m| (0..9).try_for_each(|n| m.part(&id, &n.to_string())))
            .await;
        assert!(matches!(
            guest.event().await,
            Some(GuestEvent::Cancelled { .. })
        ));
        let reason = CloseReason::SlowConsumer;
        let delivery = Delivery::Delivered;
        assert_eq!(stream.next().await, Some("0".to_owned()));
        let end = stream.outcome().await;
        assert_eq!(
            end,
            Some(Err(CallError::Closed { reason, delivery })),
            "{policy:?}"
        );
        tokio::spawn(echo(guest));
        assert_eq!(host.ask("hi").await, Ok("hi".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_lost_items_ends_there() {
    let config = streams(LagPolicy::DropOldest);
    let (mut guest, host, _) = connected(LinkConfig::default(), config).await;
    let mut stream = host
        .link
        .stream("ask", |m, now| m.ask_within("?", LONG, now))
        .await;
    let id = guest.asked().await;
    guest
        .link
        .command(move |m, _| {
            (0..3).try_for_each(|n| m.part(&id, &n.to_string()))?;
            m.answer(&id, Ok("end"))
        })
        .await
        .unwrap()
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stream.next().await, None);
    assert_eq!(stream.next().await, None);
    let (reason, delivery) = (CloseReason::SlowConsumer, Delivery::Delivered);
    let closed = Some(Err(CallError::Closed { reason, delivery }));
    assert_eq!(stream.outcome().await, closed);
}

#[tokio::test(start_paused = true)]
async fn a_relaxed_stream_holds_up_nothing() {
    let (mut guest, host, _) = connected(LinkConfig::default(), streams(BLOCK)).await;
    let mut stream = host
        .link
        .stream("ask", |m, now| m.ask_within("?", LONG, now))
        .await;
    let id = guest.asked().await;
    stream.relax(Some(0));
    guest
        .link
        .command(move |m, _| (0..9).try_for_each(|n| m.part(&id, &n.to_string())))
        .await
        .unwrap()
        .unwrap();
    tokio::spawn(echo(guest));
    let start = tokio::time::Instant::now();
    let answer = host.link.call_with("ask", |m, now| m.ask("hi", now)).await;
    assert_eq!(answer, Ok("hi".to_owned()));
    assert_eq!(start.elapsed(), Duration::ZERO);
    for n in 0..9 {
        assert_eq!(stream.next().await, Some(n.to_string()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_under_block_loses_nothing() {
    let (mut guest, host, _) = connected(LinkConfig::default(), streams(BLOCK)).await;
    let mut stream = host.stream(LONG).await;
    guest.answer_in_parts().await;
    for n in 0..50 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(stream.next().await, Some(n.to_string()));
    }
    assert_eq!(stream.outcome().await, Some(Ok("end".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn events_before_a_reply_are_queued_before_the_call_resolves() {
    let (mut guest, host, _) = connected(LinkConfig::default(), LinkConfig::default()).await;
    let mut stream = host.stream(ANSWER).await;
    let id = guest.asked().await;
    guest
        .does(move |m| m.part(&id, "a").and_then(|()| m.answer(&id, Ok("end"))))
        .await;
    assert_eq!(stream.next().await, Some("a".to_owned()));
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_overflowing_stream_is_cancelled_at_the_peer() {
    let config = streams(LagPolicy::Close);
    let (mut guest, host, _) = connected(LinkConfig::default(), config).await;
    let stream = host.stream(LONG).await;
    let id = guest.asked().await;
    let asked = id.clone();
    guest
        .does(move |m| (0..3).try_for_each(|n| m.part(&id, &n.to_string())))
        .await;
    // Nothing else happens on this line until the call's own deadline.
    let cancelled = tokio::time::timeout(LONG / 2, guest.event()).await;
    assert_eq!(cancelled, Ok(Some(GuestEvent::Cancelled { id: asked })));
    drop(stream);
}

#[tokio::test(start_paused = true)]
async fn a_full_stream_delays_no_other_call_after_a_disconnect() {
    let (mut guest, host, cutter) = connected(LinkConfig::default(), streams(BLOCK)).await;
    let mut stream = host.stream(LONG).await;
    let id = guest.asked().await;
    let call = host.asking(LONG);
    guest.event().await;
    guest
        .does(move |m| (0..5).try_for_each(|n| m.part(&id, &n.to_string())))
        .await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    cutter.cut();
    let ended = tokio::time::timeout(Duration::from_secs(1), call).await;
    let reason = CloseReason::Lost;
    let delivery = Delivery::Unknown;
    let lost = CallError::Closed { reason, delivery };
    assert_eq!(ended.unwrap().unwrap(), Err(lost.clone()));
    assert_eq!(host.task.await.unwrap(), CloseReason::Lost);
    // What had arrived is still there.
    for n in 0..5 {
        assert_eq!(stream.next().await, Some(n.to_string()));
    }
    assert_eq!(stream.outcome().await, Some(Err(lost)));
}
