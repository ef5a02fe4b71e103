//! [`naming`]: what a name says of the values behind it.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use crate::frame::is_one;

/// Most names that are remembered, and the longest one.
const MAX_KNOWN: usize = 1024;

/// What is secret, as the last word of a name; the long ones also end words that are written together.
pub(super) const SECRETS: &str = "password passwort passwd passphrase passcode pass pwd pw psk pin otp totp mfa 2fa cvv cvc secret \
    credential creds token jwt bearer authorization cookie csrf xsrf signature assertion mnemonic \
    verifier payment";
/// What makes the key, the code or the phrase of something a secret.
const QUALIFIERS: &str = "2fa access account admin api app auth backup bot client deploy device encryption factor host \
    invitation invite license master otp private recovery secret security seed service shared signing sms ssh \
    subscription totp user verification";
/// What carries a secret in its name.
const CARRIERS: &str = "value header string raw base base64 hex plain text data pem confirmation";
/// Names of what may be a secret: in URLs it is, elsewhere if it looks so.
pub(super) const WEAK: &str =
    "key keys code sid sig sign salt seed proof ticket invite invitation private access";
/// Names whose values anybody may see, whatever they look like.
const PUBLIC: &str = "name username user nick email id ids uid uuid hash digest checksum address from to cursor etag nonce commit sha version model";
/// Words that begin the name of what is true or false.
const ASKS: &str = "has is needs requires";
/// Calls whose arguments are secrets.
pub(super) const LOGINS: &str = "login register signin signup authenticate";

/// What a name says of the values behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// They are secrets.
    Secret,
    /// They are if they have letters and digits, at least so many.
    Mixed(usize),
    /// They are in URLs, and elsewhere if they have ten letters and digits.
    Weak,
    /// They are ids, addresses or hashes.
    Public,
    Other,
}

/// Splits a name into its words, in lower case and without numbers behind them: `X-Api-Key`, `apiKey`, `api_key2`.
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

/// Returns whether values of members with this name are secrets.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    naming(name) == Naming::Secret
}

/// Returns whether a call of this name has secrets as its arguments.
pub(super) fn is_login(name: &str) -> bool {
    name.contains('\\') || is_secret(name) || words(name).iter().any(|word| is_one(word, LOGINS))
}

/// Returns what a name says. Most names come again: what was said of them is remembered.
pub(super) fn naming(name: &str) -> Naming {
    thread_local!(static KNOWN: RefCell<FxHashMap<String, Naming>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        if let Some(naming) = known.get(name) {
            return *naming;
        }
        let naming = judge(&words(name));
        if known.len() < MAX_KNOWN && name.len() < MAX_KNOWN {
            known.insert(name.to_owned(), naming);
        }
        naming
    })
}

fn is_secret_word(word: &str) -> bool {
    // Tokens are also what models count.
    let one = word.strip_suffix('s').filter(|it| *it != "token");
    let mut secrets = SECRETS.split_ascii_whitespace();
    secrets.any(|it| word == it || one == Some(it) || it.len() > 4 && word.ends_with(it))
}

fn judge(words: &[String]) -> Naming {
    let Some((last, before)) = words.split_last() else {
        return Naming::Other;
    };
    let qualifies = |word: &str| is_one(word, QUALIFIERS);
    let is_qualified = before.iter().any(|word| qualifies(word));
    // A passphrase and a passcode are also written in two words, and a key of something together.
    let is_pass = before
        .last()
        .is_some_and(|word| word == "pass" || word == "de");
    let joined = ["key", "keys"]
        .iter()
        .find_map(|key| last.strip_suffix(key));
    match &**last {
        _ if words.first().is_some_and(|first| is_one(first, ASKS)) => Naming::Other,
        "auth" => Naming::Mixed(7),
        "word" | "phrase" | "passe" if is_pass || is_qualified => Naming::Secret,
        "key" | "keys" | "code" | "codes" | "phrase" if is_qualified => Naming::Secret,
        "key" | "keys" if before.last().is_some_and(|it| it == "public") => Naming::Public,
        _ if is_secret_word(last) => Naming::Secret,
        _ if joined.is_some_and(qualifies) => Naming::Secret,
        _ if is_one(last, CARRIERS) && !before.is_empty() => match judge(before) {
            Naming::Public => Naming::Other,
            Naming::Mixed(_) => Naming::Secret,
            naming => naming,
        },
        _ if is_one(last, WEAK) => Naming::Weak,
        _ if is_one(last, PUBLIC) => Naming::Public,
        // What is not written in ASCII is not understood here.
        _ if !last.is_ascii() => Naming::Mixed(6),
        _ => Naming::Other,
    }
}
