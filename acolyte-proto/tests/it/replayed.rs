//! Recordings of a known server as tests of the client: what it sends is what the recorded client sent.

use acolyte_proto::client::ClientConfig;
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::id::SessionId;
use acolyte_proto::net::{Client, connect_with, link_config};
use acolyte_proto::task::TaskState;
use rpc_core::net::mem;
use rpc_core::testing::replay::replay;
use switchboard_testing::recordings::parse;
use tokio::task::JoinHandle;

const MESSAGE: &str = r#"hello @@{"steps": [{"text": "Hello from the stub model, in several pieces.", "chunks": 5, "gap_ms": 20}]}@@"#;

/// A client, and the recorded server.
async fn played(recording: &str) -> (Client, JoinHandle<()>) {
    let (dialer, listener) = mem::listen(64);
    let recording = parse(recording).unwrap().to_string();
    // An empty history may be left out.
    let server = tokio::spawn(replay(&recording).tolerate("history").server(listener));
    let (client, _, connection) = connect_with(dialer, ClientConfig::default(), link_config());
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    (client, server)
}

async fn say_hello(client: &Client, model: &str) {
    let mut request = ChatRequest::new(MESSAGE, model);
    request.session_id = Some(SessionId::parse("sess_happy001").unwrap());
    let mut chat = client.start_chat(request).await;
    let outcome = chat.finish().await;
    let reply = outcome.reply().unwrap();
    let expected = "Hello from the stub model, in several pieces.";
    assert_eq!(reply.output, expected);
    let task = client.task_status(chat.task_id().unwrap()).await.unwrap();
    assert_eq!(task.unwrap().state, TaskState::Completed);
    client.status().await.unwrap();
    client.close();
}

#[tokio::test(start_paused = true)]
async fn a_chat_of_the_known_server_is_had_again() {
    let recording = include_str!("../vectors/noauth-chat-happy.jsonl");
    let (client, server) = played(recording).await;
    say_hello(&client, "gpt-5-mini").await;
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_request_than_the_recorded_one_is_told() {
    let recording = include_str!("../vectors/noauth-chat-happy.jsonl");
    let (client, server) = played(recording).await;
    let mut chat = client.start_chat(ChatRequest::new(MESSAGE, "gpt-4")).await;
    assert!(chat.finish().await.reply().is_none());
    let panic = server.await.unwrap_err().into_panic();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(
        said.contains("gpt-4") && said.contains("gpt-5-mini"),
        "{said}"
    );
}
