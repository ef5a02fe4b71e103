//! [`within`] and [`head`]: texts and the heads of HTTP messages without their secrets.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::dfa::DFA;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

use super::form::{
    LEAST, is_key, is_mixed, is_random, is_word_byte, is_worded, may_be_key, names_hash,
};
use super::name::{LOGINS, Naming, SECRETS, WEAK, is_secret, naming};
use super::{hidden, replaced};
use crate::frame::is_one;

/// What may hold or name a secret beside the names of secrets; what has nothing of that is not looked at closer.
const SUSPECTS: &str = "auth phrase basic ----- @ data: -u -p -a \\u %";

/// The longest user and password before a host that are looked for.
const MAX_USER: usize = 512;
/// More bytes than a suspect has.
const OVERLAP: usize = 16;

/// Returns whether a text may hold a secret: if not, nothing in it is hidden.
pub(crate) fn may_hold(text: &str) -> bool {
    suspect(text, 0, &mut None).is_some()
}

/// Returns the place, from this one on, of the next word that may be a secret or the name of one. `named` keeps where
/// the next such name is.
fn suspect(text: &str, from: usize, named: &mut Option<usize>) -> Option<usize> {
    static NAMES: LazyLock<Option<DFA>> = LazyLock::new(|| {
        let mut builder = DFA::builder();
        let builder = builder.ascii_case_insensitive(true).prefilter(false);
        let names = [SECRETS, WEAK, LOGINS, SUSPECTS].into_iter();
        builder
            .build(names.flat_map(str::split_ascii_whitespace))
            .ok()
    });
    let rest = text.as_bytes().get(from..)?;
    if named.is_none_or(|at| at < from) {
        let find = |it: &DFA| match has_name(it, rest) {
            Some(false) => None,
            _ => Some(it.try_find(&rest.into()).ok()??.start()),
        };
        let found = NAMES.as_ref().map_or(Some(0), find);
        *named = Some(from + found.unwrap_or(rest.len()));
    }
    let len = named.unwrap_or_default() - from;
    let name = (len < rest.len()).then_some(len);
    // What comes behind it is of no interest.
    let rest = rest.get(..len).unwrap_or_default();
    let foreign = match rest.is_ascii() {
        true => name,
        false => rest.iter().position(|it| !it.is_ascii()),
    };
    let long = long_word(rest.get(..foreign.unwrap_or(rest.len())).unwrap_or(rest));
    Some(from + long.or(foreign)?)
}

/// Returns whether one of the names is in a text. An automaton waits for memory at each byte: four parts go on at once.
fn has_name(names: &DFA, bytes: &[u8]) -> Option<bool> {
    let start = names.start_state(Anchored::No).ok()?;
    let [mut a, mut b, mut c, mut d] = [start; 4];
    let step = bytes.len().checked_sub(OVERLAP)?.div_ceil(4);
    let part = |n: usize| bytes.get(n * step..).unwrap_or_default();
    let mut all = part(0).iter().zip(part(1)).zip(part(2)).zip(part(3));
    let next = |state, byte: &u8| names.next_state(Anchored::No, state, *byte);
    Some(all.any(|(((one, two), three), four)| {
        (a, b, c, d) = (next(a, one), next(b, two), next(c, three), next(d, four));
        [a, b, c, d].iter().any(|it| names.is_special(*it))
    }))
}

/// Returns the place of a word that may be a key. Few bytes of most texts are looked at: those before the end of as many
/// as a key has.
fn long_word(bytes: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| !is_word_byte(*byte);
    let mut start = 0;
    while let Some(part) = bytes.get(start..start + LEAST) {
        if let Some(at) = part.iter().rposition(is_end) {
            start += at + 1;
            continue;
        }
        let rest = bytes.get(start..).unwrap_or_default();
        let word = rest.split(is_end).next().unwrap_or_default();
        if may_be_key(word) {
            return Some(start);
        }
        start += word.len();
    }
    None
}

