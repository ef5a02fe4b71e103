//! Timestamps in JavaScript's format: UTC, milliseconds, `Z`.

use std::time::{Duration, SystemTime};

/// 9999-12-31T23:59:59.999Z.
const LAST: Duration = Duration::from_millis(253_402_300_799_999);

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
    humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + since).to_string()
}

/// Parses a timestamp: RFC 3339 in UTC, from 1970 on. `None` for anything else, which may still be
/// readable for people. A leap second counts as the one before it.
#[must_use]
pub fn parse(text: &str) -> Option<SystemTime> {
    let zones = ["Z", "z", "+00:00", "-00:00"];
    let time = zones.iter().find_map(|zone| text.strip_suffix(zone))?;
    if time.ends_with('.') || time.contains('+') {
        return None;
    }
    humantime::parse_rfc3339(&(time.replace('t', "T") + "Z")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

    #[test]
    fn timestamps_have_exactly_three_decimals() {
        let at = |nanos| format(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_999_999), "1970-01-01T00:00:00.001Z");
        assert_eq!(at(951_782_400_123_000_000), "2000-02-29T00:00:00.123Z");
    }

    #[test]
    fn times_beyond_the_calendar_are_clamped() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(format(before), "1970-01-01T00:00:00.000Z");
        let far = SystemTime::UNIX_EPOCH + LAST * 2;
        assert_eq!(format(far), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn written_timestamps_round_trip() {
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
    fn every_day_of_the_calendar_round_trips() {
        let mut before = String::new();
        for day in 0..=LAST.as_secs() / SECONDS_PER_DAY {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(day * SECONDS_PER_DAY);
            let written = format(time);
            assert!(before < written, "{before}, {written}");
            assert_eq!(parse(&written), Some(time));
            before = written;
        }
        assert_eq!(before, "9999-12-31T00:00:00.000Z");
    }

    #[test]
    fn invalid_timestamps_are_refused() {
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
            "2024-01-15T10:30:00.1+00:0Z",
            "2024-01-15 10:30:00Z",
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
