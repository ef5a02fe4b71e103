//! What hides secrets in frames, heads and texts: the same rules whatever the protocol is taken for.
//!
//! A value is hidden by the name of its member, header or parameter ([`is_secret`]), by the call that it is an
//! argument of (`login`, `register`, `set_password`), or by its form: the keys of well-known services, bearer
//! tokens, users and passwords in URLs.

mod head;

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;

use percent_encoding::percent_decode_str;
use regex::Regex;
use rpc_core::json::each_member;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

pub use self::head::head;
use self::head::is_secret_header;
use crate::frame::is_one;

/// What stands in the place of a secret.
const HIDDEN: &str = "***";
/// The deepest nesting that is looked into: what is deeper is hidden.
const MAX_DEPTH: usize = 64;
/// Most names that are remembered, and the longest one.
const MAX_KNOWN: usize = 1024;
/// Longer data URLs are cut to their type.
const MAX_DATA_URL: usize = 64;

/// Words that make a name secret where they end it.
const WORDS: &str = "2fa apikey assertion auth authorization bearer contrasena contraseña cookie cookies credential \
    credentials creds csrf cvc cvv hasło jwt kennwort mfa mnemonic otp pass passcode passphrase passwd password passwords \
    passwort payment pin psk pw pwd secret secrets senha signature token totp xsrf пароль パスワード 密码 密碼";
/// Words that make a name secret where they end it, if the value looks like a key.
const WEAK: &str = "invitation invite keys private proof salt seed sessionid sig";
/// Words that make it secret wherever they stand.
const ANYWHERE: &str = "cookie credentials passphrase passwd password secret";
/// Parts of a name that is written together, or in two words, as in `accesstoken` and `passPhrase`.
const PARTS: &str = "accesskey accesstoken apikey authtoken bearertoken idtoken motdepasse passcode passphrase passwd \
    password privatekey refreshtoken secretkey sessiontoken";
/// What a key is of in one word, as in `authkey`.
const KEYS: &str = "access account admin api app auth bot client crypt deploy device encryption host license master \
    open secret service shared signing ssh subscription user";
/// What the key of a map, a table or a message is of, and one that everybody may see.
const PUBLIC_KEYS: &str = "arrow cache column dict field foreign group hot idempotency index label map message object \
    partition press primary pub public routing row short shortcut sort surrogate translation";
/// What a code is for that only one person may know.
const CODES: &str = "access auth backup factor invitation invite mfa otp pin recovery security sms totp verification";
/// What begins a name whose last word is a part of a secret or what carries it.
const CARRIED: &str = "auth authorization jwt signature token";
/// Words behind it.
const CARRIERS: &str = "b base hex header raw string value";
/// Words that make a name harmless where they end it: what counts, limits or describes a secret is not secret.
const PUBLIC: &str = "age alg algorithm at budget budgets changed count counts description enabled endpoint error \
    expires expiry failed field file format hint id kind label length lifetime limit location max message method methods min \
    mode name path placeholder policy prompt provider ref required scheme set status strength timeout ttl type updated \
    uri url usage valid version";
/// Words that make it harmless where they begin it.
const PUBLIC_STARTS: &str = "function has is max min num public requires";
/// Names of parameters that are secret in URLs alone.
const OF_URLS: &str = "access code invite key sid sig sign ticket";
/// Words of calls whose arguments are secrets.
const CALLS: &str = "authenticate login register signin signup";
/// Members of these calls that are not secret.
const NAMES: &str = "email nick user user_nick username uid";
/// Members with the name of what stands in the member `value` beside them.
const NAMING: &str = "field header key name param parameter variable";
/// What `auth` may be without being a secret.
const MODES: &str = "basic bearer jwt none oauth oauth2 open optional required strict token";

