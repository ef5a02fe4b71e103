//! What hides secrets in frames, heads and texts, by rule and whatever the protocol is taken for.
//!
//! A value is hidden where a secret stands ([`name`]): as the value of a member, header, parameter or option with the
//! name of a secret, as an argument of a login, as the user of a URL. A word is hidden for its form ([`form`]). What is
//! hidden becomes `***` with its length and four digits of a hash that is keyed anew in each run: equal values look
//! equal. Ids, addresses and hashes are shown.

mod form;
mod name;
mod text;

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::LazyLock;

use rpc_core::json::each_member;
use serde_json::value::RawValue;

use self::name::{Naming, is_login, naming};

pub use self::name::is_secret;
pub(crate) use self::text::may_hold;
pub use self::text::{head, within};

/// The deepest nesting that is looked into: what is deeper is hidden.
const MAX_DEPTH: usize = 64;
/// Longer data URLs are cut to their type.
const MAX_DATA_URL: usize = 64;
/// What stands for all names.
const ALL: &str = "*";
/// Members with the value of what a member beside them names.
const VALUES: [&str; 4] = ["value", "val", "v", "secret"];

/// The types of JSON Schema.
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "object", "array"];

/// Which secrets are shown nevertheless.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Shown {
    /// Show the secret members of this name; without a name, show all secrets. May be given again.
    #[arg(long = "show", value_name = "NAME", num_args = 0..=1, default_missing_value = ALL)]
    names: Vec<String>,
}

impl Shown {
    /// Shows everything.
    #[must_use]
    pub fn all() -> Self {
        Self {
            names: vec![ALL.to_owned()],
        }
    }

    /// Returns whether everything is shown.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.names.iter().any(|name| name == ALL)
    }

    /// Takes the last name for a file that no other argument names, if there is such a file.
    pub(crate) fn take_file(&mut self) -> Option<PathBuf> {
        let file = PathBuf::from(self.names.last()?);
        file.exists().then(|| {
            self.names.pop();
            self.names.push(ALL.to_owned());
            file
        })
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|shown| shown == name)
    }
}

/// Returns what stands in the place of a secret.
fn hidden(secret: &str) -> String {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let hash = KEY.hash_one(secret) & 0xffff;
    format!("***{} {hash:04x}", secret.len())
}

/// Returns a frame without its secrets, but for those that are `shown`. What is no JSON may be half a secret and is
/// not shown. What is borrowed is the whole frame.
#[must_use]
pub fn frame<'t>(text: &'t str, shown: &Shown) -> Cow<'t, str> {
    let is_json = text.trim_start().starts_with(['{', '[']);
    if shown.is_all() || is_json && !may_hold(text) {
        return Cow::Borrowed(text);
    }
    let Ok(whole) = serde_json::from_str::<&RawValue>(text) else {
        return Cow::Owned(format!("(not shown, {} bytes)", text.len()));
    };
    let mut found = Found {
        base: text.as_ptr().addr(),
        places: Vec::new(),
        shown,
    };
    found.value(whole.get(), Rule::Form, 0);
    replaced(text, found.places)
}

/// Returns a text with these parts replaced, which are in their order.
fn replaced(text: &str, places: Vec<(usize, usize, String)>) -> Cow<'_, str> {
    let (mut shown, mut at) = (String::new(), 0);
    for (start, end, with) in places {
        shown.push_str(text.get(at..start).unwrap_or_default());
        shown.push_str(&with);
        at = end;
    }
    match at {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(shown + text.get(at..).unwrap_or_default()),
    }
}

/// How the scalars of a value are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// They are public.
    Public,
    /// By their form.
    Form,
    /// Words with letters and digits are secrets, too, if they have so many.
    Mixed(usize),
    /// All texts, and numbers of four digits or more.
    All,
}

/// The secrets of a frame: where each begins and ends, and what stands in its place.
struct Found<'s> {
    base: usize,
    places: Vec<(usize, usize, String)>,
    shown: &'s Shown,
}

