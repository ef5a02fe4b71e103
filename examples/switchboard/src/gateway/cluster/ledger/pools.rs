//! [`Merge`]: the pools of several nodes as one.

use exoclaw_proto::budget::pools::{Pool, Pools};

pub(super) const fn used(used: u64) -> Pool {
    Pool { used, reserved: 0 }
}

const fn plus(one: Pool, other: Pool) -> Pool {
    Pool {
        used: one.used.saturating_add(other.used),
        reserved: one.reserved.saturating_add(other.reserved),
    }
}

/// What nodes do with the tokens of a day and of its month.
pub(super) trait Merge: Sized {
    /// Adds up both on the later of their days.
    fn plus(self, other: Self) -> Self;

    /// Takes off what another has used.
    fn minus_used(&mut self, other: Self);

    /// Returns it without reservations.
    fn released(self) -> Self;

    /// Returns whether nothing is used or reserved in this day's month.
    fn is_empty_on(&self, day: u64) -> bool;
}

impl Merge for Pools {
    fn plus(mut self, mut other: Self) -> Self {
        self.advance(other.day);
        other.advance(self.day);
        Self {
            day: self.day,
            daily: plus(self.daily, other.daily),
            monthly: plus(self.monthly, other.monthly),
        }
    }

    fn minus_used(&mut self, mut other: Self) {
        self.advance(other.day);
        other.advance(self.day);
        self.daily.used = self.daily.used.saturating_sub(other.daily.used);
        self.monthly.used = self.monthly.used.saturating_sub(other.monthly.used);
    }

    fn released(self) -> Self {
        Self {
            day: self.day,
            daily: used(self.daily.used),
            monthly: used(self.monthly.used),
        }
    }

    fn is_empty_on(&self, day: u64) -> bool {
        let mut then = *self;
        then.advance(day);
        then.daily == Pool::default() && then.monthly == Pool::default()
    }
}
