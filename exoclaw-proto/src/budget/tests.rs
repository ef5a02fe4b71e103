//! Tests of budgets and of [`Ledger`].

use proptest::prelude::*;

use super::date::SECONDS_PER_DAY;
use super::*;
use crate::session::SessionKey;

fn key(account: &str) -> SessionKey {
    SessionKey::new("default", "websocket", account, "main")
}

fn used(ledger: &mut Ledger, account: &str, tokens: u64, now: u64) -> Result<(), BudgetError> {
    let mut reservation = ledger.reserve(&key(account), 0, now)?;
    ledger.record(&mut reservation, tokens);
    ledger.settle(reservation);
    Ok(())
}

fn exceeded(scope: Scope, used: u64, limit: u64) -> BudgetError {
    BudgetError::Exceeded(Exceeded { scope, used, limit })
}

const JANUARY_31: u64 = 30 * SECONDS_PER_DAY;
const FEBRUARY_1: u64 = 31 * SECONDS_PER_DAY;

#[test]
fn the_error_reads_as_the_specification_says() {
    for (scope, used, limit, text) in [
        (
            Scope::Session,
            9_500,
            10_000,
            "token budget exceeded (session: 9500/10000)",
        ),
        (Scope::Daily, 65, 60, "token budget exceeded (daily: 65/60)"),
        (
            Scope::Monthly,
            0,
            u64::MAX,
            "token budget exceeded (monthly: 0/18446744073709551615)",
        ),
    ] {
        let error = Exceeded { scope, used, limit };
        assert_eq!(error.to_string(), text);
        assert_eq!(BudgetError::from(error).to_string(), text);
        assert_eq!(Exceeded::parse(text), Some(error));
    }
}

#[test]
fn the_error_is_read_with_the_name_of_the_session_too() {
    let expected = Exceeded {
        scope: Scope::Session,
        used: 39,
        limit: 40,
    };
    for name in ["default:websocket:acc:b", "", "odd: 1/2)", "daily: 1/2"] {
        let text = format!("token budget exceeded (session:{name}: 39/40)");
        assert_eq!(Exceeded::parse(&text), Some(expected), "{text}");
    }
}

