//! [`Pool`] and [`Pools`]: tokens used and reserved on one day and in its month, and whether the
//! budgets have room for more.

use std::time::{Duration, SystemTime};

use exoclaw_proto::budget::{Budgets, Exceeded, Scope};
use rpc_core::timestamp;
use serde::{Deserialize, Serialize};

pub(super) const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
/// 9999-12-31.
const LAST_DAY: u64 = 2_932_896;

/// Tokens used, and tokens reserved for open runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Pool {
    pub(super) used: u64,
    pub(super) reserved: u64,
}

impl Pool {
    pub(super) const fn of(used: u64) -> Self {
        Self { used, reserved: 0 }
    }

    pub(super) fn check(
        self,
        scope: Scope,
        limit: Option<u64>,
        estimate: u64,
    ) -> Result<(), Exceeded> {
        let wanted = self
            .used
            .saturating_add(self.reserved)
            .saturating_add(estimate);
        match limit {
            Some(limit) if wanted > limit => Err(Exceeded {
                scope,
                used: self.used,
                limit,
            }),
            _ => Ok(()),
        }
    }

    pub(super) const fn reserve(&mut self, tokens: u64) {
        self.reserved = self.reserved.saturating_add(tokens);
    }

    pub(super) const fn take(&mut self, used: u64, released: u64) {
        self.used = self.used.saturating_add(used);
        self.reserved = self.reserved.saturating_sub(released);
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            used: self.used.saturating_add(other.used),
            reserved: self.reserved.saturating_add(other.reserved),
        }
    }
}

/// The tokens of a day and of its month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Pools {
    /// The latest day seen, in days since 1970.
    pub(super) day: u64,
    pub(super) daily: Pool,
    pub(super) monthly: Pool,
}

impl Pools {
    /// Begins a new day or month if the day is in one.
    pub(super) fn advance(&mut self, day: u64) {
        if day <= self.day {
            return;
        }
        if month_of(day) != month_of(self.day) {
            self.monthly = Pool::default();
        }
        self.daily = Pool::default();
        self.day = day;
    }

    pub(super) fn check(self, budgets: Budgets, estimate: u64) -> Result<(), Exceeded> {
        self.daily.check(Scope::Daily, budgets.daily, estimate)?;
        self.monthly
            .check(Scope::Monthly, budgets.monthly, estimate)
    }

    pub(super) const fn reserve(&mut self, tokens: u64) {
        self.daily.reserve(tokens);
        self.monthly.reserve(tokens);
    }

    /// Counts tokens of a run that was admitted on this day.
    pub(super) fn take(&mut self, day: u64, used: u64, released: u64) {
        if day == self.day {
            self.daily.take(used, released);
        }
        if day == self.day || month_of(day) == month_of(self.day) {
            self.monthly.take(used, released);
        }
    }

    /// Adds up both on the later of their days.
    pub(super) fn plus(mut self, mut other: Self) -> Self {
        self.advance(other.day);
        other.advance(self.day);
        Self {
            day: self.day,
            daily: self.daily.plus(other.daily),
            monthly: self.monthly.plus(other.monthly),
        }
    }

    /// Takes off what another has used.
    pub(super) fn minus_used(&mut self, mut other: Self) {
        self.advance(other.day);
        other.advance(self.day);
        self.daily.used = self.daily.used.saturating_sub(other.daily.used);
        self.monthly.used = self.monthly.used.saturating_sub(other.monthly.used);
    }

    /// Returns it without reservations.
    pub(super) const fn released(self) -> Self {
        Self {
            day: self.day,
            daily: Pool::of(self.daily.used),
            monthly: Pool::of(self.monthly.used),
        }
    }

    /// Returns whether nothing is used or reserved in this day's month.
    pub(super) fn is_empty_on(mut self, day: u64) -> bool {
        self.advance(day);
        self.daily == Pool::default() && self.monthly == Pool::default()
    }
}

/// Returns the days since 1970-01-01, at most that of 9999-12-31.
pub(super) fn day_of(unix_seconds: u64) -> u64 {
    (unix_seconds / SECONDS_PER_DAY).min(LAST_DAY)
}

/// Returns the year and the month of a day, such as `2026-11`.
pub(super) fn month_of(day: u64) -> String {
    let since = Duration::from_secs(day.min(LAST_DAY) * SECONDS_PER_DAY);
    let mut date = timestamp::format(SystemTime::UNIX_EPOCH + since);
    date.truncate("2026-11".len());
    date
}
