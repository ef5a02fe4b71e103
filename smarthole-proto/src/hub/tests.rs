//! Tests of the hub.
