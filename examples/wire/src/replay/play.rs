//! [`Playback`]: plays one side of all connections of a recording, and compares the other.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, pending};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::Settings;
use super::bind::{Bindings, New};
use super::compare::{Change, Difference, compare, is_of, kind, shown};
use super::script::Script;
use rpc_core::net::{Message, Transport, TransportError};
use rpc_core::testing::Side;
use rpc_core::testing::transcript::{Entry, Kind, hex};
use rpc_core::{CloseFrame, Disconnect, Outgoing};

/// How long nothing else may come before a connection is closed.
const QUIET: Duration = Duration::from_millis(100);
/// How long the other side has for its part of the closing handshake.
const CLOSE_TIME: Duration = Duration::from_secs(5);
/// How many recorded frames are searched for one that came too early.
const AHEAD: usize = 16;

/// Opens the connections of the other side: dials it, or accepts it.
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
    fn open(
        &mut self,
        script: &Script,
        playback: &Playback,
    ) -> impl Future<Output = Result<Option<Self::Transport>, Difference>> + Send;
}

/// One side of a recording that is played, and the other one compared. Its connections share what is
/// bound, and wait for each other.
pub struct Playback {
    scripts: Vec<Script>,
    plays: Side,
    settings: Settings,
    edit: Option<Edit>,
    shared: watch::Sender<Shared>,
}

/// Changes a frame before it is played; `None` leaves it as it is.
type Edit = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Calls for each difference.
type Report<'a> = &'a (dyn Fn(Difference) + Send + Sync);

type Step = (usize, Entry<'static>);

struct Shared {
    bindings: Bindings,
    /// The line of the first thing of each connection that has not happened.
    next: Vec<usize>,
    /// When something happened first and last, and its time in the recording.
    start: Option<(Instant, Duration)>,
    last: Option<(Instant, Duration)>,
    is_stopped: bool,
}

/// Prints the side only.
impl fmt::Debug for Playback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Playback")
            .field("plays", &self.plays)
            .finish_non_exhaustive()
    }
}

impl Playback {
    /// Prepares the replay of this side.
    #[must_use]
    pub fn new(scripts: Vec<Script>, plays: Side, settings: Settings) -> Self {
        let shared = Shared {
            bindings: Bindings::default(),
            next: scripts.iter().map(Script::line).collect(),
            start: None,
            last: None,
            is_stopped: false,
        };
        Self {
            scripts,
            plays,
            settings,
            edit: None,
            shared: watch::Sender::new(shared),
        }
    }

    /// Changes each frame before it is played, for what a recording cannot have: signatures of now.
    /// `None` leaves a frame as it is.
    #[must_use]
    pub fn with_edit(
        mut self,
        edit: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.edit = Some(Box::new(edit));
        self
    }

    /// Binds a value of the recording, in members of any name, before the replay begins.
    #[must_use]
    pub fn with_bound(self, recorded: &str, live: &str) -> Self {
        self.shared
            .send_modify(|shared| shared.bindings.bind_text(recorded, live));
        self
    }

    #[cfg(test)]
    pub(super) const fn plays(&self) -> Side {
        self.plays
    }

    /// Returns the text of a recorded request with the values that are bound in place of its own.
    #[must_use]
    pub fn bound(&self, text: &str) -> String {
        let replaced = self.shared.borrow().bindings.replaced_within(text);
        replaced.unwrap_or_else(|| text.to_owned())
    }

    /// Compares a text with the recorded one, and binds what it has.
    ///
    /// # Errors
    /// What differs.
    pub fn compare(&self, recorded: &str, got: &str) -> Result<(), Vec<Change>> {
        let new = {
            let bindings = &self.shared.borrow().bindings;
            compare(recorded, got, bindings, &self.settings.tolerated)?
        };
        self.bind(new);
        Ok(())
    }

    /// Replays all connections, and calls `report` with each difference.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connections.
    pub async fn run<P: Peer>(&self, peer: P, report: impl FnMut(Difference) + Send) {
        let report = Mutex::new(report);
        let report = &|difference| {
            self.shared
                .send_modify(|shared| shared.is_stopped |= !self.settings.keep_going);
            report.lock().unwrap_or_else(PoisonError::into_inner)(difference);
        };
        let peer = &tokio::sync::Mutex::new(peer);
        let connections = self.scripts.iter().enumerate();
        join_all(connections.map(|(index, script)| async move {
            let opened = self.open(script, &mut *peer.lock().await).await;
            match opened {
                Ok(Some(line)) => self.connection(index, script, line, report).await,
                Ok(None) => {}
                Err(difference) => report(difference),
            }
            self.reach(index, usize::MAX);
        }))
        .await;
    }

