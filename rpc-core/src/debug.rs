//! Implementations that types of several crates have alike: `debug_fields!`, a `Debug` that prints what says
//! something, in one line, and `from_failures!`.

/// Implements `Debug` with these values in place of the fields: `[generics] Type, this => { name: value }`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_fields {
    ([$($generics:tt)*] $Name:ident $(<$($arg:tt),*>)?, $this:pat => {
        $($field:ident: $value:expr),* $(,)?
    }) => {
        #[automatically_derived]
        impl<$($generics)*> std::fmt::Debug for $Name $(<$($arg),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($Name))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use debug_fields;

/// Lets a handler end with `?` at an error of the system, or a boxed one: its words become those of this error,
/// by the function that creates a failure.
#[doc(hidden)]
#[macro_export]
macro_rules! from_failures {
    ($Error:ty, $failed:expr) => {
        impl From<std::io::Error> for $Error {
            fn from(error: std::io::Error) -> Self {
                $failed(error.to_string())
            }
        }

        impl From<Box<dyn std::error::Error + Send + Sync>> for $Error {
            fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
                $failed(error.to_string())
            }
        }
    };
}
