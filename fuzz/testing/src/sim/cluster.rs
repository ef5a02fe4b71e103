//! [`Cluster`]: nodes on one store in memory, which die, pause and lose their line to a store that restarts,
//! fills up, loses its data or comes back with an older copy of them.
//!
//! The seed repeats the schedule of the faults and of what the users do. Ids and the jitter of retries are
//! new each time.
#![expect(
    missing_debug_implementations,
    reason = "whoever fails gets the chronicle"
)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of a schedule"
)]

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rpc_core::store::{MemorySnapshot, MemoryStore};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{Outcome, Rng, Tally, lifecycles};

const SECOND: Duration = Duration::from_secs(1);
/// How long there is peace at the end of a life.
const CALM: Duration = Duration::from_secs(90);
/// How many lives of one server take as long as one of a cluster.
const COST: u64 = 250;

/// Runs a life by a clock of its own.
///
/// # Errors
/// What is broken.
pub fn live(life: impl AsyncFnOnce() -> Outcome) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(life())
}

/// Runs [`lifecycles`], of which one in 250 is a life of a cluster.
///
/// # Panics
/// As [`lifecycles`].
pub fn cluster_lives(
    name: &str,
    few: u64,
    life: impl AsyncFn(&mut Rng, &mut Tally) -> Outcome + Sync,
) {
    lifecycles(name, few, |rng, tally| {
        if rng.below(COST) > 0 {
            return Ok(());
        }
        live(async || life(rng, tally).await)
    });
}

/// Waits for up to this long.
pub async fn wait(rng: &mut Rng, most: Duration) {
    sleep(rng.duration(most)).await;
}

#[expect(clippy::unwrap_used, reason = "an assertion of a test tool")]
fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap()
}

/// Lets a task stand still while it is paused.
async fn pausable(mut task: BoxFuture<'static, ()>, mut is_paused: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            biased;
            paused = is_paused.wait_for(|it| *it) => drop(paused),
            () = &mut task => return,
        }
        if is_paused.wait_for(|it| !*it).await.is_err() {
            return;
        }
    }
}

#[derive(Default)]
struct Entries {
    start: Option<Instant>,
    notes: Vec<String>,
    losses: Vec<Instant>,
}

/// What happened in a life, and when. A clone is the same one.
#[derive(Clone, Default)]
pub struct Chronicle(Arc<Mutex<Entries>>);

impl Chronicle {
    /// Adds a line.
    pub fn note(&self, note: &str) {
        let entries = &mut *lock(&self.0);
        let start = *entries.start.get_or_insert_with(Instant::now);
        entries.notes.push(format!("{:?} {note}", start.elapsed()));
    }

    /// When the store lost data.
    #[must_use]
    pub fn losses(&self) -> Vec<Instant> {
        lock(&self.0).losses.clone()
    }

    /// How long after the first note this was.
    #[must_use]
    pub fn since(&self, at: Instant) -> Duration {
        at - lock(&self.0).start.unwrap_or(at)
    }

    /// Adds the last notes to what is broken.
    #[must_use]
    pub fn explain(&self, broken: &str) -> String {
        let notes = &lock(&self.0).notes;
        let last = notes.len().saturating_sub(100);
        format!("{broken}\n{}", notes[last..].join("\n"))
    }
}

/// A node that has been started.
pub struct Started<N> {
    /// What others use of it.
    pub node: N,
    /// Its work, which stands still while the node is paused.
    pub work: BoxFuture<'static, ()>,
    /// What else ends with it.
    pub tasks: Vec<BoxFuture<'static, ()>>,
}

/// What is particular to a cluster.
pub struct Kind<N> {
    /// Starts a node in the slot with this number.
    pub start: Box<dyn Fn(usize, MemoryStore) -> BoxFuture<'static, Started<N>> + Send + Sync>,
    /// The log that is deleted where data are lost.
    pub log: &'static str,
    /// How many messages may wait for a node.
    pub queues: &'static [usize],
    /// Whether a copy of before one loss may come back after another.
    pub has_old_copies: bool,
    /// Sets the clock of a slot wrong, or right again.
    pub set_clock: fn(usize, bool),
}

/// A machine on which one node after another lives.
struct Slot<N> {
    store: MemoryStore,
    node: Option<N>,
    tasks: JoinSet<()>,
    is_paused: watch::Sender<bool>,
}

/// Nodes, the store, and what happens to them.
pub struct Cluster<N> {
    /// A connection that no fault concerns.
    pub store: MemoryStore,
    /// What happened.
    pub chronicle: Chronicle,
    kind: Kind<N>,
    slots: Mutex<Vec<Slot<N>>>,
    copies: Mutex<Vec<MemorySnapshot>>,
    /// Faults that are to end.
    faults: Mutex<JoinSet<()>>,
}

