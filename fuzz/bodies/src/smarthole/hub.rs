//! The hub, beside the naive model of its crate's tests.

use crate::script::Script;

use super::hub_checked::{Both, Op};
use super::hub_naive::{Kind, NAMES};

/// Runs a hub and its naive model through the same operations: both report and send the same, and
/// every message settles once.
pub fn hub(data: &[u8]) {
    let mut script = Script::new(data);
    let mut both = Both::new(3, script.byte_or_zero() & 1 == 1, 5);
    while let Some(op) = script.byte() {
        both.perform(read(op, &mut script));
    }
    both.finish();
}

fn read(op: u8, script: &mut Script<'_>) -> Op {
    let name = |script: &mut Script<'_>| usize::from(script.byte_or_zero()) % NAMES.len();
    let place = |script: &mut Script<'_>| usize::from(script.byte_or_zero() % 8);
    match op % 12 {
        0 | 1 => {
            script.byte_or_zero();
            Op::Join(name(script))
        }
        2 => Op::Leave(name(script)),
        3..=5 => {
            let to = usize::from(script.byte_or_zero() % 9);
            Op::Say(to.checked_sub(4).filter(|to| *to < NAMES.len()))
        }
        6 | 7 => {
            let question = place(script);
            let count = script.byte_or_zero() % 4;
            let choice = |_| NAMES.get(place(script)).copied().unwrap_or("ghost");
            Op::Decide(question, (0..count).map(choice).collect())
        }
        8 => Op::Fail(place(script)),
        9 | 10 => {
            let (client, message) = (name(script), place(script) % 4);
            let kinds = [
                Kind::Ack,
                Kind::Reject,
                Kind::Notify,
                Kind::Blank,
                Kind::Mumble,
            ];
            let kind = script.pick(&kinds).copied().unwrap_or(Kind::Ack);
            Op::Answer(client, message, kind)
        }
        _ => Op::Wait(u64::from(script.byte_or_zero()) * 1_000),
    }
}
