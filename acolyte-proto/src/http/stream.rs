//! The frames of a chat over HTTP: [`StreamFrame`], [`StreamDecoder`], and functions that write
//! them.

use rpc_core::json::{self, DecodeErrorKind, find_member};
use rpc_core::{DecodeError, Limits, Refused, sse};
use serde::{Deserialize, Serialize, Serializer};

use crate::codec::encode_into;
use crate::error::AppError;
use crate::event::Event;
use crate::frame::Reply;

/// The comment that keeps a stream alive: a colon and a blank line.
pub(crate) const KEEP_ALIVE: &str = ":\n\n";

/// The type of the last frame of a chat that is done.
const DONE: &str = "done";

/// One frame of a chat over HTTP. The stream ends with the first [`Done`](Self::Done) or
/// [`Error`](Self::Error) and cannot be resumed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamFrame {
    /// A step of the chat, of a known or an unknown type.
    Event(Event),
    /// The chat has ended. It may have failed: see [`Reply::error`].
    Done(Box<Reply>),
    /// The chat has failed.
    Error(AppError),
}

impl StreamFrame {
    /// Decodes the data of one server-sent event.
    ///
    /// # Errors
    /// [`DecodeError`]; the same text fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct End {
            reply: Box<Reply>,
        }
        Ok(match Event::decode(text, limits)? {
            Event::Error(error) => Self::Error(error),
            Event::Unknown { tag, .. } if tag == DONE => {
                let End { reply } = json::decode_js(text, limits)?;
                Self::Done(reply)
            }
            event => Self::Event(event),
        })
    }

    /// Appends this frame to a response body.
    ///
    /// # Errors
    /// [`Refused::Encode`] if a text is not JSON. Nothing was written.
    pub fn write(&self, out: &mut String) -> Result<(), Refused> {
        let mut json = String::new();
        encode_into(self, &mut json)?;
        push_data(&json, out);
        Ok(())
    }

    /// Returns whether the stream ends with this frame.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        !matches!(self, Self::Event(_))
    }
}

impl Serialize for StreamFrame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Event(event) => event.serialize(serializer),
            Self::Done(reply) => Done::new(reply).serialize(serializer),
            Self::Error(error) => Event::Error(error.clone()).serialize(serializer),
        }
    }
}

#[derive(Serialize)]
struct Done<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    reply: &'a Reply,
}

impl<'a> Done<'a> {
    const fn new(reply: &'a Reply) -> Self {
        Self { kind: DONE, reply }
    }
}

/// Appends JSON as the data of an event, on one line. Line breaks can only be white space between
/// tokens, from raw values.
pub(crate) fn push_data(json: &str, out: &mut String) {
    out.reserve(json.len() + "data: \n\n".len());
    out.push_str("data: ");
    let mut lines = json.split(['\n', '\r']);
    out.extend(lines.next());
    for line in lines {
        out.push(' ');
        out.push_str(line);
    }
    out.push_str("\n\n");
}

/// A decoder for the frames of a stream, from bytes in any chunks. Each frame may have up to
/// [`Limits::max_message_bytes`]. An unreadable frame is reported and skipped; the stream goes on.
///
/// ```
/// use acolyte_proto::http::{StreamDecoder, StreamFrame};
/// use acolyte_proto::Limits;
///
/// let mut decoder = StreamDecoder::new(&Limits::default());
/// let mut bytes: &[u8] = b":\n\ndata: {\"type\":\"text-delta\",\"text\":\"hi\"}\n\ndata: {\"ty";
/// let frame = decoder.decode(&mut bytes).unwrap().unwrap();
/// assert!(matches!(frame, StreamFrame::Event(_)));
/// assert!(decoder.decode(&mut bytes).is_none()); // more bytes are needed
/// ```
#[derive(Debug)]
pub struct StreamDecoder {
    events: sse::Decoder,
    limits: Limits,
}

impl StreamDecoder {
    /// Creates a decoder at the beginning of a stream.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            events: sse::Decoder::new(limits),
            limits: limits.clone(),
        }
    }

    /// Removes bytes from the front of `bytes` up to the end of a frame and returns the frame.
    /// `None` means that all bytes are consumed and more are needed. Call it until `None`, then
    /// again with the next chunk.
    pub fn decode(&mut self, bytes: &mut &[u8]) -> Option<Result<StreamFrame, StreamError>> {
        let Ok(event) = self.events.decode(bytes)? else {
            let max = self.limits.max_message_bytes;
            let size = max.saturating_add(1);
            let error = DecodeError::new(DecodeErrorKind::TooLarge { size, max });
            let terminal = false;
            return Some(Err(StreamError { error, terminal }));
        };
        let frame = StreamFrame::decode(&event.data, &self.limits);
        Some(frame.map_err(|error| {
            let is = |name: &str| {
                let tag = find_member(&event.data, "type");
                tag.is_some_and(|tag| tag.as_str().is_some_and(|tag| tag == name))
            };
            StreamError {
                terminal: is(DONE) || is("error"),
                error,
            }
        }))
    }

    /// Ends the stream. Returns whether part of a frame was lost.
    pub fn end(&mut self) -> bool {
        self.events.end()
    }
}

