//! The fixed answers of the example bots, as plain functions without network and model.

use std::time::{SystemTime, UNIX_EPOCH};

/// The answer to an unknown request.
pub const HELP: &str =
    "I answer to these words: ping, help, time, dice (or dice 3d20), echo and a text";

/// Returns the answer to a message that the bots know. The first word after a mention decides; no
/// answer starts with such a word, so two bots cannot answer each other for ever.
///
/// Chance and time are arguments, so that the same question has the same answer in a test.
pub fn answer(message: &str, entropy: u64, now: SystemTime) -> Option<String> {
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
        "dice" | "roll" => Some(dice(rest.trim(), entropy).unwrap_or_else(|why| why)),
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

/// Throws dice: `""` is one with six sides, `3d20` three with twenty.
///
/// # Errors
/// The reason why the request is invalid.
pub fn dice(what: &str, mut entropy: u64) -> Result<String, String> {
    let (count, sides) = match what.split_once('d') {
        _ if what.is_empty() => (1, 6),
        Some((count, sides)) => match (count.parse(), sides.parse()) {
            (Ok(count @ 1..=20), Ok(sides @ 2..=1000)) => (count, sides),
            _ => return Err("that is too many: at most 20d1000".to_owned()),
        },
        None => return Err("write it like 2d6, please".to_owned()),
    };
    let throws: Vec<u64> = (0..count)
        .map(|_| {
            entropy = mix(entropy);
            entropy % sides + 1
        })
        .collect();
    let sum: u64 = throws.iter().sum();
    let throws: Vec<String> = throws.iter().map(u64::to_string).collect();
    Ok(match throws.as_slice() {
        [one] => format!("a {one}"),
        many => format!("{} makes {sum}", many.join(" + ")),
    })
}

/// Returns the next number of a splitmix64 sequence.
const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn replied(message: &str) -> Option<String> {
        answer(message, 7, UNIX_EPOCH + Duration::from_secs(3723))
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
        for question in [
            "ping",
            "help",
            "time",
            "dice",
            "dice 2d6",
            "dice x",
            "dice 99d9",
            "roll",
        ] {
            let answer = replied(question).unwrap();
            assert_eq!(replied(&answer), None, "{answer}");
        }
    }

    #[test]
    fn dice_stay_within_their_sides() {
        for entropy in 0..200 {
            let throw = dice("", entropy).unwrap();
            let number: u64 = throw.strip_prefix("a ").unwrap().parse().unwrap();
            assert!((1..=6).contains(&number));
        }
        for wish in ["0d6", "2d99999999999"] {
            assert!(dice(wish, 1).unwrap_err().contains("20d1000"));
        }
    }
}
