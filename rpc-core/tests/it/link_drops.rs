//! Cancel safety: futures dropped at every await, and calls over random schedules of cuts.

use rpc_core::Machine as _;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use rpc_core::net::{LinkConfig, mem};
use switchboard_testing::sim;

use crate::toy::net::{End, GuestSide, HostSide, connected, echo};

/// Polls a future at most `polls` times and then drops it.
pub async fn poll_times<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_call_can_be_dropped_at_any_await() {
    let (guest, host, _) = connected(LinkConfig::default(), LinkConfig::default()).await;
    tokio::spawn(echo(guest));
    for polls in 0..12 {
        let call = host.ask("dropped");
        poll_times(call, polls).await;
        let stream = async {
            let mut stream = host
                .link
                .stream("ask", |m, now| m.ask("dropped", now))
                .await;
            stream.next().await;
            stream.outcome().await
        };
        poll_times(stream, polls).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(
            host.link.command(|m, _| m.in_flight()).await,
            Ok(0),
            "after {polls} polls"
        );
        assert_eq!(host.ask("hi").await, Ok("hi".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_events_is_cancel_safe() {
    let (mut guest, host, _) = connected(LinkConfig::default(), LinkConfig::default()).await;
    for n in 0..50 {
        poll_times(guest.event(), n % 3).await;
        host.does(move |m| m.tell(&n.to_string())).await;
        let reported = guest.event().await;
        let expected = crate::toy::guest::GuestEvent::Told(n.to_string());
        assert_eq!(reported, Some(expected));
    }
}

/// Counts how often each call resolves.
#[test]
fn every_call_of_a_link_ends_once_under_random_faults() {
    sim::run(60, |rng| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(one_schedule(rng))
    });
}

async fn one_schedule(rng: &mut sim::Rng) -> Result<(), String> {
    let ended = Arc::new(AtomicUsize::new(0));
    let mut started = 0;
    let mut kept = Vec::new();
    for _ in 0..3 {
        let (left, right) = mem::duplex(1 + usize::try_from(rng.below(8)).unwrap_or(0));
        let cutter = left.cutter();
        let config = LinkConfig::default();
        let guest = rpc_core::net::over(GuestSide::new("ann"), left, config.clone());
        let host = rpc_core::net::over(HostSide::default(), right, config);
        let guest = End::spawn(guest);
        let host = End::spawn(host);
        if rng.chance(50) {
            tokio::spawn(echo(guest));
        } else {
            kept.push(guest);
        }
        for _ in 0..rng.below(40) {
            match rng.below(10) {
                0..6 => {
                    started += 1;
                    let link = host.link.clone();
                    let ended = Arc::clone(&ended);
                    tokio::spawn(async move {
                        let _ = link.call_with("ask", |m, now| m.ask("?", now)).await;
                        ended.fetch_add(1, Ordering::SeqCst);
                    });
                }
                6 | 7 => {
                    let call = host.ask("dropped");
                    poll_times(call, usize::try_from(rng.below(6)).unwrap_or(0)).await;
                }
                8 => tokio::time::sleep(rng.duration(Duration::from_secs(8))).await,
                _ => tokio::task::yield_now().await,
            }
        }
        match rng.below(4) {
            0 => cutter.cut(),
            1 => host.link.close(),
            2 => host.task.abort(),
            _ => drop(host.link.drain(Duration::from_secs(1)).await),
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let ended = ended.load(Ordering::SeqCst);
        if ended != started {
            return Err(format!("{started} calls started, {ended} ended"));
        }
    }
    Ok(())
}
