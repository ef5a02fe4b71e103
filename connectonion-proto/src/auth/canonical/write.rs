//! Writing a value in a canonical form.

use super::points::{Points, as_javascript, by_points, pair};
use super::tree::{Member, Value};
use super::{Canonical, number};

impl Value<'_> {
    /// Returns this value in a form. `size` is its approximate size in bytes.
    pub(in crate::auth) fn canonical(&self, form: Canonical, size: usize) -> String {
        let mut out = String::with_capacity(size);
        self.write(form, true, &mut out);
        out
    }

    fn write(&self, form: Canonical, outermost: bool, out: &mut String) {
        match self {
            Self::Word(word) => out.push_str(word),
            Self::Number(text) if form == Canonical::Python => out.push_str(&number::python(text)),
            Self::Number(text) => out.push_str(text),
            Self::Text(text) => quote(text, form, out),
            Self::List(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    item.write(form, false, out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (place, member) in sorted(members, form, outermost).iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    quote(member.name, form, out);
                    out.push(':');
                    member.value.write(form, false, out);
                }
                out.push('}');
            }
        }
    }
}

/// Returns the members of an object in the order of a form. `outermost` if it is the payload itself.
fn sorted<'m, 'a>(
    members: &'m [Member<'a>],
    form: Canonical,
    outermost: bool,
) -> Vec<&'m Member<'a>> {
    let mut sorted: Vec<_> = members.iter().collect();
    match form {
        Canonical::TopLevel if outermost => sorted.sort_by(|a, b| as_javascript(a.name, b.name)),
        Canonical::TopLevel => {}
        _ => sorted.sort_by(|a, b| by_points(a.name, b.name)),
    }
    sorted
}

/// Writes a string, given as the text between its quotation marks.
fn quote(quoted: &str, form: Canonical, out: &mut String) {
    let ascii = match form {
        Canonical::Escaped | Canonical::Python => true,
        Canonical::Utf8 | Canonical::TopLevel => false,
    };
    let stays = |byte: u8| byte != b'\\' && !(ascii && byte >= 0x7f);
    out.push('"');
    if quoted.bytes().all(stays) {
        out.push_str(quoted);
    } else {
        for point in Points::of(quoted) {
            push(point, ascii, out);
        }
    }
    out.push('"');
}

/// Writes one character of a string.
fn push(point: u32, ascii: bool, out: &mut String) {
    match point {
        0x22 => out.push_str("\\\""),
        0x5c => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        0x0a => out.push_str("\\n"),
        0x0d => out.push_str("\\r"),
        0x09 => out.push_str("\\t"),
        _ => match char::from_u32(point) {
            Some(itself) if point >= 0x20 && !(ascii && point >= 0x7f) => out.push(itself),
            _ => match pair(point) {
                Some((high, low)) => {
                    escape(high, out);
                    escape(low, out);
                }
                None => escape(point, out),
            },
        },
    }
}

/// Writes `\uxxxx`.
fn escape(unit: u32, out: &mut String) {
    out.push_str("\\u");
    for shift in [12, 8, 4, 0] {
        out.extend(char::from_digit(unit >> shift & 0xf, 16));
    }
}
