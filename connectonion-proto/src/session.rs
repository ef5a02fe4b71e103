//! The sessions of a host: their bounds, owners and prompts. `net::HostRuntime` (feature `auth`) keeps
//! them.
//!
//! # The life of a session
//!
//! ```text
//!             CONNECT                INPUT
//!      (new) ────────► connected ─────────────► running
//!                        │   ▲  OUTPUT or ERROR    │
//!      no one for 10 min │   └─────────────────────┤ 1 h of silence
//!                        ▼                         ▼
//!                     removed                   removed
//! ```
//!
//! - A session without a run is removed when its sockets have been silent for
//!   [`idle_timeout`](HubConfig::idle_timeout), or when it has been without a socket for
//!   [`grace`](HubConfig::grace). Any frame restarts the time, and so do the end of a run and
//!   the loss of the last socket.
//! - A run is given up after [`stuck_timeout`](HubConfig::stuck_timeout) without an event of
//!   its agent and without a frame of a client. It goes on without any socket.
//! - However a run ends, its session can be used again at once, also after a failure.
//! - A removed session is not lost: the client has its conversation, and so has the
//!   [storage](crate::storage).
//!
//! # Access
//!
//! - A session belongs to the caller who started it. Another caller who asks for it gets a new one
//!   with another id, and nothing of the first. This still reveals that the id is taken, so use ids
//!   that are hard to guess, as those made here are.
//! - Several sockets of its owner may watch a session. All see every event and every OUTPUT, also
//!   of runs that another socket started.
//! - A socket acts on the session of its CONNECT until the socket closes or the session is removed;
//!   an agent acts on its run until it is over. Numbers of connections and runs are never reused,
//!   so a late call has no effect.
//!
//! # What is acknowledged is stored
//!
//! - A prompt that starts a run is acknowledged by the first event of that run, its `user_input`.
//!   It is stored before, with the whole conversation.
//! - A prompt for a running agent is acknowledged by `RUNTIME_INPUT_ACK`, and stored before that.
//!   It is read: by the agent in this run, or by another run if the agent fails.
//! - A change of mode between two runs is sent at once and then stored. A run stores its mode at
//!   its end.
//! - An OUTPUT is stored before it is sent. If the storage fails, it is sent nevertheless, and the
//!   host [tries to store it](HubConfig::store_again) until the session is removed.
//! - Events are sent at once. A cluster also stores them, so that clients can resume when another
//!   host runs the prompt of a dead one again.
//! - A host that is killed during a run finds the prompts of that run in its storage. The client
//!   gets them back with the conversation, unanswered, when it connects; or they are
//!   [run again](HubConfig::max_reruns), when the client connects or, in a cluster,
//!   without it.
//! - A host that may no longer write to a session acknowledges nothing more of it: its run is stopped, and
//!   its connections are closed.
//!
//! # Bounds
//!
//! See [`HubConfig`]. Frames are held once, in the session's log, and every socket takes them at its
//! own speed; a socket that is too slow gets the whole session instead of what it has missed.

#[doc(hidden)]
pub use crate::hub::Entry;
pub use crate::hub::{HubConfig, LogLimits, Owner};
