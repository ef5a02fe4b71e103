//! [`Writer`]: a `serde` serializer that appends compact JSON to a string.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};

use super::escape::{write_contents, write_known, write_name, write_string};
use super::key::KeyWriter;
use super::verbatim::is_verbatim;

/// Why a value is not JSON, with the message of `serde_json`.
#[derive(Debug)]
pub(crate) struct Error(Box<str>);

impl Error {
    /// Creates an error with this message.
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

/// The return type of the serializer's methods.
pub(super) type Result<T = ()> = std::result::Result<T, Error>;

/// Appends one value to a string. The string stays UTF-8 whatever a value writes, so it needs no
/// check before it is sent.
///
/// For everything that is JSON it writes what `serde_json` writes. A sequence that announces no
/// elements and then has some is written with them.
pub(crate) struct Writer<'o> {
    out: &'o mut String,
}

impl<'o> Writer<'o> {
    /// Creates a writer that appends to `out`.
    #[inline]
    pub(crate) fn new(out: &'o mut String) -> Self {
        Self { out }
    }

    /// Opens the object around a variant with data: `{"name":`.
    #[inline]
    fn open_variant(self, variant: &'static str) -> &'o mut String {
        self.out.push('{');
        write_name(self.out, variant);
        self.out
    }
}

macro_rules! integers {
    ($($method:ident($Of:ty))*) => {$(
        #[inline]
        fn $method(self, value: $Of) -> Result {
            self.out.push_str(itoa::Buffer::new().format(value));
            Ok(())
        }
    )*};
}

macro_rules! floats {
    ($($method:ident($Of:ty))*) => {$(
        fn $method(self, value: $Of) -> Result {
            if !value.is_finite() {
                return self.serialize_unit();
            }
            self.out.push_str(zmij::Buffer::new().format_finite(value));
            Ok(())
        }
    )*};
}

impl<'o> Serializer for Writer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'o>;
    type SerializeTuple = Members<'o>;
    type SerializeTupleStruct = Members<'o>;
    type SerializeTupleVariant = Members<'o>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Members<'o>;
    type SerializeStructVariant = Members<'o>;

    #[inline]
    fn serialize_bool(self, value: bool) -> Result {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    integers! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
    }

    floats! { serialize_f32(f32) serialize_f64(f64) }

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

    #[inline(always)]
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result {
        write_known(self.out, variant, "\"");
        Ok(())
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
    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'o>> {
        Ok(Members::open(self.out, "[", "]"))
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Members<'o>> {
        Ok(Members::open(self.out, "[", "]"))
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'o>> {
        Ok(Members::open(self.out, "[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'o>> {
        Ok(Members::open(self.open_variant(variant), "[", "]}"))
    }

    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<Members<'o>> {
        Ok(Members::open(self.out, "{", "}"))
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'o>> {
        // Of a raw value only the text is written.
        if is_verbatim(name) {
            return Ok(Members::open(self.out, "", ""));
        }
        Ok(Members::open(self.out, "{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'o>> {
        Ok(Members::open(self.open_variant(variant), "{", "}}"))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result {
        self.out.push('"');
        fmt::write(&mut Escaping(self.out), format_args!("{value}")).map_err(ser::Error::custom)?;
        self.out.push('"');
        Ok(())
    }
}

/// Escapes the output of a `Display`.
struct Escaping<'o>(&'o mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        write_contents(self.0, piece);
        Ok(())
    }
}

/// An open array or object.
pub(crate) struct Members<'o> {
    out: &'o mut String,
    first: bool,
    close: &'static str,
}

impl<'o> Members<'o> {
    #[inline]
    fn open(out: &'o mut String, open: &str, close: &'static str) -> Self {
        out.push_str(open);
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

    #[inline]
    fn close(self) -> Result {
        self.out.push_str(self.close);
        Ok(())
    }
}

macro_rules! elements {
    ($($Of:ident $method:ident)*) => {$(
        impl ser::$Of for Members<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
                self.next();
                value.serialize(Writer::new(self.out))
            }

            #[inline]
            fn end(self) -> Result {
                self.close()
            }
        }
    )*};
}

elements! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    #[inline(always)]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        self.next();
        key.serialize(KeyWriter::new(self.out))
    }

    // Where the key is known, so that its test is done by the compiler.
    #[inline(always)]
    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result {
        self.serialize_key(key)?;
        self.serialize_value(value)
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

macro_rules! fields {
    ($($Of:ident)*) => {$(
        impl ser::$Of for Members<'_> {
            type Ok = ();
            type Error = Error;

            // Where the name is known, so that its test is done by the compiler.
            #[inline(always)]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
                if is_verbatim(name) {
                    return value.serialize(KeyWriter::verbatim(self.out));
                }
                self.next();
                write_name(self.out, name);
                value.serialize(Writer::new(self.out))
            }

            #[inline]
            fn end(self) -> Result {
                self.close()
            }
        }
    )*};
}

fields! { SerializeStruct SerializeStructVariant }
