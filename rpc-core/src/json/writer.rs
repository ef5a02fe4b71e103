//! [`Writer`]: a `serde` serializer that appends compact JSON to a text.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};

use super::escape::{write_contents, write_name, write_string};
use super::key::KeyWriter;
use super::verbatim::{VerbatimWriter, is_verbatim};

/// Why a value is not JSON, in the words of `serde_json`.
#[derive(Debug)]
pub(crate) struct Error(Box<str>);

impl Error {
    /// An error with these words.
    #[cold]
    pub(super) fn new(words: &str) -> Self {
        Self(words.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(&message.to_string())
    }
}

/// What the methods of a serializer return here.
pub(super) type Result<T = ()> = std::result::Result<T, Error>;

/// Appends one value to a text. The text stays UTF-8 whatever a value does, and so needs no check
/// before it is sent.
///
/// It differs from `serde_json` in nothing that is JSON. A value that announces no elements and
/// then has some is written with them.
pub(crate) struct Writer<'o> {
    out: &'o mut String,
}

impl<'o> Writer<'o> {
    /// A writer that appends to `out`.
    #[inline]
    pub(crate) fn new(out: &'o mut String) -> Self {
        Self { out }
    }

    #[inline]
    fn integer(self, value: impl itoa::Integer) -> Result {
        self.out.push_str(itoa::Buffer::new().format(value));
        Ok(())
    }

    /// Floats are rare and their shortest form is an art, so `serde_json` writes them.
    fn float(self, value: impl Serialize) -> Result {
        // The longest has 24 characters.
        let mut digits = [0; 32];
        let mut rest = &mut digits[..];
        serde_json::to_writer(&mut rest, &value).map_err(ser::Error::custom)?;
        let len = 32 - rest.len();
        let digits = digits.get(..len).unwrap_or_default();
        self.out
            .push_str(std::str::from_utf8(digits).map_err(ser::Error::custom)?);
        Ok(())
    }

    /// Opens the object around a variant with data: `{"name":`.
    #[inline]
    fn open_variant(self, variant: &'static str) -> &'o mut String {
        self.out.push('{');
        write_name(self.out, variant);
        self.out
    }
}

impl<'o> Serializer for Writer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Elements<'o>;
    type SerializeTuple = Elements<'o>;
    type SerializeTupleStruct = Elements<'o>;
    type SerializeTupleVariant = Elements<'o>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Fields<'o>;
    type SerializeStructVariant = Members<'o>;

    #[inline]
    fn serialize_bool(self, value: bool) -> Result {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Result {
        self.integer(value)
    }

    #[inline]
    fn serialize_i16(self, value: i16) -> Result {
        self.integer(value)
    }

    #[inline]
    fn serialize_i32(self, value: i32) -> Result {
        self.integer(value)
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result {
        self.integer(value)
    }

    fn serialize_i128(self, value: i128) -> Result {
        self.integer(value)
    }

    #[inline]
    fn serialize_u8(self, value: u8) -> Result {
        self.integer(value)
    }

    #[inline]
    fn serialize_u16(self, value: u16) -> Result {
        self.integer(value)
    }

    #[inline]
    fn serialize_u32(self, value: u32) -> Result {
        self.integer(value)
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result {
        self.integer(value)
    }

    fn serialize_u128(self, value: u128) -> Result {
        self.integer(value)
    }

    fn serialize_f32(self, value: f32) -> Result {
        self.float(value)
    }

    fn serialize_f64(self, value: f64) -> Result {
        self.float(value)
    }

    fn serialize_char(self, value: char) -> Result {
        write_string(self.out, value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result {
        write_string(self.out, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result {
        self.collect_seq(value)
    }

    #[inline]
    fn serialize_none(self) -> Result {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result {
        self.out.push_str("null");
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result {
        let out = self.open_variant(variant);
        value.serialize(Writer::new(out))?;
        out.push('}');
        Ok(())
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'o>> {
        Ok(Elements::open(self.out, "]"))
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Elements<'o>> {
        Ok(Elements::open(self.out, "]"))
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Elements<'o>> {
        Ok(Elements::open(self.out, "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Elements<'o>> {
        Ok(Elements::open(self.open_variant(variant), "]}"))
    }

    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<Members<'o>> {
        Ok(Members::open(self.out, "}"))
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'o>> {
        Ok(if is_verbatim(name) {
            Fields::Verbatim(self.out)
        } else {
            Fields::Members(Members::open(self.out, "}"))
        })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'o>> {
        Ok(Members::open(self.open_variant(variant), "}}"))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result {
        self.out.push('"');
        fmt::write(&mut Escaping(self.out), format_args!("{value}")).map_err(ser::Error::custom)?;
        self.out.push('"');
        Ok(())
    }
}

/// Escapes what a `Display` writes.
struct Escaping<'o>(&'o mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        write_contents(self.0, piece);
        Ok(())
    }
}

/// An array that is being written.
pub(crate) struct Elements<'o> {
    out: &'o mut String,
    first: bool,
    close: &'static str,
}

impl<'o> Elements<'o> {
    #[inline]
    fn open(out: &'o mut String, close: &'static str) -> Self {
        out.push('[');
        Self {
            out,
            first: true,
            close,
        }
    }

    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        value.serialize(Writer::new(self.out))
    }

    #[inline]
    fn close(self) -> Result {
        self.out.push_str(self.close);
        Ok(())
    }
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result {
        self.close()
    }
}

impl ser::SerializeTuple for Elements<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result {
        self.close()
    }
}

impl ser::SerializeTupleStruct for Elements<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result {
        self.close()
    }
}

impl ser::SerializeTupleVariant for Elements<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result {
        self.close()
    }
}

/// An object that is being written.
pub(crate) struct Members<'o> {
    out: &'o mut String,
    first: bool,
    close: &'static str,
}

impl<'o> Members<'o> {
    #[inline]
    fn open(out: &'o mut String, close: &'static str) -> Self {
        out.push('{');
        Self {
            out,
            first: true,
            close,
        }
    }

    #[inline]
    fn next(&mut self) {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
    }

    // Where the name is known, so that its test is done by the compiler.
    #[inline(always)]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
        self.next();
        write_name(self.out, name);
        value.serialize(Writer::new(self.out))
    }

    #[inline]
    fn close(self) -> Result {
        self.out.push_str(self.close);
        Ok(())
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        self.next();
        key.serialize(KeyWriter::new(self.out))?;
        self.out.push(':');
        Ok(())
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        value.serialize(Writer::new(self.out))
    }

    #[inline]
    fn end(self) -> Result {
        self.close()
    }
}

impl ser::SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
        self.field(name, value)
    }

    #[inline]
    fn end(self) -> Result {
        self.close()
    }
}

/// A struct that is being written: an object, or the text of a raw value.
pub(crate) enum Fields<'o> {
    /// Any struct.
    Members(Members<'o>),
    /// A type of `serde_json` whose only field is its JSON.
    Verbatim(&'o mut String),
}

impl ser::SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Error;

    #[inline(always)]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
        match self {
            Self::Members(members) => members.field(name, value),
            Self::Verbatim(out) => value.serialize(VerbatimWriter::new(out)),
        }
    }

    #[inline]
    fn end(self) -> Result {
        match self {
            Self::Members(members) => members.close(),
            Self::Verbatim(_) => Ok(()),
        }
    }
}
