//! What hides secrets in frames, heads and texts: the same rules whatever the protocol is taken for.
//!
//! A value is hidden by the name of its member, header or parameter ([`is_secret`]), by the call that it is an
//! argument of (`login`, `register`, `set_password`), or by its form: the keys of well-known services, bearer
//! tokens, users and passwords in URLs.

use std::borrow::Cow;
use std::sync::LazyLock;

use percent_encoding::percent_decode_str;
use regex::Regex;
use rpc_core::json::each_member;
use serde_json::value::RawValue;

/// What stands in the place of a secret.
const HIDDEN: &str = "***";
/// The deepest nesting that is looked into: what is deeper is hidden.
const MAX_DEPTH: usize = 64;
/// Longer data URLs are cut to their type.
const MAX_DATA_URL: usize = 64;

/// Words that make a name secret wherever they stand in it.
const WORDS: [&str; 30] = [
    "apikey",
    "auth",
    "authorization",
    "authtoken",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "creds",
    "jwt",
    "mfa",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "payment",
    "pin",
    "private",
    "psk",
    "pwd",
    "secret",
    "secrets",
    "signature",
    "token",
    "totp",
    "pw",
];
/// Parts that make a word secret that is written together, as in `accesstoken`.
const PARTS: [&str; 13] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "authtoken",
    "bearertoken",
    "idtoken",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "refreshtoken",
    "secretkey",
    "sessiontoken",
];
/// What a key is of, for a name that ends with `key`.
const KEYS: [&str; 21] = [
    "access",
    "account",
    "api",
    "app",
    "application",
    "auth",
    "client",
    "deploy",
    "encryption",
    "function",
    "host",
    "license",
    "master",
    "secret",
    "service",
    "shared",
    "signing",
    "ssh",
    "subscription",
    "user",
    "x",
];
/// Words that make a name harmless: what counts, limits or describes a secret is none.
const PUBLIC: [&str; 25] = [
    "budget", "budgets", "count", "counts", "enabled", "endpoint", "expires", "expiry", "field",
    "hint", "id", "kind", "length", "limit", "max", "method", "methods", "min", "mode", "name",
    "policy", "required", "scheme", "type", "usage",
];
/// Names of parameters and headers that are secret there alone.
const OF_URLS: [&str; 7] = ["access", "code", "key", "sid", "sig", "sign", "ticket"];
/// Headers that only look secret.
const PUBLIC_HEADERS: [&str; 4] = [
    "idempotency-key",
    "proxy-authenticate",
    "www-authenticate",
    "x-idempotency-key",
];
/// Calls whose arguments are secrets.
const CALLS: [&str; 12] = [
    "authenticate",
    "change_password",
    "changepassword",
    "login",
    "register",
    "reset_password",
    "resetpassword",
    "set_password",
    "setpassword",
    "sign_in",
    "signin",
    "signup",
];
/// Members of these calls that are none.
const NAMES: [&str; 6] = ["email", "nick", "user", "user_nick", "username", "uid"];

/// What a text has that may hold a secret; everything else passes without a closer look.
static MAY_HOLD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r"(?i)token|pass|pwd|secret|auth|cookie|cred|jwt|otp|mfa|key|bearer|psk|pin|priv|pw|basic |login|regist|sig|ticket|invit|payment|received|access|code=|sid=|sk-|sk_|gh[pousr]_|xox|akia|aiza|glpat|hf_|npm_|eyj|-----|://[^/\s]*@|data:[^,]{0,99},|\\u00|\x22method\x22\s*:\s*[^\x22\s]",
    )
});
/// Values that are secrets whatever they are called.
static FORMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(-----END [A-Z ]*-----)?|\b(sk|rk|pk)[-_](live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{16,}|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\b(AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{16,}|\bnpm_[A-Za-z0-9]{20,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?",
    )
});
/// A scheme of `Authorization` and what it carries.
static SCHEME: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r"(?i)\b(bearer|basic|digest|apikey)(\s+|%20)([A-Za-z0-9._~+/=-]+)"));
/// A name and its value in a text: of a URL, a form, a command line.
static PAIR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r#"([A-Za-z0-9_.%\[\]-]*[A-Za-z%][A-Za-z0-9_.%\[\]-]*)=("[^"]*"|'[^']*'|[^\s&;,#"'\\<>)]+)"#,
    )
});
/// A user and a password in a URL.
static USER: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r#"([a-zA-Z][a-zA-Z0-9+.-]*:)?//[^\s"'<>?#]*@"#));

fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Splits a name into its words, in lower case: `X-Api-Key`, `apiKey`, `api_key`.
fn words(name: &str) -> Vec<String> {
    let (mut words, mut word, mut was_lower) = (Vec::new(), String::new(), false);
    for c in name.chars() {
        let ends = !c.is_alphanumeric() || (c.is_uppercase() && was_lower);
        if ends && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns whether values of members with this name are secrets.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let words = words(name);
    let (Some(last), has) = (words.last(), |list: &[&str]| {
        words.iter().any(|word| list.contains(&word.as_str()))
    }) else {
        return false;
    };
    if PUBLIC.contains(&last.as_str())
        || words
            .first()
            .is_some_and(|it| ["max", "min", "has", "is", "public"].contains(&&**it))
    {
        return false;
    }
    let is_key = last == "key" && words.len() > 1 && (has(&KEYS) || has(&["private"]));
    let is_code = last == "code"
        && has(&[
            "invite",
            "invitation",
            "verification",
            "recovery",
            "backup",
            "auth",
            "access",
        ]);
    let is_word = WORDS.contains(&last.as_str()) && last != "private"
        || has(&[
            "password",
            "passwd",
            "secret",
            "credentials",
            "cookie",
            "passphrase",
        ]);
    let is_joined = words.iter().any(|word| {
        PARTS
            .iter()
            .any(|part| word.contains(part) && !word.ends_with("less"))
    });
    let is_first = ["token", "authorization", "signature", "jwt"]
        .iter()
        .any(|it| words.first().is_some_and(|word| word == it))
        && words.len() > 1
        && has(&["value", "raw", "string", "header", "b64", "base64", "hex"]);
    is_key || is_code || is_word || is_joined || is_first
}

/// Returns whether values of parameters of URLs with this name are secrets.
fn is_secret_parameter(name: &str) -> bool {
    let name = percent_decode_str(name).decode_utf8_lossy();
    let words = words(&name);
    is_secret(&name)
        || words
            .iter()
            .any(|word| OF_URLS.contains(&word.as_str()) || WORDS.contains(&word.as_str()))
}

fn is_secret_header(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let words = words(&name);
    !PUBLIC_HEADERS.contains(&&*name)
        && !name.starts_with("sec-websocket-")
        && !name.starts_with("access-control-")
        && (is_secret(&name)
            || words.iter().any(|word| {
                WORDS.contains(&word.as_str()) || word == "key" || word == "authentication"
            }))
}

/// Returns a frame without its secrets. What is no JSON may be half a secret and is not shown. What is borrowed is
/// the whole frame.
#[must_use]
pub fn frame(text: &str) -> Cow<'_, str> {
    // What is no JSON may be half of a frame.
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json && !may_hold(text) {
        return Cow::Borrowed(text);
    }
    let Ok(whole) = serde_json::from_str::<&RawValue>(text) else {
        return Cow::Owned(format!("(not shown, {} bytes)", text.len()));
    };
    let mut found = Found {
        base: text.as_ptr().addr(),
        places: Vec::new(),
    };
    found.value(whole.get(), Rule::Form, 0);
    let (mut shown, mut at) = (String::new(), 0);
    for (start, end, with) in &found.places {
        shown.push_str(text.get(at..*start).unwrap_or_default());
        shown.push_str(with);
        at = *end;
    }
    match at {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(shown + text.get(at..).unwrap_or_default()),
    }
}

/// Returns whether a text may hold a secret: if not, [`frame`] leaves it as it is, even if it is no JSON.
pub(crate) fn may_hold(text: &str) -> bool {
    MAY_HOLD.as_ref().is_none_or(|it| it.is_match(text))
}

/// How the scalars of a value are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// By their form.
    Form,
    /// All texts and numbers are secrets.
    All,
}

