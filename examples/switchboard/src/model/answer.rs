//! [`AnswerReader`]: reads the bytes of an HTTP answer as pieces of the model's answer.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use rpc_core::{Limits, json, sse};
use serde_json::{Map, Value, json as value};

use super::provider::Provider;
use super::request::is_object;
use super::surrogates::Halves;
use super::thoughts::Think;
use super::written::Tail;
use super::{CallPiece, Delta, Finish, ModelError, Notice, Usage, anthropic, ollama, openai};

/// The largest event of a stream, the longest line, and the largest answer without a stream.
const MAX_EVENT: usize = 1024 * 1024;
/// The largest answer. Each word costs 100 to 200 bytes on the wire.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// The mark with which some servers begin a text. No answer begins with one of its bytes.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Strings, words outside of them, and a comma before an end.
static WORDS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?s)"(?:[^"\\]|\\.)*"|[-+.\w]+|,\s*([}\]])"#).ok());

/// The pieces of an answer that were read and not taken yet.
#[derive(Debug, Default)]
pub struct Pieces {
    ready: VecDeque<Delta>,
    pub(super) think: Think,
    /// The counts of tokens so far: read, stored in a cache, read from one, and written.
    counts: [u64; 4],
    /// The places of the calls in the answer.
    pub(super) calls: Vec<usize>,
    /// How many blocks of text have come.
    pub(super) texts: usize,
    /// The members of a message that have come in pieces.
    pub(super) in_pieces: BTreeSet<String>,
    /// Whether any part of an answer has arrived.
    is_used: bool,
    /// The reason why the provider has broken the answer off.
    broken: Option<String>,
    finished: bool,
    done: bool,
}

impl Pieces {
    /// Adds text. What is between marks before it, as in the output of many local servers, is a thought.
    pub fn text(&mut self, text: &str) {
        self.is_used |= !text.is_empty();
        self.think.push(text, &mut self.ready);
    }

    /// Adds a thought.
    pub fn thought(&mut self, text: String) {
        if !text.is_empty() {
            self.is_used = true;
            self.think.release(&mut self.ready);
            self.ready.push_back(Delta::Thought(text));
        }
    }

    /// Adds what only this provider knows, of a block of the content or of the message.
    pub fn extra(&mut self, block: Option<usize>, members: Map<String, Value>) {
        if !members.is_empty() {
            if block.is_some() {
                self.think.release(&mut self.ready);
            }
            self.ready.push_back(Delta::Extra(block, members));
        }
    }

    /// Adds a piece of a call.
    pub fn call(&mut self, piece: CallPiece) {
        self.is_used = true;
        self.think.has_calls = true;
        self.think.release(&mut self.ready);
        self.ready.push_back(Delta::ToolCall(piece));
    }

    /// Adds the usage of the whole answer so far: the counts with these names. A count that is missing, or is
    /// none, keeps its last value.
    pub fn usage(&mut self, usage: &Value, names: [&str; 4]) {
        let mut is_known = false;
        for (known, name) in self.counts.iter_mut().zip(names) {
            if let Some(count) = number(&usage[name]) {
                (*known, is_known) = (count, true);
            }
        }
        if is_known {
            let [read, stored, cached, completion] = self.counts;
            let prompt = read.saturating_add(stored).saturating_add(cached);
            self.ready
                .push_back(Delta::Usage(Usage { prompt, completion }));
        }
    }

    /// Adds the text that is held until it is known whether it is a thought, if there is a reason of the end: the
    /// usage that follows counts it.
    pub fn end_text(&mut self, reason: &Value) {
        if reason.as_str().is_some_and(|reason| !reason.is_empty()) {
            self.think.end(&mut self.ready);
        }
    }

    /// Marks the answer as complete if the provider gives a reason, unless that is a failure. Only a usage
    /// can follow.
    pub fn finish(&mut self, reason: &Value) {
        let Some(reason) = reason.as_str().filter(|reason| !reason.is_empty()) else {
            return;
        };
        match Finish::from(reason) {
            Finish::Broken(why) => self.broken = Some(why),
            finish => {
                self.think.end(&mut self.ready);
                self.finished = true;
                self.ready.push_back(Delta::Finish(finish));
            }
        }
    }

