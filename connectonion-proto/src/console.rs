//! [`Line`]: the lines on a host's console. ConnectOnion specification, *Server Console Output*.

use std::fmt;
use std::net::IpAddr;

use rpc_core::text::is_control;

use crate::frame::SessionState;
use crate::hub::Owner;

/// The `tracing` target of these lines.
pub const TARGET: &str = "connectonion::console";

/// Why a prompt that comes before CONNECT is refused.
pub(crate) const NOT_AUTHENTICATED: &str = "not authenticated (send CONNECT first)";

/// The number of characters shown of a session's id.
const ID: usize = 8;
/// The number of characters shown of a prompt.
const PROMPT: usize = 50;
/// The number of characters shown of an error.
const ERROR: usize = 200;

/// One line on the console of a host. `Display` is the line, as in the specification.
///
/// Foreign texts are cut, and characters that could move the cursor, colour the line or change its
/// direction are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A socket was opened.
    Opened {
        /// The peer's address.
        peer: IpAddr,
        /// The number of sessions.
        active: usize,
    },
    /// A socket was closed.
    Gone {
        /// The number of sessions.
        active: usize,
    },
    /// The client sent a conversation.
    ClientSession {
        /// How many messages it has.
        messages: usize,
    },
    /// The server's conversation was the newer one.
    Merged,
    /// A client was admitted.
    Connected {
        /// The caller.
        owner: Owner,
        /// The session.
        session: String,
        /// The session's state.
        status: SessionState,
    },
    /// The client watches a running agent.
    Reattached,
    /// A CONNECT was refused.
    ConnectRefused {
        /// The reason sent to the client.
        why: String,
    },
    /// A prompt started a run.
    Input {
        /// The caller.
        owner: Owner,
        /// The session.
        session: String,
        /// The prompt.
        prompt: String,
    },
    /// A prompt reached a running agent.
    RuntimeInput {
        /// The session.
        session: String,
        /// The prompt.
        prompt: String,
    },
    /// The attachments of a prompt.
    Attachments {
        /// The number of images.
        images: usize,
        /// The number of files.
        files: usize,
    },
    /// A prompt was refused.
    InputRefused {
        /// The reason.
        why: String,
    },
    /// An agent has failed.
    AgentError {
        /// The agent's error.
        message: String,
    },
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { peer, active } => write!(f, "⚡ ws+ {peer} ({active} active)"),
            Self::Gone { active } => write!(f, "⚡ ws- ({active} active)"),
            Self::ClientSession { messages } => {
                write!(f, "  ↑ client session: {messages} messages")
            }
            Self::Merged => f.write_str("  ↕ merged sessions (server newer)"),
            Self::Connected {
                owner,
                session,
                status,
            } => write!(
                f,
                "✓ CONNECT identity={} session={} status={}",
                Identity(owner),
                Cut(session, ID),
                status.name()
            ),
            Self::Reattached => f.write_str("  ↻ reattaching to running agent"),
            Self::ConnectRefused { why } => {
                write!(f, "✗ CONNECT auth error: {}", Cut(why, ERROR))
            }
            Self::Input {
                owner,
                session,
                prompt,
            } => write!(
                f,
                "✓ INPUT identity={} session={} prompt={}",
                Identity(owner),
                Cut(session, ID),
                Cut(prompt, PROMPT)
            ),
            Self::RuntimeInput { session, prompt } => write!(
                f,
                "↳ RUNTIME_INPUT session={} prompt={}",
                Cut(session, ID),
                Cut(prompt, PROMPT)
            ),
            Self::Attachments { images, files } => {
                write!(f, "  ↑ {images} images, {files} files")
            }
            Self::InputRefused { why } => write!(f, "✗ INPUT rejected: {}", Cut(why, ERROR)),
            Self::AgentError { message } => write!(f, "✗ agent error: {}", Cut(message, ERROR)),
        }
    }
}

struct Identity<'a>(&'a Owner);

impl fmt::Display for Identity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Owner::Unsigned => f.write_str("unsigned"),
            Owner::Key(address) => f.write_str(&address.short()),
        }
    }
}

