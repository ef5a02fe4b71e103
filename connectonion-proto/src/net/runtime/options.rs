//! [`RuntimeOptions`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use super::results::ResultsFile;
use crate::auth::{Address, AuthError, Signature, Signer, Spent};
use crate::frame::SessionState;
use crate::session::{HubConfig, Owner};
use crate::storage::Storage;
use crate::trust::{AccessControl, TrustBook, TrustLevel, TrustPolicy};
use crate::upload::UploadLimits;

/// Finds out whether strangers have paid. What they say themselves proves nothing.
#[async_trait]
pub trait Payments: Send + Sync + 'static {
    /// Returns whether this address has paid this amount.
    ///
    /// # Cancel safety
    /// The future is dropped if the host ends.
    async fn is_paid(&self, payer: &Address, amount: f64) -> bool;
}

/// The other hosts with the same address, which share the storage: a cluster.
#[async_trait]
pub trait Peers: Send + Sync + 'static {
    /// Returns the status of a session that another host serves. `asker` is the identity that the
    /// caller has proved; `None` if it has proved none but must.
    ///
    /// # Cancel safety
    /// The future is dropped if the host ends.
    async fn status(&self, asker: Option<Owner>, session_id: &str) -> Option<SessionState>;

    /// Counts a signature as used at all hosts.
    ///
    /// # Errors
    /// [`AuthError::AlreadyUsed`], [`AuthError::ReplayProtectionUnavailable`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may be used or not.
    async fn spend(&self, signature: &Signature) -> Result<(), AuthError>;
}

pub(super) type OnTrust = dyn Fn(&TrustBook) + Send + Sync;
pub(super) type TrustSource = dyn Fn() -> Option<TrustBook> + Send + Sync;
pub(super) type OnSpent = dyn Fn(&[Spent]) + Send + Sync;

rpc_core::config! {
    /// The configuration of a [`HostRuntime`](super::HostRuntime).
    pub struct RuntimeOptions {
        /// Decides who is admitted.
        pub access: AccessControl = access,
        /// The lifetimes and limits of sessions.
        pub hub: HubConfig = HubConfig::default() => with_hub(HubConfig),
        /// Where sessions are kept, so that they outlive the host. Default: the file
        /// [`RESULTS_FILE`](crate::limits::RESULTS_FILE) in the working directory, made with the first
        /// record; one host at a time may write it. A [`MemoryStorage`](crate::storage::MemoryStorage)
        /// forgets them with the process.
        pub storage: Arc<dyn Storage> = Arc::new(ResultsFile::new())
            => with_storage(Arc<dyn Storage>),
        /// The folder for files of prompts, created with the first file. Default
        /// [`UPLOADS_FOLDER`](crate::limits::UPLOADS_FOLDER) in the working directory.
        pub uploads: PathBuf = PathBuf::from(crate::limits::UPLOADS_FOLDER),
        /// The limits on files.
        pub upload_limits: UploadLimits = UploadLimits::default(),
        /// Checks whether strangers have paid. Default `None`: payment is not possible.
        pub payments: Option<Arc<dyn Payments>> = None => with_payments(Arc<dyn Payments>),
        /// The other hosts of a cluster. Default `None`: this is the only one.
        pub peers: Option<Arc<dyn Peers>> = None => with_peers(Arc<dyn Peers>),
        pub(super) on_trust: Option<Arc<OnTrust>> = None,
        pub(super) trust_source: Option<Arc<TrustSource>> = None,
        pub(super) on_spent: Option<Arc<OnSpent>> = None,
    }
    /// Creates options with this access control.
    pub fn with_access(access: AccessControl);
}

impl RuntimeOptions {
    /// Creates options for the host with this key, at this level of trust, with empty lists.
    #[must_use]
    pub fn new(host: &Signer, level: TrustLevel) -> Self {
        Self::with_access(AccessControl::new(*host.address(), TrustPolicy::new(level)))
    }

    /// Sets [`uploads`](Self::uploads) and [`upload_limits`](Self::upload_limits).
    #[must_use]
    pub fn with_uploads(mut self, folder: impl Into<PathBuf>, limits: UploadLimits) -> Self {
        self.uploads = folder.into();
        self.upload_limits = limits;
        self
    }

    /// Sets a hook that is called with the lists whenever onboarding or an administrator may have
    /// changed them, to save them. It runs on the connection's task, so it should be quick.
    #[must_use]
    pub fn with_on_trust(mut self, hook: impl Fn(&TrustBook) + Send + Sync + 'static) -> Self {
        self.on_trust = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that is called before each CONNECT is decided: it returns the lists if somebody
    /// else has changed them since the last call, for example by hand. It runs on the connection's task,
    /// so it should be quick.
    #[must_use]
    pub fn with_trust_source(
        mut self,
        hook: impl Fn() -> Option<TrustBook> + Send + Sync + 'static,
    ) -> Self {
        self.trust_source = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that is called with signatures that have just been used, before what they sign is
    /// carried out. Save them, and pass what has not expired to [`AccessControl::with_spent`] at the next
    /// start: otherwise a CONNECT or a command counts once more after it. It runs on the connection's
    /// task, so it should be quick. Only with [`AccessControl::with_spent`].
    #[must_use]
    pub fn with_on_spent(mut self, hook: impl Fn(&[Spent]) + Send + Sync + 'static) -> Self {
        self.on_spent = Some(Arc::new(hook));
        self
    }
}

impl fmt::Debug for RuntimeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeOptions")
            .field("access", &self.access)
            .field("hub", &self.hub)
            .field("uploads", &self.uploads)
            .field("upload_limits", &self.upload_limits)
            .field("payments", &self.payments.is_some())
            .field("peers", &self.peers.is_some())
            .finish_non_exhaustive()
    }
}
