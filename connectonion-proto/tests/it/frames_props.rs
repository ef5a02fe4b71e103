//! What is written is read as it was, whatever the texts and values in it.

use connectonion_proto::codec;
use connectonion_proto::frame::{
    AdminAction, AdminRequest, Answer, Approval, AskUser, ChatItem, ChatItemKind, ClientFrame,
    Connect, Connected, ErrorFrame, EventKind, Input, LlmCall, Mode, ModeChange, Number,
    OnboardMethod, OnboardRequired, OnboardSubmit, Output, Rejection, Response, RuntimeInputAck,
    Scope, ServerFrame, Session, SessionState, Signed, StreamEvent, Thinking, ToolCall, ToolResult,
    ToolStatus, Ulw, UlwAction, UserInput,
};
use connectonion_proto::id::SessionId;
use proptest::prelude::*;
use rpc_core::Limits;
use rpc_core::{Json, Str};

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

fn shared(json: &str) -> Json {
    Json::new(json).unwrap()
}

fn value() -> impl Strategy<Value = Json> {
    json().prop_map(|json| shared(&json))
}

fn object() -> impl Strategy<Value = Json> {
    members(json()).prop_map(|json| shared(&json))
}

fn text() -> impl Strategy<Value = Str> {
    any::<String>().prop_map(Str::from)
}

fn maybe() -> impl Strategy<Value = Option<Str>> {
    prop::option::of(text())
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_map(Number::from),
    ]
}

const MODES: [&str; 7] = [
    "safe",
    "plan",
    "accept_edits",
    "ulw",
    "read-only",
    "auto",
    "full-access",
];
const REJECTIONS: [&str; 3] = ["reject_soft", "reject_hard", "reject_explain"];

fn word<W: From<Str> + std::fmt::Debug>(known: &'static [&str]) -> impl Strategy<Value = W> {
    let known = prop::sample::select(known).prop_map(Str::from_static);
    prop_oneof![known, text()].prop_map(W::from)
}

