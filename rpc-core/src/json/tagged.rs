//! Objects whose members depend on a tag: the support code of [`tagged!`](crate::tagged).

mod macros;
mod members;

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Deref;
use std::{fmt, iter};

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{self, SerializeMap};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

pub use members::{Always, Member, Nothing, Word, absent, flatten};

use super::value::JsonVisitor;
use super::{Json, token};
use crate::limits::Limits;

/// An object whose content depends on its tag. Implemented by [`tagged!`](crate::tagged).
pub trait Tagged: Sized {
    /// The name of the tag member.
    const TAG: &'static str;
    /// The name of the content member; `None` if the content is all other members.
    const CONTENT: Option<&'static str>;
    /// The known tags.
    const TAGS: &'static [&'static str];

    /// Returns whether the tag is known, and whether it has content.
    fn kind(tag: &str) -> TagKind;

    /// Reads the content of a known tag with content.
    ///
    /// # Errors
    /// If the content does not match the tag.
    fn read<'de, D: Deserializer<'de>>(tag: &str, content: D) -> Result<Self, D::Error>;

    /// Returns the value of a known tag without content, or of an unknown tag: `raw` is its content
    /// or, if the content is all other members, the whole object.
    ///
    /// # Errors
    /// If the content of a known tag is missing.
    fn without<E: de::Error>(tag: &str, raw: Option<Json>) -> Result<Self, E>;

    /// Returns the value of an object without a tag.
    ///
    /// # Errors
    /// If the tag is required.
    fn untagged<E: de::Error>() -> Result<Self, E> {
        Err(E::missing_field(Self::TAG))
    }

    /// Returns the whole object if its tag is unknown, to write it unchanged.
    fn raw(&self) -> Option<&Json> {
        None
    }

    /// Writes the tag and the content into an object.
    ///
    /// # Errors
    /// The serializer's error. The default always fails: such a type is never part of another one.
    fn write<M: SerializeMap>(&self, _: &mut M) -> Result<(), M::Error> {
        Err(ser::Error::custom("not a part of another object"))
    }
}

/// What is known about a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum TagKind {
    /// The tag is unknown.
    Unknown,
    /// The tag has no content.
    Unit,
    /// The tag has content.
    Content,
    /// The tag has content; an object whose content cannot be read counts as unknown.
    Open,
}

/// An object whose tag is optional.
impl<T: Tagged> Tagged for Option<T> {
    const TAG: &'static str = T::TAG;
    const CONTENT: Option<&'static str> = T::CONTENT;
    const TAGS: &'static [&'static str] = T::TAGS;

    #[inline]
    fn kind(tag: &str) -> TagKind {
        T::kind(tag)
    }

    #[inline]
    fn read<'de, D: Deserializer<'de>>(tag: &str, content: D) -> Result<Self, D::Error> {
        T::read(tag, content).map(Some)
    }

    fn without<E: de::Error>(tag: &str, raw: Option<Json>) -> Result<Self, E> {
        T::without(tag, raw).map(Some)
    }

    fn untagged<E: de::Error>() -> Result<Self, E> {
        Ok(None)
    }

    fn raw(&self) -> Option<&Json> {
        self.as_ref().and_then(T::raw)
    }

    #[inline]
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.as_ref().map_or(Ok(()), |it| it.write(map))
    }
}

/// The members besides the tag that all variants of an object have.
pub trait Common: Default {
    /// The names of these members, the tag and the content.
    const NAMES: &'static [&'static str];
    /// Whether there are none besides the tag and the content.
    const IS_NONE: bool = false;

    /// Reads a member if it is one of these.
    ///
    /// # Errors
    /// If its value is wrong or it appears twice.
    fn take<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// No members besides the tag and its content.
struct Alone<B>(PhantomData<B>);

impl<B> Default for Alone<B> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<B: Tagged> Common for Alone<B> {
    const NAMES: &'static [&'static str] = match B::CONTENT {
        Some(content) => &[B::TAG, content],
        None => &[B::TAG],
    };
    const IS_NONE: bool = true;

    #[inline]
    fn take<'de, A: MapAccess<'de>>(&mut self, _: &str, _: &mut A) -> Result<bool, A::Error> {
        Ok(false)
    }
}

/// The name of a member.
pub(super) struct Key<'de>(pub(super) Cow<'de, str>);

