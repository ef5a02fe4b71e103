//! SmartHole: frames, both machines, the hub, direct routing and validation.

mod client;
mod frames;
mod hub;
#[path = "../../../../smarthole-proto/tests/it/hub_checked.rs"]
mod hub_checked;
#[path = "../../../../smarthole-proto/tests/it/hub_naive.rs"]
mod hub_naive;
#[allow(dead_code, reason = "plays scripts, too")]
#[path = "../../../../smarthole-proto/tests/it/hub_play.rs"]
mod hub_play;
mod server;

use crate::machine::drive;
pub use frames::{client_frames, direct, server_frames, validate};
pub use hub::hub;

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
        fn frames_of_clients_keep_their_rules(
            text in r#"\{("(type|payload|x)":("registration"|"response"|"later"|null|7|\[\]|\{("(messageId|type|payload|name)":("m"|"ack"|"reject"|"notification"|"r\\u00e9"|7|1.50|null|\[1\]|\{("(reason|title|body|priority)":("high"|"x"|null|7),?){0,2}\}),?){0,4}\}),?){0,3}\}"#,
        ) {
            client_frames(&text.replace(",}", "}"));
        }

        #[test]
        fn frames_of_servers_keep_their_rules(
            text in r#"\{("(type|payload|x)":("message"|"registration_response"|null|7|\{("(success|clientId|code|message|id|text|timestamp|metadata)":("m"|"LATER"|"2024-01-15T10:30:00Z"|true|false|7|null|\{("(inputMethod|directRouted|confidence|routingReason)":("voice"|"x"|null|0.95|1|true),?){0,4}\}),?){0,5}\}),?){0,3}\}"#,
        ) {
            server_frames(&text.replace(",}", "}"));
        }

        #[test]
        fn direct_texts_keep_their_rules(
            text in "[ \t\u{a0}]?[a-zA-Z0-9_é-]{0,3}[ ]?[,:：]?[ \t\n\u{feff}\u{85}]{0,3}[a-z:,\n\u{2028}]{0,4}[ \u{3000}]{0,2}",
            names in "\0[a-c A-C-]{0,9}",
        ) {
            direct(&text);
            direct(&format!("{text}{names}"));
        }

        #[test]
        fn registrations_keep_their_rules(
            text in r#"\{("(name|description|version|capabilities|x)":("a"|"a b"|"é"|""|" "|"\\ufeff"|"1"|"a\\n"|null|7|\["a"\]|\["a",7\]|\[\]|\{\}),?){0,5}\}"#,
        ) {
            validate(&text.replace(",}", "}"));
        }

        #[test]
        fn registrations_of_any_length_keep_their_rules(
            name in 60..70_usize,
            letter in prop::sample::select(vec!["a", "é", "😀", "-"]),
            description in 1020..1028_usize,
            sign in prop::sample::select(vec!["d", "é", "😀", " "]),
        ) {
            let (name, description) = (letter.repeat(name), sign.repeat(description));
            let text = format!(r#"{{"name":"{name}","description":"{description}"}}"#);
            validate(&text);
            let text = format!(r#"{{"name":"a","description":"{description}"}}"#);
            validate(&text);
        }

        #[test]
        fn a_client_keeps_its_rules_when_its_output_is_not_taken(
            settings in any::<u8>(),
            data in prop::collection::vec(
                prop_oneof![4 => 0..15_u8, 2 => 64..79_u8, 2 => 128..143_u8, 1 => 192..207_u8],
                0..100,
            ),
        ) {
            // It is registered.
            client_conn(&[&[settings, 1, 0], &data[..]].concat());
            client_conn(&[&[settings], &data[..]].concat());
        }

        #[test]
        fn responses_of_a_client_leave_in_order(
            settings in any::<u8>(),
            data in prop::collection::vec(
                prop_oneof![6 => 137..141_u8, 1 => 201..205_u8, 1 => 0..13_u8],
                0..100,
            ),
        ) {
            client_conn(&[&[settings, 1, 0], &data[..]].concat());
        }

        #[test]
        fn a_server_keeps_its_rules_when_its_output_is_not_taken(
            settings in any::<u8>(),
            data in prop::collection::vec(
                prop_oneof![4 => 0..15_u8, 2 => 64..79_u8, 2 => 128..143_u8, 1 => 192..207_u8],
                0..100,
            ),
        ) {
            // A client is registered.
            server_conn(&[&[settings, 1, 0, 11, 7], &data[..]].concat());
            server_conn(&[&[settings], &data[..]].concat());
        }

        #[test]
        fn a_hub_keeps_its_rules(
            settings in 0..4_u8,
            data in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            hub(&[&[settings], &data[..]].concat());
            // Four clients are there.
            let clients = [0, 0, 0, 0, 1, 1, 0, 2, 2, 0, 3, 3];
            hub(&[&[settings], &clients[..], &data[..]].concat());
        }
    }
}
