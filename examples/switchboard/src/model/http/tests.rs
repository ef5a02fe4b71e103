//! What all models behind HTTP have in common.
#![allow(clippy::unwrap_used, reason = "tests")]

mod exchanges;
mod refusals;
mod requests;
pub(crate) mod testing;

use std::time::Duration;

use rpc_core::Secret;
use rpc_core::backoff::BackoffPolicy;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use self::testing::{Does, OK, Provider, ask, policy, read_request};
use super::{HttpModel, RequestPolicy};
use crate::model::ModelError;
use crate::model::config::ModelConfig;
use crate::model::provider::Provider as Kind;

const WHOLE: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
);
const FINISHED: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n: .\n\n";

fn model(url: &str, policy: RequestPolicy) -> HttpModel {
    let config = ModelConfig::new(Kind::OpenAi, "toy")
        .with_base_url(url)
        .with_key(Some(Secret::from("sk-hunter2")))
        .with_policy(policy);
    HttpModel::new(config).unwrap()
}

async fn failure(url: &str, policy: RequestPolicy) -> ModelError {
    ask(&model(url, policy)).await.1.unwrap_err()
}

#[test]
fn the_defaults_let_a_long_answer_live() {
    let policy = RequestPolicy::default();
    assert_eq!(policy.head_timeout, Duration::from_secs(45));
    assert_eq!(policy.idle_timeout, Duration::from_secs(45));
    assert_eq!(policy.total_timeout, None);
}

#[tokio::test]
async fn an_absent_host_is_not_named() {
    let policy = RequestPolicy::default().with_retry(BackoffPolicy::off());
    let error = failure("http://upstream.invalid", policy).await;
    assert!(matches!(
        error,
        ModelError::Unreachable { .. } | ModelError::Refused { .. }
    ));
    assert!(!format!("{error:?}").contains("upstream"), "{error:?}");
}

#[tokio::test]
async fn errors_of_a_proxy_are_shown_without_address_and_key() {
    let provider = Provider::start(&[Does::Betrays; 3]).await;
    let text = failure(&provider.url, policy()).await.to_string();
    let begin =
        "OpenAI has failed (HTTP 502); try again later. OpenAI says: no ***, ***: POST /v1/";
    assert!(text.starts_with(begin), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_provider_that_is_silent_or_endless_times_out() {
    const BEGIN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let after = Duration::from_millis(150);
    let total = policy().with_total_timeout(Some(after));
    for (does, policy, what, text) in [
        (
            Does::Waits,
            policy().with_head_timeout(after),
            "request timed out",
            "",
        ),
        (
            Does::Hangs(BEGIN),
            policy().with_idle_timeout(after),
            "stream idle timeout",
            "hi",
        ),
        (Does::Drips(": thinking\n\n"), total, "answer timed out", ""),
    ] {
        let provider = Provider::start(Vec::leak(vec![does])).await;
        let (answer, outcome) = ask(&model(&provider.url, policy)).await;
        let error = ModelError::TimedOut { what, after };
        assert_eq!((answer.text(), outcome), (text, Err(error)));
    }
}

#[tokio::test]
async fn a_request_on_a_kept_connection_that_just_ended_is_retried_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut questions = 0;
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await.unwrap();
            questions += 1;
            let length = WHOLE.len();
            let answer = format!("HTTP/1.1 {OK}\r\ncontent-length: {length}\r\n\r\n{WHOLE}");
            socket.write_all(answer.as_bytes()).await.unwrap();
            if questions == 3 {
                return;
            }
            // Reset when the next question comes, which stays unread.
            let _ = tokio::time::timeout(Duration::from_millis(200), socket.readable()).await;
        }
    });
    let model = model(&url, policy());
    for _ in 0..3 {
        let (answer, outcome) = ask(&model).await;
        assert_eq!((answer.text(), outcome), ("hi", Ok(())));
    }
    server.await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_http_is_not_a_lost_connection() {
    let many = String::leak(format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(200)));
    for bytes in ["SSH-2.0-OpenSSH_9.6\r\n", many] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await.unwrap();
            socket.write_all(bytes.as_bytes()).await.unwrap();
        });
        let text = failure(&url, policy()).await.to_string();
        assert!(text.contains("check the address"), "{text}");
    }
}

#[tokio::test]
async fn comments_after_the_end_do_not_keep_an_answer_open() {
    let provider = Provider::start(&[Does::Drips(FINISHED)]).await;
    let config = ModelConfig::new(Kind::OpenAi, "toy").with_base_url(&provider.url);
    let policy = policy().with_tail_timeout(Duration::from_millis(60));
    let model = HttpModel::new(config.with_policy(policy)).unwrap();
    let (answer, outcome) = ask(&model).await;
    assert_eq!(outcome, Ok(()));
    assert!(answer.text().starts_with("hi"));
}

#[tokio::test]
async fn a_refusal_is_final_without_retries() {
    let behaviour = &[
        Does::Answers("529 Overloaded", "{\"error\":\"busy\"}", 9),
        Does::Answers(OK, WHOLE, 99),
    ];
    let provider = Provider::start(behaviour).await;
    let policy = policy().with_retry(BackoffPolicy::off());
    let error = failure(&provider.url, policy).await;
    let text = "OpenAI is overloaded (HTTP 529); try again later. OpenAI says: busy";
    assert_eq!(error.to_string(), text);
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn a_date_to_try_again_is_kept() {
    const NOW: &str = "503 x\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:37 GMT";
    let behaviour = &[Does::Answers(NOW, "busy", 9), Does::Answers(OK, WHOLE, 99)];
    let provider = Provider::start(behaviour).await;
    // Our own waits are far too long.
    let hour = BackoffPolicy {
        max_attempts: Some(2),
        ..BackoffPolicy::new(Duration::from_secs(3600), 1.0)
    };
    let (_, outcome) = ask(&model(&provider.url, policy().with_retry(hour))).await;
    assert_eq!(outcome, Ok(()));
}
