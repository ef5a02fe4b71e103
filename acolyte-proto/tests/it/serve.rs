//! The server over real WebSockets: chats, the queue, aborts, faults of the agent, leaving and
//! ending.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acolyte_proto::Refused;
use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::net::{Server, ServerOptions, http_config};
use acolyte_proto::server::ServerConfig;
use rpc_core::net::DialError;
use rpc_core::net::server::HttpConfig;
use serde_json::json;
use switchboard_testing::faults::upgrade_request;
use tokio::time::timeout;

use crate::daemon::{DEADLINE, LONG, Peer, puppet, serve};

const RUNNING: &str = "chat.event status";

fn patient() -> ServerOptions {
    let connection = ServerConfig {
        abort_grace: LONG,
        ..ServerConfig::default()
    };
    ServerOptions {
        connection,
        ..ServerOptions::default()
    }
}

fn with_key() -> ServerOptions {
    ServerOptions::new(Auth::key(ApiKey::new("s3cret").unwrap()))
}

#[tokio::test]
async fn a_chat_starts_streams_its_steps_and_is_done() {
    let server = serve(ServerOptions::default()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "hello").await;
    assert_eq!(
        peer.shorts(5).await,
        [
            "a chat.accepted",
            "a chat.started",
            "a chat.event status",
            "a chat.event hello",
            "a chat.done"
        ]
    );
}

#[tokio::test]
async fn a_task_can_be_queried_on_any_connection() {
    let server = serve(ServerOptions::default()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "wait").await;
    let accepted = peer.next().await.unwrap();
    let task_id = accepted["taskId"].as_str().unwrap();
    peer.until(&format!("a {RUNNING}")).await;
    let mut other = server.client().await;
    assert_eq!(other.task_state(task_id).await, "running");
    server.shared.gate.notify_one();
    peer.until("a chat.done").await;
    assert_eq!(other.task_state(task_id).await, "completed");
    peer.start("rpc_b", "fail").await;
    let accepted = peer.next().await.unwrap();
    peer.until("b chat.error E_NO").await;
    let failed = accepted["taskId"].as_str().unwrap();
    assert_eq!(other.task_state(failed).await, "failed");
    assert_eq!(other.task_state("task_unknown").await, json!(null));
}

#[tokio::test]
async fn the_status_counts_over_all_connections() {
    let server = serve(ServerOptions::default()).await;
    let (mut one, mut two) = (server.client().await, server.client().await);
    one.start("rpc_a", "wait").await;
    one.start("rpc_b", "wait").await;
    one.until("b chat.queued 1").await;
    two.send(&json!({"id": "rpc_s", "type": "status.get"}))
        .await;
    let answer = two.next().await.unwrap();
    let status = &answer["status"];
    assert_eq!(answer["type"], "status.result");
    assert_eq!(
        [
            &status["tasks_total"],
            &status["tasks_running"],
            &status["rpc_queue_length"],
            &status["model"]
        ],
        [&json!(2), &json!(1), &json!(1), &json!("puppet")]
    );
    let service = format!("http://localhost:{}", server.address.port());
    assert_eq!(status["service"], service);
    assert!(status["provider_auth"].is_array() && status["tasks_detached"].is_u64());
}

#[tokio::test]
async fn a_message_of_16_mib_is_read() {
    let server = serve(ServerOptions::default()).await;
    let mut peer = server.client().await;
    let mut ask = json!({"id": "rpc_s", "type": "status.get", "more": ""});
    let pad = 16 * 1024 * 1024 - ask.to_string().len();
    ask["more"] = json!("x".repeat(pad));
    peer.send(&ask).await;
    assert_eq!(peer.short().await, "s status.result");
}

#[tokio::test]
async fn chats_run_one_by_one_and_positions_are_sent() {
    let server = serve(ServerOptions::default()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "wait").await;
    peer.until(&format!("a {RUNNING}")).await;
    peer.start("rpc_b", "wait").await;
    peer.start("rpc_c", "wait").await;
    peer.until("c chat.queued 2").await;
    server.shared.gate.notify_one();
    assert_eq!(
        peer.shorts(3).await,
        ["a chat.done", "c chat.queued 1", "b chat.started"]
    );
    assert_eq!(peer.short().await, format!("b {RUNNING}"));
}

