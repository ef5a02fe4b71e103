//! [`MachineCore`]: what every machine holds besides its protocol.

use std::time::Duration;

use crate::Instant;
use crate::backlog::EventBacklog;
use crate::error::{CloseReason, Delivery, Refused};
use crate::keepalive::{KeepAlive, KeepaliveTimers};
use crate::limits::Limits;
use crate::message::{CloseFrame, Incoming, Outgoing, Text};
use crate::outbox::{FrameNumber, Outbox};
use crate::pause::ReadPause;
use crate::rate::{Bucket, RateLimit};
use crate::timers::{later, sooner};

/// The parts of a [`Machine`](crate::Machine) that do not depend on its protocol: frames to send,
/// events to take, keepalive, rate limit, the timer of the handshake, and why the connection ended.
///
/// A machine keeps its states, frames and calls, and delegates the rest:
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::keepalive::KeepAlive;
/// use rpc_core::{CloseFrame, CloseReason, Disconnect, Incoming, Machine, MachineCore, Outgoing};
///
/// /// Sends every text back, once the peer has said something within five seconds.
/// struct Echo {
///     keep_alive: KeepAlive,
///     core: MachineCore<CloseReason>,
/// }
///
/// const OPENING: Duration = Duration::from_secs(5);
///
/// impl Echo {
///     fn new(now: Instant) -> Self {
///         let keep_alive = KeepAlive::default();
///         let mut core = MachineCore::default();
///         core.start_keepalive(&keep_alive, now);
///         core.start_timer("opening", OPENING, now);
///         Self { keep_alive, core }
///     }
/// }
///
/// impl Machine for Echo {
///     type Event = CloseReason;
///
///     fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
///         if let Some(Incoming::Text(text)) = self.core.received(message, now) {
///             self.core.stop_timer();
///             if self.core.send_text(text.into()).is_err() {
///                 self.core.close(CloseReason::SlowConsumer, CloseFrame::POLICY);
///             }
///         }
///     }
///     fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
///         self.core.disconnected(why);
///     }
///     fn handle_timeout(&mut self, now: Instant) {
///         let gone = if self.core.timer_expired(now) {
///             Some(CloseReason::HandshakeTimeout { after: OPENING })
///         } else {
///             self.core.check_keepalive(&self.keep_alive, self.wants_input(), now)
///         };
///         if let Some(reason) = gone {
///             self.core.close(reason, CloseFrame::GOING_AWAY);
///         }
///     }
///     fn poll_transmit(&mut self) -> Option<Outgoing> {
///         self.core.poll_transmit()
///     }
///     fn poll_event(&mut self) -> Option<CloseReason> {
///         self.core.poll_event(|reason| reason)
///     }
///     fn next_timeout(&self) -> Option<(Instant, &'static str)> {
///         self.core.next_timeout()
///     }
///     fn is_closed(&self) -> bool {
///         self.core.is_closed()
///     }
///     fn close_with(&mut self, frame: CloseFrame, _: Instant) {
///         self.core.close_with(CloseReason::Local, frame);
///     }
///     fn wants_input(&self) -> bool {
///         self.core.wants_input(self.core.has_slack())
///     }
/// }
///
/// let now = Instant::now();
/// let mut echo = Echo::new(now);
/// echo.handle_message(Incoming::Text("hi"), now);
/// assert_eq!(echo.poll_transmit(), Some(Outgoing::Text("hi".into())));
/// ```
pub struct MachineCore<E> {
    outbox: Outbox,
    events: EventBacklog<E>,
    /// The length of the last frame, until an event holds it.
    frame_bytes: usize,
    pause: ReadPause,
    keepalive: KeepaliveTimers,
    only_pongs: bool,
    /// Whether the peer has yet to log in, of a machine whose peers do.
    login: Option<bool>,
    rate: Bucket,
    timer: Option<(Instant, &'static str)>,
    /// Whether the outbox was full, and room was not reported since.
    refused: bool,
    closed: Option<Box<CloseReason>>,
    close_emitted: bool,
    /// Whether the connection is gone, so that frames in the outbox were never sent.
    line_lost: bool,
}

/// Uses the default limits.
impl<E> Default for MachineCore<E> {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

impl<E> MachineCore<E> {
    /// Creates the core of a connection that was just opened. No timer runs yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            outbox: Outbox::new(limits),
            events: EventBacklog::new(limits),
            frame_bytes: 0,
            pause: ReadPause::default(),
            keepalive: KeepaliveTimers::default(),
            only_pongs: false,
            login: None,
            rate: Bucket::default(),
            timer: None,
            refused: false,
            closed: None,
            close_emitted: false,
            line_lost: false,
        }
    }

