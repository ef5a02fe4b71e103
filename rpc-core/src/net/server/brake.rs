//! [`Brake`]: slows down peers that guess secrets.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::Instant;
use crate::net::ws::LogCount;
use crate::net::{entropy, time};
use crate::sync::Mutex;

/// Wrong guesses that cost nothing.
const FREE: u32 = 10;
/// How long until one more is free.
const INTERVAL: Duration = Duration::from_secs(1);
/// The last part of a second in which those who wait for the next one wake up.
const SPREAD: Duration = Duration::from_millis(50);
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
/// A guesser is an address, and the account or the secret that is guessed, so that a stranger's guesses lock the owner
/// out neither elsewhere nor of anything else. Before the comparison nothing tells the owner from a guesser with the same
/// address who tries the same secret: all who come in the same second have the same chance to be compared, whatever
/// came first. What must be open at every moment needs a long secret. What is wrong is counted in the log, once a
/// minute.
#[derive(Debug, Default)]
pub struct Brake {
    hasher: RandomState,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    guessers: HashMap<Guesser, Bucket>,
    wrong: LogCount,
}

type Guesser = (IpAddr, String);

/// The guesses of a guesser.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// When all of them will be free again.
    full: Instant,
    /// The last turn that was used, as `full` was when it began.
    used: Option<Instant>,
    /// The hashes of what was wrong last.
    wrong: [u64; FREE as usize],
}

/// There were too many attempts: try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many attempts: try again later")]
pub struct TooManyAttempts;

/// An attempt that may be made. Unless it is [wrong](Self::wrong), it does not count.
#[derive(Debug)]
pub struct Attempt {
    brake: Arc<Brake>,
    guesser: Guesser,
    shown: u64,
    is_wrong: bool,
}

impl Brake {
    /// Waits until a secret that can be guessed may be compared: about a second at most. `account`: the account, or
    /// the secret's name. `shown`: the secret, as it was shown. One that was wrong a moment ago gets no turn, so that
    /// programs with an old secret are not in the way of others.
    ///
    /// # Errors
    /// [`TooManyAttempts`], after the wait: it was the turn of another one. Retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe: the attempt does not count.
    pub async fn attempt(
        self: &Arc<Self>,
        address: IpAddr,
        account: &str,
        shown: impl Hash,
    ) -> Result<Attempt, TooManyAttempts> {
        let guesser = (address, account.chars().take(64).collect());
        let shown = self.hasher.hash_one(shown);
        let turn = self.state.lock().take(&guesser);
        if let Some((turn, wait)) = turn {
            // The first to wake up has the turn, and not the first that came.
            let [random, ..] = entropy().to_le_bytes();
            sleep(wait.saturating_sub(SPREAD * u32::from(random) / 256)).await;
            let mut state = self.state.lock();
            let bucket = state.guessers.get_mut(&guesser).ok_or(TooManyAttempts)?;
            if bucket.used >= Some(turn) || bucket.wrong.contains(&shown) {
                return Err(TooManyAttempts);
            }
            bucket.used = Some(turn);
        }
        Ok(Attempt {
            brake: Arc::clone(self),
            guesser,
            shown,
            is_wrong: false,
        })
    }

    /// Counts a wrong secret that cannot be guessed. Returns how long its answer should wait.
    #[must_use]
    pub fn wrong(&self, address: IpAddr) -> Duration {
        let mut state = self.state.lock();
        state.note_wrong(address);
        let turn = state.take(&(address, String::new()));
        if turn.is_none() {
            Duration::ZERO
        } else {
            INTERVAL
        }
    }

    /// Returns how long the answer to a wrong secret that cannot be guessed should wait, before it is known
    /// whether it is wrong.
    #[must_use]
    pub fn delay(&self, address: IpAddr) -> Duration {
        let state = self.state.lock();
        let bucket = state.guessers.get(&(address, String::new()));
        let is_free = bucket.is_none_or(|it| it.full + INTERVAL <= time::now() + INTERVAL * FREE);
        if is_free { Duration::ZERO } else { INTERVAL }
    }
}

