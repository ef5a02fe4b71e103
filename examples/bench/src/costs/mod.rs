//! What single steps cost: a message to many members, a signature, a resumed session, a stored
//! record. Nothing is asked of these; the peers do the same work by hand.

mod broadcast;
mod resume;
mod routed;
mod signatures;
mod sockets;
mod storage;

use crate::report::Report;
use crate::time;
use crate::work::Work;

/// The name of the section, for `--goals`.
const COSTS: &str = "costs";

pub(crate) fn works() -> Vec<Work> {
    let mut works = broadcast::works();
    works.extend(routed::works());
    works.extend(sockets::works());
    works.extend(signatures::works());
    works.extend(resume::works());
    works
}

/// Adds the rows that are measured in time.
pub(crate) fn table(report: &mut Report, quick: bool) {
    for work in works() {
        time::rows(report, COSTS, &work, work.rounds);
    }
    storage::table(report, quick);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::OURS;

    #[test]
    fn every_way_does_its_work() {
        for work in works() {
            let peers = work.peers.iter().map(|peer| peer.name);
            for way in peers.chain([OURS]) {
                work.way(way).unwrap()(1);
            }
        }
    }
}
