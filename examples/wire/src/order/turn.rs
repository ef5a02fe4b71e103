//! The moment of a frame on its connection: introductions, what they allow, and the runs of a ConnectOnion session.

use rpc_core::testing::Side;

use super::calls::is_lower;
use super::{Answers, Asked, ObservedFrame, Order, Stage, nothing_asked};
use crate::Protocol::{ConnectOnion, Exoclaw, SmartHole, Snek};
use crate::frame::is_one;
use crate::frame::scalar;

/// Where a stranger stands whose CONNECT waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gate {
    #[default]
    None,
    /// The host has asked for an invitation.
    Required,
    /// It goes on with the CONNECT itself.
    Passed,
}

/// Events that share an id with another one, or come again with more.
const PAIRED: &str = "llm_call llm_result intent eval compact thinking assistant";
/// Most ids of events that are remembered.
const MAX_EVENTS: usize = 8192;

/// The runs of which CONNECTED said that they go on.
const RESUMED: &str = "CONNECTED";

fn before(what: &str) -> Option<String> {
    Some(format!("comes before {what}"))
}

fn behind(line: usize, what: &str) -> Option<String> {
    Some(format!("comes after {what} of line {line}"))
}

impl Order {
    /// Returns what is wrong with the moment of a frame on its connection.
    pub(super) fn turn(&mut self, seen: &ObservedFrame<'_>, stage: Stage) -> Option<String> {
        let raw = |name| seen.frame.raw(name).filter(|it| *it != "null");
        match (seen.protocol, seen.from, &*seen.frame.kind) {
            (Snek, Side::Client, "login") => self.named = Some(seen.line),
            (Snek, from, kind)
                if self.named.is_none()
                    && !matches!(kind, "register" | "answer")
                    && (from == Side::Client || seen.is_known) =>
            {
                return before("the login");
            }
            (Exoclaw, _, _) if self.refused.is_some() => {
                return behind(self.refused?, "the refusal");
            }
            (Exoclaw, Side::Server, "hello") => {
                let first = self.open.replace(seen.line);
                return first.and_then(|line| behind(line, "the hello"));
            }
            (Exoclaw, Side::Server, "error") if seen.frame.id.is_none() && self.open.is_none() => {
                self.refused = Some(seen.line);
            }
            (Exoclaw, Side::Client, "token") => {
                let is_first = self.named.replace(seen.line).is_none();
                let hello = self.open.filter(|_| is_first);
                return hello.and_then(|line| behind(line, "the hello"));
            }
            (Exoclaw, ..) if self.open.is_none() => {
                self.named = self.named.or(Some(seen.line));
                return before("the hello");
            }
            (Exoclaw, Side::Client, _) => self.named = self.named.or(Some(seen.line)),
            (SmartHole, Side::Client, "registration") => {
                self.pending += 1;
                let open = self.open;
                return open.and_then(|line| behind(line, "the accepted registration"));
            }
            (SmartHole, Side::Server, "registration_response") => {
                if stage == Stage::Done {
                    self.open = self.open.or(Some(seen.line));
                }
                return self.introduced().then(nothing_asked).flatten();
            }
            (SmartHole, _, _) if self.open.is_none() && seen.is_known => {
                return before("a registration is accepted");
            }
            (ConnectOnion, Side::Client, "CONNECT") => {
                self.pending += 1;
                if self.gate == Gate::Passed {
                    return Some("comes again: the host goes on with the one before".to_owned());
                }
            }
            (ConnectOnion, Side::Client, "ONBOARD_SUBMIT") if self.gate == Gate::None => {
                return before("ONBOARD_REQUIRED");
            }
            (ConnectOnion, Side::Server, "ONBOARD_REQUIRED") => self.gate = Gate::Required,
            (ConnectOnion, Side::Server, "ONBOARD_SUCCESS") => self.gate = Gate::Passed,
            (ConnectOnion, Side::Server, "CONNECTED") => {
                self.gate = Gate::None;
                self.open = self.open.or(Some(seen.line));
                let session = raw("session_id").and_then(scalar);
                self.sessions
                    .extend(session.map(std::borrow::Cow::into_owned));
                if raw("status") == Some("\"running\"") {
                    self.runs.push_back(Asked::new(seen));
                }
                return self.introduced().then(|| "answers no CONNECT".to_owned());
            }
            (ConnectOnion, from, kind) if self.open.is_none() => {
                let is_event = from == Side::Server && kind.starts_with(is_lower);
                let needs = "INPUT ASK_USER_RESPONSE APPROVAL_RESPONSE OUTPUT RUNTIME_INPUT_ACK";
                return match is_event || is_one(kind, needs) {
                    true => before("CONNECTED"),
                    false => None,
                };
            }
            _ => {}
        }
        None
    }

