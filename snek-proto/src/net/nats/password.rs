//! Passwords as they are stored: salted and hashed.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::pbkdf2::{self, PBKDF2_HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use rpc_core::{Secret, Str};

const NAME: &str = "pbkdf2-sha256";
/// New passwords are hashed so often. A login takes a few milliseconds of one core.
const ITERATIONS: u32 = 10_000;
/// A record that asks for more is not believed.
const MAX_ITERATIONS: u32 = 1_000_000;

/// Returns `pbkdf2-sha256$ITERATIONS$SALT$HASH`; `None` if the system has no randomness.
pub(super) fn hash(password: &Secret<Str>) -> Option<String> {
    let mut salt = [0; 16];
    SystemRandom::new().fill(&mut salt).ok()?;
    let iterations = NonZeroU32::new(ITERATIONS)?;
    let mut hash = [0; 32];
    let password = password.expose().as_bytes();
    pbkdf2::derive(PBKDF2_HMAC_SHA256, iterations, &salt, password, &mut hash);
    let [salt, hash] = [&salt[..], &hash].map(|it| STANDARD_NO_PAD.encode(it));
    Some(format!("{NAME}${ITERATIONS}${salt}${hash}"))
}

/// Returns whether a password is the hashed one, in a time that does not tell how much of it is
/// right.
pub(super) fn verify(hashed: &str, password: &Secret<Str>) -> bool {
    let parts: Vec<&str> = hashed.split('$').collect();
    let [NAME, iterations, salt, hash] = parts[..] else {
        return false;
    };
    let iterations = iterations.parse().ok().filter(|it| *it <= MAX_ITERATIONS);
    let iterations = iterations.and_then(NonZeroU32::new);
    let [salt, hash] = [salt, hash].map(|it| STANDARD_NO_PAD.decode(it).ok());
    let (Some(iterations), Some(salt), Some(hash)) = (iterations, salt, hash) else {
        return false;
    };
    let password = password.expose().as_bytes();
    pbkdf2::verify(PBKDF2_HMAC_SHA256, iterations, &salt, password, &hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret<Str> {
        Secret::new(text.into())
    }

    #[test]
    fn only_the_same_password_fits_and_no_two_hashes_are_the_same() {
        let hashed = hash(&secret("wonderland")).unwrap();
        assert!(verify(&hashed, &secret("wonderland")));
        for wrong in ["", "wonderlan", "wonderland ", "Wonderland"] {
            assert!(!verify(&hashed, &secret(wrong)), "{wrong:?}");
        }
        assert!(!hashed.contains("wonderland"));
        assert_ne!(hash(&secret("wonderland")).unwrap(), hashed);
    }

    #[test]
    fn a_hash_that_is_none_fits_nothing() {
        for hashed in [
            "",
            "wonderland",
            "pbkdf2-sha256$0$AAAA$AAAA",
            "pbkdf2-sha256$9999999$AAAA$AAAA",
            "pbkdf2-sha256$1$?$AAAA",
            "pbkdf2-sha256$1$AAAA$",
            "md5$1$AAAA$AAAA",
        ] {
            assert!(!verify(hashed, &secret("")), "{hashed:?}");
        }
    }
}
