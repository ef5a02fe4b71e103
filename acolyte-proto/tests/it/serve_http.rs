//! The server's HTTP endpoints over real sockets: health, status, chats as streams, the shutdown.

use std::time::Duration;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::net::ServerOptions;
use acolyte_proto::server::ServerConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::daemon::{LONG, Running, serve};

fn with_key() -> ServerOptions {
    ServerOptions::new(Auth::key(ApiKey::new("s3cret").unwrap()))
}

fn request(line: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!("{line} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {len}\r\n\r\n{body}")
}

fn chat(message: &str) -> String {
    let body = json!({"message": message, "history": [], "model": "m"}).to_string();
    request("POST /v1/chat/stream", "", &body)
}

/// The status, the content type and the body of an answer.
fn parts(answer: &str) -> (u16, String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let kind = head
        .lines()
        .find_map(|line| line.strip_prefix("content-type: "))
        .unwrap_or_default();
    let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
    (status, kind.to_owned(), body.to_owned())
}

/// A chat over HTTP, read piece by piece.
struct Stream {
    tcp: TcpStream,
    seen: String,
}

impl Stream {
    async fn open(server: &Running, message: &str) -> Self {
        let mut tcp = TcpStream::connect(server.address).await.unwrap();
        tcp.write_all(chat(message).as_bytes()).await.unwrap();
        let seen = String::new();
        Self { tcp, seen }
    }

    /// Reads until this was said.
    async fn until(&mut self, wanted: &str) {
        let read = async {
            while !self.seen.contains(wanted) {
                let mut bytes = [0; 4096];
                let len = self.tcp.read(&mut bytes).await.unwrap();
                assert!(len > 0, "{wanted} did not come: {}", self.seen);
                self.seen
                    .push_str(std::str::from_utf8(&bytes[..len]).unwrap());
            }
        };
        timeout(LONG, read).await.expect("in time");
    }
}

/// The frames of a stream that has ended, without those of its transfer.
fn frames(answer: &str) -> Vec<Value> {
    let data = answer
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[tokio::test]
async fn a_chat_is_a_stream_of_its_events_that_ends_with_done() {
    let server = serve(ServerOptions::default()).await;
    let answer = server.ask(&chat("hello")).await;
    let (status, kind, _) = parts(&answer);
    assert_eq!((status, kind.as_str()), (200, "text/event-stream"));
    let frames = frames(&answer);
    assert_eq!(
        frames[..2],
        [
            json!({"type": "status", "state": {"kind": "running"}}),
            json!({"type": "text-delta", "text": "hello"})
        ]
    );
    assert_eq!(frames.len(), 3);
    assert_eq!(frames[2]["type"], "done");
    assert_eq!(frames[2]["reply"]["output"], "hello");
    // No chat over HTTP is a task.
    let (_, _, status) = parts(&server.ask(&request("GET /v1/status", "", "")).await);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["tasks_total"], 0);
}

#[tokio::test]
async fn a_failed_chat_ends_with_one_complete_error() {
    let server = serve(ServerOptions::default()).await;
    for (message, code) in [
        ("fail", "E_NO"),
        ("panic", "E_UNKNOWN"),
        ("large step", "E_UNKNOWN"),
    ] {
        let frames = frames(&server.ask(&chat(message)).await);
        assert_eq!(frames.len(), 2, "{message}");
        assert_eq!(frames[1]["type"], "error");
        assert_eq!(frames[1]["errorCode"], code);
        assert_eq!(frames[1]["error"]["code"], code);
        assert!(frames[1]["errorId"].as_str().unwrap().starts_with("err_"));
    }
}

