//! [`dynamic!`](crate::dynamic): a type that holds any implementation of a trait with `async fn`.

/// Declares a type that holds any implementation of a trait, and implements the trait for it and for an `Arc`.
#[doc(hidden)]
#[macro_export]
macro_rules! dynamic {
    ($(#[$meta:meta])* $vis:vis struct $Dyn:ident($object:ident): $Trait:ident {
        $(async fn $f:ident(&self $(, $a:ident: $A:ty)*) $(-> $R:ty)?;)*
        $(fn $g:ident(&self $(, $b:ident: $B:ty)*) $(-> $S:ty)?;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone)]
        $vis struct $Dyn(std::sync::Arc<dyn $object::Object>);

        impl $Dyn {
            /// Holds this implementation.
            pub fn new(inner: impl $Trait) -> Self {
                Self(std::sync::Arc::new(inner))
            }
        }

        impl std::fmt::Debug for $Dyn {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($Dyn))
            }
        }

        /// The trait with boxed futures, out of the way of whoever calls the other one's methods.
        mod $object {
            use super::*;

            #[$crate::net::async_trait]
            pub(super) trait Object: Send + Sync + 'static {
                $(async fn $f(&self $(, $a: $A)*) $(-> $R)?;)*
                $(fn $g(&self $(, $b: $B)*) $(-> $S)?;)*
            }

            #[$crate::net::async_trait]
            impl<T: $Trait> Object for T {
                $(async fn $f(&self $(, $a: $A)*) $(-> $R)? {
                    <T as $Trait>::$f(self $(, $a)*).await
                })*
                $(fn $g(&self $(, $b: $B)*) $(-> $S)? {
                    <T as $Trait>::$g(self $(, $b)*)
                })*
            }
        }

        impl $Trait for $Dyn {
            $(async fn $f(&self $(, $a: $A)*) $(-> $R)? {
                $object::Object::$f(&*self.0 $(, $a)*).await
            })*
            $(fn $g(&self $(, $b: $B)*) $(-> $S)? {
                $object::Object::$g(&*self.0 $(, $b)*)
            })*
        }

        impl<T: $Trait> $Trait for std::sync::Arc<T> {
            $(async fn $f(&self $(, $a: $A)*) $(-> $R)? {
                <T as $Trait>::$f(self $(, $a)*).await
            })*
            $(fn $g(&self $(, $b: $B)*) $(-> $S)? {
                <T as $Trait>::$g(self $(, $b)*)
            })*
        }
    };
}
