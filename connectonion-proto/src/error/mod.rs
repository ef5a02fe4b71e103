//! A server's reply to a text that is not a frame: [`refusal`], [`unknown_type`].

mod repr;

use rpc_core::json::DecodeErrorKind;
use rpc_core::{DecodeError, Json};

use crate::frame::ErrorFrame;
use crate::limits::{MAX_RECEIVED, TRUNCATED};

/// Returns the ERROR for a text that [`ClientFrame::decode`](crate::frame::ClientFrame::decode) has
/// refused, in the words of the known hosts where they have any. Known hosts hang up on several of
/// these texts; the connection may stay open. Exception: close the connection with 1009 after a
/// message over the size limit ([`DecodeErrorKind::TooLarge`]).
///
/// ConnectOnion specification, *ERROR*.
#[must_use]
pub fn refusal(text: &str, error: &DecodeError) -> ErrorFrame {
    match error.kind() {
        DecodeErrorKind::Syntax | DecodeErrorKind::NotAnObject => malformed(text),
        DecodeErrorKind::MissingMember("type") => unknown("None"),
        DecodeErrorKind::WrongType { member: "type", .. } => {
            let tag = rpc_core::json::find_member(text, "type");
            unknown(&tag.map_or_else(|| "None".to_owned(), |tag| repr::value(&tag)))
        }
        kind => match error.frame() {
            Some(frame) => ErrorFrame::new(format!("Invalid {frame}: {kind}")),
            None => ErrorFrame::new(format!("Invalid message: {kind}")),
        },
    }
}

/// Returns the ERROR for a binary message, which the known hosts read as an object without a type.
pub(crate) fn binary() -> ErrorFrame {
    unknown("None")
}

/// Returns the ERROR for a frame of an unknown type. Clients of the protocol before CONNECT get a
/// hint what to send.
#[must_use]
pub fn unknown_type(tag: &str) -> ErrorFrame {
    let words = repr::text(tag);
    match tag {
        "INIT" | "ATTACH" => {
            ErrorFrame::new(format!("unknown message type: {words} (send CONNECT)"))
        }
        _ => unknown(&words),
    }
}

/// Returns the ERROR for an unknown mode, in the words of newer hosts.
pub(crate) fn unsupported_mode(word: &str) -> ErrorFrame {
    ErrorFrame::new(format!("Unsupported mode: {}", repr::text(word)))
}

fn unknown(words: &str) -> ErrorFrame {
    ErrorFrame::new(format!("unknown message type: {words}"))
}

fn malformed(text: &str) -> ErrorFrame {
    // The known hosts take nothing for an empty object.
    if text.is_empty() {
        return unknown("None");
    }
    let message = match Json::new(text) {
        Ok(_) => "Invalid message: not a JSON object".to_owned(),
        Err(error) => format!("Invalid JSON: {} {}", error.kind(), place(text, &error)),
    };
    let mut frame = ErrorFrame::new(message);
    frame.received = Some(received(text).into());
    frame
}

/// Returns the place of an error, counted in characters, in the words of the known hosts.
fn place(text: &str, error: &DecodeError) -> String {
    let (line, column) = (error.line(), error.column());
    let before = text.split_inclusive('\n').take(line - 1);
    let before: usize = before.map(|line| line.chars().count()).sum();
    let in_line = text.split('\n').nth(line - 1).unwrap_or_default();
    // The place may be within a character.
    let at = in_line.char_indices().take_while(|(at, _)| at + 1 < column);
    let at = at.count();
    format!("at line {line} col {} (pos {})", at + 1, before + at)
}

