//! A client that keeps so many calls in flight on one connection.

mod acolyte;
mod connectonion;
mod exoclaw;
mod jsonrpsee;
mod smarthole;
mod snek;

use std::future::Future;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::kind::Kind;
use super::{phase, plain};

/// How many calls are made, and how many at a time.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) in_flight: usize,
    pub(super) calls: usize,
    /// Whether a parent measures: it learns when to look.
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
        _ => plain::load(kind, address, pace).await,
    }
}

impl Pace {
    /// Makes the calls, each of which gets its place among those in flight. Led, it warms up
    /// first, and waits for the parent.
    async fn measure<F: Future<Output = ()>>(self, call: impl Fn(usize) -> F) {
        if self.is_led {
            self.make(self.calls / 4, &call).await;
            phase().await;
        }
        self.make(self.calls, &call).await;
        if self.is_led {
            phase().await;
        }
    }

    async fn make<F: Future<Output = ()>>(self, calls: usize, call: &impl Fn(usize) -> F) {
        let caller = |place: usize| async move {
            for _ in (place..calls).step_by(self.in_flight) {
                call(place).await;
            }
        };
        let mut callers: FuturesUnordered<_> = (0..self.in_flight).map(caller).collect();
        while callers.next().await.is_some() {}
    }
}