impl<N: Clone + Send + 'static> Cluster<N> {
    /// Starts so many nodes, for which `queue` messages may wait.
    pub async fn new(
        nodes: usize,
        kind: Kind<N>,
        queue: Option<usize>,
        rng: &mut Rng,
    ) -> Arc<Self> {
        let store = MemoryStore::new();
        let slot = |_| Slot {
            store: store.clone(),
            node: None,
            tasks: JoinSet::new(),
            is_paused: watch::Sender::new(false),
        };
        let cluster = Arc::new(Self {
            slots: Mutex::new((0..nodes).map(slot).collect()),
            copies: Mutex::new(vec![store.snapshot()]),
            store,
            chronicle: Chronicle::default(),
            kind,
            faults: Mutex::default(),
        });
        for slot in 0..nodes {
            (cluster.kind.set_clock)(slot, false);
            let queue = queue.unwrap_or_else(|| cluster.random_queue(rng));
            cluster.start(slot, queue).await;
        }
        cluster
    }

    fn random_queue(&self, rng: &mut Rng) -> usize {
        rng.pick(self.kind.queues).copied().unwrap_or(4_096)
    }

    fn slot_count(&self) -> usize {
        lock(&self.slots).len()
    }

    /// The node of a slot, if one lives there.
    #[must_use]
    pub fn node(&self, slot: usize) -> Option<N> {
        lock(&self.slots)[slot].node.clone()
    }

    /// A slot's line to the store.
    #[must_use]
    pub fn store_of(&self, slot: usize) -> MemoryStore {
        lock(&self.slots)[slot].store.clone()
    }

    async fn start(&self, slot: usize, queue: usize) {
        let store = self.store.connect();
        store.set_queue(queue);
        let started = (self.kind.start)(slot, store.clone()).await;
        let is_paused = watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(pausable(started.work, is_paused.subscribe()));
        for task in started.tasks {
            tasks.spawn(task);
        }
        self.chronicle.note(&format!("node {slot} starts"));
        lock(&self.slots)[slot] = Slot {
            store,
            node: Some(started.node),
            tasks,
            is_paused,
        };
    }

    fn kill(&self, slot: usize) {
        let slot = &mut lock(&self.slots)[slot];
        slot.tasks.abort_all();
        slot.node = None;
    }

    /// Lets a node stand still, or go on.
    pub fn pause(&self, slot: usize, is_paused: bool) {
        let slot = &lock(&self.slots)[slot];
        slot.is_paused.send_replace(is_paused);
        slot.store.set_paused(is_paused);
    }

    /// Has so many faults happen, and then some peace. `loses`: the store may lose data.
    pub async fn disturb(
        self: &Arc<Self>,
        faults: u64,
        every: Duration,
        loses: bool,
        rng: &mut Rng,
        tally: &mut Tally,
    ) {
        for _ in 0..faults {
            wait(rng, every).await;
            self.fault(loses, rng);
            tally.faults += 1;
        }
        self.heal().await;
        sleep(CALM).await;
    }

    /// Waits until a node has caught up with what it missed.
    pub async fn rest(&self) {
        sleep(CALM).await;
    }

    /// Lets something fail, and ends that later.
    fn fault(self: &Arc<Self>, loses: bool, rng: &mut Rng) {
        let slot = rng.below(self.slot_count() as u64) as usize;
        let long = if rng.chance(10) { 60 } else { 12 };
        let time = rng.duration(long * SECOND);
        let delay = if rng.chance(20) { 8 } else { 1 };
        let delay = rng.duration(delay * SECOND);
        let queue = self.random_queue(rng);
        let (cluster, store) = (Arc::clone(self), self.store_of(slot));
        let kind = rng.below(if loses { 14 } else { 11 });
        let what = [
            "killed",
            "killed",
            "stands still",
            "cut",
            "cut",
            "no answers",
            "slow",
            "answers are lost",
            "the store restarts",
            "full",
            "its clock is wrong",
            "the store is empty",
            "the store is copied, or what it was",
            "the log is deleted",
        ][kind as usize];
        self.chronicle
            .note(&format!("{what}, node {slot}, for {time:?}, {delay:?}"));
        let ending: BoxFuture<'static, ()> = match kind {
            0 | 1 => {
                self.kill(slot);
                Box::pin(async move { cluster.start(slot, queue).await })
            }
            2 => {
                self.pause(slot, true);
                Box::pin(async move { cluster.pause(slot, false) })
            }
            3 | 4 => {
                store.set_cut(true);
                Box::pin(async move { store.set_cut(false) })
            }
            5 => {
                store.set_paused(true);
                Box::pin(async move { store.set_paused(false) })
            }
            6 => {
                store.set_delay(delay);
                Box::pin(async move { store.set_delay(Duration::ZERO) })
            }
            7 => return store.lose_answers(1 + rng.below(3)),
            8 => return self.store.restart(),
            9 => {
                self.store.set_full(true);
                Box::pin(async move { cluster.store.set_full(false) })
            }
            10 => {
                (self.kind.set_clock)(slot, true);
                Box::pin(async move { (cluster.kind.set_clock)(slot, false) })
            }
            11 => {
                self.lose();
                return self.store.restart_empty();
            }
            12 => return self.restore(rng),
            _ => {
                self.lose();
                return self.store.delete_log(self.kind.log);
            }
        };
        lock(&self.faults).spawn({
            let chronicle = self.chronicle.clone();
            async move {
                sleep(time).await;
                chronicle.note(&format!("node {slot}: not {what} any more"));
                ending.await;
            }
        });
    }

    fn lose(&self) {
        lock(&self.chronicle.0).losses.push(Instant::now());
        if !self.kind.has_old_copies {
            lock(&self.copies).clear();
        }
    }

    /// Copies the store, or makes it what it was.
    fn restore(&self, rng: &mut Rng) {
        let copy = rng.pick(&lock(&self.copies)).cloned();
        if let Some(copy) = copy.filter(|_| rng.chance(50)) {
            self.lose();
            self.store.restore(&copy);
        } else {
            lock(&self.copies).push(self.store.snapshot());
        }
    }

    async fn heal(&self) {
        let faults = std::mem::take(&mut *lock(&self.faults));
        faults.join_all().await;
        self.store.set_full(false);
        for slot in 0..self.slot_count() {
            if self.node(slot).is_none() {
                self.start(slot, 4_096).await;
            }
            self.pause(slot, false);
            (self.kind.set_clock)(slot, false);
            let store = self.store_of(slot);
            store.set_cut(false);
            store.set_delay(Duration::ZERO);
            store.lose_answers(0);
        }
        self.chronicle.note("all is well");
    }
}
