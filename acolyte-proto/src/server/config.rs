//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::event::ChecklistTag;
use crate::limits::{
    ABORT_GRACE, MAX_QUEUED, MAX_UNANSWERED, PING_INTERVAL, PONG_TIMEOUT, defaults,
};

rpc_core::config! {
    /// The configuration of a connection at a server.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// Chats that may wait behind the running one; further ones are refused. Default 25.
        pub max_queued: usize = MAX_QUEUED,
        /// Whether an aborted chat ends without a final message, as at the known server. Default
        /// `false`: it ends with `chat.error` and the code `E_ABORTED` before the abort is
        /// answered, because the specification requires an end for every request.
        pub silent_aborts: bool = false,
        /// How long the work on an aborted chat may take to stop, while the next chat waits.
        /// Afterwards it is [given up](super::ServerEvent::GivenUp). Default 250 ms; zero is at
        /// once.
        pub abort_grace: Duration = ABORT_GRACE,
        /// The name under which checklists are sent, whatever the event says. Default `checklist`.
        pub checklist: ChecklistTag = ChecklistTag::default(),
        /// The number of unanswered `status.get` and `task.status` requests at which reading stops.
        /// Default 64; 0 counts as 1.
        pub max_unanswered: usize = MAX_UNANSWERED,
        /// Pings, and the silence after which the connection counts as dead. Default every 25 s,
        /// and 30 s after a ping.
        pub keep_alive: KeepAlive = KeepAlive::every(PING_INTERVAL, PONG_TIMEOUT),
        /// Bounds on size and number. Running and waiting chats hold at most
        /// [`max_event_bytes`](Limits::max_event_bytes), unless there is only one; a client above
        /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
        pub limits: Limits = defaults(),
    }
}
