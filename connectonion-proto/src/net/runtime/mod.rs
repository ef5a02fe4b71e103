//! [`HostRuntime`]: the sessions of a host that many tasks share, with its agent.

mod agent;
mod handler;
mod options;
mod state;
mod tasks;
mod turn;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use rpc_core::net::{Connections, DriverConfig, Handle, SharedHub, Transport, time};
use rpc_core::store::Store;
use rpc_core::sync::Mutex;
use rpc_core::{CloseFrame, CloseReason, Refused};

use crate::auth::{Address, AuthError, Signature, Verifier, unix_seconds};
use crate::console;
use crate::frame::{ErrorFrame, SessionState, SessionStatus, Signed};
use crate::hub::{ConnId, ConnectRequest, Hub, Now, Owner, Prompt, RunId};
use crate::id::SessionId;
use crate::net::cluster::Cluster;
use crate::net::random;
use crate::server::{ServerConfig, ServerConn};
use crate::storage::StorageError;
use crate::trust::AccessControl;
use crate::upload::Uploads;
use handler::{Caller, Handler};
use state::State;
use turn::Head;

pub use agent::{Agent, DynAgent, Reply, agent_fn};
pub(in crate::net) use handler::Remote;
pub use options::RuntimeOptions;
use options::{CheckPayment, OnSpent, OnTrust, TrustSource};
pub use turn::Turn;

/// The [sessions](crate::session) of a host that many tasks share, with access control, storage and
/// agent. Cheap to clone; all clones are the same runtime.
///
/// It needs one task that [runs](Self::run) it, and one for each connection that it
/// [serves](Self::serve). `Server` does both for WebSockets.
///
/// ```
/// use std::sync::Arc;
/// use connectonion_proto::auth::Signer;
/// use connectonion_proto::net::{Agent, AppError, HostRuntime, RuntimeOptions, Prompt, Reply, Turn};
/// use connectonion_proto::server::ServerConfig;
/// use connectonion_proto::trust::TrustLevel;
/// use connectonion_proto::rpc_core::net::{DriverConfig, mem};
///
/// # struct Echo;
/// # impl Agent for Echo {
/// #     async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
/// #         Ok(Reply::new(format!("echo: {}", prompt.text)))
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let key = Signer::from_seed(&[1; 32]);
/// let options = RuntimeOptions::new(&key, TrustLevel::Open);
/// let runtime = HostRuntime::new(Echo, options);
/// let (client, server) = mem::duplex(64);
/// tokio::spawn(runtime.serve(server, None, ServerConfig::default(), DriverConfig::default()));
/// let running = runtime.clone();
/// tokio::spawn(async move { running.run().await });
/// assert_eq!(runtime.sessions(), 0);
/// # drop(client);
/// # }
/// ```
#[derive(Clone)]
pub struct HostRuntime {
    shared: Arc<Shared>,
}

type StartAgent = Box<dyn Fn(Turn, Prompt) -> BoxFuture<'static, RunId> + Send + Sync>;

struct Shared {
    hub: SharedHub<State>,
    access: Mutex<AccessControl>,
    verifier: Verifier,
    store: Option<Arc<dyn Store>>,
    max_store_bytes: Option<u64>,
    /// Starts the agent.
    start: StartAgent,
    uploads: Uploads,
    payments: Option<CheckPayment>,
    cluster: Option<Cluster>,
    on_trust: Option<OnTrust>,
    trust_source: Option<TrustSource>,
    on_spent: Option<OnSpent>,
    clock: fn() -> SystemTime,
}

impl HostRuntime {
    /// Creates a runtime without sessions.
    #[must_use]
    pub fn new(agent: impl Agent, options: RuntimeOptions) -> Self {
        let mut hub = options.hub;
        hub.store_events |= options.cluster.is_some();
        let hub = Hub::new(hub, random(), time::now());
        let agent = Arc::new(agent);
        // Agents get paths, and may work somewhere else.
        let uploads = std::path::absolute(&options.uploads).unwrap_or(options.uploads);
        Self {
            shared: Arc::new(Shared {
                hub: SharedHub::new(State {
                    hub,
                    connections: Connections::default(),
                    heads: HashMap::new(),
                }),
                verifier: options.access.verifier().clone(),
                access: Mutex::new(options.access),
                store: options.store,
                max_store_bytes: options.max_store_bytes,
                start: Box::new(move |turn, prompt| {
                    Box::pin(tasks::work(Arc::clone(&agent), turn, prompt))
                }),
                uploads: Uploads::new(uploads, options.upload_limits),
                payments: options.payments,
                cluster: options.cluster,
                on_trust: options.on_trust,
                trust_source: options.trust_source,
                on_spent: options.on_spent,
                clock: options.clock,
            }),
        }
    }

    /// Returns the host's address.
    #[must_use]
    pub fn address(&self) -> Address {
        *self.shared.access.lock().host()
    }

