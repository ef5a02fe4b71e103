//! Each break of a shape, a limit or an order is named, and nothing else is.

use switchboard_wire::Protocol::{self, Acolyte, ConnectOnion, Exoclaw, SmartHole, Snek};

use super::order;

/// What is wrong in a conversation, but for chats that say that they failed.
pub(crate) fn wrong(protocol: Protocol, conversation: &str) -> Vec<(usize, String)> {
    let mut found = order::wrong(protocol, conversation);
    found.retain(|(_, words)| words != "says that it failed");
    found
}

const SNEK: &str = r##"
    > {"method":"login","args":["ann","x"],"kwargs":{},"callId":"a1"}
    < {"callId":"a1","success":true,"data":{"username":"ann"}}
    > {"method":"get_user","args":[null],"kwargs":{},"callId":"a2"}
    < {"callId":"a2","success":true,"data":{"username":"ann","nick":"Ann"}}
    > {"method":"get_channels","args":[],"kwargs":{},"callId":"a3"}
    < {"callId":"a3","success":true,"data":[{"uid":"ch_1","name":"General","tag":"public"}]}
    > {"method":"set_typing","args":["ch_1","#FF0000"],"kwargs":{},"callId":"a4"}
    < {"callId":"a4","success":true,"data":null}
    > {"method":"send_message","args":["ch_1","hello",true],"kwargs":{},"callId":"a5"}
    < {"callId":"a5","success":true,"data":{"uid":"m1"}}
    < {"event":"message","message":"hello","username":"ann","user_nick":"Ann","channel_uid":"ch_1","is_final":true}
    < {"event":"join","data":{"channel_uid":"ch_1"}}"##;

const EXOCLAW: &str = r#"
    < {"ok":true,"version":"0.1.0"}
    > {"id":"1","method":"ping"}
    < {"id":"1","result":"pong"}
    > {"id":"2","method":"status","params":{}}
    < {"id":"2","result":{"version":"0.1.0","plugins":2,"sessions":5}}
    > {"id":"3","method":"plugin.list"}
    < {"id":"3","result":[{"name":"echo"}]}
    > {"id":"4","method":"chat.send","params":{"channel":"w","account":"a","content":"q"}}
    < {"id":"4","event":"tool_use","data":{"id":"c","name":"n","input":{}}}
    < {"id":"4","event":"tool_result","data":{"tool_use_id":"c","content":"x"}}
    < {"id":"4","event":"text","data":"x"}
    < {"id":"4","event":"usage","data":{"input_tokens":150,"output_tokens":42}}
    < {"id":"4","event":"done"}"#;

const SMARTHOLE: &str = r#"
    > {"type":"registration","payload":{"name":"notes","description":"Keeps notes.","version":"1.0","capabilities":["notes"]}}
    < {"type":"registration_response","payload":{"success":true,"clientId":"c1","message":"m"}}
    < {"type":"message","payload":{"id":"m1","text":"t","timestamp":"2024-01-15T10:30:00.000Z","metadata":{"inputMethod":"voice","directRouted":false,"confidence":0.95,"routingReason":"r"}}}
    > {"type":"response","payload":{"messageId":"m1","type":"ack","payload":{}}}
    > {"type":"response","payload":{"messageId":"m1","type":"notification","payload":{"title":"t","body":"b","priority":"low"}}}"#;

const CONNECTONION: &str = r#"
    > {"type":"CONNECT","payload":{"to":"0x12","timestamp":1702234567},"from":"0x34","signature":"56"}
    < {"type":"CONNECTED","session_id":"s","status":"new"}
    > {"type":"INPUT","prompt":"p","images":["data:image/png;base64,AA=="],"files":[{"name":"a.txt","data":"data:text/plain;base64,AA=="}]}
    < {"type":"llm_call","id":"e0","ts":1.5,"session_id":"s","model":"m","iteration":1}
    < {"type":"llm_result","id":"e0","ts":1.5,"session_id":"s","model":"m","iteration":1}
    < {"type":"tool_call","tool_id":"t","name":"n","args":{},"id":"e1","ts":1.5,"session_id":"s"}
    < {"type":"tool_result","tool_id":"t","name":"n","status":"success","result":"r","id":"e2","ts":1.5,"session_id":"s"}
    < {"type":"ask_user","question":"q","options":["a"],"multi_select":false,"id":"e3","ts":1.5,"session_id":"s"}
    > {"type":"ASK_USER_RESPONSE","answer":"a"}
    < {"type":"OUTPUT","result":"r","session_id":"s","duration_ms":12,"session":{"messages":[]}}
    < {"type":"PING"}
    > {"type":"PONG"}"#;

