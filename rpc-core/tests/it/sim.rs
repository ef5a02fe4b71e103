//! Random lives of the leases and claims of a cluster under virtual time: nodes that die, pause and lose their
//! line to a store that restarts and fills up, and whose clocks run at different speeds. `.ci/nightly` builds
//! them with optimisation to live many: see [`switchboard_testing::sim`].
#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of a schedule"
)]

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rpc_core::cluster::internals::Clock;
use rpc_core::cluster::{Claimed, Claims, LeaseConfig, NodeLease, Ownership, Renewal};
use rpc_core::store::{MemoryStore, Store};
use switchboard_testing::sim::cluster::{Cluster, Kind, Started, cluster_lives, live, wait};
use switchboard_testing::sim::{Outcome, Rng, Tally, ensure};
use tokio::task::JoinSet;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);
const NODES: usize = 3;
const NAMES: [&str; 2] = ["a", "b"];
/// The speed of each node's clock, in per cent of the store's.
const SPEEDS: [u32; NODES] = [92, 100, 108];

/// A clock with a speed of its own.
#[derive(Debug)]
struct Drifting {
    start: Instant,
    percent: u32,
}

impl Clock for Drifting {
    fn now(&self) -> Instant {
        let real = tokio::time::Instant::now().into_std() - self.start;
        self.start + real * self.percent / 100
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let wait = at.saturating_duration_since(self.now()) * 100 / self.percent;
        Box::pin(sleep(wait + Duration::from_millis(1)))
    }
}

/// One life of a node, from the beginning to the end of its lease.
#[derive(Clone)]
struct Life {
    lease: NodeLease,
    claims: Claims,
    owned: Arc<Mutex<HashMap<&'static str, Ownership>>>,
}

impl Life {
    async fn open(
        store: &Arc<dyn Store>,
        config: LeaseConfig,
        clock: &Arc<Drifting>,
    ) -> (Self, Renewal) {
        loop {
            let clock: Arc<dyn Clock> = clock.clone();
            if let Ok((lease, renewal)) = NodeLease::open_by(store, config, clock).await
                && let Ok(claims) = Claims::open(store, "names", &lease).await
            {
                let owned = Arc::default();
                return (
                    Self {
                        lease,
                        claims,
                        owned,
                    },
                    renewal,
                );
            }
            sleep(SECOND).await;
        }
    }
}

type Node = Arc<Mutex<Life>>;

async fn start(slot: usize, store: MemoryStore, margin: Duration) -> Started<Node> {
    let store: Arc<dyn Store> = Arc::new(store);
    let clock = Arc::new(Drifting {
        start: tokio::time::Instant::now().into_std(),
        percent: SPEEDS[slot],
    });
    let config = LeaseConfig {
        margin,
        ..LeaseConfig::default()
    };
    let (life, mut renewal) = Life::open(&store, config, &clock).await;
    let node = Arc::new(Mutex::new(life));
    let living = Arc::clone(&node);
    Started {
        node,
        work: Box::pin(async move {
            loop {
                renewal.run(drop).await;
                let next = Life::open(&store, config, &clock).await;
                (*living.lock().unwrap(), renewal) = next;
            }
        }),
        tasks: Vec::new(),
    }
}

/// The greatest number of an ownership of each name.
type Fences = Arc<Mutex<HashMap<&'static str, u64>>>;

/// Claims a name for a node. A later ownership has a greater number.
async fn claim(node: Life, name: &'static str, fences: Fences) -> Outcome<Option<bool>> {
    match node.claims.claim(name).await {
        Ok(Claimed::Owned(owned)) => {
            let before = fences.lock().unwrap().insert(name, owned.fence());
            let is_later = before < Some(owned.fence());
            ensure(is_later, || format!("order: {owned:?} after {before:?}"))?;
            node.owned.lock().unwrap().insert(name, owned);
            Ok(Some(true))
        }
        Ok(Claimed::Held { node: holder }) => {
            ensure(holder != *node.lease.node(), || "held by itself".to_owned())?;
            Ok(Some(false))
        }
        Err(_) => Ok(None),
    }
}