/// Returns a text without the secrets of the URLs, pairs, options and keys in it.
#[must_use]
pub fn within(text: &str) -> Cow<'_, str> {
    let mut places: Vec<(usize, usize, String)> = Vec::new();
    let (mut at, mut named) = (0, None);
    while let Some(suspect) = suspect(text, at, &mut named) {
        let (before, behind) = text.split_at_checked(suspect).unwrap_or((text, ""));
        at = before.rfind(char::is_whitespace).unwrap_or(0).max(at);
        let len = behind.find(char::is_whitespace);
        let end = suspect + len.unwrap_or(behind.len());
        while at <= end && at < text.len() {
            let (skip, secret) = block(text, at).unwrap_or_else(|| word(text, at));
            if let Some(secret) = secret.filter(|it| !it.is_empty()) {
                let value = text.get(secret.clone()).unwrap_or_default();
                places.push((secret.start, secret.end, hidden(value)));
            }
            at = skip.max(at + 1);
            while !text.is_char_boundary(at) {
                at += 1;
            }
        }
    }
    replaced(text, places)
}

/// What was looked at ends here, and this is to be hidden.
type Step = (usize, Option<Range<usize>>);

/// A block between lines, of a private key or of something public; or a user and a password before a host.
fn block(text: &str, at: usize) -> Option<Step> {
    let rest = text.get(at..)?;
    let near = rpc_core::text::beginning(rest, MAX_USER);
    if rest.starts_with("-----BEGIN ") {
        let end = rest.find("-----END").map_or(rest.len(), |end| end + 8);
        let line = rest.lines().next().unwrap_or_default();
        return Some((at + end, line.contains("PRIVATE").then(|| at..at + end)));
    }
    // The content of a data URL is none.
    if let Some(content) = rest.strip_prefix("base64,") {
        let is_base = |c: char| c.is_ascii_alphanumeric() || "+/=-_".contains(c);
        let content = content.trim_start_matches(is_base);
        return Some((text.len() - content.len(), None));
    }
    let is_start =
        |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || "._-+%:".contains(c));
    if let Some(authority) = near.strip_prefix("//") {
        let end = authority.find(|c: char| c.is_whitespace() || "\"'<>?#`".contains(c));
        let authority = authority.get(..end.unwrap_or(authority.len()))?;
        let user = authority.rfind('@')?;
        return Some((at + 2 + user, Some(at + 2..at + 2 + user)));
    }
    if is_start(text.get(..at)?.chars().next_back())
        && rest.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        let end = near.find(|c: char| c.is_whitespace() || "\"'<>?#`/,;=".contains(c));
        let token = near.get(..end.unwrap_or(near.len()))?;
        let (user, _) = token.rsplit_once('@')?;
        let (name, password) = user.split_once(':')?;
        let is_user = !password.is_empty() && name != "mailto";
        return is_user.then(|| (at + user.len(), Some(at..at + user.len())));
    }
    None
}

/// A word: what it is, or what it says of the one behind it.
fn word(text: &str, at: usize) -> Step {
    let rest = text.get(at..).unwrap_or_default();
    let is_part = |c: char| c.is_alphanumeric() || "_-.%[]~".contains(c);
    let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let Some(name) = rest.get(..len).filter(|name| !name.is_empty()) else {
        return (at + rest.chars().next().map_or(1, char::len_utf8), None);
    };
    let end = at + len;
    let option = name.trim_start_matches('-');
    if name.len() > option.len()
        && let Some(step) = option_value(text, name, end)
    {
        return step;
    }
    let before = text.get(..at).and_then(|it| it.chars().next_back());
    let in_url = matches!(before, Some('?' | '&' | ';' | '#'))
        && text.get(end..).is_some_and(|it| it.starts_with('='));
    let decoded = percent_decode_str(option).decode_utf8_lossy();
    // A parameter of a URL may be a URL.
    if decoded.contains(['?', '&', '=']) && !matches!(within(&decoded), Cow::Borrowed(_)) {
        return (end, Some(at..end));
    }
    let is_named = match naming(&decoded) {
        Naming::Secret => true,
        Naming::Mixed(_) => text.get(end..).is_some_and(|it| it.starts_with('=')),
        Naming::Weak => {
            in_url && !name.ends_with(|c: char| c.is_ascii_digit())
                || is_secret(&format!("{}_{name}", last_word(text, at)))
        }
        _ => false,
    };
    if let Some(value) = credential(text, name, end) {
        return (value.end, Some(value));
    }
    let value = is_named
        .then(|| behind(text, at, name, end, in_url))
        .flatten();
    match value {
        Some(value) => (value.end, Some(value)),
        None => key(text, at, name),
    }
}

