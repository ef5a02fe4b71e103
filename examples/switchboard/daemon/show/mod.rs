//! [`Show`]: what a chat tells, for people or for programs.

mod events;
mod tool;

use std::collections::HashMap;
use std::fmt::Display;

use acolyte_proto::client::{ChatUpdate, Failure, Outcome};
use acolyte_proto::error::code;
use acolyte_proto::event::{Checklist, Event, NoticeLevel};
use acolyte_proto::frame::Reply;
use rpc_core::Delivery;
use serde::Serialize;
use serde_json::{Map, Value, json};
use switchboard::cli;
use switchboard::daemon::ask_first::ASK_FIRST;
use switchboard::daemon::checklist;
use switchboard::daemon::toolbox::CHECKLIST;
use switchboard::screen::{Colour, printable, printable_lines};

pub(crate) use events::{ended, events};

/// How it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// For people, with colours or without.
    People { colour: bool },
    /// A line of JSON for each update.
    Json,
}

/// Something to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// More of the answer.
    Text(String),
    /// A line about how it gets on.
    Line(String),
}

/// Most calls of tools that are remembered: more than a chat may make.
const MAX_CALLS: usize = 1_000;

/// A call of a tool: the number of its chat, and its id.
type CallKey = (Option<u64>, String);

/// Puts updates into words.
#[derive(Clone, Debug)]
pub(crate) struct Show {
    style: Style,
    /// What the model has thought aloud and is not shown yet: it comes in small pieces.
    thought: String,
    /// The calls that have no result yet, with their lines.
    calls: HashMap<CallKey, String>,
    /// The call that was named last: what is shown below is taken for its output.
    named: Option<CallKey>,
}

/// Says in words which server is reached.
pub(crate) fn connected(node: Option<&str>, again: bool) -> String {
    let words = if again {
        "connected again"
    } else {
        "connected"
    };
    node.map_or(words.to_owned(), |node| format!("{words}, at {node}"))
}

