//! The toy client: says hello, answers what it is asked.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rpc_core::{
    CloseFrame, CloseReason, Disconnect, Incoming, Limits, Machine, Match, Outbox, Outgoing,
    PendingMap, Refused,
};

use super::{Frame, HANDSHAKE};

#[derive(Debug, Clone, PartialEq)]
pub enum GuestEvent {
    Ready,
    Asked { id: String, text: String },
    Cancelled { id: String },
    Told(String),
    Closed(CloseReason),
}

#[derive(Debug, PartialEq)]
enum State {
    AwaitWelcome { until: Instant },
    Ready,
    Closed,
}

#[derive(Debug)]
pub struct Guest {
    state: State,
    asked: PendingMap<String, ()>,
    outbox: Outbox,
    events: VecDeque<GuestEvent>,
    limits: Limits,
    handshake: Duration,
}

impl Guest {
    pub fn new(name: &str, now: Instant) -> Self {
        Self::with_limits(name, Limits::default(), now)
    }

    pub fn with_limits(name: &str, limits: Limits, now: Instant) -> Self {
        let mut outbox = Outbox::new(&limits);
        let hello = Frame {
            hello: Some(name.to_owned()),
            ..Frame::default()
        };
        hello.queue(&mut outbox).unwrap();
        Self {
            state: State::AwaitWelcome {
                until: now + HANDSHAKE,
            },
            asked: PendingMap::new(limits.max_pending, 64, now),
            outbox,
            events: VecDeque::new(),
            limits,
            handshake: HANDSHAKE,
        }
    }

    /// Another deadline for the handshake, which must be under way.
    pub fn with_handshake(mut self, handshake: Duration, now: Instant) -> Self {
        self.state = State::AwaitWelcome {
            until: now + handshake,
        };
        self.handshake = handshake;
        self
    }

    pub fn open(&self) -> usize {
        self.asked.len()
    }

    pub fn part(&mut self, id: &str, text: &str) -> Result<(), Refused> {
        if !self.asked.contains(id) {
            return Err(Refused::UnknownId);
        }
        let frame = Frame {
            part: Some(id.into()),
            text: Some(text.into()),
            ..Frame::default()
        };
        frame.queue(&mut self.outbox).map(drop)
    }

    pub fn answer(&mut self, id: &str, result: Result<&str, &str>) -> Result<(), Refused> {
        if !self.asked.contains(id) {
            return Err(Refused::UnknownId);
        }
        let id_text = Some(id.to_owned());
        let frame = match result {
            Ok(text) => Frame {
                answer: id_text,
                text: Some(text.into()),
                ..Frame::default()
            },
            Err(why) => Frame {
                fail: id_text,
                text: Some(why.into()),
                ..Frame::default()
            },
        };
        frame.queue(&mut self.outbox)?;
        let _ = self.asked.complete(id);
        Ok(())
    }

    pub fn close(&mut self, frame: CloseFrame) {
        if self.state != State::Closed {
            self.outbox.close(frame);
            self.end(CloseReason::Local);
        }
    }

    fn end(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.asked.drain().for_each(drop);
        self.events.push_back(GuestEvent::Closed(reason));
    }
}

impl Machine for Guest {
    type Event = GuestEvent;

    fn handle_message(&mut self, message: Incoming<'_>, _: Instant) {
        let (Incoming::Text(text), false) = (message, self.is_closed()) else {
            return;
        };
        let Some(frame) = Frame::decode(text) else {
            return;
        };
        if frame.welcome.is_some() && self.state != State::Ready {
            self.state = State::Ready;
            self.events.push_back(GuestEvent::Ready);
        } else if let Some(message) = frame.refused {
            self.outbox.close(CloseFrame::new(CloseFrame::NORMAL, ""));
            self.end(CloseReason::Authentication { message });
        } else if let Some(id) = frame.ask {
            if self.asked.insert(id.clone(), (), None).is_ok() {
                let text = frame.text.unwrap_or_default();
                self.events.push_back(GuestEvent::Asked { id, text });
            }
        } else if let Some(id) = frame.cancel {
            if let Match::Live(()) = self.asked.complete(&id) {
                self.events.push_back(GuestEvent::Cancelled { id });
            }
        } else if let Some(text) = frame.tell {
            self.events.push_back(GuestEvent::Told(text));
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        if self.state != State::Closed {
            self.outbox.discard();
            self.end(why.into());
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let State::AwaitWelcome { until } = self.state
            && now >= until
        {
            self.outbox
                .close(CloseFrame::new(CloseFrame::POLICY, "no welcome"));
            self.end(CloseReason::HandshakeTimeout {
                after: self.handshake,
            });
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outbox.pop()
    }

    fn poll_event(&mut self) -> Option<GuestEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::AwaitWelcome { until } => Some(until),
            State::Ready | State::Closed => None,
        }
    }

    fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    fn wants_input(&self) -> bool {
        self.events.len() < self.limits.max_events && self.outbox.has_slack()
    }
}
