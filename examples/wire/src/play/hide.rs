//! [`hide`]: a text without a secret, however the secret is spelled in it.

/// So much of a secret before the end of a text that was cut is a secret, too; in characters.
const BEGINNING: usize = 3;
/// What stands where a text was cut.
const CUT: char = '…';

/// Replaces a secret wherever it stands: as it is, escaped as in JSON once or several times, or as in URLs.
pub(super) fn hide(text: &str, secret: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = match spelled(rest, secret) {
            Some(len) if len > 0 => {
                shown.push_str("***");
                len
            }
            _ => {
                shown.push(first);
                first.len_utf8()
            }
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    shown
}

/// Returns how much of the text's beginning is this secret, in some spelling.
fn spelled(text: &str, secret: &str) -> Option<usize> {
    let rest = behind(text, secret, 0)?;
    Some(text.len() - rest.len())
}

/// Returns what follows the secret, of which so many letters were read before.
fn behind<'t>(text: &'t str, secret: &str, read: usize) -> Option<&'t str> {
    let Some(letter) = secret.chars().next() else {
        return Some(text);
    };
    let next = secret.get(letter.len_utf8()..).unwrap_or_default();
    // Each escape doubles backslashes, and puts some before other letters.
    let after = text.trim_start_matches('\\');
    if read >= BEGINNING && after.starts_with(CUT) {
        return Some(text);
    }
    let literal = match letter {
        '\\' => Some((after, next.trim_start_matches('\\'))).filter(|_| after.len() < text.len()),
        _ => after.strip_prefix(letter).map(|rest| (rest, next)),
    };
    let others = [units(text, letter), percent(text, letter)];
    let others = others.into_iter().flatten().map(|rest| (rest, next));
    let mut ways = literal.into_iter().chain(others);
    ways.find_map(|(rest, next)| behind(rest, next, read + 1))
}

/// Returns what follows a letter that is spelled as `\u0041`.
fn units(mut text: &str, letter: char) -> Option<&str> {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        let digits = text.strip_prefix('\\')?.trim_start_matches('\\');
        let digits = digits.strip_prefix('u')?;
        let (digits, rest) = digits.split_at_checked(4)?;
        if u16::from_str_radix(digits, 16) != Ok(*unit) {
            return None;
        }
        text = rest;
    }
    Some(text)
}

/// Returns what follows a letter that is spelled as `%41`.
fn percent(mut text: &str, letter: char) -> Option<&str> {
    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
        let (digits, rest) = text.strip_prefix('%')?.split_at_checked(2)?;
        if u8::from_str_radix(digits, 16) != Ok(byte) {
            return None;
        }
        text = rest;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> String {
        serde_json::to_string(text).unwrap()
    }

    /// As writers do that know ASCII only.
    fn ascii(text: &str) -> String {
        let units = text.encode_utf16();
        units.map(|unit| format!("\\u{unit:04x}")).collect()
    }

    fn encoded(text: &str) -> String {
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }

    proptest! {
        #[test]
        fn a_secret_is_hidden_in_each_spelling(
            secret in "[^\\p{Cc}]{1,20}",
            before in "[a-c \"]{0,5}",
        ) {
            for spelling in [
                secret.clone(),
                json(&secret),
                json(&json(&secret)),
                ascii(&secret),
                encoded(&secret),
            ] {
                let text = format!("{before}<{spelling}>");
                let shown = hide(&text, &secret);
                prop_assert!(shown.contains("***"), "{text}: {shown}");
            }
        }

        #[test]
        fn any_text_is_survived(text in ".{0,40}", secret in ".{1,3}") {
            let _ = hide(&text, &secret);
        }
    }

    #[test]
    fn the_rest_of_a_text_stays() {
        for (text, shown) in [
            (r#"{"token":"hun\"ter2"}"#, r#"{"token":"***"}"#),
            (r#"hun"ter2, hun"ter3"#, r#"***, hun"ter3"#),
            ("/ws?token=hun%22ter2&a=%22", "/ws?token=***&a=%22"),
            (r#"hun"… (400 bytes)"#, "***… (400 bytes)"),
            ("hu… (400 bytes)", "hu… (400 bytes)"),
            ("", ""),
        ] {
            assert_eq!(hide(text, "hun\"ter2"), shown);
        }
    }
}
