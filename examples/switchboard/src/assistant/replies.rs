//! The fixed answers of the example bots, as plain functions without network and model.

use std::time::{SystemTime, UNIX_EPOCH};

/// The answer to an unknown request.
pub const HELP: &str = "I answer to these words: ping, help, time, echo and a text";

/// Returns the answer to a message that the bots know. The first word after a mention decides; no
/// answer starts with such a word, so two bots cannot answer each other for ever.
///
/// Time is an argument, so that the same question has the same answer in a test.
pub fn answer(message: &str, now: SystemTime) -> Option<String> {
    let message = message.trim();
    let message = match message.strip_prefix('@') {
        Some(mention) => mention.split_once(char::is_whitespace)?.1.trim_start(),
        None => message,
    };
    let (word, rest) = message
        .split_once(char::is_whitespace)
        .unwrap_or((message, ""));
    let word = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
    match word.to_lowercase().as_str() {
        "ping" => Some(format!("pong {rest}").trim_end().to_owned()),
        "help" => Some(HELP.to_owned()),
        "time" => Some(time(now)),
        "echo" if !rest.is_empty() => Some(rest.trim().to_owned()),
        _ => None,
    }
}

/// Returns the time of day.
pub fn time(now: SystemTime) -> String {
    let seconds = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("it is {hours:02}:{minutes:02}:{:02} UTC", seconds % 60)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn replied(message: &str) -> Option<String> {
        answer(message, UNIX_EPOCH + Duration::from_secs(3723))
    }

    #[test]
    fn a_known_word_is_answered_with_or_without_a_mention() {
        assert_eq!(replied("time?").as_deref(), Some("it is 01:02:03 UTC"));
        assert_eq!(replied("@Bot  time").as_deref(), Some("it is 01:02:03 UTC"));
        assert_eq!(replied("@Bot ping you").as_deref(), Some("pong you"));
        assert_eq!(replied("@Bot echo a b").as_deref(), Some("a b"));
        assert_eq!(replied("@Bot help!").as_deref(), Some(HELP));
        for silent in ["", "@Bot", "hello", "what time", "echo", "  "] {
            assert_eq!(replied(silent), None, "{silent}");
        }
    }

    #[test]
    fn a_reply_gets_no_reply() {
        for question in ["ping", "help", "time"] {
            let answer = replied(question).unwrap();
            assert_eq!(replied(&answer), None, "{answer}");
        }
    }
}
