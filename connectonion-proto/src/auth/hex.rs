//! Bytes as hexadecimal digits.

/// Parses bytes from twice as many digits in any case, with or without `0x`. `None` if the text is
/// anything else.
pub(super) fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
    let prefixed = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = prefixed.unwrap_or(text).as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let digit = char::from(*digit).to_digit(16)?;
            *byte = *byte << 4 | u8::try_from(digit).ok()?;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_may_have_a_prefix_and_any_case() {
        for text in ["00ff1A", "0x00ff1a", "0X00FF1A"] {
            assert_eq!(parse(text), Some([0, 255, 26]), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "0x",
            "00ff1",
            "00ff1a0",
            "00ff1g",
            " 00ff1a",
            "00 ff1a",
            "0x0x00ff1a",
            "+0ff1a",
            "0ff1é",
        ] {
            assert_eq!(parse::<3>(text), None, "{text}");
        }
    }
}
