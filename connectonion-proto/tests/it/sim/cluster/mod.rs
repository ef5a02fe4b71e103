//! Random lives of a cluster. The hosts and their servers are those that serve clients, and their clocks are
//! wrong at times; the store, the lines to it and the clock are in memory.

mod diary;
mod world;

use std::time::Duration;

use switchboard_testing::sim::cluster::{cluster_lives, live};
use switchboard_testing::sim::{Tally, ensure, run};

use world::{HOUR, World, set_ahead};

const SECOND: Duration = Duration::from_secs(1);

/// `loses`: the store may lose data.
fn lives(name: &str, loses: bool) {
    cluster_lives(name, 500, async |rng, tally| {
        let world = World::new(rng).await;
        let cluster = world.cluster();
        cluster.disturb(20, 8 * SECOND, loses, rng, tally).await;
        world.end(tally).await
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
            world.cluster().pause(0, true);
            world.send(1, records).await?;
            world.cluster().pause(0, false);
            world.cluster().rest().await;
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
            world.send(0, 1).await?;
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
