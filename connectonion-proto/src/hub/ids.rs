//! [`Ids`]: numbers for events and inputs.

/// Makes numbers that look random and are never the same twice. They are no secret.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    seed: u128,
    next: u64,
}

impl Ids {
    pub(super) const fn new(seed: u128) -> Self {
        Self { seed, next: 0 }
    }

    #[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
    pub(super) const fn next(&mut self) -> u128 {
        self.next = self.next.wrapping_add(1);
        // Each half is a bijection of the counter, so no two are the same.
        let low = mix(self.next ^ self.seed as u64);
        let high = mix(low ^ (self.seed >> 64) as u64);
        (high as u128) << 64 | low as u128
    }
}

/// The finisher of `SplitMix64`.
const fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
