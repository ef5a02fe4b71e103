//! The runtime's handling of the events of one connection.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rpc_core::net::server::{Attempt, Brake};
use rpc_core::net::{ConnectionHandler, Running, catch_panic, entropy, time};
use rpc_core::{CloseFrame, CloseReason, Instant, Json, Machine as _, Refused, Str};

use super::{HostRuntime, Shared};
use crate::auth::{Address, AuthError, Signature};
use crate::codec::redact;
use crate::frame::{AdminRequest, Connect, ErrorFrame, Input, OnboardSubmit, ReceivedFile, Signed};
use crate::hub::{ConnId, ConnectRequest, Hub, Owner, Prompt};
use crate::limits::{
    ALREADY_AUTHENTICATED, AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED, SERVICE_RESTART,
    of_server,
};
use crate::net::{SYSTEM, random};
use crate::server::{ServerConn, ServerEvent, Warning};
use crate::trust::{AccessControl, Admission, Onboarding, is_signed_by_another, prompt_of};
use crate::upload::{Sender, UploadError};
use crate::{console, upload};

/// The connection ends with this wrong invite code.
const MAX_WRONG_CODES: u32 = 3;

/// Passes the events of a connection to the hub, in the connection's own task, so that everything a
/// client sent before it left counts. Dropping it removes the connection from the hub.
pub(in crate::net) struct Handler {
    pub(super) caller: Arc<Caller>,
    /// How long each part of the shutdown may take: finishing agents, and sending frames.
    pub(in crate::net) drain_timeout: Duration,
}

/// Where a connection has come from.
pub(in crate::net) struct Remote {
    /// If the client came to another host: the time there, in seconds since 1970, and when it was that. The
    /// clock there judges signatures.
    pub(in crate::net) came: Option<(f64, Instant)>,
    /// Who guesses invite codes, and what slows that down.
    pub(in crate::net) address: IpAddr,
    pub(in crate::net) brake: Arc<Brake>,
}

/// The client of a connection. The machine reports no further frame of it while one is handled that waits for
/// something.
pub(super) struct Caller {
    pub(super) runtime: HostRuntime,
    pub(super) conn: ConnId,
    pub(super) remote: Remote,
    /// Who it is, once known.
    pub(super) owner: OnceLock<Owner>,
    pub(super) wrong_codes: AtomicU32,
}

impl Caller {
    fn now(&self) -> f64 {
        match self.remote.came {
            Some((then, at)) => then + time::now().duration_since(at).as_secs_f64(),
            None => self.runtime.unix_now(),
        }
    }

    /// Notes that the connection is alive, and calls the hub.
    fn alive(&self, act: impl FnOnce(&mut Hub, ConnId)) {
        self.runtime.with_hub(|hub, now| {
            hub.touch(self.conn, now.instant);
            act(hub, self.conn);
        });
    }