/// What a text has that may hold a secret; everything else passes without a closer look.
static MAY_HOLD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r"(?i)token|pass|pwd|secret|auth|cookie|cred|jwt|otp|mfa|key|bearer|psk|pin|pw|cv[cv]|[cx]srf|assertion|mnemonic|phrase|basic |login|regist|sig|ticket|(invit|verif|recover|backup|security|sms|factor)[a-z]*[^a-z]?code|payment|received|access|code=|sid=|[srp]k[-_]|gh[pousr]_|github_|glpat|gsk_|xox|xapp|nvapi|pypi|akia|asia|aiza|hf_|npm_|hvs\.|sg\.|ya29|xai-|tskey|whsec|eyj|invit|seed|private|proof|salt|sessionid|2fa|contrase|kennwort|senha|has[lł]o|hooks|(?:[^\x00-\x7f]|\\u[0-9a-f]{4})\x22\s*:|\d:[a-z0-9_-]{30}|-u |--user|redis-cli|\x22-u|s[uaonc][a-z2-7]{56}|/(?:verify|magic-link|reset|confirm|activate)/|-----|:[^/\s]+@|://[^/\s]*@|data:[^,]{0,99},|\\u00|\x22method\x22\s*:\s*[^\x22\s]",
    )
});
/// Values that are secrets whatever they are called.
static FORMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r"(?s)Private-Lines:.*|hooks\.slack\.com/services/[A-Za-z0-9/]+|discord(?:app)?\.com/api/webhooks/[A-Za-z0-9/_-]+|\b(?:bot)?[0-9]{8,10}:[A-Za-z0-9_-]{30,}|-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END[^-]*-----|\z)|\b(?:sk|rk|pk)[-_][A-Za-z0-9_-]{10,}|\b(?:gh[pousr]|github_pat|gsk|hf|npm|whsec)_[A-Za-z0-9_]{16,}|\b(?:glpat|xox[abdeprs]|xapp|nvapi|pypi|tskey|xai)-[A-Za-z0-9_-]{10,}|\b(?:hvs|SG|ya29)\.[A-Za-z0-9_.-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{30,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?|\bS[UAONC][A-Z2-7]{56}\b",
    )
});
/// A scheme of `Authorization` and what it carries, or a subprotocol that does.
static SCHEME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(r"(?i)\b(bearer|basic|digest|apikey|negotiate)(\s+|%20|\.)([A-Za-z0-9._~+/=-]+)")
});
/// A name and its value in a text: of a URL, a form, a header, JSON that is cut, a command line.
static PAIR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r#"(?:--([A-Za-z][A-Za-z-]*)(\s+)|([A-Za-z0-9_.%\[\]-]*[A-Za-z%][A-Za-z0-9_.%\[\]-]*)(\\*["']?(?:\s*:\s*[&']*[A-Za-z][A-Za-z0-9_<>\[\]| ?]{0,24}=|\s*:?=|\s*:)\s*))(\\*"[^"\\]*(?:\\*"|\z)|'[^']*'|[^\s=&;,#"'\\<>)}\]][^\s&;,#"'\\<>)}\]]*)"#,
    )
});
/// What follows the name of a secret in prose, a path or XML, and the user of `curl`.
static BEHIND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r#"(?i)((?:^|[\s"'`(>/,;])(?:pass(?:word|wort| ?phrase|code)|secret|token|(?:api|access|secret|private|auth|signing)[ _-]key)(?:(?:\s+(?:is|was|provided))?(?:\s*[:=]\s*|\s+)|/)['"`]?|/(?:invite|verify|magic-link|reset(?:-password)?|confirm|activate)/|(?-i:\b[A-Z][A-Z0-9_]*_(?:TOKEN|SECRET|PASSWORD|KEY))\s+)([^\s'"`<>/&?,;]{6,})|(<(?:[a-z]+[_-])*(?:password|secret|token|[a-z]*key)>)([^<]+)|(\s(?:-u|--user)\s+['"]?)([^\s:'"]+:[^\s'"]+)|(\b(?:mysql|mysqldump|mariadb)\b[^\n]*?\s-p|\bsshpass\s+-p\s*|\bredis-cli\b[^\n]*?\s-a\s+|\bname="[^"]*(?:password|secret|token)[^"]*"(?:\r?\n){2})([^\s'"]+)"#,
    )
});
/// A user and a password in front of a host.
static USER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r#"([a-zA-Z][a-zA-Z0-9+.-]*:)?//[^\s"'<>?#]*@|\b[a-zA-Z][a-zA-Z0-9._-]*:[^\s"'<>?#/@:,;]+@"#,
    )
});

fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Splits a name into its words, in lower case and without numbers: `X-Api-Key`, `apiKey`, `api_key2`.
fn words(name: &str) -> Vec<String> {
    let (mut words, mut word, mut was_lower) = (Vec::new(), String::new(), false);
    for c in name.chars().chain(['_']) {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            word.truncate(word.trim_end_matches(|c: char| c.is_ascii_digit()).len());
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric() {
            // A letter of full width is the one of ASCII.
            let narrow = match c {
                '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
                _ => c,
            };
            word.extend(narrow.to_lowercase());
        }
    }
    words
}

/// What a name says of the values of its member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Secret,
    /// They are secrets if they look like keys.
    Weak,
    Other,
}

/// Returns whether values of members with this name are secrets.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    naming(name) == Naming::Secret
}

/// Returns what a name says. Most names come again: what was said of them is remembered.
fn naming(name: &str) -> Naming {
    thread_local!(static KNOWN: RefCell<FxHashMap<String, Naming>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        if let Some(naming) = known.get(name) {
            return *naming;
        }
        let words = words(name);
        let naming = match words.last() {
            _ if are_secret(&words) => Naming::Secret,
            Some(last) if is_one(last, WEAK) => Naming::Weak,
            _ => Naming::Other,
        };
        if known.len() < MAX_KNOWN && name.len() < MAX_KNOWN {
            known.insert(name.to_owned(), naming);
        }
        naming
    })
}

/// Returns whether a name of these words says that it counts or describes something.
fn are_public(words: &[String]) -> bool {
    words.last().is_none_or(|last| is_one(last, PUBLIC))
        || words
            .first()
            .is_some_and(|first| is_one(first, PUBLIC_STARTS))
}

fn are_secret(words: &[String]) -> bool {
    let Some((last, before)) = words.split_last().filter(|_| !are_public(words)) else {
        return false;
    };
    let joined = words.concat();
    let is_of = |list: &str| before.iter().any(|word| is_one(word, list));
    let is_key = match last.strip_suffix("key") {
        Some("") => !before.is_empty() && !is_of(PUBLIC_KEYS),
        Some(of) => is_one(of, KEYS),
        None => false,
    };
    is_key
        || is_one(last, WORDS)
        || last.ends_with("token")
        || last.ends_with("secret")
        || matches!(&**last, "code" | "codes") && is_of(CODES)
        || last == "phrase" && is_of("recovery seed")
        || words.iter().any(|word| is_one(word, ANYWHERE))
        || PARTS
            .split_ascii_whitespace()
            .any(|part| joined.contains(part))
            && !joined.ends_with("less")
        || before.first().is_some_and(|first| is_one(first, CARRIED)) && is_one(last, CARRIERS)
}

