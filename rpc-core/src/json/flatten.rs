//! [`Flatten`]: writes the members of a struct or a map into an open object.

use serde::ser::{Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};

use super::refuse::refuse;
use super::tagged::Word;
use super::token;

/// Writes the members of a value into an object. A value without members adds none.
pub(super) struct Flatten<'m, M>(pub(super) &'m mut M);

impl<'m, M: SerializeMap> Serializer for Flatten<'m, M> {
    type Ok = ();
    type Error = M::Error;
    type SerializeSeq = Impossible<(), M::Error>;
    type SerializeTuple = Impossible<(), M::Error>;
    type SerializeTupleStruct = Impossible<(), M::Error>;
    type SerializeTupleVariant = Impossible<(), M::Error>;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), M::Error>;

    #[inline]
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self, M::Error> {
        if name == token::RAW {
            return Err(serde::ser::Error::custom("a raw value has its own tag"));
        }
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, M::Error> {
        Ok(self)
    }

    fn serialize_none(self) -> Result<(), M::Error> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), M::Error> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), M::Error> {
        Ok(())
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), M::Error> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), M::Error> {
        value.serialize(self)
    }

    refuse! {
        "not an object":
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32)
        serialize_f64(f64) serialize_char(char) serialize_str(&str)
        serialize_unit_variant(&'static str, u32, &'static str)
    }
}

impl<M: SerializeMap> SerializeStruct for Flatten<'_, M> {
    type Ok = ();
    type Error = M::Error;

    // Where the name is known: its test is done by the compiler.
    #[inline(always)]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), M::Error> {
        self.0.serialize_entry(&Word(name), value)
    }

    fn end(self) -> Result<(), M::Error> {
        Ok(())
    }
}

impl<M: SerializeMap> SerializeMap for Flatten<'_, M> {
    type Ok = ();
    type Error = M::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), M::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), M::Error> {
        self.0.serialize_value(value)
    }

    fn end(self) -> Result<(), M::Error> {
        Ok(())
    }
}
