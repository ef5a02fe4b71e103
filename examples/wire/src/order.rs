//! `Order`: what may come when on a connection, what ends what, and what refers to what: the rules of each protocol,
//! for the commands that show frames or judge a peer.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rpc_core::testing::Side;
use serde::{Serialize, Serializer};

use self::calls::{ends, has_ids, is_lower, link, stage};
use super::Protocol;
use super::frame::{Frame, text_of};

mod calls;

/// Most requests of a connection that are remembered.
const MAX_ASKED: usize = 8192;
/// Most tool calls of a chat that are remembered, and most of its text.
const MAX_TOOLS: usize = 1024;
const MAX_TEXT: usize = 1024 * 1024;
/// What the requests of a connection are known by that have no ids.
const NAMELESS: [&str; 5] = ["token", "connect", "onboard", "admin", "status"];
/// Who asks may end the connection before the answer to this one.
const KEEPALIVE: &str = "PING";

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

fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
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
pub(crate) struct ObservedFrame<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) from: Side,
    pub(crate) is_sse: bool,
    pub(crate) line: usize,
    pub(crate) at: Duration,
    pub(crate) frame: &'a Frame<'a>,
    pub(crate) text: &'a str,
    /// Whether the types of the protocol know its kind, and whether they read it at all.
    pub(crate) is_known: bool,
    pub(crate) is_valid: bool,
}

/// The place of a frame among the others.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    /// The id of the call that it belongs to.
    pub(crate) call: Option<String>,
    /// Whether it begins the call.
    pub(crate) asks: bool,
    pub(crate) answers: Option<Answers>,
    /// Whether more answers follow.
    pub(crate) partial: bool,
    /// Whether it says that something has failed.
    pub(crate) failed: bool,
    /// What is wrong with its place.
    pub(crate) wrong: Option<String>,
}

/// What has come on a connection.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Who asked what, by the asker and the id.
    asked: HashMap<(Side, String), Asked>,
    /// Whether all that was asked is known: the recording has its beginning, and nothing open was forgotten.
    is_whole: bool,
    has_begun: bool,
    /// The line in which the client has said who it is: a login, token, registration or CONNECT.
    named: Option<usize>,
    /// The line in which the server has agreed to that.
    open: Option<usize>,
    /// The line in which it has refused for good.
    refused: Option<usize>,
    /// How many more CONNECTs there were than CONNECTEDs.
    connects: u32,
    /// The INPUTs whose OUTPUT has not come, and whether that of a run from before may come.
    runs: VecDeque<Asked>,
    is_resumed: bool,
    /// Whether events of a run have come since the last OUTPUT: another connection may have begun it.
    has_events: bool,
    /// Whether the client has said nothing since its last INPUT, but answers.
    is_input_last: bool,
    /// INPUTs that an ERROR may have answered, or something before them.
    doubtful: usize,
    /// The line that asked for the chat that runs.
    running: Option<usize>,
    /// The tool calls of a ConnectOnion session.
    tools: Tools,
}

/// Something that was asked.
#[derive(Clone, Debug, Default)]
struct Asked {
    line: usize,
    kind: String,
    at: Duration,
    /// Whether all of an answer has come, and what kind it was.
    is_answered: bool,
    last: String,
    /// How many requests with this id have not ended.
    open: u32,
    chat: Option<Box<Chat>>,
}

/// What has come of a chat.
#[derive(Clone, Debug, Default)]
struct Chat {
    is_accepted: bool,
    is_started: bool,
    /// The line of an error that ends it.
    failed: Option<usize>,
    tools: Tools,
    /// Its text, in parts between tool calls, without white space.
    parts: Vec<String>,
}

/// Tool calls, and whether they have their result.
#[derive(Clone, Debug, Default)]
struct Tools(VecDeque<(String, bool)>);

impl Tools {
    fn call(&mut self, id: Option<Cow<'_, str>>) {
        if self.0.len() >= MAX_TOOLS {
            self.0.pop_front();
        }
        self.0.extend(id.map(|id| (id.into_owned(), false)));
    }

