//! The specification's examples, byte for byte: as they are there, and as this crate writes them.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use smarthole_proto::error::{ErrorCode, RegistrationError};
use smarthole_proto::frame::{
    Answer, ClientFrame, InputMethod, Message, Metadata, Notification, Priority, Registration,
    RegistrationResponse, Response, ServerFrame,
};
use smarthole_proto::limits::defaults;
use smarthole_proto::{codec, timestamp, validate};
use switchboard_testing::json::assert_same;

/// An example as it is in the specification, and as it is sent: without white space.
struct Example {
    printed: &'static str,
    sent: String,
}

impl Example {
    /// White space goes, that within strings excepted.
    fn new(printed: &'static str) -> Self {
        let mut in_string = false;
        let sent = printed
            .chars()
            .filter(|letter| {
                in_string ^= *letter == '"';
                in_string || !letter.is_ascii_whitespace()
            })
            .collect();
        Self { printed, sent }
    }

    fn is_written(&self, frame: &impl Serialize) {
        assert_eq!(codec::encode(frame).unwrap().as_str(), self.sent);
        assert_same(self.printed, &self.sent);
    }

    /// Both texts are read as this frame of a client.
    fn comes_from_a_client(&self, frame: &impl Serialize) {
        self.is_written(frame);
        for text in [self.printed, &self.sent] {
            let read = ClientFrame::decode(text, &defaults()).unwrap();
            assert_same(codec::encode(&read).unwrap().as_str(), &self.sent);
        }
    }

    /// Both texts are read as this frame of a server.
    fn comes_from_a_server(&self, frame: &impl Serialize) {
        self.is_written(frame);
        for text in [self.printed, &self.sent] {
            let read = ServerFrame::decode(text, &defaults()).unwrap();
            assert_eq!(codec::encode(&read).unwrap().as_str(), self.sent);
        }
    }
}

const ID: &str = "msg-550e8400-e29b-41d4-a716-446655440000";

fn response(answer: Answer) -> ClientFrame {
    ClientFrame::Response(Response::new(ID, answer))
}

const fn answer(response: RegistrationResponse) -> ServerFrame {
    ServerFrame::RegistrationResponse(response)
}

#[test]
fn a_registration_matches_the_specification() {
    let example = Example::new(
        r#"{
  "type": "registration",
  "payload": {
    "name": "my-client",
    "description": "I handle task management and to-do lists.",
    "version": "1.0.0",
    "capabilities": ["tasks", "reminders"]
  }
}"#,
    );
    let registration = Registration {
        version: Some("1.0.0".into()),
        capabilities: vec!["tasks".into(), "reminders".into()],
        ..Registration::new("my-client", "I handle task management and to-do lists.")
    };
    example.comes_from_a_client(&registration.frame());
    let ClientFrame::Registration(payload) =
        ClientFrame::decode(example.printed, &defaults()).unwrap()
    else {
        panic!("no registration")
    };
    let read = validate::payload(payload.get()).unwrap();
    assert_eq!(read.name, registration.name.as_str());
    assert_eq!(read.description, registration.description.as_str());
    assert_eq!(read.version.as_deref(), Some("1.0.0"));
    assert_eq!(read.capabilities, ["tasks", "reminders"]);
}

#[test]
fn both_registration_replies_match_the_specification() {
    let accepted = Example::new(
        r#"{
  "type": "registration_response",
  "payload": {
    "success": true,
    "clientId": "550e8400-e29b-41d4-a716-446655440000",
    "message": "Client 'my-client' registered successfully"
  }
}"#,
    );
    let id = "550e8400-e29b-41d4-a716-446655440000";
    accepted.comes_from_a_server(&answer(RegistrationResponse::accepted(id, "my-client")));
    let refused = Example::new(
        r#"{
  "type": "registration_response",
  "payload": {
    "success": false,
    "code": "DUPLICATE_NAME",
    "message": "A client with name 'my-client' is already registered"
  }
}"#,
    );
    let error = RegistrationError::duplicate_name("my-client");
    refused.comes_from_a_server(&answer(RegistrationResponse::refused(error)));
}

#[test]
fn every_error_code_matches_the_specification() {
    for (code, word) in [
        (ErrorCode::InvalidName, "INVALID_NAME"),
        (ErrorCode::InvalidDescription, "INVALID_DESCRIPTION"),
        (ErrorCode::DuplicateName, "DUPLICATE_NAME"),
        (ErrorCode::AlreadyRegistered, "ALREADY_REGISTERED"),
        (ErrorCode::ValidationError, "VALIDATION_ERROR"),
    ] {
        let refused = answer(RegistrationResponse::refused(RegistrationError::new(
            code, "why",
        )));
        assert_eq!(
            codec::encode(&refused).unwrap().as_str(),
            format!(
                r#"{{"type":"registration_response","payload":{{"success":false,"code":"{word}","message":"why"}}}}"#
            )
        );
    }
}

