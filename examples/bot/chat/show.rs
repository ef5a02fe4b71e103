//! [`Show`]: lines to people, at a terminal or at the end of a pipe, and JSON to programs.

use std::fmt::Display;

use examples::cli;
use examples::screen::Colour;
use examples::terminal::Output;
use serde_json::Value;

/// How everything is shown.
pub(super) struct Show {
    pub(super) output: Output,
    pub(super) is_terminal: bool,
    pub(super) json: bool,
}

impl Show {
    /// Shows what was asked for: the value as an event in JSON, or the words.
    pub(super) async fn answer(&self, event: &str, mut about: Value, words: impl Display) {
        let line = match self.json {
            true => {
                about["event"] = event.into();
                about.to_string()
            }
            false => words.to_string(),
        };
        self.output.line(line).await;
    }

    /// Shows an event that has words for programs only.
    pub(super) async fn event(&self, event: &str, about: Value) {
        if self.json {
            self.answer(event, about, "").await;
        }
    }

    /// Remarks on an event.
    pub(super) async fn tell(&self, event: &str, about: Value, words: impl Display) {
        if self.json || self.is_terminal && !cli::is_quiet() {
            let words = self.paint(Colour::Dim, &words.to_string());
            self.answer(event, about, words).await;
        } else if !self.is_terminal {
            cli::complain(words);
        }
    }

    /// Shows what could not be done, quiet or not.
    pub(super) async fn wrong(&self, event: &str, about: Value, words: impl Display) {
        match self.json || self.is_terminal {
            true => self.answer(event, about, words).await,
            false => cli::ask(words),
        }
    }

    pub(super) fn paint(&self, colour: Colour, text: &str) -> String {
        match self.is_terminal && cli::wants_colour(&std::io::stdout()) {
            true => colour.paint(text),
            false => text.to_owned(),
        }
    }
}