    /// Takes the answer to an introduction. Returns whether there was none.
    fn introduced(&mut self) -> bool {
        let was_pending = self.pending > 0;
        self.pending = self.pending.saturating_sub(1);
        !was_pending
    }

    /// Returns whether a run goes on that has begun before this connection.
    pub(super) fn is_resumed(&self) -> bool {
        self.runs.front().is_some_and(|run| run.kind == RESUMED)
    }

    /// Follows the runs of a ConnectOnion session. Returns what is wrong with them.
    pub(super) fn run(
        &mut self,
        seen: &ObservedFrame<'_>,
        answers: &mut Option<Answers>,
    ) -> Option<String> {
        let kind = &*seen.frame.kind;
        if seen.protocol != ConnectOnion {
            return None;
        }
        if seen.from == Side::Client {
            if kind != "PONG" {
                self.is_input_last = kind == "INPUT" || kind.ends_with("_RESPONSE");
            }
            if kind == "INPUT" {
                self.runs.push_back(Asked::new(seen));
            }
            return None;
        }
        let is_event = kind.starts_with(is_lower);
        let session = seen.frame.raw("session_id").and_then(scalar);
        let foreign = session.filter(|it| {
            (is_event || matches!(kind, "OUTPUT" | "RUNTIME_INPUT_ACK"))
                && !self.sessions.is_empty()
                && !self.sessions.iter().any(|known| known == it)
        });
        let mut wrong =
            foreign.map(|it| format!("is of the session {it:?}, which is not connected"));
        if is_event && let Some(id) = seen.frame.scalar("id") {
            // Some events come in pairs, or grow.
            let grows = |kind: &str| kind.ends_with("_delta") || is_one(kind, PAIRED);
            let before = self.events.insert(id.clone().into_owned(), kind.to_owned());
            let again = before.filter(|before| !(grows(kind) && grows(before)));
            if self.events.len() > MAX_EVENTS {
                self.events.clear();
            }
            wrong = wrong.or_else(|| {
                again.map(|before| format!("has the id {id:?} of a {before} before it"))
            });
        }
        let tool = || seen.frame.scalar("tool_id");
        let is_resumed = self.is_resumed();
        match kind {
            "OUTPUT" => {
                wrong = wrong.or_else(|| self.tools.end());
                match self.runs.pop_front() {
                    Some(run) => {
                        *answers = Some(run.answered(seen.at));
                        self.doubtful = 0;
                    }
                    None if self.doubtful > 0 => self.doubtful -= 1,
                    None => return Some("answers no INPUT".to_owned()),
                }
            }
            "RUNTIME_INPUT_ACK" => match self.runs.pop_back() {
                Some(run) if self.runs.is_empty() && run.is_begun => {
                    let words = format!("acknowledges line {}, which runs already", run.line);
                    self.runs.push_back(run);
                    return Some(words);
                }
                Some(run) => *answers = Some(run.answered(seen.at)),
                None if self.doubtful > 0 => {}
                None => return Some("answers no INPUT".to_owned()),
            },
            "ERROR" if self.is_input_last && answers.is_none() => {
                self.doubtful += usize::from(self.runs.pop_back().is_some());
            }
            _ if is_event => {
                // Another connection may have begun it.
                let runs = "user_input llm_call thinking tool_call tool_result ask_user";
                let is_run = is_one(kind, runs);
                if is_run && self.open.is_some() && self.runs.is_empty() && self.doubtful == 0 {
                    self.runs.push_back(Asked::new(seen));
                }
                if let Some(run) = self.runs.front_mut() {
                    run.is_begun = true;
                    *answers = answers.take().or_else(|| Some(run.answered(seen.at)));
                }
                if kind == "tool_call" {
                    wrong = wrong.or_else(|| self.tools.call(tool()));
                } else if kind == "tool_result" {
                    let is_free = is_resumed || seen.frame.raw("status") == Some("\"not_found\"");
                    let referred = self.tools.refer(tool(), true);
                    wrong = wrong.or_else(|| referred.filter(|_| !is_free));
                }
            }
            _ => {}
        }
        wrong
    }
}
