//! [`Line`]: what a line of the user asks for.

use acolyte_proto::limits::MAX_MESSAGE_UNITS;
use switchboard::terminal::{self, Command, split_command, unknown};

pub(crate) const HELP: &str = "Write what you want done. While the agent works you can ask for more, which waits \
    for its turn.";

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// To do this.
    Text(String),
    /// To abort what runs.
    Abort,
    /// To abort what runs, or else to end.
    Interrupt,
    /// To tell about the server.
    Status,
    /// To forget what was said.
    New,
    /// To explain the lines.
    Help,
    /// To end.
    Quit,
    /// This cannot be done.
    Wrong(String),
}

impl terminal::Line for Line {
    /// No character has more than three bytes for each unit.
    const MAX_BYTES: usize = 3 * MAX_MESSAGE_UNITS;

    fn parse(text: &str) -> Option<Self> {
        let Some((command, _)) = split_command(text) else {
            let text = text.trim();
            return (!text.is_empty()).then(|| Self::Text(text.to_owned()));
        };
        Some(match command {
            "abort" | "stop" => Self::Abort,
            "status" => Self::Status,
            "new" => Self::New,
            "help" | "?" => Self::Help,
            "quit" | "exit" => Self::Quit,
            _ => Self::Wrong(unknown::<Self>(command)),
        })
    }

    fn stop() -> Option<Self> {
        Some(Self::Abort)
    }

    fn commands() -> &'static [Command] {
        const {
            &[
                Command::new("abort", "", "abort what runs and what waits"),
                Command::new("status", "", "show what the server has to do"),
                Command::new("new", "", "begin another conversation"),
                Command::new("help", "", "show this"),
                Command::new("quit", "", "abort what runs, and leave"),
            ]
        }
    }

    fn wrong(why: String) -> Self {
        Self::Wrong(why)
    }

    fn quit() -> Self {
        Self::Interrupt
    }

    fn is_quit(&self) -> bool {
        matches!(self, Self::Quit)
    }
}

#[cfg(test)]
mod tests {
    use switchboard::terminal::Line as _;

    use super::*;

    #[test]
    fn lines_are_tasks_unless_they_begin_with_a_slash() {
        for (text, expected) in [
            (" do it \n", Some(Line::Text("do it".to_owned()))),
            (" /abort", Some(Line::Text("/abort".to_owned()))),
            ("  ", None),
            ("/abort", Some(Line::Abort)),
            ("/new ", Some(Line::New)),
            ("/quit", Some(Line::Quit)),
        ] {
            assert_eq!(Line::parse(text), expected, "{text}");
        }
        let wrong = Line::parse("/fly").unwrap();
        assert!(matches!(wrong, Line::Wrong(why) if why.contains("/fly")));
    }
}
