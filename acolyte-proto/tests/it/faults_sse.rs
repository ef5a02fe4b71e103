//! Chats over HTTP under the faults of servers, over real sockets. Every chat has a line of its own, so
//! after each fault the next chat goes well.

use std::time::Duration;

use acolyte_proto::client::{ChatUpdate, ClientConfig, Outcome};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::SseClient;
use rpc_core::keepalive::KeepAlive;
use rpc_core::{CallError, CloseReason, Delivery, Limits};
use switchboard_testing::faults::{End, RawListener, RawPeer};
use tokio::time::timeout;

/// A deadline that must not pass.
const PATIENCE: Duration = Duration::from_secs(60);
/// One that has to.
const SHORT: Duration = Duration::from_millis(150);
const MAX: usize = 64 * 1024;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const TEXT: &[u8] =
    b"data: {\"type\":\"event\",\"event\":{\"type\":\"text-delta\",\"text\":\"x\"}}\n\n";
const BARE_TEXT: &[u8] = b"data: {\"type\":\"text-delta\",\"text\":\"x\"}\n\n";
const DONE: &[u8] =
    b"data: {\"type\":\"done\",\"reply\":{\"output\":\"x\",\"outputStreamed\":true,\"model\":\"m\"}}\n\n";

struct Stage {
    listener: RawListener,
    client: SseClient,
}

fn config() -> ClientConfig {
    ClientConfig {
        limits: Limits {
            max_message_bytes: MAX,
            ..Limits::default()
        },
        ..ClientConfig::default()
    }
}

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("nothing hangs")
}

impl Stage {
    async fn start(config: ClientConfig) -> Self {
        let listener = RawListener::bind().await.unwrap();
        let url = format!("http://{}", listener.address());
        let client = SseClient::new(&url, config).unwrap();
        Self { listener, client }
    }

    /// All updates of a chat but its end, the end, and what the server gives back.
    async fn chat<K>(
        &self,
        server: impl AsyncFnOnce(RawPeer) -> K,
    ) -> (Vec<ChatUpdate>, Outcome, K) {
        let chat = async {
            let mut chat = self.client.chat(ChatRequest::new("hi", "m")).await;
            let mut updates = Vec::new();
            while let Some(update) = chat.next().await {
                updates.push(update);
            }
            updates
        };
        let server = async {
            let mut line = self.listener.accept().await.unwrap();
            line.head().await.unwrap();
            server(line).await
        };
        let (mut updates, kept) = soon(async { tokio::join!(chat, server) }).await;
        let ends = updates.extract_if(.., |it| matches!(it, ChatUpdate::Ended(_)));
        let mut ends: Vec<_> = ends.collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
        let Some(ChatUpdate::Ended(outcome)) = ends.pop() else {
            panic!("no end")
        };
        (updates, outcome, kept)
    }

