//! [`config!`](crate::config).

/// Declares a configuration struct: fields, their defaults, and a `with_*` setter or a public field
/// for each.
///
/// A field names its default and, after `=>`, its setter. The struct implements `Default`, so
/// `Options { timeout, ..Options::default() }` sets a field without a setter. Each setter has the
/// documentation of its field: meaning, unit and default.
///
/// ```
/// use std::time::Duration;
///
/// rpc_core::config! {
///     /// How long to wait, and as whom.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Options {
///         /// How long each call waits for its answer. Default 30 s.
///         pub timeout: Duration = Duration::from_secs(30) => with_timeout,
///         /// The name to log in with. Default `guest`.
///         pub name: String = "guest".to_owned() => with_name(impl Into<String>),
///     }
/// }
///
/// let options = Options::default().with_name("ann");
/// assert_eq!((options.timeout.as_secs(), &*options.name), (30, "ann"));
/// ```
///
/// - `=> with_timeout` is a `const fn` that takes the field's type.
/// - `=> with_name(impl Into<String>)` takes this type and converts it with [`Into`]. A type with a
///   destructor needs this form, with itself: its setter cannot be `const`.
/// - `=> #[cfg(feature = "tls")]` is for a field that only some features have.
/// - Without `=>` there is no setter: the field is required, private, or has a handwritten setter.
///
/// If a field has no default, a constructor after the struct replaces `Default`. It computes the
/// fields from its arguments:
///
/// ```
/// rpc_core::config! {
///     /// Who logs in.
///     #[derive(Clone, Debug)]
///     pub struct Login {
///         /// The login name.
///         pub name: String = name.into(),
///         /// Whether to try again. Default yes.
///         pub retry: bool = true => with_retry,
///     }
///     /// Logs in with this name; everything else by default.
///     pub fn new(name: impl Into<String>);
/// }
///
/// assert_eq!(Login::new("ann").with_retry(false).name, "ann");
/// ```
#[macro_export]
macro_rules! config {
    // `Default`, unless there is a constructor.
    (@default $Name:ident $fields:tt) => {
        #[automatically_derived]
        impl Default for $Name {
            fn default() -> Self {
                Self $fields
            }
        }
    };
    (@default $Name:ident $fields:tt $($new:tt)+) => {};

    // The constructor, if there is one.
    (@new $fields:tt) => {};
    (@new $fields:tt $(#[$doc:meta])* $vis:vis fn $new:ident $args:tt;) => {
        $(#[$doc])*
        #[must_use]
        $vis fn $new $args -> Self {
            Self $fields
        }
    };

    // A setter, if the field has one.
    (@set $docs:tt $field:ident: $T:ty) => {};
    (@set [$($docs:tt)*] $field:ident: $T:ty => $with:ident) => {
        $($docs)*
        #[must_use]
        pub const fn $with(mut self, $field: $T) -> Self {
            self.$field = $field;
            self
        }
    };
    (@set [$($docs:tt)*] $field:ident: $T:ty => $with:ident ($From:ty)) => {
        $($docs)*
        #[must_use]
        pub fn $with(mut self, $field: $From) -> Self {
            self.$field = $field.into();
            self
        }
    };

    ($(#[$meta:meta])* $vis:vis struct $Name:ident {
        $(
            $(#[$doc:meta])* $field_vis:vis $field:ident: $T:ty = $default:expr
            $(=> $with:ident $(($From:ty))?)? $(=> #[$cfg:meta])?,
        )*
    } $($new:tt)*) => {
        $(#[$meta])*
        $vis struct $Name {
            $($(#[$doc])* $(#[$cfg])? $field_vis $field: $T,)*
        }

        $crate::config!(@default $Name { $($(#[$cfg])? $field: $default,)* } $($new)*);

        impl $Name {
            $crate::config!(@new { $($(#[$cfg])? $field: $default,)* } $($new)*);
            $($crate::config!(@set [$(#[$doc])*] $field: $T $(=> $with $(($From))?)?);)*
        }
    };
}
