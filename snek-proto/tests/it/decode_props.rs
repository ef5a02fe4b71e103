//! Decoding, encoding and decoding again gives the same frame, whatever the text.

use proptest::prelude::*;
use rpc_core::Limits;
use snek_proto::codec;
use snek_proto::frame::{ClientFrame, ServerFrame};

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
            r#""message""#, r#""join""#, r#""set_typing""#, r#""new_message""#, r#""other""#,
            r#""login""#, r#"{"channel_uid":"c"}"#, "[]", "true", r#""c1""#,
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

const CLIENT: [&str; 4] = ["method", "args", "kwargs", "callId"];
const SERVER: [&str; 10] = [
    "callId",
    "success",
    "data",
    "error",
    "event",
    "message",
    "username",
    "user_nick",
    "channel_uid",
    "is_final",
];

proptest! {
    #[test]
    fn requests_round_trip(text in object(&CLIENT)) {
        let limits = Limits::default();
        if let Ok(frame) = ClientFrame::decode(&text, &limits) {
            let again = codec::encode(&frame).unwrap();
            let decoded = ClientFrame::decode(again.as_str(), &limits).unwrap();
            prop_assert_eq!(&decoded, &frame);
            let _ = frame.call();
        }
    }

    #[test]
    fn a_server_frame_survives_the_round_trip(text in object(&SERVER)) {
        let limits = Limits::default();
        if let Ok(frame) = ServerFrame::decode(&text, &limits) {
            let again = codec::encode(&frame).unwrap();
            let decoded = ServerFrame::decode(again.as_str(), &limits).unwrap();
            prop_assert_eq!(&decoded, &frame);
            let _ = frame.clone().into_event();
            if let Ok(answer) = frame.into_login_result() {
                let _ = answer.extra("extra");
            }
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let limits = Limits::default();
        let _ = ClientFrame::decode(&text, &limits);
        let _ = ServerFrame::decode(&text, &limits);
    }
}
