//! [`members!`](crate::members).

/// Declares structs that are objects on the wire: what is `None` is not written, and later versions may add
/// members.
///
/// The attributes of `serde`, which the structs derive, are those of any other struct.
///
/// ```
/// rpc_core::members! {
///     /// Who is there.
///     #[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
///     pub struct User {
///         /// The name.
///         pub name: String,
///         /// The color, if there is one.
///         pub color: Option<String>,
///     }
/// }
///
/// let user = User { name: "ann".to_owned(), ..User::default() };
/// assert_eq!(serde_json::to_string(&user)?, r#"{"name":"ann"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[macro_export]
macro_rules! members {
    (@struct [$($head:tt)*] [$($done:tt)*]) => {
        $($head)* { $($done)* }
    };
    (@struct $head:tt [$($done:tt)*]
        $(#[$meta:meta])* $vis:vis $member:ident: Option<$T:ty>, $($rest:tt)*) => {
        $crate::members!(@struct $head [
            $($done)*
            $(#[$meta])*
            #[serde(skip_serializing_if = "Option::is_none")]
            $vis $member: Option<$T>,
        ] $($rest)*);
    };
    (@struct $head:tt [$($done:tt)*]
        $(#[$meta:meta])* $vis:vis $member:ident: $T:ty, $($rest:tt)*) => {
        $crate::members!(@struct $head [$($done)* $(#[$meta])* $vis $member: $T,] $($rest)*);
    };
    ($($(#[$meta:meta])* $vis:vis struct $Name:ident { $($members:tt)* })+) => {
        $($crate::members!(@struct [
            $(#[$meta])*
            #[non_exhaustive]
            $vis struct $Name
        ] [] $($members)*);)+
    };
}
