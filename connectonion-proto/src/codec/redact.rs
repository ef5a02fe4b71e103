//! [`redact`]: frames without their secrets, for logs.

use std::borrow::Cow;

use rpc_core::Limits;

use crate::auth::{Tree, read_tree, same_name};

/// Members with secret values: a signature is valid for five minutes, an invite code for ever, and
/// unreadable text may be half of a frame with either.
const SECRETS: [&str; 4] = ["signature", "invite_code", "payment", "received"];

/// The member of a file that holds its contents.
const CONTENTS: &str = "data";

/// Contents and data URLs up to this many bytes are shown.
const SHORT: usize = 62;

/// Redacts a frame for a log: hides the values of `signature`, `invite_code`, `payment` and
/// `received` at any depth, and cuts data URLs and contents of files to their beginning. A text
/// that is not a frame, or has a member twice, is not shown at all, because it may be half of one.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let Ok(frame @ Tree::Object(_)) = read_tree(text, &Limits::unlimited()) else {
        return Cow::Owned(format!("(not shown, {} bytes)", text.len()));
    };
    let (done, out) = (0, String::new());
    let mut shown = Redactor { text, done, out };
    shown.value(&frame);
    if shown.done == 0 {
        return Cow::Borrowed(text);
    }
    shown.out += text.get(shown.done..).unwrap_or_default();
    Cow::Owned(shown.out)
}

struct Redactor<'t> {
    text: &'t str,
    /// Up to where the text is in `out`.
    done: usize,
    out: String,
}

impl Redactor<'_> {
    fn value(&mut self, value: &Tree<'_>) {
        match value {
            Tree::Text(text) if is_data_url(text) => self.cut(text),
            Tree::List(items) => items.iter().for_each(|item| self.value(item)),
            Tree::Object(members) => {
                for member in members {
                    let is = |name: &&str| same_name(member.name, name);
                    match &member.value {
                        Tree::Word("null") => {}
                        _ if SECRETS.iter().any(is) => self.replace(member.text, "\"***\""),
                        Tree::Text(text) if is(&CONTENTS) => self.cut(text),
                        value => self.value(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// Shows of a long string what kind it is, and its length.
    fn cut(&mut self, text: &str) {
        if text.len() <= SHORT {
            return;
        }
        let head = text.get(..SHORT / 2).unwrap_or_default();
        let head = match head.split_once([',', '\\']) {
            Some((head, _)) => head,
            None if head.starts_with("data:") => head,
            None => "",
        };
        self.replace(text, &format!("{head}…({} bytes)", text.len()));
    }

    /// Shows something in place of a part of the text.
    fn replace(&mut self, part: &str, with: &str) {
        let start = part.as_ptr().addr() - self.text.as_ptr().addr();
        let before = self.text.get(self.done..start).unwrap_or_default();
        self.out.push_str(before);
        self.out.push_str(with);
        self.done = start + part.len();
    }
}

fn is_data_url(text: &str) -> bool {
    let head = text.get(..5);
    head.is_some_and(|head| head.eq_ignore_ascii_case("data:"))
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
