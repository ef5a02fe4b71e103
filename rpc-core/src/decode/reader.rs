//! [`Reader`]: a JSON text, read value by value in one pass.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use super::error::{from_parser, offset_in};
use super::scan::{Misfit, escaped_end, number_end, past_space, plain_end, word_end};
use super::skip::value_end;
use super::unescape::{unescape, unescape_lossy};
use super::{DecodeError, DecodeErrorKind, Field, LooseStr, Members, RawJson, RawRef};

/// A JSON text with a place in it. Every method reads the value at that place, or fails; `None` is
/// `null`.
///
/// Strings without escapes are borrowed. What is skipped or kept raw is checked to be JSON, as
/// deep as it may be: nothing here recurses.
#[derive(Clone)]
pub struct Reader<'de> {
    text: &'de str,
    /// The next byte.
    at: usize,
}

/// Prints the place only: frames carry passwords and private text.
impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader(byte {} of {})", self.at, self.text.len())
    }
}

/// What is between two quotation marks.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'de> {
    pub(super) inner: &'de str,
    pub(super) has_escapes: bool,
}

impl<'de> Reader<'de> {
    /// Starts at the beginning of a text.
    #[must_use]
    pub const fn new(text: &'de str) -> Self {
        Self { text, at: 0 }
    }

    /// Goes back to a value that was read from `text` and kept raw. Of a value that is no piece of
    /// the text nothing can be read.
    #[must_use]
    pub fn back_to(raw: &RawJson<'de>, text: &'de str) -> Self {
        Self::back_at(raw.get(), text)
    }

    /// As [`back_to`](Self::back_to).
    #[must_use]
    pub fn back_to_ref(raw: RawRef<'de>, text: &'de str) -> Self {
        Self::back_at(raw.get(), text)
    }

    fn back_at(part: &str, text: &'de str) -> Self {
        let at = offset_in(text, part).unwrap_or(text.len());
        Self { text, at }
    }

