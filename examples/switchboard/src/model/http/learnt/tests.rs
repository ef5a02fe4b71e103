//! What is learnt of refusals, and what is asked after them.

use super::*;

const BODY: &str = r#"{"model":"m","max_tokens":5,"temperature":1,"stream":true,"stream_options":{"include_usage":true},
    "messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]},
    {"role":"assistant","reasoning_content":"hm","tool_calls":[{"id":"c","extra_content":{"g":1},
    "function":{"name":"f","arguments":"{\"cache_control\":1}"}}]}],
    "tools":[{"function":{"name":"f","parameters":{"z":{},"cache_control":{},"a":{}}}}],"tool_choice":"auto"}"#;

fn query(body: &str) -> Query {
    Query {
        body: Bytes::copy_from_slice(body.as_bytes()),
        in_words: None,
        model: String::new(),
        tools: Vec::new(),
    }
}

fn learn(refusal: &str) -> Option<(String, Option<String>)> {
    Learnt::default().learn(&query(BODY), &Report::read(refusal))
}

#[test]
fn a_refusal_names_a_member_of_the_request_in_any_words() {
    for (member, refusals) in [
        (
            "temperature",
            &[
                r#"{"error":{"message":"Unsupported parameter: 'temperature'","param":"temperature"}}"#,
                "temperature does not support 1 with this model",
            ][..],
        ),
        (
            "reasoning_content",
            &[r#"{"error":{"message":"no","param":"messages.[1].reasoning_content"}}"#],
        ),
        (
            "stream_options",
            &[
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
                r#"{"error":{"message":"Invalid JSON payload received. Unknown name \"stream_options\": Cannot find field."}}"#,
                "Unrecognized request argument supplied: stream_options",
            ],
        ),
        (
            "extra_content",
            &[
                r#"{"detail":[{"loc":["body","messages",1,"extra_content"],"msg":"Extra inputs are not permitted"}]}"#,
            ],
        ),
        (
            "cache_control",
            &[
                r#"{"error":{"message":"messages.0.content.0.cache_control: Extra inputs are not permitted"}}"#,
            ],
        ),
        (
            "max_tokens",
            &[
                "max_tokens is too large: 5. This model supports at most 4 completion tokens",
                "max_tokens: 5 > 4, which is the maximum allowed number of output tokens",
                "Invalid max_tokens value, the valid range of max_tokens is [1, 4]",
                "This request requires more credits, or fewer max_tokens. You requested up to 5 tokens, but can only afford 4.",
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            ],
        ),
        (
            "tools",
            &[
                "registry.ollama.ai/library/gemma3:4b does not support tools",
                "No endpoints found that support tool use. To learn more, visit: https://h/docs",
                "toy does not support Function Calling",
                "\"auto\" tool choice requires --enable-auto-tool-choice to be set",
                "tools param requires --jinja flag",
                "toy is not able to use tools",
                "function calling is not implemented for this model",
                "This model doesn't support tool use in streaming mode.",
            ],
        ),
        ("tool_choice", &["`tool_choice` is not supported"]),
        (
            "stream",
            &["this model does not support streaming with a stream"],
        ),
    ] {
        for refusal in refusals {
            let learnt = learn(refusal).map(|it| it.0);
            assert_eq!(learnt.as_deref(), Some(member), "{refusal}");
        }
    }
}

#[test]
fn other_refusals_name_none() {
    for refusal in [
        "Missing `reasoning_content` field in the assistant message",
        "The reasoning_content in the thinking mode must be passed back to the API.",
        "messages[].tool_calls[].function.name does not match the pattern: 'a b'",
        "Invalid 'messages[1].content': string too long",
        "Failed to call a function. Please adjust your prompt.",
        "No endpoints found matching your data policy.",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the functions)",
        "The model `x` does not exist",
        "tools.0.custom.input_schema: Field required",
        "Conversation roles must alternate user/assistant",
        "no such thing as top_k",
        "",
    ] {
        assert_eq!(learn(refusal), None, "{refusal}");
    }
}

