//! [`Show`]: what people see of a chat, and JSON for programs.

use std::fmt::Display;

use serde_json::Value;
use switchboard::cli;
use switchboard::terminal::{ChatEvent, ChatView};

/// How everything is shown.
pub(super) struct Show {
    pub(super) view: ChatView,
    pub(super) is_terminal: bool,
    pub(super) json: bool,
}

impl Show {
    /// Shows what was asked for: the value as an event in JSON, or the words.
    pub(super) async fn answer(&self, event: &str, about: Value, words: impl Display) {
        let words = ChatEvent::Info(words.to_string());
        self.show(event, about, words).await;
    }

    /// Shows an event that has words for programs only.
    pub(super) async fn event(&self, event: &str, about: Value) {
        if self.json {
            self.line(event, about).await;
        }
    }

    /// Remarks on an event.
    pub(super) async fn tell(&self, event: &str, about: Value, words: impl Display) {
        if self.json || !cli::is_quiet() {
            let words = ChatEvent::Note(words.to_string());
            self.show(event, about, words).await;
        }
    }

    /// Shows what could not be done, quiet or not.
    pub(super) async fn wrong(&self, event: &str, about: Value, words: impl Display) {
        let words = ChatEvent::Error(words.to_string());
        self.show(event, about, words).await;
    }

    async fn show(&self, event: &str, about: Value, words: ChatEvent) {
        match self.json {
            true => self.line(event, about).await,
            false => self.view.show(words).await,
        }
    }

    async fn line(&self, event: &str, mut about: Value) {
        about["event"] = event.into();
        self.view.show(ChatEvent::Line(about.to_string())).await;
    }
}
