//! The decision whether a bot answers a message that does not address it (Snek specification,
//! section 9).

#[cfg(feature = "triggers")]
use regex::RegexSet;
#[cfg(feature = "triggers")]
use rpc_core::Refused;

use crate::limits::DM_TAG;

/// Patterns that make a bot answer in a channel that it has not joined. Without the feature `triggers` there are none.
///
/// A pattern matches anywhere in the text; write `^` and `$` for the ends. All of them are tried
/// in one pass, in time linear in the text.
#[derive(Clone, Debug, Default)]
pub struct Triggers(#[cfg(feature = "triggers")] RegexSet);

impl Triggers {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// [`Refused::Invalid`] if one of them is not a regular expression, or is too large.
    #[cfg(feature = "triggers")]
    pub fn new<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Self, Refused> {
        let set = RegexSet::new(patterns).map(Self);
        set.map_err(|error| Refused::invalid("trigger", error.to_string()))
    }

    /// Returns whether one of the patterns is found in the text.
    #[cfg(feature = "triggers")]
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns whether one of the patterns is found in the text: there are none.
    #[cfg(not(feature = "triggers"))]
    #[must_use]
    #[allow(clippy::unused_self, reason = "it is one with the feature")]
    pub const fn matches(&self, _: &str) -> bool {
        false
    }
}

/// Returns whether a bot answers a message that was routed to `on_message`. Joins, leaves, mentions
/// and pings need no permission.
///
/// True in a direct message channel (`tag` is exactly `"dm"`), in a joined channel, if a trigger
/// matches, or if the text contains the bot's *login name*. An unknown channel has no tag.
#[must_use]
pub fn should_respond(
    tag: Option<&str>,
    joined: bool,
    triggers: &Triggers,
    own_username: &str,
    message: &str,
) -> bool {
    tag == Some(DM_TAG)
        || joined
        || triggers.matches(message)
        || (!own_username.is_empty() && message.contains(own_username))
}

#[cfg(test)]
#[cfg(feature = "triggers")]
mod tests {
    use super::*;

    fn respond(tag: Option<&str>, joined: bool, message: &str) -> bool {
        let triggers = Triggers::new([r"^!\w+", "(?i)weather"]).unwrap();
        should_respond(tag, joined, &triggers, "mybot", message)
    }

    #[test]
    fn direct_messages_are_always_answered() {
        assert!(respond(Some("dm"), false, "x"));
        assert!(!respond(Some("DM"), false, "x"));
    }

    #[test]
    fn public_channels_need_a_trigger() {
        for tag in [None, Some("public"), Some("")] {
            assert!(!respond(tag, false, "hello"));
            assert!(respond(tag, true, "hello"));
            assert!(respond(tag, false, "!help"));
            assert!(respond(tag, false, "the Weather is"));
            assert!(respond(tag, false, "ask mybots"));
            assert!(!respond(tag, false, "ask MyBot !help"));
        }
    }

    #[test]
    fn an_empty_name_never_matches() {
        assert!(!should_respond(None, false, &Triggers::default(), "", "x"));
    }

    #[test]
    fn an_invalid_pattern_is_refused() {
        assert!(Triggers::new(["("]).is_err());
    }
}
