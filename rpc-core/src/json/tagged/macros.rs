//! [`tagged!`](crate::tagged).

/// Declares types for objects whose members depend on a tag.
///
/// An **enum** has a variant for each tag, with its content in one type, or without content. The
/// content is the member that `in` names, or all members. An unknown tag becomes `Unknown` and is
/// written as it was read. `tag()` returns the tag on the wire.
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
/// A variant may be followed by
/// - `in "text"`: its content is one member without a type of its own:
///   `"text" => Text(Str) in "text"` is `{"type": "text", "text": "…"}`. Attributes of `serde` may
///   precede the member's name;
/// - `or Unknown`: an object whose content cannot be read becomes unknown instead of an error;
/// - `= Json::EMPTY_OBJECT`: the content to write for a tag without content.
///
/// A **struct** has the members that all variants of an object share, and one `..` for the enum:
/// `Option` of it if the tag is optional. A member with a `deserialize_with` function names it
/// after its type: `"id" => pub id: Str as lenient::id`. Members are written in this order, without
/// those that are `None`; an object with an unknown tag is written as it was read, whatever its
/// members say. After the struct, `then` may name a function that completes or rejects the value:
/// `fn<E: serde::de::Error>(&mut Self) -> Result<(), E>`.
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
    ($(#[$meta:meta])* $vis:vis enum $Name:ident by $tag:literal in $content:literal $variants:tt) => {
        $crate::tagged!(@enum [$(#[$meta])* $vis enum $Name] $tag [$content] $variants
            raw [/** The content, raw; `None` if there is none. */ content: Option<$crate::Json>]);
    };

    // An enum whose content is all other members.
    ($(#[$meta:meta])* $vis:vis enum $Name:ident by $tag:literal $variants:tt) => {
        $crate::tagged!(@enum [$(#[$meta])* $vis enum $Name] $tag [] $variants
            raw [/** The whole object, raw. */ raw: $crate::Json]);
    };

    (@enum [$(#[$meta:meta])* $vis:vis enum $Name:ident] $tag:literal $content:tt {
        $(
            $(#[$doc:meta])* $word:literal => $Kind:ident $(($Of:ty))?
            $(in $(#[$one:meta])* $member:literal)? $(or $open:ident)? $(= $written:expr)?,
        )*
    } $raw:ident [$(#[$raw_doc:meta])* $field:ident: $Raw:ty]) => {
        $(#[$meta])*
        #[non_exhaustive]
        $vis enum $Name {
            $($(#[$doc])* $Kind $(($Of))?,)*
            /// An unknown tag.
            Unknown {
                /// The tag.
                tag: $crate::Str,
                $(#[$raw_doc])*
                $field: $Raw,
            },
        }

        $crate::tagged!(@common ($vis) $Name $tag $content {$(
            $word => $Kind $(($Of))? {$(in {$(#[$one])* $member})? $(or $open)? $(= $written)?},
        )*} $raw $field);
    };

    (@common ($vis:vis) $Name:ident $tag:literal $content:tt {
        $($word:literal => $Kind:ident $(($Of:ty))? {$($how:tt)*},)*
    } $raw:ident $field:ident) => {
        impl $Name {
            /// Returns the tag on the wire.
            #[must_use]
            #[allow(dead_code)]
            $vis fn tag(&self) -> &str {
                match self {
                    $($crate::tagged!(@pattern $Name $Kind _it $($Of)?) => $word,)*
                    Self::Unknown { tag, .. } => tag,
                }
            }
        }

        #[doc(hidden)]
        #[automatically_derived]
        impl $crate::json::Tagged for $Name {
            const TAG: &'static str = $tag;
            const CONTENT: Option<&'static str> = $crate::tagged!(@content $content);
            const TAGS: &'static [&'static str] = &[$($word,)*];

            #[inline]
            fn kind(tag: &str) -> $crate::json::TagKind {
                match tag {
                    $($word => $crate::tagged!(@kind $(($Of))? {$($how)*}),)*
                    _ => $crate::json::TagKind::Unknown,
                }
            }

            #[inline]
            fn read<'de, D: $crate::json::serde::Deserializer<'de>>(
                tag: &str,
                content: D,
            ) -> Result<Self, D::Error> {
                match tag {
                    $($word => $crate::tagged!(@read content $Kind $(($Of))? {$($how)*}),)*
                    // Not asked for by this kind.
                    _ => Self::without(tag, None),
                }
            }

            fn without<E: $crate::json::serde::de::Error>(
                tag: &str,
                $raw: Option<$crate::Json>,
            ) -> Result<Self, E> {
                match tag {
                    $($word => $crate::tagged!(@without tag $raw $field $Kind $(($Of))? {$($how)*}),)*
                    _ => Ok($crate::tagged!(@unknown tag $raw $field)),
                }
            }

            fn raw(&self) -> Option<&$crate::Json> {
                $crate::tagged!(@raw self $field)
            }

            #[inline]
            fn write<M: $crate::json::serde::ser::SerializeMap>(
                &self,
                map: &mut M,
            ) -> Result<(), M::Error> {
                match self {
                    $($crate::tagged!(@pattern $Name $Kind _it $($Of)?) => {
                        map.serialize_entry(
                            &$crate::json::tagged::Word($tag),
                            &$crate::json::tagged::Word($word),
                        )?;
                        $crate::tagged!(@write map $content _it $(($Of))? {$($how)*})
                    })*
                    Self::Unknown { tag, $field: _raw } => {
                        map.serialize_entry(&$crate::json::tagged::Word($tag), tag)?;
                        $crate::tagged!(@write_unknown map $content _raw)
                    }
                }
            }
        }

        #[automatically_derived]
        impl $crate::json::serde::Serialize for $Name {
            fn serialize<S: $crate::json::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use $crate::json::serde::ser::SerializeMap as _;
                if let Some(raw) = $crate::json::Tagged::raw(self) {
                    return raw.serialize(to);
                }
                let mut map = to.serialize_map(None)?;
                $crate::json::Tagged::write(self, &mut map)?;
                map.end()
            }
        }

        #[automatically_derived]
        impl<'de> $crate::json::serde::Deserialize<'de> for $Name {
            #[inline]
            fn deserialize<D: $crate::json::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::json::tagged::read_alone(from)
            }
        }
    };

    (@pattern $Name:ident $Kind:ident $it:ident $Of:ty) => { Self::$Kind($it) };
    (@pattern $Name:ident $Kind:ident $it:ident) => { Self::$Kind };
    (@content [$content:literal]) => { Some($content) };
    (@content []) => { None };
    (@one $it:ident $Of:ty, $(#[$one:meta])* $member:literal) => {{
        #[derive($crate::json::serde::Serialize)]
        #[serde(crate = "rpc_core::json::serde")]
        struct One<'o> {
            $(#[$one])*
            #[serde(rename = $member)]
            it: &'o $Of,
        }
        One { it: $it }
    }};
    (@write $map:ident $content:tt $it:ident {}) => { Ok(()) };
    (@write $map:ident [$content:literal] $it:ident {= $written:expr}) => {
        $map.serialize_entry(&$crate::json::tagged::Word($content), &$written)
    };
    (@write $map:ident [$content:literal] $it:ident ($Of:ty) {
        in {$(#[$one:meta])* $member:literal} $(or $open:ident)?
    }) => {
        $map.serialize_entry(
            &$crate::json::tagged::Word($content),
            &$crate::tagged!(@one $it $Of, $(#[$one])* $member),
        )
    };
    (@write $map:ident [$content:literal] $it:ident ($Of:ty) $how:tt) => {
        $map.serialize_entry(&$crate::json::tagged::Word($content), $it)
    };
    (@write $map:ident [] $it:ident ($Of:ty) {
        in {$(#[$one:meta])* $member:literal} $(or $open:ident)?
    }) => {
        $crate::json::tagged::flatten(&$crate::tagged!(@one $it $Of, $(#[$one])* $member), $map)
    };
    (@write $map:ident [] $it:ident ($Of:ty) $how:tt) => {
        $crate::json::tagged::flatten($it, $map)
    };
    (@write_unknown $map:ident [$content:literal] $it:ident) => {
        $it.as_ref().map_or(Ok(()), |it| {
            $map.serialize_entry(&$crate::json::tagged::Word($content), it)
        })
    };
    (@write_unknown $map:ident [] $it:ident) => { Ok(()) };
    (@kind $how:tt) => { $crate::json::TagKind::Unit };
    (@kind ($Of:ty) {$(in $member:tt)? or Unknown}) => { $crate::json::TagKind::Open };
    (@kind ($Of:ty) $how:tt) => { $crate::json::TagKind::Content };
    (@read $content:ident $Kind:ident $how:tt) => { Ok(Self::$Kind) };
    (@read $content:ident $Kind:ident ($Of:ty) {
        in {$(#[$one:meta])* $member:literal} $(or $open:ident)?
    }) => {{
        #[derive($crate::json::serde::Deserialize)]
        #[serde(crate = "rpc_core::json::serde")]
        struct One {
            $(#[$one])*
            #[serde(rename = $member)]
            it: $Of,
        }
        <One as $crate::json::serde::Deserialize>::deserialize($content).map(|one| Self::$Kind(one.it))
    }};
    (@read $content:ident $Kind:ident ($Of:ty) $how:tt) => {
        <$Of as $crate::json::serde::Deserialize>::deserialize($content).map(Self::$Kind)
    };
    (@without $tag:ident $raw:ident $field:ident $Kind:ident $how:tt) => { Ok(Self::$Kind) };
    (@without $tag:ident $raw:ident $field:ident $Kind:ident ($Of:ty) {$(in $member:tt)? or Unknown}) => {
        Ok($crate::tagged!(@unknown $tag $raw $field))
    };
    (@without $tag:ident $raw:ident $field:ident $Kind:ident ($Of:ty) $how:tt) => {
        Err(E::missing_field(<Self as $crate::json::Tagged>::CONTENT.unwrap_or_default()))
    };
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
    ($(#[$meta:meta])* $vis:vis struct $Name:ident { $($members:tt)* } $(then $then:path)?) => {
        $crate::tagged!(@split [$(#[$meta])* $vis struct $Name $(then $then)?] [] [$($members)*]);
    };
    // Of the members, the enum is the one without a name.
    (@split $head:tt $before:tt [
        $(#[$doc:meta])* .. => $vis:vis $body:ident: $Body:ty, $($after:tt)*
    ]) => {
        $crate::tagged!(@struct $head $before [$(#[$doc])* $vis $body: $Body] [$($after)*]);
    };
    (@split $head:tt [$($before:tt)*] [
        $(#[$doc:meta])* $word:literal => $vis:vis $field:ident: $Of:ty $(as $read:path)?, $($after:tt)*
    ]) => {
        $crate::tagged!(@split
            $head [$($before)* $(#[$doc])* $word => $vis $field: $Of $(as $read)?,] [$($after)*]
        );
    };
    (@struct [$(#[$meta:meta])* $vis:vis struct $Name:ident $(then $then:path)?]
        [$(
            $(#[$before_doc:meta])*
            $before_word:literal => $before_vis:vis $before:ident: $Before:ty $(as $before_read:path)?,
        )*]
        [$(#[$body_doc:meta])* $body_vis:vis $body:ident: $Body:ty]
        [$(
            $(#[$after_doc:meta])*
            $after_word:literal => $after_vis:vis $after:ident: $After:ty $(as $after_read:path)?,
        )*]
    ) => {
        $(#[$meta])*
        $vis struct $Name {
            $($(#[$before_doc])* $before_vis $before: $Before,)*
            $(#[$body_doc])* $body_vis $body: $Body,
            $($(#[$after_doc])* $after_vis $after: $After,)*
        }

        #[automatically_derived]
        impl<'de> $crate::json::serde::Deserialize<'de> for $Name {
            #[inline]
            fn deserialize<D: $crate::json::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::read_rest(None, from)
            }
        }

        impl $Name {
            /// Reads the rest of an object whose tag was read before.
            #[doc(hidden)]
            #[inline]
            $vis fn read_rest<'de, D: $crate::json::serde::Deserializer<'de>>(
                tag: Option<&str>,
                from: D,
            ) -> Result<Self, D::Error> {
                $crate::tagged!(@members_of Beside $Body {
                    $($before_word => $before: $Before $(as $before_read)?,)*
                    $($after_word => $after: $After $(as $after_read)?,)*
                });
                let mut beside = Beside::default();
                let $body = $crate::json::tagged::read::<D, Beside, $Body>(tag, &mut beside, from)?;
                #[allow(unused_mut)]
                let mut read = Self {
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
                $($then(&mut read)?;)?
                Ok(read)
            }
        }

        #[automatically_derived]
        impl $crate::json::serde::Serialize for $Name {
            fn serialize<S: $crate::json::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                #[allow(unused_imports)]
                use $crate::json::serde::ser::SerializeMap as _;
                #[allow(unused_imports)]
                use $crate::json::tagged::{Always as _, Member, Word};
                if let Some(raw) = $crate::json::Tagged::raw(&self.$body) {
                    return raw.serialize(to);
                }
                let mut map = to.serialize_map(None)?;
                $(if let Some(it) = Member(&self.$before).written() {
                    map.serialize_entry(&Word($before_word), it)?;
                })*
                $crate::json::Tagged::write(&self.$body, &mut map)?;
                $(if let Some(it) = Member(&self.$after).written() {
                    map.serialize_entry(&Word($after_word), it)?;
                })*
                map.end()
            }
        }
    };

    (@value $map:ident $Of:ty) => { $map.next_value::<$Of>() };
    (@value $map:ident $Of:ty as $read:path) => {{
        struct Value($Of);
        #[automatically_derived]
        impl<'de> $crate::json::serde::Deserialize<'de> for Value {
            fn deserialize<D: $crate::json::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $read(from).map(Self)
            }
        }
        $map.next_value::<Value>().map(|Value(value)| value)
    }};

    (@members_of $Members:ident $Body:ty {
        $($word:literal => $field:ident: $Of:ty $(as $read:path)?,)*
    }) => {
        #[derive(Default)]
        struct $Members {
            $($field: Option<$Of>,)*
        }
        #[automatically_derived]
        impl $crate::json::tagged::Common for $Members {
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
                        self.$field = Some($crate::tagged!(@value map $Of $(as $read)?)?);
                    })*
                    _ => return Ok(false),
                }
                #[allow(unreachable_code)]
                Ok(true)
            }
        }
    };
}
