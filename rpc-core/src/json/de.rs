//! [`Deserializer`]: a JSON text, read by `serde` in one pass.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    self, DeserializeSeed, EnumAccess, IntoDeserializer, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::access::{Items, Members, Raw};
use super::{Json, token};
use crate::decode::scan::{Misfit, escaped_end, number_end, past_space, plain_end, word_end};
use crate::decode::skip::value_end;
use crate::decode::unescape::{unescape, unescape_lossy};
use crate::decode::{DecodeError, DecodeErrorKind};
use crate::limits::Limits;

/// The deepest nesting that is parsed, whatever [`Limits::max_depth`] says. What is skipped or kept raw
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

/// Reads a JSON text with `serde`, faster than `serde_json` and with typed errors: [`DecodeError`] has
/// the path of known members, line and column, and nothing of the values.
///
/// It differs from `serde_json` in what a derived type accepts: an array is no struct, and `null` in the
/// place of a required member makes it a missing one. Skipping and raw values do not recurse.
pub struct Deserializer<'de> {
    pub(super) text: &'de str,
    /// The next byte.
    pub(super) at: usize,
    depth: usize,
    max_depth: usize,
    pub(super) max_items: usize,
    pub(super) object: Object,
    /// The last error has its path from a member that was read out of order.
    pub(super) is_named: bool,
}

/// The object that is being read.
#[derive(Clone, Copy, Default)]
pub(super) struct Object {
    /// Where it starts.
    start: usize,
    /// Where its current member starts.
    pub(super) member: usize,
    /// How many members were skipped until the tag is known.
    marks: usize,
    /// The names of members that errors may show: of the type, and of what is around it.
    names: [&'static [&'static str]; 2],
}

impl Object {
    /// A name that is known.
    pub(super) fn known(&self, name: &str) -> Option<&'static str> {
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

/// Keeps any value of a text that is nothing else.
pub(super) fn parse_any(text: &str) -> Result<Json> {
    let mut reader = Deserializer::new(text, &Limits::default());
    let json = Json::scanned(reader.raw()?);
    reader.end()?;
    Ok(json)
}

impl<'de> Deserializer<'de> {
    /// Starts at the beginning of a text. Of the limits, depth and items of a list count here.
    #[must_use]
    pub fn new(text: &'de str, limits: &Limits) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            max_depth: limits.max_depth.min(MAX_DEPTH),
            max_items: limits.max_items,
            object: Object::default(),
            is_named: false,
        }
    }

    /// Nothing but white space is left.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Syntax`] if there is more.
    pub fn end(&mut self) -> Result<()> {
        match self.token() {
            None => Ok(()),
            Some(_) => Err(self.syntax()),
        }
    }

    /// The first byte of the next value, which tells of what type it is.
    #[inline]
    pub(super) fn token(&mut self) -> Option<u8> {
        self.at = past_space(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    /// An error of this kind at this place.
    #[cold]
    pub(super) fn fail(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind).locate(self.text, self.at)
    }

    #[cold]
    pub(super) fn syntax(&self) -> DecodeError {
        self.fail(DecodeErrorKind::Syntax)
    }

    /// The value here is JSON of another type than `expected`, or no JSON.
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
            Err(Misfit(at)) => {
                self.at = at;
                Err(self.syntax())
            }
        }
    }

    pub(super) fn skip(&mut self) -> Result<()> {
        self.token();
        self.move_to(value_end(self.text.as_bytes(), self.at))
    }

    /// A value as it stands in the text.
    fn raw(&mut self) -> Result<&'de str> {
        self.token();
        let start = self.at;
        self.move_to(value_end(self.text.as_bytes(), start))?;
        Ok(self.since(start))
    }

    #[inline]
    fn since(&self, start: usize) -> &'de str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// A string, from its opening quotation mark on.
    #[inline]
    fn quoted(&mut self, unescape: fn(&str) -> Option<String>) -> Result<Cow<'de, str>> {
        let start = self.at + 1;
        let end = plain_end(self.text.as_bytes(), start);
        if self.text.as_bytes().get(end) == Some(&b'"')
            && let Some(inner) = self.text.get(start..end)
        {
            self.at = end + 1;
            return Ok(Cow::Borrowed(inner));
        }
        self.quoted_with_escapes(start, end, unescape)
    }

    #[cold]
    fn quoted_with_escapes(
        &mut self,
        start: usize,
        end: usize,
        unescape: fn(&str) -> Option<String>,
    ) -> Result<Cow<'de, str>> {
        let end = escaped_end(self.text.as_bytes(), end);
        self.move_to(end)?;
        let inner = self.since(start);
        self.at += 1;
        unescape(inner).map(Cow::Owned).ok_or_else(|| {
            self.at = start - 1;
            self.syntax()
        })
    }

    /// A member's name and the colon after it.
    #[inline]
    pub(super) fn name(&mut self) -> Result<Cow<'de, str>> {
        if self.token() != Some(b'"') {
            return Err(self.syntax());
        }
        self.object.member = self.at;
        let name = self.quoted(unescape)?;
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
        let start = self.at;
        let digits = match self.token() {
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.mismatch(expected)),
        };
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
    fn visit_quoted<V: Visitor<'de>>(
        &mut self,
        unescape: fn(&str) -> Option<String>,
        visitor: V,
    ) -> Result<V::Value> {
        let start = self.at;
        match self.quoted(unescape)? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
        .map_err(|error: DecodeError| error.locate_once(self.text, start))
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

    #[inline]
    fn close(&mut self, bracket: u8) -> Result<()> {
        if self.token() != Some(bracket) {
            return Err(self.syntax());
        }
        self.depth -= 1;
        self.at += 1;
        Ok(())
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
                marks: 0,
                names: [names, &[]],
            },
        );
        let read = visitor.visit_map(Members::new(self));
        self.object = around;
        let value = read.map_err(|error| error.locate_once(self.text, start))?;
        self.close(b'}')?;
        Ok(value)
    }

    #[inline]
    fn visit_array<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if self.token() != Some(b'[') {
            return Err(self.mismatch(ARRAY));
        }
        let start = self.at;
        self.open()?;
        let read = visitor.visit_seq(Items::new(self));
        let value = read.map_err(|error| error.locate_once(self.text, start))?;
        self.close(b']')?;
        Ok(value)
    }

    /// Reads the member that starts at a place that was marked, and comes back.
    #[cold]
    fn visit_marked<V: Visitor<'de>>(&mut self, place: usize, visitor: V) -> Result<V::Value> {
        let back = std::mem::replace(&mut self.at, place);
        let name = self.name()?;
        let read = visitor.visit_newtype_struct(&mut *self);
        self.at = back;
        read.map_err(|error| {
            self.is_named = true;
            match self.object.known(&name) {
                Some(name) => error.under(name),
                None => error,
            }
        })
    }
}