/// The word before this place, with one space between.
fn last_word(text: &str, at: usize) -> &str {
    let before = text.get(..at).and_then(|it| it.strip_suffix(' '));
    last_part(before.unwrap_or_default())
}

fn last_part(text: &str) -> &str {
    let mut parts = text.rsplit(|c: char| !c.is_alphanumeric());
    parts.next().unwrap_or_default()
}

/// A word of its own form, with what dots join to it.
fn key(text: &str, at: usize, name: &str) -> Step {
    let end = at + name.len();
    let (mut start, mut is_secret) = (at, false);
    let neighbour = |c: Option<char>| c.is_some_and(|c| matches!(c, '/' | '+'));
    let before = text.get(..at).and_then(|it| it.chars().next_back());
    let next = text.get(end..).and_then(|it| it.chars().next());
    for part in name.split('.') {
        let part_end = start + part.len();
        is_secret |= is_key(part.trim_matches('~')) && !part.contains(['[', '%']);
        start = part_end + 1;
    }
    // Long base 64 with its other letters is the content of something, and a hash has its name before it.
    let tag = text.get(..at).and_then(|it| it.strip_suffix(':'));
    let is_content = neighbour(before) && neighbour(next)
        || next == Some('+')
        || before == Some('+')
        || tag.is_some_and(|it| names_hash(last_part(it)));
    (end, (is_secret && !is_content).then_some(at..end))
}

/// What follows an option: `--token X`, `-u ann:X`, `-pX`.
fn option_value(text: &str, name: &str, end: usize) -> Option<Step> {
    let rest = text.get(end..)?;
    let attached = name.strip_prefix("-p").filter(|it| is_password(it));
    if let Some(attached) = attached {
        return Some((end, Some(end - attached.len()..end)));
    }
    let start = end + rest.len() - rest.trim_start().len();
    let value = quoted(text, start).filter(|_| start > end)?;
    let shown = text.get(value.clone()).filter(|it| !it.starts_with('-'))?;
    let is_secret = match name {
        // A user and a group are told by numbers or the same name.
        "-u" | "--user" => shown.split_once(':').is_some_and(|(user, password)| {
            user != password && !password.bytes().all(|it| it.is_ascii_digit())
        }),
        "-p" | "-a" => is_password(shown),
        _ => name.starts_with("--") && is_secret(name),
    };
    is_secret.then_some((value.end, Some(value)))
}

/// A word without order that is too short for a key.
fn is_password(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    word.len() > 7
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && is_random(word)
}

/// The range of a value that may stand in quotes.
fn quoted(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = text.get(start..)?;
    let escape = rest.len() - rest.trim_start_matches('\\').len();
    let quote = rest
        .get(escape..)?
        .chars()
        .next()
        .filter(|c| "\"'`".contains(*c));
    let (begin, end) = match quote {
        Some(quote) => {
            let begin = escape + quote.len_utf8();
            let inner = rest.get(begin..)?;
            let end = inner.find(['\\', quote]).unwrap_or(inner.len());
            (begin, begin + end)
        }
        None => {
            let ends = |c: char| c.is_whitespace() || "&;,#\"'\\<>)}]`".contains(c);
            let end = rest.find(ends).unwrap_or(rest.len());
            (
                0,
                rest.get(..end)?
                    .trim_end_matches([':', '.', '!', '?'])
                    .len(),
            )
        }
    };
    (end > begin).then_some(start + begin..start + end)
}

