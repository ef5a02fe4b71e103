//! [`Playback`]: plays one side of all connections of a recording, and compares the other.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use crate::tag;
use crate::transcript::{Entry, Kind};
use rpc_core::testing::Side;
use rpc_core::{CloseFrame, Outgoing};
use tokio::time::{Instant, timeout, timeout_at};

use super::Settings;
use super::bind::Bindings;
use super::compare::{Change, Difference, compare, is_of, shown};
use super::line::Line;
use super::script::Script;

/// Before an end is played, the other side has so long to send what is not recorded.
const QUIET: Duration = Duration::from_millis(100);
/// How many frames may be missing before one that comes.
const AHEAD: usize = 16;

/// The other side of a replay.
pub(crate) trait Peer: Send {
    /// Opens the next connection; `None` if none was opened, as recorded. Fails with what differs.
    fn open(
        &mut self,
        script: &Script,
        playback: &mut Playback,
    ) -> impl Future<Output = Result<Option<Line>, String>> + Send;
}

/// What is played, and what is known of the other side.
pub(crate) struct Playback {
    plays: Side,
    settings: Settings,
    edit: Option<Edit>,
    bindings: Bindings,
    /// When the last frame passed, and its recorded time.
    last: Option<(Instant, Duration)>,
    /// What takes the differences, and how many there were.
    report: Box<dyn FnMut(Difference) + Send + Sync>,
    differences: usize,
}

