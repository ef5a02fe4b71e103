//! How many allocations the hot paths cost once they are warm. Printed, and bounded from above.

use std::time::{Instant, SystemTime};

use allocation_counter::measure;
use rpc_core::{Incoming, Limits, Machine};
use smarthole_proto::client::{ClientEvent, Received};
use smarthole_proto::codec::encode_into;
use smarthole_proto::frame::{
    Answer, ClientFrame, Message, Metadata, Notification, Registration, Response, ServerFrame,
};
use smarthole_proto::hub::{ConnId, Hub, HubConfig, Input};
use smarthole_proto::router::Candidate;

use crate::client::ready;

const ROUNDS: u64 = 1_000;
const MESSAGE: &str = r#"{"type":"message","payload":{"id":"msg-550e8400-e29b-41d4-a716-446655440000","text":"Remember to buy groceries tomorrow","timestamp":"2024-01-15T10:30:00.000Z","metadata":{"inputMethod":"voice","directRouted":false,"confidence":0.95,"routingReason":"It keeps notes"}}}"#;
const ACCEPTED: &str = r#"{"type":"registration_response","payload":{"success":true,"clientId":"c-1","message":"registered"}}"#;
const ACK: &str =
    r#"{"type":"response","payload":{"messageId":"msg-1","type":"ack","payload":{}}}"#;
const SHOWN: &str = r#"{"type":"response","payload":{"messageId":"msg-1","type":"notification","payload":{"title":"Note Saved","body":"It is saved.","priority":"normal"}}}"#;

/// Allocations of [`ROUNDS`] rounds, after as many to warm up.
#[expect(clippy::print_stdout, reason = "the figures are there to be read")]
fn cost(what: &str, mut round: impl FnMut()) -> u64 {
    (0..ROUNDS).for_each(|_| round());
    let count = measure(|| (0..ROUNDS).for_each(|_| round())).count_total;
    println!("{what}: {count} allocations in {ROUNDS} rounds");
    count
}

#[test]
fn decoding_frames_allocates_for_long_texts_only() {
    let limits = Limits::default();
    // The id, the text and the timestamp.
    for (text, long) in [(MESSAGE, 3), (ACCEPTED, 0)] {
        let count = cost(text, || {
            let frame = ServerFrame::decode(text, &limits).unwrap();
            assert!(!matches!(frame, ServerFrame::Unknown { .. }));
        });
        assert_eq!(count, long * ROUNDS);
    }
    for text in [ACK, SHOWN] {
        let count = cost(text, || {
            let frame = ClientFrame::decode(text, &limits).unwrap();
            assert!(matches!(frame, ClientFrame::Response(_)));
        });
        assert_eq!(count, 0);
    }
}

#[test]
fn encoding_into_a_buffer_with_room_costs_no_allocation() {
    let mut buffer = String::with_capacity(4096);
    let mut metadata = Metadata::default();
    metadata.routing_reason = Some("It keeps notes".into());
    let message = Message::new("msg-1", "buy milk", "2024-01-15T10:30:00.000Z");
    let message = ServerFrame::Message(Message {
        metadata,
        ..message
    });
    let shown = Answer::Notification(Notification::new("saved"));
    let [ack, shown] =
        [Answer::Ack, shown].map(|answer| ClientFrame::Response(Response::new("msg-1", answer)));
    let count = cost("a message and its responses", || {
        buffer.clear();
        encode_into(&message, &mut buffer).unwrap();
        encode_into(&ack, &mut buffer).unwrap();
        encode_into(&shown, &mut buffer).unwrap();
    });
    assert_eq!(count, 0);
}

#[test]
fn a_message_allocates_its_long_texts_and_one_ack() {
    let now = Instant::now();
    let mut client = ready(now).client;
    let message = cost("message through the client", || {
        client.handle_message(Incoming::Text(MESSAGE), now);
        assert!(client.poll_event().is_some());
    });
    assert!(message <= 4 * ROUNDS, "{message}");
    let answered = cost("message and ack", || {
        client.handle_message(Incoming::Text(MESSAGE), now);
        let Some(ClientEvent::Message(Received { message, .. })) = client.poll_event() else {
            panic!("no message")
        };
        client.respond(&message.id, Answer::Ack).unwrap();
        assert!(client.poll_transmit().is_some());
    });
    assert!(answered <= 5 * ROUNDS, "{answered}");
}

#[test]
fn a_response_allocates_once_at_the_server() {
    let now = Instant::now();
    let mut server = ready(now).server;
    let mut times = 0_u32;
    let response = cost("response through the server", || {
        // Slowly enough for the limit on the rate.
        times += 1;
        let now = now + std::time::Duration::from_millis(times.into());
        server.handle_message(Incoming::Text(ACK), now);
        assert!(server.poll_event().is_some());
    });
    assert!(response <= ROUNDS, "{response}");
}

#[test]
fn a_registration_copies_no_candidates_while_a_question_is_open() {
    const CLIENTS: u64 = 1_200;
    const MORE: u64 = 100;
    let now = Instant::now();
    let mut hub = Hub::new(HubConfig::default(), 7, now);
    let register = |hub: &mut Hub, from: u64, count: u64| {
        let registered = measure(|| {
            for number in from..from + count {
                let registration = Registration::new(format!("c{number}"), "Keeps notes.");
                hub.register(ConnId(number), &registration).unwrap();
                assert!(hub.poll_event().is_some());
            }
        });
        registered.bytes_total
    };
    register(&mut hub, 0, CLIENTS);
    let before = register(&mut hub, CLIENTS, MORE);
    hub.submit(Input::text("buy milk"), now, SystemTime::now())
        .unwrap();
    assert!(hub.poll_event().is_some());
    let after = register(&mut hub, CLIENTS + MORE, MORE);
    let all = CLIENTS * size_of::<Candidate>() as u64;
    for registered in [before, after] {
        assert!(registered < all, "{before} and {after} bytes");
    }
}