/// Why a frame of a stream could not be read. The frame is skipped, and the stream goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct StreamError {
    /// The reason.
    pub error: DecodeError,
    /// Whether the frame claims to be the last one, so that nothing follows.
    pub terminal: bool,
}

#[cfg(test)]
mod tests {
    use rpc_core::Json;

    use super::*;
    use crate::event::{ToolCall, Usage};

    fn decoded(bytes: &[u8], chunk: usize) -> Vec<Result<StreamFrame, StreamError>> {
        let mut decoder = StreamDecoder::new(&Limits::default());
        let mut frames = Vec::new();
        for mut bytes in bytes.chunks(chunk.max(1)) {
            while let Some(frame) = decoder.decode(&mut bytes) {
                frames.push(frame);
            }
        }
        frames
    }

    fn stream() -> (String, Vec<StreamFrame>) {
        let mut text = String::new();
        let usage = Event::Usage(Usage::new(1, 2));
        let reply = Reply {
            output_streamed: Some(true),
            ..Reply::new("höh\n", "m")
        };
        let error = AppError {
            code: Some("E_X".into()),
            ..AppError::failed("no")
        };
        StreamFrame::Event(Event::text("a\nü\u{2028}"))
            .write(&mut text)
            .unwrap();
        text.push_str(KEEP_ALIVE);
        StreamFrame::Event(usage.clone()).write(&mut text).unwrap();
        StreamFrame::Done(Box::new(reply.clone()))
            .write(&mut text)
            .unwrap();
        StreamFrame::Error(error.clone()).write(&mut text).unwrap();
        let frames = vec![
            StreamFrame::Event(Event::text("a\nü\u{2028}")),
            StreamFrame::Event(usage),
            StreamFrame::Done(Box::new(reply)),
            StreamFrame::Error(error),
        ];
        (text, frames)
    }

    #[test]
    fn written_events_are_read_back_in_any_chunks_and_with_any_line_ends() {
        let (text, frames) = stream();
        for text in [
            text.clone(),
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
        ] {
            for chunk in [1, 2, 3, 7, 1_000] {
                let read = decoded(text.as_bytes(), chunk);
                let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
                assert_eq!(read, frames);
            }
        }
    }

    #[test]
    fn frames_are_written_as_by_known_servers() {
        let (text, frames) = stream();
        assert!(
            text.starts_with("data: {\"type\":\"text-delta\",\"text\":\"a\\nü\u{2028}\"}\n\n:\n\n")
        );
        assert!(text.contains("data: {\"type\":\"done\",\"reply\":{\""));
        assert!(text.contains("data: {\"type\":\"error\",\"errorMessage\":\"no\""));
        for frame in frames {
            let mut json = String::new();
            encode_into(&frame, &mut json).unwrap();
            assert!(text.contains(&format!("data: {json}\n\n")), "{json}");
        }
    }

    #[test]
    fn raw_json_with_line_breaks_is_written_on_one_line() {
        let args = Json::new("{\n \"a\":\r\n\"x\\n\"}").unwrap();
        let event = Event::ToolCall(ToolCall::new("c", "t", args));
        let mut text = String::new();
        StreamFrame::Event(event).write(&mut text).unwrap();
        assert_eq!(
            text,
            "data: {\"type\":\"tool-call\",\"toolCallId\":\"c\",\"toolName\":\"t\",\
             \"args\":{  \"a\":  \"x\\n\"}}\n\n"
        );
    }

    #[test]
    fn an_undecodable_block_does_not_end_the_stream() {
        let good = "data: {\"type\":\"text-delta\",\"text\":\"x\"}\n\n";
        for (bad, terminal) in [
            ("data: nope\n\n", false),
            ("data: [1]\n\n", false),
            ("data: {\"type\":7}\n\n", false),
            ("data: {\"type\":\"done\"}\n\n", true),
        ] {
            let read = decoded(format!("{good}{bad}{good}").as_bytes(), 5);
            assert_eq!(read.len(), 3, "{bad}");
            assert!(read[0].is_ok() && read[2].is_ok());
            let Err(StreamError { terminal: is, .. }) = &read[1] else {
                panic!("{:?}", read[1])
            };
            assert_eq!(*is, terminal, "{bad}");
        }
    }

    #[test]
    fn a_frame_that_is_too_large_is_skipped() {
        let limits = Limits {
            max_message_bytes: 64,
            ..Limits::default()
        };
        let mut decoder = StreamDecoder::new(&limits);
        let text = format!(
            "data: {}\n\ndata: {{\"type\":\"later\"}}\n\n",
            "x".repeat(200)
        );
        let mut bytes = text.as_bytes();
        let large = decoder.decode(&mut bytes);
        assert!(
            matches!(&large, Some(Err(error)) if error.to_string().contains("64")),
            "{large:?}"
        );
        let next = decoder.decode(&mut bytes);
        assert!(
            matches!(&next, Some(Ok(StreamFrame::Event(Event::Unknown { tag, .. }))) if tag == "later"),
            "{next:?}"
        );
        assert!(!decoder.end());
    }
}
