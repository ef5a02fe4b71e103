//! The keeper: orders are written once, in order, whatever happens to those who gave them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use futures_util::poll;

use super::*;
use crate::gateway::engine::Records as _;

/// A store whose writer waits at a gate, and tells how many it wrote together.
#[derive(Debug)]
struct Gated {
    inner: EmbeddedStore,
    gate: Mutex<Receiver<()>>,
    batches: Sender<usize>,
}

/// A keeper of a gated store, the way to open its gate once, and the sizes of its batches.
fn gated() -> (Arc<Keeper>, Sender<()>, Receiver<usize>) {
    let (open, gate) = channel();
    let (batches, sizes) = channel();
    let store = Gated {
        inner: memory(StoreLimits::default()),
        gate: Mutex::new(gate),
        batches,
    };
    (
        Arc::new(Keeper::start(Arc::new(store)).unwrap()),
        open,
        sizes,
    )
}

impl Store for Gated {
    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError> {
        let _ = self.batches.send(commits.len());
        let _ = self.gate.lock().unwrap().recv();
        assert!(
            commits.iter().all(|commit| commit.session != "panic"),
            "as told"
        );
        self.inner.commit(commits)
    }
    fn recall(&self, session: &str, turns: usize) -> Result<Vec<Turn>, StoreError> {
        assert_ne!(session, "panic");
        self.inner.recall(session, turns)
    }
    fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError> {
        self.inner.sessions(max)
    }
    fn session_count(&self, since: u64) -> Result<u64, StoreError> {
        self.inner.session_count(since)
    }
    fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        self.inner.usage(max)
    }
    fn totals(&self) -> Result<Totals, StoreError> {
        self.inner.totals()
    }
    fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError> {
        self.inner.forget(session, what)
    }
}

async fn kept(keeper: &Keeper, session: &str) -> Vec<String> {
    let turns = keeper.recall(session, None, 1000).await.unwrap();
    turns.into_iter().map(|turn| turn.user).collect()
}

#[tokio::test]
async fn recalls_committed_turns() {
    let store = Arc::new(memory(StoreLimits::default()));
    let keeper = Keeper::start(store).unwrap();
    keeper.commit(turn("s", 1), None, None).await.unwrap();
    assert_eq!(kept(&keeper, "s").await, ["q1"]);
    keeper.commit(used("s", 2, 5), None, None).await.unwrap();
    assert_eq!(keeper.totals().await.unwrap().days, [(0, 5)]);
    assert_eq!(keeper.usage(9).await.unwrap().len(), 1);
    assert_eq!(keeper.session_count(0).await.unwrap(), 1);
    assert_eq!(keeper.sessions(9).await.unwrap().len(), 1);
    assert!(keeper.forget("s", Forget::Turns).await.unwrap());
    assert!(kept(&keeper, "s").await.is_empty());
    assert!(!format!("{keeper:?}").is_empty());
}

#[tokio::test]
async fn waiting_writes_are_written_together_in_order() {
    let (keeper, open, sizes) = gated();
    let mut commits: Vec<_> = (0..10)
        .map(|number| Box::pin(keeper.commit(turn("s", number), None, None)))
        .collect();
    for commit in &mut commits {
        assert!(poll!(commit).is_pending());
    }
    let mut forget = Box::pin(keeper.forget("other", Forget::Turns));
    assert!(poll!(&mut forget).is_pending());
    let mut last = Box::pin(keeper.commit(turn("s", 10), None, None));
    assert!(poll!(&mut last).is_pending());
    // The gate stays open.
    drop(open);
    assert!(join_all(commits).await.iter().all(Result::is_ok));
    assert_eq!(forget.await, Ok(false));
    assert_eq!(last.await, Ok(()));
    let expected: Vec<_> = (0..=10).map(|number| format!("q{number}")).collect();
    assert_eq!(kept(&keeper, "s").await, expected);
    let sizes: Vec<_> = sizes.try_iter().collect();
    assert_eq!(sizes.iter().sum::<usize>(), 11);
    assert_eq!(sizes.last(), Some(&1));
}

#[tokio::test]
async fn a_cancelled_commit_is_still_written() {
    let (keeper, open, _sizes) = gated();
    let mut commit = Box::pin(keeper.commit(turn("s", 1), None, None));
    assert!(poll!(&mut commit).is_pending());
    drop(commit);
    drop(open);
    keeper.commit(turn("s", 2), None, None).await.unwrap();
    assert_eq!(kept(&keeper, "s").await, ["q1", "q2"]);
}

#[tokio::test]
async fn reading_does_not_wait_for_the_writer() {
    let (keeper, _open, _sizes) = gated();
    let mut commit = Box::pin(keeper.commit(turn("s", 1), None, None));
    assert!(poll!(&mut commit).is_pending());
    assert!(kept(&keeper, "t").await.is_empty());
}

#[tokio::test]
async fn closing_waits_for_accepted_work_and_accepts_no_more() {
    let (keeper, open, sizes) = gated();
    let mut commit = Box::pin(keeper.commit(turn("s", 1), None, None));
    assert!(poll!(&mut commit).is_pending());
    let mut close = Box::pin(keeper.close());
    assert!(poll!(&mut close).is_pending());
    assert_eq!(
        keeper.commit(turn("s", 2), None, None).await,
        Err(StoreError::Closed)
    );
    assert_eq!(
        keeper.forget("s", Forget::Turns).await,
        Err(StoreError::Closed)
    );
    // Given up and made again: closing goes on.
    drop(close);
    open.send(()).unwrap();
    keeper.close().await;
    keeper.close().await;
    assert_eq!(commit.await, Ok(()));
    assert_eq!(sizes.try_iter().collect::<Vec<_>>(), [1]);
    assert_eq!(kept(&keeper, "s").await, ["q1"]);
}

#[tokio::test]
async fn a_store_that_panics_does_not_end_the_keeper() {
    let (keeper, open, _sizes) = gated();
    drop(open);
    let error = keeper
        .commit(turn("panic", 1), None, None)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    let error = keeper.recall("panic", None, 1).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    keeper.commit(turn("s", 2), None, None).await.unwrap();
    assert_eq!(kept(&keeper, "s").await, ["q2"]);
}

#[tokio::test]
async fn orders_beyond_the_queue_wait_and_are_all_written() {
    let (keeper, open, _sizes) = gated();
    let mut commits: Vec<_> = (0..600)
        .map(|number| Box::pin(keeper.commit(turn("s", number), None, None)))
        .collect();
    for commit in &mut commits {
        assert!(poll!(commit).is_pending());
    }
    drop(open);
    assert!(join_all(commits).await.iter().all(Result::is_ok));
    let info = &keeper.sessions(1).await.unwrap()[0];
    assert_eq!(info.turns, 600);
}
