//! [`Body`]: the members of one frame, found in one pass and read by name.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, DecodeErrorKind, RawJson, RawRef, Reader};

use super::number::Number;
use super::word::{Vocabulary, Word};

/// No known frame has more members.
const USUAL: usize = 16;

/// What a body holds at a place that is not taken.
const FREE: Member<'static> = Member {
    name: "",
    value: RawRef::NULL,
};

#[derive(Clone, Copy)]
struct Member<'a> {
    name: &'a str,
    value: RawRef<'a>,
}

/// The members of one object, raw. Each kind of frame reads those that it knows; the others are
/// never looked at.
///
/// Some forty kinds of frames share their members' names with different types, so there is no list
/// of all members: what a name means is known when the type is.
pub(super) struct Body<'a> {
    text: &'a str,
    first: [Member<'a>; USUAL],
    len: usize,
    /// In frames that are none of ours.
    more: Vec<Member<'a>>,
    /// Members whose names have escapes.
    escaped: Vec<(String, RawRef<'a>)>,
}

impl<'a> Body<'a> {
    /// A body without members, of an object in this text.
    pub(super) const fn new(text: &'a str) -> Self {
        Self {
            text,
            first: [FREE; USUAL],
            len: 0,
            more: Vec::new(),
            escaped: Vec::new(),
        }
    }

    /// Goes over the text, which must be one JSON object. Costs no allocation if no name has an
    /// escape and there are not too many.
    pub(super) fn read(&mut self, limits: &Limits) -> Result<(), DecodeError> {
        decode::check_size(self.text.len(), limits)?;
        let mut reader = Reader::new(self.text);
        if reader.first_byte() != Some(b'{') {
            return Err(reader.fail(DecodeErrorKind::NotAnObject));
        }
        self.read_from(&mut reader, limits)?;
        reader.end()
    }

    /// As [`read`](Self::read), of an object within the text.
    pub(super) fn read_from(
        &mut self,
        reader: &mut Reader<'a>,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        let max = limits.max_items;
        reader.each_member(|name, reader| {
            let value = reader.raw_ref()?;
            if self.len == max {
                return Err(reader.fail(DecodeErrorKind::TooManyItems { max }));
            }
            let name = match name {
                Cow::Borrowed(name) => name,
                Cow::Owned(name) => {
                    self.len += 1;
                    self.escaped.push((name, value));
                    return Ok(());
                }
            };
            let member = Member { name, value };
            match self.first.get_mut(self.len) {
                Some(place) => *place = member,
                None => self.more.push(member),
            }
            self.len += 1;
            Ok(())
        })
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
    fn find(&self, name: &'static str) -> Result<Option<RawRef<'a>>, DecodeError> {
        let mut found = None;
        for member in self.first.iter().take(self.len) {
            if member.name == name {
                self.only(name, found.replace(member.value), member.value)?;
            }
        }
        if self.more.is_empty() && self.escaped.is_empty() {
            return Ok(found);
        }
        let more = self.more.iter().map(|member| (member.name, member.value));
        let escaped = self.escaped.iter().map(|(name, value)| (&**name, *value));
        for (_, value) in more.chain(escaped).filter(|(known, _)| *known == name) {
            self.only(name, found.replace(value), value)?;
        }
        Ok(found)
    }

    /// Refuses the second of two values.
    fn only(
        &self,
        name: &'static str,
        before: Option<RawRef<'a>>,
        now: RawRef<'a>,
    ) -> Result<(), DecodeError> {
        match before {
            None => Ok(()),
            Some(_) => {
                let at = Reader::back_to_ref(now, self.text);
                Err(at.fail(DecodeErrorKind::DuplicateMember(name)))
            }
        }
    }

    /// A member as it was sent, null too.
    pub(super) fn raw_or_null(
        &self,
        name: &'static str,
    ) -> Result<Option<RawJson<'a>>, DecodeError> {
        Ok(self.find(name)?.map(RawJson::from))
    }

    /// A member as it was sent; null is none.
    pub(super) fn raw(&self, name: &'static str) -> Result<Option<RawJson<'a>>, DecodeError> {
        Ok(self.found(name)?.map(RawJson::from))
    }

    #[inline]
    fn found(&self, name: &'static str) -> Result<Option<RawRef<'a>>, DecodeError> {
        Ok(self.find(name)?.filter(|raw| raw.get() != "null"))
    }

    /// A member that `read` reads; null is none.
    fn read_with<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<Option<T>, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.find(name)? {
            Some(raw) => self.read_again(name, raw, read),
            None => Ok(None),
        }
    }

    fn read_again<T>(
        &self,
        name: &'static str,
        raw: RawRef<'a>,
        read: impl FnOnce(&mut Reader<'a>) -> Result<Option<T>, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        read(&mut Reader::back_to_ref(raw, self.text)).map_err(|error| error.under(name))
    }

    /// A string.
    pub(super) fn text_of(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        let Some(raw) = self.found(name)? else {
            return Ok(None);
        };
        match RawJson::from(raw).into_str() {
            Some(text) => Ok(Some(text)),
            // Says what is wrong with it.
            None => self.read_again(name, raw, Reader::str),
        }
    }

    /// A string that must be there.
    pub(super) fn need(&self, name: &'static str) -> Result<Cow<'a, str>, DecodeError> {
        self.text_of(name)?
            .ok_or_else(|| DecodeError::missing(name))
    }

    /// A string, or a number taken as its text.
    pub(super) fn id(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        match self.found(name)? {
            Some(raw) if !raw.get().starts_with('"') => self.read_again(name, raw, Reader::id),
            _ => self.text_of(name),
        }
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
        match self.found(name)? {
            Some(raw) if !raw.get().as_bytes().starts_with(&[first]) => {
                self.read_again(name, raw, read)
            }
            found => Ok(found.map(RawJson::from)),
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
        let Some(raw) = self.found(name)? else {
            return Ok(None);
        };
        match Number::parse(raw.get()) {
            Some(number) => Ok(Some(number)),
            // Says what is wrong with it.
            None => self.read_again(name, raw, |reader| Ok(reader.f64()?.map(Number::from))),
        }
    }
}
