//! The runtime's handling of the events of one connection.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rpc_core::net::server::{Attempt, Brake, TooManyAttempts};
use rpc_core::net::{ConnectionHandler, Running, catch_panic, entropy, time};
use rpc_core::{CloseFrame, CloseReason, Instant, Json, Machine as _, Refused, Str};

use super::{HostRuntime, Shared};
use crate::auth::{Address, AuthError, Signature};
use crate::codec::redact;
use crate::frame::{Connect, ErrorFrame, Input, OnboardSubmit, ReceivedFile, Signed};
use crate::hub::{ConnId, ConnectRequest, Hub, Owner, Prompt};
use crate::limits::{
    ALREADY_AUTHENTICATED, AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED, SERVICE_RESTART,
    of_server,
};
use crate::net::SYSTEM;
use crate::server::{ServerConn, ServerEvent, Warning};
use crate::trust::{Admission, Onboarding, prompt_of};
use crate::upload::{Sender, UploadError};
use crate::{console, upload};

/// The connection ends with this wrong invite code.
const MAX_WRONG_CODES: u32 = 3;

/// Passes the events of a connection to the hub, in the connection's own task, so that everything a
/// client sent before it left counts. Dropping it removes the connection from the hub.
pub(in crate::net) struct Handler {
    pub(super) runtime: HostRuntime,
    pub(super) conn: ConnId,
    /// The caller, once known.
    pub(super) owner: Option<Owner>,
    /// If the client came to another host: the time there, in seconds since 1970, and when it was that. The
    /// clock there judges signatures.
    pub(in crate::net) came: Option<(f64, Instant)>,
    /// Who guesses invite codes, and what slows that down.
    pub(in crate::net) caller: IpAddr,
    pub(in crate::net) brake: Arc<Brake>,
    pub(super) wrong_codes: u32,
    /// How long each part of the shutdown may take: finishing agents, and sending frames.
    pub(in crate::net) drain_timeout: Duration,
}

impl Handler {
    fn now(&self) -> f64 {
        match self.came {
            Some((then, at)) => then + time::now().duration_since(at).as_secs_f64(),
            None => self.runtime.unix_now(),
        }
    }

    /// Notes that the connection is alive, and calls the hub.
    fn alive(&self, act: impl FnOnce(&mut Hub, ConnId)) {
        self.runtime.hub().with(|state, now| {
            state.hub.heard(self.conn, now.instant);
            act(&mut state.hub, self.conn);
        });
    }

    fn connect(&mut self, connect: Connect, tasks: &mut Running) {
        let now = self.now();
        // Outside of every lock: it takes longer than all the rest.
        let verified = self.runtime.shared.verifier.verify(&connect.signed, now);
        let code = verified.as_ref().ok();
        let code = code.and_then(|verified| verified.payload.text("invite_code"));
        let attempt = match code.map(|_| self.attempt()).transpose() {
            Ok(attempt) => attempt,
            Err(error) => return self.refuse_connect(*error),
        };
        let admission = self.runtime.with_access(|access| {
            self.runtime.refresh_book(access);
            access.decide(verified, now)
        });
        match admission {
            Ok(Admission::Accept {
                owner,
                recommend_signature,
            }) => {
                if recommend_signature {
                    tracing::warn!(conn = self.conn.0, "a client without a signature");
                }
                if self.owner.is_some_and(|before| before != owner) {
                    return self.refuse_connect(ErrorFrame::new(ALREADY_AUTHENTICATED));
                }
                self.enter(owner, connect, recommend_signature, tasks);
            }
            // It is in already, as someone else.
            Ok(Admission::Gate { .. }) if self.owner.is_some() => {
                self.refuse_connect(ErrorFrame::new(ALREADY_AUTHENTICATED));
            }
            Ok(Admission::Gate { identity, required }) => {
                let mut told = Ok(());
                self.runtime.write(self.conn, |machine| {
                    told = machine.gate(identity, &required);
                    told.clone()
                });
                if let Err(Refused::TooLarge { .. }) = told {
                    let words = "the conversation is too long: come in without it first";
                    self.refuse_connect(ErrorFrame::new(words));
                }
                if let Some(attempt) = attempt {
                    self.wrong_code(attempt);
                }
            }
            Err(error) => self.refuse_connect(ErrorFrame::new(error.to_string())),
        }
    }

