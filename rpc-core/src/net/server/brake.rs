//! [`Brake`]: slows down peers that guess passwords, keys and tokens.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{sleep_until, timeout};

use crate::Instant;
use crate::net::time;
use crate::sync::Mutex;

/// The delay after the first one that is not free. It doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(16);
/// How long an attempt waits for its turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long after the last one wrong guesses are remembered.
const MEMORY: Duration = Duration::from_secs(600);
/// The most guessers that are remembered. Those with the most wrong guesses stay.
const MAX_GUESSERS: usize = 4_096;

/// Delays attempts to log in after wrong ones: the first few cost nothing, each further one doubles
/// the wait for the next, from 1 s to 16 s. After a right one all are forgotten. The key says who is
/// one guesser: for a password the address and the account, so that a stranger's guesses do not lock
/// the owner out; for a token the [address](caller).
///
/// Attempts of one guesser take turns. Wrong guesses are forgotten after ten minutes.
#[derive(Debug)]
pub struct Brake<K> {
    free: u32,
    guessers: Mutex<HashMap<K, Guesser>>,
}

#[derive(Debug)]
struct Guesser {
    wrong: u32,
    /// When the next attempt may be made.
    next: Instant,
    order: Arc<tokio::sync::Mutex<()>>,
}

/// There were too many wrong attempts: try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many wrong attempts: try again later")]
pub struct TooManyAttempts;

impl<K: Eq + Hash + Clone> Brake<K> {
    /// Returns a brake under which this many wrong attempts of a guesser are not followed by a delay.
    /// Where people share a key, such as an address, let it be more than each of them needs.
    #[must_use]
    pub fn new(free: u32) -> Self {
        let guessers = Mutex::default();
        Self { free, guessers }
    }

    /// Waits until an attempt may be made. Say then whether it was [right](Self::right) or
    /// [wrong](Self::wrong). The next attempt of this guesser waits until the result is dropped.
    ///
    /// # Errors
    /// [`TooManyAttempts`] if that is not within 30 s.
    ///
    /// # Cancel safety
    /// Cancel-safe: the turn goes to the next attempt.
    pub async fn turn(&self, key: &K) -> Result<OwnedMutexGuard<()>, TooManyAttempts> {
        let order = with_guesser(&mut self.guessers.lock(), key, |it| Arc::clone(&it.order));
        let turn = async {
            let turn = order.lock_owned().await;
            let next = with_guesser(&mut self.guessers.lock(), key, |it| it.next);
            sleep_until(next.into()).await;
            with_guesser(&mut self.guessers.lock(), key, |it| {
                it.delay_next(self.free);
            });
            turn
        };
        timeout(PATIENCE, turn).await.map_err(|_| TooManyAttempts)
    }

    /// Notes a wrong attempt.
    pub fn wrong(&self, key: &K) {
        with_guesser(&mut self.guessers.lock(), key, |it| {
            it.wrong = it.wrong.saturating_add(1);
            it.delay_next(self.free);
        });
    }

    /// Notes a right attempt.
    pub fn right(&self, key: &K) {
        self.guessers.lock().remove(key);
    }
}

fn with_guesser<K: Eq + Hash + Clone, R>(
    table: &mut HashMap<K, Guesser>,
    key: &K,
    work: impl FnOnce(&mut Guesser) -> R,
) -> R {
    let now = time::now();
    if table.len() >= MAX_GUESSERS && !table.contains_key(key) {
        let least = table.iter().min_by_key(|(_, it)| (it.wrong, it.next));
        if let Some(least) = least.map(|(key, _)| key.clone()) {
            table.remove(&least);
        }
    }
    let guesser = table.entry(key.clone()).or_insert_with(|| Guesser {
        wrong: 0,
        next: now,
        order: Arc::default(),
    });
    if now.saturating_duration_since(guesser.next) > MEMORY {
        guesser.wrong = 0;
    }
    work(guesser)
}

impl Guesser {
    fn delay_next(&mut self, free: u32) {
        let doubled = self.wrong.checked_sub(free.saturating_add(1));
        let delay = doubled.map_or(Duration::ZERO, |at| FIRST_DELAY * (1 << at.min(8)));
        self.next = time::now() + delay.min(MAX_DELAY);
    }
}

/// Returns the address of a peer, for a [`Brake`]: of IPv6 the network of 64 bits, which one
/// guesser has as a whole; behind a proxy on this machine the last one in `X-Forwarded-For`, which a
/// proxy must set.
#[must_use]
pub fn caller(peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
    let peer = peer.ip().to_canonical();
    let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
    let forwarded = forwarded.filter(|_| peer.is_loopback());
    let last = forwarded.and_then(|list| list.to_str().ok()?.rsplit(',').next());
    match last
        .and_then(|last| last.trim().parse().ok())
        .unwrap_or(peer)
    {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// How long each of these attempts waits, in seconds.
    async fn waits(brake: &Brake<&str>, key: &'static str, wrong: usize) -> Vec<u64> {
        let mut waits = Vec::new();
        for _ in 0..wrong {
            let begin = Instant::now();
            let _turn = brake.turn(&key).await.unwrap();
            waits.push(begin.elapsed().as_secs());
            brake.wrong(&key);
        }
        waits
    }

    #[tokio::test(start_paused = true)]
    async fn failed_attempts_are_delayed_per_address() {
        let brake = Brake::new(3);
        let expected = [0, 0, 0, 0, 1, 2, 4, 8, 16, 16];
        assert_eq!(waits(&brake, "guesser", 10).await, expected);
        assert_eq!(waits(&brake, "owner", 3).await, [0, 0, 0]);
        brake.right(&"guesser");
        assert_eq!(waits(&brake, "guesser", 5).await, [0, 0, 0, 0, 1]);
        tokio::time::advance(MEMORY + MAX_DELAY + Duration::from_secs(1)).await;
        assert_eq!(waits(&brake, "guesser", 1).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_attempts_queue_or_are_refused() {
        let brake = Arc::new(Brake::new(3));
        waits(&brake, "guesser", 9).await;
        let attempts = (0..50).map(|_| {
            let brake = Arc::clone(&brake);
            tokio::spawn(async move { brake.turn(&"guesser").await.map(drop) })
        });
        let mut made = 0;
        for attempt in attempts.collect::<Vec<_>>() {
            made += usize::from(attempt.await.unwrap().is_ok());
        }
        assert_eq!(made, 1);
        assert_eq!(waits(&brake, "owner", 1).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_addresses_does_not_evict_the_worst() {
        let brake = Brake::new(3);
        for _ in 0..9 {
            brake.wrong(&0);
        }
        for key in 1..2 * MAX_GUESSERS {
            brake.wrong(&key);
        }
        assert_eq!(brake.guessers.lock().len(), MAX_GUESSERS);
        assert!(brake.guessers.lock().contains_key(&0));
    }

    #[test]
    fn forwarded_addresses_are_trusted_from_loopback_only() {
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "192.0.2.9, 192.0.2.1".parse().unwrap());
        for (peer, expected) in [
            ("127.0.0.1:1", "192.0.2.1"),
            ("[::ffff:127.0.0.1]:1", "192.0.2.1"),
            ("192.0.2.7:1", "192.0.2.7"),
            ("[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2::"),
        ] {
            let caller = caller(peer.parse().unwrap(), &headers);
            assert_eq!(caller.to_string(), expected, "{peer}");
        }
        let caller = caller("127.0.0.1:1".parse().unwrap(), &HeaderMap::new());
        assert_eq!(caller.to_string(), "127.0.0.1");
    }
}
