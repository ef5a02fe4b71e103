//! [`RouterRuntime`]: a hub that many tasks share.

mod handler;
mod routes;
mod state;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::{
    Consumer, DriverConfig, Handle, LagPolicy, QueueConfig, SharedHub, Transport, clock, entropy,
    queue,
};
use rpc_core::{CloseFrame, CloseReason, Str};
use tokio::sync::oneshot;

use crate::frame::{Registration, Response};
use crate::hub::{
    ConnId, Hub, HubConfig, HubError, HubEvent, Input, Outcome, RegisteredClient, Settlement,
    Unroutable,
};
use crate::id::MessageId;
use crate::router::Router;
use crate::server::{ServerConfig, ServerConn};
use handler::Handler;
use state::{Ask, State};

pub use routes::RouterOptions;

/// What happens at a [`RouterRuntime`], in order and bounded; what was dropped because it was not taken as
/// fast as it came is [counted](rpc_core::net::Queued::Lagged).
pub type HubEvents = Consumer<HubEvent>;

/// What became of a message that was [asked](RouterRuntime::ask) about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// The message.
    pub message: MessageId,
    /// Everybody who got it, in the order of delivery. If one of them took it, it is taken.
    pub outcomes: Vec<Settlement>,
    /// Why nobody was asked any more, if nobody took it.
    pub unroutable: Option<Unroutable>,
}

impl Settled {
    /// Whether somebody took the message.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.outcomes.iter().any(|one| one.outcome.is_taken())
    }
}

/// Why there is nothing to say about a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// It was not taken, and nobody got it.
    #[error(transparent)]
    Refused(#[from] HubError),
    /// The runtime has ended before the message was settled; clients may have got it. Retrying may
    /// deliver it twice.
    #[error("the server has ended before message {message} was settled")]
    Ended {
        /// The message.
        message: MessageId,
    },
}

/// A delivery that has ended and is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryItem {
    /// The message.
    pub message: MessageId,
    /// What the user said, whole.
    pub text: Str,
    /// The client that got it.
    pub client: Str,
    /// What became of it, with what the client said later.
    pub outcome: Outcome,
    /// Whether its time was over before it said anything.
    pub late: bool,
}

/// A [`Hub`] that many tasks share: the way in for what users say, and the way to watch what becomes
/// of it. Cheap to clone; all clones are the same runtime.
///
/// It needs one task that [runs](Self::run) it, and one for each connection that it
/// [serves](Self::serve). `Server` does both for WebSockets.
///
/// ```
/// use std::sync::Arc;
/// use rpc_core::net::mem;
/// use smarthole_proto::hub::{HubConfig, Input};
/// use smarthole_proto::net::{RouterOptions, RouterRuntime};
/// use smarthole_proto::router::Keywords;
/// use smarthole_proto::server::ServerConfig;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let runtime = RouterRuntime::new(HubConfig::default());
/// let (client, server) = mem::duplex(64);
/// tokio::spawn(runtime.serve(server, ServerConfig::default(), rpc_core::net::DriverConfig::default()));
/// let running = runtime.clone();
/// tokio::spawn(async move { running.run(Arc::new(Keywords::new()), RouterOptions::default()).await });
/// // Nobody has registered yet.
/// assert!(runtime.submit(Input::text("buy milk")).is_err());
/// # drop(client);
/// # }
/// ```
#[derive(Clone)]
pub struct RouterRuntime {
    shared: SharedHub<State>,
}

/// A runtime with the default configuration.
impl Default for RouterRuntime {
    fn default() -> Self {
        Self::new(HubConfig::default())
    }
}

impl RouterRuntime {
    /// A runtime without clients.
    #[must_use]
    pub fn new(config: HubConfig) -> Self {
        let seed = u128::from(entropy()) << 64 | u128::from(entropy());
        Self {
            shared: SharedHub::new(State::new(Hub::new(config, seed, clock()))),
        }
    }

    /// Takes what a user said, and returns the id under which it is [told](Self::events) what
    /// becomes of it.
    ///
    /// # Errors
    /// [`HubError`]; nobody has got anything then.
    pub fn submit(&self, input: Input) -> Result<MessageId, HubError> {
        let submitted = self.shared.with_open(|state, now| state.submit(input, now));
        submitted.unwrap_or(Err(HubError::Closed))
    }

    /// Takes what a user said, and waits until nothing about it is open any more.
    ///
    /// # Errors
    /// [`AskError`].
    ///
    /// # Cancel safety
    /// Nothing happens before the first poll. Dropped after it, the future gives up the answer; the
    /// message goes its way.
    pub async fn ask(&self, input: Input) -> Result<Settled, AskError> {
        let (sender, settled) = oneshot::channel();
        let submitted = self.shared.with_open(|state, now| {
            let message = state.submit(input, now)?;
            state.asks.insert(message.clone(), Ask::new(sender));
            Ok(message)
        });
        let message = submitted.unwrap_or(Err(HubError::Closed))?;
        settled.await.map_err(|_| AskError::Ended { message })
    }

