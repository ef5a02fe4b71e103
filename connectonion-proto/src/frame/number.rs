//! [`Number`]: a number that is written as it was read, whole or fractional.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A JSON number. Peers write the same member as `0` or as `0.25`. A client should return a session
/// exactly as it got it, so this type remembers whether there was a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Number(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Kind {
    Whole(i64),
    /// Finite.
    Real(f64),
}

impl Number {
    /// Returns the number as the nearest double.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        match self.0 {
            #[expect(clippy::cast_precision_loss, reason = "the nearest one is meant")]
            Kind::Whole(whole) => whole as f64,
            Kind::Real(real) => real,
        }
    }
}

/// A number over [`i64::MAX`] becomes the nearest double.
impl From<u64> for Number {
    fn from(number: u64) -> Self {
        match number.try_into() {
            Ok(whole) => Self(Kind::Whole(whole)),
            #[expect(clippy::cast_precision_loss, reason = "the nearest one is meant")]
            Err(_) => Self(Kind::Real(number as f64)),
        }
    }
}

/// Infinite values and NaN become 0, because JSON cannot represent them.
impl From<f64> for Number {
    fn from(number: f64) -> Self {
        if number.is_finite() {
            Self(Kind::Real(number))
        } else {
            Self(Kind::Whole(0))
        }
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_f64(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::Whole(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Kind, E> {
        Ok(Number::from(number).0)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Kind, E> {
        Ok(Number::from(number).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc_core::Limits;

    fn parse(text: &str) -> Option<Number> {
        rpc_core::json::parse(text, &Limits::default()).ok()
    }

    #[test]
    fn a_number_is_written_as_it_was_read() {
        for text in [
            "0",
            "-7",
            "0.0",
            "-0.0",
            "1702234567",
            "1795293032.5080616",
            "9223372036854775807",
            "1.8446744073709552e+19",
        ] {
            let number = parse(text).unwrap();
            assert_eq!(serde_json::to_string(&number).unwrap(), text);
            assert_eq!(serde_json::from_str::<Number>(text).unwrap(), number);
        }
        assert_eq!(parse("-0"), Some(Number::from(-0.0)));
        assert_eq!(parse("1e3"), Some(Number::from(1000.0)));
        assert_eq!(parse("18446744073709551615"), Some(u64::MAX.into()));
        for text in ["", "1e999", "x", "\"1\"", "true", "inf", "NaN"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_invalid_number_becomes_none() {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Number::from(odd), Number::from(0_u64));
        }
        assert_eq!(Number::from(7_u64).as_f64(), 7.0);
    }
}
