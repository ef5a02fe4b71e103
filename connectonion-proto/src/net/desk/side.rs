//! [`ServerSide`]: how the server's machine rides on a [`Link`](rpc_core::net::Link), and its place
//! at a desk.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::net::{Protocol, Sorted};
use rpc_core::{CloseFrame, Refused};
use rpc_core::{DecodeError, Str};

use super::Desk;
use super::mailbox::{Mailbox, slow_reader};
use super::state::Errand;
use crate::auth::AuthError;
use crate::codec::redact;
use crate::console::Line;
use crate::frame::{Connect, ErrorFrame, Input, OnboardSubmit};
use crate::hub::{Entrant, NewInput, Reply};
use crate::limits::{
    ALREADY_AUTHENTICATED, AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED, server_limits,
};
use crate::server::{ServerConfig, ServerConn, ServerEvent, Warning};
use crate::session::{ConnId, Owner};
use crate::trust::{Admission, Onboarding, prompt_of};

/// The server's side of one accepted connection. Made with [`new`](Self::new) its events go to the
/// application; [`Desk::serve`] makes one whose events go to the desk.
pub struct ServerSide {
    config: Arc<ServerConfig>,
    place: Option<Place>,
}

impl ServerSide {
    /// A connection with this configuration.
    #[must_use]
    pub fn new(config: impl Into<Arc<ServerConfig>>) -> Self {
        let config = config.into();
        Self {
            config,
            place: None,
        }
    }

    pub(super) fn with_place(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }
}

impl fmt::Debug for ServerSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSide")
            .field("config", &self.config)
            .field("conn", &self.place.as_ref().map(|place| place.conn))
            .finish()
    }
}

/// A connection at a desk. Dropping it leaves the desk.
pub(super) struct Place {
    pub(super) desk: Desk,
    pub(super) conn: ConnId,
    pub(super) mailbox: Arc<Mailbox>,
    /// Who it is, once it is known.
    pub(super) owner: Option<Owner>,
    /// Answers that need no hub.
    pub(super) verdict: Option<Verdict>,
}

/// What the door says about a frame.
pub(super) enum Verdict {
    Gate(crate::auth::Address, Box<crate::frame::OnboardRequired>),
    Welcome(Box<crate::frame::OnboardSuccess>),
}

impl Place {
    /// Events are dealt with here, in the connection's own task: so what a client said before it
    /// left counts.
    fn take(&mut self, event: ServerEvent) -> Sorted<ServerSide> {
        match event {
            ServerEvent::Connect { connect } => self.connect(connect),
            ServerEvent::Onboard { identity, submit } => self.onboard(&identity, &submit),
            ServerEvent::Onboarded { identity, connect } => {
                let completed = self.desk.door().complete(&connect, self.desk.unix_now());
                match completed {
                    Ok(()) => self.enter(Owner::Key(identity), connect),
                    Err(error) => self.refuse(ErrorFrame::new(error.to_string())),
                }
            }
            ServerEvent::Signed { signed, command } => {
                return match self.desk.check_command(self.owner.as_ref(), &signed) {
                    Ok(()) => self.take(*command),
                    Err(error) => {
                        self.refuse_command(&command, &error);
                        Sorted::Ignore
                    }
                };
            }
            ServerEvent::Input { input } => self.input(input),
            ServerEvent::Response { response } => {
                self.alive(|hub, conn, _| hub.respond(conn, response));
            }
            ServerEvent::ModeChange { change } => {
                self.alive(|hub, conn, now| hub.mode_change(conn, change, now));
            }
            ServerEvent::PromptUpdate { update } => {
                self.alive(|hub, conn, _| hub.prompt_update(conn, update));
            }
            ServerEvent::Interrupt => self.alive(|hub, conn, _| hub.interrupt(conn)),
            ServerEvent::SessionQuery { query } => {
                let asker = self.owner.or_else(|| self.desk.door().nobody());
                self.alive(|hub, conn, _| {
                    let status = hub.status(asker, query.session_id.as_ref());
                    hub.tell(conn, &status);
                });
            }
            ServerEvent::Admin { request } => {
                let result = self.desk.administrate(self.owner.as_ref(), &request);
                self.alive(|hub, conn, _| match &result {
                    Ok(result) => hub.tell(conn, result),
                    Err(error) => hub.tell(conn, &**error),
                });
            }
            ServerEvent::Pong => self.alive(|_, _, _| {}),
            ServerEvent::Writable => {
                self.mailbox.has_frames();
                self.desk.nudge(self.conn);
            }
            ServerEvent::Warning(warning) => {
                if matches!(&warning, Warning::NotConnected { tag } if tag == "INPUT") {
                    let why = warning.to_string();
                    tracing::info!(target: crate::console::TARGET, "{}", Line::InputRefused { why });
                }
                tracing::debug!(conn = self.conn.0, %warning, "a frame was refused");
                self.alive(|_, _, _| {});
            }
            ServerEvent::Closed(reason) => {
                self.desk.leave(self.conn);
                return Sorted::Closed(reason);
            }
        }
        Sorted::Ignore
    }