/// The secrets of a frame: where each begins and ends, and what stands in its place.
struct Found {
    base: usize,
    places: Vec<(usize, usize, String)>,
}

impl Found {
    fn hide(&mut self, raw: &str, with: String) {
        let start = raw.as_ptr().addr() - self.base;
        self.places.push((start, start + raw.len(), with));
    }

    fn value(&mut self, raw: &str, rule: Rule, depth: usize) {
        match raw.as_bytes().first() {
            _ if depth > MAX_DEPTH => self.hide(raw, format!("\"{HIDDEN}\"")),
            Some(b'{') => self.object(raw, rule, depth),
            Some(b'[') => {
                for item in serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default() {
                    self.value(item.get(), rule, depth + 1);
                }
            }
            Some(b'"') if raw.len() > 2 => match rule {
                Rule::All => self.hide(raw, format!("\"{HIDDEN}\"")),
                Rule::Form => self.text(raw),
            },
            Some(b'0'..=b'9' | b'-') if rule == Rule::All => {
                self.hide(raw, format!("\"{HIDDEN}\""));
            }
            _ => {}
        }
    }

    fn object(&mut self, raw: &str, rule: Rule, depth: usize) {
        let mut members: Vec<(Cow<'_, str>, &str)> = Vec::new();
        if each_member(raw, |name, raw| members.push((name, raw))).is_err() {
            return self.hide(raw, format!("\"{HIDDEN}\""));
        }
        let has = |name: &str| members.iter().any(|(known, _)| known == name);
        // Also where the name of the member with the call is misspelt.
        let calls = |raw: &str| {
            let call = raw.trim_matches('"').to_ascii_lowercase();
            raw.starts_with('"')
                && (CALLS.contains(&&*call) || call.contains('\\') || is_secret(&call))
        };
        let is_call = has("args")
            && (members
                .iter()
                .any(|(name, raw)| name != "callId" && name != "id" && calls(raw))
                || members
                    .iter()
                    .any(|(name, raw)| name == "method" && !raw.starts_with('"')));
        // A password that is changed stands first.
        let changes = members
            .iter()
            .any(|(_, raw)| raw.to_ascii_lowercase().contains("password"));
        let is_error = members
            .iter()
            .any(|(name, raw)| name == "type" && raw.eq_ignore_ascii_case("\"error\""));
        for (name, raw) in members {
            let is_container = raw.starts_with(['{', '[']);
            let rule = match rule {
                Rule::All if NAMES.contains(&&*name) => Rule::Form,
                Rule::All => Rule::All,
                // A text that could not be read may be any frame.
                Rule::Form if is_error && name == "received" => Rule::All,
                Rule::Form if is_call && (name == "args" || name == "kwargs") => {
                    self.arguments(raw, depth, !changes);
                    continue;
                }
                Rule::Form
                    if is_secret(&name)
                        && !(is_container
                            && words(&name).last().is_some_and(|it| it == "auth")) =>
                {
                    Rule::All
                }
                Rule::Form => Rule::Form,
            };
            self.value(raw, rule, depth + 1);
        }
    }

    /// The arguments of a call with secrets: the first of several is the name of the user.
    fn arguments(&mut self, raw: &str, depth: usize, is_named: bool) {
        let items = serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default();
        let skip = usize::from(is_named && items.len() > 1);
        match items.is_empty() {
            true => self.value(raw, Rule::All, depth + 1),
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
        let shown =
            if inner.starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(inner).is_ok() {
                frame(&text).into_owned()
            } else if inner
                .get(..5)
                .is_some_and(|it| it.eq_ignore_ascii_case("data:"))
                && inner.len() > MAX_DATA_URL
            {
                let head = inner.split(',').next().unwrap_or_default();
                format!(
                    "{}…({} bytes)",
                    rpc_core::text::beginning(head, MAX_DATA_URL),
                    inner.len()
                )
            } else {
                within(&text)
            };
        if shown != text {
            self.hide(raw, serde_json::Value::from(shown).to_string());
        }
    }
}

/// Returns a text without the secrets of the URLs, pairs and keys in it.
#[must_use]
pub fn within(text: &str) -> String {
    let mut shown = Cow::Borrowed(text);
    let mut replace = |regex: &LazyLock<Option<Regex>>,
                       with: &dyn Fn(&regex::Captures<'_>) -> String| {
        if let Some(regex) = regex.as_ref() {
            let now = regex.replace_all(&shown, with).into_owned();
            shown = Cow::Owned(now);
        }
    };
    replace(&FORMS, &|_| HIDDEN.to_owned());
    replace(&SCHEME, &|found| {
        // Words of prose are no tokens.
        let is_token = found[3].len() >= 16
            || found[3].bytes().any(|it| it.is_ascii_digit())
            || found[0].len() == text.trim().len();
        match is_token {
            true => format!("{}{}{HIDDEN}", &found[1], &found[2]),
            false => found[0].to_owned(),
        }
    });
    replace(&USER, &|found| {
        format!("{}//{HIDDEN}@", found.get(1).map_or("", |it| it.as_str()))
    });
    replace(&PAIR, &|found| match is_secret_parameter(&found[1]) {
        true => format!("{}={HIDDEN}", &found[1]),
        false => found[0].to_owned(),
    });
    shown.into_owned()
}

/// Returns the head of an HTTP message, without the empty line, and its body.
#[must_use]
pub fn split(message: &str) -> (&str, &str) {
    let ends = ["\r\n\r\n", "\n\n"].into_iter();
    let ends = ends.filter_map(|end| Some((message.find(end)?, end.len())));
    let Some((at, len)) = ends.min() else {
        return (message, "");
    };
    let body = message.get(at + len..).unwrap_or_default();
    (message.get(..at).unwrap_or_default(), body)
}

/// Returns the head of an HTTP message without the values of secret headers, the keys that subprotocols carry,
/// and the secrets of its URLs.
#[must_use]
pub fn head(head: &str) -> String {
    let mut shown = String::with_capacity(head.len());
    // Whether the last header is a secret: a line that begins with a space goes on with it.
    let mut is_hidden = false;
    for (index, line) in head.split_inclusive('\n').enumerate() {
        let text = line.trim_end_matches(['\r', '\n']);
        let goes_on = text.starts_with([' ', '\t']);
        match text.split_once(':').filter(|_| !goes_on) {
            _ if index == 0 => shown.push_str(&within(text)),
            Some((name, value)) => {
                is_hidden = is_secret_header(name);
                shown.push_str(name);
                shown.push(':');
                shown.push_str(&match is_hidden {
                    true => format!(" {HIDDEN}"),
                    false if name.trim().eq_ignore_ascii_case("sec-websocket-protocol") => {
                        let offers = value.split(',').map(subprotocol);
                        offers.collect::<Vec<_>>().join(",")
                    }
                    false => within(value),
                });
            }
            None if text.is_empty() => {}
            None if goes_on && !is_hidden => shown.push_str(&within(text)),
            // No header has a line without a name.
            None => shown.push_str(&format!(" {HIDDEN}")),
        }
        shown.push_str(line.get(text.len()..).unwrap_or_default());
    }
    shown
}

/// Returns a subprotocol without the key that it carries.
fn subprotocol(offer: &str) -> String {
    let lower = offer.to_ascii_lowercase();
    let ends = |word: &&str| Some(lower.rfind(*word)? + word.len());
    let words = [
        "bearer",
        "token",
        "auth",
        "key",
        "secret",
        "password",
        "jwt",
        "authorization",
        "basic",
        "ticket",
    ];
    let after = words.iter().filter_map(ends).max();
    let separator = after.and_then(|at| Some((at, offer.get(at..)?.chars().next()?)));
    let separator = separator.filter(|(_, c)| !c.is_ascii_alphanumeric());
    let is_random = offer.trim().len() >= 20
        && offer.bytes().any(|it| it.is_ascii_digit())
        && offer.bytes().any(|it| it.is_ascii_alphabetic())
        && !offer.contains(".v");
    match separator {
        Some((at, c)) => format!("{}{c}{HIDDEN}", offer.get(..at).unwrap_or_default()),
        None if is_random => format!("{}{HIDDEN}", if offer.starts_with(' ') { " " } else { "" }),
        None => within(offer),
    }
}
