//! [`Date`]: days and months of the civil calendar, in UTC.

use std::fmt;
use std::time::{Duration, SystemTime};

use rpc_core::timestamp;

pub(super) const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
/// 9999-12-31.
const LAST_DAY: u64 = 2_932_896;

/// A day of the Gregorian calendar, from 1970-01-01 to 9999-12-31.
///
/// ```
/// use exoclaw_proto::budget::Date;
///
/// assert_eq!(Date::from_day(11_016).to_string(), "2000-02-29");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date(u64);

impl Date {
    /// Returns the day this many days after 1970-01-01, at most 9999-12-31.
    #[must_use]
    pub fn from_day(day: u64) -> Self {
        Self(day.min(LAST_DAY))
    }

    /// Returns whether both days are in one month of one year.
    #[must_use]
    pub fn same_month(self, other: Self) -> bool {
        let month = |date: Self| date.text().get(..7).map(str::to_owned);
        month(self) == month(other)
    }

    fn text(self) -> String {
        let start = Duration::from_secs(self.0 * SECONDS_PER_DAY);
        timestamp::format(SystemTime::UNIX_EPOCH + start)
    }
}

/// Prints the date like `2026-11-22`.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().get(..10).unwrap_or_default())
    }
}

/// Returns the days since 1970-01-01, at most that of 9999-12-31.
pub(super) fn day_of(unix_seconds: u64) -> u64 {
    (unix_seconds / SECONDS_PER_DAY).min(LAST_DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_utc() {
        for (seconds, text) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (86_400, "1970-01-02"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (4_107_542_399, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
            (1_798_761_599, "2026-12-31"),
            (1_798_761_600, "2027-01-01"),
            (253_402_300_799, "9999-12-31"),
            (253_402_300_800, "9999-12-31"),
            (u64::MAX, "9999-12-31"),
        ] {
            assert_eq!(
                Date::from_day(day_of(seconds)).to_string(),
                text,
                "{seconds}"
            );
        }
        assert_eq!(day_of(u64::MAX), LAST_DAY);
    }

    #[test]
    fn the_same_month_of_another_year_is_another_month() {
        let [one, same, other] = [0, 30, 365].map(Date::from_day);
        assert!(one.same_month(same) && !one.same_month(other));
        assert_eq!(other.to_string(), "1971-01-01");
    }
}
