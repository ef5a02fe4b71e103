//! The specification's examples, byte for byte: as they are there, and as this crate writes them.
//! Where it leaves something out (`[...]`) there is an empty list here.

use connectonion_proto::codec;
use connectonion_proto::frame::{
    Answer, Approval, Attachment, ClientFrame, Connect, Connected, ErrorFrame, Input,
    OnboardMethod, OnboardRequired, OnboardSubmit, OnboardSuccess, Output, Response,
    RuntimeInputAck, Scope, ServerFrame, SessionState, Signed,
};
use rpc_core::Json;
use rpc_core::Limits;
use serde::Serialize;
use serde_json::json;
use switchboard_testing::json::assert_same;

/// As it is sent: without white space but that within strings.
fn sent(printed: &str) -> String {
    let mut in_string = false;
    let kept = printed.chars().filter(|letter| {
        in_string ^= *letter == '"';
        in_string || !letter.is_ascii_whitespace()
    });
    kept.collect()
}

fn is_written(printed: &str, frame: &impl Serialize) -> String {
    let sent = sent(printed);
    assert_eq!(codec::encode(frame).unwrap().as_str(), sent);
    assert_same(printed, &sent);
    sent
}

/// The example is this frame of a client, written and read.
fn comes_from_a_client(printed: &str, frame: &impl Serialize) {
    let sent = is_written(printed, frame);
    for text in [printed, &sent] {
        let read = ClientFrame::decode(text, &Limits::default()).unwrap();
        assert_same(codec::encode(&read).unwrap().as_str(), &sent);
    }
}

/// The example is this frame of a server, written and read.
fn comes_from_a_server(printed: &str, frame: &impl Serialize) {
    let sent = is_written(printed, frame);
    for text in [printed, &sent] {
        let read = ServerFrame::decode(text, &Limits::default()).unwrap();
        assert_same(codec::encode(&read).unwrap().as_str(), &sent);
    }
}

fn raw(value: &(impl Serialize + ?Sized)) -> Json {
    Json::of(value).unwrap()
}

#[test]
fn a_connect_matches_the_specification() {
    let printed = r#"{
  "type": "CONNECT",
  "session_id": "550e8400-...",
  "last_msg_id": "ev-9f12...",
  "session": { "messages": [], "mode": "safe" },
  "payload": { "to": "0x3d4017c3e843...", "timestamp": 1702234567 },
  "from": "0xClientPublicKey",
  "signature": "0x..."
}"#;
    let payload = Json::of(&Payload {
        to: "0x3d4017c3e843...",
        timestamp: 1_702_234_567,
    });
    let signed = Signed::new(payload.unwrap(), "0xClientPublicKey", "0x...");
    let mut connect = Connect::new(signed);
    connect.session_id = Some("550e8400-...".into());
    connect.last_msg_id = Some("ev-9f12...".into());
    connect.session = Some(raw(&json!({"messages": [], "mode": "safe"})));
    comes_from_a_client(printed, &connect);
}

#[derive(Serialize)]
struct Payload {
    to: &'static str,
    timestamp: u64,
}

