//! The [`Machine`] trait: one side of one open connection, without any IO.

use crate::Instant;
use crate::error::Disconnect;
use crate::message::{CloseFrame, Incoming, Outgoing};

/// One side of one open connection: created when the connection is up, dead when it is down.
///
/// Commands (sending a call, answering a request) are inherent methods of each machine, so that
/// they can return typed values. This trait has only what a driver, a test harness or your own
/// event loop needs.
///
/// What every machine needs besides its protocol is in [`MachineCore`](crate::MachineCore).
///
/// # Rules
///
/// Every machine in this workspace keeps these rules; the functions in
/// `testing::conformance` (feature `testing`) check them.
///
/// 1. **A machine lives as long as its connection.** A reconnect builds a new machine from a resume
///    value. A machine has no "disconnected" state.
/// 2. **Drain after every input or command**: [`poll_transmit`](Self::poll_transmit) until `None`,
///    then [`poll_event`](Self::poll_event), then read [`poll_timeout`](Self::poll_timeout). The
///    two polls are separate so that an application that stops taking events never stops pongs
///    and replies.
/// 3. **`now` never goes back**, and a machine reads no clock, no randomness, and spawns nothing.
///    Wall time and entropy are arguments where the wire needs them. The transport answers pings
///    of the peer; a machine only sees them.
/// 4. **Nothing that the peer sends panics or returns `Err`.** It becomes an event, a reaction on
///    the wire, or a close reason. A mistake of the caller is an `Err` at once and changes nothing.
/// 5. **Closed is inert.** A closed and drained machine produces nothing and has no deadline. Every
///    pending call has ended exactly once, with the actual reason.
/// 6. **Memory is bounded** by [`Limits`](crate::Limits). Registering a call and sending it is all
///    or nothing.
pub trait Machine {
    /// What the machine reports to the application.
    type Event;

    /// Takes one message from the peer.
    fn handle_message(&mut self, message: Incoming<'_>, now: Instant);

    /// Tells the machine that the connection is gone. Final; a second call is a no-op.
    fn handle_disconnect(&mut self, why: Disconnect, now: Instant);

    /// Lets the machine act on deadlines at or before `now`. An early call is a no-op.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next frame for the peer, in order. On [`Outgoing::Abort`], drop the connection.
    #[must_use]
    fn poll_transmit(&mut self) -> Option<Outgoing>;

    /// Returns the next event for the application, in order.
    #[must_use]
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next, and what for.
    /// `None` means never, and is the answer of a closed machine. May be earlier than the next
    /// visible effect, never later.
    #[must_use]
    fn next_timeout(&self) -> Option<(Instant, &'static str)>;

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next.
    #[must_use]
    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timeout().map(|(at, _)| at)
    }

    /// Returns whether the machine has ended. Poll out what it still holds.
    fn is_closed(&self) -> bool;

    /// Returns whether the machine takes more input. While `false`, read nothing more from the peer
    /// until events have been taken or frames have been sent.
    fn wants_input(&self) -> bool {
        true
    }

    /// Closes with this frame. Queued frames are sent first; what is in flight ends at once.
    fn close_with(&mut self, frame: CloseFrame, now: Instant);

    /// Closes with code 1000, as [`close_with`](Self::close_with) does.
    fn close(&mut self, now: Instant) {
        self.close_with(CloseFrame::new(CloseFrame::NORMAL, ""), now);
    }

    /// Returns how many calls have not ended: this side's, or those of the peer that wait for an
    /// answer. A drain waits for them. Default 0.
    #[must_use]
    fn in_flight(&self) -> usize {
        0
    }

    /// Returns how many bytes the last event counts for in queues: the length of the frame that it
    /// came from. Default 0.
    #[must_use]
    fn event_bytes(&self) -> usize {
        0
    }
}
