//! The JSON writer: any value of `serde`'s data model, written by us and by `serde_json`.

use std::fmt::{self, Display};

use rpc_core::Refused;
use rpc_core::encode::{encode, encode_into};
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::script::Script;

/// Deeper values are left out.
const MAX_DEPTH: usize = 20;

/// Names of types, members and variants: usual ones, and what escapes are for.
const NAMES: [&str; 7] = [
    "id",
    "a_name_of_thirty_two_characters_",
    "",
    "quote\"d",
    "back\\slash",
    "n\u{e9}w\nline",
    "$serde_json::private::Rawvalue",
];

/// Builds a value from the input and writes it with our writer and with `serde_json`: both write
/// the same bytes, or refuse it with the same words. What is in the buffer already stays.
///
/// A value is a byte whose remainder by 24 is its kind, and what the kind needs: a text is one byte of
/// length and the text, a list one byte whose remainder by 8 is its length, a name a place in a list.
/// What is missing counts as 0.
pub fn writer(input: &[u8]) {
    let value = Value::read(&mut Script::new(input), 0);
    let mut ours = String::from("before");
    match (
        serde_json::to_string(&value),
        encode_into(&value, &mut ours),
    ) {
        (Ok(theirs), Ok(())) => {
            assert_eq!(ours.strip_prefix("before"), Some(theirs.as_str()));
            let shared = encode(&value).expect("it was written before");
            assert_eq!(shared.as_str(), theirs);
        }
        (Err(theirs), Err(Refused::Encode { message })) => {
            assert_eq!(message, theirs.to_string());
        }
        (theirs, ours) => panic!("serde_json: {theirs:?}, ours: {ours:?}"),
    }
}

/// What each kind of value needs: a flag, 4, 8 or 16 bytes, a name, a text or some, a value, some
/// values, some pairs of values, or some with names.
const KINDS: [&str; 24] = [
    "", "", "v", "f", "f16", "f16", "4", "8", "t", "t", "ft", "t", "T", "t", "n", "n", "v", "nv",
    "fV", "V", "V", "nV", "fP", "fnN",
];

/// One value of the data model.
#[derive(Default)]
struct Value {
    kind: u8,
    flag: u8,
    bytes: [u8; 16],
    name: &'static str,
    texts: Vec<String>,
    names: Vec<&'static str>,
    items: Vec<Value>,
}

impl Value {
    fn read(script: &mut Script<'_>, depth: usize) -> Self {
        let mut value = Self::default();
        if depth > MAX_DEPTH {
            return value;
        }
        value.kind = script.byte_or_zero() % 24;
        let mut width = 0;
        for need in KINDS[usize::from(value.kind)].bytes() {
            let times = match need {
                b'T' | b'V' | b'P' | b'N' => script.byte_or_zero() % 8,
                _ => 1,
            };
            for _ in 0..times {
                match need {
                    b'f' => value.flag = script.byte_or_zero(),
                    b'n' => value.name = script.pick_text(&NAMES),
                    b't' | b'T' => value.texts.push(script.text().to_owned()),
                    b'0'..=b'9' => width = width * 10 + usize::from(need - b'0'),
                    _ => {
                        if need == b'N' {
                            value.names.push(script.pick_text(&NAMES));
                        }
                        value.items.push(Self::read(script, depth + 1));
                        if need == b'P' {
                            value.items.push(Self::read(script, depth + 1));
                        }
                    }
                }
            }
        }
        value.bytes[..width].fill_with(|| script.byte_or_zero());
        value
    }

    fn number<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|at| self.bytes[at])
    }
}

/// The text if it is JSON, else a text with odd spaces.
fn raw(text: &str) -> Box<RawValue> {
    let raw = RawValue::from_string(text.to_owned());
    raw.unwrap_or_else(|_| RawValue::from_string("{ \"a\": 1.50 }".to_owned()).expect("JSON"))
}

/// Writes its pieces one by one.
struct Pieces<'v>(&'v [String]);

impl Display for Pieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

macro_rules! each {
    ($to:expr, $items:expr, $item:pat => $write:ident($($part:expr),+)) => {{
        let mut to = $to?;
        $items.try_for_each(|$item| to.$write($($part),+))?;
        to.end()
    }};
}

