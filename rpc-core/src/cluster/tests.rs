//! Leases and claims against a small store.

use std::collections::HashMap;
use std::time::Duration;

use super::internals::*;
use super::*;
use crate::{Instant, Str};

const SECOND: Duration = Duration::from_secs(1);

/// A bucket: who is named by a key, and at which revision.
#[derive(Default)]
struct Bucket {
    last: u64,
    keys: HashMap<Str, (Str, u64)>,
}

impl Bucket {
    fn write(&mut self, key: &str, node: &str, expected: u64) -> Reply {
        let revision = self.keys.get(key).map_or(0, |(_, revision)| *revision);
        if revision != expected {
            return Reply::Conflict;
        }
        self.last += 1;
        self.keys.insert(key.into(), (node.into(), self.last));
        Reply::Stored {
            revision: self.last,
        }
    }

    fn read(&self, key: &str) -> Reply {
        self.keys
            .get(key)
            .map_or(Reply::Missing, |(node, revision)| Reply::Found {
                node: node.clone(),
                revision: *revision,
            })
    }

    fn apply(&mut self, key: &str, node: &str, operation: &Operation) -> Reply {
        match operation {
            Operation::Read => self.read(key),
            Operation::Create => self.write(key, node, 0),
            Operation::Update { revision } => self.write(key, node, *revision),
            Operation::Delete { revision } => {
                let reply = self.write(key, node, *revision);
                if reply != Reply::Conflict {
                    self.keys.remove(key);
                }
                reply
            }
            Operation::ReadNode { .. } => panic!("of another bucket"),
        }
    }
}

struct Cluster {
    nodes: Bucket,
    names: Bucket,
    now: Instant,
}

impl Cluster {
    fn new() -> Self {
        Self {
            nodes: Bucket::default(),
            names: Bucket::default(),
            now: Instant::now(),
        }
    }

    fn lease(&self, node: &str) -> Lease {
        Lease::new(node, LeaseConfig::default(), self.now)
    }

    /// Answers what the lease asks for.
    fn renew(&mut self, lease: &mut Lease) {
        while let Some(request) = lease.poll_request() {
            let node = lease.node().clone();
            let reply = self.nodes.apply(&node, &node, &request.operation);
            lease.handle_reply(request.number, reply, self.now);
        }
    }

    fn acquired(&mut self, node: &str) -> Lease {
        let mut lease = self.lease(node);
        self.renew(&mut lease);
        assert_eq!(lease.poll_event(), Some(LeaseEvent::Acquired));
        lease
    }

    fn claim(&self, node: &str) -> Claim {
        Claim::new(node, ClaimConfig::default(), self.now)
    }

    fn answer(&mut self, node: &str, request: &Request) -> Reply {
        match &request.operation {
            Operation::ReadNode { node } => self.nodes.read(node),
            operation => self.names.apply("name", node, operation),
        }
    }

    /// Answers what the claim asks for, until it comes out.
    fn settle(&mut self, node: &str, claim: &mut Claim) -> ClaimEvent {
        loop {
            if let Some(event) = claim.poll_event() {
                return event;
            }
            match claim.poll_request() {
                Some(request) => {
                    let reply = self.answer(node, &request);
                    claim.handle_reply(request.number, reply, self.now);
                }
                None => {
                    self.now = claim.poll_timeout().unwrap();
                    claim.handle_timeout(self.now);
                }
            }
        }
    }
}

#[test]
fn a_lease_is_renewed_every_third_of_its_duration() {
    let mut cluster = Cluster::new();
    let mut lease = cluster.lease("a");
    assert!(!lease.is_valid(cluster.now));
    cluster.renew(&mut lease);
    assert!(lease.is_valid(cluster.now));
    for round in 2..10 {
        let next = lease.poll_timeout().unwrap();
        assert_eq!(next - cluster.now, LeaseConfig::default().lease / 3);
        cluster.now = next;
        lease.handle_timeout(next);
        cluster.renew(&mut lease);
        assert_eq!(cluster.nodes.last, round);
    }
    assert_eq!(lease.poll_event(), Some(LeaseEvent::Acquired));
    assert_eq!(lease.poll_event(), None);
}

