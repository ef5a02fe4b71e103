//! What comes of what a provider does, request after request.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use rpc_core::Secret;
use snek_proto::llm::chat::ChatMessage;

use super::testing::{Does, OK, Provider, members, policy};
use super::{HttpModel, RequestPolicy};
use crate::model::answer::tests::cases;
use crate::model::config::ModelConfig;
use crate::model::provider::Provider as Kind;
use crate::model::{Assembler, ChatModel as _, ChatRequest, Delta, ModelError};

pub(super) const NETWORK: [Kind; 4] = [Kind::OpenAi, Kind::Anthropic, Kind::Ollama, Kind::Vllm];

pub(super) fn config(kind: Kind, url: &str) -> ModelConfig {
    ModelConfig::new(kind, "toy")
        .with_base_url(url)
        .with_key(Some(Secret::from("sk-hunter2")))
        .with_policy(policy())
}

pub(super) fn model(kind: Kind, url: &str) -> HttpModel {
    HttpModel::new(config(kind, url)).unwrap()
}

/// The beginning of an answer that says `grüß dich`, its end, a part that is none, and the report of an overload.
const fn parts(kind: Kind) -> [&'static str; 4] {
    match kind {
        Kind::Anthropic => [
            r#"data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"grüß dich"}}\n\n"#,
            r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":1,"cache_read_input_tokens":3,"output_tokens":3}}\n\ndata: {"type":"message_stop"}\n\n"#,
            r": alive\n\ndata: garbage\n\n",
            r#"event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"sk-hunter2 slow"}}\n\n"#,
        ],
        Kind::Ollama => [
            r#"{"message":{"content":"grüß dich"},"done":false}\n"#,
            r#"{"message":{},"done":true,"done_reason":"stop","prompt_eval_count":4,"eval_count":3}\n"#,
            r"garbage\n",
            r#"{"error":{"type":"overloaded","message":"sk-hunter2 slow"}}\n"#,
        ],
        _ => [
            r#"data: {"choices":[{"delta":{"content":"grüß dich"}}]}\n\n"#,
            r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":3}}\n\ndata: [DONE]\n\n"#,
            r": alive\n\ndata: garbage\n\n",
            r#"data: {"error":{"code":"rate_limit_exceeded","message":"sk-hunter2 slow"}}\n\n"#,
        ],
    }
}

/// Returns a body in which the names of parts stand for them.
fn filled(kind: Kind, body: &str) -> &'static str {
    let [begin, end, bad, busy] = parts(kind);
    let names = [
        ("@begin", begin),
        ("@end", end),
        ("@bad", bad),
        ("@busy", busy),
        ("@half", &begin[..9]),
    ];
    let body = names.iter().fold(body.to_owned(), |body, (name, part)| {
        body.replace(name, part)
    });
    String::leak(
        body.replace("@long", &"x".repeat(50_000))
            .replace("\\n", "\n"),
    )
}

pub(super) fn whole(kind: Kind) -> &'static str {
    filled(kind, "@begin@end")
}

/// Returns what a line of a case has a provider do, in chunks of this size.
fn does(kind: Kind, line: &str, size: usize) -> Does {
    let (status, body) = line
        .strip_prefix("> ")
        .unwrap()
        .split_once('|')
        .unwrap_or((&line[2..], ""));
    let body = filled(kind, body.trim_start());
    match status.trim() {
        "answers" => Does::Answers(OK, body, size),
        "hangs" => Does::Hangs(body),
        "breaks" => Does::Breaks(body),
        "repeats" => Does::Repeats(body),
        "drips" => Does::Drips(body),
        "closes" => Does::Closes,
        status => Does::Answers(String::leak(status.replace("; ", "\r\n")), body, size),
    }
}

/// Asks once, and returns what is read and how often it was asked, a line each.
async fn exchanged(kind: Kind, given: &[String], size: usize) -> Vec<String> {
    let mut all: Vec<_> = given.iter().map(|line| does(kind, line, size)).collect();
    all.extend([*all.last().unwrap(); 5]);
    let keeps_on = matches!(all[0], Does::Hangs(_) | Does::Drips(_));
    let provider = Provider::start(Vec::leak(all)).await;
    // The usage may come late on a busy machine.
    let patient = policy().with_tail_timeout(RequestPolicy::default().tail_timeout);
    let config = config(kind, &provider.url).with_policy(if keeps_on { policy() } else { patient });
    let model = HttpModel::new(config).unwrap();
    let question = ChatMessage::user("hello");
    let (mut answer, mut lines) = (Assembler::default(), Vec::new());
    let mut deltas = model
        .stream(ChatRequest::new(vec![&question]))
        .await
        .unwrap();
    let mut error = None;
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Notice(notice)) => lines.push(format!("notice {notice}")),
            Ok(delta) => answer.push(&delta).unwrap(),
            Err(ModelError::Cut) => error = Some("cut".to_owned()),
            Err(other) => error = Some(format!("error {other}")),
        }
    }
    lines.extend((!answer.text().is_empty()).then(|| format!("text {:?}", answer.text())));
    lines.extend(
        answer
            .usage()
            .map(|it| format!("usage {} {}", it.prompt, it.completion)),
    );
    lines.extend(error);
    let requests = provider.requests();
    let names =
        |request: &String| -> BTreeSet<String> { members(request).keys().cloned().collect() };
    for request in &requests[1..] {
        let without = names(&requests[0])
            .difference(&names(request))
            .cloned()
            .collect::<Vec<_>>();
        lines.extend((!without.is_empty()).then(|| format!("then without {}", without.join(", "))));
    }
    lines.push(format!("asked {}", requests.len()));
    lines
}

#[tokio::test]
async fn what_a_provider_does_has_the_outcome_of_the_table() {
    let mut wrong = Vec::new();
    for case in cases::read(include_str!("../cases.txt")) {
        for kind in &case.providers {
            for size in [7, 10_000] {
                let lines = exchanged(*kind, &case.given, size).await;
                let overload = match kind {
                    Kind::Anthropic | Kind::Ollama => "@title is overloaded",
                    _ => "@title limits the requests",
                };
                let named = |line: &String| {
                    let line = line.replace("@overload", overload);
                    line.replace("@title", kind.title())
                };
                if !lines
                    .iter()
                    .eq(&case.expected.iter().map(named).collect::<Vec<_>>())
                {
                    wrong.push(format!(
                        "{} of {kind}, in pieces of {size}: {lines:#?}",
                        case.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