    fn enter(
        &mut self,
        owner: Owner,
        connect: Connect,
        recommend_signature: bool,
        tasks: &mut Running,
    ) {
        self.owner = Some(owner);
        let mut request = ConnectRequest::new(owner, connect, super::random());
        request.recommend_signature = recommend_signature;
        request.caller = Some(self.caller).filter(|it| !it.is_unspecified());
        let cluster = self.runtime.shared.cluster.clone();
        let cluster = cluster.filter(|_| self.runtime.shared.access.lock().uses_signatures_once());
        let (runtime, conn) = (self.runtime.clone(), self.conn);
        match (cluster, owner) {
            (Some(cluster), Owner::Key(_)) => tasks.push(async move {
                let signature = request.connect.signed.signature.as_deref();
                let signature = signature.and_then(|text| Signature::parse(text).ok());
                let spent = match signature {
                    Some(signature) => cluster.spend(&signature).await,
                    None => Ok(()),
                };
                match spent {
                    Ok(()) => runtime.enter(conn, request),
                    // It was used at another host.
                    Err(error) => runtime.hub().with(|state, _| {
                        let error = ErrorFrame::new(error.to_string());
                        state.hub.refuse_connect(conn, error);
                    }),
                }
            }),
            _ => runtime.enter(conn, request),
        }
    }

    fn onboard(&mut self, identity: Address, submit: &OnboardSubmit, tasks: &mut Running) {
        let now = self.now();
        let (runtime, conn) = (self.runtime.clone(), self.conn);
        let attempt = match self.attempt() {
            Ok(attempt) => attempt,
            Err(error) => return runtime.write(conn, |machine| machine.refuse(&error)),
        };
        let outcome = runtime.with_access(|access| access.onboard(&identity, submit, now));
        match outcome {
            Ok(Onboarding::Payment { amount }) => tasks.push(async move {
                let outcome = match runtime.is_paid(identity, amount).await {
                    true => runtime.with_access(|access| access.paid(&identity)),
                    false => Err(AuthError::InsufficientPayment),
                };
                runtime.onboarded(conn, outcome);
            }),
            Err(error @ AuthError::InvalidInviteCode) => {
                runtime.onboarded(conn, Err(error));
                self.wrong_code(attempt);
            }
            outcome => runtime.onboarded(conn, outcome),
        }
    }

    /// Asks before an invite code is compared. A refused one can be sent again.
    fn attempt(&self) -> Result<Attempt, Box<ErrorFrame>> {
        let attempt = self.brake.attempt(self.caller, "").now_or_never();
        let attempt = attempt.unwrap_or(Err(TooManyAttempts));
        attempt.map_err(|error| {
            let error = ErrorFrame::new(error.to_string());
            Box::new(error.with_retryable(true))
        })
    }

    /// Counts a wrong invite code, and ends the connection after some.
    fn wrong_code(&mut self, attempt: Attempt) {
        attempt.wrong();
        self.wrong_codes += 1;
        if self.wrong_codes == MAX_WRONG_CODES {
            let frame = CloseFrame::new(CloseFrame::POLICY, "too many wrong invite codes");
            self.runtime.write(self.conn, |machine| {
                machine.close_with(frame, time::now());
                Ok(())
            });
        }
    }

    /// Returns the prompt of an INPUT, without its files.
    fn prompt(&self, input: &Input) -> Result<Prompt, Box<ErrorFrame>> {
        let Some(owner) = &self.owner else {
            return Err(ErrorFrame::new(AUTHENTICATE_FIRST).into());
        };
        if self.runtime.is_closing() {
            let error = rejected("the host is shutting down");
            return Err(error.with_retryable(true).into());
        }
        let text = prompt_of(&self.runtime.shared.verifier, owner, input, self.now());
        let text = text.map_err(|error| rejected(error.to_string()))?;
        let mut prompt = Prompt::new(text.ok_or_else(|| ErrorFrame::new(PROMPT_REQUIRED))?);
        let images = input.images(&of_server());
        prompt.images = images.map_err(|error| rejected(format!("Invalid INPUT: {error}")))?;
        Ok(prompt)
    }

    /// Passes a prompt to the hub when its files are saved.
    fn upload(&self, sender: Sender, mut input: Input, prompt: Prompt, tasks: &mut Running) {
        let (runtime, conn) = (self.runtime.clone(), self.conn);
        let bytes = input.files.as_ref().map_or(0, |files| files.get().len());
        let hub = runtime.hub();
        if !hub.with(|state, now| state.hub.begin_upload(conn, bytes, now)) {
            return;
        }
        let mut upload = Upload {
            session: input.session.take(),
            saved: Err(rejected("internal error").into()),
            runtime,
            conn,
            bytes,
        };
        let saving = tokio::task::spawn_blocking(move || {
            upload.saved = upload.runtime.shared.save_files(&input, sender, prompt);
            upload
        });
        tasks.push(async move { drop(saving.await) });
    }

