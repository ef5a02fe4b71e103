//! [`words!`]: enums whose values are words on the wire.

/// An enum of words: closed, or with `.. => Other` for words that are not known.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$doc:meta])* $word:literal => $Kind:ident,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Name {
            $($(#[$doc])* $Kind,)*
        }

        impl $Name {
            /// All of them, in their order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$Kind),*];

            /// The word on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Kind => $word,)*
                }
            }

            /// The value of this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.name() == name)
            }
        }

        #[automatically_derived]
        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        #[automatically_derived]
        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = rpc_core::Str::deserialize(from)?;
                let unknown = || serde::de::Error::unknown_variant(&name, &[$($word),*]);
                Self::parse(&name).ok_or_else(unknown)
            }
        }
    };

    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$doc:meta])* $word:literal => $Kind:ident,)*
        .. => Other,
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Name {
            $($(#[$doc])* $Kind,)*
            /// A word that this crate does not know.
            Other(rpc_core::Str),
        }

        impl $Name {
            /// The word on the wire.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Kind => $word,)*
                    Self::Other(name) => name,
                }
            }
        }

        #[automatically_derived]
        impl From<rpc_core::Str> for $Name {
            fn from(name: rpc_core::Str) -> Self {
                match &*name {
                    $($word => Self::$Kind,)*
                    _ => Self::Other(name),
                }
            }
        }

        #[automatically_derived]
        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }
    };
}

pub(crate) use words;
