//! [`Show`]: what happens, in lines for people or for programs.

use connectonion_proto::client::Step;
use connectonion_proto::frame::{
    ChatItem, ChatItemKind, Connected, EventKind, Output, ReceivedFile, SessionState, ToolStatus,
};
use rpc_core::Json;
use rpc_core::Limits;
use rpc_core::net::Node;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::screen::{Colour, printable, printable_lines};

use super::steps::{not_stored, shortened};

/// So much of what a tool gets and says is shown, in characters.
const TOOL: usize = 200;
/// So many items of an earlier conversation are shown.
const EARLIER: usize = 20;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// For people, with colours or without.
    People { colour: bool },
    /// One JSON object each.
    Json,
}

/// Puts what happens into lines.
#[derive(Debug)]
pub(crate) struct Show {
    style: Style,
    /// What the agent has said last: known agents say their answer twice.
    said: String,
}

impl Show {
    pub(crate) const fn new(style: Style) -> Self {
        let said = String::new();
        Self { style, said }
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

    /// A line that is no event of the agent: its name for programs with more about it, and words for
    /// people.
    pub(crate) fn note(&self, name: &str, about: Value, words: &str) -> String {
        match self.style {
            Style::People { .. } => self.paint(Colour::Dim, words),
            Style::Json => {
                let mut object = json!({ "event": name });
                if let (Some(object), Value::Object(about)) = (object.as_object_mut(), about) {
                    object.extend(about);
                }
                object.to_string()
            }
        }
    }

    /// Something went wrong.
    pub(crate) fn error(&self, message: &str) -> String {
        let words = format!("error: {}", printable_lines(message));
        match self.style {
            Style::People { .. } => self.paint(Colour::Yellow, &words),
            Style::Json => self.note("error", json!({ "message": message }), ""),
        }
    }

    /// The client was let in by this node. With what was said before, if the host tells it.
    pub(crate) fn connected(&self, connected: &Connected, node: Option<Node>) -> Vec<String> {
        if self.is_json() {
            let about = json!({
                "node": node.map(|node| node.to_string()),
                "sessionId": &*connected.session_id,
                "status": connected.status.name(),
                "newer": connected.session.is_some(),
            });
            return vec![self.note("connected", about, "")];
        }
        let Some(items) = &connected.chat_items else {
            return Vec::new();
        };
        // What still runs is told as it happens.
        let shown = connected.status != SessionState::Running;
        let limits = Limits::default();
        let items = ChatItem::list(items.get(), &limits).unwrap_or_default();
        let skipped = items.len().saturating_sub(EARLIER);
        let items = items.iter().skip(skipped).filter(|_| shown);
        items.filter_map(|item| self.earlier(item)).collect()
    }

    fn earlier(&self, item: &ChatItem) -> Option<String> {
        let text = printable_lines(&item.text()?);
        match &item.kind {
            ChatItemKind::User(_) => Some(self.paint(Colour::Dim, &format!("> {text}"))),
            _ => Some(text),
        }
    }

    /// A question, for programs; people are asked in words.
    pub(crate) fn question(&self, step: &Step, words: Vec<String>) -> Vec<String> {
        if self.is_json() {
            return vec![self.step_json("question", step)];
        }
        let mut words = words.into_iter();
        let first = words.next().map(|line| self.paint(Colour::Magenta, &line));
        first.into_iter().chain(words).collect()
    }

    fn step_json(&self, name: &str, step: &Step) -> String {
        match RawValue::from_string(step.frame.get().to_owned()) {
            Ok(frame) => format!(r#"{{"event":"{name}","frame":{frame}}}"#),
            Err(error) => self.error(&error.to_string()),
        }
    }

    /// A step of the agent's work. `own` is what this user has said.
    pub(crate) fn step(&mut self, step: &Step, own: bool) -> Vec<String> {
        if self.is_json() {
            return vec![self.step_json("step", step)];
        }
        if let EventKind::Assistant(said) = &step.event.kind {
            said.as_str().clone_into(&mut self.said);
            return vec![printable_lines(said)];
        }
        let line = self.words(&step.event.kind, own);
        line.map(|line| self.paint(Colour::Dim, &line))
            .into_iter()
            .collect()
    }

    fn words(&self, kind: &EventKind, own: bool) -> Option<String> {
        let line = match kind {
            EventKind::UserInput(input) if input.runtime_input => {
                format!("  the agent reads: {}", printable(&input.content))
            }
            EventKind::UserInput(input) if !own => format!("> {}", printable_lines(&input.content)),
            EventKind::Thinking(thought) => {
                format!("  thinks: {}", printable_lines(thought.content.as_deref()?))
            }
            EventKind::ToolCall(call) => {
                let args = call.args.as_ref().map_or("", Json::get);
                format!("  {} {}", printable(&call.name), short(args))
            }
            EventKind::ToolResult(result) => {
                let name = printable(result.name.as_deref().unwrap_or("tool"));
                let failed = result.status.as_ref();
                let failed = if failed.is_some_and(ToolStatus::is_error) {
                    " failed"
                } else {
                    ""
                };
                let text = result.result.as_deref().or(result.error.as_deref());
                format!("  {name}{failed}: {}", short(text.unwrap_or_default()))
            }
            EventKind::FilesReceived(received) => {
                let files: Vec<ReceivedFile> = received.files.parse().unwrap_or_default();
                let names: Vec<_> = files.iter().map(|file| printable(&file.name)).collect();
                format!("  the agent has got {}", names.join(", "))
            }
            EventKind::ModeChanged(changed) => {
                format!("  mode: {}", printable(changed.mode.name()))
            }
            EventKind::Compact(compact) => format!("  {}", printable(&shortened(compact))),
            EventKind::ToolBlocked(blocked) => {
                let why = blocked.message.as_deref().or(blocked.reason.as_deref());
                let why = printable(why.unwrap_or("no reason given"));
                format!("  {} may not run: {why}", printable(&blocked.tool))
            }
            EventKind::Intent(intent) => format!("  {}", printable(intent.ack.as_deref()?)),
            EventKind::Eval(eval) => format!("  {}", printable(eval.summary.as_deref()?)),
            EventKind::AgentImage(image) => format!("  an image of {} bytes", image.len()),
            EventKind::DiffPreview(diff) => {
                let preview = printable_lines(diff.preview.as_deref().unwrap_or_default());
                format!("  {}:\n{}", printable(&diff.path), preview.trim_end())
            }
            _ => return None,
        };
        Some(line)
    }

    /// The agent's answer.
    pub(crate) fn output(&mut self, output: &Output) -> Vec<String> {
        if self.is_json() {
            let mut about = json!({
                "result": &*output.result,
                "sessionId": output.session_id.as_deref(),
            });
            if let Some(why) = &output.not_stored {
                about["notStored"] = json!(&**why);
            }
            return vec![self.note("output", about, "")];
        }
        let said = std::mem::take(&mut self.said);
        let answer = (said != *output.result).then(|| printable_lines(&output.result));
        let note = not_stored(output).map(|it| format!("  {}", printable(&it)));
        answer.into_iter().chain(note).collect()
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    let line = printable(text);
    match line.char_indices().nth(TOOL) {
        None => line.into_owned(),
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
    }
}
