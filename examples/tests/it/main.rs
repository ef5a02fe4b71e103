//! Checks that concern more than one crate.

mod fuzz_seeds;
mod tree;
mod uniform;
