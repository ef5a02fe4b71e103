//! [`members!`](crate::members).

/// Declares structs that are objects on the wire: what is `None` is not written, and later versions may add
/// members.
///
/// The structs derive the traits of `serde`, with its attributes. After `as` stands the function that reads a
/// member, which `deserialize_with` names elsewhere; an optional member may still be absent.
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
///         /// The number, also of a guest.
///         pub id: Option<String> as "rpc_core::json::lenient::optional_id",
///     }
/// }
///
/// let user = User { name: "ann".to_owned(), ..User::default() };
/// assert_eq!(serde_json::to_string(&user)?, r#"{"name":"ann"}"#);
/// let user: User = serde_json::from_str(r#"{"name":"bob","id":7}"#)?;
/// assert_eq!(user.id.as_deref(), Some("7"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[macro_export]
macro_rules! members {
    (@struct [$($head:tt)*] [$($done:tt)*]) => {
        $($head)* { $($done)* }
    };
    (@struct $head:tt [$($done:tt)*]
        $(#[$meta:meta])* $vis:vis $member:ident: Option<$T:ty> $(as $read:literal)?, $($rest:tt)*) => {
        $crate::members!(@struct $head [
            $($done)*
            $(#[$meta])*
            $(#[serde(default, deserialize_with = $read)])?
            #[serde(skip_serializing_if = "Option::is_none")]
            $vis $member: Option<$T>,
        ] $($rest)*);
    };
    (@struct $head:tt [$($done:tt)*]
        $(#[$meta:meta])* $vis:vis $member:ident: $T:ty $(as $read:literal)?, $($rest:tt)*) => {
        $crate::members!(@struct $head [
            $($done)*
            $(#[$meta])*
            $(#[serde(deserialize_with = $read)])?
            $vis $member: $T,
        ] $($rest)*);
    };
    ($($(#[$meta:meta])* $vis:vis struct $Name:ident { $($members:tt)* })+) => {
        $($crate::members!(@struct [
            $(#[$meta])*
            #[non_exhaustive]
            $vis struct $Name
        ] [] $($members)*);)+
    };
}
