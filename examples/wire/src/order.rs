//! `Order`: what may come when on a connection, what ends what, and what refers to what: the rules of each protocol,
//! for the commands that show frames or judge a peer.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use rpc_core::testing::Side;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Serialize, Serializer};

use self::calls::{about, ends, fits, has_ids, is_numbered, is_optional, is_strict, link, stage};
use self::chat::{Chat, Tools};
use self::turn::Gate;
use super::Protocol;
use super::frame::{Fault, Frame, is_one, scalar};
use super::shapes::{self, Judged};

mod calls;
mod chat;
mod turn;

/// Most requests of a connection that are remembered.
const MAX_ASKED: usize = 8192;
/// What the requests of a connection are known by that have no ids.
const NAMELESS: [&str; 5] = ["token", "connect", "onboard", "admin", "status"];
/// Who asks may end the connection before the answer to these.
const OPTIONAL: [&str; 2] = ["PING", "CONNECTED"];
/// The time that a client of SmartHole has to respond to a message.
const RESPONSE_TIME: Duration = Duration::from_secs(30);

/// The line that a frame answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Answers {
    /// The number of the line.
    pub line: usize,
    /// The kind of its frame.
    pub kind: String,
    /// The time since then, in seconds.
    #[serde(serialize_with = "seconds")]
    pub after: Duration,
}

pub(crate) fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

/// How far a frame brings the call that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// More follows.
    Partial,
    /// This is all.
    Done,
    /// The call has failed; without a call, the peer complains.
    Failed,
}

/// A frame that came.
#[derive(Clone, Copy, Debug)]
struct ObservedFrame<'a> {
    protocol: Protocol,
    from: Side,
    is_sse: bool,
    line: usize,
    at: Duration,
    frame: &'a Frame<'a>,
    text: &'a str,
    /// Whether the protocol has its kind, and whether it has one at all.
    is_known: bool,
    is_frame: bool,
}

/// The place of a frame among the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Relations {
    /// The id of the call that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    /// Whether it begins the call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) asks: bool,
    /// The line that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answers: Option<Answers>,
    /// Whether more answers follow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) partial: bool,
    /// Whether it says that something has failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) failed: bool,
    /// What is wrong with its place.
    #[serde(rename = "order", skip_serializing_if = "Option::is_none")]
    pub(crate) wrong: Option<String>,
}

/// What is known of a frame that has come.
#[derive(Debug)]
pub(crate) struct Observed<'a> {
    pub(crate) frame: Frame<'a>,
    /// What the protocol says of its shape.
    pub(crate) judged: Judged,
    pub(crate) relations: Relations,
}

/// What has come on a connection.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// What either side has asked, by the id: no protocol has ids of both.
    asked: FxHashMap<String, Asked>,
    /// Whether all that was asked is known: the recording has its beginning, and nothing open was forgotten.
    is_whole: bool,
    has_begun: bool,
    /// The line in which the client has said who it is: a login, token, registration or CONNECT.
    named: Option<usize>,
    /// The line in which the server has agreed to that.
    open: Option<usize>,
    /// The line in which it has refused for good.
    refused: Option<usize>,
    /// How many more registrations or CONNECTs there were than answers to them.
    pending: u32,
    gate: Gate,
    /// The ConnectOnion sessions that CONNECTED has named.
    sessions: Vec<String>,
    /// The runs whose OUTPUT has not come: of an INPUT, of before this connection, or of another connection.
    runs: VecDeque<Asked>,
    /// Whether the client has said nothing since its last INPUT, but answers.
    is_input_last: bool,
    /// INPUTs that an ERROR may have answered, or something before them.
    doubtful: usize,
    /// Texts of the client that are no frames and have no id, which an error of the server may answer.
    malformed: VecDeque<Asked>,
    /// The line that asked for the chat that runs.
    running: Option<usize>,
    /// The line of the chat that has begun last, by its Exoclaw session.
    latest: FxHashMap<String, usize>,
    /// What was found wrong, with the call: a cause is named once.
    causes: FxHashSet<String>,
    /// The Acolyte tasks.
    tasks: HashSet<String>,
    /// The tool calls of a ConnectOnion session.
    tools: Tools,
    /// The ids of its events, with their kinds.
    events: FxHashMap<String, String>,
}

/// Something that was asked.
#[derive(Clone, Debug, Default)]
struct Asked {
    line: usize,
    kind: String,
    at: Duration,
    /// Whether something of an answer has come, and all of it.
    is_begun: bool,
    is_answered: bool,
    /// How many requests with this id have not ended.
    open: u32,
    /// Whether it is to be aborted.
    is_aborted: bool,
    /// Whether nobody need answer: the caller may not wait.
    is_optional: bool,
    /// Whether its id is a number.
    is_numbered: bool,
    /// The id of what it asks about.
    about: Option<String>,
    chat: Option<Box<Chat>>,
}

