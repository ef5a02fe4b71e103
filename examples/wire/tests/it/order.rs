//! What comes at the wrong moment is named, in the recordings of each protocol.

use switchboard_wire::Protocol;
use switchboard_wire::decode::{Options, decode};

/// Decodes a conversation, a line each: `>` for what the client says, `<` for the server. Returns the lines in which
/// something is wrong, from 1, and what is.
pub(crate) fn wrong(protocol: Protocol, conversation: &str) -> Vec<(usize, String)> {
    let mut recording = format!(
        "{{\"transcript\":1,\"protocol\":\"{}\"}}\n",
        protocol.name()
    );
    recording += "{\"at\":0,\"conn\":1,\"dir\":\"c2s\",\"kind\":\"open\",\"data\":\"/\"}\n";
    for (at, line) in conversation.trim().lines().map(str::trim).enumerate() {
        let (side, text) = line.split_once(' ').unwrap();
        let dir = if side == ">" { "c2s" } else { "s2c" };
        let data = serde_json::to_string(text).unwrap();
        recording += &format!(
            "{{\"at\":{at},\"conn\":1,\"dir\":\"{dir}\",\"kind\":\"text\",\"data\":{data}}}\n"
        );
    }
    recording += "{\"at\":99,\"conn\":1,\"dir\":\"c2s\",\"kind\":\"close\",\"code\":1000}\n";
    found(&recording)
}

/// Decodes a recording with two lines in front of the frames.
pub(crate) fn found(recording: &str) -> Vec<(usize, String)> {
    let options = Options {
        json: true,
        problems: true,
        ..Options::default()
    };
    let mut out = Vec::new();
    decode(&options, recording.as_bytes(), &mut out, |error| {
        panic!("{error}")
    })
    .unwrap();
    let mut found = Vec::new();
    for line in String::from_utf8(out).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let number =
            |it: &serde_json::Value| usize::try_from(it["line"].as_u64().unwrap()).unwrap() - 2;
        if let Some(problem) = line["problem"].as_str() {
            found.push((number(&line), problem.to_owned()));
        }
        for call in line["unanswered"].as_array().into_iter().flatten() {
            found.push((number(call), "nobody has answered".to_owned()));
        }
    }
    found
}

fn assert_wrong(protocol: Protocol, conversation: &str, line: usize, part: &str) {
    let found = wrong(protocol, conversation);
    assert!(
        found
            .iter()
            .any(|(at, words)| *at == line && words.contains(part)),
        "no {part:?} in line {line}: {found:?}{conversation}"
    );
}

fn assert_answered(protocol: Protocol, conversation: &str) {
    let found = wrong(protocol, conversation);
    let is_open = |(_, words): &(usize, String)| words == "nobody has answered";
    assert!(!found.iter().any(is_open), "{found:?}{conversation}");
}

/// Without one of its lines, or with one twice or elsewhere.
fn changed<'a>(conversation: &'a str, change: impl FnOnce(&mut Vec<&'a str>)) -> String {
    let mut lines: Vec<_> = conversation.trim().lines().map(str::trim).collect();
    change(&mut lines);
    lines.join("\n")
}

type Change<'a> = dyn Fn(&mut Vec<&'static str>) + 'a;

/// What is wrong with changes of this conversation.
fn breaking(protocol: Protocol, conversation: &'static str) -> impl Fn(&Change<'_>, usize, &str) {
    move |change, line, part| assert_wrong(protocol, &changed(conversation, change), line, part)
}

fn without(lines: &mut Vec<&str>, at: usize) {
    lines.remove(at);
}

const SNEK: &str = r#"
    > {"method":"login","args":["a","b"],"kwargs":{},"callId":"1"}
    < {"callId":"1","success":true,"data":{"username":"a"}}
    > {"method":"get_user","args":[null],"kwargs":{},"callId":"2"}
    < {"callId":"2","success":true,"data":{"username":"a","nick":"A"}}"#;

