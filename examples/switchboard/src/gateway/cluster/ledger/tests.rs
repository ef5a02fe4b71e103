//! Tests of [`SharedLedger`]: one step at a time; [`race`] has nodes that die, pause and lose answers.

mod race;

use super::*;

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
        let asked = ledger.reserve(0, estimate).unwrap();
        match &mut self.serve(ledger, now, &[])[..] {
            [LedgerEvent::Admitted(ticket, reservation)] if *ticket == asked => {
                let day = reservation.day;
                let empty = Reservation { day, held: 0 };
                Some(std::mem::replace(reservation, empty))
            }
            [LedgerEvent::Refused(ticket, _)] if *ticket == asked => None,
            other => panic!("{other:?}"),
        }
    }
}

fn daily(limit: u64) -> Budgets {
    Budgets {
        daily: Some(limit),
        ..Budgets::default()
    }
}

fn pair(limit: u64) -> [SharedLedger; 2] {
    ["a", "b"].map(|node| SharedLedger::new(daily(limit), node))
}

#[test]
fn nodes_share_one_budget_and_are_refused_with_what_all_have_used() {
    let mut store = Store::default();
    let [mut a, mut b] = pair(100);
    let mut run = store.admit(&mut a, 60, 0).unwrap();
    let ticket = b.reserve(0, 50).unwrap();
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
fn a_refusal_reflects_the_current_state() {
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
        ledger.reserve(0, 5).unwrap();
    }
    assert_eq!(ledger.poll_request(0), Some(LedgerRequest::Read));
    ledger.handle_read(None).unwrap();
    assert!(matches!(
        ledger.poll_request(0),
        Some(LedgerRequest::Write { .. })
    ));
    for _ in 0..10 {
        ledger.reserve(0, 5).unwrap();
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
    assert_eq!(store.totals(None, 0).daily, used(30));
    assert!(a.is_written() && a.written() == a.change());
    assert_eq!(store.write(value, revision), None, "a late copy is refused");
}

#[test]
fn a_dead_node_loses_its_reservations_and_keeps_its_usage() {
    let mut store = Store::default();
    let [mut a, mut b] = pair(100);
    let mut run = store.admit(&mut a, 80, 0).unwrap();
    a.record(&mut run, 30);
    store.serve(&mut a, 0, &[]);
    drop(a);
    let ticket = b.reserve(0, 70).unwrap();
    let events = store.serve(&mut b, 0, &["a"]);
    assert!(
        matches!(events[..], [LedgerEvent::Admitted(it, _)] if it == ticket),
        "{events:?}"
    );
    let totals = store.totals(None, 0).daily;
    assert_eq!((totals.used, totals.reserved), (30, 70));
}

#[test]
fn a_node_that_was_taken_for_dead_goes_on_and_is_counted_once() {
    let mut store = Store::default();
    let [mut a, mut b] = pair(100);
    let mut run = store.admit(&mut a, 80, 0).unwrap();
    a.record(&mut run, 30);
    store.serve(&mut a, 0, &[]);
    let _ticket = b.reserve(0, 70).unwrap();
    store.serve(&mut b, 0, &["a"]);
    a.record(&mut run, 20);
    store.serve(&mut a, 0, &[]);
    let totals = store.totals(None, 0).daily;
    assert_eq!((totals.used, totals.reserved), (50, 30 + 70));
    a.record(&mut run, 30);
    a.settle(run);
    store.serve(&mut a, 0, &[]);
    assert_eq!(store.totals(None, 0).daily.used, 80);
}

#[test]
fn a_node_with_a_new_name_is_counted_once_and_keeps_its_reservations() {
    for is_known in [false, true] {
        let mut store = Store::default();
        let [mut a, mut b] = pair(100);
        let mut run = store.admit(&mut a, 80, 0).unwrap();
        a.record(&mut run, 30);
        store.serve(&mut a, 0, &[]);
        a.rename("c");
        assert!(!a.is_written());
        // The first write under the new name is done, or done without an answer.
        assert_eq!(a.poll_request(0), Some(LedgerRequest::Read));
        let value = store.value.clone().unwrap();
        a.handle_read(Some((value.as_bytes(), store.revision)))
            .unwrap();
        let Some(LedgerRequest::Write { value, revision }) = a.poll_request(0) else {
            panic!("it writes");
        };
        let revision = store.write(value, revision).unwrap();
        if is_known {
            a.handle_written(revision);
        } else {
            a.handle_failed();
        }
        store.serve(&mut a, 0, &[]);
        assert_eq!(store.totals(Some("a"), 0), Pools::default());
        let totals = store.totals(Some("c"), 0).daily;
        assert_eq!((totals.used, totals.reserved), (30, 50));
        let ticket = b.reserve(0, 30).unwrap();
        let events = store.serve(&mut b, 0, &["a"]);
        assert!(
            matches!(events[..], [LedgerEvent::Refused(it, _)] if it == ticket),
            "{events:?}"
        );
        a.settle(run);
        store.serve(&mut a, 0, &[]);
        assert_eq!(store.totals(None, 0).daily, used(30));
    }
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
    let waiting = a.reserve(0, 50).unwrap();
    a.cancel(waiting);
    assert_eq!(store.serve(&mut a, 0, &[]), []);
    let sent = a.reserve(0, 50).unwrap();
    assert_eq!(a.poll_request(0), Some(LedgerRequest::Read));
    a.handle_read(None).unwrap();
    let Some(LedgerRequest::Write { value, revision }) = a.poll_request(0) else {
        panic!("it writes");
    };
    a.cancel(sent);
    a.handle_written(store.write(value, revision).unwrap());
    assert_eq!(store.serve(&mut a, 0, &[]), []);
    let admitted = a.reserve(0, 50).unwrap();
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
    let mut ledger = SharedLedger::new(
        Budgets {
            session: Some(10),
            ..Budgets::default()
        },
        "a",
    );
    let refused = ledger.reserve(8, 3).unwrap_err();
    assert_eq!(refused.to_string(), "token budget exceeded (session: 8/10)");
    assert!(ledger.reserve(8, 2).is_ok());
}

#[test]
fn without_a_total_budget_a_run_waits_for_no_write() {
    let mut ledger = SharedLedger::new(Budgets::default(), "a");
    let ticket = ledger.reserve(0, 5).unwrap();
    assert_eq!(ledger.poll_request(0), None);
    assert!(matches!(ledger.poll_event(), Some(LedgerEvent::Admitted(it, _)) if it == ticket));
}

#[test]
fn reports_a_damaged_value_and_reads_it_again() {
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
    last.reserve(0, 700).unwrap();
    let events = store.serve(&mut last, 0, &gone);
    assert!(
        matches!(events[..], [LedgerEvent::Admitted(..)]),
        "{events:?}"
    );
    assert_eq!(store.totals(None, 0).daily.used, 300);
    assert!(store.value.unwrap().len() < 10_000);
}
