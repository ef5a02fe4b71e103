//! [`uuid`] and [`UniqueBits`]: ids that a server creates.

use super::hex::{digits, text};

/// Returns a UUID of version 4 (RFC 9562, section 5.4) from 128 random bits.
///
/// ```
/// assert_eq!(rpc_core::uuid(0), "00000000-0000-4000-8000-000000000000");
/// ```
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
pub fn uuid(random: u128) -> String {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let bits = (random & !VERSION & !VARIANT) | (4 << 76) | (0b10 << 62);
    let (high, low) = (digits((bits >> 64) as u64), digits(bits as u64));
    let (high, low) = (text(&high), text(&low));
    let parts = [
        high.get(..8),
        high.get(8..12),
        high.get(12..),
        low.get(..4),
        low.get(4..),
    ];
    parts.map(Option::unwrap_or_default).join("-")
}

/// A generator of ids that look random and never repeat. They are not secret: the others can be
/// computed from any one of them.
#[derive(Clone, Copy, Debug)]
pub struct UniqueBits {
    seed: u128,
    next: u64,
}

impl UniqueBits {
    /// Creates a generator from a seed, which should be random: equal seeds give equal numbers.
    #[must_use]
    pub const fn new(seed: u128) -> Self {
        Self { seed, next: 0 }
    }

    /// Returns the next number.
    #[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
    pub const fn next_bits(&mut self) -> u128 {
        self.next = self.next.wrapping_add(1);
        // Each half is a bijection of the counter, so no two are the same.
        let low = mixed(self.next ^ self.seed as u64);
        let high = mixed(!self.next ^ (self.seed >> 64) as u64);
        (high as u128) << 64 | low as u128
    }
}

/// One step of `SplitMix64`.
const fn mixed(state: u64) -> u64 {
    finish(state.wrapping_add(STEP))
}

/// The increment of `SplitMix64`.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of `SplitMix64`.
pub(crate) const fn finish(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_uuid_has_its_version_and_variant_for_any_bits() {
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(
            uuid(0x550e_8400_e29b_31d4_2716_4466_5544_0000),
            "550e8400-e29b-41d4-a716-446655440000"
        );
    }

    #[test]
    fn ids_never_repeat_and_depend_on_the_seed() {
        let mut seen = HashSet::new();
        for seed in [0, 1, u128::MAX] {
            let mut bits = UniqueBits::new(seed);
            assert!((0..10_000).all(|_| seen.insert(bits.next_bits())), "{seed}");
        }
    }
}
