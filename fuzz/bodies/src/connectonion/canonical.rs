//! Canonical JSON: the same forms made a second time, from what `serde_json` reads.

use std::collections::BTreeMap;

use connectonion_proto::auth::{self, Canonical, Payload};
use rpc_core::json::DecodeErrorKind;
use serde_json::value::RawValue;

use crate::plain::members;

/// A JSON text gets the canonical forms that are made of it in another way, and a form is its own
/// form.
pub fn canonical(text: &str) {
    let forms = Canonical::ALL.map(|form| auth::canonical_json(text, form));
    let Some(value) = Plain::read(text) else {
        for form in forms {
            let kind = form.map_err(|error| error.kind());
            assert_eq!(
                kind,
                Err(DecodeErrorKind::Syntax),
                "no JSON, says serde_json"
            );
        }
        return;
    };
    for (form, written) in Canonical::ALL.into_iter().zip(forms) {
        let written = match written.map_err(|error| error.kind()) {
            Ok(written) => written,
            Err(kind) => {
                let bound = matches!(
                    kind,
                    DecodeErrorKind::TooDeep { .. }
                        | DecodeErrorKind::TooManyItems { .. }
                        | DecodeErrorKind::DuplicateMember(_)
                );
                assert!(bound, "JSON is refused: {kind}");
                continue;
            }
        };
        settled(&written, form);
        if let Some(expected) = value.as_ref().and_then(|it| it.canonical(form)) {
            assert_eq!(written, expected, "{form:?}");
        }
    }
}

/// What was written is written the same again, and without a difference to those who read JSON.
fn settled(written: &str, form: Canonical) {
    // Python writes what is no JSON for numbers that are too large.
    if form == Canonical::Python && written.contains("Infinity") {
        return;
    }
    let again = auth::canonical_json(written, form);
    assert_eq!(again.as_deref(), Ok(written), "{form:?} of itself");
    if matches!(form, Canonical::Escaped | Canonical::Python) {
        assert!(written.is_ascii(), "{form:?} is ASCII");
    }
    if let Ok(payload) = Payload::parse(written, &rpc_core::Limits::default()) {
        assert_eq!(payload.canonical(form), written, "a payload");
    }
}

/// A value as `serde_json` finds it; numbers as they were written.
enum Plain {
    Word(String),
    Text(String),
    List(Vec<Self>),
    /// With the order in which names came first.
    Object(BTreeMap<String, Self>, Vec<String>),
}

impl Plain {
    /// `None` if it is no JSON; `Some(None)` if `serde_json` cannot hold it: half of a surrogate
    /// pair, or very deep nesting.
    fn read(text: &str) -> Option<Option<Self>> {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        Some(Self::value(raw, 0))
    }

    fn value(raw: &RawValue, depth: usize) -> Option<Self> {
        let text = raw.get();
        if depth > 130 {
            return None;
        }
        Some(match text.as_bytes().first()? {
            b'"' => Self::Text(serde_json::from_str(text).ok()?),
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                let items = items.into_iter().map(|item| Self::value(item, depth + 1));
                Self::List(items.collect::<Option<_>>()?)
            }
            b'{' => {
                let mut known = BTreeMap::new();
                let mut order = Vec::new();
                for (name, value) in members(text)? {
                    if !known.contains_key(&name) {
                        order.push(name.clone());
                    }
                    known.insert(name, Self::value(value, depth + 1)?);
                }
                Self::Object(known, order)
            }
            _ => Self::Word(text.to_owned()),
        })
    }

    /// `None` where this knows too little: numbers of Python that are not plain.
    fn canonical(&self, form: Canonical) -> Option<String> {
        self.write(form, true)
    }

    fn write(&self, form: Canonical, outermost: bool) -> Option<String> {
        Some(match self {
            Self::Word(word) if form == Canonical::Python => python(word)?,
            Self::Word(word) => word.clone(),
            Self::Text(text) => quoted(text, form),
            Self::List(items) => {
                let items = items.iter().map(|item| item.write(form, false));
                format!("[{}]", items.collect::<Option<Vec<_>>>()?.join(","))
            }
            Self::Object(members, received) => {
                let mut names: Vec<&String> = members.keys().collect();
                if form == Canonical::TopLevel {
                    names = received.iter().collect();
                    if outermost {
                        names.sort_by_key(|name| {
                            (place(name), name.encode_utf16().collect::<Vec<_>>())
                        });
                    }
                }
                let mut written = Vec::new();
                for name in names {
                    let value = members.get(name)?.write(form, false)?;
                    written.push(format!("{}:{value}", quoted(name, form)));
                }
                format!("{{{}}}", written.join(","))
            }
        })
    }
}

/// Where JavaScript lists a member: whole numbers first.
fn place(name: &str) -> u64 {
    let number = name.parse::<u32>().ok().filter(|it| *it < u32::MAX);
    let number = number.filter(|it| it.to_string() == name);
    number.map_or(u64::MAX, u64::from)
}

/// A number as Python writes it, where that is easily said.
fn python(word: &str) -> Option<String> {
    if !word.contains(['.', 'e', 'E']) {
        return Some(if word == "-0" { "0" } else { word }.to_owned());
    }
    let value: f64 = word.parse().ok()?;
    let plain = value == 0.0 || (1e-4..1e16).contains(&value.abs());
    // `Debug` of such a number is the shortest text with a point.
    plain.then(|| format!("{value:?}"))
}

/// A string as `serde_json` writes it; then what is not ASCII is escaped.
fn quoted(text: &str, form: Canonical) -> String {
    let json = serde_json::Value::from(text).to_string();
    if matches!(form, Canonical::Utf8 | Canonical::TopLevel) {
        return json;
    }
    let mut ascii = String::new();
    for unit in json.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() && byte != 0x7f => ascii.push(char::from(byte)),
            _ => ascii += &format!("\\u{unit:04x}"),
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn likely_texts_keep_their_rules(
            text in r#"\{("(a|b|é|🧅|ﾮ|10|9|01|\\u0061|\\ud83e\\uddc5|\\ud83e)":("x"|"é\u{7f}"|"\\n\\/\\u0001"|"\\ud83e"|7|-0|1\.50|1e5|1E-7|1e400|0\.1|null|true|\[\]|\[1, \{"b":1,"a":2,"b":3\}\]|\{"z":1,"a":"🧅"\}),?){0,6}\}"#,
        ) {
            canonical(&text.replace(",}", "}"));
        }

        #[test]
        fn numbers_match_python(value: f64) {
            canonical(&format!("[{value},{value:e}]"));
        }

        #[test]
        fn arbitrary_strings_never_panic(name: String, text: String) {
            let member = |name: &str| serde_json::Value::from(name).to_string();
            canonical(&format!("{{{}:{}}}", member(&name), member(&text)));
        }
    }
}
