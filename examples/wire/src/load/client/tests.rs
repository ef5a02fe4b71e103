//! Tests of the calls that are made to the servers of five protocols, and of what their answers are to them.

use std::time::Duration;

use super::*;
use crate::Protocol;
use crate::load::Caller;

fn caller() -> Caller {
    Caller {
        username: "ann".to_owned(),
        prompt: "hello".to_owned(),
        ..Caller::default()
    }
}

fn client(protocol: Protocol, kind: Kind) -> (Scenario, Client) {
    let scenario = Scenario::new(protocol, Some(kind), caller()).unwrap();
    let client = Client::new(&scenario, 3, Instant::now()).unwrap();
    (scenario, client)
}

/// The texts that are to be sent.
fn sent(client: &mut Client) -> Vec<String> {
    let frames = std::iter::from_fn(|| client.poll_transmit());
    let texts = frames.filter_map(|frame| match frame {
        Outgoing::Text(text) => Some(text.as_str().to_owned()),
        _ => None,
    });
    texts.collect()
}

/// Makes a call, and returns its frame and its id.
fn call(client: &mut Client, number: u64) -> (String, String) {
    let due = Duration::from_nanos(77);
    let made = client.call(Call { number, due }, Instant::now());
    assert_eq!(made.unwrap(), Made::Sent);
    let frame = sent(client).pop().unwrap();
    let ids = ["id", "callId"].into_iter();
    let mut ids = ids.filter_map(|name| crate::frame::text_of(&frame, &[name]));
    let id = ids.next().unwrap_or_default().into_owned();
    (frame, id)
}

/// What follows from what came, in short.
fn came(client: &mut Client, text: &str) -> String {
    client.handle_message(Incoming::Text(text), Instant::now());
    let outputs = std::iter::from_fn(|| client.poll(Instant::now()));
    let words = outputs.flatten().map(|it| format!("{it:?}"));
    words.collect::<Vec<_>>().join(" ")
}