    async fn open<P: Peer>(
        &self,
        script: &Script,
        peer: &mut P,
    ) -> Result<Option<P::Transport>, Difference> {
        let Some((line, entry)) = script.entries.first() else {
            return Ok(None);
        };
        let opening = async {
            if self.plays == Side::Client {
                self.turn(*line, entry.at).await;
            }
            peer.open(script, self).await
        };
        let late = async {
            match self.plays {
                Side::Client => pending().await,
                Side::Server => self.late(*line, entry.at).await,
            }
        };
        tokio::select! {
            biased;
            () = self.stopped() => Ok(None),
            opened = opening => opened,
            () = late => Err(script.differs("a connection does not come")),
        }
    }

    /// Replays a connection to its end.
    async fn connection<T: Transport>(
        &self,
        index: usize,
        script: &Script,
        line: T,
        report: Report<'_>,
    ) {
        let steps = script.entries.iter().filter(|(_, entry)| match entry.kind {
            Kind::Text | Kind::Sse => !is_of(&entry.data, &self.settings.ignored),
            kind => matches!(kind, Kind::Binary | Kind::Close | Kind::Eof),
        });
        let mut one = Connection {
            playback: self,
            script,
            steps: steps.cloned().collect(),
            report,
        };
        if let Some((_, entry)) = script.entries.first() {
            self.progress(entry.at);
        }
        let (mut line, mut last) = (line.fuse(), Instant::now());
        let close = loop {
            let next = one.steps.front().cloned();
            self.reach(index, next.as_ref().map_or(usize::MAX, |(line, _)| *line));
            tokio::select! {
                biased;
                () = self.stopped() => {
                    break Some(CloseFrame::new(CloseFrame::INTERNAL, "this is not as recorded"));
                }
                message = line.next() => match came(message) {
                    Some(got) if is_of(&got.data, &self.settings.ignored) => {}
                    Some(got) => {
                        one.came(&got);
                        if is_end(&got) {
                            break None;
                        }
                        last = Instant::now();
                    }
                    None => {}
                },
                () = self.due(next.as_ref(), last) => match next {
                    None => break Some(CloseFrame::new(CloseFrame::NORMAL, "")),
                    Some((_, entry)) if entry.from == Some(self.plays) => {
                        one.steps.pop_front();
                        self.progress(entry.at);
                        let Some(frame) = self.played(&entry) else { return };
                        if let Outgoing::Close(frame) = frame {
                            break Some(frame);
                        }
                        // Reading tells why a line takes no frame.
                        let _ = timeout(self.settings.timeout, line.send(frame)).await;
                        last = Instant::now();
                    }
                    Some(_) => {
                        one.missing("does not come", None);
                        last = Instant::now();
                    }
                },
            }
        };
        self.reach(index, usize::MAX);
        let closing = async {
            if let Some(frame) = close {
                let _ = line.send(Outgoing::Close(frame)).await;
            }
            while line.next().await.is_some_and(|message| message.is_ok()) {}
        };
        let _ = timeout(CLOSE_TIME, closing).await;
    }

    /// Returns the frame that is played for an entry; `None` for an end without a Close.
    fn played(&self, entry: &Entry<'_>) -> Option<Outgoing> {
        Some(match entry.kind {
            Kind::Eof => return None,
            Kind::Close => {
                let code = entry.code.unwrap_or(CloseFrame::NORMAL);
                Outgoing::Close(CloseFrame::new(code, &*entry.data))
            }
            Kind::Binary => Outgoing::Binary(entry.payload().unwrap_or_default().into()),
            _ => {
                let mut played = self.shared.borrow().bindings.play(&entry.data);
                let edited = self.edit.as_ref().and_then(|edit| edit(&played));
                played = edited.unwrap_or(played);
                // Ids of its own are used from now on, too.
                let _ = self.compare(&entry.data, &played);
                Outgoing::Text(played.into())
            }
        })
    }