    /// Checks that a command is signed by the owner of its connection, and was not used before.
    fn check_command(&self, signed: &Signed) -> Result<(), AuthError> {
        let now = self.now();
        // Outside of every lock: it takes longer than all the rest.
        let verified = self.runtime.shared.verifier.verify(signed, now)?;
        let owner = self.owner.as_ref().ok_or(AuthError::NotTheOwner)?;
        let runtime = &self.runtime;
        runtime.with_access(|access| access.command(owner, &verified, now))
    }

    fn refuse_connect(&self, error: ErrorFrame) {
        self.alive(|hub, conn| hub.refuse_connect(conn, error));
    }

    fn refuse_input(&self, error: impl Into<Box<ErrorFrame>>) {
        self.alive(|hub, conn| hub.refuse_input(conn, error));
    }
}

/// A prompt whose files are being saved. The hub gets it with the drop, also without its connection: then it is
/// refused there, and the files are deleted.
struct Upload {
    runtime: HostRuntime,
    conn: ConnId,
    bytes: usize,
    session: Option<Json>,
    saved: Result<Prompt, Box<ErrorFrame>>,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let saved = std::mem::replace(&mut self.saved, Err(ErrorFrame::new("").into()));
        let (conn, session) = (self.conn, self.session.take());
        self.runtime.hub().with(|state, now| {
            state.hub.end_upload(conn, self.bytes);
            match saved {
                Ok(prompt) => state.hub.input(conn, prompt, session, now),
                Err(error) => state.hub.refuse_input(conn, error),
            }
        });
    }
}

/// The line for a CONNECT or an INPUT that the machine has refused by itself.
fn refused(warning: &Warning) -> Option<String> {
    let tag = match warning {
        Warning::BadFrame(error) => error.frame()?,
        Warning::NotConnected { tag } | Warning::Unsigned { tag, .. } => tag,
        Warning::NoPrompt => "INPUT",
        _ => return None,
    };
    let why = warning.to_string();
    match tag {
        "CONNECT" => Some(console::connect_refused(&why)),
        "INPUT" => Some(console::input_refused(&why)),
        _ => None,
    }
}

/// The refusal of a prompt. Without the code, clients would take it for the end of a run that goes
/// on.
pub(super) fn rejected(words: impl Into<Str>) -> ErrorFrame {
    ErrorFrame::new(words).with_code(INPUT_REFUSED)
}

impl Shared {
    /// Saves the files of a prompt, before anything else is done with it.
    fn save_files(
        &self,
        input: &Input,
        sender: Sender,
        mut prompt: Prompt,
    ) -> Result<Prompt, Box<ErrorFrame>> {
        let files = input.files(&of_server()).map_err(UploadError::from);
        let saved = files.and_then(|files| self.uploads.save(&files, sender, entropy()));
        let saved = saved.map_err(|error| {
            if let UploadError::Io(error) = &error {
                tracing::error!(%error, "an upload was not saved");
            }
            let refusal = rejected(error.to_string());
            Box::new(refusal.with_retryable(error.is_retryable()))
        })?;
        let paths = saved.iter().map(|(_, path)| path.display().to_string());
        let paths: Vec<String> = paths.collect();
        prompt.text = upload::with_reminder(&prompt.text, &paths).into();
        let files = saved.iter().zip(&paths);
        let files = files.map(|((file, _), path)| ReceivedFile {
            name: file.name.as_str().into(),
            path: Some(path.as_str().into()),
        });
        prompt.files = files.collect();
        Ok(prompt)
    }
}

impl HostRuntime {
    /// Returns whether a stranger has paid.
    async fn is_paid(&self, identity: Address, amount: f64) -> bool {
        let Some(check) = &self.shared.payments else {
            return false;
        };
        let asking = async { check(identity, amount).await };
        let is_paid = catch_panic("a payment check", asking).await;
        is_paid.unwrap_or(false)
    }

    /// Tells a stranger what has become of the onboarding.
    fn onboarded(&self, conn: ConnId, outcome: Result<Onboarding, AuthError>) {
        self.write(conn, |machine| match outcome {
            Ok(Onboarding::Welcome(success)) => machine.welcome(&success),
            Ok(Onboarding::Payment { .. }) => Ok(()),
            Err(error) => machine.refuse(&ErrorFrame::new(error.to_string())),
        });
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.runtime.leave(self.conn);
    }
}

