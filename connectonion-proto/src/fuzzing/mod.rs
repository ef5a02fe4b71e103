//! Bodies of the fuzz targets: any bytes go in, and the rules must hold.
#![allow(clippy::panic, reason = "a broken rule has to stop the fuzzer")]

mod canonical;

pub use canonical::canonical;
