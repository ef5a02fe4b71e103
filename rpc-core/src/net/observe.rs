//! [`Observer`]: one hook that sees every frame in and out, with secrets redacted.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::transport::Message;
use crate::message::Outgoing;

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
    pub(crate) fn incoming(message: &'a Message, redact: Redact) -> Self {
        let text = match message {
            Message::Text(text) => Some(text.as_str()),
            _ => None,
        };
        Self {
            direction: Direction::In,
            frame: message,
            text,
            redact,
        }
    }

    /// Returns `None` if `frame` is not a frame.
    pub(crate) fn outgoing(frame: &'a Outgoing, redact: Redact) -> Option<Self> {
        let text = match frame {
            Outgoing::Text(text) => Some(text.as_str()),
            Outgoing::Abort => return None,
            _ => None,
        };
        Some(Self {
            direction: Direction::Out,
            frame,
            text,
            redact,
        })
    }

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
    pub(crate) fn incoming(&self, message: &Message) {
        if *message == Message::Fragment {
            return;
        }
        // Kind and length only: bodies hold private text and secrets.
        tracing::trace!(target: "rpc_core::frames", direction = "in", frame = ?message);
        if let Some(observer) = &self.observer {
            observer.frame(&Frame::incoming(message, self.redact));
        }
    }

    pub(crate) fn outgoing(&self, frame: &Outgoing) {
        tracing::trace!(target: "rpc_core::frames", direction = "out", ?frame);
        if let Some(observer) = &self.observer
            && let Some(frame) = Frame::outgoing(frame, self.redact)
        {
            observer.frame(&frame);
        }
    }
}

crate::debug::debug_fields!([] Tap, this => { observer: this.observer.is_some() });
