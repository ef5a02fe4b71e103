//! Integration tests of the core, with a toy protocol as its user.

mod toy;
mod toy_machines;
