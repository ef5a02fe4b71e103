//! Answers as OpenAI's interface sends them, and some that it should not send.

use proptest::prelude::*;
use serde_json::{Value, json};

use snek_proto::llm::chat::ChatMessage;

use super::request_body;
use crate::model::answer::testing::{self, joined};
use crate::model::config::ModelConfig;
use crate::model::extra::{origin, sign};
use crate::model::provider::Provider;
use crate::model::{ChatRequest, Delta, Finish, ModelError, Notice};

pub(super) fn decode(answer: &[u8], size: usize) -> (Vec<Delta>, Result<(), ModelError>) {
    testing::read(Provider::OpenAi, answer, size)
}

pub(super) fn text(deltas: &[Delta]) -> String {
    joined(deltas).text().to_owned()
}

const STREAM: &str = concat!(
    ": keep-alive\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
    "\r\n\r\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"gr\u00fcß dich 👋"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"dice","arguments":""}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"dice\": \"2"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"d6ß\"}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}"#,
    "\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn a_message_that_repeats_its_pieces_is_not_said_twice() {
    let stream = concat!(
        r#"data: {"choices":[{"delta":{"role":"assistant","content":"hello ","tool_calls":[]}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{"content":"world"},"message":{"content":"hello world"}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{},"message":{"content":"hello world","tool_calls":[{"id":"c1","function":{"name":"time","arguments":"{}"}}]},"finish_reason":"stop"}]}"#,
        "\n\n",
    );
    let (deltas, outcome) = decode(stream.as_bytes(), 7);
    assert_eq!(outcome, Ok(()));
    let message = joined(&deltas).into_message();
    assert_eq!(message.content.text(), "hello world");
    // What came in no piece is not lost.
    assert_eq!(message.tool_calls.len(), 1);
}

#[test]
fn an_answer_of_another_provider_is_not_an_empty_one() {
    for provider in [Provider::Anthropic, Provider::OpenAi] {
        let (_, outcome) = match provider {
            Provider::Anthropic => testing::read(provider, STREAM.as_bytes(), 100),
            _ => testing::read(
                provider,
                b"data: {\"type\":\"message_start\"}\n\ndata: [DONE]\n\n",
                9,
            ),
        };
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("there is no answer in it"), "{error}");
    }
}

#[test]
fn thoughts_are_separated_from_the_answer() {
    for name in ["reasoning_content", "reasoning"] {
        let delta = format!(r#"{{"{name}":"hm","content":"yes"}}"#);
        let stream =
            format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":\"stop\"}}]}}\n\n");
        let (deltas, outcome) = decode(stream.as_bytes(), 7);
        assert_eq!((text(&deltas).as_str(), outcome), ("yes", Ok(())));
        assert_eq!(deltas.first(), Some(&Delta::Thought("hm".to_owned())));
    }
}

#[test]
fn an_answer_is_the_same_in_any_chunking() {
    for size in 1..STREAM.len() {
        let (deltas, outcome) = decode(STREAM.as_bytes(), size);
        assert_eq!(outcome, Ok(()), "{size}");
        let assembler = joined(&deltas);
        assert_eq!(assembler.usage().map(|usage| usage.prompt), Some(7));
        assert_eq!(assembler.finish(), Some(&Finish::ToolCalls));
        let message = assembler.into_message();
        let call = &message.tool_calls[0];
        assert_eq!((&*call.id, &*call.name), ("c1", "dice"));
        assert_eq!(call.arguments, "{\"dice\": \"2d6ß\"}");
        assert_eq!(text(&deltas), "grüß dich 👋");
    }
}

#[test]
fn every_cut_before_the_finish_reason_is_noticed() {
    let finish = STREAM.find("\"tool_calls\"}]}").unwrap();
    for end in 0..finish {
        let (_, outcome) = decode(&STREAM.as_bytes()[..end], usize::MAX);
        assert_eq!(outcome, Err(ModelError::Cut), "{end}");
    }
    for end in finish + "\"tool_calls\"}]}".len()..STREAM.len() {
        let (_, outcome) = decode(&STREAM.as_bytes()[..end], usize::MAX);
        assert_eq!(outcome, Ok(()), "{end}");
    }
}

#[test]
fn an_end_mark_without_a_finish_reason_ends_the_answer() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n";
    let (deltas, outcome) = decode(stream.as_bytes(), 5);
    assert_eq!((text(&deltas).as_str(), outcome), ("a", Ok(())));
}