    /// Waits until the next step of a connection is played, or too late; without one, until the
    /// connection is closed.
    async fn due(&self, next: Option<&Step>, last: Instant) {
        match next {
            Some((line, entry)) if entry.from == Some(self.plays) => {
                self.turn(*line, entry.at).await;
                if is_end(entry) {
                    sleep_until(last + QUIET).await;
                }
            }
            Some((line, entry)) => self.late(*line, entry.at).await,
            None => {
                self.all_before(usize::MAX).await;
                let wait = match self.plays {
                    Side::Client => QUIET,
                    Side::Server => self.settings.timeout,
                };
                sleep_until(last + wait).await;
            }
        }
    }

    /// Waits until all before this line has happened, and it is time for it.
    async fn turn(&self, line: usize, at: Duration) {
        self.all_before(line).await;
        let start = self.shared.borrow().start;
        if let (Some(speed), Some((start, start_at))) = (self.settings.speed, start) {
            let wait = at.saturating_sub(start_at).as_secs_f64() / speed;
            sleep_until(start + Duration::try_from_secs_f64(wait).unwrap_or_default()).await;
        }
    }

    /// Waits until what is recorded in this line is too late.
    async fn late(&self, line: usize, at: Duration) {
        self.wait(|shared| shared.last.is_some()).await;
        self.all_before(line).await;
        let last = self.shared.borrow().last;
        let Some((last, last_at)) = last else { return };
        let speed = self.settings.speed.unwrap_or(1.0).min(1.0);
        let recorded = at.saturating_sub(last_at).as_secs_f64() / speed;
        let recorded = Duration::try_from_secs_f64(recorded).unwrap_or_default();
        sleep_until(last + recorded + self.settings.timeout).await;
    }

    async fn all_before(&self, line: usize) {
        self.wait(|shared| shared.next.iter().all(|next| *next >= line))
            .await;
    }

    async fn stopped(&self) {
        self.wait(|shared| shared.is_stopped).await;
    }

    async fn wait(&self, until: impl Fn(&Shared) -> bool) {
        // It fails only once the sender is gone, which is this one.
        let _ = self.shared.subscribe().wait_for(|it| until(it)).await;
    }

    /// Notes up to where a connection has got.
    fn reach(&self, index: usize, line: usize) {
        self.shared.send_if_modified(|shared| {
            let next = shared.next.get_mut(index);
            next.is_some_and(|next| std::mem::replace(next, line) != line)
        });
    }

    /// Notes that something happened that was recorded at this time.
    fn progress(&self, at: Duration) {
        self.shared.send_modify(|shared| {
            let recorded = shared.last.map_or(at, |(_, last)| at.max(last));
            shared.last = Some((Instant::now(), recorded));
            shared.start = shared.start.or(shared.last);
        });
    }

    fn bind(&self, new: New) {
        self.shared.send_modify(|shared| shared.bindings.bind(new));
    }
}

/// A connection that is replayed.
struct Connection<'a> {
    playback: &'a Playback,
    script: &'a Script,
    /// What has not happened yet.
    steps: VecDeque<Step>,
    report: Report<'a>,
}

