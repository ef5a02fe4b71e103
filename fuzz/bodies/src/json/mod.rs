//! The JSON reader and writer of the core, beside `serde_json`.

mod reader;
mod writer;

pub use reader::reader;
pub use writer::writer;
