//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::event::ChecklistTag;
use crate::limits::{
    ABORT_GRACE, MAX_QUEUED, MAX_UNANSWERED, PING_INTERVAL, PONG_TIMEOUT, defaults,
};

rpc_core::config! {
    /// How a server treats a connection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// Chats that may wait behind the running one; a further one is refused. Default
        /// [`MAX_QUEUED`].
        pub max_queued: usize = MAX_QUEUED => with_max_queued,
        /// Whether an aborted chat ends without a terminal message, as with the known server. Default
        /// `false`: it ends with `chat.error` and the code `E_ABORTED` before the abort is answered, as
        /// the specification wants for every request.
        pub silent_aborts: bool = false => with_silent_aborts,
        /// How long the work on an aborted chat may take to come to its end, while the next chat waits
        /// for it. Afterwards it is [given up](super::ServerEvent::GivenUp). Default [`ABORT_GRACE`];
        /// zero is at once.
        pub abort_grace: Duration = ABORT_GRACE => with_abort_grace,
        /// By which name checklists are sent, whatever the event says. Default `checklist`.
        pub checklist: ChecklistTag = ChecklistTag::default() => with_checklist,
        /// Whether members of a chat's request that nobody knows, null, ids of another form and texts over
        /// the limits are let pass, as over HTTP. Default `false`: such a request is refused, as at the
        /// known server.
        pub lax_requests: bool = false => with_lax_requests,
        /// Answers to `status.get` and `task.status` that may be owed; at this number nothing more is
        /// read. Default [`MAX_UNANSWERED`]; 0 counts as 1.
        pub max_unanswered: usize = MAX_UNANSWERED => with_max_unanswered,
        /// Pings, and when silence counts as death. Default every 25 s, and 30 s after a ping.
        pub keep_alive: KeepAlive = KeepAlive::default()
            .with_interval(Some(PING_INTERVAL))
            .with_pong_timeout(PONG_TIMEOUT) => with_keep_alive,
        /// Bounds on size and number. Chats that run and wait hold at most
        /// [`max_event_bytes`](Limits::max_event_bytes), unless there is only one; a client above
        /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
        pub limits: Limits = defaults() => with_limits,
    }
}
