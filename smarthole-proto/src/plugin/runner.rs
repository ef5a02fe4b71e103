//! [`Plugin`]: registers, passes messages to a [`Handler`], reconnects, and ends gracefully.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rpc_core::net::{
    Cancellation, Canceller, Dialer, Dispatch, DrainReport, EventDispatcher, LinkEvent, LinkState,
};
use rpc_core::{CloseReason, Str};

use super::config::PluginConfig;
use super::context::{Context, Shared};
use super::error::AppError;
use super::handler::Handler;
use crate::error::RegistrationError;
use crate::frame::Answer;
use crate::id::ClientId;
use crate::net::{Client, Connection, Event, Events, InboundMessage, connect_with};

/// The reason of the rejection of a message that arrives during a shutdown.
const SHUTTING_DOWN: &str = "The client is shutting down";

/// How long the last responses may take to reach the connection.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// A plugin that is ready to run.
///
/// ```
/// use smarthole_proto::net::InboundMessage;
/// use smarthole_proto::plugin::{Context, Handler, Plugin, PluginConfig, AppError};
/// use smarthole_proto::frame::{Notification, Registration};
///
/// struct Notes;
///
/// impl Handler for Notes {
///     async fn on_message(&self, _: &Context, message: &InboundMessage) -> Result<(), AppError> {
///         // Keep message.text somewhere.
///         message.notify(Notification::new("noted")).await?;
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use smarthole_proto::{hub::Input, net::Server, router::Keywords};
/// # let server = Server::bind("127.0.0.1:0", Keywords::new(), Default::default()).await?;
/// # let (url, runtime, handle) = (server.url(), server.runtime(), server.handle());
/// # tokio::spawn(server.run());
/// # let asking = tokio::spawn(async move {
/// #     runtime.registered("notes").await;
/// #     runtime.ask(Input::text("notes: milk")).await
/// # });
/// let registration = Registration::new("notes", "I keep notes and to-do lists.");
/// let plugin = Plugin::new(&url, PluginConfig::new(registration)?, Notes)?; // ws://127.0.0.1:9473
/// # let ctrl_c = async move {
/// #     assert!(asking.await.unwrap().unwrap().is_taken());
/// # };
/// let ended = plugin.run_until(ctrl_c).await; // or run()
/// std::process::exit(ended.exit_code().into());
/// # }
/// ```
pub struct Plugin<H> {
    handler: Arc<H>,
    shared: Arc<Shared>,
    events: Events,
    connection: Connection,
    canceller: Canceller,
}

/// How a plugin ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It was stopped.
    Stopped(DrainReport),
    /// The registration was refused permanently, or at every attempt.
    Refused(RegistrationError),
    /// The router could not be reached at any of the attempts.
    GaveUp(CloseReason),
}

impl Ended {
    /// Returns the exit code of a program: 0 if the plugin was stopped, otherwise 1.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Stopped(_) => 0,
            Self::Refused(_) | Self::GaveUp(_) => 1,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(_) => f.write_str("stopped"),
            Self::Refused(error) => write!(f, "the registration was refused: {error}"),
            Self::GaveUp(reason) => write!(f, "gave up: {reason}"),
        }
    }
}

impl<H: Handler> Plugin<H> {
    /// Creates a plugin for the router at `url` (`ws://`, or `wss://` with feature `tls`).
    ///
    /// # Errors
    /// [`ConnectError`](crate::net::ConnectError): the URL cannot be dialled.
    #[cfg(feature = "ws")]
    pub fn new(
        url: &str,
        config: PluginConfig,
        handler: H,
    ) -> Result<Self, crate::net::ConnectError> {
        let dialer = crate::net::dialer(url, &config.client)?;
        Ok(Self::with_dialer(dialer, config, handler))
    }

    /// Creates a plugin that connects through this dialer.
    #[must_use]
    pub fn with_dialer(dialer: impl Dialer, config: PluginConfig, handler: H) -> Self {
        let (client, events, connection) = connect_with(dialer, config.client.clone());
        let (canceller, cancellation) = Cancellation::new();
        let shared = Arc::new(Shared {
            client,
            config,
            cancellation,
        });
        Self {
            handler: Arc::new(handler),
            shared,
            events,
            connection,
            canceller,
        }
    }

    /// Returns the client, for use outside of handlers. [`close`](rpc_core::net::Link::close) ends
    /// the plugin.
    #[must_use]
    pub fn client(&self) -> Client {
        self.shared.client.clone()
    }

    /// Runs until the client is closed, refused permanently, or gives up.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connection and all handlers.
    pub async fn run(self) -> Ended {
        self.run_until(std::future::pending()).await
    }