    /// Does something with the hub; the connection is alive.
    fn alive(&self, act: impl FnOnce(&mut crate::hub::Hub, ConnId, crate::hub::Now)) {
        self.desk.with(|state, now| {
            state.hub.heard(self.conn, now.instant);
            act(&mut state.hub, self.conn, now);
        });
    }

    fn connect(&mut self, connect: Connect) {
        let now = self.desk.unix_now();
        // Outside of every lock: it takes longer than all the rest.
        let verified = self.desk.verifier().verify(&connect.signed, now);
        let admission = self.desk.door().decide(verified, now);
        // An invite code may have come with it.
        self.desk.book_changed();
        match admission {
            Admission::Accept {
                owner,
                recommend_signature,
            } => {
                if recommend_signature {
                    tracing::warn!(conn = self.conn.0, "a client without a signature");
                }
                if self.owner.is_some_and(|before| before != owner) {
                    return self.refuse(ErrorFrame::new(ALREADY_AUTHENTICATED));
                }
                self.enter(owner, connect);
            }
            // It is in already, as somebody else.
            Admission::Gate { .. } if self.owner.is_some() => {
                self.refuse(ErrorFrame::new(ALREADY_AUTHENTICATED));
            }
            Admission::Gate { identity, required } => {
                self.verdict = Some(Verdict::Gate(identity, Box::new(required)));
                self.mailbox.has_frames();
                self.desk.nudge(self.conn);
            }
            Admission::Refuse(error) => {
                let why = error.to_string();
                tracing::info!(target: crate::console::TARGET, "{}", Line::ConnectRefused { why });
                self.refuse(ErrorFrame::new(error.to_string()));
            }
        }
    }

    fn enter(&mut self, owner: Owner, connect: Connect) {
        self.owner = Some(owner);
        let entrant = Entrant::new(owner, connect, super::random());
        self.alive(|hub, conn, now| hub.connect(conn, entrant, now));
    }

    fn onboard(&mut self, identity: &crate::auth::Address, submit: &OnboardSubmit) {
        let now = self.desk.unix_now();
        let outcome = self.desk.door().onboard(identity, submit, now);
        if let Onboarding::Payment { amount } = outcome {
            let (conn, identity) = (self.conn, *identity);
            return self.desk.errand(Errand::Payment {
                conn,
                identity,
                amount,
            });
        }
        self.desk.book_changed();
        self.onboarded(outcome);
    }

    pub(super) fn onboarded(&mut self, outcome: Onboarding) {
        match outcome {
            Onboarding::Welcome(success) => {
                self.verdict = Some(Verdict::Welcome(Box::new(success)));
                self.mailbox.has_frames();
                self.desk.nudge(self.conn);
            }
            Onboarding::Refuse(error) => self.refuse(ErrorFrame::new(error.to_string())),
            Onboarding::Payment { .. } => {
                let error = AuthError::InsufficientPayment;
                self.refuse(ErrorFrame::new(error.to_string()));
            }
        }
    }

    fn input(&self, input: Input) {
        let Some(owner) = self.owner else {
            return self.refuse(ErrorFrame::new(AUTHENTICATE_FIRST));
        };
        if self.desk.is_closing() {
            return self.refuse(rejected("the host is shutting down").with_retryable(true));
        }
        let now = self.desk.unix_now();
        let prompt = match prompt_of(self.desk.verifier(), &owner, &input, now) {
            Ok(Some(prompt)) => prompt,
            Ok(None) => return self.refuse(ErrorFrame::new(PROMPT_REQUIRED)),
            Err(error) => return self.refuse(rejected(error.to_string())),
        };
        if input.files.is_some() {
            let (conn, input) = (self.conn, Box::new(input));
            return self.desk.errand(Errand::Upload {
                conn,
                prompt,
                input,
            });
        }
        match images_of(&input) {
            Ok(images) => {
                let input = NewInput::new(prompt)
                    .with_images(images)
                    .with_session(input.session);
                self.alive(|hub, conn, now| hub.input(conn, input, now));
            }
            Err(error) => self.refuse(rejected(format!("Invalid INPUT: {error}"))),
        }
    }

