//! The bounds of canonical JSON, and what it has in common with other readers.

use proptest::prelude::*;
use rpc_core::json::DecodeErrorKind;
use serde::de::IgnoredAny;

use super::*;
use crate::limits::MAX_SERVER_MESSAGE;

fn kind(text: &str) -> Option<DecodeErrorKind> {
    let error = canonical_json(text, Canonical::Escaped).err();
    error.map(|error| error.kind())
}

#[test]
fn invalid_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "[01]",
        "[1.]",
        "[.5]",
        "[+1]",
        "[1e]",
        "nul",
        "NaN",
        "[Infinity]",
        "'a'",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "1 2",
        "\u{feff}1",
        "\"\u{7f}",
        "[1 2]",
        "{\"a\" 1}",
    ] {
        assert_eq!(kind(text), Some(DecodeErrorKind::Syntax), "{text:?}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(kind(&nested(128)), None);
    let too_deep = Some(DecodeErrorKind::TooDeep { max: 128 });
    assert_eq!(kind(&nested(129)), too_deep);
    assert_eq!(kind(&nested(100_000)), too_deep);
    let limits = Limits {
        max_depth: 1_000_000,
        ..Limits::default()
    };
    let error = read(&nested(100_000), &limits).err().map(|it| it.kind());
    assert_eq!(error, too_deep, "whatever the limits say");
    let few = Limits {
        max_depth: 1,
        ..Limits::default()
    };
    assert!(read("{\"a\":1}", &few).is_ok() && read("{\"a\":[]}", &few).is_err());
}

#[test]
fn the_number_of_values_is_bounded() {
    let limits = Limits {
        max_items: 3,
        ..Limits::default()
    };
    assert!(read("[1,{}]", &limits).is_ok());
    for text in ["[1,2,3]", "{\"a\":1,\"a\":2,\"a\":3}", "[[[[]]]]"] {
        let error = read(text, &limits).err().map(|it| it.kind());
        assert_eq!(error, Some(DecodeErrorKind::TooManyItems { max: 3 }));
    }
}

#[test]
fn the_size_of_a_text_is_bounded() {
    let text = " ".repeat(MAX_SERVER_MESSAGE);
    let too_large = DecodeErrorKind::TooLarge {
        size: MAX_SERVER_MESSAGE + 1,
        max: MAX_SERVER_MESSAGE,
    };
    assert_eq!(kind(&(text.clone() + "7")), Some(too_large));
    assert_eq!(kind(&(text[1..].to_owned() + "7")), None);
}

#[test]
fn a_member_that_comes_twice_is_refused() {
    let twice = Some(DecodeErrorKind::DuplicateMember("…"));
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"\u0061":3}"#,
        r#"{"x":[{"b":1,"a":2,"b":3}]}"#,
    ] {
        assert_eq!(kind(text), twice, "{text}");
    }
    // Quadratic ways take minutes.
    let members = vec![r#""a":1"#; 60_000].join(",");
    assert_eq!(kind(&format!("{{{members}}}")), twice);
}

proptest! {
    #[test]
    fn valid_json_is_what_serde_json_accepts(
        text in r#"([\[\]\{\},: ]|"(a|\\u00|\\ud83e|\\n|\\q|é)?"?|-|0|1|\.5|e|E\+|true|fals|null|\n){0,12}"#,
    ) {
        let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(kind(&text).is_none(), is_json, "{:?}", text);
    }

    #[test]
    fn sorted_members_do_not_depend_on_the_order_sent(
        members in prop::collection::hash_map("[a-cé🧅]{0,2}", 0..9_u8, 0..6),
    ) {
        let quoted = |name: &str| serde_json::Value::from(name).to_string();
        let mut texts: Vec<_> = members
            .iter()
            .map(|(name, value)| format!("{}:{value}", quoted(name)))
            .collect();
        let sent = format!("{{{}}}", texts.join(","));
        texts.reverse();
        let reversed = format!("{{ {} }}", texts.join(" , "));
        for form in Canonical::ALL {
            prop_assert_eq!(canonical_json(&sent, form), canonical_json(&reversed, form));
        }
    }
}
