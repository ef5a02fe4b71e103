//! Functions for `deserialize_with` that accept what the programs of a protocol write differently.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::value::JsonVisitor;
use super::{Json, Str, token};
use crate::id::Id;
use crate::limits::Limits;

/// Reads a string, or a number as its digits. For `deserialize_with`, into [`Str`] or a type made
/// from it.
///
/// # Errors
/// If the value is neither.
#[inline]
pub fn id<'de, D: Deserializer<'de>, T: From<Str>>(from: D) -> Result<T, D::Error> {
    from.deserialize_newtype_struct(token::ID, IdVisitor)
        .map(T::from)
}

/// Like [`id`], or null. Also write `#[serde(default)]`.
///
/// # Errors
/// If the value is none of these.
#[inline]
pub fn optional_id<'de, D: Deserializer<'de>, T: From<Str>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let read = Option::<Id<()>>::deserialize(from)?;
    Ok(read.map(|id| Str::from(id).into()))
}

/// Reads an object as raw JSON.
///
/// # Errors
/// If the value is not an object.
pub fn object<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    verbatim_object(from).map(Json::mended)
}

/// Like [`object`], but half of a surrogate pair stays as it is: for what is signed.
fn verbatim_object<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    by_type(from).map(|Of::<b'{'>(json)| json)
}

/// Reads any value as it was sent. Half of a surrogate pair stays as it is: for what is sent back.
///
/// # Errors
/// If the value is not JSON.
#[inline]
pub fn verbatim<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    from.deserialize_newtype_struct(token::RAW, JsonVisitor)
}

/// Reads an array as raw JSON.
///
/// # Errors
/// If the value is not an array.
pub fn array<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    by_type(from).map(|Of::<b'['>(json)| json.mended())
}

struct Of<const FIRST: u8>(Json);

impl<const FIRST: u8> ByType for Of<FIRST> {
    fn read<'de, D: Deserializer<'de>>(first: u8, from: D) -> Result<Self, D::Error> {
        if first == FIRST {
            return verbatim(from).map(Self);
        }
        // Says what is wrong.
        let read = match FIRST {
            b'{' => from.deserialize_map(IgnoredAny),
            _ => from.deserialize_seq(IgnoredAny),
        };
        read.map(|_| Self(Json::NULL))
    }
}

/// Reads a string, or any other value but null as its JSON text.
///
/// # Errors
/// If the value is null.
pub fn loose<'de, D: Deserializer<'de>>(from: D) -> Result<Str, D::Error> {
    by_type(from).map(|Loose(text)| text)
}

struct Loose(Str);

impl ByType for Loose {
    fn read<'de, D: Deserializer<'de>>(first: u8, from: D) -> Result<Self, D::Error> {
        match first {
            b'"' | b'n' => Str::deserialize(from).map(Self),
            _ => Json::deserialize(from).map(|json| Self(json.into_text())),
        }
    }
}

/// The same for members that may be null. Also write `#[serde(default)]`.
macro_rules! optional {
    ($($(#[$doc:meta])* $name:ident: $read:ident -> $Of:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// If the value is neither.
        pub fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$Of>, D::Error> {
            struct Value($Of);
            impl<'de> Deserialize<'de> for Value {
                fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    $read(from).map(Self)
                }
            }
            Ok(Option::<Value>::deserialize(from)?.map(|Value(value)| value))
        }
    )*};
}

optional! {
    /// Like [`object`], or null. Also write `#[serde(default)]`.
    optional_object: object -> Json;
    /// Reads an object as it was sent, or null: half of a surrogate pair stays as it is, for what is
    /// signed. Also write `#[serde(default)]`.
    optional_verbatim_object: verbatim_object -> Json;
    /// Like [`array`](fn@array), or null. Also write `#[serde(default)]`.
    optional_array: array -> Json;
    /// Like [`loose`], or null. Also write `#[serde(default)]`.
    optional_loose: loose -> Str;
}

/// Reads a value, or null as the default. Also write `#[serde(default)]`.
///
/// # Errors
/// If the value is neither.
#[inline]
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// Reads any value, also null. Also write `#[serde(default)]`: `None` is a missing member.
///
/// # Errors
/// If the value is not JSON.
#[inline]
pub fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

/// A type that accepts several JSON types: see [`by_type`].
#[doc(hidden)]
pub trait ByType: Sized {
    /// Reads a value by its first byte: `"`, `{`, `[`, `t` or `f`, `n`, or anything else for a
    /// number.
    ///
    /// # Errors
    /// If the value has none of the accepted types.
    fn read<'de, D: Deserializer<'de>>(first: u8, from: D) -> Result<Self, D::Error>;
}

/// Reads a value that may have one of several JSON types. For `deserialize_with`.
///
/// # Errors
/// If the type does not allow the value.
#[doc(hidden)]
pub fn by_type<'de, D: Deserializer<'de>, T: ByType>(from: D) -> Result<T, D::Error> {
    from.deserialize_newtype_struct(token::TYPE, TypeVisitor(PhantomData))
}

struct TypeVisitor<T>(PhantomData<T>);

impl<'de, T: ByType> Visitor<'de> for TypeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let first = map.next_key()?.unwrap_or(b'n');
        map.next_value_seed(Seed(first, PhantomData))
    }

    /// The path of a deserializer of another crate.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        let json = Json::deserialize(from)?;
        let mut reader = super::Deserializer::new(json.get(), &Limits::default());
        T::read(json.first_byte(), &mut reader).map_err(de::Error::custom)
    }
}

struct Seed<T>(u8, PhantomData<T>);

impl<'de, T: ByType> DeserializeSeed<'de> for Seed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        T::read(self.0, from)
    }
}

/// A value whose JSON type has this first byte (`b'0'` for numbers); `None` for a value of another
/// type, which is skipped.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Only<const FIRST: u8, T>(pub Option<T>);

impl<const FIRST: u8, T: DeserializeOwned> ByType for Only<FIRST, T> {
    fn read<'de, D: Deserializer<'de>>(first: u8, from: D) -> Result<Self, D::Error> {
        let is_number = FIRST == b'0' && matches!(first, b'-' | b'0'..=b'9');
        if first == FIRST || is_number {
            return T::deserialize(from).map(|value| Self(Some(value)));
        }
        IgnoredAny::deserialize(from)?;
        Ok(Self(None))
    }
}

impl<'de, const FIRST: u8, T: DeserializeOwned> Deserialize<'de> for Only<FIRST, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        by_type(from)
    }
}

struct IdVisitor;

impl<'de> Visitor<'de> for IdVisitor {
    type Value = Str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
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

    /// The path of a deserializer of another crate.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Str, D::Error> {
        from.deserialize_any(self)
    }
}
