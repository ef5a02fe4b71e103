//! `debug_fields!`: a `Debug` that prints what says something, in one line.

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
