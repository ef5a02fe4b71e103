//! Direct routing: `name: text` and `name, text`. SmartHole specification, *Direct Routing*.
//!
//! ```
//! use smarthole_proto::direct;
//!
//! let direct = direct::parse("Notebook: remember to buy milk").unwrap();
//! assert_eq!((direct.name, direct.text), ("Notebook", "remember to buy milk"));
//! assert_eq!(direct.client(["lights", "notebook"]), Some("notebook"));
//! assert_eq!(direct::parse("remember to buy milk"), None);
//! ```

use crate::validate::{is_name, is_name_byte, trim};

/// A text in the form of direct routing. [`client`](Self::client) says whether there is such a
/// client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Direct<'t> {
    /// The name, as written.
    pub name: &'t str,
    /// The text for the client: the rest without white space at its ends. Never empty.
    pub text: &'t str,
}

/// Splits a text that begins with a name and `:` or `,`.
///
/// The name begins at the very first character and ends right before the first delimiter. With
/// white space before it, or between it and the delimiter, the text is an ordinary one; also if the
/// rest is nothing but white space.
#[must_use]
pub fn parse(text: &str) -> Option<Direct<'_>> {
    let end = text.bytes().position(|byte| !is_name_byte(byte))?;
    let (name, rest) = text.split_at_checked(end)?;
    let rest = trim(rest.strip_prefix([':', ','])?);
    (is_name(name) && !rest.is_empty()).then_some(Direct { name, text: rest })
}

/// Splits a text and finds its client among the names in the order of registration.
///
/// ```
/// use smarthole_proto::direct;
///
/// let (client, text) = direct::route("NOTES, milk", ["lights", "notes"]).unwrap();
/// assert_eq!((client, text), ("notes", "milk"));
/// assert_eq!(direct::route("note: milk", ["notes"]), None);
/// ```
pub fn route<'t, 'n>(
    text: &'t str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<(&'n str, &'t str)> {
    let direct = parse(text)?;
    Some((direct.client(names)?, direct.text))
}

impl Direct<'_> {
    /// Returns the client among these names in the order of registration: the exact name, otherwise
    /// the first one that differs only in the case of ASCII letters.
    pub fn client<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
        let mut similar = None;
        for name in names {
            if name == self.name {
                return Some(name);
            }
            if similar.is_none() && name.eq_ignore_ascii_case(self.name) {
                similar = Some(name);
            }
        }
        similar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Option<(&str, &str)> {
        parse(text).map(|direct| (direct.name, direct.text))
    }

    #[test]
    fn both_delimiters_work_with_and_without_a_space() {
        for (text, name, rest) in [
            (
                "notebook: remember to buy milk",
                "notebook",
                "remember to buy milk",
            ),
            (
                "notebook, remember to buy milk",
                "notebook",
                "remember to buy milk",
            ),
            ("a:b", "a", "b"),
            ("a,b", "a", "b"),
            ("my-client_2:\t b \n", "my-client_2", "b"),
            ("notes:: x", "notes", ": x"),
            ("notes, and: x", "notes", "and: x"),
            ("notes:\n\nfirst\nsecond\n", "notes", "first\nsecond"),
            ("notes:\u{a0}\u{feff}x\u{2029}", "notes", "x"),
            ("notes: \u{85}", "notes", "\u{85}"),
            ("notes: é", "notes", "é"),
        ] {
            assert_eq!(split(text), Some((name, rest)), "{text:?}");
        }
    }

    #[test]
    fn other_texts_are_not_direct() {
        for text in [
            "",
            ":",
            ",",
            "a",
            "a:",
            "a: ",
            "a: \n\t",
            " a: b",
            "\ta: b",
            "a : b",
            "1a: b",
            "-a: b",
            "a b: c",
            "é: b",
            "aé: b",
            "a： b",
            "a、b",
            ": b",
            "at 10:30, call",
            "a.b: c",
            "a\n: b",
        ] {
            assert_eq!(split(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_exact_name_wins_and_then_the_first_registered() {
        let direct = parse("Notes: x").unwrap();
        assert_eq!(direct.client(["notes", "NOTES", "Notes"]), Some("Notes"));
        assert_eq!(direct.client(["note", "notes", "NOTES"]), Some("notes"));
        assert_eq!(direct.client(["notebook", "note"]), None);
        // The Kelvin sign is no K.
        assert_eq!(parse("\u{212a}eep: x"), None);
        assert_eq!(route("keep: x", ["\u{212a}eep"]), None);
    }
}