#[tokio::test]
async fn an_abort_during_a_tool_starts_no_further_tool() {
    let mut server = serve(patient()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "tools").await;
    peer.start("rpc_b", "hello").await;
    peer.until("a chat.event tool-call").await;
    server.shared.gate.notify_one();
    peer.until("a chat.event tool-call").await;
    peer.abort("rpc_x", "rpc_a").await;
    peer.until("a chat.error E_ABORTED").await;
    assert_eq!(
        peer.shorts(4).await,
        [
            "x chat.abort.result true",
            "b chat.started",
            "b chat.event status",
            "b chat.event hello"
        ]
    );
    assert_eq!(server.ended().await, "tools");
    assert_eq!(server.shared.tools.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn work_that_ignores_an_abort_is_dropped() {
    for grace in [Duration::ZERO, Duration::from_millis(20)] {
        let connection = ServerConfig {
            abort_grace: grace,
            ..ServerConfig::default()
        };
        let mut server = serve(ServerOptions {
            connection,
            ..ServerOptions::default()
        })
        .await;
        let mut peer = server.client().await;
        peer.start("rpc_a", "hang").await;
        peer.start("rpc_b", "hello").await;
        peer.until("b chat.queued 1").await;
        peer.abort("rpc_x", "rpc_a").await;
        peer.until("x chat.abort.result true").await;
        peer.until("b chat.done").await;
        assert_eq!(server.ended().await, "hang");
    }
}

#[tokio::test]
async fn an_agent_may_finish_within_the_abort_grace() {
    let mut server = serve(patient()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "obey").await;
    peer.until(&format!("a {RUNNING}")).await;
    peer.abort("rpc_x", "rpc_a").await;
    assert_eq!(server.ended().await, "obeyed");
    assert_eq!(server.ended().await, "obey");
    assert_eq!(
        peer.shorts(2).await,
        ["a chat.error E_ABORTED", "x chat.abort.result true"]
    );
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn an_aborted_chat_discards_queued_steps() {
    let server = serve(patient()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "flood").await;
    peer.until(&format!("a {RUNNING}")).await;
    peer.abort("rpc_x", "rpc_a").await;
    peer.until("a chat.error E_ABORTED").await;
    assert_eq!(peer.short().await, "x chat.abort.result true");
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn chats_of_one_connection_are_not_aborted_by_another() {
    let server = serve(ServerOptions::default()).await;
    let (mut one, mut two) = (server.client().await, server.client().await);
    one.start("rpc_a", "wait").await;
    one.until(&format!("a {RUNNING}")).await;
    two.abort("rpc_x", "rpc_a").await;
    assert_eq!(two.short().await, "x chat.abort.result false");
    server.shared.gate.notify_one();
    one.until("a chat.done").await;
}

#[tokio::test]
async fn a_failing_agent_ends_only_its_own_chat() {
    let server = serve(ServerOptions::default()).await;
    let mut peer = server.client().await;
    for (message, end) in [
        ("panic", "chat.error E_UNKNOWN"),
        ("fail", "chat.error E_NO"),
        ("ill", "chat.done"),
        ("large step", "chat.error E_UNKNOWN"),
        ("large reply", "chat.error E_UNKNOWN"),
        ("error event", "chat.done"),
        ("hello", "chat.done"),
    ] {
        peer.start("rpc_a", message).await;
        peer.until("a chat.started").await;
        peer.until(&format!("a {end}")).await;
    }
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn output_after_the_end_of_a_chat_is_discarded() {
    let mut server = serve(ServerOptions::default()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "keep").await;
    peer.until("a chat.done").await;
    assert_eq!(server.ended().await, "keep");
    assert_eq!(server.ended().await, "refused");
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn the_work_is_dropped_when_its_client_leaves() {
    let mut server = serve(patient()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "hang").await;
    let accepted = peer.next().await.unwrap();
    peer.until(&format!("a {RUNNING}")).await;
    drop(peer);
    assert_eq!(server.ended().await, "hang");
    let mut other = server.client().await;
    let task_id = accepted["taskId"].as_str().unwrap();
    assert_eq!(other.task_state(task_id).await, "cancelled");
}

#[tokio::test]
async fn many_steps_come_in_order_and_none_is_lost() {
    let server = serve(ServerOptions::default()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "many").await;
    peer.until(&format!("a {RUNNING}")).await;
    for n in 0..10_000 {
        assert_eq!(peer.short().await, format!("a chat.event {n}"));
    }
    assert_eq!(peer.short().await, "a chat.done");
}

#[tokio::test]
async fn a_slow_client_applies_backpressure_to_the_agent() {
    let server = serve(ServerOptions::default()).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "flood").await;
    let floods = || server.shared.floods.load(Ordering::SeqCst);
    let standstill = async {
        let mut before = 0;
        while before == 0 || before != floods() {
            before = floods();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        before
    };
    // The system's buffers, ours, and no more.
    let sent = timeout(LONG, standstill).await.unwrap();
    assert!(sent < 4 * 1024, "{sent} steps");
    let read = async {
        while floods() == sent {
            peer.next().await.unwrap();
        }
    };
    timeout(LONG, read).await.unwrap();
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected_and_its_work_dropped() {
    let mut options = ServerOptions::default();
    options.driver.write_timeout = Duration::from_millis(100);
    let mut server = serve(options).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "flood").await;
    assert_eq!(server.ended().await, "flood");
    drop(peer);
}

fn subprotocol(peer: &Peer) -> Option<&str> {
    peer.ws.subprotocol()
}

#[tokio::test]
async fn a_key_is_required_in_a_header_or_subprotocol() {
    let server = serve(with_key()).await;
    let peer = server.dial(&["acolyte.v1", "bearer.s3cret"]).await.unwrap();
    assert_eq!(subprotocol(&peer), Some("acolyte.v1"));
    let peer = server.dial(&["bearer.s3cret"]).await.unwrap();
    assert_eq!(subprotocol(&peer), Some("bearer.s3cret"));
    for wrong in [
        &[][..],
        &["acolyte.v1"],
        &["bearer.s3cre"],
        &["Bearer.s3cret"],
    ] {
        let refused = server.dial(wrong).await;
        assert!(
            matches!(refused, Err(DialError::Status { status: 401, .. })),
            "{wrong:?}"
        );
    }
}

#[tokio::test]
async fn other_machines_are_not_served_without_a_key() {
    let (agent, ..) = puppet();
    let bind = Server::bind("0.0.0.0:0", agent, ServerOptions::default()).await;
    let refused = bind.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let why = refused.get_ref().unwrap().downcast_ref();
    assert!(matches!(
        why,
        Some(Refused::Invalid {
            what: "API key",
            ..
        })
    ));
    let (agent, ..) = puppet();
    assert!(Server::bind("0.0.0.0:0", agent, with_key()).await.is_ok());
}

#[tokio::test]
async fn a_drain_ends_chats_at_its_deadline_with_an_error() {
    let options = ServerOptions {
        shutdown_timeout: Duration::from_millis(20),
        ..ServerOptions::default()
    };
    let mut server = serve(options).await;
    let mut peer = server.client().await;
    peer.start("rpc_a", "hang").await;
    peer.until(&format!("a {RUNNING}")).await;
    let handle = server.handle.clone();
    let drained = tokio::spawn(async move { handle.drain(LONG).await });
    assert_eq!(
        peer.shorts(2).await,
        ["a chat.error E_UNKNOWN", "close 1001"]
    );
    assert_eq!(server.ended().await, "hang");
    drop(peer);
    assert!(timeout(LONG, drained).await.is_ok());
}

#[tokio::test]
async fn only_listed_web_pages_may_connect() {
    let server = serve(ServerOptions::default()).await;
    let upgrade = |more: &str| upgrade_request("/v1/rpc", more);
    for foreign in [
        "http://evil.example",
        "http://localhost:3000",
        "http://127.0.0.1",
        "http://[::1]:6767",
        "null",
    ] {
        let refused = server
            .ask(&upgrade(&format!("origin: {foreign}\r\n")))
            .await;
        assert!(refused.starts_with("HTTP/1.1 403"), "{foreign}: {refused}");
    }
    let host = upgrade("").replace("localhost", "evil.example");
    assert!(server.ask(&host).await.starts_with("HTTP/1.1 403"));
    let guards = http_config()
        .guards
        .with_allowed_origin("http://good.example");
    let guards = guards.unwrap();
    let http = HttpConfig {
        guards,
        ..http_config()
    };
    let listing = serve(ServerOptions {
        http,
        ..ServerOptions::default()
    })
    .await;
    for (server, origin) in [
        (&server, "http://localhost"),
        (&listing, "http://localhost"),
        (&listing, "http://good.example"),
    ] {
        let asked = upgrade(&format!("origin: {origin}\r\n"));
        let answer = timeout(DEADLINE, server.ask(&asked)).await;
        // It was admitted, and the line stays open.
        assert!(answer.is_err(), "{origin}");
    }
}