    /// Everything that happens from now on. Any number of listeners may listen, each with a queue of
    /// its own: 1,024 events and 16 MiB, of which the oldest are dropped when it is full.
    #[must_use]
    pub fn events(&self) -> HubEvents {
        self.events_with(QueueConfig::default())
    }

    /// As [`events`](Self::events), with a queue like this. Nobody waits for a listener, so
    /// [`LagPolicy::Block`] is as [`LagPolicy::DropOldest`]; [`LagPolicy::Close`] ends the queue.
    #[must_use]
    pub fn events_with(&self, mut config: QueueConfig) -> HubEvents {
        if matches!(config.policy, LagPolicy::Block { .. }) {
            config.policy = LagPolicy::DropOldest;
        }
        let (producer, consumer) = queue(config);
        self.shared.peek(|state| state.listen(producer));
        consumer
    }

    /// The registered clients, in the order of registration.
    #[must_use]
    pub fn clients(&self) -> Vec<RegisteredClient> {
        self.read(|hub| hub.clients().cloned().collect())
    }

    /// The deliveries that ended last, in the order in which they ended, newest last.
    #[must_use]
    pub fn history(&self) -> Vec<HistoryItem> {
        self.read(|hub| {
            let items = hub.history().map(|entry| HistoryItem {
                message: entry.message.clone(),
                text: entry.text.clone(),
                client: entry.client.into(),
                outcome: entry.outcome.clone(),
                late: entry.late,
            });
            items.collect()
        })
    }

    /// How many messages something is open about: a client has time left, or the router is asked.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.read(Hub::open_messages)
    }

    /// Looks at the hub. Everything else waits meanwhile, so be quick.
    pub fn read<T>(&self, look: impl FnOnce(&Hub) -> T) -> T {
        self.shared.peek(|state| look(&state.hub))
    }

    /// Asks the router, and keeps the time of responses. Runs until it is dropped. A runtime is run
    /// once: dropping the future ends it, and with it every [`ask`](Self::ask) and all
    /// [`events`](Self::events).
    ///
    /// # Cancel safety
    /// Dropping the future ends the runtime; what the router is asked is given up.
    pub async fn run<R: Router>(&self, router: Arc<R>, options: RouterOptions) -> Infallible {
        routes::run(self.clone(), router, options).await
    }

    /// Serves one connection to its end. The limits of `config` on the size of messages should be no
    /// smaller than those of the hub.
    ///
    /// # Cancel safety
    /// Dropping the future cuts the line; the client leaves.
    pub fn serve<T, C>(
        &self,
        transport: T,
        config: C,
        driver: DriverConfig,
    ) -> impl Future<Output = CloseReason> + Send + use<T, C>
    where
        T: Transport,
        C: Into<Arc<ServerConfig>>,
    {
        let (handle, handler) = self.connection(config.into());
        rpc_core::net::serve(handle, transport, handler, driver, std::future::pending())
    }

    /// The machine of a new connection, and what gives its events to the hub.
    pub(super) fn connection(&self, config: Arc<ServerConfig>) -> (Handle<ServerConn>, Handler) {
        let handle = Handle::new(ServerConn::new(config, clock()));
        let conn = self
            .shared
            .peek(|state| state.connections.insert(handle.clone()));
        let handler = Handler {
            runtime: self.clone(),
            conn: ConnId(conn),
            before_leaving: None,
            drain_timeout: Duration::ZERO,
        };
        (handle, handler)
    }

    /// Takes no new texts, and waits until nothing is open any more, at most so long.
    async fn drain(&self, timeout: Duration) {
        if !self.shared.drain(timeout).await {
            let open = self.in_flight();
            tracing::warn!(open, "messages are still open at the end");
        }
    }

    fn register(&self, conn: ConnId, registration: &Registration) {
        self.shared.with(|state, _| {
            let registered = state.hub.register(conn, registration);
            state.connections.write(conn.0, |machine| match registered {
                Ok(id) => machine.accept(&id),
                Err(error) => machine.refuse(error),
            });
        });
    }

    fn respond(&self, conn: ConnId, response: Response) {
        self.shared
            .with(|state, _| state.hub.respond(conn, response));
    }

    fn close(&self, conn: ConnId, frame: CloseFrame) {
        self.shared.peek(|state| {
            if let Some(handle) = state.connections.get(conn.0) {
                handle.close_with(frame);
            }
        });
    }

    fn leave(&self, conn: ConnId) {
        self.shared.with(|state, _| {
            state.hub.disconnect(conn);
            state.connections.remove(conn.0);
        });
    }
}

impl fmt::Debug for RouterRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read(|hub| f.debug_tuple("RouterRuntime").field(hub).finish())
    }
}
