//! Decoding, encoding and decoding again gives the same frame, whatever the text.

use std::borrow::Cow;

use bytes::BytesMut;
use exoclaw_proto::frame::{Call, Request};
use exoclaw_proto::{CallId, ChatSend, ClientFrame, ServerFrame, codec};
use proptest::prelude::*;
use rpc_core::Limits;

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f32>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|value| format!("{value:e}")),
        "[a-z ]{0,8}".prop_map(|text| format!("\"{text}\"")),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\ud83d\ude00\u0041""#.to_owned()),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec(("[a-z_]{0,8}", inner), 0..4).prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| format!("\"{name}\": {value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn object(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let name = prop_oneof![8 => prop::sample::select(names), 1 => Just("extra")];
    let value = prop_oneof![
        2 => json(),
        2 => prop::sample::select(vec![
            r#""text""#, r#""tool_use""#, r#""tool_result""#, r#""usage""#, r#""done""#, r#""error""#,
            r#""ping""#, r#""chat.send""#, r#""memory.search""#, r#""auth_failed""#, "4001",
            r#"{"channel":"c","account":"a","content":"x"}"#, r#"["c","a",null,"x"]"#,
            r#"{"id":"c","name":"n","input":[1]}"#, r#"{"tool_use_id":"c","content":"x"}"#,
            r#"{"input_tokens":1,"output_tokens":2}"#, r#"{"message":"no"}"#, "[]", "true", r#""c1""#,
        ]).prop_map(str::to_owned),
    ];
    prop::collection::btree_map(name, value, 0..8).prop_map(|members| {
        let members: Vec<_> = members
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        format!(" {{{}}}\n", members.join(", "))
    })
}

const CLIENT: [&str; 5] = ["id", "method", "params", "token", "jsonrpc"];
const SERVER: [&str; 8] = [
    "id", "event", "data", "result", "error", "code", "ok", "version",
];

proptest! {
    #[test]
    fn a_request_survives_the_round_trip(text in object(&CLIENT)) {
        let limits = Limits::default();
        if let Ok(frame) = ClientFrame::decode(&text, &limits) {
            let again = codec::encode(&frame).unwrap();
            let decoded = ClientFrame::decode(again.as_str(), &limits).unwrap();
            prop_assert_eq!(&decoded, &frame);
            prop_assert_eq!(&frame.clone().into_owned(), &frame);
            if let ClientFrame::Request(request) = &frame {
                let _ = request.call(&limits);
            }
        }
    }

    #[test]
    fn a_server_frame_survives_the_round_trip(text in object(&SERVER)) {
        let limits = Limits::default();
        if let Ok(frame) = ServerFrame::decode(&text, &limits) {
            let again = codec::encode(&frame).unwrap();
            let decoded = ServerFrame::decode(again.as_str(), &limits).unwrap();
            prop_assert_eq!(&decoded, &frame);
            prop_assert_eq!(&frame.clone().into_owned(), &frame);
        }
    }

    #[test]
    fn any_json_is_decoded_or_refused(text in json()) {
        let limits = Limits::default();
        let _ = ClientFrame::decode(&text, &limits);
        let _ = ServerFrame::decode(&text, &limits);
        let _ = Request::id_of(&text, &limits);
        let _ = codec::redact(&text);
    }

    #[test]
    fn any_text_is_decoded_or_refused(text in any::<String>()) {
        let limits = Limits::default();
        let _ = ClientFrame::decode(&text, &limits);
        let _ = ServerFrame::decode(&text, &limits);
        let _ = Request::id_of(&text, &limits);
        let _ = codec::redact(&text);
    }

    #[test]
    fn a_chat_survives_the_wire(
        parts in prop::array::uniform4(any::<String>()),
        guild in prop::option::of(any::<String>()),
    ) {
        let [channel, account, content, peer] = &parts;
        let mut chat: ChatSend<&str> = ChatSend::new(channel.as_str(), account.as_str(), content.as_str());
        chat.peer = Some(peer);
        chat.guild = guild.as_deref();
        let mut buffer = BytesMut::new();
        codec::encode_request(&mut buffer, CallId::from_raw(7), "chat.send", &chat).unwrap();
        let limits = Limits::default();
        let request = Request::decode(std::str::from_utf8(&buffer).unwrap(), &limits).unwrap();
        let Ok(Call::ChatSend(read)) = request.call(&limits) else {
            panic!("no chat")
        };
        prop_assert_eq!(read.channel, channel.as_str());
        prop_assert_eq!(read.account, account.as_str());
        prop_assert_eq!(read.content, content.as_str());
        prop_assert_eq!(read.peer.as_deref(), Some(peer.as_str()));
        prop_assert_eq!(read.guild, guild.map(Cow::Owned));
    }
}
