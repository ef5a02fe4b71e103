//! Objects whose members depend on one of them, the tag: what [`tagged!`](crate::tagged) stands on.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::vec;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};

use super::{Json, Str, token};
use crate::limits::Limits;

/// What a tag decides about. Implemented by [`tagged!`](crate::tagged).
pub trait Tagged: Sized {
    /// The member that is the tag.
    const TAG: &'static str;
    /// The member that is the content; `None` if all other members are.
    const CONTENT: Option<&'static str>;

    /// The tags that are known.
    const TAGS: &'static [&'static str];

    /// Whether the tag is known, and whether it has content.
    fn kind(tag: &str) -> TagKind;

    /// Reads the content of a known tag that has some.
    ///
    /// # Errors
    /// If the content is not what the tag says.
    fn read<'de, D: Deserializer<'de>>(tag: &str, content: D) -> Result<Self, D::Error>;

    /// The value of a known tag without content; of an unknown one, `raw` is the content or, if all
    /// members are, the whole object.
    ///
    /// # Errors
    /// If the content of a known tag is missing.
    fn without<E: de::Error>(tag: &str, raw: Option<Json>) -> Result<Self, E>;

    /// The value of an object without a tag.
    ///
    /// # Errors
    /// If there must be a tag.
    fn untagged<E: de::Error>() -> Result<Self, E> {
        Err(E::missing_field(Self::TAG))
    }

    /// The whole object, if it is of an unknown tag and is written as it was read.
    fn raw(&self) -> Option<&Json>;
}

/// What is known of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum TagKind {
    /// Nothing.
    Unknown,
    /// It stands alone.
    Unit,
    /// It has content.
    Content,
}

/// An object that may do without a tag.
impl<T: Tagged> Tagged for Option<T> {
    const TAG: &'static str = T::TAG;
    const CONTENT: Option<&'static str> = T::CONTENT;
    const TAGS: &'static [&'static str] = T::TAGS;

    fn kind(tag: &str) -> TagKind {
        T::kind(tag)
    }

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
}

/// Members beside the tag that all kinds of an object have.
pub trait Common: Default {
    /// Their names, with the tag and the content.
    const NAMES: &'static [&'static str];

    /// Reads a member, if it is one of these.
    ///
    /// # Errors
    /// If its value is wrong, or it comes twice.
    fn take<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// No members beside the tag and its content.
#[derive(Debug)]
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

    #[inline]
    fn take<'de, A: MapAccess<'de>>(&mut self, _: &str, _: &mut A) -> Result<bool, A::Error> {
        Ok(false)
    }
}

/// The name of a member.
pub(super) enum Key<'de> {
    Borrowed(&'de str),
    Owned(Str),
}

impl Deref for Key<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(name) => name,
            Self::Owned(name) => name,
        }
    }
}

impl<'de> Key<'de> {
    #[inline]
    fn give<K: DeserializeSeed<'de>, E: de::Error>(&self, seed: K) -> Result<K::Value, E> {
        match self {
            Self::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Self::Owned(name) => seed.deserialize(StrDeserializer::new(name)),
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
                Ok(Key::Borrowed(name))
            }
            fn visit_str<E>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key::Owned(name.into()))
            }
        }
        from.deserialize_str(Name)
    }
}

/// Reads an object by its tag: its common members, and what the tag says.
///
/// # Errors
/// If there is no tag, a member comes twice, or the members are not what the tag says.
#[inline]
pub fn read<'de, D: Deserializer<'de>, C: Common, B: Tagged>(from: D) -> Result<(C, B), D::Error> {
    from.deserialize_newtype_struct(token::TAGGED, ObjectVisitor(PhantomData))
}

/// As [`read`], without common members.
///
/// # Errors
/// As [`read`].
#[inline]
pub fn read_alone<'de, D: Deserializer<'de>, B: Tagged>(from: D) -> Result<B, D::Error> {
    read::<D, Alone<B>, B>(from).map(|(_, body)| body)
}

