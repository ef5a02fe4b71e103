//! Three nodes that race, die, pause and lose answers, against a model in virtual time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use exoclaw_proto::budget::pools::{SECONDS_PER_DAY, month_of};

/// How a request ends.
#[derive(Clone, Copy, Debug)]
enum How {
    Done,
    NotSent,
    /// It was carried out, and nobody says so.
    AnswerLost,
    /// It is carried out later, if it still can be.
    Late,
}

#[derive(Clone, Debug)]
enum Step {
    Reserve {
        node: usize,
        estimate: u64,
    },
    Record {
        node: usize,
        which: usize,
        tokens: u64,
    },
    Settle {
        node: usize,
        which: usize,
    },
    Deliver {
        node: usize,
        how: How,
    },
    Arrive {
        which: usize,
    },
    Kill {
        node: usize,
    },
    Suspect {
        node: usize,
    },
    Rename {
        node: usize,
    },
    Sleep {
        seconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        8 => Just(How::Done),
        1 => Just(How::NotSent),
        2 => Just(How::AnswerLost),
        1 => Just(How::Late),
    ];
    prop_oneof![
        8 => (0_usize..3, 0_u64..30).prop_map(|(node, estimate)| Step::Reserve { node, estimate }),
        6 => (0_usize..3, any::<usize>(), 0_u64..40)
            .prop_map(|(node, which, tokens)| Step::Record { node, which, tokens }),
        4 => (0_usize..3, any::<usize>()).prop_map(|(node, which)| Step::Settle { node, which }),
        30 => (0_usize..3, how).prop_map(|(node, how)| Step::Deliver { node, how }),
        2 => any::<usize>().prop_map(|which| Step::Arrive { which }),
        1 => (0_usize..3).prop_map(|node| Step::Kill { node }),
        1 => (0_usize..3).prop_map(|node| Step::Suspect { node }),
        1 => (0_usize..3).prop_map(|node| Step::Rename { node }),
        1 => (0..40 * SECONDS_PER_DAY).prop_map(|seconds| Step::Sleep { seconds }),
    ]
}

struct Node {
    name: String,
    former: Vec<String>,
    ledger: SharedLedger,
    pending: Option<LedgerRequest>,
    open: Vec<Reservation>,
    waiting: BTreeMap<Ticket, u64>,
    /// What its runs used, by their day.
    used: BTreeMap<u64, u64>,
    is_suspected: bool,
}

struct World {
    budgets: Budgets,
    store: Store,
    nodes: Vec<Node>,
    /// What dead nodes had written, by day.
    dead: Vec<BTreeMap<u64, u64>>,
    late: Vec<(String, Option<u64>)>,
    names: usize,
    now: u64,
}

impl World {
    fn new(budgets: Budgets, now: u64) -> Self {
        let mut world = Self {
            budgets,
            store: Store::default(),
            nodes: Vec::new(),
            dead: Vec::new(),
            late: Vec::new(),
            names: 0,
            now,
        };
        for _ in 0..3 {
            let node = world.node();
            world.nodes.push(node);
        }
        world
    }

    fn node(&mut self) -> Node {
        self.names += 1;
        let name = format!("n{}", self.names);
        Node {
            ledger: SharedLedger::new(self.budgets, name.clone()),
            name,
            former: Vec::new(),
            pending: None,
            open: Vec::new(),
            waiting: BTreeMap::new(),
            used: BTreeMap::new(),
            is_suspected: false,
        }
    }

    fn day(&self) -> u64 {
        day_of(self.now)
    }

