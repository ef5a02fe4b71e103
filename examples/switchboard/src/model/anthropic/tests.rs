//! Anthropic's interface against a provider on this machine that misbehaves.
#![allow(clippy::unwrap_used, reason = "tests")]

use rpc_core::Secret;

use crate::model::config::ModelConfig;
use crate::model::http::HttpModel;
use crate::model::http::tests::testing::{Does, OK, Provider, ask, policy};
use crate::model::provider::Provider as Kind;
use crate::model::{Finish, ModelError};

const HELLO: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":4,\"output_tokens\":1}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"grüß dich\"}}\n\n",
);
const WHOLE: &str = concat!(
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"grüß dich\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn model(provider: &Provider) -> HttpModel {
    let config = ModelConfig::new(Kind::Anthropic, "toy")
        .with_base_url(&provider.url)
        .with_key(Some(Secret::from(" sk-hunter2\n")))
        .with_max_tokens(7)
        .with_policy(policy());
    HttpModel::new(config).unwrap()
}

#[tokio::test]
async fn an_answer_comes_in_any_chunks() {
    for size in [1, 3, 10_000] {
        let behaviour = Vec::leak(vec![Does::Answers(OK, WHOLE, size)]);
        let provider = Provider::start(behaviour).await;
        let (answer, outcome) = ask(&model(&provider)).await;
        assert_eq!((answer.text(), outcome), ("grüß dich", Ok(())), "{size}");
        assert_eq!(answer.finish(), Some(&Finish::Stop));
        assert_eq!(answer.usage().map(|usage| usage.completion), Some(3));
    }
}

#[tokio::test]
async fn the_request_has_the_members_of_the_interface() {
    let provider = Provider::start(&[Does::Answers(OK, WHOLE, 100)]).await;
    let model = model(&provider);
    ask(&model).await.1.unwrap();
    assert!(!format!("{model:?}").contains("hunter2"));
    let requests = provider.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/messages HTTP/1.1"), "{head}");
    for header in [
        "x-api-key: sk-hunter2",
        "anthropic-version: 2023-06-01",
        "content-type: application/json",
    ] {
        assert!(head.lines().any(|line| line == header), "{head}");
    }
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let expected = serde_json::json!({
        "model": "toy", "max_tokens": 7, "stream": true,
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}},
        ]}],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_cut_and_its_usage_counts() {
    for behaviour in [&[Does::Breaks(HELLO)][..], &[Does::Answers(OK, HELLO, 100)]] {
        let provider = Provider::start(behaviour).await;
        let (answer, outcome) = ask(&model(&provider)).await;
        assert_eq!(
            (answer.text(), outcome),
            ("grüß dich", Err(ModelError::Cut))
        );
        assert_eq!(answer.usage().map(|usage| usage.prompt), Some(4));
        assert_eq!(provider.requests().len(), 1);
    }
}

#[tokio::test]
async fn an_overloaded_provider_is_retried_until_it_begins() {
    const OVERLOADED: &str = "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"sk-hunter2: busy\"}}";
    let behaviour = &[
        Does::Answers("529 Overloaded", OVERLOADED, 10),
        Does::Answers(OK, WHOLE, 50),
    ];
    let provider = Provider::start(behaviour).await;
    let (answer, outcome) = ask(&model(&provider)).await;
    assert_eq!((answer.text(), outcome), ("grüß dich", Ok(())));
    let stream = String::leak(format!("{HELLO}event: error\ndata: {OVERLOADED}\n\n"));
    let behaviour = Vec::leak(vec![
        Does::Answers(OK, stream, 20),
        Does::Answers(OK, WHOLE, 50),
    ]);
    let provider = Provider::start(behaviour).await;
    let (answer, outcome) = ask(&model(&provider)).await;
    assert_eq!(answer.text(), "grüß dich");
    let error = outcome.unwrap_err().to_string();
    let expected = "Anthropic is overloaded; try again later. Anthropic says: ***: busy";
    assert_eq!(error, expected);
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_reported_as_clients_see_it() {
    const REFUSED: &str = "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}";
    let provider = Provider::start(&[Does::Answers("401 Unauthorized", REFUSED, 10)]).await;
    let (_, outcome) = ask(&model(&provider)).await;
    let text = outcome.unwrap_err().to_string();
    let expected = "Anthropic refused the key (HTTP 401): check ANTHROPIC_API_KEY or --key-file. \
                    Anthropic says: invalid x-api-key";
    assert_eq!(text, expected);
}

#[test]
fn a_bad_address_or_key_is_refused_at_once_and_not_repeated() {
    for url in ["", "hunter2", "ftp://hunter2", "http://", "/v1/messages"] {
        let config = ModelConfig::new(Kind::Anthropic, "toy").with_base_url(url);
        let error = HttpModel::new(config).unwrap_err();
        assert!(matches!(error, ModelError::Setup { .. }), "{url}");
        assert!(!error.to_string().contains("hunter2"));
    }
    let config =
        ModelConfig::new(Kind::Anthropic, "toy").with_key(Some(Secret::from("hunter2\n\nx")));
    let error = HttpModel::new(config.clone()).unwrap_err();
    assert!(!format!("{error} {error:?} {config:?}").contains("hunter2"));
}
