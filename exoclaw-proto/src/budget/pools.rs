//! [`Pool`] and [`Pools`]: tokens used and reserved on one day and in its month, and whether the
//! budgets have room for more.

use std::time::{Duration, SystemTime};

use rpc_core::timestamp;
use serde::{Deserialize, Serialize};

use super::{BudgetScope, Budgets, Exceeded};

pub const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
/// 9999-12-31.
const LAST_DAY: u64 = 2_932_896;

/// Tokens used, and tokens reserved for open runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pool {
    pub used: u64,
    pub reserved: u64,
}

impl Pool {
    pub fn check(
        self,
        scope: BudgetScope,
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

    pub const fn reserve(&mut self, tokens: u64) {
        self.reserved = self.reserved.saturating_add(tokens);
    }

    pub const fn take(&mut self, used: u64, released: u64) {
        self.used = self.used.saturating_add(used);
        self.reserved = self.reserved.saturating_sub(released);
    }
}

/// The tokens of a day and of its month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pools {
    /// The latest day seen, in days since 1970.
    pub day: u64,
    pub daily: Pool,
    pub monthly: Pool,
}

impl Pools {
    /// Begins a new day or month if the day is in one.
    pub fn advance(&mut self, day: u64) {
        if day <= self.day {
            return;
        }
        if month_of(day) != month_of(self.day) {
            self.monthly = Pool::default();
        }
        self.daily = Pool::default();
        self.day = day;
    }

    pub fn check(self, budgets: Budgets, estimate: u64) -> Result<(), Exceeded> {
        self.daily
            .check(BudgetScope::Daily, budgets.daily, estimate)?;
        self.monthly
            .check(BudgetScope::Monthly, budgets.monthly, estimate)
    }

    pub const fn reserve(&mut self, tokens: u64) {
        self.daily.reserve(tokens);
        self.monthly.reserve(tokens);
    }

    /// Counts tokens of a run that was admitted on this day.
    pub fn take(&mut self, day: u64, used: u64, released: u64) {
        if day == self.day {
            self.daily.take(used, released);
        }
        if day == self.day || month_of(day) == month_of(self.day) {
            self.monthly.take(used, released);
        }
    }
}

/// Returns the days since 1970-01-01, at most that of 9999-12-31.
pub fn day_of(unix_seconds: u64) -> u64 {
    (unix_seconds / SECONDS_PER_DAY).min(LAST_DAY)
}

/// Returns the year and the month of a day, such as `2026-11`.
pub fn month_of(day: u64) -> String {
    let since = Duration::from_secs(day.min(LAST_DAY) * SECONDS_PER_DAY);
    let mut date = timestamp::format(SystemTime::UNIX_EPOCH + since);
    date.truncate("2026-11".len());
    date
}
