//! What is counted with feature `metrics`. Without it every type here is empty and does nothing.

#![cfg_attr(
    not(feature = "metrics"),
    allow(
        unused_variables,
        clippy::unused_self,
        clippy::missing_const_for_fn,
        clippy::needless_pass_by_ref_mut,
        reason = "the bodies are empty"
    )
)]

#[cfg(feature = "metrics")]
use std::{cell::RefCell, ptr, thread::LocalKey};

#[cfg(feature = "metrics")]
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

use super::Side;

/// Describes each metric of these crates, with its unit, to the recorder that is installed.
#[cfg(feature = "metrics")]
pub fn describe() {
    type Text = &'static str;
    let seconds = |name: Text, what: Text| describe_histogram!(name, Unit::Seconds, what);
    let now = |name: Text, what: Text| describe_gauge!(name, Unit::Count, what);
    let bytes = |name: Text, what: Text| describe_counter!(name, Unit::Bytes, what);
    let ever = |name: Text, what: Text| describe_counter!(name, Unit::Count, what);
    seconds("rpc_server_call_duration_seconds", "Time of peers' calls");
    seconds("rpc_client_call_duration_seconds", "Time of own calls");
    now("rpc_server_active_calls", "Open calls of peers");
    now("rpc_client_active_calls", "Own calls without an answer");
    now("rpc_server_connections", "Open connections of peers");
    now("rpc_client_connections", "Own open connections");
    now("rpc_client_queued_events", "Events nobody has read yet");
    bytes("rpc_received_bytes_total", "Payloads of received frames");
    bytes("rpc_sent_bytes_total", "Payloads of sent frames");
    ever(
        "rpc_client_lost_events_total",
        "Events lost by slow readers",
    );
}

#[derive(Debug)]
pub(super) struct Call {
    /// `None` if nobody counts it.
    #[cfg(feature = "metrics")]
    running: Option<(Side, &'static str, &'static str, crate::Instant)>,
}

/// One, which notes that somebody counts it: a gauge without a recorder does not ask for the number.
#[cfg(feature = "metrics")]
struct Counted<'c>(&'c mut bool);

#[cfg(feature = "metrics")]
impl metrics::IntoF64 for Counted<'_> {
    fn into_f64(self) -> f64 {
        *self.0 = true;
        1.0
    }
}

impl Call {
    pub(super) fn new(side: Side, system: &'static str, method: &'static str) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            running: {
                let mut is_counted = false;
                active_calls(side, system).increment(Counted(&mut is_counted));
                is_counted.then(|| (side, system, method, crate::net::time::now()))
            },
        }
    }

    pub(super) const fn is_counted(&self) -> bool {
        #[cfg(feature = "metrics")]
        return self.running.is_some();
        #[cfg(not(feature = "metrics"))]
        false
    }

    pub(super) fn end(&self, outcome: &'static str) {
        #[cfg(feature = "metrics")]
        if let Some((side, system, method, start)) = self.running {
            active_calls(side, system).decrement(1);
            let name = match side {
                Side::Client => "rpc_client_call_duration_seconds",
                Side::Server => "rpc_server_call_duration_seconds",
            };
            let labels = [
                ("rpc_system", system),
                ("rpc_method", method),
                ("outcome", outcome),
            ];
            let took = crate::net::time::now().saturating_duration_since(start);
            let histogram = cached(&TOOK, side, [system, method, outcome], || {
                histogram!(name, &labels)
            });
            histogram.record(took.as_secs_f64());
        }
    }
}

#[cfg(feature = "metrics")]
fn active_calls(side: Side, system: &'static str) -> Gauge {
    cached(&ACTIVE, side, [system, "", ""], || match side {
        Side::Client => gauge!("rpc_client_active_calls", "rpc_system" => system),
        Side::Server => gauge!("rpc_server_active_calls", "rpc_system" => system),
    })
}

/// Meters of calls, by the address of their recorder and by what they are for: constants, so that their
/// addresses are compared.
#[cfg(feature = "metrics")]
type Cache<M> = RefCell<Vec<((usize, Side, [*const str; 3]), M)>>;

#[cfg(feature = "metrics")]
thread_local! {
    static ACTIVE: Cache<Gauge> = RefCell::default();
    static TOOK: Cache<Histogram> = RefCell::default();
}

/// Returns a meter that is registered once in a thread, because that takes as long as a third of a call. A new
/// connection begins anew, in case there is another recorder at the same address.
#[cfg(feature = "metrics")]
fn cached<M: Clone>(
    cache: &'static LocalKey<Cache<M>>,
    side: Side,
    of: [&'static str; 3],
    register: impl Fn() -> M,
) -> M {
    let recorder = metrics::with_recorder(|recorder| ptr::from_ref(recorder).addr());
    let key = (recorder, side, of.map(ptr::from_ref));
    let meter = cache.try_with(|cache| {
        let mut cache = cache.borrow_mut();
        if let Some((_, meter)) = cache.iter().find(|(known, _)| *known == key) {
            return meter.clone();
        }
        let meter = register();
        cache.push((key, meter.clone()));
        meter
    });
    // A thread that ends has no cache.
    meter.unwrap_or_else(|_| register())
}

/// Counts nothing by default.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMeter {
    #[cfg(feature = "metrics")]
    meters: Option<(Gauge, Counter, Counter)>,
}

impl ConnectionMeter {
    pub(crate) fn new(side: Side, system: &'static str) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            meters: Some({
                ACTIVE.take();
                TOOK.take();
                let open = match side {
                    Side::Client => gauge!("rpc_client_connections", "rpc_system" => system),
                    Side::Server => gauge!("rpc_server_connections", "rpc_system" => system),
                };
                open.increment(1);
                let labels = [("rpc_system", system), ("side", side.name())];
                let received = counter!("rpc_received_bytes_total", &labels);
                (open, received, counter!("rpc_sent_bytes_total", &labels))
            }),
        }
    }

    pub(crate) fn received(&self, bytes: usize) {
        #[cfg(feature = "metrics")]
        if let Some((_, received, _)) = &self.meters {
            received.increment(bytes as u64);
        }
    }

    pub(crate) fn sent(&self, bytes: usize) {
        #[cfg(feature = "metrics")]
        if let Some((_, _, sent)) = &self.meters {
            sent.increment(bytes as u64);
        }
    }
}

#[cfg(feature = "metrics")]
impl Drop for ConnectionMeter {
    fn drop(&mut self) {
        if let Some((open, ..)) = &self.meters {
            open.decrement(1);
        }
    }
}

/// One queue of events to the application. Counts nothing by default.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    #[cfg(feature = "metrics")]
    meters: Option<(Gauge, Counter)>,
}

impl Queue {
    pub(crate) fn new(system: &'static str) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            meters: Some((
                gauge!("rpc_client_queued_events", "rpc_system" => system),
                counter!("rpc_client_lost_events_total", "rpc_system" => system),
            )),
        }
    }

    pub(crate) fn pushed(&self) {
        #[cfg(feature = "metrics")]
        if let Some((queued, _)) = &self.meters {
            queued.increment(1);
        }
    }

    pub(crate) fn taken(&self, items: usize) {
        #[cfg(feature = "metrics")]
        if let Some((queued, _)) = &self.meters {
            // Fewer than a float counts exactly.
            queued.decrement(u32::try_from(items).unwrap_or(u32::MAX));
        }
    }

    pub(crate) fn lost(&self, items: u64) {
        #[cfg(feature = "metrics")]
        if let Some((_, lost)) = &self.meters {
            lost.increment(items);
        }
    }
}