    /// Runs until `shutdown` resolves; then rejects new messages, lets handlers finish within the
    /// [shutdown timeout](PluginConfig::shutdown_timeout), and closes.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connection and all handlers.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Ended {
        let Self {
            handler,
            shared,
            mut events,
            connection,
            canceller,
        } = self;
        let client = shared.client.clone();
        let mut runner = Runner {
            handler,
            dispatcher: EventDispatcher::new(shared.config.max_handlers),
            shared,
            refused: None,
            attempts: 0,
        };
        let work = async {
            runner.work(&mut events, shutdown).await;
            canceller.cancel();
            let report = runner.finish(&mut events).await;
            drop(events);
            // A close overtakes commands, and the last responses are on their way.
            let last = client.command(|_, _| ());
            let _ = rpc_core::net::time::timeout(LAST_RESPONSES, last).await;
            client.close();
            report
        };
        let (reason, report) = tokio::join!(connection.run(), work);
        runner.ended(reason, report)
    }
}

struct Runner<H> {
    handler: Arc<H>,
    shared: Arc<Shared>,
    dispatcher: EventDispatcher,
    /// The last refusal, until a registration succeeds.
    refused: Option<RegistrationError>,
    /// The attempts to connect since the last registration, except the very first.
    attempts: u32,
}

impl<H: Handler> Runner<H> {
    async fn work(&mut self, events: &mut Events, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        let client = self.shared.client.clone();
        let mut closed = std::pin::pin!(client.closed());
        loop {
            let next = tokio::select! {
                // What there is to know comes before the end that it explains.
                biased;
                () = &mut shutdown => return,
                next = self.dispatcher.next(events) => next,
                _ = &mut closed => return,
            };
            match next {
                Dispatch::Event(event) => self.take(event),
                Dispatch::Panicked => tracing::error!("a handler panicked"),
                _ => return,
            }
        }
    }

    /// Lets handlers finish until the deadline, and rejects new messages meanwhile.
    async fn finish(&mut self, events: &mut Events) -> DrainReport {
        let timeout = self.shared.config.shutdown_timeout;
        let mut draining = std::pin::pin!(self.dispatcher.drain(timeout));
        let report = loop {
            tokio::select! {
                report = &mut draining => break report,
                Some(event) = events.next_link() => turn_away(event),
            }
        };
        while let Some(event) = events.try_next_link() {
            turn_away(event);
        }
        report
    }

    fn ended(self, reason: CloseReason, report: DrainReport) -> Ended {
        match (reason, self.refused) {
            (CloseReason::Local | CloseReason::Drained, _) => Ended::Stopped(report),
            (CloseReason::Refused { .. }, Some(error)) => Ended::Refused(error),
            (reason, _) => Ended::GaveUp(reason),
        }
    }

    fn take(&mut self, event: LinkEvent<Event>) {
        match event {
            LinkEvent::Event(Event::Message(message)) => self.message(message),
            LinkEvent::Event(Event::Registered { client_id, .. }) => self.ready(client_id),
            LinkEvent::State(LinkState::Connecting { attempt }) => self.attempts = attempt,
            LinkEvent::State(LinkState::Ready { .. }) => self.attempts = 0,
            LinkEvent::State(LinkState::Lost {
                cause, retry_in, ..
            }) => {
                let attempt = self.attempts.saturating_add(1);
                self.handler.on_lost(&cause, retry_in, attempt);
            }
            LinkEvent::State(_) => {}
            other => {
                if let LinkEvent::Event(Event::Refused(error)) = &other {
                    self.refused = Some(error.clone());
                }
                self.handler.on_event(&other);
            }
        }
    }

    fn ready(&mut self, client_id: Option<ClientId>) {
        self.refused = None;
        let handler = Arc::clone(&self.handler);
        let cx = Context::new(Arc::clone(&self.shared));
        self.dispatcher.spawn(async move {
            handler.on_ready(&cx, client_id.as_ref()).await;
        });
    }

    fn message(&mut self, message: InboundMessage) {
        // The router has given it to someone else by now: done here too, it would be done twice.
        if !message.time_left().is_zero() {
            let cx = Context::new(Arc::clone(&self.shared));
            self.dispatcher
                .spawn(handle(Arc::clone(&self.handler), cx, message));
        }
    }
}

/// Passes a message to the handler, and answers it if the handler does not.
async fn handle(handler: Arc<impl Handler>, cx: Context, message: InboundMessage) {
    // What a panic leaves behind is the handler's own.
    let work = AssertUnwindSafe(handler.on_message(&cx, &message));
    let done = work.catch_unwind().await;
    let Err(error) = done.unwrap_or(Err(AppError::Panicked)) else {
        return message.answer_later(Answer::Ack);
    };
    message.answer_later(reject(error.reason()));
    if !matches!(error, AppError::Rejected(_)) {
        handler.on_error(&cx, error).await;
    }
}

/// Rejects an event that arrives during a shutdown, if it is a message.
fn turn_away(event: LinkEvent<Event>) {
    if let LinkEvent::Event(Event::Message(message)) = event {
        message.answer_later(reject(Str::from_static(SHUTTING_DOWN)));
    }
}

fn reject(reason: Str) -> Answer {
    Answer::reject(Some(reason))
}

rpc_core::debug_fields!([H] Plugin<H>, this => {
    name: this.shared.config.client.registration.name,
    state: this.shared.client.state(),
});