#[test]
fn a_connect_omits_absent_members() {
    let printed = r#"{"type":"CONNECT","payload":{},"from":"0xab","signature":"00"}"#;
    let signed = Signed::new(raw(&json!({})), "0xab", "00");
    comes_from_a_client(printed, &Connect::new(signed));
    comes_from_a_client(r#"{"type":"CONNECT"}"#, &Connect::new(Signed::none()));
}

#[test]
fn an_input_matches_the_specification() {
    let printed = r#"{
  "type": "INPUT",
  "prompt": "Translate hello to Spanish",
  "images": ["data:image/png;base64,..."],
  "files": [{ "name": "doc.pdf", "data": "data:application/pdf;base64,..." }]
}"#;
    let mut input = Input::new("Translate hello to Spanish");
    input.images = Some(raw(&["data:image/png;base64,..."]));
    let file = Attachment::new("doc.pdf", "data:application/pdf;base64,...");
    input.files = Some(raw(&[file]));
    comes_from_a_client(printed, &input);
    comes_from_a_client(r#"{"type":"INPUT","prompt":"hi"}"#, &Input::new("hi"));
    let limits = Limits::default();
    assert_eq!(
        input.images(&limits).unwrap(),
        ["data:image/png;base64,..."]
    );
    assert_eq!(input.files(&limits).unwrap()[0].name, "doc.pdf");
}

#[test]
fn a_pong_matches_the_specification() {
    comes_from_a_client(r#"{ "type": "PONG" }"#, &ClientFrame::Pong);
}

/// What a client without request ids sends, as the one of the specification.
fn response(answer: Answer) -> Response {
    let mut response = Response::new("", answer);
    response.request_id = None;
    response
}

#[test]
fn responses_match_the_specification() {
    let answer = Answer::AskUser(raw(&json!("Python 3")));
    comes_from_a_client(
        r#"{ "type": "ASK_USER_RESPONSE", "answer": "Python 3" }"#,
        &response(answer.clone()),
    );
    comes_from_a_client(
        r#"{ "type": "APPROVAL_RESPONSE", "approved": true, "scope": "once" }"#,
        &response(Answer::Approval(Approval::granted(Scope::Once))),
    );
    comes_from_a_client(
        r#"{ "type": "ASK_USER_RESPONSE", "answer": "Python 3", "request_id": "ev-1" }"#,
        &Response::new("ev-1", answer),
    );
}

#[test]
fn onboarding_matches_the_specification() {
    let payload = raw(&json!({"invite_code": "OpenOnion"}));
    let submit = OnboardSubmit::from(Signed::new(payload, "0xab", "00"));
    assert_eq!(
        submit.signed.text("invite_code").as_deref(),
        Some("OpenOnion")
    );
    comes_from_a_client(
        r#"{"type":"ONBOARD_SUBMIT","payload":{"invite_code":"OpenOnion"},"from":"0xab","signature":"00"}"#,
        &submit,
    );
    let methods = [OnboardMethod::InviteCode, OnboardMethod::Payment];
    let mut required = OnboardRequired::new("0xab", &methods).unwrap();
    required.payment_amount = Some(10_u64.into());
    comes_from_a_server(
        r#"{"type":"ONBOARD_REQUIRED","identity":"0xab","methods":["invite_code","payment"],"payment_amount":10}"#,
        &required,
    );
    let read: Vec<OnboardMethod> = required.methods.parse().unwrap();
    assert_eq!(read, methods.map(Into::into));
    comes_from_a_server(
        r#"{"type":"ONBOARD_SUCCESS","identity":"0xab","level":"contact","message":"Welcome."}"#,
        &OnboardSuccess::new("0xab", "contact", "Welcome."),
    );
}

#[test]
fn a_connected_matches_the_specification() {
    let printed = r#"{
  "type": "CONNECTED",
  "session_id": "550e8400-...",
  "status": "new",
  "server_newer": true,
  "session": { "messages": [] },
  "chat_items": []
}"#;
    let connected = Connected::new("550e8400-...", SessionState::New);
    let mut newer = connected.clone();
    newer.server_newer = Some(true);
    newer.session = Some(raw(&json!({"messages": []})));
    newer.chat_items = Some(raw(&json!([])));
    comes_from_a_server(printed, &newer);
    comes_from_a_server(
        r#"{"type":"CONNECTED","session_id":"550e8400-...","status":"new"}"#,
        &connected,
    );
}

#[test]
fn an_output_matches_the_specification() {
    let printed = r#"{
  "type": "OUTPUT",
  "result": "Hola",
  "session_id": "550e8400-...",
  "duration_ms": 1250,
  "session": { "messages": [], "trace": [], "turn": 2 }
}"#;
    let session = raw(&json!({"messages": [], "trace": [], "turn": 2}));
    let mut output = Output::new("550e8400-...", "Hola", 1250);
    output.session = Some(session);
    comes_from_a_server(printed, &output);
}

#[test]
fn a_ping_matches_the_specification() {
    comes_from_a_server(r#"{ "type": "PING" }"#, &ServerFrame::Ping);
}

#[test]
fn an_acknowledgement_matches_the_specification() {
    let printed = r#"{
  "type": "RUNTIME_INPUT_ACK",
  "session_id": "550e8400-...",
  "id": "runtime-input-7c2a..."
}"#;
    let ack = RuntimeInputAck::new("550e8400-...", "runtime-input-7c2a...");
    comes_from_a_server(printed, &ack);
}

#[test]
fn an_error_matches_the_specification() {
    let printed = r#"{
  "type": "ERROR",
  "message": "Invalid JSON: Expecting property name enclosed in double quotes at line 2 col 5 (pos 18)",
  "received": "{type: 'INPUT', ...}"
}"#;
    let message =
        "Invalid JSON: Expecting property name enclosed in double quotes at line 2 col 5 (pos 18)";
    let mut error = ErrorFrame::new(message);
    error.received = Some("{type: 'INPUT', ...}".into());
    comes_from_a_server(printed, &error);
}
