//! Decoding, encoding and decoding again gives the same frame, whatever the text.

use proptest::prelude::*;
use rpc_core::{Json, Limits, Str};
use smarthole_proto::codec;
use smarthole_proto::error::ErrorCode;
use smarthole_proto::frame::{
    Answer, ClientFrame, InputMethod, Message, Metadata, Notification, Priority, Registration,
    RegistrationResponse, Response, ServerFrame,
};
use smarthole_proto::validate::{self, Side};

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

fn text() -> impl Strategy<Value = Str> {
    any::<String>().prop_map(Str::from)
}

fn maybe() -> impl Strategy<Value = Option<Str>> {
    prop::option::of(text())
}

fn notification() -> impl Strategy<Value = Notification> {
    let priority = prop::sample::select(vec![Priority::Low, Priority::Normal, Priority::High]);
    (maybe(), text(), prop::option::of(priority)).prop_map(|(title, body, priority)| {
        let mut shown = Notification::new(body);
        shown.title = title;
        shown.priority = priority;
        shown
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let known = ["ack", "reject", "notification"];
    let tag = text().prop_filter("a new type", move |tag| !known.contains(&&**tag));
    prop_oneof![
        Just(Answer::Ack),
        maybe().prop_map(Answer::reject),
        notification().prop_map(Answer::Notification),
        (tag, prop::option::of(json())).prop_map(|(tag, payload)| Answer::Unknown {
            tag,
            content: payload.map(|json| Json::new(&json).unwrap()),
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let known = ["voice", "text"];
    let method = prop_oneof![
        Just(InputMethod::Voice),
        Just(InputMethod::Text),
        text()
            .prop_filter("a new word", move |word| !known.contains(&&**word))
            .prop_map(InputMethod::Other),
    ];
    // Each is read as it was written.
    let confidence = prop::option::of((0..=1024_u16).prop_map(|part| f64::from(part) / 1024.0));
    let metadata = (method, any::<bool>(), confidence, maybe());
    (text(), text(), text(), metadata).prop_map(|(id, said, time, metadata)| {
        let (method, direct, confidence, reason) = metadata;
        let mut metadata = Metadata::default();
        (metadata.input_method, metadata.direct_routed) = (method, direct);
        (metadata.confidence, metadata.routing_reason) = (confidence, reason);
        Message {
            metadata,
            ..Message::new(id, said, time)
        }
    })
}

fn server_frame() -> impl Strategy<Value = ServerFrame> {
    let code = prop::option::of(any::<String>().prop_map(|code| ErrorCode::from(Str::from(code))));
    prop_oneof![
        (maybe(), maybe()).prop_map(|(client_id, message)| ServerFrame::RegistrationResponse(
            RegistrationResponse::Accepted {
                client_id: client_id.map(Into::into),
                message
            }
        )),
        (code, maybe()).prop_map(|(code, message)| ServerFrame::RegistrationResponse(
            RegistrationResponse::Refused { code, message }
        )),
        message().prop_map(ServerFrame::Message),
    ]
}

/// A name that clients may have.
fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z][a-zA-Z0-9_-]{0,63}"
}

/// A description that clients may have, as both sides count.
fn description() -> impl Strategy<Value = String> {
    let text = prop::collection::vec(any::<char>(), 1..600);
    text.prop_map(String::from_iter)
        .prop_filter("not blank, not too long", |text| {
            validate::description(text, Side::Client).is_ok()
        })
}

fn object(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let name = prop_oneof![8 => prop::sample::select(names), 1 => Just("extra")];
    let value = prop_oneof![
        2 => json(),
        3 => prop::sample::select(vec![
            r#""registration""#, r#""response""#, r#""message""#, r#""registration_response""#,
            r#""ack""#, r#""reject""#, "{}", "true", "7", r#""m""#,
            r#"{"messageId":"m","type":"ack","payload":{}}"#,
            r#"{"type":"reject","messageId":7,"payload":{"reason":null}}"#,
            r#"{"messageId":"m","payload":{"body":"\u00e9"},"type":"notification"}"#,
            r#"{"success":false,"code":"X"}"#,
            r#"{"id":"1","text":"a","timestamp":"t","metadata":{"confidence":1}}"#,
        ]).prop_map(str::to_owned),
    ];
    prop::collection::btree_map(name, value, 0..6).prop_map(|members| {
        let members: Vec<_> = members
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        format!(" {{{}}}\n", members.join(", "))
    })
}

const MEMBERS: [&str; 4] = ["type", "payload", "messageId", "id"];

proptest! {
    #[test]
    fn every_response_round_trips(id in text(), answer in answer()) {
        let response = Response::new(id, answer);
        let frame = ClientFrame::Response(response);
        let written = codec::encode(&frame).unwrap();
        let read = ClientFrame::decode(written.as_str(), &Limits::default()).unwrap();
        prop_assert_eq!(&read, &frame);
        let plain: ClientFrame = serde_json::from_str(written.as_str()).unwrap();
        prop_assert_eq!(&plain, &frame);
    }

    #[test]
    fn every_registration_round_trips(
        name in name(),
        description in description(),
        version in prop::option::of(any::<String>()),
        capabilities in prop::collection::vec(any::<String>(), 0..5),
    ) {
        let mut registration = Registration::new(name.as_str(), description.as_str());
        registration.version = version.as_deref().map(Into::into);
        registration.capabilities = capabilities.iter().map(|it| it.as_str().into()).collect();
        let written = codec::encode(&registration.frame()).unwrap();
        let read = ClientFrame::decode(written.as_str(), &Limits::default()).unwrap();
        let ClientFrame::Registration(payload) = &read else {
            panic!("no registration")
        };
        let read = validate::payload(payload.get()).unwrap();
        prop_assert_eq!(&read, &registration);
        prop_assert_eq!(payload.parse::<Registration>().unwrap(), registration);
    }

    #[test]
    fn every_server_frame_round_trips(frame in server_frame()) {
        let written = codec::encode(&frame).unwrap();
        let read = ServerFrame::decode(written.as_str(), &Limits::default()).unwrap();
        prop_assert_eq!(&read, &frame);
        let plain: ServerFrame = serde_json::from_str(written.as_str()).unwrap();
        prop_assert_eq!(&plain, &frame);
    }

    #[test]
    fn a_client_frame_survives_the_round_trip(text in object(&MEMBERS)) {
        let limits = Limits::default();
        if let Ok(frame) = ClientFrame::decode(&text, &limits) {
            let again = codec::encode(&frame).unwrap();
            let decoded = ClientFrame::decode(again.as_str(), &limits).unwrap();
            prop_assert_eq!(&decoded, &frame);
        }
    }

    #[test]
    fn a_server_frame_survives_the_round_trip(text in object(&MEMBERS)) {
        let limits = Limits::default();
        if let Ok(frame) = ServerFrame::decode(&text, &limits) {
            let again = codec::encode(&frame).unwrap();
            let decoded = ServerFrame::decode(again.as_str(), &limits).unwrap();
            prop_assert_eq!(&decoded, &frame);
        }
    }

    #[test]
    fn a_frame_of_an_unknown_type_is_kept_verbatim(payload in json(), more in json()) {
        let text = format!(r#"{{"type":"later","payload":{payload},"more":{more}}}"#);
        let limits = Limits::default();
        let client = ClientFrame::decode(&text, &limits).unwrap();
        let again = codec::encode(&client).unwrap();
        prop_assert_eq!(again.as_str(), &text);
        let server = ServerFrame::decode(&text, &limits).unwrap();
        let again = codec::encode(&server).unwrap();
        prop_assert_eq!(again.as_str(), &text);
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let limits = Limits::default();
        let _ = ClientFrame::decode(&text, &limits);
        let _ = ServerFrame::decode(&text, &limits);
        let _ = validate::payload(&text);
    }

    #[test]
    fn a_truncated_frame_is_refused(
        frame in server_frame(),
        at in any::<prop::sample::Index>(),
    ) {
        let written = codec::encode(&frame).unwrap();
        let chars: Vec<char> = written.as_str().chars().collect();
        let cut: String = chars[..at.index(chars.len())].iter().collect();
        prop_assert!(ServerFrame::decode(&cut, &Limits::default()).is_err());
    }
}
