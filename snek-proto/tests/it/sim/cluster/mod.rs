//! Random lives of a cluster: nodes that die, pause and lose their line to a store that restarts, fills up,
//! loses its data or comes back with an older copy of them. The nodes and their servers are those that serve
//! users; the store, the lines to it and the clock are in memory.
//!
//! The seed repeats the schedule of the faults and of what the users do. Ids and the jitter of retries are
//! new each time.

mod diary;
mod world;

use std::time::Duration;

use switchboard_testing::sim::{Outcome, Rng, Tally, lifecycles, run};

use world::{World, wait};

const SECOND: Duration = Duration::from_secs(1);
/// How long there is peace at the end of a life.
const CALM: Duration = Duration::from_secs(90);

/// How many lives of one server take as long as one of a cluster.
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
        wait(rng, 6 * SECOND).await;
        world.fault(rng, loses);
        tally.faults += 1;
    }
    world.heal().await;
    tokio::time::sleep(CALM).await;
    world.end(tally).await
}

/// One of [`COST`] seeds is a life.
fn lives(name: &str, loses: bool) {
    lifecycles(name, 1_000, |rng, tally| {
        if rng.below(COST) > 0 {
            return Ok(());
        }
        live(async || life(rng, tally, 25, loses).await)
    });
}

#[test]
fn acknowledged_messages_are_delivered_once_in_one_order_under_random_faults() {
    lives("cluster", false);
}

#[test]
fn a_store_that_lost_its_data_recovers() {
    lives("cluster with losses", true);
}

/// Someone else says this much while a node stands still.
fn behind(messages: usize, queue: usize) {
    run(1, |rng| {
        live(async || {
            let world = World::with_queue(rng, queue).await;
            world.pause(0, true);
            world.say(1, messages, messages < queue).await?;
            world.pause(0, false);
            tokio::time::sleep(CALM).await;
            world.end(&mut Tally::default()).await
        })
    });
}

#[test]
fn a_node_64_messages_behind_delivers_in_order() {
    behind(64, 8);
    behind(640, 4_096);
}

#[test]
fn a_node_6400_messages_behind_delivers_in_order() {
    behind(6_400, 4_096);
}
