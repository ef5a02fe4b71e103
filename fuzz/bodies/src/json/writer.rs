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

/// One value of the data model.
enum Value {
    Unit,
    None,
    Some(Box<Value>),
    Bool(bool),
    Signed(u8, i128),
    Unsigned(u8, u128),
    F32(f32),
    F64(f64),
    Char(char),
    Text(String),
    Bytes(Vec<u8>),
    Displayed(Vec<String>),
    Raw(Box<RawValue>),
    UnitStruct(&'static str),
    UnitVariant(&'static str),
    NewtypeStruct(Box<Value>),
    NewtypeVariant(&'static str, Box<Value>),
    /// Whether the length is announced.
    Seq(bool, Vec<Value>),
    Tuple(Vec<Value>),
    TupleStruct(Vec<Value>),
    TupleVariant(&'static str, Vec<Value>),
    Map(bool, Vec<(Value, Value)>),
    Struct(&'static str, Vec<(&'static str, Value)>),
    StructVariant(&'static str, Vec<(&'static str, Value)>),
}

impl Value {
    fn read(script: &mut Script<'_>, depth: usize) -> Self {
        if depth > MAX_DEPTH {
            return Self::Unit;
        }
        let inner = |script: &mut Script<'_>| Box::new(Self::read(script, depth + 1));
        match script.byte_or_zero() % 24 {
            1 => Self::None,
            2 => Self::Some(inner(script)),
            3 => Self::Bool(script.byte_or_zero() % 2 == 1),
            4 => Self::Signed(script.byte_or_zero(), i128::from_le_bytes(bytes(script))),
            5 => Self::Unsigned(script.byte_or_zero(), u128::from_le_bytes(bytes(script))),
            6 => Self::F32(f32::from_le_bytes(bytes(script))),
            7 => Self::F64(f64::from_le_bytes(bytes(script))),
            8 => Self::Char(script.text().chars().next().unwrap_or('\u{1f}')),
            9 => Self::Text(script.text().to_owned()),
            10 => {
                let times = usize::from(script.byte_or_zero());
                Self::Text(script.text().repeat(times))
            }
            11 => Self::Bytes(script.text().bytes().collect()),
            12 => Self::Displayed(list(script, |script| script.text().to_owned())),
            13 => Self::Raw(raw(script.text())),
            14 => Self::UnitStruct(name(script)),
            15 => Self::UnitVariant(name(script)),
            16 => Self::NewtypeStruct(inner(script)),
            17 => Self::NewtypeVariant(name(script), inner(script)),
            18 => {
                let announced = script.byte_or_zero() % 2 == 1;
                Self::Seq(announced, list(script, |script| *inner(script)))
            }
            19 => Self::Tuple(list(script, |script| *inner(script))),
            20 => Self::TupleStruct(list(script, |script| *inner(script))),
            21 => Self::TupleVariant(name(script), list(script, |script| *inner(script))),
            22 => {
                let announced = script.byte_or_zero() % 2 == 1;
                let entry = |script: &mut Script<'_>| (*inner(script), *inner(script));
                Self::Map(announced, list(script, entry))
            }
            23 => {
                let is_variant = script.byte_or_zero() % 2 == 1;
                let own = name(script);
                let fields = list(script, |script| (name(script), *inner(script)));
                if is_variant {
                    Self::StructVariant(own, fields)
                } else {
                    Self::Struct(own, fields)
                }
            }
            _ => Self::Unit,
        }
    }
}

fn bytes<const N: usize>(script: &mut Script<'_>) -> [u8; N] {
    std::array::from_fn(|_| script.byte_or_zero())
}

fn name(script: &mut Script<'_>) -> &'static str {
    script.pick_text(&NAMES)
}

/// Up to seven items.
fn list<T>(script: &mut Script<'_>, mut item: impl FnMut(&mut Script<'_>) -> T) -> Vec<T> {
    (0..script.byte_or_zero() % 8)
        .map(|_| item(script))
        .collect()
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
    ($to:ident, $items:ident, $item:pat => $write:ident($($part:ident),+)) => {{
        let mut to = $to;
        $items.iter().try_for_each(|$item| to.$write($($part),+))?;
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
        match self {
            Self::Unit => to.serialize_unit(),
            Self::None => to.serialize_none(),
            Self::Some(value) => to.serialize_some(value),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Signed(width, value) => match width % 5 {
                0 => to.serialize_i8(*value as i8),
                1 => to.serialize_i16(*value as i16),
                2 => to.serialize_i32(*value as i32),
                3 => to.serialize_i64(*value as i64),
                _ => to.serialize_i128(*value),
            },
            Self::Unsigned(width, value) => match width % 5 {
                0 => to.serialize_u8(*value as u8),
                1 => to.serialize_u16(*value as u16),
                2 => to.serialize_u32(*value as u32),
                3 => to.serialize_u64(*value as u64),
                _ => to.serialize_u128(*value),
            },
            Self::F32(value) => to.serialize_f32(*value),
            Self::F64(value) => to.serialize_f64(*value),
            Self::Char(value) => to.serialize_char(*value),
            Self::Text(value) => to.serialize_str(value),
            Self::Bytes(value) => to.serialize_bytes(value),
            Self::Displayed(pieces) => to.collect_str(&Pieces(pieces)),
            Self::Raw(value) => value.serialize(to),
            Self::UnitStruct(name) => to.serialize_unit_struct(name),
            Self::UnitVariant(name) => to.serialize_unit_variant("E", 0, name),
            Self::NewtypeStruct(value) => to.serialize_newtype_struct("N", value),
            Self::NewtypeVariant(name, value) => to.serialize_newtype_variant("E", 0, name, value),
            Self::Seq(announced, items) => {
                let seq = to.serialize_seq(announced.then_some(items.len()))?;
                each!(seq, items, item => serialize_element(item))
            }
            Self::Tuple(items) => {
                let tuple = to.serialize_tuple(items.len())?;
                each!(tuple, items, item => serialize_element(item))
            }
            Self::TupleStruct(items) => {
                let tuple = to.serialize_tuple_struct("T", items.len())?;
                each!(tuple, items, item => serialize_field(item))
            }
            Self::TupleVariant(name, items) => {
                let tuple = to.serialize_tuple_variant("E", 0, name, items.len())?;
                each!(tuple, items, item => serialize_field(item))
            }
            Self::Map(announced, entries) => {
                let map = to.serialize_map(announced.then_some(entries.len()))?;
                each!(map, entries, (key, value) => serialize_entry(key, value))
            }
            Self::Struct(name, fields) => {
                let object = to.serialize_struct(name, fields.len())?;
                each!(object, fields, (name, value) => serialize_field(name, value))
            }
            Self::StructVariant(name, fields) => {
                let object = to.serialize_struct_variant("E", 0, name, fields.len())?;
                each!(object, fields, (name, value) => serialize_field(name, value))
            }
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
