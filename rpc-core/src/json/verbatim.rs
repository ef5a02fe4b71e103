//! JSON that is passed through as it is, by the agreement that `serde_json` has with itself.

use serde::ser::{Impossible, Serialize, SerializeStruct, Serializer};

use super::escape::write_plain;
use super::writer::{Error, Result};

/// The name of `serde_json`'s raw value, and of its only field, whose text is written verbatim.
/// Not public there; tests compare.
const RAW_VALUE: &str = "$serde_json::private::RawValue";
/// The same for a number kept as digits, which `serde_json` has with `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

/// Whether a struct of this name is a text to be written verbatim.
#[inline]
pub(super) fn is_verbatim(name: &str) -> bool {
    name == RAW_VALUE || name == NUMBER
}

/// Hands a JSON text to a serializer of this crate or of `serde_json`, which writes it as it is.
/// The text is not looked at again: it must be JSON.
pub(crate) fn serialize_verbatim<S: Serializer>(
    json: &str,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
    raw.serialize_field(RAW_VALUE, json)?;
    raw.end()
}

/// Appends a text as it is; refuses all other values.
pub(super) struct VerbatimWriter<'o> {
    out: &'o mut String,
}

impl<'o> VerbatimWriter<'o> {
    #[inline]
    pub(super) fn new(out: &'o mut String) -> Self {
        Self { out }
    }
}

#[cold]
fn refused<T>() -> Result<T> {
    Err(Error::new("expected RawValue"))
}

impl Serializer for VerbatimWriter<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    #[inline]
    fn serialize_str(self, json: &str) -> Result {
        write_plain(self.out, json);
        Ok(())
    }

    // All that follows is no text.

    fn serialize_bool(self, _: bool) -> Result {
        refused()
    }

    fn serialize_i8(self, _: i8) -> Result {
        refused()
    }

    fn serialize_i16(self, _: i16) -> Result {
        refused()
    }

    fn serialize_i32(self, _: i32) -> Result {
        refused()
    }

    fn serialize_i64(self, _: i64) -> Result {
        refused()
    }

    fn serialize_u8(self, _: u8) -> Result {
        refused()
    }

    fn serialize_u16(self, _: u16) -> Result {
        refused()
    }

    fn serialize_u32(self, _: u32) -> Result {
        refused()
    }

    fn serialize_u64(self, _: u64) -> Result {
        refused()
    }

    fn serialize_f32(self, _: f32) -> Result {
        refused()
    }

    fn serialize_f64(self, _: f64) -> Result {
        refused()
    }

    fn serialize_char(self, _: char) -> Result {
        refused()
    }

    fn serialize_bytes(self, _: &[u8]) -> Result {
        refused()
    }

    fn serialize_none(self) -> Result {
        refused()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result {
        refused()
    }

    fn serialize_unit(self) -> Result {
        refused()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        refused()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result {
        refused()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result {
        refused()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result {
        refused()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq> {
        refused()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple> {
        refused()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct> {
        refused()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        refused()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap> {
        refused()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct> {
        refused()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        refused()
    }
}
