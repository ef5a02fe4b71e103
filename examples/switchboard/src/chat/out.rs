//! [`Out`]: where a conversation is shown, to people or to programs.

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value};

use crate::chat::terminal::{self, ChatEvent, ChatView, Terminal};
use crate::cli::{self, Failure};

/// Returns the event of what a server has sent, as it came: in a map its members would be sorted again.
pub fn frame(name: &str, frame: &str) -> String {
    format!(r#"{{"event":"{name}","frame":{frame}}}"#)
}

/// The arguments that say most about a call, in this order.
const TELLING: &str = "path file_path command query pattern glob url title question";

/// Returns what says most of the arguments of a call.
pub fn telling(arguments: &str) -> String {
    let named: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    let mut names = TELLING.split(' ');
    let text = names.find_map(|name| named.get(name)?.as_str());
    match text {
        Some(text) => text.to_owned(),
        None if named.is_empty() => String::new(),
        None => arguments.to_owned(),
    }
}

/// Shows a conversation: events to people, lines of JSON to programs.
pub struct Out {
    view: ChatView,
    is_json: bool,
    is_once: bool,
    is_terminal: bool,
    /// What went wrong without anybody at a terminal to see it.
    count: Cell<usize>,
    /// Why the only text has no answer.
    failure: RefCell<Option<Failure>>,
    /// What came of the last text is shown.
    is_settled: Cell<bool>,
}

impl Out {
    /// Creates the output of a conversation: above the line that is edited in `terminal`, or without one.
    pub(super) fn new(terminal: Option<&Terminal>, is_json: bool, is_once: bool) -> Self {
        // Only where both outputs are watched, one picture of both can be drawn.
        let is_plain = is_json || is_once && !terminal::is_watched();
        Self {
            view: match terminal {
                None if is_plain => ChatView::plain(),
                terminal => ChatView::new(terminal),
            },
            is_json,
            is_once,
            is_terminal: terminal.is_some(),
            count: Cell::new(0),
            failure: RefCell::new(None),
            is_settled: Cell::new(false),
        }
    }

    /// Returns whether events are printed for programs.
    pub const fn is_json(&self) -> bool {
        self.is_json
    }

    /// Returns whether a person edits lines.
    pub const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Shows events to people.
    pub async fn people(&self, events: impl IntoIterator<Item = ChatEvent>) {
        if !self.is_json {
            for event in events {
                self.view.show(event).await;
            }
        }
    }

    /// Writes an event for programs, an object, as a line of JSON.
    pub async fn program(&self, name: &str, mut about: Value) {
        if self.is_json {
            about["event"] = name.into();
            self.line(about.to_string()).await;
        }
    }

    /// Writes a line of JSON as it is.
    pub async fn line(&self, json: String) {
        if self.is_json {
            self.view.show(ChatEvent::Line(json)).await;
        }
    }

    /// Tells of an event: programs what it is about, people in words, which are a remark.
    pub async fn report(&self, name: &str, about: Value, words: &str) {
        self.program(name, about).await;
        if !cli::is_quiet() {
            self.people([ChatEvent::Note(words.to_owned())]).await;
        }
    }

    /// Remarks on something.
    pub async fn note(&self, words: &str) {
        let about = serde_json::json!({ "message": words });
        self.report("note", about, words).await;
    }

    /// Warns of something.
    pub async fn warn(&self, words: &str) {
        let about = serde_json::json!({ "message": words });
        self.program("warning", about).await;
        self.people([ChatEvent::Warning(words.to_owned())]).await;
    }

    /// Shows what a command asks for.
    pub async fn answer(&self, name: &str, about: Value, words: &str) {
        self.program(name, about).await;
        self.people([ChatEvent::Info(words.to_owned())]).await;
    }

    /// Tells that a server is reached, and which of several it is.
    pub async fn connected(&self, node: Option<&str>, again: bool) {
        let name = if again { "back" } else { "connected" };
        let about = serde_json::json!({ "node": node });
        let words = match (node, again) {
            (Some(node), true) => format!("connected again, at {node}"),
            (Some(node), false) => format!("connected, at {node}"),
            (None, true) => "connected again".to_owned(),
            (None, false) => "connected".to_owned(),
        };
        self.report(name, about, &words).await;
    }

    /// Tells of an error that does not end anything.
    pub async fn complain(&self, words: &str) {
        let about = serde_json::json!({ "message": words });
        self.program("error", about).await;
        self.people([ChatEvent::Error(words.to_owned())]).await;
    }

    /// Tells of something that has failed. With one text, that is the end.
    pub async fn wrong(&self, failure: Failure) {
        let about = serde_json::json!({ "message": failure.to_string() });
        self.wrong_as("error", about, failure).await;
    }

    /// Tells of something that has failed like [`wrong`](Self::wrong), with an event of its own for programs.
    pub async fn wrong_as(&self, name: &str, about: Value, failure: Failure) {
        self.program(name, about).await;
        self.failed(failure).await;
    }

    /// Tells people of something that has failed, which programs know already.
    pub async fn failed(&self, failure: Failure) {
        if self.is_once {
            self.failure.borrow_mut().get_or_insert(failure);
            return;
        }
        if !self.is_terminal {
            self.count.set(self.count.get() + 1);
        }
        self.people([ChatEvent::Error(failure.to_string())]).await;
    }

    /// Notes whether what came of the last text is shown: then a signal does not change it.
    pub fn set_settled(&self, is_settled: bool) {
        self.is_settled.set(is_settled);
    }

    pub(super) const fn is_settled(&self) -> bool {
        self.is_settled.get()
    }

    /// How much has failed.
    pub(super) const fn failures(&self) -> usize {
        self.count.get()
    }

    /// Whether the only text has failed.
    pub(super) fn has_failure(&self) -> bool {
        self.failure.borrow().is_some()
    }

    pub(super) fn take_failure(&self) -> Option<Failure> {
        self.failure.borrow_mut().take()
    }

    pub(super) async fn finish(self) {
        self.view.finish().await;
    }
}

rpc_core::debug_fields!([] Out, _ => {});
