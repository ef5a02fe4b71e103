//! [`open`]: reads a struct and passes on its unknown members.

use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use std::fmt;

use super::Json;
use super::tagged::Key;

/// A deserializer for a derived struct that passes each unknown member to `extra`, with its name.
/// The struct usually has `#[serde(remote = "Self")]`:
///
/// ```
/// use rpc_core::{Json, Str, json};
/// use serde::{Deserialize, Deserializer};
///
/// #[derive(Deserialize)]
/// #[serde(remote = "Self")]
/// struct Detail {
///     code: Str,
///     #[serde(skip)]
///     extra: Vec<(Str, Json)>,
/// }
///
/// impl<'de> Deserialize<'de> for Detail {
///     fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
///         let mut extra = Vec::new();
///         let keep = |name: &str, value| extra.push((name.into(), value));
///         let read = Self::deserialize(json::open(from, keep))?;
///         Ok(Self { extra, ..read })
///     }
/// }
///
/// let detail: Detail = json::decode(r#"{"x":1.0,"code":"E"}"#, &rpc_core::Limits::default())?;
/// assert_eq!(detail.extra[0].1.get(), "1.0");
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
pub fn open<'de, D: Deserializer<'de>>(
    from: D,
    extra: impl FnMut(&str, Json),
) -> impl Deserializer<'de, Error = D::Error> {
    Open(from, extra)
}

struct Open<T, F>(T, F);

impl<'de, D: Deserializer<'de>, F: FnMut(&str, Json)> Deserializer<'de> for Open<D, F> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let members = Keep {
            of: visitor,
            names,
            extra: self.1,
        };
        self.0.deserialize_struct(name, names, members)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A visitor, or the map that it reads.
struct Keep<T, F> {
    of: T,
    names: &'static [&'static str],
    extra: F,
}

impl<'de, V: Visitor<'de>, F: FnMut(&str, Json)> Visitor<'de> for Keep<V, F> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.of.visit_map(Keep {
            of: map,
            names: self.names,
            extra: self.extra,
        })
    }
}

impl<'de, A: MapAccess<'de>, F: FnMut(&str, Json)> MapAccess<'de> for Keep<A, F> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.of.next_key::<Key<'de>>()? {
            if self.names.contains(&&*key) {
                return key.give(seed).map(Some);
            }
            (self.extra)(&key, self.of.next_value()?);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.of.next_value_seed(seed)
    }
}
