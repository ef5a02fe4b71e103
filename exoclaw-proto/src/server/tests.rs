//! The machine alone, with time in its hands.
