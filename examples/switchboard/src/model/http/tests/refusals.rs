//! What is reported of a provider's misbehaviour, and how often it is asked.
#![allow(clippy::unwrap_used, reason = "tests")]

use futures_util::StreamExt as _;
use rpc_core::Secret;
use snek_proto::llm::chat::ChatMessage;

use super::testing::{Does, OK, Provider, ask, policy};
use super::{HttpModel, RequestPolicy};
use crate::model::config::ModelConfig;
use crate::model::provider::Provider as Kind;
use crate::model::{ChatModel as _, ChatRequest, Delta, Finish, ModelError};

const NETWORK: [Kind; 4] = [Kind::OpenAi, Kind::Anthropic, Kind::Ollama, Kind::Vllm];

fn config(kind: Kind, url: &str) -> ModelConfig {
    ModelConfig::new(kind, "toy")
        .with_base_url(url)
        .with_key(Some(Secret::from("sk-hunter2")))
        .with_policy(policy())
}

fn model(kind: Kind, url: &str) -> HttpModel {
    HttpModel::new(config(kind, url)).unwrap()
}

/// The beginning of an answer that says `grüß dich`, and its end.
const fn answer(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Anthropic => (
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"grüß dich\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":1,\"cache_read_input_tokens\":3,\"output_tokens\":3}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        Kind::Ollama => (
            "{\"message\":{\"content\":\"grüß dich\"},\"done\":false}\n",
            "{\"message\":{},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":4,\"eval_count\":3}\n",
        ),
        _ => (
            "data: {\"choices\":[{\"delta\":{\"content\":\"grüß dich\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
        ),
    }
}

fn whole(kind: Kind) -> &'static str {
    let (begin, end) = answer(kind);
    String::leak(format!("{begin}{end}"))
}

async fn told(kind: Kind, does: Vec<Does>) -> (String, Result<(), ModelError>, usize) {
    let provider = Provider::start(Vec::leak(does)).await;
    let (answer, outcome) = ask(&model(kind, &provider.url)).await;
    (answer.text().to_owned(), outcome, provider.requests().len())
}

/// What people read of a refusal, and how often it was asked.
async fn refused(kind: Kind, status: &'static str, body: &'static str) -> (String, usize) {
    let (_, outcome, asked) = told(kind, vec![Does::Answers(status, body, 50); 9]).await;
    (outcome.unwrap_err().to_string(), asked)
}

#[tokio::test]
async fn an_answer_comes_in_any_chunks_with_its_usage() {
    for kind in NETWORK {
        for size in [1, 7, 10_000] {
            let provider =
                Provider::start(Vec::leak(vec![Does::Answers(OK, whole(kind), size)])).await;
            // Its usage may come late on a busy machine.
            let patient = policy().with_tail_timeout(RequestPolicy::default().tail_timeout);
            let config = config(kind, &provider.url).with_policy(patient);
            let model = HttpModel::new(config).unwrap();
            let (answer, outcome) = ask(&model).await;
            assert_eq!((answer.text(), outcome), ("grüß dich", Ok(())), "{kind}");
            assert_eq!(answer.finish(), Some(&Finish::Stop), "{kind}");
            let usage = answer.usage().unwrap();
            assert_eq!((usage.prompt, usage.completion), (4, 3), "{kind}");
        }
    }
}

#[tokio::test]
async fn a_count_of_tokens_is_bounded_by_what_was_sent_and_came() {
    let (begin, end) = answer(Kind::OpenAi);
    let end = end
        .replace(":4,", ":1e19,")
        .replace(":3}", ":10000000000000000000}");
    let bytes = String::leak(format!("{begin}{end}"));
    let provider = Provider::start(Vec::leak(vec![Does::Answers(OK, bytes, 50)])).await;
    let patient = policy().with_tail_timeout(RequestPolicy::default().tail_timeout);
    let mut config = config(Kind::OpenAi, &provider.url).with_policy(patient);
    (config.context_tokens, config.max_tokens) = (50_000, 7);
    let (answer, outcome) = ask(&HttpModel::new(config).unwrap()).await;
    assert_eq!(outcome, Ok(()));
    let usage = answer.usage().unwrap();
    assert_eq!(usage.prompt, 50_000);
    assert!(
        (8..=bytes.len() as u64).contains(&usage.completion),
        "{usage:?}"
    );
}

