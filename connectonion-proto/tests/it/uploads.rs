//! How long the files of prompts are kept.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use connectonion_proto::net::RuntimeOptions;
use connectonion_proto::trust::TrustLevel;
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::staff::{Client, SECOND, host_key, input, runtime_with};

fn options(scratch: &Scratch) -> RuntimeOptions {
    let mut options = RuntimeOptions::new(&host_key(), TrustLevel::Open);
    options.uploads = scratch.path().into();
    options
}

fn with_file(prompt: &str) -> Value {
    let mut frame = input(prompt);
    frame["files"] = json!([{"name": "a.txt", "data": "aGk="}]);
    frame
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[tokio::test(start_paused = true)]
async fn files_of_a_refused_prompt_are_removed() {
    let scratch = Scratch::new();
    let mut options = options(&scratch);
    options.hub.max_running = 1;
    let runtime = runtime_with(options);
    let (mut busy, _) = Client::inside(&runtime, json!({"session_id": "busy"})).await;
    busy.send(&with_file("wait here")).await;
    busy.recv_until("files_received").await;
    let (mut client, _) = Client::inside(&runtime, json!({"session_id": "other"})).await;
    client.send(&with_file("hello")).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "too many agents are running");
    // Its client does not wait for the answer.
    client.send(&with_file("hello")).await;
    client.send(&json!({"type": "INTERRUPT"})).await;
    client.recv_type("ERROR").await;
    drop(client);
    tokio::time::sleep(SECOND).await;
    assert_eq!(count(scratch.path()), 1, "that of the other session");
}

#[tokio::test(start_paused = true)]
async fn files_end_with_their_session() {
    static LATER: AtomicU64 = AtomicU64::new(0);
    const DAY: u64 = 24 * 60 * 60;
    let scratch = Scratch::new();
    let mut options = options(&scratch);
    options.clock = || SystemTime::now() + Duration::from_secs(LATER.load(Ordering::Relaxed));
    options.hub.idle_timeout = Duration::from_secs(10 * DAY);
    let runtime = runtime_with(options);
    // Neither its own, nor of a session that is open.
    std::fs::write(scratch.file("by hand"), "hi").unwrap();
    let (mut open, _) = Client::inside(&runtime, json!({"session_id": "open"})).await;
    let (mut left, _) = Client::inside(&runtime, json!({"session_id": "left"})).await;
    for client in [&mut open, &mut left] {
        client.send(&with_file("look")).await;
        client.output().await;
    }
    drop(left);
    tokio::time::sleep(30 * 60 * SECOND).await;
    assert_eq!(count(scratch.path()), 3);
    LATER.store(2 * DAY, Ordering::Relaxed);
    tokio::time::sleep(30 * 60 * SECOND).await;
    assert_eq!(count(scratch.path()), 2);
    assert_eq!(open.ask("count").await, "3 messages");
}
