//! Bodies of the fuzz targets: any bytes go in, and the rules of frames and machines must hold.
#![allow(clippy::panic, reason = "a broken rule has to stop the fuzzer")]

mod direct;
mod frames;
mod plain;
mod validate;

pub use direct::direct;
pub use frames::{client_frames, server_frames};
pub use validate::validate;

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
            let text = text.replace(",}", "}");
            client_frames(text.as_bytes());
        }

        #[test]
        fn frames_of_servers_keep_their_rules(
            text in r#"\{("(type|payload|x)":("message"|"registration_response"|null|7|\{("(success|clientId|code|message|id|text|timestamp|metadata)":("m"|"LATER"|"2024-01-15T10:30:00Z"|true|false|7|null|\{("(inputMethod|directRouted|confidence|routingReason)":("voice"|"x"|null|0.95|1|true),?){0,4}\}),?){0,5}\}),?){0,3}\}"#,
        ) {
            let text = text.replace(",}", "}");
            server_frames(text.as_bytes());
        }

        #[test]
        fn direct_texts_keep_their_rules(
            text in "[ \t\u{a0}]?[a-zA-Z0-9_é-]{0,3}[ ]?[,:：]?[ \t\n\u{feff}\u{85}]{0,3}[a-z:,\n\u{2028}]{0,4}[ \u{3000}]{0,2}",
            names in "\0[a-c A-C-]{0,9}",
        ) {
            direct(text.as_bytes());
            direct(format!("{text}{names}").as_bytes());
        }

        #[test]
        fn registrations_keep_their_rules(
            text in r#"\{("(name|description|version|capabilities|x)":("a"|"a b"|"é"|""|" "|"\\ufeff"|"1"|"a\\n"|null|7|\["a"\]|\["a",7\]|\[\]|\{\}),?){0,5}\}"#,
        ) {
            validate(text.replace(",}", "}").as_bytes());
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
            validate(text.as_bytes());
            let text = format!(r#"{{"name":"a","description":"{description}"}}"#);
            validate(text.as_bytes());
        }

        #[test]
        fn any_bytes_are_survived(data: Vec<u8>) {
            client_frames(&data);
            server_frames(&data);
            direct(&data);
            validate(&data);
        }
    }
}
