//! [`AnswerDecoder`]: decodes the bytes of an HTTP answer to pieces of the model's answer.

use std::collections::VecDeque;
use std::fmt;

use rpc_core::{Limits, json, sse};

use super::halves::Halves;
use super::{CallPiece, Delta, Finish, ModelError, Usage};

/// The largest event of a stream, the longest line, and the largest answer without a stream.
const MAX_EVENT: usize = 1024 * 1024;
/// The largest answer. Each word costs 100 to 200 bytes on the wire.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// How the parts of a streamed answer are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// As server-sent events.
    Events,
    /// As lines, each a JSON object.
    Lines,
}

/// The format of a provider's answers.
pub trait Dialect: Default + fmt::Debug + Send + 'static {
    /// How the parts of a stream are told apart.
    const FRAMING: Framing = Framing::Events;

    /// Decodes one event of a stream. `name` is its type on the `event:` line, if there is one;
    /// `data` is a JSON object or a word.
    ///
    /// # Errors
    /// [`ModelError::BadAnswer`] if this is not an event of the provider: it is skipped.
    /// [`ModelError::Refused`] if it reports an error, [`ModelError::TooManyCalls`]: the answer
    /// ends.
    fn event(&mut self, name: Option<&str>, data: &str, out: &mut Pieces)
    -> Result<(), ModelError>;

    /// Decodes a whole answer without a stream.
    ///
    /// # Errors
    /// As for [`event`](Self::event).
    fn whole(&mut self, body: &str, out: &mut Pieces) -> Result<(), ModelError>;
}

/// The decoded pieces that were not taken yet.
#[derive(Debug, Default)]
pub struct Pieces {
    ready: VecDeque<Delta>,
    /// Whether any part of an answer has arrived.
    is_used: bool,
    finished: bool,
    done: bool,
}

impl Pieces {
    /// Adds text. Also accepts an empty text: some providers begin with one, and it is a sign of
    /// life.
    pub fn text(&mut self, text: String) {
        self.is_used |= !text.is_empty();
        self.ready.push_back(Delta::Text(text));
    }

    /// Adds a thought.
    pub fn thought(&mut self, text: String) {
        if !text.is_empty() {
            self.is_used = true;
            self.ready.push_back(Delta::Thought(text));
        }
    }

    /// Adds a piece of a call.
    pub fn call(&mut self, piece: CallPiece) {
        self.is_used = true;
        self.ready.push_back(Delta::ToolCall(piece));
    }

    /// Adds the usage of the whole answer so far.
    pub fn usage(&mut self, usage: Usage) {
        self.ready.push_back(Delta::Usage(usage));
    }

    /// Marks the answer as complete, with the reason. Only a usage can follow.
    pub fn finish(&mut self, finish: Finish) {
        self.finished = true;
        self.ready.push_back(Delta::Finish(finish));
    }

    /// Marks the end: nothing follows.
    pub fn end(&mut self) {
        if !self.finished {
            self.finish(Finish::Stop);
        }
        self.done = true;
    }
}

/// Decodes an answer from bytes in any chunking: a stream of events or lines, or one JSON object
/// from servers that do not stream. The first byte tells an object from events.
///
/// An event, a line or an object may have 1 MiB, and an answer 16 MiB on the wire. An event that does not
/// decode is skipped and counted; the answer fails only if nothing else arrives.
#[derive(Debug)]
pub struct AnswerDecoder<D> {
    dialect: D,
    body: Body,
    out: Pieces,
    bytes: usize,
    halves: Halves,
    /// The number of skipped events, and the reason of the first.
    skipped: usize,
    bad: Option<ModelError>,
}

#[derive(Debug)]
enum Body {
    Unknown,
    Events(sse::Decoder),
    /// The beginning of a line.
    Lines(Vec<u8>),
    Json(Vec<u8>),
}

impl<D: Dialect> Default for AnswerDecoder<D> {
    fn default() -> Self {
        Self {
            dialect: D::default(),
            body: Body::Unknown,
            out: Pieces::default(),
            bytes: 0,
            halves: Halves::default(),
            skipped: 0,
            bad: None,
        }
    }
}

impl<D: Dialect> AnswerDecoder<D> {
    /// Decodes more bytes. Ignored after the end.
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
            bytes = bytes.trim_ascii_start();
            match bytes.first() {
                None => return Ok(()),
                Some(_) if D::FRAMING == Framing::Lines => self.body = Body::Lines(Vec::new()),
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
        while !self.out.done
            && let Body::Events(decoder) = &mut self.body
            && let Some(event) = decoder.decode(&mut bytes)
        {
            let event = event.map_err(|_| ModelError::EventTooLarge { max: MAX_EVENT })?;
            self.event(event.event.as_deref(), &event.data)?;
        }
        while !self.out.done
            && !bytes.is_empty()
            && let Body::Lines(line) = &mut self.body
        {
            let end = memchr::memchr(b'\n', bytes);
            let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            bytes = rest;
            if line.len() + part.len() > MAX_EVENT {
                return Err(ModelError::EventTooLarge { max: MAX_EVENT });
            }
            line.extend_from_slice(part);
            if end.is_some() {
                let line = std::mem::take(line);
                self.event(None, &String::from_utf8_lossy(&line))?;
            }
        }
        if self.out.done { self.judge() } else { Ok(()) }
    }

