//! What the goals ask of the rows that are counted, which `bench gate` enforces: each row names its goal beside
//! each peer. One that is missed stays red. Where a count shows that it is out of reach, the row has the reason, and
//! the gate fails below what was reached.

/// Goal 1: beside derived types that own their strings, jsonrpsee's envelope and rmcp's model, and
/// ahead of sonic-rs: the hot frames together, and four of the five alone.
pub(crate) const DERIVE: f64 = 1.5;
pub(crate) const JSONRPSEE: f64 = 3.0;
pub(crate) const RMCP: f64 = 9.0;
pub(crate) const SONIC: f64 = 1.0;
/// Goal 2: never behind serde_json with the same types; long texts beside derived types.
pub(crate) const SAME: f64 = 1.0;
pub(crate) const LONG: f64 = 2.0;
/// Goal 3: beside serde_json's scan.
pub(crate) const SCAN: f64 = 1.4;
/// Goal 4: beside `to_writer`, for hot frames and for long texts; others are not behind it.
pub(crate) const WRITE: f64 = 1.9;
pub(crate) const WRITE_LONG: f64 = 5.0;
pub(crate) const WRITER: f64 = 1.0;
/// Goal 9: at most 0.4 times a map with a sleep per call.
pub(crate) const SLEEP: f64 = 2.5;

/// A call: its row, the end that answers and what it does, how many are in flight, and the most
/// instructions of both ends.
pub(crate) type Call = (&'static str, &'static str, usize, f64);

/// Those with 1,000 in flight are goal 5 of the calls; the others are what was reached, of which a
/// build may take [`CALL_MARGIN`] more.
#[rustfmt::skip] // One row per line, to be read and edited as a table.
pub(crate) const CALLS: &[Call] = &[
    ("call Exoclaw ping, 1,000 in flight", "exoclaw: ping", 1_000, 7_250.0),
    ("call Exoclaw status, 1,000 in flight", "exoclaw: status", 1_000, 11_500.0),
    ("call Snek echo, 42 B, 1,000 in flight", "snek: echo, 42 B", 1_000, 11_500.0),
    ("call Exoclaw ping", "exoclaw: ping", 16, 7_930.0),
    ("call Exoclaw status", "exoclaw: status", 16, 12_040.0),
    ("call Exoclaw chat of ten", "exoclaw: chat of ten", 16, 57_000.0),
    ("call Snek ping", "snek: ping", 16, 10_710.0),
    ("call Snek echo, 42 B", "snek: echo, 42 B", 16, 12_370.0),
    ("call Snek send_message", "snek: send_message", 16, 16_800.0),
    ("call SmartHole message and ack", "smarthole", 16, 37_600.0),
    ("call ConnectOnion INPUT to OUTPUT", "connectonion", 16, 1_553_000.0),
    ("call Acolyte chat of ten", "acolyte", 16, 171_600.0),
];

/// By how much the instructions of a call may differ: the runtime and the system have their part.
pub(crate) const CALL_MARGIN: f64 = 0.04;

/// Goal 9: how many times the instructions of a call with one in flight it may take with
/// [`MANY`] in flight. The goal's 7.5 is for time, most of which is then spent waiting for memory.
pub(crate) const PENDING_GROWTH: f64 = 1.1;
/// Goal 9: the most resident bytes per call, with [`MANY`] in flight.
pub(crate) const PENDING_BYTES: f64 = 128.0;
/// "Many" calls in flight.
pub(crate) const MANY: usize = 1_000_000;
