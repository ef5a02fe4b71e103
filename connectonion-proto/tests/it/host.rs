//! A host over real sockets: who gets in, what is served, how it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::auth::{Draft, Signer};
use connectonion_proto::limits::UploadLimits;
use connectonion_proto::net::{HostRuntime, Server, ServerHandle, ServerOptions};
use connectonion_proto::trust::TrustLevel;
use rpc_core::net::DrainReport;
use rpc_core::store::MemoryStore;
use serde_json::{Value, json};
use switchboard_testing::faults::upgrade_request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::scratch::Scratch;
use crate::staff::{
    Client, Scripted, client_key, connect, host_key, input, now, signed, stored, types,
};

struct Running {
    address: SocketAddr,
    url: String,
    runtime: HostRuntime,
    handle: ServerHandle,
    run: JoinHandle<DrainReport>,
}

async fn start(options: ServerOptions) -> Running {
    let host = Server::bind("127.0.0.1:0", Scripted, options)
        .await
        .unwrap();
    Running {
        address: host.local_addr(),
        url: host.url(),
        runtime: host.runtime(),
        handle: host.handle(),
        run: tokio::spawn(host.run()),
    }
}

fn options() -> ServerOptions {
    ServerOptions::new(&host_key(), TrustLevel::Open)
}

/// The answer to a request on a connection of its own.
async fn ask(address: SocketAddr, request: &str) -> String {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let head = |answer: &[u8]| answer.starts_with(b"HTTP/1.1 101") && answer.ends_with(b"\r\n\r\n");
    while !head(&answer) && tcp.read_buf(&mut answer).await.unwrap() > 0 {}
    let answer = String::from_utf8(answer).unwrap();
    answer["HTTP/1.1 ".len()..].to_owned()
}

async fn get(address: SocketAddr, path: &str) -> (String, Value) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answer = ask(address, &request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    (head[..3].to_owned(), body)
}

