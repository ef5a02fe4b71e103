//! Missing members and written members: support code of [`tagged!`](crate::tagged).

use std::marker::PhantomData;

use serde::de::{self, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};

use crate::json::flatten::Flatten;

/// Returns the value of a missing common member: `None` for an `Option`.
///
/// # Errors
/// If the type requires a value.
pub fn absent<'de, T: Deserialize<'de>, E: de::Error>(name: &'static str) -> Result<T, E> {
    struct Absent<E>(&'static str, PhantomData<E>);
    impl<'de, E: de::Error> Deserializer<'de> for Absent<E> {
        type Error = E;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, E> {
            Err(E::missing_field(self.0))
        }
        fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            visitor.visit_none()
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
            unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }
    T::deserialize(Absent(name, PhantomData))
}

/// Distinguishes a member that is `None` from all others: of two methods with one name, the
/// inherent one wins.
#[derive(Debug)]
pub struct Member<'m, T>(pub &'m T);

impl<'m, T> Member<'m, Option<T>> {
    /// Returns the member, if it is to be written.
    #[must_use]
    pub fn written(&self) -> Option<&'m Option<T>> {
        self.0.is_some().then_some(self.0)
    }
}

/// A member that is always written.
pub trait Always<'m, T> {
    /// Returns the member.
    fn written(&self) -> Option<&'m T>;
}

impl<'m, T> Always<'m, T> for Member<'m, T> {
    fn written(&self) -> Option<&'m T> {
        Some(self.0)
    }
}

/// A tag or member name to write.
#[derive(Clone, Copy, Debug)]
pub struct Word(pub &'static str);

impl Serialize for Word {
    // As a variant: its name is known where it is compiled, so that it is not searched for escapes.
    #[inline(always)]
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_unit_variant("", 0, self.0)
    }
}

/// Writes the members of content into an object.
///
/// # Errors
/// If the serializer fails, or the content is not an object.
#[inline]
pub fn flatten<M: SerializeMap>(content: &impl Serialize, map: &mut M) -> Result<(), M::Error> {
    content.serialize(Flatten(map))
}

/// Content without members: `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}
