//! [`Body`]: the members of one frame, found in one pass and read by name.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, DecodeErrorKind, RawJson, Reader};

use super::number::Number;
use super::word::{Vocabulary, Word};

/// No known frame has more members.
const USUAL: usize = 16;

/// What an array of bodies holds at a place that is not taken.
const FREE: Option<Member<'static>> = None;

struct Member<'a> {
    name: Cow<'a, str>,
    value: RawJson<'a>,
}

/// The members of one object, raw. Each kind of frame reads those that it knows; the others are
/// never looked at.
///
/// Some forty kinds of frames share their members' names with different types, so there is no list
/// of all members: what a name means is known when the type is.
pub(super) struct Body<'a> {
    text: &'a str,
    first: [Option<Member<'a>>; USUAL],
    /// In frames that are none of ours.
    more: Vec<Member<'a>>,
    len: usize,
}

impl<'a> Body<'a> {
    /// Goes over a text that must be one JSON object. Costs no allocation if no name has an escape
    /// and there are not too many.
    pub(super) fn read(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::check_size(text.len(), limits)?;
        let mut reader = Reader::new(text);
        if reader.first_byte() != Some(b'{') {
            return Err(reader.fail(DecodeErrorKind::NotAnObject));
        }
        let body = Self::read_from(text, &mut reader, limits)?;
        reader.end()?;
        Ok(body)
    }

    /// As [`read`](Self::read), of an object within `text`.
    pub(super) fn read_from(
        text: &'a str,
        reader: &mut Reader<'a>,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let mut body = Self {
            text,
            first: [FREE; USUAL],
            more: Vec::new(),
            len: 0,
        };
        let max = limits.max_items;
        reader.each_member(|name, reader| {
            let value = reader.raw_or_null()?;
            let member = Member { name, value };
            match body.first.get_mut(body.len) {
                Some(place) => *place = Some(member),
                None if body.len < max => body.more.push(member),
                None => return Err(reader.fail(DecodeErrorKind::TooManyItems { max })),
            }
            body.len += 1;
            Ok(())
        })?;
        Ok(body)
    }

    /// The text that the object stands in.
    pub(super) const fn text(&self) -> &'a str {
        self.text
    }

    /// The frame's type.
    pub(super) fn tag(&self) -> Result<Cow<'a, str>, DecodeError> {
        self.need("type")
    }

    /// A member as it was sent, null too.
    pub(super) fn raw_or_null(
        &self,
        name: &'static str,
    ) -> Result<Option<RawJson<'a>>, DecodeError> {
        let mut found = None;
        for member in self
            .first
            .iter()
            .map_while(Option::as_ref)
            .chain(&self.more)
        {
            if member.name != name {
                continue;
            }
            if found.is_some() {
                let at = Reader::back_to(&member.value, self.text);
                return Err(at.fail(DecodeErrorKind::DuplicateMember(name)));
            }
            found = Some(&member.value);
        }
        Ok(found.cloned())
    }

    /// A member as it was sent; null is none.
    pub(super) fn raw(&self, name: &'static str) -> Result<Option<RawJson<'a>>, DecodeError> {
        Ok(self.raw_or_null(name)?.filter(|raw| !raw.is_null()))
    }

    /// A member that `read` reads; null is none.
    fn read_with<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<Option<T>, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.raw_or_null(name)? {
            Some(raw) => self.read_again(name, &raw, read),
            None => Ok(None),
        }
    }

    fn read_again<T>(
        &self,
        name: &'static str,
        raw: &RawJson<'a>,
        read: impl FnOnce(&mut Reader<'a>) -> Result<Option<T>, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        read(&mut Reader::back_to(raw, self.text)).map_err(|error| error.under(name))
    }

    /// A string.
    pub(super) fn text_of(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        let Some(raw) = self.raw(name)? else {
            return Ok(None);
        };
        match raw.clone().into_str() {
            Some(text) => Ok(Some(text)),
            // Says what is wrong with it.
            None => self.read_again(name, &raw, Reader::str),
        }
    }

    /// A string that must be there.
    pub(super) fn need(&self, name: &'static str) -> Result<Cow<'a, str>, DecodeError> {
        self.text_of(name)?
            .ok_or_else(|| DecodeError::missing(name))
    }

    /// A string, or a number taken as its text.
    pub(super) fn id(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        self.read_with(name, Reader::id)
    }

    /// A string, or any other value as its JSON text.
    pub(super) fn loose(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        match self.raw(name)? {
            Some(raw) if raw.first_byte() != Some(b'"') => Ok(Some(raw.into_text())),
            _ => self.text_of(name),
        }
    }

    /// A word of a vocabulary, or another.
    pub(super) fn word<K: Vocabulary>(
        &self,
        name: &'static str,
    ) -> Result<Option<Word<K, Cow<'a, str>>>, DecodeError> {
        Ok(self.text_of(name)?.map(Word::parse))
    }

    /// An object, as it was sent.
    pub(super) fn object(&self, name: &'static str) -> Result<Option<RawJson<'a>>, DecodeError> {
        self.of_kind(name, b'{', Reader::raw_object)
    }

    /// An array, as it was sent.
    pub(super) fn array(&self, name: &'static str) -> Result<Option<RawJson<'a>>, DecodeError> {
        self.of_kind(name, b'[', Reader::raw_array)
    }

    fn of_kind(
        &self,
        name: &'static str,
        first: u8,
        read: impl FnOnce(&mut Reader<'a>) -> Result<Option<RawJson<'a>>, DecodeError>,
    ) -> Result<Option<RawJson<'a>>, DecodeError> {
        match self.raw(name)? {
            Some(raw) if raw.first_byte() != Some(first) => self.read_again(name, &raw, read),
            found => Ok(found),
        }
    }

    /// `true` or `false`.
    pub(super) fn bool(&self, name: &'static str) -> Result<Option<bool>, DecodeError> {
        self.read_with(name, Reader::bool)
    }

    /// A whole number from 0 up.
    pub(super) fn count(&self, name: &'static str) -> Result<Option<u64>, DecodeError> {
        self.read_with(name, Reader::u64)
    }

    /// A number.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<Number>, DecodeError> {
        let Some(raw) = self.raw(name)? else {
            return Ok(None);
        };
        match Number::parse(raw.get()) {
            Some(number) => Ok(Some(number)),
            // Says what is wrong with it.
            None => self.read_again(name, &raw, |reader| Ok(reader.f64()?.map(Number::from))),
        }
    }
}
