//! Objects, arrays and raw values while `serde` reads them.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer, U8Deserializer};
use serde::de::{
    DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::de::{Deserializer, Result};
use super::scan::{past_space, plain_end};
use super::{DecodeError, DecodeErrorKind, token};

/// An object that is being read.
pub(super) struct Members<'r, 'de> {
    reader: &'r mut Deserializer<'de>,
    is_first: bool,
}

impl<'r, 'de> Members<'r, 'de> {
    #[inline]
    pub(super) fn new(reader: &'r mut Deserializer<'de>) -> Self {
        if reader.repeated.is_some() {
            find_repeated(reader);
        }
        Self {
            reader,
            is_first: true,
        }
    }

    /// Reads the name of the next member in its usual form: without escapes, followed directly by
    /// its colon, and not to be searched for repetitions. Otherwise returns `None` and consumes
    /// nothing.
    #[inline(always)]
    fn plain_name(&mut self) -> Option<&'de str> {
        let reader = &mut *self.reader;
        let bytes = reader.text.as_bytes();
        let mut start = reader.at;
        if !self.is_first {
            if bytes.get(start) != Some(&b',') {
                return None;
            }
            start = past_space(bytes, start + 1);
        }
        if bytes.get(start) != Some(&b'"') || reader.repeated.is_some() {
            return None;
        }
        let end = plain_end(bytes, start + 1);
        if bytes.get(end..end + 2) != Some(b"\":") {
            return None;
        }
        reader.object.member = start;
        reader.at = end + 2;
        self.is_first = false;
        reader.text.get(start + 1..end)
    }

    /// Reads the name of the next member in any form.
    fn name(&mut self) -> Result<Option<Cow<'de, str>>> {
        loop {
            match self.reader.token() {
                Some(b'}') => return Ok(None),
                Some(b',') if !self.is_first => {
                    self.reader.at += 1;
                }
                _ if self.is_first => self.is_first = false,
                _ if std::mem::take(&mut self.reader.object.is_again) => {}
                _ => return Err(self.reader.syntax()),
            }
            let name = self.reader.name()?;
            if self.reader.repeated.is_none() || !self.reader.is_repeated() {
                return Ok(Some(name));
            }
            self.reader.skip()?;
        }
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if let Some(name) = self.plain_name() {
            let name = BorrowedStrDeserializer::new(name);
            return seed.deserialize(name).map(Some);
        }
        if self.reader.text.as_bytes().get(self.reader.at) == Some(&b'}') {
            return Ok(None);
        }
        match self.name()? {
            None => return Ok(None),
            Some(Cow::Borrowed(name)) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Some(Cow::Owned(name)) => seed.deserialize(StrDeserializer::new(&name)),
        }
        .map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let read = seed.deserialize(&mut *self.reader);
        read.map_err(|error| self.reader.named(error))
    }
}

/// Finds the members of the object just opened that are followed by another one of the same name,
/// as far as the object can be read.
#[cold]
fn find_repeated(reader: &mut Deserializer<'_>) {
    let start = reader.at;
    let mut last = HashMap::new();
    while let Ok(name) = reader.name() {
        if let Some(earlier) = last.insert(name, reader.object.member)
            && let Some(repeated) = &mut reader.repeated
        {
            repeated.insert(earlier);
        }
        if reader.skip().is_err() || reader.token() != Some(b',') {
            break;
        }
        reader.at += 1;
    }
    reader.at = start;
}

/// A value and its first byte, which determines its JSON type.
pub(super) struct Typed<'r, 'de>(pub(super) &'r mut Deserializer<'de>, pub(super) u8);

impl<'de> MapAccess<'de> for Typed<'_, 'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        seed.deserialize(U8Deserializer::new(self.1)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(&mut *self.0)
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

/// The text of a value, in the form that `serde_json` uses for raw values.
pub(super) struct Raw<'de>(pub(super) &'de str);

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

/// A variant with data: `{"name": data}`.
pub(super) struct Variant<'r, 'de>(pub(super) &'r mut Deserializer<'de>);

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let name = self.0.name()?;
        let variant = seed.deserialize(IntoDeserializer::<DecodeError>::into_deserializer(name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<()> {
        serde::Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        serde::Deserializer::deserialize_seq(self.0, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        serde::Deserializer::deserialize_struct(self.0, "", names, visitor)
    }
}
