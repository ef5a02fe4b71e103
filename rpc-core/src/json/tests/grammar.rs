//! What is JSON and what is not, with `serde_json` as the reference.

use serde_json::Value;
use serde_json::value::RawValue;

use super::frames::deep;
use crate::Limits;
use crate::json::{self, Json, parse};

/// Whether the text is one JSON value; our reader and `serde_json` have to agree.
fn is_json(text: &str) -> bool {
    let ours = Json::new(text).is_ok();
    let theirs = serde_json::from_str::<&RawValue>(text).is_ok();
    assert_eq!(ours, theirs, "{text:?}");
    ours
}

fn string(text: &str) -> Option<String> {
    let ours = parse::<String>(text, &Limits::default()).ok();
    let theirs = json::from_slice::<String>(text.as_bytes()).ok();
    assert_eq!(ours, theirs, "{text:?}");
    ours
}

#[test]
fn numbers_have_one_grammar() {
    for good in [
        "0",
        "-0",
        "10",
        "0.5",
        "-0.0",
        "1e9",
        "1E+9",
        "1e-9",
        "0e0",
        "1.25e3",
        "123456789012345678901234567890",
        "1e999",
    ] {
        assert!(is_json(good), "{good}");
    }
    for bad in [
        "01",
        "-01",
        "00",
        "-",
        "+1",
        ".5",
        "1.",
        "1.e3",
        "1e",
        "1e+",
        "1e-",
        "-e1",
        "0x10",
        "1_000",
        "1a",
        "--1",
        "NaN",
        "Infinity",
        "-Infinity",
        "１",
    ] {
        assert!(!is_json(bad), "{bad}");
    }
}

#[test]
fn literals_must_be_complete() {
    for good in ["true", "false", "null"] {
        assert!(is_json(good), "{good}");
        assert!(!is_json(&good.to_uppercase()), "{good}");
        for end in 0..good.len() {
            assert!(!is_json(good.get(..end).unwrap()), "{good} up to {end}");
        }
        assert!(!is_json(&format!("{good}x")), "{good}");
    }
}

#[test]
fn commas_and_colons_are_required() {
    for good in [
        "[]",
        "{}",
        "[1,2]",
        r#"{"a":1,"b":2}"#,
        r#"{"":[]}"#,
        "[[],{}]",
    ] {
        assert!(is_json(good), "{good}");
    }
    for bad in [
        "[1,]",
        "[,1]",
        "[,]",
        "[1 2]",
        "[1,,2]",
        "{,}",
        r#"{"a":1,}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a" 1}"#,
        r#"{"a"::1}"#,
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        r#"{"a":1 "b":2}"#,
        "[}",
        "{]",
        "[1}",
        r#"{"a":1]"#,
        "]",
        "}",
        "1,",
        "[] []",
        r#"["a":1]"#,
        r#"{"a","b"}"#,
        "[1]]",
        "{}}",
    ] {
        assert!(!is_json(bad), "{bad}");
    }
}

#[test]
fn white_space_has_four_characters() {
    assert!(is_json(
        " \t\r\n[ \t\r\n1 \t\r\n, \t\r\n{ \t\r\n} \t\r\n] \t\r\n"
    ));
    assert!(is_json("\n{ \"a\" : 1 , \"b\" : [ ] }\n"));
    for space in [
        "\u{b}", "\u{c}", "\u{a0}", "\u{85}", "\u{2028}", "\u{feff}", "\0",
    ] {
        for text in [
            format!("{space}1"),
            format!("[{space}1]"),
            format!("1{space}"),
        ] {
            assert!(!is_json(&text), "{text:?}");
        }
    }
    assert!(!is_json("") && !is_json(" "));
}

#[test]
fn control_characters_must_be_escaped_in_strings() {
    for code in 0..0x80_u8 {
        let text = format!("\"a{}z\"", char::from(code));
        assert_eq!(
            is_json(&text),
            code >= 0x20 && !matches!(code, b'"' | b'\\'),
            "{code}"
        );
    }
    assert_eq!(
        string("\"\u{7f}é日😀\u{2028}\"").as_deref(),
        Some("\u{7f}é日😀\u{2028}")
    );
}