fn life_in(cluster: &Cluster<Node>, slot: usize) -> Option<Life> {
    cluster.node(slot).map(|node| node.lock().unwrap().clone())
}

/// No name has two owners, each of whom may believe that it is the only one.
fn check(cluster: &Cluster<Node>) -> Outcome {
    for name in NAMES {
        let owners = (0..NODES).filter_map(|slot| life_in(cluster, slot));
        let owners = owners.filter(|node| {
            let owned = node.owned.lock().unwrap();
            owned.get(name).is_some_and(Ownership::is_valid)
        });
        ensure(owners.count() <= 1, || format!("two owners of {name}"))?;
    }
    Ok(())
}

/// Lets nodes claim names and give them back, for ever.
async fn act(
    cluster: &Cluster<Node>,
    fences: &Fences,
    trying: &mut JoinSet<Outcome<Option<bool>>>,
    rng: &mut Rng,
) -> Outcome<Infallible> {
    loop {
        wait(rng, SECOND).await;
        check(cluster)?;
        let (name, slot) = (
            NAMES[rng.below(2) as usize],
            rng.below(NODES as u64) as usize,
        );
        let Some(node) = life_in(cluster, slot) else {
            continue;
        };
        let owned = node.owned.lock().unwrap().remove(name);
        match owned {
            Some(owned) if rng.chance(30) => drop(trying.spawn(async {
                owned.release().await;
                Ok(None)
            })),
            Some(owned) => drop(node.owned.lock().unwrap().insert(name, owned)),
            None => drop(trying.spawn(claim(node, name, Arc::clone(fences)))),
        }
        while let Some(ended) = trying.try_join_next() {
            ended.unwrap()?;
        }
    }
}

/// Lives of leases that end this much before they end in the store.
async fn life(rng: &mut Rng, tally: &mut Tally, margin: Duration) -> Outcome {
    let kind = Kind {
        start: Box::new(move |slot, store| Box::pin(start(slot, store, margin))),
        log: "",
        queues: &[64],
        has_old_copies: false,
        set_clock: |_, _| {},
    };
    let (cluster, fences) = (
        Cluster::new(NODES, kind, None, rng).await,
        Fences::default(),
    );
    let mut trying = JoinSet::new();
    let (mut seed, faulty) = (Rng::new(rng.next_u64()), Arc::clone(&cluster));
    let mut schedule = Tally::default();
    let faults = async {
        let faults = faulty.disturb(20, 8 * SECOND, false, &mut seed, &mut schedule);
        faults.await;
    };
    tokio::select! {
        Err(broken) = act(&cluster, &fences, &mut trying, rng) => return Err(broken),
        () = faults => {}
    }
    while let Some(ended) = trying.join_next().await {
        ended.unwrap()?;
    }
    tally.faults += schedule.faults;
    check(&cluster)?;
    for name in NAMES {
        let mut owners = 0;
        for slot in 0..NODES {
            let node = life_in(&cluster, slot).ok_or("a node is gone")?;
            let claimed = claim(node, name, Arc::clone(&fences)).await?;
            let owns = claimed.ok_or_else(|| format!("{slot} never learns who owns {name}"))?;
            owners += u64::from(owns);
        }
        ensure(owners == 1, || {
            format!("{owners} owners of {name} in the end")
        })?;
        tally.answered += 1;
    }
    check(&cluster)
}

#[test]
fn no_name_has_two_owners_under_random_faults() {
    cluster_lives("cluster", 5_000, async |rng, tally| {
        life(rng, tally, SECOND).await
    });
}

#[test]
fn without_a_margin_a_slow_clock_yields_two_owners() {
    let broken = (0..500).any(|seed| {
        let life = async || life(&mut Rng::new(seed), &mut Tally::default(), Duration::ZERO).await;
        live(life).is_err_and(|error| error.starts_with("two owners"))
    });
    assert!(broken);
}
