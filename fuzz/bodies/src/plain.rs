//! What `serde_json` makes of a text: the other side of every comparison.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

/// A text as `serde_json` reads it.
pub(crate) enum Plain {
    /// It is no JSON.
    Nothing,
    /// It is JSON, but a map cannot hold it as it is: a name comes twice in an object, a string
    /// has half a surrogate, a number is too large, or it is too deep.
    Odd,
    /// Everything in it has one meaning.
    Clear(Value),
}

impl Plain {
    pub(crate) fn read(text: &str) -> Self {
        // Skips a value of any depth, and does not look into strings and numbers.
        if serde_json::from_str::<IgnoredAny>(text).is_err() {
            return Self::Nothing;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value) if names_come_once(text) => Self::Clear(value),
            _ => Self::Odd,
        }
    }
}

/// The text of an id: a string, or a number's digits.
///
/// `None` is what is neither; `Some(None)` a number that `serde_json` may write in another way.
pub(crate) fn id(value: &Value) -> Option<Option<String>> {
    match value {
        Value::String(text) => Some(Some(text.clone())),
        Value::Number(number) => Some(digits(number)),
        _ => None,
    }
}

fn digits(number: &Number) -> Option<String> {
    let whole = number.is_i64() || number.is_u64();
    whole.then(|| number.to_string())
}

/// White space as JavaScript has it.
const SPACES: [char; 25] = [
    '\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}',
    '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}',
    '\u{200a}', '\u{2028}', '\u{2029}', '\u{202f}', '\u{205f}', '\u{3000}', '\u{feff}',
];

/// What JavaScript's `trim` gives.
pub(crate) fn trimmed(text: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    while letters.last().is_some_and(|last| SPACES.contains(last)) {
        letters.pop();
    }
    let spaces = letters.iter().take_while(|letter| SPACES.contains(letter));
    let spaces = spaces.count();
    letters.into_iter().skip(spaces).collect()
}

/// Whether two numbers are the same except for the last bits, which `serde_json` may miss.
pub(crate) fn near((one, other): (f64, f64)) -> bool {
    (one - other).abs() <= one.abs() * 1e-14 + 1e-300
}

/// The members of an object in their order, also those whose names come twice. `None` if the text is
/// no object.
pub(crate) fn members(text: &str) -> Option<Vec<(String, &RawValue)>> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let members = parser.deserialize_map(Members).ok()?;
    parser.end().ok().map(|()| members)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// Whether no object anywhere has two members of one name.
fn names_come_once(text: &str) -> bool {
    let mut once = true;
    let mut parser = serde_json::Deserializer::from_str(text);
    Names(&mut once).deserialize(&mut parser).is_ok() && once
}

/// Walks over a value and notes names that come twice.
struct Names<'a>(&'a mut bool);

impl<'de> DeserializeSeed<'de> for Names<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Names<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            *self.0 &= !names.contains(&name);
            names.push(name);
            map.next_value_seed(Names(&mut *self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Names(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}
