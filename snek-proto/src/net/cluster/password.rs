//! Passwords as they are stored, salted and hashed; [`Passwords`], which checks them.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::pbkdf2::{self, PBKDF2_HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use rpc_core::sync::Mutex;
use rpc_core::{Secret, Str, constant_time_eq};
use tokio::sync::Semaphore;

const NAME: &str = "pbkdf2-sha256";
/// What OWASP recommends: <https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html>.
pub(super) const ROUNDS: u32 = 600_000;
/// A record that asks for more is not believed.
const MAX_ROUNDS: u32 = 2_000_000;
/// The rounds of a proof: it is never stored, and a thousand of them take about a second.
const PROOF_ROUNDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(3_999);
/// The most users who are remembered.
const MAX_VERIFIED: usize = 65_536;

/// What a user who has logged in knows, in relation to the stored hash: another password, or another
/// hash, has another proof.
type Proof = [u8; 32];

/// Hashes and checks passwords, on no more threads than there are processors.
pub(super) struct Passwords {
    rounds: u32,
    threads: Arc<Semaphore>,
    /// The users who have logged in.
    verified: Mutex<HashMap<Str, Verified>>,
}

/// A password that was right: the hash of it and the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    pub(super) hashed: String,
    pub(super) proof: Proof,
}

impl Verified {
    /// Returns the form in which nodes inform each other.
    pub(super) fn encode(&self) -> Vec<u8> {
        [&self.proof, self.hashed.as_bytes()].concat()
    }

    /// Reads an [encoded](Self::encode) one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (proof, hashed) = bytes.split_first_chunk()?;
        let hashed = str::from_utf8(hashed).ok()?.to_owned();
        Some(Self {
            hashed,
            proof: *proof,
        })
    }
}

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    Wrong,
    /// It was right before.
    Known,
    /// It is right; `is_weak` if the hash should be made again.
    Right {
        verified: Verified,
        is_weak: bool,
    },
}

impl Passwords {
    pub(super) fn new(rounds: u32) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            rounds: rounds.clamp(1, MAX_ROUNDS),
            threads: Arc::new(Semaphore::new(threads)),
            verified: Mutex::default(),
        }
    }

    /// Does what takes long elsewhere; `None` if the runtime is going.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.threads).acquire_owned().await.ok()?;
        let work = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        work.await.ok()
    }

    /// Returns the hash to store, and the proof for it; `None` if the system has no randomness. If the store has
    /// lost the record of a user who has logged in, it is the hash that was there.
    pub(super) async fn hash(&self, username: &Str, password: &Secret<Str>) -> Option<Verified> {
        let (rounds, password) = (self.rounds, password.clone());
        let known = self.verified.lock().get(username).cloned();
        let hashed = self.aside(move || {
            let is_same = |known: &Verified| {
                let is_strong = known.hashed.starts_with(&format!("{NAME}${rounds}$"));
                is_strong && constant_time_eq(&known.proof, &prove(&known.hashed, &password))
            };
            if let Some(known) = known.filter(is_same) {
                return Some(known);
            }
            let hashed = hash(rounds, &password)?;
            let proof = prove(&hashed, &password);
            Some(Verified { hashed, proof })
        });
        hashed.await?
    }

    /// Checks a user's password against the stored hash.
    pub(super) async fn check(
        &self,
        username: &Str,
        hashed: &str,
        password: &Secret<Str>,
    ) -> Checked {
        let (hashed, password) = (hashed.to_owned(), password.clone());
        let known = self.verified.lock().get(username).map(|it| it.proof);
        let rounds = self.rounds;
        let checked = self.aside(move || {
            let proof = prove(&hashed, &password);
            if known.is_some_and(|known| constant_time_eq(&known, &proof)) {
                return Checked::Known;
            }
            match verify(&hashed, &password) {
                Some(used) => Checked::Right {
                    verified: Verified { hashed, proof },
                    is_weak: used < rounds,
                },
                None => Checked::Wrong,
            }
        });
        checked.await.unwrap_or(Checked::Wrong)
    }

    /// Remembers that a user has logged in, here or at another node.
    pub(super) fn remember(&self, username: Str, verified: Verified) {
        let mut all = self.verified.lock();
        if all.len() >= MAX_VERIFIED {
            // Everyone is checked once more.
            all.clear();
        }
        all.insert(username, verified);
    }
}

fn prove(hashed: &str, password: &Secret<Str>) -> Proof {
    let mut proof = [0; 32];
    let (salt, password) = (hashed.as_bytes(), password.expose().as_bytes());
    pbkdf2::derive(PBKDF2_HMAC_SHA256, PROOF_ROUNDS, salt, password, &mut proof);
    proof
}