/// As [`read`], of an object whose tag was read before and is not found again in `from`: what a
/// [`Tagged::read`] gets.
///
/// # Errors
/// If a member comes twice, or the members are not what the tag says.
#[inline]
pub fn read_rest<'de, D: Deserializer<'de>, C: Common, B: Tagged>(
    tag: &str,
    from: D,
) -> Result<(C, B), D::Error> {
    from.deserialize_newtype_struct(token::TAGGED, RestVisitor(tag, PhantomData))
}

struct RestVisitor<'t, C, B>(&'t str, PhantomData<(C, B)>);

impl<'de, C: Common, B: Tagged> Visitor<'de> for RestVisitor<'_, C, B> {
    type Value = (C, B);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(C, B), A::Error> {
        map.next_value_seed(Names(C::NAMES))?;
        let mut common = C::default();
        let body = by_tag(self.0, Vec::new(), &mut map, &mut common)?;
        Ok((common, body))
    }
}

struct ObjectVisitor<C, B>(PhantomData<(C, B)>);

impl<'de, C: Common, B: Tagged> Visitor<'de> for ObjectVisitor<C, B> {
    type Value = (C, B);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    /// Another deserializer than ours: it cannot go back to a member before the tag.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<(C, B), D::Error> {
        let json = Json::deserialize(from)?;
        let mut reader = super::Deserializer::new(json.get(), &Limits::default());
        read(&mut reader).map_err(D::Error::custom)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(C, B), A::Error> {
        map.next_value_seed(Names(C::NAMES))?;
        let mut common = C::default();
        let body = match B::CONTENT {
            Some(content) => adjacent(&mut map, &mut common, content)?,
            None => internal(&mut map, &mut common)?,
        };
        Ok((common, body))
    }
}

/// `{"tag": …, "content": …}`.
#[inline]
fn adjacent<'de, A: MapAccess<'de>, C: Common, B: Tagged>(
    map: &mut A,
    common: &mut C,
    content: &'static str,
) -> Result<B, A::Error> {
    let (mut tag, mut body, mut early) = (None::<Option<Key<'de>>>, None, None);
    while let Some(key) = map.next_key::<Key<'de>>()? {
        if &*key == B::TAG {
            if tag.is_some() {
                return Err(A::Error::duplicate_field(B::TAG));
            }
            tag = Some(map.next_value()?);
        } else if &*key == content {
            if body.is_some() || early.is_some() {
                return Err(A::Error::duplicate_field(content));
            }
            match &tag {
                Some(Some(tag)) => body = Some(map.next_value_seed(Content::<B>::new(tag))?),
                _ => early = Some(map.next_value_seed(Mark)?),
            }
        } else if !common.take(&key, map)? {
            map.next_value::<IgnoredAny>()?;
        }
    }
    let Some(Some(tag)) = tag else {
        return B::untagged();
    };
    let body = match early {
        Some(place) => map.next_value_seed(Seek(place, Content::new(&tag)))?,
        None => body.flatten(),
    };
    body.map_or_else(|| B::without(&tag, None), Ok)
}

/// Reads content by its tag; `None` if the tag stands alone.
struct Content<'t, B>(&'t str, PhantomData<B>);

impl<'t, B> Content<'t, B> {
    const fn new(tag: &'t str) -> Self {
        Self(tag, PhantomData)
    }
}

impl<'de, B: Tagged> DeserializeSeed<'de> for Content<'_, B> {
    type Value = Option<B>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<B>, D::Error> {
        match B::kind(self.0) {
            TagKind::Content => B::read(self.0, from).map(Some),
            TagKind::Unit => IgnoredAny::deserialize(from).map(|_| None),
            TagKind::Unknown => B::without(self.0, Some(Json::deserialize(from)?)).map(Some),
        }
    }
}

/// `{"tag": …, …}`.
#[inline]
fn internal<'de, A: MapAccess<'de>, C: Common, B: Tagged>(
    map: &mut A,
    common: &mut C,
) -> Result<B, A::Error> {
    let mut early = Vec::new();
    let tag = loop {
        let Some(key) = map.next_key::<Key<'de>>()? else {
            return B::untagged();
        };
        if &*key == B::TAG {
            if let Some(tag) = map.next_value::<Option<Key<'de>>>()? {
                break tag;
            }
        } else if !common.take(&key, map)? {
            early.push((key, map.next_value_seed(Mark)?));
        }
    };
    by_tag(&tag, early, map, common)
}

