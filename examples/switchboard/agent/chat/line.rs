//! [`Line`]: what a line of the user asks for.

use std::path::PathBuf;

use connectonion_proto::frame::Mode;
use connectonion_proto::limits::MAX_SERVER_MESSAGE;
use rpc_core::Str;
use switchboard::terminal::{self, Command, split_command, unknown};

pub(crate) const HELP: &str = "Write what you want of the agent. While it works, you can say more; it reads that \
    at its next step. It goes on when this program ends.";

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// To say this, or to answer with it. May be empty.
    Text(String),
    /// To say this to an agent that works.
    Say(String),
    /// To stop the agent.
    Interrupt,
    /// To stop the agent, or else to end.
    Cancel,
    /// To let the agent work in another mode.
    Mode(Mode, Option<u64>),
    /// To take a file along.
    File(PathBuf),
    /// To take an image along.
    Image(PathBuf),
    /// To begin another conversation.
    New,
    /// To explain the lines.
    Help,
    /// To end.
    Quit,
    /// This cannot be done.
    Wrong(String),
}

impl terminal::Line for Line {
    /// A message has more in it than the text.
    const MAX_BYTES: usize = MAX_SERVER_MESSAGE / 2;

    fn parse(text: &str) -> Option<Self> {
        let Some((command, rest)) = split_command(text) else {
            return Some(Self::Text(text.trim().to_owned()));
        };
        let wants = |what: &str| Some(Self::Wrong(format!("/{command} wants {what}: see /help")));
        Some(match command {
            "interrupt" | "stop" => Self::Interrupt,
            "mode" => return Some(mode(rest).unwrap_or_else(Self::Wrong)),
            "say" | "file" | "image" if rest.is_empty() => return wants("something behind it"),
            "say" => Self::Say(rest.to_owned()),
            "file" => Self::File(rest.into()),
            "image" => Self::Image(rest.into()),
            "new" => Self::New,
            "help" | "?" => Self::Help,
            "quit" | "exit" => Self::Quit,
            _ => Self::Wrong(unknown::<Self>(command)),
        })
    }

    fn stop() -> Option<Self> {
        Some(Self::Interrupt)
    }

    fn commands() -> &'static [Command] {
        const {
            &[
                Command::new("interrupt", "", "stop the agent after its current step"),
                Command::new(
                    "mode",
                    "MODE",
                    "safe, plan, accept_edits, or ulw and a number of turns",
                ),
                Command::new(
                    "file",
                    "PATH",
                    "send a file with your next message, for the agent's tools",
                ),
                Command::new("image", "PATH", "send an image with your next message"),
                Command::new("say", "TEXT", "say it at once, from a pipe too"),
                Command::new("new", "", "begin another conversation"),
                Command::new("help", "", "show this"),
                Command::new("quit", "", "leave; the agent goes on"),
            ]
        }
    }

    fn wrong(why: String) -> Self {
        Self::Wrong(why)
    }

    fn quit() -> Self {
        Self::Cancel
    }

    fn is_quit(&self) -> bool {
        *self == Self::Quit
    }
}

/// Reads `safe`, or `ulw 20`.
fn mode(text: &str) -> Result<Line, String> {
    let (word, turns) = text.split_once(' ').unwrap_or((text, ""));
    let mode = parse_mode(word)?;
    let turns = match turns.trim() {
        "" => None,
        turns => Some(
            turns
                .parse()
                .map_err(|_| format!("{turns:?} is no number of turns"))?,
        ),
    };
    Ok(Line::Mode(mode, turns))
}

/// Reads a mode.
pub(crate) fn parse_mode(word: &str) -> Result<Mode, String> {
    match Mode::from(Str::from(word)) {
        Mode::Other(_) => Err("the modes are safe, plan, accept_edits and ulw".to_owned()),
        known => Ok(known),
    }
}

#[cfg(test)]
mod tests {
    use switchboard::terminal::Line as _;

    use super::*;

    fn parse(text: &str) -> Line {
        Line::parse(text).unwrap()
    }

    #[test]
    fn a_line_is_a_text_or_a_command() {
        assert_eq!(parse(" hello \r\n"), Line::Text("hello".to_owned()));
        assert_eq!(parse(""), Line::Text(String::new()));
        assert_eq!(parse(" /quit"), Line::Text("/quit".to_owned()));
        assert_eq!(parse("/say  more"), Line::Say("more".to_owned()));
        assert_eq!(parse("/interrupt"), Line::Interrupt);
        assert_eq!(parse("/file a b.txt"), Line::File("a b.txt".into()));
        assert_eq!(parse("/mode plan"), Line::Mode(Mode::Plan, None));
        assert_eq!(parse("/mode ulw 7"), Line::Mode(Mode::Ulw, Some(7)));
        assert_eq!(parse("/new"), Line::New);
        assert!(parse("/exit").is_quit());
        for wrong in ["/nope", "/say", "/mode", "/mode wild", "/mode ulw many"] {
            assert!(matches!(parse(wrong), Line::Wrong(_)), "{wrong}");
        }
    }
}
