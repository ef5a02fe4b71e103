//! Many lives, and what they die of when something is broken.

use std::collections::BTreeMap;

use switchboard_testing::sim::{Rng, Tally, lifecycles, run};

use super::world::{Break, live};

#[test]
fn random_faults_keep_one_order_and_one_writer() {
    lifecycles("cluster", 200, |rng, tally| {
        live(rng, tally, Break::Nothing)
    });
}

/// The lease keeps nodes from trying; what they write without it is refused.
#[test]
fn nodes_without_a_lease_break_nothing() {
    run(500, |rng| live(rng, &mut Tally::default(), Break::Lease));
}

/// Breaks something, and expects some of many lives to die of each cause. Two nodes that write at once, say,
/// need a rare coincidence.
#[track_caller]
#[expect(clippy::print_stderr, reason = "the figures of a test")]
fn die_of(broken: Break, causes: &[&str]) {
    const LIVES: u64 = 20_000;
    let mut died: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..LIVES {
        if let Err(death) = live(&Rng::new(seed), &mut Tally::default(), broken) {
            let cause = death.split(':').next().unwrap_or_default();
            *died.entry(cause.to_owned()).or_default() += 1;
        }
        if causes.iter().all(|cause| died.contains_key(*cause)) {
            eprintln!("{broken:?} is noticed in {} lives: {died:?}", seed + 1);
            return;
        }
    }
    panic!("not all of {causes:?} in {LIVES} lives with {broken:?}: {died:?}");
}

#[test]
fn without_a_fence_a_paused_owner_writes_when_it_wakes_up() {
    die_of(Break::Fence, &["two writers", "doubled"]);
}

#[test]
fn without_ids_a_repeated_message_is_doubled() {
    die_of(Break::Dedup, &["doubled"]);
}

#[test]
fn a_message_with_an_id_per_attempt_is_doubled() {
    die_of(Break::Ids, &["doubled"]);
}

#[test]
fn without_a_margin_a_slow_clock_yields_two_owners() {
    die_of(Break::Margin, &["two leases"]);
}

#[test]
fn without_fills_the_order_has_gaps() {
    die_of(Break::Fill, &["order"]);
}

#[test]
fn without_checks_the_last_message_is_missed() {
    die_of(Break::Check, &["missed"]);
}

#[test]
fn an_owner_that_skips_the_successor_check_overwrites_it() {
    die_of(Break::Successor, &["two writers"]);
}

#[test]
fn an_unannounced_owner_is_interleaved_with_another() {
    die_of(Break::OwnerRecord, &["two writers"]);
}

#[test]
fn without_recovery_a_client_never_learns_the_outcome_of_its_prompt() {
    die_of(Break::Recovery, &["unknown"]);
}

#[test]
fn acknowledging_before_storing_loses_records() {
    die_of(Break::Answer, &["lost"]);
}
