//! [`run`]: plays the steps of a recording, and reports each difference.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::difference::{Change, Difference, changes, whole};
use super::{Options, is_of};
use crate::check::Suite;
use crate::pattern::Pattern;
use crate::play::{Action, Awaited, Expected, Frame, NO_CODE, Peer, Player, Settings, Step};
use crate::tag;
use rpc_core::CloseFrame;

/// Before an end is played, the other side has so long to send what is not recorded.
const QUIET: Duration = Duration::from_millis(100);
/// How many frames may be missing before one that comes.
const AHEAD: usize = 16;

/// What returns the text to play in place of a recorded one, if another.
pub(crate) type Edit = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A recording that is played.
struct Replay<'a, R> {
    player: Player<'a>,
    options: &'a Options,
    edit: Option<Edit>,
    all: Vec<&'a Step>,
    /// Those that have not passed.
    steps: Vec<Option<&'a Step>>,
    /// The one that is played.
    at: usize,
    /// Connections on which a frame did not come, and nothing has been sent since.
    silent: BTreeSet<u32>,
    /// On each connection, the frame that is not the one that is awaited: the next one says why.
    odd: BTreeMap<u32, Frame>,
    report: R,
    differences: usize,
}

/// Plays the steps of a recording in its order, reports each difference, and returns how many there were.
///
/// # Errors
/// Nothing can be played.
///
/// # Cancel safety
/// Dropping the future drops the connections.
pub(crate) async fn run(
    suite: &Suite,
    peer: &Peer,
    settings: &Settings,
    (options, edit): (&Options, Option<Edit>),
    report: impl FnMut(Difference),
) -> Result<usize, String> {
    let steps: Vec<_> = suite.rows.iter().flat_map(|row| &row.steps).collect();
    let mut replay = Replay {
        player: Player::new(suite, peer, settings, settings.variables.clone()),
        options,
        edit,
        steps: steps.iter().copied().map(Some).collect(),
        all: steps,
        at: 0,
        silent: BTreeSet::new(),
        odd: BTreeMap::new(),
        report,
        differences: 0,
    };
    replay.player.start().await?;
    while replay.at < replay.all.len() {
        replay.step(replay.at).await;
        replay.at += 1;
    }
    let wait = match peer {
        Peer::Server(..) => QUIET,
        Peer::Client(_) => options.timeout,
    };
    let until = Instant::now() + wait;
    let numbers: BTreeSet<_> = replay.all.iter().map(|step| step.connection).collect();
    for number in numbers {
        replay.listen(number, until).await;
        let bye = Frame::Close(CloseFrame::NORMAL, String::new());
        if replay.player.is_open(number) && replay.player.send(number, bye).await.is_ok() {
            replay.player.finish(number).await;
        }
    }
    Ok(replay.differences)
}

impl<'a, R: FnMut(Difference)> Replay<'a, R> {
    fn report(&mut self, step: &Step, what: &str, changes: Vec<Change>) {
        self.differences += 1;
        (self.report)(Difference {
            line: step.number,
            connection: step.connection,
            what: what.to_owned(),
            changes,
        });
    }