impl Deref for Key<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Key<'de> {
    #[inline]
    pub(super) fn give<K: DeserializeSeed<'de>, E: de::Error>(
        &self,
        seed: K,
    ) -> Result<K::Value, E> {
        match &self.0 {
            Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Cow::Owned(name) => seed.deserialize(StrDeserializer::new(name)),
        }
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Name;
        impl<'de> Visitor<'de> for Name {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            #[inline]
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(name.into())))
            }
        }
        from.deserialize_identifier(Name)
    }
}

/// Reads an object by its tag: its common members and its content. `tag` is `Some` if the tag was
/// read before and does not appear in `from`: the argument of [`Tagged::read`].
///
/// # Errors
/// If the tag is missing, a member appears twice, or the members do not match the tag.
#[inline]
pub fn read<'de, D: Deserializer<'de>, C: Common, B: Tagged>(
    tag: Option<&str>,
    common: &mut C,
    from: D,
) -> Result<B, D::Error> {
    let visitor = ObjectVisitor {
        tag,
        common,
        body: PhantomData,
    };
    from.deserialize_newtype_struct(token::TAGGED, visitor)
}

/// Like [`read`], without common members.
///
/// # Errors
/// As [`read`].
#[inline]
pub fn read_alone<'de, D: Deserializer<'de>, B: Tagged>(from: D) -> Result<B, D::Error> {
    read(None, &mut Alone(PhantomData::<B>), from)
}

struct ObjectVisitor<'v, C, B> {
    tag: Option<&'v str>,
    common: &'v mut C,
    body: PhantomData<B>,
}

impl<'de, C: Common, B: Tagged> Visitor<'de> for ObjectVisitor<'_, C, B> {
    type Value = B;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    /// The path of any other deserializer, which cannot go back to a member before the tag.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<B, D::Error> {
        let json = Json::deserialize(from)?;
        let mut reader = super::Deserializer::new(json.get(), &Limits::default());
        read(self.tag, self.common, &mut reader).map_err(D::Error::custom)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<B, A::Error> {
        map.next_value_seed(Names(C::NAMES))?;
        if let Some(tag) = self.tag {
            return by_tag(tag, Rest::new::<B>(&mut map, self.common, false));
        }
        let (tag, is_ahead) = find_tag::<A, C, B>(&mut map, self.common)?;
        let mut rest = Rest::new::<B>(&mut map, self.common, is_ahead);
        match (&tag, B::CONTENT) {
            (tag, Some(content)) => adjacent(tag.as_deref(), rest, content),
            (Some(tag), None) => by_tag(tag, rest),
            (None, None) => {
                rest.finish()?;
                B::untagged()
            }
        }
    }
}

/// Reads up to the tag, and returns whether the tag will be read again: if a member other than a
/// common one comes first, the tag is searched after it, and the members are read from there.
#[inline]
fn find_tag<'de, A: MapAccess<'de>, C: Common, B: Tagged>(
    map: &mut A,
    common: &mut C,
) -> Result<(Option<Key<'de>>, bool), A::Error> {
    while let Some(key) = map.next_key::<Key<'de>>()? {
        if &*key == B::TAG {
            let tag: Option<Key<'de>> = map.next_value()?;
            // Null counts as absent; beside content even that stands once.
            if tag.is_some() || B::CONTENT.is_some() {
                return Ok((tag, false));
            }
        } else if !common.take(&key, map)? {
            return Ok((map.next_value_seed(Seek(C::NAMES))?, true));
        }
    }
    Ok((None, false))
}

/// `{"tag": …, "content": …}`.
#[inline]
fn adjacent<'de, A: MapAccess<'de>, C: Common, B: Tagged>(
    tag: Option<&str>,
    mut rest: Rest<'_, A, C>,
    content: &'static str,
) -> Result<B, A::Error> {
    let mut body = None;
    while let Some(key) = rest.map.next_key::<Key<'de>>()? {
        if &*key == content {
            if body.is_some() {
                return Err(A::Error::duplicate_field(content));
            }
            body = Some(match tag {
                Some(tag) => rest.map.next_value_seed(Content::<B>(tag, PhantomData))?,
                None => rest.map.next_value::<IgnoredAny>().map(|_| None)?,
            });
        } else if !rest.take(&key)? {
            rest.map.next_value::<IgnoredAny>()?;
        }
    }
    match (tag, body.flatten()) {
        (_, Some(body)) => Ok(body),
        (Some(tag), None) => B::without(tag, None),
        (None, None) => B::untagged(),
    }
}

/// Reads content by its tag; `None` if the tag has no content.
struct Content<'t, B>(&'t str, PhantomData<B>);

