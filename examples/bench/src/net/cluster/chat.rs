//! A message to all members of a channel, who are spread over the nodes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rpc_core::net::LinkEvent;
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::frame::Final;
use snek_proto::net::{Client, Events, connect_lazy};
use tokio::sync::oneshot;

use super::serve::{ROOM, user};
use super::{ALONE, Cluster, ONE, THREE, beside};
use crate::net::load::Pace;
use crate::report::Report;
use crate::text;

/// Three nodes may cost so many times one that has everything in memory.
const MOST: f64 = 3.0;
/// The bytes of a message.
const BYTES: usize = 100;
/// The bytes of its number.
const DIGITS: usize = 8;

pub(super) fn table(report: &mut Report, quick: bool) {
    let least = Some(1.0 / MOST);
    for (members, in_flight, messages) in [
        (30, 1, 4_000),
        (30, 16, 8_000),
        (150, 1, 1_000),
        (150, 16, 2_000),
    ] {
        let messages = messages / if quick { 4 } else { 1 };
        let what = format!("Snek message of {BYTES} B to {members} members, {in_flight} in flight");
        beside(
            report,
            &what,
            THREE,
            &[(ALONE, least), (ONE, None)],
            |way| {
                let cluster = Cluster::start(way, "snek", &["0"]);
                let counts = [members, in_flight, messages].map(|it| it.to_string());
                let [members, in_flight, count] = &counts;
                let addresses = cluster.addresses();
                let words = ["chat", members, in_flight, count, &addresses];
                cluster.cost(&words, messages).0
            },
        );
    }
}

/// Sends messages, each from the next member. One is done when all members have it.
pub(super) async fn load(members: usize, in_flight: usize, messages: usize, addresses: &str) {
    let board = Arc::new(Board::default());
    let clients = log_in(members, addresses, &board).await;
    let next = AtomicUsize::new(0);
    let pace = Pace {
        in_flight,
        calls: messages,
        is_led: true,
    };
    pace.measure(|_| async {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let client = &clients[number % members];
        board.send(client, ROOM, number, members).await;
    })
    .await;
}

/// So many members, each logged in at the next node.
pub(super) async fn log_in(members: usize, addresses: &str, board: &Arc<Board>) -> Vec<Client> {
    let addresses: Vec<&str> = addresses.split(',').collect();
    let mut clients = Vec::new();
    for number in 0..members {
        let url = format!("ws://{}/rpc.ws", addresses[number % addresses.len()]);
        let (name, password) = user(number);
        let config = ClientConfig::new(name, password);
        let (client, events, connection) = connect_lazy(&url, config).unwrap();
        tokio::spawn(connection.run());
        tokio::spawn(read(events, Arc::clone(board)));
        client.ready().await.unwrap();
        clients.push(client);
    }
    clients
}

async fn read(mut events: Events, board: Arc<Board>) {
    while let Some(event) = events.next_link().await {
        if let LinkEvent::Event(ClientEvent::Message(message)) = event {
            board.arrived(message.message[..DIGITS].parse().unwrap());
        }
    }
}

/// The messages that not all members have.
#[derive(Default)]
pub(super) struct Board(Mutex<HashMap<usize, Sent>>);

struct Sent {
    at: Instant,
    missing: usize,
    done: oneshot::Sender<u64>,
}

impl Board {
    /// Sends a message, and waits until it is acknowledged and all members have it. Returns after
    /// how many nanoseconds they had it.
    pub(super) async fn send(
        &self,
        client: &Client,
        channel: &str,
        number: usize,
        members: usize,
    ) -> u64 {
        let (done, is_done) = oneshot::channel();
        let sent = Sent {
            at: Instant::now(),
            missing: members,
            done,
        };
        self.0.lock().unwrap().insert(number, sent);
        let text = format!("{number:0DIGITS$}{}", text::words(BYTES - DIGITS));
        client
            .send_message(channel, &text, Final::Yes)
            .await
            .unwrap();
        is_done.await.unwrap()
    }

    fn arrived(&self, number: usize) {
        let mut open = self.0.lock().unwrap();
        let sent = open.get_mut(&number).expect("each message comes once");
        sent.missing -= 1;
        if sent.missing == 0 {
            let sent = open.remove(&number).unwrap();
            let _ = sent.done.send(sent.at.elapsed().as_nanos() as u64);
        }
    }
}