#[test]
fn an_answer_without_a_stream_is_read_whole() {
    let body = r#" {"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"hi"}],
        "tool_calls":[{"id":"x","function":{"name":"time","arguments":{"a": 1}}}]},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":1,"completion_tokens":null}}"#;
    let (deltas, outcome) = decode(body.as_bytes(), 3);
    assert_eq!((text(&deltas).as_str(), outcome), ("hi", Ok(())));
    let call = deltas.iter().find_map(|delta| match delta {
        Delta::ToolCall(call) => Some(call.arguments.clone()),
        _ => None,
    });
    assert_eq!(call.as_deref(), Some(r#"{"a":1}"#));
    let (_, outcome) = decode(&body.as_bytes()[..40], 3);
    assert_eq!(outcome, Err(ModelError::Cut));
    let (_, outcome) = decode(b"{\"answer\":1}", 3);
    assert!(
        matches!(outcome, Err(ModelError::BadAnswer { .. })),
        "{outcome:?}"
    );
}

#[test]
fn an_error_in_the_stream_keeps_the_partial_answer_and_the_providers_words() {
    for (error, words) in [
        (
            r#"{"error":{"message":"overloaded","code":529}}"#,
            "overloaded",
        ),
        (r#"{"error":"overloaded"}"#, "overloaded"),
        (r#"{"error":{"code":7},"choices":[]}"#, ""),
    ] {
        let stream = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"so far\"}}}}]}}\n\ndata: {error}\n\n"
        );
        let (deltas, outcome) = decode(stream.as_bytes(), 7);
        assert_eq!(text(&deltas), "so far");
        let message = words.to_owned();
        assert_eq!(outcome, Err(ModelError::broken(message)));
    }
}

#[test]
fn rejects_garbage_and_endless_input() {
    for garbage in [
        "data: hello\n\n",
        "data: {\"choices\":7}\n\n",
        "[1, 2]",
        "{\"choices\":[]}",
    ] {
        let (_, outcome) = decode(garbage.as_bytes(), 2);
        assert!(
            matches!(outcome, Err(ModelError::BadAnswer { .. })),
            "{garbage}: {outcome:?}"
        );
    }
    let (_, outcome) = decode(b" <html>busy</html>", 2);
    assert_eq!(outcome, Err(ModelError::bad("it is a page")));
    for nothing in ["", "\n\n", ": comment\n\n"] {
        let (_, outcome) = decode(nothing.as_bytes(), 2);
        assert_eq!(outcome, Err(ModelError::Cut), "{nothing}");
    }
    let max = 1024 * 1024;
    for (endless, error) in [
        ("data: x", ModelError::TooLarge { max }),
        ("data: \n", ModelError::TooLarge { max }),
        ("{\"a\":\"", ModelError::TooLarge { max }),
        (": x\n\n", ModelError::TooLarge { max: 16 * max }),
    ] {
        let endless = endless.repeat(16 * max / endless.len() + 2);
        let (_, outcome) = decode(endless.as_bytes(), 8192);
        assert_eq!(outcome, Err(error));
    }
}

pub(super) fn said(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n")
}

#[test]
fn an_event_that_cannot_be_read_is_omitted() {
    for bad in [
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\n\n",
        "data: hello\n\n",
        "data: {\"choices\":7}\n\n",
        "data: \u{fffd}\ndata: {}\n\n",
    ] {
        let stream = format!("{bad}{}{bad}{}{bad}data: [DONE]\n\n", said("a"), said("b"));
        let (deltas, outcome) = decode(stream.as_bytes(), usize::MAX);
        assert_eq!((text(&deltas).as_str(), outcome), ("ab", Ok(())));
        let lost = Delta::Notice(Notice::Lost { parts: 3 });
        assert_eq!(deltas.last(), Some(&lost));
        // Nothing else came.
        for end in ["", "data: [DONE]\n\n"] {
            let (_, outcome) = decode(format!("{bad}{end}").as_bytes(), 3);
            let is_bad = matches!(outcome, Err(ModelError::BadAnswer { .. }));
            assert!(is_bad, "{bad}: {outcome:?}");
        }
        // Something did, and no end.
        let (_, outcome) = decode(format!("{bad}{}", said("a")).as_bytes(), 3);
        assert_eq!(outcome, Err(ModelError::Cut));
    }
}

#[test]
fn passes_calls_whatever_the_finish_reason() {
    let call = r#"{"choices":[{"delta":{"content":"","tool_calls":[{"index":0,"id":"c","function":{"name":"time","arguments":"{}"}}]}}]}"#;
    for reason in ["stop", "length", "tool_calls"] {
        let stream = format!(
            "data: {call}\n\ndata: {{\"choices\":[{{\"delta\":{{\"content\":\"\"}},\"finish_reason\":\"{reason}\"}}]}}\n\n"
        );
        let (deltas, outcome) = decode(stream.as_bytes(), 7);
        assert_eq!(outcome, Ok(()));
        let answer = joined(&deltas);
        assert_eq!(answer.finish(), Some(&Finish::from(reason)));
        assert_eq!(answer.into_message().tool_calls.len(), 1);
    }
}

#[test]
fn a_usage_in_every_chunk_counts_once() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    );
    let (deltas, outcome) = decode(stream.as_bytes(), 9);
    assert_eq!(outcome, Ok(()));
    let usage = joined(&deltas).usage().unwrap();
    assert_eq!((usage.prompt, usage.completion), (5, 2));
}