impl Found<'_> {
    fn replace(&mut self, raw: &str, with: String) {
        let start = raw.as_ptr().addr() - self.base;
        self.places.push((start, start + raw.len(), with));
    }

    fn hide(&mut self, raw: &str) {
        let text = serde_json::from_str::<Cow<'_, str>>(raw);
        let text = text.unwrap_or(Cow::Borrowed(raw));
        self.replace(raw, format!("\"{}\"", hidden(&text)));
    }

    fn value(&mut self, raw: &str, rule: Rule, depth: usize) {
        match raw.as_bytes().first() {
            _ if depth > MAX_DEPTH => self.hide(raw),
            Some(b'{') => self.object(raw, rule, depth),
            Some(b'[') => self.list(raw, rule, depth),
            Some(b'"') if raw.len() > 2 => match rule {
                Rule::Public => {}
                // What has the signature of a function is code.
                Rule::All if !(raw.contains('(') && raw.contains(' ')) => self.hide(raw),
                Rule::Mixed(least) if form::is_mixed(raw.trim_matches('"'), least) => {
                    self.hide(raw);
                }
                Rule::Form | Rule::Mixed(_) | Rule::All => self.text(raw),
            },
            Some(b'0'..=b'9') if rule == Rule::All && raw.len() > 3 => self.hide(raw),
            _ => {}
        }
    }

    fn list(&mut self, raw: &str, rule: Rule, depth: usize) {
        let items = serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default();
        let mut before = "";
        for item in &items {
            let item = item.get();
            // As in `["--token", "..."]`, `["-u", "ann:..."]` and `["X-Api-Key", "..."]`.
            let is_option = before.starts_with("\"-");
            let is_word = item
                .chars()
                .all(|c| c.is_alphabetic() || "_-\"".contains(c));
            let is_pair = items.len() == 2 && !before.contains(' ') && !is_word;
            let is_behind = (is_option || is_pair) && before.starts_with('"') && is_secret(before)
                || before == "\"-u\"" && item.contains(':');
            self.value(item, if is_behind { Rule::All } else { rule }, depth + 1);
            before = item;
        }
    }

    fn object(&mut self, raw: &str, rule: Rule, depth: usize) {
        let mut members: Vec<(Cow<'_, str>, &str)> = Vec::new();
        if each_member(raw, |name, raw| members.push((name, raw))).is_err() {
            return self.hide(raw);
        }
        let has = |name: &str| members.iter().any(|(known, _)| known == name);
        // Also where the name of the member with the call is misspelt, or no text.
        let calls = |(name, raw): &(Cow<'_, str>, &str)| {
            let is_id = name == "callId" || name == "id";
            !is_id && raw.starts_with('"') && is_login(raw)
                || name == "method" && !raw.starts_with('"')
        };
        let is_call = (has("args") || has("method") && has("params")) && members.iter().any(calls);
        // A password that is changed stands first.
        let changes = members
            .iter()
            .any(|(_, raw)| raw.starts_with('"') && is_secret(raw));
        let names = |raw: &str| raw.starts_with('"') && !raw.contains(' ') && is_secret(raw);
        let is_named = members.iter().any(|(_, raw)| names(raw));
        let is_kind = members
            .iter()
            .any(|(name, raw)| name == "kind" && names(raw));
        // What describes a value says its type, and has no value.
        let is_schema = |(name, raw): &(Cow<'_, str>, &str)| {
            name == "type" && TYPES.contains(&raw.trim_matches('"'))
        };
        let rule = match rule {
            Rule::All if members.iter().any(is_schema) => Rule::Form,
            rule => rule,
        };
        for (name, raw) in members {
            let below = match naming(&name) {
                _ if self.shown.has(&name) => continue,
                _ if rule == Rule::All => Rule::All,
                _ if is_call && matches!(&*name, "args" | "kwargs" | "params") => {
                    self.arguments(raw, depth, !changes);
                    continue;
                }
                _ if is_named && VALUES.iter().any(|it| name.eq_ignore_ascii_case(it)) => Rule::All,
                _ if is_kind && matches!(&*name, "data" | "stringData") => Rule::All,
                // A text that could not be read may be any frame.
                _ if name == "received" && is_login(raw) => Rule::All,
                Naming::Secret => Rule::All,
                Naming::Mixed(least) => Rule::Mixed(least),
                Naming::Weak => match rule {
                    Rule::Mixed(least) => Rule::Mixed(least.min(10)),
                    _ => Rule::Mixed(10),
                },
                Naming::Public => Rule::Public,
                _ if matches!(rule, Rule::Mixed(_)) => rule,
                // What is below something public is judged by its own name.
                Naming::Other if rule == Rule::Public => Rule::Form,
                Naming::Other => rule,
            };
            self.value(raw, below, depth + 1);
        }
    }

    /// The arguments of a login: the first of several is the name of the user.
    fn arguments(&mut self, raw: &str, depth: usize, has_user: bool) {
        let items = serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default();
        let skip = usize::from(has_user && items.len() > 1);
        match items.is_empty() {
            true => self.value(raw, Rule::Mixed(6), depth + 1),
            false => items
                .iter()
                .skip(skip)
                .for_each(|item| self.value(item.get(), Rule::All, depth + 1)),
        }
    }

    /// A string, in which JSON, URLs, pairs and keys may stand.
    fn text(&mut self, raw: &str) {
        let Ok(text) = serde_json::from_str::<Cow<'_, str>>(raw) else {
            return;
        };
        let inner = text.trim_start();
        let is_data = |it: &str| it.eq_ignore_ascii_case("data:");
        let shown =
            if inner.starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(inner).is_ok() {
                frame(&text, self.shown)
            } else if inner.get(..5).is_some_and(is_data) && inner.len() > MAX_DATA_URL {
                let head = inner.split(',').next().unwrap_or_default();
                let head = rpc_core::text::beginning(head, MAX_DATA_URL);
                Cow::Owned(format!("{head}…({} bytes)", inner.len()))
            } else {
                within(&text)
            };
        if let Cow::Owned(shown) = shown {
            self.replace(raw, serde_json::Value::from(shown).to_string());
        }
    }
}
