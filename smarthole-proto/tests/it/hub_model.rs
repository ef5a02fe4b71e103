//! The hub against a naive model, under random schedules.

use proptest::prelude::*;

use super::hub_checked::{Both, Op};
use super::hub_naive::{Kind, NAMES};

fn op() -> impl Strategy<Value = Op> {
    let name = || 0..NAMES.len();
    let choice = prop_oneof![
        9 => prop::sample::select(&NAMES[..]),
        1 => Just("ghost"),
    ];
    let kind = prop_oneof![
        3 => Just(Kind::Ack),
        5 => Just(Kind::Reject),
        1 => Just(Kind::Notify),
        1 => Just(Kind::Blank),
        1 => Just(Kind::Mumble),
    ];
    prop_oneof![
        3 => name().prop_map(Op::Join),
        2 => name().prop_map(Op::Leave),
        4 => prop::option::weighted(0.3, name()).prop_map(Op::Say),
        6 => (0..8_usize, prop::collection::vec(choice, 0..4)).prop_map(|(q, c)| Op::Decide(q, c)),
        1 => (0..8_usize).prop_map(Op::Fail),
        12 => (name(), 0..4_usize, kind).prop_map(|(c, m, k)| Op::Answer(c, m, k)),
        4 => prop::sample::select(vec![1, 700, 5_000, 15_000, 29_999, 30_000]).prop_map(Op::Wait),
    ]
}

proptest! {
    #[test]
    fn the_hub_agrees_with_a_naive_model(
        limit in 0..5_u32,
        reroute_direct: bool,
        max_history in prop_oneof![Just(0_usize), Just(1), Just(3), Just(100)],
        ops in prop::collection::vec(op(), 0..60),
    ) {
        let mut both = Both::new(limit, reroute_direct, max_history);
        for name in 0..3 {
            both.perform(Op::Join(name));
        }
        for op in ops {
            both.perform(op);
        }
        both.finish();
    }
}
