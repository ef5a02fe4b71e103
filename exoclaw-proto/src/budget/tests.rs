//! Tests of budgets and of [`Ledger`].

use proptest::prelude::*;

use super::*;
use crate::session::SessionKey;

fn key(account: &str) -> SessionKey {
    SessionKey::new("default", "websocket", account, "main")
}

fn used(ledger: &Ledger, account: &str, tokens: u64, now: u64) -> Result<(), Exceeded> {
    ledger.reserve(&key(account), 0, now)?.record(tokens);
    Ok(())
}

/// The tokens of a session.
fn of(ledger: &Ledger, account: &str) -> u64 {
    let status = ledger.status(Some(&key(account)), 0);
    status.session.unwrap().used
}

/// The tokens of the day and of the month.
fn total(ledger: &Ledger) -> (u64, u64) {
    let status = ledger.status(None, 0);
    (status.daily.used, status.monthly.used)
}

const fn exceeded(scope: BudgetScope, used: u64, limit: u64) -> Exceeded {
    Exceeded { scope, used, limit }
}

fn refusal(ledger: &Ledger, account: &str, estimate: u64, now: u64) -> Exceeded {
    ledger.reserve(&key(account), estimate, now).unwrap_err()
}

fn daily(limit: u64) -> Ledger {
    Ledger::new(Budgets {
        daily: Some(limit),
        ..Budgets::default()
    })
}

fn session(limit: u64) -> Ledger {
    Ledger::new(Budgets {
        session: Some(limit),
        ..Budgets::default()
    })
}

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
const JANUARY_31: u64 = 30 * SECONDS_PER_DAY;
const FEBRUARY_1: u64 = 31 * SECONDS_PER_DAY;

#[test]
fn the_error_text_matches_the_specification() {
    for (scope, used, limit, text) in [
        (
            BudgetScope::Session,
            9_500,
            10_000,
            "token budget exceeded (session: 9500/10000)",
        ),
        (
            BudgetScope::Daily,
            65,
            60,
            "token budget exceeded (daily: 65/60)",
        ),
        (
            BudgetScope::Monthly,
            0,
            u64::MAX,
            "token budget exceeded (monthly: 0/18446744073709551615)",
        ),
    ] {
        let error = Exceeded { scope, used, limit };
        assert_eq!(error.to_string(), text);
        assert_eq!(Exceeded::parse(text), Some(error));
    }
}

#[test]
fn the_error_parses_with_a_session_name() {
    let expected = Exceeded {
        scope: BudgetScope::Session,
        used: 39,
        limit: 40,
    };
    for why in ["it needs 5 more", "estimates count too (5 tokens)"] {
        let explained = format!("token budget exceeded (session: 39/40); {why}");
        assert_eq!(Exceeded::parse(&explained), Some(expected));
    }
    for name in ["default:websocket:acc:b", "", "odd: 1/2)", "daily: 1/2"] {
        let text = format!("token budget exceeded (session:{name}: 39/40)");
        assert_eq!(Exceeded::parse(&text), Some(expected), "{text}");
    }
}

#[test]
fn other_errors_do_not_parse_as_exceeded_budgets() {
    for text in [
        "",
        "token budget exceeded (",
        "token budget exceeded ()",
        "token budget exceeded (session)",
        "token budget exceeded (session: )",
        "token budget exceeded (session: /)",
        "token budget exceeded (session: 1)",
        "token budget exceeded (session: 1/2",
        "token budget exceeded (session: +1/2)",
        "token budget exceeded (session: 1/2/3)",
        "token budget exceeded (session: 1/18446744073709551616)",
        "token budget exceeded (sessions: 1/2)",
        "token budget exceeded (weekly: 1/2)",
        "token budget exceeded (daily:x: 1/2)",
        " token budget exceeded (daily: 1/2)",
        "provider error: token budget exceeded (daily: 1/2)",
    ] {
        assert_eq!(Exceeded::parse(text), None, "{text}");
    }
}

#[test]
fn an_estimate_is_a_quarter_of_the_bytes_plus_one() {
    assert_eq!([0, 3, 4, 8].map(estimate), [1, 1, 2, 3]);
}