    /// Marks the end: nothing follows.
    pub fn end(&mut self) {
        if !self.finished {
            self.finish(&Value::from("stop"));
        }
        self.done = true;
    }
}

/// Returns a whole number, however it is written: `11`, `11.0` or `"11"`.
pub(super) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => whole(&serde_json::from_str(text).ok()?)?.as_u64(),
        value => whole(value)?.as_u64(),
    }
}

/// Returns a number without a fraction as a whole one.
pub(crate) fn whole(number: &Value) -> Option<Value> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    let whole: Value = serde_json::from_str(&format!("{float}")).ok()?;
    (whole.is_i64() || whole.is_u64()).then_some(whole)
}

/// Returns a number as a place in a list.
pub(super) fn place(value: &Value) -> Option<usize> {
    usize::try_from(number(value)?).ok()
}

/// Returns the text of a string, the text of content in blocks, or the JSON of anything else.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) if blocks.iter().all(is_block) => {
            let shown = blocks.iter().filter(|block| !is_thought(block));
            let texts = shown.filter_map(|block| block["text"].as_str());
            texts.collect()
        }
        other => other.to_string(),
    }
}

fn is_block(value: &Value) -> bool {
    value["type"].is_string() || value["text"].is_string()
}

/// Whether a block of content is a thought.
pub(super) fn is_thought(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "reasoning"))
}

/// Returns a text that is not empty.
pub(super) fn filled(value: &Value) -> Option<String> {
    Some(text_of(value)).filter(|text| !text.is_empty())
}

/// Reads a JSON object, which may be alone in a list, as Gemini reports errors.
fn object(data: &str) -> Result<Value, ModelError> {
    let data = json::mend(data);
    let read = serde_json::from_str(&data)
        .or_else(|error| serde_json::from_str(&strict(&data)).map_err(|_| error));
    match read {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(Value::Array(mut list)) if list.len() == 1 && list[0].is_object() => {
            Ok(list.swap_remove(0))
        }
        Ok(_) => Err(ModelError::bad("it is not a JSON object")),
        Err(error) if error.is_eof() => Err(ModelError::Cut),
        Err(error) => Err(ModelError::bad(error)),
    }
}

/// Returns the JSON that was meant: words of other languages are written as JSON does (those that it does not have,
/// such as `NaN`, as null), control characters in strings are escaped, and a comma before an end goes.
fn strict(json: &str) -> Cow<'_, str> {
    let Some(words) = &*WORDS else {
        return Cow::Borrowed(json);
    };
    words.replace_all(json, |found: &Captures<'_>| {
        let word = found.get(0).map_or("", |word| word.as_str());
        if let Some(end) = found.get(1) {
            return end.as_str().to_owned();
        }
        if word.starts_with('"') {
            let escaped = |c: char| match c.is_control() {
                true => format!("\\u{:04x}", u32::from(c)),
                false => c.into(),
            };
            return word.chars().map(escaped).collect();
        }
        let word = word.to_lowercase();
        let is_json = serde_json::from_str::<Value>(&word).is_ok();
        if is_json { word } else { "null".to_owned() }
    })
}

/// Returns the arguments of a call as an object, if that is what they are in other words: in a string, a list or a
/// fence, null, or almost JSON.
pub(super) fn arguments(text: &str) -> Cow<'_, str> {
    let text = json::mend(text);
    if is_object(&text) {
        return text;
    }
    let fenced = text.trim().strip_prefix("```");
    let fenced = fenced.and_then(|it| it.strip_suffix("```"));
    let inner = fenced.map_or(&*text, |it| {
        it.trim_start_matches(char::is_alphabetic).trim()
    });
    let json = strict(inner);
    match serde_json::from_str(&json) {
        Ok(Value::Object(_)) => json.into_owned().into(),
        Ok(Value::String(inner)) => arguments(&inner).into_owned().into(),
        Ok(Value::Array(list)) if list.is_empty() => "{}".into(),
        Ok(Value::Array(list)) if list.len() == 1 && list[0].is_object() => {
            list[0].to_string().into()
        }
        Ok(Value::Null) if ["null", "None"].contains(&inner.trim()) => "{}".into(),
        _ => text,
    }
}

