//! [`redact`]: frames without their secrets, for logs.

use std::borrow::Cow;

use rpc_core::Json;
use rpc_core::json::first_byte;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Members with secret values: a signature is valid for five minutes, an invite code for ever, and
/// unreadable text may be half of a frame with either.
const SECRETS: [&str; 4] = ["signature", "invite_code", "payment", "received"];

/// The member of a file that holds its contents.
const CONTENTS: &str = "data";

/// White space in JSON.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Contents and data URLs up to this many bytes are shown.
const SHORT: usize = 64;

/// Redacts a frame for a log: hides the values of `signature`, `invite_code`, `payment` and
/// `received` at any depth, and cuts data URLs and contents of files to their beginning. A text
/// that is not a frame is not shown at all, because it may be half of one.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    if first_byte(text) != Some(b'{') || Json::new(text).is_err() {
        return Cow::Owned(format!("(not shown, {} bytes)", text.len()));
    }
    let mut shown = Redactor {
        text,
        done: 0,
        out: String::new(),
    };
    shown.all();
    shown.finish()
}

/// A scan of a text that is known to be JSON, from string to string.
struct Redactor<'t> {
    text: &'t str,
    /// The part of the text that is in `out` or was left out.
    done: usize,
    out: String,
}

impl<'t> Redactor<'t> {
    fn all(&mut self) {
        let mut at = 0;
        while let Some(quote) = self.find(at, '"') {
            let Some(string) = self.value_at(quote) else {
                return;
            };
            let end = quote + string.len();
            at = match self.colon_after(end) {
                Some(colon) => self.member(string, colon),
                None => {
                    self.string(quote, string);
                    end
                }
            };
        }
    }

    /// Handles a member of this name, whose colon was found. Returns where to continue.
    fn member(&mut self, name: &str, colon: usize) -> usize {
        let name = Json::new(name).unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        let is_secret = SECRETS.contains(&&*name);
        let rest = self.text.get(colon + 1..).unwrap_or_default();
        let value = rest.trim_start_matches(SPACE);
        let start = self.text.len() - value.len();
        // Only what is left out is looked through, so that nothing is looked through twice.
        if !is_secret && (name != CONTENTS || !value.starts_with('"')) {
            return start;
        }
        let Some(value) = self.value_at(start) else {
            return self.text.len();
        };
        let end = start + value.len();
        if is_secret && value != "null" {
            self.replace(start, end, "\"***\"");
        } else if !is_secret && value.len() > SHORT {
            self.cut(start, value);
        }
        end
    }

    /// Handles a string that is not a name.
    fn string(&mut self, start: usize, string: &str) {
        let is_url = string
            .get(1..6)
            .is_some_and(|head| head.eq_ignore_ascii_case("data:"));
        if is_url && string.len() > SHORT {
            self.cut(start, string);
        }
    }

    /// Shows the beginning of a long string; of a data URL, its type.
    fn cut(&mut self, start: usize, json: &str) {
        let head = json.get(1..SHORT / 2).unwrap_or_default();
        let head = match head.split_once([',', '\\']) {
            Some((head, _)) => head,
            None if head.starts_with("data:") => head,
            None => "",
        };
        let shown = format!("\"{head}…({} bytes)\"", json.len() - 2);
        self.replace(start, start + json.len(), &shown);
    }

    fn replace(&mut self, start: usize, end: usize, with: &str) {
        let before = self.text.get(self.done..start).unwrap_or_default();
        self.out.push_str(before);
        self.out.push_str(with);
        self.done = end;
    }

    fn find(&self, from: usize, what: char) -> Option<usize> {
        Some(from + self.text.get(from..)?.find(what)?)
    }

    fn value_at(&self, at: usize) -> Option<&'t str> {
        let mut reader = serde_json::Deserializer::from_str(self.text.get(at..)?);
        let value = <&RawValue>::deserialize(&mut reader).ok()?;
        Some(value.get())
    }

    /// Returns the colon after a string, which makes it a name.
    fn colon_after(&self, end: usize) -> Option<usize> {
        let rest = self.text.get(end..)?;
        let colon = rest.trim_start_matches(SPACE);
        colon
            .starts_with(':')
            .then(|| end + rest.len() - colon.len())
    }

    fn finish(mut self) -> Cow<'t, str> {
        if self.done == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out
            .push_str(self.text.get(self.done..).unwrap_or_default());
        Cow::Owned(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_frame_never_holds_a_secret() {
        for text in [
            r#"{"type":"CONNECT","payload":{"timestamp":1,"invite_code":"hunter2"},"signature":"hunter2"}"#,
            r#"{"type":"X","a":[{"b":{"\u0073ignature" : "hunter2"}}]}"#,
            r#"{"payment":{"card":["hunter2"]},"payment":"hunter2"}"#,
            r#"{"type":"ERROR","message":"no","received":"{signature: hunter2"}"#,
            r#"{"data":"aHVudGVyMg==aHVudGVyMg==aHVudGVyMg==aHVudGVyMg==aHVudGVyMg==hunter2"}"#,
            r#"{"signature":"hunter2""#,
            r#"[{"signature":"hunter2"}]"#,
            "hunter2",
        ] {
            let shown = redact(text);
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert_eq!(
            redact(r#"{"type":"CONNECT", "signature": "ab" ,"from":"0x1"}"#),
            r#"{"type":"CONNECT", "signature": "***" ,"from":"0x1"}"#
        );
    }

    #[test]
    fn contents_are_shortened_and_keep_their_kind() {
        let contents = "A".repeat(100);
        let text = format!(
            r#"{{"images":["data:image/png;base64,{contents}"],"files":[{{"name":"a","data":"{contents}"}}]}}"#
        );
        assert_eq!(
            redact(&text),
            r#"{"images":["data:image/png;base64…(122 bytes)"],"files":[{"name":"a","data":"…(100 bytes)"}]}"#
        );
        let text = format!(r#"{{"image":"data:image/png,é{contents}"}}"#);
        assert!(redact(&text).len() < 60);
    }

    #[test]
    fn other_frames_are_logged_as_they_are() {
        for text in [
            r#"{"type":"PING"}"#,
            r#"{"type":"INPUT","prompt":"my signature: \"x\" \u00e9"}"#,
            r#"{"type":"X","signature":null,"data":"short","url":"data:,x","data2":[1,{"data":7}]}"#,
        ] {
            assert!(matches!(redact(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn the_shown_part_of_a_frame_is_json() {
        let long = "x".repeat(100);
        for text in [
            format!(r#"{{"data":"data:\u0061{long}","b":1}}"#),
            format!(r#"{{"data":"{long}\"","b":[{{"signature":{{"a":[]}}}}]}}"#),
        ] {
            let shown = redact(&text);
            assert!(
                serde_json::from_str::<serde_json::Value>(&shown).is_ok(),
                "{shown}"
            );
        }
    }
}
