//! Tests of the client machine.
