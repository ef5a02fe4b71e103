//! How long things live at a host under virtual time: sessions, runs, and what a client that comes back
//! finds of them.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use connectonion_proto::net::{Agent, AppError, HostRuntime, Prompt, Reply, RuntimeOptions, Turn};
use connectonion_proto::server::ServerConfig;
use connectonion_proto::session::LogLimits;
use connectonion_proto::trust::TrustLevel;
use rpc_core::keepalive::KeepAlive;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::staff::{Client, SECOND, client_key, connect, host_key, input, runtime, runtime_with};

/// A client that gets PINGs as the specification has them, at the session `s`.
async fn pinged(runtime: &HostRuntime) -> (Client, Value) {
    let config = ServerConfig {
        keep_alive: KeepAlive::off(),
        ..ServerConfig::default()
    };
    let mut client = Client::open_with(runtime, config);
    let members = json!({"session_id": "s"});
    client.send(&connect(&client_key(), members)).await;
    let connected = client.recv_type("CONNECTED").await;
    (client, connected)
}

async fn status(runtime: &HostRuntime) -> Value {
    let (mut client, _) = Client::inside(runtime, json!({})).await;
    let query = json!({"type": "SESSION_STATUS", "session": {"session_id": "s"}});
    client.send(&query).await;
    client.recv_type("SESSION_STATUS").await["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn pongs_keep_an_idle_session_alive() {
    let runtime = runtime();
    let (mut client, _) = pinged(&runtime).await;
    for _ in 0..50 {
        client.recv_type("PING").await;
        client.send(&json!({"type": "PONG"})).await;
    }
    assert_eq!(status(&runtime).await, "connected");
    // Without them it ends, although the line is up.
    for _ in 0..21 {
        client.recv_type("PING").await;
    }
    assert_eq!(status(&runtime).await, "not_found");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_is_pinged_every_30_seconds() {
    let runtime = runtime();
    let (mut client, _) = pinged(&runtime).await;
    client.send(&input("wait")).await;
    client.recv_type("user_input").await;
    drop(client);
    sleep(7 * SECOND).await;
    let opened = Instant::now();
    let (mut client, connected) = pinged(&runtime).await;
    assert_eq!(connected["status"], "running");
    client.recv_type("user_input").await;
    for number in 1..4 {
        client.recv_type("PING").await;
        assert_eq!(opened.elapsed(), number * 30 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_has_the_duration_of_its_run() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    for (prompt, took) in [("sleep 5", 5_000), ("sleep 2", 2_000)] {
        client.send(&input(prompt)).await;
        assert_eq!(client.output().await["duration_ms"], took);
    }
}

/// Works for ever, and says when it is dropped.
struct Stuck(Arc<AtomicBool>);

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Agent for Stuck {
    async fn run(&self, _: &Turn, _: Prompt) -> Result<Reply, AppError> {
        let _dropped = Dropped(Arc::clone(&self.0));
        pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn the_task_of_a_stuck_run_is_ended_with_it() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let options = RuntimeOptions::new(&host_key(), TrustLevel::Open);
    let runtime = HostRuntime::new(Stuck(Arc::clone(&is_gone)), options);
    let running = runtime.clone();
    tokio::spawn(async move { running.run().await });
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&input("work")).await;
    client.recv_type("user_input").await;
    drop(client);
    sleep(3_599 * SECOND).await;
    assert!(!is_gone.load(Ordering::SeqCst));
    sleep(2 * SECOND).await;
    assert!(is_gone.load(Ordering::SeqCst));
    assert_eq!((runtime.running(), runtime.sessions()), (0, 0));
}

/// What a client with an old conversation finds, whose session has had an answer since and is at work
/// again. It has seen the beginning of the run.
async fn resumed_with_an_old_conversation(runtime: &HostRuntime) -> (Client, Value) {
    let (mut client, _) = Client::inside(runtime, json!({"session_id": "s"})).await;
    client.ask("hello").await;
    client.send(&input("babble 9")).await;
    let seen = client.recv_type("user_input").await;
    client.recv_type("thinking").await;
    drop(client);
    let old = json!({"session_id": "s", "last_msg_id": seen["id"], "session": {"messages": [], "turn": 0}});
    Client::inside(runtime, old).await
}

fn messages(connected: &Value) -> Vec<&str> {
    let messages = connected["session"]["messages"].as_array().unwrap();
    let messages = messages.iter().map(|it| it["content"].as_str().unwrap());
    messages.collect()
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_gets_the_hosts_newer_conversation_and_missed_events() {
    let runtime = runtime();
    let (mut client, connected) = resumed_with_an_old_conversation(&runtime).await;
    assert_eq!(connected["status"], "running");
    assert_eq!(connected["server_newer"], true);
    // As it was before the run, whose events follow.
    assert_eq!(messages(&connected), ["hello", "echo: hello"]);
    assert_eq!(connected["chat_items"].as_array().unwrap().len(), 2);
    for number in 0..9 {
        let thought = client.recv_type("thinking").await;
        assert_eq!(thought["content"], number.to_string());
    }
    client.send(&json!({"type": "INTERRUPT"})).await;
    client.output().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_events_were_evicted_is_resumed_with_its_conversation() {
    let mut options = RuntimeOptions::new(&host_key(), TrustLevel::Open);
    options.hub.log = LogLimits {
        max_events: 4,
        ..LogLimits::default()
    };
    let runtime = runtime_with(options);
    let (mut client, connected) = resumed_with_an_old_conversation(&runtime).await;
    assert_eq!(connected["status"], "running");
    assert_eq!(connected["server_newer"], true);
    assert_eq!(messages(&connected), ["hello", "echo: hello", "babble 9"]);
    // And then what is left.
    let thought = client.recv_type("thinking").await;
    assert!(thought["content"].as_str().unwrap() > "3", "{thought}");
    client.send(&json!({"type": "INTERRUPT"})).await;
    client.output().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_refuses_an_eleventh_file_and_one_over_10_mebibytes_by_default() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    let file = |data: &str| json!({"name": "a", "data": data});
    // In base64, one that is two bytes too large.
    let large = "A".repeat(13_981_016);
    for (files, words) in [
        (vec![file("aGk="); 11], "Too many files: 11 (max: 10)"),
        (vec![file(&large)], "File too large: a (10.0MB, max: 10MB)"),
    ] {
        let mut prompt = input("read them");
        prompt["files"] = files.into();
        client.send(&prompt).await;
        let error = client.recv_type("ERROR").await;
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(words), "{message}");
    }
}
