//! The toy server: admits guests and asks them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rpc_core::{
    CallError, CallId, CloseFrame, CloseReason, Delivery, Disconnect, FrameNumber, Incoming,
    Limits, Machine, Match, Outbox, Outgoing, PendingCalls, Refused,
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

#[derive(Debug, PartialEq)]
enum State {
    AwaitHello { until: Instant },
    Ready,
    Closed,
}

#[derive(Debug)]
pub struct Host {
    state: State,
    calls: PendingCalls<FrameNumber>,
    outbox: Outbox,
    events: VecDeque<HostEvent>,
    limits: Limits,
    handshake: Duration,
    pub late: usize,
}

impl Host {
    pub fn new(seed: u64, now: Instant) -> Self {
        Self::with_limits(seed, Limits::default(), now)
    }

    pub fn with_limits(seed: u64, limits: Limits, now: Instant) -> Self {
        Self {
            state: State::AwaitHello {
                until: now + HANDSHAKE,
            },
            calls: PendingCalls::new(seed, limits.max_pending, now),
            outbox: Outbox::new(&limits),
            events: VecDeque::new(),
            limits,
            handshake: HANDSHAKE,
            late: 0,
        }
    }

    /// Another deadline for the handshake, which must be under way.
    pub fn with_handshake(mut self, handshake: Duration, now: Instant) -> Self {
        self.state = State::AwaitHello {
            until: now + handshake,
        };
        self.handshake = handshake;
        self
    }

    pub fn in_flight(&self) -> usize {
        self.calls.len()
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
        match self.state {
            State::Ready => {}
            State::AwaitHello { .. } => return Err(Refused::NotReady),
            State::Closed => return Err(Refused::Closed),
        }
        let max = self.limits.max_pending;
        let id = self.calls.next_id().ok_or(Refused::TooManyCalls { max })?;
        let frame = Frame {
            ask: Some(id.to_string()),
            text: Some(text.into()),
            ..Frame::default()
        };
        let number = frame.queue(&mut self.outbox)?;
        Ok(self.calls.insert(number, Some(now + wait))?)
    }

    pub fn cancel(&mut self, id: CallId) {
        if let Match::Live(_) = self.calls.complete(id) {
            let frame = Frame {
                cancel: Some(id.to_string()),
                ..Frame::default()
            };
            // Without room the guest answers for nothing, which is dropped.
            let _ = frame.queue(&mut self.outbox);
        }
    }

    pub fn tell(&mut self, text: &str) -> Result<(), Refused> {
        Frame {
            tell: Some(text.into()),
            ..Frame::default()
        }
        .queue(&mut self.outbox)
        .map(drop)
    }

    pub fn refuse(&mut self, why: &str) {
        let _ = Frame {
            refused: Some(why.into()),
            ..Frame::default()
        }
        .queue(&mut self.outbox);
        self.close(CloseFrame::new(CloseFrame::POLICY, ""));
    }

    pub fn close(&mut self, frame: CloseFrame) {
        if self.state != State::Closed {
            self.outbox.close(frame);
            self.end(&CloseReason::Local);
        }
    }

    fn end(&mut self, reason: &CloseReason) {
        self.state = State::Closed;
        for (id, number) in self.calls.drain() {
            let delivery = sent(&self.outbox, number);
            let error = CallError::Closed {
                reason: reason.clone(),
                delivery,
            };
            self.events.push_back(HostEvent::Answer(id, Err(error)));
        }
        self.events.push_back(HostEvent::Closed(reason.clone()));
    }
}

fn sent(outbox: &Outbox, number: FrameNumber) -> Delivery {
    if outbox.was_taken(number) {
        Delivery::Unknown
    } else {
        Delivery::NotSent
    }
}

impl Machine for Host {
    type Event = HostEvent;

    fn handle_message(&mut self, message: Incoming<'_>, _: Instant) {
        let (Incoming::Text(text), false) = (message, self.is_closed()) else {
            return;
        };
        let Some(frame) = Frame::decode(text) else {
            return;
        };
        let text = frame.text.unwrap_or_default();
        if let Some(name) = frame.hello {
            if name == "mallory" {
                self.refuse("not you");
            } else if self.state != State::Ready {
                self.state = State::Ready;
                let welcome = Frame {
                    welcome: Some(name.clone()),
                    ..Frame::default()
                };
                let _ = welcome.queue(&mut self.outbox);
                self.events.push_back(HostEvent::Ready(name));
            }
        } else if let Some(id) = frame.part {
            if let Some(id) = CallId::parse(&id).filter(|id| self.calls.get(*id).is_some()) {
                self.events.push_back(HostEvent::Part(id, text));
            }
        } else if let Some((id, answer)) = (frame.answer.map(|id| (id, Ok(text.clone()))))
            .or(frame.fail.map(|id| (id, Err(CallError::Remote(text)))))
        {
            let Some(id) = CallId::parse(&id) else { return };
            match self.calls.complete(id) {
                Match::Live(_) => self.events.push_back(HostEvent::Answer(id, answer)),
                Match::Late => self.late += 1,
                _ => {}
            }
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        if self.state != State::Closed {
            self.outbox.discard();
            self.end(&why.into());
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let State::AwaitHello { until } = self.state
            && now >= until
        {
            self.outbox
                .close(CloseFrame::new(CloseFrame::POLICY, "no hello"));
            self.end(&CloseReason::HandshakeTimeout {
                after: self.handshake,
            });
        }
        while let Some((id, number)) = self.calls.pop_expired(now) {
            let delivery = sent(&self.outbox, number);
            self.events
                .push_back(HostEvent::Answer(id, Err(CallError::TimedOut { delivery })));
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outbox.pop()
    }

    fn poll_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::AwaitHello { until } => Some(until),
            State::Ready => self.calls.poll_timeout(),
            State::Closed => None,
        }
    }

    fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    fn wants_input(&self) -> bool {
        self.events.len() < self.limits.max_events && self.outbox.has_slack()
    }
}
