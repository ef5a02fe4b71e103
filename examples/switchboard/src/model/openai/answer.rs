//! [`Chunks`]: the format of OpenAI's answers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::answer::{Dialect, Pieces};
use crate::model::think::Think;
use crate::model::{CallPiece, Finish, ModelError, Usage};

/// OpenAI's chunks. The finish reason completes an answer; the end mark `[DONE]` may be missing
/// then, and replaces a missing reason. Calls are passed on whatever the reason is.
///
/// Text between `<think>` and `</think>`, as in the output of many local servers, is a thought and
/// not part of the answer.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    think: Think,
}

impl Dialect for Chunks {
    fn event(
        &mut self,
        _name: Option<&str>,
        data: &str,
        out: &mut Pieces,
    ) -> Result<(), ModelError> {
        if data == "[DONE]" {
            self.think.end(out);
            out.end();
            return Ok(());
        }
        self.read(data, out).map(drop)
    }

    fn whole(&mut self, body: &str, out: &mut Pieces) -> Result<(), ModelError> {
        let is_told = self.read(body, out)?;
        self.think.end(out);
        match is_told {
            true => Ok(()),
            false => Err(ModelError::bad("there are no choices in it")),
        }
    }
}

impl Chunks {
    /// Decodes a chunk. Returns whether it had any contents.
    fn read(&mut self, data: &str, out: &mut Pieces) -> Result<bool, ModelError> {
        if !data.starts_with('{') {
            return Err(ModelError::bad("it is no JSON object"));
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(ModelError::bad)?;
        if chunk.error.is_some_and(|error| error.get() != "null") {
            return Err(ModelError::reported(data));
        }
        // Only one choice was asked for.
        let choice = chunk.choices.unwrap_or_default().into_iter().next();
        let told = choice.is_some() || chunk.usage.is_some();
        if let Some(choice) = choice {
            self.choice(choice, out);
        }
        if let Some(usage) = chunk.usage {
            out.usage(Usage {
                prompt: usage.prompt_tokens.unwrap_or_default(),
                completion: usage.completion_tokens.unwrap_or_default(),
            });
        }
        Ok(told)
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut Pieces) {
        let piece = choice.delta.or(choice.message).unwrap_or_default();
        // Two names for what OpenAI itself does not tell.
        if let Some(thought) = piece.reasoning_content.or(piece.reasoning) {
            out.thought(text_of(thought));
        }
        let texts = [piece.content, piece.refusal].into_iter().flatten();
        for text in texts {
            self.think.push(&text_of(text), out);
        }
        for call in piece.tool_calls.unwrap_or_default() {
            let function = call.function.unwrap_or_default();
            out.call(CallPiece {
                index: call.index,
                id: call.id.map(Cow::into_owned),
                name: function.name.map(Cow::into_owned),
                arguments: function.arguments.map_or_else(String::new, text_of),
            });
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.think.end(out);
            out.finish(Finish::from(&*reason));
        }
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
    /// Replaces `delta` in an answer without a stream.
    #[serde(borrow)]
    message: Option<Piece<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    index: Option<usize>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    /// Usually a string; some servers send the object itself.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

/// Returns the text of a string, the text of content in blocks, or the JSON of anything else.
fn text_of(raw: &RawValue) -> String {
    let raw = raw.get();
    if raw == "null" {
        return String::new();
    }
    if let Ok(text) = serde_json::from_str::<String>(raw) {
        return text;
    }
    #[derive(Deserialize)]
    struct Block {
        text: Option<String>,
    }
    match serde_json::from_str::<Vec<Block>>(raw) {
        Ok(blocks) => blocks.into_iter().filter_map(|block| block.text).collect(),
        Err(_) => raw.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Delta;
    use crate::model::answer::AnswerDecoder;
    use crate::model::answer::testing::{self, joined};

    fn decode(answer: &[u8], size: usize) -> (Vec<Delta>, Result<(), ModelError>) {
        testing::decode::<Chunks>(answer, size)
    }

    fn text(deltas: &[Delta]) -> String {
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
    fn thoughts_are_told_apart_from_the_answer() {
        for name in ["reasoning_content", "reasoning"] {
            let delta = format!(r#"{{"{name}":"hm","content":"yes"}}"#);
            let stream = format!(
                "data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":\"stop\"}}]}}\n\n"
            );
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
    fn every_cut_is_noticed_until_the_reason_of_the_end_is_there() {
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
    fn an_end_mark_without_a_reason_is_an_end() {
        let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n";
        let (deltas, outcome) = decode(stream.as_bytes(), 5);
        assert_eq!((text(&deltas).as_str(), outcome), ("a", Ok(())));
    }

    #[test]
    fn an_answer_that_is_not_streamed_is_taken_whole() {
        let body = r#" {"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"hi"}],
            "tool_calls":[{"id":"x","function":{"name":"time","arguments":{"a": 1}}}]},"finish_reason":"stop"}],
            "usage":{"prompt_tokens":1,"completion_tokens":null}}"#;
        let (deltas, outcome) = decode(body.as_bytes(), 3);
        assert_eq!((text(&deltas).as_str(), outcome), ("hi", Ok(())));
        let call = deltas.iter().find_map(|delta| match delta {
            Delta::ToolCall(call) => Some(call.arguments.clone()),
            _ => None,
        });
        assert_eq!(call.as_deref(), Some(r#"{"a": 1}"#));
        let (_, outcome) = decode(&body.as_bytes()[..40], 3);
        assert_eq!(outcome, Err(ModelError::Cut));
        let (_, outcome) = decode(b"{\"answer\":1}", 3);
        assert!(
            matches!(outcome, Err(ModelError::BadAnswer { .. })),
            "{outcome:?}"
        );
    }

    #[test]
    fn an_error_in_the_stream_keeps_what_was_said_and_the_providers_words() {
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
    fn garbage_is_no_answer_and_has_an_end() {
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
        for nothing in ["", "\n\n", "<html>busy</html>", ": comment\n\n"] {
            let (_, outcome) = decode(nothing.as_bytes(), 2);
            assert_eq!(outcome, Err(ModelError::Cut), "{nothing}");
        }
        let max = 1024 * 1024;
        for (endless, error) in [
            ("data: x", ModelError::EventTooLarge { max }),
            ("data: \n", ModelError::EventTooLarge { max }),
            ("{\"a\":\"", ModelError::TooLarge { max }),
            (": x\n\n", ModelError::TooLarge { max: 16 * max }),
        ] {
            let endless = endless.repeat(16 * max / endless.len() + 2);
            let (_, outcome) = decode(endless.as_bytes(), 8192);
            assert_eq!(outcome, Err(error));
        }
    }

    fn said(text: &str) -> String {
        let text = serde_json::to_string(text).unwrap();
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n")
    }

    #[test]
    fn an_event_that_cannot_be_read_is_left_out() {
        for bad in [
            "data: {\"choices\":[{\"delta\":{\"content\":\"x\n\n",
            "data: hello\n\n",
            "data: {\"choices\":7}\n\n",
            "data: \u{fffd}\ndata: {}\n\n",
        ] {
            let stream = format!("{bad}{}{bad}{}{bad}data: [DONE]\n\n", said("a"), said("b"));
            let mut decoder = AnswerDecoder::<Chunks>::default();
            decoder.push(stream.as_bytes()).unwrap();
            let deltas: Vec<_> = std::iter::from_fn(|| decoder.pop()).collect();
            assert_eq!((text(&deltas).as_str(), decoder.skipped()), ("ab", 3));
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
    fn thoughts_in_the_text_are_no_part_of_the_answer() {
        for (whole, answer, thoughts) in [
            ("<think>hm</think>\n\nyes", "yes", "hm"),
            ("\n<think>hm\n</think>\n", "\n", "hm\n"),
            ("yes <think>hm</think> and no", "yes  and no", "hm"),
            ("<think>a</think>b<think>c</think>d", "bd", "ac"),
            ("yes<think>for ever < </thin", "yes", "for ever < </thin"),
            ("<think>", "", ""),
            ("hm</think>yes", "hmyes", ""),
            ("1 < 2 <thin", "1 < 2 <thin", ""),
            ("<<think>x</think>>", "<>", "x"),
            ("a <b> </b> \u{1f914}", "a <b> </b> \u{1f914}", ""),
        ] {
            for size in 1..=whole.len() {
                let mut stream = String::new();
                let chars: Vec<_> = whole.chars().collect();
                for part in chars.chunks(size) {
                    stream.push_str(&said(&part.iter().collect::<String>()));
                }
                stream.push_str("data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n");
                let (deltas, outcome) = decode(stream.as_bytes(), 99);
                assert_eq!(
                    (text(&deltas).as_str(), outcome),
                    (answer, Ok(())),
                    "{whole}"
                );
                let thought: String = deltas
                    .iter()
                    .filter_map(|delta| match delta {
                        Delta::Thought(text) => Some(text.as_str()),
                        _ => None,
                    })
                    .collect();
                assert_eq!(thought, thoughts, "{whole}");
            }
            let body = serde_json::json!({ "choices": [{ "message": { "content": whole } }] });
            let (deltas, outcome) = decode(body.to_string().as_bytes(), 99);
            assert_eq!(
                (text(&deltas).as_str(), outcome),
                (answer, Ok(())),
                "{whole}"
            );
        }
    }

    #[test]
    fn calls_are_let_go_at_any_reason() {
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

    proptest! {
        #[test]
        fn deltas_do_not_depend_on_the_cuts(places in prop::collection::vec(0usize..10_000, 0..12), crlf: bool) {
            let stream = if crlf { STREAM.replace("\n\n", "\r\n\r\n").replace("\r\r", "\r") } else { STREAM.to_owned() };
            let stream = stream.as_bytes();
            let (expected, outcome) = decode(STREAM.as_bytes(), usize::MAX);
            prop_assert_eq!(outcome, Ok(()));
            let got = testing::decode_chunks::<Chunks>(testing::cut(stream, &places));
            prop_assert_eq!(got, (expected, Ok(())));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..40) {
            let _ = decode(&bytes, size);
        }
    }
}