    /// Sets a size limit for sent messages that differs from the one for received messages.
    #[must_use]
    pub const fn with_max_sent_bytes(mut self, bytes: usize) -> Self {
        self.outbox.set_max_message(bytes);
        self
    }

    /// Counts only pongs as signs of life, instead of everything that arrives.
    #[must_use]
    pub const fn with_only_pongs(mut self) -> Self {
        self.only_pongs = true;
        self
    }

    /// Counts only pongs as signs of life until the peer has [logged in](Self::log_in). Of one that
    /// has, every frame counts, but pings alone do not keep its place: see
    /// [`KeepAlive`].
    #[must_use]
    pub const fn with_login(mut self) -> Self {
        self.login = Some(false);
        self
    }

    /// Notes that the peer has logged in or, without a login, has made its first request.
    pub const fn log_in(&mut self) {
        if self.login.is_some() {
            self.login = Some(true);
        }
    }

    /// Returns whether the peer need not log in, or has done so.
    #[must_use]
    pub const fn is_logged_in(&self) -> bool {
        !matches!(self.login, Some(false))
    }

    // Input.

    /// Notes that a message has arrived and returns it; `None` once closed, when nothing is read
    /// any more.
    #[inline]
    #[must_use]
    pub fn received<'m>(&mut self, message: Incoming<'m>, now: Instant) -> Option<Incoming<'m>> {
        if self.is_closed() {
            return None;
        }
        self.frame_bytes = message.len();
        let is_pong = matches!(message, Incoming::Pong(_));
        if is_pong || !self.only_pongs && self.is_logged_in() {
            self.keepalive.on_input();
            if is_pong || message.is_data() || self.login.is_none() {
                self.keepalive.answered(is_pong);
            }
        }
        self.pause.note(self.events.has_room(), now);
        Some(message)
    }

    /// Counts a message of any kind. Returns `false` if it exceeds the limit: close with
    /// [`CloseReason::RateLimited`].
    #[must_use]
    pub fn within_rate(&mut self, limit: Option<RateLimit>, now: Instant) -> bool {
        self.rate.admits(limit, now)
    }

    /// Notes that the connection is gone and drops the frames that wait.
    pub fn disconnected(&mut self, reason: impl Into<CloseReason>) {
        // Also what was to leave before a Close.
        self.outbox.discard();
        if !self.is_closed() {
            self.line_lost = true;
            self.end(reason.into());
        }
    }

    // Output.

    /// Writes a text frame with `encode` and queues it. The buffer that `encode` gets may already
    /// hold other frames: it only appends.
    ///
    /// # Errors
    /// [`Refused::QueueFull`], [`Refused::TooLarge`], [`Refused::Closed`], or the error of
    /// `encode`; nothing is queued then.
    #[inline]
    pub fn send_with(
        &mut self,
        encode: impl FnOnce(&mut String) -> Result<(), Refused>,
    ) -> Result<FrameNumber, Refused> {
        let sent = self.outbox.encode(encode);
        self.note_refusal(sent)
    }

    /// Serializes `value` as JSON and queues it as a text frame.
    ///
    /// # Errors
    /// As for [`send_with`](Self::send_with); [`Refused::Encode`] if the value is not JSON.
    #[inline]
    pub fn send_json(
        &mut self,
        value: &(impl serde::Serialize + ?Sized),
    ) -> Result<FrameNumber, Refused> {
        let sent = self.outbox.json(value);
        self.note_refusal(sent)
    }

    /// Queues text that is encoded already, sharing its bytes.
    ///
    /// # Errors
    /// As for [`send_with`](Self::send_with).
    pub fn send_text(&mut self, text: Text) -> Result<FrameNumber, Refused> {
        let sent = self.outbox.text(text);
        self.note_refusal(sent)
    }

    /// Like [`send_with`](Self::send_with), for one of the many frames of a stream. Streams get a
    /// quarter of the room, at most 1 MiB, so that there is always room for replies.
    ///
    /// # Errors
    /// As for [`send_with`](Self::send_with).
    #[inline]
    pub fn send_stream(
        &mut self,
        encode: impl FnOnce(&mut String) -> Result<(), Refused>,
    ) -> Result<FrameNumber, Refused> {
        if !self.is_closed() {
            self.check_stream_room()?;
        }
        self.send_with(encode)
    }

    /// Checks that a frame of a stream fits.
    ///
    /// # Errors
    /// [`Refused::QueueFull`] if the outbox has no room; nothing was queued. Try again once it was drained.
    #[inline]
    pub fn check_stream_room(&mut self) -> Result<(), Refused> {
        let has_room = self.outbox.has_stream_room(1);
        self.note_refusal(has_room.then_some(()).ok_or(Refused::QueueFull))
    }

    /// Checks that this many frames fit, before an operation that sends all of them or none. An
    /// empty queue takes any number.
    ///
    /// # Errors
    /// [`Refused::QueueFull`] if the outbox has no room; nothing was queued. Try again once it was drained.
    pub fn check_room(&mut self, frames: usize) -> Result<(), Refused> {
        let has_room = self.outbox.has_room_for(frames);
        self.note_refusal(has_room.then_some(()).ok_or(Refused::QueueFull))
    }

    /// Returns whether less than half of the room is used. A machine that answers its peer reads
    /// only while this holds, so that a peer that never reads cannot make it accumulate replies.
    #[must_use]
    pub fn has_slack(&self) -> bool {
        self.outbox.has_slack()
    }

    /// Returns whether half of the room of streams is free. A slow connection does not wake the
    /// sender for every single frame.
    #[must_use]
    pub fn has_stream_slack(&self) -> bool {
        self.outbox.has_stream_room(2)
    }

    /// Returns `true` once after a [`Refused::QueueFull`], as soon as there is [room
    /// again](Self::has_stream_slack): time for an event that reports it.
    #[inline]
    #[must_use]
    pub fn take_writable(&mut self) -> bool {
        self.refused && self.has_stream_slack() && std::mem::take(&mut self.refused)
    }

    /// Returns the next frame for the peer.
    #[inline]
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        let frame = self.outbox.pop();
        if matches!(frame, Some(Outgoing::Text(_) | Outgoing::Binary(_)))
            && self.login == Some(true)
            && !self.only_pongs
        {
            self.keepalive.sent();
        }
        frame
    }

    /// Returns whether an unanswered frame may have reached the peer.
    #[must_use]
    pub const fn delivery(&self, frame: FrameNumber) -> Delivery {
        match self.line_lost && !self.outbox.was_taken(frame) {
            true => Delivery::NotSent,
            false => Delivery::Unknown,
        }
    }

    // Events.

    /// Returns the length of the frame that is being handled, for the first event that comes from it; 0
    /// for further ones.
    #[inline]
    #[must_use]
    pub const fn take_frame_bytes(&mut self) -> usize {
        std::mem::replace(&mut self.frame_bytes, 0)
    }

    /// Returns the bytes that the last event taken was queued with.
    #[inline]
    #[must_use]
    pub const fn event_bytes(&self) -> usize {
        self.events.taken()
    }

    /// Queues an event that holds about `bytes` bytes, usually [those of its
    /// frame](Self::take_frame_bytes). Does nothing once closed.
    #[inline]
    pub fn push_event(&mut self, event: E, bytes: usize) {
        if self.is_closed() {
            return;
        }
        self.events.push(event, bytes);
        if !self.events.has_room() {
            self.pause.begin();
        }
    }

    /// Returns the next queued event.
    #[inline]
    #[must_use]
    pub fn pop_event(&mut self) -> Option<E> {
        self.events.pop()
    }

    /// Returns the next queued event, and after the last one, once, the event that `closed` makes
    /// of the close reason. A machine with calls takes [`pop_event`](Self::pop_event) first, then
    /// ends its calls, then calls this.
    #[inline]
    #[must_use]
    pub fn poll_event(&mut self, closed: impl FnOnce(CloseReason) -> E) -> Option<E> {
        if let Some(event) = self.events.pop() {
            return Some(event);
        }
        let reason = self.closed.as_deref().filter(|_| !self.close_emitted)?;
        let event = closed(reason.clone());
        self.close_emitted = true;
        Some(event)
    }

    /// Returns whether more input is welcome: few events wait, and the machine itself has room. A
    /// connection that has ended ignores its input, and so accepts any.
    #[inline]
    #[must_use]
    pub fn wants_input(&self, has_room: bool) -> bool {
        self.is_closed() || (has_room && self.events.has_room())
    }

    // Time.

    /// Starts the machine's timer, replacing the running one; `None` means never. `what` appears in
    /// logs and transcripts.
    pub fn start_timer(
        &mut self,
        what: &'static str,
        after: impl Into<Option<Duration>>,
        now: Instant,
    ) {
        self.timer = after.into().map(|after| (later(now, after), what));
    }

    /// Stops the machine's timer, if it runs.
    pub const fn stop_timer(&mut self) {
        self.timer = None;
    }

    /// Returns whether the machine's timer is due, and stops it then.
    #[must_use]
    pub fn timer_expired(&mut self, now: Instant) -> bool {
        self.timer.take_if(|(at, _)| *at <= now).is_some()
    }

    /// Starts sending pings. Later calls must pass the same configuration.
    pub fn start_keepalive(&mut self, config: &KeepAlive, now: Instant) {
        self.keepalive.start(config, now);
    }

    /// Expects a sign of life within `pong_timeout`, without sending pings. Call it for every
    /// message.
    pub fn expect_life(&mut self, config: &KeepAlive, now: Instant) {
        self.keepalive.expect(config, now);
    }

    /// Queues the ping that is due, if any. Returns the reason to close with if the peer is gone.
    /// Pass `can_receive: false` while a pong cannot arrive because nothing is read or the ping
    /// cannot have arrived: silence proves nothing then.
    #[must_use]
    pub fn check_keepalive(
        &mut self,
        config: &KeepAlive,
        can_receive: bool,
        now: Instant,
    ) -> Option<CloseReason> {
        if self.is_closed() {
            return None;
        }
        let reads = self.events.has_room();
        if let Some(until) = self.pause.catching_up(reads, now) {
            self.keepalive.postpone(until);
        }
        let reads_paused = !reads || !can_receive;
        self.keepalive
            .check(config, reads_paused, now, &mut self.outbox)
    }

    /// Returns whether a deadline for a reply of the peer may expire now: all input was read, so a
    /// missing reply is late. `false` once closed. Ask before each deadline.
    #[must_use]
    pub fn may_expire(&mut self, now: Instant) -> bool {
        !self.is_closed() && self.pause.is_over(self.events.has_room(), now)
    }

    /// Returns when a deadline for a reply of the peer expires: `None` once closed, and while
    /// nothing is read because events are not taken; a moment later than planned right after such a
    /// pause.
    #[must_use]
    pub fn unless_paused(&self, deadline: Option<Instant>) -> Option<Instant> {
        let reads = !self.is_closed() && self.events.has_room();
        self.pause.suspend(deadline?, reads)
    }

    /// Returns when the timer or the keepalive is due, and which one.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        sooner(self.timer, self.keepalive.next_timeout())
    }

    // The end.

    /// Queues a Close and ends; queued frames still leave before it. The Close carries the reason,
    /// unless the reason is the peer's or the application's own. Does nothing once closed.
    pub fn close(&mut self, reason: CloseReason, code: u16) {
        let words = match &reason {
            CloseReason::Local
            | CloseReason::Authentication { .. }
            | CloseReason::Refused { .. } => String::new(),
            other => other.to_string(),
        };
        self.close_with(reason, CloseFrame::new(code, words));
    }

    /// Like [`close`](Self::close), with this frame.
    pub fn close_with(&mut self, reason: CloseReason, frame: CloseFrame) {
        if !self.is_closed() {
            self.outbox.close(frame);
            self.end(reason);
        }
    }

    /// Returns whether the connection has ended.
    #[inline]
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Returns why the connection has ended.
    #[must_use]
    pub fn close_reason(&self) -> Option<&CloseReason> {
        self.closed.as_deref()
    }

    fn end(&mut self, reason: CloseReason) {
        self.closed = Some(Box::new(reason));
        self.timer = None;
        self.keepalive.stop();
        self.refused = false;
    }

    #[inline]
    fn note_refusal<T>(&mut self, sent: Result<T, Refused>) -> Result<T, Refused> {
        self.refused |= matches!(sent, Err(Refused::QueueFull));
        sent
    }
}

// Prints the state only, not the contents.
crate::debug::debug_fields!([E] MachineCore<E>, this => { closed: this.closed });

#[cfg(test)]
mod tests;
