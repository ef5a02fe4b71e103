//! What a text is read as, and what is wrong with it.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{self, DecodeError, DecodeErrorKind as Kind, Json, Str, lenient};
use crate::{Limits, tagged};

tagged! {
    /// Adjacent.
    #[derive(Clone, Debug, PartialEq)]
    enum Step by "event" in "data" {
        "text" => Text(Str),
        "tool" => Tool(Tool),
        "done" => Done,
    }
}

tagged! {
    /// Internal.
    #[derive(Clone, Debug, PartialEq)]
    pub(super) enum Kind2 by "type" {
        "tool" => Tool(Tool),
        "step" => Step(Box<Inner>),
        "end" => End,
    }
}

tagged! {
    /// Internal, with each content in one member.
    #[derive(Clone, Debug, PartialEq)]
    enum Envelope by "type" {
        "raw" => Raw(Json) in "payload",
        "list" => List(Vec<Step>) in "items",
        "tool" => Tool(Tool),
    }
}

tagged! {
    /// With a tag that is written with content of its own.
    #[derive(Clone, Debug, PartialEq)]
    enum Answer by "type" in "payload" {
        "ack" => Ack = Json::EMPTY_OBJECT,
        "raw" => Raw(Json),
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Tool {
    pub(super) name: Str,
    #[serde(default, deserialize_with = "lenient::or_default")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Json>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Inner {
    step: Step,
    list: Vec<Str>,
}

tagged! {
    /// Both.
    #[derive(Clone, Debug, PartialEq)]
    struct Frame {
        "id" => id: Str,
        .. => kind: Kind2,
        "sentAt" => sent_at: Option<u64>,
    }
}

tagged! {
    /// Perhaps without a tag.
    #[derive(Clone, Debug, PartialEq)]
    struct Maybe {
        "id" => id: Option<Str>,
        .. => step: Option<Step>,
    }
}

fn decode<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DecodeError> {
    json::decode(text, &Limits::default())
}

fn error<T: for<'de> Deserialize<'de> + std::fmt::Debug>(text: &str) -> (Kind, Vec<&'static str>) {
    let error = decode::<T>(text).unwrap_err();
    (error.kind(), error.path().to_vec())
}

/// Reads, writes and reads again; and the same through `serde_json`.
#[track_caller]
fn again<T>(text: &str) -> T
where
    T: for<'de> Deserialize<'de> + Serialize + PartialEq + std::fmt::Debug,
{
    let read: T = decode(text).unwrap();
    let mut written = String::new();
    crate::encode::encode_into(&read, &mut written).unwrap();
    assert_eq!(written, serde_json::to_string(&read).unwrap());
    assert_eq!(decode::<T>(&written).unwrap(), read, "{written}");
    assert_eq!(serde_json::from_str::<T>(text).unwrap(), read);
    let value: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(serde_json::from_value::<T>(value.clone()).unwrap(), {
        let compact = value.to_string();
        decode::<T>(&compact).unwrap()
    });
    read
}

#[test]
fn the_tag_may_be_anywhere() {
    let tool = Kind2::Tool(Tool {
        name: "x".into(),
        count: 2,
        input: Some(Json::new("[1, 2]").unwrap()),
    });
    for text in [
        r#"{"id":"1","type":"tool","name":"x","count":2,"input":[1, 2],"sentAt":7}"#,
        r#"{"name":"x","count":2,"input":[1, 2],"sentAt":7,"type":"tool","id":"1"}"#,
        r#"{"count":2,"x":{"type":"end"},"sentAt":7,"type":"tool","input":[1, 2],"id":"1","name":"\u0078"}"#,
    ] {
        let frame: Frame = again(text);
        assert_eq!((&*frame.id, frame.sent_at), ("1", Some(7)));
        assert_eq!(frame.kind, tool, "{text}");
    }
    let frame: Frame = again(r#"{"type":"end","id":"1","x":[]}"#);
    assert_eq!((frame.kind, frame.sent_at), (Kind2::End, None));
}

#[test]
fn content_may_precede_its_tag() {
    for text in [
        r#"{"event":"text","data":"a\nb","x":1}"#,
        r#"{"x":1,"data":"a\nb","event":"text"}"#,
    ] {
        assert_eq!(again::<Step>(text), Step::Text("a\nb".into()));
    }
    for text in [r#"{"event":"done"}"#, r#"{"data":[1],"event":"done"}"#] {
        assert_eq!(again::<Step>(text), Step::Done);
    }
    let maybe: Maybe = again(r#"{"id":"1"}"#);
    assert_eq!(maybe.step, None);
    let maybe: Maybe = again(r#"{"id":"1","event":"text","data":"a"}"#);
    assert_eq!(maybe.step, Some(Step::Text("a".into())));
    let frame: Frame = again(
        r#"{"id":"1","step":{"data":"a","event":"text"},"list":["b"],"type":"step","sentAt":1}"#,
    );
    let step = Step::Text("a".into());
    let list = vec!["b".into()];
    assert_eq!(frame.kind, Kind2::Step(Box::new(Inner { step, list })));
}

#[test]
fn unknown_values_are_written_verbatim() {
    for text in [
        r#"{"x": [1.50],"type":"later","id":"1","sentAt":null}"#,
        r#"{"type":"later","id":"1","a":{"b":1e400}}"#,
    ] {
        let frame: Frame = decode(text).unwrap();
        assert_eq!(frame.kind.tag(), "later");
        assert_eq!(serde_json::to_string(&frame).unwrap(), text);
    }
    for (text, tag) in [
        (r#"{"event":"later","data":[1, 2]}"#, "later"),
        (r#"{"event":"","data":null}"#, ""),
    ] {
        assert_eq!(again::<Step>(text).tag(), tag);
    }
}

#[test]
fn content_may_be_one_of_the_members() {
    for text in [
        r#"{"type":"raw","payload":null}"#,
        r#"{"type":"raw","payload":[1.50, {}]}"#,
        r#"{"type":"list","items":[{"event":"done"},{"event":"later","data":null}]}"#,
        r#"{"type":"later","payload":null,"more":[1.50]}"#,
    ] {
        let read = again::<Envelope>(text);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
    let early: Envelope = again(r#"{"x":1,"items":[{"data":"a","event":"text"}],"type":"list"}"#);
    assert_eq!(early, Envelope::List(vec![Step::Text("a".into())]));
    assert_eq!(early.tag(), "list");
    let missing = (Kind::MissingMember("items"), vec![]);
    for text in [
        r#"{"type":"list"}"#,
        r#"{"type":"list","items":null}"#,
        r#"{"items":null,"type":"list"}"#,
    ] {
        assert_eq!(error::<Envelope>(text), missing, "{text}");
    }
    let expected = "an array";
    let member = "items";
    let wrong = (Kind::WrongType { member, expected }, vec![member]);
    for text in [
        r#"{"type":"list","items":"a"}"#,
        r#"{"items":{},"type":"list"}"#,
    ] {
        assert_eq!(error::<Envelope>(text), wrong, "{text}");
    }
    let twice = (Kind::DuplicateMember("items"), vec![]);
    let text = r#"{"items":[],"type":"list","items":[]}"#;
    assert_eq!(error::<Envelope>(text), twice);
}

#[test]
fn a_tag_without_content_can_be_written_with_content() {
    for text in [
        r#"{"type":"ack","payload":{}}"#,
        r#"{"type":"ack"}"#,
        r#"{"payload":[],"type":"ack"}"#,
        r#"{"type":"ack","payload":null}"#,
    ] {
        let read = again::<Answer>(text);
        assert_eq!(read, Answer::Ack, "{text}");
        let written = r#"{"type":"ack","payload":{}}"#;
        assert_eq!(serde_json::to_string(&read).unwrap(), written);
    }
    for text in [
        r#"{"type":"raw","payload":null}"#,
        r#"{"type":"later","payload":null}"#,
        r#"{"type":"later"}"#,
    ] {
        let read = again::<Answer>(text);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}

#[test]
fn errors_in_content_before_its_tag_have_a_path() {
    for (members, kind, path) in [
        (
            r#""name":7"#,
            Kind::WrongType {
                member: "name",
                expected: "a string",
            },
            vec!["name"],
        ),
        (r#""name":null"#, Kind::MissingMember("name"), vec![]),
        (r#""x":1"#, Kind::MissingMember("name"), vec![]),
        (
            r#""name":"a","count":-1"#,
            Kind::WrongType {
                member: "count",
                expected: "a whole number from 0 up",
            },
            vec!["count"],
        ),
        (
            r#""name":"a","name":"b""#,
            Kind::DuplicateMember("name"),
            vec![],
        ),
    ] {
        let texts = [
            format!(r#"{{"id":"1","type":"tool",{members}}}"#),
            format!(r#"{{{members},"type":"tool","id":"1"}}"#),
        ];
        for text in texts {
            assert_eq!(error::<Frame>(&text), (kind, path.clone()), "{text}");
        }
        let path: Vec<_> = std::iter::once("data").chain(path).collect();
        for text in [
            format!(r#"{{"event":"tool","data":{{{members}}}}}"#),
            format!(r#"{{"data":{{{members}}},"event":"tool"}}"#),
        ] {
            assert_eq!(error::<Step>(&text), (kind, path.clone()), "{text}");
        }
    }
    let expected = "a string";
    let wrong = |member| Kind::WrongType { member, expected };
    for (text, kind) in [
        (r#"{"id":"1","type":7}"#, wrong("type")),
        (r#"{"type":"end"}"#, Kind::MissingMember("id")),
        (r#"{"id":"1"}"#, Kind::MissingMember("type")),
        (r#"{"id":"1","type":null}"#, Kind::MissingMember("type")),
        (
            r#"{"id":"1","type":"end","type":"end"}"#,
            Kind::DuplicateMember("type"),
        ),
        (
            r#"{"id":"1","type":"end","id":"1"}"#,
            Kind::DuplicateMember("id"),
        ),
        (r#"[]"#, Kind::NotAnObject),
        (r#"{"id":"1","type":"end"} 1"#, Kind::Syntax),
        (r#"{"id":"1","type":"end","x":[}"#, Kind::Syntax),
    ] {
        assert_eq!(error::<Frame>(text).0, kind, "{text}");
    }
    let text =
        "{\"id\":\"1\",\n \"list\":[\"a\", 7],\"step\":{\"event\":\"done\"},\"type\":\"step\"}";
    let wrong = decode::<Frame>(text).unwrap_err();
    assert_eq!(
        (wrong.line(), wrong.column(), wrong.path()),
        (2, 15, &["list"][..])
    );
}

#[test]
fn arrays_are_not_objects_and_null_is_absent() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Point {
        x: u8,
        y: Option<u8>,
    }
    assert_eq!(
        decode::<Point>(r#"{"x":1,"y":null}"#),
        Ok(Point { x: 1, y: None })
    );
    let parse = |text| json::parse::<Point>(text, &Limits::default()).map_err(|it| it.kind());
    assert_eq!(parse("[1,2]"), Err(Kind::Mismatch));
    let expected = "a whole number from 0 up";
    for text in [
        r#"{"x":256}"#,
        r#"{"x":1.0}"#,
        r#"{"x":1e999}"#,
        r#"{"x":-0}"#,
    ] {
        assert_eq!(
            parse(text),
            Err(Kind::WrongType {
                member: "x",
                expected
            }),
            "{text}"
        );
    }
    assert_eq!(parse(r#"{"x":null}"#), Err(Kind::MissingMember("x")));
}

#[test]
fn limits_apply_to_parsed_values_only() {
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let limits = Limits::default();
    assert_eq!(
        json::parse::<Value>(&deep, &limits).unwrap_err().kind(),
        Kind::TooDeep { max: 127 }
    );
    assert_eq!(json::parse::<Json>(&deep, &limits).unwrap().get(), deep);
    let frame = format!(r#"{{"x":{deep},"event":"done"}}"#);
    assert_eq!(decode::<Step>(&frame), Ok(Step::Done));
    let limits = Limits {
        max_items: 2,
        max_depth: 1,
        max_message_bytes: 7,
        ..limits
    };
    let parse = |text| json::parse::<Vec<Json>>(text, &limits).map_err(|it| it.kind());
    assert!(parse("[1,[[]]]").is_ok());
    assert_eq!(parse("[1,2,3]"), Err(Kind::TooManyItems { max: 2 }));
    let read = json::decode::<Step>(r#"{"event":"done"}"#, &limits).unwrap_err();
    assert_eq!(read.kind(), Kind::TooLarge { size: 16, max: 7 });
}

#[test]
fn numeric_ids_and_lone_surrogates_are_accepted() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Loose {
        #[serde(deserialize_with = "lenient::id")]
        id: Str,
        text: Option<Str>,
        #[serde(default, deserialize_with = "lenient::present")]
        result: Option<Json>,
    }
    let text = r#"{"id":1.50,"text":"a\ud83d","result":null}"#;
    let read: Loose = json::decode_js(text, &Limits::default()).unwrap();
    assert_eq!(
        (&*read.id, read.text.as_deref()),
        ("1.50", Some("a\u{fffd}"))
    );
    assert_eq!(read.result, Some(Json::NULL));
    let read: Loose = decode(r#"{"id":"x"}"#).unwrap();
    assert_eq!((&*read.id, read.text, read.result), ("x", None, None));
    let id: Loose = serde_json::from_str(r#"{"id":7}"#).unwrap();
    assert_eq!(&*id.id, "7");
}

#[test]
fn a_common_member_can_have_its_own_reader() {
    tagged! {
        /// With a member of another form.
        #[derive(Clone, Debug, PartialEq)]
        struct Loose {
            "id" => id: Str as lenient::id,
            .. => step: Option<Step>,
            "result" => result: Option<Json> as lenient::present,
        }
    }
    let loose: Loose = again(r#"{"id":7,"result":null}"#);
    assert_eq!((&*loose.id, loose.result), ("7", Some(Json::NULL)));
    let loose: Loose = again(r#"{"event":"done","id":"x"}"#);
    assert_eq!((&*loose.id, loose.result), ("x", None));
    assert_eq!(
        error::<Loose>("{}"),
        (Kind::MissingMember("id"), Vec::new())
    );
}

#[test]
fn the_raw_text_is_kept_for_unknown_types() {
    let read = |text| {
        let keep = |step: &Step| matches!(step, Step::Unknown { .. });
        json::decode_keeping(text, &Limits::default(), keep).map(|(_, whole)| whole)
    };
    let unknown = r#"{"event":"later", "x": [1.50]}"#;
    assert_eq!(
        read(" {\"event\":\"later\", \"x\": [1.50]}\n"),
        Ok(Json::new(unknown).ok())
    );
    assert_eq!(read(r#"{"event":"done","x":1}"#), Ok(None));
    assert!(read(r#"{"event":"later","x":[}"#).is_err());
}

#[test]
fn a_mistyped_member_does_not_fail_a_loose_frame() {
    use json::LooseStr::{Bool, Other, Str};
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    for (text, loose) in [
        (r#""a\n""#, Str("a\n".into())),
        ("true", Bool(true)),
        ("1e999", Other),
        (r#"{"a":[]}"#, Other),
        (&*deep, Other),
    ] {
        assert_eq!(json::parse(text, &Limits::default()), Ok(loose), "{text}");
    }
    assert!(json::parse::<json::LooseStr>("tru", &Limits::default()).is_err());
    let read: json::LooseStr = serde_json::from_str(r#"{"a":[]}"#).unwrap();
    assert_eq!(read, Other);
    assert_eq!(serde_json::to_string(&Bool(true)).unwrap(), "true");
}

proptest! {
    #[test]
    fn decoding_agrees_with_serde_json(text in "[\\[\\]{}:, 0-9a-f\"\\\\.\\-+enulltrs]{0,40}") {
        let theirs = serde_json::from_str::<Value>(&text).ok();
        let ours = json::parse::<Value>(&text, &Limits::default()).ok();
        prop_assert_eq!(&ours, &theirs);
        let raw = Json::new(&text).ok();
        if theirs.is_some() {
            prop_assert_eq!(raw.as_ref().map(Json::get), Some(text.trim()));
        }
    }
}

tagged! {
    /// With content of one member, and with content that need not be known.
    #[derive(Clone, Debug, PartialEq)]
    enum Part by "kind" {
        "text" => Text(Str) in "text",
        "old" => Old(Option<u8>) in #[serde(default, deserialize_with = "small")] "n",
        "mark" => Mark(Mark) or Unknown,
        "end" => End,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Mark {
    line: Inner,
}

fn small<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    lenient::Only::<b'0', u8>::deserialize(from).map(|lenient::Only(n)| n)
}

#[test]
fn content_of_one_member_needs_no_type() {
    for (text, part) in [
        (r#"{"kind":"text","text":"a"}"#, Part::Text("a".into())),
        (
            r#"{"x":[],"text":"a","kind":"text"}"#,
            Part::Text("a".into()),
        ),
        (r#"{"kind":"old","n":7}"#, Part::Old(Some(7))),
        (r#"{"kind":"old","n":"7"}"#, Part::Old(None)),
        (r#"{"kind":"old"}"#, Part::Old(None)),
        (r#"{"kind":"end","text":1}"#, Part::End),
    ] {
        assert_eq!(again::<Part>(text), part, "{text}");
    }
    let kind = Kind::MissingMember("text");
    assert_eq!(error::<Part>(r#"{"kind":"text"}"#), (kind, vec![]));
}

#[test]
fn undecodable_content_can_become_unknown() {
    let read = r#"{"kind":"mark","line":{"step":{"event":"done"},"list":["a"]}}"#;
    assert!(matches!(again::<Part>(read), Part::Mark(_)));
    for text in [
        r#"{"kind":"mark"}"#,
        r#"{"line":{"step":{"event":"text"},"list":[]},"kind":"mark","x":1}"#,
        r#"{"kind":"mark","line":{"step":{"event":"done"},"list":["a",{"b":7}]},"x":[{}]}"#,
    ] {
        let part: Part = decode(text).unwrap();
        let raw = Json::new(text).unwrap();
        assert_eq!(part.tag(), "mark");
        let tag = "mark".into();
        assert_eq!(part, Part::Unknown { tag, raw });
        assert_eq!(serde_json::to_string(&part).unwrap(), text);
    }
    let text = r#"{"kind":"mark","line":7,"x":[}"#;
    assert!(decode::<Part>(text).is_err(), "it is no JSON");
    // What follows is read as before, also its depth.
    let many = vec![r#"{"kind":"mark","line":{"step":{"event":1}}}"#; 1_000].join(",");
    let parts: Vec<Part> = json::parse(&format!("[{many}]"), &Limits::default()).unwrap();
    assert_eq!(parts.len(), 1_000);
}

#[test]
fn json_accepted_by_javascript_is_accepted() {
    let js = |text| json::decode_js::<Frame>(text, &Limits::default());
    let frame = js(
        r#"{"id":null,"type":"end","id":"1","type":"step","id":"2\ud83d","x":1,"x":2,"list":[],"list":["a"],"step":{"event":"text","event":"done"}}"#,
    );
    let (step, list) = (Step::Done, vec!["a".into()]);
    let frame = frame.unwrap();
    assert_eq!(frame.id, "2\u{fffd}");
    assert_eq!(frame.kind, Kind2::Step(Box::new(Inner { step, list })));
    let text = r#"{"id":"1","x":[1, 2],"id":"2","type":"later","x":1}"#;
    let frame = js(text).unwrap();
    assert_eq!((&*frame.id, frame.kind.tag()), ("2", "later"));
    assert_eq!(serde_json::to_string(&frame).unwrap(), text);
    for text in [
        r#"{"id":"1","type":"end","id":null}"#,
        r#"{"id":"1","type":"end","id":7}"#,
        r#"{"id":"1","type":"end","id":"2""#,
        "[]",
    ] {
        assert!(js(text).is_err(), "{text}");
    }
    let wrong = js(r#"{"id":"1","type":"end","id":7}"#).unwrap_err();
    assert_eq!((wrong.column(), wrong.path()), (29, &["id"][..]));
}

#[test]
fn unknown_members_are_passed_on() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(remote = "Self")]
    struct Open {
        code: Str,
        #[serde(flatten, skip_deserializing)]
        extra: std::collections::BTreeMap<Str, Json>,
    }
    impl<'de> Deserialize<'de> for Open {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let mut extra = std::collections::BTreeMap::new();
            let keep = |name: &str, value| drop(extra.insert(name.into(), value));
            let read = Self::deserialize(json::open(from, keep))?;
            Ok(Self { extra, ..read })
        }
    }
    for text in [r#"{"x":1.50,"code":"E","y":[1, 2]}"#, r#"{"code":"E"}"#] {
        let ours = decode::<Open>(text).unwrap();
        let theirs: Open = serde_json::from_str(text).unwrap();
        assert_eq!((ours.code, &ours.extra), (Str::from("E"), &theirs.extra));
        assert_eq!(ours.extra.len(), text.matches(':').count() - 1);
    }
    let expected = "a string";
    let member = "code";
    let kind = Kind::WrongType { member, expected };
    assert_eq!(error::<Open>(r#"{"x":{},"code":7}"#), (kind, vec!["code"]));
    assert_eq!(error::<Open>("{}").0, Kind::MissingMember("code"));
}

#[test]
fn values_are_visited_by_their_json_type() {
    type Text = lenient::Only<b'"', Str>;
    let list = r#"["a",7,-1.5,1e999,null,true,{"b":{}},["c"],"d\ud83d"]"#;
    let limits = Limits::default();
    let mut reader = json::Deserializer::new(list, &limits);
    let read = Vec::<Text>::deserialize(&mut reader).unwrap();
    let texts: Vec<_> = read.iter().filter_map(|it| it.0.as_deref()).collect();
    assert_eq!((read.len(), texts), (9, vec!["a", "d\u{fffd}"]));
    let numbers: Vec<lenient::Only<b'0', f64>> = serde_json::from_str("[1,-2,\"x\"]").unwrap();
    let numbers: Vec<_> = numbers.iter().filter_map(|it| it.0).collect();
    assert_eq!(numbers, [1.0, -2.0]);
}
