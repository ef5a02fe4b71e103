//! Arithmetic on deadlines.

use std::time::Duration;

use crate::Instant;

/// Returns the sooner of two deadlines, each with its purpose; `one` if they are at the same time.
/// `None` means never.
#[must_use]
#[inline]
pub fn sooner<W>(one: Option<(Instant, W)>, other: Option<(Instant, W)>) -> Option<(Instant, W)> {
    match (one, other) {
        (Some(one), Some(other)) if other.0 < one.0 => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// Returns `now + delay`, for delays that a user configures. One beyond the clock's range becomes a
/// year.
#[must_use]
pub fn later(now: Instant, delay: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    now.checked_add(delay)
        .or_else(|| now.checked_add(YEAR))
        .unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_earliest_deadline_wins_and_then_the_first() {
        let now = Instant::now();
        let late = now + Duration::from_secs(1);
        let (one, other) = (Some((now, 1)), Some((late, 2)));
        assert_eq!(sooner(one, other), one);
        assert_eq!(sooner(other, one), one);
        assert_eq!(sooner(one, Some((now, 2))), one);
        assert_eq!(sooner(None, other), other);
        assert_eq!(sooner(other, None), other);
    }
}
