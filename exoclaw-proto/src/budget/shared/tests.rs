//! Tests of [`SharedLedger`]: nodes that race, die, pause and lose answers, against a model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::budget::Date;
use crate::budget::date::SECONDS_PER_DAY;

fn key() -> SessionKey {
    SessionKey::new("default", "websocket", "ann", "main")
}

/// The store: one value with a revision.
#[derive(Debug, Default)]
struct Store {
    value: Option<String>,
    revision: u64,
}

impl Store {
    fn write(&mut self, value: String, revision: Option<u64>) -> Option<u64> {
        let current = self.value.as_ref().map(|_| self.revision);
        (current == revision).then(|| {
            self.value = Some(value);
            self.revision += 1;
            self.revision
        })
    }

    fn totals(&self, node: Option<&str>, day: u64) -> Pools {
        let value: Value = match &self.value {
            Some(text) => serde_json::from_str(text).unwrap(),
            None => Value::default(),
        };
        let mut pools = match node {
            Some(node) => value.get(node).unwrap_or_default(),
            None => value.others(""),
        };
        pools.advance(day);
        pools
    }

    /// Answers all requests of a node at once.
    fn serve(&mut self, ledger: &mut SharedLedger, now: u64, gone: &[&str]) -> Vec<LedgerEvent> {
        while let Some(request) = ledger.poll_request(now) {
            match request {
                LedgerRequest::Read => {
                    let value = self.value.as_ref();
                    let value = value.map(|text| (text.as_bytes(), self.revision));
                    ledger.handle_read(value).unwrap();
                }
                LedgerRequest::FindGone(asked) => {
                    let is_gone = |name: &String| gone.contains(&&**name);
                    let gone: Vec<_> = asked.into_iter().filter(is_gone).collect();
                    ledger.handle_gone(&gone);
                }
                LedgerRequest::Write { value, revision } => match self.write(value, revision) {
                    Some(revision) => ledger.handle_written(revision),
                    None => ledger.handle_failed(),
                },
            }
        }
        std::iter::from_fn(|| ledger.poll_event()).collect()
    }

    fn admit(&mut self, ledger: &mut SharedLedger, estimate: u64, now: u64) -> Option<Reservation> {
        let asked = ledger.reserve(&key(), 0, estimate).unwrap();
        match &mut self.serve(ledger, now, &[])[..] {
            [LedgerEvent::Admitted(ticket, reservation)] if *ticket == asked => {
                let day = reservation.day;
                let empty = Reservation::uncounted(key(), day, 0);
                Some(std::mem::replace(reservation, empty))
            }
            [LedgerEvent::Refused(ticket, _)] if *ticket == asked => None,
            other => panic!("{other:?}"),
        }
    }
}

fn daily(limit: u64) -> Budgets {
    Budgets::default().with_daily(Some(limit))
}

fn pair(limit: u64) -> [SharedLedger; 2] {
    ["a", "b"].map(|node| SharedLedger::new(daily(limit), node))
}

#[test]
fn nodes_share_one_budget_and_are_refused_with_what_all_have_used() {
    let mut store = Store::default();
    let [mut a, mut b] = pair(100);
    let mut run = store.admit(&mut a, 60, 0).unwrap();
    let ticket = b.reserve(&key(), 0, 50).unwrap();
    let refused = |used| {
        let scope = Scope::Daily;
        let limit = 100;
        Exceeded { scope, used, limit }
    };
    let events = store.serve(&mut b, 0, &[]);
    assert_eq!(events, [LedgerEvent::Refused(ticket, refused(0))]);
    a.record(&mut run, 45);
    a.settle(run);
    assert_eq!(store.serve(&mut a, 0, &[]), []);
    assert!(store.admit(&mut b, 55, 0).is_some());
    assert!(store.admit(&mut a, 1, 0).is_none());
    assert_eq!(
        (a.daily_used(), b.daily_used(), b.monthly_used()),
        (45, 45, 45)
    );
}

#[test]
fn a_refusal_is_never_of_an_old_state() {
    let mut store = Store::default();
    let [mut a, mut b] = pair(100);
    let run = store.admit(&mut a, 100, 0).unwrap();
    assert!(store.admit(&mut b, 1, 0).is_none());
    a.settle(run);
    store.serve(&mut a, 0, &[]);
    assert!(store.admit(&mut b, 100, 0).is_some());
}

