//! What is learnt of a provider's refusals.
#![allow(clippy::unwrap_used, reason = "tests")]

use futures_util::StreamExt as _;
use rpc_core::Secret;
use snek_proto::llm::chat::ChatMessage;

use super::exchanges::{NETWORK, config, model, whole};
use super::testing::{Does, OK, Provider, ask, members, policy};
use super::{HttpModel, RequestPolicy};
use crate::model::provider::Provider as Kind;
use crate::model::{ChatModel as _, ChatRequest, Delta};

#[tokio::test]
async fn a_count_of_tokens_is_bounded_by_what_was_sent_and_came() {
    let bytes = whole(Kind::OpenAi).replace(":4,", ":1e19,");
    let bytes = String::leak(bytes.replace(":3}", ":10000000000000000000}"));
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
async fn a_server_that_does_not_run_is_named_with_the_command_that_starts_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for (kind, advice) in [
        (Kind::Ollama, "is 'ollama serve' running?"),
        (Kind::Vllm, "is 'vllm serve' running?"),
        (Kind::OpenAi, "check the network and --base-url"),
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
        let mut shown = Vec::new();
        for _ in 0..2 {
            let deltas = model.stream(request.clone()).await.unwrap();
            let deltas: Vec<_> = deltas.collect().await;
            shown.extend(deltas.into_iter().filter_map(|delta| match delta.unwrap() {
                Delta::Notice(notice) => Some(notice.to_string()),
                Delta::Text(text) => Some(text),
                _ => None,
            }));
        }
        let once = "the model does not take tools: it is asked without";
        assert_eq!(shown, [once, "grüß dich", "grüß dich"], "{kind}");
        let requests = provider.requests();
        let has_tools = requests.iter().map(|it| members(it).contains_key("tools"));
        let has_tools: Vec<bool> = has_tools.collect();
        assert_eq!(has_tools, [true, false, false], "{kind}");
    }
}

#[tokio::test]
async fn the_first_refusal_is_reported_if_nothing_that_is_left_out_helps() {
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
    let requests = provider.requests();
    let sent: Vec<_> = requests.iter().map(|it| members(it)).collect();
    assert_eq!(sent[1]["max_completion_tokens"], 4096);
    // What did not help is not remembered.
    assert_eq!(
        (sent[2].get("max_tokens"), sent.last()),
        (None, sent.first())
    );
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
        let answers = Does::Answers(OK, whole(kind), 99);
        let does = vec![refused, answers, refused, refused];
        let provider = Provider::start(Vec::leak(does)).await;
        let name = format!("switchboard-renewed-{kind}-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let config = config(kind, &provider.url);
        let (config, name) = if header == "api-key: " {
            let line = Secret::from(format!("@{}", file.display()));
            (config.with_key(None).with_headers(vec![line]), header)
        } else {
            (config.with_key_file(Some(file.clone())), "")
        };
        std::fs::write(&file, format!("{name}old-secret")).unwrap();
        let model = HttpModel::new(config).unwrap();
        std::fs::write(&file, format!("{name}new-secret")).unwrap();
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
