//! [`AnswerDecoder`]: the bytes of an HTTP answer in, pieces of the model's answer out.

use std::borrow::Cow;
use std::collections::VecDeque;

use rpc_core::{Limits, sse};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{CallPiece, Delta, Finish, ModelError, Usage};

/// The largest event of a stream, and the longest line.
const MAX_EVENT: usize = 1024 * 1024;
/// The largest answer in all. Each word costs about 200 bytes on the wire.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// The longest text of a provider that is passed on, in characters.
const MAX_WORDS: usize = 300;

/// Decodes an answer from bytes in any chunking: a stream of events, or one JSON object from
/// servers that do not stream. Which it is, the first byte tells.
#[derive(Debug)]
pub struct AnswerDecoder {
    body: Body,
    ready: VecDeque<Delta>,
    bytes: usize,
    finished: bool,
    done: bool,
}

#[derive(Debug)]
enum Body {
    Unknown,
    Events(sse::Decoder),
    Json(Vec<u8>),
}

impl Default for AnswerDecoder {
    fn default() -> Self {
        Self {
            body: Body::Unknown,
            ready: VecDeque::new(),
            bytes: 0,
            finished: false,
            done: false,
        }
    }
}

impl AnswerDecoder {
    /// Takes more bytes. Nothing comes after the end.
    ///
    /// # Errors
    /// [`ModelError`] if this is no answer, or if the provider reports an error in it. What came
    /// before can still be taken.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_ANSWER {
            return Err(ModelError::TooLarge { max: MAX_ANSWER });
        }
        let mut bytes = bytes;
        if matches!(self.body, Body::Unknown) {
            bytes = bytes.trim_ascii_start();
            match bytes.first() {
                None => return Ok(()),
                Some(b'{' | b'[') => self.body = Body::Json(Vec::new()),
                Some(_) => {
                    let limits = Limits::default();
                    let decoder = sse::Decoder::new(&limits)
                        .with_max_line_bytes(MAX_EVENT)
                        .with_max_event_bytes(MAX_EVENT);
                    self.body = Body::Events(decoder);
                }
            }
        }
        if let Body::Json(body) = &mut self.body {
            if body.len() + bytes.len() > MAX_EVENT {
                return Err(ModelError::TooLarge { max: MAX_EVENT });
            }
            body.extend_from_slice(bytes);
        }
        while !self.done
            && let Body::Events(decoder) = &mut self.body
            && let Some(event) = decoder.decode(&mut bytes)
        {
            let event = event.map_err(|_| ModelError::TooLarge { max: MAX_EVENT })?;
            self.event(&event.data)?;
        }
        Ok(())
    }

    /// The next piece of the answer, if it is there.
    pub fn pop(&mut self) -> Option<Delta> {
        self.ready.pop_front()
    }

    /// Whether the answer is known to be complete: nothing but a bill can follow.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finished || self.done
    }

    /// Whether nothing follows.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// No more bytes come.
    ///
    /// # Errors
    /// [`ModelError::Cut`] if the answer was not complete, else as for [`push`](Self::push).
    pub fn end(&mut self) -> Result<(), ModelError> {
        match std::mem::replace(&mut self.body, Body::Unknown) {
            Body::Json(body) => {
                let text = std::str::from_utf8(&body).map_err(bad)?;
                let whole = serde_json::from_str::<serde::de::IgnoredAny>(text);
                if whole.is_err_and(|error| error.is_eof()) {
                    return Err(ModelError::Cut);
                }
                self.event(text)?;
                self.finished = true;
            }
            // The last event may lack its empty line.
            Body::Events(mut decoder) if !self.done => {
                if let Some(Ok(event)) = decoder.decode(&mut &b"\n\n"[..]) {
                    // What is cut in the middle is no answer, and no reason to doubt one.
                    match self.event(&event.data) {
                        Err(ModelError::BadAnswer { .. }) | Ok(()) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Body::Events(_) | Body::Unknown => {}
        }
        if !self.is_finished() {
            return Err(ModelError::Cut);
        }
        self.done = true;
        Ok(())
    }

    fn event(&mut self, data: &str) -> Result<(), ModelError> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if !data.starts_with('{') {
            return Err(bad(format_args!("{:?}", excerpt(data))));
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(bad)?;
        if chunk.error.is_some_and(|error| error.get() != "null") {
            let message = error_message(data);
            return Err(ModelError::Provider { message });
        }
        // Only one choice was asked for.
        if let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() {
            self.choice(choice);
        } else if chunk.usage.is_none() && matches!(self.body, Body::Unknown) {
            return Err(bad("there are no choices in it"));
        }
        if let Some(usage) = chunk.usage {
            self.ready.push_back(Delta::Usage(Usage {
                prompt: usage.prompt_tokens.unwrap_or_default(),
                completion: usage.completion_tokens.unwrap_or_default(),
            }));
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>) {
        let piece = choice.delta.or(choice.message).unwrap_or_default();
        let texts = [piece.content, piece.refusal].into_iter().flatten();
        for text in texts.map(text_of).filter(|text| !text.is_empty()) {
            self.ready.push_back(Delta::Text(text));
        }
        for call in piece.tool_calls.unwrap_or_default() {
            let function = call.function.unwrap_or_default();
            self.ready.push_back(Delta::ToolCall(CallPiece {
                index: call.index,
                id: call.id.map(Cow::into_owned),
                name: function.name.map(Cow::into_owned),
                arguments: function.arguments.map_or_else(String::new, text_of),
            }));
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finished = true;
            self.ready.push_back(Delta::Finish(Finish::from(&*reason)));
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
    /// In place of `delta` where nothing is streamed.
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
    /// A string as a rule; some servers write the object itself.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

/// A string's text, the text of content in blocks, or the JSON of anything else.
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

/// What a provider says in an answer that reports an error: the text of `error.message`, `error`,
/// `message` or `detail`, else the beginning of the answer.
#[must_use]
pub fn error_message(body: &str) -> String {
    use serde_json::Value;
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let value = value.get(0).unwrap_or(&value);
    let known = [
        value.pointer("/error/message"),
        value.get("error"),
        value.get("message"),
        value.get("detail"),
    ];
    let words = known.into_iter().flatten().find_map(Value::as_str);
    match words.unwrap_or(body).trim() {
        "" => "no reason given".to_owned(),
        words => excerpt(words).into_owned(),
    }
}

fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_WORDS) {
        None => text.into(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()).into(),
    }
}

fn bad(why: impl std::fmt::Display) -> ModelError {
    let message = why.to_string();
    ModelError::BadAnswer { message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Assembler;

    /// Feeds the answer in chunks of this size.
    fn decode(answer: &[u8], size: usize) -> (Vec<Delta>, Result<(), ModelError>) {
        let mut decoder = AnswerDecoder::default();
        let mut deltas = Vec::new();
        let mut outcome = Ok(());
        for chunk in answer.chunks(size) {
            outcome = decoder.push(chunk);
            deltas.extend(std::iter::from_fn(|| decoder.pop()));
            if outcome.is_err() {
                return (deltas, outcome);
            }
        }
        if outcome.is_ok() {
            outcome = decoder.end();
        }
        deltas.extend(std::iter::from_fn(|| decoder.pop()));
        (deltas, outcome)
    }

    fn text(deltas: &[Delta]) -> String {
        let mut assembler = Assembler::default();
        for delta in deltas {
            assembler.push(delta).unwrap();
        }
        assembler.text().to_owned()
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
    fn an_answer_is_the_same_in_any_chunking() {
        for size in 1..STREAM.len() {
            let (deltas, outcome) = decode(STREAM.as_bytes(), size);
            assert_eq!(outcome, Ok(()), "{size}");
            let mut assembler = Assembler::default();
            for delta in &deltas {
                assembler.push(delta).unwrap();
            }
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
            (
                r#"{"error":{"code":7},"choices":[]}"#,
                r#"{"error":{"code":7},"choices":[]}"#,
            ),
        ] {
            let stream = format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"so far\"}}}}]}}\n\ndata: {error}\n\n"
            );
            let (deltas, outcome) = decode(stream.as_bytes(), 7);
            assert_eq!(text(&deltas), "so far");
            let message = words.to_owned();
            assert_eq!(outcome, Err(ModelError::Provider { message }));
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
        for endless in ["data: x", "{\"a\":\"", "data: \n"] {
            let endless = endless.repeat(MAX_ANSWER / endless.len() + 2);
            let (_, outcome) = decode(endless.as_bytes(), 8192);
            assert!(
                matches!(outcome, Err(ModelError::TooLarge { .. })),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn a_provider_is_quoted_wherever_its_words_stand() {
        for (body, words) in [
            (r#"{"error":{"message":"no key"}}"#, "no key"),
            (r#"[{"error":{"message":"no key"}}]"#, "no key"),
            (r#"{"error":"no key"}"#, "no key"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            ("  plain words\n", "plain words"),
            ("", "no reason given"),
        ] {
            assert_eq!(error_message(body), words);
        }
        let long = error_message(&"ß".repeat(5000));
        assert_eq!(long.chars().count(), MAX_WORDS + 1);
    }
}
