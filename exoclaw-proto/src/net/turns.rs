//! [`SessionTurns`]: an async lock for each session.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::session::{SessionKey, Turn, TurnError, TurnLimits, Turns};

/// A lock that lets one turn run at a time for each session, in the order of arrival: the
/// specification's "messages serialized per session". Cheap to clone; clones share the table.
///
/// Hold the [`TurnGuard`] over the *whole* turn, from reading the context to storing the reply, or
/// the second of two messages will not know the first.
///
/// ```
/// use exoclaw_proto::net::SessionTurns;
/// use exoclaw_proto::session::SessionKey;
///
/// # async fn f() -> Result<(), exoclaw_proto::session::TurnError> {
/// let turns = SessionTurns::default();
/// let key = SessionKey::new("default", "websocket", "user-123", "main");
/// let turn = turns.enter(&key).await?;
/// // read the context, ask the model, store the answer
/// drop(turn);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct SessionTurns {
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    turns: Turns<SessionKey, u64>,
    waiting: HashMap<u64, oneshot::Sender<()>>,
    next: u64,
}

impl SessionTurns {
    /// Creates a table without turns, with these limits on waiting ones.
    #[must_use]
    pub fn new(limits: TurnLimits) -> Self {
        let state = State {
            turns: Turns::new(limits),
            ..State::default()
        };
        Self {
            shared: Arc::new(Mutex::new(state)),
        }
    }

    /// Waits until the earlier turns of this session have ended.
    ///
    /// # Errors
    /// [`TurnError::Full`] at once, if too many turns wait. Retrying later is safe.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue.
    pub async fn enter(&self, key: &SessionKey) -> Result<TurnGuard, TurnError> {
        let (guard, begun) = {
            let mut state = lock(&self.shared);
            let ticket = state.next;
            let turn = state.turns.begin(key.clone(), ticket)?;
            state.next += 1;
            let begun = match turn {
                Turn::Now => None,
                Turn::Waiting { .. } => {
                    let (begin, begun) = oneshot::channel();
                    state.waiting.insert(ticket, begin);
                    Some(begun)
                }
            };
            let shared = Arc::clone(&self.shared);
            (TurnGuard { shared, ticket }, begun)
        };
        if let Some(begun) = begun {
            // The other end is dropped only with the guard's own ticket.
            let _ = begun.await;
        }
        Ok(guard)
    }

    /// Returns how many turns are running: one for each session with a turn.
    #[must_use]
    pub fn running(&self) -> usize {
        lock(&self.shared).turns.running()
    }

    /// Returns how many turns are waiting.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.shared).turns.waiting()
    }
}

impl fmt::Debug for SessionTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTurns")
            .field("running", &self.running())
            .field("waiting", &self.waiting())
            .finish()
    }
}

/// A guard of a session's turn. Dropping it starts the next one.
#[must_use = "the turn ends when the guard is dropped"]
pub struct TurnGuard {
    shared: Arc<Mutex<State>>,
    ticket: u64,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        state.waiting.remove(&self.ticket);
        let next = state.turns.end(&self.ticket);
        let begin = next.and_then(|ticket| state.waiting.remove(&ticket));
        drop(state);
        if let Some(begin) = begin {
            // Whoever has gone meanwhile ends its turn with its own guard.
            let _ = begin.send(());
        }
    }
}

impl fmt::Debug for TurnGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnGuard").finish_non_exhaustive()
    }
}

fn lock(shared: &Mutex<State>) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn turns_of_one_session_follow_one_another_and_others_run_beside() {
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
    fn whoever_goes_away_holds_nobody_up() {
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
        assert!(lock(&turns.shared).waiting.is_empty());
    }

    #[test]
    fn a_turn_that_was_given_to_somebody_who_has_left_goes_on_to_the_next() {
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
    fn too_many_are_refused_at_once() {
        let turns = SessionTurns::new(TurnLimits::default().with_max_waiting_per_key(0));
        let key = key("a");
        let _first = now(turns.enter(&key)).unwrap();
        assert!(matches!(
            now(turns.enter(&key)),
            Err(TurnError::Full { .. })
        ));
        assert_eq!(turns.waiting(), 0);
    }
}
