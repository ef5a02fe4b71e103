//! Lenient values of optional members: a value of another type counts as absent. For
//! `deserialize_with`, beside `default`.

use rpc_core::Str;
use rpc_core::json::lenient::{self, Only};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

/// Reads a string.
pub(crate) fn text<'de, D: Deserializer<'de>, T: From<Str> + Default>(
    from: D,
) -> Result<T, D::Error> {
    let Only(text) = Only::<b'"', Str>::deserialize(from)?;
    Ok(text.map(T::from).unwrap_or_default())
}

/// Reads a count. A number that is not a whole number from 0 up becomes the nearest one.
pub(crate) fn count<'de, D: Deserializer<'de>, T: From<u64> + Default>(
    from: D,
) -> Result<T, D::Error> {
    let Only(count) = Only::<b'0', Count>::deserialize(from)?;
    Ok(count.map(|Count(count)| count.into()).unwrap_or_default())
}

/// Reads a count that must be present.
pub(crate) fn some_count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let count: Option<u64> = count(from)?;
    count.ok_or_else(|| D::Error::custom("must be a number"))
}

/// Reads an object.
pub(crate) fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let Only(object) = Only::<b'{', T>::deserialize(from)?;
    Ok(object)
}

/// Reads an array of strings, leaving out other items.
pub(crate) fn strings<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Str>, D::Error> {
    let items = list::<_, Only<b'"', Str>>(from)?;
    Ok(items.into_iter().filter_map(|Only(text)| text).collect())
}

/// Reads an array.
pub(crate) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let Only(list) = Only::<b'[', Vec<T>>::deserialize(from)?;
    Ok(list.unwrap_or_default())
}

/// An object; any other value counts as absent.
pub(crate) type Object<T> = Only<b'{', T>;

/// Any number.
struct Count(u64);

impl From<Str> for Count {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast stops at the edges"
    )]
    fn from(digits: Str) -> Self {
        let nearest = || digits.parse().map_or(0, |number: f64| number as u64);
        Self(digits.parse().unwrap_or_else(|_| nearest()))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        lenient::id(from)
    }
}

#[cfg(test)]
mod tests {
    use rpc_core::Limits;
    use rpc_core::json::parse;

    use super::*;

    #[derive(Deserialize)]
    struct Counted(#[serde(deserialize_with = "count")] Option<u64>);

    #[derive(Deserialize)]
    struct Listed(#[serde(deserialize_with = "strings")] Vec<Str>);

    #[test]
    fn any_number_becomes_a_count() {
        for (json, value) in [
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
            let Counted(found) = parse(json, &Limits::default()).unwrap();
            assert_eq!(found, value, "{json}");
        }
        assert!(parse::<Counted>("-", &Limits::default()).is_err());
    }

    #[test]
    fn a_list_keeps_its_valid_items() {
        let read = |json| {
            let Listed(found) = parse(json, &Limits::default()).unwrap();
            found
        };
        assert_eq!(read(r#"["a",null,7,["b"],"c",1e999]"#), ["a", "c"]);
        assert_eq!(read(r#"{"a":1}"#), [""; 0]);
    }
}
