//! [`Brake`]: slows down peers that guess secrets.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::Instant;
use crate::net::time;
use crate::net::ws::LogCount;
use crate::sync::Mutex;

/// Wrong guesses that cost nothing.
const FREE: u32 = 10;
/// How long until one more is free.
const INTERVAL: Duration = Duration::from_secs(1);
/// The most guessers that are remembered. Those with the most wrong guesses stay.
const MAX_GUESSERS: usize = 4_096;
/// Characters from which on a random secret cannot be guessed.
const LONG: usize = 16;

/// Returns whether a secret is so short that it can be guessed: it has fewer than 16 characters.
#[must_use]
pub fn is_guessable(secret: &str) -> bool {
    secret.chars().take(LONG).count() < LONG
}

/// Slows down who guesses the secrets of a server, at all its doors. A guesser has ten wrong guesses at once, and one
/// more each second.
///
/// - A token or key of 16 random characters or more cannot be guessed. Compare it at once, so that a right one
///   never waits, and slow down the answer to a wrong one: [`wrong`](Self::wrong).
/// - Passwords, invite codes and shorter tokens can. Ask before the comparison: [`attempt`](Self::attempt).
///   Otherwise parallel guesses would learn the right one from what is answered at once.
///
/// A guesser is an address, and the account where there is one, so that a stranger's guesses do not lock the owner
/// out. What is wrong is counted in the log, once a minute.
#[derive(Debug, Default)]
pub struct Brake {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When all guesses of each will be free again.
    guessers: HashMap<Guesser, Instant>,
    wrong: LogCount,
}

type Guesser = (IpAddr, String);

/// There were too many wrong attempts: try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many wrong attempts: try again later")]
pub struct TooManyAttempts;

/// An attempt that may be made. Unless it is [wrong](Self::wrong), it does not count.
#[derive(Debug)]
pub struct Attempt {
    brake: Arc<Brake>,
    guesser: Guesser,
    is_wrong: bool,
}

impl Brake {
    /// Waits until a secret that can be guessed may be compared: at most a second, in which one attempt waits.
    ///
    /// # Errors
    /// [`TooManyAttempts`]: others wait. Retrying after a second is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe: the attempt does not count.
    pub async fn attempt(
        self: &Arc<Self>,
        address: IpAddr,
        account: &str,
    ) -> Result<Attempt, TooManyAttempts> {
        let guesser = (address, account.chars().take(64).collect());
        let wait = self.state.lock().take(&guesser)?;
        let attempt = Attempt {
            brake: Arc::clone(self),
            guesser,
            is_wrong: false,
        };
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Ok(attempt)
    }

    /// Counts a wrong secret that cannot be guessed. Returns how long its answer should wait.
    #[must_use]
    pub fn wrong(&self, address: IpAddr) -> Duration {
        let mut state = self.state.lock();
        state.note_wrong(address);
        let wait = state.take(&(address, String::new()));
        wait.unwrap_or(INTERVAL)
    }

    /// Returns how long the answer to a wrong secret that cannot be guessed should wait, before it is known
    /// whether it is wrong.
    #[must_use]
    pub fn delay(&self, address: IpAddr) -> Duration {
        let state = self.state.lock();
        let full = state.guessers.get(&(address, String::new()));
        let is_free = full.is_none_or(|full| *full + INTERVAL <= time::now() + INTERVAL * FREE);
        if is_free { Duration::ZERO } else { INTERVAL }
    }
}

impl Attempt {
    /// Counts the attempt: the secret is wrong.
    pub fn wrong(mut self) {
        self.is_wrong = true;
        self.brake.state.lock().note_wrong(self.guesser.0);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_wrong {
            let mut state = self.brake.state.lock();
            state
                .guessers
                .entry(self.guesser.clone())
                .and_modify(|full| *full -= INTERVAL);
        }
    }
}

