//! [`Deserializer`]: reads JSON text with `serde` in one pass.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{self, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::access::{Items, Members, Raw, Typed, Variant};
use super::scan::{Misfit, Short, number_end, past_space, plain_end, short_number, word_end};
use super::skip::value_end;
use super::unescape::{unescape_from, unescape_into};
use super::{DecodeError, DecodeErrorKind, Json, token};
use crate::limits::Limits;

/// The deepest nesting that is parsed, whatever [`Limits::max_depth`] says. Skipped and raw values
/// may be deeper.
const MAX_DEPTH: usize = 127;

pub(super) type Result<T, E = DecodeError> = std::result::Result<T, E>;

const STRING: &str = "a string";
const BOOL: &str = "true or false";
const NUMBER: &str = "a number";
const WHOLE: &str = "a whole number";
const UNSIGNED: &str = "a whole number from 0 up";
const OBJECT: &str = "an object";
const ARRAY: &str = "an array";

/// Reads JSON text with `serde`, faster than `serde_json` and with typed errors: [`DecodeError`]
/// has the path of known members, line and column, and no part of the values.
///
/// Unlike with `serde_json`, a derived struct cannot be read from an array, and `null` in place of
/// a required member counts as missing, and a lone surrogate is U+FFFD. Skipping and raw values do
/// not recurse.
pub struct Deserializer<'de> {
    pub(super) text: &'de str,
    /// The next byte.
    pub(super) at: usize,
    depth: usize,
    max_depth: usize,
    pub(super) max_items: usize,
    pub(super) object: Object,
    /// The starts of members to skip because another one of the same name follows; `None` if
    /// repeated members are not skipped.
    pub(super) repeated: Option<BTreeSet<usize>>,
    /// The last text with escapes.
    unescaped: Vec<u8>,
}

/// The object that is being read.
#[derive(Clone, Copy, Default)]
pub(super) struct Object {
    /// Where it starts.
    start: usize,
    /// Where its current member starts.
    pub(super) member: usize,
    /// Whether the current member is read again.
    pub(super) is_again: bool,
    /// The member names that errors may show: those of the type and of its parent.
    names: [&'static [&'static str]; 2],
}

impl Object {
    /// Returns the name if it is a known one.
    fn known(&self, name: &str) -> Option<&'static str> {
        let mut names = self.names.iter().copied().flatten();
        names.find(|known| **known == name).copied()
    }
}

/// Prints the place only: frames carry passwords and private text.
impl fmt::Debug for Deserializer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deserializer(byte {} of {})", self.at, self.text.len())
    }
}

/// Reads any value that is the whole text.
pub(super) fn parse_any(text: &str) -> Result<Json> {
    let mut reader = Deserializer::new(text, &Limits::default());
    let json = Json::scanned(reader.raw()?);
    reader.end()?;
    Ok(json)
}

