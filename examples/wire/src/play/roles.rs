//! [`Role`]: what a member is for, from its name and its values.

use rpc_core::timestamp;

use crate::frame::is_one;
use crate::secrets::is_secret;

/// What a value is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Made by one of the sides, and used again: an id, a token, a signature.
    Made,
    /// A moment or a length of time.
    Time,
    /// Neither.
    Content,
}

/// From this length on, a value is one of its kind wherever it stands.
pub(super) const LONG: usize = 6;

/// Returns the role of a member with these values, given as texts.
pub(super) fn role(name: &str, recorded: &str, live: &str) -> Role {
    if is_time(name, recorded, live) {
        return Role::Time;
    }
    let both = [recorded, live];
    let looks_made = both
        .iter()
        .any(|it| it.len() >= 16 || it.bytes().any(|byte| byte.is_ascii_digit()));
    // Some random letters and digits are letters only.
    let looks_made = looks_made || has_same_ending(recorded, live);
    if is_secret(name)
        || name.contains("nonce")
        || (is_id(name) && looks_made)
        || same_form(recorded, live)
    {
        return Role::Made;
    }
    Role::Content
}

fn is_id(name: &str) -> bool {
    const WHOLE: [&str; 6] = ["id", "ids", "uid", "uuid", "cursor", "session"];
    const ENDS: [&str; 7] = ["_id", "_ids", "_uid", "Id", "Ids", "Uid", "ID"];
    WHOLE.contains(&name) || ENDS.iter().any(|end| name.ends_with(end))
}

fn is_time(name: &str, recorded: &str, live: &str) -> bool {
    const WHOLE: &str = "ts time timestamp date at uptime elapsed duration latency created updated";
    const ENDS: &str = "_at At _ts _ms Ms _time Time _seconds Seconds _secs _duration Duration";
    // How long something may take is not a time that passed.
    const LIMITS: [&str; 4] = ["timeout", "interval", "max", "limit"];
    if let (Ok(recorded), Ok(live)) = (recorded.parse::<f64>(), live.parse::<f64>()) {
        let lower = name.to_ascii_lowercase();
        let is_named =
            is_one(name, WHOLE) || ENDS.split_ascii_whitespace().any(|end| name.ends_with(end));
        let is_limit = LIMITS.iter().any(|it| lower.contains(it));
        return (is_named && !is_limit) || (is_epoch(recorded) && is_same_unit(recorded, live));
    }
    is_date(recorded) && is_date(live)
}

/// Seconds, milliseconds or microseconds from 2001 to 2103.
fn is_epoch(number: f64) -> bool {
    [1.0, 1e3, 1e6]
        .iter()
        .any(|unit| (1e9..4.2e9).contains(&(number / unit)))
}

fn is_same_unit(one: f64, other: f64) -> bool {
    is_epoch(other) && (one / other) < 5.0 && (other / one) < 5.0
}

/// `2026-11-25T10:30:00` in any variant.
fn is_date(text: &str) -> bool {
    let shape: String = text
        .chars()
        .take(16)
        .map(|it| if it.is_ascii_digit() { '0' } else { it })
        .collect();
    timestamp::parse(text).is_some()
        || matches!(shape.as_str(), "0000-00-00T00:00" | "0000-00-00 00:00")
}

/// Whether both are generated in the same way: UUIDs, digits in base 16, or a word and something random.
fn same_form(recorded: &str, live: &str) -> bool {
    let both = [recorded, live];
    let is_hex = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        digits.len() >= 8
            && digits
                .bytes()
                .all(|it| it.is_ascii_hexdigit() || it == b'-')
            && digits.bytes().any(|it| it.is_ascii_digit())
    };
    if recorded.len() == live.len() && both.iter().all(|it| is_hex(it)) {
        return true;
    }
    let has_digit = |rest: &str| rest.bytes().any(|it| it.is_ascii_digit());
    same_word(recorded, live).is_some_and(|(one, other)| {
        let is_random = [one, other].iter().all(|it| it.len() >= 5 && has_digit(it));
        is_random && one.len().abs_diff(other.len()) <= 2
    })
}

/// Whether both are the same word and as many letters or digits behind it, at least eight.
fn has_same_ending(recorded: &str, live: &str) -> bool {
    same_word(recorded, live).is_some_and(|(one, other)| one.len() == other.len() && one.len() >= 8)
}

/// Returns what stands behind the word that both begin with, if they do.
fn same_word<'t>(one: &'t str, other: &'t str) -> Option<(&'t str, &'t str)> {
    let ((word, one), (same, other)) = (ending(one)?, ending(other)?);
    (word == same).then_some((one, other))
}

/// Splits a word from the letters and digits behind its last separator.
fn ending(text: &str) -> Option<(&str, &str)> {
    let at = text.rfind(['_', '-', ':'])? + 1;
    let (word, rest) = text.split_at_checked(at)?;
    let is_plain = rest.bytes().all(|it| it.is_ascii_alphanumeric());
    is_plain.then_some((word, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_follows_from_name_and_form() {
        for (name, recorded, live, expected) in [
            ("callId", "1", "7", Role::Made),
            ("session_id", "s-1", "s-2", Role::Made),
            ("channel_id", "main", "other", Role::Content),
            ("token", "a", "b", Role::Made),
            ("input_tokens", "11", "12", Role::Content),
            ("taskId", "task_fgz1hprz", "task_43m5v7jh", Role::Made),
            ("taskId", "task_fyhlkfle", "task_cndtiusq", Role::Made),
            ("channel_id", "room_kitchen", "room_bedroom", Role::Content),
            ("kind", "task_started1", "task_finished", Role::Content),
            ("x", "task_fgz1hprz", "task_43m5v7jh", Role::Made),
            ("model", "gpt-4-mini", "gpt-5-mini", Role::Content),
            (
                "from",
                "0x8139770ea87d175f",
                "0x9139770ea87d175e",
                Role::Made,
            ),
            (
                "x",
                "c56a4180-65aa-42ec-a945-5fd21dec0538",
                "d56a4180-65aa-42ec-a945-5fd21dec0538",
                Role::Made,
            ),
            ("ts", "1.5", "2", Role::Time),
            ("timeout_ms", "5", "6", Role::Content),
            ("x", "1700000000.5", "1764000000", Role::Time),
            ("x", "1700000000", "1764000000000", Role::Content),
            (
                "x",
                "2026-11-21T20:31:08.236Z",
                "2026-11-25T00:00:00+01:00",
                Role::Time,
            ),
            ("text", "Hello", "Hallo", Role::Content),
            ("count", "1", "2", Role::Content),
            ("valid", "1", "2", Role::Content),
        ] {
            assert_eq!(role(name, recorded, live), expected, "{name} {recorded}");
        }
    }
}
