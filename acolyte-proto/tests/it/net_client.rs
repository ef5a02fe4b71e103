//! The client over a line in memory, with a server that is played by hand.

use acolyte_proto::client::{ChatUpdate, ClientConfig, ClientEvent, Outcome};
use acolyte_proto::error::Mismatch;
use acolyte_proto::error::RpcError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, Status};
use acolyte_proto::id::TaskId;
use acolyte_proto::net::{Chat, Client, Events, connect_with};
use futures_util::{SinkExt, StreamExt};
use rpc_core::net::mem::{self, MemListener, MemTransport};
use rpc_core::net::{LinkEvent, LinkState, Message, Transport};
use rpc_core::{CallError, CloseReason, Delivery, Outgoing, Refused};
use serde_json::{Value, json};

/// The server's end of one connection.
struct Played<T>(T);

impl<T: Transport> Played<T> {
    async fn send(&mut self, id: &Value, mut members: Value) {
        members["id"] = id.clone();
        let text = members.to_string();
        let _ = self.0.send(Outgoing::Text(text.into())).await;
    }

    async fn event(&mut self, id: &Value, event: Value) {
        let members = json!({"type": "chat.event", "event": event});
        self.send(id, members).await;
    }

    async fn text(&mut self, id: &Value, text: &str) {
        self.event(id, json!({"type": "text-delta", "text": text}))
            .await;
    }

    async fn done(&mut self, id: &Value) {
        let reply = json!({"output": "fine", "outputStreamed": true, "model": "m"});
        self.send(id, json!({"type": "chat.done", "reply": reply}))
            .await;
    }

