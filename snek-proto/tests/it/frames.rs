//! The specification's examples, and what the platform sends beyond it.

use rpc_core::Limits;
use rpc_core::decode::{DecodeErrorKind, RawJson};
use serde_json::json;
use snek_proto::codec::{self, Failure, NoArgs, NoKwargs, Request, Success};
use snek_proto::frame::{Call, Event, JoinEvent, MessageEvent, TypingEvent};
use snek_proto::{CallId, Channel, ClientFrame, Final, Message, ServerFrame, User, WireId};

fn client(text: &str) -> ClientFrame<'_> {
    ClientFrame::decode(text, &Limits::default()).unwrap()
}

fn server(text: &str) -> ServerFrame<'_> {
    ServerFrame::decode(text, &Limits::default()).unwrap()
}

fn event(text: &str) -> Result<String, DecodeErrorKind> {
    match server(text).as_event().unwrap() {
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
fn every_request_of_the_specification_is_written_as_it_stands() {
    for text in REQUESTS {
        assert_eq!(encoded(&client(text)), text);
        assert_eq!(encoded(&client(text).into_owned()), text);
    }
    insta::assert_debug_snapshot!(
        REQUESTS
            .iter()
            .map(|text| format!("{:?}", client(text).call().unwrap()))
            .collect::<Vec<_>>()
    );
}

#[test]
fn every_frame_of_the_specification_is_written_as_it_stands() {
    for text in FRAMES {
        assert_eq!(encoded(&server(text)), text);
        assert_eq!(encoded(&server(text).into_owned()), text);
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
fn a_request_is_written_with_all_four_members() {
    let call_id = CallId::from_raw(0xfeed);
    let ping = Request {
        method: "ping",
        args: NoArgs::default(),
        kwargs: NoKwargs {},
        call_id,
    };
    assert_eq!(
        encoded(&ping),
        r#"{"method":"ping","args":[],"kwargs":{},"callId":"000000000000feed"}"#
    );
    let send = Request {
        method: "send_message",
        args: ("ch1", "hi", Final::No),
        kwargs: NoKwargs {},
        call_id,
    };
    assert!(encoded(&send).contains(r#""args":["ch1","hi",false]"#));
    assert!(!format!("{send:?}").contains("hi"));
}

#[test]
fn missing_and_null_arguments_are_empty() {
    for text in [
        r#"{"method":"get_channels"}"#,
        r#"{"method":"get_channels","args":null,"kwargs":null,"callId":null}"#,
    ] {
        let frame = client(text);
        assert_eq!((frame.args(), frame.kwargs()), ("[]", "{}"));
        assert!(frame.call_id().is_none());
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
        r#"{"method":"ping","args":{}}"#,
        r#"{"method":"ping","kwargs":[]}"#,
        r#"{"method":"ping","callId":{}}"#,
        r#"{"method":"ping","method":"ping"}"#,
        "[]",
    ] {
        assert!(ClientFrame::decode(text, &limits).is_err(), "{text}");
    }
}

#[test]
fn any_scalar_call_id_comes_back_unchanged() {
    for id in [r#""1""#, "1", "1.50", "true", r#""\u0041""#] {
        let text = format!(r#"{{"method":"ping","callId":{id}}}"#);
        let frame = client(&text);
        let answer = encoded(&Success::new(frame.call_id().unwrap(), json!({"pong": []})));
        assert_eq!(
            answer,
            format!(r#"{{"callId":{id},"success":true,"data":{{"pong":[]}}}}"#)
        );
    }
}

#[test]
fn a_failure_carries_its_error_in_data() {
    let id = WireId::text("1");
    assert_eq!(
        encoded(&Failure::new(&id, "not logged in")),
        r#"{"callId":"1","success":false,"data":{"error":"not logged in"}}"#
    );
}

#[test]
fn events_are_written_in_the_specifications_form() {
    let message = Message::new(
        "target_channel_uid",
        "sender_username",
        "SenderNick",
        "Hello world",
    );
    assert_eq!(
        encoded(&message.as_event()),
        r#"{"event":"message","message":"Hello world","username":"sender_username","user_nick":"SenderNick","channel_uid":"target_channel_uid","is_final":true}"#
    );
    let join = JoinEvent {
        channel_uid: "abc123".into(),
    };
    assert_eq!(encoded(&join.as_join()), FRAMES[5]);
    assert_eq!(encoded(&join.as_leave()), FRAMES[6]);
    let typing = TypingEvent {
        channel_uid: Some("ch1".into()),
        username: None,
        user_nick: None,
        color: Some("#FF0000".into()),
        data: None,
    };
    assert_eq!(
        encoded(&typing),
        r##"{"event":"set_typing","data":{"channel_uid":"ch1","color":"#FF0000"}}"##
    );
}

#[test]
fn the_platforms_nested_message_is_read_too() {
    let text = r#"{"event":"new_message","channel_uid":"ch1","data":{"uid":"m1","message":"hi","user_uid":"u1","username":"alice","nick":"Alice"}}"#;
    let frame = server(text);
    let Some(Ok(Event::Message(message))) = frame.as_event() else {
        panic!()
    };
    assert_eq!(
        message,
        MessageEvent {
            message: "hi".into(),
            username: "alice".into(),
            user_nick: "Alice".into(),
            channel_uid: "ch1".into(),
            is_final: true,
        }
    );
    assert!(
        matches!(frame.as_event_strict(), Some(Ok(Event::Unknown(event))) if event.raw == text)
    );
    assert_eq!(encoded(&frame), text);
}

#[test]
fn message_members_have_defaults_and_needs() {
    let text = r#"{"event":"message","message":"x","username":"alice","channel_uid":"ch1"}"#;
    let frame = server(text);
    let Some(Ok(Event::Message(message))) = frame.as_event() else {
        panic!()
    };
    assert!(message.is_final);
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
fn a_typing_event_may_hold_anything() {
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
    let Some(Ok(Event::Unknown(event))) = frame.as_event() else {
        panic!()
    };
    assert_eq!((event.tag, event.raw), ("stars", text));
    assert_eq!(encoded(&frame), text);
}

#[test]
fn one_frame_can_be_seen_as_answer_and_as_event() {
    let text = r#"{"callId":"1","event":"message","message":{"odd":1},"username":"bot","data":7,"extra":[1]}"#;
    let frame = server(text);
    let reply = frame.as_reply().unwrap();
    assert_eq!(reply.result().unwrap().map(RawJson::get), Some("7"));
    assert_eq!(reply.extra("username"), RawJson::new(r#""bot""#).ok());
    assert_eq!(reply.extra("extra"), RawJson::new("[1]").ok());
    assert!(reply.extra("absent").is_none());
    assert!(frame.as_event().unwrap().is_err());
    assert_eq!(encoded(&frame), text);
}

#[test]
fn null_and_missing_data_are_the_same_value() {
    for text in [r#"{"callId":"1","data":null}"#, r#"{"callId":"1"}"#] {
        assert!(server(text).as_reply().unwrap().result().unwrap().is_none());
        assert_eq!(encoded(&server(text)), r#"{"callId":"1","data":null}"#);
    }
}

#[test]
fn a_refused_login_is_known_even_without_a_success_member() {
    let refused = server(r#"{"callId":"1","data":{"error":"bad password"}}"#);
    let error = refused.as_reply().unwrap().login_result().unwrap_err();
    assert_eq!(error.message(), "bad password");
    let odd = server(r#"{"callId":"1","data":{"error":"x","username":"mybot"}}"#);
    assert!(odd.as_reply().unwrap().login_result().is_ok());
}

#[test]
fn records_ignore_what_they_do_not_know() {
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
    assert!(serde_json::from_str::<User>(r#"["a","b"]"#).is_err());
    assert!(serde_json::from_str::<Channel>(r#"{"name":"n"}"#).is_err());
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
            assert!(server(&text).as_event().unwrap().is_err());
        });
    thread.unwrap().join().unwrap();
}
