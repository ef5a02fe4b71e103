//! [`Replay`]: plays one side of a connection, and checks the other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Settings;
use super::bind::Bindings;
use super::compare::{Change, Difference, closed, compare, is_of, kind, shown};
use super::script::{Act, Recording, Script, Step};
use crate::Instant;
use crate::error::Disconnect;
use crate::machine::Machine;
use crate::message::{CloseFrame, Incoming, Outgoing};
use crate::testing::Side;

/// How often a connection looks whether another one has got so far that it can go on.
pub(super) const LOOK: Duration = Duration::from_millis(5);
/// How many recorded frames are searched for one that came too early.
const AHEAD: usize = 16;

/// The replay of a whole recording: its connections share what is bound, and wait for each other.
#[derive(Clone)]
pub struct Playback {
    pub(super) recording: Arc<Recording>,
    pub(super) plays: Side,
    pub(super) settings: Arc<Settings>,
    edit: Option<Edit>,
    shared: Arc<Mutex<Shared>>,
}

/// Changes a frame before it is played; `None` leaves it as it is.
type Edit = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Prints the side only.
impl fmt::Debug for Playback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Playback")
            .field("plays", &self.plays)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Shared {
    bindings: Bindings,
    /// The line of the first thing of each connection that has not happened; `None` if all has.
    next: Vec<Option<usize>>,
    /// When something happened last, and its time in the recording.
    last: Option<(Instant, Duration)>,
    /// When the first thing happened, and its time in the recording.
    start: Option<(Instant, Duration)>,
    stopped: bool,
    /// What was found, for who runs all connections.
    #[cfg(feature = "tokio")]
    found: Vec<Difference>,
}

