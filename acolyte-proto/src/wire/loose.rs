//! Values that an answer can do without: what is no such value is none.

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, Reader};

use crate::limits::MAX_ITEMS;

/// A string.
pub(crate) fn text<'a>(reader: &mut Reader<'a>) -> Result<Option<Cow<'a, str>>, DecodeError> {
    match reader.first_byte() {
        Some(b'"') => reader.str_lossy(),
        _ => reader.skip().map(|()| None),
    }
}

/// A number of things. One that is no whole number from 0 up is made the nearest.
pub(crate) fn count(reader: &mut Reader<'_>) -> Result<Option<u64>, DecodeError> {
    match reader.first_byte() {
        Some(b'-' | b'0'..=b'9') => reader.raw_ref().map(|raw| Some(nearest(raw.get()))),
        _ => reader.skip().map(|()| None),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast stops at the edges"
)]
fn nearest(digits: &str) -> u64 {
    digits
        .parse()
        .unwrap_or_else(|_| digits.parse().map_or(0, |number: f64| number as u64))
}

/// An array of what `item` reads; items that are none are left out.
pub(crate) fn list<'a, T>(
    reader: &mut Reader<'a>,
    mut item: impl FnMut(&mut Reader<'a>) -> Result<Option<T>, DecodeError>,
) -> Result<Option<Vec<T>>, DecodeError> {
    if reader.first_byte() != Some(b'[') {
        return reader.skip().map(|()| None);
    }
    let mut list = Vec::new();
    reader.items(MAX_ITEMS, |reader| {
        list.extend(item(reader)?);
        Ok(())
    })?;
    Ok(Some(list))
}

/// An array of strings; other items are left out.
pub(crate) fn strings<'a>(
    reader: &mut Reader<'a>,
) -> Result<Option<Vec<Cow<'a, str>>>, DecodeError> {
    list(reader, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_becomes_a_count() {
        for (json, read) in [
            ("7", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            ("1e999", Some(u64::MAX)),
            ("1.9", Some(1)),
            ("-3", Some(0)),
            ("null", None),
            (r#""7""#, None),
            ("[1]", None),
        ] {
            assert_eq!(count(&mut Reader::new(json)), Ok(read), "{json}");
        }
        assert!(count(&mut Reader::new("-")).is_err());
    }

    #[test]
    fn a_list_keeps_what_fits() {
        let read = |json| strings(&mut Reader::new(json)).unwrap();
        assert_eq!(
            read(r#"["a",null,7,["b"],"c"]"#),
            Some(vec!["a".into(), "c".into()])
        );
        assert_eq!(read(r#"{"a":1}"#), None);
    }
}
