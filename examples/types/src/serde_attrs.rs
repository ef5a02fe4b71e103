//! The attributes of `serde`, and doc comments.

use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Token};

/// What this program knows: any other attribute is an error, because it may change the wire.
const KNOWN: [&str; 21] = [
    // Other words that are read.
    "alias",
    "crate",
    "default",
    "deny_unknown_fields",
    "deserialize_with",
    "flatten",
    "from",
    "into",
    "other",
    "remote",
    "rename",
    "rename_all",
    "serialize_with",
    "skip",
    "skip_deserializing",
    "skip_serializing_if",
    "tag",
    "transparent",
    "try_from",
    "untagged",
    // A reader, and a writer that writes what a derive would.
    "with",
];

/// The `#[serde(..)]` of an item, a variant or a field.
pub(crate) struct Serde(Vec<(String, String)>);

impl Serde {
    pub(crate) fn of(attrs: &[Attribute]) -> syn::Result<Self> {
        let mut all = Vec::new();
        for attr in attrs.iter().filter(|it| it.path().is_ident("serde")) {
            attr.parse_nested_meta(|meta| {
                let name = path(&meta.path);
                if !KNOWN.contains(&&*name) {
                    return Err(meta.error(format!("unknown attribute `{name}`")));
                }
                let value = match meta.input.parse::<Option<Token![=]>>()? {
                    Some(_) => meta.input.parse::<LitStr>()?.value(),
                    None => String::new(),
                };
                all.push((name, value));
                Ok(())
            })?;
        }
        Ok(Self(all))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|it| it.0 == name).map(|it| &*it.1)
    }

    /// The function or the module that reads a field.
    pub(crate) fn reader(&self) -> Option<&str> {
        self.get("deserialize_with").or(self.get("with"))
    }

    /// The name on the wire of a field or a variant, by the `rename_all` of what it is in.
    pub(crate) fn rename(&self, name: &str, all: Option<&str>) -> String {
        if let Some(name) = self.get("rename") {
            return name.to_owned();
        }
        let name = name.trim_start_matches("r#");
        match all {
            None => name.to_owned(),
            Some("lowercase") => name.to_lowercase(),
            Some("camelCase") => {
                let mut words = name.split('_');
                let first = words.next().unwrap_or_default().to_owned();
                words.fold(first, |done, word| done + &capital(word))
            }
            Some("snake_case") => {
                let mut snake = String::new();
                for (at, letter) in name.char_indices() {
                    if at > 0 && letter.is_uppercase() {
                        snake.push('_');
                    }
                    snake.extend(letter.to_lowercase());
                }
                snake
            }
            Some(other) => panic!("rename_all = {other:?} is not supported"),
        }
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// The idents of a path, with `::`.
pub(crate) fn path(path: &syn::Path) -> String {
    let idents: Vec<String> = path
        .segments
        .iter()
        .map(|it| it.ident.to_string())
        .collect();
    idents.join("::")
}

/// The doc comment as a comment of TypeScript: without examples, and without the targets of links, which
/// lead to Rust.
pub(crate) fn jsdoc(attrs: &[Attribute], indent: &str) -> String {
    let mut lines = Vec::new();
    let mut in_code = false;
    for attr in attrs.iter().filter(|it| it.path().is_ident("doc")) {
        let Meta::NameValue(doc) = &attr.meta else {
            continue;
        };
        let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &doc.value
        else {
            continue;
        };
        let text = text.value();
        let text = text.strip_prefix(' ').unwrap_or(&text);
        if text.starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push(without_links(text));
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    match &*lines {
        [] => String::new(),
        [one] => format!("{indent}/** {one} */\n"),
        all => {
            let mut doc = format!("{indent}/**\n");
            for line in all {
                doc += format!("{indent} * {line}").trim_end();
                doc.push('\n');
            }
            doc + indent + " */\n"
        }
    }
}

/// `[text](target)` and `[text]` as `text`, and the words of Rust as others.
fn without_links(line: &str) -> String {
    let mut left = line.replace("*/", "* /").replace("`None`", "absent");
    let mut done = String::new();
    while let Some((before, rest)) = left.split_once('[') {
        let Some((text, rest)) = rest.split_once(']') else {
            break;
        };
        done += before;
        // `chat_items: array[]` is not a link.
        if text.is_empty() {
            done += "[]";
        }
        done += text;
        let target = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
        left = target.map_or(rest, |(_, rest)| rest).to_owned();
    }
    done + &left
}