/// The credential behind a scheme: `Bearer X`, `Basic X`, `bearer.X`.
fn credential(text: &str, name: &str, end: usize) -> Option<Range<usize>> {
    let (scheme, tail) = name.split_once('.').unwrap_or((name, ""));
    let is = |known: &str| scheme.eq_ignore_ascii_case(known);
    if is("bearer") && !tail.is_empty() {
        return Some(end - tail.len()..end);
    }
    let is_basic = is("basic");
    (tail.is_empty() && (is_basic || is("bearer") || is("digest") || is("negotiate")))
        .then_some(())?;
    let rest = text.get(end..)?.strip_prefix([' ', '\t'])?;
    let value = quoted(text, text.len() - rest.trim_start().len())?;
    let word = text.get(value.clone())?;
    let decoded = || STANDARD.decode(word).ok();
    let is_credential = match is_basic {
        true => decoded().is_some_and(|it| it.contains(&b':')),
        false => {
            !word.trim_end_matches('=').contains('=') && (is_mixed(word, 6) || word.len() > 15)
        }
    };
    is_credential.then_some(value)
}

/// How a value is bound to the name before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bond {
    Equals,
    Colon,
    /// A word of a sentence that says so, as `is`, or the border of a cell.
    Says,
    /// Such a word, further behind.
    Far,
    Space,
}

/// The value behind a name, if there is one that looks so.
fn behind(text: &str, at: usize, name: &str, end: usize, in_url: bool) -> Option<Range<usize>> {
    let rest = text.get(end..)?;
    // An element of XML.
    if rest.starts_with('>') && text.get(..at)?.ends_with('<') {
        let len = rest.find('<').unwrap_or(rest.len());
        return Some(end + 1..end + len).filter(|it| !it.is_empty());
    }
    // A part of a path, or of a subprotocol.
    if let Some(segment) = rest.strip_prefix('/') {
        let len = segment.find(|c: char| !(c.is_alphanumeric() || "_-~".contains(c)));
        let value = end + 1..end + 1 + len.unwrap_or(segment.len());
        return Some(value).filter(|it| {
            text.get(it.clone())
                .is_some_and(|it| is_mixed(it, 10) && !is_worded(it))
        });
    }
    let closed = rest.trim_start_matches(['\\', '"', '\'', '`', ']', '*']);
    let spaced = closed.trim_start_matches([' ', '\t']);
    let (bond, value) = match spaced
        .strip_prefix(":=")
        .or_else(|| spaced.strip_prefix("=>"))
    {
        Some(value) => (Bond::Equals, value),
        None if spaced.starts_with("==") || spaced.starts_with("::") => return None,
        None => match spaced.strip_prefix('=') {
            Some(value) => (Bond::Equals, value),
            None => match spaced.strip_prefix(':') {
                Some(value) => {
                    typed(value).map_or((Bond::Colon, value), |value| (Bond::Equals, value))
                }
                None if spaced.len() == closed.len() && !spaced.starts_with(',') => {
                    // What stands on the lines below a field of a form.
                    let field = rest.strip_prefix('"')?;
                    let value = field.strip_prefix("\r\n\r\n");
                    let value = value.or_else(|| field.strip_prefix("\n\n"))?;
                    return quoted(text, text.len() - value.len());
                }
                None => sentence(spaced),
            },
        },
    };
    // What stands in bold, or below as in YAML.
    let value = value.trim_start_matches('*');
    let folded = value.trim_start_matches([' ', '|', '>', '-']);
    let below = folded.strip_prefix('\n').filter(|it| it.starts_with(' '));
    let value = below.filter(|_| bond == Bond::Colon).unwrap_or(value);
    let start = text.len() - value.trim_start_matches([' ', '\t']).len();
    let is_tight = start + value.len() == text.len();
    // A scheme is no secret.
    let scheme = text.get(start..)?.split_once([' ', '\t']);
    let is_scheme = |word: &str| is_one(&word.to_ascii_lowercase(), "bearer basic digest token");
    if let Some((_, value)) = scheme.filter(|(word, _)| is_scheme(word))
        && matches!(bond, Bond::Equals | Bond::Colon)
    {
        let value = quoted(text, text.len() - value.trim_start().len())?;
        return Some(line(text, at, name, value));
    }
    let value = quoted(text, start)?;
    let is_quoted = value.start > start;
    let shown = text.get(value.clone())?;
    let is_code = shown.contains(['(', '[', '{', '$', '*'])
        || is_one(&shown.to_ascii_lowercase(), "null none true false undefined nil")
        // What only names a secret stands for one.
        || shown.bytes().all(|it| it.is_ascii_uppercase() || it == b'_') && is_secret(shown);
    let looks = |least: usize| is_mixed(shown, least) || is_password(shown);
    let is_mixed_case = shown.bytes().any(|it| it.is_ascii_lowercase())
        && shown.bytes().any(|it| it.is_ascii_uppercase());
    let is_constant = name.contains('_') && !name.contains(|c: char| c.is_ascii_lowercase());
    let is_secret = match bond {
        Bond::Equals if in_url || is_tight || is_quoted => !is_code,
        Bond::Equals | Bond::Colon => {
            !is_code
                && (is_quoted && shown.len() > 2
                    || is_line_of(name)
                    || (has_digit(shown) || shown.ends_with('=')) && shown.len() > 3)
        }
        Bond::Says => looks(6),
        Bond::Far => is_password(shown),
        Bond::Space if is_quoted || is_constant => looks(6),
        Bond::Space => looks(if is_mixed_case { 8 } else { 12 }),
    };
    is_secret.then(|| line(text, at, name, value))
}

