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

mod bind;
mod compare;
mod leaves;
mod names;
mod play;
mod script;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use compare::{Change, Difference};
pub use play::{Peer, Playback};
pub use script::Script;

use crate::net::Dialer;
use crate::net::mem::{MemListener, MemTransport};
use crate::testing::Side;

crate::config! {
    /// How a recording is replayed.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// How much longer than recorded a frame may take. Default 5 s.
        pub timeout: Duration = Duration::from_secs(5),
        /// How fast frames are played: 1 is as recorded, 2 twice as fast. Default: without a wait.
        pub speed: Option<f64> = None,
        /// Members that may have any value: their names, or the ends of their paths. Default none.
        pub tolerated: Vec<String> = Vec::new(),
        /// Kinds of frames (`type`, `method` or `event`) that are neither played nor awaited, such as
        /// heartbeats. Default none.
        pub ignored: Vec<String> = Vec::new(),
        /// Whether to go on after a difference. Default no.
        pub keep_going: bool = false,
    }
}

/// Prepares the replay of a recording as a test: see the [module](self).
pub fn replay(text: &str) -> Player {
    Player {
        text: text.to_owned(),
        settings: Settings::default(),
    }
}

/// A recording as a test: see [`replay`]. Its requests of plain HTTP are passed over.
#[derive(Clone, Debug)]
#[must_use = "call `client` or `server`"]
pub struct Player {
    text: String,
    /// How it is replayed.
    pub settings: Settings,
}

#[allow(clippy::panic, reason = "it is a test")]
impl Player {
    /// Lets this member have any value: its name, or the end of its path.
    pub fn tolerate(mut self, member: &str) -> Self {
        self.settings.tolerated.push(member.to_owned());
        self
    }

    /// Plays the client, to test the server that is dialled.
    ///
    /// # Panics
    /// With what is not as recorded, or a line that is not a line of a recording.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connections.
    pub async fn client(self, dialer: impl Dialer) {
        self.play(Side::Client, dialer).await;
    }

    /// Plays the server, to test the client that dials.
    ///
    /// # Panics
    /// With what is not as recorded, or a line that is not a line of a recording.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connections.
    pub async fn server(self, listener: MemListener) {
        self.play(Side::Server, listener).await;
    }

    async fn play(self, plays: Side, peer: impl Peer) {
        let mut scripts = match Script::parse(&self.text) {
            Ok(scripts) => scripts,
            Err(error) => panic!("{error}"),
        };
        scripts.retain(Script::is_web_socket);
        if scripts.is_empty() {
            panic!("the recording has no WebSocket");
        }
        let mut found = Vec::new();
        let playback = Playback::new(scripts, plays, self.settings);
        let report = |difference: Difference| found.push(difference.to_string());
        playback.run(peer, report).await;
        if !found.is_empty() {
            panic!("not as recorded:\n{}", found.join("\n"));
        }
    }
}

/// The server that is dialled.
impl<D: Dialer> Peer for D {
    type Transport = D::Transport;

    async fn open(
        &mut self,
        script: &Script,
        _: &Playback,
    ) -> Result<Option<D::Transport>, Difference> {
        let dialled = self.dial().await;
        dialled
            .map(Some)
            .map_err(|error| script.differs(error.to_string()))
    }
}

/// The clients that dial.
impl Peer for MemListener {
    type Transport = MemTransport;

    async fn open(
        &mut self,
        script: &Script,
        _: &Playback,
    ) -> Result<Option<Self::Transport>, Difference> {
        match self.accept().await {
            Some(transport) => Ok(Some(transport)),
            None => Err(script.differs("nobody dials for this connection")),
        }
    }
}
