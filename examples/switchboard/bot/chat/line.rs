//! [`Line`]: what a line of the user asks for.

use switchboard::terminal::{self, Command, split_command, unknown};

pub(crate) const HELP: &str =
    "Write a message to everybody in the channel. A bot answers when it is called: @mybot help";

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// To post this.
    Text(String),
    /// To list the channels.
    Channels,
    /// To write to this channel.
    Join(String),
    /// To look up this user, or oneself.
    Who(Option<String>),
    /// To explain the lines.
    Help,
    /// To end.
    Quit,
    /// This cannot be done.
    Wrong(String),
}

impl terminal::Line for Line {
    /// Fits into a frame, whatever has to be escaped.
    const MAX_BYTES: usize = 512 * 1024;

    fn parse(text: &str) -> Option<Self> {
        let Some((command, rest)) = split_command(text) else {
            let text = text.trim();
            return (!text.is_empty()).then(|| Self::Text(text.to_owned()));
        };
        let rest = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        Some(match (command, rest) {
            ("channels", None) => Self::Channels,
            ("join", Some(name)) => Self::Join(name),
            ("join", None) => Self::Wrong("/join needs the name of a channel".to_owned()),
            ("who", name) => Self::Who(name),
            ("help" | "?", None) => Self::Help,
            ("quit" | "exit", None) => Self::Quit,
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
                Command::new("channels", "", "list the channels"),
                Command::new("join", "NAME", "write to this channel from now on"),
                Command::new(
                    "who",
                    "[NAME]",
                    "show who has this login name, or who you are",
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
    fn lines_are_messages_unless_they_begin_with_a_slash() {
        for (text, expected) in [
            (" hello \n", Some(Line::Text("hello".to_owned()))),
            (" /quit", Some(Line::Text("/quit".to_owned()))),
            ("  ", None),
            ("/channels ", Some(Line::Channels)),
            ("/join  My Room", Some(Line::Join("My Room".to_owned()))),
            ("/who", Some(Line::Who(None))),
            ("/who ann", Some(Line::Who(Some("ann".to_owned())))),
            ("/exit", Some(Line::Quit)),
        ] {
            assert_eq!(Line::parse(text), expected, "{text}");
        }
        for wrong in ["/fly", "/join", "/quit now"] {
            assert!(
                matches!(Line::parse(wrong), Some(Line::Wrong(_))),
                "{wrong}"
            );
        }
    }
}
