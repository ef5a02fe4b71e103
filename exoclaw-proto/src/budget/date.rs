//! [`Date`]: days and months of the civil calendar, in UTC.

use std::fmt;

pub(super) const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
/// 9999-12-31.
const LAST_DAY: u64 = 2_932_896;
const DAYS_PER_400_YEARS: u64 = 146_097;

/// A day of the Gregorian calendar, from 1970-01-01 to 9999-12-31.
///
/// ```
/// use exoclaw_proto::budget::Date;
///
/// assert_eq!(Date::from_day(11_016).to_string(), "2000-02-29");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// Returns the day this many days after 1970-01-01, at most 9999-12-31.
    #[must_use]
    pub fn from_day(day: u64) -> Self {
        // Days since 0000-03-01: with the leap day at its end, a year is easy to count in.
        let days = day.min(LAST_DAY) + 719_468;
        let era = days / DAYS_PER_400_YEARS;
        let day_of_era = days % DAYS_PER_400_YEARS;
        // Leap days are taken out: one every 4 years, none every 100, one every 400.
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Five months from March on have 153 days, and so do the next five.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let (month, next_year) = if month_from_march < 10 {
            (month_from_march + 3, 0)
        } else {
            (month_from_march - 9, 1)
        };
        Self {
            year: u16::try_from(400 * era + year_of_era + next_year).unwrap_or(u16::MAX),
            month: u8::try_from(month).unwrap_or(u8::MAX),
            day: u8::try_from(day).unwrap_or(u8::MAX),
        }
    }

    /// Returns the year, from 1970 to 9999.
    #[must_use]
    pub const fn year(self) -> u16 {
        self.year
    }

    /// Returns the month, from 1 to 12.
    #[must_use]
    pub const fn month(self) -> u8 {
        self.month
    }

    /// Returns the day of the month, from 1 to 31.
    #[must_use]
    pub const fn day(self) -> u8 {
        self.day
    }

    /// Returns whether both days are in one month of one year.
    #[must_use]
    pub const fn same_month(self, other: Self) -> bool {
        self.year == other.year && self.month == other.month
    }
}

/// Prints the date like `2026-11-22`.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Returns the days since 1970-01-01, at most that of 9999-12-31.
pub(super) fn day_of(unix_seconds: u64) -> u64 {
    (unix_seconds / SECONDS_PER_DAY).min(LAST_DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_leap(year: u16) -> bool {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    }

    #[test]
    fn every_day_of_the_calendar_is_the_day_after_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 0..=LAST_DAY {
            assert_eq!(Date::from_day(number), Date { year, month, day });
            let length = match month {
                2 if is_leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, last) if last == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }

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
        assert_eq!((other.year(), other.month(), other.day()), (1971, 1, 1));
    }
}