const ACOLYTE: &str = r#"
    > {"id":"rpc_s","type":"status.get"}
    < {"id":"rpc_s","type":"status.result","status":{"ok":true,"protocol_version":"1","capabilities":"error.structured","model":"g"}}
    > {"id":"rpc_1","type":"chat.start","payload":{"request":{"message":"m","history":[{"id":"msg_1","role":"user","content":"c","timestamp":"2026-01-01T00:00:00.000Z"}],"model":"g"}}}
    < {"id":"rpc_1","type":"chat.accepted","taskId":"task_1"}
    < {"id":"rpc_1","type":"chat.started"}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"tool-call","toolCallId":"c","toolName":"n","args":{}}}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"tool-result","toolCallId":"c","toolName":"n"}}
    > {"id":"rpc_2","type":"chat.start","payload":{"request":{"message":"m","history":[],"model":"g"}}}
    < {"id":"rpc_2","type":"chat.accepted","taskId":"task_2"}
    < {"id":"rpc_2","type":"chat.queued","position":1}
    > {"id":"rpc_3","type":"chat.start","payload":{"request":{"message":"m","history":[],"model":"g"}}}
    < {"id":"rpc_3","type":"chat.accepted","taskId":"task_3"}
    < {"id":"rpc_3","type":"chat.queued","position":2}
    > {"id":"rpc_a","type":"chat.abort","payload":{"requestId":"rpc_3"}}
    < {"id":"rpc_a","type":"chat.abort.result","requestId":"rpc_3","aborted":true}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"text-delta","text":"Hi"}}
    < {"id":"rpc_1","type":"chat.event","event":{"type":"usage","inputTokens":5,"outputTokens":1}}
    < {"id":"rpc_1","type":"chat.done","reply":{"model":"g","output":"Hi"}}
    < {"id":"rpc_2","type":"chat.started"}
    < {"id":"rpc_2","type":"chat.error","errorMessage":"no"}
    > {"id":"rpc_t","type":"task.status","payload":{"taskId":"task_1"}}
    < {"id":"rpc_t","type":"task.status.result","task":{"id":"task_1","state":"completed","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}}"#;

/// What becomes of a conversation, by its first place.
type Changes = &'static [(&'static str, &'static str)];

const FAULTS: &[(Protocol, &str, Changes)] = &[
    (
        Snek,
        SNEK,
        &[
            (r#""uid":"ch_1""#, r#""uid":"ch 1""#),
            (r#""uid":"ch_1""#, r#""uid":7"#),
            (r#""uid":"ch_1","#, ""),
            (r#""name":"General","#, ""),
            (r#","nick":"Ann""#, ""),
            (r#""nick":"Ann""#, r#""nick":5"#),
            (
                r#"[{"uid":"ch_1","name":"General","tag":"public"}]"#,
                r#"{"channels":[]}"#,
            ),
            (r##""#FF0000""##, r#""red""#),
            (
                r#""args":["ch_1","hello",true]"#,
                r#""args":["ch 1","hello",true]"#,
            ),
            (
                r#""args":["ch_1","hello",true]"#,
                r#""args":["ch_1","hello","yes"]"#,
            ),
            (
                r#""args":["ch_1","hello",true]"#,
                r#""args":["ch_1",5,true]"#,
            ),
            (
                r#""channel_uid":"ch_1","is_final""#,
                r#""channel_uid":"ch/1","is_final""#,
            ),
            (r#""is_final":true"#, r#""is_final":"true""#),
            (r#","is_final":true"#, ""),
            (r#""user_nick":"Ann","#, ""),
            (r#""message":"hello""#, r#""message":null"#),
            (r#"{"channel_uid":"ch_1"}}"#, r#"{}}"#),
            (r#""args":[null],"kwargs":{}"#, r#""args":[null]"#),
            (r#""args":[],"kwargs":{}"#, r#""args":{},"kwargs":{}"#),
            (r#""method":"get_user""#, r#""method":7"#),
            (
                r#""data":{"username":"ann"}}"#,
                r#""data":{"username":"ann","password":"x"}}"#,
            ),
            (
                r#""callId":"a3","success":true"#,
                r#""callId":"a2","success":true"#,
            ),
            (
                r#""success":true,"data":null"#,
                r#""success":"yes","data":null"#,
            ),
        ],
    ),
    (
        Exoclaw,
        EXOCLAW,
        &[
            (r#","version":"0.1.0"}"#, "}"),
            (r#""ok":true"#, r#""ok":false"#),
            (r#""result":"pong""#, r#""result":"ok""#),
            (r#""result":"pong""#, r#""result":"pong","error":"x""#),
            (r#""plugins":2"#, r#""plugins":"2""#),
            (r#""plugins":2,"#, ""),
            (r#""sessions":5"#, r#""sessions":-1"#),
            (r#"[{"name":"echo"}]"#, r#"[{"title":"echo"}]"#),
            (r#"[{"name":"echo"}]"#, r#"["echo"]"#),
            (r#""data":"x"}"#, r#""data":{"text":"x"}}"#),
            (r#""input_tokens":150"#, r#""input_tokens":1.5"#),
            (r#""output_tokens":42"#, r#""output_tokens":-42"#),
            (r#","output_tokens":42"#, ""),
            (r#""tool_use_id":"c","#, ""),
            (r#""content":"x"}}"#, r#""content":"x","is_error":"no"}}"#),
            (r#""name":"n","#, ""),
            (r#""params":{}"#, r#""params":[]"#),
            (r#""channel":"w","#, ""),
            (r#""content":"q""#, r#""content":["q"]"#),
            (
                r#"{"id":"1","method":"ping"}"#,
                r#"{"id":1,"method":"ping"}"#,
            ),
            (
                r#"{"id":"4","event":"done"}"#,
                r#"{"id":"4","event":"finished"}"#,
            ),
        ],
    ),
    (
        SmartHole,
        SMARTHOLE,
        &[
            (r#""inputMethod":"voice""#, r#""inputMethod":"keyboard""#),
            (r#""inputMethod":"voice""#, r#""inputMethod":"text""#),
            (r#""confidence":0.95"#, r#""confidence":1.7"#),
            (r#""confidence":0.95"#, r#""confidence":"high""#),
            (r#""directRouted":false"#, r#""directRouted":true"#),
            (r#""directRouted":false"#, r#""directRouted":"no""#),
            (r#""2024-01-15T10:30:00.000Z""#, r#""yesterday""#),
            (r#""2024-01-15T10:30:00.000Z""#, "1705314600"),
            (r#""id":"m1","text""#, r#""id":7,"text""#),
            (r#""text":"t","#, ""),
            (r#""name":"notes","#, r#""name":"9notes","#),
            (r#""name":"notes","#, r#""name":"my notes","#),
            (r#""description":"Keeps notes.""#, r#""description":"""#),
            (r#""version":"1.0""#, r#""version":1"#),
            (r#""capabilities":["notes"]"#, r#""capabilities":"notes""#),
            (r#","clientId":"c1""#, ""),
            (
                r#""success":true,"clientId":"c1""#,
                r#""success":false,"code":"BUSY""#,
            ),
            (r#""success":true"#, r#""success":"true""#),
            (r#""priority":"low""#, r#""priority":"urgent""#),
            (r#""type":"ack""#, r#""type":"done""#),
            (r#""title":"t""#, r#""title":5"#),
            (r#""type":"ack","payload":{}"#, r#""type":"ack""#),
        ],
    ),
    (
        ConnectOnion,
        CONNECTONION,
        &[
            (r#","prompt":"p""#, ""),
            (r#""prompt":"p""#, r#""prompt":["p"]"#),
            (r#""status":"new""#, r#""status":"fresh""#),
            (r#""session_id":"s","status""#, r#""status""#),
            (r#""duration_ms":12"#, r#""duration_ms":-12"#),
            (r#""duration_ms":12"#, r#""duration_ms":"12""#),
            (r#","duration_ms":12"#, ""),
            (
                r#""result":"r","session_id":"s","duration"#,
                r#""session_id":"s","duration"#,
            ),
            (r#""id":"e2""#, r#""id":"e1""#),
            (r#""id":"e3""#, r#""id":"e2""#),
            (r#""name":"n","args":{}"#, r#""args":{}"#),
            (r#""args":{},"id""#, r#""args":"x","id""#),
            (r#""question":"q","#, ""),
            (r#","answer":"a""#, ""),
            (r#""timestamp":1702234567"#, r#""timestamp":"now""#),
            (r#""signature":"56""#, r#""signature":"no""#),
            ("data:image/png;base64,AA==", "image.png"),
            (r#""name":"a.txt","#, ""),
            (
                r#""ts":1.5,"session_id":"s","model":"m","iteration":1}"#,
                r#""ts":"now","session_id":"s","model":"m","iteration":1}"#,
            ),
        ],
    ),
    (
        Acolyte,
        ACOLYTE,
        &[
            (r#""position":2"#, r#""position":3"#),
            (r#""position":1"#, r#""position":2"#),
            (r#""position":1"#, r#""position":0"#),
            (r#""position":1"#, r#""position":"first""#),
            (r#""taskId":"task_1"}"#, r#""taskId":"1"}"#),
            (r#","taskId":"task_1"}"#, "}"),
            (r#""protocol_version":"1","#, ""),
            (
                r#""toolCallId":"c","toolName":"n","args":{}"#,
                r#""toolCallId":"c","toolName":"n""#,
            ),
            (r#""text":"Hi""#, r#""text":5"#),
            (r#""inputTokens":5"#, r#""inputTokens":-5"#),
            (
                r#""reply":{"model":"g","output":"Hi"}"#,
                r#""reply":{"model":"g"}"#,
            ),
            (r#""reply":{"model":"g","#, r#""reply":{"#),
            (r#""state":"completed""#, r#""state":"finished""#),
            (
                r#""createdAt":"2026-01-01T00:00:00.000Z""#,
                r#""createdAt":"today""#,
            ),
            (r#""aborted":true"#, r#""aborted":"yes""#),
            (
                r#""payload":{"requestId":"rpc_3"}"#,
                r#""payload":{"requestId":"task_3"}"#,
            ),
            (r#""role":"user""#, r#""role":"robot""#),
            (r#""history":[],"#, ""),
            (
                r#""id":"rpc_s","type":"status.get""#,
                r#""id":"s","type":"status.get""#,
            ),
            (r#""model":"g"}}}"#, r#""model":7}}}"#),
        ],
    ),
];

#[test]
fn each_planted_fault_is_named() {
    let mut silent = Vec::new();
    for (protocol, clean, changes) in FAULTS {
        assert_eq!(wrong(*protocol, clean), [], "{}", protocol.name());
        for (from, to) in *changes {
            assert!(clean.contains(from), "{from}");
            if wrong(*protocol, &clean.replacen(from, to, 1)).is_empty() {
                silent.push(format!("{}: {from} as {to}", protocol.name()));
            }
        }
    }
    assert!(
        silent.is_empty(),
        "{}:\n{}",
        silent.len(),
        silent.join("\n")
    );
}

#[test]
fn a_control_frame_is_short() {
    let header = "{\"transcript\":1,\"protocol\":\"exoclaw\"}\n";
    for (kind, data, most) in [
        ("ping", "00", 125),
        ("pong", "00", 125),
        ("close", "x", 123),
    ] {
        for (count, problems) in [(most, 0), (most + 1, 1)] {
            let data = data.repeat(count);
            let line = format!(
                "{{\"at\":1,\"conn\":1,\"dir\":\"s2c\",\"kind\":\"{kind}\",\"data\":\"{data}\"}}\n"
            );
            let found = order::found(&format!("{header}{line}"));
            assert_eq!(found.len(), problems, "{kind} {count}: {found:?}");
        }
    }
}

#[test]
fn limits_are_held() {
    let long = |count: usize| "x".repeat(count);
    let name = long(65);
    let description = long(1025);
    let text = long(1024 * 1024);
    for (clean, from, to) in [
        (
            SMARTHOLE,
            r#""name":"notes""#,
            format!(r#""name":"{name}""#),
        ),
        (SMARTHOLE, "Keeps notes.", description),
        (SMARTHOLE, r#""text":"t""#, format!(r#""text":"{text}""#)),
        (SMARTHOLE, r#""body":"b""#, format!(r#""body":"{text}""#)),
    ] {
        assert!(
            !wrong(SmartHole, &clean.replacen(from, &to, 1)).is_empty(),
            "{from}"
        );
    }
    let file = r#"{"name":"a.txt","data":"data:text/plain;base64,AA=="}"#;
    let files = [file; 11].join(",");
    let large = file.replace("AA==", &"A".repeat(14 * 1024 * 1024));
    for with in [files, large] {
        assert!(!wrong(ConnectOnion, &CONNECTONION.replacen(file, &with, 1)).is_empty());
    }
    let message = long(100_001);
    let history = vec![r#"{"role":"user","content":"c"}"#; 501].join(",");
    for (from, to) in [
        (r#""message":"m""#, format!(r#""message":"{message}""#)),
        (r#""history":[]"#, format!(r#""history":[{history}]"#)),
    ] {
        assert!(
            !wrong(Acolyte, &ACOLYTE.replacen(from, &to, 1)).is_empty(),
            "{from}"
        );
    }
}

/// What is odd and legal.
const ODD: &[(Protocol, &str, Changes)] = &[
    (
        Snek,
        SNEK,
        &[
            // Calls that nobody waits for.
            (
                "< {\"callId\":\"a4\",\"success\":true,\"data\":null}\n    ",
                "",
            ),
            (r#""data":{"username":"ann"}}"#, r#""data":{}}"#),
            (r#""data":{"username":"ann"}}"#, r#""data":"welcome"}"#),
            (r#""data":{"uid":"m1"}"#, r#""data":[1,2]"#),
            (r#""success":true,"data":{"uid":"m1"}"#, r#""data":null"#),
            (r#"[{"uid":"ch_1","name":"General","tag":"public"}]"#, "[]"),
            (r#","tag":"public""#, ""),
            (r#""tag":"public""#, r#""tag":null"#),
            (r#""tag":"public""#, r#""tag":"dm""#),
            (r#""message":"hello""#, r#""message":"""#),
            (r#""is_final":true"#, r#""is_final":false"#),
            (
                "\"args\":[\"ch_1\",\"hello\",true]",
                "\"args\":[\"ch_1\",\"\",true]",
            ),
        ],
    ),
    (
        Exoclaw,
        EXOCLAW,
        &[
            (r#""version":"0.1.0"}"#, r#""version":"9.9.9-beta"}"#),
            (r#""result":"pong""#, r#""result":"pong","error":null"#),
            (r#"[{"name":"echo"}]"#, "[]"),
            (r#""input":{}"#, r#""input":null"#),
            (r#""content":"x"}}"#, r#""content":"x","is_error":true}}"#),
            (
                r#""account":"a","#,
                r#""account":"a","peer":null,"guild":null,"team":"t","#,
            ),
            (r#""data":"x"}"#, r#""data":""}"#),
            (r#""plugins":2"#, r#""plugins":0"#),
        ],
    ),
    (
        SmartHole,
        SMARTHOLE,
        &[
            (r#","version":"1.0","capabilities":["notes"]"#, ""),
            (r#""capabilities":["notes"]"#, r#""capabilities":[]"#),
            (r#","confidence":0.95"#, ""),
            (r#""confidence":0.95"#, r#""confidence":1"#),
            (
                r#""2024-01-15T10:30:00.000Z""#,
                r#""2024-01-15T11:30:00+01:00""#,
            ),
            (r#"{"title":"t","body":"b","priority":"low"}"#, "{}"),
            (
                r#""type":"ack","payload":{}"#,
                r#""type":"reject","payload":{}"#,
            ),
            (r#","message":"m"}}"#, "}}"),
        ],
    ),
    (
        ConnectOnion,
        CONNECTONION,
        &[
            (
                r#""payload":{"to":"0x12","timestamp":1702234567},"from":"0x34","signature":"56""#,
                r#""payload":{"timestamp":1702234567.5}"#,
            ),
            (r#","session":{"messages":[]}}"#, "}"),
            (
                r#""result":"r","session_id":"s","duration"#,
                r#""result":"","session_id":"s","duration"#,
            ),
            (r#""id":"e1","ts":1.5,"session_id":"s"}"#, r#""id":"e1"}"#),
            (r#""answer":"a""#, r#""answer":["a","b"]"#),
            (r#""answer":"a""#, r#""answer":"""#),
            (
                r#","images":["data:image/png;base64,AA=="]"#,
                r#","images":null"#,
            ),
            (r#""options":["a"],"#, r#""options":null,"#),
            (r#""status":"success""#, r#""status":"error""#),
        ],
    ),
    (
        Acolyte,
        ACOLYTE,
        &[
            (
                r#""task":{"id":"task_1","state":"completed","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}"#,
                r#""task":null"#,
            ),
            (r#""aborted":true"#, r#""aborted":true"#),
            (
                r#""capabilities":"error.structured""#,
                r#""capabilities":"""#,
            ),
            (
                r#""history":[{"id":"msg_1","role":"user","content":"c","timestamp":"2026-01-01T00:00:00.000Z"}]"#,
                r#""history":[]"#,
            ),
            (r#""outputTokens":1"#, r#""outputTokens":0"#),
            (r#""args":{}"#, r#""args":{"a":{"b":[null]}}"#),
        ],
    ),
];

#[test]
fn what_is_odd_and_legal_raises_nothing() {
    let mut raised = Vec::new();
    for (protocol, clean, changes) in ODD {
        for (from, to) in *changes {
            assert!(clean.contains(from), "{from}");
            let found = wrong(*protocol, &clean.replacen(from, to, 1));
            if !found.is_empty() {
                raised.push(format!("{}: {from} as {to}: {found:?}", protocol.name()));
            }
        }
    }
    assert!(
        raised.is_empty(),
        "{}:\n{}",
        raised.len(),
        raised.join("\n")
    );
}

#[test]
fn what_a_protocol_leaves_open_is_not_wrong() {
    for (protocol, clean, line, is_wrong) in [
        (Snek, SNEK, r#"< {"event":"wave","data":{}}"#, false),
        (
            Snek,
            SNEK,
            r#"> {"method":"wave","args":[],"kwargs":{},"callId":""}"#,
            false,
        ),
        (
            Exoclaw,
            EXOCLAW,
            r#"> {"id":"9","method":"session.list"}"#,
            false,
        ),
        (
            SmartHole,
            SMARTHOLE,
            r#"< {"type":"wave","payload":{}}"#,
            true,
        ),
        (
            ConnectOnion,
            CONNECTONION,
            r#"< {"type":"my_wave","id":"e9","ts":1.5,"session_id":"s"}"#,
            false,
        ),
        (ConnectOnion, CONNECTONION, r#"< {"type":"WAVE"}"#, true),
        (Acolyte, ACOLYTE, r#"> {"id":"rpc_9z","type":"wave"}"#, true),
    ] {
        let with = format!("{clean}\n    {line}");
        let found = wrong(protocol, &with);
        let is_named = |it: &(usize, String)| it.1 == "the kind is not known";
        assert_eq!(found.iter().any(is_named), is_wrong, "{line}: {found:?}");
    }
    let more = ACOLYTE.replacen(r#""outputTokens":1"#, r#""outputTokens":1,"mood":2"#, 1);
    assert_eq!(wrong(Acolyte, &more), []);
}
