//! A client that keeps so many calls in flight on one connection.

mod acolyte;
pub(super) mod connectonion;
mod echo;
mod exoclaw;
mod fast;
mod jsonrpsee;
mod smarthole;
mod snek;
mod tcp;

use std::future::Future;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rpc_core::Limits;
use tokio::task::JoinSet;

use super::kind::Kind;
use super::phase;

pub(super) fn wide_limits() -> Limits {
    const CALLS: usize = 1_000_000;
    Limits {
        max_pending: CALLS,
        max_outbox_frames: CALLS,
        max_outbox_bytes: CALLS * 256,
        ..Limits::default()
    }
}

/// How many calls are made, and how many at a time.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) in_flight: usize,
    pub(super) calls: usize,
    /// Whether a parent measures: it is told when to look.
    pub(super) is_led: bool,
}

/// From one task, as one program that waits for many answers.
pub(super) async fn load(kind: Kind<'_>, address: &str, pace: Pace) {
    match kind.end {
        "exoclaw" => exoclaw::load(kind, address, pace).await,
        "snek" => snek::load(kind, address, pace).await,
        "smarthole" => smarthole::load(address, pace).await,
        "connectonion" => connectonion::load(address, pace).await,
        "acolyte" => acolyte::load(address, pace).await,
        "jsonrpsee" => jsonrpsee::load(kind, address, pace).await,
        "TCP echo" => tcp::load(address, pace.calls).await,
        fast if fast.starts_with("fastwebsockets") => fast::load(kind, address, pace).await,
        _ => echo::load(kind, address, pace).await,
    }
}

/// From as many tasks as there are calls in flight.
pub(super) async fn tasks(kind: Kind<'_>, address: &str, in_flight: usize, calls: usize) {
    match kind.end {
        "exoclaw" => exoclaw::tasks(kind, address, in_flight, calls).await,
        "jsonrpsee" => jsonrpsee::tasks(address, in_flight, calls).await,
        other => panic!("no client {other}"),
    }
}

impl Pace {
    /// Makes the calls, each of which is told its place among those in flight. Led, it warms up
    /// first, waits for the parent, and tells the median time in the end.
    pub(super) async fn measure<F: Future<Output = ()>>(self, call: impl Fn(usize) -> F) {
        if !self.is_led {
            make(self.in_flight, self.calls, &call).await;
            return;
        }
        make(self.in_flight, self.calls / 4, &call).await;
        phase("ready").await;
        let mut times = make(self.in_flight, self.calls, &call).await;
        phase(&median(&mut times)).await;
    }
}

async fn make<F: Future<Output = ()>>(
    in_flight: usize,
    calls: usize,
    call: &impl Fn(usize) -> F,
) -> Vec<u64> {
    // The clock is read only where it is asked for: with one call at a time.
    if in_flight == 1 {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            call(0).await;
            times.push(start.elapsed().as_nanos() as u64);
        }
        return times;
    }
    let caller = |place: usize| async move {
        for _ in (place..calls).step_by(in_flight) {
            call(place).await;
        }
    };
    let mut callers: FuturesUnordered<_> = (0..in_flight).map(caller).collect();
    while callers.next().await.is_some() {}
    Vec::new()
}

/// [`Pace::measure`], from many tasks. Tells no median.
async fn spread<C, F>(in_flight: usize, calls: usize, call: C)
where
    C: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send,
{
    for (count, done) in [(calls / 4, "ready"), (calls, "0")] {
        let mut tasks = JoinSet::new();
        for _ in 0..in_flight {
            let call = call.clone();
            tasks.spawn(async move {
                for _ in 0..count / in_flight {
                    call().await;
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        phase(done).await;
    }
}

fn median(times: &mut [u64]) -> String {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0).to_string()
}