/// Reads the answer of any provider from bytes in any chunking: a stream of events or lines, or one JSON
/// object from servers that do not stream.
///
/// Only text, calls and the end can fail: other members may be odd. An event, a line or an object may have
/// 1 MiB, and an answer 16 MiB on the wire. An event that cannot be read is skipped, which a
/// [`Notice::Lost`] reports; the answer fails only if nothing else arrives.
#[derive(Debug, Default)]
pub struct AnswerReader {
    provider: Provider,
    /// The type of the answer, by its header.
    kind: String,
    body: Body,
    out: Pieces,
    bytes: usize,
    halves: Halves,
    events: usize,
    /// The number of skipped events, and the reason of the first.
    skipped: usize,
    bad: Option<ModelError>,
    /// Whether any object had the member that this provider's answers have; `None` without objects.
    is_known: Option<bool>,
    /// An object without it that has a text for people: an error, if the answer is not completed.
    doubt: Option<ModelError>,
}

#[derive(Debug, Default)]
enum Body {
    #[default]
    Unknown,
    /// The beginning of a line, and what makes events of lines that are none themselves.
    Lines(Vec<u8>, Option<sse::Decoder>),
    Json(Vec<u8>),
}

impl AnswerReader {
    /// Creates a reader for an answer of this provider, which its header says to be of this type.
    pub fn new(provider: Provider, kind: &str) -> Self {
        Self {
            provider,
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    /// Reads more bytes. Ignored after the end.
    ///
    /// # Errors
    /// [`ModelError`] if this is not an answer, or if the provider reports an error in it. Earlier
    /// pieces can still be taken.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_ANSWER {
            return Err(ModelError::TooLarge { max: MAX_ANSWER });
        }
        let mut bytes = bytes;
        if matches!(self.body, Body::Unknown) {
            let is_blank = |byte: &u8| byte.is_ascii_whitespace() || BOM.contains(byte);
            let from = bytes.iter().position(|byte| !is_blank(byte));
            bytes = bytes.get(from.unwrap_or(bytes.len())..).unwrap_or_default();
            self.body = match bytes.first() {
                None => return Ok(()),
                Some(b'<') => return Err(self.no_answer()),
                Some(_) if self.provider == Provider::Ollama || self.kind.contains("ndjson") => {
                    Body::Lines(Vec::new(), None)
                }
                Some(b'{' | b'[') => Body::Json(Vec::new()),
                Some(_) => {
                    let decoder = sse::Decoder::new(&Limits::default())
                        .with_max_line_bytes(MAX_EVENT)
                        .with_max_event_bytes(MAX_EVENT);
                    Body::Lines(Vec::new(), Some(decoder))
                }
            };
        }
        if let Body::Json(body) = &mut self.body {
            if body.len() + bytes.len() > MAX_EVENT {
                return Err(ModelError::TooLarge { max: MAX_EVENT });
            }
            body.extend_from_slice(bytes);
        }
        while !self.out.done
            && !bytes.is_empty()
            && let Body::Lines(line, _) = &mut self.body
        {
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            bytes = rest;
            if line.len() + part.len() > MAX_EVENT {
                return Err(ModelError::TooLarge { max: MAX_EVENT });
            }
            line.extend_from_slice(part);
            if end.is_some() {
                let line = std::mem::take(line);
                self.line(&line)?;
            }
        }
        if self.out.done { self.judge() } else { Ok(()) }
    }

