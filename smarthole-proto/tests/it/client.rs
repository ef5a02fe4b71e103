//! The client machine against the server's, under virtual time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rpc_core::testing::{Pair, Side};
use rpc_core::{CloseReason, Limits, Machine, Text};
use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState, Received};
use smarthole_proto::codec::encode;
use smarthole_proto::frame::{Answer, Message, Metadata, Notification, Registration, ServerFrame};
use smarthole_proto::id::ClientId;
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};
use switchboard_testing::sim::{self, Rng, Step};

use crate::played::config;

pub type Machines = Pair<ClientConn, ServerConn>;

const SECOND: Duration = Duration::from_secs(1);

pub fn line(config: ClientConfig, now: Instant) -> Machines {
    let server = ServerConn::new(ServerConfig::default(), now);
    Pair::new(ClientConn::new(config, now), server, now)
}

/// A line whose client is registered.
pub fn ready(now: Instant) -> Machines {
    let mut line = line(config(), now);
    accept(&mut line);
    assert_eq!(line.client.state(), ClientState::Ready);
    line.take_client_events();
    line
}

fn accept(line: &mut Machines) {
    line.settle();
    assert!(matches!(
        line.take_server_events()[..],
        [ServerEvent::Registration { .. }]
    ));
    line.server.accept(&ClientId::new("c-1")).unwrap();
    line.settle();
}

/// A message of this id, encoded.
pub fn encoded(id: &str) -> Text {
    let message = Message::new(id, "buy milk", "2024-01-15T10:30:00.000Z");
    encode(&ServerFrame::Message(message)).unwrap()
}

#[test]
fn the_example_conversation_of_the_specification() {
    let registration = Registration {
        version: Some("1.0.0".into()),
        capabilities: vec!["tasks".into(), "reminders".into()],
        ..Registration::new("my-client", "I handle task management.")
    };
    let config = ClientConfig::new(registration).unwrap();
    let mut line = line(config, Instant::now());
    line.set_latency(Duration::from_millis(1));
    line.advance(Duration::from_millis(1));
    line.server.accept(&ClientId::new("c-1")).unwrap();
    line.advance(Duration::from_millis(1));
    let mut metadata = Metadata::default();
    metadata.routing_reason = Some("It keeps tasks".into());
    let message = Message {
        metadata,
        ..Message::new("msg-1", "Remember the milk", "2024-01-15T10:30:00.000Z")
    };
    line.server
        .send(encode(&ServerFrame::Message(message)).unwrap())
        .unwrap();
    line.advance(Duration::from_millis(1));
    line.client.respond("msg-1", Answer::Ack).unwrap();
    let saved = Notification::titled("Tasks", "Saved.");
    line.client
        .respond("msg-1", Answer::Notification(saved))
        .unwrap();
    line.client
        .respond("msg-0", Answer::reject(Some("I handle tasks only".into())))
        .unwrap();
    line.advance(30 * SECOND);
    let now = line.now();
    line.client.close(now);
    line.advance(SECOND);
    insta::assert_snapshot!(line.trace().to_string());
    let events = line.take_client_events();
    assert!(
        matches!(
            events[..],
            [
                ClientEvent::Registered { .. },
                ClientEvent::Message(_),
                ClientEvent::Closed(CloseReason::Local),
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn the_deadline_of_a_message_counts_from_its_arrival() {
    let mut line = ready(Instant::now());
    line.set_latency(SECOND);
    line.server.send(encoded("1")).unwrap();
    let sent = line.now();
    line.advance(2 * SECOND);
    let events = line.take_client_events();
    let [ClientEvent::Message(Received { deadline, .. })] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*deadline - sent, 31 * SECOND);
    line.advance(29 * SECOND);
    let events = line.take_client_events();
    assert!(matches!(&events[..], [ClientEvent::Overdue { id }] if id == "1"));
}

#[test]
fn unread_events_are_not_lost() {
    let now = Instant::now();
    let limits = Limits {
        max_events: 3,
        ..smarthole_proto::limits::defaults()
    };
    let mut line = line(ClientConfig { limits, ..config() }, now);
    accept(&mut line);
    line.hold_events(Side::Client, true);
    for id in ["1", "2", "3", "4", "5", "6", "7"] {
        line.server.send(encoded(id)).unwrap();
    }
    line.advance(SECOND);
    line.hold_events(Side::Client, false);
    line.settle();
    let events = line.take_client_events();
    let messages = events.iter().filter_map(|event| match event {
        ClientEvent::Message(Received { message, .. }) => Some(&*message.id),
        _ => None,
    });
    assert_eq!(
        messages.collect::<Vec<_>>(),
        ["1", "2", "3", "4", "5", "6", "7"]
    );
}

/// The application's view of the messages that are open, and when each is due.
#[derive(Default)]
struct OpenMessages {
    open: HashMap<String, Instant>,
    order: Vec<String>,
    sent: u64,
}

impl OpenMessages {
    /// Every message comes once; it ends with a response, its deadline or the line.
    fn read(&mut self, line: &mut Machines) -> Result<(), String> {
        for event in line.take_client_events() {
            match event {
                ClientEvent::Message(Received {
                    message, deadline, ..
                }) => {
                    let id = message.id.to_string();
                    self.order.push(id.clone());
                    if self.open.insert(id.clone(), deadline).is_some() {
                        return Err(format!("{id} came twice"));
                    }
                }
                ClientEvent::Overdue { id } => match self.remove(&id) {
                    Some(deadline) if deadline <= line.now() => {}
                    found => return Err(format!("{id} is overdue: {found:?}")),
                },
                ClientEvent::Closed(_) => {
                    self.open.clear();
                    self.order.clear();
                }
                _ => {}
            }
        }
        let overdue = self.open.values().any(|deadline| *deadline < line.now());
        if overdue {
            return Err("a deadline passed without a word".to_owned());
        }
        if line.client.in_flight() != self.open.len() {
            let in_flight = line.client.in_flight();
            return Err(format!("{in_flight} in flight, not {}", self.open.len()));
        }
        Ok(())
    }

    fn remove(&mut self, id: &str) -> Option<Instant> {
        self.order.retain(|open| open != id);
        self.open.remove(id)
    }
}

fn every_message_ends_once(rng: &mut Rng) -> Result<(), String> {
    let mut line = ready(Instant::now());
    let mut book = OpenMessages::default();
    for step in sim::schedule(rng, 200) {
        match step {
            Step::Call => {
                book.sent += 1;
                let _ = line.server.send(encoded(&format!("msg-{}", book.sent)));
            }
            Step::Answer | Step::Cancel => {
                if let Some(id) = rng.pick(&book.order).cloned() {
                    let answered = match rng.below(3) {
                        0 => line.client.respond(&id, Answer::Ack),
                        1 => line.client.respond(&id, Answer::reject(None)),
                        _ => line
                            .client
                            .respond(&id, Answer::Notification(Notification::new("x"))),
                    };
                    answered.map_err(|refused| refused.to_string())?;
                    book.remove(&id);
                }
            }
            Step::LoseAnswer => line.drop_next(Side::Client, 1),
            Step::Wait(time) => line.advance(time),
            Step::Latency(time) => line.set_latency(time),
            Step::Cut => {
                line.cut();
                book.read(&mut line)?;
                line = ready(line.now());
            }
            _ => {}
        }
        line.settle();
        book.read(&mut line)?;
    }
    line.cut();
    book.read(&mut line)
}

#[test]
fn every_message_ends_exactly_once_under_random_faults() {
    sim::run(100, every_message_ends_once);
}