#[test]
fn a_budget_can_be_used_up_exactly() {
    let ledger = session(10);
    used(&ledger, "a", 6, 0).unwrap();
    assert_eq!(
        refusal(&ledger, "a", 5, 0),
        exceeded(BudgetScope::Session, 6, 10)
    );
    let reservation = ledger.reserve(&key("a"), 4, 0).unwrap();
    assert_eq!(
        refusal(&ledger, "a", 1, 0),
        exceeded(BudgetScope::Session, 6, 10)
    );
    drop(reservation);
    assert!(ledger.reserve(&key("b"), 10, 0).is_ok());
}

#[test]
fn reserved_tokens_are_not_available() {
    let ledger = daily(10);
    let mut one = ledger.reserve(&key("a"), 6, 0).unwrap();
    assert_eq!(
        refusal(&ledger, "b", 5, 0),
        exceeded(BudgetScope::Daily, 0, 10)
    );
    one.record(2);
    assert_eq!(
        refusal(&ledger, "b", 5, 0),
        exceeded(BudgetScope::Daily, 2, 10)
    );
    drop(one);
    assert!(ledger.clone().reserve(&key("b"), 8, 0).is_ok());
}

#[test]
fn tokens_beyond_the_budget_are_counted() {
    let ledger = daily(60);
    used(&ledger, "a", 65, 0).unwrap();
    let refused = refusal(&ledger, "b", 0, 0);
    assert_eq!(refused.to_string(), "token budget exceeded (daily: 65/60)");
}

#[test]
fn the_narrower_budget_is_reported_first() {
    let ledger = Ledger::new(Budgets {
        session: Some(3),
        daily: Some(2),
        monthly: Some(1),
    });
    let expected = [
        exceeded(BudgetScope::Session, 0, 3),
        exceeded(BudgetScope::Daily, 0, 2),
        exceeded(BudgetScope::Monthly, 0, 1),
    ];
    assert_eq!([4, 3, 2].map(|it| refusal(&ledger, "a", it, 0)), expected);
    assert!(ledger.0.lock().sessions.is_empty());
}

#[test]
fn budgets_reset_each_day_and_month() {
    let ledger = Ledger::new(Budgets {
        daily: Some(10),
        monthly: Some(15),
        ..Budgets::default()
    });
    used(&ledger, "a", 10, JANUARY_31 - 1).unwrap();
    let refused = |now| refusal(&ledger, "a", 6, now);
    assert_eq!(
        refused(JANUARY_31 - 1),
        exceeded(BudgetScope::Daily, 10, 10)
    );
    assert_eq!(refused(JANUARY_31), exceeded(BudgetScope::Monthly, 10, 15));
    assert!(ledger.reserve(&key("a"), 6, FEBRUARY_1).is_ok());
    assert_eq!((of(&ledger, "a"), total(&ledger)), (10, (0, 0)));
}

#[test]
fn a_clock_going_backwards_changes_nothing() {
    let ledger = daily(10);
    used(&ledger, "a", 4, FEBRUARY_1).unwrap();
    used(&ledger, "a", 4, JANUARY_31).unwrap();
    assert_eq!(total(&ledger), (8, 8));
    assert_eq!(
        refusal(&ledger, "a", 3, FEBRUARY_1),
        exceeded(BudgetScope::Daily, 8, 10)
    );
}

#[test]
fn a_run_over_midnight_counts_for_its_first_day() {
    let ledger = daily(10);
    let mut over = ledger.reserve(&key("a"), 10, JANUARY_31 - 1).unwrap();
    let other = ledger.reserve(&key("b"), 10, JANUARY_31).unwrap();
    over.record(7);
    assert_eq!(total(&ledger), (0, 7));
    drop(over);
    assert_eq!(
        refusal(&ledger, "b", 1, JANUARY_31),
        exceeded(BudgetScope::Daily, 0, 10)
    );
    drop(other);
    assert!(ledger.reserve(&key("b"), 10, JANUARY_31).is_ok());
}

