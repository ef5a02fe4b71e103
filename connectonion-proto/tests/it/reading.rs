//! What is read besides the specification's own shapes, and what is refused.

use connectonion_proto::codec;
use connectonion_proto::frame::{
    Answer, AskField, BatchItem, ChatItem, ChatItemKind, ClientFrame, ErrorFrame, EventKind, Mode,
    Number, ServerFrame, SessionState, StreamEvent, ToolStatus,
};
use connectonion_proto::limits::defaults;
use rpc_core::json::DecodeErrorKind;
use rpc_core::{Json, Limits, Str};

fn server(text: &str) -> ServerFrame {
    ServerFrame::decode(text, &defaults()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn client(text: &str) -> ClientFrame {
    ClientFrame::decode(text, &defaults()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn written(frame: &impl serde::Serialize) -> String {
    codec::encode(frame).unwrap().as_str().to_owned()
}

/// Every event with all its members, in the order in which they are written.
const EVENTS: [&str; 27] = [
    r#"{"type":"user_input","content":"hello","turn":1}"#,
    r#"{"type":"user_input","content":"and","turn":1,"iteration":2,"runtime_input":true,"id":"runtime-input-1"}"#,
    r#"{"type":"assistant","content":"so"}"#,
    r#"{"type":"llm_call","model":"m","iteration":1,"status":"running"}"#,
    r#"{"type":"llm_result","model":"m","iteration":1,"duration_ms":0.5,"tool_calls_count":0,"usage":{"input_tokens":1},"context_percent":7.25,"status":"success"}"#,
    r#"{"type":"thinking","content":"hm","kind":"harness"}"#,
    r#"{"type":"thinking"}"#,
    r#"{"type":"tool_call","tool_id":"c","name":"add","args":{"a":2},"status":"in_progress"}"#,
    r#"{"type":"tool_result","tool_id":"c","name":"add","args":{"a":2},"status":"failed","result":"5","timing_ms":0,"error":"e","error_type":"E","raw_output":[1.50],"class":"c","declined":false}"#,
    r#"{"type":"ask_user","question":"q","text":"q","options":["a"],"multi_select":true,"fields":[{"name":"n","label":"l","type":"text"}]}"#,
    r#"{"type":"approval_needed","tool":"rm","arguments":{"p":1},"description":"","batch_remaining":[{"tool":"t","arguments":"{}"}],"tool_call_id":"c","policy":"ask"}"#,
    r#"{"type":"plan_review","plan_content":"1. go"}"#,
    r#"{"type":"compact","status":"compacting","context_percent":91}"#,
    r#"{"type":"compact","status":"done","context_before":91,"context_after":10.5,"message":"m"}"#,
    r#"{"type":"compact","status":"error","error":"e"}"#,
    r#"{"type":"mode_changed","mode":"plan","triggered_by":"ulw_checkpoint","turns_left":3}"#,
    r#"{"type":"ulw_turns_reached","turns_used":5,"max_turns":5}"#,
    r#"{"type":"files_received","files":[{"name":"a","path":"/a"}],"turn":1}"#,
    r#"{"type":"intent","status":"understood","ack":"ok","is_build":false}"#,
    r#"{"type":"eval","status":"done","passed":true,"summary":"s","expected":"e","eval_path":"p"}"#,
    r#"{"type":"tool_blocked","tool":"t","reason":"r","message":"m","command":"c"}"#,
    r#"{"type":"agent_image","image":"data:image/png;base64,AA"}"#,
    r#"{"type":"diff_preview","path":"p","preview":"+a","truncated":false,"file_exists":true}"#,
    r#"{"type":"complete","tools_used":["a"],"llm_calls":1,"iterations":2}"#,
    r#"{"type":"session_sync","session":{"b":1.50,"a":null}}"#,
    r#"{"type":"assistant_delta","content":"I cou","message_id":"m"}"#,
    r#"{"type":"thinking_delta","content":"hm","message_id":"m"}"#,
];

#[test]
fn every_event_is_reencoded_verbatim() {
    let common = r#""id":"ev-1","ts":1795293032.5080616,"session_id":"s""#;
    for text in EVENTS {
        let bare = server(text);
        assert!(matches!(&bare, ServerFrame::Event(_)), "{text}");
        assert_eq!(written(&bare), text);
        if text.contains("\"id\"") {
            continue;
        }

        let whole = format!("{},{common}}}", &text[..text.len() - 1]);
        let frame = server(&whole);
        assert_eq!(written(&frame), whole);
        let ServerFrame::Event(event) = &frame else {
            panic!("{text}");
        };
        assert!(!matches!(event.kind, EventKind::Unknown { .. }), "{text}");
        assert_eq!(written(&event), whole);
        assert_eq!(event.ts.unwrap().as_f64(), 1_795_293_032.508_061_6);
    }
}

#[test]
fn frames_beyond_the_specification_are_reencoded_verbatim() {
    for text in [
        r#"{"type":"SESSION_STATUS","session_id":"s","status":"not_found"}"#,
        r#"{"type":"SESSION_STATUS","session_id":null,"status":"running"}"#,
        r#"{"type":"ADMIN_RESULT","action":"promote","success":true,"message":"m","level":"contact","client_id":"0x1"}"#,
        r#"{"type":"ERROR","message":"m","code":"STALE_ANSWER","reason":"stale","request_id":"r","session_id":"s","retryable":true}"#,
        r#"{"type":"ERROR","message":"m","code":-32603}"#,
        r#"{"type":"CONNECTED","session_id":"s","status":"running","server_newer":true,"session":{"z":1},"chat_items":[],"protocol":{"name":"oip"},"session_modes":{"a":[]}}"#,
        r#"{"type":"AGENT_PROFILE","name":"n","x":[1.50]}"#,
    ] {
        assert_eq!(written(&server(text)), text);
    }
    for text in [
        r#"{"type":"SESSION_STATUS","session":{"session_id":"s"}}"#,
        r#"{"type":"SESSION_STATUS"}"#,
        r#"{"type":"APPROVAL_RESPONSE","approved":false,"mode":"reject_explain","feedback":"f","request_id":"r"}"#,
        r#"{"type":"PLAN_REVIEW_RESPONSE","message":"go"}"#,
        r#"{"type":"ULW_RESPONSE","action":"continue","turns":5}"#,
        r#"{"type":"ULW_RESPONSE","action":"switch_mode","mode":"safe"}"#,
        r#"{"type":"ULW_RESPONSE","action":"stop"}"#,
        r#"{"type":"ASK_USER_RESPONSE","answer":{"a":[1.50]},"request_id":"r"}"#,
        r#"{"type":"ASK_USER_RESPONSE","answer":null}"#,
        r#"{"type":"mode_change","mode":"ulw","turns":5}"#,
        r#"{"type":"prompt_update","prompt":"g"}"#,
        r#"{"type":"INTERRUPT"}"#,
        r#"{"type":"ADMIN_BLOCK","payload":{"client_id":"0x1","reason":"r"},"from":"0x2","signature":"00"}"#,
        r#"{"type":"ADMIN_LATER"}"#,
        r#"{"type":"INPUT","prompt":"p","input_id":"i","session":{"messages":[]},"payload":{"prompt":"p"},"from":"0x2","signature":"00"}"#,
        r#"{"type":"SEAL","v":1.0}"#,
    ] {
        let frame = client(text);
        assert_eq!(written(&frame), text);
    }
}

#[test]
fn variants_of_known_hosts_decode() {
    for (text, ours) in [
        // Older hosts.
        (
            r#"{"type":"CONNECTED","session_id":"s","status":"executing"}"#,
            r#"{"type":"CONNECTED","session_id":"s","status":"running"}"#,
        ),
        (
            r#"{"type":"CONNECTED","session_id":"s","status":"suspended"}"#,
            r#"{"type":"CONNECTED","session_id":"s","status":"connected"}"#,
        ),
        (
            r#"{"type":"ERROR","error":{"code":1}}"#,
            r#"{"type":"ERROR","message":"{\"code\":1}"}"#,
        ),
        (
            r#"{"type":"ask_user","text":"q"}"#,
            r#"{"type":"ask_user","question":"q","text":"q","multi_select":false}"#,
        ),
        (
            r#"{"type":"tool_call","name":"n","id":"i"}"#,
            r#"{"type":"tool_call","tool_id":"i","name":"n","id":"i"}"#,
        ),
        // Null is absent, a number id its text, a value that is not text its JSON.
        (
            r#"{"type":"llm_result","usage":null,"id":7,"ts":null}"#,
            r#"{"type":"llm_result","id":"7"}"#,
        ),
        (
            r#"{"type":"tool_result","tool_id":1,"result":{"a":1}}"#,
            r#"{"type":"tool_result","tool_id":"1","result":"{\"a\":1}"}"#,
        ),
        (
            r#"{"type":"OUTPUT","result":[1],"duration_ms":1.5}"#,
            r#"{"type":"OUTPUT","result":"[1]","duration_ms":1.5}"#,
        ),
        (
            r#"{"type":"OUTPUT","result":null}"#,
            r#"{"type":"OUTPUT","result":""}"#,
        ),
        // Whoever sends a session has a newer one; without one there is nothing to take over.
        (
            r#"{"type":"CONNECTED","session_id":"s","status":"new","session":{}}"#,
            r#"{"type":"CONNECTED","session_id":"s","status":"new","server_newer":true,"session":{},"chat_items":[]}"#,
        ),
        (
            r#"{"type":"CONNECTED","session_id":"s","status":"new","server_newer":true,"chat_items":[]}"#,
            r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#,
        ),
        (
            r#"{"type":"CONNECTED","session_id":"s","status":"new","server_newer":false,"session":{}}"#,
            r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#,
        ),
        // Members that no one knows are left out of frames that everyone knows.
        (
            " {\"x\":[1],\"type\":\"P\\u0049NG\"}\n",
            r#"{"type":"PING"}"#,
        ),
    ] {
        assert_eq!(written(&server(text)), ours, "{text}");
    }
    for (text, ours) in [
        (
            r#"{"type":"CONNECT","session_id":"","last_msg_id":null,"timestamp":1,"to":"0x1"}"#,
            r#"{"type":"CONNECT"}"#,
        ),
        (
            r#"{"type":"SESSION_STATUS","session":{"session_id":"a","x":1,"session_id":"b"}}"#,
            r#"{"type":"SESSION_STATUS","session":{"session_id":"b"}}"#,
        ),
        (
            r#"{"input_id":7,"prompt":"p","type":"INPUT","to":"0x1"}"#,
            r#"{"type":"INPUT","prompt":"p","input_id":"7"}"#,
        ),
    ] {
        assert_eq!(written(&client(text)), ours, "{text}");
    }
}

#[test]
fn a_known_frame_with_a_wrong_member_is_a_loud_error() {
    for (text, frame, path) in [
        (
            r#"{"type":"CONNECTED","status":"new"}"#,
            "CONNECTED",
            &[][..],
        ),
        (
            r#"{"type":"CONNECTED","session_id":"s","status":7}"#,
            "CONNECTED",
            &["status"],
        ),
        (
            r#"{"type":"CONNECTED","session_id":"s","status":"new","session":[]}"#,
            "CONNECTED",
            &["session"],
        ),
        (r#"{"type":"OUTPUT","session_id":"s"}"#, "OUTPUT", &[]),
        (
            r#"{"type":"OUTPUT","result":"r","duration_ms":"1"}"#,
            "OUTPUT",
            &["duration_ms"],
        ),
        (r#"{"type":"ERROR"}"#, "ERROR", &[]),
        (r#"{"type":"RUNTIME_INPUT_ACK"}"#, "RUNTIME_INPUT_ACK", &[]),
        (
            r#"{"type":"ONBOARD_REQUIRED","methods":"x"}"#,
            "ONBOARD_REQUIRED",
            &["methods"],
        ),
        (r#"{"type":"tool_call","name":"n"}"#, "tool_call", &[]),
        (
            r#"{"type":"tool_call","tool_id":"c","name":7}"#,
            "tool_call",
            &["name"],
        ),
        (
            r#"{"type":"user_input","content":"c","turn":-1}"#,
            "user_input",
            &["turn"],
        ),
        (
            r#"{"type":"user_input","content":"c","ts":1e999}"#,
            "user_input",
            &["ts"],
        ),
        (r#"{"type":"ask_user"}"#, "ask_user", &[]),
        (
            r#"{"type":"ask_user","question":"q","options":{}}"#,
            "ask_user",
            &["options"],
        ),
        (
            r#"{"type":"session_sync","session":[]}"#,
            "session_sync",
            &["session"],
        ),
        (r#"{"type":"agent_image"}"#, "agent_image", &[]),
    ] {
        let error = ServerFrame::decode(text, &Limits::default()).unwrap_err();
        assert_eq!((error.frame(), error.path()), (Some(frame), path), "{text}");
    }
    for (text, frame, path) in [
        (
            r#"{"type":"CONNECT","payload":[]}"#,
            "CONNECT",
            &["payload"][..],
        ),
        (
            r#"{"type":"CONNECT","signature":7}"#,
            "CONNECT",
            &["signature"],
        ),
        (r#"{"type":"CONNECT","from":{}}"#, "CONNECT", &["from"]),
        (
            r#"{"type":"CONNECT","session":"x"}"#,
            "CONNECT",
            &["session"],
        ),
        (
            r#"{"type":"CONNECT","session_id":true}"#,
            "CONNECT",
            &["session_id"],
        ),
        (r#"{"type":"INPUT","prompt":["x"]}"#, "INPUT", &["prompt"]),
        (r#"{"type":"INPUT","images":"x"}"#, "INPUT", &["images"]),
        (r#"{"type":"ASK_USER_RESPONSE"}"#, "ASK_USER_RESPONSE", &[]),
        (
            r#"{"type":"APPROVAL_RESPONSE","approved":"yes"}"#,
            "APPROVAL_RESPONSE",
            &["approved"],
        ),
        (
            r#"{"type":"PLAN_REVIEW_RESPONSE"}"#,
            "PLAN_REVIEW_RESPONSE",
            &[],
        ),
        (r#"{"type":"ULW_RESPONSE"}"#, "ULW_RESPONSE", &[]),
        (
            r#"{"type":"mode_change","mode":7}"#,
            "mode_change",
            &["mode"],
        ),
        (r#"{"type":"prompt_update"}"#, "prompt_update", &[]),
        (
            r#"{"type":"SESSION_STATUS","session":{"session_id":7}}"#,
            "SESSION_STATUS",
            &["session"],
        ),
    ] {
        let error = ClientFrame::decode(text, &Limits::default()).unwrap_err();
        assert_eq!((error.frame(), error.path()), (Some(frame), path), "{text}");
    }
}

#[test]
fn a_repeated_known_member_is_an_error() {
    for text in [
        r#"{"type":"INPUT","prompt":"a","prompt":"b"}"#,
        r#"{"type":"INPUT","prompt":null,"pr\u006fmpt":"b"}"#,
        r#"{"type":"PONG","type":"PONG"}"#,
    ] {
        let error = ClientFrame::decode(text, &Limits::default()).unwrap_err();
        assert!(matches!(error.kind(), DecodeErrorKind::DuplicateMember(_)));
    }
    assert_eq!(
        written(&client(r#"{"x":1,"type":"PONG","x":2}"#)),
        r#"{"type":"PONG"}"#
    );
}

#[test]
fn size_and_number_of_members_are_bounded() {
    let limits = Limits {
        max_items: 20,
        max_message_bytes: 2_000_000,
        ..Limits::default()
    };
    let frame = |members: usize| {
        let members: String = (1..members).map(|n| format!(r#""m{n}":{n},"#)).collect();
        format!(r#"{{{members}"type":"PONG"}}"#)
    };
    assert_eq!(
        ClientFrame::decode(&frame(20), &limits),
        Ok(ClientFrame::Pong)
    );
    let error = ClientFrame::decode(&frame(21), &limits).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::TooManyItems { max: 20 });
    let long = format!(r#"{{"type":"INPUT","prompt":"{}"}}"#, "x".repeat(2_000_000));
    let error = ClientFrame::decode(&long, &limits).unwrap_err();
    assert!(matches!(error.kind(), DecodeErrorKind::TooLarge { .. }));
    let deep = format!(
        r#"{{"type":"session_sync","session":{{"a":{}{}}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(written(&server(&deep)), deep);
}

#[test]
fn a_frame_of_a_new_type_is_an_event_if_it_has_an_id_and_a_time() {
    let text = r#"{"x":{"y":[1.50]},"id":"i","type":"my_own","ts":7,"z":null}"#;
    let ServerFrame::Event(event) = server(text) else {
        panic!("no event");
    };
    let EventKind::Unknown { tag, raw } = &event.kind else {
        panic!("known");
    };
    assert_eq!((&**tag, event.id.as_deref()), ("my_own", Some("i")));
    assert_eq!(event.ts, Some(7_u64.into()));
    let member = |name| raw.member(name).map(|value| value.get().to_owned());
    assert_eq!(member("x").as_deref(), Some(r#"{"y":[1.50]}"#));
    assert_eq!(written(&event), text);
    for text in [
        r#"{"type":"my_own","ts":7}"#,
        r#"{"type":"my_own","id":"i","ts":"7"}"#,
        r#"{"type":"DASHBOARD_SNAPSHOT","id":7}"#,
    ] {
        assert!(
            matches!(server(text), ServerFrame::Unknown { .. }),
            "{text}"
        );
        assert_eq!(written(&server(text)), text);
    }
}

#[test]
fn an_agent_sends_events_of_its_own() {
    let body = Json::of(&serde_json::json!({"x": 1, "id": "theirs", "type": "theirs"}));
    let kind = EventKind::Unknown {
        tag: "my_own".into(),
        raw: body.unwrap(),
    };
    let event = StreamEvent::new(kind, "ev-1", 1.5, "s");
    assert_eq!(
        written(&event),
        r#"{"type":"my_own","x":1,"id":"ev-1","ts":1.5,"session_id":"s"}"#
    );
    let nothing = EventKind::Unknown {
        tag: "my_own".into(),
        raw: Json::of(&7).unwrap(),
    };
    let event = StreamEvent::new(nothing, "ev-1", 2_u64, "s");
    assert_eq!(
        written(&event),
        r#"{"type":"my_own","id":"ev-1","ts":2,"session_id":"s"}"#
    );
}

#[test]
fn unknown_words_are_kept() {
    let ServerFrame::Event(event) =
        server(r#"{"type":"mode_changed","mode":"plan","triggered_by":"later"}"#)
    else {
        panic!("no event");
    };
    let EventKind::ModeChanged(changed) = event.kind else {
        panic!("no change");
    };
    assert_eq!(changed.mode, Mode::Plan);
    let trigger = changed.triggered_by.unwrap();
    assert_eq!(trigger, "later");
    for (word, state) in [
        ("executing", SessionState::Running),
        ("later", SessionState::Connected),
    ] {
        let text = format!(r#"{{"type":"CONNECTED","session_id":"s","status":"{word}"}}"#);
        assert!(matches!(server(&text), ServerFrame::Connected(it) if it.status == state));
    }
    let ServerFrame::SessionStatus(status) =
        server(r#"{"type":"SESSION_STATUS","session_id":"s","status":"not_found"}"#)
    else {
        panic!("no status");
    };
    assert_eq!(status.status, SessionState::NotFound);
    assert!(ToolStatus::NotFound.is_error() && !ToolStatus::Done.is_error());
}

#[test]
fn lists_are_parsed_on_demand() {
    let limits = Limits::default();
    let ServerFrame::Event(event) = server(EVENTS[9]) else {
        panic!("no event");
    };
    let EventKind::AskUser(ask) = &event.kind else {
        panic!("no question");
    };
    assert_eq!(event.kind.awaits(), Some("ASK_USER_RESPONSE"));
    let options: Vec<Str> = ask.options.as_ref().unwrap().parse().unwrap();
    assert_eq!(options, ["a"]);
    let fields: Vec<AskField> = ask.fields.as_ref().unwrap().parse().unwrap();
    assert_eq!(
        (&*fields[0].name, fields[0].kind.as_deref()),
        ("n", Some("text"))
    );
    let text = r#"{"type":"approval_needed","tool":"t","batch_remaining":[{"tool":"u","arguments":"{\"a\":1}"},{"tool":"v","arguments":{"a":1}},{"tool":"w"}]}"#;
    let ServerFrame::Event(event) = server(text) else {
        panic!("no event");
    };
    let EventKind::ApprovalNeeded(needed) = &event.kind else {
        panic!("no approval");
    };
    let batch: Vec<BatchItem> = needed.batch_remaining.as_ref().unwrap().parse().unwrap();
    let arguments: Vec<_> = batch.iter().map(|item| &*item.arguments).collect();
    assert_eq!(arguments, [r#"{"a":1}"#, r#"{"a":1}"#, "{}"]);
    for (text, path) in [
        (
            r#"{"type":"INPUT","images":["data:image/png;base64,AA==",7]}"#,
            "images",
        ),
        (
            r#"{"type":"INPUT","images":["http://127.0.0.1/"]}"#,
            "images",
        ),
        (
            r#"{"type":"INPUT","images":["file:///etc/passwd"]}"#,
            "images",
        ),
        (
            r#"{"type":"INPUT","images":["data:text/plain,a"]}"#,
            "images",
        ),
        (r#"{"type":"INPUT","files":[{"name":"a"}]}"#, "files"),
        (r#"{"type":"INPUT","files":["a"]}"#, "files"),
    ] {
        let ClientFrame::Input(input) = client(text) else {
            panic!("no input");
        };
        let error = match path {
            "images" => input.images(&limits).unwrap_err(),
            _ => input.files(&limits).unwrap_err(),
        };
        assert_eq!(error.path().first(), Some(&path), "{text}");
    }
}

#[test]
fn an_answer_is_a_text_or_any_other_value() {
    for answer in [r#""a\nb""#, "[1, 2]", "null"] {
        let frame = format!(r#"{{"type":"ASK_USER_RESPONSE","answer":{answer}}}"#);
        let ClientFrame::Response(response) = client(&frame) else {
            panic!("no response");
        };
        assert!(matches!(response.answer, Answer::AskUser(json) if json.get() == answer));
    }
}

#[test]
fn the_code_of_an_error_is_a_number_or_a_word() {
    let number = |error: &ErrorFrame| error.code.as_ref()?.parse::<Number>().ok();
    let ServerFrame::Error(error) = server(r#"{"type":"ERROR","message":"m","code":-32000}"#)
    else {
        panic!("no error");
    };
    assert_eq!(number(&error).map(Number::as_f64), Some(-32000.0));
    assert_eq!(error.retryable, None);
    for retryable in [true, false] {
        let text = format!(r#"{{"type":"ERROR","message":"m","retryable":{retryable}}}"#);
        let ServerFrame::Error(error) = server(&text) else {
            panic!("no error");
        };
        assert_eq!(error.retryable, Some(retryable));
        assert_eq!(written(&error), text);
    }
}

#[test]
fn chat_items_are_typed_and_others_are_kept() {
    let text = r#"[{"id":"msg-0","type":"user","content":[{"type":"image_url","image_url":{}},{"type":"text","text":"look"}]},{"id":"c","type":"tool_call","name":"add","args":{"a":1},"status":"done","result":"5","timing_ms":0},{"id":"t","type":"thinking","content":"hm","kind":"k","status":"done"},{"id":"i","type":"intent","status":"understood","ack":"ok"},{"id":"e","type":"eval","status":"done","passed":true},{"id":"f","type":"files_received","files":[]},{"type":"later","x":[1.50],"id":7},{"x":1},{"id":"msg-1","type":"agent","content":"done"}]"#;
    let items = ChatItem::list(text, &Limits::default()).unwrap();
    assert_eq!(written(&items), text);
    assert_eq!(items[0].text().as_deref(), Some("look"));
    assert_eq!(items[8].text().as_deref(), Some("done"));
    assert!(matches!(items[6].kind, ChatItemKind::Unknown { .. }));
    assert_eq!(items[6].id.as_deref(), Some("7"));
    let made = [
        ChatItem::new("msg-0", ChatItemKind::User(Json::string("a\"b"))),
        ChatItem::new("msg-1", ChatItemKind::Agent(Json::string("c"))),
    ];
    assert_eq!(
        written(&made.as_slice()),
        r#"[{"id":"msg-0","type":"user","content":"a\"b"},{"id":"msg-1","type":"agent","content":"c"}]"#
    );
    for text in [
        "{}",
        "[7]",
        r#"[{"type":"user"}]"#,
        r#"[{"type":"eval","passed":7}]"#,
    ] {
        assert!(ChatItem::list(text, &Limits::default()).is_err(), "{text}");
    }
}

#[test]
fn debug_output_of_a_frame_is_its_type() {
    let text = r#"{"type":"CONNECT","payload":{"invite_code":"hunter2"},"from":"0x1","signature":"hunter2"}"#;
    let frame = client(text);
    assert_eq!(
        format!("{frame:?}"),
        r#"ClientFrame { name: "CONNECT", .. }"#
    );
    let ClientFrame::Connect(connect) = frame else {
        panic!("no connect");
    };
    assert!(!format!("{connect:?}").contains("hunter2"));
    let mut error = ErrorFrame::new("m");
    error.received = Some("hunter2".into());
    assert!(!format!("{error:?}").contains("hunter2"));
}
