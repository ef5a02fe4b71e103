//! [`Outbox`]: frames waiting to be sent, bounded in number and bytes.

use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;

use crate::encode::encode_into;
use crate::error::Refused;
use crate::limits::Limits;
use crate::message::{CloseFrame, Outgoing, Text};

/// The size from which a chunk takes no further frames.
const CHUNK: usize = 16 * 1024;
/// The size up to which a lone frame is copied, so that its buffer is reused.
const SMALL: usize = 256;
/// Most bytes of streams that wait to be sent, if the limits allow more.
const MAX_STREAMED: usize = 1024 * 1024;
/// The capacity of the queue that is kept when it is empty.
const KEPT_FRAMES: usize = 32;

/// The frames that wait to be sent.
///
/// Waiting frames are written into one text, and cut from it without a copy when they leave. A
/// frame is either queued whole or refused with nothing changed, so a machine can check for room
/// first and change its state afterwards.
///
/// Most connections are silent most of the time, so an empty outbox holds little memory, and none
/// after the first ping without a frame before it.
#[derive(Debug)]
pub(crate) struct Outbox {
    frames: VecDeque<Waiting>,
    /// The text of the written frames: the chunk being cut, whole chunks, and the chunk being
    /// written.
    leaving: Bytes,
    chunks: VecDeque<Bytes>,
    open: String,
    /// The length of the last chunk, at most [`CHUNK`], as an estimate for the next one.
    last_chunk: u16,
    /// How many frames were queued since none waited, and how many it were the time before.
    burst: usize,
    last_burst: usize,
    queued_bytes: usize,
    taken: u64,
    closing: bool,
    max_message: usize,
    max_frames: usize,
    max_bytes: usize,
}

/// A frame in the queue.
#[derive(Debug)]
enum Waiting {
    /// The next bytes of the chunks, this many.
    Written(usize),
    /// Anything else.
    Ready(Outgoing),
}

/// A frame that is being written. Dropped, also by a panic of what writes it, it leaves nothing
/// behind.
struct Unfinished<'o> {
    outbox: &'o mut Outbox,
    /// Where it begins.
    start: usize,
    is_done: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        self.outbox.open.truncate(self.start);
        self.outbox.open.shrink_to(CHUNK);
        if self.outbox.frames.is_empty() {
            self.outbox.release();
        }
    }
}

/// The number of a frame on its connection; see
/// [`MachineCore::delivery`](crate::MachineCore::delivery).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameNumber(u64);