#[test]
fn a_refused_member_is_left_out_or_gets_the_name_that_is_proposed() {
    let body = query(BODY);
    let mut learnt = Learnt::default();
    assert_eq!(learnt.apply(&body), body.body);
    for refusal in [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "does not support tools",
        "cache_control: Extra inputs are not permitted",
    ] {
        learnt.learn(&body, &Report::read(refusal)).unwrap();
    }
    let sent: Value = serde_json::from_slice(&learnt.apply(&body)).unwrap();
    let kept = [
        "max_completion_tokens",
        "messages",
        "model",
        "stream",
        "stream_options",
        "temperature",
    ];
    assert!(sent.as_object().unwrap().keys().eq(kept), "{sent}");
    assert_eq!(sent["max_completion_tokens"], 5);
    assert_eq!(
        sent["messages"][0]["content"][0],
        serde_json::json!({"type": "text", "text": "a"})
    );
    let again = learnt.learn(
        &body,
        &Report::read("max_completion_tokens is not supported"),
    );
    assert_eq!(again, Some(("max_completion_tokens".to_owned(), None)));
    assert!(!learnt.apply(&body).windows(4).any(|part| part == b"max_"));
    // It is left out already.
    assert_eq!(
        learnt.learn(&body, &Report::read("does not support tools")),
        None
    );
}

#[test]
fn a_block_of_a_refused_kind_goes_as_a_whole() {
    let body = r#"{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},
        {"type":"text","text":"a"}]}]}"#;
    let body = query(body);
    for refusal in [
        "messages.0.content.0.thinking: Extra inputs are not permitted",
        "messages.0.content.0: Invalid `signature` in `thinking` block",
    ] {
        let mut learnt = Learnt::default();
        learnt.learn(&body, &Report::read(refusal)).unwrap();
        let sent: Value = serde_json::from_slice(&learnt.apply(&body)).unwrap();
        let left = serde_json::json!([{"type": "text", "text": "a"}]);
        assert_eq!(sent["messages"][0]["content"], left);
    }
}

#[test]
fn a_number_that_is_too_large_becomes_the_largest_that_is_named() {
    for (refusal, most) in [
        (
            "max_tokens: 5 > 4, which is the maximum allowed number of output tokens for m-3",
            Some(4),
        ),
        (
            "Invalid max_tokens value, the valid range of max_tokens is [1, 3]",
            Some(3),
        ),
        (
            "fewer max_tokens: you requested up to 5 tokens, but can only afford 2",
            Some(2),
        ),
        ("max_tokens is too large: 5 > 8192 - 8190", None),
    ] {
        let mut learnt = Learnt::default();
        learnt.learn(&query(BODY), &Report::read(refusal)).unwrap();
        let sent: Value = serde_json::from_slice(&learnt.apply(&query(BODY))).unwrap();
        assert_eq!(sent["max_tokens"].as_u64(), most, "{refusal}");
    }
}

