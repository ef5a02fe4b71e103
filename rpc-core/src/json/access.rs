//! What is inside of an object, an array and a raw value while `serde` reads it.

use std::borrow::Cow;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess};

use super::de::{Deserializer, Result};
use super::token;
use super::{DecodeError, DecodeErrorKind};

/// An object that is being read.
pub(super) struct Members<'r, 'de> {
    reader: &'r mut Deserializer<'de>,
    is_first: bool,
    name: Cow<'de, str>,
}

impl<'r, 'de> Members<'r, 'de> {
    #[inline]
    pub(super) fn new(reader: &'r mut Deserializer<'de>) -> Self {
        Self {
            reader,
            is_first: true,
            name: Cow::Borrowed(""),
        }
    }

    /// Names the member that is wrong, if it is a known one.
    #[cold]
    fn named(&mut self, error: DecodeError) -> DecodeError {
        if std::mem::take(&mut self.reader.is_named) {
            return error;
        }
        match self.reader.object.known(&self.name) {
            Some(name) => error.under(name),
            None => error,
        }
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match self.reader.token() {
            Some(b'}') => return Ok(None),
            Some(b',') if !self.is_first => {
                self.reader.at += 1;
            }
            _ if self.is_first => self.is_first = false,
            _ => return Err(self.reader.syntax()),
        }
        self.name = self.reader.name()?;
        match &self.name {
            Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Cow::Owned(name) => seed.deserialize(StrDeserializer::new(name)),
        }
        .map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let read = seed.deserialize(&mut *self.reader);
        read.map_err(|error| self.named(error))
    }
}

/// An array that is being read.
pub(super) struct Items<'r, 'de> {
    reader: &'r mut Deserializer<'de>,
    count: usize,
}

impl<'r, 'de> Items<'r, 'de> {
    pub(super) fn new(reader: &'r mut Deserializer<'de>) -> Self {
        Self { reader, count: 0 }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        match self.reader.token() {
            Some(b']') => return Ok(None),
            Some(b',') if self.count > 0 => self.reader.at += 1,
            _ if self.count == 0 => {}
            _ => return Err(self.reader.syntax()),
        }
        if self.count == self.reader.max_items {
            let max = self.count;
            return Err(self.reader.fail(DecodeErrorKind::TooManyItems { max }));
        }
        self.count += 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

/// The text of a value, as `serde_json` hands it over.
pub(super) struct Raw<'de>(&'de str);

impl<'de> Raw<'de> {
    #[inline]
    pub(super) const fn new(text: &'de str) -> Self {
        Self(text)
    }
}

impl<'de> MapAccess<'de> for Raw<'de> {
    type Error = DecodeError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        seed.deserialize(BorrowedStrDeserializer::new(token::RAW))
            .map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(BorrowedStrDeserializer::new(self.0))
    }
}
