//! The client machine against the server's, under virtual time.

use std::time::{Duration, Instant};

use rpc_core::testing::Pair;
use rpc_core::{CloseReason, Machine, Text};
use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState, Received};
use smarthole_proto::codec::encode;
use smarthole_proto::frame::{Answer, Message, Metadata, Notification, Registration, ServerFrame};
use smarthole_proto::id::ClientId;
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};

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