fn check_words<W>(known: &[&'static str])
where
    W: From<Str> + PartialEq + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    for (text, is_known) in known
        .iter()
        .map(|word| (*word, true))
        .chain([("later", false)])
    {
        let word = W::from(text.into());
        assert_ne!(format!("{word:?}").starts_with("Other"), is_known, "{text}");
        let written = serde_json::to_string(&word).unwrap();
        assert_eq!(written, format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<W>(&written).unwrap(), word);
    }
}

#[test]
fn every_word_round_trips() {
    check_words::<Mode>(&MODES);
    check_words::<Rejection>(&REJECTIONS);
    check_words::<Scope>(&["once", "session"]);
    check_words::<UlwAction>(&["continue", "switch_mode"]);
    check_words::<ToolStatus>(&["running", "done", "success", "error", "not_found"]);
    check_words::<ToolStatus>(&["in_progress", "completed", "failed"]);
    check_words::<OnboardMethod>(&["invite_code", "payment"]);
    check_words::<AdminAction>(&[
        "ADMIN_PROMOTE",
        "ADMIN_DEMOTE",
        "ADMIN_BLOCK",
        "ADMIN_UNBLOCK",
    ]);
    check_words::<AdminAction>(&["ADMIN_GET_LEVEL", "ADMIN_ADD", "ADMIN_REMOVE"]);
}

fn kind() -> impl Strategy<Value = EventKind> {
    let call = (text(), text(), object())
        .prop_map(|(id, name, args)| EventKind::ToolCall(ToolCall::new(id, name, args)));
    let result = (text(), text(), text(), maybe(), number()).prop_map(
        |(id, name, result, error, timing)| {
            let mut it = ToolResult::new(id, name, ToolStatus::Success, result);
            it.error = error;
            it.timing_ms = Some(timing);
            EventKind::ToolResult(it)
        },
    );
    let ask = (
        text(),
        prop::collection::vec(any::<String>(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(question, options, several)| {
            let mut ask = AskUser::new(question).with_options(&options);
            ask.multi_select = several;
            EventKind::AskUser(ask)
        });
    let thought = (maybe(), maybe()).prop_map(|(content, kind)| {
        let mut it = Thinking::new("");
        it.content = content;
        it.kind = kind;
        EventKind::Thinking(it)
    });
    let answered =
        (text(), any::<u64>(), number(), object()).prop_map(|(model, count, percent, usage)| {
            let mut it = LlmCall::answer(model, count, 1);
            it.context_percent = Some(percent);
            it.usage = Some(usage);
            EventKind::LlmResult(it)
        });
    prop_oneof![
        call,
        result,
        ask,
        thought,
        answered,
        (text(), any::<u64>())
            .prop_map(|(said, turn)| EventKind::UserInput(UserInput::new(said, turn))),
        (text(), any::<u64>()).prop_map(|(said, turn)| {
            let mut said = UserInput::new(said, turn);
            said.runtime_input = true;
            EventKind::UserInput(said)
        }),
    ]
}

fn event() -> impl Strategy<Value = StreamEvent> {
    (kind(), text(), number(), text())
        .prop_map(|(kind, id, ts, session_id)| StreamEvent::new(kind, id, ts, session_id))
}

fn signed() -> impl Strategy<Value = Signed> {
    let signed = (object(), text(), text());
    prop_oneof![
        4 => signed.prop_map(|(payload, from, signature)| Signed::new(payload, from, signature)),
        1 => Just(Signed::none()),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let refused = (word::<Rejection>(&REJECTIONS), maybe()).prop_map(|(mode, feedback)| {
        let mut it = Approval::refused(Rejection::Soft);
        it.mode = Some(mode);
        it.feedback = feedback;
        Answer::Approval(it)
    });
    prop_oneof![
        value().prop_map(Answer::AskUser),
        Just(Answer::Approval(Approval::granted(Scope::Session))),
        refused,
        text().prop_map(Answer::PlanReview),
        any::<u64>().prop_map(|turns| Answer::Ulw(Ulw::go_on(turns))),
        Just(Answer::Ulw(Ulw::switch_mode(Mode::Plan))),
    ]
}

fn limits() -> Limits {
    Limits::default()
}

proptest! {
    #[test]
    fn every_event_round_trips(event in event()) {
        let written = codec::encode(&event).unwrap();
        let read = ServerFrame::decode(written.as_str(), &limits()).unwrap();
        let ServerFrame::Event(read) = read else {
            panic!("no event: {written:?}")
        };
        prop_assert_eq!(read, event);
    }

    #[test]
    fn every_connect_round_trips(
        signed in signed(),
        ids in (text(), text()),
        session in prop::option::of(object()),
    ) {
        let mut connect = Connect::new(signed);
        connect.last_msg_id = Some(ids.1.into());
        // An empty one counts as absent.
        connect.session_id = Some(ids.0.into()).filter(|id: &SessionId| !id.is_empty());
        connect.session = session;
        let written = codec::encode(&connect).unwrap();
        let read = ClientFrame::decode(written.as_str(), &limits()).unwrap();
        let ClientFrame::Connect(read) = read else {
            panic!("no connect")
        };
        prop_assert_eq!(read, connect);
    }

    #[test]
    fn every_input_round_trips(
        prompt in text(),
        images in prop::collection::vec("(data:|DATA:image/png;a=b);base64,.*", 0..3),
        id in maybe(),
        signed in signed(),
    ) {
        let mut input = Input::new(prompt);
        input.images = Some(Json::of(&images).unwrap());
        input.input_id = id.map(Into::into);
        input.signed = signed;
        let written = codec::encode(&input).unwrap();
        let read = ClientFrame::decode(written.as_str(), &limits()).unwrap();
        let ClientFrame::Input(read) = read else {
            panic!("no input")
        };
        let found = read.images(&limits()).unwrap();
        prop_assert!(found.iter().map(|it| &**it).eq(images.iter().map(|it| &**it)));
        prop_assert_eq!(read, input);
    }

    #[test]
    fn every_response_round_trips(id in text(), answer in answer()) {
        let response = Response::new(id, answer);
        let written = codec::encode(&response).unwrap();
        let read = ClientFrame::decode(written.as_str(), &limits()).unwrap();
        let ClientFrame::Response(read) = read else {
            panic!("no response")
        };
        prop_assert_eq!(read, response);
    }

    #[test]
    fn other_client_frames_round_trip(
        signed in signed(),
        mode in word::<Mode>(&MODES),
        turns in any::<u64>(),
    ) {
        let mut change = ModeChange::new(Mode::Safe);
        change.turns = Some(turns);
        change.mode = mode;
        let admin = AdminRequest::new(AdminAction::Block, signed.clone());
        let submit = OnboardSubmit::from(signed);
        for written in [
            codec::encode(&change).unwrap(),
            codec::encode(&admin).unwrap(),
            codec::encode(&submit).unwrap(),
        ] {
                    match ClientFrame::decode(written.as_str(), &limits()).unwrap() {
                ClientFrame::ModeChange(read) => prop_assert_eq!(&read, &change),
                ClientFrame::Admin(read) => prop_assert_eq!(&read, &admin),
                ClientFrame::OnboardSubmit(read) => prop_assert_eq!(&read, &submit),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn every_server_frame_round_trips(
        texts in (text(), text(), maybe()),
        session in object(),
        items in prop::collection::vec(any::<String>(), 0..3),
        number in number(),
        retryable in any::<bool>(),
    ) {
        let user = |text: &String| ChatItemKind::User(Json::of(text).unwrap());
        let items: Vec<_> = items.iter().map(|text| ChatItem::new("msg-0", user(text))).collect();
        let items = Json::of(&items).unwrap();
        let (one, two, three) = texts;
        let mut connected = Connected::new(one.clone(), SessionState::Running);
        connected.server_newer = Some(true);
        connected.session = Some(session.clone());
        connected.chat_items = Some(items.clone());
        let mut output = Output::new(two.clone(), one.clone(), 7);
        output.session = Some(session);
        output.chat_items = Some(items);
        output.duration_ms = Some(number);
        let ack = RuntimeInputAck::new(one.clone(), two.clone());
        let mut error = ErrorFrame::new(one.clone());
        error.retryable = Some(retryable);
        error.code = Some(Json::of(&two).unwrap());
        error.received = three.clone();
        let mut required = OnboardRequired::new(one, &[]).unwrap();
        required.payment_amount = Some(number);
        required.payment_address = three;
        for written in [
            codec::encode(&connected).unwrap(),
            codec::encode(&output).unwrap(),
            codec::encode(&ack).unwrap(),
            codec::encode(&error).unwrap(),
            codec::encode(&required).unwrap(),
        ] {
                    match ServerFrame::decode(written.as_str(), &limits()).unwrap() {
                ServerFrame::Connected(read) => prop_assert_eq!(&read, &connected),
                ServerFrame::Output(read) => prop_assert_eq!(&read, &output),
                ServerFrame::RuntimeInputAck(read) => prop_assert_eq!(&read, &ack),
                ServerFrame::Error(read) => prop_assert_eq!(&read, &error),
                ServerFrame::OnboardRequired(read) => {
                    prop_assert_eq!(&read, &required);
                }
                other => panic!("{other:?}"),
            }
        }
    }

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

    #[test]
    fn a_truncated_frame_is_refused(event in event(), at in any::<prop::sample::Index>()) {
        let written = codec::encode(&event).unwrap();
        let letters: Vec<char> = written.as_str().chars().collect();
        let cut: String = letters[..at.index(letters.len())].iter().collect();
        prop_assert!(ServerFrame::decode(&cut, &limits()).is_err());
        let error = ClientFrame::decode(&cut, &limits()).unwrap_err();
        let answer = connectonion_proto::error::refusal(&cut, &error).message;
        prop_assert!(answer.starts_with("Invalid JSON: ") || cut.is_empty());
    }
}