    /// Returns the number of sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.read(Hub::sessions)
    }

    /// Returns the number of running agents.
    #[must_use]
    pub fn running(&self) -> usize {
        self.read(Hub::running)
    }

    /// Returns the number of sessions with a result or a change that could not be stored, and is
    /// stored again.
    #[must_use]
    pub fn unstored(&self) -> usize {
        self.read(Hub::unstored)
    }

    /// Calls `look` with the hub. Everything else waits meanwhile, so be quick.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Hub) -> T) -> T {
        self.shared.hub.peek(|state| look(&state.hub))
    }

    /// Calls `act` with the access control, to read or change its lists. CONNECTs wait meanwhile,
    /// so be quick.
    pub fn with_access<T>(&self, act: impl FnOnce(&mut AccessControl) -> T) -> T {
        let mut access = self.shared.access.lock();
        let result = act(&mut access);
        let spent = access.take_spent();
        if let Some(hook) = self.shared.on_spent.as_ref().filter(|_| !spent.is_empty()) {
            hook(&spent);
        }
        if access.take_changed() {
            if let Some(hook) = &self.shared.on_trust {
                hook(access.book());
            }
            self.end_blocked(&access);
        }
        result
    }

    /// Runs agents, stores sessions, and handles deadlines, until it is dropped; call it once per
    /// runtime.
    ///
    /// First it recovers the sessions: runs that an earlier process has left behind become
    /// interrupted.
    ///
    /// # Cancel safety
    /// If the future is dropped, all agents are stopped. Acknowledged prompts are stored.
    pub async fn run(&self) -> Infallible {
        tasks::run(self.clone()).await
    }

    /// Serves one connection to its end. `peer` is its origin, for the console and for limits.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connection is cut. Its run goes on.
    pub fn serve<T, C>(
        &self,
        transport: T,
        peer: Option<IpAddr>,
        config: C,
        driver: DriverConfig,
    ) -> impl Future<Output = CloseReason> + Send + use<T, C>
    where
        T: Transport,
        C: Into<Arc<ServerConfig>>,
    {
        let remote = Remote {
            came: None,
            address: peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            brake: Arc::default(),
        };
        let (handle, handler) = self.connection(peer, None, config.into(), remote);
        rpc_core::net::serve(handle, transport, handler, driver, std::future::pending())
    }

    /// Creates the machine of a new connection, and the handler of its events.
    pub(super) fn connection(
        &self,
        peer: Option<IpAddr>,
        head: Option<Arc<Head>>,
        config: Arc<ServerConfig>,
        remote: Remote,
    ) -> (Handle<ServerConn>, Handler) {
        let handle = Handle::new(ServerConn::new(config, time::now()));
        let (conn, active) = self.shared.hub.peek(|state| {
            let conn = ConnId(state.connections.insert(handle.clone()));
            state.heads.extend(head.map(|head| (conn, head)));
            (conn, state.hub.sessions())
        });
        if let Some(peer) = peer {
            tracing::info!(target: console::TARGET, "{}", console::opened(peer, active));
        }
        let caller = Arc::new(Caller {
            runtime: self.clone(),
            conn,
            remote,
            owner: OnceLock::new(),
            wrong_codes: AtomicU32::new(0),
        });
        let handler = Handler {
            caller,
            drain_timeout: Duration::ZERO,
        };
        (handle, handler)
    }

    /// Takes over the session of a host that has died. Returns `false` if this one has no room, or
    /// is shutting down.
    pub(super) fn recover(&self, session_id: &str) -> bool {
        !self.is_closing() && self.with_hub(|hub, _| hub.recover(session_id.into()))
    }

    /// Returns the status of a session, also of one that another host serves.
    pub(super) async fn status(
        &self,
        asker: Option<Owner>,
        session_id: Option<SessionId>,
    ) -> SessionStatus {
        let mut status = self.read(|hub| hub.status(asker, session_id.as_ref()));
        if let (SessionState::NotFound, Some(cluster)) = (&status.status, &self.shared.cluster)
            && let Some(id) = &session_id
            && let Some(standing) = cluster.status(asker, id).await
        {
            status.status = standing;
        }
        status
    }

    /// Deletes the session of the caller who has signed this, or of callers without a signature; its files,
    /// too, unless the caller keeps them for a conversation that goes on from it. Returns whether there was one.
    pub(super) async fn delete(
        &self,
        session_id: &str,
        signed: &Signed,
    ) -> Result<Result<bool, StorageError>, AuthError> {
        let now = self.unix_now();
        // Outside of every lock: it takes longer than all the rest.
        let verified = self.shared.verifier.verify(signed, now);
        let signature = verified.as_ref().ok().map(|verified| verified.signature);
        let owner = self.with_access(|access| access.deletion(verified, session_id, now))?;
        if let Some(signature) = signature {
            let spent = self.spend(&signature).await;
            spent.map_err(AuthError::of_command)?;
        }
        let (sender, outcome) = tokio::sync::oneshot::channel();
        let then = move |outcome| drop(sender.send(outcome));
        self.with_hub(|hub, now| hub.delete(&session_id.into(), owner, then, now));
        // The host ends.
        let mut outcome = outcome.await.unwrap_or(Err(StorageError::Fenced));
        if outcome == Err(StorageError::Fenced)
            && let Some(cluster) = &self.shared.cluster
            && cluster.status(Some(owner), session_id).await == Some(SessionState::NotFound)
        {
            // Another host serves one of another owner.
            outcome = Ok(false);
        }
        if outcome.is_err() {
            return Ok(outcome);
        }
        let (shared, id) = (Arc::clone(&self.shared), session_id.to_owned());
        let is_kept = signed.keeps_files();
        let removing = move || match is_kept {
            true => shared.uploads.keep_session(owner, &id),
            false => shared.uploads.remove_session(owner, &id),
        };
        let removing = tokio::task::spawn_blocking(removing);
        let removed = removing.await.unwrap_or_else(|error| Err(error.into()));
        Ok(removed
            .map_err(|error| StorageError::passing(format!("the files are not deleted: {error}")))
            .and(outcome))
    }

    /// Uses up a signature at the other hosts as well.
    ///
    /// # Errors
    /// As for [`Cluster::spend`].
    async fn spend(&self, signature: &Signature) -> Result<(), AuthError> {
        match &self.shared.cluster {
            Some(cluster) => cluster.spend(signature).await,
            None => Ok(()),
        }
    }

    /// Accepts no new prompts, and waits until nothing is being run or stored, up to `timeout`. What
    /// could not be stored before is stored again, at the beginning and at the end.
    pub async fn drain(&self, timeout: Duration) {
        let deadline = time::now() + timeout;
        self.with_hub(Hub::store_again);
        if !self.shared.hub.drain(timeout).await {
            let running = self.running();
            tracing::warn!(running, "agents are still running at shutdown");
        }
        self.with_hub(Hub::store_again);
        let rest = deadline.saturating_duration_since(time::now());
        self.shared.hub.drain(rest).await;
        let unstored = self.unstored();
        if unstored > 0 {
            tracing::warn!(unstored, "results are not stored at shutdown");
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.shared.hub.is_draining()
    }

    /// Takes over lists that have changed on the disk.
    fn refresh_book(&self, access: &mut AccessControl) {
        let source = self.shared.trust_source.as_ref();
        if let Some(book) = source.and_then(|source| source()) {
            *access.book_mut() = book;
            // They are saved already.
            let _ = access.take_changed();
            self.end_blocked(access);
        }
    }

    /// Ends what blocked callers have here.
    fn end_blocked(&self, access: &AccessControl) {
        let blocked = &access.book().blocked;
        if !blocked.is_empty() {
            let is_blocked = |owner| matches!(owner, Owner::Key(key) if blocked.contains(&key));
            let why = CloseFrame::new(CloseFrame::POLICY, AuthError::Blocked.to_string());
            self.with_hub(|hub, now| hub.end_owners(is_blocked, &why, now));
        }
    }

    /// Lets a caller in who was admitted, and was not blocked meanwhile.
    fn enter(&self, conn: ConnId, request: ConnectRequest) {
        // Held, so that who is blocked from now on is found in the hub.
        let access = self.shared.access.lock();
        let blocked = &access.book().blocked;
        let is_blocked = matches!(request.owner, Owner::Key(key) if blocked.contains(&key));
        self.with_hub(|hub, now| {
            hub.touch(conn, now.instant);
            match is_blocked {
                false => hub.connect(conn, request, now),
                true => {
                    hub.refuse_connect(conn, ErrorFrame::new(AuthError::Blocked.to_string()));
                }
            }
        });
    }

    pub(super) fn unix_now(&self) -> f64 {
        unix_seconds((self.shared.clock)())
    }

    pub(super) fn clock(&self) -> fn() -> SystemTime {
        self.shared.clock
    }

    fn leave(&self, conn: ConnId) {
        let active = self.hub().with(|state, now| {
            let was_there = state.connections.remove(conn.0);
            state.heads.remove(&conn);
            was_there.then(|| {
                state.hub.disconnect(conn, now);
                state.hub.sessions()
            })
        });
        if let Some(active) = active {
            tracing::info!(target: console::TARGET, "{}", console::gone(active));
        }
    }

    /// Changes the sessions, and sends what follows.
    pub(super) fn with_hub<T>(&self, act: impl FnOnce(&mut Hub, Now) -> T) -> T {
        self.hub().with(|state, now| act(&mut state.hub, now))
    }

    fn hub(&self) -> &SharedHub<State> {
        &self.shared.hub
    }

    /// Writes to a connection, if it still exists.
    fn write(&self, conn: ConnId, write: impl FnOnce(&mut ServerConn) -> Result<(), Refused>) {
        let hub = self.hub();
        hub.peek(|state| state.connections.write(conn.0, write));
    }
}

rpc_core::debug_fields!([] HostRuntime, this => {
    sessions: this.sessions(),
    running: this.running(),
});
