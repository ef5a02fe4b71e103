//! [`Line`]: what a line of a dialogue asks for.

use switchboard::terminal::{self, Command, split_command, unknown};

use super::{MAX_TEXT, Query};

/// Turns that are shown unless the user says how many.
const TURNS: u64 = 10;

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// To say this.
    Text(String),
    /// To ask what the gateway remembers.
    Query(Query),
    /// To explain the lines.
    Help,
    /// To stop the reply.
    Stop,
    /// To stop the reply, or else to end.
    Interrupt,
    /// To end.
    Quit,
    /// This cannot be done.
    Wrong(String),
}

impl terminal::Line for Line {
    const MAX_BYTES: usize = MAX_TEXT;

    fn parse(text: &str) -> Option<Self> {
        let Some((command, rest)) = split_command(text) else {
            let text = text.trim();
            return (!text.is_empty()).then(|| Self::Text(text.to_owned()));
        };
        Some(match (command, rest) {
            ("history", "") => Self::Query(Query::History(TURNS)),
            ("history", count) => match count.parse() {
                Ok(count) => Self::Query(Query::History(count)),
                Err(_) => Self::Wrong("/history needs a number of turns".to_owned()),
            },
            ("search", "") => Self::Wrong("/search needs words to look for".to_owned()),
            ("search", words) => Self::Query(Query::Search(words.to_owned())),
            ("clear", "") => Self::Query(Query::Clear),
            ("budget", "") => Self::Query(Query::Budget),
            ("help" | "?", "") => Self::Help,
            ("quit" | "exit", "") => Self::Quit,
            (command, _) => Self::Wrong(unknown::<Self>(command)),
        })
    }

    fn wrong(why: String) -> Self {
        Self::Wrong(why)
    }

    fn quit() -> Self {
        Self::Interrupt
    }

    fn is_quit(&self) -> bool {
        *self == Self::Quit
    }

    fn stop() -> Option<Self> {
        Some(Self::Stop)
    }

    fn commands() -> &'static [Command] {
        const {
            &[
                Command::new("clear", "", "forget the turns of this conversation"),
                Command::new("history", "[COUNT]", "show the last turns"),
                Command::new("budget", "", "show how many tokens are used"),
                Command::new(
                    "search",
                    "WORDS",
                    "show what the gateway knows of you about them",
                ),
                Command::new("help", "", "show this"),
                Command::new("quit", "", "leave"),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard::terminal::Line as _;

    use super::*;

    #[test]
    fn a_line_is_a_text_or_a_command() {
        for (text, expected) in [
            (" hello \n", Some(Line::Text("hello".to_owned()))),
            (" /quit", Some(Line::Text("/quit".to_owned()))),
            ("", None),
            ("/history", Some(Line::Query(Query::History(TURNS)))),
            ("/history 3", Some(Line::Query(Query::History(3)))),
            (
                "/search a b",
                Some(Line::Query(Query::Search("a b".to_owned()))),
            ),
            ("/clear", Some(Line::Query(Query::Clear))),
        ] {
            assert_eq!(Line::parse(text), expected, "{text}");
        }
        for wrong in ["/history many", "/search", "/claer"] {
            assert!(
                matches!(Line::parse(wrong), Some(Line::Wrong(_))),
                "{wrong}"
            );
        }
    }
}