    /// Notes what refers to a tool call. Returns what is wrong with that.
    fn refer(&mut self, id: Option<Cow<'_, str>>, is_result: bool) -> Option<String> {
        let (id, is_full) = (id?, self.0.len() >= MAX_TOOLS);
        match self.0.iter_mut().rev().find(|(known, _)| *known == id) {
            None if !is_full => Some(format!(
                "refers to the tool call {id:?}, which did not come before"
            )),
            Some((_, true)) => Some(format!("comes after the result of the tool call {id:?}")),
            Some((_, has_result)) => {
                *has_result = is_result;
                None
            }
            None => None,
        }
    }
}

impl Asked {
    fn answered(&self, now: Duration) -> Answers {
        Answers {
            line: self.line,
            kind: self.kind.clone(),
            after: now.saturating_sub(self.at),
        }
    }
}

fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

impl Order {
    /// Creates the order of a connection that has just been opened.
    pub(crate) fn opened() -> Self {
        Self {
            is_whole: true,
            ..Self::default()
        }
    }

    /// Returns whether no frame has come yet from the client.
    pub(crate) const fn is_first(&self) -> bool {
        !self.has_begun
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
        let open = asked.filter(|it| !it.is_answered && it.kind != KEEPALIVE);
        let mut open: Vec<_> = open.map(|it| it.answered(now)).collect();
        open.sort_by_key(|it| it.line);
        open
    }

    /// Takes a frame.
    pub(crate) fn take(&mut self, seen: &ObservedFrame<'_>) -> Relations {
        let kind = &*seen.frame.kind;
        if !self.has_begun {
            self.is_whole |= matches!(
                kind,
                "login"
                    | "token"
                    | "hello"
                    | "registration"
                    | "CONNECT"
                    | "chat.start"
                    | "status.get"
            );
        }
        self.has_begun |= seen.from == Side::Client || self.open.is_some();
        if !seen.is_valid {
            // The other side may have taken it.
            if seen.from == Side::Client {
                // Whatever it asks, the server may have understood.
                self.is_whole &= seen.frame.id.is_some();
                let _ = self.turn(seen, Stage::Done);
            }
            if let Some(id) = seen
                .frame
                .id
                .clone()
                .filter(|_| seen.from == Side::Client || seen.protocol == Protocol::SmartHole)
            {
                self.ask(seen, id.into_owned(), true);
            }
            return Relations::default();
        }
        let stage = match seen.is_known || seen.protocol == Protocol::SmartHole {
            true => stage(seen),
            // It may be anything; the end is known.
            false => Stage::Partial,
        };
        if kind == "chat.abort" {
            // The next one need not wait for the end of the one that is aborted.
            self.running = None;
        }
        let turn = self.turn(seen, stage).filter(|_| self.is_whole);
        let (call, asks) = link(seen);
        let mut placed = Relations {
            asks,
            partial: !asks && stage == Stage::Partial,
            failed: stage == Stage::Failed,
            ..Relations::default()
        };
        let place = match (&call, asks) {
            (None, _) => {
                placed.answers = self.refused(seen, stage);
                None
            }
            (Some(id), true) => {
                let again = self.again(seen, id);
                self.ask(seen, id.to_string(), false);
                again
            }
            (Some(id), false) => {
                let (answers, wrong) = self.answer(seen, id, stage);
                placed.answers = answers;
                wrong
            }
        };
        let runs = self.run(seen, &mut placed.answers);
        placed.call = call.map(Cow::into_owned);
        placed.wrong = turn.or(place).or(runs.filter(|_| self.is_whole));
        placed
    }

