//! Random lives of a cluster. The nodes and their servers are those that serve users; the store, the lines to
//! it and the clock are in memory.

mod diary;
mod world;

use std::time::Duration;

use switchboard_testing::sim::cluster::{cluster_lives, live};
use switchboard_testing::sim::{Tally, run};

use world::World;

const SECOND: Duration = Duration::from_secs(1);

/// `loses`: the store may lose data.
fn lives(name: &str, loses: bool) {
    cluster_lives(name, 1_000, async |rng, tally| {
        let world = World::new(rng).await;
        let cluster = world.cluster();
        cluster.disturb(25, 6 * SECOND, loses, rng, tally).await;
        world.end(tally).await
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
            world.cluster().pause(0, true);
            world.send(1, messages, messages < queue).await?;
            world.cluster().pause(0, false);
            world.cluster().rest().await;
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
