//! Which handler an incoming message goes to (Snek specification, section 9).
//!
//! Everything compares exactly: case matters, nothing is trimmed, names are plain substrings.

use crate::frame::{Message, User};

/// The bot's login name and display name.
pub type Identity = User;

/// The handler that a message goes to, with that handler's arguments. Exhaustive: the
/// specification's list is closed, and a bot has to handle each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'m> {
    /// The message is not complete: no handler, whoever sent it.
    Partial,
    /// Priority 1, `on_own_message`: a message of the bot itself.
    OwnMessage {
        /// The channel.
        channel_uid: &'m str,
        /// The text.
        message: &'m str,
    },
    /// Priority 2, `on_ping`: the text starts with `ping`.
    Ping {
        /// The sender's login name.
        username: &'m str,
        /// The sender's display name.
        user_nick: &'m str,
        /// The channel.
        channel_uid: &'m str,
        /// The trimmed text after the four letters.
        message_after_ping: &'m str,
    },
    /// Priority 3, `on_join`: the bot is asked to join.
    Join {
        /// The channel.
        channel_uid: &'m str,
    },
    /// Priority 4, `on_leave`: the bot is asked to leave.
    Leave {
        /// The channel.
        channel_uid: &'m str,
    },
    /// Priority 5, `on_mention`: the bot is mentioned.
    Mention {
        /// The sender's login name.
        username: &'m str,
        /// The sender's display name.
        user_nick: &'m str,
        /// The channel.
        channel_uid: &'m str,
        /// The text.
        message: &'m str,
    },
    /// Priority 6, `on_message`: anything else.
    /// [`should_respond`](crate::permission::should_respond) decides whether it is handled.
    Message {
        /// The sender's login name.
        username: &'m str,
        /// The sender's display name.
        user_nick: &'m str,
        /// The channel.
        channel_uid: &'m str,
        /// The text.
        message: &'m str,
    },
}

impl Route<'_> {
    /// Returns the specification's name of the handler; `None` for a partial message.
    #[must_use]
    pub const fn handler(&self) -> Option<&'static str> {
        match self {
            Self::Partial => None,
            Self::OwnMessage { .. } => Some("on_own_message"),
            Self::Ping { .. } => Some("on_ping"),
            Self::Join { .. } => Some("on_join"),
            Self::Leave { .. } => Some("on_leave"),
            Self::Mention { .. } => Some("on_mention"),
            Self::Message { .. } => Some("on_message"),
        }
    }
}

/// Finds the handler of a message. The first rule that applies wins.
///
/// ```
/// use snek_proto::frame::{Message, User};
/// use snek_proto::routing::{Route, route};
///
/// let me = User::new("mybot", "MyBot");
/// let message = Message::new("ch1", "alice", "Alice", "ping hello");
/// assert!(matches!(
///     route(&me, &message),
///     Route::Ping { message_after_ping: "hello", .. }
/// ));
/// ```
#[must_use]
pub fn route<'m>(me: &Identity, message: &'m Message) -> Route<'m> {
    let Message {
        message,
        username,
        user_nick,
        channel_uid,
        is_final,
    } = message;
    if !is_final {
        return Route::Partial;
    }
    if *username == me.username {
        return Route::OwnMessage {
            channel_uid,
            message,
        };
    }
    if let Some(rest) = message.strip_prefix("ping") {
        let message_after_ping = rest.trim();
        return Route::Ping {
            username,
            user_nick,
            channel_uid,
            message_after_ping,
        };
    }
    if addressed(me, message, " join") {
        return Route::Join { channel_uid };
    }
    if addressed(me, message, " leave") {
        return Route::Leave { channel_uid };
    }
    if addressed(me, message, "") {
        return Route::Mention {
            username,
            user_nick,
            channel_uid,
            message,
        };
    }
    Route::Message {
        username,
        user_nick,
        channel_uid,
        message,
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
fn addressed(me: &Identity, text: &str, suffix: &str) -> bool {
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

    fn handler(text: &str) -> &'static str {
        let me = User::new("mybot", "My.Bot");
        route(&me, &Message::new("ch1", "alice", "Alice", text))
            .handler()
            .unwrap_or("none")
    }

    #[test]
    fn each_priority_has_its_handler() {
        for (text, expected) in [
            ("ping", "on_ping"),
            ("pingpong", "on_ping"),
            ("Ping", "on_message"),
            (" ping", "on_message"),
            ("pong", "on_message"),
            ("@My.Bot join", "on_join"),
            ("hey @mybot joined us", "on_join"),
            ("@mybot  join", "on_mention"),
            ("@mybot leave and @My.Bot join", "on_join"),
            ("@My.Bot leave", "on_leave"),
            ("@mybots", "on_mention"),
            ("a@mybot.example", "on_mention"),
            ("@MyxBot", "on_message"),
            ("@MYBOT", "on_message"),
            ("mybot join", "on_message"),
            ("@@mybot", "on_mention"),
            ("ping @mybot join", "on_ping"),
            ("", "on_message"),
        ] {
            assert_eq!(handler(text), expected, "{text}");
        }
    }

    #[test]
    fn own_messages_win_and_the_nick_does_not_count() {
        let me = User::new("mybot", "MyBot");
        let own = Message::new("ch1", "mybot", "x", "ping");
        assert_eq!(
            route(&me, &own),
            Route::OwnMessage {
                channel_uid: "ch1",
                message: "ping"
            }
        );
        let other = Message::new("ch1", "eve", "MyBot", "x");
        assert_eq!(route(&me, &other).handler(), Some("on_message"));
    }

    #[test]
    fn partial_messages_go_nowhere() {
        let me = User::new("mybot", "MyBot");
        for sender in ["mybot", "alice"] {
            let mut partial = Message::new("ch1", sender, "x", "ping");
            partial.is_final = false;
            assert_eq!(route(&me, &partial), Route::Partial);
        }
    }

    #[test]
    fn an_empty_nick_never_matches() {
        let me = User::new("mybot", "");
        let text = Message::new("ch1", "alice", "Alice", "@ join me at a@b");
        assert_eq!(route(&me, &text).handler(), Some("on_message"));
    }

    #[test]
    fn a_name_with_an_at_sign_is_found() {
        let me = User::new("my@bot", "");
        let text = Message::new("ch1", "alice", "Alice", "hi @my@bot join");
        assert_eq!(route(&me, &text).handler(), Some("on_join"));
    }

    #[test]
    fn pong_repeats_what_followed() {
        let me = User::new("mybot", "MyBot");
        for (text, answer) in [
            ("ping hello", "pong hello"),
            ("ping", "pong"),
            ("ping  ", "pong"),
            ("pingpong", "pong pong"),
        ] {
            let message = Message::new("ch1", "a", "A", text);
            let Route::Ping {
                message_after_ping, ..
            } = route(&me, &message)
            else {
                panic!("{text}")
            };
            assert_eq!(pong(message_after_ping), answer);
        }
    }
}