    /// Returns what is wrong with the moment of a frame on its connection.
    fn turn(&mut self, seen: &ObservedFrame<'_>, stage: Stage) -> Option<String> {
        use Protocol::{ConnectOnion, Exoclaw, SmartHole, Snek};
        let before = |what: &str| Some(format!("comes before {what}"));
        let behind = |line: usize, what: &str| Some(format!("comes after {what} of line {line}"));
        let kind = &*seen.frame.kind;
        match (seen.protocol, seen.from, kind) {
            (Snek, Side::Client, "login") => self.named = Some(seen.line),
            (Snek, Side::Client, kind) if self.named.is_none() && kind != "register" => {
                return before("the login");
            }
            (Exoclaw, Side::Server, _) if self.refused.is_some() => {
                return behind(self.refused?, "the refusal");
            }
            (Exoclaw, Side::Server, "hello") => {
                let first = self.open.replace(seen.line);
                return first.and_then(|line| behind(line, "the hello"));
            }
            (Exoclaw, Side::Server, "error") if seen.frame.id.is_none() => {
                self.refused = Some(seen.line);
            }
            (Exoclaw, Side::Client, "token") => {
                let is_first = self.named.replace(seen.line).is_none();
                return self
                    .open
                    .filter(|_| is_first)
                    .and_then(|line| behind(line, "the hello"));
            }
            (Exoclaw, _, _) if self.open.is_none() => {
                self.named = self.named.or(Some(seen.line));
                return before("the hello");
            }
            (Exoclaw, Side::Client, _) => self.named = self.named.or(Some(seen.line)),
            (SmartHole, Side::Client, "registration") => {
                self.named = Some(seen.line);
                return self
                    .open
                    .and_then(|line| behind(line, "the accepted registration"));
            }
            (SmartHole, Side::Server, "registration_response") => {
                let is_answer = self.named.is_some();
                if stage == Stage::Done {
                    self.open = self.open.or(Some(seen.line));
                }
                return (!is_answer).then(|| "answers nothing that was asked".to_owned());
            }
            (SmartHole, _, _) if self.open.is_none() && seen.is_known => {
                return before("a registration is accepted");
            }
            (ConnectOnion, Side::Client, "CONNECT") => {
                self.named = Some(seen.line);
                self.connects += 1;
            }
            (ConnectOnion, Side::Server, "CONNECTED") => {
                let is_answer = self.connects > 0;
                self.connects = self.connects.saturating_sub(1);
                self.open = self.open.or(Some(seen.line));
                self.is_resumed |= text_of(seen.text, &["status"]).as_deref() == Some("running");
                return (!is_answer).then(|| "answers no CONNECT".to_owned());
            }
            (
                ConnectOnion,
                _,
                "INPUT" | "ASK_USER_RESPONSE" | "APPROVAL_RESPONSE" | "OUTPUT"
                | "RUNTIME_INPUT_ACK",
            ) if self.open.is_none() => return before("CONNECTED"),
            _ => {}
        }
        None
    }

    /// Follows the runs of a ConnectOnion session. Returns what is wrong with them.
    fn run(&mut self, seen: &ObservedFrame<'_>, answers: &mut Option<Answers>) -> Option<String> {
        if seen.protocol != Protocol::ConnectOnion {
            return None;
        }
        let tool = || text_of(seen.text, &["tool_id"]);
        let kind = &*seen.frame.kind;
        if seen.from == Side::Client && kind != "PONG" {
            self.is_input_last = kind == "INPUT" || kind.ends_with("_RESPONSE");
        }
        self.has_events |= seen.from == Side::Server && kind.starts_with(is_lower);
        match (seen.from, &*seen.frame.kind) {
            (Side::Client, "INPUT") => self.runs.push_back(asked(seen)),
            (Side::Server, "OUTPUT") => {
                let has_events = std::mem::take(&mut self.has_events);
                match self.runs.pop_front() {
                    Some(run) => *answers = Some(run.answered(seen.at)),
                    None if self.is_resumed => self.is_resumed = false,
                    None if has_events => {}
                    None if self.doubtful > 0 => self.doubtful -= 1,
                    None => return Some("answers no INPUT".to_owned()),
                }
            }
            (Side::Server, "RUNTIME_INPUT_ACK") => {
                *answers = self.runs.pop_back().map(|run| run.answered(seen.at));
            }
            (Side::Server, "ERROR") if self.is_input_last => {
                self.doubtful += usize::from(self.runs.pop_back().is_some());
            }
            (Side::Server, "tool_call") => self.tools.call(tool()),
            (Side::Server, "tool_result") => {
                let is_free = self.is_resumed
                    || text_of(seen.text, &["status"]).as_deref() == Some("not_found");
                *answers = self.runs.front().map(|run| run.answered(seen.at));
                return self.tools.refer(tool(), true).filter(|_| !is_free);
            }
            (Side::Server, kind) if kind.starts_with(is_lower) && answers.is_none() => {
                *answers = self.runs.front().map(|run| run.answered(seen.at));
            }
            _ => {}
        }
        None
    }