impl<'de> de::Deserializer<'de> for &mut Deserializer<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.token() {
            Some(b'"') => self.visit_quoted(unescape, visitor),
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
            Some(b'"') => self.visit_quoted(unescape, visitor),
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

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(WHOLE, visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(WHOLE, visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(WHOLE, visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(WHOLE, visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(UNSIGNED, visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(UNSIGNED, visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(UNSIGNED, visitor)
    }

    #[inline]
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(UNSIGNED, visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(NUMBER, visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_number(NUMBER, visitor)
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
            token::RAW => visitor.visit_map(Raw::new(self.raw()?)),
            token::TAGGED => self.visit_object(&[], visitor),
            token::ID => match self.token() {
                Some(b'-' | b'0'..=b'9') => visitor.visit_borrowed_str(self.number()?),
                Some(b'"') => self.visit_quoted(unescape, visitor),
                _ => Err(self.mismatch("a string or a number")),
            },
            token::LOSSY => match self.token() {
                Some(b'"') => self.visit_quoted(unescape_lossy, visitor),
                _ => Err(self.mismatch(STRING)),
            },
            token::OBJECT | token::ARRAY => {
                let (open, expected) = match name {
                    token::OBJECT => (b'{', OBJECT),
                    _ => (b'[', ARRAY),
                };
                if self.token() != Some(open) {
                    return Err(self.mismatch(expected));
                }
                visitor.visit_map(Raw::new(self.raw()?))
            }
            token::LOOSE => match self.token() {
                Some(b'"') => self.visit_quoted(unescape, visitor),
                Some(b'n') => Err(self.mismatch("a value")),
                _ => visitor.visit_map(Raw::new(self.raw()?)),
            },
            token::MARK => {
                let place = self.object.member;
                self.object.marks += 1;
                // One more is the tag.
                if self.object.marks >= self.max_items {
                    let max = self.max_items;
                    return Err(self.fail(DecodeErrorKind::TooManyItems { max }));
                }
                self.skip()?;
                visitor.visit_u64(place as u64)
            }
            token::WHOLE => {
                let whole = self.text.get(self.object.start..=self.at);
                visitor.visit_borrowed_str(whole.unwrap_or("null"))
            }
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
        if name == token::NAMES {
            let [inner, _] = self.object.names;
            self.object.names = [names, inner];
            return visitor.visit_unit();
        }
        self.visit_object(names, visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_object(&[], visitor)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit_array(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.visit_array(visitor)
    }

    #[inline(always)]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        place: usize,
        visitor: V,
    ) -> Result<V::Value> {
        if name == token::SEEK {
            return self.visit_marked(place, visitor);
        }
        self.visit_array(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.token() != Some(b'n') {
            return Err(self.mismatch("null"));
        }
        self.literal("null")?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
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
        let read = if self.text.as_bytes().get(start) == Some(&b'"') {
            let word = self.quoted(unescape)?;
            visitor.visit_enum(IntoDeserializer::<DecodeError>::into_deserializer(word))
        } else {
            self.open()?;
            visitor.visit_enum(Variant(self))
        };
        let value = read.map_err(|error: DecodeError| error.locate_once(self.text, start))?;
        if self.text.as_bytes().get(start) == Some(&b'{') {
            self.close(b'}')?;
        }
        Ok(value)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { i128 u128 char bytes byte_buf }
}

/// A variant with data: `{"name": data}`.
struct Variant<'r, 'de>(&'r mut Deserializer<'de>);

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
        self.0.visit_array(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.0.visit_object(names, visitor)
    }
}
