//! Tests of the frames that are sent to the servers of five protocols, and of those that are read.

use std::time::Duration;

use super::*;
use crate::load::Caller;

fn call(number: u64) -> Call {
    Call {
        number,
        due: Duration::from_nanos(77),
    }
}

fn caller() -> Caller {
    Caller {
        username: "ann".to_owned(),
        prompt: "hello".to_owned(),
        ..Caller::default()
    }
}

fn codec(protocol: Protocol, kind: Kind) -> (Scenario, Codec) {
    let scenario = Scenario::new(protocol, Some(kind), caller()).unwrap();
    let codec = Codec::new(&scenario, 3);
    (scenario, codec)
}

fn texts(outputs: &[Output]) -> Vec<&str> {
    let said = outputs.iter().filter_map(|it| match it {
        Output::Send(text) => Some(text.as_str()),
        _ => None,
    });
    said.collect()
}

fn frame(codec: &mut Codec, number: u64) -> String {
    match codec.call(call(number)) {
        Some(Request::Frame(text)) => text.as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// What was received, in short.
fn decode(codec: &mut Codec, text: &str) -> String {
    let mut outputs = Vec::new();
    codec.decode(text, &mut outputs);
    let words = outputs.iter().map(|it| match it {
        Output::Send(text) => format!("say {}", text.as_str()),
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_scenario_that_a_protocol_does_not_have_is_refused_with_those_it_has() {
    let error = Scenario::new(Protocol::SmartHole, Some(Kind::Echo), caller()).unwrap_err();
    assert_eq!(
        error,
        "smarthole has no scenario 'echo'; it has: chat, connect"
    );
    let scenario = Scenario::new(Protocol::SmartHole, None, caller()).unwrap();
    assert_eq!(scenario.kind, Kind::Chat);
}

#[test]
fn snek_logs_in_and_asks() {
    let (_, mut codec) = codec(Protocol::Snek, Kind::Echo);
    let outputs: Vec<_> = codec.open().into_iter().collect();
    assert_eq!(
        texts(&outputs),
        [r#"{"method":"login","args":["ann",""],"kwargs":{},"callId":"login"}"#]
    );
    let answer = r#"{"callId":"login","success":true,"data":{"username":"ann"}}"#;
    assert_eq!(decode(&mut codec, answer), "Ready");
    assert_eq!(
        frame(&mut codec, 5),
        r#"{"method":"get_user","args":[null],"kwargs":{},"callId":"5"}"#
    );
    assert_eq!(
        decode(&mut codec, r#"{"callId":"5","success":true,"data":{}}"#),
        "Done(5)"
    );
    assert_eq!(
        decode(
            &mut codec,
            r#"{"callId":"6","success":false,"data":{"error":"busy"}}"#
        ),
        r#"Failed(6, "error answer: busy")"#
    );
    assert_eq!(decode(&mut codec, "nonsense"), "Unreadable");
    assert_eq!(
        decode(&mut codec, r#"{"event":"join","data":{"channel_uid":"c"}}"#),
        ""
    );
}

#[test]
fn a_snek_message_is_done_when_it_is_answered_and_has_come_back() {
    let (scenario, mut codec) = codec(Protocol::Snek, Kind::Chat);
    let login = r#"{"callId":"login","success":true,"data":{"username":"ann"}}"#;
    assert_eq!(
        decode(&mut codec, login),
        r#"say {"method":"get_channels","args":[],"kwargs":{},"callId":"channels"}"#
    );
    let channels =
        r#"{"callId":"channels","success":true,"data":[{"uid":"general","name":"General"}]}"#;
    assert_eq!(decode(&mut codec, channels), "Ready");
    let text = format!("hello #{:x}.3.5.77", scenario.run);
    assert_eq!(
        frame(&mut codec, 5),
        format!(
            r#"{{"method":"send_message","args":["general","{text}",true],"kwargs":{{}},"callId":"5"}}"#
        )
    );
    let push = |text: &str| {
        format!(
            r#"{{"event":"message","message":"{text}","username":"ann","user_nick":"Ann","channel_uid":"general","is_final":true}}"#
        )
    };
    assert_eq!(decode(&mut codec, &push(&text)), "Seen(77)");
    let answer = r#"{"callId":"5","success":true,"data":null}"#;
    assert_eq!(decode(&mut codec, answer), "Done(5)");
    // That of another connection, of another run, and of somebody.
    let other = format!("hello #{:x}.4.6.99", scenario.run);
    assert_eq!(decode(&mut codec, &push(&other)), "Seen(99)");
    assert_eq!(decode(&mut codec, &push("hello #0.3.7.99")), "");
    assert_eq!(decode(&mut codec, &push("hello")), "");
}

#[test]
fn exoclaw_streams_until_done() {
    let (_, mut codec) = codec(Protocol::Exoclaw, Kind::Chat);
    let outputs: Vec<_> = codec.open().into_iter().collect();
    assert!(outputs.is_empty(), "{outputs:?}");
    assert_eq!(
        decode(&mut codec, r#"{"ok":true,"version":"0.1"}"#),
        "Ready"
    );
    assert!(frame(&mut codec, 5).starts_with(
        r#"{"id":"5","method":"chat.send","params":{"channel":"load","account":"load","content":"hello","peer":""#
    ));
    for (text, wanted) in [
        (r#"{"id":"5","event":"text","data":"a"}"#, "First(5)"),
        (r#"{"id":"5","event":"text","data":"b"}"#, ""),
        (
            r#"{"id":"5","event":"usage","data":{"input_tokens":1,"output_tokens":1}}"#,
            "",
        ),
        (r#"{"id":"5","event":"done"}"#, "Done(5)"),
        (
            r#"{"id":"6","error":"no"}"#,
            r#"Failed(6, "error answer: no")"#,
        ),
        (
            r#"{"error":"authentication failed","code":4001}"#,
            r#"Refused("authentication failed")"#,
        ),
    ] {
        assert_eq!(decode(&mut codec, text), wanted, "{text}");
    }
}

#[test]
fn connectonion_signs_and_answers_pings() {
    let (_, mut codec) = codec(Protocol::ConnectOnion, Kind::Chat);
    let outputs: Vec<_> = codec.open().into_iter().collect();
    let said = texts(&outputs);
    assert!(said[0].starts_with(r#"{"type":"CONNECT","#) && said[0].contains("signature"));
    let connected = r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#;
    assert_eq!(decode(&mut codec, connected), "Ready");
    assert_eq!(frame(&mut codec, 5), r#"{"type":"INPUT","prompt":"hello"}"#);
    for (text, wanted) in [
        (r#"{"type":"PING"}"#, r#"say {"type":"PONG"}"#),
        (
            r#"{"type":"assistant","id":"e","ts":1,"content":"a"}"#,
            "First(5)",
        ),
        (
            r#"{"type":"OUTPUT","result":"a","session_id":"s"}"#,
            "Done(5)",
        ),
        (r#"{"type":"OUTPUT","result":"a","session_id":"s"}"#, ""),
    ] {
        assert_eq!(decode(&mut codec, text), wanted, "{text}");
    }
    frame(&mut codec, 6);
    assert_eq!(
        decode(&mut codec, r#"{"type":"ERROR","message":"no"}"#),
        r#"Failed(6, "error answer: no")"#
    );
    frame(&mut codec, 7);
    assert!(!codec.forget(7), "the run goes on at the host");
}

#[test]
fn connectonion_answers_of_a_session_come_in_order() {
    let (_, mut codec) = codec(Protocol::ConnectOnion, Kind::Echo);
    decode(
        &mut codec,
        r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#,
    );
    assert_eq!(
        frame(&mut codec, 5),
        r#"{"type":"SESSION_STATUS","session":{"session_id":"s"}}"#
    );
    frame(&mut codec, 6);
    assert!(codec.forget(5));
    let answer = r#"{"type":"SESSION_STATUS","session_id":"s","status":"idle"}"#;
    assert_eq!(decode(&mut codec, answer), "Done(5)");
    assert_eq!(decode(&mut codec, answer), "Done(6)");
}

#[test]
fn acolyte_asks_for_the_model_before_chats() {
    let (_, mut codec) = codec(Protocol::Acolyte, Kind::Chat);
    let outputs: Vec<_> = codec.open().into_iter().collect();
    assert_eq!(
        texts(&outputs),
        [r#"{"id":"rpc_model","type":"status.get"}"#]
    );
    let status = r#"{"id":"rpc_model","type":"status.result","status":{"ok":true,"model":"m"}}"#;
    assert_eq!(decode(&mut codec, status), "Ready");
    assert_eq!(
        frame(&mut codec, 5),
        r#"{"id":"rpc_5","type":"chat.start","payload":{"request":{"message":"hello","history":[],"model":"m"}}}"#
    );
    for (text, wanted) in [
        (
            r#"{"id":"rpc_5","type":"chat.accepted","taskId":"task_a"}"#,
            "",
        ),
        (
            r#"{"id":"rpc_5","type":"chat.event","event":{"type":"text-delta","text":"a"}}"#,
            "First(5)",
        ),
        (
            r#"{"id":"rpc_5","type":"chat.done","reply":{"state":"done","model":"m","output":"a"}}"#,
            "Done(5)",
        ),
        (
            r#"{"id":"rpc_6","type":"error","error":"no"}"#,
            r#"Failed(6, "error answer: no")"#,
        ),
    ] {
        assert_eq!(decode(&mut codec, text), wanted, "{text}");
    }
}

#[test]
fn a_smarthole_text_is_done_when_its_client_has_it() {
    let (scenario, mut codec) = codec(Protocol::SmartHole, Kind::Chat);
    let outputs: Vec<_> = codec.open().into_iter().collect();
    let name = format!("load-{:x}-3", scenario.run);
    assert!(texts(&outputs)[0].contains(&name), "{outputs:?}");
    let answer = r#"{"type":"registration_response","payload":{"success":true}}"#;
    assert_eq!(decode(&mut codec, answer), "Ready");
    let Some(Request::Post(body)) = codec.call(call(5)) else {
        panic!("no post");
    };
    assert_eq!(body, format!("{name}: call 5"));
    let message = r#"{"type":"message","payload":{"id":"m","text":"call 5","timestamp":"t"}}"#;
    assert_eq!(
        decode(&mut codec, message),
        r#"say {"type":"response","payload":{"messageId":"m","type":"ack","payload":{}}} Done(5)"#
    );
}