/// The text, the calls and the end of an answer in these chunks.
fn kept(chunks: &[&str]) -> (String, Vec<(String, String)>, Option<Finish>) {
    let stream: String = chunks.iter().map(|it| format!("data: {it}\n\n")).collect();
    let (deltas, outcome) = decode(stream.as_bytes(), 13);
    assert_eq!(outcome, Ok(()), "{stream}");
    let lost = |it: &Delta| matches!(it, Delta::Notice(_));
    assert!(!deltas.iter().any(lost), "{deltas:?}");
    let answer = joined(&deltas);
    let (text, finish) = (answer.text().to_owned(), answer.finish().cloned());
    let calls = answer.into_message().tool_calls.into_iter();
    (
        text,
        calls.map(|it| (it.name, it.arguments)).collect(),
        finish,
    )
}

#[test]
fn ignores_odd_members() {
    for odd in [
        r#""usage":{"prompt_tokens":11.0,"completion_tokens":-35}"#,
        r#""usage":{"prompt_tokens":"11","completion_tokens":1e999}"#,
        r#""usage":[7]"#,
        r#""usage":NaN,"created":-Infinity"#,
        r#""id":7,"model":{},"object":null,"choices2":[{}]"#,
        r#""error":"","type":false"#,
        r#""error":{}"#,
    ] {
        let chunk = format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"NOT "}},"logprobs":NaN}}],{odd}}}"#
        );
        let end = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],{odd}}}"#);
        let first = r#"{"choices":[{"delta":{"content":"Do "}}]}"#;
        let (text, _, finish) = kept(&[first, &chunk, &end]);
        assert_eq!(
            (text.as_str(), finish),
            ("Do NOT ", Some(Finish::Stop)),
            "{odd}"
        );
    }
}

#[test]
fn a_count_is_read_in_any_form_and_left_out_if_it_is_invalid() {
    for (usage, expected) in [
        (
            r#"{"prompt_tokens":11.0,"completion_tokens":"5"}"#,
            Some((11, 5)),
        ),
        (
            r#"{"prompt_tokens":11,"completion_tokens":-35}"#,
            Some((11, 0)),
        ),
        (r#"{"prompt_tokens":1.5,"completion_tokens":null}"#, None),
    ] {
        let end = format!(r#"{{"choices":[{{"finish_reason":"stop"}}],"usage":{usage}}}"#);
        let (deltas, _) = decode(format!("data: {end}\n\n").as_bytes(), 9);
        let usage = joined(&deltas).usage();
        assert_eq!(
            usage.map(|it| (it.prompt, it.completion)),
            expected,
            "{end}"
        );
    }
}

#[test]
fn half_a_character_is_joined_with_the_other_half_or_replaced() {
    let said = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let end = r#"{"choices":[{"finish_reason":"stop"}]}"#;
    for (first, second, text) in [
        (r"cut \ud83d", " after", "cut \u{fffd} after"),
        (r"cut \ud83d", r"\ude00 after", "cut \u{1f600} after"),
    ] {
        assert_eq!(kept(&[&said(first), &said(second), end]).0, text);
        // Some send pieces without text in between.
        let empty = r#"{"choices":[{"delta":{}}]}"#;
        let pieces = [&said(first), &said(""), empty, &said(second), end];
        assert_eq!(kept(&pieces).0, text);
    }
    assert_eq!(
        kept(&[&said(r"cut \ud83d"), &said(""), end]).0,
        "cut \u{fffd}"
    );
    let part = |arguments: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"function":{{"name":"echo","arguments":"{arguments}"}}}}]}}}}]}}"#
        )
    };
    let pieces = [r#"{\"text\": \"\ud83d"#, "", r#"\ude00\"}"#].map(part);
    let arguments = "{\"text\": \"\u{1f600}\"}".to_owned();
    let calls = kept(&[&pieces[0], &pieces[1], &pieces[2], end]).1;
    assert_eq!(calls, [("echo".to_owned(), arguments)]);
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"echo","arguments":"{\"text\": \"cut \\ud83d\"}"}}]},"finish_reason":"tool_calls"}]}"#;
    let arguments = r#"{"text": "cut \ufffd"}"#.to_owned();
    assert_eq!(kept(&[call]).1, [("echo".to_owned(), arguments)]);
}