    fn refuse_command(&self, command: &ServerEvent, error: &AuthError) {
        match command {
            ServerEvent::Input { .. } => self.refuse(rejected(error.to_string())),
            _ => {
                let error = ErrorFrame::new(error.to_string());
                self.alive(|hub, conn, _| hub.tell(conn, &error));
            }
        }
    }

    fn refuse(&self, error: ErrorFrame) {
        self.alive(|hub, conn, _| hub.refuse(conn, error));
    }

    /// Tells the machine what waits for it, and as many frames as there is room for.
    fn gather(&mut self, machine: &mut ServerConn, now: Instant) {
        if !self.mailbox.take_flag() {
            return;
        }
        if let Some(verdict) = self.verdict.take() {
            let told = match &verdict {
                Verdict::Gate(identity, required) => match machine.gate(*identity, required) {
                    Err(Refused::TooLarge { .. }) => {
                        let words = "the conversation is too long: come in without it first";
                        machine.refuse(&ErrorFrame::new(words))
                    }
                    told => told,
                },
                Verdict::Welcome(success) => machine.welcome(success),
            };
            self.check(told, machine, now);
        }
        while let Some(reply) = self.mailbox.take() {
            let told = tell(machine, reply);
            self.check(told, machine, now);
        }
        while machine.has_room()
            && let Some(frame) = self.desk.next_frame(self.conn)
        {
            let told = machine.send(frame);
            self.check(told, machine, now);
        }
    }

    fn check(&self, told: Result<(), Refused>, machine: &mut ServerConn, now: Instant) {
        match told {
            Ok(()) | Err(Refused::Closed) => {}
            Err(Refused::QueueFull) => machine.close_with(slow_reader(), now),
            Err(why) => tracing::warn!(%why, conn = self.conn.0, "a frame was not sent"),
        }
    }
}

/// The refusal of a prompt. Without the code, clients would take it for the end of a run that goes
/// on.
pub(super) fn rejected(words: impl Into<Str>) -> ErrorFrame {
    ErrorFrame::new(words).with_code(INPUT_REFUSED)
}

/// The pictures that come with a prompt.
pub(super) fn images_of(input: &Input) -> Result<Vec<Str>, DecodeError> {
    let images = input.images(&server_limits())?;
    Ok(images.iter().map(|image| (&**image).into()).collect())
}

fn tell(machine: &mut ServerConn, reply: Reply) -> Result<(), Refused> {
    match reply {
        Reply::Accept(connected) => match machine.accept(&connected) {
            // The conversation is with the client too, as it was.
            Err(Refused::TooLarge { .. }) => machine.accept(&connected.with_newer(None)),
            told => told,
        },
        Reply::Refuse(error) => machine.refuse(&error),
        Reply::Begun => machine.begun(),
        Reply::Acknowledge(ack) => machine.acknowledge(&ack),
        Reply::Frame(text) => machine.tell_text(text),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.desk.leave(self.conn);
    }
}

impl Protocol for ServerSide {
    type Machine = ServerConn;
    type Call = Infallible;
    type Value = Infallible;
    type Remote = Infallible;
    type Item = Infallible;
    type Event = ServerEvent;

    fn open(&mut self, now: Instant, _: u64) -> ServerConn {
        ServerConn::new(Arc::clone(&self.config), now)
    }

    fn sort(&mut self, event: ServerEvent) -> Sorted<Self> {
        match (&mut self.place, event) {
            (Some(place), event) => place.take(event),
            (None, ServerEvent::Closed(reason)) => Sorted::Closed(reason),
            (None, event) => Sorted::Event(event),
        }
    }

    fn close(machine: &mut ServerConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(_: &mut ServerConn, call: Infallible, _: Instant) {
        match call {}
    }

    fn gather(&mut self, machine: &mut ServerConn, now: Instant) {
        if let Some(place) = &mut self.place {
            place.gather(machine, now);
        }
    }

    /// A drain waits for the frames that had no room.
    fn in_flight(machine: &ServerConn) -> usize {
        usize::from(machine.owes_frames())
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}