#[tokio::test]
async fn an_answer_that_ends_early_is_shown_in_part_and_not_requested_again() {
    for kind in NETWORK {
        let begin = answer(kind).0;
        let half = String::leak(begin.repeat(2));
        let half = half.get(..begin.len() + 9).unwrap();
        for does in [
            Does::Breaks(begin),
            Does::Breaks(half),
            Does::Answers(OK, begin, 9),
        ] {
            let (text, outcome, asked) = told(kind, vec![does; 3]).await;
            let expected = ("grüß dich", Err(ModelError::Cut), 1);
            assert_eq!((text.as_str(), outcome, asked), expected, "{kind}");
        }
        let (_, outcome, asked) = told(kind, vec![Does::Answers(OK, "", 9); 3]).await;
        assert_eq!((outcome, asked), (Err(ModelError::Cut), 1), "{kind}");
    }
}

#[tokio::test]
async fn an_unreadable_part_is_skipped_and_a_huge_one_is_an_error() {
    for kind in NETWORK {
        let garbage = match kind {
            Kind::Ollama => "garbage\n",
            _ => ": alive\n\ndata: garbage\n\n",
        };
        let stream = String::leak(format!("{garbage}{}", whole(kind)));
        let (text, outcome, _) = told(kind, vec![Does::Answers(OK, stream, 20)]).await;
        assert_eq!((text.as_str(), outcome), ("grüß dich", Ok(())), "{kind}");
        let huge = String::leak(format!("data: {}", "x".repeat(50_000)));
        let (_, outcome, _) = told(kind, vec![Does::Repeats(huge)]).await;
        let max = 1024 * 1024;
        assert_eq!(outcome, Err(ModelError::TooLarge { max }), "{kind}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_happened_and_what_to_do() {
    const HTML: &str = "<html><h1>502 Bad Gateway</h1></html>";
    for (kind, status, body, expected, attempts) in [
        (
            Kind::OpenAi,
            "401 Unauthorized",
            r#"{"error":{"message":"Incorrect API key provided: sk-hunter2.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            "OpenAI refused the key (HTTP 401): check OPENAI_API_KEY or --key-file. OpenAI says: \
             Incorrect API key provided: ***.",
            1,
        ),
        (
            Kind::OpenAi,
            "429 Too Many Requests",
            r#"{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            "the quota at OpenAI is used up (HTTP 429): check the plan and the billing there. \
             OpenAI says: You exceeded your current quota.",
            1,
        ),
        (
            Kind::Anthropic,
            "529 Overloaded\r\nretry-after: 31",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "Anthropic is overloaded (HTTP 529); try again in 31 s (asked again by itself only within \
             30 s). Anthropic says: Overloaded",
            1,
        ),
        (
            Kind::Anthropic,
            "403 Forbidden",
            r#"{"type":"error","error":{"type":"permission_error","message":"not for you"}}"#,
            "Anthropic does not allow this (HTTP 403): check what the key may do, and --model. \
             Anthropic says: not for you",
            1,
        ),
        (
            Kind::Anthropic,
            "400 Bad Request",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
            "the conversation is too long for the model toy (HTTP 400): begin a new one, or lower \
             --context-tokens. Anthropic says: prompt is too long: 208310 tokens > 200000 maximum",
            1,
        ),
        (
            Kind::Ollama,
            "404 Not Found",
            r#"{"error":"model \"toy\" not found, try pulling it first"}"#,
            "Ollama does not have the model toy (HTTP 404): check --model. Ollama says: \
             model \"toy\" not found, try pulling it first",
            1,
        ),
        (
            Kind::Vllm,
            "404 Not Found",
            r#"{"error":{"message":"The model `toy` does not exist.","type":"NotFoundError","code":404}}"#,
            "vLLM does not have the model toy (HTTP 404): check --model. vLLM says: The model \
             `toy` does not exist.",
            1,
        ),
        (
            Kind::Vllm,
            "404 Not Found",
            "404 page not found",
            "vLLM is not at this address (HTTP 404): check --base-url. vLLM says: 404 page not found",
            1,
        ),
        (
            Kind::OpenAi,
            "404 Not Found",
            r#"{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions."}}"#,
            "OpenAI refused the request (HTTP 404): check --model. OpenAI says: This model is only \
             supported in v1/responses and not in v1/chat/completions.",
            1,
        ),
        (
            Kind::OpenAi,
            "404 Not Found",
            r#"{"error":{"message":"No endpoints found matching your data policy.","code":404}}"#,
            "OpenAI refused the request (HTTP 404): check --model. OpenAI says: No endpoints found \
             matching your data policy.",
            1,
        ),
        (
            Kind::Anthropic,
            "500 Internal Server Error",
            r#"{"error":"the input length exceeds the context length"}"#,
            "the conversation is too long for the model toy (HTTP 500): begin a new one, or lower \
             --context-tokens. Anthropic says: the input length exceeds the context length",
            1,
        ),
        (
            Kind::Ollama,
            "502 Bad Gateway",
            HTML,
            "Ollama has failed (HTTP 502); try again later",
            3,
        ),
        (
            Kind::OpenAi,
            "429 Too Many Requests",
            "",
            "OpenAI limits the requests (HTTP 429); try again later",
            3,
        ),
    ] {
        let told = refused(kind, status, body).await;
        assert_eq!(told, (expected.to_owned(), attempts));
    }
}

/// An event that reports an overload, or what comes nearest.
const fn overload(kind: Kind) -> &'static str {
    match kind {
        Kind::Anthropic => {
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"sk-hunter2 slow\"}}\n\n"
        }
        Kind::Ollama => "{\"error\":{\"type\":\"overloaded\",\"message\":\"sk-hunter2 slow\"}}\n",
        _ => {
            "data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"sk-hunter2 slow\"}}\n\n"
        }
    }
}

#[tokio::test]
async fn an_error_in_an_answer_is_retried_only_before_anything_was_shown() {
    for kind in NETWORK {
        let first = Does::Answers(OK, overload(kind), 30);
        let again = Does::Answers(OK, whole(kind), 30);
        let (text, outcome, asked) = told(kind, vec![first, again]).await;
        assert_eq!(
            (text.as_str(), outcome, asked),
            ("grüß dich", Ok(()), 2),
            "{kind}"
        );
        let later = String::leak(format!("{}{}", answer(kind).0, overload(kind)));
        let later = Does::Answers(OK, later, 30);
        let (text, outcome, asked) = told(kind, vec![later, again]).await;
        assert_eq!((text.as_str(), asked), ("grüß dich", 1), "{kind}");
        let error = outcome.unwrap_err().to_string();
        assert!(error.ends_with("says: *** slow"), "{error}");
    }
}

async fn deltas(model: &HttpModel, request: ChatRequest<'_>) -> Vec<Result<Delta, ModelError>> {
    model.stream(request).await.unwrap().collect().await
}

#[tokio::test]
async fn reports_the_wait_before_another_attempt() {
    let busy = Does::Answers("429 Too Many Requests\r\nretry-after: 0", "{}", 50);
    let again = Does::Answers(OK, whole(Kind::Anthropic), 50);
    let provider = Provider::start(Vec::leak(vec![busy, again])).await;
    let question = ChatMessage::user("hi");
    let model = model(Kind::Anthropic, &provider.url);
    let deltas = deltas(&model, ChatRequest::new(vec![&question])).await;
    let Some(Ok(Delta::Notice(notice))) = deltas.first() else {
        panic!("{deltas:?}");
    };
    let text = "Anthropic limits the requests (HTTP 429); asking again in 0 s";
    assert_eq!(notice.to_string(), text);
}

#[tokio::test]
async fn a_server_that_does_not_run_is_named_with_the_command_that_starts_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for (kind, advice) in [
        (Kind::Ollama, "is 'ollama serve' running?"),
        (Kind::Vllm, "is 'vllm serve' running?"),
        (Kind::Anthropic, "check the network and --base-url"),
    ] {
        let error = ask(&model(kind, &url)).await.1.unwrap_err().to_string();
        let name = kind.title();
        let text = format!("connection refused: cannot connect to {name} at {url}; {advice}");
        assert_eq!(error, text);
        // Who configures by a file serves strangers.
        let config = config(kind, &url).with_in_file(true);
        let model = HttpModel::new(config).unwrap();
        let error = ask(&model).await.1.unwrap_err().to_string();
        assert!(!error.contains("127.0.0.1"), "{error}");
    }
}

