//! A client that keeps so many calls in flight on one connection.

mod echo;
mod exoclaw;
mod jsonrpsee;

use std::future::Future;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::phase;

pub(crate) async fn load(kind: &str, address: &str, in_flight: usize, calls: usize) {
    match kind {
        "exoclaw" => exoclaw::load(address, in_flight, calls).await,
        "jsonrpsee" => jsonrpsee::load(address, in_flight, calls).await,
        _ => echo::load(kind, address, in_flight, calls).await,
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

fn median(times: &mut [u64]) -> String {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0).to_string()
}
