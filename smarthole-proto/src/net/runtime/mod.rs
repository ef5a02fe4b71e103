//! [`RouterRuntime`]: a hub that many tasks share.

mod handler;
mod routes;
mod state;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::{
    DriverConfig, Events, Handle, QueueConfig, SharedHub, Transport, entropy, time,
};
use rpc_core::{CloseFrame, CloseReason};
use tokio::sync::oneshot;

use crate::frame::{Registration, Response};
use crate::hub::{
    ConnId, HistoryEntry, Hub, HubConfig, HubError, HubEvent, Input, RegisteredClient, Settlement,
    Unroutable,
};
use crate::id::MessageId;
use crate::router::Router;
use crate::server::{ServerConfig, ServerConn};
use handler::Handler;
use state::{Ask, State};

pub use routes::RouterOptions;

/// The events of a [`RouterRuntime`], in order and bounded; dropped ones are
/// [counted](rpc_core::net::LinkEvent::Lagged).
pub type HubEvents = Events<HubEvent>;

/// The result of an [`ask`](RouterRuntime::ask).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// The message.
    pub message: MessageId,
    /// The outcome at every client that got it, in the order of delivery. The message is accepted
    /// if one client accepted it.
    pub outcomes: Vec<Settlement>,
    /// Why no further client was asked, if none accepted it.
    pub unroutable: Option<Unroutable>,
}

impl Settled {
    /// Returns whether a client accepted the message.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.outcomes.iter().any(|one| one.outcome.is_taken())
    }
}

/// A [`Hub`] that many tasks share: it accepts texts of users and reports what happens to them.
/// Cheap to clone; all clones are the same runtime.
///
/// It needs one task that [runs](Self::run) it, and one for each connection that it
/// [serves](Self::serve). `Server` does both for WebSockets.
///
/// ```
/// use std::sync::Arc;
/// use smarthole_proto::rpc_core::net::mem;
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
/// // No one has registered yet.
/// assert!(runtime.submit(Input::text("buy milk")).is_err());
/// # drop(client);
/// # }
/// ```
#[derive(Clone)]
pub struct RouterRuntime {
    shared: SharedHub<State>,
}

/// Uses the default configuration.
impl RouterRuntime {
    /// Creates a runtime without clients.
    #[must_use]
    pub fn new(config: HubConfig) -> Self {
        let seed = u128::from(entropy()) << 64 | u128::from(entropy());
        Self {
            shared: SharedHub::new(State::new(Hub::new(config, seed, time::now()))),
        }
    }

    /// Submits a text of a user, and returns the id of its message in [`events`](Self::events).
    ///
    /// # Errors
    /// [`HubError`]; no client has got anything then.
    pub fn submit(&self, input: Input) -> Result<MessageId, HubError> {
        let submitted = self.shared.with_open(|state, now| state.submit(input, now));
        submitted.unwrap_or(Err(HubError::Closed))
    }

    /// Submits a text of a user, and waits until nothing about it is open any more.
    ///
    /// # Errors
    /// [`HubError`]; no client has got anything then, unless it is [`HubError::Ended`], after which it is not
    /// known what became of the message.
    ///
    /// # Cancel safety
    /// Nothing happens before the first poll. Dropping the future after it loses the result only;
    /// the message is still delivered.
    pub async fn ask(&self, input: Input) -> Result<Settled, HubError> {
        let (sender, settled) = oneshot::channel();
        let submitted = self.shared.with_open(|state, now| {
            let message = state.submit(input, now)?;
            state.asks.insert(message.clone(), Ask::new(sender));
            Ok(message)
        });
        let message = submitted.unwrap_or(Err(HubError::Closed))?;
        settled.await.map_err(|_| HubError::Ended { message })
    }

    /// Returns all events from now on. There may be any number of listeners, each with a queue of
    /// its own: 1,024 events and 16 MiB, of which the oldest are dropped when it is full.
    ///
    /// ```
    /// use smarthole_proto::hub::HubEvent;
    /// use smarthole_proto::net::RouterRuntime;
    ///
    /// async fn show(runtime: RouterRuntime) {
    ///     let mut events = runtime.events();
    ///     while let Some(event) = events.next().await {
    ///         if let HubEvent::Notification { title, body, .. } = event {
    ///             println!("{title}: {body}");
    ///         }
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn events(&self) -> HubEvents {
        self.events_with(QueueConfig::default())
    }

    /// Like [`events`](Self::events), with this queue. The runtime never waits for a listener, so
    /// [`LagPolicy::Block`] acts like [`LagPolicy::DropOldest`]; [`LagPolicy::Close`] ends the
    /// queue.
    ///
    /// [`LagPolicy::Block`]: rpc_core::net::LagPolicy::Block
    /// [`LagPolicy::DropOldest`]: rpc_core::net::LagPolicy::DropOldest
    /// [`LagPolicy::Close`]: rpc_core::net::LagPolicy::Close
    #[must_use]
    pub fn events_with(&self, config: QueueConfig) -> HubEvents {
        Events::new(self.shared.peek(|state| state.events.subscribe(config)))
    }

    /// Returns the registered clients in the order of registration.
    #[must_use]
    pub fn clients(&self) -> Vec<RegisteredClient> {
        self.read(|hub| hub.clients().cloned().collect())
    }

    /// Waits until a client of this name is registered, and returns it; `None` if the runtime has
    /// ended.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn registered(&self, name: &str) -> Option<RegisteredClient> {
        let mut events = self.events();
        loop {
            let mut clients = self.clients().into_iter();
            let client = clients.find(|it| it.registration.name == *name);
            if client.is_some() {
                return client;
            }
            events.next().await?;
        }
    }

    /// Returns the last ended deliveries in the order in which they ended, newest last.
    #[must_use]
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.read(|hub| hub.history().collect())
    }

    /// Returns how many messages are open: a client has time left, or the router is asked.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.read(Hub::open_messages)
    }

    /// Reads from the hub. It is locked meanwhile, so be quick.
    pub fn read<T>(&self, look: impl FnOnce(&Hub) -> T) -> T {
        self.shared.peek(|state| look(&state.hub))
    }

    /// Asks the router and handles timeouts, until it is dropped. Run a runtime once: dropping the
    /// future ends it, and with it every [`ask`](Self::ask) and all [`events`](Self::events).
    ///
    /// # Cancel safety
    /// Dropping the future ends the runtime; questions to the router are cancelled.
    pub async fn run<R: Router>(&self, router: Arc<R>, options: RouterOptions) -> Infallible {
        routes::run(self.clone(), router, options).await
    }

    /// Serves one connection to its end. The limits of `config` on the size of messages should be no
    /// smaller than those of the hub.
    ///
    /// # Cancel safety
    /// Dropping the future cuts the connection; the client leaves.
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

    /// Creates the machine of a new connection, and the handler that passes its events to the hub.
    pub(super) fn connection(&self, config: Arc<ServerConfig>) -> (Handle<ServerConn>, Handler) {
        let handle = Handle::new(ServerConn::new(config, time::now()));
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

    /// Accepts no new texts, and waits until nothing is open, for at most `timeout`.
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

rpc_core::debug_fields!([] RouterRuntime, this => { in_flight: this.in_flight() });
