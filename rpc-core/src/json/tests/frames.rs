//! Frames of derived types: what is lenient, what is loud, and how deep.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::Limits;
use crate::json::{
    DecodeError, DecodeErrorKind, Deserializer, Json, LooseStr, Str, decode, each_member, lenient,
    parse,
};

/// The deepest value that is parsed.
const MAX_DEPTH: usize = 127;

#[derive(Debug, Deserialize)]
struct Frame {
    #[serde(default, deserialize_with = "lenient::optional_id")]
    id: Option<Str>,
    name: Option<Str>,
    loose: Option<LooseStr>,
    flag: Option<bool>,
    count: Option<u64>,
    data: Option<Json>,
    inner: Option<Inner>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    #[allow(dead_code)]
    name: Option<Str>,
}

fn frame(text: &str) -> Result<Frame, DecodeError> {
    decode(text, &Limits::default())
}

fn kind(text: &str) -> DecodeErrorKind {
    frame(text).unwrap_err().kind()
}

pub(super) fn deep(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Runs on a small stack, where recursion over a long input would overflow.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(test)
        .unwrap();
    thread.join().unwrap();
}

#[test]
fn an_escaped_member_name_is_recognized() {
    let frame = frame(r#"{"n\u0061me":"x"}"#).unwrap();
    assert_eq!(frame.name.as_deref(), Some("x"));
}

#[test]
fn null_is_treated_as_absent() {
    let frame = frame(
        r#"{"id":null,"name":null,"flag":null,"count":null,"data":null,"inner":null,"loose":null}"#,
    )
    .unwrap();
    assert!(frame.id.is_none() && frame.name.is_none() && frame.flag.is_none());
    assert!(frame.count.is_none() && frame.data.is_none() && frame.inner.is_none());
    assert!(frame.loose.is_none());
}

#[test]
fn a_numeric_id_becomes_its_digits() {
    for (json, text) in [
        ("7", "7"),
        ("-1", "-1"),
        ("1e3", "1e3"),
        (r#""a\"b""#, "a\"b"),
    ] {
        let text_of = format!(r#"{{"id":{json}}}"#);
        assert_eq!(frame(&text_of).unwrap().id.as_deref(), Some(text));
    }
    let expected = "a string or a number";
    assert_eq!(
        kind(r#"{"id":true}"#),
        DecodeErrorKind::WrongType {
            member: "id",
            expected
        }
    );
}

#[test]
fn a_frame_must_be_an_object() {
    for text in [r#"["PING"]"#, " 1", "", "  ", "x", r#""{}""#, "\u{feff}{}"] {
        assert_eq!(kind(text), DecodeErrorKind::NotAnObject, "{text}");
    }
    assert!(frame(" \t\r\n{} \n").is_ok());
}

#[test]
fn size_is_checked_before_anything_is_read() {
    let limits = Limits {
        max_message_bytes: 3,
        ..Limits::default()
    };
    let error = decode::<Frame>("nonsense", &limits).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::TooLarge { size: 8, max: 3 });
}

#[test]
fn a_repeated_known_member_is_an_error() {
    assert_eq!(
        kind(r#"{"id":1,"id":1}"#),
        DecodeErrorKind::DuplicateMember("id")
    );
    assert_eq!(
        kind(r#"{"id":null,"\u0069d":1}"#),
        DecodeErrorKind::DuplicateMember("id")
    );
    assert!(frame(r#"{"x":1,"x":1}"#).is_ok());
}

#[test]
fn a_type_error_names_member_and_position() {
    let error = frame("{\n  \"name\": 5}").unwrap_err();
    let expected = "a string";
    assert_eq!(
        error.kind(),
        DecodeErrorKind::WrongType {
            member: "name",
            expected
        }
    );
    assert_eq!((error.line(), error.path()), (2, &["name"][..]));
    let error = frame(r#"{"inner":{"name":[]}}"#).unwrap_err();
    assert_eq!(
        error.kind(),
        DecodeErrorKind::WrongType {
            member: "name",
            expected
        }
    );
    assert_eq!(error.path(), ["inner", "name"]);
    for text in [r#"{"flag":"x"}"#, r#"{"count":-1}"#, r#"{"inner":"x"}"#] {
        assert!(
            matches!(kind(text), DecodeErrorKind::WrongType { .. }),
            "{text}"
        );
    }
}

#[test]
fn a_strict_object_refuses_unknown_members() {
    assert_eq!(kind(r#"{"inner":{"x":1}}"#), DecodeErrorKind::UnknownMember);
}

#[test]
fn broken_json_is_a_syntax_error() {
    for text in [
        "{",
        r#"{"name"}"#,
        r#"{"name":"x"} {}"#,
        r#"{"data":[}"#,
        r#"{"x":tru}"#,
    ] {
        assert_eq!(kind(text), DecodeErrorKind::Syntax, "{text}");
    }
}

#[test]
fn errors_contain_no_values() {
    let text = r#"{"name":{"password":"hunter2"},"token":"s3cret"}"#;
    let error = frame(text).unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("s3cret") && !shown.contains("passw"));
    assert!(shown.contains(r#"{"…":"#), "{shown}");
    assert!(
        error
            .to_string()
            .starts_with("member `name` is not a string (line 1, column ")
    );
}

#[test]
fn debug_output_of_a_deserializer_hides_its_text() {
    let reader = Deserializer::new(r#"{"password":"hunter2"}"#, &Limits::default());
    assert!(!format!("{reader:?}").contains("hunter2"));
}

#[test]
fn members_are_visited_in_order() {
    let mut read = Vec::new();
    each_member(r#" {"a":1,"\u0062" : [ ],"a":null} "#, |name, value| {
        read.push((name.into_owned(), value));
    })
    .unwrap();
    let read: Vec<_> = read.iter().map(|(name, value)| (&**name, *value)).collect();
    assert_eq!(read, [("a", "1"), ("b", "[ ]"), ("a", "null")]);
    for text in ["[]", "{", r#"{"a":}"#] {
        assert!(each_member(text, |_, _| ()).is_err(), "{text}");
    }
}

#[test]
fn a_loose_member_never_fails_a_frame() {
    for (json, expected) in [
        (r#""x""#, LooseStr::Str("x".into())),
        ("true", LooseStr::Bool(true)),
        ("1", LooseStr::Other),
        ("-1.5e9", LooseStr::Other),
        (r#"[1,{"a":2}]"#, LooseStr::Other),
        (r#"{"a":[{}]}"#, LooseStr::Other),
    ] {
        let text = format!(r#"{{"loose":{json},"name":"after"}}"#);
        let frame = frame(&text).unwrap();
        assert_eq!(frame.loose, Some(expected));
        assert_eq!(frame.name.as_deref(), Some("after"));
    }
}

#[test]
fn a_payload_of_any_depth_is_passed_through_but_not_parsed() {
    on_a_small_stack(|| {
        for member in ["data", "unknown", "loose"] {
            let text = format!(r#"{{"{member}":{}}}"#, deep(100_000));
            assert!(frame(&text).is_ok(), "{member}");
        }
        let text = format!(r#"{{"data":{}}}"#, deep(100_000));
        let raw = frame(&text).unwrap().data.unwrap();
        let max = MAX_DEPTH;
        let error = parse::<Value>(raw.get(), &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), DecodeErrorKind::TooDeep { max });
        let limits = Limits {
            max_depth: 10,
            ..Limits::default()
        };
        let error = parse::<Value>(raw.get(), &limits).unwrap_err();
        assert_eq!(error.kind(), DecodeErrorKind::TooDeep { max: 10 });
        assert!(matches!(kind(&deep(100_000)), DecodeErrorKind::NotAnObject));
        assert!(frame(&format!(r#"{{"name":{}}}"#, deep(100_000))).is_err());
    });
}

#[test]
fn depth_is_exact_and_ignores_brackets_in_strings() {
    let limits = Limits {
        max_depth: 2,
        ..Limits::default()
    };
    assert!(parse::<Value>(&deep(2), &limits).is_ok());
    assert!(parse::<Value>(&deep(3), &limits).is_err());
    assert!(parse::<Value>(r#"["[[[\"[[[","\\"]"#, &limits).is_ok());
    assert!(parse::<Value>(&deep(MAX_DEPTH), &Limits::default()).is_ok());
    assert!(parse::<Value>(&deep(MAX_DEPTH + 1), &Limits::default()).is_err());
}

#[test]
fn a_list_is_bounded_in_items() {
    let limits = Limits {
        max_items: 2,
        ..Limits::default()
    };
    assert_eq!(parse::<Vec<u8>>("[1,2]", &limits).unwrap(), [1, 2]);
    let error = parse::<Vec<u8>>("[1,2,3]", &limits).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::TooManyItems { max: 2 });
    assert!(parse::<Vec<u8>>("{}", &limits).is_err());
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in ".{0,64}") {
        let _ = frame(&text);
        let _ = parse::<Value>(&text, &Limits { max_depth: 3, ..Limits::default() });
    }

    #[test]
    fn json_like_text_never_panics(text in r#"\{("(id|name|loose|data|object|inner)":("x"|1|null|true|\[\{\}\]|\{"name":"y"\}),?){0,6}\}"#) {
        let ours = frame(&text).is_ok();
        let json = serde_json::from_str::<Value>(&text).is_ok();
        prop_assert!(json || !ours);
    }
}
