//! The characters of a JSON string, read from its text without copying.

use std::cmp::Ordering;
use std::str::Chars;

/// An iterator over the code points of a string, given as the text between its quotation marks.
/// Half of a surrogate pair, which no `char` can hold, is a code point, too.
#[derive(Clone)]
pub(super) struct Points<'a>(Chars<'a>);

impl<'a> Points<'a> {
    pub(super) fn of(quoted: &'a str) -> Self {
        Self(quoted.chars())
    }

    /// Reads the code point of `\uxxxx`, and of a second escape if the two are a pair.
    fn escaped(&mut self) -> u32 {
        let first = unit(&mut self.0);
        if !(0xd800..0xdc00).contains(&first) {
            return first;
        }
        let mut ahead = self.0.clone();
        if ahead.next() == Some('\\') && ahead.next() == Some('u') {
            let second = unit(&mut ahead);
            if (0xdc00..0xe000).contains(&second) {
                self.0 = ahead;
                return 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            }
        }
        first
    }
}

impl Iterator for Points<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let next = self.0.next()?;
        if next != '\\' {
            return Some(next.into());
        }
        Some(match self.0.next()? {
            'b' => 0x08,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'u' => self.escaped(),
            itself => itself.into(),
        })
    }
}

/// Reads four hexadecimal digits.
fn unit(chars: &mut Chars<'_>) -> u32 {
    let digits = chars.take(4).filter_map(|digit| digit.to_digit(16));
    digits.fold(0, |unit, digit| unit << 4 | digit)
}

/// Compares strings by code point, as Python does.
pub(super) fn by_points(a: &str, b: &str) -> Ordering {
    if a.contains('\\') || b.contains('\\') {
        Points::of(a).cmp(Points::of(b))
    } else {
        // UTF-8 is made so that its bytes sort like that.
        a.cmp(b)
    }
}

/// Compares names by the order in which a JavaScript object lists them after sorting: whole numbers
/// first, by value, then all others by UTF-16 unit.
pub(super) fn as_javascript(a: &str, b: &str) -> Ordering {
    match (index(a), index(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => units(a).cmp(units(b)),
    }
}

/// Returns the number that JavaScript takes a name for: without a sign or leading zeros, below 2³²
/// − 1.
fn index(name: &str) -> Option<u32> {
    const MOST_DIGITS: usize = 10;
    let mut value = 0_u64;
    for (count, point) in Points::of(name).enumerate() {
        let digit = char::from_u32(point)?.to_digit(10)?;
        if count == MOST_DIGITS || (count == 1 && value == 0) {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    let value = u32::try_from(value).ok()?;
    (!name.is_empty() && value != u32::MAX).then_some(value)
}

/// Returns the UTF-16 units of a string.
fn units(quoted: &str) -> impl Iterator<Item = u32> {
    Points::of(quoted).flat_map(|point| {
        let (first, second) = match pair(point) {
            Some((high, low)) => (high, Some(low)),
            None => (point, None),
        };
        std::iter::once(first).chain(second)
    })
}

/// Returns the surrogate pair of a code point that needs one.
pub(super) const fn pair(point: u32) -> Option<(u32, u32)> {
    match point.checked_sub(0x1_0000) {
        Some(rest) => Some((0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff))),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(quoted: &str) -> Vec<u32> {
        Points::of(quoted).collect()
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(points(r#"a\"\\\/\b"#), [0x61, 0x22, 0x5c, 0x2f, 0x08]);
        assert_eq!(points(r"\f\n\r\t\u0041"), [0x0c, 0x0a, 0x0d, 0x09, 0x41]);
        assert_eq!(points(r"é\u00E9🧅"), [0xe9, 0xe9, 0x1_f9c5]);
    }

    #[test]
    fn surrogate_pairs_are_joined_and_lone_ones_kept() {
        assert_eq!(points(r"\ud83e\uddc5"), [0x1_f9c5]);
        assert_eq!(points(r"\ud83ex"), [0xd83e, 0x78]);
        assert_eq!(points(r"\uddc5\ud83e"), [0xddc5, 0xd83e]);
        assert_eq!(points(r"\ud83e\ud83e\uddc5"), [0xd83e, 0x1_f9c5]);
        assert_eq!(points(r"\ud83e\n"), [0xd83e, 0x0a]);
        assert_eq!(pair(0x1_f9c5), Some((0xd83e, 0xddc5)));
        assert_eq!(pair(0xffff), None);
    }

    #[test]
    fn python_and_javascript_sort_astral_characters_differently() {
        assert_eq!(by_points("\u{ffee}", "🧅"), Ordering::Less);
        assert_eq!(as_javascript("\u{ffee}", "🧅"), Ordering::Greater);
        assert_eq!(by_points(r"\ud83e\uddc5", "🧅"), Ordering::Equal);
        assert_eq!(as_javascript(r"\ud83e\uddc5", "🧅"), Ordering::Equal);
        assert_eq!(by_points(r"\ud83e", "\u{e000}"), Ordering::Less);
    }

    #[test]
    fn integer_keys_come_first_in_javascript() {
        for (less, greater) in [
            ("9", "10"),
            ("10", "010"),
            ("4294967294", "4294967295"),
            ("0", "00"),
            ("2", "-1"),
            ("2", "1.0"),
            ("2", ""),
            (r"\u0032", "a"),
        ] {
            assert_eq!(as_javascript(less, greater), Ordering::Less, "{less}");
            assert_eq!(as_javascript(greater, less), Ordering::Greater, "{less}");
        }
        assert_eq!(
            as_javascript("4294967295", "42949672940"),
            Ordering::Greater
        );
    }
}