/// The members of a request.
fn sent(request: &str) -> serde_json::Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn a_refused_member_is_left_out_from_then_on_and_that_is_said_once() {
    let tools = [snek_proto::llm::tool::ToolDefinition::new(
        "echo", "Repeats",
    )];
    for (kind, status) in NETWORK
        .into_iter()
        .zip(["400 x", "404 x", "422 x", "500 x"])
    {
        let refusal = r#"{"error":{"message":"toy does not support tools","code":1}}"#;
        let again = Does::Answers(OK, whole(kind), 99);
        let does = vec![Does::Answers(status, refusal, 99), again, again];
        let provider = Provider::start(Vec::leak(does)).await;
        let (model, question) = (model(kind, &provider.url), ChatMessage::user("hi"));
        let request = ChatRequest::new(vec![&question]).with_tools(&tools);
        let mut told = Vec::new();
        for _ in 0..2 {
            let deltas = deltas(&model, request.clone()).await;
            told.extend(deltas.into_iter().filter_map(|delta| match delta.unwrap() {
                Delta::Notice(notice) => Some(notice.to_string()),
                Delta::Text(text) => Some(text),
                _ => None,
            }));
        }
        let once = "the model does not take tools: it is asked without";
        assert_eq!(told, [once, "grüß dich", "grüß dich"], "{kind}");
        let has_tools: Vec<bool> = provider
            .requests()
            .iter()
            .map(|it| sent(it).get("tools").is_some())
            .collect();
        assert_eq!(has_tools, [true, false, false], "{kind}");
    }
}

