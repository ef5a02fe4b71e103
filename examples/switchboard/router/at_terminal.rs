//! [`AtTerminal`]: a client with somebody in front of it: what it works on stands in a status line, and a
//! line can ask for its notes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard::cli::Failure;
use switchboard::router::Note;
use switchboard::terminal::{self, ChatEvent, ChatView, Command, Input, split_command, unknown};

const HELP: &str = "Messages come from the router; what was kept can be read here.";

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// To show the notes.
    Notes,
    /// To explain the lines.
    Help,
    /// To end.
    Quit,
    /// This cannot be done.
    Wrong(String),
}

impl terminal::Line for Line {
    const MAX_BYTES: usize = 4096;

    fn parse(line: &str) -> Option<Self> {
        let text = line.trim();
        Some(match split_command(text) {
            None if text.is_empty() => return None,
            None => Self::Wrong("write to the router what you want done; see /help".to_owned()),
            Some(("notes", "")) => Self::Notes,
            Some(("help" | "?", "")) => Self::Help,
            Some(("quit" | "exit", "")) => Self::Quit,
            Some((command, _)) => Self::Wrong(unknown::<Self>(command)),
        })
    }

    fn wrong(why: String) -> Self {
        Self::Wrong(why)
    }

    fn quit() -> Self {
        Self::Quit
    }

    fn commands() -> &'static [Command] {
        const {
            &[
                Command::new("notes", "", "show what was kept"),
                Command::new("help", "", "show this"),
                Command::new("quit", "", "end the client"),
            ]
        }
    }
}

/// What is seen of a client at a terminal. Clones are the same one; without a terminal, it shows nothing.
#[derive(Clone, Default)]
pub(super) struct AtTerminal(Option<Arc<Shown>>);

struct Shown {
    view: ChatView,
    /// Messages that are not answered.
    open: AtomicUsize,
}

impl AtTerminal {
    /// Begins to read lines, if somebody is there to write them.
    pub(super) fn open(is_json: bool) -> Result<(Self, Option<Input<Line>>), Failure> {
        if is_json || !terminal::is_interactive() {
            return Ok((Self(None), None));
        }
        let input = terminal::open::<Line>(None)?;
        let view = ChatView::new(input.terminal.as_ref());
        let open = AtomicUsize::new(0);
        Ok((Self(Some(Arc::new(Shown { view, open }))), Some(input)))
    }

    async fn show(&self, event: ChatEvent) {
        if let Some(shown) = &self.0 {
            shown.view.show(event).await;
        }
    }

    /// Says in the status line that a message is being answered.
    pub(super) async fn begins(&self, text: &str) {
        if let Some(shown) = &self.0 {
            shown.open.fetch_add(1, Ordering::Relaxed);
            self.show(ChatEvent::Activity(format!("answering {text:?}")))
                .await;
        }
    }

    /// Says that a message is answered.
    pub(super) async fn ends(&self) {
        let Some(shown) = &self.0 else { return };
        if shown.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.show(ChatEvent::Ended).await;
        }
    }

    /// Does what lines ask for, until one asks to end. Never ends without a terminal.
    pub(super) async fn attend(
        &self,
        input: &mut Option<Input<Line>>,
        notes: impl AsyncFn() -> std::io::Result<Vec<Note>>,
    ) {
        let Some(input) = input else {
            return std::future::pending().await;
        };
        while let Some(line) = input.lines.recv().await {
            match line {
                Line::Notes => match notes().await {
                    Ok(notes) => self.show(ChatEvent::Info(listed(&notes))).await,
                    Err(error) => self.show(ChatEvent::Error(error.to_string())).await,
                },
                Line::Help => {
                    let help = terminal::help::<Line>(HELP);
                    self.show(ChatEvent::Info(help)).await;
                }
                Line::Wrong(why) => self.show(ChatEvent::Warning(why)).await,
                Line::Quit => return,
            }
        }
    }
}

fn listed(notes: &[Note]) -> String {
    if notes.is_empty() {
        return "no notes yet".to_owned();
    }
    let lines = notes
        .iter()
        .map(|note| format!("{}  {}", note.time, note.text));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use switchboard::terminal::Line as _;

    use super::*;

    #[test]
    fn a_line_is_a_command() {
        assert_eq!(Line::parse("/notes "), Some(Line::Notes));
        assert_eq!(Line::parse("/?"), Some(Line::Help));
        assert_eq!(Line::parse("/exit"), Some(Line::Quit));
        assert_eq!(Line::parse(" \t"), None);
        assert!(
            matches!(Line::parse("buy milk"), Some(Line::Wrong(why)) if why.contains("router"))
        );
        assert!(matches!(Line::parse("/note"), Some(Line::Wrong(why)) if why.contains("/notes")));
    }

    #[test]
    fn notes_are_listed_with_their_times() {
        assert_eq!(listed(&[]), "no notes yet");
        let note = |text: &str| Note {
            time: "now".to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(listed(&[note("a"), note("b")]), "now  a\nnow  b");
    }
}