/// A foreign text, cut to a number of characters, with `...` if there are more.
struct Cut<'a>(&'a str, usize);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.chars().filter_map(harmless);
        for letter in shown.by_ref().take(self.1) {
            f.write_fmt(format_args!("{letter}"))?;
        }
        match shown.next() {
            Some(_) => f.write_str("..."),
            None => Ok(()),
        }
    }
}

/// Returns what may be shown of a character on a terminal: line breaks become spaces, control
/// characters are dropped.
fn harmless(letter: char) -> Option<char> {
    match letter {
        '\n' | '\t' => Some(' '),
        letter if is_hidden(letter) => None,
        letter => Some(letter),
    }
}

/// Returns whether a character controls a terminal or the direction of text, or is invisible.
pub(crate) fn is_hidden(letter: char) -> bool {
    is_control(letter)
        || matches!(
            letter,
            '\u{ad}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Warning;

    #[test]
    fn lines_are_those_of_the_specification() {
        let owner = Owner::Key(crate::auth::Address::from_bytes([0x2f; 32]));
        let session = "aad5d1e2-1111".to_owned();
        let connected = |status| Line::Connected {
            owner,
            session: session.clone(),
            status,
        };
        let connect = "✓ CONNECT identity=0x2f2f2f2f2f2f2f... session=aad5d1e2... status=";
        let peer = IpAddr::from([127, 0, 0, 1]);
        let (images, files) = (2, 1);
        let lines = [
            (
                Line::Opened { peer, active: 0 },
                "⚡ ws+ 127.0.0.1 (0 active)",
            ),
            (Line::Gone { active: 1 }, "⚡ ws- (1 active)"),
            (connected(SessionState::New), &format!("{connect}new")),
            (
                connected(SessionState::Connected),
                &format!("{connect}connected"),
            ),
            (
                connected(SessionState::Running),
                &format!("{connect}running"),
            ),
            (
                Line::ClientSession { messages: 4 },
                "  ↑ client session: 4 messages",
            ),
            (Line::Merged, "  ↕ merged sessions (server newer)"),
            (Line::Reattached, "  ↻ reattaching to running agent"),
            (
                Line::Input {
                    owner: Owner::Unsigned,
                    session: "s".to_owned(),
                    prompt: "hello world".to_owned(),
                },
                "✓ INPUT identity=unsigned session=s prompt=hello world",
            ),
            (Line::Attachments { images, files }, "  ↑ 2 images, 1 files"),
            (
                Line::ConnectRefused {
                    why: "forbidden".to_owned(),
                },
                "✗ CONNECT auth error: forbidden",
            ),
            (
                Line::InputRefused {
                    why: Warning::NotConnected {
                        tag: "INPUT".into(),
                    }
                    .to_string(),
                },
                "✗ INPUT rejected: not authenticated (send CONNECT first)",
            ),
            (
                Line::AgentError {
                    message: "out of paper".to_owned(),
                },
                "✗ agent error: out of paper",
            ),
        ];
        for (line, words) in lines {
            assert_eq!(line.to_string(), words);
        }
    }

    #[test]
    fn a_prompt_cannot_move_the_cursor_or_fake_a_line() {
        let line = Line::InputRefused {
            why: "a\x1b[2J\r\nb\u{202e}c\u{7}d".to_owned(),
        };
        assert_eq!(line.to_string(), "✗ INPUT rejected: a[2J bcd");
    }

    #[test]
    fn long_texts_are_cut() {
        for (id, id_dots, len, dots) in [(9, "...", 50, ""), (8, "", 51, "...")] {
            let line = Line::RuntimeInput {
                session: "é".repeat(id),
                prompt: "x".repeat(len),
            };
            let prompt = "x".repeat(50);
            let words = format!("↳ RUNTIME_INPUT session=éééééééé{id_dots} prompt={prompt}{dots}");
            assert_eq!(line.to_string(), words);
        }
        for (len, dots) in [(200, ""), (201, "...")] {
            let message = "x".repeat(len);
            let words = format!("✗ agent error: {}{dots}", "x".repeat(200));
            assert_eq!(Line::AgentError { message }.to_string(), words);
        }
    }
}
