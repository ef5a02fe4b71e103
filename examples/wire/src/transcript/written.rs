//! [`entry`]: lines as [`Entry::write`] writes them, which most lines are, read without a parser.

use std::borrow::Cow;
use std::time::Duration;

use rpc_core::json::read_string;
use rpc_core::testing::Side;

use super::{Entry, Kind};

/// The most digits of a number here: a time of more is not exact as a fraction.
const DIGITS: usize = 9;

/// Reads a line; `None` if it has another form, or is invalid.
pub(super) fn entry(line: &str) -> Option<Entry<'_>> {
    let rest = line.strip_prefix(r#"{"at":"#)?;
    let (seconds, rest) = number(rest)?;
    let (micros, rest) = rest.strip_prefix('.')?.split_at_checked(6)?;
    let micros = micros.bytes().try_fold(0, add)?;
    let (conn, mut rest) = number(rest.strip_prefix(r#","conn":"#)?)?;
    let mut from = None;
    if let Some(after) = rest.strip_prefix(r#","dir":""#) {
        (from, rest) = match after.split_at_checked(4)? {
            (r#"c2s""#, after) => (Some(Side::Client), after),
            (r#"s2c""#, after) => (Some(Side::Server), after),
            _ => return None,
        };
    }
    let rest = rest.strip_prefix(r#","kind":""#)?;
    let (kind, mut rest) = match rest.strip_prefix(r#"text""#) {
        Some(rest) => (Kind::Text, rest),
        None => {
            let (kind, rest) = rest.split_once('"')?;
            (Kind::parse(kind)?, rest)
        }
    };
    let mut code = None;
    if let Some(after) = rest.strip_prefix(r#","code":"#) {
        let (number, after) = number(after)?;
        (code, rest) = (Some(u16::try_from(number).ok()?), after);
    }
    let mut data = Cow::Borrowed("");
    if let Some(after) = rest.strip_prefix(r#","data":""#) {
        (data, rest) = read_string(after)?;
    }
    if !matches!(rest, "}" | "}\n" | "}\r\n") {
        return None;
    }
    let at = Duration::new(u64::from(seconds), micros * 1000);
    Some(Entry::new(at, conn, from, kind, data).with_code(code))
}

/// Reads a whole number as JSON writes it.
fn number(text: &str) -> Option<(u32, &str)> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(len)?;
    if len == 0 || len > DIGITS || len > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.bytes().try_fold(0, add)?, rest))
}

/// Adds a digit. Nine of them fit.
fn add(number: u32, digit: u8) -> Option<u32> {
    digit
        .is_ascii_digit()
        .then(|| number * 10 + u32::from(digit - b'0'))
}
