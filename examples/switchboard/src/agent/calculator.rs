//! [`calculate`]: the value of an expression like `2 * (3 + 4)`.

use std::iter::Peekable;
use std::str::Chars;

/// The longest expression, in bytes.
const MAX_BYTES: usize = 1_000;
/// How deep parentheses, signs and powers may be nested.
const MAX_DEPTH: u32 = 64;

/// Returns the value of an expression of numbers, `+ - * / % ^` and parentheses. Also accepts `×`,
/// `÷` and `−`; `^` is right-associative, and binds tighter than a sign before it.
///
/// # Errors
/// A description of the mistake, for people and models.
pub fn calculate(expression: &str) -> Result<String, String> {
    if expression.len() > MAX_BYTES {
        return Err(format!("too long: at most {MAX_BYTES} characters"));
    }
    let mut reader = Reader {
        chars: expression.chars().peekable(),
        depth: 0,
    };
    let value = reader.sum()?;
    if let Some(rest) = reader.next_char() {
        return Err(format!("{rest:?} does not belong there"));
    }
    if !value.is_finite() {
        return Err("the result is not a number".to_owned());
    }
    Ok(written(value))
}

/// Formats a number with at most twelve digits, so that 0.1 + 0.2 is 0.3, and without trailing
/// zeros.
fn written(value: f64) -> String {
    let rounded = format!("{value:.11e}").parse().unwrap_or(value);
    // Zero has no sign here.
    format!("{}", rounded + 0.0)
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    depth: u32,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        while self.chars.next_if(|c| c.is_whitespace()).is_some() {}
        self.chars.peek().copied()
    }

    fn next_char(&mut self) -> Option<char> {
        self.peek()?;
        self.chars.next()
    }

    fn takes(&mut self, wanted: &[char]) -> bool {
        let found = self.peek().is_some_and(|c| wanted.contains(&c));
        if found {
            self.chars.next();
        }
        found
    }

    fn deeper(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<f64, String>,
    ) -> Result<f64, String> {
        if self.depth == MAX_DEPTH {
            return Err(format!("nested too deeply: at most {MAX_DEPTH} times"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.takes(&['+']) {
                value += self.product()?;
            } else if self.takes(&['-', '−']) {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.signed()?;
        loop {
            if self.takes(&['*', '×']) {
                value *= self.signed()?;
            } else if self.takes(&['/', '÷']) {
                value /= not_zero(self.signed()?)?;
            } else if self.takes(&['%']) {
                value %= not_zero(self.signed()?)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn signed(&mut self) -> Result<f64, String> {
        if self.takes(&['-', '−']) {
            return self.deeper(|it| it.signed().map(|value| -value));
        }
        if self.takes(&['+']) {
            return self.deeper(Self::signed);
        }
        let base = self.value()?;
        if self.takes(&['^']) {
            let exponent = self.deeper(Self::signed)?;
            return Ok(base.powf(exponent));
        }
        Ok(base)
    }

    fn value(&mut self) -> Result<f64, String> {
        if self.takes(&['(']) {
            let value = self.deeper(Self::sum)?;
            if !self.takes(&[')']) {
                return Err("a parenthesis is not closed".to_owned());
            }
            return Ok(value);
        }
        let mut number = String::new();
        self.peek();
        while let Some(c) = self.chars.next_if(|c| c.is_ascii_digit() || *c == '.') {
            number.push(c);
        }
        match (number.parse(), self.peek()) {
            (Ok(value), _) => Ok(value),
            (Err(_), _) if !number.is_empty() => Err(format!("{number:?} is not a number")),
            (Err(_), Some(c)) => Err(format!("{c:?} is not a number")),
            (Err(_), None) => Err("it ends where a number should be".to_owned()),
        }
    }
}

fn not_zero(value: f64) -> Result<f64, String> {
    if value == 0.0 {
        return Err("nothing can be divided by zero".to_owned());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_the_expected_values() {
        for (expression, value) in [
            ("2 + 3 * 4", "14"),
            ("(2 + 3) * 4", "20"),
            ("2 × 3 ÷ 4 − 1", "0.5"),
            ("7 % 4 - -1", "4"),
            ("2 ^ 3 ^ 2", "512"),
            ("-2 ^ 2", "-4"),
            ("2 ^ -1", "0.5"),
            ("0.1 + 0.2", "0.3"),
            ("10 / 4 / 5", "0.5"),
            (".5 * 4", "2"),
            ("0 * -1", "0"),
            ("1/3", "0.333333333333"),
            ("1000000 * 1000000", "1000000000000"),
        ] {
            assert_eq!(calculate(expression).as_deref(), Ok(value), "{expression}");
        }
    }

    #[test]
    fn explains_an_invalid_expression() {
        for (expression, why) in [
            ("", "ends"),
            ("2 +", "ends"),
            ("two", "'t'"),
            ("2 3", "'3'"),
            ("1.2.3", "not a number"),
            ("(1", "not closed"),
            ("1)", "')'"),
            ("1 / (2 - 2)", "zero"),
            ("1 % 0", "zero"),
            ("9 ^ 9 ^ 9", "not a number"),
        ] {
            let error = calculate(expression).unwrap_err();
            assert!(error.contains(why), "{expression}: {error}");
        }
        for deep in ["(", "-", "2^"] {
            assert!(calculate(&deep.repeat(400)).unwrap_err().contains("deep"));
        }
        assert!(calculate(&"1".repeat(2000)).unwrap_err().contains("long"));
    }
}
