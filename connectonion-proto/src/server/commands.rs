//! What the application tells a connection: verdicts, frames, the end.

use std::time::Instant;

use rpc_core::{CloseFrame, CloseReason, Machine, Refused, Text};
use serde::Serialize;

use super::{Awaited, ServerConn, ServerEvent, Stage};
use crate::auth::Address;
use crate::frame::{Connected, ErrorFrame, OnboardRequired, OnboardSuccess, RuntimeInputAck};

impl ServerConn {
    /// Lets the client in: the answer to a CONNECT.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if no CONNECT waits, [`Refused::Closed`], [`Refused::QueueFull`] if the
    /// client reads too slowly, [`Refused::TooLarge`]. Nothing has changed then.
    pub fn accept(&mut self, connected: &Connected) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Connect { .. } | Awaited::Onboarded { .. }))?;
        self.core.send_json(connected)?;
        self.signs_commands |= match &self.awaited {
            Some(Awaited::Connect { connect, .. }) => connect.signs_commands(),
            Some(Awaited::Onboarded { signs_commands }) => *signs_commands,
            _ => false,
        };
        self.stage = Stage::Inside;
        self.core.stop_timer();
        self.answered();
        Ok(())
    }

    /// Lets the CONNECT wait until this stranger has become a contact.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept); [`Refused::UnknownId`] also if the client is in already, and
    /// [`Refused::TooLarge`] if the CONNECT is too large to wait
    /// ([`max_gated_bytes`](super::ServerConfig::max_gated_bytes)): refuse it then.
    pub fn gate(&mut self, identity: Address, required: &OnboardRequired) -> Result<(), Refused> {
        let is_inside = matches!(self.stage, Stage::Inside);
        let max = self.config.max_gated_bytes;
        let Some(Awaited::Connect { size, .. }) = self.awaited.as_ref().filter(|_| !is_inside)
        else {
            self.check_awaited(|_| false)?;
            return Ok(());
        };
        if *size > max {
            return Err(Refused::TooLarge { size: *size, max });
        }
        self.core.send_json(required)?;
        if let Some(Awaited::Connect { connect: stash, .. }) = self.awaited.take() {
            self.stage = Stage::Gated { identity, stash };
        }
        self.answered();
        Ok(())
    }

    /// Makes a contact of the stranger: the answer to an `ONBOARD_SUBMIT`. The CONNECT that waits is
    /// handed out [next](ServerEvent::Onboarded).
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn welcome(&mut self, success: &OnboardSuccess) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Onboard))?;
        self.core.send_json(success)?;
        if let Stage::Gated { identity, stash } = std::mem::replace(&mut self.stage, Stage::Outside)
        {
            self.is_newcomer = true;
            let connect = *stash;
            let signs_commands = connect.signs_commands();
            self.awaited = Some(Awaited::Onboarded { signs_commands });
            self.core
                .push_event(ServerEvent::Onboarded { identity, connect }, 0);
        }
        Ok(())
    }

    /// A run has begun: the answer to an INPUT that nothing is sent for.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if no INPUT waits, [`Refused::Closed`].
    pub fn begun(&mut self) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Input))?;
        self.answered();
        Ok(())
    }

    /// The agent that works already will read the prompt: the answer to an INPUT.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn acknowledge(&mut self, ack: &RuntimeInputAck) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Input))?;
        self.core.send_json(ack)?;
        self.answered();
        Ok(())
    }

    /// Refuses the frame that waits for an answer. The connection stays open and where it was: at
    /// the gate with the CONNECT that waits there, or inside with its session.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn refuse(&mut self, error: &ErrorFrame) -> Result<(), Refused> {
        self.check_awaited(|_| true)?;
        self.core.send_json(error)?;
        self.answered();
        Ok(())
    }

    /// Sends a frame that answers no CONNECT and no INPUT: `SESSION_STATUS`, `ADMIN_RESULT`, ERROR.
    ///
    /// # Errors
    /// [`Refused::QueueFull`], [`Refused::TooLarge`], [`Refused::Encode`], [`Refused::Closed`].
    /// Nothing has changed then.
    pub fn tell(&mut self, frame: &impl Serialize) -> Result<(), Refused> {
        self.core.send_json(frame).map(drop)
    }

    /// As [`tell`](Self::tell), of a frame that was encoded before, sharing its bytes.
    ///
    /// # Errors
    /// As for [`tell`](Self::tell).
    pub fn tell_text(&mut self, frame: Text) -> Result<(), Refused> {
        self.core.send_text(frame).map(drop)
    }

    /// Sends a frame that was encoded before, sharing its bytes: an event, an OUTPUT.
    ///
    /// # Errors
    /// As for [`tell`](Self::tell), and [`Refused::NotReady`] if the client is not in.
    pub fn send(&mut self, frame: Text) -> Result<(), Refused> {
        match self.stage {
            _ if self.is_closed() => Err(Refused::Closed),
            Stage::Inside => self.core.send_text(frame).map(drop),
            Stage::Outside | Stage::Gated { .. } => Err(Refused::NotReady),
        }
    }

    /// Whether there is room for events without crowding out answers. If there is none,
    /// [`ServerEvent::Writable`] tells when there is again.
    pub fn has_room(&mut self) -> bool {
        let has_room = self.core.has_slack();
        // The end of the connection was the last event.
        self.blocked = !has_room && !self.is_closed();
        self.owes = self.blocked;
        has_room
    }

    /// Whether events wait for room, as far as it was told: a Close would overtake them now. Before a
    /// server goes away, let them leave.
    #[must_use]
    pub const fn owes_frames(&self) -> bool {
        self.owes
    }

    /// Closes with code 1000. What is queued is sent first.
    pub fn close(&mut self, now: Instant) {
        self.close_with(CloseFrame::new(CloseFrame::NORMAL, ""), now);
    }

    /// Closes with this frame (1012 or 1001 when the server goes away). What is queued is sent first.
    pub fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        if self.core.close_with(CloseReason::Local, frame) {
            self.release();
        }
    }

    fn check_awaited(&self, fits: impl Fn(&Awaited) -> bool) -> Result<(), Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        match &self.awaited {
            Some(awaited) if fits(awaited) => Ok(()),
            _ => Err(Refused::UnknownId),
        }
    }

    /// What was awaited has been answered: goes on with what came after it, until the next question.
    fn answered(&mut self) {
        self.awaited = None;
        while self.awaited.is_none()
            && !self.is_closed()
            && let Some(text) = self.held.pop_front()
        {
            self.held_bytes -= text.len();
            self.on_text(&text);
        }
    }
}