#[test]
fn skips_a_byte_order_mark() {
    let event = said("a") + "data: [DONE]\n\n";
    let middle = said("") + "\u{feff}" + &event;
    let whole = r#"{"choices":[{"message":{"content":"a"}}]}"#;
    for answer in [&event, &middle, whole] {
        for size in [1, 2, 99] {
            let (deltas, outcome) = decode(format!("\u{feff}{answer}").as_bytes(), size);
            assert_eq!((text(&deltas).as_str(), outcome), ("a", Ok(())));
        }
    }
}

#[test]
fn reads_blocks_of_text_and_of_thoughts() {
    for (blocks, thought, said) in [
        (
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"yes"},{"type":"odd"}]"#,
            "hm",
            "yes",
        ),
        (
            r#"[{"type":"reasoning","text":"hm"},{"type":"text","text":"yes"}]"#,
            "hm",
            "yes",
        ),
        (r#"{"type":"thinking","thinking":"hm"}"#, "hm", ""),
    ] {
        let chunk =
            format!(r#"{{"choices":[{{"delta":{{"content":{blocks}}},"finish_reason":"stop"}}]}}"#);
        let (deltas, _) = decode(format!("data: {chunk}\n\n").as_bytes(), 9);
        assert_eq!(deltas.first(), Some(&Delta::Thought(thought.to_owned())));
        assert_eq!(text(&deltas), said);
    }
}

#[test]
fn reads_the_delta_and_not_the_snapshot_beside_it() {
    let (text, ..) = kept(&[
        r#"{"choices":[{"delta":{"content":"a"},"message":{"content":"a"}}]}"#,
        r#"{"choices":[{"delta":{"content":"b"},"message":{"content":"ab"},"finish_reason":"stop"}]}"#,
        "[done]",
    ]);
    assert_eq!(text, "ab");
}

