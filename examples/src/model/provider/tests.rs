//! Keys, addresses and names of providers.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn nothing(_: &str) -> Option<String> {
    None
}

fn key(
    config: &ProviderConfig,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ModelError> {
    let key = config.find_key(env)?;
    Ok(key.map_or_else(String::new, Secret::into_inner))
}

/// A new folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("switchboard-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("credentials")).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join("credentials").join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for provider in Provider::ALL {
        assert_eq!(provider.to_string().parse(), Ok(provider));
    }
    assert_eq!(" OpenAI ".parse(), Ok(Provider::OpenAi));
    let error = "mock".parse::<Provider>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown provider 'mock': write one of scripted, anthropic, openai"
    );
}

#[test]
fn a_key_is_looked_for_in_order() {
    let folder = Folder::new("keys");
    let config = ProviderConfig::new(Provider::Anthropic, "m");
    let env = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "from-env".to_owned());
    let blank = |_: &str| Some(" ".to_owned());
    let with_folder = config.clone().with_folder(Some(folder.0.clone()));
    let missing = "no API key for provider 'anthropic'. Set ANTHROPIC_API_KEY env var.";
    for config in [&config, &with_folder] {
        let error = key(config, &nothing).unwrap_err();
        assert_eq!(error.to_string(), missing);
    }
    folder.write("openai.key", "other");
    assert!(key(&with_folder, &nothing).is_err());
    folder.write("anthropic.key", " \n");
    assert!(key(&with_folder, &nothing).is_err());
    folder.write("anthropic.key", " from-file\r\n");
    assert_eq!(key(&with_folder, &nothing).unwrap(), "from-file");
    assert_eq!(key(&with_folder, &blank).unwrap(), "from-file");
    assert_eq!(key(&with_folder, &env).unwrap(), "from-env");
    let given = with_folder.clone().with_key(Some(Secret::from("given")));
    assert_eq!(key(&given, &env).unwrap(), "from-env");
    assert_eq!(key(&given, &nothing).unwrap(), "given");
    let empty = with_folder.with_key(Some(Secret::default()));
    assert_eq!(key(&empty, &env).unwrap(), "from-env");
    assert!(!format!("{given:?}").contains("given"));
    let openai = ProviderConfig::new(Provider::OpenAi, "m");
    assert_eq!(
        key(&openai, &env).unwrap_err().to_string(),
        "no API key for provider 'openai'. Set OPENAI_API_KEY env var."
    );
}

#[test]
fn a_key_file_that_cannot_be_read_is_an_error_without_its_path() {
    let folder = Folder::new("bad-keys");
    std::fs::create_dir(folder.0.join("credentials/openai.key")).unwrap();
    let config = ProviderConfig::new(Provider::OpenAi, "m").with_folder(Some(folder.0.clone()));
    let error = key(&config, &nothing).unwrap_err().to_string();
    assert!(
        error.contains("credentials/openai.key cannot be read"),
        "{error}"
    );
    assert!(!error.contains("switchboard-bad-keys"), "{error}");
}

#[test]
fn the_scripted_model_needs_nothing() {
    let config = ProviderConfig::new(Provider::default(), "");
    assert_eq!(key(&config, &nothing).unwrap(), "");
    let model = build(&config, &nothing, &HttpClient::default()).unwrap();
    assert!(format!("{model:?}").contains("commands: true"));
}

#[cfg(feature = "llm")]
#[tokio::test]
async fn a_provider_is_asked_where_the_environment_says() {
    use crate::model::http::testing::{Does, OK, Provider as Fake, ask, policy};

    const ANTHROPIC: &str = concat!(
        "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    );
    const OPENAI: &str =
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let http = HttpClient::default();
    for (provider, variable, path, answer) in [
        (
            Provider::Anthropic,
            "EXOCLAW_ANTHROPIC_ENDPOINT",
            "/v1/messages",
            ANTHROPIC,
        ),
        (
            Provider::OpenAi,
            "EXOCLAW_OPENAI_ENDPOINT",
            "/v1/chat/completions",
            OPENAI,
        ),
    ] {
        let fake = Fake::start(Vec::leak(vec![Does::Answers(OK, answer, 9)])).await;
        let url = format!("{}{path}", fake.url);
        let env = |name: &str| (name == variable).then(|| url.clone());
        let config = ProviderConfig::new(provider, "toy")
            .with_key(Some(Secret::from("sk-hunter2")))
            .with_max_tokens(5)
            .with_policy(policy());
        let model = build(&config, &env, &http).unwrap();
        let (answer, outcome) = ask(&*model).await;
        assert_eq!((answer.text(), outcome), ("hi", Ok(())));
        let requests = fake.requests();
        assert!(requests[0].starts_with(&format!("POST {path} HTTP/1.1")));
        assert!(requests[0].contains("sk-hunter2"));
        assert!(requests[0].contains("\"max_tokens\":5"));
        assert_eq!(
            requests[0].contains("include_usage"),
            provider == Provider::OpenAi
        );
    }
}

#[cfg(feature = "llm")]
#[test]
fn a_model_without_a_key_or_with_a_bad_address_is_not_made() {
    let http = HttpClient::default();
    let config = ProviderConfig::new(Provider::OpenAi, "toy");
    let error = build(&config, &nothing, &http).unwrap_err();
    assert!(matches!(error, ModelError::NoKey { .. }));
    let config = config.with_key(Some(Secret::from("k")));
    let error = build(&config, &|_| Some("hunter2".to_owned()), &http).unwrap_err();
    assert!(matches!(error, ModelError::Setup { .. }));
    assert!(!error.to_string().contains("hunter2"));
    assert!(build(&config, &nothing, &http).is_ok());
}
