//! Random lives of a cluster: hosts that die, pause and lose their line to a store that restarts, fills up,
//! loses its data or comes back with an older copy of them, and whose clocks are wrong. The hosts and their servers are those that serve
//! clients; the store, the lines to it and the clock are in memory.
//!
//! The seed repeats the schedule of the faults and of what the clients do. Ids and the jitter of retries are
//! new each time.

mod diary;
mod world;

use std::time::Duration;

use switchboard_testing::sim::{Outcome, Rng, Tally, ensure, lifecycles, run};
use tokio::time::sleep;

use world::{HOUR, World, set_ahead, wait};

const SECOND: Duration = Duration::from_secs(1);
/// How long there is peace at the end of a life.
const CALM: Duration = Duration::from_secs(90);
/// How many lives of one host take as long as one of a cluster.
const COST: u64 = 250;

/// Runs a life by a clock of its own.
fn live(life: impl AsyncFnOnce() -> Outcome) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(life())
}

/// Lives through `faults` faults, and some peace. `loses`: the store may lose data.
async fn life(rng: &mut Rng, tally: &mut Tally, faults: u64, loses: bool) -> Outcome {
    let world = World::new(rng).await;
    for _ in 0..faults {
        wait(rng, 8 * SECOND).await;
        world.fault(rng, loses);
        tally.faults += 1;
    }
    world.heal().await;
    sleep(CALM).await;
    world.end(tally).await
}

/// One of [`COST`] seeds is a life.
fn lives(name: &str, loses: bool) {
    lifecycles(name, 500, |rng, tally| {
        if rng.below(COST) > 0 {
            return Ok(());
        }
        live(async || life(rng, tally, 20, loses).await)
    });
}

#[test]
fn acknowledged_prompts_and_answers_are_stored_once_whatever_fails() {
    lives("cluster", false);
}

#[test]
fn a_store_that_loses_its_data_is_filled_again_and_keeps_later_records() {
    lives("cluster with losses", true);
}

/// A host stands still while the store gets this many records from another one.
fn behind(records: usize) {
    run(1, |rng| {
        live(async || {
            let world = World::silent(rng).await;
            world.pause(0, true);
            world.say(1, records).await?;
            world.pause(0, false);
            sleep(CALM).await;
            world.end(&mut Tally::default()).await
        })
    });
}

#[test]
fn a_host_that_is_64_records_behind_serves_all_sessions() {
    behind(64);
}

#[test]
#[ignore = "takes half a minute"]
fn a_host_that_is_6400_records_behind_serves_all_sessions() {
    behind(6_400);
}

#[test]
fn an_owner_with_a_wrong_clock_locks_no_client_out_of_other_hosts() {
    run(1, |rng| {
        live(async || {
            let world = World::silent(rng).await;
            world.say(0, 1).await?;
            set_ahead(0, HOUR);
            ensure(world.lets_in(1, "t-0").await, || {
                "not at another host".to_owned()
            })?;
            ensure(!world.lets_in(0, "t-0").await, || "at the owner".to_owned())
        })
    });
}

#[test]
fn a_host_that_the_store_denies_its_place_says_that_it_cannot_heal() {
    run(1, |rng| {
        live(async || {
            let world = World::silent(rng).await;
            let failed = world.denied(0).await;
            assert!(failed.is_permanent(), "{failed}");
            Ok(())
        })
    });
}