#[tokio::test]
async fn http_bodies_are_checked_less_strictly_with_their_own_errors() {
    let server = serve(ServerOptions::default()).await;
    let post = |body: &str| request("POST /v1/chat/stream", "", body);
    let lax = json!({"message": "x".repeat(100_001), "history": [], "model": "m",
        "sessionId": "no", "more": 1});
    let (status, ..) = parts(&server.ask(&post(&lax.to_string())).await);
    assert_eq!(status, 200);
    for (body, text) in [
        ("{", "Invalid JSON body"),
        ("", "Invalid JSON body"),
        ("{}", "Invalid request shape"),
        ("[]", "Invalid request shape"),
    ] {
        let (status, kind, said) = parts(&server.ask(&post(body)).await);
        assert_eq!(
            (status, kind.as_str(), said.as_str()),
            (400, "text/plain;charset=utf-8", text)
        );
    }
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_by_comments() {
    let options = ServerOptions {
        stream_keep_alive: Duration::from_millis(10),
        ..ServerOptions::default()
    };
    let server = serve(options).await;
    let mut stream = Stream::open(&server, "wait").await;
    stream.until("\n:\n\n").await;
    server.shared.gate.notify_one();
    stream.until("\"type\":\"done\"").await;
}

#[tokio::test]
async fn the_work_is_dropped_when_its_client_hangs_up() {
    let mut server = serve(ServerOptions::default()).await;
    let mut stream = Stream::open(&server, "hang").await;
    stream.until("running").await;
    drop(stream);
    assert_eq!(server.ended().await, "hang");
}

#[tokio::test]
async fn an_unread_http_stream_is_closed_and_bounds_the_agent() {
    let mut options = ServerOptions::default();
    options.http.limits.write_timeout = Duration::from_millis(100);
    let mut server = serve(options).await;
    let stream = Stream::open(&server, "flood").await;
    assert_eq!(server.ended().await, "flood");
    drop(stream);
}

#[tokio::test]
async fn every_endpoint_but_health_requires_the_key() {
    let server = serve(with_key()).await;
    let good = "authorization: Bearer s3cret\r\n";
    let as_subprotocol = "sec-websocket-protocol: bearer.s3cret\r\n";
    let stream = json!({"message": "hello", "history": [], "model": "m"}).to_string();
    for (line, body, allowed) in [
        ("GET /v1/status", "", 200),
        ("POST /v1/chat/stream", stream.as_str(), 200),
        ("GET /v1/rpc", "", 400),
    ] {
        for wrong in [
            "",
            "authorization: bearer s3cret\r\n",
            "authorization: Bearer x\r\n",
        ] {
            let (status, kind, said) = parts(&server.ask(&request(line, wrong, body)).await);
            assert_eq!(
                (status, kind.as_str(), said.as_str()),
                (401, "text/plain;charset=utf-8", "Unauthorized"),
                "{line}"
            );
        }
        for right in [good, as_subprotocol] {
            let (status, ..) = parts(&server.ask(&request(line, right, body)).await);
            assert_eq!(status, allowed, "{line}");
        }
    }
    let (status, ..) = parts(
        &server
            .ask(&request("POST /v1/admin/shutdown", "", ""))
            .await,
    );
    assert_eq!(status, 401);
    // An upgrade is refused in the same words.
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let (status, kind, said) = parts(&server.ask(&request("GET /v1/rpc", upgrade, "")).await);
    assert_eq!(
        (status, kind.as_str(), said.as_str()),
        (401, "text/plain;charset=utf-8", "Unauthorized")
    );
    let (status, kind, said) = parts(&server.ask(&request("GET /healthz", "", "")).await);
    assert_eq!((status, said.as_str()), (200, r#"{"ok":true}"#));
    assert!(kind.starts_with("application/json"));
    // As some orchestrators ask.
    let (status, _, said) = parts(&server.ask(&request("HEAD /ready", "", "")).await);
    assert_eq!((status, said.as_str()), (200, ""));
}

#[tokio::test]
async fn unknown_paths_are_404_with_or_without_a_key() {
    let server = serve(with_key()).await;
    for line in [
        "GET /",
        "GET /v1/rpc/",
        "POST /healthz",
        "POST /v1/status",
        "GET /v1/chat/stream",
        "GET /v1/admin/shutdown",
        "OPTIONS /v1/status",
    ] {
        let (status, _, said) = parts(&server.ask(&request(line, "", "")).await);
        assert_eq!((status, said.as_str()), (404, "Not Found"), "{line}");
    }
}

#[tokio::test]
async fn a_plain_get_of_the_websocket_path_explains_the_upgrade() {
    let server = serve(ServerOptions::default()).await;
    let (status, _, said) = parts(&server.ask(&request("GET /v1/rpc", "", "")).await);
    assert_eq!((status, said.as_str()), (400, "WebSocket upgrade failed"));
    let (status, _, said) = parts(&server.ask(&request("POST /v1/rpc", "", "")).await);
    assert_eq!(status, 426, "{said}");
}

#[tokio::test]
async fn a_shutdown_request_is_answered_and_drains_the_server() {
    let options = ServerOptions {
        shutdown_timeout: Duration::from_millis(50),
        ..ServerOptions::default()
    };
    let mut server = serve(options).await;
    let mut peer = server.client().await;
    let mut stream = Stream::open(&server, "hang").await;
    stream.until("running").await;
    peer.start("rpc_a", "hang").await;
    peer.until("a chat.event status").await;
    let answer = server
        .ask(&request("POST /v1/admin/shutdown", "", ""))
        .await;
    let (status, _, said) = parts(&answer);
    assert_eq!(
        (status, said.as_str()),
        (200, r#"{"ok":true,"shutdown":true}"#)
    );
    stream.until("\"type\":\"error\"").await;
    assert_eq!(
        peer.shorts(2).await,
        ["a chat.error E_UNKNOWN", "close 1001"]
    );
    assert_eq!(server.ended().await, "hang");
    assert_eq!(server.ended().await, "hang");
}

#[tokio::test]
async fn the_shutdown_endpoint_can_be_disabled() {
    let server = serve(ServerOptions {
        admin_shutdown: false,
        ..ServerOptions::default()
    })
    .await;
    let answer = server
        .ask(&request("POST /v1/admin/shutdown", "", ""))
        .await;
    assert!(answer.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_body_over_16_mib_is_refused() {
    let connection = ServerConfig::default();
    let server = serve(ServerOptions {
        connection,
        ..ServerOptions::default()
    })
    .await;
    let line = "POST /v1/chat/stream";
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16777217\r\n\r\n");
    let answer = server.ask(&head).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let mut body = json!({"message": "hello", "history": [], "model": "m"}).to_string();
    body.push_str(&" ".repeat(16 * 1024 * 1024 - body.len()));
    let (status, ..) = parts(&server.ask(&request(line, "", &body)).await);
    assert_eq!(status, 200);
}