impl Serialize for Value {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "any number will do"
    )]
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (name, len, flag) = (self.name, self.items.len(), self.flag % 2 == 1);
        let (signed, unsigned) = (
            i128::from_le_bytes(self.bytes),
            u128::from_le_bytes(self.bytes),
        );
        let mut items = self.items.iter();
        let text = self.texts.first().map_or("", String::as_str);
        let mut fields = self.names.iter().zip(&self.items);
        match (self.kind, self.flag % 5) {
            (1, _) => to.serialize_none(),
            (2, _) => to.serialize_some(&self.items[0]),
            (3, _) => to.serialize_bool(flag),
            (4, 0) => to.serialize_i8(signed as i8),
            (4, 1) => to.serialize_i16(signed as i16),
            (4, 2) => to.serialize_i32(signed as i32),
            (4, 3) => to.serialize_i64(signed as i64),
            (4, _) => to.serialize_i128(signed),
            (5, 0) => to.serialize_u8(unsigned as u8),
            (5, 1) => to.serialize_u16(unsigned as u16),
            (5, 2) => to.serialize_u32(unsigned as u32),
            (5, 3) => to.serialize_u64(unsigned as u64),
            (5, _) => to.serialize_u128(unsigned),
            (6, _) => to.serialize_f32(f32::from_le_bytes(self.number())),
            (7, _) => to.serialize_f64(f64::from_le_bytes(self.number())),
            (8, _) => to.serialize_char(text.chars().next().unwrap_or('\u{1f}')),
            (9, _) => to.serialize_str(text),
            (10, _) => to.serialize_str(&text.repeat(usize::from(self.flag))),
            (11, _) => to.serialize_bytes(text.as_bytes()),
            (12, _) => to.collect_str(&Pieces(&self.texts)),
            (13, _) => raw(text).serialize(to),
            (14, _) => to.serialize_unit_struct(name),
            (15, _) => to.serialize_unit_variant("E", 0, name),
            (16, _) => to.serialize_newtype_struct("N", &self.items[0]),
            (17, _) => to.serialize_newtype_variant("E", 0, name, &self.items[0]),
            (18, _) => {
                let seq = to.serialize_seq(flag.then_some(len));
                each!(seq, items, item => serialize_element(item))
            }
            (19, _) => each!(to.serialize_tuple(len), items, item => serialize_element(item)),
            (20, _) => {
                each!(to.serialize_tuple_struct("T", len), items, item => serialize_field(item))
            }
            (21, _) => {
                let tuple = to.serialize_tuple_variant("E", 0, name, len);
                each!(tuple, items, item => serialize_field(item))
            }
            (22, _) => {
                let map = to.serialize_map(flag.then_some(len / 2));
                let mut pairs = self.items.chunks_exact(2);
                each!(map, pairs, pair => serialize_entry(&pair[0], &pair[1]))
            }
            (23, _) if flag => {
                let object = to.serialize_struct_variant("E", 0, name, len);
                each!(object, fields, (name, value) => serialize_field(name, value))
            }
            (23, _) => {
                let object = to.serialize_struct(name, len);
                each!(object, fields, (name, value) => serialize_field(name, value))
            }
            _ => to.serialize_unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn written_values_agree_with_serde_json(input: Vec<u8>) {
            writer(&input);
        }

        #[test]
        fn escapes_agree_with_serde_json(text in "([ -~]{0,70}|[\u{0}-\u{ff}]{0,3}|\\PC{0,40}){0,4}") {
            for start in 0..text.len().min(40) {
                let Some(text) = text.get(start..) else { continue };
                let ours = encode(text).unwrap();
                proptest::prop_assert_eq!(ours.as_str(), serde_json::to_string(text).unwrap());
            }
        }
    }

    #[test]
    fn every_kind_of_value_is_tried() {
        for kind in 0..24 {
            for rest in 0..=u8::MAX {
                writer(&[kind, rest, 3, 9, 2, b'"', b'\n', rest, kind, 1, 34]);
                writer(&[22, rest, kind, rest, 9, 1, b'\\', kind, kind]);
            }
        }
    }
}
