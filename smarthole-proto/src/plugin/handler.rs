//! [`Handler`]: handles the messages of a plugin.

use std::future::{Future, ready};
use std::time::Duration;

use rpc_core::CloseReason;
use rpc_core::net::LinkEvent;

use super::context::Context;
use super::error::AppError;
use crate::id::ClientId;
use crate::net::{Event, InboundMessage};

/// Handles the messages of a plugin: implement it as `async fn`. [`handler_fn`] makes one from a
/// closure.
///
/// Handlers run beside the reader, many at once, so they may take their time, but the router gives
/// up a message that gets no response within 30 s. If the handler sent no response, the plugin
/// does: it acknowledges the message after `Ok`, and rejects it after `Err`, with the error's text,
/// or a panic. A handler that still runs when the shutdown deadline passes is dropped at its next
/// `await`, and its message rejected.
///
/// ```
/// use smarthole_proto::net::InboundMessage;
/// use smarthole_proto::plugin::{Context, Handler, AppError};
///
/// struct Notes;
///
/// impl Handler for Notes {
///     async fn on_message(&self, _: &Context, message: &InboundMessage) -> Result<(), AppError> {
///         if message.text.is_empty() {
///             return Err(AppError::rejected("there is nothing to keep"));
///         }
///         println!("note: {}", message.text);
///         Ok(()) // acknowledges the message
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Handles a message. Messages whose time ran out before their handler started are skipped.
    ///
    /// # Errors
    /// Why the message is rejected.
    fn on_message(
        &self,
        cx: &Context,
        message: &InboundMessage,
    ) -> impl Future<Output = Result<(), AppError>> + Send;

    /// Called after each registration, also after a reconnect.
    fn on_ready(
        &self,
        _cx: &Context,
        _client_id: Option<&ClientId>,
    ) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Called when a handler failed or panicked, other than by [rejecting](AppError::Rejected) the
    /// message. Logs by default.
    fn on_error(&self, _cx: &Context, error: AppError) -> impl Future<Output = ()> + Send {
        tracing::warn!(%error, "a handler failed");
        ready(())
    }

    /// The connection was lost, or could not be made; another attempt follows in so long. `attempt`
    /// counts those since the last registration, from 1. Called on the plugin's own task: do not
    /// block. By default it is logged.
    fn on_lost(&self, cause: &CloseReason, retry_in: Duration, attempt: u32) {
        tracing::info!(%cause, ?retry_in, attempt, "the connection was lost");
    }

    /// Called for the events that are neither messages nor states, such as a
    /// [refusal](crate::client::ClientEvent::Refused) or a message that got no response in time.
    /// Runs on the plugin's own task: do not block. Logs by default.
    fn on_event(&self, event: &LinkEvent<Event>) {
        tracing::debug!(?event, "plugin");
    }
}

rpc_core::dynamic! {
    /// Any [`Handler`]: for a program that chooses one when it starts.
    pub struct DynHandler(any_handler): Handler {
        async fn on_message(&self, cx: &Context, message: &InboundMessage) -> Result<(), AppError>;
        async fn on_ready(&self, cx: &Context, client_id: Option<&ClientId>);
        async fn on_error(&self, cx: &Context, error: AppError);
        fn on_lost(&self, cause: &CloseReason, retry_in: Duration, attempt: u32);
        fn on_event(&self, event: &LinkEvent<Event>);
    }
}

/// A [`Handler`] that is a closure.
struct HandlerFn<F>(F);

/// Creates a handler from a closure that returns a future. The message may be moved anywhere: when
/// the future ends, a message without a response is acknowledged or rejected, depending on the
/// result.
///
/// ```
/// use smarthole_proto::plugin::{AppError, handler_fn};
///
/// let handler = handler_fn(|_, message| async move {
///     if message.text.contains("note") {
///         Ok(())
///     } else {
///         Err(AppError::rejected("I keep notes only"))
///     }
/// });
/// # drop(handler);
/// ```
pub fn handler_fn<F, W>(work: F) -> impl Handler
where
    F: Fn(Context, InboundMessage) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(), AppError>> + Send + 'static,
{
    HandlerFn(work)
}

impl<F, W> Handler for HandlerFn<F>
where
    F: Fn(Context, InboundMessage) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(), AppError>> + Send + 'static,
{
    async fn on_message(&self, cx: &Context, message: &InboundMessage) -> Result<(), AppError> {
        (self.0)(cx.clone(), message.responder()).await
    }
}
