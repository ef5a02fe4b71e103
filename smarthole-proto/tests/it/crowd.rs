//! A hundred clients with a thousand messages in flight: each is answered or times out exactly once.

use std::collections::HashMap;
use std::time::Duration;

use rpc_core::net::QueueConfig;
use serde_json::json;
use smarthole_proto::hub::{HubConfig, HubEvent, Input};
use smarthole_proto::id::MessageId;
use smarthole_proto::net::{HubEvents, ServerOptions};
use tokio::task::JoinSet;

use crate::harness::start;
use crate::wire::{Frame, Wire, ack, reject, response};

const CLIENTS: usize = 100;
const MESSAGES: usize = 1_000;

fn name(client: usize) -> String {
    format!("c{client}")
}

/// Does what its number says: answers, rejects, shows something, or nothing.
async fn play(mut wire: Wire, number: usize) {
    while let Frame::Text(text) = wire.next().await {
        let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
        let id = frame["payload"]["id"].as_str().unwrap();
        match number % 4 {
            0 => {}
            1 => wire.say(&ack(id)).await,
            2 => wire.say(&reject(id, "not mine")).await,
            _ => {
                let shown = response(id, "notification", &json!({"body": "seen"}));
                wire.say(&shown).await;
                wire.say(&ack(id)).await;
            }
        }
    }
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    Rejected,
    TimedOut,
}

/// How each delivery ended, and how often each message was settled.
#[derive(Default)]
struct Deliveries {
    deliveries: HashMap<(String, String), Option<End>>,
    settled: HashMap<String, usize>,
}

impl Deliveries {
    fn deliver(&mut self, message: &MessageId, client: &str) {
        let pair = (message.to_string(), client.to_owned());
        assert_eq!(self.deliveries.insert(pair, None), None, "delivered twice");
    }

    /// Notes what a client said, or that it said nothing. It ends the delivery if nothing has, or
    /// comes after the end that it must.
    fn hear(&mut self, message: &MessageId, client: &str, end: End, is_late: bool) {
        let pair = (message.to_string(), client.to_owned());
        let ended = self.deliveries.get_mut(&pair).expect("it was delivered");
        match (is_late, *ended) {
            (false, None) => *ended = Some(end),
            // A notification, and then an ack.
            (false, Some(End::Answered)) if end == End::Answered => {}
            (true, Some(End::TimedOut)) => {}
            (_, before) => panic!("{pair:?}: {before:?}, then {end:?}"),
        }
    }

    /// Keeps account until so many messages are settled.
    async fn keep(events: &mut HubEvents, messages: usize) -> Self {
        let mut book = Self::default();
        while book.settled.len() < messages {
            let Some(event) = events.next().await else {
                panic!("every event is needed");
            };
            match event {
                HubEvent::Delivered { client, message } => book.deliver(&message.id, &client),
                HubEvent::Acked {
                    message,
                    client,
                    late,
                }
                | HubEvent::Notification {
                    message,
                    client,
                    late,
                    ..
                } => book.hear(&message, &client, End::Answered, late),
                HubEvent::Rejected {
                    message,
                    client,
                    timed_out,
                    late,
                    ..
                } => {
                    let end = if timed_out {
                        End::TimedOut
                    } else {
                        End::Rejected
                    };
                    book.hear(&message, &client, end, late);
                }
                HubEvent::Settled { message, .. } => {
                    *book.settled.entry(message.to_string()).or_default() += 1;
                }
                _ => {}
            }
        }
        book
    }
}

/// Submits what `text` gives for each number, and checks that everything ends exactly once.
async fn each_ends_once(text: impl Fn(usize) -> String) -> Deliveries {
    let config = HubConfig {
        response_timeout: Duration::from_millis(300),
        ..HubConfig::default()
    };
    let server = start(ServerOptions::new(config)).await;
    let all = QueueConfig {
        max_items: 1_000_000,
        max_bytes: usize::MAX,
        ..QueueConfig::default()
    };
    let mut events = server.runtime.events_with(all);
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let wire = Wire::client(server.address, &name(number)).await;
        clients.spawn(play(wire, number));
    }
    for number in 0..MESSAGES {
        let text = text(number);
        server.runtime.submit(Input::text(text)).unwrap();
    }
    let keep = Deliveries::keep(&mut events, MESSAGES);
    let book = tokio::time::timeout(Duration::from_secs(60), keep)
        .await
        .expect("everything ends");
    assert_eq!(server.runtime.in_flight(), 0);
    assert!(book.settled.values().all(|count| *count == 1));
    assert!(book.deliveries.values().all(Option::is_some));
    book
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_direct_messages_end_once_each() {
    let book = each_ends_once(|number| format!("{}: hi", name(number % CLIENTS))).await;
    assert_eq!(book.deliveries.len(), MESSAGES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_routed_messages_end_once_per_recipient() {
    // To one client that rejects or says nothing, so that most are routed again, or to two.
    let book = each_ends_once(|number| match number % 2 {
        0 => format!("for {} only", name(number % CLIENTS)),
        _ => {
            let (first, second) = (name(number % CLIENTS), name((number + 1) % CLIENTS));
            format!("for {first} and {second}")
        }
    });
    assert!(book.await.deliveries.len() > MESSAGES * 3 / 2);
}