#[test]
fn calls_that_come_while_a_write_is_under_way_share_the_next() {
    let mut ledger = SharedLedger::new(daily(1000), "a");
    for _ in 0..10 {
        ledger.reserve(&key(), 0, 5).unwrap();
    }
    assert_eq!(ledger.poll_request(0), Some(LedgerRequest::Read));
    ledger.handle_read(None).unwrap();
    assert!(matches!(
        ledger.poll_request(0),
        Some(LedgerRequest::Write { .. })
    ));
    for _ in 0..10 {
        ledger.reserve(&key(), 0, 5).unwrap();
    }
    assert_eq!(ledger.poll_request(0), None);
    for revision in 1..=2 {
        ledger.handle_written(revision);
        let admitted = std::iter::from_fn(|| ledger.poll_event()).count();
        assert_eq!(admitted, 10);
        let next = ledger.poll_request(0);
        assert_eq!(next.is_some(), revision == 1);
    }
}

#[test]
fn a_write_whose_outcome_is_unknown_counts_once() {
    let mut store = Store::default();
    let [mut a, _] = pair(100);
    let mut run = store.admit(&mut a, 10, 0).unwrap();
    a.record(&mut run, 30);
    a.settle(run);
    let Some(LedgerRequest::Write { value, revision }) = a.poll_request(0) else {
        panic!("it writes");
    };
    assert!(store.write(value.clone(), revision).is_some());
    a.handle_failed();
    assert!(!a.is_written());
    assert_eq!(store.serve(&mut a, 0, &[]), []);
    assert_eq!(store.totals(None, 0).daily, Pool::of(30));
    assert!(a.is_written() && a.written() == a.change());
    assert_eq!(store.write(value, revision), None, "a late copy is refused");
}

#[test]
fn what_a_dead_node_reserved_is_released_and_what_it_used_stays() {
    let mut store = Store::default();
    let [mut a, mut b] = pair(100);
    let mut run = store.admit(&mut a, 80, 0).unwrap();
    a.record(&mut run, 30);
    store.serve(&mut a, 0, &[]);
    drop(a);
    let ticket = b.reserve(&key(), 0, 70).unwrap();
    let events = store.serve(&mut b, 0, &["a"]);
    assert!(
        matches!(events[..], [LedgerEvent::Admitted(it, _)] if it == ticket),
        "{events:?}"
    );
    let totals = store.totals(None, 0).daily;
    assert_eq!((totals.used, totals.reserved), (30, 70));
}

#[test]
fn a_node_that_was_taken_for_dead_goes_on_under_another_name_and_is_counted_once() {
    let mut store = Store::default();
    let [mut a, mut b] = pair(100);
    let mut run = store.admit(&mut a, 80, 0).unwrap();
    a.record(&mut run, 30);
    store.serve(&mut a, 0, &[]);
    let _ticket = b.reserve(&key(), 0, 70).unwrap();
    store.serve(&mut b, 0, &["a"]);
    a.rename("a2");
    store.serve(&mut a, 0, &[]);
    let totals = store.totals(None, 0).daily;
    assert_eq!((totals.used, totals.reserved), (30, 50 + 70));
    assert_eq!(store.totals(Some("a"), 0).daily, Pool::default());
    a.record(&mut run, 50);
    a.settle(run);
    store.serve(&mut a, 0, &[]);
    assert_eq!(store.totals(None, 0).daily.used, 80);
}

#[test]
fn a_node_that_leaves_has_its_tokens_counted_by_the_others() {
    let mut store = Store::default();
    let [mut a, mut b] = pair(100);
    let mut run = store.admit(&mut a, 10, 0).unwrap();
    a.record(&mut run, 30);
    a.settle(run);
    a.close();
    assert!(!a.is_written());
    store.serve(&mut a, 0, &[]);
    assert!(a.is_written());
    assert_eq!(store.totals(Some("a"), 0), Pools::default());
    assert!(store.admit(&mut b, 71, 0).is_none());
    assert_eq!(b.daily_used(), 30);
}

#[test]
fn a_node_whose_farewell_has_an_unknown_outcome_counts_once() {
    let mut store = Store::default();
    let [mut a, _] = pair(100);
    let mut run = store.admit(&mut a, 10, 0).unwrap();
    a.record(&mut run, 30);
    a.settle(run);
    store.serve(&mut a, 0, &[]);
    a.close();
    let Some(LedgerRequest::Write { value, revision }) = a.poll_request(0) else {
        panic!("it writes");
    };
    store.write(value, revision).unwrap();
    a.handle_failed();
    store.serve(&mut a, 0, &[]);
    assert!(a.is_written());
    assert_eq!(store.totals(None, 0).daily.used, 30);
}

