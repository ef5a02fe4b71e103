//! Our Acolyte client: chats, of which the server works on one after the other.

use acolyte_proto::client::{ChatUpdate, ClientConfig, Outcome};
use acolyte_proto::event::Event;
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::{Client, connect_lazy};

use super::Pace;
use crate::net::values::TEXTS;

async fn chat(client: &Client) {
    let mut chat = client.chat(ChatRequest::new("10", "bench")).await;
    let mut texts = 0;
    while let Some(update) = chat.next().await {
        match update {
            ChatUpdate::Event(Event::TextDelta(_)) => texts += 1,
            ChatUpdate::Ended(outcome) => assert!(matches!(outcome, Outcome::Done(_))),
            _ => {}
        }
    }
    assert_eq!(texts, TEXTS);
}

pub(super) async fn load(address: &str, pace: Pace) {
    let url = format!("ws://{address}/v1/rpc");
    let (client, _events, connection) = connect_lazy(&url, ClientConfig::default()).unwrap();
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    pace.measure(|_| chat(&client)).await;
}
