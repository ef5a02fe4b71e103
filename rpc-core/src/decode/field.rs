//! [`Members`], [`Field`] and [`Slot`]: one member of a frame at a time, in one pass.

use std::borrow::Cow;

use serde::Deserialize;

use super::{DecodeError, DecodeErrorKind, RawJson, Reader};

/// The known members of a frame (of all frames of one direction), filled in one by one.
pub trait Members<'de> {
    /// Takes the member `name`: passes `field` one of its methods, [`Field::skip`] for a name that
    /// is not known.
    ///
    /// # Errors
    /// What the field's method returns.
    fn member(&mut self, name: &str, field: Field<'_, 'de>) -> Result<(), DecodeError>;
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

impl<T> From<T> for Slot<T> {
    fn from(value: T) -> Self {
        Self(State::Set(value))
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

    /// The same with another value, if there is one.
    #[must_use]
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Slot<U> {
        Slot(match self.0 {
            State::Set(value) => State::Set(convert(value)),
            State::Unseen => State::Unseen,
            State::Null => State::Null,
        })
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
    #[inline]
    pub fn require(self, member: &'static str) -> Result<T, DecodeError> {
        self.take().ok_or_else(|| DecodeError::missing(member))
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
#[derive(Debug)]
pub struct Field<'r, 'de> {
    reader: &'r mut Reader<'de>,
}

impl<'r, 'de> Field<'r, 'de> {
    pub(super) const fn new(reader: &'r mut Reader<'de>) -> Self {
        Self { reader }
    }

    /// Skips the value without parsing it.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn skip(self) -> Result<(), DecodeError> {
        self.reader.skip()
    }

    /// Refuses a member that a strict frame does not know.
    ///
    /// # Errors
    /// Always: [`DecodeErrorKind::UnknownMember`].
    pub fn refuse(self) -> Result<(), DecodeError> {
        Err(self.fail(DecodeErrorKind::UnknownMember))
    }

    /// Reads the value in any way; `None` is null. The other methods are short for this one.
    ///
    /// # Errors
    /// What `read` returns, and if the member came before.
    #[inline]
    pub fn read<T>(
        self,
        name: &'static str,
        slot: &mut Slot<T>,
        read: impl FnOnce(&mut Reader<'de>) -> Result<Option<T>, DecodeError>,
    ) -> Result<(), DecodeError> {
        if slot.was_seen() {
            return Err(self.fail(DecodeErrorKind::DuplicateMember(name)));
        }
        match read(self.reader) {
            Ok(value) => {
                slot.0 = value.map_or(State::Null, State::Set);
                Ok(())
            }
            Err(error) => Err(error.under(name)),
        }
    }

    /// A string or null.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    #[inline]
    pub fn str(
        self,
        name: &'static str,
        slot: &mut Slot<Cow<'de, str>>,
    ) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::str)
    }

    /// A string, or anything else noted as such.
    ///
    /// # Errors
    /// If it is not JSON, or the member came before.
    #[inline]
    pub fn loose_str(
        self,
        name: &'static str,
        slot: &mut Slot<LooseStr<'de>>,
    ) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::loose_str)
    }

    /// Any value but null, kept as it was sent.
    ///
    /// # Errors
    /// If it is not JSON, or the member came before.
    #[inline]
    pub fn raw(self, name: &'static str, slot: &mut Slot<RawJson<'de>>) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::raw)
    }

    /// Any value, null too, kept as it was sent.
    ///
    /// # Errors
    /// If it is not JSON, or the member came before.
    #[inline]
    pub fn raw_or_null(
        self,
        name: &'static str,
        slot: &mut Slot<RawJson<'de>>,
    ) -> Result<(), DecodeError> {
        self.read(name, slot, |reader| reader.raw_or_null().map(Some))
    }

    /// A JSON object or null, kept as it was sent.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    #[inline]
    pub fn raw_object(
        self,
        name: &'static str,
        slot: &mut Slot<RawJson<'de>>,
    ) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::raw_object)
    }

    /// A JSON array or null, kept as it was sent.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    #[inline]
    pub fn raw_array(
        self,
        name: &'static str,
        slot: &mut Slot<RawJson<'de>>,
    ) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::raw_array)
    }

    /// A string or null, or a number taken as its text.
    ///
    /// # Errors
    /// If it is none of these, or the member came before.
    #[inline]
    pub fn id(self, name: &'static str, slot: &mut Slot<Cow<'de, str>>) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::id)
    }

    /// `true`, `false` or null.
    ///
    /// # Errors
    /// If it is none of these, or the member came before.
    #[inline]
    pub fn bool(self, name: &'static str, slot: &mut Slot<bool>) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::bool)
    }

    /// A whole number from 0 up, or null.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    #[inline]
    pub fn u64(self, name: &'static str, slot: &mut Slot<u64>) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::u64)
    }

    /// A number or null.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    #[inline]
    pub fn f64(self, name: &'static str, slot: &mut Slot<f64>) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::f64)
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
    ) -> Result<(), DecodeError> {
        self.read(name, slot, |reader| reader.value(expected))
    }

    /// An object with known members of its own, or null.
    ///
    /// # Errors
    /// If it is neither, or the member came before.
    pub fn object<M: Members<'de> + Default>(
        self,
        name: &'static str,
        slot: &mut Slot<M>,
    ) -> Result<(), DecodeError> {
        self.read(name, slot, Reader::object)
    }

    pub(super) fn fail(&self, kind: DecodeErrorKind) -> DecodeError {
        self.reader.fail(kind)
    }
}