#[test]
fn beyond_100_000_sessions_idle_ones_are_evicted() {
    let ledger = session(1);
    let open = ledger.reserve(&key("open"), 1, 0).unwrap();
    for number in 1..100_000 {
        used(&ledger, &number.to_string(), 1, number / 2).unwrap();
    }
    assert_eq!(
        refusal(&ledger, "1", 1, 0),
        exceeded(BudgetScope::Session, 1, 1)
    );
    used(&ledger, "one more", 1, 0).unwrap();
    assert!(ledger.reserve(&key("1"), 1, 0).is_ok());
    assert_eq!(
        refusal(&ledger, "open", 1, 0),
        exceeded(BudgetScope::Session, 0, 1)
    );
    assert_eq!(
        refusal(&ledger, "99999", 1, 0),
        exceeded(BudgetScope::Session, 1, 1)
    );
    drop(open);
    assert_eq!(total(&ledger), (100_000, 100_000));
}

#[test]
fn many_new_sessions_do_not_lock_others_out() {
    let ledger = session(1_000);
    ledger.0.lock().max_sessions = 10;
    for number in 0..30_u64 {
        used(&ledger, &number.to_string(), 1, 0).unwrap();
    }
    assert!(ledger.0.lock().sessions.len() <= 10);
    let runs = (0..30_u64).map(|it| ledger.reserve(&key(&it.to_string()), 1, 0).unwrap());
    let runs: Vec<_> = runs.collect();
    assert_eq!(total(&ledger), (30, 30));
    drop(runs);
    used(&ledger, "a", 1, 0).unwrap();
    assert!(ledger.0.lock().sessions.len() <= 10);
}

#[test]
fn an_aborted_run_keeps_used_tokens_and_frees_the_rest() {
    let ledger = daily(100);
    let mut run = ledger.reserve(&key("ann"), 80, 0).unwrap();
    run.record(30);
    refusal(&ledger, "bob", 21, 0);
    drop(run);
    assert_eq!(of(&ledger, "ann"), 30);
    used(&ledger, "bob", 70, 0).unwrap();
    refusal(&ledger, "bob", 1, 0);
}

#[test]
fn a_run_without_usage_leaves_nothing_behind() {
    let ledger = session(1);
    used(&ledger, "a", 0, 0).unwrap();
    assert!(ledger.0.lock().sessions.is_empty());
}

#[test]
fn absurd_numbers_do_not_overflow() {
    let ledger = daily(u64::MAX);
    let mut one = ledger.reserve(&key("a"), u64::MAX, u64::MAX).unwrap();
    let two = ledger.reserve(&key("a"), u64::MAX, u64::MAX).unwrap();
    one.record(u64::MAX);
    one.record(u64::MAX);
    drop((one, two));
    assert_eq!(total(&ledger), (u64::MAX, u64::MAX));
    let days = [(u64::MAX, 7), (u64::MAX, u64::MAX)];
    let restored = Ledger::restore(Budgets::default(), days, [], u64::MAX);
    assert_eq!(total(&restored).0, 0, "that day is not counted");
}

#[test]
fn a_restored_ledger_sums_repeated_entries() {
    let sessions = [("a", 3), ("a", 4), ("b", 0)].map(|(name, tokens)| (key(name), tokens));
    let days = [(29, 1), (30, 20), (30, 300), (31, 4_000)];
    let ledger = Ledger::restore(Budgets::default(), days, sessions, JANUARY_31);
    assert_eq!((of(&ledger, "a"), total(&ledger)), (7, (320, 321)));
    assert_eq!(ledger.0.lock().sessions.len(), 1);
}

/// Everything that happened, added up again for every question.
#[derive(Default)]
struct Naive {
    now: u64,
    recorded: Vec<(usize, u64, u64)>,
    open: Vec<(usize, u64, u64)>,
}

impl Naive {
    fn sum(list: &[(usize, u64, u64)], of: impl Fn(usize, u64) -> bool) -> u64 {
        let chosen = list.iter().filter(|(session, day, _)| of(*session, *day));
        chosen.map(|(_, _, tokens)| tokens).sum()
    }

    const fn today(&self) -> u64 {
        self.now / SECONDS_PER_DAY
    }

    fn check(&self, session: usize, budgets: Budgets, estimate: u64) -> Option<Exceeded> {
        let today = self.today();
        let scopes: [(_, _, &dyn Fn(usize, u64) -> bool); 3] = [
            (BudgetScope::Session, budgets.session, &|it, _| {
                it == session
            }),
            (BudgetScope::Daily, budgets.daily, &|_, day| day == today),
            (BudgetScope::Monthly, budgets.monthly, &|_, day| {
                month(day) == month(today)
            }),
        ];
        scopes.into_iter().find_map(|(scope, limit, of)| {
            let limit = limit?;
            let used = Self::sum(&self.recorded, of);
            let wanted = used + Self::sum(&self.open, of) + estimate;
            (wanted > limit).then_some(Exceeded { scope, used, limit })
        })
    }
}

