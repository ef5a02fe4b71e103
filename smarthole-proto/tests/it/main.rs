//! Integration tests of the SmartHole crate.