impl ConnectionHandler for Handler {
    type Machine = ServerConn;
    const SYSTEM: &'static str = SYSTEM;

    fn on_event(&mut self, event: ServerEvent, tasks: &mut Running) -> Option<CloseReason> {
        match event {
            ServerEvent::Connect(connect) => self.connect(connect, tasks),
            ServerEvent::Onboard { identity, submit } => self.onboard(identity, &submit, tasks),
            ServerEvent::Onboarded { identity, connect } => {
                let now = self.now();
                let runtime = &self.runtime;
                match runtime.with_access(|access| access.complete(&connect, now)) {
                    Ok(()) => self.enter(Owner::Key(identity), connect, false, tasks),
                    Err(error) => self.refuse_connect(ErrorFrame::new(error.to_string())),
                }
            }
            ServerEvent::Signed { signed, command } => {
                match (self.check_command(&signed), &*command) {
                    (Ok(()), _) => return self.on_event(*command, tasks),
                    (Err(error), ServerEvent::Input(_)) => {
                        self.refuse_input(rejected(error.to_string()));
                    }
                    (Err(error), _) => {
                        let error = ErrorFrame::new(error.to_string());
                        self.alive(|hub, conn| hub.tell(conn, &error));
                    }
                }
            }
            ServerEvent::Input(input) => {
                let has_files = input.files.is_some();
                let owner = self.owner.filter(|_| has_files);
                let sender = owner.and_then(|owner| {
                    let id = |hub: &Hub| hub.session_of(self.conn).cloned();
                    let id = self.runtime.read(id)?;
                    Some(Sender::new(owner, id.as_str(), self.caller))
                });
                match (self.prompt(&input), sender) {
                    (Err(error), _) => self.refuse_input(error),
                    (Ok(prompt), Some(sender)) => self.upload(sender, input, prompt, tasks),
                    (Ok(prompt), None) => self.runtime.hub().with(|state, now| {
                        state.hub.input(self.conn, prompt, input.session, now);
                    }),
                }
            }
            command @ (ServerEvent::Response(_)
            | ServerEvent::ModeChange(_)
            | ServerEvent::PromptUpdate(_)
            | ServerEvent::Interrupt) => self.runtime.hub().with(|state, now| {
                state.hub.command(self.conn, command, now);
            }),
            ServerEvent::SessionQuery(query) => {
                let nobody = || self.runtime.shared.access.lock().nobody();
                let asker = self.owner.or_else(nobody);
                self.alive(|_, _| {});
                let (runtime, conn) = (self.runtime.clone(), self.conn);
                tasks.push(async move {
                    let status = runtime.status(asker, query.session_id).await;
                    runtime.hub().with(|state, _| state.hub.tell(conn, &status));
                });
            }
            ServerEvent::Admin(request) => {
                let (runtime, owner, now) = (&self.runtime, self.owner.as_ref(), self.now());
                let result =
                    runtime.with_access(|access| access.administrate(owner, &request, now));
                self.alive(|hub, conn| match &result {
                    Ok(result) => hub.tell(conn, result),
                    Err(error) => hub.tell(conn, &**error),
                });
            }
            ServerEvent::Pong => self.alive(|_, _| {}),
            ServerEvent::Writable => {
                let hub = self.runtime.hub();
                hub.with(|state, _| state.hub.resume(self.conn));
            }
            ServerEvent::Warning(warning) => {
                if let Some(line) = refused(&warning) {
                    tracing::info!(target: console::TARGET, "{line}");
                }
                tracing::debug!(conn = self.conn.0, %warning, "a frame was refused");
                self.alive(|_, _| {});
            }
            ServerEvent::Closed(reason) => {
                self.runtime.leave(self.conn);
                return Some(reason);
            }
        }
        None
    }

    fn shut_down(&mut self, tasks: &mut Running) {
        let (runtime, conn, timeout) = (self.runtime.clone(), self.conn, self.drain_timeout);
        tasks.push(async move {
            runtime.drain(timeout).await;
            let hub = runtime.hub();
            let handle = hub.peek(|state| state.connections.get(conn.0).cloned());
            if let Some(handle) = handle {
                // The ends of runs are sent before the Close.
                let frame = CloseFrame::new(SERVICE_RESTART, "the host is shutting down");
                handle.drain(timeout, frame).await;
            }
        });
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}
