//! [`TextStream`]: decides which texts of a streamed answer to send, and when. Without IO.
//!
//! A streamed answer is a series of partial messages, each of which holds the *whole* text so far
//! and replaces the previous one, and one final message (Snek specification, section 10). The
//! rules:
//!
//! - One message at a time: the next one follows when the last one was answered or has failed. This
//!   keeps the messages in order, because a server may carry out calls concurrently.
//! - Intermediate texts are skipped while the connection is slow; the newest one wins.
//! - A partial message that is empty or equal to the previous one is skipped. One that failed is
//!   not repeated: the next one contains its text.
//! - There is exactly one final message, even for an empty answer, and nothing after it.

use std::sync::Arc;
use std::time::Duration;

use rpc_core::text::beginning;
use rpc_core::timers::later;
use rpc_core::{Instant, Refused};

use crate::frame::Final;
use crate::limits::STREAMING_UPDATE_INTERVAL;
use crate::sanitize::sanitize_names;

rpc_core::config! {
    /// The configuration of a streamed answer.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StreamConfig {
        /// The least time between the starts of two partial messages. Default none.
        pub interval: Duration = STREAMING_UPDATE_INTERVAL,
        /// How long to send nothing after a partial message failed, so that not every change tries
        /// a lost connection. Default 1 s.
        pub pause: Duration = Duration::from_secs(1),
        /// How long to wait for the answer to a partial message before sending the next one anyway.
        /// A bot waits no longer than for any call
        /// ([`call_timeout`](crate::client::ClientConfig::call_timeout)). Default 15 s.
        pub partial_timeout: Duration = Duration::from_secs(15),
        /// The note below the text of an interrupted answer; empty for none. Default
        /// `(interrupted)`.
        pub note: String = "(interrupted)".to_owned(),
        /// Most bytes of a text, as a JSON string without its quotes. Default 4 MiB less 1 KiB.
        pub max_bytes: usize = 4 * 1024 * 1024 - 1024,
        /// Whether to break up the names of known bots. Default yes.
        pub sanitize: bool = true,
    }
}

/// A message to send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    /// The whole text so far, sanitised and cut to the limit.
    pub(crate) text: Arc<str>,
    /// Whether it is the last one.
    pub(crate) is_final: Final,
}

/// The phase of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The text may still grow.
    Open,
    /// The final message has not been handed out yet.
    Ending,
    /// The final message was handed out.
    Ended,
}

/// A streamed answer: takes text and returns messages.
///
/// After every input call [`poll_send`](Self::poll_send), send what it returns, and report the
/// result with [`on_answer`](Self::on_answer). [`poll_timeout`](Self::poll_timeout) says when to
/// call it again if nothing happens before. `now` must not go back.
#[derive(Clone, Debug)]
pub(crate) struct TextStream {
    config: StreamConfig,
    text: String,
    /// Bytes beyond the limit, which are counted and dropped.
    lost: usize,
    phase: Phase,
    /// The note below the final text; empty for none.
    note: String,
    /// Whether the text has changed since the last message.
    changed: bool,
    /// The last partial text.
    last: Arc<str>,
    in_flight: bool,
    /// When the next partial message may be sent.
    not_before: Option<Instant>,
    /// The size of the whole final text, if it had to be cut.
    cut_from: Option<usize>,
}

impl TextStream {
    /// Creates an answer without text.
    pub(crate) fn new(config: StreamConfig) -> Self {
        Self {
            config,
            text: String::new(),
            lost: 0,
            phase: Phase::Open,
            note: String::new(),
            changed: false,
            last: Arc::from(""),
            in_flight: false,
            not_before: None,
            cut_from: None,
        }
    }

    /// Returns the configuration.
    pub(crate) const fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// Adds to the text. Ignored after the end. Text beyond the [limit](StreamConfig::max_bytes) is
    /// counted and dropped.
    pub(crate) fn push(&mut self, delta: &str) {
        if self.phase != Phase::Open || delta.is_empty() {
            return;
        }
        // Nothing may follow a gap.
        let room = if self.lost > 0 {
            0
        } else {
            self.config.max_bytes.saturating_sub(self.text.len())
        };
        let fits = beginning(delta, room);
        self.text.push_str(fits);
        self.lost = self.lost.saturating_add(delta.len() - fits.len());
        self.changed |= !fits.is_empty();
    }

    /// Replaces the text. Ignored after the end.
    pub(crate) fn set(&mut self, whole: &str) {
        if self.phase == Phase::Open {
            self.text.clear();
            self.lost = 0;
            self.changed = true;
            self.push(whole);
        }
    }

