//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::event::ChecklistTag;
use crate::limits::{
    ABORT_GRACE, MAX_QUEUED, MAX_UNANSWERED, PING_INTERVAL, PONG_TIMEOUT, defaults,
};

/// How a server treats a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Chats that may wait behind the running one; a further one is refused. Default
    /// [`MAX_QUEUED`].
    pub max_queued: usize,
    pub(crate) silent_aborts: bool,
    pub(crate) abort_grace: Duration,
    pub(crate) checklist: ChecklistTag,
    pub(crate) lax_requests: bool,
    pub(crate) max_unanswered: usize,
    /// Pings, and when silence counts as death. Default every 25 s, and 30 s after a ping.
    pub keep_alive: KeepAlive,
    /// Bounds on size and number. Chats that run and wait hold at most
    /// [`max_event_bytes`](Limits::max_event_bytes), unless there is only one; a client above
    /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
    pub limits: Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_queued: MAX_QUEUED,
            silent_aborts: false,
            abort_grace: ABORT_GRACE,
            checklist: ChecklistTag::default(),
            lax_requests: false,
            max_unanswered: MAX_UNANSWERED,
            keep_alive: KeepAlive::default()
                .with_interval(Some(PING_INTERVAL))
                .with_pong_timeout(PONG_TIMEOUT),
            limits: defaults(),
        }
    }
}

impl ServerConfig {
    /// Sets [`max_queued`](Self::max_queued).
    #[must_use]
    pub const fn with_max_queued(mut self, chats: usize) -> Self {
        self.max_queued = chats;
        self
    }

    /// Whether an aborted chat ends without a terminal message, as with the known server. Default
    /// `false`: it ends with `chat.error` and the code `E_ABORTED` before the abort is answered, as
    /// the specification wants for every request.
    #[must_use]
    pub const fn with_silent_aborts(mut self, silent: bool) -> Self {
        self.silent_aborts = silent;
        self
    }

    /// How long the work on an aborted chat may take to come to its end, while the next chat waits
    /// for it. Afterwards it is [given up](super::ServerEvent::GivenUp). Default [`ABORT_GRACE`];
    /// zero is at once.
    #[must_use]
    pub const fn with_abort_grace(mut self, grace: Duration) -> Self {
        self.abort_grace = grace;
        self
    }

    /// By which name checklists are sent, whatever the event says. Default `checklist`.
    #[must_use]
    pub const fn with_checklist(mut self, tag: ChecklistTag) -> Self {
        self.checklist = tag;
        self
    }

    /// Whether members of a chat's request that nobody knows, null, ids of another form and texts over
    /// the limits are let pass, as over HTTP. Default `false`: such a request is refused, as at the
    /// known server.
    #[must_use]
    pub const fn with_lax_requests(mut self, lax: bool) -> Self {
        self.lax_requests = lax;
        self
    }

    /// Answers to `status.get` and `task.status` that may be owed; at this number nothing more is
    /// read. Default [`MAX_UNANSWERED`]; 0 counts as 1.
    #[must_use]
    pub const fn with_max_unanswered(mut self, requests: usize) -> Self {
        self.max_unanswered = requests;
        self
    }

    /// Sets [`keep_alive`](Self::keep_alive).
    #[must_use]
    pub const fn with_keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Sets [`limits`](Self::limits).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