    /// Reads a line with its end.
    fn line(&mut self, line: &[u8]) -> Result<(), ModelError> {
        let mut line = line;
        while let Some(rest) = line.strip_prefix(BOM) {
            line = rest;
        }
        if !matches!(self.body, Body::Lines(_, Some(_))) {
            // Events in place of lines.
            let line = line.strip_prefix(b"data:").unwrap_or(line);
            return self.event(None, &String::from_utf8_lossy(line));
        }
        // How llama.cpp reports an error in the middle of a stream.
        if let Some(error) = line.strip_prefix(b"error:") {
            return self.event(Some("error"), &String::from_utf8_lossy(error));
        }
        while !self.out.done
            && let Body::Lines(_, Some(decoder)) = &mut self.body
            && let Some(event) = decoder.decode(&mut line)
        {
            let event = event.map_err(|_| ModelError::TooLarge { max: MAX_EVENT })?;
            self.event(event.event.as_deref(), &event.data)?;
        }
        Ok(())
    }

    /// Returns how many bytes have come.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the next piece of the answer, if there is one.
    pub fn pop(&mut self) -> Option<Delta> {
        self.out.ready.pop_front()
    }

    /// Sets whether the model is known to close its thoughts without having opened them.
    pub const fn with_closed_thoughts(mut self, closes: bool) -> Self {
        self.out.think.closes = closes;
        self
    }

    /// Sets the names of the tools that were offered: a text that is nothing but calls of these calls them.
    pub fn with_tools(mut self, tools: &[String]) -> Self {
        self.out.think.tail = Tail::new(tools.to_vec());
        self
    }

    /// Returns whether this answer did so.
    pub const fn closes_thoughts(&self) -> bool {
        self.out.think.closes
    }

    /// Returns whether the first words wait: they may be a thought.
    pub fn waits(&self) -> bool {
        self.out.think.waits()
    }

    /// Lets the first words go.
    pub fn release(&mut self) {
        self.out.think.release(&mut self.out.ready);
    }

    /// Returns whether the answer is known to be complete: only a usage can follow.
    pub const fn is_finished(&self) -> bool {
        self.out.finished || self.out.done
    }

    /// Returns whether nothing follows.
    pub const fn is_done(&self) -> bool {
        self.out.done
    }

    /// Marks the end of the bytes.
    ///
    /// # Errors
    /// [`ModelError::Cut`] if the answer was not complete, otherwise as for [`push`](Self::push).
    pub fn end(&mut self) -> Result<(), ModelError> {
        match std::mem::replace(&mut self.body, Body::Unknown) {
            Body::Json(body) => {
                let answer = object(&String::from_utf8_lossy(&body))?;
                self.take(None, &answer)?;
                if !self.out.is_used && !self.out.finished {
                    // What has no answer may be an error of any shape.
                    let report = ModelError::in_words(&answer.to_string());
                    return Err(
                        report.unwrap_or_else(|| ModelError::bad("there is no answer in it"))
                    );
                }
                self.out.end();
            }
            // The last event may lack its empty line, and the last line its end.
            Body::Lines(mut line, decoder) if !self.out.done => {
                line.extend_from_slice(b"\n\n");
                self.body = Body::Lines(Vec::new(), decoder);
                // It may be cut in the middle: then it is no answer, and no reason to doubt one.
                let known = (self.skipped, self.bad.take());
                self.line(&line)?;
                (self.skipped, self.bad) = known;
            }
            Body::Lines(..) | Body::Unknown => {}
        }
        self.halves.release();
        self.read_whole()?;
        self.doubt()?;
        self.judge()?;
        if !self.is_finished() {
            let is_stream = self.kind.is_empty() || self.kind.contains("event-stream");
            return Err(match self.events {
                0 if self.bytes > 0 && !is_stream => self.no_answer(),
                _ => ModelError::Cut,
            });
        }
        self.out.end();
        Ok(())
    }

    /// The error of something else in place of an answer, named by its type.
    fn no_answer(&self) -> ModelError {
        match self.kind.as_str() {
            "" => ModelError::bad("it is a page"),
            kind => ModelError::bad(format_args!("it is of type {kind}")),
        }
    }

