//! [`Subject`]: what is asked, and the message when it does not answer.

use std::time::Duration;

use reqwest::Url;

use super::ask::{UNREADABLE, UNTRUSTED};
use super::client::is_loopback;
use crate::model::config::ModelConfig;
use crate::model::error::excerpt;
use crate::model::provider::Provider;
use crate::model::refusal::{Refusal, Report};
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

    /// Creates the error for a report of the provider.
    pub(super) fn refused(
        &self,
        status: Option<u16>,
        refusal: Refusal,
        says: &str,
        wait: Option<Duration>,
    ) -> ModelError {
        let mut message = self.what(status, refusal);
        message.push_str(&self.advice(refusal, wait));
        if !says.is_empty() {
            message.push_str(". ");
            message.push_str(self.config.provider.title());
            message.push_str(" says: ");
            message.push_str(says);
        }
        ModelError::Refused {
            status,
            refusal,
            message,
        }
    }

    /// Returns what has happened.
    pub(super) fn what(&self, status: Option<u16>, refusal: Refusal) -> String {
        let (name, model) = (self.config.provider.title(), &self.config.model);
        let mut what = match refusal {
            Refusal::Key if self.config.key.is_some() => format!("{name} refused the key"),
            Refusal::Key => format!("{name} requires a key"),
            Refusal::Permission => format!("{name} does not allow this"),
            Refusal::Model => format!("{name} does not have the model {model}"),
            Refusal::Interface => {
                format!("{name} serves the model {model} through another interface only")
            }
            Refusal::Address => format!("{name} is not at this address"),
            Refusal::RateLimit => format!("{name} limits the requests"),
            Refusal::Quota => format!("the quota at {name} is used up"),
            Refusal::Overloaded => format!("{name} is overloaded"),
            Refusal::Unavailable => format!("{name} has failed"),
            Refusal::TooLong => format!("the conversation is too long for the model {model}"),
            Refusal::TooLarge => format!("the request is too large for {name}"),
            Refusal::Request => format!("{name} refused the request"),
            Refusal::Broken => format!("{name} broke the answer off"),
        };
        if let Some(status) = status {
            what.push_str(&format!(" (HTTP {status})"));
        }
        what
    }

    /// Returns what to do.
    fn advice(&self, refusal: Refusal, wait: Option<Duration>) -> String {
        let variable = self.config.provider.key_variable().unwrap_or_default();
        let later = || match wait {
            Some(wait) if !wait.is_zero() => format!("; try again in {}", seconds(wait)),
            _ => "; try again later".to_owned(),
        };
        match refusal {
            Refusal::Key if self.config.key.is_some() => {
                format!(": check {variable} or {}", self.config.setting("key-file"))
            }
            Refusal::Key => format!(
                ": set {variable}, or name a file with {}",
                self.config.setting("key-file")
            ),
            Refusal::Permission => {
                format!(
                    ": check what the key may do, and {}",
                    self.config.setting("model")
                )
            }
            Refusal::Model if self.config.provider == Provider::Ollama => {
                format!(": run 'ollama pull {}'", self.config.model)
            }
            Refusal::Interface => format!(
                ", such as Responses, which is not supported: choose another with {}",
                self.config.setting("model")
            ),
            Refusal::Model | Refusal::Request => {
                format!(": check {}", self.config.setting("model"))
            }
            Refusal::Address => format!(": check {}", self.config.setting("base-url")),
            Refusal::Quota => ": check the plan and the billing there".to_owned(),
            Refusal::TooLong => {
                format!(
                    ": begin a new one, or lower {}",
                    self.config.setting("context-tokens")
                )
            }
            Refusal::TooLarge => {
                ": send fewer or smaller images, or begin a new conversation".to_owned()
            }
            Refusal::RateLimit | Refusal::Overloaded | Refusal::Unavailable => later(),
            Refusal::Broken => "; try again".to_owned(),
        }
    }

    /// Completes an error that an answer has reported.
    pub(super) fn complete(
        &self,
        error: ModelError,
        redact: impl Fn(&str) -> String,
    ) -> ModelError {
        match error {
            ModelError::Refused {
                status,
                refusal,
                message,
            } => self.refused(status, refusal, &redact(&message), None),
            ModelError::BadAnswer { message } => ModelError::BadAnswer {
                message: redact(&message),
            },
            other => other,
        }
    }

    /// Creates the error for an answer with this status and body.
    pub(super) fn status(
        &self,
        status: u16,
        body: &str,
        wait: Option<Duration>,
        redact: impl Fn(&str) -> String,
    ) -> (Refusal, ModelError) {
        let report = Report::read(body);
        let refusal = report.refusal(Some(status));
        let says = redact(&report.message);
        (refusal, self.refused(Some(status), refusal, &says, wait))
    }
}
