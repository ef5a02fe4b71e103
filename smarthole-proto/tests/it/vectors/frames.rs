//! Vectors of the frames that both sides receive.

use rpc_core::DecodeError;
use rpc_core::json::DecodeErrorKind;
use serde::Serialize;
use smarthole_proto::codec;
use smarthole_proto::frame::{ClientFrame, ServerFrame};
use smarthole_proto::limits::defaults;

use super::{Vector, run};

#[test]
fn client_frames_match_the_vectors() {
    run("client_frames", |vector| {
        let decoded = ClientFrame::decode(vector.str("text"), &defaults());
        if let Some((frame, written)) = judge(vector, decoded) {
            let again = ClientFrame::decode(&written, &defaults()).unwrap();
            assert_eq!(again, frame, "{}", vector.name());
        }
    });
}

#[test]
fn server_frames_match_the_vectors() {
    run("server_frames", |vector| {
        let decoded = ServerFrame::decode(vector.str("text"), &defaults());
        if let Some((frame, written)) = judge(vector, decoded) {
            let again = ServerFrame::decode(&written, &defaults()).unwrap();
            assert_eq!(again, frame, "{}", vector.name());
        }
    });
}

/// A frame and how it is written, or nothing if it is wrong, which the vector has to say.
fn judge<F: Serialize>(vector: &Vector, decoded: Result<F, DecodeError>) -> Option<(F, String)> {
    let name = vector.name();
    if let Some(expected) = vector.try_str("written") {
        let frame = decoded.unwrap();
        let written = codec::encode(&frame).unwrap();
        assert_eq!(written.as_str(), expected, "{name}");
        return Some((frame, written.as_str().to_owned()));
    }
    let error = decoded.err().unwrap();
    assert_eq!(fault(error.kind()), vector.str("error"), "{name}");
    assert_eq!(error.path().join("."), vector.str("path"), "{name}");
    None
}

fn fault(kind: DecodeErrorKind) -> String {
    match kind {
        DecodeErrorKind::Syntax => "syntax".to_owned(),
        DecodeErrorKind::NotAnObject => "no object".to_owned(),
        DecodeErrorKind::DuplicateMember(member) => format!("{member} twice"),
        DecodeErrorKind::MissingMember(member) => format!("{member} missing"),
        DecodeErrorKind::WrongType { member, .. } => format!("{member} of a wrong type"),
        DecodeErrorKind::BadValue { member, .. } => format!("{member} of a bad value"),
        other => panic!("{other}"),
    }
}
