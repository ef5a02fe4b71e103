//! Snek: frames, both machines, and the parts of a bot that need no connection.

mod machines;
#[path = "../../../../snek-proto/tests/it/texts.rs"]
mod texts;
mod toolloop;

use rpc_core::Limits;
use snek_proto::frame::{ClientFrame, ServerFrame};

pub use texts::{image_urls, sanitize};
pub use toolloop::toolloop;

use crate::frames::frame;
use crate::machine::drive;

/// Decoding, encoding and decoding again gives the same request.
pub fn client_frames(text: &str) {
    if let Ok((frame, _)) = frame(text, &Limits::default(), ClientFrame::decode) {
        let _ = frame.call();
    }
}

/// Decoding, encoding and decoding again gives the same frame.
pub fn server_frames(text: &str) {
    let limits = Limits::default();
    let Ok((frame, _)) = frame(text, &limits, ServerFrame::decode) else {
        return;
    };
    let strict = ServerFrame::decode_strict(text, &limits);
    let _ = (
        frame.clone().into_event(),
        strict.map(ServerFrame::into_event),
    );
    if let Ok(answer) = frame.into_login_result() {
        let _ = answer.extra("username");
    }
}

/// Runs a client through operations: see `Client`.
pub fn client_conn(data: &[u8]) {
    drive::<machines::Client>(data);
}

/// Runs a server's connection through operations: see `Server`.
pub fn server_conn(data: &[u8]) {
    drive::<machines::Server>(data);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn machines_keep_their_rules_after_the_opening(
            data in prop::collection::vec(prop::sample::select((0..=24_u8).collect::<Vec<_>>()), 0..200),
        ) {
            client_conn(&[&[0, 1, 0, 0, 1, 1, 0, 1, 2, 0], &data[..]].concat());
            server_conn(&[&[0, 1, 0, 9], &data[..]].concat());
        }

        #[test]
        fn tool_loops_keep_their_rules_when_calls_repeat(
            data in prop::collection::vec(0..=8_u8, 0..200),
        ) {
            toolloop(&data);
        }

        #[test]
        fn frames_keep_their_rules(text in r#"\{("(method|callId|data|event|args|success)":("x"|1|null|\[\]|\{\}|"\\u00e9"),?){0,4}\}"#) {
            client_frames(&text);
            server_frames(&text);
        }
    }
}