/// The value of a header that has parts, to the end of its line or of the quotes around the header.
fn line(text: &str, at: usize, name: &str, value: Range<usize>) -> Range<usize> {
    let (first, rest) = (text.get(value.clone()), text.get(value.end..));
    let (first, rest) = (first.unwrap_or_default(), rest.unwrap_or_default());
    let has_parts = first.trim_end_matches('=').contains('=') || rest.starts_with('"');
    if !is_line_of(name) || !has_parts {
        return value;
    }
    let quote = text.get(..at).and_then(|it| it.chars().next_back());
    let quote = quote.filter(|c| "\"'`".contains(*c)).unwrap_or('\n');
    let len = rest.find(['\r', '\n', quote]).unwrap_or(rest.len());
    value.start..value.end + len
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|it| it.is_ascii_digit()) && text.bytes().any(|it| it.is_ascii_alphanumeric())
}

/// Whether the value of a header of this name is secret to its end.
fn is_line_of(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with("authorization") || lower.ends_with("cookie")
}

/// The value behind a type: `token: &str = "..."`.
fn typed(value: &str) -> Option<&str> {
    let trimmed = value.trim_start_matches([' ', '&', '\'']);
    let len = trimmed.find(|c: char| !(c.is_alphanumeric() || "_<>[]|? ".contains(c)))?;
    let (name, value) = trimmed.split_at_checked(len)?;
    let value = value.strip_prefix('=')?.trim_start();
    (name.ends_with(' ') && value.starts_with(['"', '\''])).then_some(value)
}