#[test]
fn a_call_in_both_forms_is_one_call() {
    let call = r#"{"name":"time","arguments":"{}"}"#;
    let both = format!(
        r#"{{"function_call":{call},"tool_calls":[{{"index":0,"id":"a","function":{call}}}]}}"#
    );
    for member in ["delta", "message"] {
        let chunk = format!(r#"{{"choices":[{{"{member}":{both},"finish_reason":"stop"}}]}}"#);
        let (deltas, _) = decode(format!("data: {chunk}\n\n").as_bytes(), 100);
        assert_eq!(
            joined(&deltas).into_message().tool_calls.len(),
            1,
            "{member}"
        );
    }
}

#[test]
fn only_the_first_choice_counts() {
    let (text, _, finish) = kept(&[
        r#"{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!((text.as_str(), finish), ("yes", Some(Finish::Stop)));
}

#[test]
fn a_call_is_read_in_every_form() {
    let end = r#"{"choices":[{"finish_reason":"tool_calls"}]}"#;
    for (pieces, calls) in [
        // The older form.
        (
            &[
                r#"{"function_call":{"name":"echo","arguments":"{\"a\":"}}"#,
                r#"{"function_call":{"arguments":"1}"}}"#,
            ][..],
            &[("echo", "{\"a\":1}")][..],
        ),
        // A placeholder, with no name.
        (
            &[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":"{}"}},{"index":1,"id":"","function":{"name":"","arguments":""}}]}"#,
            ],
            &[("echo", "{}")],
        ),
        // Neither an index nor an id.
        (
            &[
                r#"{"tool_calls":[{"function":{"name":"echo","arguments":"{\"a\":"}}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"1}"}}]}"#,
                r#"{"tool_calls":[{"function":{"name":"echo","arguments":"{}"}}]}"#,
            ],
            &[("echo", "{\"a\":1}"), ("echo", "{}")],
        ),
        // One index for both, and no id.
        (
            &[
                r#"{"tool_calls":[{"index":0,"function":{"name":"echo","arguments":"{}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"name":"echo","arguments":"{\"a\":1}"}}]}"#,
            ],
            &[("echo", "{}"), ("echo", "{\"a\":1}")],
        ),
        // The same call twice.
        (
            &[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":"{}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":"{}"}}]}"#,
            ],
            &[("echo", "{}")],
        ),
        // No list, and no function in it.
        (
            &[r#"{"tool_calls":{"id":"a","name":"echo","arguments":{}}}"#],
            &[("echo", "{}")],
        ),
        // An odd index, and arguments that are not text.
        (
            &[
                r#"{"tool_calls":[{"index":1.0,"id":7,"type":null,"function":{"name":"echo","arguments":{"a":1}}}]}"#,
            ],
            &[("echo", "{\"a\":1}")],
        ),
    ] {
        let chunk = |it: &&str| format!(r#"{{"choices":[{{"delta":{it}}}]}}"#);
        let chunks: Vec<_> = pieces.iter().map(chunk).collect();
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).chain([end]).collect();
        let expected: Vec<_> = calls
            .iter()
            .map(|(name, it)| ((*name).to_owned(), (*it).to_owned()))
            .collect();
        assert_eq!(kept(&chunks).1, expected);
    }
}

proptest! {
    #[test]
    fn deltas_do_not_depend_on_the_cuts(places in prop::collection::vec(0usize..10_000, 0..12), crlf: bool) {
        let stream = if crlf { STREAM.replace("\n\n", "\r\n\r\n").replace("\r\r", "\r") } else { STREAM.to_owned() };
        let stream = stream.as_bytes();
        let (expected, outcome) = decode(STREAM.as_bytes(), usize::MAX);
        prop_assert_eq!(outcome, Ok(()));
        let got = testing::read_chunks(Provider::OpenAi, testing::cut(stream, &places));
        prop_assert_eq!(got, (expected, Ok(())));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..40) {
        let _ = decode(&bytes, size);
    }
}

#[test]
fn members_that_only_the_provider_knows_are_kept_as_they_came() {
    let call = |more: &str| {
        format!(r#"{{"index":0,"id":"a","function":{{"name":"t","arguments":"{{}}"{more}}}"#)
    };
    let delta = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\",\"x\":1}],\"y\":2}\n\n";
    for (deltas, of_message, of_call) in [
        (
            vec![format!(
                r#"{{"tool_calls":[{},"extra_content":{{"google":{{"thought_signature":"S"}}}}}}]}}"#,
                call("")
            )],
            json!({}),
            json!({"extra_content": {"google": {"thought_signature": "S"}}}),
        ),
        (
            vec![
                r#"{"reasoning_content":"I ","reasoning":null,"refusal":null,"annotations":[]}"#
                    .to_owned(),
                r#"{"reasoning_content":"think"}"#.to_owned(),
                format!(r#"{{"tool_calls":[{}}}]}}"#, call(r#","fields":{"s":"S"}"#)),
            ],
            json!({"reasoning_content": "I think"}),
            json!({"function": {"fields": {"s": "S"}}}),
        ),
        (
            vec![r#"{"function_call":{"name":"t","arguments":"{}"},"z":true}"#.to_owned()],
            json!({"z": true}),
            json!({}),
        ),
    ] {
        let stream: String = deltas
            .iter()
            .map(|it| delta(it))
            .chain([end.to_owned()])
            .collect();
        let (deltas, outcome) = testing::read(Provider::OpenAi, stream.as_bytes(), 64);
        assert_eq!(outcome, Ok(()));
        let message = joined(&deltas).into_message();
        assert_eq!(message.tool_calls.len(), 1, "{deltas:?}");
        assert_eq!(Value::from(message.extra), of_message);
        assert_eq!(Value::from(message.tool_calls[0].extra.clone()), of_call);
    }
}

#[test]
fn thoughts_in_content_go_back_as_they_came() {
    let thought =
        |text: &str| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
    let text = json!({"type": "text", "text": "I look."});
    let contents = [
        thought("I should "),
        thought("look."),
        text.clone(),
        thought("Done."),
    ];
    let chunks = contents.map(|block| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"content": [block]}}]})
        )
    });
    let stream = chunks.concat() + "data: [DONE]\n\n";
    let (deltas, outcome) = decode(stream.as_bytes(), 64);
    assert_eq!(outcome, Ok(()));
    let mut answer = joined(&deltas).into_message();
    assert_eq!(answer.content.text(), "I look.");
    let config = ModelConfig::new(Provider::OpenAi, "m");
    sign(&mut answer, &origin(&config));
    let question = ChatMessage::user("hi");
    let request = ChatRequest::new(vec![&question, &answer]);
    let body: Value = serde_json::from_slice(&request_body(&config, &request).unwrap()).unwrap();
    let mut first = thought("I should ");
    let more = json!({"type": "text", "text": "look."});
    first["thinking"].as_array_mut().unwrap().push(more);
    assert_eq!(
        body["messages"][1]["content"],
        json!([first, text, thought("Done.")])
    );
}
