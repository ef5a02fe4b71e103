//! [`head`]: the head of an HTTP message, without the secrets of its headers and subprotocols.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    HIDDEN, PUBLIC_KEYS, WORDS, are_public, are_secret, is_secret, looks_random, regex, within,
    words,
};
use crate::frame::is_one;

/// Returns the head of an HTTP message without the values of secret headers, the keys that subprotocols carry,
/// and the secrets of its URLs.
#[must_use]
pub fn head(head: &str) -> String {
    let mut shown = String::with_capacity(head.len());
    // How the last header is shown: a line that begins with a space goes on with it.
    let mut show: fn(&str) -> String = hidden;
    for (index, line) in head.split_inclusive('\n').enumerate() {
        let text = line.trim_end_matches(['\r', '\n']);
        let goes_on = text.starts_with([' ', '\t']);
        match text.split_once(':').filter(|_| !goes_on) {
            _ if index == 0 => shown.push_str(&within(text)),
            Some((name, value)) => {
                show = match is_secret_header(name) {
                    true => hidden,
                    false if name.trim().eq_ignore_ascii_case("sec-websocket-protocol") => {
                        subprotocols
                    }
                    false => within,
                };
                shown.push_str(name);
                shown.push(':');
                shown.push_str(&show(value));
            }
            None if text.is_empty() => {}
            None if goes_on => shown.push_str(&show(text)),
            // No header has a line without a name.
            None => shown.push_str(&hidden(text)),
        }
        shown.push_str(line.get(text.len()..).unwrap_or_default());
    }
    shown
}

fn hidden(_: &str) -> String {
    format!(" {HIDDEN}")
}

/// Returns subprotocols without the keys that they carry, also behind the name of one.
fn subprotocols(offers: &str) -> String {
    let mut before = "";
    let offers = offers.split(',').map(|offer| {
        let shown = match is_secret(before) && !is_version(offer) {
            true => hidden(offer),
            false => subprotocol(offer),
        };
        // It carries its key itself, and names none.
        before = match shown.to_ascii_lowercase().contains("bearer.") {
            true => "",
            false => offer.trim(),
        };
        shown
    });
    offers.collect::<Vec<_>>().join(",")
}

/// Returns whether a subprotocol ends in its version, as `acolyte.v1`.
fn is_version(offer: &str) -> bool {
    let version = offer.trim().rsplit_once(".v");
    version.is_some_and(|(_, version)| version.bytes().all(|it| it.is_ascii_digit() || it == b'.'))
}

/// Returns a subprotocol without the key that it carries: all behind the first name of one.
fn subprotocol(offer: &str) -> String {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        regex(
            r"(?i)^.*?(?:bearer|token|auth|key|secret|password|jwt|authorization|basic|ticket)[^a-z0-9]",
        )
    });
    match NAME.as_ref().and_then(|it| it.find(offer)) {
        Some(name) => format!("{}{HIDDEN}", name.as_str()),
        None if looks_random(offer.trim(), 20) && !is_version(offer) => hidden(offer),
        None => within(offer),
    }
}

pub(super) fn is_secret_header(name: &str) -> bool {
    let words = words(name);
    let name = name.trim().to_ascii_lowercase();
    let has = |list: &str| words.iter().any(|word| is_one(word, list));
    !name.starts_with("sec-websocket-")
        && !name.starts_with("access-control-")
        && !are_public(&words)
        && (are_secret(&words)
            || has(WORDS)
            || has("authentication")
            || has("key") && !has(PUBLIC_KEYS))
}