#[test]
fn snek() {
    use Protocol::Snek;
    let breaks = breaking(Snek, SNEK);
    assert_eq!(wrong(Snek, SNEK), []);
    breaks(&|it| it.swap(0, 2), 1, "before the login");
    assert_wrong(
        Snek,
        &SNEK.replace("\"2\"", "\"1\""),
        3,
        "has the id of line",
    );
    breaks(&|it| it.push(it[3]), 5, "after the end");
    breaks(&|it| without(it, 3), 3, "nobody has answered");
    breaks(&|it| without(it, 2), 3, "answers nothing");
    let retyped = SNEK.replace("< {\"callId\":\"2\"", "< {\"callId\":2");
    assert_wrong(Snek, &retyped, 4, "in another type");
}

#[test]
fn snek_events_come_behind_the_login() {
    use Protocol::Snek;
    let event = r#"< {"event":"message","message":"m","username":"u","user_nick":"n","channel_uid":"c","is_final":true}"#;
    let early = changed(SNEK, |it| it.insert(0, event));
    assert_wrong(Snek, &early, 1, "before the login");
    let refusal = r#"< {"callId":"1","success":false,"data":{"error":"no"}}"#;
    let refused = changed(SNEK, |it| it[1] = refusal);
    assert_wrong(Snek, &refused, 3, "before the login");
    let answer = event.replace("\"event\"", "\"callId\":\"2\",\"event\"");
    let posed = changed(SNEK, |it| it.insert(3, &answer));
    assert_wrong(Snek, &posed, 4, "an event with the callId of line");
}

const EXOCLAW: &str = r#"
    > {"token":"t"}
    < {"ok":true,"version":"0.1.0"}
    > {"id":"1","method":"chat.send","params":{"channel":"w","account":"a","content":"q"}}
    < {"id":"1","event":"tool_use","data":{"id":"c","name":"n","input":{}}}
    < {"id":"1","event":"tool_result","data":{"tool_use_id":"c","content":"x"}}
    < {"id":"1","event":"text","data":"x"}
    < {"id":"1","event":"done"}"#;

#[test]
fn exoclaw() {
    use Protocol::Exoclaw;
    let breaks = breaking(Exoclaw, EXOCLAW);
    assert_eq!(wrong(Exoclaw, EXOCLAW), []);
    breaks(&|it| it.insert(2, it[1]), 3, "after the hello");
    breaks(&|it| it.swap(0, 1), 2, "after the hello");
    breaks(&|it| it.swap(1, 2), 2, "before the hello");
    let result = r#"< {"id":"7","result":"pong"}"#;
    breaks(&|it| it.push(result), 8, "answers nothing");
    let error = r#"< {"id":"1","event":"error","data":"no"}"#;
    breaks(&|it| it.insert(5, error), 7, "after the error");
    breaks(&|it| it.swap(3, 4), 4, "tool call");
    breaks(&|it| it.push(it[5]), 8, "after the end");
    let refused = r#"
        > {"token":"t"}
        < {"error":"auth_failed","code":4001}
        < {"ok":true,"version":"0.1.0"}"#;
    assert_wrong(Exoclaw, refused, 3, "after the refusal");
    assert_answered(Exoclaw, &changed(refused, |it| without(it, 2)));
}