impl State {
    /// Takes a guess from the guesser's bucket; returns how long to wait for it.
    fn take(&mut self, guesser: &Guesser) -> Result<Duration, TooManyAttempts> {
        let now = time::now();
        if self.guessers.len() >= MAX_GUESSERS && !self.guessers.contains_key(guesser) {
            self.guessers.retain(|_, full| *full > now);
            let guessers = self.guessers.iter();
            let least = guessers
                .min_by_key(|(_, full)| **full)
                .map(|it| it.0.clone());
            if let Some(least) = least.filter(|_| self.guessers.len() >= MAX_GUESSERS) {
                self.guessers.remove(&least);
            }
        }
        let full = self.guessers.entry(guesser.clone()).or_insert(now);
        let next = (*full).max(now) + INTERVAL;
        let wait = next.duration_since(now).saturating_sub(INTERVAL * FREE);
        if wait > INTERVAL {
            return Err(TooManyAttempts);
        }
        *full = next;
        Ok(wait)
    }

    fn note_wrong(&mut self, address: IpAddr) {
        if let Some(count) = self.wrong.count() {
            tracing::warn!(count, %address, "wrong passwords, tokens, keys or codes");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::Instant;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// How long each of these wrong attempts waits, in seconds; `None` for one that is refused.
    async fn waits(brake: &Arc<Brake>, account: &str, wrong: usize) -> Vec<Option<u64>> {
        let mut waits = Vec::new();
        for _ in 0..wrong {
            let begin = Instant::now();
            let attempt = brake.attempt(HERE, account).await;
            waits.push(attempt.ok().map(|attempt| {
                attempt.wrong();
                begin.elapsed().as_secs()
            }));
        }
        waits
    }

    #[tokio::test(start_paused = true)]
    async fn ten_wrong_attempts_are_free_and_then_one_each_second() {
        let brake = Arc::default();
        assert_eq!(waits(&brake, "ann", 10).await, [Some(0); 10]);
        assert_eq!(waits(&brake, "ann", 3).await, [Some(1); 3]);
        assert_eq!(waits(&brake, "bob", 1).await, [Some(0)]);
        tokio::time::advance(INTERVAL * 3).await;
        let expected = [Some(0), Some(0), Some(0), Some(1)];
        assert_eq!(waits(&brake, "ann", 4).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn one_attempt_waits_and_others_are_refused() {
        let brake: Arc<Brake> = Arc::default();
        waits(&brake, "", 10).await;
        let waiting = brake.attempt(HERE, "");
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert_eq!(brake.attempt(HERE, "").await.unwrap_err(), TooManyAttempts);
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn right_and_cancelled_attempts_do_not_count() {
        let brake: Arc<Brake> = Arc::default();
        for _ in 0..100 {
            brake.attempt(HERE, "").await.unwrap();
        }
        waits(&brake, "", 10).await;
        for _ in 0..100 {
            let waiting = brake.attempt(HERE, "");
            tokio::pin!(waiting);
            assert!(futures_util::poll!(waiting).is_pending());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_to_wrong_keys_wait_after_the_first_ten() {
        let brake: Arc<Brake> = Arc::default();
        for _ in 0..10 {
            assert_eq!(brake.delay(HERE), Duration::ZERO);
            assert_eq!(brake.wrong(HERE), Duration::ZERO);
        }
        assert_eq!(brake.delay(HERE), INTERVAL);
        for _ in 0..100 {
            assert_eq!(brake.wrong(HERE), INTERVAL);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_accounts_does_not_evict_the_worst() {
        let brake: Arc<Brake> = Arc::default();
        waits(&brake, "ann", 10).await;
        for account in 0..2 * MAX_GUESSERS {
            brake
                .attempt(HERE, &account.to_string())
                .await
                .unwrap()
                .wrong();
        }
        assert_eq!(brake.state.lock().guessers.len(), MAX_GUESSERS);
        assert_eq!(waits(&brake, "ann", 1).await, [Some(1)]);
    }
}
