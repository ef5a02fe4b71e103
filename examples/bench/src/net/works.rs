//! Calls that are counted: both ends in one process and on one thread, over TCP on this machine, with
//! so many in flight that a wake-up serves several. Connecting is not counted.

use tokio::runtime::Builder;

use super::kind::Kind;
use super::load::{Pace, load};
use super::serve;
use crate::work::{Run, Work};

const IN_FLIGHT: usize = 16;

pub(crate) fn works() -> Vec<Work> {
    vec![
        call("call Exoclaw ping", |n| both("exoclaw: ping", n))
            .beside("jsonrpsee", |n| both("jsonrpsee: ping", n)),
        call("call Exoclaw status", |n| both("exoclaw: status", n))
            .beside("jsonrpsee", |n| both("jsonrpsee: status", n)),
        call("call Exoclaw chat of ten", |n| {
            both("exoclaw: chat of ten", n)
        })
        .beside("jsonrpsee", |n| both("jsonrpsee: chat of ten", n)),
        call("call Snek ping", |n| both("snek: ping", n))
            .beside("jsonrpsee", |n| both("jsonrpsee: ping", n)),
        call("call Snek echo, 42 B", |n| both("snek: echo, 42 B", n))
            .beside("jsonrpsee", |n| both("jsonrpsee: echo, 42 B", n)),
        call("call Snek send_message", |n| both("snek: send_message", n))
            .beside("jsonrpsee", |n| both("jsonrpsee: send_message", n)),
        call("call SmartHole message and ack", |n| {
            both("smarthole: message and ack", n)
        }),
        call("call ConnectOnion INPUT to OUTPUT", |n| {
            both("connectonion: INPUT to OUTPUT", n)
        })
        .rounds(512),
        call("call Acolyte chat of ten", |n| {
            both("acolyte: chat of ten", n)
        })
        .beside("jsonrpsee", |n| both("jsonrpsee: chat of ten", n)),
    ]
}

/// As often as is a multiple of what is in flight.
fn call(name: &'static str, ours: Run) -> Work {
    Work::new("calls", name, 0, ours).rounds(125 * IN_FLIGHT as u64)
}

fn both(kind: &'static str, calls: u64) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let end = runtime.spawn(async move {
        let address = serve::here(kind).await;
        let pace = Pace {
            in_flight: IN_FLIGHT,
            calls: calls as usize,
            is_led: false,
        };
        load(Kind::parse(kind), &address, pace).await;
    });
    runtime.block_on(end).unwrap();
}
