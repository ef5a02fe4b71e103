//! [`Members`], [`Field`] and [`Slot`]: one member of a frame at a time, in one pass.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::Notes;
use super::{DecodeError, DecodeErrorKind, raw_id};

/// The known members of a frame (of all frames of one direction), filled in one by one.
pub trait Members<'de>: Default {
    /// Takes the member `name`: passes `field` one of its methods, [`Field::skip`] for a name that
    /// is not known.
    ///
    /// # Errors
    /// What the field's method returns.
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &str,
        field: Field<'_, A>,
    ) -> Result<(), A::Error>;
}

/// A place for one member: unseen, null or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot<T>(State<T>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State<T> {
    Unseen,
    Null,
    Set(T),
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(State::Unseen)
    }
}

impl<T> Slot<T> {
    /// The value; `None` if the member was absent or null.
    #[must_use]
    pub const fn get(&self) -> Option<&T> {
        match &self.0 {
            State::Set(value) => Some(value),
            State::Unseen | State::Null => None,
        }
    }

    /// The value, by value; `None` if the member was absent or null.
    #[must_use]
    pub fn take(self) -> Option<T> {
        match self.0 {
            State::Set(value) => Some(value),
            State::Unseen | State::Null => None,
        }
    }

    /// Whether the member was there, if only as null.
    #[must_use]
    pub const fn was_seen(&self) -> bool {
        !matches!(self.0, State::Unseen)
    }

    /// The value of a member that must be there.
    ///
    /// # Errors
    /// [`DecodeErrorKind::MissingMember`].
    pub fn require(self, member: &'static str) -> Result<T, DecodeError> {
        self.take().ok_or_else(|| DecodeError::missing(member))
    }

    fn fill(&mut self, value: Option<T>) {
        self.0 = value.map_or(State::Null, State::Set);
    }
}

/// A member that is usually a string, in frames where another type must not make the whole frame
/// unreadable. Exhaustive: every JSON value is one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LooseStr<'a> {
    /// A string.
    Str(Cow<'a, str>),
    /// `true` or `false`.
    Bool(bool),
    /// Any other value; it was skipped.
    Other,
}

/// The value of one member, not read yet. Every method reads it or fails.
pub struct Field<'m, A> {
    map: &'m mut A,
    notes: &'m Notes,
}

impl<A> fmt::Debug for Field<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Field")
    }
}

impl<'de, A: MapAccess<'de>> Field<'_, A> {
    /// Skips the value without parsing it.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn skip(self) -> Result<(), A::Error> {
        self.map.next_value::<IgnoredAny>().map(|_| ())
    }

    /// Refuses a member that a strict frame does not know.
    ///
    /// # Errors
    /// Always: [`DecodeErrorKind::UnknownMember`].
    pub fn refuse(self) -> Result<(), A::Error> {
        Err(self.notes.fail(DecodeErrorKind::UnknownMember))
    }

    /// A string or null.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    pub fn str(self, name: &'static str, slot: &mut Slot<Cow<'de, str>>) -> Result<(), A::Error> {
        self.seed(name, "a string", slot, StrSeed)
    }

    /// A string, or anything else noted as such.
    ///
    /// # Errors
    /// If it is not JSON, or the member came before.
    pub fn loose_str(
        self,
        name: &'static str,
        slot: &mut Slot<LooseStr<'de>>,
    ) -> Result<(), A::Error> {
        self.seed(name, "a string", slot, LooseSeed)
    }

    /// Any value but null, kept as it was sent.
    ///
    /// # Errors
    /// If it is not JSON, or the member came before.
    pub fn raw(self, name: &'static str, slot: &mut Slot<&'de RawValue>) -> Result<(), A::Error> {
        self.read(name, "a value", slot, |raw: &RawValue| {
            Ok((raw.get() != "null").then_some(raw))
        })
    }

    /// Any value, null too, kept as it was sent.
    ///
    /// # Errors
    /// If it is not JSON, or the member came before.
    pub fn raw_or_null(
        self,
        name: &'static str,
        slot: &mut Slot<&'de RawValue>,
    ) -> Result<(), A::Error> {
        self.read(name, "a value", slot, |raw| Ok(Some(raw)))
    }

    /// A JSON object or null, kept as it was sent.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    pub fn raw_object(
        self,
        name: &'static str,
        slot: &mut Slot<&'de RawValue>,
    ) -> Result<(), A::Error> {
        self.raw_starting(name, "an object", b'{', slot)
    }

    /// A JSON array or null, kept as it was sent.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    pub fn raw_array(
        self,
        name: &'static str,
        slot: &mut Slot<&'de RawValue>,
    ) -> Result<(), A::Error> {
        self.raw_starting(name, "an array", b'[', slot)
    }

    /// A string or null, or a number taken as its text.
    ///
    /// # Errors
    /// If it is none of these, or the member came before.
    pub fn id(self, name: &'static str, slot: &mut Slot<Cow<'de, str>>) -> Result<(), A::Error> {
        const EXPECTED: &str = "a string or a number";
        self.read(name, EXPECTED, slot, |raw: &RawValue| match raw_id(raw) {
            Some(id) => Ok(Some(id)),
            None if raw.get() == "null" => Ok(None),
            None => Err(DecodeErrorKind::WrongType {
                member: name,
                expected: EXPECTED,
            }),
        })
    }

    /// `true`, `false` or null.
    ///
    /// # Errors
    /// If it is none of these, or the member came before.
    pub fn bool(self, name: &'static str, slot: &mut Slot<bool>) -> Result<(), A::Error> {
        self.value(name, "true or false", slot)
    }

    /// A whole number from 0 up, or null.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    pub fn u64(self, name: &'static str, slot: &mut Slot<u64>) -> Result<(), A::Error> {
        self.value(name, "a whole number from 0 up", slot)
    }

    /// A number or null.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    pub fn f64(self, name: &'static str, slot: &mut Slot<f64>) -> Result<(), A::Error> {
        self.value(name, "a number", slot)
    }

    /// A value of any type that can be read, or null. `expected` names it, with its article.
    ///
    /// # Errors
    /// If it cannot be read, or the member came before.
    pub fn value<T: Deserialize<'de>>(
        self,
        name: &'static str,
        expected: &'static str,
        slot: &mut Slot<T>,
    ) -> Result<(), A::Error> {
        self.read(name, expected, slot, |value: Option<T>| Ok(value))
    }

    /// An object with known members of its own, or null.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    pub fn object<M: Members<'de>>(
        self,
        name: &'static str,
        slot: &mut Slot<M>,
    ) -> Result<(), A::Error> {
        let seed = NullableObject(ObjectSeed::new(self.notes));
        self.seed(name, "an object", slot, seed)
    }

    fn raw_starting(
        self,
        name: &'static str,
        expected: &'static str,
        first: u8,
        slot: &mut Slot<&'de RawValue>,
    ) -> Result<(), A::Error> {
        self.read(name, expected, slot, |raw: &RawValue| {
            match raw.get().as_bytes().first() {
                Some(b'n') => Ok(None),
                byte if byte == Some(&first) => Ok(Some(raw)),
                _ => Err(DecodeErrorKind::WrongType {
                    member: name,
                    expected,
                }),
            }
        })
    }

    fn read<V: Deserialize<'de>, T>(
        self,
        name: &'static str,
        expected: &'static str,
        slot: &mut Slot<T>,
        convert: impl FnOnce(V) -> Result<Option<T>, DecodeErrorKind>,
    ) -> Result<(), A::Error> {
        let notes = self.notes;
        let seed = Convert {
            convert,
            notes,
            value: PhantomData,
        };
        self.seed(name, expected, slot, seed)
    }

    fn seed<T>(
        self,
        name: &'static str,
        expected: &'static str,
        slot: &mut Slot<T>,
        seed: impl DeserializeSeed<'de, Value = Option<T>>,
    ) -> Result<(), A::Error> {
        if slot.was_seen() {
            return Err(self.notes.fail(DecodeErrorKind::DuplicateMember(name)));
        }
        let value = self.map.next_value_seed(seed);
        slot.fill(value.inspect_err(|_| self.notes.failed_in(name, expected))?);
        Ok(())
    }
}

