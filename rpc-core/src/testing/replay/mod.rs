//! [`replay`](fn@replay): a recording becomes a test. One side of it is played, the other one checked.
//!
//! The recording is a [transcript](super::transcript), such as `switchboard wire proxy` writes. To test
//! a client, play the server, and the other way round:
//!
//! ```
//! use rpc_core::net::mem;
//! use rpc_core::testing::replay::replay;
//! # use futures_util::{SinkExt as _, StreamExt as _};
//! # use rpc_core::{Outgoing, net::{Dialer as _, Message}};
//!
//! // Usually `include_str!("bug.jsonl")`.
//! const RECORDING: &str = r#"{"transcript":1}
//! {"at":0.00,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"c1\",\"method\":\"ping\"}"}
//! {"at":0.01,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"c1\",\"result\":\"pong\"}"}
//! {"at":0.02,"conn":1,"dir":"c2s","kind":"close"}"#;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (dialer, listener) = mem::listen(16);
//! let server = tokio::spawn(replay(RECORDING).server(listener));
//!
//! // The client under test. Its id is not the recorded one, and the server answers with its own.
//! let mut client = dialer.dial().await?;
//! client.send(Outgoing::Text(r#"{"id":"x7","method":"ping"}"#.into())).await?;
//! let answer = client.next().await.ok_or("no answer")??;
//! assert_eq!(answer, Message::Text(r#"{"id":"x7","result":"pong"}"#.into()));
//! client.close().await?;
//!
//! server.await?; // has the panic, with what differs
//! # Ok(())
//! # }
//! ```
//!
//! # What is compared
//! The kind of each frame of the other side, their order on each connection, all members, and how a
//! connection ends. The order of members and the way in which values are written do not matter, and
//! pings and pongs of the transport are passed over. A frame is played once all that is recorded before
//! it has passed, so that a recording of several connections is played in its order.
//!
//! # What is bound
//! What the other side makes is bound to what it sends at the first use, and stands for the recorded
//! value from then on, in both directions: in frames that are played also within texts and paths.
//! Such values are those of members like `id`, `callId`, `session_id`, `token` and `signature`, and UUIDs,
//! hexadecimal digits and values like `task_fgz1hprz` in any member. What is bound once cannot stand for
//! another value later. Short values, of up to five characters, are bound for members of the same name
//! only. An id in letters alone, such as `main`, has to be the recorded one.
//!
//! Times are not compared: dates, numbers that could be the current time, and members like `ts`,
//! `created_at` or `duration_ms`. [`Settings::tolerated`] has members that may have any value.
//!
//! # Without a runtime
//! A [`Replay`] is a [`Machine`](crate::Machine), so it can be one side of a [`Pair`](super::Pair).

mod bind;
mod compare;
mod leaves;
mod machine;
mod names;
#[cfg(feature = "tokio")]
mod run;
mod script;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use compare::{Change, Difference};
pub use machine::{Playback, Replay};
#[cfg(feature = "tokio")]
pub use run::{Peer, Player, replay};
pub use script::{Recording, Script};

crate::config! {
    /// How a recording is replayed.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// How much longer than recorded a frame may take. Default 5 s.
        pub timeout: Duration = Duration::from_secs(5) => with_timeout,
        /// How fast frames are played: 1 is as recorded, 2 twice as fast. Default: without a wait.
        pub speed: Option<f64> = None => with_speed(f64),
        /// How long nothing else may come before a connection is closed. Default 100 ms.
        pub quiet: Duration = Duration::from_millis(100) => with_quiet,
        /// Members that may have any value: their names, or the ends of their paths. Default none.
        pub tolerated: Vec<String> = Vec::new() => with_tolerated(Vec<String>),
        /// Kinds of frames (`type`, `method` or `event`) that are neither played nor awaited, such as
        /// heartbeats. Default none.
        pub ignored: Vec<String> = Vec::new() => with_ignored(Vec<String>),
        /// Whether to go on after a difference. Default no.
        pub keep_going: bool = false => with_keep_going,
    }
}