impl Connection<'_> {
    /// Returns the places of the next steps of the other side.
    fn awaited(&self) -> impl Iterator<Item = usize> {
        let steps = self.steps.iter().enumerate();
        let others = steps.filter(|(_, (_, entry))| entry.from != Some(self.playback.plays));
        others.map(|(at, _)| at)
    }

    /// Compares what comes with what is awaited.
    fn came(&mut self, got: &Entry<'_>) {
        let Some(at) = self.awaited().next() else {
            return self.came_behind(got);
        };
        let (Err(changes), Some((line, step))) = (self.take(at, got), self.steps.get(at).cloned())
        else {
            return;
        };
        let whole = || vec![Change::new("", Some(shown(&step)), Some(shown(got)))];
        match (is_end(&step), is_end(got)) {
            (false, true) => self.missing("is missing: the connection ends before it", Some(got)),
            (true, true) => {
                self.steps.remove(at);
                self.differ(line, "the connection ends in another way", changes);
            }
            _ if self.has_later(got) => {}
            (false, false) if step.kind == got.kind && kind(&step.data) == kind(&got.data) => {
                self.steps.remove(at);
                self.differ(line, "a frame differs", changes);
            }
            _ => self.differ(line, "another frame comes", whole()),
        }
    }

    /// Handles what comes when nothing is awaited.
    fn came_behind(&self, got: &Entry<'_>) {
        if !is_end(got) {
            let line = self.script.entries.last().map_or(0, |(line, _)| *line);
            let changes = vec![Change::new("", None, Some(shown(got)))];
            return self.differ(line, "a frame comes after all that is recorded", changes);
        }
        // Both may end what neither closes for a reason.
        if let Some((line, step)) = self.steps.front()
            && (!is_end(step) || step.code.is_some() || got.kind == Kind::Close)
        {
            let changes = vec![Change::new("", Some(shown(step)), Some(shown(got)))];
            self.differ(*line, "the other side ends the connection", changes);
        }
    }

    /// Takes a step if it is what came.
    fn take(&mut self, at: usize, got: &Entry<'_>) -> Result<(), Vec<Change>> {
        let Some((_, step)) = self.steps.get(at) else {
            return Ok(());
        };
        let is_same = match (step.kind, got.kind) {
            (Kind::Text | Kind::Sse, Kind::Text) => {
                self.playback.compare(&step.data, &got.data)?;
                true
            }
            // The digits of a payload may be of either case.
            (Kind::Binary, Kind::Binary) => step.data.eq_ignore_ascii_case(&got.data),
            (Kind::Close, Kind::Close) => (step.code, &step.data) == (got.code, &got.data),
            (was, is) => was == is,
        };
        if !is_same {
            return Err(vec![Change::new("", Some(shown(step)), Some(shown(got)))]);
        }
        self.playback.progress(step.at);
        self.steps.remove(at);
        Ok(())
    }

    /// Takes a later step that is what came; those before it are missing.
    fn has_later(&mut self, got: &Entry<'_>) -> bool {
        let later: Vec<_> = self.awaited().skip(1).take(AHEAD).collect();
        let found = later.into_iter().position(|at| self.take(at, got).is_ok());
        for _ in 0..found.map_or(0, |before| before + 1) {
            self.missing("is missing: one recorded later comes", None);
        }
        found.is_some()
    }

    /// Gives up the step that is awaited.
    fn missing(&mut self, why: &str, got: Option<&Entry<'_>>) {
        let at = self.awaited().next();
        let Some((line, step)) = at.and_then(|at| self.steps.remove(at)) else {
            return;
        };
        let what = match step.kind {
            Kind::Close => "a Close",
            Kind::Eof => "the end",
            _ => "a frame",
        };
        self.playback.progress(step.at);
        let changes = vec![Change::new("", Some(shown(&step)), got.map(shown))];
        self.differ(line, &format!("{what} {why}"), changes);
    }

    fn differ(&self, line: usize, what: &str, changes: Vec<Change>) {
        // After a difference, more of them say little.
        if self.playback.shared.borrow().is_stopped {
            return;
        }
        (self.report)(Difference {
            line,
            connection: self.script.number,
            what: what.to_owned(),
            changes,
        });
    }
}

fn is_end(entry: &Entry<'_>) -> bool {
    matches!(entry.kind, Kind::Close | Kind::Eof)
}

/// Returns what came as an entry; `None` for what replays pass over.
fn came(message: Option<Result<Message, TransportError>>) -> Option<Entry<'static>> {
    let entry = |kind, data: String| Some(Entry::new(Duration::ZERO, 0, None, kind, data));
    match message {
        Some(Ok(Message::Text(text))) => entry(Kind::Text, text.as_str().to_owned()),
        Some(Ok(Message::Binary(bytes))) => entry(Kind::Binary, hex(&bytes)),
        Some(Ok(Message::Close(frame))) => {
            let frame = frame.filter(|frame| frame.code != 1005);
            let code = frame.as_ref().map(|frame| frame.code);
            let reason = frame.map_or_else(String::new, |frame| frame.reason);
            entry(Kind::Close, reason).map(|entry| entry.with_code(code))
        }
        Some(Ok(_)) => None,
        Some(Err(error)) => match Disconnect::from(&error) {
            Disconnect::Eof => entry(Kind::Eof, String::new()),
            _ => entry(Kind::Eof, error.to_string()),
        },
        None => entry(Kind::Eof, String::new()),
    }
}