impl<'de> Deserializer<'de> {
    /// Creates a deserializer for `text`. Of the limits, it enforces depth and list items.
    #[must_use]
    #[inline]
    pub fn new(text: &'de str, limits: &Limits) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            max_depth: limits.max_depth.min(MAX_DEPTH),
            max_items: limits.max_items,
            object: Object::default(),
            repeated: None,
            unescaped: Vec::new(),
        }
    }

    /// Reads only the last of several members with the same name. Scans each object twice.
    #[must_use]
    pub(super) fn last_wins(mut self) -> Self {
        self.repeated = Some(BTreeSet::new());
        self
    }

    /// Checks that only white space is left.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Syntax`] if anything else follows.
    #[inline]
    pub fn end(&mut self) -> Result<()> {
        match self.token() {
            None => Ok(()),
            Some(_) => Err(self.syntax()),
        }
    }

    /// Returns the first byte of the next value, which determines its JSON type.
    #[inline]
    pub(super) fn token(&mut self) -> Option<u8> {
        self.at = past_space(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns whether another member with the current name follows.
    #[cold]
    pub(super) fn is_repeated(&self) -> bool {
        let repeated = self.repeated.as_ref();
        repeated.is_some_and(|places| places.contains(&self.object.member))
    }

    /// Adds the name of the current member to the error, if the name is known.
    #[cold]
    pub(super) fn named(&mut self, error: DecodeError) -> DecodeError {
        let at = std::mem::replace(&mut self.at, self.object.member);
        let name = self.name();
        self.at = at;
        match name.ok().and_then(|name| self.object.known(&name)) {
            Some(name) => error.under(name),
            None => error,
        }
    }

    /// Returns an error of this kind at the current place.
    #[cold]
    pub(super) fn fail(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind).locate(self.text, self.at)
    }

    #[cold]
    pub(super) fn syntax(&self) -> DecodeError {
        self.fail(DecodeErrorKind::Syntax)
    }

    /// Returns the error for a value that is not `expected`, or is not JSON.
    #[cold]
    fn mismatch(&mut self, expected: &'static str) -> DecodeError {
        let here = self.fail(DecodeErrorKind::Mismatch).expecting(expected);
        let is_null = self.token() == Some(b'n');
        match self.skip() {
            Ok(()) if is_null => here.null(),
            Ok(()) => here,
            Err(error) => error,
        }
    }

    #[inline]
    fn move_to(&mut self, end: Result<usize, Misfit>) -> Result<()> {
        match end {
            Ok(at) => {
                self.at = at;
                Ok(())
            }
            Err(misfit) => Err(self.misfit(misfit)),
        }
    }

    #[cold]
    fn misfit(&mut self, Misfit(at): Misfit) -> DecodeError {
        self.at = at;
        self.syntax()
    }

    pub(super) fn skip(&mut self) -> Result<()> {
        self.token();
        self.move_to(value_end(self.text.as_bytes(), self.at, &mut false))
    }

    /// Reads a value as raw text.
    fn raw(&mut self) -> Result<&'de str> {
        self.token();
        let start = self.at;
        self.move_to(value_end(self.text.as_bytes(), start, &mut false))?;
        Ok(self.since(start))
    }

    #[inline]
    fn since(&self, start: usize) -> &'de str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Reads a string without escapes, starting at its opening quotation mark. Otherwise returns where
    /// its plain part ends.
    #[inline]
    fn plain_quoted(&mut self) -> Result<&'de str, usize> {
        let start = self.at + 1;
        let end = plain_end(self.text.as_bytes(), start);
        if self.text.as_bytes().get(end) == Some(&b'"')
            && let Some(inner) = self.text.get(start..end)
        {
            self.at = end + 1;
            return Ok(inner);
        }
        Err(end)
    }

    /// Reads a string, starting at its opening quotation mark.
    #[inline]
    fn quoted(&mut self) -> Result<Cow<'de, str>> {
        let end = match self.plain_quoted() {
            Ok(text) => return Ok(Cow::Borrowed(text)),
            Err(end) => end,
        };
        match unescape_from(self.text, self.at + 1, end) {
            Ok((text, end)) => {
                self.at = end + 1;
                Ok(Cow::Owned(text))
            }
            Err(misfit) => Err(self.misfit(misfit)),
        }
    }

    /// Reads a member's name and the colon after it.
    #[inline]
    pub(super) fn name(&mut self) -> Result<Cow<'de, str>> {
        if self.token() != Some(b'"') {
            return Err(self.syntax());
        }
        self.object.member = self.at;
        let name = self.quoted()?;
        if self.token() != Some(b':') {
            return Err(self.syntax());
        }
        self.at += 1;
        Ok(name)
    }

    #[inline]
    fn literal(&mut self, word: &str) -> Result<()> {
        self.move_to(word_end(self.text.as_bytes(), self.at, word))
    }

    #[inline]
    fn number(&mut self) -> Result<&'de str> {
        let start = self.at;
        self.move_to(number_end(self.text.as_bytes(), start))?;
        Ok(self.since(start))
    }

    #[inline]
    fn visit_number<V: Visitor<'de>>(
        &mut self,
        expected: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        let Some(b'-' | b'0'..=b'9') = self.token() else {
            return Err(self.mismatch(expected));
        };
        let start = self.at;
        if let Some((number, end)) = short_number(self.text.as_bytes(), start) {
            self.at = end;
            let read = match number {
                Short::Whole(whole) => visitor.visit_u64(whole),
                Short::Real(real) => visitor.visit_f64(real),
            };
            return read.map_err(|error: DecodeError| {
                error.expecting(expected).locate_once(self.text, start)
            });
        }
        let digits = self.number()?;
        let read = if digits == "-0" {
            visitor.visit_f64(-0.0)
        } else if let Ok(whole) = digits.parse() {
            visitor.visit_u64(whole)
        } else if let Ok(whole) = digits.parse() {
            visitor.visit_i64(whole)
        } else {
            match digits.parse() {
                Ok(real) if f64::is_finite(real) => visitor.visit_f64(real),
                _ => Err(de::Error::invalid_value(
                    Unexpected::Other("a huge number"),
                    &visitor,
                )),
            }
        };
        read.map_err(|error: DecodeError| error.expecting(expected).locate_once(self.text, start))
    }

    #[inline]
    fn visit_quoted<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let start = self.at;
        let read = match self.plain_quoted() {
            Ok(text) => visitor.visit_borrowed_str(text),
            Err(end) => match unescape_into(&mut self.unescaped, self.text, start + 1, end) {
                Ok((text, end)) => {
                    self.at = end + 1;
                    visitor.visit_str(text)
                }
                Err(misfit) => return Err(self.misfit(misfit)),
            },
        };
        read.map_err(|error: DecodeError| error.locate_once(self.text, start))
    }

    #[inline]
    fn open(&mut self) -> Result<()> {
        if self.depth == self.max_depth {
            return Err(self.fail(DecodeErrorKind::TooDeep {
                max: self.max_depth,
            }));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Leaves an object or an array that starts there.
    #[inline]
    fn inside<T>(&mut self, read: Result<T>, start: usize, bracket: u8) -> Result<T> {
        self.depth -= 1;
        let value = read.map_err(|error| error.locate_once(self.text, start))?;
        if self.token() != Some(bracket) {
            return Err(self.syntax());
        }
        self.at += 1;
        Ok(value)
    }

    #[inline]
    fn visit_object<V: Visitor<'de>>(
        &mut self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if self.token() != Some(b'{') {
            return Err(self.mismatch(OBJECT));
        }
        let start = self.at;
        self.open()?;
        let around = std::mem::replace(
            &mut self.object,
            Object {
                start,
                member: start,
                is_again: false,
                names: [names, &[]],
            },
        );
        let read = visitor.visit_map(Members::new(self));
        self.object = around;
        self.inside(read, start, b'}')
    }

    #[inline]
    fn visit_array<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if self.token() != Some(b'[') {
            return Err(self.mismatch(ARRAY));
        }
        let start = self.at;
        self.open()?;
        let read = visitor.visit_seq(Items::new(self));
        self.inside(read, start, b']')
    }

    /// Finds a member after the current one, reads it, and goes back.
    #[cold]
    fn visit_later<V: Visitor<'de>>(&mut self, name: &str, visitor: V) -> Result<V::Value> {
        let start = self.object.member;
        let mut skipped = 0;
        let is_there = loop {
            skipped += 1;
            if skipped >= self.max_items {
                let max = self.max_items;
                return Err(self.fail(DecodeErrorKind::TooManyItems { max }));
            }
            self.skip()?;
            self.object.member = self.object.start;
            match self.token() {
                Some(b',') => self.at += 1,
                Some(b'}') => break false,
                _ => return Err(self.syntax()),
            }
            let is_it = self.name()? == name && !self.is_repeated();
            if is_it && self.token() != Some(b'n') {
                break true;
            }
        };
        let read = if is_there {
            visitor.visit_newtype_struct(&mut *self)?
        } else {
            visitor.visit_none()?
        };
        self.at = start;
        self.object.is_again = true;
        Ok(read)
    }
}

