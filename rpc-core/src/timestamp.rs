//! Timestamps as JavaScript writes them: UTC, milliseconds, `Z`.

use std::time::{Duration, SystemTime};

/// 9999-12-31T23:59:59.999Z.
const LAST: Duration = Duration::from_millis(253_402_300_799_999);

/// A time as JavaScript's `toISOString` writes it, such as `2024-01-15T10:30:00.000Z`. Times outside
/// of the years 1970 to 9999 end as the first or the last of them.
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

/// Reads a timestamp: RFC 3339 in UTC. `None` for anything else; the text then
/// still tells people something.
#[must_use]
pub fn parse(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
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
        assert_eq!(
            parse("2024-01-15T10:30:00Z").map(format).as_deref(),
            Some("2024-01-15T10:30:00.000Z")
        );
        assert_eq!(parse("yesterday"), None);
    }
}