impl<'de, B: Tagged> DeserializeSeed<'de> for Content<'_, B> {
    type Value = Option<B>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<B>, D::Error> {
        match B::kind(self.0) {
            TagKind::Content | TagKind::Open => B::read(self.0, from).map(Some),
            TagKind::Unit => IgnoredAny::deserialize(from).map(|_| None),
            TagKind::Unknown => B::without(self.0, Some(Json::deserialize(from)?)).map(Some),
        }
    }
}

/// `{"tag": …, …}`.
#[inline]
fn by_tag<'de, A: MapAccess<'de>, C: Common, B: Tagged>(
    tag: &str,
    mut rest: Rest<'_, A, C>,
) -> Result<B, A::Error> {
    match B::kind(tag) {
        TagKind::Content => B::read(tag, rest),
        TagKind::Open => {
            B::read(tag, rest.again()).or_else(|error| match rest.map.next_value_seed(Whole) {
                Ok(whole) => B::without(tag, Some(whole)),
                // It is no JSON.
                Err(_) => Err(error),
            })
        }
        TagKind::Unit => {
            rest.finish()?;
            B::without(tag, None)
        }
        TagKind::Unknown => {
            let whole = rest.whole()?;
            B::without(tag, Some(whole))
        }
    }
}

/// The members besides the tag and the common ones.
struct Rest<'m, A, C> {
    map: &'m mut A,
    common: &'m mut C,
    tag: &'static str,
    /// Whether the tag was read already and will be read again.
    is_ahead: bool,
    /// Whether null tags may come before it.
    may_be_null: bool,
}

impl<'m, 'de, A: MapAccess<'de>, C: Common> Rest<'m, A, C> {
    fn new<B: Tagged>(map: &'m mut A, common: &'m mut C, is_ahead: bool) -> Self {
        Self {
            map,
            common,
            tag: B::TAG,
            is_ahead,
            may_be_null: B::CONTENT.is_none(),
        }
    }

    fn again(&mut self) -> Rest<'_, A, C> {
        Rest {
            map: self.map,
            common: self.common,
            ..*self
        }
    }

    /// Reads the tag again, or a common member.
    #[inline]
    fn take(&mut self, key: &str) -> Result<bool, A::Error> {
        if key != self.tag {
            return self.common.take(key, self.map);
        }
        if !self.is_ahead {
            return Err(A::Error::duplicate_field(self.tag));
        }
        let is_null = self.map.next_value::<Option<IgnoredAny>>()?.is_none();
        self.is_ahead = is_null && self.may_be_null;
        Ok(true)
    }

    /// Skips the remaining members.
    fn finish(&mut self) -> Result<(), A::Error> {
        while self.next_key::<IgnoredAny>()?.is_some() {
            self.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    /// Returns the text of the whole object.
    fn whole(&mut self) -> Result<Json, A::Error> {
        self.finish()?;
        self.map.next_value_seed(Whole)
    }
}

impl<'de, A: MapAccess<'de>, C: Common> MapAccess<'de> for Rest<'_, A, C> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<Key<'de>>()? {
            if !self.take(&key)? {
                return key.give(seed).map(Some);
            }
        }
        Ok(None)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>, C: Common> Deserializer<'de> for Rest<'_, A, C> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(Names(names))?;
        visitor.visit_map(self)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        match name {
            token::RAW => {
                let whole = self.whole()?;
                let entry = iter::once((token::RAW, whole.get()));
                visitor.visit_map(de::value::MapDeserializer::new(entry))
            }
            // The reader by the same tag finds a second one itself.
            token::TAGGED if C::IS_NONE && !self.is_ahead => visitor.visit_map(self.map),
            token::TAGGED => visitor.visit_map(self),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_enum(MapAccessDeserializer::new(self))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// Passes the names of members to [`Deserializer`](super::Deserializer). No other deserializer gets
/// this.
struct Names(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Names {
    type Value = ();

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_struct(token::NAMES, self.0, IgnoredAny)?;
        Ok(())
    }
}

/// Finds the tag, the first of the names, and goes back.
struct Seek(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Seek {
    type Value = Option<Key<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_struct(token::SEEK, self.0, self)
    }
}

impl<'de> Visitor<'de> for Seek {
    type Value = Option<Key<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tag")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        Option::deserialize(from)
    }
}

/// The text of the object.
struct Whole;

impl<'de> DeserializeSeed<'de> for Whole {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        from.deserialize_newtype_struct(token::WHOLE, JsonVisitor)
    }
}
