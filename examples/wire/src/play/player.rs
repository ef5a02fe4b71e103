//! [`Player`]: plays a script, step by step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::ask::{has, is_status};
use super::conn::{Conn, Frame};
use super::peer::{Ended, Peer, Started};
use super::script::{self, Action, Ask, Awaited, Step};
use super::variables::Variables;
use crate::Protocol;
use crate::check::Suite;
use crate::head::Head;
use crate::order::Order;
use crate::pattern::Pattern;

/// How scripts are played.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long a step waits for what it expects.
    pub timeout: Duration,
    /// How long silence has to last.
    pub quiet: Duration,
    /// How long a client may take to connect first.
    pub start: Duration,
    /// How many rows run at once, at least 1.
    pub jobs: usize,
    /// What the scripts know: tokens, names, prompts.
    pub variables: Variables,
    /// How long the peer has taken for a step at most, in milliseconds: steps wait longer for a slow one.
    pub pace: Arc<AtomicU64>,
}

impl Settings {
    /// The usual time for a client to connect first.
    pub(crate) const START: Duration = Duration::from_secs(30);

    /// Returns how much longer than the usual time a step waits, to tell a slow peer from a silent one.
    fn patience(&self) -> Duration {
        match self.pace.load(Ordering::Relaxed) {
            // Nothing is known of it yet.
            0 => self.timeout,
            pace => Duration::from_millis(pace).saturating_mul(5),
        }
    }

    /// Returns the settings in words. Values of variables may be secrets.
    pub(crate) fn words(&self) -> String {
        let names = self.variables.names().join(", ");
        let (timeout, quiet) = (self.timeout.as_secs_f64(), self.quiet.as_secs_f64());
        format!(
            "timeout {timeout} s, silence {quiet} s, {} rows at once, set: {names}",
            self.jobs
        )
    }
}

/// A frame of the evidence.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// When, from the start of the row.
    pub millis: u128,
    /// The connection, from 1.
    pub connection: u32,
    /// Whether it was sent here.
    pub sent: bool,
    /// What it was, with secrets replaced.
    pub text: String,
}

/// What was found of the peer.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) evidence: Vec<Entry>,
    /// Whether something came that must not.
    pub(crate) violated: bool,
    /// The order of the frames of each WebSocket, and what the peer has done against it.
    pub(super) orders: BTreeMap<u32, Order>,
    pub(crate) disorder: Option<String>,
    /// The first frame of the peer that has another shape than its protocol, or is of another protocol.
    pub(crate) misshapen: Option<String>,
    pub(crate) foreign: Option<Protocol>,
    /// Whether a frame of the protocol has come.
    pub(super) is_known: bool,
    /// The first step that was late, and how late.
    pub(crate) late: Option<(String, String)>,
    /// The code of the last Close.
    pub(super) close: Option<u16>,
    /// The head of the last answer, or of a client's last request.
    pub(super) head: Head,
    pub(super) path: String,
    /// Connections that a client has opened, and how it has ended.
    pub(super) opened: u32,
    pub(super) ended: Option<Ended>,
    /// The text of the last message that was expected.
    pub(super) last: String,
}

/// A script that is played.
pub(crate) struct Player<'a> {
    pub(super) suite: &'a Suite,
    pub(super) peer: &'a Peer,
    pub(super) settings: &'a Settings,
    pub(crate) variables: Variables,
    pub(super) conns: BTreeMap<u32, Conn>,
    pub(super) never: Vec<(u32, Pattern)>,
    pub(super) ignored: Vec<(u32, Pattern)>,
    pub(super) client: Option<Started>,
    pub(super) started: Instant,
    /// How long the step may take, and how much longer if it only is late then.
    pub(super) patience: Duration,
    pub(super) grace: Duration,
    /// Until when the step may take.
    pub(crate) deadline: Instant,
    pub(crate) found: Findings,
}