#[test]
fn an_exoclaw_answer_is_of_the_kind_that_was_asked_for() {
    use Protocol::Exoclaw;
    let with = |at: usize, line: &'static str| changed(EXOCLAW, |it| it.insert(at, line));
    let lacking = changed(EXOCLAW, |it| without(it, 4));
    for (conversation, line, part) in [
        (
            with(3, r#"< {"id":"1","result":"x"}"#),
            4,
            "no answer to `chat.send`",
        ),
        (with(4, EXOCLAW_TOOL), 5, "begins the tool call"),
        (lacking, 6, "before the result of the tool call"),
    ] {
        assert_wrong(Exoclaw, &conversation, line, part);
    }
    let ping = r#"
        > {"token":"t"}
        < {"error":"auth_failed","code":4001}
        > {"id":"1","method":"ping"}"#;
    assert_wrong(Exoclaw, ping, 3, "after the refusal");
    let streamed = r#"
        < {"ok":true,"version":"0.1.0"}
        > {"id":"1","method":"ping"}
        < {"id":"1","event":"text","data":"x"}"#;
    assert_wrong(Exoclaw, streamed, 3, "no answer to `ping`");
    let both = streamed.replace(
        r#""event":"text","data":"x""#,
        r#""result":"x","error":"y""#,
    );
    assert_wrong(Exoclaw, &both, 3, "result is");
}

const EXOCLAW_TOOL: &str =
    r#"< {"id":"1","event":"tool_use","data":{"id":"c","name":"n","input":{}}}"#;

const SMARTHOLE: &str = r#"
    > {"type":"registration","payload":{"name":"notes","description":"Keeps notes."}}
    < {"type":"registration_response","payload":{"success":true,"clientId":"c","message":"m"}}
    < {"type":"message","payload":{"id":"m1","text":"t","timestamp":"2024-01-15T10:30:00.000Z","metadata":{"inputMethod":"text","directRouted":true}}}
    > {"type":"response","payload":{"messageId":"m1","type":"ack","payload":{}}}
    > {"type":"response","payload":{"messageId":"m1","type":"notification","payload":{"title":"t"}}}"#;

#[test]
fn smarthole() {
    use Protocol::SmartHole;
    let breaks = breaking(SmartHole, SMARTHOLE);
    assert_eq!(wrong(SmartHole, SMARTHOLE), []);
    breaks(&|it| it.insert(4, it[3]), 5, "a second time");
    let orphan = SMARTHOLE.replace(
        r#""messageId":"m1","type":"ack""#,
        r#""messageId":"m9","type":"ack""#,
    );
    assert_wrong(SmartHole, &orphan, 4, "answers nothing");
    breaks(&|it| it.swap(1, 2), 2, "before a registration");
    breaks(&|it| it.insert(2, it[0]), 3, "after the accepted");
    breaks(&|it| it.truncate(3), 3, "nobody has answered");
}

#[test]
fn a_smarthole_message_is_decided_once_and_in_time() {
    use Protocol::SmartHole;
    let again = changed(SMARTHOLE, |it| it.push(it[3]));
    assert_wrong(SmartHole, &again, 6, "a second time");
    let late = changed(SMARTHOLE, |it| {
        let ignored = r#"< {"type":"note","payload":{}}"#;
        (0..40).for_each(|_| it.insert(3, ignored));
    });
    assert_wrong(SmartHole, &late, 44, "more than 30 s");
    let twice = changed(SMARTHOLE, |it| it.insert(2, it[1]));
    assert_wrong(SmartHole, &twice, 3, "answers nothing");
    let reason = SMARTHOLE.replace(r#":true}}}"#, r#":true,"routingReason":"r"}}}"#);
    assert_wrong(SmartHole, &reason, 3, "payload.metadata.routingReason is");
}

const CONNECTONION: &str = r#"
    > {"type":"CONNECT","payload":{"timestamp":1}}
    < {"type":"CONNECTED","session_id":"s","status":"new"}
    > {"type":"INPUT","prompt":"p"}
    < {"type":"tool_call","tool_id":"t","name":"n","args":{},"id":"e1","ts":1,"session_id":"s"}
    < {"type":"tool_result","tool_id":"t","name":"n","status":"success","result":"r","id":"e2","ts":1,"session_id":"s"}
    < {"type":"OUTPUT","result":"r","session_id":"s","duration_ms":1,"session":{"messages":[]}}"#;

#[test]
fn connectonion() {
    use Protocol::ConnectOnion;
    let breaks = breaking(ConnectOnion, CONNECTONION);
    let refused = r#"
        > {"type":"CONNECT","payload":{"timestamp":1}}
        < {"type":"ERROR","message":"unauthorized"}"#;
    assert_answered(ConnectOnion, refused);
    let silent = changed(refused, |it| without(it, 1));
    assert_wrong(ConnectOnion, &silent, 1, "nobody has answered");
    assert_eq!(wrong(ConnectOnion, CONNECTONION), []);
    breaks(&|it| without(it, 5), 3, "nobody has answered");
    let again = changed(CONNECTONION, |it| {
        let output = it.pop().unwrap();
        it.push(it[2]);
        it.push(output);
    });
    assert_wrong(ConnectOnion, &again, 6, "nobody has answered");
    breaks(&|it| it.push(it[5]), 7, "answers no INPUT");
    breaks(&|it| it.swap(3, 4), 4, "tool call");
    breaks(&|it| it.swap(1, 2), 2, "before CONNECTED");
    breaks(&|it| it.insert(2, it[1]), 3, "answers no CONNECT");
}

#[test]
fn what_a_connectonion_client_answers_was_asked() {
    use Protocol::ConnectOnion;
    let ask = r#"< {"type":"ask_user","question":"q","id":"e3","ts":1,"session_id":"s"}"#;
    let answer = r#"> {"type":"ASK_USER_RESPONSE","answer":"a"}"#;
    let (ping, pong) = (r#"< {"type":"PING"}"#, r#"> {"type":"PONG"}"#);
    fn with(lines: &[&str]) -> String {
        changed(CONNECTONION, |it| {
            it.splice(5..5, lines.iter().copied());
        })
    }
    for clean in [with(&[ask, answer]), with(&[ping, pong])] {
        assert_eq!(wrong(ConnectOnion, &clean), []);
    }
    let ack = r#"< {"type":"RUNTIME_INPUT_ACK","session_id":"s","id":"i"}"#;
    let approval = r#"> {"type":"APPROVAL_RESPONSE","approved":true,"scope":"once"}"#;
    for (conversation, line, part) in [
        (with(&[answer]), 6, "answers nothing"),
        (with(&[ask, answer, answer]), 8, "after the end"),
        (with(&[ask, approval]), 7, "answers nothing"),
        (with(&[pong]), 6, "answers nothing"),
        (with(&[ping, pong, pong]), 8, "after the end"),
        (with(&[ack]), 6, "which runs already"),
        (
            CONNECTONION.replace(r#""s","duration"#, r#""z","duration"#),
            6,
            "of the session",
        ),
        (
            changed(CONNECTONION, |it| it.swap(1, 3)),
            2,
            "before CONNECTED",
        ),
        (
            changed(CONNECTONION, |it| without(it, 4)),
            5,
            "before the result",
        ),
        (
            changed(CONNECTONION, |it| it.insert(6, it[3])),
            7,
            "nobody has answered",
        ),
    ] {
        assert_wrong(ConnectOnion, &conversation, line, part);
    }
}

#[test]
fn a_connectonion_stranger_is_asked_before_it_answers() {
    use Protocol::ConnectOnion;
    let gate = r#"
        > {"type":"CONNECT","payload":{"timestamp":1}}
        < {"type":"ONBOARD_REQUIRED","identity":"0x07","methods":["invite_code"]}
        > {"type":"ONBOARD_SUBMIT","payload":{"invite_code":"x","timestamp":1},"from":"0x1","signature":"00"}
        < {"type":"ONBOARD_SUCCESS","level":"contact","message":"m"}
        < {"type":"CONNECTED","session_id":"s","status":"new"}"#;
    assert_eq!(wrong(ConnectOnion, gate), []);
    for (conversation, line, part) in [
        (
            changed(gate, |it| without(it, 1)),
            2,
            "before ONBOARD_REQUIRED",
        ),
        (changed(gate, |it| without(it, 2)), 3, "answers nothing"),
        (changed(gate, |it| it.insert(4, it[0])), 5, "comes again"),
    ] {
        assert_wrong(ConnectOnion, &conversation, line, part);
    }
    let resumed = r#"
        > {"type":"CONNECT","session_id":"s","payload":{"timestamp":1}}
        < {"type":"CONNECTED","session_id":"q","status":"running"}"#;
    assert_wrong(ConnectOnion, resumed, 2, "is about");
}

const ACOLYTE: &str = r#"
    > {"id":"rpc_1","type":"chat.start","payload":{"request":{"message":"m","history":[],"model":"g"}}}
    < {"id":"rpc_1","type":"chat.accepted","taskId":"task_1"}
    < {"id":"rpc_1","type":"chat.started"}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"text-delta","text":"Let me see."}}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"tool-call","toolCallId":"c","toolName":"n","args":{}}}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"tool-output","toolCallId":"c","toolName":"n","content":{"kind":"text","text":"x"}}}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"tool-result","toolCallId":"c","toolName":"n"}}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"text-delta","text":"Hello "}}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"text-delta","text":"world"}}
    < {"id":"rpc_1","type":"chat.done","reply":{"state":"done","model":"g","output":"Hello world"}}"#;

