//! [`KeyWriter`]: keys of maps, which are strings in JSON.

use std::fmt::Display;

use serde::ser::{Impossible, Serialize, Serializer};

use super::escape::write_name;
use super::refuse::refuse;
use super::writer::{Error, Result, Writer};

/// Writes a key and its colon: texts as they are, numbers and booleans in quotation marks. Anything else is
/// refused.
pub(super) struct KeyWriter<'o> {
    out: &'o mut String,
}

impl<'o> KeyWriter<'o> {
    #[inline]
    pub(super) fn new(out: &'o mut String) -> Self {
        Self { out }
    }

    fn quoted(self, value: impl Serialize) -> Result {
        self.out.push('"');
        value.serialize(Writer::new(self.out))?;
        self.out.push_str("\":");
        Ok(())
    }
}

fn check_finite(is_finite: bool) -> Result {
    if is_finite {
        Ok(())
    } else {
        Err(Error::new("float key must be finite (got NaN or +/-inf)"))
    }
}

impl Serializer for KeyWriter<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    fn serialize_bool(self, value: bool) -> Result {
        self.quoted(value)
    }

    fn serialize_i8(self, value: i8) -> Result {
        self.quoted(value)
    }

    fn serialize_i16(self, value: i16) -> Result {
        self.quoted(value)
    }

    fn serialize_i32(self, value: i32) -> Result {
        self.quoted(value)
    }

    fn serialize_i64(self, value: i64) -> Result {
        self.quoted(value)
    }

    fn serialize_i128(self, value: i128) -> Result {
        self.quoted(value)
    }

    fn serialize_u8(self, value: u8) -> Result {
        self.quoted(value)
    }

    fn serialize_u16(self, value: u16) -> Result {
        self.quoted(value)
    }

    fn serialize_u32(self, value: u32) -> Result {
        self.quoted(value)
    }

    fn serialize_u64(self, value: u64) -> Result {
        self.quoted(value)
    }

    fn serialize_u128(self, value: u128) -> Result {
        self.quoted(value)
    }

    fn serialize_f32(self, value: f32) -> Result {
        check_finite(value.is_finite())?;
        self.quoted(value)
    }

    fn serialize_f64(self, value: f64) -> Result {
        check_finite(value.is_finite())?;
        self.quoted(value)
    }

    fn serialize_char(self, value: char) -> Result {
        Writer::new(self.out).serialize_char(value)?;
        self.out.push(':');
        Ok(())
    }

    // Where the key is known, the compiler looks for escapes in it.
    #[inline(always)]
    fn serialize_str(self, value: &str) -> Result {
        write_name(self.out, value);
        Ok(())
    }

    #[inline(always)]
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result {
        Writer::new(self.out).collect_str(value)?;
        self.out.push(':');
        Ok(())
    }

    refuse! {
        "key must be a string":
        bytes none unit unit_struct newtype_variant seq tuple tuple_struct tuple_variant map struct
        struct_variant
    }
}
