//! Names by which the types of this crate ask a [`Deserializer`](super::Deserializer) for what `serde`
//! has no method for. Any other deserializer takes them for the names of types.

/// A value as it stands in the text: the name that `serde_json` has for it, which is not public there.
pub(crate) const RAW: &str = "$serde_json::private::RawValue";
/// A string, or a number as its digits.
pub(crate) const ID: &str = "$rpc_core::id";
/// An object that is read by a tag: the names that follow are understood within it.
pub(crate) const TAGGED: &str = "$rpc_core::tagged";
/// Looks for the first of the names that are given, and goes back to the current member.
pub(crate) const SEEK: &str = "$rpc_core::seek";
/// The text of the object, whatever of it was read.
pub(crate) const WHOLE: &str = "$rpc_core::whole";
/// Tells the names of members, which errors may show.
pub(crate) const NAMES: &str = "$rpc_core::names";
/// A map of one entry: the first byte of a value, and the value.
pub(crate) const TYPE: &str = "$rpc_core::type";