/// Methods that read a number, and what else is called wrong.
macro_rules! numbers {
    ($($method:ident $expected:ident),*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.visit_number($expected, visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for &mut Deserializer<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.token() {
            Some(b'"') => self.visit_quoted(visitor),
            Some(b'{') => self.visit_object(&[], visitor),
            Some(b'[') => self.visit_array(visitor),
            Some(b'-' | b'0'..=b'9') => self.visit_number(NUMBER, visitor),
            Some(b't' | b'f') => self.deserialize_bool(visitor),
            Some(b'n') => {
                self.literal("null")?;
                visitor.visit_unit()
            }
            _ => Err(self.syntax()),
        }
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.token() {
            Some(b't') => {
                self.literal("true")?;
                visitor.visit_bool(true)
            }
            Some(b'f') => {
                self.literal("false")?;
                visitor.visit_bool(false)
            }
            _ => Err(self.mismatch(BOOL)),
        }
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.token() {
            Some(b'"') => self.visit_quoted(visitor),
            _ => Err(self.mismatch(STRING)),
        }
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    numbers! {
        deserialize_i8 WHOLE, deserialize_i16 WHOLE, deserialize_i32 WHOLE, deserialize_i64 WHOLE,
        deserialize_u8 UNSIGNED, deserialize_u16 UNSIGNED, deserialize_u32 UNSIGNED,
        deserialize_u64 UNSIGNED, deserialize_f32 NUMBER, deserialize_f64 NUMBER
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.token() == Some(b'n') {
            self.literal("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    // Where the name is known, the compiler does the comparisons.
    #[inline(always)]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        match name {
            token::RAW => visitor.visit_map(Raw(self.raw()?)),
            token::TAGGED => self.visit_object(&[], visitor),
            token::ID => match self.token() {
                Some(b'-' | b'0'..=b'9') => visitor.visit_borrowed_str(self.number()?),
                Some(b'"') => self.visit_quoted(visitor),
                _ => Err(self.mismatch("a string or a number")),
            },
            token::WHOLE => {
                // Reading a member may have failed, so it is anywhere in the object.
                self.at = self.object.start;
                let whole = self.raw()?;
                self.at -= 1;
                visitor.visit_map(Raw(whole))
            }
            token::TYPE => match self.token() {
                Some(first) => visitor.visit_map(Typed(self, first)),
                None => Err(self.syntax()),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline(always)]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match (name, names) {
            (token::NAMES, _) => {
                let [inner, _] = self.object.names;
                self.object.names = [names, inner];
                visitor.visit_unit()
            }
            (token::SEEK, [tag, ..]) => self.visit_later(tag, visitor),
            _ => self.visit_object(names, visitor),
        }
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_object(&[], visitor)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_array(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let start = match self.token() {
            Some(b'"' | b'{') => self.at,
            _ => return Err(self.mismatch(STRING)),
        };
        if self.text.as_bytes().get(start) == Some(&b'"') {
            let word = self.quoted()?;
            let word = IntoDeserializer::<DecodeError>::into_deserializer(word);
            let read = visitor.visit_enum(word);
            return read.map_err(|error: DecodeError| error.locate_once(self.text, start));
        }
        self.open()?;
        let read = visitor.visit_enum(Variant(self));
        self.inside(read, start, b'}')
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct }
}