/// Creates an empty outbox with the default limits.
impl Default for Outbox {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

impl Outbox {
    /// Creates an empty outbox with these limits.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            frames: VecDeque::new(),
            leaving: Bytes::new(),
            chunks: VecDeque::new(),
            open: String::new(),
            last_chunk: 0,
            burst: 0,
            last_burst: 0,
            queued_bytes: 0,
            taken: 0,
            closing: false,
            max_message: limits.max_message_bytes,
            max_frames: limits.max_outbox_frames,
            max_bytes: limits.max_outbox_bytes,
        }
    }

    /// Sets the largest message.
    pub(crate) const fn set_max_message(&mut self, bytes: usize) {
        self.max_message = bytes;
    }

    /// See [`MachineCore::send_with`](crate::MachineCore::send_with).
    pub(crate) fn encode(
        &mut self,
        encode: impl FnOnce(&mut String) -> Result<(), Refused>,
    ) -> Result<FrameNumber, Refused> {
        self.check_open()?;
        if self.open.len() >= CHUNK {
            let chunk = self.finish_chunk();
            self.chunks.push_back(chunk);
        }
        if self.open.capacity() == 0 {
            self.open = String::with_capacity(self.expected());
        }
        let start = self.open.len();
        let mut unfinished = Unfinished {
            outbox: self,
            start,
            is_done: false,
        };
        let outbox = &mut *unfinished.outbox;
        encode(&mut outbox.open)?;
        let size = outbox.open.len().saturating_sub(start);
        outbox.check_room(size)?;
        let number = outbox.push(Waiting::Written(size), size);
        unfinished.is_done = true;
        Ok(number)
    }

    /// Serializes `value` as JSON and queues it as a text frame.
    pub(crate) fn json(
        &mut self,
        value: &(impl serde::Serialize + ?Sized),
    ) -> Result<FrameNumber, Refused> {
        self.encode(|buffer| encode_into(value, buffer))
    }

    /// Queues text that is encoded already, sharing its bytes.
    pub(crate) fn text(&mut self, text: Text) -> Result<FrameNumber, Refused> {
        self.check_open()?;
        self.check_room(text.len())?;
        Ok(self.push_ready(Outgoing::Text(text)))
    }

    /// Queues a WebSocket ping. A ping needs no room: there is at most one per interval.
    pub(crate) fn ping(&mut self) {
        if !self.closing {
            self.push_ready(Outgoing::Ping(Bytes::new()));
        }
    }

    /// Queues a Close after everything that waits. Nothing can be queued after it.
    pub(crate) fn close(&mut self, frame: CloseFrame) {
        if !self.closing {
            self.push_ready(Outgoing::Close(frame));
            self.closing = true;
        }
    }

    /// Removes and returns the next frame.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Outgoing> {
        let frame = match self.frames.pop_front()? {
            Waiting::Written(size) => Outgoing::Text(self.cut(size)),
            Waiting::Ready(frame) => frame,
        };
        self.queued_bytes -= frame.len();
        self.taken += 1;
        if self.frames.is_empty() {
            self.last_burst = mem::take(&mut self.burst);
            let is_quiet = matches!(frame, Outgoing::Ping(_));
            if is_quiet || self.frames.capacity() > KEPT_FRAMES {
                self.release();
            }
        }
        Some(frame)
    }

    /// Drops everything that waits and accepts nothing more.
    pub(crate) fn discard(&mut self) {
        self.release();
        self.queued_bytes = 0;
        self.closing = true;
    }

    /// Returns whether this frame has been handed to the transport.
    pub(crate) const fn was_taken(&self, frame: FrameNumber) -> bool {
        frame.0 < self.taken
    }

    /// Returns whether less than half of the room is used.
    pub(crate) fn has_slack(&self) -> bool {
        self.frames.len() <= self.max_frames / 2 && self.queued_bytes <= self.max_bytes / 2
    }

    /// Returns whether less waits than this part of the room of streams: a quarter of the whole
    /// room, at most 1 MiB.
    pub(crate) fn has_stream_room(&self, part: usize) -> bool {
        let max_bytes = MAX_STREAMED.min(self.max_bytes / 4);
        self.frames.is_empty()
            || (self.frames.len() < self.max_frames / 4 / part
                && self.queued_bytes < max_bytes / part)
    }

    /// Returns whether this many frames fit. If nothing waits, any number does.
    pub(crate) fn has_room_for(&self, frames: usize) -> bool {
        self.frames.is_empty() || self.frames.len().saturating_add(frames) <= self.max_frames
    }

    fn check_open(&self) -> Result<(), Refused> {
        (!self.closing).then_some(()).ok_or(Refused::Closed)
    }

    #[inline]
    fn check_room(&self, size: usize) -> Result<(), Refused> {
        if size > self.max_message {
            return Err(Refused::TooLarge {
                size,
                max: self.max_message,
            });
        }
        let fits = self.frames.len() < self.max_frames
            // A single large message may exceed the byte budget if nothing else waits.
            && (self.frames.is_empty() || self.queued_bytes + size <= self.max_bytes);
        fits.then_some(()).ok_or(Refused::QueueFull)
    }

    fn push_ready(&mut self, frame: Outgoing) -> FrameNumber {
        let size = frame.len();
        self.push(Waiting::Ready(frame), size)
    }

    #[inline]
    fn push(&mut self, frame: Waiting, size: usize) -> FrameNumber {
        let number = FrameNumber(self.taken + self.frames.len() as u64);
        self.queued_bytes += size;
        if self.frames.capacity() == 0 {
            // A busy connection does not grow the queue anew in each turn.
            self.frames.reserve_exact(self.last_burst);
        }
        self.burst += 1;
        self.frames.push_back(frame);
        number
    }

    /// Cuts the next frame from the oldest chunk.
    fn cut(&mut self, size: usize) -> Text {
        if self.leaving.is_empty() {
            if self.frames.is_empty() && self.open.capacity() <= SMALL {
                let text = Text::from(self.open.as_str());
                self.open.clear();
                return text;
            }
            self.leaving = match self.chunks.pop_front() {
                Some(chunk) => chunk,
                None => self.finish_chunk(),
            };
        }
        let size = size.min(self.leaving.len());
        Text::from_checked(self.leaving.split_to(size))
    }

    /// The capacity for the next chunk: a little longer than the last one, so that a chunk like it
    /// is not moved while it is written.
    fn expected(&self) -> usize {
        match usize::from(self.last_chunk) {
            small if small <= SMALL => SMALL,
            last => last + SMALL,
        }
    }

    fn finish_chunk(&mut self) -> Bytes {
        // It fits, so 0 is never taken.
        self.last_chunk = u16::try_from(self.open.len().min(CHUNK)).unwrap_or(0);
        Bytes::from(mem::take(&mut self.open))
    }

    /// Drops what waits and frees all memory. A frame that was cut from a chunk keeps the chunk
    /// alive.
    fn release(&mut self) {
        self.frames = VecDeque::new();
        self.leaving = Bytes::new();
        self.chunks = VecDeque::new();
        self.open = String::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(outbox: &mut Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.pop())
            .map(|frame| match frame {
                Outgoing::Text(text) => text.as_str().to_owned(),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn frames_leave_in_order_and_are_counted() {
        let mut outbox = Outbox::new(&Limits::default());
        let first = outbox.json(&1).unwrap();
        let second = outbox.text(Text::from("2")).unwrap();
        assert!(!outbox.was_taken(first));
        assert!(outbox.pop().is_some());
        assert!(outbox.was_taken(first) && !outbox.was_taken(second));
        assert_eq!(texts(&mut outbox), ["2"]);
        assert_eq!(outbox.queued_bytes, 0);
    }

    #[test]
    fn streams_have_a_quarter_of_the_room_and_at_most_a_mebibyte() {
        for (max_outbox_bytes, room) in [(4_000, 1_000), (usize::MAX, MAX_STREAMED)] {
            let mut outbox = Outbox::new(&Limits {
                max_message_bytes: usize::MAX,
                max_outbox_bytes,
                ..Limits::default()
            });
            for (bytes, has_room) in [(room - 1, true), (1, false)] {
                outbox.text("x".repeat(bytes).into()).unwrap();
                assert_eq!(outbox.has_stream_room(1), has_room);
            }
        }
    }

    #[test]
    fn a_message_over_the_limit_is_refused_and_leaves_nothing_behind() {
        let mut outbox = Outbox::new(&Limits {
            max_message_bytes: 4,
            ..Limits::default()
        });
        assert_eq!(
            outbox.json(&"long"),
            Err(Refused::TooLarge { size: 6, max: 4 })
        );
        outbox.json(&"ok").unwrap();
        assert_eq!(texts(&mut outbox), ["\"ok\""]);
    }

    #[test]
    fn a_failed_encoding_leaves_nothing_behind() {
        let mut outbox = Outbox::new(&Limits::default());
        let refused = outbox.encode(|buffer| {
            buffer.push_str("half");
            Err(Refused::UnknownId)
        });
        assert_eq!(refused, Err(Refused::UnknownId));
        outbox.json(&1).unwrap();
        assert_eq!(texts(&mut outbox), ["1"]);
    }

    #[test]
    fn an_encoder_that_panics_leaves_nothing_behind() {
        let mut outbox = Outbox::new(&Limits::default());
        outbox.json(&1).unwrap();
        let panics = std::panic::AssertUnwindSafe(|| {
            outbox.encode(|buffer| {
                buffer.push_str("half");
                panic!("on purpose")
            })
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        outbox.json(&2).unwrap();
        assert_eq!(texts(&mut outbox), ["1", "2"]);
    }

    #[test]
    fn frames_of_all_kinds_and_sizes_keep_their_order() {
        let mut outbox = Outbox::new(&Limits::default());
        let long = "x".repeat(2 * CHUNK);
        let mut expected = Vec::new();
        for round in 0..40_usize {
            let text = &long[..round * round * 3];
            outbox.json(text).unwrap();
            outbox.text(Text::from("shared")).unwrap();
            expected.extend([format!("\"{text}\""), "shared".to_owned()]);
            if round % 7 == 0 {
                assert!(outbox.json(&f64::NAN).is_ok());
                expected.push("null".to_owned());
                for left in expected.drain(..2) {
                    assert_eq!(outbox.pop(), Some(Outgoing::Text(Text::from(left))));
                }
            }
        }
        assert_eq!(texts(&mut outbox), expected);
        assert_eq!(outbox.queued_bytes, 0);
    }

    #[test]
    fn an_idle_outbox_releases_its_memory() {
        let limits = Limits {
            max_message_bytes: 1_000_000,
            ..Limits::default()
        };
        let mut outbox = Outbox::new(&limits);
        let refused = outbox.json(&"x".repeat(2_000_000));
        assert!(matches!(refused, Err(Refused::TooLarge { .. })));
        assert_eq!(outbox.open.capacity(), 0);
        for _ in 0..100 {
            outbox.json(&"x".repeat(1_000)).unwrap();
        }
        assert_eq!(texts(&mut outbox).len(), 100);
        outbox.json(&"lone").unwrap();
        assert_eq!(texts(&mut outbox).len(), 1);
        assert!(outbox.frames.capacity() <= KEPT_FRAMES);
        assert!(outbox.open.capacity() <= CHUNK);
        outbox.ping();
        assert!(outbox.pop().is_some());
        assert_eq!((outbox.frames.capacity(), outbox.open.capacity()), (0, 0));
    }

    #[test]
    fn a_full_outbox_refuses_and_recovers() {
        let mut outbox = Outbox::new(&Limits {
            max_outbox_frames: 1,
            ..Limits::default()
        });
        outbox.json(&1).unwrap();
        assert_eq!(outbox.json(&2), Err(Refused::QueueFull));
        assert!(outbox.pop().is_some());
        assert!(outbox.json(&2).is_ok());
    }

    #[test]
    fn nothing_follows_a_close() {
        let mut outbox = Outbox::new(&Limits::default());
        outbox.close(CloseFrame::new(1000, ""));
        outbox.close(CloseFrame::new(1001, ""));
        outbox.ping();
        assert_eq!(outbox.json(&1), Err(Refused::Closed));
        assert_eq!(outbox.frames.len(), 1);
    }
}