#[test]
fn a_routed_message_matches_the_specification() {
    let example = Example::new(
        r#"{
  "type": "message",
  "payload": {
    "id": "msg-550e8400-e29b-41d4-a716-446655440000",
    "text": "Remember to buy groceries tomorrow",
    "timestamp": "2024-01-15T10:30:00.000Z",
    "metadata": {
      "inputMethod": "voice",
      "directRouted": false,
      "confidence": 0.95,
      "routingReason": "User wants to remember something, which matches this client's note-taking capabilities"
    }
  }
}"#,
    );
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_705_314_600);
    let reason =
        "User wants to remember something, which matches this client's note-taking capabilities";
    let mut metadata = Metadata::default();
    metadata.input_method = InputMethod::Voice;
    metadata.confidence = Some(0.95);
    metadata.routing_reason = Some(reason.into());
    let message = Message::new(
        ID,
        "Remember to buy groceries tomorrow",
        timestamp::format(time),
    );
    example.comes_from_a_server(&ServerFrame::Message(Message {
        metadata,
        ..message
    }));
}

#[test]
fn absent_members_of_a_message_are_omitted() {
    let mut direct = Metadata::default();
    direct.direct_routed = true;
    let message = Message {
        metadata: direct,
        ..Message::new("m", "buy milk", "t")
    };
    assert_eq!(
        codec::encode(&ServerFrame::Message(message))
            .unwrap()
            .as_str(),
        r#"{"type":"message","payload":{"id":"m","text":"buy milk","timestamp":"t","metadata":{"inputMethod":"text","directRouted":true}}}"#
    );
}

#[test]
fn an_ack_matches_the_specification() {
    let example = Example::new(
        r#"{
  "type": "response",
  "payload": {
    "messageId": "msg-550e8400-e29b-41d4-a716-446655440000",
    "type": "ack",
    "payload": {}
  }
}"#,
    );
    example.comes_from_a_client(&response(Answer::Ack));
}

#[test]
fn a_reject_matches_the_specification() {
    let example = Example::new(
        r#"{
  "type": "response",
  "payload": {
    "messageId": "msg-550e8400-e29b-41d4-a716-446655440000",
    "type": "reject",
    "payload": {
      "reason": "I only handle notes, not calendar events"
    }
  }
}"#,
    );
    let reason = "I only handle notes, not calendar events".into();
    example.comes_from_a_client(&response(Answer::reject(Some(reason))));
}

#[test]
fn a_notification_matches_the_specification() {
    let example = Example::new(
        r#"{
  "type": "response",
  "payload": {
    "messageId": "msg-550e8400-e29b-41d4-a716-446655440000",
    "type": "notification",
    "payload": {
      "title": "Note Saved",
      "body": "Your note has been saved to the daily journal.",
      "priority": "normal"
    }
  }
}"#,
    );
    let shown = Notification {
        title: Some("Note Saved".into()),
        priority: Some(Priority::Normal),
        ..Notification::new("Your note has been saved to the daily journal.")
    };
    example.comes_from_a_client(&response(Answer::Notification(shown)));
}

#[test]
fn every_priority_matches_the_specification() {
    for (priority, word) in [
        (Priority::Low, "low"),
        (Priority::Normal, "normal"),
        (Priority::High, "high"),
    ] {
        let shown = Notification {
            priority: Some(priority),
            ..Notification::new("b")
        };
        let response = Response::new("m", Answer::Notification(shown));
        let written = codec::encode(&ClientFrame::Response(response));
        assert_eq!(
            written.unwrap().as_str(),
            format!(
                r#"{{"type":"response","payload":{{"messageId":"m","type":"notification","payload":{{"body":"b","priority":"{word}"}}}}}}"#
            )
        );
    }
}

#[test]
fn debug_output_of_frames_hides_private_text() {
    let secret = "hunter2";
    for text in [
        format!(r#"{{"type":"registration","payload":{{"name":"a","description":"{secret}"}}}}"#),
        format!(
            r#"{{"type":"response","payload":{{"messageId":"m","type":"reject","payload":{{"reason":"{secret}"}}}}}}"#
        ),
        format!(r#"{{"type":"later","payload":"{secret}"}}"#),
    ] {
        let frame = ClientFrame::decode(&text, &defaults()).unwrap();
        assert!(!format!("{frame:?}").contains(secret), "{frame:?}");
    }
    let text = format!(
        r#"{{"type":"message","payload":{{"id":"m","text":"{secret}","timestamp":"t","metadata":{{}}}}}}"#
    );
    let frame = ServerFrame::decode(&text, &defaults()).unwrap();
    assert!(!format!("{frame:?}").contains(secret), "{frame:?}");
}
