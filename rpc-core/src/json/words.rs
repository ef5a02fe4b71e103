//! [`words!`](crate::words).

/// Declares an enum whose values are words on the wire: closed, or with `.. => Other` for unknown
/// words.
///
/// ```
/// rpc_core::words! {
///     /// How bad something is.
///     pub enum Level {
///         /// Something may be wrong.
///         "warn" => Warn,
///         .. => Other,
///     }
/// }
///
/// assert_eq!(serde_json::to_string(&Level::Warn)?, r#""warn""#);
/// let level: Level = serde_json::from_str(r#""bad""#)?;
/// assert_eq!(level.name(), "bad");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$doc:meta])* $word:literal => $Kind:ident,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(clippy::exhaustive_enums)] // All words that the specification has.
        pub enum $Name {
            $($(#[$doc])* $Kind,)*
        }

        impl $Name {
            /// All values, in order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$Kind),*];

            /// Returns the word on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Kind => $word,)*
                }
            }

            /// Returns the value for this word.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.name() == name)
            }
        }

        $crate::words!(@serialize $Name);

        #[automatically_derived]
        impl<'de> $crate::json::serde::Deserialize<'de> for $Name {
            fn deserialize<D: $crate::json::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = <$crate::Str as $crate::json::serde::Deserialize>::deserialize(from)?;
                let unknown = || $crate::json::serde::de::Error::unknown_variant(&name, &[$($word),*]);
                Self::parse(&name).ok_or_else(unknown)
            }
        }
    };

    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$doc:meta])* $word:literal => $Kind:ident,)*
        .. => Other,
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Name {
            $($(#[$doc])* $Kind,)*
            /// An unknown word.
            Other($crate::Str),
        }

        impl $Name {
            /// Returns the word on the wire.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Kind => $word,)*
                    Self::Other(name) => name,
                }
            }
        }

        #[automatically_derived]
        impl From<$crate::Str> for $Name {
            fn from(name: $crate::Str) -> Self {
                match &*name {
                    $($word => Self::$Kind,)*
                    _ => Self::Other(name),
                }
            }
        }

        #[automatically_derived]
        impl<'de> $crate::json::serde::Deserialize<'de> for $Name {
            fn deserialize<D: $crate::json::serde::Deserializer<'de>>(
                from: D,
            ) -> Result<Self, D::Error> {
                let name = <$crate::Str as $crate::json::serde::Deserialize>::deserialize(from)?;
                Ok(Self::from(name))
            }
        }

        $crate::words!(@serialize $Name);
    };

    (@serialize $Name:ident) => {
        #[automatically_derived]
        impl $crate::json::serde::Serialize for $Name {
            fn serialize<S: $crate::json::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }
    };
}
