//! A client that keeps so many calls in flight on one connection.

mod echo;
mod exoclaw;
mod fast;
mod jsonrpsee;
mod tcp;

use std::future::Future;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rpc_core::Limits;
use tokio::task::JoinSet;

use super::phase;

/// Our ends with limits that let very many calls be in flight.
pub(super) const WIDE: &str = "exoclaw, wide limits";

pub(super) fn wide_limits() -> Limits {
    const CALLS: usize = 1_000_000;
    Limits::default()
        .with_max_pending(CALLS)
        .with_max_outbox_frames(CALLS)
        .with_max_outbox_bytes(CALLS * 256)
}

/// From one task, as one program that waits for many answers.
pub(super) async fn load(kind: &str, address: &str, in_flight: usize, calls: usize) {
    match kind {
        "exoclaw" => exoclaw::load(address, Limits::default(), in_flight, calls).await,
        WIDE => exoclaw::load(address, wide_limits(), in_flight, calls).await,
        "jsonrpsee" => jsonrpsee::load(address, in_flight, calls).await,
        "TCP echo" => tcp::load(address, calls).await,
        fast if fast.starts_with("fastwebsockets") => {
            fast::load(kind, address, in_flight, calls).await;
        }
        _ => echo::load(kind, address, in_flight, calls).await,
    }
}

/// From as many tasks as there are calls in flight.
pub(super) async fn tasks(kind: &str, address: &str, in_flight: usize, calls: usize) {
    match kind {
        "exoclaw" => exoclaw::tasks(address, in_flight, calls).await,
        "jsonrpsee" => jsonrpsee::tasks(address, in_flight, calls).await,
        other => panic!("no client {other}"),
    }
}

/// Warms up, waits for the parent, makes the calls, tells the median time of those measured.
async fn measure<F: Future<Output = ()>>(in_flight: usize, calls: usize, call: impl Fn() -> F) {
    make(in_flight, calls / 4, &call).await;
    phase("ready").await;
    let mut times = make(in_flight, calls, &call).await;
    phase(&median(&mut times)).await;
}

async fn make<F: Future<Output = ()>>(
    in_flight: usize,
    calls: usize,
    call: &impl Fn() -> F,
) -> Vec<u64> {
    // The clock is read only where it is asked for: with one call at a time.
    if in_flight == 1 {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            call().await;
            times.push(start.elapsed().as_nanos() as u64);
        }
        return times;
    }
    let mut running: FuturesUnordered<F> = (0..in_flight).map(|_| call()).collect();
    let mut left = calls.saturating_sub(in_flight);
    while running.next().await.is_some() {
        if left > 0 {
            left -= 1;
            running.push(call());
        }
    }
    Vec::new()
}

/// [`measure`], from many tasks. Tells no median.
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
