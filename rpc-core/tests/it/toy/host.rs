//! The toy server: admits guests and asks them.

use std::time::{Duration, Instant};

use rpc_core::{
    CallError, CallId, CloseFrame, CloseReason, Disconnect, FrameNumber, Incoming, Limits, Machine,
    MachineCore, Match, Outgoing, PendingCalls, Refused,
};

use super::{ANSWER, Frame, HANDSHAKE};

pub type Answer = Result<String, CallError<String>>;

#[derive(Debug, Clone, PartialEq)]
pub enum HostEvent {
    Ready(String),
    Part(CallId, String),
    Answer(CallId, Answer),
    Closed(CloseReason),
}

#[derive(Debug)]
pub struct Host {
    core: MachineCore<HostEvent>,
    is_ready: bool,
    calls: PendingCalls<FrameNumber>,
    limits: Limits,
    handshake: Duration,
    pub late: usize,
}

impl Host {
    pub fn new(seed: u64, now: Instant) -> Self {
        Self::with_limits(seed, Limits::default(), now)
    }

    pub fn with_limits(seed: u64, limits: Limits, now: Instant) -> Self {
        let mut core = MachineCore::new(&limits);
        core.start_timer("hello", HANDSHAKE, now);
        Self {
            core,
            is_ready: false,
            calls: PendingCalls::new(seed, limits.max_pending, now),
            limits,
            handshake: HANDSHAKE,
            late: 0,
        }
    }

    /// Another deadline for the handshake, which must be under way.
    pub fn with_handshake(mut self, handshake: Duration, now: Instant) -> Self {
        self.core.start_timer("hello", handshake, now);
        self.handshake = handshake;
        self
    }

    pub fn ask(&mut self, text: &str, now: Instant) -> Result<CallId, Refused> {
        self.ask_within(text, ANSWER, now)
    }

    pub fn ask_within(
        &mut self,
        text: &str,
        wait: Duration,
        now: Instant,
    ) -> Result<CallId, Refused> {
        if !self.is_ready && !self.is_closed() {
            return Err(Refused::NotReady);
        }
        let max = self.limits.max_pending;
        let id = self.calls.next_id().ok_or(Refused::TooManyCalls { max })?;
        let frame = Frame {
            ask: Some(id.to_string()),
            text: Some(text.into()),
            ..Frame::default()
        };
        let number = self.core.send_json(&frame)?;
        Ok(self.calls.insert(number, Some(now + wait))?)
    }

    pub fn cancel(&mut self, id: CallId) {
        if let Match::Live(_) = self.calls.complete(id) {
            let frame = Frame {
                cancel: Some(id.to_string()),
                ..Frame::default()
            };
            // Without room the guest answers for nothing, which is dropped.
            let _ = self.core.send_json(&frame);
        }
    }

    pub fn tell(&mut self, text: &str) -> Result<(), Refused> {
        let frame = Frame {
            tell: Some(text.into()),
            ..Frame::default()
        };
        self.core.send_json(&frame).map(drop)
    }

    pub fn refuse(&mut self, why: &str) {
        let _ = self.core.send_json(&Frame {
            refused: Some(why.into()),
            ..Frame::default()
        });
        self.close(CloseFrame::new(CloseFrame::POLICY, ""));
    }

    pub fn close(&mut self, frame: CloseFrame) {
        self.core.close_with(CloseReason::Local, frame);
    }
}

impl Machine for Host {
    type Event = HostEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        let Some(Incoming::Text(text)) = self.core.received(message, now) else {
            return;
        };
        let Some(frame) = Frame::decode(text) else {
            return;
        };
        let text = frame.text.unwrap_or_default();
        if let Some(name) = frame.hello {
            if name == "mallory" {
                self.refuse("not you");
            } else if !self.is_ready {
                self.is_ready = true;
                self.core.stop_timer();
                let welcome = Frame {
                    welcome: Some(name.clone()),
                    ..Frame::default()
                };
                let _ = self.core.send_json(&welcome);
                self.core.push_event(HostEvent::Ready(name), 0);
            }
        } else if let Some(id) = frame.part {
            if let Some(id) = CallId::parse(&id).filter(|id| self.calls.get(*id).is_some()) {
                self.core.push_event(HostEvent::Part(id, text), 0);
            }
        } else if let Some((id, answer)) = (frame.answer.map(|id| (id, Ok(text.clone()))))
            .or(frame.fail.map(|id| (id, Err(CallError::Remote(text)))))
        {
            let Some(id) = CallId::parse(&id) else { return };
            match self.calls.complete(id) {
                Match::Live(_) => self.core.push_event(HostEvent::Answer(id, answer), 0),
                Match::Late => self.late += 1,
                _ => {}
            }
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.core.timer_expired(now) {
            let after = self.handshake;
            let reason = CloseReason::HandshakeTimeout { after };
            self.core.close(reason, CloseFrame::POLICY);
        }
        while self.core.may_expire(now)
            && let Some((id, frame)) = self.calls.pop_expired(now)
        {
            let delivery = self.core.delivery(frame);
            let late = Err(CallError::TimedOut { delivery });
            self.core.push_event(HostEvent::Answer(id, late), 0);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.core.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<HostEvent> {
        if let Some(event) = self.core.pop_event() {
            return Some(event);
        }
        let reason = self.core.close_reason()?;
        if let Some((id, frame)) = self.calls.pop_any() {
            let reason = reason.clone();
            let delivery = self.core.delivery(frame);
            let error = CallError::Closed { reason, delivery };
            return Some(HostEvent::Answer(id, Err(error)));
        }
        self.core.poll_event(HostEvent::Closed)
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let call = self.core.unless_paused(self.calls.poll_timeout());
        let call = call.map(|at| (at, "call"));
        [call, self.core.next_timeout()].into_iter().flatten().min()
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn in_flight(&self) -> usize {
        self.calls.len()
    }

    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.close(frame);
    }

    fn wants_input(&self) -> bool {
        self.core.wants_input(self.core.has_slack())
    }
}
