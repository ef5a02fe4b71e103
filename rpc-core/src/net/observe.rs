//! [`Observer`]: one hook that sees every frame in and out, with secrets redacted.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::transport::Message;
use crate::json;
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
    line: &'a Line,
}

impl<'a> Frame<'a> {
    /// Returns the direction of the frame.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the number of the connection: each one of this program has another.
    #[must_use]
    pub const fn connection(&self) -> u64 {
        self.line.connection
    }

    /// Returns the address of the other end, if it is known.
    #[must_use]
    pub const fn peer(&self) -> Option<SocketAddr> {
        self.line.peer
    }

    /// Returns which connection of its link this is, from 1, as
    /// [`LinkState::Ready`](super::LinkState::Ready) counts them: attempts that fail have the number
    /// of the connection that they would be. 0 on a server.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.line.generation
    }

    /// Returns the name of the frame: the text in its member `type`, `method` or `event`, one of which
    /// every protocol has. `None` for a frame without, such as a reply. Read in this call.
    #[must_use]
    pub fn method(&self) -> Option<String> {
        let text = self.text()?;
        let member = |name| Some(json::find_member(&text, name)?.as_str()?.into_owned());
        ["type", "method", "event"].into_iter().find_map(member)
    }

    /// Returns the text of a text frame with the protocol's secrets replaced. The replacement
    /// happens in this call, so an observer that only counts does not pay for it.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        self.text.map(self.line.redact)
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

/// What an observer learns of a connection.
struct Line {
    observer: Arc<dyn Observer>,
    redact: Redact,
    connection: u64,
    peer: Option<SocketAddr>,
    generation: u64,
}

impl Line {
    fn show(&self, direction: Direction, frame: &(dyn fmt::Debug + Sync), text: Option<&Text>) {
        self.observer.frame(&Frame {
            direction,
            frame,
            text: text.map(Text::as_str),
            line: self,
        });
    }
}

/// An optional observer of one connection.
#[derive(Default)]
pub(crate) struct Tap(Option<Box<Line>>);

impl Tap {
    pub(crate) fn new(
        observer: Option<Arc<dyn Observer>>,
        redact: Redact,
        peer: Option<SocketAddr>,
        generation: u64,
    ) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
        Self(observer.map(|observer| {
            Box::new(Line {
                observer,
                redact,
                connection: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
                peer,
                generation,
            })
        }))
    }

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

    #[inline]
    fn show(&self, direction: Direction, frame: &(dyn fmt::Debug + Sync), text: Option<&Text>) {
        if let Some(line) = &self.0 {
            line.show(direction, frame, text);
        }
    }
}

crate::debug::debug_fields!([] Tap, this => { observer: this.0.is_some() });
