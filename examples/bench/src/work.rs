//! [`Work`]: what is counted, done by us and by the peers, and what is asked of it.

/// Does the work so many times.
pub(crate) type Run = Box<dyn Fn(u64)>;

/// One piece of work, done in several ways.
pub(crate) struct Work {
    pub(crate) name: String,
    /// How often the work is done in one measurement.
    pub(crate) rounds: u64,
    /// Ours, [`OURS`], comes first.
    pub(crate) ways: Vec<Way>,
    /// How many allocations per round are allowed; `None`: not bounded.
    pub(crate) max_allocations: Option<f64>,
    /// Whether it is one of the frames that goal 1 sums up.
    pub(crate) is_hot: bool,
}

/// A way of doing it, and the goal that it sets for ours.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    /// At least so many times our instructions.
    pub(crate) least: f64,
    /// What was reached instead, and why, where a goal is out of reach.
    pub(crate) missed: Option<(f64, &'static str)>,
}

impl Work {
    /// `bytes` is about how long the text is that is read or written.
    pub(crate) fn new(name: impl Into<String>, bytes: u64, ours: impl Fn(u64) + 'static) -> Self {
        let work = Self {
            name: name.into(),
            // Small frames often, large ones seldom: about the same work for each measurement.
            rounds: (400_000 / bytes.max(200)).clamp(4, 2_000),
            ways: Vec::new(),
            max_allocations: None,
            is_hot: false,
        };
        work.beside(OURS, 1.0, ours)
    }

    /// A peer, which has to take at least so many times our instructions.
    pub(crate) fn beside(
        mut self,
        name: &'static str,
        least: f64,
        run: impl Fn(u64) + 'static,
    ) -> Self {
        self.ways.push(Way {
            name,
            run: Box::new(run),
            least,
            missed: None,
        });
        self
    }

    /// The goal beside this peer is out of reach: what was reached instead must not be lost.
    pub(crate) fn missed(mut self, peer: &str, reached: f64, why: &'static str) -> Self {
        let way = self.ways.iter_mut().find(|way| way.name == peer);
        way.expect("no such peer").missed = Some((reached, why));
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
