//! What frames are read with where a protocol's programs differ: functions for `deserialize_with`.

use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::value::JsonVisitor;
use super::{Json, Str, token};

/// A string, or a number as its digits. For `deserialize_with`; of the type [`Str`], or of one that is
/// made from it.
///
/// # Errors
/// If it is neither.
pub fn id<'de, D: Deserializer<'de>, T: From<Str>>(from: D) -> Result<T, D::Error> {
    let visitor = TextVisitor("a string or a number");
    from.deserialize_newtype_struct(token::ID, visitor)
        .map(T::from)
}

/// As [`id`], or null. Write `#[serde(default)]` too.
///
/// # Errors
/// If it is none of these.
pub fn optional_id<'de, D: Deserializer<'de>, T: From<Str>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::<IdText>::deserialize(from)?.map(|IdText(text)| text.into()))
}

struct IdText(Str);

impl<'de> Deserialize<'de> for IdText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        id(from).map(Self)
    }
}

/// A string, with U+FFFD for a surrogate that stands alone: where JavaScript cuts a text, it may cut a
/// character in two.
///
/// # Errors
/// If it is no string.
pub fn lossy<'de, D: Deserializer<'de>>(from: D) -> Result<Str, D::Error> {
    from.deserialize_newtype_struct(token::LOSSY, TextVisitor("a string"))
}

/// As [`lossy`], or null. Write `#[serde(default)]` too.
///
/// # Errors
/// If it is neither.
pub fn optional_lossy<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Str>, D::Error> {
    struct Lossy(Str);
    impl<'de> Deserialize<'de> for Lossy {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            lossy(from).map(Self)
        }
    }
    Ok(Option::<Lossy>::deserialize(from)?.map(|Lossy(text)| text))
}

/// An object as it was sent.
///
/// # Errors
/// If it is none.
pub fn object<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    let json = from.deserialize_newtype_struct(token::OBJECT, JsonVisitor)?;
    check(json, b'{', "an object")
}

/// As [`object`], or null. Write `#[serde(default)]` too.
///
/// # Errors
/// If it is neither.
pub fn optional_object<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    struct Object(Json);
    impl<'de> Deserialize<'de> for Object {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            object(from).map(Self)
        }
    }
    Ok(Option::<Object>::deserialize(from)?.map(|Object(json)| json))
}

/// An array as it was sent.
///
/// # Errors
/// If it is none.
pub fn array<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    let json = from.deserialize_newtype_struct(token::ARRAY, JsonVisitor)?;
    check(json, b'[', "an array")
}

/// As [`array`], or null. Write `#[serde(default)]` too.
///
/// # Errors
/// If it is neither.
pub fn optional_array<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    struct Array(Json);
    impl<'de> Deserialize<'de> for Array {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            array(from).map(Self)
        }
    }
    Ok(Option::<Array>::deserialize(from)?.map(|Array(json)| json))
}

/// What another deserializer than ours has not looked at.
fn check<E: de::Error>(json: Json, first: u8, expected: &'static str) -> Result<Json, E> {
    if json.first_byte() == first {
        return Ok(json);
    }
    Err(E::invalid_type(
        de::Unexpected::Other("another value"),
        &expected,
    ))
}

/// A string, or the JSON of any other value but null.
///
/// # Errors
/// If it is null, or a string that no text can hold.
pub fn loose<'de, D: Deserializer<'de>>(from: D) -> Result<Str, D::Error> {
    from.deserialize_newtype_struct(token::LOOSE, TextOrJson)
}

/// As [`loose`], or null. Write `#[serde(default)]` too.
///
/// # Errors
/// If it is a string that no text can hold.
pub fn optional_loose<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Str>, D::Error> {
    struct Loose(Str);
    impl<'de> Deserialize<'de> for Loose {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            loose(from).map(Self)
        }
    }
    Ok(Option::<Loose>::deserialize(from)?.map(|Loose(text)| text))
}

struct TextOrJson;

impl<'de> Visitor<'de> for TextOrJson {
    type Value = Str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Str, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Str, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Str, A::Error> {
        JsonVisitor.visit_map(map).map(Json::into_text)
    }

    /// Another deserializer than ours.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Str, D::Error> {
        let json = Json::deserialize(from)?;
        match json.as_str() {
            Some(text) => Ok(text.into()),
            None if json.first_byte() == b'"' => Err(de::Error::custom("expected a text")),
            None => Ok(json.into_text()),
        }
    }
}

/// A value, or null for the default. Write `#[serde(default)]` too.
///
/// # Errors
/// If it is neither.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// Any value, null too. Write `#[serde(default)]` too: `None` is an absent member.
///
/// # Errors
/// If it is not JSON.
pub fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

struct TextVisitor(&'static str);

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<Str, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Str, E> {
        Ok(text.into())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Str, E> {
        Ok(number.to_string().into())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Str, E> {
        Ok(number.to_string().into())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Str, E> {
        Ok(number.to_string().into())
    }

    /// Another deserializer than ours.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Str, D::Error> {
        from.deserialize_any(self)
    }
}

/// A member that is usually a string, in frames where another type must not make the whole frame
/// unreadable. Exhaustive: every JSON value but null is one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum LooseStr {
    /// A string.
    Str(Str),
    /// `true` or `false`.
    Bool(bool),
    /// Any other value; it was skipped.
    Other,
}

impl LooseStr {
    /// The text, if it is a string.
    #[must_use]
    pub fn text(self) -> Option<Str> {
        match self {
            Self::Str(text) => Some(text),
            Self::Bool(_) | Self::Other => None,
        }
    }
}

impl<'de> Deserialize<'de> for LooseStr {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = LooseStr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<LooseStr, E> {
        Ok(LooseStr::Str(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<LooseStr, E> {
        Ok(LooseStr::Str(text.into()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<LooseStr, E> {
        Ok(LooseStr::Bool(value))
    }

    fn visit_u64<E>(self, _: u64) -> Result<LooseStr, E> {
        Ok(LooseStr::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<LooseStr, E> {
        Ok(LooseStr::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<LooseStr, E> {
        Ok(LooseStr::Other)
    }

    fn visit_unit<E>(self) -> Result<LooseStr, E> {
        Ok(LooseStr::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<LooseStr, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LooseStr::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LooseStr, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LooseStr::Other)
    }
}
