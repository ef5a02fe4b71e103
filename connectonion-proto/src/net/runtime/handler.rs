//! The runtime's handling of the events of one connection.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use rpc_core::net::{ConnectionHandler, Running};
use rpc_core::{CloseFrame, CloseReason, DecodeError, Refused, Str};

use super::HostRuntime;
use super::state::Job;
use crate::auth::AuthError;
use crate::codec::redact;
use crate::console::{self, Line};
use crate::frame::{Connect, ErrorFrame, Input, OnboardSubmit};
use crate::hub::ConnectRequest;
use crate::limits::{
    ALREADY_AUTHENTICATED, AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED, SERVICE_RESTART,
    server_limits,
};
use crate::net::SYSTEM;
use crate::server::{ServerConn, ServerEvent, Warning};
use crate::session::{ConnId, Owner, Prompt};
use crate::trust::{Admission, Onboarding, prompt_of};

/// Passes the events of a connection to the hub, in the connection's own task, so that everything a
/// client sent before it left counts. Dropping it removes the connection from the hub.
pub(in crate::net) struct Handler {
    pub(super) runtime: HostRuntime,
    pub(super) conn: ConnId,
    /// The caller, once known.
    pub(super) owner: Option<Owner>,
    /// How long each part of the shutdown may take: finishing agents, and sending frames.
    pub(in crate::net) drain_timeout: Duration,
}

impl Handler {
    fn take(&mut self, event: ServerEvent) -> Option<CloseReason> {
        match event {
            ServerEvent::Connect { connect } => self.connect(connect),
            ServerEvent::Onboard { identity, submit } => self.onboard(&identity, &submit),
            ServerEvent::Onboarded { identity, connect } => {
                let mut access = self.runtime.access();
                let completed = access.complete(&connect, self.runtime.unix_now());
                self.runtime.keep_spent(&mut access);
                drop(access);
                match completed {
                    Ok(()) => self.enter(Owner::Key(identity), connect, false),
                    Err(error) => self.refuse_connect(ErrorFrame::new(error.to_string())),
                }
            }
            ServerEvent::Signed { signed, command } => {
                match self.runtime.check_command(self.owner.as_ref(), &signed) {
                    Ok(()) => return self.take(*command),
                    Err(error) => self.refuse_command(&command, &error),
                }
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
                let asker = self.owner.or_else(|| self.runtime.access().nobody());
                if let (Some(_), Some(session_id)) = (&self.runtime.shared.peers, &query.session_id)
                {
                    self.alive(|_, _, _| {});
                    self.runtime.start_job(Job::Status {
                        conn: self.conn,
                        asker,
                        session_id: session_id.clone(),
                    });
                    return None;
                }
                self.alive(|hub, conn, _| {
                    let status = hub.status(asker, query.session_id.as_ref());
                    hub.tell(conn, &status);
                });
            }
            ServerEvent::Admin { request } => {
                let result = self.runtime.administrate(self.owner.as_ref(), &request);
                self.alive(|hub, conn, _| match &result {
                    Ok(result) => hub.tell(conn, result),
                    Err(error) => hub.tell(conn, &**error),
                });
            }
            ServerEvent::Pong => self.alive(|_, _, _| {}),
            ServerEvent::Writable => {
                self.runtime
                    .with(|state, now| state.send_frames(self.conn, now));
            }
            ServerEvent::Warning(warning) => {
                if let Some(line) = refused(&warning) {
                    tracing::info!(target: console::TARGET, "{line}");
                }
                tracing::debug!(conn = self.conn.0, %warning, "a frame was refused");
                self.alive(|_, _, _| {});
            }
            ServerEvent::Closed(reason) => {
                self.runtime.leave(self.conn);
                return Some(reason);
            }
        }
        None
    }

    /// Calls the hub, and notes that the connection is alive.
    fn alive(&self, act: impl FnOnce(&mut crate::hub::Hub, ConnId, crate::hub::Now)) {
        self.runtime.with(|state, now| {
            state.hub.heard(self.conn, now.instant);
            act(&mut state.hub, self.conn, now);
        });
    }

    fn connect(&mut self, connect: Connect) {
        let now = self.runtime.unix_now();
        // Outside of every lock: it takes longer than all the rest.
        let verified = self.runtime.verifier().verify(&connect.signed, now);
        let mut access = self.runtime.access();
        self.runtime.refresh_book(&mut access);
        let admission = access.decide(verified, now);
        self.runtime.keep_spent(&mut access);
        drop(access);
        // An invite code may have come with it.
        self.runtime.book_changed();
        match admission {
            Admission::Accept {
                owner,
                recommend_signature,
            } => {
                if recommend_signature {
                    tracing::warn!(conn = self.conn.0, "a client without a signature");
                }
                if self.owner.is_some_and(|before| before != owner) {
                    return self.refuse_connect(ErrorFrame::new(ALREADY_AUTHENTICATED));
                }
                self.enter(owner, connect, recommend_signature);
            }
            // It is in already, as somebody else.
            Admission::Gate { .. } if self.owner.is_some() => {
                self.refuse_connect(ErrorFrame::new(ALREADY_AUTHENTICATED));
            }
            Admission::Gate { identity, required } => {
                let mut fits = true;
                self.write(|machine| match machine.gate(identity, &required) {
                    Err(Refused::TooLarge { .. }) => {
                        fits = false;
                        Ok(())
                    }
                    told => told,
                });
                if !fits {
                    let words = "the conversation is too long: come in without it first";
                    self.refuse_connect(ErrorFrame::new(words));
                }
            }
            Admission::Refuse(error) => self.refuse_connect(ErrorFrame::new(error.to_string())),
        }
    }