/// Returns the part of a text that is sent back to its sender.
fn received(text: &str) -> String {
    match text.char_indices().nth(MAX_RECEIVED) {
        Some((end, _)) => {
            let shown = text.get(..end).unwrap_or_default();
            format!("{shown}{TRUNCATED}")
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::ClientFrame;
    use rpc_core::Limits;

    fn refused(text: &str) -> ErrorFrame {
        let error = ClientFrame::decode(text, &Limits::default()).unwrap_err();
        refusal(text, &error)
    }

    fn message(text: &str) -> String {
        refused(text).message.to_string()
    }

    #[test]
    fn invalid_json_is_returned_with_its_position() {
        for text in [
            "{\"type\":\n    INPUT, \"prompt\": \"é\"}",
            "[1,",
            "not json",
            "\u{feff}{}",
        ] {
            let error = refused(text);
            assert!(error.message.starts_with("Invalid JSON: "), "{text}");
            assert_eq!(error.received.as_deref(), Some(text));
        }
        assert_eq!(
            message("{\"type\":\n    INPUT, \"prompt\": \"é\"}"),
            "Invalid JSON: not valid JSON at line 2 col 5 (pos 13)"
        );
    }

    #[test]
    fn a_long_received_text_is_returned_shortened() {
        let text = "é".repeat(200);
        assert_eq!(refused(&text).received.as_deref(), Some(&*text));
        let long = "é".repeat(201);
        let part = format!("{text}...(truncated)");
        assert_eq!(refused(&long).received.as_deref(), Some(&*part));
    }

    #[test]
    fn json_that_is_not_an_object_is_reported() {
        for text in ["[1,2]", "\"hi\"", "3", "null", " true "] {
            let error = refused(text);
            assert_eq!(error.message, "Invalid message: not a JSON object");
            assert_eq!(error.received.as_deref(), Some(text));
        }
    }

    #[test]
    fn a_frame_without_a_type_has_the_type_none() {
        for text in ["", "{}", r#"{"no_type":1}"#, r#"{"type":null}"#] {
            assert_eq!(message(text), "unknown message type: None", "{text}");
        }
        assert_eq!(binary().message, "unknown message type: None");
    }

    #[test]
    fn a_type_that_is_not_a_string_is_shown_as_in_python() {
        for (json, words) in [
            ("7", "7"),
            ("1.50", "1.50"),
            ("true", "True"),
            ("false", "False"),
            (r#"["a"]"#, r#"["a"]"#),
            ("{}", "{}"),
        ] {
            let text = format!(r#"{{"type":{json}}}"#);
            let expected = format!("unknown message type: {words}");
            assert_eq!(message(&text), expected);
        }
    }

    #[test]
    fn an_unknown_type_is_shown_as_in_python() {
        for (json, words) in [
            ("\"SEAL\"", "'SEAL'"),
            (r#""it's""#, r"'it\'s'"),
            (r#""a\n\u0007\\é\u200b""#, r"'a\n\u{7}\\é\u{200b}'"),
            ("\"INIT\"", "'INIT' (send CONNECT)"),
        ] {
            let text = format!(r#"{{"type":{json}}}"#);
            let ClientFrame::Unknown { tag, .. } =
                ClientFrame::decode(&text, &Limits::default()).unwrap()
            else {
                panic!("{text} is known");
            };
            let expected = format!("unknown message type: {words}");
            assert_eq!(&*unknown_type(&tag).message, expected);
        }
        let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(10_000));
        let frame = ClientFrame::decode(&long, &Limits::default()).unwrap();
        let ClientFrame::Unknown { tag, .. } = frame else {
            panic!("it is known");
        };
        assert!(unknown_type(&tag).message.len() < 300);
    }

    #[test]
    fn a_wrong_member_of_a_known_type_is_named() {
        for (text, words) in [
            (
                r#"{"type":"INPUT","prompt":1}"#,
                "Invalid INPUT: member `prompt` is not a string",
            ),
            (
                r#"{"type":"CONNECT","payload":[]}"#,
                "Invalid CONNECT: member `payload` is not an object",
            ),
            (
                r#"{"type":"APPROVAL_RESPONSE"}"#,
                "Invalid APPROVAL_RESPONSE: member `approved` is missing",
            ),
            (
                r#"{"type":"PONG","type":"PONG"}"#,
                "Invalid message: member `type` comes twice",
            ),
        ] {
            let error = refused(text);
            assert_eq!((&*error.message, error.received), (words, None));
        }
    }

    #[test]
    fn json_that_only_python_accepts_is_refused() {
        for text in [r#"{"type":NaN}"#, "NaN"] {
            let message = message(text);
            assert!(message.starts_with("Invalid JSON: "), "{message}");
        }
    }
}
