//! Direct routing.

use smarthole_proto::direct::{parse, route};

use crate::plain::trimmed;

/// A text is split as the pattern of the known server splits it, and the client is found that people
/// would find. Behind a NUL byte come the names of clients, with spaces between them.
pub fn direct(input: &str) {
    let (text, names) = input.split_once('\0').unwrap_or((input, ""));
    let names: Vec<&str> = names.split(' ').collect();
    let expected = matched(text);
    let found = parse(text).map(|direct| (direct.name.to_owned(), direct.text.to_owned()));
    assert_eq!(found, expected, "how a text is split");
    let client = expected.as_ref().and_then(|(name, _)| meant(name, &names));
    let rest = expected.as_ref().map(|(_, rest)| rest.as_str());
    assert_eq!(
        route(text, names.iter().copied()),
        client.zip(rest),
        "the client that is meant"
    );
    alike(text, &expected);
}

/// `^([a-zA-Z][a-zA-Z0-9_-]*)[,:][ \t]*(.+)$`, where a dot is any character, and the last group
/// trimmed.
fn matched(text: &str) -> Option<(String, String)> {
    let letters: Vec<char> = text.chars().collect();
    let at = letters.iter().position(|it| matches!(it, ',' | ':'))?;
    let name = letters.get(..at)?;
    let rest: String = letters.get(at + 1..)?.iter().collect();
    let more = |it: &char| it.is_ascii_alphanumeric() || "_-".contains(*it);
    if !name.first().is_some_and(char::is_ascii_alphabetic) || !name.iter().all(more) {
        return None;
    }
    let rest = trimmed(&rest);
    (!rest.is_empty()).then(|| (name.iter().collect(), rest))
}

/// The same name, or else the first that differs in case.
fn meant<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let same = names.iter().position(|it| *it == name);
    let similar = || {
        let upper = name.to_ascii_uppercase();
        names.iter().position(|it| it.to_ascii_uppercase() == upper)
    };
    names.get(same.or_else(similar)?).copied()
}

/// Texts that mean the same, and texts that do not.
fn alike(text: &str, expected: &Option<(String, String)>) {
    assert!(parse(&format!(" {text}")).is_none(), "white space in front");
    let longer = format!("{text}\u{3000}\n");
    let same = parse(&longer).map(|direct| (direct.name, direct.text));
    let as_texts = expected
        .as_ref()
        .map(|(name, rest)| (name.as_str(), rest.as_str()));
    assert_eq!(same, as_texts, "white space behind");
    if let Some((name, rest)) = as_texts {
        for delimiter in [":", ",", ": ", ",\t"] {
            let again = format!("{name}{delimiter}{rest}");
            let again = parse(&again).map(|direct| (direct.name, direct.text));
            assert_eq!(again, as_texts, "written again");
        }
    }
}