#[tokio::test]
async fn websockets_upgrade_only_at_their_path() {
    let host = start(options()).await;
    for path in ["/ws", "/ws?token=1"] {
        let answer = ask(host.address, &upgrade_request(path, "")).await;
        assert!(answer.starts_with("101"), "{path}: {answer}");
    }
    for path in ["/", "/ws/", "/ws/input", "/health"] {
        let answer = ask(host.address, &upgrade_request(path, "")).await;
        assert!(answer.starts_with("403"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn foreign_origins_and_hosts_are_refused() {
    let host = start(options()).await;
    let page = upgrade_request("/ws", "Origin: https://evil.example\r\n");
    assert!(ask(host.address, &page).await.starts_with("403"));
    let page = upgrade_request("/ws", "Origin: http://localhost:3000\r\n");
    assert!(ask(host.address, &page).await.starts_with("101"));
    let name = upgrade_request("/ws", "").replace("Host: localhost", "Host: evil.example");
    assert!(ask(host.address, &name).await.starts_with("403"));
}

#[tokio::test]
async fn plain_http_endpoints_are_answered() {
    let mut options = options();
    (options.name, options.tools) = ("helper".into(), vec!["add".into()]);
    let host = start(options).await;
    let (status, health) = get(host.address, "/health").await;
    assert_eq!(status, "200");
    assert_eq!(
        (&health["status"], &health["agent"]),
        (&json!("healthy"), &json!("helper"))
    );
    let head = ask(
        host.address,
        "HEAD /ready HTTP/1.1\r\nHost: localhost\r\n\r\n",
    )
    .await;
    assert!(
        head.starts_with("200") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let (_, info) = get(host.address, "/info").await;
    assert_eq!(info["address"], host_key().address().to_string());
    assert_eq!(info["tools"], json!(["add"]));
    assert_eq!(info["trust"], "open");
    assert_eq!(get(host.address, "/other").await.0, "404");
    // Only its owner sees the session of a signed caller.
    let (_client, _) = Client::dial_in(&host.url, json!({"session_id": "signed"})).await;
    assert_eq!(get(host.address, "/sessions/signed").await.0, "404");
    let mut client = Client::dial(&host.url).await;
    client
        .send(&json!({"type":"CONNECT","session_id":"unsigned"}))
        .await;
    client.recv_type("CONNECTED").await;
    let (status, session) = get(host.address, "/sessions/unsigned").await;
    assert_eq!(
        (&*status, session),
        ("200", json!({"session_id":"unsigned","status":"connected"}))
    );
}

#[tokio::test]
async fn a_session_is_deleted_by_its_owner_alone() {
    let mut options = options();
    let (store, scratch) = (MemoryStore::new(), Scratch::new());
    options.runtime.store = Some(Arc::new(store.clone()));
    options.runtime.uploads = scratch.path().into();
    let files = || std::fs::read_dir(scratch.path()).unwrap().count();
    let host = start(options).await;
    let mut clients = Vec::new();
    for (session, count) in [("mine", 1), ("other", 2)] {
        let (mut client, _) = Client::dial_in(&host.url, json!({"session_id": session})).await;
        let mut first = input("first");
        first["files"] = json!([{"name": "a.txt", "data": "aGk="}]);
        client.send(&first).await;
        client.output().await;
        assert_eq!(files(), count);
        clients.push(client);
    }
    let mut client = clients.swap_remove(0);
    client.send(&input("wait")).await;
    client.recv_type("user_input").await;
    let delete = async |body: Value| {
        let (length, body) = (body.to_string().len(), body.to_string());
        let head = "DELETE /sessions/mine HTTP/1.1\r\nHost: localhost\r\nConnection: close";
        let request = format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        ask(host.address, &request).await[..3].to_owned()
    };
    let by = |key: &Signer, named: Value| {
        let draft = Draft::new(now()).with_to(host_key().address());
        let draft = draft.with_nonce(7).with("delete", named);
        signed("DELETE", key, &draft, json!({}))
    };
    let keeping = Draft::new(now())
        .with_to(host_key().address())
        .with_nonce(8);
    let keeping = keeping.with("delete", "mine").with("keep_files", true);
    let theirs = by(&Signer::from_seed(&[9; 32]), json!("mine"));
    for (body, status) in [
        (json!("?"), "400"),
        (by(&client_key(), json!("other")), "403"),
        (connect(&client_key(), json!({})), "403"),
        (theirs, "404"),
        (json!({}), "404"),
    ] {
        assert_eq!(delete(body.clone()).await, status, "{body}");
        assert_eq!(host.runtime.running(), 1, "{body}");
        assert!(stored(&store, "mine").await.is_some(), "{body}");
    }
    assert_eq!(files(), 2);
    let keeping = signed("DELETE", &client_key(), &keeping, json!({}));
    assert_eq!(delete(keeping).await, "204");
    assert_eq!(files(), 2, "another session goes on from it");
    assert_eq!(host.runtime.running(), 0);
    assert_eq!(stored(&store, "mine").await, None);
    let close = client.close_frame().await;
    assert_eq!(
        (close.code, &*close.reason),
        (1000, "the session was deleted")
    );
    let ours = by(&client_key(), json!("mine"));
    assert_eq!(delete(ours.clone()).await, "404", "it is gone");
    assert_eq!(delete(ours).await, "403", "a signature counts once");
    assert_eq!(files(), 1, "the files of another session stay");
}

#[tokio::test]
async fn files_are_saved_and_read_and_a_refusal_leaves_the_session_usable() {
    let scratch = Scratch::new();
    let mut options = options();
    let limits = UploadLimits {
        max_files: 2,
        ..UploadLimits::default()
    };
    options.runtime.uploads = scratch.file("uploads");
    options.runtime.upload_limits = limits;
    let host = start(options).await;
    let (mut client, _) = Client::dial_in(&host.url, json!({})).await;
    let file = |name: &str, data: &str| json!({"name": name, "data": data});
    let ask =
        |prompt: &str, files: Vec<Value>| json!({"type":"INPUT","prompt":prompt,"files":files});
    let text = file("../a.txt", "data:text/plain;base64,aGVsbG8gZmlsZQ==");
    client.send(&ask("read it", vec![text.clone()])).await;
    let frames = client.recv_until("OUTPUT").await;
    assert_eq!(types(&frames), ["user_input", "files_received", "OUTPUT"]);
    assert!(
        frames[0]["content"]
            .as_str()
            .unwrap()
            .starts_with("read it\n\n<system-reminder>")
    );
    assert_eq!(frames[2]["result"], "hello file");
    assert_eq!(frames[2]["chat_items"][1]["type"], "files_received");
    for (files, words) in [
        (
            vec![text.clone(); 3],
            "Too many files: 3 (max: 2). Increase max_files_per_request in host.yaml",
        ),
        (vec![file("a", "???")], "Invalid base64 data: a"),
        (vec![json!({"name": "a"})], "'data'"),
    ] {
        assert_eq!(client.refused(&ask("read", files)).await, words);
    }
    let picture = json!({"type":"INPUT","prompt":"look","images":["data:image/png;base64,AA=="]});
    client.send(&picture).await;
    let output = client.output().await;
    assert_eq!(output["result"], "1 images, 0 files");
    assert_eq!(
        output["chat_items"][3]["content"][1]["image_url"]["url"],
        picture["images"][0]
    );
    // A second file of the same name has a path of its own.
    let mut both = ask("look at both", vec![text]);
    both["images"] = picture["images"].clone();
    client.send(&both).await;
    assert_eq!(client.output().await["result"], "1 images, 1 files");
    let saved = std::fs::read_dir(scratch.file("uploads")).unwrap();
    assert_eq!(saved.count(), 2);
}

#[tokio::test]
async fn a_shutdown_lets_agents_finish_and_closes_with_1012() {
    let mut options = options();
    options.shutdown_timeout = Duration::from_millis(300);
    let host = start(options).await;
    let (mut client, _) = Client::dial_in(&host.url, json!({})).await;
    client.send(&input("listen")).await;
    client.recv_type("user_input").await;
    let draining = tokio::spawn(async move { host.handle.drain(Duration::from_millis(300)).await });
    // Taken before the end was near, or refused: both are said.
    client.send(&input("last words")).await;
    let frames = client.recv().await;
    if frames["type"] == "RUNTIME_INPUT_ACK" {
        client.output().await;
    } else {
        assert_eq!(frames["message"], "the host is shutting down");
    }
    assert_eq!(client.close_frame().await.code, 1012);
    drop(client);
    let report = draining.await.unwrap();
    assert_eq!((report.finished, report.aborted), (1, 0));
    host.run.await.unwrap();
}

#[tokio::test]
async fn an_answered_session_outlives_its_host() {
    let store = MemoryStore::new();
    let stored = || {
        let mut options = options();
        options.runtime.store = Some(Arc::new(store.clone()));
        options
    };
    let host = start(stored()).await;
    let (mut client, _) = Client::dial_in(&host.url, json!({"session_id": "kept"})).await;
    client.ask("hello").await;
    drop(client);
    host.run.abort();
    let _ = host.run.await;
    let host = start(stored()).await;
    let (mut client, connected) = Client::dial_in(&host.url, json!({"session_id": "kept"})).await;
    assert_eq!(connected["status"], "new");
    assert_eq!(connected["server_newer"], true);
    assert_eq!(
        connected["session"]["messages"][1]["content"],
        "echo: hello"
    );
    assert_eq!(client.ask("count").await, "3 messages");
    // No one else gets it.
    let mut thief = Client::dial(&host.url).await;
    let other = Signer::from_seed(&[3; 32]);
    thief
        .send(&connect(&other, json!({"session_id": "kept"})))
        .await;
    let connected = thief.recv_type("CONNECTED").await;
    assert_ne!(connected["session_id"], "kept");
    assert!(connected.get("session").is_none());
}
