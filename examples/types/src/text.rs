//! The text of types: objects, unions, words.

use crate::serde_attrs::jsdoc;
use crate::syntax::Words;

/// A member of an object.
pub(crate) struct Member {
    pub(crate) doc: String,
    name: String,
    pub(crate) is_optional: bool,
    of: String,
}

impl Member {
    /// A member of this type; `?` in front of it is for one that may be absent.
    pub(crate) fn new(name: &str, of: &str) -> Self {
        Self {
            doc: String::new(),
            name: name.to_owned(),
            is_optional: of.starts_with('?'),
            of: of.trim_start_matches('?').to_owned(),
        }
    }

    /// A member that always has this value.
    pub(crate) fn tag(name: &str, word: &str) -> Self {
        Self::new(name, &format!("{word:?}"))
    }
}

/// An object with these members, and those of these types.
pub(crate) fn together(members: &[Member], parts: &[String]) -> String {
    let mut all = Vec::new();
    if !members.is_empty() || parts.is_empty() {
        all.push(object_of(members));
    }
    all.extend(parts.iter().cloned());
    all.join(" & ")
}

/// An object: on one line if no member has a doc comment.
pub(crate) fn object_of(members: &[Member]) -> String {
    let is_short = members.iter().all(|it| it.doc.is_empty());
    let each = members.iter().map(|it| {
        let mark = if it.is_optional { "?" } else { "" };
        let is_ident = it
            .name
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_');
        let name = if is_ident {
            it.name.clone()
        } else {
            format!("{:?}", it.name)
        };
        format!("{name}{mark}: {};", it.of)
    });
    if is_short {
        let each: Vec<String> = each.collect();
        let each = each.join(" ");
        return format!("{{ {} }}", each.trim_end_matches(';'));
    }
    let docs = members.iter().map(|it| &*it.doc);
    let lines: Vec<String> = docs
        .zip(each)
        .map(|(doc, it)| format!("{doc}  {it}\n"))
        .collect();
    format!("{{\n{}}}", lines.concat())
}

/// A union of types with their doc comments.
pub(crate) fn of_union(variants: &[(String, String)]) -> String {
    let each = variants.iter().map(|(doc, of)| {
        let of = of.replace('\n', "\n    ");
        format!("\n{doc}  | {of}")
    });
    each.collect()
}

/// A union of words.
pub(crate) fn of_words(words: &Words) -> String {
    let mut union: Vec<_> = words
        .words
        .iter()
        .map(|(attrs, word)| (jsdoc(attrs, "  "), format!("{:?}", word.value())))
        .collect();
    if words.is_open {
        // Any other, without losing the completion of these.
        union.push((String::new(), "(string & {})".to_owned()));
    }
    of_union(&union)
}