impl Attempt {
    /// Counts the attempt: the secret is wrong.
    pub fn wrong(mut self) {
        self.is_wrong = true;
        let mut state = self.brake.state.lock();
        state.note_wrong(self.guesser.0);
        if let Some(bucket) = state.guessers.get_mut(&self.guesser) {
            bucket.wrong.rotate_right(1);
            bucket.wrong[0] = self.shown;
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_wrong {
            let mut state = self.brake.state.lock();
            if let Some(bucket) = state.guessers.get_mut(&self.guesser) {
                bucket.full -= INTERVAL;
                bucket.used = bucket.used.map(|used| used - INTERVAL);
            }
        }
    }
}

impl State {
    /// Takes a guess from the guesser's bucket. If none is free, returns the turn in which one will be, with all
    /// others that wait for it, and how long that takes.
    fn take(&mut self, guesser: &Guesser) -> Option<(Instant, Duration)> {
        let now = time::now();
        if self.guessers.len() >= MAX_GUESSERS && !self.guessers.contains_key(guesser) {
            self.guessers.retain(|_, bucket| bucket.full > now);
            let guessers = self.guessers.iter();
            let least = guessers
                .min_by_key(|(_, bucket)| bucket.full)
                .map(|it| it.0.clone());
            if let Some(least) = least.filter(|_| self.guessers.len() >= MAX_GUESSERS) {
                self.guessers.remove(&least);
            }
        }
        let new = Bucket {
            full: now,
            used: None,
            wrong: [0; FREE as usize],
        };
        let bucket = self.guessers.entry(guesser.clone()).or_insert(new);
        let wait = |full: Instant| full.duration_since(now).saturating_sub(INTERVAL * FREE);
        // Otherwise a turn is open.
        if wait(bucket.full).is_zero() || bucket.used == Some(bucket.full) {
            bucket.full = bucket.full.max(now) + INTERVAL;
        }
        let wait = wait(bucket.full);
        (!wait.is_zero()).then_some((bucket.full, wait))
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

    use futures_util::future::join_all;
    use tokio::time::Instant;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// How many seconds each of these wrong attempts waits; `None` for one that is refused.
    async fn waits(brake: &Arc<Brake>, account: &str, wrong: usize) -> Vec<Option<u64>> {
        let mut waits = Vec::new();
        for _ in 0..wrong {
            let begin = Instant::now();
            let attempt = brake.attempt(HERE, account, entropy()).await;
            waits.push(attempt.ok().map(|attempt| {
                attempt.wrong();
                (begin.elapsed() + INTERVAL / 2).as_secs()
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

    /// Keeps 50 wrong attempts waiting for a minute, and returns how many of them were compared.
    async fn flood(brake: Arc<Brake>) -> usize {
        let guess = || async {
            let mut compared = 0;
            let end = Instant::now() + INTERVAL * 60;
            while Instant::now() < end {
                if let Ok(attempt) = brake.attempt(HERE, "", entropy()).await {
                    attempt.wrong();
                    compared += 1;
                }
            }
            compared
        };
        join_all((0..50).map(|_| guess())).await.into_iter().sum()
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_secret_has_its_turn_in_a_flood_of_wrong_ones() {
        let mut tries = 0;
        for _ in 0..20 {
            let brake: Arc<Brake> = Arc::default();
            let flood = tokio::spawn(flood(Arc::clone(&brake)));
            sleep(INTERVAL * 3 / 2).await;
            let mut begin = Instant::now();
            while brake.attempt(HERE, "", "right").await.is_err() {
                assert!(begin.elapsed() <= INTERVAL + SPREAD);
                (begin, tries) = (Instant::now(), tries + 1);
            }
            let compared = flood.await.unwrap();
            assert!((60..=72).contains(&compared), "{compared}");
        }
        // By chance: 50 of 51 tries fail.
        assert!(tries < 20 * 50 * 3, "{tries}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_secret_waits_a_second_at_most_among_repeated_wrong_ones() {
        let brake: Arc<Brake> = Arc::default();
        let show = |secret: u64| {
            let brake = Arc::clone(&brake);
            async move { brake.attempt(HERE, "", secret).await.map(Attempt::wrong) }
        };
        join_all((0..10).map(|_| show(7))).await;
        for _ in 0..20 {
            let wrong = join_all((0..50).map(|_| show(7)));
            let (_, right) = tokio::join!(wrong, brake.attempt(HERE, "", "right"));
            right.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn right_and_cancelled_attempts_do_not_count() {
        let brake: Arc<Brake> = Arc::default();
        let begin = Instant::now();
        for _ in 0..100 {
            brake.attempt(HERE, "", "right").await.unwrap();
        }
        assert_eq!(begin.elapsed(), Duration::ZERO);
        waits(&brake, "", 10).await;
        for _ in 0..100 {
            let waiting = brake.attempt(HERE, "", "right");
            tokio::pin!(waiting);
            assert!(futures_util::poll!(waiting).is_pending());
        }
        for _ in 0..3 {
            let right = || async { brake.attempt(HERE, "", "right").await.map(drop) };
            let all = join_all((0..50).map(|_| right())).await;
            assert!(
                all.iter().all(Result::is_ok),
                "the turn of one is that of the next"
            );
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
                .attempt(HERE, &account.to_string(), "")
                .await
                .unwrap()
                .wrong();
        }
        assert_eq!(brake.state.lock().guessers.len(), MAX_GUESSERS);
        assert_eq!(waits(&brake, "ann", 1).await, [Some(1)]);
    }
}
