//! OpenAI's interface against a provider on this machine that misbehaves.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use futures_util::StreamExt as _;
use rpc_core::Secret;
use snek_proto::llm::chat::{ChatMessage, ToolCall};
use snek_proto::llm::tool::ToolDefinition;

use crate::model::config::ModelConfig;
use crate::model::http::HttpModel;
use crate::model::http::tests::testing::{Does, OK, Provider, ask, policy};
use crate::model::provider::Provider as Kind;
use crate::model::{ChatModel as _, ChatRequest, Finish, ModelError};

const HELLO: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"content\":\"grüß \"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"dich\"}}]}\n\n",
);

fn http_model(config: ModelConfig) -> Result<HttpModel, ModelError> {
    HttpModel::new(config)
}

impl Provider {
    fn config(&self) -> ModelConfig {
        ModelConfig::new(Kind::OpenAi, "toy")
            .with_base_url(&self.url)
            .with_key(Some(Secret::from("sk-hunter2")))
            .with_policy(policy())
    }

    fn model(&self) -> HttpModel {
        http_model(self.config()).unwrap()
    }
}

async fn told(behaviour: &'static [Does]) -> (String, Result<(), ModelError>, usize) {
    let provider = Provider::start(behaviour).await;
    let (answer, outcome) = ask(&provider.model()).await;
    (answer.text().to_owned(), outcome, provider.requests().len())
}

const WHOLE: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"content\":\"grüß \"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"dich\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"echo\",\"arguments\":\"{\\\"a\\\": \\\"ß\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: [DONE]\n\n",
);

#[tokio::test]
async fn an_answer_comes_in_any_chunks() {
    for size in [1, 2, 7, 10_000] {
        let does = vec![Does::Answers(OK, WHOLE, size)];
        let provider = Provider::start(Vec::leak(does)).await;
        let (answer, outcome) = ask(&provider.model()).await;
        assert_eq!((answer.text(), outcome), ("grüß dich", Ok(())), "{size}");
        assert_eq!(answer.finish(), Some(&Finish::ToolCalls));
        let calls = answer.into_message().tool_calls;
        assert_eq!(calls[0].arguments, "{\"a\": \"ß\"}");
    }
}

