//! `refuse!`: the methods of a serializer that fail.

/// Implements these methods, and those that no serializer here has, to fail with these words:
/// `method(types of the arguments)`, and `-> Associated` if it returns one of the serializer's types.
macro_rules! refuse {
    ($words:literal: $($method:ident($($of:ty),*) $(-> $Open:ident)?)*) => {
        refuse! {
            # $words:
            serialize_bytes(&[u8])
            serialize_seq(Option<usize>) -> SerializeSeq
            serialize_tuple(usize) -> SerializeTuple
            serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
            $($method($($of),*) $(-> $Open)?)*
        }

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
    (# $words:literal: $($method:ident($($of:ty),*) $(-> $Open:ident)?)*) => {$(
        fn $method(self, $(_: $of),*) -> std::result::Result<refuse!(@ok $($Open)?), Self::Error> {
            Err(serde::ser::Error::custom($words))
        }
    )*};
    (@ok) => { () };
    (@ok $Open:ident) => { Self::$Open };
}
pub(super) use refuse;
