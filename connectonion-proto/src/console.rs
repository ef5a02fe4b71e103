//! The lines on a host's console. ConnectOnion specification, *Server Console Output*.
//!
//! Foreign texts are cut, and characters that could move the cursor, colour the line or change its
//! direction are left out.

use std::net::IpAddr;

use rpc_core::text::{is_control, is_invisible};

use crate::frame::SessionState;
use crate::hub::Owner;

/// The `tracing` target of these lines.
pub const TARGET: &str = "connectonion::console";

/// Why a prompt that comes before CONNECT is refused.
pub(crate) const NOT_AUTHENTICATED: &str = "not authenticated (send CONNECT first)";
/// The server's conversation was the newer one.
pub(crate) const MERGED: &str = "  ↕ merged sessions (server newer)";
/// The client watches a running agent.
pub(crate) const REATTACHED: &str = "  ↻ reattaching to running agent";

/// The number of characters shown of a session's id.
const ID: usize = 8;
/// The number of characters shown of a prompt.
const PROMPT: usize = 50;
/// The number of characters shown of an error.
const ERROR: usize = 200;

/// A socket was opened; `active` is the number of sessions.
pub(crate) fn opened(peer: IpAddr, active: usize) -> String {
    format!("⚡ ws+ {peer} ({active} active)")
}

/// A socket was closed.
pub(crate) fn gone(active: usize) -> String {
    format!("⚡ ws- ({active} active)")
}

/// The client sent a conversation.
pub(crate) fn client_session(messages: usize) -> String {
    format!("  ↑ client session: {messages} messages")
}

/// A client was admitted.
pub(crate) fn connected(owner: Owner, session: &str, status: SessionState) -> String {
    let (identity, session) = (identity(owner), cut(session, ID));
    let status = status.name();
    format!("✓ CONNECT identity={identity} session={session} status={status}")
}

/// A CONNECT was refused.
pub(crate) fn connect_refused(why: &str) -> String {
    format!("✗ CONNECT auth error: {}", cut(why, ERROR))
}

/// A prompt started a run.
pub(crate) fn input(owner: Owner, session: &str, prompt: &str) -> String {
    let (identity, session) = (identity(owner), cut(session, ID));
    let prompt = cut(prompt, PROMPT);
    format!("✓ INPUT identity={identity} session={session} prompt={prompt}")
}

/// A prompt reached a running agent.
pub(crate) fn runtime_input(session: &str, prompt: &str) -> String {
    let (session, prompt) = (cut(session, ID), cut(prompt, PROMPT));
    format!("↳ RUNTIME_INPUT session={session} prompt={prompt}")
}

/// A prompt has attachments.
pub(crate) fn attachments(images: usize, files: usize) -> String {
    format!("  ↑ {images} images, {files} files")
}

/// A prompt was refused.
pub(crate) fn input_refused(why: &str) -> String {
    format!("✗ INPUT rejected: {}", cut(why, ERROR))
}

/// An agent has failed.
pub(crate) fn agent_error(message: &str) -> String {
    format!("✗ agent error: {}", cut(message, ERROR))
}

fn identity(owner: Owner) -> String {
    match owner {
        Owner::Unsigned => "unsigned".to_owned(),
        Owner::Key(address) => address.short(),
    }
}

/// Cuts a foreign text to a number of characters, with `...` if there are more.
fn cut(text: &str, max: usize) -> String {
    let mut shown = text.chars().filter_map(harmless);
    let mut cut: String = shown.by_ref().take(max).collect();
    if shown.next().is_some() {
        cut.push_str("...");
    }
    cut
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
    is_control(letter) || is_invisible(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_lines_match_the_specification() {
        let owner = Owner::Key(crate::auth::Address::from_bytes([0x2f; 32]));
        let connected = |status| connected(owner, "aad5d1e2-1111", status);
        let connect = "✓ CONNECT identity=0x2f2f2f2f2f2f2f... session=aad5d1e2... status=";
        for (line, words) in [
            (
                opened(IpAddr::from([127, 0, 0, 1]), 0),
                "⚡ ws+ 127.0.0.1 (0 active)",
            ),
            (gone(1), "⚡ ws- (1 active)"),
            (connected(SessionState::New), &format!("{connect}new")),
            (
                connected(SessionState::Connected),
                &format!("{connect}connected"),
            ),
            (
                connected(SessionState::Running),
                &format!("{connect}running"),
            ),
            (client_session(4), "  ↑ client session: 4 messages"),
            (
                input(Owner::Unsigned, "s", "hello world"),
                "✓ INPUT identity=unsigned session=s prompt=hello world",
            ),
            (attachments(2, 1), "  ↑ 2 images, 1 files"),
            (
                connect_refused("forbidden"),
                "✗ CONNECT auth error: forbidden",
            ),
            (
                input_refused(NOT_AUTHENTICATED),
                "✗ INPUT rejected: not authenticated (send CONNECT first)",
            ),
            (agent_error("out of paper"), "✗ agent error: out of paper"),
        ] {
            assert_eq!(line, words);
        }
        assert_eq!(MERGED, "  ↕ merged sessions (server newer)");
        assert_eq!(REATTACHED, "  ↻ reattaching to running agent");
    }

    #[test]
    fn a_prompt_cannot_move_the_cursor_or_fake_a_line() {
        let line = input_refused("a\x1b[2J\r\nb\u{202e}c\u{7}d");
        assert_eq!(line, "✗ INPUT rejected: a[2J bcd");
    }

    #[test]
    fn long_texts_are_cut() {
        for (id, id_dots, len, dots) in [(9, "...", 50, ""), (8, "", 51, "...")] {
            let line = runtime_input(&"é".repeat(id), &"x".repeat(len));
            let prompt = "x".repeat(50);
            let words = format!("↳ RUNTIME_INPUT session=éééééééé{id_dots} prompt={prompt}{dots}");
            assert_eq!(line, words);
        }
        for (len, dots) in [(200, ""), (201, "...")] {
            let words = format!("✗ agent error: {}{dots}", "x".repeat(200));
            assert_eq!(agent_error(&"x".repeat(len)), words);
        }
    }
}
