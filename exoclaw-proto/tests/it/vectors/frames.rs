//! Vectors of the frames that a client receives, of ids, and of what is logged.

use exoclaw_proto::codec;
use exoclaw_proto::frame::ServerFrame;
use exoclaw_proto::id::WireId;
use rpc_core::Limits;
use rpc_core::json::{self, DecodeErrorKind};

use super::run;

#[test]
fn server_frames_match_the_vectors() {
    run("answers_received", |vector| {
        let (name, text) = (vector.name(), vector.str("text"));
        let decoded = ServerFrame::decode(text, &Limits::default());
        if let Some(written) = vector.try_str("written") {
            let frame = decoded.unwrap();
            assert_eq!(codec::encode(&frame).unwrap().as_str(), written, "{name}");
            let again = ServerFrame::decode(written, &Limits::default()).unwrap();
            assert_eq!(again, frame, "{name}");
        } else {
            let error = decoded.unwrap_err();
            assert_eq!(fault(error.kind()), vector.str("error"), "{name}");
        }
    });
}

fn fault(kind: DecodeErrorKind) -> String {
    match kind {
        DecodeErrorKind::Syntax => "syntax".to_owned(),
        DecodeErrorKind::NotAnObject => "no object".to_owned(),
        DecodeErrorKind::DuplicateMember(member) => format!("{member} twice"),
        DecodeErrorKind::MissingMember(member) => format!("{member} missing"),
        DecodeErrorKind::WrongType { member, .. } => format!("{member} of a wrong type"),
        DecodeErrorKind::BadValue { member, .. } => format!("{member} with a bad value"),
        other => panic!("{other}"),
    }
}

#[test]
fn ids_match_the_vectors() {
    run("ids", |vector| {
        let id = json::parse::<WireId>(vector.str("json"), &Limits::default()).ok();
        let text = id.as_ref().map(|id| id.text().into_owned());
        assert_eq!(text.as_deref(), vector.try_str("text"), "{}", vector.name());
        if let Some(id) = id {
            let written = serde_json::to_string(&id).unwrap();
            let text = serde_json::to_string(vector.str("text")).unwrap();
            assert_eq!(written, text, "{}", vector.name());
        }
    });
}

#[test]
fn logged_frames_match_the_vectors() {
    run("logged", |vector| {
        let (name, text) = (vector.name(), vector.str("text"));
        let shown = codec::redact(text);
        match vector.try_str("shown") {
            Some(expected) => assert_eq!(shown, expected, "{name}"),
            None => assert!(!shown.contains("hunter2"), "{name}: {shown}"),
        }
    });
}