impl Show {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            thought: String::new(),
            calls: HashMap::new(),
            named: None,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        match self.style {
            Style::People { colour: true } => colour.paint(text),
            _ => text.to_owned(),
        }
    }

    /// A remark of this program.
    pub(crate) fn note(&self, words: &str) -> String {
        match self.style {
            Style::People { .. } => self.paint(Colour::Dim, words),
            Style::Json => object("note", None, json!({ "message": words })),
        }
    }

    /// A server is reached, the first time or again.
    pub(crate) fn connected(&self, node: Option<&str>, again: bool) -> String {
        match self.style {
            Style::People { .. } => self.paint(Colour::Dim, &connected(node, again)),
            Style::Json => object("connected", None, json!({ "node": node, "again": again })),
        }
    }

    /// Something went wrong in this program.
    pub(crate) fn wrong(&self, words: &str) -> String {
        let words = printable_lines(words);
        match self.style {
            Style::People { .. } => self.paint(Colour::Yellow, &format!("error: {words}")),
            Style::Json => object("wrong", None, json!({ "message": words })),
        }
    }

    /// Tells programs why there is nothing to show; people read it when this one ends.
    pub(crate) fn failed(&self, why: &impl Display) {
        if self.is_json() {
            cli::say(self.wrong(&why.to_string()));
        }
    }

    /// An update, but for the end. `number` tells chats apart, if there are several.
    pub(crate) fn update(&mut self, update: &ChatUpdate, number: Option<u64>) -> Vec<Piece> {
        if self.is_json() {
            let line = self.json(update, number);
            return line.map(Piece::Line).into_iter().collect();
        }
        match update {
            ChatUpdate::Event(Event::Reasoning(text)) => {
                self.thought.push_str(text);
                return Vec::new();
            }
            // It comes between thoughts, too.
            ChatUpdate::Event(Event::Usage(_)) => return Vec::new(),
            _ => {}
        }
        let mut pieces: Vec<_> = self.thought().into_iter().map(Piece::Line).collect();
        match update {
            ChatUpdate::Event(Event::TextDelta(text)) => {
                pieces.push(Piece::Text(printable_lines(text)));
            }
            other => pieces.extend(self.lines(other, number).into_iter().map(Piece::Line)),
        }
        pieces
    }

    /// What was thought until now.
    fn thought(&mut self) -> Option<String> {
        let thought = std::mem::take(&mut self.thought);
        let thought = thought.trim();
        (!thought.is_empty()).then(|| self.note(&format!("  thinks: {}", printable_lines(thought))))
    }

    fn lines(&mut self, update: &ChatUpdate, number: Option<u64>) -> Vec<String> {
        match update {
            ChatUpdate::Queued { position } => {
                let which = number.map_or(String::new(), |number| format!("chat {number} "));
                vec![self.note(&format!("  {which}waiting, place {position}"))]
            }
            ChatUpdate::Event(event) => self.event(event, number),
            ChatUpdate::Warning(warning) => {
                vec![self.paint(Colour::Yellow, &format!("  warning: {warning}"))]
            }
            _ => Vec::new(),
        }
    }

    fn event(&mut self, event: &Event, number: Option<u64>) -> Vec<String> {
        match event {
            // The list itself follows.
            Event::ToolCall(call) if call.name == CHECKLIST => Vec::new(),
            Event::ToolCall(call) => {
                let (key, line) = ((number, call.id.to_string()), self.note(&tool::call(call)));
                if self.calls.len() >= MAX_CALLS {
                    self.calls.clear();
                }
                self.calls.insert(key.clone(), line.clone());
                self.named = Some(key);
                vec![line]
            }
            Event::ToolOutput(output) => {
                let part = self.part(&output.content);
                self.below((number, output.id.to_string()), part)
            }
            Event::ToolResult(result) => {
                let line = tool::failure(result).map(|why| {
                    let (name, why) = (printable(&result.name), printable(why));
                    self.paint(Colour::Yellow, &format!("  {name} failed: {why}"))
                });
                let key = (number, result.id.to_string());
                let lines = self.below(key.clone(), line);
                self.calls.remove(&key);
                lines
            }
            Event::Checklist(list) | Event::Tasklist(list) => self.list(list),
            Event::Notice(notice) => {
                let words = format!("  {}: {}", notice.level.name(), printable(&notice.message));
                let colour = match notice.level {
                    NoticeLevel::Error => Colour::Red,
                    _ => Colour::Yellow,
                };
                vec![self.paint(colour, &words)]
            }
            // This program has put it on.
            Event::SkillActivated(skill) if skill.name == ASK_FIRST => Vec::new(),
            Event::SkillActivated(skill) => {
                vec![self.note(&format!("  skill {} is on", printable(&skill.name)))]
            }
            Event::SkillDeactivated(name) => {
                vec![self.note(&format!("  skill {} is off", printable(name)))]
            }
            // The end of the chat tells of an error, and the reply what it has cost.
            _ => Vec::new(),
        }
    }

    /// A line about a call, below the one that names it: calls run side by side.
    fn below(&mut self, key: CallKey, line: Option<String>) -> Vec<String> {
        let Some(line) = line else {
            return Vec::new();
        };
        if self.named.as_ref() == Some(&key) {
            return vec![line];
        }
        let name = self.calls.get(&key).cloned();
        self.named = Some(key);
        name.into_iter().chain([line]).collect()
    }

    fn list(&self, list: &Checklist) -> Vec<String> {
        let title = format!("  {}", printable(&list.group_title));
        let mut items: Vec<_> = list.items.iter().collect();
        items.sort_by_key(|item| item.order);
        let item = |item: &acolyte_proto::event::ChecklistItem| {
            use acolyte_proto::event::ItemStatus;
            let mark = checklist::mark(&item.status);
            let line = format!("    {mark} {}", printable(&item.label));
            match item.status {
                ItemStatus::Done => self.paint(Colour::Green, &line),
                ItemStatus::Failed => self.paint(Colour::Red, &line),
                ItemStatus::InProgress => self.paint(Colour::Bold, &line),
                _ => line,
            }
        };
        let items = items.into_iter().map(item);
        std::iter::once(self.paint(Colour::Bold, &title))
            .chain(items)
            .collect()
    }

    fn json(&self, update: &ChatUpdate, number: Option<u64>) -> Option<String> {
        #[derive(Serialize)]
        struct Line<'a> {
            update: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            chat: Option<u64>,
            event: &'a Event,
        }
        let (update, about) = match update {
            ChatUpdate::Accepted { task_id } => ("accepted", json!({ "taskId": task_id.as_str() })),
            ChatUpdate::Queued { position } => ("queued", json!({ "position": position })),
            ChatUpdate::Started => ("started", json!({})),
            ChatUpdate::Event(event) => {
                // As it came: in a map its members would be sorted anew.
                let (update, chat) = ("event", number);
                let line = serde_json::to_string(&Line {
                    update,
                    chat,
                    event,
                });
                return Some(line.unwrap_or_else(|error| self.wrong(&error.to_string())));
            }
            ChatUpdate::Warning(warning) => ("warning", json!({ "message": warning.to_string() })),
            _ => return None,
        };
        Some(object(update, number, about))
    }

    /// The end, for programs. Without `null`s.
    pub(crate) fn ended_json(
        outcome: &Outcome,
        task_id: Option<&str>,
        number: Option<u64>,
    ) -> String {
        let mut about = Map::new();
        let mut put = |name: &str, value: Value| {
            about.insert(name.to_owned(), value);
        };
        put("outcome", name(outcome).into());
        put("mayHaveRun", outcome.may_have_run().into());
        if let Some(id) = task_id {
            put("taskId", id.into());
        }
        if let Some(reply) = said(outcome) {
            put("reply", serde_json::to_value(reply).unwrap_or_default());
        }
        if let Outcome::Failed(Failure::Server(error)) = outcome {
            if let Some(code) = error.code.as_deref() {
                put("errorCode", code.into());
            }
            if let Some(id) = &error.id {
                put("errorId", id.as_str().into());
            }
        }
        if !outcome.is_done() {
            put("message", words(outcome).into());
        }
        object("ended", number, Value::Object(about))
    }
}