/// Answers the calls with which a Snek client begins.
fn log_in(client: &mut Client) {
    let user = r#"{"username":"ann","nick":"Ann"}"#;
    for (method, data) in [
        ("login", user),
        ("get_user", user),
        ("get_channels", r#"[{"uid":"general","name":"General"}]"#),
    ] {
        let frame = sent(client).pop().unwrap();
        assert!(frame.contains(method), "{frame}");
        let id = crate::frame::text_of(&frame, &["callId"]).unwrap();
        let answer = format!(r#"{{"callId":"{id}","success":true,"data":{data}}}"#);
        let ready = match method {
            "get_channels" => "Ready",
            _ => "",
        };
        assert_eq!(came(client, &answer), ready);
    }
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
    let (_, mut client) = client(Protocol::Snek, Kind::Echo);
    log_in(&mut client);
    let (frame, id) = call(&mut client, 5);
    assert!(frame.contains("get_user"), "{frame}");
    let answer = format!(r#"{{"callId":"{id}","success":true,"data":{{}}}}"#);
    assert_eq!(came(&mut client, &answer), "Done(5)");
    let (_, id) = call(&mut client, 6);
    let answer = format!(r#"{{"callId":"{id}","success":false,"data":{{"error":"busy"}}}}"#);
    let failed = r#"Failed(6, "error answer: busy")"#;
    assert_eq!(came(&mut client, &answer), failed);
    assert_eq!(came(&mut client, "nonsense"), "Unreadable");
    let join = r#"{"event":"join","data":{"channel_uid":"c"}}"#;
    assert_eq!(came(&mut client, join), "");
}

#[test]
fn a_snek_message_is_done_when_it_is_answered_and_has_come_back() {
    let (scenario, mut client) = client(Protocol::Snek, Kind::Chat);
    log_in(&mut client);
    let text = format!("hello #{:x}.3.5.77", scenario.run);
    let (frame, id) = call(&mut client, 5);
    assert!(
        frame.contains(&format!(r#"["general","{text}",true]"#)),
        "{frame}"
    );
    let push = |text: &str| {
        format!(
            r#"{{"event":"message","message":"{text}","username":"ann","user_nick":"Ann","channel_uid":"general","is_final":true}}"#
        )
    };
    assert_eq!(came(&mut client, &push(&text)), "Seen(77)");
    let answer = format!(r#"{{"callId":"{id}","success":true,"data":null}}"#);
    assert_eq!(came(&mut client, &answer), "Done(5)");
    // In the other order.
    let (_, id) = call(&mut client, 8);
    let answer = format!(r#"{{"callId":"{id}","success":true,"data":null}}"#);
    assert_eq!(came(&mut client, &answer), "");
    let text = format!("hello #{:x}.3.8.77", scenario.run);
    assert_eq!(came(&mut client, &push(&text)), "Seen(77) Done(8)");
    // That of another connection, of another run, and of somebody.
    let other = format!("hello #{:x}.4.6.99", scenario.run);
    assert_eq!(came(&mut client, &push(&other)), "Seen(99)");
    assert_eq!(came(&mut client, &push("hello #0.3.7.99")), "");
    assert_eq!(came(&mut client, &push("hello")), "");
}

#[test]
fn exoclaw_streams_until_done() {
    let (_, mut client) = client(Protocol::Exoclaw, Kind::Chat);
    assert!(sent(&mut client).is_empty());
    let hello = r#"{"ok":true,"version":"0.1"}"#;
    assert_eq!(came(&mut client, hello), "Ready");
    let (frame, id) = call(&mut client, 5);
    assert!(
        frame.contains(r#""params":{"channel":"load","account":"load","content":"hello","peer":""#),
        "{frame}"
    );
    for (text, wanted) in [
        (r#"{"id":"ID","event":"text","data":"a"}"#, "First(5)"),
        (r#"{"id":"ID","event":"text","data":"b"}"#, ""),
        (r#"{"id":"ID","event":"done"}"#, "Done(5)"),
        (r#"{"id":"ID","event":"done"}"#, ""),
        (
            r#"{"error":"auth_failed","code":4001}"#,
            r#"Refused("auth_failed")"#,
        ),
    ] {
        let came = came(&mut client, &text.replace("ID", &id));
        assert_eq!(came, wanted, "{text}");
    }
}

#[test]
fn connectonion_signs_and_answers_pings() {
    let (_, mut client) = client(Protocol::ConnectOnion, Kind::Chat);
    let connect = sent(&mut client).concat();
    assert!(connect.contains(r#""type":"CONNECT""#) && connect.contains("signature"));
    let connected = r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#;
    assert_eq!(came(&mut client, connected), "Ready");
    let (frame, _) = call(&mut client, 5);
    assert_eq!(frame, r#"{"type":"INPUT","prompt":"hello"}"#);
    assert_eq!(came(&mut client, r#"{"type":"PING"}"#), "");
    assert_eq!(sent(&mut client), [r#"{"type":"PONG"}"#]);
    let output = r#"{"type":"OUTPUT","result":"a","session_id":"s"}"#;
    for (text, wanted) in [
        (
            r#"{"type":"assistant","id":"e","ts":1,"content":"a"}"#,
            "First(5)",
        ),
        (r#"{"type":"assistant","id":"f","ts":1,"content":"b"}"#, ""),
        (output, "Done(5)"),
        (output, ""),
    ] {
        assert_eq!(came(&mut client, text), wanted, "{text}");
    }
    call(&mut client, 6);
    let error = r#"{"type":"ERROR","message":"no"}"#;
    let failed = r#"Failed(6, "error answer: no")"#;
    assert_eq!(came(&mut client, error), failed);
    call(&mut client, 7);
    assert!(!client.forget(7), "the run goes on at the host");
}

#[test]
fn a_connectonion_session_answers_what_was_not_forgotten() {
    let (_, mut client) = client(Protocol::ConnectOnion, Kind::Echo);
    let connected = r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#;
    assert_eq!(came(&mut client, connected), "Ready");
    let (frame, _) = call(&mut client, 5);
    assert_eq!(
        frame,
        r#"{"type":"SESSION_STATUS","session":{"session_id":"s"}}"#
    );
    call(&mut client, 6);
    assert!(client.forget(5));
    let answer = r#"{"type":"SESSION_STATUS","session_id":"s","status":"idle"}"#;
    assert_eq!(came(&mut client, answer), "");
    assert_eq!(came(&mut client, answer), "Done(6)");
}

#[test]
fn acolyte_asks_for_the_model_before_chats() {
    let (_, mut client) = client(Protocol::Acolyte, Kind::Chat);
    assert!(client.poll(Instant::now()).unwrap().is_none());
    let status = sent(&mut client).concat();
    let id = crate::frame::text_of(&status, &["id"]).unwrap();
    let answer =
        format!(r#"{{"id":"{id}","type":"status.result","status":{{"ok":true,"model":"m"}}}}"#);
    assert_eq!(came(&mut client, &answer), "Ready");
    let (frame, id) = call(&mut client, 5);
    assert!(
        frame.ends_with(
            r#""type":"chat.start","payload":{"request":{"message":"hello","history":[],"model":"m"}}}"#
        ),
        "{frame}"
    );
    for (text, wanted) in [
        (
            r#"{"id":"ID","type":"chat.accepted","taskId":"task_a"}"#,
            "",
        ),
        (
            r#"{"id":"ID","type":"chat.event","event":{"type":"text-delta","text":"a"}}"#,
            "First(5)",
        ),
        (
            r#"{"id":"ID","type":"chat.done","reply":{"state":"done","model":"m","output":"a"}}"#,
            "Done(5)",
        ),
    ] {
        let came = came(&mut client, &text.replace("ID", &id));
        assert_eq!(came, wanted, "{text}");
    }
    let (_, id) = call(&mut client, 6);
    let error = format!(r#"{{"id":"{id}","type":"error","error":"no"}}"#);
    let came = came(&mut client, &error);
    assert!(
        came.starts_with("Failed(6") && came.contains("no"),
        "{came}"
    );
}

#[test]
fn a_smarthole_text_is_done_when_its_client_has_it() {
    let (scenario, mut client) = client(Protocol::SmartHole, Kind::Chat);
    let name = format!("load-{:x}-3", scenario.run);
    let registration = sent(&mut client).concat();
    assert!(registration.contains(&name), "{registration}");
    let answer = r#"{"type":"registration_response","payload":{"success":true}}"#;
    assert_eq!(came(&mut client, answer), "Ready");
    let due = Duration::ZERO;
    let made = client.call(Call { number: 5, due }, Instant::now());
    assert_eq!(made.unwrap(), Made::Post(format!("{name}: call 5")));
    let message = r#"{"type":"message","payload":{"id":"m","text":"call 5","timestamp":"t"}}"#;
    assert_eq!(came(&mut client, message), "Done(5)");
    assert_eq!(
        sent(&mut client),
        [r#"{"type":"response","payload":{"messageId":"m","type":"ack","payload":{}}}"#]
    );
}
