//! Responses that are sent as soon as there is room.

use super::*;

#[test]
fn a_promised_response_is_sent_as_soon_as_possible() {
    let reject = |id: &str| Response::new(id, Answer::reject(Some("dropped".into())));
    let mut played = Played::new(ClientConfig {
        limits: Limits {
            max_outbox_frames: 2,
            ..defaults()
        },
        ..config()
    });
    played.sent();
    for id in ["1", "2", "3", "4"] {
        played.conn.respond_later(reject(id));
    }
    assert_eq!(played.sent(), [] as [Value; 0]);
    played.take(&accepted());
    let expected =
        ["1", "2", "3", "4"].map(|id| response(id, "reject", &json!({"reason": "dropped"})));
    assert_eq!(played.sent(), expected);
    // In order with what is sent at once, and before a Close.
    played.conn.respond("5", Answer::Ack).unwrap();
    played.conn.respond("6", Answer::Ack).unwrap();
    played.conn.respond_later(reject("7"));
    assert!(played.conn.poll_transmit().is_some());
    assert_eq!(
        played.conn.respond("8", Answer::Ack),
        Err(Refused::QueueFull)
    );
    played.conn.close(played.now);
    assert_eq!(
        played.sent(),
        [
            response("6", "ack", &json!({})),
            response("7", "reject", &json!({"reason": "dropped"})),
            json!([1000, "Client disconnect"]),
        ]
    );
}

#[test]
fn no_more_promised_responses_wait_than_messages_may_be_open() {
    let limits = Limits {
        max_pending: 2,
        ..defaults()
    };
    let mut played = Played::new(ClientConfig { limits, ..config() });
    played.sent();
    for id in ["1", "2", "3"] {
        played.conn.respond_later(Response::new(id, Answer::Ack));
    }
    played.take(&accepted());
    assert_eq!(
        played.sent(),
        ["1", "2"].map(|id| response(id, "ack", &json!({})))
    );
}

#[test]
fn an_oversized_promised_response_loses_its_reason() {
    let limits = Limits {
        max_message_bytes: 256,
        ..defaults()
    };
    let mut played = Played::ready(ClientConfig { limits, ..config() });
    let reason = Str::from("x".repeat(256));
    played
        .conn
        .respond_later(Response::new("m", Answer::reject(Some(reason.clone()))));
    let shown = Answer::Notification(Notification::new(reason));
    played.conn.respond_later(Response::new("m", shown));
    assert_eq!(played.sent(), [response("m", "reject", &json!({}))]);
}