#[test]
fn a_lease_starts_when_sent_and_ends_a_margin_early() {
    let mut cluster = Cluster::new();
    let mut lease = cluster.lease("a");
    let sent = cluster.now;
    cluster.now += SECOND;
    cluster.renew(&mut lease);
    assert_eq!(lease.valid_until(), Some(sent + 9 * SECOND));
}

#[test]
fn a_pause_of_the_process_ends_the_lease() {
    let mut cluster = Cluster::new();
    let mut lease = cluster.acquired("a");
    let awake = cluster.now + 9 * SECOND;
    assert!(!lease.is_valid(awake), "before anything was handled");
    lease.handle_timeout(awake);
    assert_eq!(
        lease.poll_event(),
        Some(LeaseEvent::Lost(LeaseLost::Expired))
    );
    assert!(!lease.is_valid(awake));
    assert_eq!((lease.poll_request(), lease.poll_timeout()), (None, None));
}

#[test]
fn a_late_reply_does_not_revive_a_lease() {
    let mut cluster = Cluster::new();
    let mut lease = cluster.acquired("a");
    cluster.now = lease.poll_timeout().unwrap();
    lease.handle_timeout(cluster.now);
    cluster.now += 9 * SECOND;
    cluster.renew(&mut lease);
    assert_eq!(
        lease.poll_event(),
        Some(LeaseEvent::Lost(LeaseLost::Expired))
    );
}

#[test]
fn a_renewal_with_a_lost_reply_is_found_by_reading() {
    let mut cluster = Cluster::new();
    let mut lease = cluster.acquired("a");
    cluster.now = lease.poll_timeout().unwrap();
    lease.handle_timeout(cluster.now);
    let request = lease.poll_request().unwrap();
    cluster.nodes.apply("a", "a", &request.operation);
    // It goes on asking until the answer to another renewal comes.
    for _ in 0..2 {
        cluster.now = lease.poll_timeout().unwrap();
        lease.handle_timeout(cluster.now);
    }
    let sent = cluster.now;
    cluster.renew(&mut lease);
    assert_eq!(cluster.nodes.last, 3);
    assert_eq!(lease.valid_until(), Some(sent + 9 * SECOND));
}

#[test]
fn a_lease_missing_from_the_store_is_lost() {
    let mut cluster = Cluster::new();
    let mut lease = cluster.acquired("a");
    cluster.nodes.keys.clear();
    cluster.now = lease.poll_timeout().unwrap();
    lease.handle_timeout(cluster.now);
    cluster.renew(&mut lease);
    assert_eq!(
        lease.poll_event(),
        Some(LeaseEvent::Lost(LeaseLost::Removed))
    );
    assert!(cluster.nodes.keys.is_empty(), "it does not come back");
}

#[test]
fn two_nodes_with_one_id_are_detected() {
    let mut cluster = Cluster::new();
    cluster.nodes.write("a", "other", 0);
    let mut lease = cluster.lease("a");
    cluster.renew(&mut lease);
    assert_eq!(lease.poll_event(), Some(LeaseEvent::Lost(LeaseLost::Taken)));
}

#[test]
fn a_released_lease_ends_and_removes_its_key() {
    let mut cluster = Cluster::new();
    let mut lease = cluster.acquired("a");
    lease.release(cluster.now);
    assert!(!lease.is_valid(cluster.now));
    assert_eq!(
        lease.poll_event(),
        Some(LeaseEvent::Lost(LeaseLost::Released))
    );
    cluster.renew(&mut lease);
    assert!(cluster.nodes.keys.is_empty());
    assert_eq!(lease.poll_timeout(), None);
}

#[test]
fn an_unreachable_store_is_retried_at_start() {
    let mut cluster = Cluster::new();
    let mut lease = cluster.lease("a");
    for _ in 0..50 {
        let _ = lease.poll_request();
        cluster.now = lease.poll_timeout().unwrap();
        lease.handle_timeout(cluster.now);
    }
    while lease.poll_event().is_none() {
        cluster.renew(&mut lease);
        cluster.now = lease.poll_timeout().unwrap();
        lease.handle_timeout(cluster.now);
    }
    assert!(lease.is_valid(cluster.now));
}

