//! The specification's examples, and what the platform sends beyond it.

use rpc_core::json::{self, DecodeErrorKind};
use rpc_core::{Json, Limits};
use serde_json::json;
use snek_proto::codec::{self, encode_request};
use snek_proto::frame::NoKwargs;
use snek_proto::frame::{
    Call, Channel, ClientFrame, Event, Final, Joined, Message, OtherEvent, ServerFrame, Typing,
    User,
};
use snek_proto::id::{CallId, WireId};

fn client(text: &str) -> ClientFrame {
    ClientFrame::decode(text, &Limits::default()).unwrap()
}

fn server(text: &str) -> ServerFrame {
    ServerFrame::decode(text, &Limits::default()).unwrap()
}

fn event(text: &str) -> Result<String, DecodeErrorKind> {
    match server(text).into_event().unwrap() {
        Ok(event) => Ok(format!("{event:?}")),
        Err(error) => Err(error.kind()),
    }
}

fn encoded(frame: &impl serde::Serialize) -> String {
    codec::encode(frame).unwrap().as_str().to_owned()
}

/// Appendix A and B, client to server.
const REQUESTS: [&str; 8] = [
    r#"{"method":"login","args":["mybot","mypassword"],"kwargs":{},"callId":"a1b2c3d4e5f6g7h8"}"#,
    r#"{"method":"get_user","args":[null],"kwargs":{},"callId":"b2c3d4e5f6g7h8a1"}"#,
    r#"{"method":"get_channels","args":[],"kwargs":{},"callId":"c3d4e5f6g7h8a1b2"}"#,
    r#"{"method":"send_message","args":["ch1","hey, what's up?",true],"kwargs":{},"callId":"d4e5f6g7h8a1b2c3"}"#,
    r##"{"method":"set_typing","args":["ch1","#FF6B35"],"kwargs":{},"callId":"e5f6g7h8a1b2c3d4"}"##,
    r#"{"method":"send_message","args":["ch1","Working on",false],"kwargs":{},"callId":"f6g7h8a1b2c3d4e5"}"#,
    r#"{"method":"send_message","args":["ch1","Working on it...",false],"kwargs":{},"callId":"g7h8a1b2c3d4e5f6"}"#,
    r#"{"method":"send_message","args":["ch1","Working on it... done!",true],"kwargs":{},"callId":"h8a1b2c3d4e5f6g7"}"#,
];

/// Appendix A, server to client, and the events of section 7.
const FRAMES: [&str; 7] = [
    r#"{"callId":"a1b2c3d4e5f6g7h8","data":{}}"#,
    r#"{"callId":"b2c3d4e5f6g7h8a1","data":{"username":"mybot","nick":"MyBot"}}"#,
    r#"{"callId":"c3d4e5f6g7h8a1b2","data":[{"uid":"ch1","name":"general","tag":"public"},{"uid":"ch2","name":"DM","tag":"dm"}]}"#,
    r#"{"event":"message","message":"hello @MyBot","username":"alice","user_nick":"Alice","channel_uid":"ch1","is_final":true}"#,
    r#"{"event":"set_typing","data":{}}"#,
    r#"{"event":"join","data":{"channel_uid":"abc123"}}"#,
    r#"{"event":"leave","data":{"channel_uid":"abc123"}}"#,
];

#[test]
fn every_request_matches_the_specification() {
    for text in REQUESTS {
        let frame = client(text);
        assert_eq!(encoded(&frame), text);
        assert_eq!(frame.method, frame.call().unwrap().method());
    }
    insta::assert_debug_snapshot!(
        REQUESTS
            .iter()
            .map(|text| format!("{:?}", client(text).call().unwrap()))
            .collect::<Vec<_>>()
    );
}