/// Returns whether values of parameters with this name are secrets, in a URL or elsewhere.
fn is_secret_parameter(name: &str, is_url: bool) -> bool {
    let words = words(&percent_decode_str(name).decode_utf8_lossy());
    let is_named = |word: &String| is_one(word, OF_URLS) || is_one(word, WORDS);
    are_secret(&words) || is_url && !are_public(&words) && words.iter().any(is_named)
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
    /// Texts that look like keys are secrets, too.
    Key,
    /// All texts and numbers are secrets, but those of members that describe.
    Described,
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
                let mut flag = "";
                for item in serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default() {
                    // As in `["--token", "..."]`, `["-u", "ann:..."]` and `[["X-Api-Key", "..."]]`.
                    let is_argument = flag.starts_with("\"--") && is_secret(flag)
                        || flag == "\"-u\"" && item.get().contains(':');
                    match serde_json::from_str::<(Cow<'_, str>, &RawValue)>(item.get()) {
                        Ok((name, value)) if is_secret_header(&name) => {
                            self.value(value.get(), Rule::All, depth + 1);
                        }
                        _ if is_argument => self.value(item.get(), Rule::All, depth + 1),
                        _ => self.value(item.get(), rule, depth + 1),
                    }
                    flag = item.get();
                }
            }
            Some(b'"') if raw.len() > 2 => match rule {
                Rule::All | Rule::Described => self.hide(raw, format!("\"{HIDDEN}\"")),
                Rule::Key if looks_random(raw, 10) => self.hide(raw, format!("\"{HIDDEN}\"")),
                Rule::Form | Rule::Key => self.text(raw),
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
            let call = raw.trim_matches('"');
            raw.starts_with('"')
                && (words(call).iter().any(|word| is_one(word, CALLS))
                    || call.contains('\\')
                    || is_secret(call))
        };
        let is_call = (has("args") || has("method") && has("params"))
            && (members
                .iter()
                .any(|(name, raw)| name != "callId" && name != "id" && calls(raw))
                || members
                    .iter()
                    .any(|(name, raw)| name == "method" && !raw.starts_with('"')));
        // A password that is changed stands first.
        let changes = is_call
            && members
                .iter()
                .any(|(_, raw)| raw.to_ascii_lowercase().contains("password"));
        let is_error = members
            .iter()
            .any(|(name, raw)| name == "type" && raw.eq_ignore_ascii_case("\"error\""));
        let is_named = members
            .iter()
            .any(|(name, raw)| is_one(name, NAMING) && is_secret(raw));
        for (name, raw) in members {
            let rule = match rule {
                Rule::All | Rule::Described if is_one(&name, NAMES) => Rule::Form,
                Rule::Described if are_public(&words(&name)) => Rule::Form,
                Rule::All | Rule::Described | Rule::Key => rule,
                // A text that could not be read may be any frame.
                Rule::Form if is_error && name == "received" => Rule::All,
                Rule::Form if is_call && is_one(&name, "args kwargs params") => {
                    self.arguments(raw, depth, !changes);
                    continue;
                }
                Rule::Form if name == "value" && is_named => Rule::All,
                Rule::Form if name == "auth" && raw.starts_with(['{', '[']) => Rule::Described,
                Rule::Form => match naming(&name) {
                    Naming::Secret if !is_description(&name, raw) => Rule::All,
                    Naming::Weak => Rule::Key,
                    _ => Rule::Form,
                },
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

/// Returns whether a text of at least this length has letters and digits, and no space.
fn looks_random(text: &str, len: usize) -> bool {
    text.len() >= len
        && text.bytes().any(|it| it.is_ascii_digit())
        && text.bytes().any(|it| it.is_ascii_alphabetic())
        && !text.contains(char::is_whitespace)
}

/// Returns whether a value only names a way of authentication, or is a short number.
fn is_description(name: &str, raw: &str) -> bool {
    let words = words(name);
    match words.last().map(String::as_str) {
        Some("auth") => raw.starts_with(['{', '[']) || is_one(raw.trim_matches('"'), MODES),
        Some("pass" | "token") => raw.len() < 6 && !raw.starts_with(['"', '{', '[']),
        _ => false,
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
    let has_digit = |text: &str| text.bytes().any(|it| it.is_ascii_digit());
    replace(
        &FORMS,
        &|found| match has_digit(&found[0]) || found[0].starts_with("--") {
            true => HIDDEN.to_owned(),
            false => found[0].to_owned(),
        },
    );
    replace(&SCHEME, &|found| {
        // Words of prose are not tokens.
        let is_token =
            found[3].len() >= 16 || has_digit(&found[3]) || found[0].len() == text.trim().len();
        // A challenge has parameters in place of a credential.
        let parameters = ["realm=", "error=", "scope=", "charset="];
        let is_token = is_token && !parameters.iter().any(|it| found[3].starts_with(it));
        match is_token || found[0].to_ascii_lowercase().starts_with("bearer.") {
            true => format!("{}{}{HIDDEN}", &found[1], &found[2]),
            false => found[0].to_owned(),
        }
    });
    replace(&BEHIND, &|found| {
        let of = |one, other| found.get(one).zip(found.get(other));
        let is_option = found.get(5).or(found.get(7)).is_some();
        let (before, value) = match of(1, 2).or(of(3, 4)).or(of(5, 6)).or(of(7, 8)) {
            Some((before, value)) => (before.as_str(), value.as_str()),
            None => return found[0].to_owned(),
        };
        // What says so may be shorter.
        let says = [":", "=", " is ", " was ", "provided"];
        let is_mixed = value.bytes().any(|it| it.is_ascii_lowercase())
            && value.bytes().any(|it| it.is_ascii_uppercase());
        let least = match is_mixed {
            _ if says.iter().any(|it| before.contains(it)) => 6,
            true => 8,
            false => 12,
        };
        let is_sure = before.starts_with('<') || is_option;
        match is_sure || looks_random(value, least) && !value.contains(['(', '[']) {
            true => format!("{before}{HIDDEN}"),
            false => found[0].to_owned(),
        }
    });
    replace(&USER, &|found| match found[0].split_once("//") {
        Some((scheme, _)) => format!("{scheme}//{HIDDEN}@"),
        None if found[0].starts_with("mailto:") => found[0].to_owned(),
        None => format!("{HIDDEN}@"),
    });
    pairs(&shown)
}

/// Returns a text without the values of secret names.
fn pairs(text: &str) -> String {
    let Some(regex) = PAIR.as_ref() else {
        return HIDDEN.to_owned();
    };
    let (mut shown, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(found) = regex.captures_at(text, at) {
        let of = |one, other| {
            found
                .get(one)
                .or(found.get(other))
                .map_or("", |it| it.as_str())
        };
        let (name, between) = (of(1, 3), of(2, 4));
        let (Some(whole), Some(value)) = (found.get(0), found.get(5)) else {
            break;
        };
        let (range, value) = (value.range(), value.as_str());
        let is_url = text
            .get(..whole.start())
            .is_some_and(|it| it.ends_with(['?', '&', ';', '#']))
            || text.get(range.end..).is_some_and(|it| it.starts_with('&'));
        let quote = value
            .split(|c| !matches!(c, '\\' | '"' | '\''))
            .next()
            .unwrap_or_default();
        // Of what could be prose or code, words are not secrets.
        let is_token = value.len() > 2 * quote.len().max(1)
            && (!quote.is_empty()
                || value.bytes().any(|it| it.is_ascii_digit()) && !value.contains(['(', '[']));
        let is_secret = match between {
            "=" => is_secret_parameter(name, is_url) && value.len() > 2 * quote.len(),
            _ => is_token && is_secret(name),
        };
        let decoded = percent_decode_str(value).decode_utf8_lossy();
        let is_secret = is_secret || decoded.len() < value.len() && within(&decoded) != decoded;
        // What is no secret may begin another pair.
        let end = if is_secret {
            range.start
        } else {
            range.start + quote.len()
        };
        shown.push_str(text.get(at..end).unwrap_or_default());
        at = end;
        if is_secret {
            shown.push_str(&format!("{quote}{HIDDEN}{quote}"));
            at = range.end;
        }
    }
    shown + text.get(at..).unwrap_or_default()
}
