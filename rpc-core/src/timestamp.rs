//! Timestamps in JavaScript's format: UTC, milliseconds, `Z`.

use std::time::{Duration, SystemTime};

/// 9999-12-31T23:59:59.999Z.
const LAST: Duration = Duration::from_millis(253_402_300_799_999);
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
const DAYS_PER_400_YEARS: u64 = 146_097;
/// From 0000-03-01 to 1970-01-01. Years that begin in March have their leap day at the end.
const EPOCH: u64 = 719_468;

/// Formats a time like JavaScript's `toISOString`, such as `2024-01-15T10:30:00.000Z`. Times
/// outside of the years 1970 to 9999 become the first or the last of them.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_705_314_600_000);
/// assert_eq!(rpc_core::timestamp::format(time), "2024-01-15T10:30:00.000Z");
/// ```
#[must_use]
pub fn format(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default().min(LAST);
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (year, month, day) = date(seconds / SECONDS_PER_DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let mut text = String::with_capacity("1970-01-01T00:00:00.000Z".len());
    let parts = [
        (year, 1_000, '-'),
        (month, 10, '-'),
        (day, 10, 'T'),
        (hour, 10, ':'),
        (minute, 10, ':'),
        (second, 10, '.'),
        (u64::from(millis), 100, 'Z'),
    ];
    for (number, highest, end) in parts {
        push_digits(&mut text, number, highest);
        text.push(end);
    }
    text
}

/// Appends a number with as many digits as the value of its highest one has.
fn push_digits(text: &mut String, number: u64, mut value: u64) {
    while value > 0 {
        let digit = (number / value % 10) as u8;
        text.push(char::from(b'0' + digit));
        value /= 10;
    }
}

/// Parses a timestamp: RFC 3339 in UTC, from 1970 on. `None` for anything else, which may still be
/// readable for people.
#[must_use]
pub fn parse(text: &str) -> Option<SystemTime> {
    let (date_text, time) = text.split_once(['T', 't'])?;
    let time = ["Z", "z", "+00:00", "-00:00"]
        .iter()
        .find_map(|zone| time.strip_suffix(zone))?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date_text, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let days = days(year, month, day)?;
    // A leap second counts as the one before it.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second.min(59);
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos(fraction)?))
}

/// Parses three numbers with these numbers of digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *number = whole(part)?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Parses the digits after the point as nanoseconds. Finer digits are cut off.
fn nanos(fraction: &str) -> Option<u32> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    digits.into_iter().try_fold(0_u32, |nanos, digit| {
        let digit = char::from(digit).to_digit(10)?;
        Some(nanos * 10 + digit)
    })
}

/// Parses a number of digits only: no sign.
fn whole(digits: &str) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// Returns year, month and day of the Gregorian calendar, this many days after 1970-01-01.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH;
    let day_of_era = days % DAYS_PER_400_YEARS;
    // Without the leap days: one every 4 years, none every 100, one every 400.
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (year_of_era * 365 + year_of_era / 4 - year_of_era / 100);
    // Months from March on; five of them have 153 days.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = days / DAYS_PER_400_YEARS * 400 + year_of_era;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}

/// Returns the days from 1970-01-01 to a date; `None` before it, and for an invalid date.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let march_year = if month > 2 {
        year
    } else {
        year.checked_sub(1)?
    };
    let year_of_era = march_year % 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (march_year / 400 * DAYS_PER_400_YEARS + day_of_era).checked_sub(EPOCH)?;
    // February 30 comes out as a day of March.
    (date(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_written_and_the_rest_is_cut_off() {
        let at = |nanos| format(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_999_999), "1970-01-01T00:00:00.001Z");
        assert_eq!(at(951_782_400_123_000_000), "2000-02-29T00:00:00.123Z");
    }

    #[test]
    fn times_beyond_the_calendar_end_at_its_edge() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(format(before), "1970-01-01T00:00:00.000Z");
        let far = SystemTime::UNIX_EPOCH + LAST * 2;
        assert_eq!(format(far), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_705_314_600_789);
        assert_eq!(parse(&format(time)), Some(time));
        for text in [
            "2024-01-15T10:30:00Z",
            "2024-01-15t10:30:00.0z",
            "2024-01-15T10:30:00.000000000000000000000001+00:00",
        ] {
            let read = parse(text).map(format);
            assert_eq!(read.as_deref(), Some("2024-01-15T10:30:00.000Z"), "{text}");
        }
    }

    #[test]
    fn every_day_of_the_calendar_follows_the_one_before() {
        let mut before = (1969, 12, 31);
        for day in 0..=LAST.as_secs() / SECONDS_PER_DAY {
            let (year, month, in_month) = date(day);
            let is_next = match (month, in_month) {
                (1, 1) => (before.0 + 1, 12, 31) == (year, before.1, before.2),
                (_, 1) => (before.0, before.1 + 1) == (year, month) && before.2 >= 28,
                _ => (before.0, before.1, before.2 + 1) == (year, month, in_month),
            };
            assert!(is_next, "{before:?}, {:?}", (year, month, in_month));
            assert_eq!(days(year, month, in_month), Some(day));
            before = (year, month, in_month);
        }
        assert_eq!(before, (9999, 12, 31));
    }

    #[test]
    fn anything_else_is_no_timestamp() {
        for text in [
            "yesterday",
            "",
            "2024-01-15",
            "2024-01-15T10:30:00",
            "2024-01-15T10:30:00+01:00",
            "2024-02-30T10:30:00Z",
            "2023-02-29T10:30:00Z",
            "2024-13-01T10:30:00Z",
            "2024-00-01T10:30:00Z",
            "2024-01-00T10:30:00Z",
            "2024-01-15T24:00:00Z",
            "2024-01-15T10:60:00Z",
            "2024-01-15T10:30:00.Z",
            "2024-01-15T10:30:00.+1Z",
            "2024-01-15T+1:30:00Z",
            "0000-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "12024-01-15T10:30:00Z",
            "2024-01-15T10:30:00.é00000000000000000Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
