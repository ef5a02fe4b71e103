//! [`Decoder`]: turns bytes into events.

use std::time::Duration;

use super::{Event, SseError};
use crate::limits::Limits;

/// Room for a field name before a value of the largest size.
const FIELD_NAME: usize = 16;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Decodes an event stream from bytes in any chunking.
///
/// It copies only what spans two chunks, and holds at most one line and one event, both limited.
/// Invalid UTF-8 becomes U+FFFD, as the standard says.
pub struct Decoder {
    max_line: usize,
    max_event: usize,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// The event that is being decoded.
    event: Event,
    has_data: bool,
    last_event_id: String,
    retry: Option<Duration>,
    /// Whether no line has ended yet, so that a byte order mark may follow.
    at_start: bool,
    /// Whether the last byte was CR, so that a following LF belongs to it.
    after_cr: bool,
    /// Whether to skip the rest of the line, which is too long.
    skip_line: bool,
    /// Whether to skip the rest of the event.
    skip_event: bool,
}

impl Decoder {
    /// Creates a decoder for the start of a stream. Events are limited to
    /// [`max_message_bytes`](Limits::max_message_bytes); lines to a little more, for the field
    /// name.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            max_line: limits.max_message_bytes.saturating_add(FIELD_NAME),
            max_event: limits.max_message_bytes,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            last_event_id: String::new(),
            retry: None,
            at_start: true,
            after_cr: false,
            skip_line: false,
            skip_event: false,
        }
    }

    /// Sets the longest line in bytes, including the field name, without the line ending.
    #[must_use]
    pub const fn with_max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// Sets the largest event in bytes: type, id and data together.
    #[must_use]
    pub const fn with_max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event = bytes;
        self
    }

    /// Removes bytes from the front of `bytes` up to the end of an event, and returns the event.
    /// `None` means that all bytes are used and more are needed. Call it until `None`, then with
    /// the next chunk.
    ///
    /// An error concerns one event, which is skipped. The caller decides whether to go on.
    pub fn decode(&mut self, bytes: &mut &[u8]) -> Option<Result<Event, SseError>> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(rest) = bytes.strip_prefix(b"\n")
            {
                *bytes = rest;
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            let ended = rest.split_first();
            *bytes = ended.map_or(rest, |(_, rest)| rest);
            if self.skip_line || self.line.len() + part.len() > self.max_line {
                let first = !std::mem::replace(&mut self.skip_line, ended.is_none());
                self.line.clear();
                self.end_of_line(ended);
                if first && !self.skip_event {
                    return Some(Err(self.skip(SseError::LineTooLong { max: self.max_line })));
                }
                continue;
            }
            if ended.is_none() {
                self.line.extend_from_slice(part);
                return None;
            }
            let done = if self.line.is_empty() {
                self.end_of_line(ended);
                self.take_line(part)
            } else {
                self.line.extend_from_slice(part);
                let line = std::mem::take(&mut self.line);
                self.end_of_line(ended);
                let done = self.take_line(&line);
                self.keep_buffer(line);
                done
            };
            if done.is_some() {
                return done;
            }
        }
        None
    }

    /// Ends the stream. Returns whether bytes of an incomplete event were discarded, as the
    /// standard demands. The decoder is then ready for a stream that resumes: the last event id and
    /// the reconnection time stay.
    pub fn end(&mut self) -> bool {
        let incomplete = !self.line.is_empty()
            || self.skip_line
            || self.skip_event
            || self.event != Event::default()
            || self.has_data;
        self.line = Vec::new();
        self.clear_event();
        self.at_start = true;
        self.after_cr = false;
        self.skip_line = false;
        self.skip_event = false;
        incomplete
    }

    /// Returns the id of the last event that had one, to send as `Last-Event-ID`. Empty if there
    /// was none.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Returns the last reconnection time that the stream requested.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn end_of_line(&mut self, ended: Option<(&u8, &[u8])>) {
        if let Some((byte, _)) = ended {
            self.after_cr = *byte == b'\r';
        }
    }

    /// Reuses the line buffer unless it has grown large.
    fn keep_buffer(&mut self, mut line: Vec<u8>) {
        if line.capacity() <= 64 * 1024 {
            line.clear();
            self.line = line;
        }
    }

    fn take_line(&mut self, line: &[u8]) -> Option<Result<Event, SseError>> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(BOM).unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return self.dispatch().map(Ok);
        }
        if self.skip_event {
            return None;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            // A comment.
            Some(0) => return None,
            Some(colon) => {
                let (name, value) = line.split_at(colon);
                let value = value.strip_prefix(b":").unwrap_or(value);
                (name, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => {
                let name = String::from_utf8_lossy(value).into_owned();
                self.event.event = (!name.is_empty()).then_some(name);
            }
            b"id" if !value.contains(&0) => {
                self.event.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                if let Some(retry) = milliseconds(value) {
                    self.event.retry = Some(retry);
                    self.retry = Some(retry);
                }
            }
            _ => {}
        }
        (self.size() > self.max_event).then(|| {
            let max = self.max_event;
            Err(self.skip(SseError::EventTooLarge { max }))
        })
    }

    /// Completes the event at a blank line.
    fn dispatch(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.skip_event) {
            self.clear_event();
            return None;
        }
        if let Some(id) = &self.event.id {
            self.last_event_id.clone_from(id);
        }
        if !self.has_data {
            self.clear_event();
            return None;
        }
        self.has_data = false;
        Some(std::mem::take(&mut self.event))
    }

    /// Returns the bytes of the event so far, including the line break that more data would add;
    /// otherwise empty lines would not count.
    fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.event.data.len() + length(&self.event.event) + length(&self.event.id)
    }

    fn skip(&mut self, error: SseError) -> SseError {
        self.clear_event();
        self.skip_event = true;
        self.at_start = false;
        error
    }

    fn clear_event(&mut self) {
        self.event = Event::default();
        self.has_data = false;
    }
}

// Prints sizes only.
crate::debug::debug_fields!([] Decoder, this => {
    line_bytes: this.line.len(),
    event_bytes: this.size(),
    retry: this.retry,
});

/// Parses ASCII digits only; a number that is too large becomes the largest.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let millis = value.iter().fold(0_u64, |millis, digit| {
        millis
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Some(Duration::from_millis(millis))
}
