//! Which handler an incoming message goes to (Snek specification, section 9).
//!
//! Everything compares exactly: case matters, nothing is trimmed, names are plain substrings.

use crate::frame::{Final, Message, User};

/// The handler that a message goes to. Exhaustive: the specification's list is closed, and a bot has
/// to handle each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'m> {
    /// The message is not complete: no handler.
    Partial,
    /// Priority 1, `on_own_message`: a message of the bot itself.
    OwnMessage,
    /// Priority 2, `on_ping`: the text starts with `ping`. Holds the trimmed text after the four
    /// letters.
    Ping(&'m str),
    /// Priority 3, `on_join`: the bot is asked to join.
    Join,
    /// Priority 4, `on_leave`: the bot is asked to leave.
    Leave,
    /// Priority 5, `on_mention`: the bot is mentioned.
    Mention,
    /// Priority 6, `on_message`: anything else.
    /// [`should_respond`](crate::permission::should_respond) decides whether it is handled.
    Message,
}

/// Finds the handler of a message. The first rule that applies wins.
///
/// ```
/// use snek_proto::frame::{Message, User};
/// use snek_proto::routing::{Route, route};
///
/// let me = User::new("mybot", "MyBot");
/// let message = Message::new("ch1", "alice", "Alice", "ping hello");
/// assert_eq!(route(&me, &message), Route::Ping("hello"));
/// ```
#[must_use]
pub fn route<'m>(me: &User, message: &'m Message) -> Route<'m> {
    let text = &message.message;
    if message.is_final == Final::No {
        Route::Partial
    } else if message.username == me.username {
        Route::OwnMessage
    } else if let Some(rest) = text.strip_prefix("ping") {
        Route::Ping(rest.trim())
    } else if addressed(me, text, " join") {
        Route::Join
    } else if addressed(me, text, " leave") {
        Route::Leave
    } else if addressed(me, text, "") {
        Route::Mention
    } else {
        Route::Message
    }
}

/// Returns the automatic answer to a [`Route::Ping`].
#[must_use]
pub fn pong(message_after_ping: &str) -> String {
    if message_after_ping.is_empty() {
        "pong".to_owned()
    } else {
        format!("pong {message_after_ping}")
    }
}

/// Returns whether the text contains `@`, one of the bot's names, and then `suffix`. An empty name
/// never matches; otherwise every `@` would be a mention.
fn addressed(me: &User, text: &str, suffix: &str) -> bool {
    text.split('@').skip(1).any(|rest| {
        // A name may hold an `@` itself, so look at the text and not only at the piece.
        let start = rest.as_ptr() as usize - text.as_ptr() as usize;
        let rest = text.get(start..).unwrap_or_default();
        [&me.nick, &me.username].into_iter().any(|name| {
            !name.is_empty()
                && rest
                    .strip_prefix(&**name)
                    .is_some_and(|after| after.starts_with(suffix))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_priority_has_its_handler() {
        let me = User::new("mybot", "My.Bot");
        for (text, expected) in [
            ("ping", Route::Ping("")),
            ("pingpong", Route::Ping("pong")),
            ("Ping", Route::Message),
            (" ping", Route::Message),
            ("pong", Route::Message),
            ("@My.Bot join", Route::Join),
            ("hey @mybot joined us", Route::Join),
            ("@mybot  join", Route::Mention),
            ("@mybot leave and @My.Bot join", Route::Join),
            ("@My.Bot leave", Route::Leave),
            ("@mybots", Route::Mention),
            ("a@mybot.example", Route::Mention),
            ("@MyxBot", Route::Message),
            ("@MYBOT", Route::Message),
            ("mybot join", Route::Message),
            ("@@mybot", Route::Mention),
            ("ping @mybot join", Route::Ping("@mybot join")),
            ("", Route::Message),
        ] {
            let message = Message::new("ch1", "alice", "Alice", text);
            assert_eq!(route(&me, &message), expected, "{text}");
        }
    }

    #[test]
    fn own_messages_are_recognized_by_username_not_nick() {
        let me = User::new("mybot", "MyBot");
        let own = Message::new("ch1", "mybot", "x", "ping");
        assert_eq!(route(&me, &own), Route::OwnMessage);
        let other = Message::new("ch1", "eve", "MyBot", "x");
        assert_eq!(route(&me, &other), Route::Message);
    }

    #[test]
    fn partial_messages_are_not_routed() {
        let me = User::new("mybot", "MyBot");
        for sender in ["mybot", "alice"] {
            let mut partial = Message::new("ch1", sender, "x", "ping");
            partial.is_final = Final::No;
            assert_eq!(route(&me, &partial), Route::Partial);
        }
    }

    #[test]
    fn an_empty_nick_never_matches() {
        let me = User::new("mybot", "");
        let text = Message::new("ch1", "alice", "Alice", "@ join me at a@b");
        assert_eq!(route(&me, &text), Route::Message);
    }

    #[test]
    fn a_name_with_an_at_sign_matches() {
        let me = User::new("my@bot", "");
        let text = Message::new("ch1", "alice", "Alice", "hi @my@bot join");
        assert_eq!(route(&me, &text), Route::Join);
    }

    #[test]
    fn pong_echoes_the_rest_of_the_text() {
        let me = User::new("mybot", "MyBot");
        for (text, answer) in [
            ("ping hello", "pong hello"),
            ("ping", "pong"),
            ("ping  ", "pong"),
            ("pingpong", "pong pong"),
        ] {
            let message = Message::new("ch1", "a", "A", text);
            let Route::Ping(rest) = route(&me, &message) else {
                panic!("{text}")
            };
            assert_eq!(pong(rest), answer);
        }
    }
}
