//! The commands of a connection: verdicts, frames, closing.

use rpc_core::{Machine, Refused, Text};

use super::{Awaited, Phase, ServerConn, ServerEvent};
use crate::auth::Address;
use crate::frame::{Connected, ErrorFrame, OnboardRequired, OnboardSuccess, RuntimeInputAck};

impl ServerConn {
    /// Admits the client, in reply to a CONNECT.
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
        self.phase = Phase::Inside;
        self.core.log_in();
        self.core.stop_timer();
        self.answered();
        Ok(())
    }

    /// Keeps the CONNECT until this stranger has gone through onboarding.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept); [`Refused::UnknownId`] also if the client is already
    /// admitted, and [`Refused::TooLarge`] if the CONNECT is too large to be kept
    /// ([`max_gated_bytes`](super::ServerConfig::max_gated_bytes)): refuse it then.
    pub fn gate(&mut self, identity: Address, required: &OnboardRequired) -> Result<(), Refused> {
        let is_inside = matches!(self.phase, Phase::Inside);
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
            self.phase = Phase::Gated { identity, stash };
        }
        self.answered();
        Ok(())
    }

    /// Makes the stranger a contact, in reply to an `ONBOARD_SUBMIT`. The kept CONNECT is the
    /// [next](ServerEvent::Onboarded) event.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn welcome(&mut self, success: &OnboardSuccess) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Onboard))?;
        self.core.send_json(success)?;
        if let Phase::Gated { identity, stash } = std::mem::replace(&mut self.phase, Phase::Outside)
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

    /// Notes that a run has started, in reply to an INPUT. Nothing is sent for it.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if no INPUT waits, [`Refused::Closed`].
    pub fn begun(&mut self) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Input))?;
        self.answered();
        Ok(())
    }

    /// Acknowledges a prompt that the running agent will read, in reply to an INPUT.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn acknowledge(&mut self, ack: &RuntimeInputAck) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Input))?;
        self.core.send_json(ack)?;
        self.answered();
        Ok(())
    }

    /// Continues after a [signed](ServerEvent::Signed) command other than INPUT, or one of an
    /// [administrator](ServerEvent::Admin).
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if none waits, [`Refused::Closed`].
    pub fn resume(&mut self) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Command))?;
        self.answered();
        Ok(())
    }

    /// Refuses the frame that waits for a reply. The connection stays open in its state: in
    /// onboarding with the kept CONNECT, or admitted with its session.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn refuse(&mut self, error: &ErrorFrame) -> Result<(), Refused> {
        self.check_awaited(|_| true)?;
        self.core.send_json(error)?;
        self.answered();
        Ok(())
    }

    /// Sends an encoded frame other than a reply to CONNECT or INPUT, sharing its bytes:
    /// `SESSION_STATUS`, `ADMIN_RESULT`, ERROR.
    ///
    /// # Errors
    /// [`Refused::QueueFull`], [`Refused::TooLarge`], [`Refused::Closed`]. Nothing has changed then.
    pub fn send_text(&mut self, frame: Text) -> Result<(), Refused> {
        self.core.send_text(frame).map(drop)
    }

    /// Sends an already encoded event or OUTPUT, sharing its bytes.
    ///
    /// # Errors
    /// As for [`send_text`](Self::send_text), and [`Refused::NotReady`] if the client is not admitted.
    pub fn send(&mut self, frame: Text) -> Result<(), Refused> {
        match self.phase {
            _ if self.is_closed() => Err(Refused::Closed),
            Phase::Inside => self.core.send_text(frame).map(drop),
            Phase::Outside | Phase::Gated { .. } => Err(Refused::NotReady),
        }
    }

    /// Returns whether events fit without delaying replies. If not, [`ServerEvent::Writable`]
    /// reports when they do again.
    pub fn has_room(&mut self) -> bool {
        let has_room = self.core.has_slack();
        // The end of the connection was the last event.
        self.blocked = !has_room && !self.is_closed();
        self.owes = self.blocked;
        has_room
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

    /// Continues with the frames held back for an answer, until the next one that needs an answer.
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
