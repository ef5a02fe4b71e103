//! A host with the store of a project: where it keeps things, and what it takes. It runs in a process of its
//! own, because its places are in the working directory.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use connectonion_proto::net::{Server, ServerOptions};
use connectonion_proto::storage::{FileConfig, FileStore, Record, RecordStatus, export, import};
use connectonion_proto::trust::TrustLevel;
use rpc_core::Json;
use rpc_core::store::Store;
use serde_json::json;

use crate::scratch::Scratch;
use crate::staff::{Client, Scripted, host_key, input, stored};

/// Set in the child; it is this very program.
const CHILD: &str = "CONNECTONION_DEFAULT_HOST";

/// Serves until it is killed. Does nothing in a usual test run.
#[tokio::test]
async fn the_child_that_serves() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
    options.runtime.store = Some(open(Path::new("")).await);
    let host = Server::bind("127.0.0.1:0", Scripted, options)
        .await
        .unwrap();
    println!("\nlistening {}", host.url());
    host.run().await;
}

/// The store of a project, with what real hosts have left there.
async fn open(folder: &Path) -> Arc<dyn Store> {
    fs::create_dir_all(folder.join(".co")).unwrap();
    let path = folder.join(".co/sessions.redb");
    let store: Arc<dyn Store> = Arc::new(FileStore::open(&path, FileConfig::default()).unwrap());
    let results = folder.join(".co/session_results.jsonl");
    import(&store, &results).await.unwrap();
    store
}

/// A host with every other option as it is, in this folder.
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
    assert_eq!(client.ask("hello").await, "echo: hello");
    let mut read = input("read it");
    read["files"] = json!([{"name": "doc.txt", "data": "data:text/plain;base64,aGk="}]);
    client.send(&read).await;
    assert_eq!(client.output().await["result"], "hi");
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
    let store = open(scratch.path()).await;
    let kept = stored(&*store, "kept").await.unwrap();
    let lifetime = kept.expires.unwrap() - kept.created;
    assert!((lifetime - 86_400.0).abs() < 0.01, "{lifetime}");
    // A real host goes on from here.
    let mut file = fs::File::create(scratch.file(".co/session_results.jsonl")).unwrap();
    assert_eq!(export(&*store, &file).await.unwrap(), 1);
    let mut added = Record::new("real", RecordStatus::Done, "hello", kept.created);
    added.session = Some(Json::new(r#"{"messages":[]}"#).unwrap());
    writeln!(file, "{}", added.to_line()).unwrap();
    drop(store);

    let host = Host::start(scratch.path());
    let (_, connected) = Client::dial_in(&host.url, same).await;
    assert_eq!(connected["status"], "new");
    let messages = &connected["session"]["messages"];
    assert_eq!(messages[1]["content"], "echo: hello");
    drop(host);
    let store = open(scratch.path()).await;
    assert_eq!(stored(&*store, "real").await, Some(added));
}

#[tokio::test]
async fn a_message_over_16_mebibytes_closes_with_1009() {
    let scratch = Scratch::new();
    let host = Host::start(scratch.path());
    let (mut client, _) = Client::dial_in(&host.url, json!({})).await;
    let mut text = input("hello").to_string();
    text.push_str(&" ".repeat(16 * 1024 * 1024 - text.len()));
    client.send_text(&text).await;
    assert_eq!(client.output().await["result"], "echo: hello");
    text.push(' ');
    client.send_text(&text).await;
    assert_eq!(client.close_frame().await.code, 1009);
}
