//! A host that was told nothing: where it keeps things, and what it takes. It runs in a process of its own,
//! because its places are in the working directory.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use connectonion_proto::net::{Server, ServerOptions};
use connectonion_proto::trust::TrustLevel;
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::staff::{Client, Scripted, host_key, input};

/// Set in the child; it is this very program.
const CHILD: &str = "CONNECTONION_DEFAULT_HOST";

/// Serves until it is killed. Does nothing in a usual test run.
#[tokio::test]
async fn the_child_that_serves() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let options = ServerOptions::new(&host_key(), TrustLevel::Open);
    let host = Server::bind("127.0.0.1:0", Scripted, options)
        .await
        .unwrap();
    println!("\nlistening {}", host.url());
    host.run().await;
}

/// A host with every option as it is, in this folder.
struct Host {
    child: Child,
    url: String,
}

impl Host {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "host_defaults::the_child_that_serves",
                "--nocapture",
            ])
            .env(CHILD, "yes")
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("listening ")?.to_owned()))
            .unwrap();
        Self { child, url }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn sessions_and_uploads_are_kept_in_the_project_of_the_agent() {
    let scratch = Scratch::new();
    let host = Host::start(scratch.path());
    let same = json!({"session_id": "kept"});
    let (mut client, _) = Client::dial_in(&host.url, same.clone()).await;
    assert!(!scratch.file(".co").exists(), "nobody has said anything");
    assert_eq!(client.ask("hello").await, "echo: hello");
    let mut read = input("read it");
    read["files"] = json!([{"name": "doc.txt", "data": "data:text/plain;base64,aGk="}]);
    client.say(&read).await;
    assert_eq!(client.output().await["result"], "hi");
    let results = fs::read_to_string(scratch.file(".co/session_results.jsonl")).unwrap();
    assert!(results.contains("echo: hello"), "{results}");
    let last: Value = results.lines().last().unwrap().parse().unwrap();
    let lifetime = last["expires"].as_f64().unwrap() - last["created"].as_f64().unwrap();
    assert!((lifetime - 86_400.0).abs() < 0.01, "{lifetime}");
    let uploads: Vec<_> = fs::read_dir(scratch.file(".co/uploads"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(uploads.len(), 1, "{uploads:?}");
    assert!(
        uploads[0].to_str().unwrap().ends_with("_doc.txt"),
        "{uploads:?}"
    );
    assert_eq!(fs::read(&uploads[0]).unwrap(), b"hi");

    drop(host);
    let host = Host::start(scratch.path());
    let (_, connected) = Client::dial_in(&host.url, same).await;
    assert_eq!(connected["status"], "new");
    let messages = &connected["session"]["messages"];
    assert_eq!(messages[1]["content"], "echo: hello");
}

#[tokio::test]
async fn a_message_over_16_mebibytes_closes_with_1009() {
    let scratch = Scratch::new();
    let host = Host::start(scratch.path());
    let (mut client, _) = Client::dial_in(&host.url, json!({})).await;
    let mut text = input("hello").to_string();
    text.push_str(&" ".repeat(16 * 1024 * 1024 - text.len()));
    client.say_text(&text).await;
    assert_eq!(client.output().await["result"], "echo: hello");
    text.push(' ');
    client.say_text(&text).await;
    assert_eq!(client.close_frame().await.code, 1009);
}
