//! [`Json`]: a JSON value in its original text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::mend::{has_escape, mend};
use super::unescape::unescape_from;
use super::{DecodeError, Str, serialize_verbatim, token};
use crate::error::Refused;
use crate::limits::Limits;

/// A JSON value in its original text, cheap to clone. Two values are equal if their texts are.
///
/// The text is one valid JSON value without white space around it. It is checked when the value is
/// created, and written without another check. Half of a surrogate pair in it becomes `\ufffd`,
/// unless it was read with [`verbatim`](super::lenient::verbatim).
///
/// ```
/// use rpc_core::Json;
///
/// let json: Json = rpc_core::json::parse(r#" {"a": 1.50} "#, &rpc_core::Limits::default())?;
/// assert_eq!(json.get(), r#"{"a": 1.50}"#);
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Str);

impl Json {
    /// The value `null`.
    pub const NULL: Self = Self(Str::from_static("null"));
    /// The value `{}`.
    pub const EMPTY_OBJECT: Self = Self(Str::from_static("{}"));
    /// The value `[]`.
    pub const EMPTY_ARRAY: Self = Self(Str::from_static("[]"));

    /// Parses text that is one JSON value. White space around it is removed.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Syntax`](super::DecodeErrorKind::Syntax) if it is not JSON.
    pub fn new(text: &str) -> Result<Self, DecodeError> {
        super::de::parse_any(text)
    }

    /// Serializes a value as JSON.
    ///
    /// # Errors
    /// [`Refused::Encode`] if it is not JSON.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, Refused> {
        let mut text = String::new();
        match value.serialize(super::Writer::new(&mut text)) {
            Ok(()) => Ok(Self(text.into())),
            Err(error) => Err(Refused::Encode {
                message: error.to_string(),
            }),
        }
    }

    /// Creates a JSON string with this text.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let mut json = String::with_capacity(text.len() + 2);
        super::escape::write_string(&mut json, text);
        Self(json.into())
    }

    /// Returns the JSON text.
    #[must_use]
    #[inline]
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Converts the value into its JSON text.
    #[must_use]
    pub fn into_text(self) -> Str {
        self.0
    }

    /// Returns whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// Returns the first byte, which determines the type of the value.
    #[must_use]
    pub fn first_byte(&self) -> u8 {
        self.get().as_bytes().first().copied().unwrap_or(b'n')
    }

    /// Returns the contents of a string. `None` if the value is not a string.
    #[must_use]
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        let inner = self.get().strip_prefix('"')?.strip_suffix('"')?;
        if !has_escape(inner.as_bytes()) {
            return Some(Cow::Borrowed(inner));
        }
        let escape = inner.find('\\')?;
        let (text, _) = unescape_from(self.get(), 1, 1 + escape).ok()?;
        Some(Cow::Owned(text))
    }

    /// Returns the text of a string, or the digits of a number as they were sent. `None` for
    /// anything else.
    #[must_use]
    pub fn as_id(&self) -> Option<Cow<'_, str>> {
        match self.first_byte() {
            b'"' => self.as_str(),
            b'-' | b'0'..=b'9' => Some(Cow::Borrowed(self.get())),
            _ => None,
        }
    }

    /// Deserializes the value as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not a `T`, or is nested more than 127 levels deep. Line and column
    /// count from the start of the value.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, DecodeError> {
        super::parse(self.get(), &Limits::default())
    }

    /// Returns the member `name` of an object; `None` if it is missing or null, or if this is not
    /// an object. Of several it returns the first.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Self> {
        super::find_member(self.get(), name)
    }

    /// Wraps a text that was put together from valid JSON, without a check.
    #[doc(hidden)]
    #[must_use]
    pub fn from_checked(text: String) -> Self {
        Self(text.into())
    }

    /// Wraps a piece of text that was read before, and so is valid JSON.
    #[inline]
    pub(super) fn scanned(text: &str) -> Self {
        Self(mend(text).into())
    }

    /// Like [`scanned`](Self::scanned), for text without halves of surrogate pairs.
    #[inline]
    pub(super) fn whole(text: &str) -> Self {
        Self(text.into())
    }

    /// Replaces halves of surrogate pairs.
    #[inline]
    pub(super) fn mended(self) -> Self {
        match mend(&self.0) {
            Cow::Owned(text) => Self(text.into()),
            Cow::Borrowed(_) => self,
        }
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::NULL
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

/// Prints the length only: payloads carry private text.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.get().len())
    }
}

impl Serialize for Json {
    #[inline]
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize_verbatim(self.get(), to)
    }
}

impl<'de> Deserialize<'de> for Json {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        super::lenient::verbatim(from).map(Self::mended)
    }
}

/// Takes the text of a raw value; writes any other value as text.
pub(super) struct JsonVisitor;

impl JsonVisitor {
    fn write<E: de::Error>(value: impl Serialize) -> Result<Json, E> {
        Json::of(&value).map_err(E::custom)
    }
}

macro_rules! written {
    ($($method:ident($Of:ty))*) => {$(
        fn $method<E: de::Error>(self, value: $Of) -> Result<Json, E> {
            Self::write(value)
        }
    )*};
}

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    written! { visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::string(text))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Json, E> {
        Ok(Json::NULL)
    }

    fn visit_none<E: de::Error>(self) -> Result<Json, E> {
        Ok(Json::NULL)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list: Vec<Json> = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Self::write(list)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let Some(first) = map.next_key::<super::tagged::Key<'de>>()? else {
            return Ok(Json::EMPTY_OBJECT);
        };
        if &*first == token::RAW {
            return map.next_value().map(Json);
        }
        let mut text = String::from("{");
        let mut name = Some(first);
        while let Some(key) = name {
            super::escape::write_string(&mut text, &key);
            text.push(':');
            text.push_str(map.next_value::<Self::Value>()?.get());
            name = map.next_key()?;
            text.push(if name.is_some() { ',' } else { '}' });
        }
        Ok(Json(text.into()))
    }
}