impl Playback {
    /// Prepares the replay of this side.
    #[must_use]
    pub fn new(mut recording: Recording, plays: Side, settings: Settings) -> Self {
        for script in &mut recording.connections {
            script.steps.retain(
                |step| !matches!(&step.act, Act::Text(text) if is_of(text, &settings.ignored)),
            );
            if plays == Side::Server {
                script.hasten_end();
            }
        }
        let next = recording.connections.iter().map(|it| Some(it.line));
        let shared = Shared {
            next: next.collect(),
            ..Shared::default()
        };
        Self {
            recording: Arc::new(recording),
            plays,
            settings: Arc::new(settings),
            edit: None,
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// Changes each frame before it is played, for what a recording cannot have: signatures of now.
    /// `None` leaves a frame as it is.
    #[must_use]
    pub fn with_edit(
        mut self,
        edit: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.edit = Some(Arc::new(edit));
        self
    }

    /// Binds a value of the recording, in members of any name, before the replay begins.
    #[must_use]
    pub fn with_bound(self, recorded: &str, live: &str) -> Self {
        self.lock().bindings.bind_text(recorded, live);
        self
    }

    /// Returns the connections.
    #[must_use]
    pub fn connections(&self) -> &[Script] {
        &self.recording.connections
    }

    /// Starts the connection with this index, which has just been opened; `None` if there is none.
    #[must_use]
    pub fn connection(&self, index: usize, now: Instant) -> Option<Replay> {
        let script = self.recording.connections.get(index)?;
        let mut replay = Replay {
            playback: self.clone(),
            index,
            sent: 0,
            came: 0,
            last: now,
            wake: None,
            out: VecDeque::new(),
            differences: VecDeque::new(),
            is_closing: false,
            is_closed: false,
        };
        replay.progress(script.at, now);
        replay.settle(now);
        Some(replay)
    }

    /// Returns the text of a recorded request with the values that are bound in place of its own.
    #[must_use]
    pub fn bound(&self, text: &str) -> String {
        let replaced = self.lock().bindings.replaced_within(text);
        replaced.unwrap_or_else(|| text.to_owned())
    }

    /// Compares a text that came with a recorded one of this connection, and binds what it has: for
    /// bodies of requests.
    ///
    /// # Errors
    /// What differs.
    pub fn compare(&self, script: &Script, recorded: &str, got: &str) -> Result<(), Difference> {
        let mut shared = self.lock();
        let compared = compare(recorded, got, &shared.bindings, &self.settings.tolerated);
        let new = compared.map_err(|changes| Difference {
            changes,
            ..script.differs("the body of the request differs")
        })?;
        shared.bindings.bind(new);
        Ok(())
    }

    /// Returns whether a difference has ended the replay.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Says that a connection was refused as recorded, or never came.
    pub fn skip(&self, index: usize) {
        if let Some(next) = self.lock().next.get_mut(index) {
            *next = None;
        }
    }

    /// Returns whether a connection has to be opened now; otherwise when to ask again.
    ///
    /// # Errors
    /// The time to ask again.
    pub fn turn(&self, index: usize, now: Instant) -> Result<(), Instant> {
        match self.recording.connections.get(index) {
            Some(script) => self.gate(script.line, script.at, now),
            None => Ok(()),
        }
    }

    /// Returns when a connection that the other side opens is too late; `None` if others are not so far.
    #[cfg(feature = "tokio")]
    pub(super) fn late_at(&self, index: usize) -> Option<Instant> {
        let script = self.recording.connections.get(index)?;
        self.deadline(script.line, script.at)
    }

    fn stop(&self) {
        self.lock().stopped = !self.settings.keep_going;
    }

    /// Keeps a difference for [`take_differences`](Self::take_differences).
    #[cfg(feature = "tokio")]
    pub(super) fn found(&self, difference: Difference) {
        self.stop();
        self.lock().found.push(difference);
    }

    #[cfg(feature = "tokio")]
    pub(super) fn take_differences(&self, report: impl FnMut(Difference)) {
        let found = std::mem::take(&mut self.lock().found);
        found.into_iter().for_each(report);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all before this line has happened, and it is time for it; otherwise when to look again.
    fn gate(&self, line: usize, at: Duration, now: Instant) -> Result<(), Instant> {
        let shared = self.lock();
        if shared.next.iter().flatten().any(|next| *next < line) {
            return Err(now + LOOK);
        }
        let (Some(speed), Some((start, start_at))) = (self.settings.speed, shared.start) else {
            return Ok(());
        };
        let wait = at.saturating_sub(start_at).as_secs_f64() / speed;
        let due = start + Duration::try_from_secs_f64(wait).unwrap_or_default();
        if now < due { Err(due) } else { Ok(()) }
    }

    /// Until when what is recorded in this line has to come; `None` if it is not its turn.
    fn deadline(&self, line: usize, at: Duration) -> Option<Instant> {
        let shared = self.lock();
        let (last, last_at) = shared.last?;
        if shared.next.iter().flatten().any(|next| *next < line) {
            return None;
        }
        let speed = self.settings.speed.unwrap_or(1.0).min(1.0);
        let recorded = at.saturating_sub(last_at).as_secs_f64() / speed;
        let recorded = Duration::try_from_secs_f64(recorded).unwrap_or_default();
        Some(last + recorded + self.settings.timeout)
    }
}

/// One connection of a recording, as a machine: it plays one side and checks the other. Its events are
/// the differences. After the first one it closes with 1011, unless it [keeps going](Settings::keep_going).
#[derive(Debug)]
pub struct Replay {
    playback: Playback,
    index: usize,
    /// The first step that is not played yet, and the first one that has not come. Both count all steps.
    sent: usize,
    came: usize,
    last: Instant,
    wake: Option<Instant>,
    out: VecDeque<Outgoing>,
    differences: VecDeque<Difference>,
    is_closing: bool,
    is_closed: bool,
}

impl Replay {
    fn steps(&self) -> &[Step] {
        let script = self.playback.recording.connections.get(self.index);
        script.map_or(&[], |script| &script.steps)
    }

    fn next(&self, from: usize, is_own: bool) -> Option<(usize, Step)> {
        let steps = self.steps().iter().enumerate().skip(from);
        let found = steps
            .into_iter()
            .find(|(_, step)| (step.from == self.playback.plays) == is_own);
        found.map(|(at, step)| (at, step.clone()))
    }

    fn awaited(&self) -> Option<(usize, Step)> {
        self.next(self.came, false)
    }

    fn progress(&mut self, at: Duration, now: Instant) {
        self.last = now;
        let lines = [self.next(self.sent, true), self.awaited()];
        let next = lines.into_iter().flatten().map(|(_, step)| step.line).min();
        let mut shared = self.playback.lock();
        if let Some(mine) = shared.next.get_mut(self.index) {
            *mine = next.filter(|_| !self.is_closing);
        }
        let recorded = shared
            .last
            .map_or(at, |(_, last)| if at > last { at } else { last });
        shared.last = Some((now, recorded));
        shared.start = shared.start.or(shared.last);
    }

    /// Plays what is due, and notes when to look again.
    fn settle(&mut self, now: Instant) {
        self.wake = None;
        while !self.is_closing && !self.is_closed {
            let (own, awaited) = (self.next(self.sent, true), self.awaited());
            match (own, awaited) {
                (Some((at, step)), awaited)
                    if awaited.as_ref().is_none_or(|(other, _)| at < *other) =>
                {
                    if let Err(wake) = self.gate(&step, now) {
                        self.wake = Some(wake);
                        return;
                    }
                    self.sent = at + 1;
                    self.play(step.act);
                    self.progress(step.at, now);
                }
                (_, Some((_, step))) => {
                    let deadline = self.playback.deadline(step.line, step.at);
                    self.wake = Some(deadline.unwrap_or(now + LOOK));
                    return;
                }
                _ => {
                    if let Err(wake) = self.end(now) {
                        self.wake = Some(wake);
                        return;
                    }
                }
            }
        }
    }

    fn gate(&self, step: &Step, now: Instant) -> Result<(), Instant> {
        self.playback.gate(step.line, step.at, now)?;
        let quiet = self.last + self.playback.settings.quiet;
        match step.act {
            Act::Close(..) | Act::Eof if now < quiet => Err(quiet),
            _ => Ok(()),
        }
    }

    fn play(&mut self, act: Act) {
        let frame = match act {
            Act::Text(text) => {
                let edit = &self.playback.edit;
                let mut shared = self.playback.lock();
                let mut played = shared.bindings.play(&text);
                if let Some(edited) = edit.as_ref().and_then(|edit| edit(&played)) {
                    played = edited;
                }
                // Ids of its own are used from now on, too.
                if let Ok(new) = compare(&text, &played, &shared.bindings, &[]) {
                    shared.bindings.bind(new);
                }
                Outgoing::Text(played.into())
            }
            Act::Binary(bytes) => Outgoing::Binary(bytes.into()),
            Act::Close(code, reason) => {
                self.is_closing = true;
                Outgoing::Close(CloseFrame::new(code.unwrap_or(CloseFrame::NORMAL), reason))
            }
            Act::Eof => {
                self.is_closing = true;
                let script = self.playback.recording.connections.get(self.index);
                match script.is_some_and(|script| script.is_plain) {
                    true => Outgoing::Close(CloseFrame::new(CloseFrame::NORMAL, "")),
                    false => Outgoing::Abort,
                }
            }
        };
        self.out.push_back(frame);
    }

    /// Closes once all has passed, here and on the other connections.
    fn end(&mut self, now: Instant) -> Result<(), Instant> {
        let settings = &self.playback.settings;
        let wait = match self.playback.plays {
            Side::Client => settings.quiet,
            Side::Server => settings.timeout,
        };
        self.playback.gate(usize::MAX, Duration::ZERO, now)?;
        if now < self.last + wait {
            return Err(self.last + wait);
        }
        self.close(CloseFrame::new(CloseFrame::NORMAL, ""));
        Ok(())
    }

    fn close(&mut self, frame: CloseFrame) {
        if !self.is_closing {
            self.is_closing = true;
            self.out.push_back(Outgoing::Close(frame));
        }
        self.playback.skip(self.index);
    }

    fn differ(&mut self, line: usize, what: impl Into<String>, changes: Vec<Change>) {
        let connection = self.playback.recording.connections.get(self.index);
        self.differences.push_back(Difference {
            line,
            connection: connection.map_or(0, |script| script.number),
            what: what.into(),
            changes,
        });
        self.playback.stop();
        if !self.playback.settings.keep_going {
            self.close(CloseFrame::new(
                CloseFrame::INTERNAL,
                "this is not as recorded",
            ));
        }
    }

    fn missing(&mut self, at: usize, step: &Step, why: &str, now: Instant) {
        let what = match &step.act {
            Act::Close(..) => format!("a Close {why}"),
            Act::Eof => format!("the end {why}"),
            _ => format!("a frame {why}"),
        };
        self.came = at + 1;
        self.progress(step.at, now);
        let recorded = vec![Change::new("", Some(shown(&step.act)), None)];
        self.differ(step.line, what, recorded);
    }

    fn frame(&mut self, got: &Act, now: Instant) {
        let Some((at, step)) = self.awaited() else {
            let line = self
                .steps()
                .last()
                .map_or_else(|| self.first_line(), |step| step.line);
            let changes = vec![Change::new("", None, Some(shown(got)))];
            return self.differ(line, "a frame comes behind all that is recorded", changes);
        };
        let changes = match self.try_step(&step, got) {
            Ok(()) => {
                self.came = at + 1;
                return self.progress(step.at, now);
            }
            Err(changes) => changes,
        };
        if let Some((later, found)) = self.find_later(at, got) {
            let (mut from, why) = (self.came, "is missing: one recorded later comes");
            while let Some((at, step)) = self.next(from, false).filter(|(at, _)| *at < later) {
                if self.is_closing {
                    return;
                }
                from = at + 1;
                self.missing(at, &step, why, now);
            }
            self.came = later + 1;
            return self.progress(found.at, now);
        }
        let same_kind = match (&step.act, got) {
            (Act::Text(was), Act::Text(is)) => kind(was) == kind(is),
            (was, is) => std::mem::discriminant(was) == std::mem::discriminant(is),
        };
        if same_kind {
            self.came = at + 1;
            self.progress(step.at, now);
            self.differ(step.line, "a frame differs", changes);
        } else {
            let changes = vec![Change::new("", Some(shown(&step.act)), Some(shown(got)))];
            self.differ(step.line, "another frame comes", changes);
        }
    }

    fn first_line(&self) -> usize {
        let script = self.playback.recording.connections.get(self.index);
        script.map_or(0, |script| script.line)
    }

    /// Compares a frame with a step, and binds what it has.
    fn try_step(&self, step: &Step, got: &Act) -> Result<(), Vec<Change>> {
        let mut shared = self.playback.lock();
        match (&step.act, got) {
            (Act::Text(was), Act::Text(is)) => {
                let tolerated = &self.playback.settings.tolerated;
                let new = compare(was, is, &shared.bindings, tolerated)?;
                shared.bindings.bind(new);
                Ok(())
            }
            (was, is) if was == is => Ok(()),
            (was, is) => Err(vec![Change::new("", Some(shown(was)), Some(shown(is)))]),
        }
    }

    /// Finds a later frame that this one is.
    fn find_later(&self, at: usize, got: &Act) -> Option<(usize, Step)> {
        let mut from = at + 1;
        for _ in 0..AHEAD {
            let (later, step) = self.next(from, false)?;
            if self.try_step(&step, got).is_ok() {
                return Some((later, step));
            }
            from = later + 1;
        }
        None
    }

    fn ended(&mut self, why: &Disconnect, now: Instant) {
        let how = match why {
            Disconnect::PeerClosed(frame) => shown(&closed(frame.as_ref())),
            Disconnect::Failed { message } => format!("the connection failed: {message}"),
            _ => "the connection ends without a Close".to_owned(),
        };
        let Some((at, step)) = self.awaited() else {
            let own = self.next(self.sent, true).map(|(_, step)| step);
            // Both may end what neither closes.
            if let Some(step) = own.filter(|step| step.act != Act::Eof || how.starts_with("Close"))
            {
                let changes = vec![Change::new("", Some(shown(&step.act)), Some(how))];
                self.differ(step.line, "the other side ends the connection", changes);
            }
            return;
        };
        let changes = match (&step.act, why) {
            (Act::Eof, Disconnect::Eof | Disconnect::Failed { .. }) => Vec::new(),
            (Act::Close(code, reason), Disconnect::PeerClosed(frame)) => {
                let got = closed(frame.as_ref());
                let Act::Close(got_code, got_reason) = got else {
                    return;
                };
                let number = |code: &Option<u16>| code.map(|code| code.to_string());
                let mut changes = Vec::new();
                if *code != got_code {
                    changes.push(Change::new("code", number(code), number(&got_code)));
                }
                if *reason != got_reason {
                    let text = |text: &str| Some(format!("{text:?}"));
                    changes.push(Change::new("reason", text(reason), text(&got_reason)));
                }
                changes
            }
            (Act::Close(..) | Act::Eof, _) => {
                vec![Change::new("", Some(shown(&step.act)), Some(how))]
            }
            _ => {
                let why = "is missing: the connection ends before it";
                let recorded = Change::new("", Some(shown(&step.act)), Some(how));
                self.missing(at, &step, why, now);
                if let Some(last) = self.differences.back_mut() {
                    last.changes = vec![recorded];
                }
                return;
            }
        };
        self.came = at + 1;
        self.progress(step.at, now);
        if !changes.is_empty() {
            self.differ(step.line, "the connection ends in another way", changes);
        }
    }
}

impl Machine for Replay {
    type Event = Difference;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        if self.is_closing || self.is_closed {
            return;
        }
        match message {
            Incoming::Text(text) if is_of(text, &self.playback.settings.ignored) => {}
            Incoming::Text(text) => self.frame(&Act::Text(text.to_owned()), now),
            Incoming::Binary(bytes) => self.frame(&Act::Binary(bytes.to_vec()), now),
            _ => {}
        }
        self.settle(now);
    }

    fn handle_disconnect(&mut self, why: Disconnect, now: Instant) {
        if !self.is_closing && !self.is_closed {
            self.ended(&why, now);
        }
        self.is_closed = true;
        self.is_closing = true;
        self.wake = None;
        self.out.clear();
        self.playback.skip(self.index);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.wake.is_none_or(|wake| now < wake) {
            return;
        }
        self.settle(now);
        let own = self.next(self.sent, true);
        if let Some((at, step)) = self.awaited().filter(|_| !self.is_closing)
            && own.is_none_or(|(own, _)| at < own)
            && self
                .playback
                .deadline(step.line, step.at)
                .is_some_and(|deadline| deadline <= now)
        {
            self.missing(at, &step, "does not come", now);
            self.settle(now);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    fn poll_event(&mut self) -> Option<Difference> {
        self.differences.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.wake.filter(|_| !self.is_closed)
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}