#[tokio::test]
async fn the_request_has_the_members_of_the_interface() {
    let provider = Provider::start(&[Does::Answers(OK, WHOLE, 100)]).await;
    ask(&provider.model()).await.1.unwrap();
    let requests = provider.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /v1/chat/completions HTTP/1.1"),
        "{head}"
    );
    assert!(head.contains("authorization: Bearer sk-hunter2"), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let expected = serde_json::json!({
        "model": "toy", "max_tokens": 4096, "stream": true,
        "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "hello"}],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn retries_a_temporary_refusal() {
    const BUSY: &str = "429 Too Many Requests\r\nretry-after: 0";
    let (text, outcome, requests) = told(&[
        Does::Answers(BUSY, "{\"error\":{\"message\":\"slow down\"}}", 10),
        Does::Answers("529 Overloaded", "", 10),
        Does::Answers(OK, WHOLE, 50),
    ])
    .await;
    assert_eq!((text.as_str(), outcome, requests), ("grüß dich", Ok(()), 3));
}

#[tokio::test]
async fn three_failures_are_enough() {
    const BROKEN: Does = Does::Answers(
        "503 Service Unavailable",
        "{\"error\":{\"message\":\"sk-hunter2 broke us\"}}",
        10,
    );
    let (_, outcome, requests) = told(&[BROKEN; 9]).await;
    let text = "OpenAI has failed (HTTP 503); try again later. OpenAI says: *** broke us";
    assert_eq!(
        (outcome.unwrap_err().to_string().as_str(), requests),
        (text, 3)
    );
}

#[tokio::test]
async fn does_not_repeat_a_lost_request() {
    // It may have been handled, and charged.
    let (_, outcome, requests) = told(&[]).await;
    let text = "connection lost: OpenAI closed the connection before it answered; try again, or check \
                the address";
    assert_eq!(outcome.unwrap_err().to_string(), text);
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn does_not_retry_a_lasting_refusal() {
    for (behaviour, expected) in [
        (
            &[Does::Answers(
                "401 Unauthorized",
                "{\"error\":\"bad key\"}",
                9,
            )],
            "OpenAI refused the key (HTTP 401): check OPENAI_API_KEY or --key-file. OpenAI says: bad key",
        ),
        (
            &[Does::Answers(
                "429 Too Many Requests",
                "{\"error\":{\"message\":\"pay\",\"code\":\"insufficient_quota\"}}",
                99,
            )],
            "the quota at OpenAI is used up (HTTP 429): check the plan and the billing there. OpenAI says: pay",
        ),
        (
            &[Does::Answers(
                "503 Service Unavailable\r\nretry-after: 86400",
                "tomorrow",
                99,
            )],
            "OpenAI has failed (HTTP 503); try again in 86400 s (asked again by itself only within 30 s). OpenAI says: tomorrow",
        ),
        (
            &[Does::Answers("501 Not Implemented", "broken", 99)],
            "OpenAI refused the request (HTTP 501): check --model. OpenAI says: broken",
        ),
        (
            &[Does::Answers(
                "302 Found\r\nlocation: http://127.0.0.1:1/",
                "",
                99,
            )],
            "OpenAI is not at this address (HTTP 302): check --base-url",
        ),
    ] {
        let (_, outcome, requests) = told(behaviour).await;
        assert_eq!(outcome.unwrap_err().to_string(), expected);
        assert_eq!(requests, 1);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_and_not_retried() {
    for behaviour in [&[Does::Breaks(HELLO)][..], &[Does::Answers(OK, HELLO, 100)]] {
        let (text, outcome, requests) = told(behaviour).await;
        assert_eq!(text, "grüß dich");
        assert_eq!((outcome, requests), (Err(ModelError::Cut), 1));
    }
    let (_, outcome, _) = told(&[Does::Answers(OK, "", 100)]).await;
    assert_eq!(outcome, Err(ModelError::Cut));
}

#[tokio::test]
async fn an_answer_without_an_end_mark_is_complete_with_its_finish_reason() {
    const FINISHED: &str =
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    for behaviour in [
        &[Does::Answers(OK, FINISHED, 100)][..],
        &[Does::Breaks(FINISHED)],
        &[Does::Hangs(FINISHED)],
    ] {
        let (text, outcome, _) = told(behaviour).await;
        assert_eq!((text.as_str(), outcome), ("hi", Ok(())));
    }
    let (answer, outcome) = {
        const MARKED: &str =
            "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n";
        let provider = Provider::start(&[Does::Hangs(MARKED)]).await;
        ask(&provider.model()).await
    };
    assert_eq!((answer.finish(), outcome), (Some(&Finish::Stop), Ok(())));
}

#[tokio::test]
async fn a_provider_that_is_silent_or_only_keeps_the_connection_alive_times_out() {
    let short = Duration::from_millis(250);
    for (behaviour, said) in [
        (&[Does::Hangs(HELLO)], "grüß dich"),
        (&[Does::Drips(": thinking\n\n")], ""),
    ] {
        let provider = Provider::start(behaviour).await;
        let config = provider.config();
        let config = match said {
            "" => config.with_policy(policy().with_total_timeout(Some(short))),
            _ => config.with_policy(policy().with_idle_timeout(short)),
        };
        let (answer, outcome) = ask(&http_model(config).unwrap()).await;
        assert_eq!(answer.text(), said);
        assert!(
            matches!(outcome, Err(ModelError::TimedOut { .. })),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn an_error_in_the_stream_has_the_providers_words_without_the_key() {
    const ERROR: &str = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n",
        "data: {\"error\":{\"message\":\"sk-hunter2 is over its limit\"}}\n\n",
    );
    let (text, outcome, _) = told(&[Does::Answers(OK, ERROR, 3)]).await;
    assert_eq!(text, "so far");
    let error = outcome.unwrap_err().to_string();
    let expected = "OpenAI broke the answer off; try again. OpenAI says: *** is over its limit";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn garbage_and_endless_lines_are_errors() {
    let (_, outcome, _) = told(&[Does::Answers(OK, "data: what?\n\n", 3)]).await;
    assert!(
        matches!(outcome, Err(ModelError::BadAnswer { .. })),
        "{outcome:?}"
    );
    let max = 1024 * 1024;
    for (endless, error) in [
        (
            "data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ModelError::TooLarge { max },
        ),
        (": comment\n", ModelError::TooLarge { max: 16 * max }),
    ] {
        let behaviour = Vec::leak(vec![Does::Repeats(String::leak(endless.repeat(2000)))]);
        let (_, outcome, _) = told(behaviour).await;
        assert_eq!(outcome, Err(error));
    }
}

#[tokio::test]
async fn an_answer_without_a_stream_is_accepted() {
    const PLAIN: &str =
        "{\"choices\":[{\"message\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}";
    let json = "200 OK\r\ncontent-type: application/json";
    let behaviour = Vec::leak(vec![Does::Answers(json, PLAIN, 4)]);
    let (text, outcome, _) = told(behaviour).await;
    assert_eq!((text.as_str(), outcome), ("hi", Ok(())));
}

#[test]
fn a_bad_address_or_key_is_refused_at_once() {
    for url in ["api.openai.com", "ftp://h", "http://"] {
        let config = ModelConfig::new(Kind::OpenAi, "toy").with_base_url(url);
        let error = http_model(config).unwrap_err();
        assert!(matches!(error, ModelError::Setup { .. }), "{url}");
    }
    let config = ModelConfig::new(Kind::OpenAi, "toy").with_key(Some(Secret::from("hunter2\n\nx")));
    let error = http_model(config.clone()).unwrap_err();
    assert!(!format!("{error} {error:?} {config:?}").contains("hunter2"));
}

#[test]
fn an_address_is_completed_to_that_of_the_interface() {
    for (given, meant) in [
        ("https://h", "https://h/v1/chat/completions"),
        ("https://h/v1/", "https://h/v1/chat/completions"),
        ("https://h/api/v1", "https://h/api/v1/chat/completions"),
        (
            "https://h/x/chat/completions",
            "https://h/x/chat/completions",
        ),
        ("https://h/v1?key=1", "https://h/v1/chat/completions?key=1"),
        ("https://h/v1/models", "https://h/v1/chat/completions"),
        (
            "https://h/openai/deployments/m/chat/completions?api-version=1",
            "https://h/openai/deployments/m/chat/completions?api-version=1",
        ),
        (
            "https://h/openai/deployments/m?api-version=1",
            "https://h/openai/deployments/m/chat/completions?api-version=1",
        ),
    ] {
        let model = http_model(ModelConfig::new(Kind::OpenAi, "toy").with_base_url(given)).unwrap();
        assert_eq!(model.url().as_str(), meant);
    }
    for (kind, end, given) in [
        (
            Kind::Anthropic,
            "/v1/messages",
            &["", "/", "/v1", "/v1/messages", "/v1/messages/"][..],
        ),
        (
            Kind::Ollama,
            "/api/chat",
            &[
                "",
                "/api",
                "/api/",
                "/api/chat",
                "/api/generate",
                "/v1",
                "/v1/",
                "/v1/chat/completions",
            ],
        ),
    ] {
        for given in given {
            for root in ["http://h", "http://h/x"] {
                let config = ModelConfig::new(kind, "toy").with_base_url(format!("{root}{given}"));
                let model = http_model(config).unwrap();
                assert_eq!(model.url().as_str(), format!("{root}{end}"), "{given}");
            }
        }
    }
    let model = http_model(ModelConfig::new(Kind::OpenAi, "toy")).unwrap();
    let default = "https://api.openai.com/v1/chat/completions";
    assert_eq!(model.url().as_str(), default);
    for (url, warned) in [
        ("http://127.0.0.1:1", false),
        ("http://[::1]:1", false),
        ("http://localhost", false),
        ("https://h", false),
        ("http://h", true),
    ] {
        let model = http_model(ModelConfig::new(Kind::OpenAi, "toy").with_base_url(url)).unwrap();
        assert_eq!(model.goes_unencrypted(), warned, "{url}");
    }
}

#[tokio::test]
async fn the_request_has_the_configured_members() {
    // Nothing goes by the name of a model.
    for model in ["toy", "o3-mini"] {
        let behaviour = &[Does::Answers(OK, WHOLE, 100); 2];
        let provider = Provider::start(behaviour).await;
        // The whole address may be given.
        let url = format!("{}/v1/chat/completions", provider.url);
        let mut config = provider.config().with_base_url(url);
        config.model = model.to_owned();
        let config = config.with_max_tokens(7);
        let model = http_model(config).unwrap();
        let call = ToolCall::new("c", "time", "");
        let messages = [
            ChatMessage::user("late?"),
            ChatMessage::assistant("let me see").with_tool_calls(vec![call]),
            ChatMessage::tool("c", "12:00"),
        ];
        let tools = [ToolDefinition::new("time", "the time")];
        let request = ChatRequest::new(messages.iter().collect()).with_tools(&tools);
        let other = ChatRequest {
            model: Some("o9"),
            ..request.clone()
        };
        for request in [request, other] {
            let mut deltas = model.stream(request).await.unwrap();
            deltas.next().await.unwrap().unwrap();
        }
        let requests = provider.requests();
        assert!(requests[1].contains("\"model\":\"o9\""), "{}", requests[1]);
        let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("POST /v1/chat/completions HTTP/1.1"),
            "{head}"
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["max_tokens"], 7);
        assert_eq!(body["stream_options"]["include_usage"], true);
        assert_eq!(body["tools"][0]["function"]["name"], "time");
        let expected = serde_json::json!([
            {"role": "user", "content": "late?"},
            {"role": "assistant", "content": "let me see", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "time", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "12:00"},
        ]);
        assert_eq!(body["messages"], expected);
    }
}