/// Reads a `V` and turns it into an optional value.
struct Convert<'n, V, F> {
    convert: F,
    notes: &'n Notes,
    value: PhantomData<V>,
}

impl<'de, V, T, F> DeserializeSeed<'de> for Convert<'_, V, F>
where
    V: Deserialize<'de>,
    F: FnOnce(V) -> Result<Option<T>, DecodeErrorKind>,
{
    type Value = Option<T>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        let value = V::deserialize(from)?;
        (self.convert)(value).map_err(|kind| self.notes.fail(kind))
    }
}

/// A string that borrows from the text if it has no escapes, or null. `Option<Cow<str>>` itself
/// would always copy.
struct StrSeed;

impl<'de> DeserializeSeed<'de> for StrSeed {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrSeed {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

struct LooseSeed;

impl<'de> DeserializeSeed<'de> for LooseSeed {
    type Value = Option<LooseStr<'de>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LooseSeed {
    type Value = Option<LooseStr<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(LooseStr::Str(Cow::Borrowed(text))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(LooseStr::Str(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(LooseStr::Bool(value)))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Some(LooseStr::Other))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Some(LooseStr::Other))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Some(LooseStr::Other))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(LooseStr::Other))
    }

    // Numbers come this way too when `serde_json` keeps them as text.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some(LooseStr::Other))
    }
}

/// Reads an object's members one after the other.
pub(super) struct ObjectSeed<'n, M> {
    notes: &'n Notes,
    members: PhantomData<M>,
}

impl<'n, M> ObjectSeed<'n, M> {
    pub(super) const fn new(notes: &'n Notes) -> Self {
        Self {
            notes,
            members: PhantomData,
        }
    }
}

impl<'de, M: Members<'de>> DeserializeSeed<'de> for ObjectSeed<'_, M> {
    type Value = M;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<M, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, M: Members<'de>> Visitor<'de> for ObjectSeed<'_, M> {
    type Value = M;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<M, A::Error> {
        let mut members = M::default();
        // A key is a string, so `None` (null) cannot come.
        while let Some(name) = map.next_key_seed(StrSeed)? {
            let field = Field {
                map: &mut map,
                notes: self.notes,
            };
            members.member(name.as_deref().unwrap_or_default(), field)?;
        }
        Ok(members)
    }
}

struct NullableObject<'n, M>(ObjectSeed<'n, M>);

impl<'de, M: Members<'de>> DeserializeSeed<'de> for NullableObject<'_, M> {
    type Value = Option<M>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Option<M>, D::Error> {
        from.deserialize_option(self)
    }
}

impl<'de, M: Members<'de>> Visitor<'de> for NullableObject<'_, M> {
    type Value = Option<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_none<E: Error>(self) -> Result<Option<M>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<M>, E> {
        Ok(None)
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, from: D) -> Result<Option<M>, D::Error> {
        self.0.deserialize(from).map(Some)
    }
}