    /// Returns how many events were skipped because they did not decode.
    #[must_use]
    pub const fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns the next piece of the answer, if there is one.
    pub fn pop(&mut self) -> Option<Delta> {
        self.out.ready.pop_front()
    }

    /// Returns whether the answer is known to be complete: only a usage can follow.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.out.finished || self.out.done
    }

    /// Returns whether nothing follows.
    #[must_use]
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
                let text = json::mend(std::str::from_utf8(&body).map_err(ModelError::bad)?);
                let whole = serde_json::from_str::<serde::de::IgnoredAny>(&text);
                if whole.is_err_and(|error| error.is_eof()) {
                    return Err(ModelError::Cut);
                }
                self.dialect.whole(&text, &mut self.out)?;
                self.out.end();
            }
            // The last event may lack its empty line, and the last line its end.
            Body::Events(mut decoder) if !self.out.done => {
                if let Some(Ok(event)) = decoder.decode(&mut &b"\n\n"[..]) {
                    self.last_event(event.event.as_deref(), &event.data)?;
                }
            }
            Body::Lines(line) if !self.out.done => {
                self.last_event(None, &String::from_utf8_lossy(&line))?;
            }
            Body::Events(_) | Body::Lines(_) | Body::Unknown => {}
        }
        if let Some((name, data)) = self.halves.end() {
            self.read(name.as_deref(), &data)?;
        }
        self.judge()?;
        if !self.is_finished() {
            return Err(ModelError::Cut);
        }
        self.out.end();
        Ok(())
    }

    /// Checks whether the bytes were an answer, although some events may have been skipped.
    fn judge(&mut self) -> Result<(), ModelError> {
        if self.skipped == 0 {
            return Ok(());
        }
        // Without the provider's words, which may hold anything.
        let events = self.skipped;
        tracing::warn!(
            events,
            "parts of the model's answer could not be read and are left out"
        );
        match self.bad.take() {
            Some(bad) if !self.out.is_used => Err(bad),
            _ => Ok(()),
        }
    }

    /// Decodes an event that may be cut in the middle: then it is no answer, and no reason to doubt
    /// one.
    fn last_event(&mut self, name: Option<&str>, data: &str) -> Result<(), ModelError> {
        let known = (self.skipped, self.bad.take());
        self.event(name, data)?;
        (self.skipped, self.bad) = known;
        Ok(())
    }

    fn event(&mut self, name: Option<&str>, data: &str) -> Result<(), ModelError> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        let (before, now) = self.halves.next(name, data);
        if let Some((name, data)) = before {
            self.read(name.as_deref(), &data)?;
        }
        now.map_or(Ok(()), |data| self.read(name, &data))
    }

    fn read(&mut self, name: Option<&str>, data: &str) -> Result<(), ModelError> {
        match self.dialect.event(name, &json::mend(data), &mut self.out) {
            Err(bad @ ModelError::BadAnswer { .. }) => {
                self.skipped += 1;
                self.bad.get_or_insert(bad);
                Ok(())
            }
            other => other,
        }
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::model::Assembler;

    /// Decodes an answer in these chunks.
    pub(crate) fn decode_chunks<'a, D: Dialect>(
        chunks: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<Delta>, Result<(), ModelError>) {
        let mut decoder = AnswerDecoder::<D>::default();
        let mut deltas = Vec::new();
        let mut outcome = Ok(());
        for chunk in chunks {
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

    /// Decodes an answer in chunks of this size.
    pub(crate) fn decode<D: Dialect>(
        answer: &[u8],
        size: usize,
    ) -> (Vec<Delta>, Result<(), ModelError>) {
        decode_chunks::<D>(answer.chunks(size))
    }

    /// Cuts the answer at these positions.
    pub(crate) fn cut<'a>(answer: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
        let mut places: Vec<_> = places.iter().map(|at| at % (answer.len() + 1)).collect();
        places.push(answer.len());
        places.sort_unstable();
        let mut from = 0;
        let cut = |to| answer.get(std::mem::replace(&mut from, to)..to);
        places.into_iter().filter_map(cut).collect()
    }

    pub(crate) fn joined(deltas: &[Delta]) -> Assembler {
        let mut assembler = Assembler::default();
        for delta in deltas {
            assembler.push(delta).unwrap();
        }
        assembler
    }
}