#[test]
fn other_errors_are_no_exceeded_budgets() {
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
fn an_estimate_is_a_quarter_of_the_bytes_and_one() {
    assert_eq!([0, 3, 4, 8].map(estimate), [1, 1, 2, 3]);
}

#[test]
fn a_budget_may_be_used_up_exactly() {
    let mut ledger = Ledger::new(Budgets::default().with_session(Some(10)));
    used(&mut ledger, "a", 6, 0).unwrap();
    let refused = ledger.reserve(&key("a"), 5, 0);
    assert_eq!(refused, Err(exceeded(Scope::Session, 6, 10)));
    let reservation = ledger.reserve(&key("a"), 4, 0).unwrap();
    assert_eq!(
        ledger.reserve(&key("a"), 1, 0),
        Err(exceeded(Scope::Session, 6, 10))
    );
    ledger.settle(reservation);
    assert!(ledger.reserve(&key("b"), 10, 0).is_ok());
}

#[test]
fn what_others_reserve_is_not_free() {
    let mut ledger = Ledger::new(Budgets::default().with_daily(Some(10)));
    let mut one = ledger.reserve(&key("a"), 6, 0).unwrap();
    assert_eq!(
        ledger.reserve(&key("b"), 5, 0),
        Err(exceeded(Scope::Daily, 0, 10))
    );
    ledger.record(&mut one, 2);
    assert_eq!((one.held(), ledger.daily_used()), (4, 2));
    assert_eq!(
        ledger.reserve(&key("b"), 5, 0),
        Err(exceeded(Scope::Daily, 2, 10))
    );
    ledger.settle(one);
    assert!(ledger.reserve(&key("b"), 8, 0).is_ok());
}

#[test]
fn what_was_spent_counts_beyond_the_budget() {
    let mut ledger = Ledger::new(Budgets::default().with_daily(Some(60)));
    used(&mut ledger, "a", 65, 0).unwrap();
    let refused = ledger.reserve(&key("b"), 0, 0).unwrap_err();
    assert_eq!(refused.to_string(), "token budget exceeded (daily: 65/60)");
}

#[test]
fn the_narrower_budget_is_named_first() {
    let budgets = Budgets::default()
        .with_session(Some(3))
        .with_daily(Some(2))
        .with_monthly(Some(1));
    let mut ledger = Ledger::new(budgets);
    let refused = [4, 3, 2].map(|estimate| ledger.reserve(&key("a"), estimate, 0).unwrap_err());
    assert_eq!(
        refused,
        [
            exceeded(Scope::Session, 0, 3),
            exceeded(Scope::Daily, 0, 2),
            exceeded(Scope::Monthly, 0, 1)
        ]
    );
    assert_eq!(ledger.sessions().len(), 0);
}

#[test]
fn a_new_day_and_a_new_month_have_whole_budgets() {
    let budgets = Budgets::default()
        .with_daily(Some(10))
        .with_monthly(Some(15));
    let mut ledger = Ledger::new(budgets);
    used(&mut ledger, "a", 10, JANUARY_31 - 1).unwrap();
    let mut refused = |now| ledger.reserve(&key("a"), 6, now).unwrap_err();
    assert_eq!(refused(JANUARY_31 - 1), exceeded(Scope::Daily, 10, 10));
    assert_eq!(refused(JANUARY_31), exceeded(Scope::Monthly, 10, 15));
    assert!(ledger.reserve(&key("a"), 6, FEBRUARY_1).is_ok());
    assert_eq!(ledger.date().to_string(), "1970-02-01");
    assert_eq!(ledger.session_used(&key("a")), 10);
}

#[test]
fn a_clock_that_goes_back_changes_nothing() {
    let mut ledger = Ledger::new(Budgets::default().with_daily(Some(10)));
    used(&mut ledger, "a", 4, FEBRUARY_1).unwrap();
    used(&mut ledger, "a", 4, JANUARY_31).unwrap();
    assert_eq!((ledger.daily_used(), ledger.monthly_used()), (8, 8));
    assert_eq!(ledger.sessions().next().unwrap().last_used, FEBRUARY_1);
    assert_eq!(
        ledger.reserve(&key("a"), 3, FEBRUARY_1),
        Err(exceeded(Scope::Daily, 8, 10))
    );
}

#[test]
fn a_run_over_midnight_counts_for_the_day_it_began() {
    let mut ledger = Ledger::new(Budgets::default().with_daily(Some(10)));
    let mut over = ledger.reserve(&key("a"), 10, JANUARY_31 - 1).unwrap();
    let other = ledger.reserve(&key("b"), 10, JANUARY_31).unwrap();
    ledger.record(&mut over, 7);
    assert_eq!((ledger.daily_used(), ledger.monthly_used()), (0, 7));
    ledger.settle(over);
    assert_eq!(
        ledger.reserve(&key("b"), 1, JANUARY_31),
        Err(exceeded(Scope::Daily, 0, 10))
    );
    ledger.settle(other);
    assert!(ledger.reserve(&key("b"), 10, JANUARY_31).is_ok());
}

#[test]
fn sessions_are_bounded_if_they_have_a_budget() {
    let budgets = Budgets::default().with_session(Some(100));
    let mut ledger = Ledger::new(budgets).with_max_sessions(1);
    used(&mut ledger, "a", 7, 5).unwrap();
    let max = 1;
    let refused = ledger.reserve(&key("b"), 1, 6);
    assert_eq!(refused, Err(BudgetError::TooManySessions { max }));
    used(&mut ledger, "a", 1, 7).unwrap();
    let counted = ledger.sessions().next().unwrap();
    assert_eq!((counted.used, counted.last_used, counted.open), (8, 7, 0));
    assert_eq!(ledger.forget(&key("a")), 8);
    used(&mut ledger, "b", 1, 6).unwrap();
    assert_eq!(ledger.daily_used(), 9);
}

#[test]
fn sessions_without_a_budget_are_counted_while_there_is_room() {
    let mut ledger = Ledger::new(Budgets::default()).with_max_sessions(1);
    used(&mut ledger, "a", 7, 0).unwrap();
    used(&mut ledger, "b", 7, 0).unwrap();
    assert_eq!(ledger.session_used(&key("b")), 0);
    assert_eq!((ledger.daily_used(), ledger.sessions().len()), (14, 1));
}

#[test]
fn a_hundred_thousand_sessions_are_counted_unless_told_otherwise() {
    let mut ledger = Ledger::new(Budgets::default().with_session(Some(100)));
    for number in 0..100_000 {
        used(&mut ledger, &number.to_string(), 1, 0).unwrap();
    }
    let max = 100_000;
    let refused = ledger.reserve(&key("one more"), 1, 0);
    assert_eq!(refused, Err(BudgetError::TooManySessions { max }));
    assert!(ledger.reserve(&key("7"), 1, 0).is_ok());
}

#[test]
fn a_run_that_used_nothing_leaves_nothing_behind() {
    let mut ledger = Ledger::new(Budgets::default());
    used(&mut ledger, "a", 0, 0).unwrap();
    assert_eq!(ledger.sessions().len(), 0);
}

#[test]
fn a_session_that_is_forgotten_while_it_runs_is_counted_afresh() {
    let mut ledger = Ledger::new(Budgets::default().with_session(Some(10)));
    let mut reservation = ledger.reserve(&key("a"), 6, 0).unwrap();
    ledger.record(&mut reservation, 4);
    assert_eq!(ledger.forget(&key("a")), 4);
    assert_eq!(ledger.forget(&key("a")), 0);
    assert_eq!(
        ledger.reserve(&key("a"), 9, 0),
        Err(exceeded(Scope::Session, 0, 10))
    );
    ledger.record(&mut reservation, 3);
    ledger.settle(reservation);
    assert_eq!(ledger.session_used(&key("a")), 3);
}

#[test]
fn absurd_numbers_do_not_overflow() {
    let mut ledger = Ledger::new(Budgets::default().with_daily(Some(u64::MAX)));
    let mut one = ledger.reserve(&key("a"), u64::MAX, u64::MAX).unwrap();
    let two = ledger.reserve(&key("a"), u64::MAX, u64::MAX).unwrap();
    ledger.record(&mut one, u64::MAX);
    ledger.record(&mut one, u64::MAX);
    ledger.settle(one);
    ledger.settle(two);
    assert_eq!(ledger.monthly_used(), u64::MAX);
    assert_eq!(ledger.date().to_string(), "9999-12-31");
}

#[test]
fn a_snapshot_is_plain_json_and_may_lack_members() {
    let mut ledger = Ledger::new(Budgets::default());
    used(&mut ledger, "b", 7, FEBRUARY_1).unwrap();
    used(&mut ledger, "a", 8, FEBRUARY_1 + 1).unwrap();
    let json = serde_json::to_string(&ledger.snapshot()).unwrap();
    assert_eq!(
        json,
        r#"{"day":31,"daily_used":15,"monthly_used":15,"sessions":[{"session":"default:websocket:a:main","used":8,"last_used":2678401},{"session":"default:websocket:b:main","used":7,"last_used":2678400}]}"#
    );
    let read: Snapshot = serde_json::from_str(&json).unwrap();
    assert_eq!(read, ledger.snapshot());
    assert_eq!(
        serde_json::from_str::<Snapshot>("{}").unwrap(),
        Snapshot::default()
    );
}

#[test]
fn a_restored_ledger_adds_up_what_is_named_twice() {
    let sessions = vec![
        SessionTokens::new(key("a"), 3, 9),
        SessionTokens::new(key("a"), 4, 8),
        SessionTokens::new(key("b"), 0, 8),
    ];
    let day = u64::MAX;
    let snapshot = Snapshot {
        day,
        sessions,
        ..Snapshot::default()
    };
    let ledger = Ledger::restore(Budgets::default(), snapshot);
    assert_eq!(ledger.session_used(&key("a")), 7);
    assert_eq!(ledger.sessions().len(), 1);
    assert_eq!(ledger.sessions().next().unwrap().last_used, 9);
    assert_eq!(ledger.date().to_string(), "9999-12-31");
}

/// Everything that happened, added up anew for every question.
#[derive(Default)]
struct Naive {
    now: u64,
    recorded: Vec<(usize, Date, u64)>,
    open: Vec<(usize, Date, u64)>,
}

impl Naive {
    fn sum(list: &[(usize, Date, u64)], of: impl Fn(usize, Date) -> bool) -> u64 {
        let chosen = list.iter().filter(|(session, date, _)| of(*session, *date));
        chosen.map(|(_, _, tokens)| tokens).sum()
    }

    fn today(&self) -> Date {
        Date::from_day(self.now / SECONDS_PER_DAY)
    }

    fn check(&self, session: usize, budgets: Budgets, estimate: u64) -> Option<Exceeded> {
        let today = self.today();
        let month = |date: Date| date.to_string()[..7].to_owned();
        let scopes: [(_, _, &dyn Fn(usize, Date) -> bool); 3] = [
            (Scope::Session, budgets.session, &|it, _| it == session),
            (Scope::Daily, budgets.daily, &|_, date| date == today),
            (Scope::Monthly, budgets.monthly, &|_, date| {
                month(date) == month(today)
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

#[derive(Clone, Debug)]
enum Step {
    Reserve { session: usize, estimate: u64 },
    Record { which: usize, tokens: u64 },
    Settle { which: usize },
    Sleep { seconds: u64 },
    SetBack { seconds: u64 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..3, 0_u64..40).prop_map(|(session, estimate)| Step::Reserve { session, estimate }),
        6 => (any::<usize>(), 0_u64..50).prop_map(|(which, tokens)| Step::Record { which, tokens }),
        4 => any::<usize>().prop_map(|which| Step::Settle { which }),
        3 => (0..40 * SECONDS_PER_DAY).prop_map(|seconds| Step::Sleep { seconds }),
        2 => (0..2 * SECONDS_PER_DAY).prop_map(|seconds| Step::Sleep { seconds }),
        1 => (0..40 * SECONDS_PER_DAY).prop_map(|seconds| Step::SetBack { seconds }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #[test]
    fn it_agrees_with_adding_up_everything(
        limits in prop::array::uniform3(prop::option::of(0_u64..300)),
        steps in prop::collection::vec(step(), 0..150),
        start in 0_u64..4_000_000_000,
    ) {
        let [session, daily, monthly] = limits;
        let budgets = Budgets { session, daily, monthly };
        let keys = ["a", "b", "c"].map(key);
        let mut ledger = Ledger::new(budgets);
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
                        Err(error) => prop_assert_eq!(Some(error), expected.map(Into::into)),
                    }
                }
                Step::Record { which, tokens } if !open.is_empty() => {
                    let which = which % open.len();
                    ledger.record(&mut open[which], tokens);
                    let (session, date, held) = &mut naive.open[which];
                    *held = held.saturating_sub(tokens);
                    prop_assert_eq!(*held, open[which].held());
                    let recorded = (*session, *date, tokens);
                    naive.recorded.push(recorded);
                }
                Step::Settle { which } if !open.is_empty() => {
                    let which = which % open.len();
                    ledger.settle(open.swap_remove(which));
                    naive.open.swap_remove(which);
                }
                Step::Sleep { seconds } => clock += seconds,
                Step::SetBack { seconds } => clock = clock.saturating_sub(seconds),
                Step::Restart if open.is_empty() => {
                    let snapshot = ledger.snapshot();
                    ledger = Ledger::restore(budgets, snapshot.clone());
                    prop_assert_eq!(ledger.snapshot(), snapshot);
                }
                _ => {}
            }
            let today = naive.today();
            let on_day = Naive::sum(&naive.recorded, |_, date| date == today);
            let in_month = Naive::sum(&naive.recorded, |_, date| date.same_month(today));
            prop_assert_eq!(ledger.daily_used(), on_day);
            prop_assert_eq!(ledger.monthly_used(), in_month);
            for (session, key) in keys.iter().enumerate() {
                let used = Naive::sum(&naive.recorded, |it, _| it == session);
                prop_assert_eq!(ledger.session_used(key), used);
            }
        }
    }

    #[test]
    fn every_error_that_is_written_is_read(used: u64, limit: u64, which in 0_usize..3) {
        let scope = [Scope::Session, Scope::Daily, Scope::Monthly][which];
        let error = Exceeded { scope, used, limit };
        prop_assert_eq!(Exceeded::parse(&error.to_string()), Some(error));
    }

    #[test]
    fn any_text_is_survived(text in ".{0,40}") {
        let _ = Exceeded::parse(&text);
        let _ = Exceeded::parse(&format!("token budget exceeded ({text})"));
    }
}