#[test]
fn what_is_not_taken_is_written_in_another_way() {
    let image = r#"{"type":"image_url","image_url":{"url":"data:,"}}"#;
    let of_user =
        |content: &str| format!(r#"{{"messages":[{{"content":{content},"role":"user"}}]}}"#);
    let text = r#"{"type":"text","text":"a"}"#;
    let with_image = of_user(&format!("[{text},{image}]"));
    let without_image = of_user(&format!(r#""a\n{NOT_SHOWN}""#));
    let ollama = r#"{"messages":[{"content":"a","images":["aa"],"role":"user"}]}"#;
    let with_result = format!(
        r#"{{"messages":[{{"content":[{{"type":"tool_result","content":"r"}},{image}],"role":"user"}}]}}"#
    );
    let without_result = with_result.replace(
        image,
        &json!({ "type": "text", "text": NOT_SHOWN }).to_string(),
    );
    let system = |question: &str| {
        format!(r#"{{"messages":[{{"content":"s","role":"system"}},{question}]}}"#)
    };
    let (empty, filled) = (r#""""#, r#""(no text)""#);
    let tool =
        r#"{"tools":[{"function":{"name":"f","parameters":{"properties":{},"type":"object"}}}]}"#;
    for (refusals, before, after) in [
        (
            &[
                "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
                "No endpoints found that support image input",
                "messages[1]: unknown variant `image_url`, expected `text` at line 1 column 300",
                "messages[1].content must be a string",
                "m is not a multimodal model",
                "Invalid content type. image_url is only supported by certain models.",
            ][..],
            with_image.clone(),
            without_image,
        ),
        (
            &["this model is missing data required for image input"],
            ollama.to_owned(),
            of_user(r#""a""#),
        ),
        (&["this model has no vision"], with_result, without_result),
        (
            &[
                "System role not supported",
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            ],
            system(r#"{"content":"a","role":"user"}"#),
            of_user(r#""s\n\na""#),
        ),
        (
            &["system messages are not supported"],
            system(&format!(r#"{{"content":[{text}],"role":"user"}}"#)),
            of_user(&format!(
                r#"[{},{}]"#,
                json!({"type": "text", "text": "s"}),
                json!({"type": "text", "text": "a"})
            )),
        ),
        (
            &[
                "messages[1]:content cannot be empty",
                "messages: text content blocks must be non-empty",
                "message at position 1 must not be empty",
            ],
            of_user(empty),
            of_user(filled),
        ),
        (
            &[
                "function_declarations[0].parameters.properties: should be non-empty for OBJECT type",
            ],
            tool.to_owned(),
            r#"{"tools":[{"function":{"name":"f"}}]}"#.to_owned(),
        ),
    ] {
        for refusal in refusals {
            let query = query(&before);
            let mut learnt = Learnt::default();
            assert!(
                learnt.learn(&query, &Report::read(refusal)).is_some(),
                "{refusal}"
            );
            let sent: Value = serde_json::from_slice(&learnt.apply(&query)).unwrap();
            assert_eq!(
                sent,
                serde_json::from_str::<Value>(&after).unwrap(),
                "{refusal}"
            );
            assert_eq!(
                learnt.learn(&query, &Report::read(refusal)),
                None,
                "{refusal}"
            );
        }
    }
    for refusal in [
        "The image data you provided does not represent a valid image: use one of these formats",
        "image exceeds 5 MB maximum",
        "unable to download the image",
    ] {
        let query = query(&with_image);
        assert_eq!(
            Learnt::default().learn(&query, &Report::read(refusal)),
            None,
            "{refusal}"
        );
    }
}

#[test]
fn the_schema_of_a_tool_is_not_touched() {
    let body = query(BODY);
    let mut learnt = Learnt::default();
    learnt
        .learn(&body, &Report::read("cache_control is not permitted"))
        .unwrap();
    let sent = String::from_utf8(learnt.apply(&body).to_vec()).unwrap();
    assert!(
        sent.contains(r#""parameters":{"z":{},"cache_control":{},"a":{}}"#),
        "{sent}"
    );
    assert!(
        sent.contains(r#""arguments":"{\"cache_control\":1}""#),
        "{sent}"
    );
}

#[test]
fn calls_are_told_in_words_once_something_is_missing_with_them() {
    let mut query = query(BODY);
    query.in_words = Some(Bytes::from_static(b"{\"messages\":[]}"));
    for says in [
        "Function call is missing a thought_signature in functionCall parts.",
        "a function call in the history has no thought_signature",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ] {
        let mut learnt = Learnt::default();
        let report = Report::read(says);
        let member = learnt.learn(&query, &report).map(|it| it.0);
        assert_eq!(member.as_deref(), Some(CALLS), "{says}");
        let sent = String::from_utf8(learnt.apply(&query).to_vec()).unwrap();
        assert!(!sent.contains("reasoning_content"), "{sent}");
        assert_eq!(learnt.learn(&query, &report), None, "{says}");
    }
}
