//! Tests of [`Budget`]: processes on one store, in virtual time.

use std::cell::Cell;
use std::time::Duration;

use exoclaw_proto::budget::Budgets;
use exoclaw_proto::budget::pools::{SECONDS_PER_DAY, month_of};
use proptest::prelude::*;
use rpc_core::cluster::Membership;
use rpc_core::store::{BucketConfig, MemoryStore, Store};
use tokio::time::{sleep, timeout};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

thread_local! {
    /// The day. A test has a thread of its own.
    static DAY: Cell<u64> = const { Cell::new(0) };
}

/// A process.
struct Process {
    store: MemoryStore,
    budget: Budget,
}

impl Process {
    async fn new(store: &MemoryStore, budgets: Budgets) -> Self {
        Self::with(store, budgets, Some(Membership::new())).await
    }

    async fn with(store: &MemoryStore, budgets: Budgets, member: Option<Membership>) -> Self {
        let store = store.connect();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let bucket = Bucket::open(&shared, "gateway", BucketConfig::default()).await;
        let config = GatewayStoreConfig::default().with_budgets(budgets);
        let clock = || DAY.get() * SECONDS_PER_DAY;
        Self {
            store,
            budget: Budget::new(bucket.unwrap(), Nodes::new(member), config, clock),
        }
    }

    async fn reserve(&self, tokens: u64) -> Result<Reservation, Exceeded> {
        match self.budget.reserve(0, tokens).await {
            Ok(reservation) => Ok(reservation),
            Err(NotAdmitted::Exceeded(exceeded)) => Err(exceeded),
            Err(NotAdmitted::Store(error)) => panic!("{error}"),
        }
    }

    async fn settle(&self, reservation: Reservation, tokens: u64) {
        reservation.settle(tokens);
        self.budget.written().await.unwrap();
    }

    async fn used(&self) -> u64 {
        self.budget.used().await.unwrap().0
    }
}

fn daily(limit: u64) -> Budgets {
    Budgets {
        daily: Some(limit),
        ..Budgets::default()
    }
}

async fn pair(limit: u64) -> (MemoryStore, [Process; 2]) {
    let store = MemoryStore::new();
    let one = Process::new(&store, daily(limit)).await;
    let two = Process::new(&store, daily(limit)).await;
    (store, [one, two])
}

/// What is stored.
async fn stored(budget: &Budget) -> Pools {
    let entry = budget.bucket.get(KEY).await.unwrap().unwrap();
    let counter: Counter = serde_json::from_slice(&entry.value).unwrap();
    counter.pools
}

const fn used(used: u64) -> Pool {
    Pool { used, reserved: 0 }
}

