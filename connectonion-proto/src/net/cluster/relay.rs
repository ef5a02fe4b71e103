//! [`Relay`]: one end of a connection whose frames travel between two nodes. It does no IO.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rpc_core::Instant;
use rpc_core::timers::{later, sooner};

use super::packet::{Frame, Kind, Packet, cost};

rpc_core::config! {
    /// The limits and times of relayed connections.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RelayConfig {
        /// The largest frame in bytes; a larger one ends the connection. Default 64 MiB.
        pub max_frame_bytes: usize = crate::limits::MAX_CLIENT_MESSAGE,
        /// How many bytes of frames one end holds that the other has sent and its own connection
        /// has not taken, beside one frame in pieces. Must be the same at all nodes. Default
        /// 256 KiB.
        pub window: u64 = 256 * 1024,
        /// The largest piece of a frame in bytes. Pieces are never larger than what the server
        /// takes. Default 64 KiB.
        pub max_piece_bytes: usize = 64 * 1024,
        /// How long what was sent may stay unconfirmed before the other end is asked. Default 2 s.
        pub probe_after: Duration = Duration::from_secs(2),
        /// How long a connection may be silent before the other end is asked. Default 30 s.
        pub idle_probe: Duration = Duration::from_secs(30),
        /// How long an answer may take. Default 8 s.
        pub timeout: Duration = Duration::from_secs(8),
    }
}

/// Why a relayed connection has ended. Exhaustive: there is no other case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RelayEnd {
    /// By a Close or a cut that was passed on.
    #[error("the connection is over")]
    Over,
    /// Packets were lost.
    #[error("frames were lost between two nodes")]
    Gap,
    /// The other end gave no answer in time.
    #[error("the other node does not answer")]
    Timeout,
    /// The other end has given the connection up.
    #[error("the other node has given the connection up")]
    Gone,
    /// A frame exceeds the limit.
    #[error("a frame is too large")]
    TooLarge,
    /// The other end broke the rules.
    #[error("the other node broke the rules of a relay")]
    Violation,
}

/// One end of a relayed connection.
///
/// Frames are cut into numbered pieces and sent within a window. A piece that is missing ends the
/// connection: its client connects again and resumes. Both ends follow the rules of a
/// [`Machine`](rpc_core::Machine): after each call, take [`poll_packet`](Self::poll_packet) and
/// [`poll_frame`](Self::poll_frame), and check [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub(crate) struct Relay {
    config: RelayConfig,
    /// The frame being sent, and how many of its bytes are.
    sending: Option<(Kind, Bytes)>,
    /// The number of the next piece.
    next: u64,
    /// The number that the other end expects.
    confirmed: u64,
    /// The cost of all pieces sent, and of those that the other end has passed on.
    sent: u64,
    freed: u64,
    /// The number of the next piece of the other end.
    expected: u64,
    /// The frame in pieces.
    partial: BytesMut,
    /// The frames that are complete, with their cost.
    ready: VecDeque<(Frame, u64)>,
    /// The cost of pieces of `partial` that were not counted as passed on.
    unpassed: u64,
    /// The cost of what was received, of what was passed on, and of what the other end knows of.
    received: u64,
    passed: u64,
    told: u64,
    /// A `Credit` or a `Probe` to send.
    owes_credit: bool,
    owes_probe: bool,
    heard_at: Instant,
    /// When the oldest unconfirmed piece was sent, or confirmation last went on.
    unconfirmed_at: Option<Instant>,
    /// When the answer to a probe is late.
    deadline: Option<Instant>,
    /// Whether a Close or a cut was sent, or received.
    is_finished: bool,
    end: Option<RelayEnd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    Probe,
    Deadline,
}

impl Relay {
    pub(crate) fn new(config: RelayConfig, now: Instant) -> Self {
        Self {
            config,
            sending: None,
            next: 0,
            confirmed: 0,
            sent: 0,
            freed: 0,
            expected: 0,
            partial: BytesMut::new(),
            ready: VecDeque::new(),
            unpassed: 0,
            received: 0,
            passed: 0,
            told: 0,
            owes_credit: false,
            owes_probe: false,
            heard_at: now,
            unconfirmed_at: None,
            deadline: None,
            is_finished: false,
            end: None,
        }
    }

    /// Returns whether a frame may be [sent](Self::send): read no more from the own connection
    /// until then.
    pub(crate) fn has_room(&self) -> bool {
        self.sending.is_none() && !self.is_finished && self.end.is_none()
    }

    /// Sends a frame; the last one must have been taken. After a Close or a cut, nothing is sent.
    pub(crate) fn send(&mut self, frame: Frame) {
        if !self.has_room() {
            return;
        }
        let (kind, bytes) = frame.into_parts();
        if bytes.len() > self.config.max_frame_bytes {
            self.end = Some(RelayEnd::TooLarge);
            return;
        }
        self.is_finished = matches!(kind, Kind::Close | Kind::Cut);
        self.sending = Some((kind, bytes));
    }

    /// Returns why the connection has ended, once there are no frames left to take.
    pub(crate) fn end(&self) -> Option<RelayEnd> {
        self.end
            .filter(|end| self.ready.is_empty() || *end != RelayEnd::Over)
    }

    /// Notes that the other node is gone.
    pub(crate) fn handle_lost(&mut self) {
        self.end.get_or_insert(RelayEnd::Timeout);
    }