    async fn recv(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await? {
                Ok(Message::Text(text)) => return serde_json::from_str(text.as_str()).ok(),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Answers whatever comes until the client goes.
    async fn serve(mut self) {
        while let Some(frame) = self.recv().await {
            let id = &frame["id"];
            match frame["type"].as_str() {
                Some("status.get") => {
                    let status = serde_json::to_value(Status::new("m", "s")).unwrap();
                    self.send(id, json!({"type": "status.result", "status": status}))
                        .await;
                }
                Some("task.status") => {
                    self.send(id, json!({"type": "task.status.result", "task": null}))
                        .await;
                }
                Some("chat.start") => {
                    self.send(id, json!({"type": "chat.accepted", "taskId": "task_a"}))
                        .await;
                    self.send(id, json!({"type": "chat.started"})).await;
                    let message = frame["payload"]["request"]["message"].as_str().unwrap();
                    for word in message.split_inclusive(' ') {
                        self.text(id, word).await;
                    }
                    self.done(id).await;
                }
                _ => {}
            }
        }
    }
}

fn open(config: ClientConfig) -> (Client, Events, MemListener) {
    let (dialer, listener) = mem::listen(64);
    let (client, events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    (client, events, listener)
}

/// A client and the server's end.
async fn played() -> (Client, Played<MemTransport>) {
    let (client, _, mut listener) = open(ClientConfig::default());
    let server = Played(listener.accept().await.unwrap());
    client.ready().await.unwrap();
    (client, server)
}

/// A client whose server answers everything.
async fn served() -> Client {
    let (client, server) = played().await;
    tokio::spawn(server.serve());
    client
}

async fn start(client: &Client, message: &str) -> Chat {
    let request = ChatRequest::new(message.to_owned(), "m");
    client.chat(request).await
}

/// A chat that the server has heard of, and its id.
async fn started(client: &Client, server: &mut Played<MemTransport>) -> (Chat, Value) {
    let chat = start(client, "hi").await;
    let frame = server.recv().await.unwrap();
    assert_eq!(frame["type"], "chat.start");
    (chat, frame["id"].clone())
}

#[tokio::test(start_paused = true)]
async fn calls_give_typed_replies() {
    let client = served().await;
    let status = client.status().await.unwrap();
    assert_eq!(status.model, "m");
    let task = client.task_status(&TaskId::random(1)).await.unwrap();
    assert_eq!(task, None);
    assert_eq!(status.agree(&["stream.sse", "error.structured"]), Ok(()));
    let lacking = status.agree(&["workspace.path"]);
    assert!(
        matches!(&lacking, Err(Mismatch::Capabilities { .. })),
        "{lacking:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_chat_is_a_stream_whose_last_item_is_its_outcome() {
    let client = served().await;
    let mut chat = start(&client, "hello there").await;
    let mut texts = Vec::new();
    while let Some(update) = chat.next().await {
        assert_eq!(
            chat.outcome().is_some(),
            matches!(update, ChatUpdate::Ended(_))
        );
        if let ChatUpdate::Event(Event::TextDelta(text)) = update {
            texts.push(text);
        }
    }
    assert_eq!(texts, ["hello ", "there"]);
    assert_eq!(chat.outcome().unwrap().reply().unwrap().output, "fine");
    assert_eq!(chat.task_id().unwrap().as_str(), "task_a");
    assert!(chat.next().await.is_none());
    assert!(start(&client, "x").await.finish().await.is_done());
    // As a stream for combinators, too.
    let updates: Vec<_> = StreamExt::collect(start(&client, "x").await).await;
    assert_eq!(updates.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_the_chat_as_aborted() {
    let (client, mut server) = played().await;
    let (mut chat, id) = started(&client, &mut server).await;
    let play = async {
        let abort = server.recv().await.unwrap();
        assert_eq!(abort["payload"]["requestId"], id);
        let result = json!({"type": "chat.abort.result", "requestId": id, "aborted": true});
        server.send(&abort["id"], result).await;
        server
    };
    let (aborted, _server) = tokio::join!(chat.abort(), play);
    assert_eq!(aborted, Ok(true));
    assert_eq!(chat.finish().await, Outcome::Aborted { error: None });
    assert_eq!(
        chat.abort().await,
        Err(CallError::Refused(Refused::UnknownId))
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_queried_after_a_reconnect() {
    let (client, mut events, mut listener) = open(ClientConfig::default());
    let mut server = Played(listener.accept().await.unwrap());
    client.ready().await.unwrap();
    let (mut chat, id) = started(&client, &mut server).await;
    server
        .send(&id, json!({"type": "chat.accepted", "taskId": "task_a"}))
        .await;
    assert!(matches!(
        chat.next().await,
        Some(ChatUpdate::Accepted { .. })
    ));
    server.0.cutter().cut();
    let reason = CloseReason::Lost;
    let delivery = Delivery::Delivered;
    let outcome = chat.finish().await;
    assert_eq!(outcome, Outcome::Closed { reason, delivery });
    assert!(outcome.may_have_run());
    let mut server = Played(listener.accept().await.unwrap());
    while client.state() != (LinkState::Ready { generation: 2 }) {
        events.next_link().await.unwrap();
    }
    let asked = tokio::spawn({
        let (client, task) = (client.clone(), chat.task_id().unwrap().clone());
        async move { client.task_status(&task).await }
    });
    // The chat itself is not sent again.
    let frame = server.recv().await.unwrap();
    assert_eq!(
        (&frame["type"], &frame["payload"]["taskId"]),
        (&json!("task.status"), &json!("task_a"))
    );
    let result = json!({"type": "task.status.result", "task": null});
    server.send(&frame["id"], result).await;
    assert_eq!(asked.await.unwrap(), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn errors_without_a_known_id_are_events() {
    let (client, mut events, mut listener) = open(ClientConfig::default());
    let mut server = Played(listener.accept().await.unwrap());
    client.ready().await.unwrap();
    let error = json!({"type": "error", "error": "Invalid RPC message"});
    server.send(&json!("rpc_unknown"), error).await;
    let error = loop {
        if let LinkEvent::Event(ClientEvent::ServerError(error)) = events.next_link().await.unwrap()
        {
            break error;
        }
    };
    assert_eq!(error, RpcError::new("Invalid RPC message"));
}

#[tokio::test(start_paused = true)]
async fn one_chat_can_have_no_timeout() {
    let (client, mut server) = played().await;
    let patient = client.chat_within(None, ChatRequest::new("hi", "m"));
    let mut patient = patient.await;
    let id = server.recv().await.unwrap()["id"].clone();
    let mut hasty = start(&client, "hi").await;
    let (outcome, mut server) = tokio::join!(hasty.finish(), async {
        // Hears the abort, too.
        while server.recv().await.unwrap()["type"] != "chat.abort" {}
        server
    });
    assert!(matches!(outcome, Outcome::TimedOut { .. }));
    server.done(&id).await;
    assert!(patient.finish().await.is_done());
}
