//! The toy client: says hello, answers what it is asked.

use std::time::{Duration, Instant};

use rpc_core::{
    CloseFrame, CloseReason, Disconnect, Incoming, Limits, Machine, MachineCore, Outgoing,
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

#[derive(Debug)]
pub struct Guest {
    core: MachineCore<GuestEvent>,
    is_welcome: bool,
    asked: PendingMap<String, ()>,
    handshake: Duration,
}

impl Guest {
    pub fn new(name: &str, now: Instant) -> Self {
        Self::with_limits(name, &Limits::default(), now)
    }

    pub fn with_limits(name: &str, limits: &Limits, now: Instant) -> Self {
        let mut core = MachineCore::new(limits);
        let hello = Frame {
            hello: Some(name.to_owned()),
            ..Frame::default()
        };
        core.send_json(&hello).unwrap();
        core.start_timer("welcome", HANDSHAKE, now);
        Self {
            core,
            is_welcome: false,
            asked: PendingMap::new(limits.max_pending, now),
            handshake: HANDSHAKE,
        }
    }

    /// Another deadline for the handshake, which must be under way.
    pub fn with_handshake(mut self, handshake: Duration, now: Instant) -> Self {
        self.core.start_timer("welcome", handshake, now);
        self.handshake = handshake;
        self
    }

    pub fn part(&mut self, id: &str, text: &str) -> Result<(), Refused> {
        if self.asked.get(id).is_none() {
            return Err(Refused::UnknownId);
        }
        let frame = Frame {
            part: Some(id.into()),
            text: Some(text.into()),
            ..Frame::default()
        };
        self.core.send_json(&frame).map(drop)
    }

    pub fn answer(&mut self, id: &str, result: Result<&str, &str>) -> Result<(), Refused> {
        if self.asked.get(id).is_none() {
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
        self.core.send_json(&frame)?;
        self.asked.remove(id);
        Ok(())
    }

    pub fn close(&mut self, frame: CloseFrame) {
        self.core.close_with(CloseReason::Local, frame);
        self.release();
    }

    fn release(&mut self) {
        while self.asked.pop_any().is_some() {}
    }
}

impl Machine for Guest {
    type Event = GuestEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        let Some(Incoming::Text(text)) = self.core.received(message, now) else {
            return;
        };
        let Some(frame) = Frame::decode(text) else {
            return;
        };
        if frame.welcome.is_some() && !self.is_welcome {
            self.is_welcome = true;
            self.core.stop_timer();
            self.core.push_event(GuestEvent::Ready, 0);
        } else if let Some(message) = frame.refused {
            let reason = CloseReason::Authentication { message };
            self.core.close(reason, CloseFrame::NORMAL);
            self.release();
        } else if let Some(id) = frame.ask {
            if self.asked.insert(id.clone(), (), None).is_ok() {
                let text = frame.text.unwrap_or_default();
                self.core.push_event(GuestEvent::Asked { id, text }, 0);
            }
        } else if let Some(id) = frame.cancel {
            if self.asked.remove(&id).is_some() {
                self.core.push_event(GuestEvent::Cancelled { id }, 0);
            }
        } else if let Some(text) = frame.tell {
            self.core.push_event(GuestEvent::Told(text), 0);
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
        self.release();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.core.timer_expired(now) {
            let after = self.handshake;
            let reason = CloseReason::HandshakeTimeout { after };
            self.core.close(reason, CloseFrame::POLICY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.core.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<GuestEvent> {
        self.core.poll_event(GuestEvent::Closed)
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        self.core.next_timeout()
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn in_flight(&self) -> usize {
        self.asked.len()
    }

    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.close(frame);
    }

    fn wants_input(&self) -> bool {
        self.core.wants_input(self.core.has_slack())
    }
}
