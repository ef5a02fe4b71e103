//! [`Auth`]: the headers with which a provider is asked, and what must not be revealed.

use reqwest::Url;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use rpc_core::Secret;

use crate::cli;
use crate::model::config::ModelConfig;
use crate::model::provider::Provider;
use crate::model::{ModelError, anthropic};

/// The headers, and the secrets among them.
#[derive(Clone, Debug)]
pub(super) struct Auth {
    pub(super) headers: HeaderMap,
    private: Vec<Secret>,
}

impl Auth {
    /// Creates the headers of a provider with the configured key, and reads those in files.
    pub(super) fn new(config: &ModelConfig, url: &Url) -> Result<Self, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = "text/event-stream, application/x-ndjson, application/json";
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let is_anthropic = config.provider == Provider::Anthropic;
        if is_anthropic {
            let version = HeaderValue::from_static(anthropic::VERSION);
            headers.insert("anthropic-version", version);
        }
        // The longest first: an address may hold the others.
        let mut private = vec![
            Secret::from(url.as_str()),
            Secret::from(url.origin().ascii_serialization()),
        ];
        if let Some(key) = &config.key {
            let key = key.expose().trim();
            match is_anthropic {
                true => headers.insert("x-api-key", sensitive(key)?),
                false => headers.insert(AUTHORIZATION, sensitive(&format!("Bearer {key}"))?),
            };
            private.push(key.into());
        }
        let own = cli::headers(&config.setting("model-header"), &config.headers);
        for (name, value) in own.map_err(ModelError::setup)? {
            let name = HeaderName::try_from(name).map_err(ModelError::setup)?;
            headers.insert(name, sensitive(value.expose())?);
            private.push(value);
        }
        private.retain(|text| !text.expose().is_empty());
        Ok(Self { headers, private })
    }

    /// Returns a text without secrets.
    pub(super) fn redact(&self, text: &str) -> String {
        redact(&self.private, text)
    }
}

/// Removes secrets from a text: providers repeat an unknown key, and proxies the address. A short one is none: it may
/// be a part of any message.
fn redact(private: &[Secret], text: &str) -> String {
    let private = private
        .iter()
        .map(Secret::expose)
        .filter(|it| it.len() >= 8);
    private.fold(text.to_owned(), |text, secret| {
        text.replace(secret.as_str(), "***")
    })
}

/// Creates a header with a secret.
fn sensitive(value: &str) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| ModelError::setup("the key holds characters that no key has"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        let private = ["http://h/x", "http://h", "sk-hünter2"].map(Secret::from);
        for (text, shown) in [
            ("nothing", "nothing"),
            ("at http://h/x for sk-hünter2", "at *** for ***"),
            ("for sk-h", "for sk-h"),
            ("(sk-hünter2)", "(***)"),
            ("at http://h:8080", "at ***:8080"),
        ] {
            assert_eq!(redact(&private, text), shown);
        }
    }

    #[test]
    fn a_short_key_leaves_messages_whole() {
        let private = ["t", "k", "sk-1234"].map(Secret::from);
        for text in ["too many tokens: t", "sk-1234 is no key", "a task"] {
            assert_eq!(redact(&private, text), text);
        }
    }
}