    fn enter(&mut self, owner: Owner, connect: Connect, recommend_signature: bool) {
        self.owner = Some(owner);
        let request = ConnectRequest::new(owner, connect, super::random())
            .with_recommend_signature(recommend_signature);
        let counts_once =
            self.runtime.shared.peers.is_some() && self.runtime.access().uses_signatures_once();
        if counts_once && matches!(owner, Owner::Key(_)) {
            let (conn, request) = (self.conn, Box::new(request));
            return self.runtime.start_job(Job::Spend { conn, request });
        }
        self.runtime.enter(self.conn, request);
    }

    fn onboard(&mut self, identity: &crate::auth::Address, submit: &OnboardSubmit) {
        let now = self.runtime.unix_now();
        let outcome = self.runtime.access().onboard(identity, submit, now);
        if let Onboarding::Payment { amount } = outcome {
            let (conn, identity) = (self.conn, *identity);
            return self.runtime.start_job(Job::Payment {
                conn,
                identity,
                amount,
            });
        }
        self.runtime.book_changed();
        self.onboarded(outcome);
    }

    pub(super) fn onboarded(&mut self, outcome: Onboarding) {
        match outcome {
            Onboarding::Welcome(success) => {
                self.write(|machine| machine.welcome(&success));
            }
            Onboarding::Refuse(error) => self.refuse_offer(&error),
            Onboarding::Payment { .. } => {
                self.refuse_offer(&AuthError::InsufficientPayment);
            }
        }
    }

    fn input(&self, input: Input) {
        let Some(owner) = self.owner else {
            return self.refuse_input(ErrorFrame::new(AUTHENTICATE_FIRST));
        };
        if self.runtime.is_closing() {
            let error = rejected("the host is shutting down");
            return self.refuse_input(error.with_retryable(true));
        }
        let now = self.runtime.unix_now();
        let prompt = match prompt_of(self.runtime.verifier(), &owner, &input, now) {
            Ok(Some(prompt)) => prompt,
            Ok(None) => return self.refuse_input(ErrorFrame::new(PROMPT_REQUIRED)),
            Err(error) => return self.refuse_input(rejected(error.to_string())),
        };
        if input.files.is_some() {
            let (conn, input) = (self.conn, Box::new(input));
            return self.runtime.start_job(Job::Upload {
                conn,
                prompt,
                input,
            });
        }
        match images_of(&input) {
            Ok(images) => {
                let mut prompt = Prompt::new(prompt);
                prompt.images = images;
                self.alive(|hub, conn, now| hub.input(conn, prompt, input.session, now));
            }
            Err(error) => self.refuse_input(rejected(format!("Invalid INPUT: {error}"))),
        }
    }

    fn refuse_command(&self, command: &ServerEvent, error: &AuthError) {
        match command {
            ServerEvent::Input { .. } => self.refuse_input(rejected(error.to_string())),
            _ => {
                let error = ErrorFrame::new(error.to_string());
                self.alive(|hub, conn, _| hub.tell(conn, &error));
            }
        }
    }

    fn refuse_connect(&self, error: ErrorFrame) {
        self.alive(|hub, conn, _| hub.refuse_connect(conn, error));
    }

    fn refuse_input(&self, error: ErrorFrame) {
        self.alive(|hub, conn, _| hub.refuse_input(conn, error));
    }

    fn refuse_offer(&self, error: &AuthError) {
        self.write(|machine| machine.refuse(&ErrorFrame::new(error.to_string())));
    }

    fn write(&self, write: impl FnOnce(&mut ServerConn) -> Result<(), Refused>) {
        self.runtime.write(self.conn, write);
    }
}

/// The line for a CONNECT or an INPUT that the machine has refused by itself.
fn refused(warning: &Warning) -> Option<Line> {
    let tag = match warning {
        Warning::BadFrame(error) => error.frame()?,
        Warning::NotConnected { tag } | Warning::Unsigned { tag, .. } => tag,
        Warning::NoPrompt => "INPUT",
        _ => return None,
    };
    let why = warning.to_string();
    match tag {
        "CONNECT" => Some(Line::ConnectRefused { why }),
        "INPUT" => Some(Line::InputRefused { why }),
        _ => None,
    }
}

/// The refusal of a prompt. Without the code, clients would take it for the end of a run that goes
/// on.
pub(super) fn rejected(words: impl Into<Str>) -> ErrorFrame {
    ErrorFrame::new(words).with_code(INPUT_REFUSED)
}

/// Returns the images of a prompt.
pub(super) fn images_of(input: &Input) -> Result<Vec<Str>, DecodeError> {
    let images = input.images(&server_limits())?;
    Ok(images.iter().map(|image| (&**image).into()).collect())
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.runtime.leave(self.conn);
    }
}

impl ConnectionHandler for Handler {
    type Machine = ServerConn;
    const SYSTEM: &'static str = SYSTEM;

    fn on_event(&mut self, event: ServerEvent, _: &mut Running) -> Option<CloseReason> {
        self.take(event)
    }

    fn close(machine: &mut ServerConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn shut_down(&mut self, tasks: &mut Running) {
        let (runtime, conn, timeout) = (self.runtime.clone(), self.conn, self.drain_timeout);
        tasks.push(async move {
            runtime.drain(timeout).await;
            let handle = runtime
                .shared
                .hub
                .peek(|state| state.connections.get(conn.0).cloned());
            if let Some(handle) = handle {
                // What has just ended is told before the Close.
                let frame = CloseFrame::new(SERVICE_RESTART, "the host is shutting down");
                handle
                    .drain(timeout, |machine| !machine.owes_frames(), frame)
                    .await;
            }
        });
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}