/// Returns `pbkdf2-sha256$ROUNDS$SALT$HASH`; `None` if the system has no randomness.
fn hash(rounds: u32, password: &Secret<Str>) -> Option<String> {
    let mut salt = [0; 16];
    SystemRandom::new().fill(&mut salt).ok()?;
    let mut hash = [0; 32];
    let password = password.expose().as_bytes();
    let count = NonZeroU32::new(rounds)?;
    pbkdf2::derive(PBKDF2_HMAC_SHA256, count, &salt, password, &mut hash);
    let [salt, hash] = [&salt[..], &hash].map(|it| STANDARD_NO_PAD.encode(it));
    Some(format!("{NAME}${rounds}${salt}${hash}"))
}

/// Returns with how many rounds a password was hashed, if it is the hashed one, in a time that does not
/// tell how much of it is right.
fn verify(hashed: &str, password: &Secret<Str>) -> Option<u32> {
    let parts: Vec<&str> = hashed.split('$').collect();
    let [NAME, rounds, salt, hash] = parts[..] else {
        return None;
    };
    let rounds = rounds.parse().ok().filter(|it| *it <= MAX_ROUNDS)?;
    let [salt, hash] = [salt, hash].map(|it| STANDARD_NO_PAD.decode(it).ok());
    let password = password.expose().as_bytes();
    let count = NonZeroU32::new(rounds)?;
    pbkdf2::verify(PBKDF2_HMAC_SHA256, count, &salt?, password, &hash?).ok()?;
    Some(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret<Str> {
        Secret::new(text.into())
    }

    #[test]
    fn only_the_same_password_verifies_and_hashes_are_salted() {
        let hashed = hash(10, &secret("wonderland")).unwrap();
        assert_eq!(verify(&hashed, &secret("wonderland")), Some(10));
        for wrong in ["", "wonderlan", "wonderland ", "Wonderland"] {
            assert_eq!(verify(&hashed, &secret(wrong)), None, "{wrong:?}");
        }
        assert!(!hashed.contains("wonderland"));
        assert_ne!(hash(10, &secret("wonderland")).unwrap(), hashed);
    }

    #[test]
    fn an_invalid_hash_verifies_nothing() {
        for hashed in [
            "",
            "wonderland",
            "pbkdf2-sha256$0$AAAA$AAAA",
            "pbkdf2-sha256$9999999$AAAA$AAAA",
            "pbkdf2-sha256$1$?$AAAA",
            "pbkdf2-sha256$1$AAAA$",
            "md5$1$AAAA$AAAA",
        ] {
            assert_eq!(verify(hashed, &secret("")), None, "{hashed:?}");
        }
    }

    #[tokio::test]
    async fn a_verified_password_is_cached_on_all_nodes_until_it_changes() {
        let (here, there) = (Passwords::new(10), Passwords::new(10));
        let (ann, right) = (Str::from("ann"), secret("wonderland"));
        let verified = here.hash(&ann, &right).await.unwrap();
        let (hashed, is_weak) = (verified.hashed.clone(), false);
        let first = here.check(&ann, &hashed, &right).await;
        let other = Verified::decode(&verified.encode()).unwrap();
        assert_eq!(first, Checked::Right { verified, is_weak });
        there.remember(ann.clone(), other);
        assert_eq!(there.check(&ann, &hashed, &right).await, Checked::Known);
        let wrong = there.check(&ann, &hashed, &secret("other")).await;
        assert_eq!(wrong, Checked::Wrong);
        let other = here.hash(&ann, &secret("other")).await.unwrap().hashed;
        assert_eq!(there.check(&ann, &other, &right).await, Checked::Wrong);
        // The store has lost the record.
        assert_eq!(there.hash(&ann, &right).await.unwrap().hashed, hashed);
        let wrong = there.hash(&ann, &secret("other")).await.unwrap();
        assert_ne!(wrong.hashed, hashed);
        let bob = there.check(&"bob".into(), &hashed, &right).await;
        assert!(matches!(bob, Checked::Right { .. }));
    }

    #[tokio::test]
    async fn a_hash_of_fewer_rounds_verifies_and_is_weak() {
        let hashed = hash(9, &secret("wonderland")).unwrap();
        let (passwords, ann) = (Passwords::new(10), Str::from("ann"));
        let checked = passwords.check(&ann, &hashed, &secret("wonderland")).await;
        assert!(
            matches!(checked, Checked::Right { is_weak: true, .. }),
            "{checked:?}"
        );
    }

    #[test]
    fn remembered_users_are_bounded() {
        let passwords = Passwords::new(1);
        for user in 0..MAX_VERIFIED + 2 {
            let verified = Verified {
                hashed: String::new(),
                proof: [0; 32],
            };
            passwords.remember(user.to_string().into(), verified);
        }
        let last = (MAX_VERIFIED + 1).to_string();
        assert!(passwords.verified.lock().contains_key(last.as_str()));
        assert!(passwords.verified.lock().len() <= MAX_VERIFIED);
    }
}
