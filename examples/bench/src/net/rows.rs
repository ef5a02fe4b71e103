//! The rows of goals 5 and 6: which calls, how many at a time, beside whom, and what is asked.

use super::Asked;
use super::kind::{ACOLYTE_CHAT, CHAT, ECHO, INPUT, MESSAGE, PING, SEND_MESSAGE, STATUS};

/// A call that is measured with so many in flight.
pub(super) struct Row {
    /// Our end.
    pub(super) end: &'static str,
    pub(super) work: &'static str,
    pub(super) in_flight: usize,
    pub(super) calls: usize,
    pub(super) peers: &'static [Asked],
}

impl Row {
    /// What it is called in the table.
    pub(super) fn name(&self) -> String {
        let work = match self.work {
            PING => "ping (empty)",
            work => work,
        };
        format!("{work}, {} in flight", self.in_flight)
    }
}

/// Goal 5 asks that we cost at most a tenth more.
pub(super) const TENTH_MORE: Option<f64> = Some(1.0 / 1.1);

const ECHOED: &str = "echo, no RPC";

const PING_ONE: &[Asked] = &[
    ("TCP echo", None),
    (ECHOED, TENTH_MORE),
    ("echo, send each", None),
    ("fastwebsockets", None),
    ("jsonrpsee", Some(1.5)),
    ("aiohttp", None),
    ("websockets", None),
    ("node ws", None),
];
const PING_SIXTEEN: &[Asked] = &[
    (ECHOED, None),
    ("echo, send each", None),
    ("fastwebsockets", None),
    ("fastwebsockets, send each", None),
    ("jsonrpsee", Some(4.5)),
    ("aiohttp", None),
    ("websockets", None),
    ("node ws", None),
];
const PING_THOUSAND: &[Asked] = &[
    (ECHOED, None),
    ("echo, send each", None),
    ("fastwebsockets", None),
    ("fastwebsockets, send each", None),
    ("jsonrpsee", Some(11.0)),
    ("aiohttp", Some(20.0)),
    ("websockets", None),
    ("node ws", None),
];

/// Calls with an argument or an answer.
const TYPED_ONE: &[Asked] = &[
    (ECHOED, TENTH_MORE),
    ("jsonrpsee", None),
    ("aiohttp", None),
    ("node ws", None),
];
const TYPED_SIXTEEN: &[Asked] = &[
    (ECHOED, None),
    ("jsonrpsee", Some(4.5)),
    ("aiohttp", None),
    ("node ws", None),
];
const TYPED_THOUSAND: &[Asked] = &[
    (ECHOED, None),
    ("jsonrpsee", Some(10.0)),
    ("aiohttp", None),
    ("node ws", None),
];
/// The same without the peers in other languages.
const SENT_ONE: &[Asked] = &[(ECHOED, TENTH_MORE), ("jsonrpsee", None)];
const SENT_SIXTEEN: &[Asked] = &[(ECHOED, None), ("jsonrpsee", Some(4.5))];
const SENT_THOUSAND: &[Asked] = &[(ECHOED, None), ("jsonrpsee", Some(10.0))];
/// For comparison.
const COMPARED: &[Asked] = &[(ECHOED, None), ("jsonrpsee", None)];
const ALONE: &[Asked] = &[(ECHOED, None)];

/// With both ends on a processor of their own, waking the other one costs most, and as much as it
/// happens to sleep deeply: the goal is judged on one processor.
pub(super) const APART: Row = row(
    ("exoclaw", PING),
    (1, 10_000),
    &[
        ("TCP echo", None),
        (ECHOED, None),
        ("fastwebsockets", None),
        ("jsonrpsee", None),
    ],
);

#[rustfmt::skip] // One row per line, to be read and edited as a table.
pub(super) const ROWS: &[Row] = &[
    row(("exoclaw", PING), (1, 10_000), PING_ONE),
    row(("exoclaw", PING), (16, 50_000), PING_SIXTEEN),
    row(("exoclaw", PING), (1_000, 200_000), PING_THOUSAND),
    row(("exoclaw", STATUS), (1, 10_000), TYPED_ONE),
    row(("exoclaw", STATUS), (16, 50_000), TYPED_SIXTEEN),
    row(("exoclaw", STATUS), (1_000, 200_000), TYPED_THOUSAND),
    row(("snek", ECHO), (1, 10_000), TYPED_ONE),
    row(("snek", ECHO), (16, 50_000), TYPED_SIXTEEN),
    row(("snek", ECHO), (1_000, 200_000), TYPED_THOUSAND),
    row(("snek", SEND_MESSAGE), (1, 10_000), SENT_ONE),
    row(("snek", SEND_MESSAGE), (16, 50_000), SENT_SIXTEEN),
    row(("snek", SEND_MESSAGE), (1_000, 200_000), SENT_THOUSAND),
    row(("exoclaw", CHAT), (1, 5_000), COMPARED),
    row(("exoclaw", CHAT), (16, 20_000), COMPARED),
    row(("exoclaw", CHAT), (1_000, 40_000), COMPARED),
    // The server works on one chat of a connection at a time; 25 may wait.
    row(("acolyte", ACOLYTE_CHAT), (1, 5_000), COMPARED),
    row(("acolyte", ACOLYTE_CHAT), (16, 20_000), COMPARED),
    row(("smarthole", MESSAGE), (1, 10_000), ALONE),
    row(("smarthole", MESSAGE), (16, 50_000), ALONE),
    row(("smarthole", MESSAGE), (1_000, 100_000), ALONE),
    // A session runs one prompt at a time: sixteen are on as many connections.
    row(("connectonion", INPUT), (1, 4_000), ALONE),
    row(("connectonion", INPUT), (16, 8_000), ALONE),
];

const fn row(
    (end, work): (&'static str, &'static str),
    (in_flight, calls): (usize, usize),
    peers: &'static [Asked],
) -> Row {
    Row {
        end,
        work,
        in_flight,
        calls,
        peers,
    }
}