    pub(crate) fn handle_packet(&mut self, packet: Packet, now: Instant) {
        if self.end.is_some() {
            return;
        }
        self.heard_at = now;
        self.deadline = None;
        match packet {
            Packet::Data {
                number,
                kind,
                is_last,
                bytes,
            } => {
                if number != self.expected {
                    self.end = Some(RelayEnd::Gap);
                    return;
                }
                self.expected += 1;
                self.data(kind, is_last, bytes);
            }
            Packet::Credit { expected, passed } => {
                if expected > self.next || passed > self.sent {
                    self.end = Some(RelayEnd::Violation);
                    return;
                }
                if expected > self.confirmed {
                    self.confirmed = expected;
                    self.unconfirmed_at = (expected < self.next).then_some(now);
                }
                self.freed = self.freed.max(passed);
            }
            Packet::Probe { next } => {
                if next != self.expected {
                    self.end = Some(RelayEnd::Gap);
                    return;
                }
                self.owes_credit = true;
            }
            Packet::Gone => self.end = Some(RelayEnd::Gone),
        }
    }

    fn data(&mut self, kind: Kind, is_last: bool, bytes: Bytes) {
        self.received += cost(bytes.len());
        self.unpassed += cost(bytes.len());
        if self.received - self.passed > self.config.window + cost(0) {
            self.end = Some(RelayEnd::Violation);
            return;
        }
        if self.partial.len() + bytes.len() > self.config.max_frame_bytes {
            self.end = Some(RelayEnd::TooLarge);
            return;
        }
        if !is_last {
            self.partial.extend_from_slice(&bytes);
            self.pass_partial();
            return;
        }
        let whole = if self.partial.is_empty() {
            bytes
        } else {
            self.partial.extend_from_slice(&bytes);
            std::mem::take(&mut self.partial).freeze()
        };
        let Some(frame) = Frame::from_parts(kind, whole) else {
            self.end = Some(RelayEnd::Violation);
            return;
        };
        if matches!(frame, Frame::Close(_) | Frame::Cut) {
            self.end = Some(RelayEnd::Over);
        }
        let cost = std::mem::take(&mut self.unpassed);
        self.ready.push_back((frame, cost));
    }

    /// Counts the pieces of an incomplete frame as passed on, unless frames before it wait: so that
    /// one frame may be larger than the window, and no more than one is held.
    fn pass_partial(&mut self) {
        if self.ready.is_empty() {
            self.passed += std::mem::take(&mut self.unpassed);
            self.tell();
        }
    }

    /// Sends a `Credit` when half of the window was passed on.
    fn tell(&mut self) {
        if self.passed - self.told >= self.config.window / 2 {
            self.owes_credit = true;
        }
    }

    /// Returns the next frame of the other end, when the own connection takes it.
    pub(crate) fn poll_frame(&mut self) -> Option<Frame> {
        let (frame, cost) = self.ready.pop_front()?;
        self.passed += cost;
        self.tell();
        self.pass_partial();
        Some(frame)
    }

    pub(crate) fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        if self.end.is_some_and(|end| end != RelayEnd::Over) {
            return None;
        }
        if std::mem::take(&mut self.owes_credit) {
            self.told = self.passed;
            return Some(Packet::Credit {
                expected: self.expected,
                passed: self.passed,
            });
        }
        if let Some(piece) = self.next_piece(now) {
            return Some(piece);
        }
        if std::mem::take(&mut self.owes_probe) {
            return Some(Packet::Probe { next: self.next });
        }
        None
    }

    fn next_piece(&mut self, now: Instant) -> Option<Packet> {
        let (kind, rest) = self.sending.as_mut()?;
        let room = self.config.window.saturating_sub(self.sent - self.freed);
        let room = usize::try_from(room.checked_sub(cost(0))?).unwrap_or(usize::MAX);
        let len = rest.len().min(room).min(self.config.max_piece_bytes);
        if len == 0 && !rest.is_empty() {
            return None;
        }
        let bytes = rest.split_to(len);
        let (kind, is_last) = (*kind, rest.is_empty());
        if is_last {
            self.sending = None;
            if self.is_finished {
                self.end = Some(RelayEnd::Over);
            }
        }
        let number = self.next;
        self.next += 1;
        self.sent += cost(len);
        self.unconfirmed_at.get_or_insert(now);
        Some(Packet::Data {
            number,
            kind,
            is_last,
            bytes,
        })
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.due().map(|(at, _)| at)
    }

    fn due(&self) -> Option<(Instant, Due)> {
        if self.end.is_some() {
            return None;
        }
        if let Some(deadline) = self.deadline {
            return Some((deadline, Due::Deadline));
        }
        let unconfirmed = self
            .unconfirmed_at
            .map(|at| (later(at, self.config.probe_after), Due::Probe));
        let idle = (later(self.heard_at, self.config.idle_probe), Due::Probe);
        sooner(unconfirmed, Some(idle))
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self.due() {
            Some((at, due)) if at <= now => match due {
                Due::Probe => {
                    self.owes_probe = true;
                    // Asked again later, if something else is heard.
                    self.unconfirmed_at = self.unconfirmed_at.map(|_| now);
                    self.deadline = Some(later(now, self.config.timeout));
                }
                Due::Deadline => self.end = Some(RelayEnd::Timeout),
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
