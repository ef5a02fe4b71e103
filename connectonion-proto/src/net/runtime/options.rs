//! [`RuntimeOptions`].

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::{BoxFuture, FutureExt as _};
use rpc_core::store::Store;

use crate::auth::{Address, Signer, Spent};
use crate::hub::HubConfig;
use crate::net::cluster::Cluster;
use crate::trust::{AccessControl, TrustBook, TrustLevel};
use crate::upload::UploadLimits;

/// Returns whether this address has paid this amount.
pub(super) type CheckPayment = Box<dyn Fn(Address, f64) -> BoxFuture<'static, bool> + Send + Sync>;

pub(super) type OnTrust = Box<dyn Fn(&TrustBook) + Send + Sync>;
pub(super) type TrustSource = Box<dyn Fn() -> Option<TrustBook> + Send + Sync>;
pub(super) type OnSpent = Box<dyn Fn(&[Spent]) + Send + Sync>;

rpc_core::config! {
    /// The configuration of a [`HostRuntime`](super::HostRuntime). Its hooks run on a connection's
    /// task, so they should be quick.
    pub struct RuntimeOptions {
        /// Decides who is admitted.
        pub access: AccessControl = access,
        /// The lifetimes and limits of sessions.
        pub hub: HubConfig = HubConfig::default(),
        /// Where sessions are kept, so that they outlive the host. One host at a time may use it. Default
        /// `None`: in memory, where they end with the host.
        pub store: Option<Arc<dyn Store>> = None,
        /// The bytes that all sessions may take in the store, beyond which prompts are refused; those of one
        /// owner may take a quarter of it. Applies to a store that has none yet. Default 2 GiB, in memory
        /// 256 MiB.
        pub max_store_bytes: Option<u64> = None,
        /// The folder for files of prompts, created with the first file. Default `.co/uploads` in the
        /// working directory.
        pub uploads: PathBuf = PathBuf::from(".co/uploads"),
        /// The limits on files.
        pub upload_limits: UploadLimits = UploadLimits::default(),
        /// Called with the lists whenever onboarding or an administrator may have changed them, to
        /// save them. Default `None`.
        pub on_trust: Option<OnTrust> = None,
        /// Called before each CONNECT is decided, and every second while there are sessions: returns the
        /// lists if they were changed elsewhere since the last call, for example by hand. Default `None`.
        pub trust_source: Option<TrustSource> = None,
        /// Called with signatures that have just been used, before what they sign is carried out. Save
        /// them, and pass what has not expired to [`AccessControl::with_spent`] at the next start:
        /// otherwise a CONNECT or a command counts once more after it. Only with
        /// [`AccessControl::with_spent`]. Default `None`.
        pub on_spent: Option<OnSpent> = None,
        /// The wall clock, for signatures and the age of what is stored; tests can set another one. Default: the
        /// system's.
        pub clock: fn() -> SystemTime = rpc_core::net::time::system_now,
        /// Finds out whether a stranger has paid; [`with_payments`](Self::with_payments) sets it. Default `None`: payment is
        /// not possible.
        pub payments: Option<CheckPayment> = None,
        /// Makes the host a part of this cluster, which stores its sessions in place of the [store](Self::store). Default
        /// `None`: alone.
        pub cluster: Option<Cluster> = None,
    }
    /// Creates options with this access control.
    pub fn with_access(access: AccessControl);
}

impl RuntimeOptions {
    /// Creates options for the host with this key, at this level of trust, with empty lists.
    #[must_use]
    pub fn new(host: &Signer, level: TrustLevel) -> Self {
        Self::with_access(AccessControl::new(*host.address(), level))
    }

    /// Finds out with `is_paid` whether a stranger has paid this amount: what strangers say themselves
    /// proves nothing. Its future is dropped if the host ends. Without it, payment is not possible.
    #[must_use]
    pub fn with_payments<F, R>(mut self, is_paid: F) -> Self
    where
        F: Fn(Address, f64) -> R + Send + Sync + 'static,
        R: Future<Output = bool> + Send + 'static,
    {
        let check = move |payer, amount| is_paid(payer, amount).boxed();
        self.payments = Some(Box::new(check));
        self
    }
}

rpc_core::debug_fields!([] RuntimeOptions, this => {
    access: this.access,
    hub: this.hub,
    uploads: this.uploads,
    upload_limits: this.upload_limits,
});