#[tokio::test]
async fn the_first_refusal_is_told_if_nothing_that_is_left_out_helps() {
    let refusals = [
        r#"{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.","param":"max_tokens"}}"#,
        r#"{"error":{"message":"max_completion_tokens is not supported"}}"#,
        r#"{"error":{"message":"I do not like this"}}"#,
        r#"{"error":{"message":"I do not like this"}}"#,
    ];
    let does = refusals.map(|body| Does::Answers("400 Bad Request", body, 99));
    let provider = Provider::start(Vec::leak(does.to_vec())).await;
    let model = model(Kind::OpenAi, &provider.url);
    let error = ask(&model).await.1.unwrap_err().to_string();
    assert!(
        error.contains("Unsupported parameter: 'max_tokens'"),
        "{error}"
    );
    ask(&model).await.1.unwrap_err();
    let sent = provider
        .requests()
        .iter()
        .map(|it| sent(it))
        .collect::<Vec<_>>();
    assert_eq!(sent[1]["max_completion_tokens"], 4096);
    // What did not help is not remembered.
    assert_eq!(
        (sent[2].get("max_tokens"), sent.last()),
        (None, sent.first())
    );
}

#[tokio::test]
async fn a_long_conversation_is_not_asked_again_and_a_large_answer_is_asked_for_without_its_size() {
    let body = r#"{"error":{"message":"max_tokens is too large: 4096. This model supports at most 512 completion tokens"}}"#;
    let does = vec![
        Does::Answers("400 Bad Request", body, 99),
        Does::Answers(OK, whole(Kind::OpenAi), 99),
    ];
    let provider = Provider::start(Vec::leak(does)).await;
    assert_eq!(ask(&model(Kind::OpenAi, &provider.url)).await.1, Ok(()));
    assert_eq!(sent(&provider.requests()[1]).get("max_tokens"), None);
}

#[tokio::test]
async fn a_key_file_is_read_again_when_its_key_is_refused() {
    for (kind, header) in NETWORK.into_iter().zip([
        "authorization: Bearer ",
        "x-api-key: ",
        "authorization: Bearer ",
        "api-key: ",
    ]) {
        let refused = Does::Answers("401 Unauthorized", "{}", 99);
        let does = vec![
            refused,
            Does::Answers(OK, whole(kind), 99),
            refused,
            refused,
        ];
        let provider = Provider::start(Vec::leak(does)).await;
        let name = format!("switchboard-renewed-{kind}-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let mut config = config(kind, &provider.url);
        if header == "api-key: " {
            std::fs::write(&file, "api-key: old-secret").unwrap();
            let line = Secret::from(format!("@{}", file.display()));
            config = config.with_key(None).with_headers(vec![line]);
        } else {
            config = config.with_key_file(Some(file.clone()));
        }
        let model = HttpModel::new(config).unwrap();
        std::fs::write(
            &file,
            header
                .split_once(": ")
                .filter(|_| header == "api-key: ")
                .map_or("new-secret", |_| "api-key: new-secret"),
        )
        .unwrap();
        assert_eq!(ask(&model).await.1, Ok(()), "{kind}");
        let new = format!("{header}new-secret");
        assert!(provider.requests()[1].contains(&new), "{kind}");
        // Not for ever.
        let error = ask(&model).await.1.unwrap_err();
        assert!(
            !format!("{error} {model:?}").contains("new-secret"),
            "{error}"
        );
        assert_eq!(provider.requests().len(), 3, "{kind}");
        std::fs::remove_file(file).unwrap();
    }
}
