//! What may come in a call: the stages, tool calls and texts of a chat, and one response to a message.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{Asked, ObservedFrame, RESPONSE_TIME};
use crate::Protocol;

/// Most tool calls of a chat that are remembered, and most of its text.
const MAX_TOOLS: usize = 1024;
const MAX_TEXT: usize = 1024 * 1024;

/// What has come of a chat.
#[derive(Clone, Debug, Default)]
pub(super) struct Chat {
    is_accepted: bool,
    is_started: bool,
    /// The line of an error that ends it.
    failed: Option<usize>,
    tools: Tools,
    /// Its text, in parts between tool calls, without white space.
    parts: Vec<String>,
    /// The bytes of all parts.
    size: usize,
    /// The line of a response that decides.
    settled: Option<usize>,
}

/// Tool calls, and whether they have their result; and how many results were of none of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tools(VecDeque<(String, bool)>, usize);

impl Tools {
    /// Notes a tool call. Returns what is wrong with it.
    pub(super) fn call(&mut self, id: Option<Cow<'_, str>>) -> Option<String> {
        let id = id?.into_owned();
        if self.0.len() >= MAX_TOOLS {
            self.0.pop_front();
        }
        let mut open = self.0.iter().filter(|(_, has_result)| !has_result);
        let again = open.any(|(known, _)| *known == id);
        let wrong = again.then(|| format!("begins the tool call {id:?}, which has no result yet"));
        self.0.push_back((id, false));
        wrong
    }

    /// Notes what refers to a tool call. Returns what is wrong with that.
    pub(super) fn refer(&mut self, id: Option<Cow<'_, str>>, is_result: bool) -> Option<String> {
        let (id, is_full) = (id?, self.0.len() >= MAX_TOOLS);
        match self.0.iter_mut().rev().find(|(known, _)| *known == id) {
            None if !is_full => {
                self.1 += usize::from(is_result);
                Some(format!(
                    "refers to the tool call {id:?}, which did not come before"
                ))
            }
            Some((_, true)) => Some(format!("comes after the result of the tool call {id:?}")),
            Some((_, has_result)) => {
                *has_result = is_result;
                None
            }
            None => None,
        }
    }

    /// Forgets all tool calls. Returns what is wrong if one has no result.
    pub(super) fn end(&mut self) -> Option<String> {
        let mut open = self.0.drain(..).filter(|(_, has_result)| !has_result);
        // Those that came to nowhere are named before.
        let open = open.nth(std::mem::take(&mut self.1));
        open.map(|(id, _)| format!("comes before the result of the tool call {id:?}"))
    }
}

impl Asked {
    /// Returns what is wrong with a frame among those of its call.
    pub(super) fn within(
        &mut self,
        seen: &ObservedFrame<'_>,
        running: Option<usize>,
    ) -> Option<String> {
        let (kind, line) = (&*seen.frame.kind, self.line);
        let (event, inner) = match seen.protocol {
            Protocol::Acolyte if seen.is_sse => (kind, None),
            Protocol::Acolyte if kind.starts_with("chat.abort") || !kind.starts_with("chat.") => {
                return None;
            }
            Protocol::Acolyte => {
                let event = kind.strip_prefix("chat.event/").unwrap_or_default();
                (event, Some("event"))
            }
            Protocol::Exoclaw => (kind, Some("data")),
            Protocol::SmartHole => return self.responded(seen),
            Protocol::Snek | Protocol::ConnectOnion => return None,
        };
        let chat = self.chat.get_or_insert_default();
        if let Some(failed) = chat
            .failed
            .filter(|_| !matches!(kind, "done" | "chat.done" | "chat.error"))
        {
            return Some(format!("comes after the error of line {failed}"));
        }
        if seen.protocol == Protocol::Acolyte && !seen.is_sse {
            let wrong = chat.stage(seen, line, running);
            if wrong.is_some() {
                return wrong;
            }
        }
        let of = |name: &str| match inner {
            Some(inner) => seen.frame.text_at(inner, name),
            None => seen.frame.scalar(name),
        };
        match event {
            "error" => chat.failed = Some(seen.line),
            "text-delta" => match of("text") {
                Some(text) => chat.add(&text),
                None => chat.size = MAX_TEXT,
            },
            "tool-call" => {
                chat.parts.push(String::new());
                return chat.tools.call(of("toolCallId"));
            }
            "tool-output" | "tool-result" => {
                return chat.tools.refer(of("toolCallId"), event == "tool-result");
            }
            "tool_use" => return chat.tools.call(of("id")),
            "tool_result" => return chat.tools.refer(of("tool_use_id"), true),
            _ if matches!(kind, "done" | "chat.done") => {
                let tools = chat.tools.end();
                let is_fine =
                    chat.failed.is_none() && seen.frame.text_at("reply", "error").is_none();
                let output = seen.frame.text_at("reply", "output");
                let wrong = tools.or_else(|| chat.adds_up(&output?));
                return wrong.filter(|_| is_fine);
            }
            _ => {}
        }
        None
    }

    /// Returns what is wrong with a response to a SmartHole message.
    fn responded(&mut self, seen: &ObservedFrame<'_>) -> Option<String> {
        let (kind, line) = (&*seen.frame.kind, self.line);
        let is_late = !self.is_answered && seen.at.saturating_sub(self.at) > RESPONSE_TIME;
        if matches!(kind, "response/ack" | "response/reject") {
            let chat = self.chat.get_or_insert_default();
            if chat.settled.replace(seen.line).is_some() {
                return Some(format!("answers line {line} a second time"));
            }
        }
        (is_late && kind.starts_with("response/"))
            .then(|| format!("comes more than 30 s after line {line}"))
    }
}

impl Chat {
    /// Returns what is wrong with the moment of a frame in an Acolyte chat.
    fn stage(
        &mut self,
        seen: &ObservedFrame<'_>,
        line: usize,
        running: Option<usize>,
    ) -> Option<String> {
        let twice =
            |was: bool, verb: &str| was.then(|| format!("{verb} line {line} a second time"));
        match &*seen.frame.kind {
            "chat.accepted" => twice(std::mem::replace(&mut self.is_accepted, true), "accepts"),
            "chat.error" => None,
            _ if !self.is_accepted => Some("comes before chat.accepted".to_owned()),
            "chat.queued" if self.is_started => Some("comes after chat.started".to_owned()),
            "chat.queued" => (seen.frame.raw("position") == Some("0"))
                .then(|| "has the position 0: the first is 1".to_owned()),
            "chat.started" => twice(std::mem::replace(&mut self.is_started, true), "starts")
                .or_else(|| running.map(|it| format!("comes while the chat of line {it} runs"))),
            _ => (!self.is_started).then(|| "comes before chat.started".to_owned()),
        }
    }

    /// Returns whether it was accepted and has not begun.
    pub(super) const fn is_waiting(&self) -> bool {
        self.is_accepted && !self.is_started && self.failed.is_none()
    }

    fn add(&mut self, text: &str) {
        if self.parts.is_empty() {
            self.parts.push(String::new());
        }
        let has_room = self.size + text.len() <= MAX_TEXT;
        if let Some(part) = self.parts.last_mut().filter(|_| has_room) {
            let before = part.len();
            part.extend(text.chars().filter(|c| !c.is_whitespace()));
            self.size += part.len() - before;
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
        (!is_same && !all.is_empty() && self.size < MAX_TEXT / 2)
            .then(|| "has another text than the text-deltas before it".to_owned())
    }
}
