//! Acolyte: frames, both machines, and chats over HTTP.

mod client;
mod frames;
#[path = "../../../../acolyte-proto/tests/it/order.rs"]
mod order;
mod server;
mod sse;

use crate::machine::drive;
pub use frames::{client_frames, server_frames};
use order::OrderChecker;
pub use sse::sse;

/// Runs a client through operations: see `Client`.
pub fn client_conn(data: &[u8]) {
    drive::<client::Client>(data);
}

/// Runs a server's connection through operations: see `Server`.
pub fn server_conn(data: &[u8]) {
    drive::<server::Server>(data);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_streamed_reply_with_omissions_keeps_its_rules() {
        sse(b"\x00data: {\"type\":\"done\",\"reply\":{\"output\":\"o\"}}\n\n");
    }

    /// Something like a frame.
    fn object() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec![
            "id",
            "type",
            "event",
            "payload",
            "request",
            "reply",
            "text",
            "kind",
            "content",
            "error",
            "errorMessage",
            "state",
            "message",
            "history",
            "model",
            "output",
            "task",
            "status",
            "items",
        ]);
        let leaf = prop::sample::select(vec![
            r#""rpc_a""#,
            r#""chat.event""#,
            r#""chat.start""#,
            r#""chat.done""#,
            r#""chat.error""#,
            r#""text-delta""#,
            r#""tool-output""#,
            r#""text""#,
            "null",
            "7",
            "-1.5",
            "[]",
            "{}",
            r#""\ud800""#,
            r#""x\ny""#,
            "true",
        ])
        .prop_map(str::to_owned);
        leaf.prop_recursive(4, 24, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3)
                    .prop_map(|it| format!("[{}]", it.join(","))),
                prop::collection::vec((name.clone(), inner), 0..6).prop_map(|members| {
                    let members = members
                        .iter()
                        .map(|(name, value)| format!("\"{name}\":{value}"));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn machines_keep_their_rules_in_long_scripts(
            settings in any::<u8>(),
            data in prop::collection::vec(0..=40_u8, 0..300),
        ) {
            client_conn(&[&[settings], &data[..]].concat());
            server_conn(&[&[settings], &data[..]].concat());
        }

        #[test]
        fn machines_keep_their_rules_when_their_output_is_not_taken(
            settings in any::<u8>(),
            data in prop::collection::vec(
                prop_oneof![1 => 0..16_u8, 2 => 64..80_u8, 4 => 128..144_u8, 1 => 192..208_u8],
                0..150,
            ),
        ) {
            client_conn(&[&[settings, 11, 0], &data[..]].concat());
            server_conn(&[&[settings, 1, 0, 1, 0], &data[..]].concat());
        }

        #[test]
        fn frame_like_text_never_panics(text in object()) {
            client_frames(&text);
            server_frames(&text);
        }

        #[test]
        fn requests_keep_their_rules(
            text in r#"\{("(id|type|payload|x)":("rpc_a"|"a"|"chat\.start"|"status\.get"|"chat\.abort"|null|\{"requestId":"rpc_b"\}|\{"request":\{"message":"m","history":\[(1|null)?\],"model":"m"(,"suggestions":\["s"\]|,"y":1|,"workspace":null)?\}\}|"\\u00e9"),?){0,5}\}"#,
        ) {
            client_frames(&text);
        }

        #[test]
        fn answers_keep_their_rules(
            text in r#"\{("(id|type|event|reply|error|text|state)":("rpc_a"|"chat\.event"|"chat\.done"|"chat\.error"|"text-delta"|7|null|\{"output":"o","model":null\}|\{"type":"text-delta","text":"\\n"\}|\{"type":"(status|later|usage)","state":\{"kind":"(queued|later)"\},"inputTokens":-1\}|"\\u00e9"),?){0,5}\}"#,
        ) {
            server_frames(&text);
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
