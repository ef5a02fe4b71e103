//! [`Subject`]: the model that is asked, and the messages for people when it does not answer.

use std::time::Duration;

use reqwest::Url;

use super::ask::{UNREADABLE, UNTRUSTED};
use super::client::is_loopback;
use crate::model::config::ModelConfig;
use crate::model::error::excerpt;
use crate::model::provider::Provider;
use crate::model::refusal::Refusal;
use crate::model::{ModelError, seconds};

/// What is asked.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) config: &'a ModelConfig,
    /// The provider's name of the model.
    pub(super) model: &'a str,
    pub(super) url: &'a Url,
}

impl Subject<'_> {
    /// Creates the error for a connection that was not made, or lost before an answer.
    pub(super) fn unreachable(&self, cause: &str, is_connect: bool) -> ModelError {
        let (config, is_here) = (self.config, is_loopback(self.url));
        let name = config.provider.title();
        // An address elsewhere may be secret. A configuration by file serves others, who need not know any.
        let at = match is_here && !config.in_file {
            true => format!(" at {}", self.url.origin().ascii_serialization()),
            false => String::new(),
        };
        let advice = match config.provider {
            _ if cause == UNTRUSTED => "name an address with a trusted certificate".to_owned(),
            Provider::Ollama if is_here => "is 'ollama serve' running?".to_owned(),
            Provider::Vllm if is_here => "is 'vllm serve' running?".to_owned(),
            _ => format!("check the network and {}", config.setting("base-url")),
        };
        let what = match cause {
            _ if is_connect => format!("cannot connect to {name}{at}; {advice}"),
            UNREADABLE => {
                format!("{name} does not answer in HTTP (or over 100 headers); check the address")
            }
            _ => format!("{name} closed the connection before it answered; try again"),
        };
        ModelError::Unreachable {
            message: format!("{cause}: {what}"),
        }
    }

    /// Creates the error for a report of the provider: the reason, what to do, and its own words without secrets.
    /// `wait` is how long it asks to wait.
    pub(super) fn refused(
        &self,
        status: Option<u16>,
        refusal: Refusal,
        says: &str,
        wait: Option<Duration>,
    ) -> ModelError {
        let mut message = self.what(status, refusal) + &self.words(refusal).1;
        let max = self.config.policy.max_wait;
        if let Some(wait) = wait.filter(|wait| refusal.passes() && !wait.is_zero()) {
            message = message.replace("later", &format!("in {}", seconds(wait)));
            if wait > max {
                message += &format!(" (asked again by itself only within {})", seconds(max));
            }
        }
        if !says.is_empty() {
            message += &format!(". {} says: {says}", self.config.provider.title());
        }
        ModelError::Refused {
            status,
            refusal,
            message,
        }
    }

    /// Returns what has happened.
    pub(super) fn what(&self, status: Option<u16>, refusal: Refusal) -> String {
        let status = status.map(|status| format!(" (HTTP {status})"));
        self.words(refusal).0 + &status.unwrap_or_default()
    }

    /// Returns what has happened, and what to do.
    fn words(&self, refusal: Refusal) -> (String, String) {
        let config = self.config;
        let is_ollama = config.provider == Provider::Ollama;
        let mut text = words(refusal, config.key.is_some(), is_ollama).to_owned();
        for setting in ["key-file", "model", "base-url", "context-tokens"] {
            text = text.replace(&format!("--{setting}"), &config.setting(setting));
        }
        let variable = config.provider.key_variable().unwrap_or_default();
        text = text.replace("VARIABLE", variable);
        text = text.replace("NAME", config.provider.title());
        text = text.replace("MODEL", &excerpt(self.model));
        let (what, advice) = text.split_once('|').unwrap_or((&text, ""));
        (what.to_owned(), advice.to_owned())
    }
}

/// What has happened, and what to do.
const fn words(refusal: Refusal, has_key: bool, is_ollama: bool) -> &'static str {
    match refusal {
        Refusal::Key if has_key => "NAME refused the key|: check VARIABLE or --key-file",
        Refusal::Key => "NAME requires a key|: set VARIABLE, or name a file with --key-file",
        Refusal::Permission => "NAME does not allow this|: check what the key may do, and --model",
        Refusal::Model if is_ollama => {
            "NAME does not have the model MODEL|: run 'ollama pull MODEL'"
        }
        Refusal::Model => "NAME does not have the model MODEL|: check --model",
        Refusal::Interface => {
            "NAME serves this model through another interface only|: choose another with --model"
        }
        Refusal::Address => "NAME is not at this address|: check --base-url",
        Refusal::RateLimit => "NAME limits the requests|; try again later",
        Refusal::Quota => "the quota at NAME is used up|: check the plan and the billing there",
        Refusal::Overloaded => "NAME is overloaded|; try again later",
        Refusal::Unavailable => "NAME has failed|; try again later",
        Refusal::TooLong => {
            "the conversation is too long for the model MODEL|: begin a new one, or lower --context-tokens"
        }
        Refusal::TooLarge => {
            "the request is too large for NAME|: send fewer or smaller images, or begin a new conversation"
        }
        Refusal::Request => "NAME refused the request|: check --model",
        Refusal::Broken => "NAME broke the answer off|; try again",
    }
}
