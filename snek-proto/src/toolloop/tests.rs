//! Tests of the tool loop.
