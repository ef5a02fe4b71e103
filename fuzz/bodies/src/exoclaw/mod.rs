//! Exoclaw: frames, keys of sessions, and both machines, alone and with each other.

mod client;
mod frames;
mod pair;
mod server;
#[path = "../../../../exoclaw-proto/tests/it/session_keys.rs"]
mod session_keys;

use crate::machine::drive;
pub use frames::{client_frames, server_frames, session_key};
pub use pair::pair;

/// The token of the machines that want one.
const TOKEN: &str = "s3cret-token";

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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn machines_keep_their_rules_after_the_opening(
            settings in any::<u8>(),
            data in prop::collection::vec(0..=35_u8, 0..200),
        ) {
            client_conn(&[&[settings, 1, 14], &data[..]].concat());
            server_conn(&[&[settings, 1, 0], &data[..]].concat());
            server_conn(&[&[settings], &data[..]].concat());
        }

        #[test]
        fn machines_keep_their_rules_when_their_output_is_not_taken(
            settings in any::<u8>(),
            data in prop::collection::vec(
                prop_oneof![1 => 0..15_u8, 2 => 64..79_u8, 4 => 128..143_u8, 1 => 192..207_u8, 2 => Just(139)],
                0..100,
            ),
        ) {
            // A chat is open: its stream can fill the line.
            client_conn(&[&[settings & !1, 1, 14, 11, 0], &data[..]].concat());
            server_conn(&[&[settings & !1, 1, 4, 8, 5], &data[..]].concat());
        }

        #[test]
        fn machines_keep_their_rules_with_each_other(
            data in prop::collection::vec(0..=40_u8, 0..120),
        ) {
            pair(&data);
        }

        #[test]
        fn keys_of_sessions_keep_their_rules(data in prop::collection::vec(
            prop::sample::select(b"\x00\x01\x02\x03:%23A5a".to_vec()), 0..40,
        )) {
            session_key(&data);
        }

        #[test]
        fn requests_keep_their_rules(
            text in r#"\{("(id|method|params|token|jsonrpc)":("x"|"ping"|"chat\.send"|7|1e3|null|\[\]|\{"channel":"c","account":"a","content":"\\n"\}|"\\u00e9"),?){0,4}\}"#,
        ) {
            client_frames(&text);
        }

        #[test]
        fn answers_keep_their_rules(
            text in r#"\{("(id|event|data|result|error|ok|code)":("x"|"text"|"usage"|7|null|true|4001|\[\]|\{"message":"m"\}|\{"input_tokens":1,"output_tokens":2\}|"\\u00e9"),?){0,4}\}"#,
        ) {
            server_frames(&text);
        }
    }
}