    async fn connect(self: Arc<Self>, connect: Connect) {
        let now = self.now();
        // Outside of every lock: it takes longer than all the rest.
        let verified = self.runtime.shared.verifier.verify(&connect.signed, now);
        let code = verified.as_ref().ok();
        let code = code.and_then(|verified| verified.payload.text("invite_code"));
        let attempt = match code {
            None => None,
            Some(code) => match self.attempt(&code).await {
                Ok(attempt) => Some(attempt),
                Err(error) => return self.refuse_connect(*error),
            },
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
                self.enter(owner, connect, recommend_signature).await;
            }
            // It is in already, as someone else.
            Ok(Admission::Gate { .. }) if self.owner.get().is_some() => {
                self.refuse_connect(ErrorFrame::new(ALREADY_AUTHENTICATED));
            }
            Ok(Admission::Gate { identity, required }) => {
                let mut sent = Ok(());
                self.runtime.write(self.conn, |machine| {
                    sent = machine.gate(identity, &required);
                    sent.clone()
                });
                if let Err(Refused::TooLarge { .. }) = sent {
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

    /// Passes on an admitted CONNECT.
    async fn enter(&self, owner: Owner, connect: Connect, recommend_signature: bool) {
        let before = self.owner.get();
        if before.is_some_and(|before| *before != owner) {
            return self.refuse_connect(ErrorFrame::new(ALREADY_AUTHENTICATED));
        }
        let signature = connect.signed.signature.as_deref();
        let signature = signature.and_then(|text| Signature::parse(text).ok());
        if let (Owner::Key(_), Some(signature)) = (owner, signature)
            && self.runtime.with_access(|access| access.is_strict())
            && let Err(error) = self.runtime.spend(&signature).await
        {
            return self.refuse_connect(ErrorFrame::new(error.to_string()));
        }
        self.owner.get_or_init(|| owner);
        let mut request = ConnectRequest::new(owner, connect, random());
        request.recommend_signature = recommend_signature;
        request.caller = Some(self.remote.address).filter(|it| !it.is_unspecified());
        self.runtime.enter(self.conn, request);
    }

    /// Admits a stranger with the CONNECT that was kept.
    async fn onboarded(self: Arc<Self>, identity: Address, connect: Connect) {
        let now = self.now();
        let complete = |access: &mut AccessControl| access.complete(&connect, now);
        match self.runtime.with_access(complete) {
            Ok(()) => self.enter(Owner::Key(identity), connect, false).await,
            Err(error) => self.refuse_connect(ErrorFrame::new(error.to_string())),
        }
    }

    async fn onboard(self: Arc<Self>, identity: Address, submit: OnboardSubmit) {
        let now = self.now();
        let (runtime, conn) = (&self.runtime, self.conn);
        let code = submit.signed.text("invite_code").unwrap_or_default();
        let attempt = match self.attempt(&code).await {
            Ok(attempt) => attempt,
            Err(error) => return runtime.write(conn, |machine| machine.refuse(&error)),
        };
        let outcome = runtime.with_access(|access| access.onboard(&identity, &submit, now));
        let outcome = match outcome {
            Ok(Onboarding::Payment { amount }) => match runtime.is_paid(identity, amount).await {
                true => runtime.with_access(|access| access.paid(&identity)),
                false => Err(AuthError::InsufficientPayment),
            },
            outcome => outcome,
        };
        let is_wrong = outcome == Err(AuthError::InvalidInviteCode);
        runtime.write(conn, |machine| match outcome {
            Ok(Onboarding::Welcome(success)) => machine.welcome(&success),
            Ok(Onboarding::Payment { .. }) => Ok(()),
            Err(error) => machine.refuse(&ErrorFrame::new(error.to_string())),
        });
        if is_wrong {
            self.wrong_code(attempt);
        }
    }

    /// Asks before an invite code is compared. A refused one can be sent again.
    async fn attempt(&self, code: &str) -> Result<Attempt, Box<ErrorFrame>> {
        let Remote { address, brake, .. } = &self.remote;
        let attempt = brake.attempt(*address, "code", code).await;
        attempt.map_err(|error| {
            let error = ErrorFrame::new(error.to_string());
            Box::new(error.with_retryable(true))
        })
    }

    /// Counts a wrong invite code, and ends the connection after some.
    fn wrong_code(&self, attempt: Attempt) {
        attempt.wrong();
        if self.wrong_codes.fetch_add(1, Ordering::Relaxed) + 1 == MAX_WRONG_CODES {
            let frame = CloseFrame::new(CloseFrame::POLICY, "too many wrong invite codes");
            self.runtime.write(self.conn, |machine| {
                machine.close_with(frame, time::now());
                Ok(())
            });
        }
    }

    /// Returns the prompt of an INPUT, without its files, and the signature to use up, if there is one.
    fn prompt(&self, input: &Input) -> Result<(Prompt, Option<Signature>), Box<ErrorFrame>> {
        let Some(owner) = self.owner.get() else {
            return Err(ErrorFrame::new(AUTHENTICATE_FIRST).into());
        };
        if self.runtime.is_closing() {
            let error = rejected("the host is shutting down");
            return Err(error.with_retryable(true).into());
        }
        let now = self.now();
        let read = prompt_of(&self.runtime.shared.verifier, owner, input, now);
        let (text, verified) = read.map_err(|error| rejected(error.to_string()))?;
        let mut prompt = Prompt::new(text.ok_or_else(|| ErrorFrame::new(PROMPT_REQUIRED))?);
        let images = input.images(&of_server());
        prompt.images = images.map_err(|error| rejected(format!("Invalid INPUT: {error}")))?;
        let spend = |access: &mut AccessControl| {
            let verified = verified.filter(|_| access.is_strict())?;
            let spent = access.spend(&verified, now);
            Some(spent.map(|()| verified.signature))
        };
        let spent = self.runtime.with_access(spend).transpose();
        let spent = spent.map_err(|error| rejected(error.of_command().to_string()))?;
        Ok((prompt, spent))
    }

    /// Passes a prompt to the hub.
    async fn input(self: Arc<Self>, input: Input) {
        let prompt = match self.prompt(&input) {
            Ok((prompt, None)) => Ok(prompt),
            Ok((prompt, Some(signature))) => match self.runtime.spend(&signature).await {
                Ok(()) => Ok(prompt),
                Err(error) => Err(rejected(error.of_command().to_string()).into()),
            },
            Err(error) => Err(error),
        };
        let owner = self.owner.get().filter(|_| input.files.is_some());
        let sender = owner.and_then(|owner| {
            let id = |hub: &Hub| hub.session_of(self.conn).cloned();
            let id = self.runtime.read(id)?;
            Some(Sender::new(*owner, id.as_str(), self.remote.address))
        });
        match (prompt, sender) {
            (Err(error), _) => self.refuse_input(error),
            (Ok(prompt), Some(sender)) => self.upload(sender, input, prompt).await,
            (Ok(prompt), None) => self.runtime.with_hub(|hub, now| {
                hub.input(self.conn, prompt, input.session, now);
            }),
        }
    }

    /// Passes a prompt to the hub when its files are saved.
    async fn upload(&self, sender: Sender, mut input: Input, prompt: Prompt) {
        let (runtime, conn) = (self.runtime.clone(), self.conn);
        let bytes = input.files.as_ref().map_or(0, |files| files.get().len());
        if !runtime.with_hub(|hub, now| hub.begin_upload(conn, bytes, now)) {
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
        drop(saving.await);
    }

    /// Carries out a signed command, unless it is not the owner's, or was used before.
    async fn command(self: Arc<Self>, signed: Signed, command: ServerEvent) {
        match (self.check_command(&signed).await, command) {
            (Ok(()), ServerEvent::Input(input)) => return self.input(input).await,
            (Ok(()), command) => self.take(command),
            (Err(error), ServerEvent::Input(_)) => {
                return self.refuse_input(rejected(error.to_string()));
            }
            (Err(error), _) => {
                let error = ErrorFrame::new(error.to_string());
                self.alive(|hub, conn| hub.send_to(conn, &error));
            }
        }
        self.resume();
    }

    async fn check_command(&self, signed: &Signed) -> Result<(), AuthError> {
        let now = self.now();
        let owner = self.owner.get().ok_or(AuthError::NotTheOwner)?;
        if is_signed_by_another(owner, signed) {
            return Err(AuthError::NotTheOwner);
        }
        let runtime = &self.runtime;
        // Outside of every lock: it takes longer than all the rest.
        let verified = runtime.shared.verifier.verify(signed, now)?;
        runtime.with_access(|access| access.command(owner, &verified, now))?;
        let spent = runtime.spend(&verified.signature).await;
        spent.map_err(AuthError::of_command)
    }

    /// Carries out an administrator's command.
    async fn administrate(self: Arc<Self>, request: AdminRequest) {
        let (runtime, owner, now) = (&self.runtime, self.owner.get(), self.now());
        let checked = runtime.with_access(|access| access.check_admin(owner, &request, now));
        let result = match checked {
            Ok((about, signature)) => match runtime.spend(&signature).await {
                Ok(()) => runtime.with_access(|access| access.administrate(&request, about)),
                Err(error) => Err(ErrorFrame::new(error.of_command().to_string()).into()),
            },
            Err(error) => Err(error),
        };
        self.alive(|hub, conn| match &result {
            Ok(result) => hub.send_to(conn, result),
            Err(error) => hub.send_to(conn, &**error),
        });
        self.resume();
    }

    /// Passes an answer, a change of the mode or of the goal, or an INTERRUPT to the hub.
    fn take(&self, command: ServerEvent) {
        self.runtime
            .with_hub(|hub, now| hub.command(self.conn, command, now));
    }

    /// Lets the machine report the next frame.
    fn resume(&self) {
        self.runtime.write(self.conn, ServerConn::resume);
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
        self.runtime.with_hub(|hub, now| {
            hub.end_upload(conn, self.bytes);
            match saved {
                Ok(prompt) => hub.input(conn, prompt, session, now),
                Err(error) => hub.refuse_input(conn, error),
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
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.caller.runtime.leave(self.caller.conn);
    }
}

impl ConnectionHandler for Handler {
    type Machine = ServerConn;
    const SYSTEM: &'static str = SYSTEM;

    fn on_event(&mut self, event: ServerEvent, tasks: &mut Running) -> Option<CloseReason> {
        let caller = Arc::clone(&self.caller);
        match event {
            ServerEvent::Connect(connect) => tasks.push(caller.connect(connect)),
            ServerEvent::Onboard { identity, submit } => {
                tasks.push(caller.onboard(identity, submit));
            }
            ServerEvent::Onboarded { identity, connect } => {
                tasks.push(caller.onboarded(identity, connect));
            }
            ServerEvent::Signed { signed, command } => {
                tasks.push(caller.command(signed, *command));
            }
            ServerEvent::Input(input) => tasks.push(caller.input(input)),
            command @ (ServerEvent::Response(_)
            | ServerEvent::ModeChange(_)
            | ServerEvent::PromptUpdate(_)
            | ServerEvent::Interrupt) => caller.take(command),
            ServerEvent::Admin(request) => tasks.push(caller.administrate(request)),
            ServerEvent::SessionQuery(query) => {
                caller.alive(|_, _| {});
                tasks.push(async move {
                    let runtime = &caller.runtime;
                    let nobody = || runtime.shared.access.lock().nobody();
                    let asker = caller.owner.get().copied().or_else(nobody);
                    let status = runtime.status(asker, query.session_id).await;
                    runtime.with_hub(|hub, _| hub.send_to(caller.conn, &status));
                });
            }
            ServerEvent::Pong => caller.alive(|_, _| {}),
            ServerEvent::Writable => caller.runtime.with_hub(|hub, _| hub.resume(caller.conn)),
            ServerEvent::Warning(warning) => {
                if let Some(line) = refused(&warning) {
                    tracing::info!(target: console::TARGET, "{line}");
                }
                tracing::debug!(conn = caller.conn.0, %warning, "a frame was refused");
                caller.alive(|_, _| {});
            }
            ServerEvent::Closed(reason) => {
                caller.runtime.leave(caller.conn);
                return Some(reason);
            }
        }
        None
    }

    fn shut_down(&mut self, tasks: &mut Running) {
        let (caller, timeout) = (Arc::clone(&self.caller), self.drain_timeout);
        tasks.push(async move {
            caller.runtime.drain(timeout).await;
            let hub = caller.runtime.hub();
            let handle = hub.peek(|state| state.connections.get(caller.conn.0).cloned());
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
