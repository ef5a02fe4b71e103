//! [`Work`]: what is counted, done by us and by the peers. What the goals ask of it stands in
//! [`goals`](crate::goals).

/// Does the work so many times.
pub(crate) type Run = Box<dyn Fn(u64)>;

/// One piece of work, done in several ways.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    /// How often the work is done in one measurement.
    pub(crate) rounds: u64,
    /// Each way's name and work; ours, [`OURS`], comes first.
    pub(crate) ways: Vec<(&'static str, Run)>,
    /// How many allocations per round are allowed; `None`: not bounded.
    pub(crate) max_allocations: Option<f64>,
}

impl Work {
    /// `bytes` is about how long the text is that is read or written.
    pub(crate) fn new(name: &'static str, bytes: u64, ours: impl Fn(u64) + 'static) -> Self {
        Self {
            name,
            // Small frames often, large ones seldom: about the same work for each measurement.
            rounds: (400_000 / bytes.max(200)).clamp(4, 2_000),
            ways: vec![(OURS, Box::new(ours))],
            max_allocations: None,
        }
    }

    pub(crate) fn beside(mut self, peer: &'static str, run: impl Fn(u64) + 'static) -> Self {
        self.ways.push((peer, Box::new(run)));
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

    /// Finds a way of doing it.
    pub(crate) fn way(&self, name: &str) -> Option<&Run> {
        let way = self.ways.iter().find(|(way, _)| *way == name)?;
        Some(&way.1)
    }
}

/// The name of our own way.
pub(crate) const OURS: &str = "ours";

/// All that is counted in instructions.
pub(crate) fn all() -> Vec<Work> {
    let mut works = crate::frames::works();
    works.extend(crate::pending::works());
    works.extend(crate::net::works());
    works
}