impl Asked {
    fn new(seen: &ObservedFrame<'_>) -> Self {
        Self {
            line: seen.line,
            kind: seen.frame.kind.clone().into_owned(),
            at: seen.at,
            ..Self::default()
        }
    }

    fn answered(&self, now: Duration) -> Answers {
        Answers {
            line: self.line,
            kind: self.kind.clone(),
            after: now.saturating_sub(self.at),
        }
    }
}

fn nothing_asked() -> Option<String> {
    Some("answers nothing that was asked".to_owned())
}

impl Order {
    /// Creates the order of a connection that has just been opened.
    pub(crate) fn opened() -> Self {
        Self {
            is_whole: true,
            ..Self::default()
        }
    }

    /// Creates the order of a stream of events that a request has just asked for.
    pub(crate) fn streamed(line: usize, at: Duration) -> Self {
        let mut order = Self::opened();
        let asked = Asked {
            line,
            kind: "http".to_owned(),
            at,
            open: 1,
            ..Asked::default()
        };
        order.asked.insert("stream".to_owned(), asked);
        order
    }

    /// Ends the connection. Returns the requests that stay unanswered.
    pub(crate) fn end(&mut self, now: Duration) -> Vec<Answers> {
        let unanswered = self.unanswered(now);
        // What comes after the end, the other side has sent before it knew.
        *self = Self::default();
        unanswered
    }

    /// Returns the requests that wait for an answer, in their order.
    pub(crate) fn unanswered(&self, now: Duration) -> Vec<Answers> {
        let asked = self.asked.values().chain(&self.runs);
        let open =
            asked.filter(|it| !it.is_answered && !it.is_optional && !OPTIONAL.contains(&&*it.kind));
        let mut open: Vec<_> = open.map(|it| it.answered(now)).collect();
        open.sort_by_key(|it| it.line);
        open
    }