    /// Returns the text so far, as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Marks the text as complete. Ignored after the end.
    pub(crate) fn finish(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Ending;
        }
    }

    /// Marks the text as interrupted: the final message is the text so far with a note below, or
    /// only the note if there is no text. Ignored after the end.
    pub(crate) fn fail(&mut self, note: &str) {
        if self.phase == Phase::Open {
            self.phase = Phase::Ending;
            note.clone_into(&mut self.note);
        }
    }

    /// Returns the next message to send, if one is due.
    pub(crate) fn poll_send(&mut self, now: Instant) -> Option<Post> {
        if self.in_flight {
            return None;
        }
        match self.phase {
            Phase::Ended => None,
            Phase::Ending => Some(self.last_post()),
            Phase::Open => {
                if !self.changed || self.not_before.is_some_and(|at| now < at) {
                    return None;
                }
                self.changed = false;
                let (text, _) = self.render("");
                if text.is_empty() || *text == *self.last {
                    return None;
                }
                self.last = Arc::from(text);
                self.in_flight = true;
                self.not_before = Some(later(now, self.config.interval));
                let (text, is_final) = (Arc::clone(&self.last), Final::No);
                Some(Post { text, is_final })
            }
        }
    }

    /// Returns when a message becomes due that was held back. `None` while a message is in flight.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.in_flight || !self.changed || self.phase != Phase::Open {
            return None;
        }
        self.not_before
    }

    /// Reports that the message in flight was answered, or has failed for good. A no-op if none is
    /// in flight.
    pub(crate) fn on_answer(&mut self, taken: bool, now: Instant) {
        if std::mem::take(&mut self.in_flight) && !taken {
            let pause = later(now, self.config.pause);
            self.not_before = self.not_before.max(Some(pause));
        }
    }

    /// Ends the answer and returns the final message, to be sent at once whatever is in flight. It
    /// has the configured note if the text was not [finished](Self::finish). `None` if the final
    /// message was already returned.
    pub(crate) fn abandon(&mut self) -> Option<Post> {
        let note = std::mem::take(&mut self.config.note);
        self.fail(&note);
        (self.phase == Phase::Ending).then(|| self.last_post())
    }

    /// Returns an error if the final message had to be cut.
    ///
    /// # Errors
    /// [`Refused::TooLarge`]. The text would be too large again.
    pub(crate) fn fitted(&self) -> Result<(), Refused> {
        self.cut_from.map_or(Ok(()), |size| {
            let max = self.config.max_bytes;
            Err(Refused::TooLarge { size, max })
        })
    }

    fn last_post(&mut self) -> Post {
        self.phase = Phase::Ended;
        self.in_flight = true;
        let note = std::mem::take(&mut self.note);
        let (text, size) = self.render(&note);
        if size > self.config.max_bytes {
            self.cut_from = Some(size);
        }
        self.last = Arc::from("");
        let (text, is_final) = (text.into(), Final::Yes);
        Post { text, is_final }
    }

    /// Returns the text with a note below, cut to the limit, and its size before the cut.
    fn render(&self, note: &str) -> (String, usize) {
        let clean = |text: &str| {
            if self.config.sanitize {
                sanitize_names(text).into_owned()
            } else {
                text.to_owned()
            }
        };
        let max = self.config.max_bytes;
        let mut note = match (note.is_empty(), self.text.is_empty()) {
            (true, _) => String::new(),
            (_, true) => clean(note),
            (_, false) => format!("\n\n{}", clean(note)),
        };
        let note_size = json_len(&note);
        cut(&mut note, max);
        let mut text = clean(&self.text);
        let size = json_len(&text);
        let room = max.saturating_sub(json_len(&note));
        if size > room {
            cut(&mut text, room);
            // The cut may have made a name of a longer word.
            text = clean(&text);
            cut(&mut text, room);
        }
        text.push_str(&note);
        let whole = size.saturating_add(note_size).saturating_add(self.lost);
        (text, whole)
    }
}

/// Returns the size of a text inside a JSON string.
fn json_len(text: &str) -> usize {
    text.bytes().map(json_width).sum()
}

const fn json_width(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

/// Cuts a text so that it has at most `max` bytes as JSON.
fn cut(text: &mut String, max: usize) {
    let mut size = 0;
    let over = text.bytes().position(|byte| {
        size += json_width(byte);
        size > max
    });
    if let Some(at) = over {
        let len = beginning(text, at).len();
        text.truncate(len);
    }
}

#[cfg(test)]
mod tests;