#[test]
fn a_name_without_owner_is_created() {
    let mut cluster = Cluster::new();
    let mut claim = cluster.claim("a");
    let owned = ClaimEvent::Owned {
        fence: 1,
        taken_from: None,
    };
    assert_eq!(cluster.settle("a", &mut claim), owned);
    assert_eq!((claim.fence(), claim.poll_timeout()), (Some(1), None));
}

#[test]
fn a_name_of_a_live_node_is_held() {
    let mut cluster = Cluster::new();
    let _alive = cluster.acquired("a");
    cluster.settle(
        "a",
        &mut Claim::new("a", ClaimConfig::default(), cluster.now),
    );
    let mut claim = cluster.claim("b");
    let held = ClaimEvent::Held { node: "a".into() };
    assert_eq!(cluster.settle("b", &mut claim), held);
    assert_eq!((claim.fence(), claim.poll_timeout()), (None, None));
}

#[test]
fn a_name_of_a_dead_node_is_taken_over_once() {
    let mut cluster = Cluster::new();
    cluster.settle(
        "a",
        &mut Claim::new("a", ClaimConfig::default(), cluster.now),
    );
    let _alive = cluster.acquired("b");
    let mut claims = [cluster.claim("b"), cluster.claim("c")];
    // Both find that the node is gone before either writes.
    for (claim, node) in claims.iter_mut().zip(["b", "c"]) {
        for _ in 0..2 {
            let request = claim.poll_request().unwrap();
            let reply = cluster.answer(node, &request);
            claim.handle_reply(request.number, reply, cluster.now);
        }
    }
    let [b, c] = &mut claims;
    let owned = ClaimEvent::Owned {
        fence: 2,
        taken_from: Some("a".into()),
    };
    assert_eq!(cluster.settle("b", b), owned);
    let held = ClaimEvent::Held { node: "b".into() };
    assert_eq!(cluster.settle("c", c), held);
}

#[test]
fn a_claim_with_a_lost_reply_gets_a_new_revision() {
    let mut cluster = Cluster::new();
    let mut claim = cluster.claim("a");
    let request = claim.poll_request().unwrap();
    let reply = cluster.answer("a", &request);
    claim.handle_reply(request.number, reply, cluster.now);
    let created = claim.poll_request().unwrap();
    let _lost = cluster.answer("a", &created);
    assert!(matches!(
        cluster.settle("a", &mut claim),
        ClaimEvent::Owned { fence: 2, .. }
    ));
}

#[test]
fn an_unresponsive_store_fails_a_claim_at_the_deadline() {
    let mut cluster = Cluster::new();
    let mut claim = cluster.claim("a");
    let start = cluster.now;
    let event = loop {
        let _ = claim.poll_request();
        if let Some(event) = claim.poll_event() {
            break event;
        }
        cluster.now = claim.poll_timeout().unwrap();
        claim.handle_timeout(cluster.now);
    };
    assert_eq!(event, ClaimEvent::Unavailable);
    assert_eq!(cluster.now - start, ClaimConfig::default().deadline);
    assert_eq!(claim.poll_timeout(), None);
}

#[test]
fn a_released_name_can_be_claimed() {
    let mut cluster = Cluster::new();
    let _alive = cluster.acquired("a");
    let mut claim = cluster.claim("a");
    cluster.settle("a", &mut claim);
    claim.release(cluster.now);
    assert_eq!(claim.fence(), None);
    assert_eq!(cluster.settle("a", &mut claim), ClaimEvent::Released);
    assert!(matches!(
        {
            let mut other = cluster.claim("b");
            cluster.settle("b", &mut other)
        },
        ClaimEvent::Owned { .. }
    ));
}

#[test]
fn stale_replies_are_ignored() {
    let mut cluster = Cluster::new();
    let mut claim = cluster.claim("a");
    let late = claim.poll_request().unwrap();
    cluster.now = claim.poll_timeout().unwrap();
    claim.handle_timeout(cluster.now);
    claim.handle_reply(late.number, Reply::Missing, cluster.now);
    assert_eq!(claim.poll_request(), None);
    let mut lease = cluster.acquired("a");
    lease.handle_reply(1, Reply::Conflict, cluster.now);
    assert!(lease.is_valid(cluster.now) && lease.poll_request().is_none());
}