#[test]
fn acolyte() {
    use Protocol::Acolyte;
    assert_eq!(wrong(Acolyte, ACOLYTE), []);
    let lacking = |at: usize| changed(ACOLYTE, |it| without(it, at));
    let swapped = |a: usize, b: usize| changed(ACOLYTE, |it| it.swap(a, b));
    let twice = |at: usize| changed(ACOLYTE, |it| it.insert(at + 1, it[at]));
    for (conversation, line, part) in [
        (lacking(4), 5, "tool call"),
        (swapped(4, 6), 5, "tool call"),
        (swapped(5, 6), 7, "after the result"),
        (twice(6), 8, "after the result"),
        (swapped(1, 2), 2, "before chat.accepted"),
        (lacking(2), 3, "before chat.started"),
        (twice(1), 3, "a second time"),
        (twice(2), 4, "a second time"),
        (lacking(7), 9, "another text"),
        (swapped(7, 8), 10, "another text"),
        (twice(8), 11, "another text"),
        (twice(9), 11, "after the end"),
        (swapped(8, 9), 10, "after the end"),
        (lacking(9), 1, "nobody has answered"),
    ] {
        assert_wrong(Acolyte, &conversation, line, part);
    }
    let with = |at: usize, line: &'static str| changed(ACOLYTE, |it| it.insert(at, line));
    let status = r#"< {"id":"rpc_1","type":"status.result","status":{"ok":true}}"#;
    for (conversation, line, part) in [
        (lacking(6), 9, "before the result of the tool call"),
        (twice(4), 6, "begins the tool call"),
        (with(1, status), 2, "no answer to `chat.start`"),
        (
            with(2, r#"< {"id":"rpc_1","type":"chat.queued","position":0}"#),
            3,
            "the first is 1",
        ),
    ] {
        assert_wrong(Acolyte, &conversation, line, part);
    }
    let error = r#"< {"id":"rpc_1","type":"chat.error","errorMessage":"no"}"#;
    assert_wrong(
        Acolyte,
        &changed(ACOLYTE, |it| it.push(error)),
        11,
        "after the end",
    );
}

#[test]
fn an_acolyte_answer_names_what_was_asked_for() {
    use Protocol::Acolyte;
    let abort = |asked: &str, told: &str, task: &str| {
        format!(
            r#"
        > {{"id":"rpc_1","type":"chat.start","payload":{{"request":{{"message":"m","history":[],"model":"g"}}}}}}
        < {{"id":"rpc_1","type":"chat.accepted","taskId":"task_1"}}
        > {{"id":"rpc_2","type":"chat.start","payload":{{"request":{{"message":"m","history":[],"model":"g"}}}}}}
        < {{"id":"rpc_2","type":"chat.accepted","taskId":"{task}"}}
        > {{"id":"rpc_a","type":"chat.abort","payload":{{"requestId":"{asked}"}}}}
        < {{"id":"rpc_a","type":"chat.abort.result","requestId":"{told}","aborted":true}}"#
        )
    };
    let fine = wrong(Acolyte, &abort("rpc_1", "rpc_1", "task_2"));
    assert_eq!(fine, [(3, "nobody has answered".to_owned())]);
    for (conversation, line, part) in [
        (abort("rpc_1", "rpc_2", "task_2"), 6, "is about \"rpc_2\""),
        (abort("rpc_9", "rpc_9", "task_2"), 6, "which nobody asked"),
        (abort("rpc_1", "rpc_1", "task_1"), 4, "of another chat"),
    ] {
        assert_wrong(Acolyte, &conversation, line, part);
    }
}

#[test]
fn a_stream_of_events_keeps_the_order_of_a_chat() {
    let call = r#"{"type":"tool-call","toolCallId":"c","toolName":"n","args":{}}"#;
    let result = r#"{"type":"tool-result","toolCallId":"c","toolName":"n"}"#;
    let text = r#"{"type":"text-delta","text":"Hello"}"#;
    let done = r#"{"type":"done","reply":{"model":"g","output":"Hello"}}"#;
    let of = |events: &[&str]| {
        let mut recording = "{\"transcript\":1,\"protocol\":\"acolyte\"}\n".to_owned();
        recording += "{\"at\":0,\"conn\":1,\"dir\":\"c2s\",\"kind\":\"http\",\"data\":\"POST /v1/chat/stream HTTP/1.1\\r\\n\\r\\n\"}\n";
        for event in events {
            let data = serde_json::to_string(event).unwrap();
            recording += &format!(
                "{{\"at\":1,\"conn\":1,\"dir\":\"s2c\",\"kind\":\"sse\",\"data\":{data}}}\n"
            );
        }
        found(&(recording + "{\"at\":2,\"conn\":1,\"dir\":\"s2c\",\"kind\":\"eof\"}\n"))
    };
    assert_eq!(of(&[call, result, text, done]), []);
    for (events, line, part) in [
        (&[result, call, text, done][..], 1, "tool call"),
        (&[call, text, done], 3, "before the result"),
        (&[text, text, done], 3, "another text"),
        (&[text, done, done], 3, "after the end"),
        (&[text], 0, "nobody has answered"),
    ] {
        let found = of(events);
        let is_it = |(at, words): &(usize, String)| *at == line && words.contains(part);
        assert!(found.iter().any(is_it), "no {part:?}: {found:?}");
    }
}

#[test]
fn a_cause_is_named_once_whatever_follows_from_it() {
    use Protocol::{Acolyte, ConnectOnion, Exoclaw, SmartHole, Snek};
    let ask = r#""method":"chat.send","params":{"channel":"w","account":"a","content":"q"}}"#;
    let done = |n: usize| format!("< {{\"id\":\"{n}\",\"event\":\"done\"}}\n");
    let text = |n: usize| format!("< {{\"id\":\"{n}\",\"event\":\"text\",\"data\":\"x\"}}\n");
    let mut stuck = "< {\"ok\":true,\"version\":\"0.1.0\"}\n".to_owned();
    for n in 1..9 {
        stuck += &format!("> {{\"id\":\"{n}\",{ask}\n{}", text(n));
        stuck += &if n == 3 { String::new() } else { done(n) };
    }
    let found = wrong(Exoclaw, &stuck);
    assert_eq!(found, [(8, "nobody has answered".to_owned())]);
    // It goes on where others have begun.
    let again = format!("{stuck}{}{}", text(3), done(3));
    let found = wrong(Exoclaw, &again);
    let [(25, words)] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(words.contains("same session"), "{words}");
    let pings = r#"
        > {"id":"1","method":"ping"}
        > {"id":"2","method":"ping"}
        > {"id":"3","method":"ping"}"#;
    let refused =
        format!("> {{\"token\":\"t\"}}\n< {{\"error\":\"auth_failed\",\"code\":4001}}{pings}");
    let without = |conversation: &str, at: usize| changed(conversation, |it| without(it, at));
    let foreign = CONNECTONION.replace(r#""session_id":"s"}"#, r#""session_id":"z"}"#);
    let foreign = foreign.replace(r#""z","status":"new""#, r#""s","status":"new""#);
    for (protocol, conversation, line) in [
        (Snek, without(&without(SNEK, 0), 0), 1),
        (Exoclaw, pings.to_owned(), 1),
        (Exoclaw, refused, 3),
        (SmartHole, without(&without(SMARTHOLE, 0), 0), 1),
        (ConnectOnion, foreign, 4),
        (Acolyte, without(ACOLYTE, 1), 2),
        (Acolyte, without(ACOLYTE, 2), 3),
    ] {
        let found = super::shapes::wrong(protocol, &conversation);
        assert!(
            found.len() == 1 && found[0].0 == line,
            "{found:?}{conversation}"
        );
    }
}

#[test]
fn nothing_comes_behind_the_close_of_the_same_side() {
    let close = |dir: &str| {
        format!("{{\"at\":1,\"conn\":1,\"dir\":\"{dir}\",\"kind\":\"close\",\"code\":1000}}\n")
    };
    let ping = "{\"at\":2,\"conn\":1,\"dir\":\"s2c\",\"kind\":\"text\",\"data\":\"{\\\"type\\\":\\\"PING\\\"}\"}\n";
    let header = "{\"transcript\":1,\"protocol\":\"connectonion\"}\n";
    assert_eq!(found(&format!("{header}{}{ping}", close("c2s"))), []);
    let behind = found(&format!("{header}{}{ping}", close("s2c")));
    assert!(behind[0].1.contains("after the Close"), "{behind:?}");
}
