//! [`Secret`]: a value that never appears in `Debug` output or logs.

use std::fmt;

/// A password, token or key. `Debug` prints `Secret(..)`; there is no `Display` and no
/// serialisation. Read it with [`expose`](Self::expose) where it is sent.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret<T = String>(T);

impl<T> Secret<T> {
    /// Wraps a secret.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the secret itself. Check every use of it in review.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Unwraps the secret.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl From<&str> for Secret<String> {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl From<String> for Secret<String> {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Compares a secret with what a peer offers for it. Compares each byte that is offered, whatever the secret
/// is: the time tells the peer neither a prefix of the secret nor its length.
#[must_use]
pub fn constant_time_eq(secret: &[u8], offered: &[u8]) -> bool {
    let mut difference = u8::from(secret.len() != offered.len());
    for (x, y) in secret.iter().chain(std::iter::repeat(&0)).zip(offered) {
        difference |= x ^ y;
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_nothing_of_the_secret() {
        assert_eq!(format!("{:?}", Secret::from("hunter2")), "Secret(..)");
    }

    #[test]
    fn constant_time_eq_agrees_with_eq() {
        for (a, b) in [
            ("", ""),
            ("a", "a"),
            ("a", "b"),
            ("ab", "a"),
            ("token", "tokeN"),
        ] {
            assert_eq!(
                constant_time_eq(a.as_bytes(), b.as_bytes()),
                a == b,
                "{a} {b}"
            );
        }
    }
}