type Edit = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A line of the recording, and what passed there.
type Step = (usize, Entry<'static>);

/// A connection that is played.
struct Connection {
    script: Script,
    steps: VecDeque<Step>,
    line: Option<Line>,
    /// Whether the last frame that was awaited did not come, and nothing has been sent since.
    is_silent: bool,
}

impl Playback {
    /// Creates a playback of this side.
    pub(crate) fn new(plays: Side, settings: Settings) -> Self {
        Self {
            plays,
            settings,
            edit: None,
            bindings: Bindings::default(),
            last: None,
            report: Box::new(|_| {}),
            differences: 0,
        }
    }

    /// Passes each text through a function before it is played, which returns what to play instead, if anything.
    pub(crate) fn with_edit(
        mut self,
        edit: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.edit = Some(Box::new(edit));
        self
    }

    /// Binds a recorded text, such as a token, to the one that is used now.
    pub(crate) fn with_bound(mut self, recorded: &str, live: &str) -> Self {
        self.bindings.bind_text(recorded, live);
        self
    }

    /// Returns a text with what is bound in the place of what is recorded.
    pub(crate) fn bound(&self, text: &str) -> String {
        let replaced = self.bindings.replaced_within(text);
        replaced.unwrap_or_else(|| text.to_owned())
    }

    /// Compares a text with the recorded one, and binds what is new in it.
    ///
    /// # Errors
    /// They differ.
    pub(crate) fn compare(&mut self, recorded: &str, got: &str) -> Result<(), Vec<Change>> {
        let new = compare(recorded, got, &self.bindings, &self.settings.tolerated)?;
        self.bindings.bind(new);
        Ok(())
    }

    /// Plays all connections, in the order of the lines of the recording, reports each difference, and returns how many
    /// there were.
    pub(crate) async fn run<P: Peer>(
        mut self,
        scripts: Vec<Script>,
        mut peer: P,
        report: impl FnMut(Difference) + Send + Sync + 'static,
    ) -> usize {
        self.report = Box::new(report);
        let lines = scripts.iter().enumerate();
        let lines = lines.flat_map(|(at, script)| script.entries.iter().map(move |it| (it.0, at)));
        let mut lines: Vec<_> = lines.collect();
        lines.sort_unstable();
        let mut all: Vec<_> = scripts.into_iter().map(|it| self.connection(it)).collect();
        for (line, at) in lines {
            let Some(one) = all.get_mut(at) else { continue };
            if one.script.line() == line {
                match self.open(&one.script, &mut peer).await {
                    Ok(opened) => one.line = opened,
                    Err(difference) => self.report(difference),
                }
            }
            while one.line.is_some() && one.steps.front().is_some_and(|step| step.0 == line) {
                self.step(one).await;
            }
        }
        let last = Instant::now();
        let wait = match self.plays {
            Side::Client => QUIET,
            Side::Server => self.settings.timeout,
        };
        for one in &mut all {
            self.listen(one, last + wait).await;
            if let Some(mut line) = one.line.take() {
                line.send(Outgoing::Close(CloseFrame::new(CloseFrame::NORMAL, "")))
                    .await;
            }
        }
        self.differences
    }

    fn report(&mut self, difference: Difference) {
        self.differences += 1;
        (self.report)(difference);
    }

    fn connection(&self, script: Script) -> Connection {
        let steps = script.entries.iter().filter(|(_, entry)| match entry.kind {
            Kind::Text | Kind::Sse => !is_of(&entry.data, &self.settings.ignored),
            kind => matches!(kind, Kind::Binary | Kind::Close | Kind::Eof),
        });
        Connection {
            steps: steps.cloned().collect(),
            script,
            line: None,
            is_silent: false,
        }
    }

    async fn open<P: Peer>(
        &mut self,
        script: &Script,
        peer: &mut P,
    ) -> Result<Option<Line>, Difference> {
        let Some((_, entry)) = script.entries.first() else {
            return Ok(None);
        };
        let at = entry.at;
        // The first client may take its time.
        let deadline = self.deadline(at).filter(|_| self.plays == Side::Server);
        let opening = peer.open(script, self);
        let opened = match deadline {
            Some(deadline) => timeout_at(deadline, opening).await,
            None => Ok(opening.await),
        };
        self.progress(at);
        let opened = opened.unwrap_or_else(|_| Err("a connection does not come".to_owned()));
        opened.map_err(|what| script.differs(what))
    }

    /// Plays the next step of a connection, or waits for it.
    async fn step(&mut self, one: &mut Connection) {
        let Some((number, entry)) = one.steps.front().cloned() else {
            return;
        };
        if entry.from != Some(self.plays) {
            let deadline = self.deadline(entry.at).filter(|_| !one.is_silent);
            let deadline = deadline.unwrap_or_else(Instant::now);
            let was_silent = one.is_silent;
            return match self.receive(one, deadline).await {
                Some(got) => self.came(one, &got),
                None => {
                    one.is_silent = true;
                    let why = match was_silent {
                        true => "is missing, too: it was not waited for",
                        false => "does not come",
                    };
                    self.missing(one, why, None);
                }
            };
        }
        one.is_silent = false;
        if is_end(&entry) {
            self.listen(one, Instant::now() + QUIET).await;
        }
        one.steps.pop_front();
        self.progress(entry.at);
        let frame = self.played(&entry);
        let mut is_last = !matches!(frame, Some(Outgoing::Text(_) | Outgoing::Binary(_)));
        if let (Some(line), Some(frame)) = (&mut one.line, frame) {
            let sent = timeout(self.settings.timeout, line.send(frame)).await;
            if sent.is_err() {
                is_last = true;
                let what = "the other side does not take this frame in time, and gets no other one";
                self.report(one.differs(number, what, Vec::new()));
            }
        }
        if is_last {
            one.line = None;
        }
    }

    /// Returns what comes that is not ignored; `None` if nothing does.
    async fn receive(&self, one: &mut Connection, deadline: Instant) -> Option<Entry<'static>> {
        let line = one.line.as_mut()?;
        loop {
            let got = timeout_at(deadline, line.next()).await.ok()?;
            one.is_silent = false;
            if !is_of(&got.data, &self.settings.ignored) {
                return Some(got);
            }
        }
    }

    /// Takes what comes until a time, which is not awaited.
    async fn listen(&mut self, one: &mut Connection, until: Instant) {
        while let Some(got) = self.receive(one, until).await {
            self.came(one, &got);
        }
    }

    /// Returns the frame to play; `None` for an end without a Close.
    fn played(&mut self, entry: &Entry<'_>) -> Option<Outgoing> {
        Some(match entry.kind {
            Kind::Eof => return None,
            Kind::Close => {
                let code = entry.code.unwrap_or(CloseFrame::NORMAL);
                Outgoing::Close(CloseFrame::new(code, &*entry.data))
            }
            Kind::Binary => Outgoing::Binary(entry.payload().unwrap_or_default().into()),
            _ => {
                let mut played = self.bindings.play(&entry.data);
                let edited = self.edit.as_ref().and_then(|edit| edit(&played));
                played = edited.unwrap_or(played);
                // Ids of its own are used from now on, too.
                let _ = self.compare(&entry.data, &played);
                Outgoing::Text(played.into())
            }
        })
    }

    /// Returns until when something may come, that came at this time of the recording.
    fn deadline(&self, at: Duration) -> Option<Instant> {
        let (last, last_at) = self.last?;
        Some(last + at.saturating_sub(last_at) + self.settings.timeout)
    }

    fn progress(&mut self, at: Duration) {
        let recorded = self.last.map_or(at, |(_, last)| at.max(last));
        self.last = Some((Instant::now(), recorded));
    }

    /// Compares what comes with what is awaited.
    fn came(&mut self, one: &mut Connection, got: &Entry<'_>) {
        if is_end(got) {
            one.line = None;
        }
        let Some(at) = one.awaited(self.plays).next() else {
            return self.came_behind(one, got);
        };
        let (Err(changes), Some((line, step))) =
            (self.take(one, at, got), one.steps.get(at).cloned())
        else {
            return;
        };
        match (is_end(&step), is_end(got)) {
            (false, true) => {
                let why = "is missing: the connection ends before it";
                self.missing(one, why, Some(got));
            }
            (true, true) => {
                one.steps.remove(at);
                self.report(one.differs(line, "the connection ends in another way", changes));
            }
            _ if self.has_later(one, got) => {}
            (false, false) if step.kind == got.kind && tag(&step.data) == tag(&got.data) => {
                one.steps.remove(at);
                self.report(one.differs(line, "a frame differs", changes));
            }
            _ => {
                let changes = vec![Change::new("", Some(shown(&step)), Some(shown(got)))];
                self.report(one.differs(line, "another frame comes", changes));
            }
        }
    }

    /// Takes what comes as this step, if it is.
    fn take(
        &mut self,
        one: &mut Connection,
        at: usize,
        got: &Entry<'_>,
    ) -> Result<(), Vec<Change>> {
        let Some((_, step)) = one.steps.get(at) else {
            return Ok(());
        };
        let is_same = match (step.kind, got.kind) {
            (Kind::Text | Kind::Sse, Kind::Text) => {
                self.compare(&step.data, &got.data)?;
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
        self.progress(step.at);
        one.steps.remove(at);
        Ok(())
    }

    /// Takes what comes as one of the next steps, and reports those before it as missing.
    fn has_later(&mut self, one: &mut Connection, got: &Entry<'_>) -> bool {
        let later: Vec<_> = one.awaited(self.plays).skip(1).take(AHEAD).collect();
        let mut later = later.into_iter();
        let found = later.position(|at| self.take(one, at, got).is_ok());
        for _ in 0..found.map_or(0, |before| before + 1) {
            self.missing(one, "was deleted: one recorded later comes", None);
        }
        found.is_some()
    }

    /// Reports what comes where nothing of the other side is awaited any more.
    fn came_behind(&mut self, one: &Connection, got: &Entry<'_>) {
        if !is_end(got) {
            let line = one.script.entries.last().map_or(0, |(line, _)| *line);
            let changes = vec![Change::new("", None, Some(shown(got)))];
            self.report(one.differs(line, "a frame comes after all that is recorded", changes));
        } else if let Some((line, step)) = one.steps.front()
            // Both may end what neither closes for a reason.
            && (!is_end(step) || step.code.is_some() || got.kind == Kind::Close)
        {
            let changes = vec![Change::new("", Some(shown(step)), Some(shown(got)))];
            self.report(one.differs(*line, "the other side ends the connection", changes));
        }
    }

    fn missing(&mut self, one: &mut Connection, why: &str, got: Option<&Entry<'_>>) {
        let at = one.awaited(self.plays).next();
        let Some((line, step)) = at.and_then(|at| one.steps.remove(at)) else {
            return;
        };
        let what = match step.kind {
            _ if why.starts_with("was") => &format!("line {line}"),
            Kind::Close => "a Close",
            Kind::Eof => "the end",
            _ => "a frame",
        };
        self.progress(step.at);
        let changes = vec![Change::new("", Some(shown(&step)), got.map(shown))];
        self.report(one.differs(line, &format!("{what} {why}"), changes));
    }
}

impl Connection {
    /// Returns the places of the steps of the other side.
    fn awaited(&self, plays: Side) -> impl Iterator<Item = usize> {
        let steps = self.steps.iter().enumerate();
        let others = steps.filter(move |(_, (_, entry))| entry.from != Some(plays));
        others.map(|(at, _)| at)
    }

    fn differs(&self, line: usize, what: &str, changes: Vec<Change>) -> Difference {
        Difference {
            line,
            changes,
            ..self.script.differs(what)
        }
    }
}

fn is_end(entry: &Entry<'_>) -> bool {
    matches!(entry.kind, Kind::Close | Kind::Eof)
}
