//! Leases and claims on a store in memory.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, timeout};

use super::node_lease::named;
use super::*;
use crate::store::{Expect, Log, LogConfig, MemoryStore, Store};

const SECOND: Duration = Duration::from_secs(1);

struct Node {
    store: MemoryStore,
    lease: NodeLease,
    claims: Claims,
    renewal: Option<Renewal>,
}

impl Node {
    async fn new(store: &MemoryStore) -> Self {
        let store = store.connect();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let (lease, renewal) = NodeLease::open(&shared, LeaseConfig::default())
            .await
            .unwrap();
        let claims = Claims::open(&shared, "names", &lease).await.unwrap();
        Self {
            store,
            lease,
            claims,
            renewal: Some(renewal),
        }
    }

    async fn living(store: &MemoryStore) -> Self {
        let mut node = Self::new(store).await;
        tokio::spawn(node.renewal.take().unwrap().run(drop));
        node.lease.acquired().await.unwrap();
        node
    }

    async fn owned(&self) -> Ownership {
        match self.claims.claim("name").await.unwrap() {
            Claimed::Owned(owned) => owned,
            Claimed::Held { node } => panic!("{node} owns it"),
        }
    }

    async fn keys(&self) -> Arc<dyn Log> {
        let config = LogConfig {
            max_age: Some(LeaseConfig::default().lease),
            ..LogConfig::new("nodes.k.>")
        };
        self.store.log("nodes_keys", config).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_every_third_of_its_duration() {
    let node = Node::living(&MemoryStore::new()).await;
    sleep(11 * SECOND).await;
    assert_eq!(node.keys().await.state().await.unwrap().last, 4);
    assert!(node.lease.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_lease_starts_when_sent_and_ends_a_margin_early() {
    let mut node = Node::new(&MemoryStore::new()).await;
    let sent = Instant::now();
    node.store.set_delay(SECOND);
    tokio::spawn(node.renewal.take().unwrap().run(drop));
    node.lease.acquired().await.unwrap();
    assert_eq!(sent.elapsed(), SECOND);
    node.store.set_cut(true);
    assert_eq!(node.lease.lost().await, LeaseLost::Expired);
    assert_eq!(sent.elapsed(), 9 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_the_process_ends_the_lease() {
    let mut node = Node::new(&MemoryStore::new()).await;
    let mut renewing = Box::pin(node.renewal.take().unwrap().run(drop));
    timeout(SECOND, &mut renewing).await.unwrap_err();
    assert!(node.lease.is_valid());
    sleep(8 * SECOND).await;
    assert!(!node.lease.is_valid());
    assert_eq!(renewing.await, LeaseLost::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_late_reply_does_not_revive_a_lease() {
    let node = Node::living(&MemoryStore::new()).await;
    node.store.set_paused(true);
    assert_eq!(node.lease.lost().await, LeaseLost::Expired);
    node.store.set_paused(false);
    sleep(SECOND).await;
    assert!(!node.lease.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_with_a_lost_reply_is_found_by_reading() {
    let node = Node::living(&MemoryStore::new()).await;
    node.store.lose_answers(1);
    sleep(30 * SECOND).await;
    assert!(node.lease.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_lease_missing_from_the_store_is_lost() {
    let node = Node::living(&MemoryStore::new()).await;
    node.store.restart_empty();
    assert_eq!(node.lease.lost().await, LeaseLost::Removed);
    assert!(
        node.lease.nodes().await.unwrap().is_empty(),
        "it does not come back"
    );
}

#[tokio::test(start_paused = true)]
async fn two_nodes_with_one_id_are_detected() {
    let mut node = Node::new(&MemoryStore::new()).await;
    let key = format!("nodes.k.{}", node.lease.node());
    let other = named(&"other".into());
    let taken = node.keys().await;
    taken.append(&key, other, Expect::default()).await.unwrap();
    let lost = node.renewal.take().unwrap().run(drop).await;
    assert_eq!(lost, LeaseLost::Taken);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_ends_and_removes_its_key() {
    let mut node = Node::new(&MemoryStore::new()).await;
    let renewal = tokio::spawn(node.renewal.take().unwrap().run(drop));
    node.lease.acquired().await.unwrap();
    node.lease.release();
    assert!(!node.lease.is_valid());
    assert_eq!(renewal.await.unwrap(), LeaseLost::Released);
    assert!(node.lease.nodes().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_removes_its_old_key_at_once() {
    let store = MemoryStore::new();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let member: Membership = Membership::new();
    let living = member.clone();
    tokio::spawn(async move {
        loop {
            let open = || NodeLease::open(&shared, LeaseConfig::default());
            let (lease, renewal) = living.open(open).await;
            let work = std::future::pending();
            living.live(Arc::new(lease), renewal, work).await;
        }
    });
    let first = member.joined().await;
    // Its last renewal is carried out after it has given up, and before its key expires.
    store.set_paused(true);
    let _ = first.lost().await;
    store.set_paused(false);
    let second = member.joined().await;
    assert!(!second.is_alive(first.node()).await.unwrap());
    assert_eq!(second.nodes().await.unwrap(), [second.node().clone()]);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_store_is_retried_at_start() {
    let mut node = Node::new(&MemoryStore::new()).await;
    node.store.set_cut(true);
    tokio::spawn(node.renewal.take().unwrap().run(drop));
    sleep(60 * SECOND).await;
    node.store.set_cut(false);
    node.lease.acquired().await.unwrap();
    assert!(node.lease.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_never_runs_ends_the_wait_for_its_lease() {
    let mut node = Node::new(&MemoryStore::new()).await;
    drop(node.renewal.take());
    assert_eq!(node.lease.acquired().await, Err(LeaseLost::Expired));
    assert_eq!(node.lease.lost().await, LeaseLost::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_name_of_a_live_node_is_held() {
    let store = MemoryStore::new();
    let (a, b) = (Node::living(&store).await, Node::living(&store).await);
    let owned = a.owned().await;
    assert_eq!((owned.fence(), owned.taken_from()), (1, None));
    let held = b.claims.claim("name").await.unwrap();
    assert!(matches!(held, Claimed::Held { node } if node == *a.lease.node()));
    owned.release().await;
    assert_eq!(b.owned().await.taken_from(), None);
}

#[tokio::test(start_paused = true)]
async fn a_name_of_a_dead_node_is_taken_over_once() {
    let store = MemoryStore::new();
    let a = Node::living(&store).await;
    a.owned().await;
    a.store.set_cut(true);
    let (b, c) = (Node::living(&store).await, Node::living(&store).await);
    sleep(11 * SECOND).await;
    let both = tokio::join!(b.claims.claim("name"), c.claims.claim("name"));
    let (owned, held) = match both {
        (Ok(Claimed::Owned(owned)), Ok(Claimed::Held { node })) => (owned, node == *b.lease.node()),
        (Ok(Claimed::Held { node }), Ok(Claimed::Owned(owned))) => (owned, node == *c.lease.node()),
        both => panic!("{both:?}"),
    };
    assert!(held);
    assert_eq!(
        (owned.fence(), owned.taken_from()),
        (2, Some(a.lease.node()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_given_back_is_taken_from_nobody() {
    let store = MemoryStore::new();
    let [gone, slow, fast] = [(); 3].map(|()| Node::living(&store));
    let (gone, slow, fast) = (gone.await, slow.await, fast.await);
    gone.owned().await;
    gone.lease.release();
    sleep(SECOND).await;
    slow.store.set_delay(SECOND);
    let (owned, ()) = tokio::join!(slow.owned(), async {
        // Between the look at the dead owner's name and the write over it.
        sleep(2 * SECOND).await;
        fast.owned().await.release().await;
    });
    assert_eq!((owned.fence(), owned.taken_from()), (3, None));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_left_over_is_given_back_unless_it_is_used() {
    let store = MemoryStore::new();
    let (node, other) = (Node::living(&store).await, Node::living(&store).await);
    // Nobody knows of its ownership any more.
    drop(node.owned().await);
    let holder = async || node.claims.holder("name").await.unwrap();
    let own = Some(node.lease.node().clone());
    assert_eq!(node.claims.release_if("name", || false).await, Ok(false));
    assert_eq!(other.claims.release_if("name", || true).await, Ok(true));
    assert_eq!(holder().await, own);
    // Claimed between the look and the removal.
    node.store.set_delay(SECOND);
    let (released, _) = tokio::join!(node.claims.release_if("name", || true), node.owned());
    assert_eq!((released, holder().await), (Ok(true), own));
    assert_eq!(node.claims.release_if("name", || true).await, Ok(true));
    assert_eq!(holder().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_lease_ends_meanwhile_is_refused() {
    let node = Node::living(&MemoryStore::new()).await;
    node.store.set_delay(SECOND);
    let (claimed, ()) = tokio::join!(node.claims.claim("name"), async {
        sleep(SECOND / 2).await;
        node.lease.release();
    });
    assert_eq!(claimed.unwrap_err(), ClaimError::NotAlive);
}

#[tokio::test(start_paused = true)]
async fn a_claim_with_a_lost_reply_gets_a_new_revision() {
    let node = Node::living(&MemoryStore::new()).await;
    node.store.lose_answers(1);
    assert_eq!(node.owned().await.fence(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_is_repeated_until_its_outcome_is_known_and_leaves_a_later_owner() {
    let store = MemoryStore::new();
    let (a, b) = (Node::living(&store).await, Node::living(&store).await);
    let owned = a.owned().await;
    a.store.lose_answers(1);
    let start = Instant::now();
    owned.release().await;
    // The first attempt has removed the name, so that the second one is a conflict: no third one.
    assert!(start.elapsed() < 3 * SECOND);
    let owned = a.owned().await;
    a.store.set_cut(true);
    sleep(11 * SECOND).await;
    let later = b.owned().await;
    a.store.set_cut(false);
    owned.release().await;
    assert_eq!(
        b.claims.holder("name").await.unwrap().as_ref(),
        Some(b.lease.node())
    );
    assert!(later.is_valid());
}

#[tokio::test(start_paused = true)]
async fn names_of_dead_nodes_are_found_until_claimed() {
    let store = MemoryStore::new();
    let (one, gone) = (Node::living(&store).await, Node::living(&store).await);
    for (node, name) in [(&one, "mine"), (&gone, "a"), (&gone, "b.*")] {
        assert!(matches!(
            node.claims.claim(name).await,
            Ok(Claimed::Owned(_))
        ));
    }
    assert_eq!(one.claims.orphans().await.unwrap(), [""; 0]);
    gone.lease.release();
    sleep(SECOND).await;
    let mut orphans = one.claims.orphans().await.unwrap();
    orphans.sort();
    assert_eq!(orphans, ["a", "b.*"]);
    for name in orphans {
        assert!(matches!(
            one.claims.claim(&name).await,
            Ok(Claimed::Owned(_))
        ));
    }
    assert_eq!(one.claims.orphans().await.unwrap(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_overlong_name_is_refused() {
    let node = Node::living(&MemoryStore::new()).await;
    let name = ".".repeat(400);
    let refused = node.claims.claim(&name).await.unwrap_err();
    assert!(matches!(refused, ClaimError::Name(_)));
    assert_eq!(node.claims.holder(&name).await, Ok(None));
}

/// A clock that runs at a part of the speed of the store's.
#[derive(Debug)]
struct Slow {
    start: std::time::Instant,
    percent: u32,
}

impl node_lease::Clock for Slow {
    fn now(&self) -> crate::Instant {
        let real = crate::net::time::now() - self.start;
        self.start + real * self.percent / 100
    }

    fn sleep_until(&self, at: crate::Instant) -> BoxFuture<'static, ()> {
        let wait = at.saturating_duration_since(self.now()) * 100 / self.percent;
        Box::pin(sleep(wait + Duration::from_millis(1)))
    }
}

/// How long a node whose clock is slow, and who is cut off, counts itself alive after the others have its name.
async fn overlap(percent: u32, margin: Duration) -> Duration {
    let engine = MemoryStore::new();
    let (store, other) = (engine.connect(), Node::living(&engine).await);
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let config = LeaseConfig {
        margin,
        ..LeaseConfig::default()
    };
    let start = crate::net::time::now();
    let clock = Arc::new(Slow { start, percent });
    let opening = NodeLease::open_by(&shared, config, clock);
    let (lease, renewal) = opening.await.unwrap();
    tokio::spawn(renewal.run(drop));
    lease.acquired().await.unwrap();
    let claims = Claims::open(&shared, "names", &lease).await.unwrap();
    assert!(matches!(claims.claim("name").await, Ok(Claimed::Owned(_))));
    store.set_cut(true);
    loop {
        sleep(SECOND / 20).await;
        if let Claimed::Owned(_) = other.claims.claim("name").await.unwrap() {
            break;
        }
    }
    let taken = Instant::now();
    lease.lost().await;
    taken.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_margin_keeps_a_slow_clock_from_two_owners() {
    for percent in [91, 100, 109] {
        let both = overlap(percent, SECOND).await;
        assert!(both < Duration::from_millis(10), "{percent} %: {both:?}");
    }
    assert!(overlap(91, Duration::ZERO).await > SECOND / 2);
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_store_fails_a_claim_at_the_deadline() {
    let node = Node::living(&MemoryStore::new()).await;
    let start = Instant::now();
    node.store.set_paused(true);
    let failed = node.claims.claim("name").await;
    assert!(matches!(failed, Err(ClaimError::Unavailable)), "{failed:?}");
    assert_eq!(start.elapsed(), 10 * SECOND);
    node.store.set_paused(false);
    let failed = node.claims.claim("name").await;
    assert!(matches!(failed, Err(ClaimError::NotAlive)), "{failed:?}");
}
