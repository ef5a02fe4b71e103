//! JSON that is passed through as it is, by the agreement that `serde_json` has with itself.

use serde::ser::{Impossible, Serialize, SerializeStruct, Serializer};

use super::escape::write_plain;
use super::refuse::refuse;
use super::token;
use super::writer::Error;

/// The name of a number kept as digits, which `serde_json` has with `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

/// Whether a struct of this name is a text to be written verbatim.
#[inline]
pub(super) fn is_verbatim(name: &str) -> bool {
    name == token::RAW || name == NUMBER
}

/// Hands a JSON text to a serializer of this crate or of `serde_json`, which writes it as it is.
/// The text is not looked at again: it must be JSON.
pub(crate) fn serialize_verbatim<S: Serializer>(
    json: &str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut raw = serializer.serialize_struct(token::RAW, 1)?;
    raw.serialize_field(token::RAW, json)?;
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
    fn serialize_str(self, json: &str) -> Result<(), Error> {
        write_plain(self.out, json);
        Ok(())
    }

    refuse! {
        "expected RawValue":
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes none some unit unit_struct unit_variant
        newtype_struct newtype_variant seq tuple tuple_struct tuple_variant map struct struct_variant
    }
}