#[test]
fn every_frame_of_the_specification_matches() {
    for text in FRAMES {
        assert_eq!(encoded(&server(text)), text);
    }
    insta::assert_debug_snapshot!(
        FRAMES
            .iter()
            .skip(3)
            .map(|text| event(text).unwrap())
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_request_has_all_four_members() {
    let call_id = CallId::from_raw(0xfeed);
    let ping = r#"{"method":"ping","args":[],"kwargs":{},"callId":"000000000000feed"}"#;
    let frame = ClientFrame::new("ping", Some(WireId::text("000000000000feed")));
    assert_eq!(encoded(&frame), ping);
    let mut buffer = String::new();
    encode_request(&mut buffer, "ping", &[(); 0], &NoKwargs {}, call_id).unwrap();
    assert_eq!(buffer, ping);
    buffer.clear();
    let args = ("ch1", "hi", Final::No);
    encode_request(&mut buffer, "send_message", &args, &NoKwargs {}, call_id).unwrap();
    assert!(buffer.contains(r#""args":["ch1","hi",false]"#));
    assert!(!format!("{:?}", client(&buffer)).contains("hi"));
}

#[test]
fn missing_and_null_arguments_are_empty() {
    for text in [
        r#"{"method":"get_channels"}"#,
        r#"{"method":"get_channels","args":null,"kwargs":null,"callId":null}"#,
    ] {
        let frame = client(text);
        assert_eq!((frame.args.get(), frame.kwargs.get()), ("[]", "{}"));
        assert!(frame.call_id.is_none());
        assert!(matches!(frame.call(), Ok(Call::GetChannels)));
    }
}

#[test]
fn a_request_without_a_method_or_with_wrong_members_is_refused() {
    let limits = Limits::default();
    for text in [
        "{}",
        r#"{"method":1}"#,
        r#"{"method":null}"#,
        r#"{"method":"ping","callId":{}}"#,
        r#"{"method":"ping","method":"ping"}"#,
        "[]",
    ] {
        assert!(ClientFrame::decode(text, &limits).is_err(), "{text}");
    }
    // These can be answered.
    for text in [
        r#"{"method":"ping","args":{}}"#,
        r#"{"method":"ping","kwargs":[]}"#,
        r#"{"method":"dance","args":1}"#,
        r#"{"method":"dance","kwargs":"x"}"#,
    ] {
        assert!(client(text).call().is_err(), "{text}");
    }
}

#[test]
fn any_scalar_call_id_round_trips() {
    for id in [r#""1""#, "1", "1.50", "true", r#""\u0041""#] {
        let text = format!(r#"{{"method":"ping","callId":{id}}}"#);
        let frame = client(&text);
        let answer = encoded(&ServerFrame::success(
            frame.call_id.unwrap(),
            json!({"pong": []}),
        ));
        assert_eq!(
            answer,
            format!(r#"{{"callId":{id},"success":true,"data":{{"pong":[]}}}}"#)
        );
    }
}

#[test]
fn a_failure_has_its_error_in_data() {
    assert_eq!(
        encoded(&ServerFrame::failure(WireId::text("1"), "not logged in")),
        r#"{"callId":"1","success":false,"data":{"error":"not logged in"}}"#
    );
}

#[test]
fn events_match_the_specification() {
    let message = Message::new(
        "target_channel_uid",
        "sender_username",
        "SenderNick",
        "Hello world",
    );
    assert_eq!(
        encoded(&Event::Message(message)),
        r#"{"event":"message","message":"Hello world","username":"sender_username","user_nick":"SenderNick","channel_uid":"target_channel_uid","is_final":true}"#
    );
    let data = Joined {
        channel_uid: "abc123".into(),
    };
    assert_eq!(encoded(&Event::Join { data: data.clone() }), FRAMES[5]);
    assert_eq!(encoded(&Event::Leave { data }), FRAMES[6]);
    let mut data = Typing::default();
    (data.channel_uid, data.color) = (Some("ch1".into()), Some("#FF0000".into()));
    assert_eq!(
        encoded(&Event::SetTyping { data }),
        r##"{"event":"set_typing","data":{"channel_uid":"ch1","color":"#FF0000"}}"##
    );
    let other = OtherEvent::new("stars", json!([1]));
    assert_eq!(
        encoded(&Event::Unknown(other)),
        r#"{"event":"stars","data":[1]}"#
    );
    for text in FRAMES.iter().skip(3).chain(&[r#"{"event":"stars"}"#]) {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let event = server(text).into_event().unwrap().unwrap();
        assert_eq!(value["event"], event.name());
    }
}

#[test]
fn the_platforms_nested_message_is_read_too() {
    let text = r#"{"event":"new_message","channel_uid":"ch1","data":{"uid":"m1","message":"hi","user_uid":"u1","username":"alice","nick":"Alice"}}"#;
    let frame = server(text);
    assert_eq!(encoded(&frame), text);
    let Some(Ok(Event::Message(message))) = frame.into_event() else {
        panic!()
    };
    assert_eq!(message, Message::new("ch1", "alice", "Alice", "hi"));
    let strict = ServerFrame::decode_strict(text, &Limits::default()).unwrap();
    assert!(
        matches!(strict.into_event(), Some(Ok(Event::Unknown(event))) if event.frame.get() == text)
    );
}

#[test]
fn message_members_are_required_or_defaulted() {
    let text = r#"{"event":"message","message":"x","username":"alice","channel_uid":"ch1"}"#;
    let Some(Ok(Event::Message(message))) = server(text).into_event() else {
        panic!()
    };
    assert_eq!(message.is_final, Final::Yes);
    assert_eq!(message.user_nick, "alice");
    for (rest, kind) in [
        (
            r#""username":"a","channel_uid":"c""#,
            DecodeErrorKind::MissingMember("message"),
        ),
        (
            r#""message":"m","channel_uid":"c""#,
            DecodeErrorKind::MissingMember("username"),
        ),
        (
            r#""message":"m","username":"a""#,
            DecodeErrorKind::MissingMember("channel_uid"),
        ),
        (
            r#""message":5,"username":"a","channel_uid":"c""#,
            DecodeErrorKind::WrongType {
                member: "message",
                expected: "a string",
            },
        ),
        (
            r#""message":"m","username":"a","channel_uid":"c","is_final":"no""#,
            DecodeErrorKind::WrongType {
                member: "is_final",
                expected: "true or false",
            },
        ),
    ] {
        assert_eq!(
            event(&format!(r#"{{"event":"message",{rest}}}"#)),
            Err(kind)
        );
    }
}

#[test]
fn a_join_without_a_channel_is_refused() {
    for data in [
        "null",
        "{}",
        r#"{"channel_uid":null}"#,
        r#"{"channel_uid":1}"#,
        "[]",
        "1",
    ] {
        assert!(
            event(&format!(r#"{{"event":"join","data":{data}}}"#)).is_err(),
            "{data}"
        );
    }
}

#[test]
fn a_typing_event_can_have_any_members() {
    for data in ["{}", "null", r#"{"channel_uid":1,"color":[],"x":{"y":1}}"#] {
        assert!(
            event(&format!(r#"{{"event":"set_typing","data":{data}}}"#)).is_ok(),
            "{data}"
        );
    }
}

#[test]
fn an_unknown_event_keeps_everything() {
    let text = r#"{"event":"stars","channel_uid":5,"data":{"a": [1.0, "\u0041"]},"extra":null}"#;
    let frame = server(text);
    assert_eq!(encoded(&frame), text);
    let Some(Ok(Event::Unknown(event))) = frame.into_event() else {
        panic!()
    };
    assert_eq!((&*event.tag, event.frame.get()), ("stars", text));
    let event = Event::Unknown(event);
    assert_eq!(encoded(&event), text);
    assert_eq!(serde_json::from_str::<Event>(text).unwrap(), event);
}

#[test]
fn a_frame_can_be_read_as_reply_or_event() {
    let text = r#"{"callId":"1","event":"message","message":{"odd":1},"username":"bot","data":7,"extra":[1]}"#;
    let frame = server(text);
    assert_eq!(encoded(&frame), text);
    assert!(frame.clone().into_event().unwrap().is_err());
    assert_eq!(frame.call_id(), Some(WireId::text("1")));
    let answer = frame.into_result().unwrap();
    assert_eq!(answer.data().get(), "7");
    assert_eq!(answer.extra("username"), Json::new(r#""bot""#).ok());
    assert_eq!(answer.extra("extra"), Json::new("[1]").ok());
    assert!(answer.extra("absent").is_none());
}

#[test]
fn a_reply_keeps_unknown_members() {
    for text in [
        r#"{"callId":"1","x":1}"#,
        r#"{"callId":"1","success":true,"data":null,"x":1}"#,
        r#"{"x":1,"callId":1}"#,
    ] {
        assert_eq!(encoded(&server(text)), text);
        let answer = server(text).into_result().unwrap();
        assert_eq!(answer.extra("x"), Json::new("1").ok(), "{text}");
    }
}

#[test]
fn null_and_missing_data_are_the_same_value() {
    for text in [r#"{"callId":"1","data":null}"#, r#"{"callId":"1"}"#] {
        assert!(server(text).into_result().unwrap().data().is_null());
        assert_eq!(encoded(&server(text)), r#"{"callId":"1","data":null}"#);
    }
}

#[test]
fn a_refused_login_is_recognized_without_success() {
    let refused = server(r#"{"callId":"1","data":{"error":"bad password"}}"#);
    let error = refused.into_login_result().unwrap_err();
    assert_eq!(error.message(), "bad password");
    let odd = server(r#"{"callId":"1","data":{"error":"x","username":"mybot"}}"#);
    assert!(odd.into_login_result().is_ok());
}

#[test]
fn records_ignore_unknown_members() {
    let user: User =
        serde_json::from_str(r#"{"uid":"u1","username":"a","nick":null,"email":"x"}"#).unwrap();
    assert_eq!(user, User::new("a", ""));
    let channels: Vec<Channel> = serde_json::from_str(
        r#"[{"uid":"c1","name":"n","tag":"dm","new_count":3},{"uid":"c2","tag":null}]"#,
    )
    .unwrap();
    assert_eq!(
        channels,
        [
            Channel::new("c1", "n", Some("dm")),
            Channel::new("c2", "", None)
        ]
    );
    assert!(channels[0].is_dm() && !channels[1].is_dm());
    assert!(json::parse::<User>(r#"["a","b"]"#, &Limits::default()).is_err());
    assert!(serde_json::from_str::<Channel>(r#"{"name":"n"}"#).is_err());
    assert!(serde_json::from_str::<Channel>(r#"{"uid":7}"#).is_err());
    assert_eq!(
        encoded(&channels[1]),
        r#"{"uid":"c2","name":"","tag":null}"#
    );
}

#[test]
fn a_very_deep_payload_is_passed_through() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let thread = std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(move || {
            let text = format!(r#"{{"callId":"1","data":{deep}}}"#);
            assert_eq!(encoded(&server(&text)), text);
            let text = format!(r#"{{"method":"echo","args":{deep},"kwargs":{{}},"callId":"1"}}"#);
            assert_eq!(encoded(&client(&text)), text);
            let text = format!(r#"{{"method":"login","args":{deep}}}"#);
            assert!(client(&text).call().is_err());
            let text = format!(r#"{{"event":"join","data":{{"channel_uid":{deep}}}}}"#);
            assert!(server(&text).into_event().unwrap().is_err());
        });
    thread.unwrap().join().unwrap();
}
