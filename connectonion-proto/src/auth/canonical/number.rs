//! Numbers as Python writes them.

use std::borrow::Cow;

/// Returns a number as Python writes it: whole numbers stay unchanged, whatever their size; others
/// become the shortest text for the same 64-bit number.
pub(super) fn python(text: &str) -> Cow<'_, str> {
    if !text.contains(['.', 'e', 'E']) {
        return Cow::Borrowed(if text == "-0" { "0" } else { text });
    }
    let Ok(value) = text.parse::<f64>() else {
        return Cow::Borrowed(text);
    };
    if value.is_infinite() {
        // No JSON, but what `json.dumps` writes.
        return Cow::Borrowed(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    Cow::Owned(float(value))
}

/// Returns Python's `repr` of a finite number.
fn float(value: f64) -> String {
    // "-1.5e-7": the shortest digits and the exponent of the first one.
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let plain = value.to_string();
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_keep_their_digits() {
        for text in ["0", "-1", "1702234567", "123456789012345678901234567890"] {
            assert_eq!(python(text), text);
        }
        assert_eq!(python("-0"), "0");
    }

    #[test]
    fn other_numbers_are_written_in_their_shortest_form() {
        for (text, expected) in [
            ("1.50", "1.5"),
            ("1e5", "100000.0"),
            ("1E+2", "100.0"),
            ("-0.0", "-0.0"),
            ("0e9", "0.0"),
            ("1702234567.0", "1702234567.0"),
            ("1702234567.25", "1702234567.25"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1e16", "1e+16"),
            ("1e15", "1000000000000000.0"),
            ("12345678901234567.0", "1.2345678901234568e+16"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e-7", "1e-07"),
            ("1.5e-300", "1.5e-300"),
            ("5e-324", "5e-324"),
            ("1e-400", "0.0"),
            ("1e400", "Infinity"),
            ("-1e400", "-Infinity"),
            ("0.1000000000000000055511151231257827", "0.1"),
        ] {
            assert_eq!(python(text), expected, "{text}");
        }
    }
}
