//! Where we depend on what `serde_json` does inside. Any other value: the fuzz target `json_writer`.

mod frames;
mod grammar;
mod loose;
mod reading;

use serde_json::value::RawValue;

use super::{Writer, serialize_verbatim};

fn written(value: &impl serde::Serialize) -> String {
    let mut out = String::new();
    value.serialize(Writer::new(&mut out)).unwrap();
    out
}

/// A text with odd spaces and digits, which nobody would write by chance.
const ODD: &str = "{ \"a\" : [1.50, 1e2,\"\\u0041\"] }";

#[test]
fn raw_values_of_serde_json_are_written_verbatim() {
    let raw = RawValue::from_string(ODD.to_owned()).unwrap();
    assert_eq!(written(&[&raw]), format!("[{ODD}]"));
}

#[test]
fn our_raw_values_are_written_verbatim_by_both() {
    struct Raw;
    impl serde::Serialize for Raw {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serialize_verbatim(ODD, serializer)
        }
    }
    assert_eq!(written(&Raw), ODD);
    assert_eq!(serde_json::to_string(&Raw).unwrap(), ODD);
}

/// With `arbitrary_precision` the numbers are kept as digits, and handed over like raw values.
#[test]
fn numbers_agree_with_serde_json() {
    let text = "[0,-1,18446744073709551615,0.1,1e300,123456789012345678901234567890]";
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(written(&value), value.to_string());
}

#[test]
fn a_failing_display_is_an_error() {
    struct Fails;
    impl std::fmt::Display for Fails {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    impl serde::Serialize for Fails {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }
    assert!(serde::Serialize::serialize(&Fails, Writer::new(&mut String::new())).is_err());
}

#[test]
fn a_long_text_does_not_double_its_buffer() {
    let text = "x".repeat(100_000);
    for out in [
        written(&[&text]),
        written(&[RawValue::from_string(format!("\"{text}\"")).unwrap()]),
    ] {
        assert!(out.capacity() < 101_000, "{}", out.capacity());
    }
}