#[tokio::test(start_paused = true)]
async fn processes_share_one_budget_and_are_refused_with_what_all_have_used() {
    let (_, [a, b]) = pair(100).await;
    let run = a.reserve(60).await.unwrap();
    let (scope, limit) = (BudgetScope::Daily, 100);
    let used = 60;
    assert_eq!(
        b.reserve(50).await.unwrap_err(),
        Exceeded { scope, used, limit }
    );
    a.settle(run, 45).await;
    let _run = b.reserve(55).await.unwrap();
    assert_eq!(a.reserve(1).await.unwrap_err().used, 100);
    assert_eq!((a.used().await, b.used().await), (100, 100));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_or_never_admitted_holds_nothing() {
    let (_, [a, b]) = pair(100).await;
    drop(a.reserve(100).await.unwrap());
    assert!(a.budget.try_write().await.is_ok());
    drop(b.reserve(100).await.unwrap());
    // The store answers too late.
    a.store.set_delay(SECOND);
    assert!(timeout(SECOND / 2, a.reserve(100)).await.is_err());
    a.store.set_delay(Duration::ZERO);
    sleep(3 * SECOND).await;
    while a.budget.try_write().await.is_err() || b.budget.try_write().await.is_err() {}
    assert_eq!(stored(&a.budget).await.daily, used(0));
    assert!(b.reserve(100).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_outcome_is_unknown_counts_once() {
    let (_, [a, _]) = pair(100).await;
    let run = a.reserve(10).await.unwrap();
    a.store.lose_answers(1);
    a.settle(run, 30).await;
    assert_eq!(stored(&a.budget).await.daily, used(30));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_had_admitted_stays_counted_in_its_day_and_month() {
    let (_, [a, b]) = pair(100).await;
    let run = a.reserve(30).await.unwrap();
    a.settle(run, 30).await;
    std::mem::forget(a.reserve(50).await.unwrap());
    assert!(b.reserve(21).await.is_err());
    DAY.set(1);
    let run = b.reserve(100).await.unwrap();
    b.settle(run, 60).await;
    let totals = stored(&b.budget).await;
    assert_eq!((totals.daily, totals.monthly), (used(60), used(140)));
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_a_session_is_checked_at_once() {
    let budgets = Budgets {
        session: Some(10),
        ..Budgets::default()
    };
    let a = Process::new(&MemoryStore::new(), budgets).await;
    a.store.set_cut(true);
    let refused = a.budget.reserve(8, 3).await.unwrap_err();
    let NotAdmitted::Exceeded(refused) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(refused.to_string(), "token budget exceeded (session: 8/10)");
    // Without a budget of all runs, nothing is asked of the store.
    assert!(a.budget.reserve(8, 2).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_damaged_value_is_an_error_until_it_is_removed() {
    let (_, [a, b]) = pair(100).await;
    a.settle(a.reserve(1).await.unwrap(), 1).await;
    a.budget.bucket.put(KEY, "{".into()).await.unwrap();
    let refused = b.budget.reserve(0, 1).await.unwrap_err();
    assert!(matches!(refused, NotAdmitted::Store(_)), "{refused:?}");
    a.budget.bucket.delete(KEY, None).await.unwrap();
    assert!(b.reserve(1).await.is_ok());
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(usize, u64),
    Settle(usize, u64),
    Drop(usize),
    Cut(usize, u64),
    LoseAnswers(usize),
    Kill(usize),
    Later(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_usize..3, 0_u64..30).prop_map(|(at, tokens)| Step::Reserve(at, tokens)),
        6 => (any::<usize>(), 0_u64..40).prop_map(|(which, tokens)| Step::Settle(which, tokens)),
        1 => any::<usize>().prop_map(Step::Drop),
        2 => (0_usize..3, 0_u64..30).prop_map(|(at, time)| Step::Cut(at, time)),
        2 => (0_usize..3).prop_map(Step::LoseAnswers),
        1 => (0_usize..3).prop_map(Step::Kill),
        1 => (0_u64..40).prop_map(Step::Later),
    ]
}

/// What three processes use is counted once, whatever fails.
async fn live(steps: Vec<Step>) {
    let store = MemoryStore::new();
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(Process::new(&store, daily(500)).await);
    }
    // The open runs, by their process.
    let mut runs = Vec::<(usize, Reservation)>::new();
    // The day and the tokens of each run that has ended.
    let mut ended = Vec::new();
    DAY.set(0);
    for step in steps {
        match step {
            Step::Reserve(at, tokens) => {
                let reserving = timeout(SECOND, all[at].budget.reserve(0, tokens));
                if let Ok(Ok(run)) = reserving.await {
                    runs.push((at, run));
                }
            }
            Step::Settle(which, tokens) if !runs.is_empty() => {
                let (at, run) = runs.swap_remove(which % runs.len());
                ended.push((run.day, tokens));
                run.settle(tokens);
                let _ = timeout(SECOND, all[at].budget.written()).await;
            }
            Step::Drop(which) if !runs.is_empty() => {
                drop(runs.swap_remove(which % runs.len()));
            }
            Step::Settle(..) | Step::Drop(_) => {}
            Step::Cut(at, time) => {
                all[at].store.set_cut(true);
                sleep(Duration::from_secs(time)).await;
                all[at].store.set_cut(false);
            }
            Step::LoseAnswers(at) => all[at].store.lose_answers(2),
            Step::Kill(at) => {
                // What it has settled is written first.
                while all[at].budget.try_write().await.is_err() {
                    sleep(SECOND).await;
                }
                for (_, run) in runs.extract_if(.., |(of, _)| *of == at) {
                    // Its estimate stays counted.
                    ended.push((run.day, run.tokens.unsigned_abs()));
                    std::mem::forget(run);
                }
                all[at] = Process::new(&store, daily(500)).await;
            }
            Step::Later(days) => DAY.set(DAY.get() + days),
        }
    }
    runs.clear();
    for it in &all {
        while it.budget.try_write().await.is_err() {
            sleep(SECOND).await;
        }
    }
    let today = DAY.get();
    let sum = |counts: &dyn Fn(u64) -> bool| -> u64 {
        let counted = ended.iter().filter(|(day, _)| counts(*day));
        counted.map(|(_, tokens)| tokens).sum()
    };
    let total = sum(&|day| day == today);
    let monthly = sum(&|day| month_of(day) == month_of(today));
    for it in &all {
        let pools = it.budget.total(&it.budget.current().await.unwrap());
        assert_eq!((pools.daily.used, pools.monthly.used), (total, monthly));
    }
    // Then all that is left is free.
    DAY.set(today + 1);
    assert!(all[0].reserve(500).await.is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tokens_are_counted_once_whatever_fails(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(live(steps));
    }
}
