//! [`frames!`]: all frames of one direction, by their types on the wire.

/// An enum of frames by their types: those with members, read by a derive and then, if there is a `then`,
/// by that function; those that are nothing but their type (`alone`); and families of several types
/// (`others`), each with the type of a member of it. For the last ones, the enum has three functions:
/// `kind_of_other`, `read_other`, and `unknown` for a frame of a type that nobody knows.
macro_rules! frames {
    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$doc:meta])* $word:literal => $Kind:ident($Of:ty) $(then $then:path)?,)*
    } alone {
        $($(#[$alone_doc:meta])* $alone:literal => $Alone:ident,)*
    } others {
        $($(#[$other_doc:meta])* $Other:ident($it:ident: $OtherOf:ty) = $name:expr,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $Name {
            $($(#[$doc])* $Kind($Of),)*
            $($(#[$alone_doc])* $Alone,)*
            $($(#[$other_doc])* $Other($OtherOf),)*
            /// A frame of any other type.
            Unknown {
                /// Its type.
                tag: rpc_core::Str,
                /// The whole frame.
                raw: rpc_core::Json,
            },
        }

        impl $Name {
            /// The type on the wire.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Kind(_) => $word,)*
                    $(Self::$Alone => $alone,)*
                    $(Self::$Other($it) => $name,)*
                    Self::Unknown { tag, .. } => tag,
                }
            }
        }

        #[automatically_derived]
        impl rpc_core::json::Tagged for $Name {
            const TAG: &'static str = "type";
            const CONTENT: Option<&'static str> = None;
            /// Without those of the others.
            const TAGS: &'static [&'static str] = &[$($word,)* $($alone,)*];

            fn kind(tag: &str) -> TagKind {
                match tag {
                    $($word)|* => TagKind::Content,
                    $($alone)|* => TagKind::Unit,
                    other => Self::kind_of_other(other),
                }
            }

            fn read<'de, D: Deserializer<'de>>(tag: &str, from: D) -> Result<Self, D::Error> {
                match tag {
                    $($word => <$Of>::deserialize(from)$(.map($then))?.map(Self::$Kind),)*
                    other => Self::read_other(other, from),
                }
            }

            fn without<E>(tag: &str, raw: Option<rpc_core::Json>) -> Result<Self, E> {
                Ok(match tag {
                    $($alone => Self::$Alone,)*
                    other => Self::unknown(other.into(), raw.unwrap_or_default()),
                })
            }
        }

        #[automatically_derived]
        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                rpc_core::json::tagged::read_alone(from)
            }
        }

        #[automatically_derived]
        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$Kind(frame) => frame.serialize(to),)*
                    $(Self::$Alone => to.collect_map([("type", $alone)]),)*
                    $(Self::$Other(frame) => frame.serialize(to),)*
                    Self::Unknown { raw, .. } => raw.serialize(to),
                }
            }
        }

        /// Prints the type only: the rest is private.
        #[automatically_derived]
        impl std::fmt::Debug for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({:?})", stringify!($Name), self.name())
            }
        }
    };
}

pub(super) use frames;