    fn ask(&mut self, seen: &ObservedFrame<'_>, id: String, is_answered: bool) {
        let key = (seen.from, id);
        let open = self.asked.get(&key).map_or(0, |it| it.open);
        let asked = Asked {
            is_answered,
            open: open.saturating_add(1),
            ..asked(seen)
        };
        if self.asked.len() >= MAX_ASKED {
            self.forget();
        }
        self.asked.insert(key, asked);
    }

    /// Forgets the older half of what was asked.
    fn forget(&mut self) {
        let mut lines: Vec<_> = self.asked.values().map(|it| it.line).collect();
        lines.sort_unstable();
        let middle = lines.get(lines.len() / 2).copied().unwrap_or_default();
        let mut old = self.asked.values().filter(|it| it.line < middle);
        self.is_whole &= old.all(|it| it.open == 0);
        self.asked.retain(|_, it| it.line >= middle);
    }

    /// Returns what is wrong with an id that was used before.
    fn again(&self, seen: &ObservedFrame<'_>, id: &str) -> Option<String> {
        // Without ids, one thing follows the other.
        let asked = self
            .asked
            .get(&(seen.from, id.to_owned()))
            .filter(|_| has_ids(seen))?;
        let is_wrong = match seen.protocol {
            Protocol::Snek | Protocol::SmartHole => true,
            _ => asked.open > 0 && !asked.is_answered,
        };
        is_wrong.then(|| format!("has the id of line {}", asked.line))
    }

    /// Answers the last request without an id, if a failure of the server names none.
    fn refused(&mut self, seen: &ObservedFrame<'_>, stage: Stage) -> Option<Answers> {
        if seen.from == Side::Client || stage != Stage::Failed {
            return None;
        }
        let keys = NAMELESS.map(|id| (Side::Client, id.to_owned()));
        let open = keys.into_iter().filter_map(|key| {
            let asked = self.asked.get(&key).filter(|it| !it.is_answered)?;
            Some((asked.line, key))
        });
        let (_, key) = open.max_by_key(|(line, _)| *line)?;
        let asked = self.asked.get_mut(&key)?;
        asked.is_answered = true;
        asked.open = asked.open.saturating_sub(1);
        Some(asked.answered(seen.at))
    }

    /// Finds what is answered. Returns it, and what is wrong with the answer.
    fn answer(
        &mut self,
        seen: &ObservedFrame<'_>,
        id: &str,
        stage: Stage,
    ) -> (Option<Answers>, Option<String>) {
        let running = self.running;
        let Some(asked) = self.asked.get_mut(&(other(seen.from), id.to_owned())) else {
            // An error may answer what could not be read.
            let is_stray = has_ids(seen) && self.is_whole && stage != Stage::Failed;
            return (
                self.refused(seen, stage),
                is_stray.then(|| "answers nothing that was asked".to_owned()),
            );
        };
        let is_late = has_ids(seen) && asked.open == 0;
        let late =
            is_late.then(|| format!("comes after the end of what line {} asked", asked.line));
        let wrong = late.or_else(|| within(asked, seen, running));
        if &*seen.frame.kind == "chat.started" {
            self.running = Some(asked.line);
        }
        asked.is_answered |= stage != Stage::Partial;
        seen.frame.kind.as_ref().clone_into(&mut asked.last);
        if ends(seen, stage) {
            asked.open = asked.open.saturating_sub(1);
            self.running = self.running.filter(|line| *line != asked.line);
        }
        (Some(asked.answered(seen.at)), wrong)
    }
}