    /// Takes the text of a frame.
    pub(crate) fn observe<'a>(
        &mut self,
        whose: (Protocol, Side, bool),
        text: &'a str,
        line: usize,
        at: Duration,
    ) -> Observed<'a> {
        let (protocol, from, is_sse) = whose;
        let frame = Frame::new(protocol, from, text);
        let is_object = frame.is_some();
        let frame = frame.unwrap_or_else(|| Frame {
            kind: Cow::Borrowed("?"),
            ..Frame::default()
        });
        // A token is the first frame of a client.
        let is_again = protocol == Protocol::Exoclaw
            && frame.kind == "token"
            && frame.id.is_some()
            && self.has_begun;
        let is_frame = frame.kind != "?" && !is_again;
        let mut judged = match is_frame {
            true => shapes::judge(whose, &frame, text),
            false => Judged {
                fault: Some(match is_object {
                    true => Fault::kindless(protocol, from, &frame, text),
                    false => Fault::json(text),
                }),
                ..Judged::default()
            },
        };
        let relations = self.take(&ObservedFrame {
            protocol,
            from,
            is_sse,
            line,
            at,
            frame: &frame,
            text,
            is_known: judged.is_known,
            is_frame,
        });
        if relations.wrong.is_some() {
            // What comes at the wrong moment is not looked at closer.
            judged.fault = None;
        }
        let asked = relations.answers.as_ref().filter(|_| !relations.failed);
        if let Some(asked) = asked.filter(|_| relations.wrong.is_none() && judged.fault.is_none()) {
            judged.fault = shapes::answers(protocol, from, &frame.kind, &asked.kind, text);
        }
        Observed {
            frame,
            judged,
            relations,
        }
    }

    fn take(&mut self, seen: &ObservedFrame<'_>) -> Relations {
        let kind = &*seen.frame.kind;
        if !self.has_begun {
            let first = "login token hello registration CONNECT chat.start status.get";
            self.is_whole |= is_one(kind, first);
        }
        self.has_begun |= seen.from == Side::Client || self.open.is_some();
        if !seen.is_frame {
            // The other side may have taken it.
            if seen.from == Side::Client {
                // Whatever JSON asks, also as a list, the server may have understood.
                let is_json = !seen.frame.members.is_empty() || seen.text.starts_with('[');
                self.is_whole &= seen.frame.id.is_some() || !is_json;
                let _ = self.turn(seen, Stage::Done);
                if seen.frame.id.is_none() && self.malformed.len() < MAX_ASKED {
                    self.malformed.push_back(Asked::new(seen));
                }
            }
            let asks = seen.from == Side::Client || seen.protocol == Protocol::SmartHole;
            if let Some(id) = seen.frame.id.clone().filter(|_| asks) {
                self.ask(seen, id.into_owned(), true);
            }
            return Relations::default();
        }
        let stage = match seen.is_known || seen.protocol == Protocol::SmartHole {
            true => stage(seen),
            // It may be anything; the end is known.
            false => Stage::Partial,
        };
        if kind == "chat.abort"
            && let Some(aborted) = about(seen).and_then(|id| self.asked.get_mut(&*id))
        {
            // The next one need not wait for the end of the one that is aborted.
            aborted.is_aborted = true;
            self.running = self.running.filter(|line| *line != aborted.line);
        }
        let turn = self.turn(seen, stage);
        let (call, asks) = link(seen);
        let mut placed = Relations {
            asks,
            partial: !asks && stage == Stage::Partial,
            failed: stage == Stage::Failed,
            ..Relations::default()
        };
        let is_early = turn.is_some() && self.is_whole;
        let place = match (&call, asks) {
            (None, _) => {
                placed.answers = self.refused(seen, stage);
                self.posed(seen)
            }
            (Some(id), true) => {
                let again = self.again(seen, id);
                self.ask(seen, id.to_string(), is_early);
                again
            }
            (Some(id), false) => {
                let (answers, wrong) = self.answer(seen, id, stage);
                placed.answers = answers;
                wrong
            }
        };
        let runs = self.run(seen, &mut placed.answers);
        let is_call = has_ids(seen) || seen.is_sse;
        let of = call.as_deref().filter(|_| is_call);
        // What is wrong without a call is so for the whole connection.
        placed.wrong = match place {
            Some(place) if !is_early => match of {
                Some(id) => self.once(id, place),
                None => Some(place),
            },
            _ => turn
                .or(runs)
                .filter(|_| self.is_whole)
                .and_then(|it| self.once("", it)),
        };
        placed.call = call.map(Cow::into_owned);
        placed
    }

    /// Returns what is wrong if the same was not said of this call, or of the connection.
    pub(crate) fn once(&mut self, call: &str, wrong: String) -> Option<String> {
        if self.causes.len() >= MAX_ASKED {
            self.causes.clear();
        }
        let is_new = self.causes.insert(format!("{call} {wrong}"));
        is_new.then_some(wrong)
    }

    fn ask(&mut self, seen: &ObservedFrame<'_>, id: String, is_answered: bool) {
        let open = self.asked.get(&id).map_or(0, |it| it.open);
        let asked = Asked {
            is_answered,
            open: open.saturating_add(1),
            about: about(seen).map(Cow::into_owned),
            is_optional: is_optional(seen),
            is_numbered: is_numbered(seen),
            ..Asked::new(seen)
        };
        if self.asked.len() >= MAX_ASKED {
            self.forget();
        }
        self.asked.insert(id, asked);
    }

    /// Forgets the older half of what was asked.
    fn forget(&mut self) {
        let mut lines: Vec<_> = self.asked.values().map(|it| it.line).collect();
        lines.sort_unstable();
        let middle = lines.get(lines.len() / 2).copied().unwrap_or_default();
        let mut old = self.asked.values().filter(|it| it.line < middle);
        self.is_whole &= old.all(|it| it.open == 0);
        self.asked.retain(|_, it| it.line >= middle);
        self.tasks.clear();
        self.latest.clear();
    }

    /// Returns what is wrong with an id that was used before.
    fn again(&self, seen: &ObservedFrame<'_>, id: &str) -> Option<String> {
        // Without ids, one thing follows the other.
        let asked = self.asked.get(id);
        let asked = asked.filter(|_| has_ids(seen))?;
        let is_wrong = match seen.protocol {
            Protocol::Snek | Protocol::SmartHole => true,
            _ => asked.open > 0 && !asked.is_answered,
        };
        is_wrong.then(|| format!("has the id of line {}", asked.line))
    }

    /// Returns what is wrong with an event that has the id of a call.
    fn posed(&self, seen: &ObservedFrame<'_>) -> Option<String> {
        let id = seen.frame.id.as_deref()?;
        let asked = self.asked.get(id)?;
        (asked.open > 0 && seen.protocol == Protocol::Snek)
            .then(|| format!("is an event with the callId of line {}", asked.line))
    }

    /// Answers what was malformed, or the last request without an id, if a failure of the server names no other.
    fn refused(&mut self, seen: &ObservedFrame<'_>, stage: Stage) -> Option<Answers> {
        if seen.from == Side::Client || stage != Stage::Failed {
            return None;
        }
        if let Some(malformed) = self.malformed.pop_front() {
            return Some(malformed.answered(seen.at));
        }
        let open = NAMELESS.into_iter().filter_map(|id| {
            let asked = self.asked.get(id).filter(|it| !it.is_answered)?;
            Some((asked.line, id))
        });
        let (_, id) = open.max_by_key(|(line, _)| *line)?;
        let asked = self.asked.get_mut(id)?;
        asked.is_answered = true;
        asked.open = asked.open.saturating_sub(1);
        Some(asked.answered(seen.at))
    }

    /// Returns what is wrong with the request or the task that a frame of Acolyte names.
    fn names_wrongly(&mut self, seen: &ObservedFrame<'_>) -> Option<String> {
        match &*seen.frame.kind {
            "chat.accepted" => {
                let task = seen.frame.scalar("taskId")?.into_owned();
                let wrong = format!("has the taskId {task:?} of another chat");
                (!self.tasks.insert(task)).then_some(wrong)
            }
            "chat.abort.result" if seen.frame.raw("aborted") == Some("true") => {
                let request = about(seen)?;
                match self.asked.get_mut(&*request) {
                    // Some servers say no more of it.
                    Some(asked) => asked.is_answered = true,
                    None => return Some(format!("aborts {request:?}, which nobody asked")),
                }
                None
            }
            _ => None,
        }
    }

    /// Finds what is answered. Returns it, and what is wrong with the answer.
    fn answer(
        &mut self,
        seen: &ObservedFrame<'_>,
        id: &str,
        stage: Stage,
    ) -> (Option<Answers>, Option<String>) {
        let (running, kind) = (self.running, &*seen.frame.kind);
        let queue = self.queued(seen, id).and_then(|it| self.once("", it));
        let is_strict = is_strict(seen) && (has_ids(seen) || !self.is_resumed());
        let odd = self.names_wrongly(seen).filter(|_| self.is_whole);
        let Some(asked) = self.asked.get_mut(id) else {
            // An error may answer what could not be read.
            let is_stray = is_strict && self.is_whole && stage != Stage::Failed;
            let wrong = is_stray.then(nothing_asked).flatten();
            return (self.refused(seen, stage), wrong);
        };
        let line = asked.line;
        let answers = Some(asked.answered(seen.at));
        // With several, it is not known which one this answers.
        let is_alone = asked.open < 2;
        if is_alone && !fits(seen, &asked.kind) {
            asked.is_answered = true;
            let words = format!("is no answer to `{}` of line {line}", asked.kind);
            return (answers, Some(words));
        }
        let is_late = is_strict && asked.open == 0;
        let late = is_late.then(|| format!("comes after the end of what line {line} asked"));
        let of = asked.about.as_ref().filter(|_| is_alone);
        let known = of.and_then(|of| about(seen).filter(|it| of != it));
        let retyped = (is_alone && asked.is_numbered != is_numbered(seen))
            .then(|| format!("has the id of line {line} in another type"));
        let wrong = late
            .or(retyped)
            .or_else(|| asked.within(seen, running))
            .or(queue)
            .or_else(|| known.map(|it| format!("is about {it:?}, which line {line} did not name")))
            .or(odd);
        if kind == "chat.started" {
            self.running = Some(line);
        }
        asked.is_begun = true;
        asked.is_answered |= stage != Stage::Partial;
        if asked.kind == "login" && stage == Stage::Failed {
            self.named = None;
        }
        if ends(seen, stage) {
            asked.open = asked.open.saturating_sub(1);
            self.running = self.running.filter(|it| *it != line);
        }
        (answers, wrong)
    }

    /// Returns what is wrong with the place of a chat among the others of its connection or its session.
    fn queued(&mut self, seen: &ObservedFrame<'_>, id: &str) -> Option<String> {
        let own = self.asked.get(id)?;
        if seen.protocol == Protocol::Exoclaw {
            // Messages of a session wait for each other.
            let latest = self.latest.entry(own.about.clone()?).or_insert(own.line);
            if !own.is_begun {
                *latest = own.line;
            }
            return (*latest != own.line && own.open > 0)
                .then(|| format!("comes behind the chat of line {latest} in the same session"));
        }
        let waits =
            |it: &&Asked| it.chat.as_ref().is_some_and(|chat| chat.is_waiting()) && !it.is_answered;
        let others = self.asked.values().filter(|it| it.open > 0);
        let before = others.filter(waits).filter(|it| it.line < own.line);
        match &*seen.frame.kind {
            "chat.queued" => {
                let (most, least) = (
                    before.clone().count(),
                    before.filter(|it| !it.is_aborted).count(),
                );
                let position: usize = scalar(seen.frame.raw("position")?)?.parse().ok()?;
                let is_wrong = position > most + 1 || position <= least && self.running.is_some();
                is_wrong.then(|| format!("has the position {position}: {most} wait before it"))
            }
            "chat.started" => {
                let line = before.map(|it| it.line).min()?;
                Some(format!("comes while the chat of line {line} waits longer"))
            }
            _ => None,
        }
    }
}
