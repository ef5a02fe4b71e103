//! What is sent to a provider, and where.
#![allow(clippy::unwrap_used, reason = "tests")]

use futures_util::StreamExt as _;
use rpc_core::Secret;
use serde_json::{Value, json};
use snek_proto::llm::chat::{ChatMessage, ToolCall};
use snek_proto::llm::tool::ToolDefinition;

use super::HttpModel;
use super::exchanges::{config, model, whole};
use super::testing::{Does, OK, Provider, ask, members};
use crate::model::config::ModelConfig;
use crate::model::provider::Provider as Kind;
use crate::model::{ChatModel as _, ChatRequest, ModelError};

#[tokio::test]
async fn a_request_has_the_members_and_headers_of_the_interface() {
    let hello = json!([{"role": "user", "content": "hello"}]);
    let cached = json!([{"role": "user", "content": [
        {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}},
    ]}]);
    for (kind, headers, expected) in [
        (
            Kind::OpenAi,
            &[
                "POST /v1/chat/completions HTTP/1.1",
                "authorization: Bearer sk-hunter2",
            ][..],
            json!({
                "model": "toy", "max_tokens": 4096, "stream": true,
                "stream_options": {"include_usage": true}, "messages": hello,
            }),
        ),
        (
            Kind::Anthropic,
            &[
                "POST /v1/messages HTTP/1.1",
                "x-api-key: sk-hunter2",
                "anthropic-version: 2023-06-01",
                "content-type: application/json",
            ],
            json!({ "model": "toy", "max_tokens": 4096, "stream": true, "messages": cached }),
        ),
    ] {
        let provider = Provider::start(Vec::leak(vec![Does::Answers(OK, whole(kind), 100)])).await;
        let config = config(kind, &provider.url).with_key(Some(Secret::from(" sk-hunter2\n")));
        let model = HttpModel::new(config).unwrap();
        ask(&model).await.1.unwrap();
        assert!(!format!("{model:?}").contains("hunter2"));
        let request = provider.requests().remove(0);
        for header in headers {
            assert!(request.lines().any(|line| line == *header), "{request}");
        }
        assert_eq!(Value::from(members(&request)), expected);
    }
}

#[tokio::test]
async fn a_request_has_the_configured_members_whatever_the_model_is_named() {
    for name in ["toy", "o3-mini"] {
        let does = vec![Does::Answers(OK, whole(Kind::OpenAi), 100); 2];
        let provider = Provider::start(Vec::leak(does)).await;
        let mut config = config(Kind::OpenAi, &provider.url).with_max_tokens(7);
        config.model = name.to_owned();
        let model = HttpModel::new(config).unwrap();
        let messages = [
            ChatMessage::user("late?"),
            ChatMessage::assistant("let me see")
                .with_tool_calls(vec![ToolCall::new("c", "time", "")]),
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
        assert_eq!(members(&requests[1])["model"], "o9");
        let expected = json!({
            "model": name, "max_tokens": 7, "stream": true, "stream_options": {"include_usage": true},
            "messages": [
                {"role": "user", "content": "late?"},
                {"role": "assistant", "content": "let me see", "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "time", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "c", "content": "12:00"},
            ],
            "tools": [tools[0].to_value()],
        });
        assert_eq!(Value::from(members(&requests[0])), expected);
    }
}

#[test]
fn a_bad_address_or_key_is_refused_at_once_and_not_repeated() {
    for kind in [Kind::OpenAi, Kind::Anthropic] {
        for url in [
            "",
            "hunter2",
            "api.hunter2.com",
            "ftp://hunter2",
            "http://",
            "/v1/messages",
        ] {
            let error =
                HttpModel::new(ModelConfig::new(kind, "toy").with_base_url(url)).unwrap_err();
            assert!(matches!(error, ModelError::Setup { .. }), "{url}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let config = ModelConfig::new(kind, "toy").with_key(Some(Secret::from("hunter2\n\nx")));
        let error = HttpModel::new(config.clone()).unwrap_err();
        assert!(!format!("{error} {error:?} {config:?}").contains("hunter2"));
    }
}

#[test]
fn an_address_is_completed_to_that_of_the_interface() {
    const DEPLOYED: &str = "openai/deployments/m/chat/completions?api-version=1";
    for (kind, given, meant) in [
        (
            Kind::OpenAi,
            &["/v1/", "/v1", "/v1/models", "/v1/chat/completions"][..],
            "v1/chat/completions",
        ),
        (Kind::OpenAi, &["/api/v1"], "api/v1/chat/completions"),
        (Kind::OpenAi, &["/y/chat/completions"], "y/chat/completions"),
        (Kind::OpenAi, &["/v1?key=1"], "v1/chat/completions?key=1"),
        (
            Kind::OpenAi,
            &[
                "/openai/deployments/m?api-version=1",
                "/openai/deployments/m/chat/completions?api-version=1",
            ],
            DEPLOYED,
        ),
        (
            Kind::Anthropic,
            &["", "/", "/v1", "/v1/messages", "/v1/messages/"],
            "v1/messages",
        ),
        (
            Kind::Ollama,
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
            "api/chat",
        ),
    ] {
        for given in given {
            for root in ["http://h", "http://h/x"] {
                let model = model(kind, &format!("{root}{given}"));
                assert_eq!(model.url().as_str(), format!("{root}/{meant}"), "{given}");
            }
        }
    }
    // Where it listens.
    for (given, root) in [
        ("h", "http://h:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":1234", "http://127.0.0.1:1234"),
        ("[::]:1234", "http://127.0.0.1:1234"),
    ] {
        let model = model(Kind::Ollama, given);
        assert_eq!(model.url().as_str(), format!("{root}/api/chat"), "{given}");
    }
    let url = "http://h/v1/chat/completions";
    assert_eq!(model(Kind::OpenAi, "http://h").url().as_str(), url);
    let model = HttpModel::new(ModelConfig::new(Kind::OpenAi, "toy")).unwrap();
    assert_eq!(
        model.url().as_str(),
        "https://api.openai.com/v1/chat/completions"
    );
}

#[test]
fn an_address_of_another_machine_is_encrypted_or_warned_of() {
    for (url, warned) in [
        ("http://127.0.0.1:1", false),
        ("http://[::1]:1", false),
        ("http://localhost", false),
        ("https://h", false),
        ("http://h", true),
    ] {
        assert_eq!(model(Kind::OpenAi, url).goes_unencrypted(), warned, "{url}");
    }
}
