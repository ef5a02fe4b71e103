//! What of an event is kept.

use rpc_core::{Json, Limits};

use crate::frame::{EventKind, Replay, ServerFrame};

#[test]
fn a_trace_records_actions_but_no_questions_or_progress() {
    let traced = [
        r#""user_input","content":"x""#,
        r#""assistant","content":"x""#,
        r#""llm_call","model":"m","iteration":1"#,
        r#""llm_result","model":"m","duration_ms":1"#,
        r#""thinking","content":"x""#,
        r#""tool_call","tool_id":"c","name":"add","args":{}"#,
        r#""tool_result","tool_id":"c","name":"add","status":"success","result":"5""#,
        r#""tool_blocked","tool":"bash","reason":"x","message":"x""#,
        r#""files_received","files":[]"#,
        r#""intent","status":"understood","ack":"x","is_build":false"#,
        r#""eval","status":"done","passed":true,"summary":"x""#,
        r#""compact","status":"done""#,
        r#""mode_changed","mode":"plan""#,
    ];
    let other = [
        r#""assistant_delta","content":"x","message_id":"m""#,
        r#""thinking_delta","content":"x","message_id":"m""#,
        r#""ask_user","text":"x""#,
        r#""approval_needed","tool":"bash","arguments":{}"#,
        r#""plan_review","plan_content":"x""#,
        r#""ulw_turns_reached","turns_used":1,"max_turns":1"#,
        r#""agent_image","image":"data:""#,
        r#""diff_preview","path":"x","preview":"x""#,
        r#""complete","tools_used":[],"llm_calls":1,"iterations":1"#,
        r#""session_sync","session":{}"#,
        r#""news""#,
    ];
    let kind = |members: &str| {
        let text = format!(r#"{{"type":{members},"id":"e","ts":1.5,"session_id":"s"}}"#);
        match ServerFrame::decode(&text, &Limits::default()) {
            Ok(ServerFrame::Event(event)) => event.kind,
            other => panic!("{text}: {other:?}"),
        }
    };
    let mut names = Vec::new();
    for (members, expected) in traced
        .iter()
        .map(|it| (it, true))
        .chain(other.iter().map(|it| (it, false)))
    {
        let kind = kind(members);
        assert_eq!(kind.kept().is_traced, expected, "{members}");
        names.push(std::mem::discriminant(&kind));
    }
    // Each kind is there by itself.
    names.dedup();
    assert_eq!(names.len(), traced.len() + other.len());
}

#[test]
fn answers_to_one_socket_are_never_logged() {
    let is_logged = |tag: &str| {
        (EventKind::Unknown {
            tag: tag.into(),
            raw: Json::default(),
        })
        .kept()
        .replay
            != Replay::Never
    };
    assert!(is_logged("thinking") && is_logged("session_sync") && is_logged("custom"));
    assert!(!is_logged("OUTPUT") && !is_logged("RUNTIME_INPUT_ACK"));
}