impl<'a> Player<'a> {
    pub(crate) fn new(
        suite: &'a Suite,
        peer: &'a Peer,
        settings: &'a Settings,
        variables: Variables,
    ) -> Self {
        Self {
            suite,
            peer,
            settings,
            variables,
            conns: BTreeMap::new(),
            never: Vec::new(),
            ignored: Vec::new(),
            client: None,
            started: Instant::now(),
            patience: settings.timeout,
            grace: Duration::ZERO,
            deadline: Instant::now(),
            found: Findings::default(),
        }
    }

    /// Starts the client, if the peer is one.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) async fn start(&mut self) -> Result<(), String> {
        if let Peer::Client(client) = self.peer {
            let started = client.start(&self.suite.path, &self.variables).await;
            let wrong = |error| format!("the client cannot be started: {error}");
            self.client = Some(started.map_err(wrong)?);
        }
        Ok(())
    }

    /// Plays a step that may have a condition.
    ///
    /// # Errors
    /// What is not as it should be.
    pub(crate) async fn play(&mut self, step: &Step) -> Result<(), String> {
        let is_skipped = |(name, is_set): &(String, bool)| self.variables.has(name) != *is_set;
        if step.only_if.as_ref().is_some_and(is_skipped) {
            return Ok(());
        }
        let began = Instant::now();
        self.step(step).await?;
        let took = began.elapsed();
        if step.not_before.is_some_and(|time| took < time) {
            self.found.violated = true;
            return Err(format!("too early: after {} s", took.as_secs_f64()));
        }
        self.note_time(step, took);
        Ok(())
    }

    /// Notes how long the peer has taken for a step.
    fn note_time(&mut self, step: &Step, took: Duration) {
        let is_answer = match &step.action {
            Action::Expect { .. } | Action::Await(Awaited::Close(_) | Awaited::Pong(_), _) => true,
            Action::Ask(ask) => ask.method.is_some() || ask.status == "101",
            _ => false,
        };
        if !is_answer {
            return;
        }
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.settings
            .pace
            .fetch_max(millis.max(1), Ordering::Relaxed);
        if took > self.patience && step.within.is_none() {
            let reason = format!(
                "it took {:.1} s, more than {} s",
                took.as_secs_f64(),
                self.patience.as_secs_f64()
            );
            self.found.late.get_or_insert((step.line.clone(), reason));
        }
    }

    /// Lets a step begin: it may take its time.
    pub(crate) fn begin(&mut self, step: &Step) {
        self.patience = step.within.unwrap_or(self.settings.timeout);
        self.grace = match step.within {
            None => self.settings.patience(),
            Some(_) => Duration::ZERO,
        };
        self.deadline = Instant::now() + self.patience + self.grace;
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        let number = step.connection;
        self.begin(step);
        if step.opens && !self.conns.contains_key(&number) {
            let ask = Ask {
                status: "101".to_owned(),
                ..Ask::default()
            };
            self.ask(number, &ask).await?;
        }
        match &step.action {
            Action::Ask(ask) => self.ask(number, ask).await,
            Action::Status(wanted) => {
                is_status(wanted, self.found.head.status().unwrap_or_default())
            }
            Action::Header(name, regex) => self.header(name, regex),
            Action::Path(regex) => {
                has(&self.variables.expand(regex)?, &self.found.path, "the path")
            }
            Action::Send(frame) => {
                if matches!(frame, Frame::End(_)) && !self.is_open(number) {
                    return Err(format!("connection {number} is not open"));
                }
                let frame = match frame {
                    Frame::Text(text) => Frame::Text(self.variables.expand(text)?),
                    other => other.clone(),
                };
                let is_close = matches!(frame, Frame::Close(..));
                self.send(number, frame).await?;
                if let Some(conn) = self.conns.get_mut(&number).filter(|_| is_close) {
                    conn.finish(self.settings.quiet).await;
                }
                Ok(())
            }
            Action::Expect { .. } | Action::Await(..) => self.expect(number, &step.action).await,
            Action::Code(code) => match self.found.close {
                Some(closed) if closed == *code => Ok(()),
                closed => Err(format!(
                    "the code is {}, expected {code}",
                    closed.map_or("none".to_owned(), |it| it.to_string())
                )),
            },
            Action::Watch(text, is_forbidden) => {
                let pattern = script::parse(text, &self.variables)?;
                let list = match is_forbidden {
                    true => &mut self.never,
                    false => &mut self.ignored,
                };
                list.push((number, pattern));
                Ok(())
            }
            Action::Silence => self.silence(number).await,
            Action::Wait(time) => {
                sleep(crate::cli::duration(time)?).await;
                Ok(())
            }
            Action::Exit(wanted) => {
                let code = self.wait_for_end().await?.code;
                let code = code.map_or("none".to_owned(), |code| code.to_string());
                let other = wanted.strip_prefix('!');
                match other.map_or(code == *wanted, |other| code != other) {
                    true => Ok(()),
                    false => Err(format!("the exit code is {code}, expected {wanted}")),
                }
            }
            Action::Output(regex) => {
                let regex = self.variables.expand(regex)?;
                let output = self.wait_for_end().await?.output.clone();
                has(&regex, &output, "the output")
            }
            Action::Alone => {
                let client = self.client.as_mut().ok_or("there is no client")?;
                match timeout(self.settings.quiet, client.connections.recv()).await {
                    Ok(Some(_)) => Err("the client connects again".to_owned()),
                    _ => Ok(()),
                }
            }
            Action::Ordered => self.found.disorder.clone().map_or(Ok(()), Err),
            Action::Signed => super::signed::verify(&self.found.last),
        }
    }

    /// Returns whether a connection was opened.
    pub(crate) fn is_open(&self, number: u32) -> bool {
        self.conns.contains_key(&number)
    }

    /// Drops a connection.
    pub(crate) fn forget(&mut self, number: u32) {
        self.conns.remove(&number);
    }

    /// Drops a connection that was closed here, once the peer has closed it, too, or after a while.
    pub(crate) async fn finish(&mut self, number: u32) {
        if let Some(mut conn) = self.conns.remove(&number) {
            conn.finish(self.settings.quiet).await;
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The peer takes nothing.
    pub(crate) async fn send(&mut self, number: u32, frame: Frame) -> Result<(), String> {
        self.log_frame(number, true, &frame);
        let Some(conn) = self.conns.get_mut(&number) else {
            return Ok(());
        };
        let sending = conn.send(frame);
        let sent = timeout(self.settings.timeout, sending).await;
        sent.map_err(|_| "the peer does not read".to_owned())
    }

    /// Receives the next frame of a connection, and reads the others meanwhile, so that pings are answered; `None` if
    /// nothing comes in time.
    pub(super) async fn next(&mut self, number: u32) -> Option<Frame> {
        let (mut own, mut others) = (None, FuturesUnordered::new());
        for (other, conn) in &mut self.conns {
            match *other == number {
                true => own = Some(conn),
                false => others.push(conn.read_ahead()),
            }
        }
        let own = own?;
        let receiving = async {
            tokio::select! {
                biased;
                frame = own.receive() => frame,
                Some(never) = others.next() => never,
            }
        };
        timeout_at(self.deadline, receiving).await.ok()
    }

    async fn wait_for_end(&mut self) -> Result<&Ended, String> {
        if self.found.ended.is_none() {
            let client = self.client.as_mut().ok_or("there is no client")?;
            // A client that closes may wait for the answer, which comes when its Close is read.
            let reading = self.conns.values_mut().map(Conn::read_on);
            let mut reading: FuturesUnordered<_> = reading.collect();
            let ended = timeout_at(self.deadline, async {
                loop {
                    tokio::select! {
                        ended = client.ended.as_mut() => break ended,
                        Some(()) = reading.next() => {}
                    }
                }
            });
            let ended = ended.await;
            drop(reading);
            self.found.ended = Some(ended.map_err(|_| "the client does not end")?);
        }
        self.found
            .ended
            .as_ref()
            .ok_or_else(|| "the client does not end".to_owned())
    }
}