/// Reads the members beside the tag, those that came before it among them.
#[inline]
fn by_tag<'de, A: MapAccess<'de>, C: Common, B: Tagged>(
    tag: &str,
    early: Vec<(Key<'de>, u64)>,
    map: &mut A,
    common: &mut C,
) -> Result<B, A::Error> {
    let mut rest = Rest {
        early: early.into_iter(),
        place: None,
        map,
        common,
        tag: B::TAG,
    };
    match B::kind(tag) {
        TagKind::Content => B::read(tag, rest),
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

/// The members beside the tag and the common ones: those before the tag, then those behind it.
struct Rest<'m, 'de, A, C> {
    early: vec::IntoIter<(Key<'de>, u64)>,
    place: Option<u64>,
    map: &'m mut A,
    common: &'m mut C,
    tag: &'static str,
}

impl<'de, A: MapAccess<'de>, C: Common> Rest<'_, 'de, A, C> {
    /// Skips what is left.
    fn finish(&mut self) -> Result<(), A::Error> {
        self.early = Vec::new().into_iter();
        while self.next_key::<IgnoredAny>()?.is_some() {
            self.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    /// The text of the whole object.
    fn whole(&mut self) -> Result<Json, A::Error> {
        self.finish()?;
        self.map.next_value_seed(Whole)
    }
}

impl<'de, A: MapAccess<'de>, C: Common> MapAccess<'de> for Rest<'_, 'de, A, C> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        if let Some((key, place)) = self.early.next() {
            self.place = Some(place);
            return key.give(seed).map(Some);
        }
        while let Some(key) = self.map.next_key::<Key<'de>>()? {
            if &*key == self.tag {
                return Err(A::Error::duplicate_field(self.tag));
            }
            if !self.common.take(&key, self.map)? {
                return key.give(seed).map(Some);
            }
        }
        Ok(None)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.place.take() {
            None => self.map.next_value_seed(seed),
            Some(place) => self.map.next_value_seed(Seek(place, seed)),
        }
    }
}

impl<'de, A: MapAccess<'de>, C: Common> Deserializer<'de> for Rest<'_, 'de, A, C> {
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
                let entry = std::iter::once((token::RAW, whole.get()));
                visitor.visit_map(de::value::MapDeserializer::new(entry))
            }
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

/// What our deserializer answers to a name that only it knows. Another one is never asked.
struct Answer;

impl<'de> Visitor<'de> for Answer {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a deserializer of this crate")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

struct Names(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Names {
    type Value = ();

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_struct(token::NAMES, self.0, Answer)
    }
}

struct Mark;

impl<'de> DeserializeSeed<'de> for Mark {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<u64, D::Error> {
        from.deserialize_newtype_struct(token::MARK, self)
    }
}

impl Visitor<'_> for Mark {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Answer.expecting(f)
    }

    fn visit_u64<E>(self, place: u64) -> Result<u64, E> {
        Ok(place)
    }
}

struct Whole;

impl<'de> DeserializeSeed<'de> for Whole {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        from.deserialize_newtype_struct(token::WHOLE, self)
    }
}

impl Visitor<'_> for Whole {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Answer.expecting(f)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::scanned(text))
    }
}

struct Seek<S>(u64, S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seek<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        // A text has no more bytes than a `usize` counts.
        let place = usize::try_from(self.0).unwrap_or(usize::MAX);
        from.deserialize_tuple_struct(token::SEEK, place, self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Seek<S> {
    type Value = S::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Answer.expecting(f)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.1.deserialize(from)
    }
}

/// The value of a common member that is missing: `None` where that is one.
///
/// # Errors
/// If the type asks for a value.
pub fn absent<'de, T: Deserialize<'de>, E: de::Error>(name: &'static str) -> Result<T, E> {
    struct Absent<E>(&'static str, PhantomData<E>);
    impl<'de, E: de::Error> Deserializer<'de> for Absent<E> {
        type Error = E;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, E> {
            Err(E::missing_field(self.0))
        }
        fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            visitor.visit_none()
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
            unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }
    T::deserialize(Absent(name, PhantomData))
}

/// Tells a member that is `None` from all others: of two methods with one name, the inherent one wins.
#[derive(Debug)]
pub struct Member<'m, T>(pub &'m T);

impl<'m, T> Member<'m, Option<T>> {
    /// The member, if it is written.
    #[must_use]
    pub fn written(&self) -> Option<&'m Option<T>> {
        self.0.is_some().then_some(self.0)
    }
}