    fn pending(&self, at: usize) -> Option<&'a Step> {
        self.steps.get(at).copied().flatten()
    }

    fn pass(&mut self, at: usize) -> Option<&'a Step> {
        self.steps.get_mut(at)?.take()
    }

    /// Plays a step, or waits for it.
    async fn step(&mut self, at: usize) {
        let Some(step) = self.pending(at) else { return };
        let number = step.connection;
        match &step.action {
            Action::Ask(ask) => {
                self.pass(at);
                self.player.begin(step);
                if let Err(why) = self.player.ask(number, ask).await {
                    self.report(step, &why, Vec::new());
                }
            }
            _ if !self.player.is_open(number) => {}
            Action::Send(frame) => {
                self.silent.remove(&number);
                if frame.is_end() {
                    self.listen(number, Instant::now() + QUIET).await;
                }
                self.pass(at);
                let frame = self.played(frame);
                if self.player.send(number, frame.clone()).await.is_err() {
                    let what =
                        "the other side does not take this frame in time, and gets no other one";
                    self.report(step, what, Vec::new());
                    self.player.forget(number);
                } else if frame.is_end() {
                    self.player.finish(number).await;
                }
            }
            _ => {
                self.player.begin(step);
                let was_silent = self.silent.contains(&number);
                let deadline = match was_silent {
                    true => Instant::now(),
                    false => self.player.deadline,
                };
                while self.pending(at).is_some() && self.player.is_open(number) {
                    self.player.deadline = match self.odd.contains_key(&number) {
                        true => deadline.min(Instant::now() + QUIET),
                        false => deadline,
                    };
                    match self.receive(number).await {
                        Some(frame) => self.came(number, frame),
                        None if self.settle(number) => {}
                        None => {
                            self.silent.insert(number);
                            let why = match was_silent {
                                true => "is missing, too: it was not waited for",
                                false => "does not come",
                            };
                            self.missing(number, why, None);
                        }
                    }
                }
            }
        }
    }

    /// Returns what comes that is not ignored; `None` if nothing does.
    async fn receive(&mut self, number: u32) -> Option<Frame> {
        while let Ok(Some(frame)) = self.player.receive(number).await {
            match &frame {
                Frame::Ping(_) | Frame::Pong(_) => {}
                Frame::Text(text) if is_of(text, &self.options.ignored) => {
                    self.silent.remove(&number);
                }
                _ => {
                    self.silent.remove(&number);
                    return Some(frame);
                }
            }
        }
        None
    }

    /// Takes what comes until a time, which is not awaited.
    async fn listen(&mut self, number: u32, until: Instant) {
        self.player.deadline = until;
        while self.player.is_open(number)
            && let Some(frame) = self.receive(number).await
        {
            self.came(number, frame);
        }
        self.settle(number);
    }

    /// Returns the frame to play in place of a recorded one.
    fn played(&mut self, frame: &Frame) -> Frame {
        let Frame::Text(recorded) = frame else {
            return match frame {
                Frame::Close(NO_CODE, _) => Frame::Close(CloseFrame::NORMAL, String::new()),
                frame => frame.clone(),
            };
        };
        let live = self.player.variables.live(recorded);
        let edited = self.edit.as_ref().and_then(|edit| edit(&live));
        let live = edited.unwrap_or(live);
        // Ids of its own are used from now on, too.
        let pattern = Pattern::recorded(recorded, &[].into());
        if let Ok(bound) = pattern.matches_all(&live, &self.player.variables) {
            self.player.variables.bind(bound);
        }
        Frame::Text(live)
    }

    /// Returns the places of the steps of the other side.
    fn awaited(&self, number: u32) -> impl Iterator<Item = usize> {
        // On an open connection, those before have passed.
        let steps = self.steps.iter().enumerate().skip(self.at);
        steps.filter_map(move |(at, step)| {
            let step = step.filter(|step| step.connection == number)?;
            matches!(step.action, Action::Expect { .. } | Action::Await(..)).then_some(at)
        })
    }

    /// Returns the first step that is awaited.
    fn first(&self, number: u32) -> Option<(usize, &'a Step)> {
        let at = self.awaited(number).next()?;
        Some((at, self.pending(at)?))
    }

    /// Returns which of the next steps a frame is, behind the first one.
    fn later(&mut self, number: u32, got: &Frame) -> Option<usize> {
        let later: Vec<_> = self.awaited(number).skip(1).take(AHEAD).collect();
        let mut later = later.into_iter();
        later.find(|at| {
            let step = self.steps.get(*at).copied().flatten();
            step.is_some_and(|step| self.player.fits(&step.action, got).is_ok())
        })
    }

    /// Compares what comes with what is awaited.
    fn came(&mut self, number: u32, got: Frame) {
        if got.is_end() {
            self.player.forget(number);
        }
        let Some((at, step)) = self.first(number) else {
            return self.came_behind(number, &got);
        };
        if self.player.fits(&step.action, &got).is_ok() {
            if let Some(odd) = self.odd.remove(&number) {
                match self.later(number, &odd).and_then(|at| self.pass(at)) {
                    Some(later) => {
                        let what = format!("a frame comes too early: before line {}", step.number);
                        self.report(later, &what, Vec::new());
                    }
                    None => {
                        let what = "a frame that is not recorded comes before this one";
                        self.report(step, what, whole(None, Some(&odd)));
                    }
                }
            }
            self.pass(at);
        } else if self.settle(number) {
            self.came(number, got);
        } else if got.is_end() {
            self.differs(number, &got);
        } else {
            self.odd.insert(number, got);
        }
    }

    /// Judges the frame that was not the one that is awaited, if there is one: nothing more is known of it.
    fn settle(&mut self, number: u32) -> bool {
        let odd = self.odd.remove(&number);
        odd.map(|odd| self.differs(number, &odd)).is_some()
    }

    /// Reports a frame that is not the one that is awaited.
    fn differs(&mut self, number: u32, got: &Frame) {
        let Some((at, step)) = self.first(number) else {
            return self.came_behind(number, got);
        };
        let differs = self.player.fits(&step.action, got).err();
        let differs = differs.unwrap_or_default();
        let recorded = match &step.action {
            Action::Expect {
                pattern: Expected::Pattern(it),
                ..
            } => Some(it.text()),
            _ => None,
        };
        let is_end = matches!(&step.action, Action::Await(Awaited::Recorded(it), _) if it.is_end());
        match (is_end, got.is_end()) {
            (false, true) => {
                let why = "is missing: the connection ends before it";
                self.missing(number, why, Some(got));
            }
            (true, true) => {
                self.pass(at);
                let changes = whole(Some(&step.action), Some(got));
                self.report(step, "the connection ends in another way", changes);
            }
            _ if self.has_later(number, got) => {}
            _ => match (recorded, got) {
                (Some(recorded), Frame::Text(text)) if tag(recorded) == tag(text) => {
                    self.pass(at);
                    self.report(step, "a frame differs", changes(recorded, text, &differs));
                }
                (recorded, got) => {
                    let is_binary = recorded.is_none() && matches!(got, Frame::Binary(_));
                    let what = match is_binary {
                        true => "a frame differs",
                        false => "another frame comes",
                    };
                    if is_binary {
                        self.pass(at);
                    }
                    self.report(step, what, whole(Some(&step.action), Some(got)));
                }
            },
        }
    }

    /// Takes what comes as one of the next steps, and reports those before it as missing.
    fn has_later(&mut self, number: u32, got: &Frame) -> bool {
        let Some(later) = self.later(number, got) else {
            return false;
        };
        self.pass(later);
        while self.first(number).is_some_and(|(at, _)| at < later) {
            self.missing(number, "was deleted: one recorded later comes", None);
        }
        true
    }

    /// Reports what comes where nothing of the other side is awaited any more.
    fn came_behind(&mut self, number: u32, got: &Frame) {
        let own = self.steps.iter().skip(self.at).flatten();
        let next = own.copied().find(|step| step.connection == number);
        if !got.is_end() {
            let mut all = self.all.iter().rev().copied();
            let Some(last) = all.find(|step| step.connection == number) else {
                return;
            };
            let what = "a frame comes after all that is recorded";
            self.report(last, what, whole(None, Some(got)));
        } else if let Some(step) = next
            // Both may end what neither closes for a reason.
            && !(matches!(step.action, Action::Send(Frame::End(_) | Frame::Close(NO_CODE, _)))
                && matches!(got, Frame::End(_)))
        {
            let changes = whole(Some(&step.action), Some(got));
            self.report(step, "the other side ends the connection", changes);
        }
    }

    fn missing(&mut self, number: u32, why: &str, got: Option<&Frame>) {
        let at = self.awaited(number).next();
        let Some(step) = at.and_then(|at| self.pass(at)) else {
            return;
        };
        let what = match &step.action {
            _ if why.starts_with("was") => format!("line {}", step.number),
            Action::Await(Awaited::Recorded(Frame::Close(..)), _) => "a Close".to_owned(),
            Action::Await(Awaited::Recorded(Frame::End(_)), _) => "the end".to_owned(),
            _ => "a frame".to_owned(),
        };
        let changes = whole(Some(&step.action), got);
        self.report(step, &format!("{what} {why}"), changes);
    }
}
