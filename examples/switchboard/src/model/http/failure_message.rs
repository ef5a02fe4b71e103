//! [`refused`] and [`unreachable`]: the messages for people when a model does not answer.

use std::time::Duration;

use reqwest::Url;

use super::ask::UNTRUSTED;
use super::client::is_loopback;
use crate::cli::variable;
use crate::model::config::ModelConfig;
use crate::model::error::excerpt;
use crate::model::provider::Provider;
use crate::model::refusal::Refusal;
use crate::model::{ModelError, seconds};

/// Creates the error for a connection that was not made, or lost before an answer.
pub(super) fn unreachable(
    config: &ModelConfig,
    url: &Url,
    cause: &str,
    is_connect: bool,
) -> ModelError {
    let is_here = is_loopback(url);
    let name = config.provider.title();
    // An address elsewhere may be secret. A configuration by file serves others, who need not know any.
    let at = match is_here && !config.in_file {
        true => format!(" at {}", url.origin().ascii_serialization()),
        false => String::new(),
    };
    let advice = match config.provider {
        _ if cause == UNTRUSTED => "name an address with a trusted certificate".to_owned(),
        Provider::Ollama | Provider::Vllm if is_here => {
            format!("is '{} serve' running?", config.provider)
        }
        _ => {
            let proxy = proxy_setting(url, |name| variable(name).is_some());
            let proxy = proxy.map_or(String::new(), |name| format!(", {name}"));
            format!(
                "check the network{proxy} and {}",
                config.setting("base-url")
            )
        }
    };
    let what = match is_connect {
        true => format!("cannot connect to {name}{at}; {advice}"),
        false => format!(
            "{name} closed the connection before it answered; try again, or check the address"
        ),
    };
    ModelError::Unreachable {
        message: format!("{cause}: {what}"),
    }
}

/// Returns the variable that sends requests to an address through a proxy, if one of them `is_set`.
fn proxy_setting(url: &Url, is_set: impl Fn(&str) -> bool) -> Option<String> {
    let names = [url.scheme(), "all"].map(|of| format!("{of}_proxy"));
    let mut names = names.into_iter().flat_map(|it| [it.to_uppercase(), it]);
    names.find(|name| !is_loopback(url) && is_set(name))
}

/// Returns what has happened, and the error with it, what to do, and the provider's own words without secrets; `wait`
/// is how long it asks to wait.
pub(super) fn refused(
    config: &ModelConfig,
    model: &str,
    status: Option<u16>,
    refusal: Refusal,
    says: &str,
    wait: Option<Duration>,
) -> (String, ModelError) {
    let name = config.provider.title();
    let mut text = words(refusal).to_owned();
    for setting in ["key-file", "model", "base-url", "context-tokens"] {
        text = text.replace(&format!("--{setting}"), &config.setting(setting));
    }
    let text = text.replace("VARIABLE", &config.provider.key_variable());
    let text = text.replace("NAME", name);
    let text = text.replace("MODEL", &excerpt(model));
    let (what, advice) = text.split_once('|').unwrap_or((&text, ""));
    let status_text = status.map(|status| format!(" (HTTP {status})"));
    let reason = what.to_owned() + &status_text.unwrap_or_default();
    let mut message = format!("{reason}{advice}");
    let max = config.policy.max_wait;
    if let Some(wait) = wait.filter(|wait| refusal.passes() && !wait.is_zero()) {
        message = message.replace("later", &format!("in {}", seconds(wait)));
        if wait > max {
            message += &format!(" (asked again by itself only within {})", seconds(max));
        }
    }
    if !says.is_empty() {
        message += &format!(". {name} says: {says}");
    }
    let error = ModelError::Refused {
        status,
        refusal,
        message,
    };
    (reason, error)
}

/// What has happened, and what to do.
const fn words(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Key => "NAME refused the key|: check VARIABLE or --key-file",
        Refusal::Permission => "NAME does not allow this|: check what the key may do, and --model",
        Refusal::Model => "NAME does not have the model MODEL|: check --model",
        Refusal::Address => "NAME is not at this address|: check --base-url",
        Refusal::RateLimit => "NAME limits the requests|; try again later",
        Refusal::Quota => "the quota at NAME is used up|: check the plan and the billing there",
        Refusal::Overloaded => "NAME is overloaded|; try again later",
        Refusal::Unavailable => "NAME has failed|; try again later",
        Refusal::TooLong => {
            "the conversation is too long for the model MODEL|: begin a new one, or lower --context-tokens"
        }
        Refusal::Request => "NAME refused the request|: check --model",
        Refusal::Broken => "NAME broke the answer off|; try again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_on_the_way_is_named_by_its_variable() {
        for (url, set, expected) in [
            ("https://h/", "HTTPS_PROXY", true),
            ("https://h/", "HTTP_PROXY", false),
            ("http://h/", "http_proxy", true),
            ("http://h/", "ALL_PROXY", true),
            ("http://127.0.0.1/", "HTTP_PROXY", false),
        ] {
            let named = proxy_setting(&url.parse().unwrap(), |name| name == set);
            assert_eq!(named.is_some(), expected, "{url} {set}");
        }
    }
}
