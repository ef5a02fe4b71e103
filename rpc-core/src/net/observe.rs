//! [`Observer`]: one hook that sees every frame in and out, with secrets redacted.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::transport::Message;
use crate::message::{Outgoing, Text};

/// The direction of a frame. Exhaustive: there is no third one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

/// Replaces the secrets of one protocol's text frames.
pub(crate) type Redact = for<'a> fn(&'a str) -> Cow<'a, str>;

/// One frame, as an [`Observer`] sees it.
pub struct Frame<'a> {
    direction: Direction,
    /// Prints kind and length only.
    frame: &'a (dyn fmt::Debug + Sync),
    text: Option<&'a str>,
    redact: Redact,
}

impl<'a> Frame<'a> {
    /// Returns the direction of the frame.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the text of a text frame with the protocol's secrets replaced. The replacement
    /// happens in this call, so an observer that only counts does not pay for it.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        self.text.map(self.redact)
    }
}

/// Prints direction, kind and length, and of a Close its code and reason.
impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.direction, self.frame)
    }
}

/// Sees every frame in and out of a connection: for wire logs, metrics and transcripts. Called on
/// the connection's own task, so it must not block.
///
/// Implemented for closures: `Arc::new(|frame: &Frame<'_>| ..)`.
pub trait Observer: Send + Sync + 'static {
    /// Called for each frame that was read or handed to the transport.
    fn frame(&self, frame: &Frame<'_>);
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl<F: Fn(&Frame<'_>) + Send + Sync + 'static> Observer for F {
    fn frame(&self, frame: &Frame<'_>) {
        self(frame);
    }
}

/// An optional observer with its redactor.
#[derive(Clone)]
pub(crate) struct Tap {
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) redact: Redact,
}

impl Default for Tap {
    fn default() -> Self {
        Self {
            observer: None,
            redact: |text| Cow::Borrowed(text),
        }
    }
}

impl Tap {
    #[inline]
    pub(crate) fn incoming(&self, message: &Message) {
        let text = match message {
            Message::Fragment => return,
            Message::Text(text) => Some(text),
            _ => None,
        };
        // Kind and length only: bodies hold private text and secrets.
        tracing::trace!(target: "rpc_core::frames", direction = "in", frame = ?message);
        self.show(Direction::In, message, text);
    }

    #[inline]
    pub(crate) fn outgoing(&self, frame: &Outgoing) {
        tracing::trace!(target: "rpc_core::frames", direction = "out", ?frame);
        match frame {
            Outgoing::Abort => {}
            Outgoing::Text(text) => self.show(Direction::Out, frame, Some(text)),
            _ => self.show(Direction::Out, frame, None),
        }
    }

    fn show(&self, direction: Direction, frame: &(dyn fmt::Debug + Sync), text: Option<&Text>) {
        if let Some(observer) = &self.observer {
            observer.frame(&Frame {
                direction,
                frame,
                text: text.map(Text::as_str),
                redact: self.redact,
            });
        }
    }
}

crate::debug::debug_fields!([] Tap, this => { observer: this.observer.is_some() });