    fn deliver(&mut self, at: usize, how: How) -> Result<(), TestCaseError> {
        let alive = self.nodes.iter().filter(|node| !node.is_suspected);
        let alive: Vec<_> = alive.map(|node| node.name.clone()).collect();
        let node = &mut self.nodes[at];
        let request = node.pending.take();
        let Some(request) = request.or_else(|| node.ledger.poll_request(self.now)) else {
            return self.take_events(at);
        };
        match (request, how) {
            (LedgerRequest::Read, How::Done) => {
                let value = self.store.value.as_ref();
                let value = value.map(|text| (text.as_bytes(), self.store.revision));
                node.ledger.handle_read(value).unwrap();
            }
            (LedgerRequest::FindGone(mut asked), How::Done) => {
                asked.retain(|name| !alive.contains(name));
                node.ledger.handle_gone(&asked);
            }
            (LedgerRequest::Write { value, revision }, How::Done) => {
                match self.store.write(value, revision) {
                    Some(revision) => node.ledger.handle_written(revision),
                    None => node.ledger.handle_failed(),
                }
            }
            (LedgerRequest::Write { value, revision }, How::AnswerLost) => {
                self.store.write(value, revision);
                node.ledger.handle_failed();
            }
            (LedgerRequest::Write { value, revision }, How::Late) => {
                self.late.push((value, revision));
                node.ledger.handle_failed();
            }
            _ => node.ledger.handle_failed(),
        }
        self.take_events(at)
    }

    fn take_events(&mut self, at: usize) -> Result<(), TestCaseError> {
        let totals = self.store.totals(None, self.day());
        let node = &mut self.nodes[at];
        while let Some(event) = node.ledger.poll_event() {
            match event {
                LedgerEvent::Admitted(ticket, reservation) => {
                    let estimate = node.waiting.remove(&ticket);
                    prop_assert!(estimate.is_some(), "an answer twice");
                    prop_assert!(totals.check(self.budgets, 0).is_ok(), "{totals:?}");
                    node.open.push(reservation);
                }
                LedgerEvent::Refused(ticket, exceeded) => {
                    let estimate = node.waiting.remove(&ticket);
                    prop_assert!(estimate.is_some(), "an answer twice");
                    let limit = match exceeded.scope {
                        Scope::Daily => self.budgets.daily,
                        _ => self.budgets.monthly,
                    };
                    prop_assert_eq!(Some(exceeded.limit), limit);
                }
                LedgerEvent::Refreshed(_) => {}
            }
        }
        Ok(())
    }

    fn kill(&mut self, at: usize) {
        let day = self.day();
        // Its late writes are refused from now on: somebody else writes first.
        self.late.clear();
        let Node { name, former, .. } = &self.nodes[at];
        let names = former.iter().chain([name]);
        let stored = names
            .map(|name| self.store.totals(Some(name), day))
            .fold(Pools::default(), Pools::plus);
        let mut used = BTreeMap::new();
        used.insert(day, stored.daily.used);
        let earlier = stored.monthly.used - stored.daily.used;
        // Some other day of the month, so that it counts for the month only.
        let other = if day > 0 && month_of(day - 1) == month_of(day) {
            day - 1
        } else {
            day + 1
        };
        if earlier > 0 {
            used.insert(other, earlier);
        }
        self.dead.push(used);
        self.nodes[at] = self.node();
    }

    fn rename(&mut self, at: usize) {
        self.names += 1;
        let node = &mut self.nodes[at];
        let name = format!("n{}", self.names);
        node.ledger.rename(name.clone());
        let former = std::mem::replace(&mut node.name, name);
        node.former.push(former);
    }

    fn expected(&self, of: impl Fn(u64) -> bool) -> u64 {
        let all = self.nodes.iter().map(|node| &node.used).chain(&self.dead);
        let used = all.flatten().filter(|(day, _)| of(**day));
        used.map(|(_, tokens)| tokens).sum()
    }