/// A line for programs, which begins with what it is about.
fn object(update: &'static str, chat: Option<u64>, about: Value) -> String {
    #[derive(Serialize)]
    struct Line {
        update: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<u64>,
        #[serde(flatten)]
        about: Value,
    }
    let line = Line {
        update,
        chat,
        about,
    };
    // It has no keys but texts.
    serde_json::to_string(&line).unwrap_or_default()
}

/// What the model has said, to its end or not.
pub(crate) fn said(outcome: &Outcome) -> Option<&Reply> {
    match outcome {
        Outcome::Done(reply) | Outcome::Failed(Failure::Model(reply)) => Some(reply),
        _ => None,
    }
}

/// A word for an outcome.
const fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Failed(_) => "failed",
        Outcome::Refused { .. } => "refused",
        Outcome::Aborted { .. } => "aborted",
        Outcome::TimedOut { .. } => "timed-out",
        Outcome::Closed { .. } => "closed",
        Outcome::NotSent(_) => "not-sent",
        _ => "other",
    }
}

/// An outcome that is no success, in words.
pub(crate) fn words(outcome: &Outcome) -> String {
    match outcome {
        // That it is unknown is no news to people.
        Outcome::Failed(Failure::Server(error)) => match error.code.as_deref() {
            Some(code) if code != code::UNKNOWN => format!("{} ({code})", error.message),
            _ => error.message.to_string(),
        },
        Outcome::Failed(failure) => failure.to_string(),
        Outcome::Closed { delivery, .. } | Outcome::TimedOut { delivery } => {
            let told = match delivery {
                Delivery::NotSent => "it was not sent",
                _ => "it may have done some of its work; look before you repeat it",
            };
            format!("{outcome}; {told}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
