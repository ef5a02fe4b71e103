//! Decoding, encoding and decoding again gives the same frame, whatever the text.

use std::time::Instant;

use exoclaw_proto::codec;
use exoclaw_proto::frame::{
    Call, ChatSend, Hello, MemorySearch, Request, ServerFrame, SessionRef, Token, ToolResult,
    ToolUse,
};
use exoclaw_proto::frame::{ClientFrame, Method, StreamEvent, Usage};
use exoclaw_proto::id::WireId;
use proptest::prelude::*;
use rpc_core::{Incoming, Json, Limits, Machine, Str};

use crate::gateway::ready;

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f32>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|value| format!("{value:e}")),
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

fn raw() -> impl Strategy<Value = Json> {
    json().prop_map(|json| Json::new(&json).unwrap())
}

fn text() -> impl Strategy<Value = Str> {
    any::<String>().prop_map(Str::from)
}

fn event() -> impl Strategy<Value = StreamEvent> {
    let known = ["text", "error", "done", "usage", "tool_use", "tool_result"];
    let name = text().prop_filter("a new name", move |name| !known.contains(&&**name));
    let data = prop::option::of(raw().prop_filter("not null", |raw| !raw.is_null()));
    prop_oneof![
        text().prop_map(StreamEvent::Text),
        text().prop_map(StreamEvent::Error),
        Just(StreamEvent::Done),
        any::<(u64, u64)>().prop_map(|(read, wrote)| StreamEvent::Usage(Usage::new(read, wrote))),
        (text(), text(), raw())
            .prop_map(|(id, name, input)| StreamEvent::ToolUse(ToolUse::new(id, name, input))),
        (text(), text(), any::<bool>())
            .prop_map(|(id, said, bad)| StreamEvent::ToolResult(ToolResult::new(id, said, bad))),
        (name, data).prop_map(|(tag, content)| StreamEvent::Unknown { tag, content }),
    ]
}

fn session() -> impl Strategy<Value = SessionRef> {
    (text(), text(), prop::option::of(text())).prop_map(|(channel, account, peer)| {
        let mut session = SessionRef::new(channel, account);
        session.peer = peer;
        session
    })
}

fn call() -> impl Strategy<Value = Call> {
    let name = text().prop_filter("a new name", |name| Method::parse(name).is_none());
    let params = prop::option::of(raw().prop_filter("not null", |raw| !raw.is_null()));
    prop_oneof![
        Just(Call::Ping),
        session().prop_map(Call::SessionClear),
        (text(), text(), text()).prop_map(|(channel, account, said)| {
            Call::ChatSend(ChatSend {
                session: SessionRef {
                    team: Some("t".into()),
                    ..SessionRef::new(channel, account)
                },
                content: said,
            })
        }),
        (session(), text(), any::<Option<u64>>()).prop_map(|(session, query, limit)| {
            Call::MemorySearch(MemorySearch {
                session,
                query,
                limit,
            })
        }),
        (name, params).prop_map(|(tag, content)| Call::Unknown { tag, content }),
    ]
}

fn server_frame() -> impl Strategy<Value = ServerFrame> {
    let error = text().prop_filter("no refusal", |error| error != "auth_failed");
    prop_oneof![
        text().prop_map(|version| ServerFrame::Hello(Hello::new(version))),
        Just(ServerFrame::auth_failed()),
        text().prop_map(|error| ServerFrame::AuthFailed {
            error,
            code: Some(4001),
        }),
        (text(), raw()).prop_map(|(id, result)| ServerFrame::Result { id, result }),
        (prop::option::of(text()), error).prop_map(|(id, error)| ServerFrame::Error { id, error }),
        (text(), event()).prop_map(|(id, event)| ServerFrame::Stream { id, event }),
    ]
}

fn object(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let name = prop_oneof![8 => prop::sample::select(names), 1 => Just("extra")];
    let value = prop_oneof![
        2 => json(),
        2 => prop::sample::select(vec![
            r#""text""#, r#""usage""#, r#""tool_use""#, r#""tool_result""#, r#""done""#,
            r#""error""#, r#""chat.send""#, r#""ping""#, "true", "7", r#""c1""#, "4001",
            r#"{"input_tokens":1,"output_tokens":2}"#, r#"{"id":"a","name":"b","input":null}"#,
            r#"{"channel":"c","account":"a","content":"x"}"#, r#"["c","a","p","x"]"#,
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

const CLIENT: [&str; 4] = ["id", "method", "params", "token"];
const SERVER: [&str; 8] = [
    "id", "event", "data", "result", "error", "code", "ok", "version",
];

proptest! {
    #[test]
    fn every_server_frame_round_trips(frame in server_frame()) {
        let limits = Limits::default();
        let written = codec::encode(&frame).unwrap();
        let read = ServerFrame::decode(written.as_str(), &limits).unwrap();
        prop_assert_eq!(&read, &frame);
        // Any reader of `serde` reads it too.
        let same: ServerFrame = serde_json::from_str(written.as_str()).unwrap();
        prop_assert_eq!(&same, &frame);
    }

    #[test]
    fn every_client_frame_round_trips(
        id in any::<String>(),
        call in call(),
        token in any::<String>(),
    ) {
        let limits = Limits::default();
        let request = ClientFrame::Request(Request::new(WireId::from_text(&id), call));
        let token = ClientFrame::Token(Token::new(token));
        for frame in [request, token] {
            let written = codec::encode(&frame).unwrap();
            prop_assert_eq!(&ClientFrame::decode(written.as_str(), &limits).unwrap(), &frame);
        }
    }

    #[test]
    fn a_client_frame_survives_the_round_trip(text in object(&CLIENT)) {
        let limits = Limits::default();
        if let Ok(frame) = ClientFrame::decode(&text, &limits) {
            let again = codec::encode(&frame).unwrap();
            let decoded = ClientFrame::decode(again.as_str(), &limits).unwrap();
            prop_assert_eq!(&decoded, &frame);
        } else {
            let _ = Request::id_of(&text, &limits);
        }
    }

    #[test]
    fn a_server_frame_survives_the_round_trip(text in object(&SERVER)) {
        let limits = Limits::default();
        if let Ok(frame) = ServerFrame::decode(&text, &limits) {
            let again = codec::encode(&frame).unwrap();
            let decoded = ServerFrame::decode(again.as_str(), &limits).unwrap();
            prop_assert_eq!(&decoded, &frame);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let limits = Limits::default();
        let _ = ClientFrame::decode(&text, &limits);
        let _ = ServerFrame::decode(&text, &limits);
        let _ = codec::redact(&text);
    }

    #[test]
    fn truncated_frames_never_panic(frame in server_frame(), at in any::<prop::sample::Index>()) {
        let written = codec::encode(&frame).unwrap();
        let chars: Vec<char> = written.as_str().chars().collect();
        let cut: String = chars[..at.index(chars.len())].iter().collect();
        let now = Instant::now();
        let mut client = ready(7, now).client;
        prop_assert!(ServerFrame::decode(&cut, &Limits::default()).is_err());
        client.handle_message(Incoming::Text(&cut), now);
        prop_assert!(!client.is_closed());
    }
}