#[test]
fn a_withdrawn_call_holds_nothing() {
    let mut store = Store::default();
    let [mut a, _] = pair(100);
    let waiting = a.reserve(&key(), 0, 50).unwrap();
    a.cancel(waiting);
    assert_eq!(store.serve(&mut a, 0, &[]), []);
    let sent = a.reserve(&key(), 0, 50).unwrap();
    assert_eq!(a.poll_request(0), Some(LedgerRequest::Read));
    a.handle_read(None).unwrap();
    let Some(LedgerRequest::Write { value, revision }) = a.poll_request(0) else {
        panic!("it writes");
    };
    a.cancel(sent);
    a.handle_written(store.write(value, revision).unwrap());
    assert_eq!(store.serve(&mut a, 0, &[]), []);
    let admitted = a.reserve(&key(), 0, 50).unwrap();
    let Some(LedgerRequest::Write { value, revision }) = a.poll_request(0) else {
        panic!("it writes");
    };
    a.handle_written(store.write(value, revision).unwrap());
    a.cancel(admitted);
    assert_eq!(store.serve(&mut a, 0, &[]), []);
    assert_eq!(store.totals(None, 0), Pools::default());
}

#[test]
fn the_budget_of_a_session_is_checked_at_once() {
    let mut ledger = SharedLedger::new(Budgets::default().with_session(Some(10)), "a");
    let refused = ledger.reserve(&key(), 8, 3).unwrap_err();
    assert_eq!(refused.to_string(), "token budget exceeded (session: 8/10)");
    assert!(ledger.reserve(&key(), 8, 2).is_ok());
}

#[test]
fn without_a_budget_for_all_a_run_waits_for_no_write() {
    let mut ledger = SharedLedger::new(Budgets::default(), "a");
    let ticket = ledger.reserve(&key(), 0, 5).unwrap();
    assert_eq!(ledger.poll_request(0), None);
    assert!(matches!(ledger.poll_event(), Some(LedgerEvent::Admitted(it, _)) if it == ticket));
}

#[test]
fn a_damaged_value_is_told_and_read_again() {
    let mut ledger = SharedLedger::new(daily(1), "a");
    ledger.refresh();
    assert_eq!(ledger.poll_request(0), Some(LedgerRequest::Read));
    assert!(ledger.handle_read(Some((b"{", 1))).is_err());
    assert_eq!(ledger.poll_request(0), Some(LedgerRequest::Read));
}

#[test]
fn many_nodes_that_are_gone_take_no_room() {
    let mut store = Store::default();
    for number in 0..300 {
        let mut ledger = SharedLedger::new(daily(1000), format!("n{number}"));
        let mut run = store.admit(&mut ledger, 2, 0).unwrap();
        ledger.record(&mut run, 1);
        store.serve(&mut ledger, 0, &[]);
    }
    let mut last = SharedLedger::new(daily(1000), "last");
    let gone: Vec<_> = (0..300).map(|number| format!("n{number}")).collect();
    let gone: Vec<_> = gone.iter().map(String::as_str).collect();
    last.reserve(&key(), 0, 700).unwrap();
    let events = store.serve(&mut last, 0, &gone);
    assert!(
        matches!(events[..], [LedgerEvent::Admitted(..)]),
        "{events:?}"
    );
    assert_eq!(store.totals(None, 0).daily.used, 300);
    assert!(store.value.unwrap().len() < 10_000);
}

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

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    fn node(&mut self) -> Node {
        let name = self.name();
        Node {
            ledger: SharedLedger::new(self.budgets, name.clone()),
            name,
            pending: None,
            open: Vec::new(),
            waiting: BTreeMap::new(),
            used: BTreeMap::new(),
            former: Vec::new(),
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
        let names = self.nodes[at].former.iter().chain([&self.nodes[at].name]);
        let stored = names.map(|name| self.store.totals(Some(name), day));
        let stored = stored.fold(Pools::default(), Pools::plus);
        let mut used = BTreeMap::new();
        used.insert(day, stored.daily.used);
        let earlier = stored.monthly.used - stored.daily.used;
        // Some other day of the month, so that it counts for the month only.
        let other = if day > 0 && Date::from_day(day - 1).same_month(Date::from_day(day)) {
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
        let month = |it| Date::from_day(it).same_month(Date::from_day(day));
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
        let budgets = Budgets::default().with_daily(daily).with_monthly(monthly);
        let mut world = World::new(budgets, start);
        for step in steps {
            match step {
                Step::Reserve { node, estimate } => {
                    let node = &mut world.nodes[node];
                    let ticket = node.ledger.reserve(&key(), 0, estimate).unwrap();
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
                Step::Suspect { node } if world.nodes[node].is_suspected => {
                    let name = world.name();
                    let node = &mut world.nodes[node];
                    node.is_suspected = false;
                    node.ledger.rename(name.clone());
                    let former = std::mem::replace(&mut node.name, name);
                    node.former.push(former);
                }
                Step::Suspect { node } => world.nodes[node].is_suspected = true,
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
                    let ticket = node.ledger.reserve(&key(), 0, estimate).unwrap();
                    node.waiting.insert(ticket, estimate);
                }
                1 if !world.nodes[node].open.is_empty() => {
                    let node = &mut world.nodes[node];
                    let mut run = node.open.swap_remove(0);
                    let tokens = run.held() + BEYOND;
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
