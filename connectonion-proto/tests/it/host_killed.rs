//! A host that is killed in the middle of a run: what it acknowledged is there.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use connectonion_proto::net::{Server, ServerOptions};
use connectonion_proto::storage::{FileConfig, FileStore};
use connectonion_proto::trust::TrustLevel;
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::staff::{Client, Scripted, host_key, input};

/// Where the child stores; it is this very program.
const FILE: &str = "CONNECTONION_KILLED_HOST";

async fn bind(path: impl Into<std::path::PathBuf>) -> Server<Scripted> {
    let store = FileStore::open(&path.into(), FileConfig::default()).unwrap();
    let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
    options.runtime.store = Some(Arc::new(store));
    Server::bind("127.0.0.1:0", Scripted, options)
        .await
        .unwrap()
}

/// Serves until it is killed. Does nothing in a usual test run.
#[tokio::test]
async fn the_child_that_is_killed() {
    let Some(path) = env::var_os(FILE) else {
        return;
    };
    let host = bind(path).await;
    println!("\nlistening {}", host.url());
    host.run().await;
}

#[tokio::test]
async fn acknowledged_prompts_survive_a_kill() {
    let scratch = Scratch::new();
    let path = scratch.file("sessions.redb");
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "host_killed::the_child_that_is_killed",
            "--nocapture",
        ])
        .env(FILE, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let url = lines
        .find_map(|line| Some(line.strip_prefix("listening ")?.to_owned()))
        .unwrap();

    let (mut idle, _) = Client::dial_in(&url, json!({"session_id": "idle"})).await;
    idle.ask("hello").await;
    let (mut busy, _) = Client::dial_in(&url, json!({"session_id": "busy"})).await;
    busy.ask("earlier").await;
    busy.send(&input("wait for ever")).await;
    // The first event acknowledges a prompt.
    busy.recv_type("user_input").await;
    for prompt in ["first", "second"] {
        busy.send(&input(prompt)).await;
        busy.recv_type("RUNTIME_INPUT_ACK").await;
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let host = bind(&path).await;
    let url = host.url();
    tokio::spawn(host.run());
    let said = |connected: &Value| -> Vec<String> {
        let messages = connected["session"]["messages"].as_array().unwrap();
        messages
            .iter()
            .map(|it| it["content"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, connected) = Client::dial_in(&url, json!({"session_id": "idle"})).await;
    assert_eq!(said(&connected), ["hello", "echo: hello"]);
    let (mut busy, connected) = Client::dial_in(&url, json!({"session_id": "busy"})).await;
    assert_eq!(connected["status"], "new");
    assert_eq!(
        said(&connected),
        [
            "earlier",
            "echo: earlier",
            "wait for ever",
            "first",
            "second"
        ]
    );
    assert_eq!(busy.ask("count").await, "6 messages");
}