/// The year and month of a day, as a calendar counts them.
fn month(day: u64) -> (u64, u64) {
    let (mut year, mut month, mut left) = (1970, 1, day);
    loop {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if left < length {
            return (year, month);
        }
        left -= length;
        month += 1;
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Reserve { session: usize, estimate: u64 },
    Record { which: usize, tokens: u64 },
    Settle { which: usize },
    Sleep { seconds: u64 },
    SetBack { seconds: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..3, 0_u64..40).prop_map(|(session, estimate)| Step::Reserve { session, estimate }),
        6 => (any::<usize>(), 0_u64..50).prop_map(|(which, tokens)| Step::Record { which, tokens }),
        4 => any::<usize>().prop_map(|which| Step::Settle { which }),
        3 => (0..40 * SECONDS_PER_DAY).prop_map(|seconds| Step::Sleep { seconds }),
        2 => (0..2 * SECONDS_PER_DAY).prop_map(|seconds| Step::Sleep { seconds }),
        1 => (0..40 * SECONDS_PER_DAY).prop_map(|seconds| Step::SetBack { seconds }),
    ]
}

proptest! {
    #[test]
    fn the_ledger_agrees_with_a_plain_sum(
        limits in prop::array::uniform3(prop::option::of(0_u64..300)),
        steps in prop::collection::vec(step(), 0..150),
        start in 0_u64..4_000_000_000,
    ) {
        let [session, daily, monthly] = limits;
        let budgets = Budgets { session, daily, monthly };
        let keys = ["a", "b", "c"].map(key);
        let ledger = Ledger::new(budgets);
        let mut naive = Naive::default();
        let mut clock = start;
        let mut open = Vec::new();
        for step in steps {
            match step {
                Step::Reserve { session, estimate } => {
                    naive.now = naive.now.max(clock);
                    let expected = naive.check(session, budgets, estimate);
                    match ledger.reserve(&keys[session], estimate, clock) {
                        Ok(reservation) => {
                            prop_assert_eq!(expected, None);
                            open.push(reservation);
                            naive.open.push((session, naive.today(), estimate));
                        }
                        Err(error) => prop_assert_eq!(Some(error), expected),
                    }
                }
                Step::Record { which, tokens } if !open.is_empty() => {
                    let which = which % open.len();
                    open[which].record(tokens);
                    let (session, date, held) = &mut naive.open[which];
                    *held = held.saturating_sub(tokens);
                    let recorded = (*session, *date, tokens);
                    naive.recorded.push(recorded);
                }
                Step::Settle { which } if !open.is_empty() => {
                    let which = which % open.len();
                    drop(open.swap_remove(which));
                    naive.open.swap_remove(which);
                }
                Step::Sleep { seconds } => clock += seconds,
                Step::SetBack { seconds } => clock = clock.saturating_sub(seconds),
                _ => {}
            }
            let today = naive.today();
            let on_day = Naive::sum(&naive.recorded, |_, day| day == today);
            let in_month = Naive::sum(&naive.recorded, |_, day| month(day) == month(today));
            prop_assert_eq!(total(&ledger), (on_day, in_month));
            for (session, key) in keys.iter().enumerate() {
                let used = Naive::sum(&naive.recorded, |it, _| it == session);
                prop_assert_eq!(ledger.status(Some(key), 0).session.unwrap().used, used);
            }
        }
    }

    #[test]
    fn every_budget_error_round_trips(used: u64, limit: u64, which in 0_usize..3) {
        let scope = [BudgetScope::Session, BudgetScope::Daily, BudgetScope::Monthly][which];
        let error = Exceeded { scope, used, limit };
        prop_assert_eq!(Exceeded::parse(&error.to_string()), Some(error));
    }

    #[test]
    fn any_text_is_survived(text in ".{0,40}") {
        let _ = Exceeded::parse(&text);
        let _ = Exceeded::parse(&format!("token budget exceeded ({text})"));
    }
}
