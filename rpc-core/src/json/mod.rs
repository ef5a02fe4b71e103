//! JSON as this crate writes it, byte for byte as `serde_json` does and in fewer instructions.

mod escape;
mod key;
#[cfg(test)]
mod tests;
mod verbatim;
mod writer;

pub(crate) use verbatim::serialize_verbatim;
pub(crate) use writer::Writer;
