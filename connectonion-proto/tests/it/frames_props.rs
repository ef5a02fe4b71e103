//! What is not known, or not changed, stays as it was, whatever the texts and values in it.

use connectonion_proto::codec;
use connectonion_proto::frame::{ClientFrame, ServerFrame, Session};
use proptest::prelude::*;
use rpc_core::{Json, Limits};

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
            members(inner),
        ]
    })
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec(("[a-zé_]{0,8}", value), 0..4).prop_map(|members| {
        let members = members.iter();
        let members: Vec<_> = members
            .map(|(name, value)| format!("\"{name}\": {value}"))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

fn limits() -> Limits {
    Limits::default()
}

proptest! {
    #[test]
    fn changing_a_session_keeps_all_other_members(
        json in members(json()),
        name in "[a-z_]{0,8}",
        value in json(),
    ) {
        let before = Session::parse(&json, &limits()).unwrap();
        let mut after = before.clone();
        after.set(&name, &Json::new(&value).unwrap()).unwrap();
        let kept = |session: &Session| -> Vec<(String, String)> {
            let members = session.members().filter(|(known, _)| *known != name);
            members.map(|(name, value)| (name.to_owned(), value.get().to_owned())).collect()
        };
        prop_assert_eq!(kept(&after), kept(&before));
        let found = after.get(&name).map_or("null", Json::get);
        prop_assert_eq!(found, value.as_str());
        let written = codec::encode(&after).unwrap();
        let again = Session::parse(written.as_str(), &limits()).unwrap();
        prop_assert_eq!(again, after);
    }

    #[test]
    fn a_frame_of_an_unknown_type_is_kept_verbatim(payload in json(), more in json()) {
        let text = format!(r#"{{"type":"LATER","payload":{payload},"more":{more}}}"#);
        let client = ClientFrame::decode(&text, &limits()).unwrap();
        let written = codec::encode(&client).unwrap();
        prop_assert_eq!(written.as_str(), &text);
        let server = ServerFrame::decode(&text, &limits()).unwrap();
        let written = codec::encode(&server).unwrap();
        prop_assert_eq!(written.as_str(), &text);
    }
}
