//! What is measured: a piece of work, done by us and by the peers. What the goals ask of it stands
//! in [`goals`](crate::goals).

/// Does the work so many times.
pub(crate) type Run = fn(u64);

/// One piece of work, done in several ways.
pub(crate) struct Work {
    /// The goal's number.
    pub(crate) goal: &'static str,
    pub(crate) name: &'static str,
    /// How often the work is done in one measurement.
    pub(crate) rounds: u64,
    pub(crate) ours: Run,
    pub(crate) peers: Vec<Peer>,
    /// How many allocations per round are allowed; `None`: not bounded.
    pub(crate) max_allocations: Option<f64>,
}

/// The same work done by somebody else.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    run: Run,
}

impl Work {
    /// `bytes` is about how long the text is that is read or written.
    pub(crate) fn new(goal: &'static str, name: &'static str, bytes: usize, ours: Run) -> Self {
        // Small frames often, large ones seldom: about the same work for each measurement.
        let rounds = (400_000 / (bytes as u64).max(200)).clamp(4, 2_000);
        Self {
            goal,
            name,
            rounds,
            ours,
            peers: Vec::new(),
            max_allocations: None,
        }
    }

    pub(crate) fn beside(mut self, name: &'static str, run: Run) -> Self {
        self.peers.push(Peer { name, run });
        self
    }

    pub(crate) fn allocating(mut self, at_most: f64) -> Self {
        self.max_allocations = Some(at_most);
        self
    }

    pub(crate) fn rounds(mut self, rounds: u64) -> Self {
        self.rounds = rounds;
        self
    }

    /// Finds a way of doing it; ours is called `ours`.
    pub(crate) fn way(&self, name: &str) -> Option<Run> {
        if name == OURS {
            return Some(self.ours);
        }
        let peer = self.peers.iter().find(|peer| peer.name == name)?;
        Some(peer.run)
    }
}

/// The name of our own way.
pub(crate) const OURS: &str = "ours";

/// All that is counted in instructions.
pub(crate) fn all() -> Vec<Work> {
    let mut works = crate::decode::works();
    works.extend(crate::encode::works());
    works.extend(crate::frames::works());
    works.extend(crate::pending::works());
    works.extend(crate::ws::works());
    works.extend(crate::costs::works());
    works.extend(crate::net::works::works());
    works
}
