//! Prompts of ConnectOnion whose agent answers at once: at a host alone, at the owner of the session,
//! and through another host.

use std::sync::atomic::{AtomicUsize, Ordering};

use connectonion_proto::client::Resume;

use super::{ALONE, Cluster, beside};
use crate::net::load::Pace;
use crate::net::load::connectonion::{Caller, TURNS};
use crate::report::Report;

/// How many prompts of a session are measured: of those that it gets, the first opens it, and a fifth
/// of the others are to warm up.
const MEASURED: usize = 12;
const _: () = assert!(1 + MEASURED / 4 + MEASURED <= TURNS);

/// Where the client of a session is.
const AT_OWNER: &str = "two nodes, at the owner";
const RELAYED: &str = "two nodes, through the other one";

pub(super) fn table(report: &mut Report, quick: bool) {
    let sessions = if quick { 40 } else { 150 };
    let what = "ConnectOnion prompt, answered at once, 1 in flight";
    let others = [(ALONE, None), (RELAYED, None)];
    beside(report, what, AT_OWNER, &others, |way| {
        let cluster = Cluster::start(way, "onion", &[]);
        let addresses: Vec<&str> = cluster.nodes.iter().map(|(_, it)| it.as_str()).collect();
        let (owner, last) = (addresses[0], addresses[addresses.len() - 1]);
        let through = if way == RELAYED { last } else { owner };
        let words = ["prompts", &sessions.to_string(), owner, through];
        cluster.cost(&words, sessions * MEASURED).0
    });
}

/// Opens so many sessions at their owner, and prompts them in turn through a host.
pub(super) async fn load(sessions: usize, owner: &str, through: &str) {
    let mut callers = Vec::new();
    for place in 0..sessions {
        let mut caller = Caller::open(owner, place, Resume::default()).await;
        caller.ask().await;
        if through != owner {
            caller = Caller::open(through, place, caller.session()).await;
        }
        callers.push(caller);
    }
    let next = AtomicUsize::new(0);
    let pace = Pace {
        in_flight: 1,
        calls: sessions * MEASURED,
        is_led: true,
    };
    pace.measure(|_| callers[next.fetch_add(1, Ordering::Relaxed) % sessions].ask())
        .await;
}
