//! What a user says to an agent that runs, besides the answers to its questions.

use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::net::{HostRuntime, RuntimeOptions};
use connectonion_proto::trust::TrustLevel;
use rpc_core::store::{LogConfig, MemoryStore, Store};
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::staff::{Client, Scripted, host_key, input, runtime, runtime_with, stored, types};

#[tokio::test(start_paused = true)]
async fn a_prompt_during_a_run_keeps_its_images_and_files() {
    let scratch = Scratch::new();
    let mut options = RuntimeOptions::new(&host_key(), TrustLevel::Open);
    options.uploads = scratch.path().into();
    let runtime = runtime_with(options);
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&input("listen")).await;
    client.recv_type("user_input").await;
    let mut look = input("look");
    look["images"] = json!(["data:image/png;base64,AA=="]);
    look["files"] = json!([{"name": "a.txt", "data": "aGk="}]);
    client.send(&look).await;
    let ack = client.recv_type("RUNTIME_INPUT_ACK").await;
    assert!(ack["id"].as_str().unwrap().starts_with("runtime-input-"));
    let frames = client.recv_until("OUTPUT").await;
    assert_eq!(types(&frames), ["files_received", "user_input", "OUTPUT"]);
    let path = frames[0]["files"][0]["path"].as_str().unwrap();
    assert_eq!(std::fs::read(path).unwrap(), b"hi");
    let said = frames[1]["content"].as_str().unwrap();
    assert!(said.starts_with("look") && said.contains(path), "{said}");
    let message = &frames[2]["session"]["messages"][1];
    assert_eq!(message["content"][0]["text"], said);
    let image = &message["content"][1]["image_url"]["url"];
    assert_eq!(*image, look["images"][0]);
}

#[tokio::test(start_paused = true)]
async fn the_last_goal_reaches_the_running_agent() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    let update = |goal: &str| json!({"type": "prompt_update", "prompt": goal});
    client.send(&update("early")).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "prompt_update requires an active turn");
    client.send(&input("goal which?")).await;
    client.recv_until("ask_user").await;
    client.send(&update("good")).await;
    client.send(&update("better")).await;
    client
        .send(&json!({"type": "ASK_USER_RESPONSE", "answer": "yes"}))
        .await;
    assert_eq!(client.output().await["result"], "goal better");
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_session_is_that_of_its_agent() {
    let runtime = runtime();
    let (mut client, connected) = Client::inside(&runtime, json!({})).await;
    let query = |id: &Value| json!({"type": "SESSION_STATUS", "session": {"session_id": id}});
    let own = query(&connected["session_id"]);
    client.send(&own).await;
    let status = client.recv_type("SESSION_STATUS").await;
    assert_eq!(status["session_id"], connected["session_id"]);
    assert_eq!(status["status"], "connected");
    client.send(&input("wait")).await;
    client.recv_type("user_input").await;
    client.send(&own).await;
    assert_eq!(
        client.recv_type("SESSION_STATUS").await["status"],
        "running"
    );
    client.send(&query(&json!("unknown"))).await;
    let status = client.recv_type("SESSION_STATUS").await;
    assert_eq!(status["status"], "not_found");
    client.send(&json!({"type": "INTERRUPT"})).await;
    client.output().await;
}

#[tokio::test]
async fn a_long_prompt_is_stored_once() {
    let store = MemoryStore::new();
    let config = LogConfig {
        max_age: Some(Duration::from_secs(1)),
        ..LogConfig::new("onion_log.*")
    };
    let size = async || {
        let log = store.log("onion_log", config.clone()).await.unwrap();
        log.state().await.unwrap().bytes
    };
    let mut options = RuntimeOptions::new(&host_key(), TrustLevel::Open);
    options.store = Some(Arc::new(store.clone()));
    let runtime = HostRuntime::new(Scripted, options);
    let running = runtime.clone();
    tokio::spawn(async move { running.run().await });
    let (mut client, _) = Client::inside(&runtime, json!({"session_id": "s"})).await;
    let [first, second] = ["a", "b"].map(|it| format!("count {}", it.repeat(30_000)));
    assert_eq!(client.ask(&first).await, "1 messages");
    assert!(size().await < 32_000);
    client.send(&input("sleep 1")).await;
    client.recv_type("user_input").await;
    client.send(&input(&second)).await;
    let output = client.output().await;
    assert_eq!(output["result"], "5 messages");
    let bytes = size().await;
    assert!(bytes < 66_000, "{bytes}");
    let stored = stored(&store, "s").await.unwrap();
    let stored: Value = stored.session.unwrap().parse().unwrap();
    assert_eq!(stored, output["session"]);
    let said = stored["messages"].as_array().unwrap();
    assert_eq!(
        (&said[0]["content"], &said[4]["content"]),
        (&json!(first), &json!(second))
    );
}

#[tokio::test(start_paused = true)]
async fn acknowledged_prompts_are_read_even_if_the_agent_fails() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&input("ask what")).await;
    let question = client.recv_until("ask_user").await.pop().unwrap();
    assert_eq!(question["question"], "what");
    assert_eq!(question["text"], "what");
    client.send(&input("first")).await;
    client.recv_type("RUNTIME_INPUT_ACK").await;
    client.send(&input("second")).await;
    client.recv_type("RUNTIME_INPUT_ACK").await;
    client
        .send(&json!({"type":"ASK_USER_RESPONSE","answer":"fail"}))
        .await;
    let error = client.recv_until("ERROR").await.pop().unwrap();
    assert_eq!(error["message"], "as it was told");
    // In one run or in two, as the storage is fast or slow.
    let mut said = Vec::new();
    let mut result = String::new();
    while result != "echo: second" {
        let frame = client.recv().await;
        if frame["type"] == "user_input" {
            said.push(frame["content"].clone());
        }
        result = frame["result"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(said, ["first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn too_many_waiting_prompts_have_their_own_error() {
    let runtime = runtime_with(RuntimeOptions::new(&host_key(), TrustLevel::Open));
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&input("wait")).await;
    client.recv_type("user_input").await;
    for _ in 0..64 {
        client.send(&input("more")).await;
        client.recv_type("RUNTIME_INPUT_ACK").await;
    }
    client.send(&input("too much")).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "too many inputs wait for the agent");
    assert_eq!(error["code"], "RUNTIME_INPUT_REJECTED");
    assert_eq!(error["retryable"], true);
    // The run goes on.
    client.send(&json!({"type": "INTERRUPT"})).await;
    client.output().await;
}
