//! Names by which the types of this crate ask a [`Deserializer`](super::Deserializer) for what `serde`
//! has no method for. Any other deserializer takes them for the names of types.

/// A value as it stands in the text: the name that `serde_json` has for it, which is not public there.
pub(crate) const RAW: &str = "$serde_json::private::RawValue";
/// A string, or a number as its digits.
pub(crate) const ID: &str = "$rpc_core::id";
/// A string whose lone surrogates become U+FFFD.
pub(crate) const LOSSY: &str = "$rpc_core::lossy";
/// An object that is read by a tag: the names that follow are understood within it.
pub(crate) const TAGGED: &str = "$rpc_core::tagged";
/// Skips a member; the value is the place where the member starts.
pub(crate) const MARK: &str = "$rpc_core::mark";
/// Reads the member at a place that was marked.
pub(crate) const SEEK: &str = "$rpc_core::seek";
/// The text of the object, whatever of it was read.
pub(crate) const WHOLE: &str = "$rpc_core::whole";
/// Tells the names of members, which errors may show.
pub(crate) const NAMES: &str = "$rpc_core::names";
/// A map of one entry: the first byte of a value, and the value.
pub(crate) const TYPE: &str = "$rpc_core::type";
