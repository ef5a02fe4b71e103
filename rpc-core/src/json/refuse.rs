//! `refuse!`: the unsupported methods of a `Serializer`.

/// Implements the named methods to return an error with this text.
macro_rules! refuse {
    ($words:literal: $($method:ident)*) => { $(refuse!(@$method $words);)* };
    (@bool $words:literal) => { refuse!(# serialize_bool(bool) $words); };
    (@i8 $words:literal) => { refuse!(# serialize_i8(i8) $words); };
    (@i16 $words:literal) => { refuse!(# serialize_i16(i16) $words); };
    (@i32 $words:literal) => { refuse!(# serialize_i32(i32) $words); };
    (@i64 $words:literal) => { refuse!(# serialize_i64(i64) $words); };
    (@u8 $words:literal) => { refuse!(# serialize_u8(u8) $words); };
    (@u16 $words:literal) => { refuse!(# serialize_u16(u16) $words); };
    (@u32 $words:literal) => { refuse!(# serialize_u32(u32) $words); };
    (@u64 $words:literal) => { refuse!(# serialize_u64(u64) $words); };
    (@f32 $words:literal) => { refuse!(# serialize_f32(f32) $words); };
    (@f64 $words:literal) => { refuse!(# serialize_f64(f64) $words); };
    (@char $words:literal) => { refuse!(# serialize_char(char) $words); };
    (@str $words:literal) => { refuse!(# serialize_str(&str) $words); };
    (@bytes $words:literal) => { refuse!(# serialize_bytes(&[u8]) $words); };
    (@none $words:literal) => { refuse!(# serialize_none() $words); };
    (@unit $words:literal) => { refuse!(# serialize_unit() $words); };
    (@unit_struct $words:literal) => { refuse!(# serialize_unit_struct(&'static str) $words); };
    (@unit_variant $words:literal) => {
        refuse!(# serialize_unit_variant(&'static str, u32, &'static str) $words);
    };
    (@some $words:literal) => {
        fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> std::result::Result<(), Self::Error> {
            Err(serde::ser::Error::custom($words))
        }
    };
    (@newtype_struct $words:literal) => {
        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: &T,
        ) -> std::result::Result<(), Self::Error> {
            Err(serde::ser::Error::custom($words))
        }
    };
    (@newtype_variant $words:literal) => {
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> std::result::Result<(), Self::Error> {
            Err(serde::ser::Error::custom($words))
        }
    };
    (@seq $words:literal) => { refuse!(# serialize_seq(Option<usize>) -> SerializeSeq $words); };
    (@tuple $words:literal) => { refuse!(# serialize_tuple(usize) -> SerializeTuple $words); };
    (@tuple_struct $words:literal) => {
        refuse!(# serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct $words);
    };
    (@tuple_variant $words:literal) => {
        refuse!(# serialize_tuple_variant(&'static str, u32, &'static str, usize)
            -> SerializeTupleVariant $words);
    };
    (@map $words:literal) => { refuse!(# serialize_map(Option<usize>) -> SerializeMap $words); };
    (@struct $words:literal) => {
        refuse!(# serialize_struct(&'static str, usize) -> SerializeStruct $words);
    };
    (@struct_variant $words:literal) => {
        refuse!(# serialize_struct_variant(&'static str, u32, &'static str, usize)
            -> SerializeStructVariant $words);
    };
    (# $method:ident($($of:ty),*) $words:literal) => {
        fn $method(self, $(_: $of),*) -> std::result::Result<(), Self::Error> {
            Err(serde::ser::Error::custom($words))
        }
    };
    (# $method:ident($($of:ty),*) -> $Open:ident $words:literal) => {
        fn $method(self, $(_: $of),*) -> std::result::Result<Self::$Open, Self::Error> {
            Err(serde::ser::Error::custom($words))
        }
    };
}
pub(super) use refuse;
