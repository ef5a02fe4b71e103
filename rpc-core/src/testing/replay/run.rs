//! [`replay`]: replays over transports, and as a test.

use std::pin::pin;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};

use super::{Difference, Playback, Recording, Script, Settings};
use crate::net::mem::MemListener;
use crate::net::{Dialer, Driver, Transport, time};
use crate::testing::Side;

/// The other side: it is dialled, or dials.
#[async_trait]
pub trait Peer: Send {
    /// Its connections.
    type Transport: Transport;

    /// Opens the connection of this script, or accepts it. `None` if it was refused as recorded.
    ///
    /// # Errors
    /// What was not as recorded: see [`Script::differs`].
    ///
    /// # Cancel safety
    /// A connection that has not been returned may be lost.
    async fn open(
        &mut self,
        script: &Script,
        playback: &Playback,
    ) -> Result<Option<Self::Transport>, Difference>;
}

impl Playback {
    /// Replays all connections, and calls `report` with each difference.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connections.
    pub async fn run<P: Peer>(&self, mut peer: P, mut report: impl FnMut(Difference)) {
        let mut open = FuturesUnordered::new();
        for (index, script) in self.connections().iter().enumerate() {
            let opened = {
                let mut opening = pin!(self.open(index, script, &mut peer));
                loop {
                    tokio::select! {
                        biased;
                        Some(()) = open.next() => {
                            self.take_differences(&mut report);
                            if self.is_stopped() {
                                return;
                            }
                        }
                        opened = &mut opening => break opened,
                    }
                }
            };
            match opened {
                Ok(Some(transport)) => open.push(self.drive(index, transport)),
                Ok(None) => self.skip(index),
                Err(difference) => {
                    self.skip(index);
                    self.found(difference);
                    self.take_differences(&mut report);
                    if self.is_stopped() {
                        return;
                    }
                }
            }
            if self.is_stopped() {
                break;
            }
        }
        while let Some(()) = open.next().await {
            self.take_differences(&mut report);
            if self.is_stopped() {
                return;
            }
        }
    }

    async fn open<P: Peer>(
        &self,
        index: usize,
        script: &Script,
        peer: &mut P,
    ) -> Result<Option<P::Transport>, Difference> {
        if self.plays == Side::Client {
            while let Err(again) = self.turn(index, time::now()) {
                sleep_until(Instant::from_std(again)).await;
            }
            return peer.open(script, self).await;
        }
        let late = async {
            loop {
                let now = time::now();
                match self.late_at(index) {
                    Some(late) if late <= now => break,
                    Some(late) => sleep_until(Instant::from_std(late)).await,
                    None => tokio::time::sleep(super::machine::LOOK).await,
                }
            }
        };
        tokio::select! {
            biased;
            opened = peer.open(script, self) => opened,
            () = late => Err(script.differs("a connection does not come")),
        }
    }

    async fn drive<T: Transport>(&self, index: usize, transport: T) {
        let Some(replay) = self.connection(index, time::now()) else {
            return;
        };
        let mut driver = Driver::new(replay, transport);
        while let Some(difference) = driver.next().await {
            self.found(difference);
        }
    }
}

/// Prepares the replay of a recording as a test: see the [module](mod@crate::testing::replay).
pub fn replay(text: &str) -> Player {
    Player {
        text: text.to_owned(),
        connection: None,
        settings: Settings::default(),
    }
}

/// A recording as a test: see [`replay`].
#[derive(Clone, Debug)]
#[must_use = "call `client` or `server`"]
pub struct Player {
    text: String,
    connection: Option<u32>,
    settings: Settings,
}

#[allow(clippy::panic, reason = "it is a test")]
impl Player {
    /// Sets how it is replayed.
    pub fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Replays only the connection with this number. Default: all.
    pub const fn with_connection(mut self, number: u32) -> Self {
        self.connection = Some(number);
        self
    }

    /// Plays the client, to test the server that is dialled.
    ///
    /// # Panics
    /// With what is not as recorded, or a line that is none of a recording.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connections.
    pub async fn client<D: Dialer>(self, dialer: D) {
        self.play(Side::Client, Dialled(dialer)).await;
    }

    /// Plays the server, to test the client that dials.
    ///
    /// # Panics
    /// With what is not as recorded, or a line that is none of a recording.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connections.
    pub async fn server(self, listener: MemListener) {
        self.play(Side::Server, Accepted(listener)).await;
    }

    async fn play(self, plays: Side, peer: impl Peer) {
        let mut recording = match Recording::parse(&self.text) {
            Ok(recording) => recording,
            Err(error) => panic!("{error}"),
        };
        recording.connections.retain(|script| {
            self.connection.is_none_or(|it| it == script.number)
                && !script.is_plain
                && !script.is_refused()
        });
        if recording.connections.is_empty() {
            panic!("the recording has no such connection of WebSockets");
        }
        let mut found = Vec::new();
        let playback = Playback::new(recording, plays, self.settings);
        playback
            .run(peer, |difference| found.push(difference.to_string()))
            .await;
        if !found.is_empty() {
            panic!("not as recorded:\n{}", found.join("\n"));
        }
    }
}

struct Dialled<D>(D);

#[async_trait]
impl<D: Dialer> Peer for Dialled<D> {
    type Transport = D::Transport;

    async fn open(
        &mut self,
        script: &Script,
        _: &Playback,
    ) -> Result<Option<D::Transport>, Difference> {
        let dialled = self.0.dial().await;
        dialled
            .map(Some)
            .map_err(|error| script.differs(error.to_string()))
    }
}

struct Accepted(MemListener);

#[async_trait]
impl Peer for Accepted {
    type Transport = crate::net::mem::MemTransport;

    async fn open(
        &mut self,
        script: &Script,
        _: &Playback,
    ) -> Result<Option<Self::Transport>, Difference> {
        match self.0.accept().await {
            Some(transport) => Ok(Some(transport)),
            None => Err(script.differs("nobody dials for this connection")),
        }
    }
}