#[test]
fn every_escape_is_decoded() {
    let text = r#""\"\\\/\b\f\n\r\t\u0041\u00E9\u65e5\ud83d\ude00\u0000""#;
    let said = "\"\\/\u{8}\u{c}\n\r\tAé日😀\0";
    assert_eq!(string(text).as_deref(), Some(said));
    for bad in [
        r#""\""#,
        r#""\x""#,
        r#""\'""#,
        r#""\u""#,
        r#""\u12""#,
        r#""\u12g4""#,
        r#""\U0041""#,
        r#""\u+041""#,
        r#""\u 041""#,
        "\"\\\n\"",
        r#""\é""#,
        r#""\u004é""#,
    ] {
        assert!(!is_json(bad), "{bad}");
        assert_eq!(string(bad), None, "{bad}");
    }
}

#[test]
fn a_lone_surrogate_becomes_a_replacement_character_anywhere() {
    for (lone, text) in [
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\ude00""#, "\u{fffd}"),
        (r#""\ud83dx""#, "\u{fffd}x"),
        (r#""\ud83d\n""#, "\u{fffd}\n"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
        (r#""\ud83d\ud83d""#, "\u{fffd}\u{fffd}"),
        (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
    ] {
        assert!(is_json(lone), "{lone}");
        assert_eq!(string(lone).as_deref(), Some(text), "{lone}");
        let nested = format!(r#"{{"a":[{{{lone}:{lone}}}]}}"#);
        let kept = Json::new(&nested).unwrap();
        let member = kept.member("a").unwrap();
        let expected = serde_json::json!([{ text: text }]);
        // In place, and for readers that know no half.
        for json in [kept.get(), &nested] {
            let whole: Value = parse(json, &Limits::default()).unwrap();
            assert_eq!(whole["a"], expected, "{json}");
        }
        assert_eq!(
            serde_json::from_str::<Value>(member.get()).unwrap(),
            expected
        );
        let raw: Json = serde_json::from_str(lone).unwrap();
        assert_eq!(raw.as_str().as_deref(), Some(text), "{lone}");
        let mut reader = json::Deserializer::new(&nested, &Limits::default());
        let verbatim = json::lenient::verbatim(&mut reader).unwrap();
        assert_eq!(verbatim.get(), nested);
    }
}

#[test]
fn truncated_json_is_refused() {
    let text =
        r#"{"a":[1,-0.5e+3,true,{"b":null}],"é\n\u00e9":"a long text, more than two words of it"}"#;
    for (end, _) in text.char_indices() {
        assert!(!is_json(text.get(..end).unwrap()), "up to {end}");
    }
    assert!(is_json(text));
}

#[test]
fn brackets_match_at_every_depth() {
    for levels in [1, 2, 63, 64, 65, 127, 128, 129, 1000] {
        assert!(is_json(&deep(levels)));
        let objects = format!("{}1{}", r#"{"a":["#.repeat(levels), "]}".repeat(levels));
        assert!(is_json(&objects));
        let open = format!("{}{}", "[".repeat(levels), "]".repeat(levels - 1));
        assert!(!is_json(&open));
        let crossed = format!("{}1{}", r#"{"a":["#.repeat(levels), "}]".repeat(levels));
        assert!(!is_json(&crossed));
    }
}

#[test]
fn integers_are_read_up_to_the_maximum() {
    for (text, number) in [
        ("0", Some(0)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("-0", None),
        ("-1", None),
        ("1.0", None),
        ("1e3", None),
    ] {
        assert_eq!(
            parse::<u64>(text, &Limits::default()).ok(),
            number,
            "{text}"
        );
        assert_eq!(serde_json::from_str::<u64>(text).ok(), number, "{text}");
    }
}

#[test]
fn floats_are_rounded_to_the_nearest() {
    for (text, number) in [
        ("0", Some(0.0)),
        ("-1.5e3", Some(-1500.0)),
        ("0.95", Some(0.95)),
        ("1e-400", Some(0.0)),
        ("1e400", None),
        ("\"1\"", None),
        ("true", None),
    ] {
        assert_eq!(
            parse::<f64>(text, &Limits::default()).ok(),
            number,
            "{text}"
        );
    }
    let long = "0.123478901235678901234567890123";
    let number = parse::<f64>(long, &Limits::default()).unwrap();
    assert_eq!(Ok(number), long.parse::<f64>());
    let error = parse::<f64>(" 1e400", &Limits::default()).unwrap_err();
    assert_eq!((error.line(), error.column()), (1, 2));
}

#[test]
fn an_error_has_its_position() {
    let list = " [1,\n \"x\"]";
    let error = parse::<Vec<u8>>(list, &Limits::default()).unwrap_err();
    assert_eq!((error.line(), error.column()), (2, 2));
    let text = "{\"a\":\n [true, \"x\"]}";
    let value: Value = parse(text, &Limits::default()).unwrap();
    assert_eq!(value["a"][1], "x");
}
