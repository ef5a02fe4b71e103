//! [`Line`]: what a line of the person asks for.

use smarthole_proto::limits::MAX_PAYLOAD;
use switchboard::terminal::{self, Command, split_command, unknown};

pub(crate) const HELP: &str = "\
Write what you want done; the router decides who gets it.
  NAME: TEXT              goes to the client NAME and nobody else";

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// To send this.
    Text(String),
    /// To list the clients.
    Clients,
    /// To list what has ended.
    History,
    /// To explain the lines.
    Help,
    /// To end.
    Quit,
    /// This cannot be done.
    Wrong(String),
}

impl terminal::Line for Line {
    const MAX_BYTES: usize = MAX_PAYLOAD;

    fn parse(line: &str) -> Option<Self> {
        let text = line.trim_end();
        let Some((command, rest)) = split_command(text) else {
            return (!text.trim_start().is_empty()).then(|| Self::Text(text.to_owned()));
        };
        Some(match (command, rest) {
            ("clients", "") => Self::Clients,
            ("history", "") => Self::History,
            ("help" | "?", "") => Self::Help,
            ("quit" | "exit", "") => Self::Quit,
            (command, _) => Self::Wrong(unknown::<Self>(command)),
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
                Command::new("clients", "", "show who is there"),
                Command::new("history", "", "show what came of the last messages"),
                Command::new("help", "", "show this"),
                Command::new("quit", "", "end the router"),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard::terminal::Line as _;

    use super::*;

    fn parse(text: &str) -> Option<Line> {
        Line::parse(text)
    }

    #[test]
    fn a_line_is_a_text_or_a_command() {
        let text = |text: &str| Some(Line::Text(text.to_owned()));
        assert_eq!(parse("notes: buy milk \r\n"), text("notes: buy milk"));
        assert_eq!(parse(" /quit"), text(" /quit"));
        assert_eq!(parse("/quit "), Some(Line::Quit));
        assert_eq!(parse("/clients"), Some(Line::Clients));
        assert_eq!(parse("/history"), Some(Line::History));
        assert_eq!(parse("/?"), Some(Line::Help));
        assert!(matches!(parse("/nope"), Some(Line::Wrong(why)) if why.contains("/nope")));
        assert_eq!(parse(" \t "), None);
        assert_eq!(parse(""), None);
    }
}
