//! How long a provider asks to wait, wherever it says so: in a header, a member or a sentence.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use regex::Regex;
use reqwest::header::{DATE, HeaderMap};

use rpc_core::timestamp;

use crate::model::refusal::finds;

type Pattern = LazyLock<Option<Regex>>;

/// A number with its unit.
static PART: Pattern = LazyLock::new(|| Regex::new(r"([0-9]+(?:\.[0-9]+)?) ?([a-zA-Z]+)").ok());
/// A time after a word for it.
static SAID: Pattern = LazyLock::new(|| {
    let time = r"(?:[0-9]+(?:\.[0-9]+)? ?[a-z]+[ ,]*(?:and )?)+";
    Regex::new(&format!(
        r"(?i)\b(?:again|retry|wait|resets?|available)\b[^0-9]{{0,20}}?({time})"
    ))
    .ok()
});

/// Returns the wait that a header or a member of this name asks for.
pub(in crate::model) fn named(name: &str, value: &str, now: SystemTime) -> Option<Duration> {
    let mut name = name.to_ascii_lowercase();
    name.retain(|c| c.is_ascii_alphanumeric());
    if !finds("retry(?:after|delay|in)|reset|wait|estimatedtime", &name) {
        return None;
    }
    let value = value.trim();
    let until = |time: SystemTime| Some(time.duration_since(now).unwrap_or_default());
    let seconds = |seconds| Duration::try_from_secs_f64(seconds).ok();
    let since_1970 = |time| until(SystemTime::UNIX_EPOCH.checked_add(seconds(time)?)?);
    match value.parse::<f64>() {
        Ok(number) if number > 1e11 => since_1970(number / 1e3),
        Ok(number) if number > 1e9 => since_1970(number),
        Ok(number) if name.ends_with("ms") => seconds(number / 1e3),
        Ok(number) => seconds(number),
        Err(_) => httpdate::parse_http_date(value)
            .ok()
            .or_else(|| timestamp::parse(value))
            .map_or_else(|| time(value), until),
    }
}

/// Returns the wait that a sentence asks for.
pub(in crate::model) fn in_text(text: &str) -> Option<Duration> {
    SAID.as_ref()?
        .captures_iter(text)
        .find_map(|it| time(&it[1]))
}

/// Returns the wait in these headers; those of a limit that is not reached do not count.
pub(super) fn in_headers(headers: &HeaderMap, of_limits: bool) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    // By the provider's clock, which may go wrong together with the date.
    let now = text(DATE.as_str()).and_then(|date| httpdate::parse_http_date(date).ok());
    let now = now.unwrap_or_else(SystemTime::now);
    let waits = headers.iter().filter(|(name, _)| {
        let left = name.as_str().replace("reset", "remaining");
        let is_reached = || text(&left).and_then(|left| left.trim().parse().ok()) <= Some(0.0);
        name.as_str().contains("reset") == of_limits && (!of_limits || is_reached())
    });
    waits
        .filter_map(|(name, value)| named(name.as_str(), value.to_str().ok()?, now))
        .max()
}

/// Reads a time such as `6m0s`, `6.1 seconds` or `1 h 2 min`.
fn time(text: &str) -> Option<Duration> {
    let mut parts = PART.as_ref()?.captures_iter(text).peekable();
    parts.peek()?;
    parts
        .map(|part| {
            let unit = match part[2].to_ascii_lowercase().as_str() {
                "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => 1e-3,
                "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
                "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
                "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
                "d" | "day" | "days" => 86400.0,
                _ => return None,
            };
            Duration::try_from_secs_f64(part[1].parse::<f64>().ok()? * unit).ok()
        })
        .try_fold(Duration::ZERO, |sum, part| sum.checked_add(part?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn a_wait_is_read_in_any_unit() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for (name, value, wait) in [
            ("retry-after", "7", millis(7_000)),
            ("Retry-After", " 6.1 ", millis(6_100)),
            ("retry-after", "6.1s", millis(6_100)),
            ("retry-after-ms", "6100", millis(6_100)),
            ("x-retry-after", "1 minute", millis(60_000)),
            ("x-ratelimit-reset-tokens", "6m0s", millis(360_000)),
            ("x-ratelimit-reset-requests", "120ms", millis(120)),
            ("x-ratelimit-reset", "1700000009", millis(9_000)),
            ("X-RateLimit-Reset", "1700000009500", millis(9_500)),
            (
                "anthropic-ratelimit-requests-reset",
                "2023-11-14T22:13:26Z",
                millis(6_000),
            ),
            (
                "retry-after",
                "Tue, 14 Nov 2023 22:13:50 GMT",
                millis(30_000),
            ),
            // Long ago.
            ("retry-after", "Sunday, 06-Nov-94 08:50:07 GMT", millis(0)),
            ("retry-after", "Sun Nov  6 08:50:07 1994", millis(0)),
            ("retryDelay", "6.1s", millis(6_100)),
            ("retry_after_ms", "250", millis(250)),
            ("retryAfterSeconds", "20", millis(20_000)),
            ("estimated_time", "4.5", millis(4_500)),
            ("wait_time", "4", millis(4_000)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "", None),
            ("retry-after", "1e400", None),
            ("x-should-retry", "1", None),
        ] {
            assert_eq!(named(name, value, now), wait, "{name}: {value}");
        }
    }

    #[test]
    fn a_wait_is_found_in_a_sentence() {
        for (text, wait) in [
            (
                "Limit 30, Used 30. Please try again in 6.1s. Visit https://h",
                millis(6_100),
            ),
            ("Please try again in 7m12s.", millis(432_000)),
            ("Please retry after 20 seconds.", millis(20_000)),
            (
                "Please retry in 36.1997s.",
                Some(Duration::from_micros(36_199_700)),
            ),
            (
                "Wait 1 minute and 5 seconds before the next",
                millis(65_000),
            ),
            ("try again in 120ms", millis(120)),
            ("the limit resets in 1 h 2 min", millis(3_720_000)),
            (
                "Request was throttled. Expected available in 4 seconds.",
                millis(4_000),
            ),
            (
                "Please try again later. You may ask 60 times a minute",
                None,
            ),
            ("try again in 3 months", None),
            ("slow down", None),
        ] {
            assert_eq!(in_text(text), wait, "{text}");
        }
    }

    #[test]
    fn limits_that_are_not_reached_cause_no_wait() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-ratelimit-reset-requests", "20s"),
            ("x-ratelimit-remaining-requests", "5"),
            ("x-ratelimit-reset-tokens", "6s"),
            ("x-ratelimit-remaining-tokens", "0"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        assert_eq!(in_headers(&headers, true), millis(6_000));
        assert_eq!(in_headers(&headers, false), None);
        headers.insert("retry-after", "3".parse().unwrap());
        assert_eq!(in_headers(&headers, false), millis(3_000));
    }
}
