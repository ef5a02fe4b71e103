//! Bodies of the fuzz targets: any bytes go in, and the rules of frames and machines must hold.
#![allow(clippy::panic, reason = "a broken rule has to stop the fuzzer")]

mod client;
mod frames;
mod order;
mod queue;
mod server;
mod sse;

use std::time::Instant;

use rpc_core::fuzzing::assert_inert;
use rpc_core::{Limits, Machine};

pub use client::client_conn;
pub use frames::{client_frames, server_frames};
pub use order::OrderChecker;
pub use queue::queue;
pub use server::server_conn;
pub use sse::sse;

/// What limits are at most passed by: frames and events of one operation.
const SLACK: usize = 8;
/// Small enough for short scripts to reach.
const FEW: usize = 4;

fn small() -> Limits {
    Limits::default()
        .with_max_message_bytes(2048)
        .with_max_pending(FEW)
        .with_max_outbox_frames(FEW)
        .with_max_events(FEW)
}

/// After the end nothing comes out, whatever goes in.
fn inert<M: Machine>(machine: &mut M, now: Instant) {
    let texts = [
        r#"{"id":"rpc_a","type":"status.get"}"#,
        r#"{"id":"rpc_a","type":"chat.start","payload":{"request":{"message":"x","history":[],"model":"m"}}}"#,
        r#"{"id":"rpc_unknown","type":"error","error":"x"}"#,
        "[",
    ];
    assert_inert(machine, now, &texts);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_streamed_reply_that_leaves_things_out_keeps_its_rules() {
        sse(b"\x00data: {\"type\":\"done\",\"reply\":{\"output\":\"o\"}}\n\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn machines_keep_their_rules(data in prop::collection::vec(any::<u8>(), 0..400)) {
            client_conn(&data);
            server_conn(&data);
            queue(&data);
        }

        #[test]
        fn machines_keep_their_rules_in_long_scripts(
            settings in any::<u8>(),
            data in prop::collection::vec(0..=40_u8, 0..300),
        ) {
            client_conn(&[&[settings], &data[..]].concat());
            server_conn(&[&[settings], &data[..]].concat());
            queue(&data);
        }

        #[test]
        fn machines_keep_their_rules_when_nobody_takes_what_they_send(
            settings in any::<u8>(),
            data in prop::collection::vec(
                prop_oneof![1 => 0..18_u8, 2 => 64..82_u8, 4 => 128..146_u8],
                0..150,
            ),
        ) {
            client_conn(&[&[settings, 8, 0], &data[..]].concat());
            server_conn(&[&[settings, 1, 1], &data[..]].concat());
        }

        #[test]
        fn requests_keep_their_rules(
            text in r#"\{("(id|type|payload|x)":("rpc_a"|"a"|"chat\.start"|"status\.get"|"chat\.abort"|null|\{"requestId":"rpc_b"\}|\{"request":\{"message":"m","history":\[(1|null)?\],"model":"m"(,"suggestions":\["s"\]|,"y":1|,"workspace":null)?\}\}|"\\u00e9"),?){0,5}\}"#,
        ) {
            client_frames(text.as_bytes());
        }

        #[test]
        fn answers_keep_their_rules(
            text in r#"\{("(id|type|event|reply|error|text|state)":("rpc_a"|"chat\.event"|"chat\.done"|"chat\.error"|"text-delta"|7|null|\{"output":"o","model":null\}|\{"type":"text-delta","text":"\\n"\}|\{"type":"(status|later|usage)","state":\{"kind":"(queued|later)"\},"inputTokens":-1\}|"\\u00e9"),?){0,5}\}"#,
        ) {
            server_frames(text.as_bytes());
        }

        #[test]
        fn streams_keep_their_rules(
            sizes in prop::collection::vec(0..9_u8, 3),
            text in "((data: ?|:|event: x)(\\{\"type\":\"(text-delta\",\"text\":\"x|done\",\"reply\":\\{\"output\":\"o\"\\},\"y\":\"|error\",\"error\":\"e|later|usage)\"\\}|x)?(\n|\r\n|\r|\n\n)){0,8}",
        ) {
            sse(&[&[3], &sizes[..], text.as_bytes()].concat());
        }

        #[test]
        fn bodies_keep_their_rules(
            text in r#"\{("(message|history|model|sessionId|workspace|suggestions|activeSkills)":("x"|"sess_a"|null|7|\[\]|\[null\]|\["s"\]|\[\{"name":"n","instructions":"i"\}\]),?){0,7}\}"#,
        ) {
            sse(&[b"\x08", text.as_bytes()].concat());
        }
    }
}