    /// Checks whether the bytes were an answer, although some events may have been skipped.
    fn judge(&mut self) -> Result<(), ModelError> {
        if self.is_known == Some(false) && self.bad.is_none() {
            return Err(ModelError::bad("there is no answer in it"));
        }
        let parts = std::mem::take(&mut self.skipped);
        if parts == 0 {
            return Ok(());
        }
        let notice = Notice::Lost { parts };
        // Without the provider's words, which may hold anything.
        tracing::warn!("{notice}");
        match self.bad.take() {
            Some(bad) if !self.out.is_used => Err(bad),
            _ => {
                self.out.ready.push_back(Delta::Notice(notice));
                Ok(())
            }
        }
    }

    fn event(&mut self, name: Option<&str>, data: &str) -> Result<(), ModelError> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        // Some servers end events with one line end only.
        let is_whole = |it: &str| it == "[DONE]" || it.starts_with('{') && it.ends_with('}');
        if data.contains('\n') && data.lines().all(|line| is_whole(line.trim())) {
            return data.lines().try_for_each(|line| self.event(None, line));
        }
        self.events += 1;
        if !self.halves.take(name, data) {
            return self.read(name, data);
        }
        self.read_whole()
    }

    /// Reads the events whose characters are whole.
    fn read_whole(&mut self) -> Result<(), ModelError> {
        while let Some((name, data)) = self.halves.pop() {
            self.read(name.as_deref(), &data)?;
        }
        Ok(())
    }

    fn read(&mut self, name: Option<&str>, data: &str) -> Result<(), ModelError> {
        // An error may have any shape.
        if name == Some("error") {
            return self.reported(data);
        }
        if data == "[DONE]" {
            self.doubt()?;
            self.out.end();
            return Ok(());
        }
        match object(data).and_then(|object| self.take(name, &object)) {
            Err(bad @ (ModelError::BadAnswer { .. } | ModelError::Cut)) => {
                // An event of later days may be anything, and nothing is missing from a complete answer.
                let known =
                    |name: &str| name.starts_with("message") || name.starts_with("content_block");
                if name.is_none_or(known) && !self.out.finished {
                    self.skipped += 1;
                    self.bad.get_or_insert(match bad {
                        ModelError::Cut => ModelError::bad("its JSON is not complete"),
                        bad => bad,
                    });
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Fails an answer that ends without a reason, if something in it looked like an error.
    fn doubt(&mut self) -> Result<(), ModelError> {
        let doubt = self.doubt.take().filter(|_| !self.out.finished);
        doubt.map_or(Ok(()), Err)
    }

    /// Takes the report of an error. Nothing is missing from a complete answer.
    fn reported(&self, report: &str) -> Result<(), ModelError> {
        match self.out.finished {
            true => Ok(()),
            false => Err(ModelError::reported(report)),
        }
    }

    /// Takes an event, a line or a whole answer.
    fn take(&mut self, name: Option<&str>, object: &Value) -> Result<(), ModelError> {
        let error = &object["error"];
        let is_none =
            error.is_null() || [value!(""), value!({}), value!(false), value!(0)].contains(error);
        if !is_none || object["type"] == "error" || object["object"] == "error" {
            return self.reported(&object.to_string());
        }
        // By its shape: some servers have one of these interfaces and speak the other.
        let is_line = object["choices"].is_null()
            && (self.provider == Provider::Ollama || object["message"].is_object());
        let members: &[&str] = match self.provider {
            Provider::Anthropic => &["type", "content"],
            _ if is_line => &["message"],
            _ => &["choices"],
        };
        let is_named = name.is_some() && self.provider == Provider::Anthropic;
        let is_known = is_named || members.iter().any(|it| !object[it].is_null());
        *self.is_known.get_or_insert(false) |= is_known;
        if !is_known || object["message"].is_string() {
            // An error may have any shape.
            self.doubt = ModelError::in_words(&object.to_string()).or(self.doubt.take());
        }
        match self.provider {
            Provider::Anthropic => anthropic::read(name, object, &mut self.out),
            _ if is_line => ollama::read(object, &mut self.out)?,
            _ => openai::read(object, &mut self.out)?,
        }
        self.out
            .broken
            .take()
            .map_or(Ok(()), |why| Err(ModelError::broken(why)))
    }
}

#[cfg(test)]
pub(super) mod tests;
