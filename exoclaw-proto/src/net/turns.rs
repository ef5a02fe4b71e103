//! [`SessionTurns`]: an async lock for each session.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use rpc_core::sync::Mutex;

use crate::error::RpcError;
use crate::session::SessionKey;

/// Most turns that wait for one session.
const MAX_WAITING_PER_SESSION: usize = 64;
/// Most turns that wait for all sessions together.
const MAX_WAITING: usize = 65_536;
/// The table keeps room for so many sessions.
const KEPT: usize = 64;

/// A lock that lets one turn run at a time for each session, in the order of arrival: the
/// specification's "messages serialized per session". Cheap to clone; clones share the table.
///
/// 64 turns may wait for one session, and 65,536 for all together. A session without a turn takes
/// no memory.
///
/// Hold the [`TurnGuard`] over the *whole* turn, from reading the context to storing the reply, or
/// the second of two messages will not know the first.
///
/// ```
/// use exoclaw_proto::error::RpcError;
/// use exoclaw_proto::net::SessionTurns;
/// use exoclaw_proto::session::SessionKey;
///
/// # async fn f() -> Result<(), RpcError> {
/// let turns = SessionTurns::default();
/// let key = SessionKey::new("default", "websocket", "user-123", "main");
/// let turn = turns.enter(&key).await?;
/// // read the context, ask the model, store the answer
/// drop(turn);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct SessionTurns(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lines: HashMap<SessionKey, TurnQueue>,
    /// The number of all turns.
    turns: usize,
}

/// The turns of one session.
#[derive(Default)]
struct TurnQueue {
    lock: Arc<tokio::sync::Mutex<()>>,
    turns: usize,
}

fn busy(waiting: usize) -> RpcError {
    RpcError::new(format!("session busy: {waiting} turns are waiting already"))
}

impl SessionTurns {
    /// Waits until the earlier turns of this session have ended.
    ///
    /// # Errors
    /// [`RpcError`], at once: too many turns are waiting already.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue.
    pub async fn enter(&self, key: &SessionKey) -> Result<TurnGuard, RpcError> {
        let (lock, place) = self.line_up(key)?;
        Ok(TurnGuard {
            _lock: lock.lock_owned().await,
            _place: place,
        })
    }

    fn line_up(
        &self,
        key: &SessionKey,
    ) -> Result<(Arc<tokio::sync::Mutex<()>>, Admitted), RpcError> {
        let mut state = self.0.lock();
        let in_all = state.turns - state.lines.len();
        let line = state.lines.entry(key.clone()).or_default();
        if line.turns > MAX_WAITING_PER_SESSION {
            let waiting = line.turns - 1;
            return Err(busy(waiting));
        }
        if line.turns > 0 && in_all >= MAX_WAITING {
            return Err(busy(in_all));
        }
        line.turns += 1;
        let lock = Arc::clone(&line.lock);
        state.turns += 1;
        let place = Admitted {
            turns: self.clone(),
            key: key.clone(),
        };
        Ok((lock, place))
    }

    /// Returns how many turns are running: one for each session with a turn.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.lock().lines.len()
    }

    /// Returns how many turns are waiting.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let state = self.0.lock();
        state.turns - state.lines.len()
    }
}

rpc_core::debug_fields!([] SessionTurns, this => {
    running: this.running(),
    waiting: this.waiting(),
});

/// A guard of a session's turn. Dropping it starts the next one.
#[derive(Debug)]
#[must_use = "the turn ends when the guard is dropped"]
pub struct TurnGuard {
    _lock: OwnedMutexGuard<()>,
    _place: Admitted,
}

/// A turn that runs or waits.
#[derive(Debug)]
struct Admitted {
    turns: SessionTurns,
    key: SessionKey,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut state = self.turns.0.lock();
        state.turns -= 1;
        if let Some(line) = state.lines.get_mut(&self.key) {
            line.turns -= 1;
            if line.turns == 0 {
                state.lines.remove(&self.key);
            }
        }
        let lines = &mut state.lines;
        if lines.capacity() > KEPT && lines.len() < lines.capacity() / 8 {
            let room = (lines.len() * 2).max(KEPT / 2);
            lines.shrink_to(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn now<F: Future>(future: F) -> F::Output {
        match poll(pin!(future)) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it has to wait"),
        }
    }

    fn key(peer: &str) -> SessionKey {
        SessionKey::new("default", "websocket", "acc", peer)
    }

    #[test]
    fn turns_of_one_session_run_in_order_and_others_concurrently() {
        let turns = SessionTurns::default();
        let first = now(turns.enter(&key("a"))).unwrap();
        let other = now(turns.enter(&key("b"))).unwrap();
        let (a, b) = (key("a"), key("a"));
        let mut second = pin!(turns.enter(&a));
        let mut third = pin!(turns.enter(&b));
        assert!(poll(second.as_mut()).is_pending());
        assert!(poll(third.as_mut()).is_pending());
        assert_eq!((turns.running(), turns.waiting()), (2, 2));
        drop(first);
        assert!(poll(third.as_mut()).is_pending());
        let Poll::Ready(Ok(guard)) = poll(second.as_mut()) else {
            panic!("the second turn has begun");
        };
        drop((guard, other));
        assert!(poll(third.as_mut()).is_ready());
        assert_eq!((turns.running(), turns.waiting()), (0, 0));
    }

    #[test]
    fn a_cancelled_waiter_does_not_block_others() {
        let turns = SessionTurns::default();
        let key = key("a");
        let first = now(turns.enter(&key)).unwrap();
        let mut last = {
            let mut leaves = pin!(turns.enter(&key));
            assert!(poll(leaves.as_mut()).is_pending());
            let mut last = Box::pin(turns.enter(&key));
            assert!(poll(last.as_mut()).is_pending());
            last
        };
        assert_eq!(turns.waiting(), 1);
        drop(first);
        assert!(poll(last.as_mut()).is_ready());
        drop(last);
        assert_eq!((turns.running(), turns.waiting()), (0, 0));
    }

    #[test]
    fn a_turn_granted_to_a_dropped_waiter_passes_to_the_next() {
        let turns = SessionTurns::default();
        let key = key("a");
        let first = now(turns.enter(&key)).unwrap();
        let mut leaves = Box::pin(turns.enter(&key));
        assert!(poll(leaves.as_mut()).is_pending());
        let mut last = pin!(turns.enter(&key));
        assert!(poll(last.as_mut()).is_pending());
        drop(first); // It is `leaves`' turn now,
        drop(leaves); // which never looks.
        assert!(poll(last.as_mut()).is_ready());
    }

    #[test]
    fn waiting_turns_are_bounded_per_session_and_in_total() {
        let turns = SessionTurns::default();
        let mut places = Vec::new();
        let mut line_up = |name: usize| {
            let (_, place) = turns.line_up(&key(&name.to_string()))?;
            places.push(place);
            Ok::<_, RpcError>(())
        };
        for name in 0..1_024 {
            for _ in 0..=64 {
                line_up(name).unwrap();
            }
            if name == 0 {
                assert_eq!(line_up(name), Err(busy(64)));
            }
        }
        assert_eq!(line_up(1_024), Ok(()));
        assert_eq!(line_up(1_024), Err(busy(65_536)));
        assert_eq!((turns.running(), turns.waiting()), (1_025, 65_536));
        drop(places);
        assert_eq!((turns.running(), turns.waiting()), (0, 0));
        assert!(
            turns.0.lock().lines.capacity() < 128,
            "memory is given back"
        );
    }
}