/// What a sentence says of a name: `is X`, `provided: X`, or a word directly behind it.
fn sentence(rest: &str) -> (Bond, &str) {
    let rest = rest.strip_prefix("provided").unwrap_or(rest);
    for word in [": ", ", ", "value=", "is: ", "is ", "was ", "| ", "="] {
        if let Some(value) = rest.strip_prefix(word) {
            return (Bond::Says, value);
        }
    }
    let is_near = rest.split_whitespace().next().is_some_and(has_digit);
    let sentence = rpc_core::text::beginning(rest, 48);
    let sentence = sentence.split(['.', '\n']).next().unwrap_or_default();
    let far = [" is: ", ": ", " is "].into_iter();
    let far = far.filter_map(|word| Some(sentence.find(word)? + word.len()));
    match far.min().filter(|at| !is_near && *at < 40) {
        Some(at) => (Bond::Far, rest.get(at..).unwrap_or_default()),
        None => (Bond::Space, rest),
    }
}

/// Returns the head of an HTTP message without the values of secret headers, the keys that subprotocols carry,
/// and the secrets of its URLs.
#[must_use]
pub fn head(head: &str) -> String {
    let mut shown = String::with_capacity(head.len());
    // How the last header is shown: a line that begins with a space goes on with it.
    let mut show: fn(&str) -> String = whole;
    for (index, line) in head.split_inclusive('\n').enumerate() {
        let text = line.trim_end_matches(['\r', '\n']);
        let goes_on = text.starts_with([' ', '\t']);
        match text.split_once(':').filter(|_| !goes_on) {
            _ if index == 0 => shown.push_str(&within(text)),
            Some((name, value)) => {
                show = match is_secret(name) || matches!(naming(name), Naming::Mixed(_)) {
                    true => whole,
                    false if name.trim().eq_ignore_ascii_case("sec-websocket-protocol") => {
                        subprotocols
                    }
                    false
                        if naming(name) == Naming::Public
                            || name.to_ascii_lowercase().starts_with("sec-websocket-") =>
                    {
                        str::to_owned
                    }
                    false => |value| within(value).into_owned(),
                };
                shown.push_str(name);
                shown.push(':');
                shown.push_str(&show(value));
            }
            None if text.is_empty() => {}
            None if goes_on => shown.push_str(&show(text)),
            // No header has a line without a name.
            None => shown.push_str(&whole(text)),
        }
        shown.push_str(line.get(text.len()..).unwrap_or_default());
    }
    shown
}

fn whole(value: &str) -> String {
    match value.trim() {
        "" => value.to_owned(),
        secret => format!(" {}", hidden(secret)),
    }
}

/// Returns subprotocols without the keys that they carry, also behind the name of one.
fn subprotocols(offers: &str) -> String {
    let mut names_key = false;
    let offers = offers.split(',').map(|offer| {
        let name = offer.trim();
        // A word that names a secret, and a key behind it.
        let ends = || name.char_indices().filter(|(_, c)| !c.is_alphanumeric());
        let word = |at: usize| last_part(name.get(..at).unwrap_or_default()).to_lowercase();
        let names = |word: &str| naming(word) != Naming::Other || word == "basic";
        let cut = ends().find(|(at, _)| word(*at) == "bearer").or_else(|| {
            let named = ends().find(|(at, _)| names(&word(*at)));
            named.filter(|_| !is_secret(name))
        });
        let version = name.rsplit_once(".v").map(|(_, it)| it);
        let is_version =
            version.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit() || it == b'.'));
        let is_key = !name.is_empty() && !is_version && (names_key || is_mixed(name, 20));
        names_key = cut.is_none() && matches!(naming(name), Naming::Secret | Naming::Mixed(_));
        let start = cut.map(|(at, _)| at + 1).or(is_key.then_some(0));
        let key = start.and_then(|at| name.get(at..)).unwrap_or_default();
        match offer.trim_end().strip_suffix(key) {
            Some(before) if !key.is_empty() => format!("{before}{}", hidden(key)),
            _ => offer.to_owned(),
        }
    });
    offers.collect::<Vec<_>>().join(",")
}
