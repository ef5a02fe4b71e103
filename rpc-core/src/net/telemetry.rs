//! [`CallSpan`]: calls and connections as `tracing` spans and as metrics.
//!
//! Spans carry OpenTelemetry's names, so that an exporter needs no translation:
//!
//! | span, target `rpc`, level debug | fields |
//! |---|---|
//! | `connection` | `rpc.system`, `otel.kind` |
//! | `call` | `otel.name`, `otel.kind`, `rpc.system`, `rpc.method`, `otel.status_code`, `error.type` |
//!
//! A span of a call is entered while the handler runs, so what a handler logs belongs to its call.
//! Nothing of a call but its method is recorded: arguments and answers are private.
//!
//! With feature `metrics`, the crate [`metrics`](https://docs.rs/metrics) gets these, each with the
//! label `rpc_system`; install any recorder before the first connection, and [`describe`] them to it:
//!
//! | name | kind | further labels |
//! |---|---|---|
//! | `rpc_server_call_duration_seconds`, `rpc_client_call_duration_seconds` | histogram | `rpc_method`, `outcome` (`ok`, `error`, `cancelled`) |
//! | `rpc_server_active_calls`, `rpc_client_active_calls` | gauge | |
//! | `rpc_server_connections`, `rpc_client_connections` | gauge | |
//! | `rpc_received_bytes_total`, `rpc_sent_bytes_total`: payloads of frames | counter | `side` |
//! | `rpc_client_queued_events`: waiting for the application | gauge | |
//! | `rpc_client_lost_events_total`: dropped because the application was too slow | counter | |
//!
//! Calls are timed where a recorder has their gauge. A method that the crate does not know is
//! `_OTHER`, so a peer cannot make up labels.

mod meter;

use std::future::Future;
use std::pin::Pin;

use tracing::level_filters::LevelFilter;
use tracing::{Instrument, Span};

#[cfg(feature = "metrics")]
pub use meter::describe;
pub(crate) use meter::{ConnectionMeter, Queue};

/// The method of a call that the crate does not know.
pub const OTHER: &str = "_OTHER";

/// The side of a call or connection. Exhaustive: there is no third one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// This program asks.
    Client,
    /// This program answers.
    Server,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// How a call has ended, for spans and metrics. Exhaustive: labels are few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    /// It did what it should.
    Ok,
    /// It failed, was refused, lost or took too long.
    Error,
    /// Its caller dropped it.
    Cancelled,
}

impl CallOutcome {
    /// Returns the outcome of a call that was not dropped.
    #[must_use]
    pub const fn of(is_ok: bool) -> Self {
        if is_ok { Self::Ok } else { Self::Error }
    }
}

/// The span and the metrics of one call. Dropped before its [`end`](Self::end), the call counts as
/// cancelled. Holds nothing where nobody listens, and once the call has ended.
#[derive(Debug)]
pub struct CallSpan(Option<(Span, meter::Call)>);

impl CallSpan {
    /// Starts a call. `system` names the protocol, such as `snek`.
    #[must_use]
    pub fn new(side: Side, system: &'static str, method: &'static str) -> Self {
        if cfg!(not(feature = "metrics")) && LevelFilter::current() < LevelFilter::DEBUG {
            return Self(None);
        }
        let span = tracing::debug_span!(
            target: "rpc",
            "call",
            otel.name = format_args!("{system}/{method}"),
            otel.kind = side.name(),
            rpc.system = system,
            rpc.method = method,
            otel.status_code = tracing::field::Empty,
            error.r#type = tracing::field::Empty,
        );
        let meter = meter::Call::new(side, system, method);
        Self((meter.is_counted() || !span.is_disabled()).then_some((span, meter)))
    }

    /// Returns whether anybody listens: the span is enabled, or a recorder of `metrics` counts the call.
    #[must_use]
    pub const fn is_watched(&self) -> bool {
        self.0.is_some()
    }

    /// Ends the call. The first end counts.
    #[inline]
    pub fn end(&mut self, outcome: CallOutcome) {
        if let Some((span, meter)) = self.0.take() {
            let (code, outcome) = match outcome {
                CallOutcome::Ok => ("OK", "ok"),
                CallOutcome::Error => ("ERROR", "error"),
                CallOutcome::Cancelled => ("ERROR", "cancelled"),
            };
            span.record("otel.status_code", code);
            if code != "OK" {
                span.record("error.type", outcome);
            }
            meter.end(outcome);
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        self.end(CallOutcome::Cancelled);
    }
}

/// Runs `call` as a call of a server's peer: inside its span, and counted. `is_ok` says whether its
/// result is a success. It is pinned where it is, so that it is not moved once more.
///
/// # Cancel safety
/// As for `call`; the call counts as cancelled.
pub async fn server_call<T>(
    system: &'static str,
    method: &'static str,
    call: Pin<&mut impl Future<Output = T>>,
    is_ok: impl FnOnce(&T) -> bool,
) -> T {
    let mut watched = CallSpan::new(Side::Server, system, method);
    let result = match &watched.0 {
        None => call.await,
        Some((span, _)) => call.instrument(span.clone()).await,
    };
    watched.end(CallOutcome::of(is_ok(&result)));
    result
}

pub(crate) fn connection_span(side: Side, system: &'static str) -> Span {
    tracing::debug_span!(
        target: "rpc",
        "connection",
        otel.kind = side.name(),
        rpc.system = system
    )
}
