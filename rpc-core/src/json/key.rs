//! [`KeyWriter`]: writes values that must be text: map keys and verbatim JSON.

use std::fmt::Display;

use serde::ser::{Impossible, Serialize, Serializer};

use super::escape::{write_name, write_plain};
use super::refuse::refuse;
use super::writer::{Error, Result, Writer};

/// Writes a key and its colon: text as it is, numbers and booleans in quotation marks. Refuses
/// anything else.
pub(super) struct KeyWriter<'o> {
    out: &'o mut String,
    is_verbatim: bool,
}

impl<'o> KeyWriter<'o> {
    #[inline]
    pub(super) fn new(out: &'o mut String) -> Self {
        let is_verbatim = false;
        Self { out, is_verbatim }
    }

    /// Accepts text only and writes it unchanged.
    #[inline]
    pub(super) fn verbatim(out: &'o mut String) -> Self {
        let is_verbatim = true;
        Self { out, is_verbatim }
    }

    fn quoted(self, value: impl Serialize) -> Result {
        if self.is_verbatim {
            return Err(Error::new("expected RawValue"));
        }
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

macro_rules! quoted {
    ($($method:ident($Of:ty))*) => {$(
        fn $method(self, value: $Of) -> Result {
            self.quoted(value)
        }
    )*};
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

    quoted! {
        serialize_bool(bool)
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
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
        if self.is_verbatim {
            write_plain(self.out, value);
        } else {
            write_name(self.out, value);
        }
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
        serialize_none() serialize_unit() serialize_unit_struct(&'static str)
        serialize_map(Option<usize>) -> SerializeMap
        serialize_struct(&'static str, usize) -> SerializeStruct
    }
}