fn asked(seen: &ObservedFrame<'_>) -> Asked {
    Asked {
        line: seen.line,
        kind: seen.frame.kind.clone().into_owned(),
        at: seen.at,
        ..Asked::default()
    }
}

/// Returns what is wrong with a frame among those of its call.
fn within(asked: &mut Asked, seen: &ObservedFrame<'_>, running: Option<usize>) -> Option<String> {
    let (text, kind) = (seen.text, &*seen.frame.kind);
    let (event, is_acolyte) = match seen.protocol {
        Protocol::Acolyte if kind.starts_with("chat.abort") || !kind.starts_with("chat.") => {
            return None;
        }
        Protocol::Acolyte => (kind.strip_prefix("chat.event/").unwrap_or_default(), true),
        Protocol::Exoclaw => (kind, false),
        Protocol::SmartHole => {
            let is_again = matches!(kind, "response/ack" | "response/reject")
                && matches!(&*asked.last, "response/ack" | "response/reject");
            return is_again.then(|| format!("answers line {} a second time", asked.line));
        }
        Protocol::Snek | Protocol::ConnectOnion => return None,
    };
    let line = asked.line;
    let chat = asked.chat.get_or_insert_default();
    if let Some(failed) = chat
        .failed
        .filter(|_| !matches!(kind, "done" | "chat.done" | "chat.error"))
    {
        return Some(format!("comes after the error of line {failed}"));
    }
    if is_acolyte {
        let wrong = match kind {
            "chat.accepted" => std::mem::replace(&mut chat.is_accepted, true)
                .then(|| format!("accepts line {line} a second time")),
            "chat.error" => None,
            _ if !chat.is_accepted => Some("comes before chat.accepted".to_owned()),
            "chat.queued" => chat
                .is_started
                .then(|| "comes after chat.started".to_owned()),
            "chat.started" if std::mem::replace(&mut chat.is_started, true) => {
                Some(format!("starts line {line} a second time"))
            }
            "chat.started" => {
                running.map(|other| format!("comes while the chat of line {other} runs"))
            }
            _ => (!chat.is_started).then(|| "comes before chat.started".to_owned()),
        };
        if wrong.is_some() {
            return wrong;
        }
    }
    let of = |path: &[&str]| text_of(text, path);
    match event {
        "error" => chat.failed = Some(seen.line),
        "text-delta" => chat.add(&of(&["event", "text"]).unwrap_or_default()),
        "tool-call" => {
            chat.parts.push(String::new());
            chat.tools.call(of(&["event", "toolCallId"]));
        }
        "tool-output" | "tool-result" => {
            return chat
                .tools
                .refer(of(&["event", "toolCallId"]), event == "tool-result");
        }
        "tool_use" => chat.tools.call(of(&["data", "id"])),
        "tool_result" => return chat.tools.refer(of(&["data", "tool_use_id"]), true),
        "" if kind == "chat.done" && of(&["reply", "error"]).is_none() => {
            return chat.adds_up(&of(&["reply", "output"])?);
        }
        _ => {}
    }
    None
}

impl Chat {
    fn add(&mut self, text: &str) {
        let size: usize = self.parts.iter().map(String::len).sum();
        if self.parts.is_empty() {
            self.parts.push(String::new());
        }
        if let Some(part) = self
            .parts
            .last_mut()
            .filter(|_| size + text.len() <= MAX_TEXT)
        {
            part.extend(text.chars().filter(|c| !c.is_whitespace()));
        }
    }

    /// Returns what is wrong if the text that came is not the one of the reply, as a whole or from some tool call on.
    fn adds_up(&self, output: &str) -> Option<String> {
        let output: String = output.chars().filter(|c| !c.is_whitespace()).collect();
        let (mut all, mut is_same) = (String::new(), false);
        for part in self.parts.iter().rev() {
            all.insert_str(0, part);
            is_same |= all == output;
        }
        let is_whole = self.parts.iter().map(String::len).sum::<usize>() < MAX_TEXT / 2;
        (!is_same && !all.is_empty() && is_whole)
            .then(|| "has another text than the text-deltas before it".to_owned())
    }
}