/// A member that is always written.
pub trait Always<'m, T> {
    /// The member.
    fn written(&self) -> Option<&'m T>;
}

impl<'m, T> Always<'m, T> for Member<'m, T> {
    fn written(&self) -> Option<&'m T> {
        Some(self.0)
    }
}

/// Writes a tag and, behind it, the members of its content.
///
/// # Errors
/// What the serializer returns.
pub fn write<S: Serializer>(
    to: S,
    name: &'static str,
    tag: &str,
    content: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Object<'o, T> {
        #[serde(flatten)]
        tag: Tag<'o>,
        #[serde(flatten)]
        content: &'o T,
    }
    struct Tag<'o>(&'static str, &'o str);
    impl Serialize for Tag<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let mut map = to.serialize_map(Some(1))?;
            map.serialize_entry(self.0, self.1)?;
            map.end()
        }
    }
    let tag = Tag(name, tag);
    Object { tag, content }.serialize(to)
}

/// No members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

/// Makes types of objects whose members depend on a tag.
///
/// An **enum** has a variant for each tag, with its content in one type, or without. The content is
/// what `in` names, or all members. What is not known is `Unknown`, and is written as it was read.
/// `tag()` is the tag on the wire.
///
/// ```
/// use rpc_core::{Limits, Str, json, tagged};
///
/// tagged! {
///     /// A step.
///     #[derive(Clone, Debug, PartialEq)]
///     pub enum Step by "event" in "data" {
///         /// More text.
///         "text" => Text(Str),
///         /// The end.
///         "done" => Done,
///     }
/// }
///
/// let step: Step = json::decode(r#"{"event":"text","data":"Hi"}"#, &Limits::default())?;
/// assert_eq!(step, Step::Text("Hi".into()));
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
///
/// A tag without content of its own may be written with some, `"done" => Done = Nothing {}`. Where all
/// members are the content, one kind may have its content in one of them: `"text" => Text(Str) in "text"`
/// is `{"type": "text", "text": "…"}`.
///
/// A **struct** has members that all kinds of an object have, and one `..` for the enum: `Option` of it if
/// an object may do without the tag. Members are written in this order, without those that are
/// `None`; an object of an unknown tag is written as it was read, whatever the members say. Where a
/// kind needs one of these members, `then` names a function that gets what was read and returns it,
/// or an error: `fn(Self) -> Result<Self, E>` for any `E: serde::de::Error`.
///
/// ```
/// use rpc_core::{Limits, Str, json, tagged};
///
/// tagged! {
///     /// What happens.
///     #[derive(Clone, Debug, PartialEq)]
///     pub enum Kind by "type" {
///         /// Something is said.
///         "say" => Say(Say),
///     }
/// }
///
/// /// Something is said.
/// #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// pub struct Say {
///     /// The words.
///     pub text: Str,
/// }
///
/// tagged! {
///     /// One frame.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Frame {
///         /// Whose it is.
///         "id" => pub id: Str,
///         /// What it says.
///         .. => pub kind: Kind,
///         /// When it was sent.
///         "sentAt" => pub sent_at: Option<u64>,
///     }
/// }
///
/// let text = r#"{"id":"1","type":"say","text":"Hi"}"#;
/// let frame: Frame = json::decode(text, &Limits::default())?;
/// assert_eq!((&*frame.id, frame.kind.tag()), ("1", "say"));
/// assert_eq!(serde_json::to_string(&frame)?, text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! tagged {
    // An enum with its content in one member.
    ($(#[$meta:meta])* $vis:vis enum $Name:ident by $tag:literal in $content:literal {
        $($(#[$doc:meta])* $word:literal => $Kind:ident $(($Of:ty))? $(= $written:expr)?,)*
    }) => {
        $(#[$meta])*
        #[non_exhaustive]
        $vis enum $Name {
            $($(#[$doc])* $Kind $(($Of))?,)*
            /// A tag that this crate does not know.
            Unknown {
                /// The tag.
                tag: $crate::Str,
                /// The content, raw; `None` if there is none.
                content: Option<$crate::Json>,
            },
        }

        $crate::tagged!(@common $Name $tag (Some($content)) {$($word => $Kind $(($Of))? {},)*} raw content);

        impl $crate::json::serde::Serialize for $Name {
            fn serialize<S: $crate::json::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use $crate::json::serde::ser::SerializeMap as _;
                let mut map = to.serialize_map(None)?;
                map.serialize_entry($tag, self.tag())?;
                match self {
                    $($crate::tagged!(@pattern $Name $Kind it $($Of)?) => {
                        $crate::tagged!(@entry map $content it $($Of)? $(= $written)?);
                    })*
                    Self::Unknown { content: Some(content), .. } => {
                        map.serialize_entry($content, content)?;
                    }
                    Self::Unknown { content: None, .. } => {}
                }
                map.end()
            }
        }
    };

    // An enum whose content is all other members.
    ($(#[$meta:meta])* $vis:vis enum $Name:ident by $tag:literal {
        $($(#[$doc:meta])* $word:literal => $Kind:ident $(($Of:ty))? $(in $member:literal)?,)*
    }) => {
        $(#[$meta])*
        #[non_exhaustive]
        $vis enum $Name {
            $($(#[$doc])* $Kind $(($Of))?,)*
            /// A tag that this crate does not know.
            Unknown {
                /// The tag.
                tag: $crate::Str,
                /// The whole object, raw.
                raw: $crate::Json,
            },
        }

        $crate::tagged!(@common $Name $tag (None) {
            $($word => $Kind $(($Of))? {$($member)?},)*
        } raw raw);

        impl $crate::json::serde::Serialize for $Name {
            fn serialize<S: $crate::json::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($crate::tagged!(@pattern $Name $Kind it $($Of)?) => {
                        $crate::json::tagged::write(to, $tag, $word, &$crate::tagged!(
                            @members it $(($Of))? $($member)?
                        ))
                    })*
                    Self::Unknown { raw, .. } => raw.serialize(to),
                }
            }
        }
    };

    (@common $Name:ident $tag:literal ($content:expr) {
        $($word:literal => $Kind:ident $(($Of:ty))? {$($member:literal)?},)*
    } $raw:ident $field:ident) => {
        impl $Name {
            /// The tag on the wire.
            #[must_use]
            #[allow(unreachable_pub)]
            pub fn tag(&self) -> &str {
                match self {
                    $($crate::tagged!(@pattern $Name $Kind _it $($Of)?) => $word,)*
                    Self::Unknown { tag, .. } => tag,
                }
            }
        }

        impl $crate::json::Tagged for $Name {
            const TAG: &'static str = $tag;
            const CONTENT: Option<&'static str> = $content;
            const TAGS: &'static [&'static str] = &[$($word,)*];

            #[inline]
            fn kind(tag: &str) -> $crate::json::TagKind {
                match tag {
                    $($word => $crate::tagged!(@kind $($Of)?),)*
                    _ => $crate::json::TagKind::Unknown,
                }
            }

            #[inline]
            fn read<'de, D: $crate::json::serde::Deserializer<'de>>(
                tag: &str,
                content: D,
            ) -> Result<Self, D::Error> {
                match tag {
                    $($word => $crate::tagged!(@read content $Kind $(($Of))? $($member)?),)*
                    // Not asked for by this kind.
                    _ => Self::without(tag, None),
                }
            }

            fn without<E: $crate::json::serde::de::Error>(
                tag: &str,
                $raw: Option<$crate::Json>,
            ) -> Result<Self, E> {
                match tag {
                    $($word => $crate::tagged!(@without $Name $Kind $($Of)?),)*
                    _ => Ok($crate::tagged!(@unknown tag $raw $field)),
                }
            }

            fn raw(&self) -> Option<&$crate::Json> {
                $crate::tagged!(@raw self $field)
            }
        }

        impl<'de> $crate::json::serde::Deserialize<'de> for $Name {
            #[inline]
            fn deserialize<D: $crate::json::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::json::tagged::read_alone(from)
            }
        }
    };

    (@pattern $Name:ident $Kind:ident $it:ident $Of:ty) => { Self::$Kind($it) };
    (@pattern $Name:ident $Kind:ident $it:ident) => { Self::$Kind };
    (@entry $map:ident $content:literal $it:ident $Of:ty) => { $map.serialize_entry($content, $it)?; };
    (@entry $map:ident $content:literal $it:ident = $written:expr) => {
        $map.serialize_entry($content, &$written)?;
    };
    (@entry $map:ident $content:literal $it:ident) => {};
    (@members $it:ident ($Of:ty)) => { $it };
    (@members $it:ident ($Of:ty) $member:literal) => {{
        #[derive($crate::json::serde::Serialize)]
        #[serde(crate = "rpc_core::json::serde")]
        struct One<'o> {
            #[serde(rename = $member)]
            it: &'o $Of,
        }
        One { it: $it }
    }};
    (@members $it:ident) => { $crate::json::Nothing {} };
    (@kind $Of:ty) => { $crate::json::TagKind::Content };
    (@kind) => { $crate::json::TagKind::Unit };
    (@read $content:ident $Kind:ident ($Of:ty)) => {
        <$Of as $crate::json::serde::Deserialize>::deserialize($content).map(Self::$Kind)
    };
    (@read $content:ident $Kind:ident ($Of:ty) $member:literal) => {{
        #[derive($crate::json::serde::Deserialize)]
        #[serde(crate = "rpc_core::json::serde")]
        struct One {
            #[serde(rename = $member)]
            it: $Of,
        }
        <One as $crate::json::serde::Deserialize>::deserialize($content).map(|one| Self::$Kind(one.it))
    }};
    (@read $content:ident $Kind:ident) => { Ok(Self::$Kind) };
    (@without $Name:ident $Kind:ident $Of:ty) => {
        Err(E::missing_field(<Self as $crate::json::Tagged>::CONTENT.unwrap_or_default()))
    };
    (@without $Name:ident $Kind:ident) => { Ok(Self::$Kind) };
    (@unknown $tag:ident $raw:ident content) => {
        Self::Unknown { tag: $tag.into(), content: $raw }
    };
    (@unknown $tag:ident $raw:ident raw) => {
        Self::Unknown { tag: $tag.into(), raw: $raw.unwrap_or_default() }
    };
    (@raw $self:ident content) => { None };
    (@raw $self:ident raw) => {
        match $self {
            Self::Unknown { raw, .. } => Some(raw),
            _ => None,
        }
    };

    // A struct: an enum and what stands beside it.
    ($(#[$meta:meta])* $vis:vis struct $Name:ident {$($members:tt)*} $(then $then:path)?) => {
        $crate::tagged!(@split [$(#[$meta])* $vis struct $Name] [$($then)?] [] $($members)*);
    };
    (@split [$($head:tt)*] $then:tt $before:tt
        $(#[$doc:meta])* .. => $body_vis:vis $body:ident: $Body:ty, $($after:tt)*
    ) => {
        $crate::tagged!(@struct $($head)* $then $before [$(#[$doc])* $body_vis $body: $Body,] [$($after)*]);
    };
    (@split $head:tt $then:tt [$($before:tt)*]
        $(#[$doc:meta])* $word:literal => $member_vis:vis $member:ident: $Of:ty, $($rest:tt)*
    ) => {
        $crate::tagged!(@split $head $then
            [$($before)* $(#[$doc])* $word => $member_vis $member: $Of,] $($rest)*);
    };
    (@struct $(#[$meta:meta])* $vis:vis struct $Name:ident
        [$($then:path)?]
        [$($(#[$before_doc:meta])* $before_word:literal => $before_vis:vis $before:ident: $Before:ty,)*]
        [$(#[$body_doc:meta])* $body_vis:vis $body:ident: $Body:ty,]
        [$($(#[$after_doc:meta])* $after_word:literal => $after_vis:vis $after:ident: $After:ty,)*]
    ) => {
        $(#[$meta])*
        $vis struct $Name {
            $($(#[$before_doc])* $before_vis $before: $Before,)*
            $(#[$body_doc])* $body_vis $body: $Body,
            $($(#[$after_doc])* $after_vis $after: $After,)*
        }

        impl<'de> $crate::json::serde::Deserialize<'de> for $Name {
            #[inline]
            fn deserialize<D: $crate::json::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::read_rest(None, from)
            }
        }

        impl $Name {
            /// Reads what is left of an object whose tag was read before.
            #[doc(hidden)]
            #[inline]
            $vis fn read_rest<'de, D: $crate::json::serde::Deserializer<'de>>(
                tag: Option<&str>,
                from: D,
            ) -> Result<Self, D::Error> {
                $crate::tagged!(@members_of Beside $Body {
                    $($before_word => $before: $Before,)*
                    $($after_word => $after: $After,)*
                });
                let (beside, $body) = match tag {
                    None => $crate::json::tagged::read::<D, Beside, $Body>(from)?,
                    Some(tag) => $crate::json::tagged::read_rest::<D, Beside, $Body>(tag, from)?,
                };
                let read = Self {
                    $($before: match beside.$before {
                        Some(it) => it,
                        None => $crate::json::tagged::absent($before_word)?,
                    },)*
                    $body,
                    $($after: match beside.$after {
                        Some(it) => it,
                        None => $crate::json::tagged::absent($after_word)?,
                    },)*
                };
                $(let read = $then(read)?;)?
                Ok(read)
            }
        }

        impl $crate::json::serde::Serialize for $Name {
            fn serialize<S: $crate::json::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                #[allow(unused_imports)]
                use $crate::json::tagged::{Always as _, Member};
                if let Some(raw) = $crate::json::Tagged::raw(&self.$body) {
                    return raw.serialize(to);
                }
                #[derive($crate::json::serde::Serialize)]
                #[serde(crate = "rpc_core::json::serde")]
                struct Object<'o> {
                    $(
                        #[serde(rename = $before_word, skip_serializing_if = "Option::is_none")]
                        $before: Option<&'o $Before>,
                    )*
                    #[serde(flatten)]
                    $body: &'o $Body,
                    $(
                        #[serde(rename = $after_word, skip_serializing_if = "Option::is_none")]
                        $after: Option<&'o $After>,
                    )*
                }
                let object = Object {
                    $($before: Member(&self.$before).written(),)*
                    $body: &self.$body,
                    $($after: Member(&self.$after).written(),)*
                };
                object.serialize(to)
            }
        }
    };

    (@members_of $Members:ident $Body:ty {$($word:literal => $field:ident: $Of:ty,)*}) => {
        #[derive(Default)]
        struct $Members {
            $($field: Option<$Of>,)*
        }
        impl $crate::json::Common for $Members {
            const NAMES: &'static [&'static str] = &[
                <$Body as $crate::json::Tagged>::TAG,
                match <$Body as $crate::json::Tagged>::CONTENT {
                    Some(name) => name,
                    None => "",
                },
                $($word,)*
            ];

            #[inline]
            #[allow(unused_variables)]
            fn take<'de, A: $crate::json::serde::de::MapAccess<'de>>(
                &mut self,
                name: &str,
                map: &mut A,
            ) -> Result<bool, A::Error> {
                match name {
                    $($word => {
                        if self.$field.is_some() {
                            return Err($crate::json::serde::de::Error::duplicate_field($word));
                        }
                        self.$field = Some(map.next_value()?);
                    })*
                    _ => return Ok(false),
                }
                #[allow(unreachable_code)]
                Ok(true)
            }
        }
    };
}
