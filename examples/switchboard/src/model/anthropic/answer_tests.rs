//! Answers as Anthropic sends them, and some that it should not send.

use proptest::prelude::*;

use super::*;
use crate::model::answer::testing::{self, joined};
use crate::model::provider::Provider;
use crate::model::{Delta, Finish, Usage};

const STREAM: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":20,"output_tokens":1,"service_tier":"standard"}}}"#,
    "\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
    "\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"gr\u00fcß "}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"dich 👋"}}"#,
    "\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\":1}"}}"#,
    "\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"dice","input":{}}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"dice\": \"2"}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"d6ß\"}"}}"#,
    "\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n",
    "event: later_days\ndata: {\"type\":\"later_days\",\"index\":\"none\"}\n\n",
    "event: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42}}"#,
    "\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn decode(answer: &[u8], size: usize) -> (Vec<Delta>, Result<(), ModelError>) {
    testing::read(Provider::Anthropic, answer, size)
}

fn usage(prompt: u64, completion: u64) -> Delta {
    Delta::Usage(Usage { prompt, completion })
}

#[test]
fn an_answer_is_read_whole_and_in_order() {
    let (deltas, outcome) = decode(STREAM.as_bytes(), usize::MAX);
    assert_eq!(outcome, Ok(()));
    let call = |id: Option<&str>, name: Option<&str>, arguments: &str| {
        Delta::ToolCall(CallPiece {
            index: Some(3),
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            arguments: arguments.to_owned(),
            ..CallPiece::default()
        })
    };
    let expected = [
        // The bill is known before the first word.
        usage(33, 1),
        Delta::Thought("hm".to_owned()),
        Delta::Text("grüß ".to_owned()),
        Delta::Text("dich 👋".to_owned()),
        call(Some("toolu_1"), Some("dice"), ""),
        call(None, None, "{\"dice\": \"2"),
        call(None, None, "d6ß\"}"),
        usage(33, 42),
        Delta::Finish(Finish::ToolCalls),
    ];
    let answer = joined(&deltas);
    let is_told = |delta: &Delta| !matches!(delta, Delta::Extra(..));
    assert_eq!(
        deltas.into_iter().filter(is_told).collect::<Vec<_>>(),
        expected
    );
    let last = Usage {
        prompt: 33,
        completion: 42,
    };
    assert_eq!(answer.usage(), Some(last));
    let call = &answer.into_message().tool_calls[0];
    assert_eq!((&*call.id, &*call.name), ("toolu_1", "dice"));
    assert_eq!(call.arguments, "{\"dice\": \"2d6ß\"}");
}

#[test]
fn the_finish_reason_completes_an_answer() {
    let delta = STREAM.find("\"message_delta\",\"delta\"").unwrap();
    let end = delta + STREAM[delta..].find("}}").unwrap() + 2;
    for cut in 0..end {
        let (_, outcome) = decode(&STREAM.as_bytes()[..cut], usize::MAX);
        assert_eq!(outcome, Err(ModelError::Cut), "{cut}");
    }
    let (deltas, outcome) = decode(&STREAM.as_bytes()[..end], usize::MAX);
    assert_eq!(outcome, Ok(()));
    assert_eq!(deltas.last(), Some(&Delta::Finish(Finish::ToolCalls)));
}

#[test]
fn an_endless_answer_is_an_error() {
    let max = 1024 * 1024;
    for (endless, error) in [
        (": comment\n", ModelError::TooLarge { max: 16 * max }),
        ("data: x", ModelError::TooLarge { max }),
    ] {
        let endless = endless.repeat(16 * max / endless.len() + 2);
        let (_, outcome) = decode(endless.as_bytes(), 8192);
        assert_eq!(outcome, Err(error));
    }
}

proptest! {
    #[test]
    fn deltas_do_not_depend_on_the_cuts(
        places in prop::collection::vec(0usize..10_000, 0..16),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let stream = STREAM.replace('\n', end);
        let (expected, _) = decode(STREAM.as_bytes(), usize::MAX);
        let chunks = testing::cut(stream.as_bytes(), &places);
        prop_assert_eq!(testing::read_chunks(Provider::Anthropic, chunks), (expected, Ok(())));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..40) {
        let _ = decode(&bytes, size);
    }

    #[test]
    fn changed_bytes_do_not_panic(at in 0usize..10_000, byte: u8) {
        let mut bytes = STREAM.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = decode(&bytes, 100);
    }
}

#[test]
fn blocks_that_only_the_provider_knows_go_back_in_their_places() {
    let events = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ha"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ha"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"t","input":{},"caller":{"x":1}}}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"D"}}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"t","input":{"a":1}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let stream: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let (deltas, outcome) = testing::read(Provider::Anthropic, stream.as_bytes(), 50);
    assert_eq!(outcome, Ok(()));
    let config = ModelConfig::new(Provider::Anthropic, "m");
    let mut answer = joined(&deltas).into_message();
    let results = ["toolu_1", "toolu_2"].map(|id| ChatMessage::tool(id, "1"));
    for (origin, is_own) in [(origin(&config), true), ("another".to_owned(), false)] {
        crate::model::extra::sign(&mut answer, &origin);
        let said = [
            vec![ChatMessage::user("hi"), answer.clone()],
            results.to_vec(),
        ]
        .concat();
        let request = ChatRequest::new(said.iter().collect());
        let body = request_body(&config, &request).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let content = &body["messages"][1]["content"];
        let mut second = json!({"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}});
        if is_own {
            second["caller"] = json!({ "x": 1 });
        }
        let expected = [
            is_own.then(|| json!({"type": "thinking", "thinking": "haha", "signature": "S"})),
            Some(text("I look.")),
            Some(second),
            is_own.then(|| json!({"type": "redacted_thinking", "data": "D"})),
            Some(json!({"type": "tool_use", "id": "toolu_2", "name": "t", "input": {"a": 1}})),
        ];
        assert_eq!(*content, expected.into_iter().flatten().collect::<Value>());
    }
}
