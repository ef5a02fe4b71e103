//! The client machine.
