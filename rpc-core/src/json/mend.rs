//! [`mend`]: JSON without halves of surrogate pairs.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// The length of `\uxxxx`.
const ESCAPE: usize = 6;

/// Returns JSON with `\ufffd` in place of each lone surrogate, of the same length. Text cannot hold
/// one, so `serde_json` refuses it, while [`decode`](super::decode) reads it like this.
///
/// ```
/// assert_eq!(rpc_core::json::mend(r#""cut \ud83d""#), r#""cut \ufffd""#);
/// ```
#[must_use]
#[inline]
pub fn mend(json: &str) -> Cow<'_, str> {
    match has_escape(json.as_bytes()) {
        true => mend_escapes(json),
        false => Cow::Borrowed(json),
    }
}

#[cold]
fn mend_escapes(json: &str) -> Cow<'_, str> {
    match mended(json.as_bytes()).map(String::from_utf8) {
        Some(Ok(mended)) => Cow::Owned(mended),
        _ => Cow::Borrowed(json),
    }
}

/// Most raw values are short and have none: here, a call of `memchr` would cost more than the look.
#[inline]
pub(super) fn has_escape(json: &[u8]) -> bool {
    fn has<const N: usize>(bytes: &[u8; N]) -> bool {
        let found = bytes.iter().map(|byte| *byte == b'\\');
        found.fold(false, |any, is| any | is)
    }
    let (pairs, _) = json.as_chunks::<16>();
    // The last ones overlap with those before.
    match (json.last_chunk::<16>(), json.last_chunk::<8>()) {
        (Some(last), _) => pairs.iter().any(has) || has(last),
        (None, Some(last)) => json.first_chunk::<8>().is_some_and(has) || has(last),
        (None, None) => json.contains(&b'\\'),
    }
}

/// Deserializes JSON with `serde_json`, which reads what no frame holds (files, answers of models):
/// a lone surrogate becomes U+FFFD.
///
/// # Errors
/// As `serde_json`'s.
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    let mended = mended(json);
    serde_json::from_slice(mended.as_deref().unwrap_or(json))
}

/// `None` if there is nothing to mend.
fn mended(json: &[u8]) -> Option<Vec<u8>> {
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(start) = memchr::memchr(b'\\', json.get(at..)?).map(|found| at + found) {
        at = match (unit(json, start), unit(json, start + ESCAPE)) {
            // Any other escape, of two bytes.
            (None, _) => start + 2,
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => start + 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                let text = mended.get_or_insert_with(|| json.to_vec());
                text.get_mut(start..start + ESCAPE)?
                    .copy_from_slice(b"\\ufffd");
                start + ESCAPE
            }
            (Some(_), _) => start + ESCAPE,
        };
    }
    mended
}

/// Reads `\uxxxx` at this place.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (json, expected) in [
            (
                r#"{"\ud83d":["\uDE00\uD83D"]}"#,
                r#"{"\ufffd":["\ufffd\ufffd"]}"#,
            ),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d \\\ud83d""#, r#""\\ud83d \\\ufffd""#),
            (r#""\ud83d\n\u0041""#, r#""\ufffd\n\u0041""#),
            // Not JSON: left to the reader.
            (r"\u", r"\u"),
            (r"\ud8", r"\ud8"),
            (r#""\"#, r#""\"#),
            ("é\\", "é\\"),
        ] {
            assert_eq!(mend(json), expected);
            let ours = from_slice::<Value>(json.as_bytes()).ok();
            assert_eq!(ours, serde_json::from_str(expected).ok(), "{json}");
            let parsed = crate::json::parse(json, &crate::Limits::default()).ok();
            assert_eq!(ours, parsed, "{json}");
        }
    }
}