    /// Lets everything settle, and compares.
    fn finish(mut self) -> Result<(), TestCaseError> {
        for at in 0..3 {
            loop {
                self.deliver(at, How::Done)?;
                let open = std::mem::take(&mut self.nodes[at].open);
                let ledger = &mut self.nodes[at].ledger;
                if open.is_empty() && ledger.is_written() {
                    break;
                }
                open.into_iter().for_each(|run| ledger.settle(run));
            }
            prop_assert!(
                self.nodes[at].waiting.is_empty(),
                "a call without an answer"
            );
        }
        let day = self.day();
        let totals = self.store.totals(None, day);
        prop_assert_eq!(totals.daily.used, self.expected(|it| it == day));
        let month = |it| month_of(it) == month_of(day);
        prop_assert_eq!(totals.monthly.used, self.expected(month));
        for node in &mut self.nodes {
            let own = self.store.totals(Some(&node.name), day);
            prop_assert_eq!((own.daily.reserved, own.monthly.reserved), (0, 0));
            node.ledger.close();
            self.store.serve(&mut node.ledger, self.now, &[]);
            prop_assert_eq!(node.ledger.change(), node.ledger.written());
        }
        let left = self.store.totals(None, day);
        prop_assert_eq!(left.daily.used, totals.daily.used);
        Ok(())
    }
}

proptest! {
    #[test]
    fn three_nodes_count_every_token_once_whatever_is_lost(
        limits in prop::array::uniform2(prop::option::of(0_u64..200)),
        steps in prop::collection::vec(step(), 0..250),
        start in 0_u64..4_000_000_000,
    ) {
        let [daily, monthly] = limits;
        let budgets = Budgets {
daily,
monthly,
..Budgets::default()
};
        let mut world = World::new(budgets, start);
        for step in steps {
            match step {
                Step::Reserve { node, estimate } => {
                    let node = &mut world.nodes[node];
                    let ticket = node.ledger.reserve(0, estimate).unwrap();
                    node.waiting.insert(ticket, estimate);
                }
                Step::Record { node, which, tokens } if !world.nodes[node].open.is_empty() => {
                    let node = &mut world.nodes[node];
                    let which = which % node.open.len();
                    let day = node.open[which].day;
                    node.ledger.record(&mut node.open[which], tokens);
                    *node.used.entry(day).or_default() += tokens;
                }
                Step::Settle { node, which } if !world.nodes[node].open.is_empty() => {
                    let node = &mut world.nodes[node];
                    let which = which % node.open.len();
                    let run = node.open.swap_remove(which);
                    node.ledger.settle(run);
                }
                Step::Deliver { node, how } => world.deliver(node, how)?,
                Step::Arrive { which } if !world.late.is_empty() => {
                    let which = which % world.late.len();
                    let (value, revision) = world.late.swap_remove(which);
                    world.store.write(value, revision);
                }
                Step::Kill { node } => world.kill(node),
                Step::Suspect { node } => world.nodes[node].is_suspected ^= true,
                Step::Rename { node } => world.rename(node),
                Step::Sleep { seconds } => world.now += seconds,
                _ => {}
            }
        }
        world.finish()?;
    }

    #[test]
    fn a_raced_budget_is_overshot_by_what_is_in_flight_at_most(
        limit in 0_u64..300,
        steps in prop::collection::vec((0_usize..3, 0_u64..10, 0_u64..4), 0..400),
    ) {
        const OPEN: usize = 2;
        const BEYOND: u64 = 7;
        let mut world = World::new(daily(limit), 0);
        for (node, estimate, action) in steps {
            match action {
                0 if world.nodes[node].open.len() + world.nodes[node].waiting.len() < OPEN => {
                    let node = &mut world.nodes[node];
                    let ticket = node.ledger.reserve(0, estimate).unwrap();
                    node.waiting.insert(ticket, estimate);
                }
                1 if !world.nodes[node].open.is_empty() => {
                    let node = &mut world.nodes[node];
                    let mut run = node.open.swap_remove(0);
                    let tokens = run.held + BEYOND;
                    node.ledger.record(&mut run, tokens);
                    *node.used.entry(0).or_default() += tokens;
                    node.ledger.settle(run);
                }
                2 => world.deliver(node, How::AnswerLost)?,
                _ => world.deliver(node, How::Done)?,
            }
        }
        let most = limit + 3 * OPEN as u64 * BEYOND;
        prop_assert!(world.expected(|_| true) <= most);
        world.finish()?;
    }
}