    /// The next chat goes well.
    async fn works(&self) {
        let (_, outcome, ()) = self
            .chat(async |mut line| {
                for part in [HEAD, BARE_TEXT, DONE] {
                    line.bytes(part).await.unwrap();
                }
            })
            .await;
        assert!(outcome.is_done(), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_silent_server_times_out_before_and_during_its_response() {
    let idle = ClientConfig {
        chat_idle_timeout: Some(SHORT),
        ..config()
    };
    let keep_alive = KeepAlive::every(SHORT / 2, SHORT / 2);
    let silent = ClientConfig {
        keep_alive,
        ..config()
    };
    for (config, is_idle) in [(idle, true), (silent, false)] {
        for starts in [false, true] {
            let stage = Stage::start(config.clone()).await;
            let (_, outcome, line) = stage
                .chat(async |mut line| {
                    if starts {
                        line.bytes(HEAD).await.unwrap();
                    }
                    line
                })
                .await;
            match &outcome {
                Outcome::TimedOut { .. } => assert!(is_idle),
                Outcome::Closed {
                    reason: CloseReason::KeepAlive { .. },
                    ..
                } => assert!(!is_idle),
                other => panic!("{other:?}"),
            }
            let unknown = if starts {
                Delivery::Delivered
            } else {
                Delivery::Unknown
            };
            assert_eq!(outcome.delivery(), unknown);
            drop(line);
        }
    }
    let stage = Stage::start(ClientConfig {
        call_timeout: SHORT,
        ..config()
    })
    .await;
    let (status, line) =
        soon(async { tokio::join!(stage.client.status(), stage.listener.accept()) }).await;
    assert!(
        matches!(status, Err(CallError::TimedOut { .. })),
        "{status:?}"
    );
    drop(line);
    stage.works().await;
}

#[tokio::test]
async fn a_truncated_response_is_an_error_wherever_it_is_cut() {
    let stage = Stage::start(config()).await;
    let half = HEAD.len() / 2;
    let whole = [HEAD, BARE_TEXT].concat();
    for len in [0, half, HEAD.len(), whole.len() - 5, whole.len()] {
        for resets in [false, true] {
            let (_, outcome, ()) = stage
                .chat(async |mut line| {
                    line.bytes(&whole[..len]).await.unwrap();
                    if resets {
                        line.reset();
                    }
                })
                .await;
            let Outcome::Closed { reason, delivery } = outcome else {
                panic!("{len}: {outcome:?}")
            };
            let is_cut = matches!(reason, CloseReason::Lost | CloseReason::Transport { .. });
            assert!(is_cut, "{reason:?}");
            assert_ne!(delivery, Delivery::NotSent);
        }
    }
    stage.works().await;
}

#[tokio::test]
async fn a_server_may_write_byte_by_byte() {
    let stage = Stage::start(config()).await;
    let (updates, outcome, ()) = stage
        .chat(async |mut line| {
            let answer = [HEAD, b": a comment\n\n", BARE_TEXT, DONE].concat();
            line.trickle(&answer, Duration::from_millis(1))
                .await
                .unwrap();
        })
        .await;
    assert!(outcome.is_done(), "{outcome:?}");
    assert_eq!(updates.len(), 2, "{updates:?}");
}

#[tokio::test]
async fn trickling_comments_do_not_extend_a_chat() {
    let stage = Stage::start(ClientConfig {
        chat_idle_timeout: Some(SHORT),
        ..config()
    })
    .await;
    let (_, outcome, ()) = stage
        .chat(async |mut line| {
            line.bytes(HEAD).await.unwrap();
            let comments = b": still here\n\n".repeat(1_000);
            assert!(line.trickle(&comments, SHORT / 4).await.is_err());
        })
        .await;
    assert!(matches!(outcome, Outcome::TimedOut { .. }), "{outcome:?}");
    stage.works().await;
}

#[tokio::test]
async fn undecodable_events_are_skipped_and_reported() {
    let deep = format!("data: {}\n\n", "[".repeat(MAX / 2));
    let long = format!("data: {}\n\n", "x".repeat(4 * MAX));
    let bad: [&[u8]; 5] = [
        deep.as_bytes(),
        long.as_bytes(),
        b"data: {\"type\":\"text-delta\",\"text\":\"\xff\"}\n\n",
        b"data: no frame\n\n",
        TEXT,
    ];
    let stage = Stage::start(config()).await;
    for bad in bad {
        let (updates, outcome, ()) = stage
            .chat(async |mut line| {
                for part in [HEAD, bad, BARE_TEXT, DONE] {
                    line.bytes(part).await.unwrap();
                }
            })
            .await;
        assert!(outcome.is_done(), "{outcome:?}");
        let text = matches!(updates.last(), Some(ChatUpdate::Event(_)));
        assert!(text, "{updates:?}");
        assert!(updates.len() <= 4, "{updates:?}");
    }
}

#[tokio::test]
async fn an_endless_head_is_an_error() {
    let stage = Stage::start(config()).await;
    let (_, outcome, ()) = stage
        .chat(async |mut line| {
            line.bytes(b"HTTP/1.1 200 OK\r\n").await.unwrap();
            let header = b"X-More: and more\r\n".repeat(1_000);
            while line.bytes(&header).await.is_ok() {}
        })
        .await;
    assert!(matches!(outcome, Outcome::Closed { .. }), "{outcome:?}");
    stage.works().await;
}

#[tokio::test]
async fn a_flood_of_events_is_read_only_as_fast_as_it_is_consumed() {
    let stage = Stage::start(config()).await;
    let server = async {
        let mut line = stage.listener.accept().await.unwrap();
        line.head().await.unwrap();
        line.bytes(HEAD).await.unwrap();
        let flood = BARE_TEXT.repeat(1_000_000);
        let sent = line.push(&flood, SHORT).await.unwrap();
        assert!(sent < flood.len());
        line
    };
    let request = ChatRequest::new("hi", "m");
    let (chat, mut line) = soon(async { tokio::join!(stage.client.chat(request), server) }).await;
    // To drop it is to hang up.
    drop(chat);
    assert_ne!(soon(line.http_end()).await, End::Close(200));
    stage.works().await;
}

#[tokio::test]
async fn an_unrequested_compression_is_named_in_the_error() {
    let stage = Stage::start(config()).await;
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03junk";
    for (head, is_chat) in [
        (
            &b"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip"[..],
            true,
        ),
        (b"200 OK\r\nContent-Type: text/event-stream", true),
        (b"503 Busy\r\nContent-Encoding: gzip", false),
        (b"400 No\r\nContent-Type: text/plain", false),
    ] {
        let answer = [b"HTTP/1.1 ", head, b"\r\n\r\n", &gzip[..]].concat();
        let (_, outcome, ()) = stage
            .chat(async |mut line| line.bytes(&answer).await.unwrap())
            .await;
        let words = "compressed with gzip, though identity was asked for";
        assert!(outcome.to_string().contains(words), "{outcome}");
        assert_eq!(
            matches!(outcome, Outcome::Closed { .. }),
            is_chat,
            "{outcome}"
        );
    }
}