    /// Skips a value.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        let start = past_space(self.text.as_bytes(), self.at);
        let end = value_end(self.text.as_bytes(), start);
        self.move_to(end)
    }

    /// A string.
    ///
    /// # Errors
    /// If it is neither a string nor null.
    pub fn str(&mut self) -> Result<Option<Cow<'de, str>>, DecodeError> {
        match self.token() {
            Some(b'"') => self.string().map(Some),
            Some(b'n') => self.literal("null").map(|()| None),
            _ => Err(self.mismatch("a string")),
        }
    }

    /// As [`str`](Self::str), with U+FFFD for a surrogate that stands alone: where JavaScript cuts a
    /// text, it may cut a character in two.
    ///
    /// # Errors
    /// If it is neither a string nor null.
    pub fn str_lossy(&mut self) -> Result<Option<Cow<'de, str>>, DecodeError> {
        if self.token() != Some(b'"') {
            return self.str();
        }
        let quoted = self.quoted()?;
        if !quoted.has_escapes {
            return Ok(Some(Cow::Borrowed(quoted.inner)));
        }
        match unescape_lossy(quoted.inner) {
            Some(text) => Ok(Some(Cow::Owned(text))),
            None => Err(self.syntax()),
        }
    }

    /// A string, or anything else noted as such.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn loose_str(&mut self) -> Result<Option<LooseStr<'de>>, DecodeError> {
        match self.token() {
            Some(b'"') => Ok(self.str()?.map(LooseStr::Str)),
            Some(b't' | b'f') => self.bool().map(|value| value.map(LooseStr::Bool)),
            Some(b'n') => self.literal("null").map(|()| None),
            _ => self.skip().map(|()| Some(LooseStr::Other)),
        }
    }

    /// Any value but null, kept as it stands in the text.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn raw(&mut self) -> Result<Option<RawJson<'de>>, DecodeError> {
        match self.token() {
            Some(b'n') => self.literal("null").map(|()| None),
            _ => self.raw_or_null().map(Some),
        }
    }

    /// Any value, null too, kept as it stands in the text.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn raw_or_null(&mut self) -> Result<RawJson<'de>, DecodeError> {
        self.raw_ref().map(RawJson::from)
    }

    /// As [`raw_or_null`](Self::raw_or_null), to be copied.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn raw_ref(&mut self) -> Result<RawRef<'de>, DecodeError> {
        let first = self.token();
        let start = self.at;
        let mut plain = false;
        if first == Some(b'"') {
            plain = !self.quoted()?.has_escapes;
        } else {
            self.skip()?;
        }
        Ok(RawRef::scanned(self.since(start), plain))
    }

    /// An object, kept as it stands in the text.
    ///
    /// # Errors
    /// If it is neither an object nor null.
    pub fn raw_object(&mut self) -> Result<Option<RawJson<'de>>, DecodeError> {
        match self.token() {
            Some(b'{' | b'n') => self.raw(),
            _ => Err(self.mismatch("an object")),
        }
    }

    /// An array, kept as it stands in the text.
    ///
    /// # Errors
    /// If it is neither an array nor null.
    pub fn raw_array(&mut self) -> Result<Option<RawJson<'de>>, DecodeError> {
        match self.token() {
            Some(b'[' | b'n') => self.raw(),
            _ => Err(self.mismatch("an array")),
        }
    }

    /// A string, or a number taken as its text.
    ///
    /// # Errors
    /// If it is neither, nor null.
    pub fn id(&mut self) -> Result<Option<Cow<'de, str>>, DecodeError> {
        match self.token() {
            Some(b'-' | b'0'..=b'9') => Ok(Some(Cow::Borrowed(self.number()?))),
            Some(b'"') => self.string().map(Some),
            Some(b'n') => self.literal("null").map(|()| None),
            _ => Err(self.mismatch("a string or a number")),
        }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// If it is neither, nor null.
    pub fn bool(&mut self) -> Result<Option<bool>, DecodeError> {
        match self.token() {
            Some(b't') => self.literal("true").map(|()| Some(true)),
            Some(b'f') => self.literal("false").map(|()| Some(false)),
            Some(b'n') => self.literal("null").map(|()| None),
            _ => Err(self.mismatch("true or false")),
        }
    }

    /// A whole number from 0 up.
    ///
    /// # Errors
    /// If it is neither that nor null.
    pub fn u64(&mut self) -> Result<Option<u64>, DecodeError> {
        const EXPECTED: &str = "a whole number from 0 up";
        match self.token() {
            Some(b'0'..=b'9') => {
                let start = self.at;
                let number = self.number()?.parse();
                number.map(Some).map_err(|_| {
                    self.at = start;
                    self.mismatch(EXPECTED)
                })
            }
            Some(b'n') => self.literal("null").map(|()| None),
            _ => Err(self.mismatch(EXPECTED)),
        }
    }

    /// A number, the nearest that there is (`serde_json` may miss it by one).
    ///
    /// # Errors
    /// If it is neither a number nor null, or too large.
    pub fn f64(&mut self) -> Result<Option<f64>, DecodeError> {
        const EXPECTED: &str = "a number";
        match self.token() {
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                let number = self.number()?.parse().ok();
                number.filter(|it: &f64| it.is_finite()).map_or_else(
                    || {
                        self.at = start;
                        Err(self.mismatch(EXPECTED))
                    },
                    |number| Ok(Some(number)),
                )
            }
            Some(b'n') => self.literal("null").map(|()| None),
            _ => Err(self.mismatch(EXPECTED)),
        }
    }

    /// A value of any type that `serde` can read. `expected` names it, with its article.
    ///
    /// # Errors
    /// If it cannot be read and is not null.
    pub fn value<T: Deserialize<'de>>(
        &mut self,
        expected: &'static str,
    ) -> Result<Option<T>, DecodeError> {
        if self.token() == Some(b'n') {
            return self.literal("null").map(|()| None);
        }
        match self.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(error.expecting(expected)),
        }
    }

    /// A value of any type that `serde` can read, null too.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn parse<T: Deserialize<'de>>(&mut self) -> Result<T, DecodeError> {
        self.token();
        let start = self.at;
        self.skip()?;
        let json = self.since(start);
        serde_json::from_str(json)
            .map_err(|error| from_parser(&error, json).within(self.text, json))
    }

    /// An object with known members.
    ///
    /// # Errors
    /// If it is neither an object nor null, or what a member says.
    pub fn object<M: Members<'de> + Default>(&mut self) -> Result<Option<M>, DecodeError> {
        if self.token() == Some(b'n') {
            return self.literal("null").map(|()| None);
        }
        let mut members = M::default();
        self.object_into(&mut members)?;
        Ok(Some(members))
    }

    /// An object with known members, put into `members` one by one.
    ///
    /// # Errors
    /// If it is no object, or what a member says.
    pub fn object_into(&mut self, members: &mut dyn Members<'de>) -> Result<(), DecodeError> {
        self.members(|reader, name| {
            let field = Field::new(reader);
            if !name.has_escapes {
                return members.member(name.inner, field);
            }
            match unescape(name.inner) {
                Some(name) => members.member(&name, field),
                None => Err(field.fail(DecodeErrorKind::Syntax)),
            }
        })
    }

    /// An object, member by member: `member` gets the name and has to read the value.
    ///
    /// # Errors
    /// If it is no object, or what `member` says.
    pub fn each_member(
        &mut self,
        mut member: impl FnMut(Cow<'de, str>, &mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.members(|reader, name| {
            if !name.has_escapes {
                return member(Cow::Borrowed(name.inner), reader);
            }
            match unescape(name.inner) {
                Some(name) => member(Cow::Owned(name), reader),
                None => Err(reader.syntax()),
            }
        })
    }

    /// An array, item by item: `item` has to read each of them.
    ///
    /// # Errors
    /// If it is no array, [`DecodeErrorKind::TooManyItems`] for more than `max`, or what `item`
    /// says.
    pub fn items(
        &mut self,
        max: usize,
        mut item: impl FnMut(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if self.token() != Some(b'[') {
            return Err(self.mismatch("an array"));
        }
        self.at += 1;
        if self.token() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        let mut count = 0;
        loop {
            if count == max {
                return Err(self.fail(DecodeErrorKind::TooManyItems { max }));
            }
            count += 1;
            item(self)?;
            match self.token() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.syntax()),
            }
        }
    }

    /// Nothing but white space is left.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Syntax`] if there is more.
    pub fn end(&mut self) -> Result<(), DecodeError> {
        match self.token() {
            None => Ok(()),
            Some(_) => Err(self.syntax()),
        }
    }

    /// The first byte of the value; it tells of what type it is. `None` at the end of the text.
    #[inline]
    pub fn first_byte(&mut self) -> Option<u8> {
        self.token()
    }

    /// An error of this kind at this place.
    #[cold]
    #[must_use]
    pub fn fail(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind).locate(self.text, self.at)
    }

    /// The next byte that is no white space, which it stays before.
    #[inline]
    fn token(&mut self) -> Option<u8> {
        self.at = past_space(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    /// The text from `start` to here.
    #[inline]
    fn since(&self, start: usize) -> &'de str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// A member's name and the colon after it.
    #[inline(always)]
    fn name(&mut self) -> Result<Quoted<'de>, DecodeError> {
        if self.token() != Some(b'"') {
            return Err(self.syntax());
        }
        let name = self.quoted()?;
        if self.token() != Some(b':') {
            return Err(self.syntax());
        }
        self.at += 1;
        Ok(name)
    }

    /// A string, from its opening quotation mark on.
    #[inline(always)]
    fn string(&mut self) -> Result<Cow<'de, str>, DecodeError> {
        let quoted = self.quoted()?;
        if quoted.has_escapes {
            return self.unescaped(quoted.inner);
        }
        Ok(Cow::Borrowed(quoted.inner))
    }

    fn unescaped(&mut self, inner: &str) -> Result<Cow<'de, str>, DecodeError> {
        match unescape(inner) {
            Some(text) => Ok(Cow::Owned(text)),
            None => {
                self.at -= inner.len() + 2;
                Err(self.syntax())
            }
        }
    }

    /// A string as it stands in the text, from its opening quotation mark on.
    #[inline(always)]
    fn quoted(&mut self) -> Result<Quoted<'de>, DecodeError> {
        let (text, start) = (self.text, self.at + 1);
        let end = plain_end(text.as_bytes(), start);
        if text.as_bytes().get(end) != Some(&b'"') {
            return self.quoted_with_escapes(start, end);
        }
        let Some(inner) = text.get(start..end) else {
            return Err(self.syntax());
        };
        self.at = end + 1;
        Ok(Quoted {
            inner,
            has_escapes: false,
        })
    }

    /// The rest of a string from the end of its plain part on.
    #[cold]
    fn quoted_with_escapes(
        &mut self,
        start: usize,
        end: usize,
    ) -> Result<Quoted<'de>, DecodeError> {
        let end = escaped_end(self.text.as_bytes(), end);
        self.move_to(end)?;
        let inner = self.since(start);
        self.at += 1;
        Ok(Quoted {
            inner,
            has_escapes: true,
        })
    }

    #[inline]
    fn literal(&mut self, word: &str) -> Result<(), DecodeError> {
        let end = word_end(self.text.as_bytes(), self.at, word);
        self.move_to(end)
    }

    /// A number's text.
    fn number(&mut self) -> Result<&'de str, DecodeError> {
        let start = self.at;
        let end = number_end(self.text.as_bytes(), start);
        self.move_to(end)?;
        Ok(self.since(start))
    }

    /// Moves to where a scan has ended, well or not.
    #[inline]
    fn move_to(&mut self, end: Result<usize, Misfit>) -> Result<(), DecodeError> {
        match end {
            Ok(at) => {
                self.at = at;
                Ok(())
            }
            Err(Misfit(at)) => {
                self.at = at;
                Err(self.syntax())
            }
        }
    }

    /// An object, member by member: `value` gets the name and has to read the value.
    #[inline]
    pub(super) fn members(
        &mut self,
        mut value: impl FnMut(&mut Self, Quoted<'de>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if self.token() != Some(b'{') {
            return Err(self.mismatch("an object"));
        }
        self.at += 1;
        if self.token() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let name = self.name()?;
            value(self, name)?;
            match self.token() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.syntax()),
            }
        }
    }

    #[cold]
    fn syntax(&self) -> DecodeError {
        self.fail(DecodeErrorKind::Syntax)
    }

    /// The value here is JSON of another type than `expected`, or no JSON.
    #[cold]
    fn mismatch(&mut self, expected: &'static str) -> DecodeError {
        self.token();
        let here = self.fail(DecodeErrorKind::Mismatch).expecting(expected);
        match self.skip() {
            Ok(()) => here,
            Err(error) => error,
        }
    }
}
