//! [`Subject`]: what is asked, and the message when it does not answer.

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
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The settings, with the name of the model as people may see it.
    config: ModelConfig,
    /// Whether it is on this machine.
    is_here: bool,
    /// Where it is, if people may know: an address elsewhere may be secret.
    at: String,
}

impl Subject {
    pub(super) fn new(config: &ModelConfig, model: &str, url: &Url) -> Self {
        Self {
            config: ModelConfig {
                model: excerpt(model),
                ..config.clone()
            },
            is_here: is_loopback(url),
            // A configuration by file serves others, who need not know.
            at: match is_loopback(url) && !config.in_file {
                true => format!(" at {}", url.origin().ascii_serialization()),
                false => String::new(),
            },
        }
    }

    /// Creates the error for a connection that was not made, or lost before an answer.
    pub(super) fn unreachable(&self, cause: &str, is_connect: bool) -> ModelError {
        let name = self.config.provider.title();
        let message = if is_connect {
            let at = &self.at;
            let advice = match self.config.provider {
                _ if cause == UNTRUSTED => "name an address with a trusted certificate".to_owned(),
                Provider::Ollama if self.is_here => "is 'ollama serve' running?".to_owned(),
                Provider::Vllm if self.is_here => "is 'vllm serve' running?".to_owned(),
                _ => format!("check the network and {}", self.config.setting("base-url")),
            };
            format!("{cause}: cannot connect to {name}{at}; {advice}")
        } else {
            let why = match cause {
                UNREADABLE => "does not answer in HTTP (or over 100 headers); check the address",
                _ => "closed the connection before it answered; try again",
            };
            format!("{cause}: {name} {why}")
        };
        ModelError::Unreachable { message }
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
        let (_, advice) = self.words(refusal);
        let mut message = self.what(status, refusal) + &advice;
        if let Some(wait) = wait.filter(|wait| refusal.passes() && !wait.is_zero()) {
            let max = self.config.policy.max_wait;
            let why = match wait > max {
                true => format!(" (asked again by itself only within {})", seconds(max)),
                false => String::new(),
            };
            message = message.replace("later", &format!("in {}{why}", seconds(wait)));
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
        let (name, model) = (self.config.provider.title(), &self.config.model);
        let variable = self.config.provider.key_variable().unwrap_or_default();
        let setting = |name| self.config.setting(name);
        let (what, advice) = match refusal {
            Refusal::Key if self.config.key.is_some() => (
                "refused the key",
                format!(": check {variable} or {}", setting("key-file")),
            ),
            Refusal::Key => (
                "requires a key",
                format!(
                    ": set {variable}, or name a file with {}",
                    setting("key-file")
                ),
            ),
            Refusal::Permission => (
                "does not allow this",
                format!(": check what the key may do, and {}", setting("model")),
            ),
            Refusal::Model => {
                let advice = match self.config.provider {
                    Provider::Ollama => format!(": run 'ollama pull {model}'"),
                    _ => format!(": check {}", setting("model")),
                };
                return (format!("{name} does not have the model {model}"), advice);
            }
            Refusal::Interface => (
                "serves this model through another interface only",
                format!(": choose another with {}", setting("model")),
            ),
            Refusal::Address => (
                "is not at this address",
                format!(": check {}", setting("base-url")),
            ),
            Refusal::Quota => {
                let advice = ": check the plan and the billing there".to_owned();
                return (format!("the quota at {name} is used up"), advice);
            }
            Refusal::TooLong => {
                let advice = format!(": begin a new one, or lower {}", setting("context-tokens"));
                return (
                    format!("the conversation is too long for the model {model}"),
                    advice,
                );
            }
            Refusal::TooLarge => {
                let advice =
                    ": send fewer or smaller images, or begin a new conversation".to_owned();
                return (format!("the request is too large for {name}"), advice);
            }
            Refusal::RateLimit => ("limits the requests", "; try again later".to_owned()),
            Refusal::Overloaded => ("is overloaded", "; try again later".to_owned()),
            Refusal::Unavailable => ("has failed", "; try again later".to_owned()),
            Refusal::Request => (
                "refused the request",
                format!(": check {}", setting("model")),
            ),
            Refusal::Broken => ("broke the answer off", "; try again".to_owned()),
        };
        (format!("{name} {what}"), advice)
    }
}
