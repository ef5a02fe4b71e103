//! The client's machine on a [`Link`](rpc_core::net::Link).

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use rpc_core::Instant;
use rpc_core::encode::encode;
use rpc_core::net::{LinkAction, LinkState, Protocol, WeakLink};
use rpc_core::{CallError, CallId, CloseFrame, CloseReason, Json, Refused, Secret};

use super::event::Event;
use super::session::ClientSession;
use crate::auth::{Address, Draft, unix_seconds};
use crate::client::{ClientConfig, ClientConn, ClientEvent, Reply, Sign};
use crate::codec::redact;
use crate::frame::{Connect, ErrorFrame, OnboardSubmit, Signed};
use crate::net::SYSTEM;

/// The client's protocol: every connection starts with its own, freshly signed CONNECT for the
/// session of the last one. [`connect_with`](crate::net::connect_with) creates it.
pub struct ClientProtocol {
    config: Arc<ClientConfig>,
    signer: RequestSigner,
    session: Arc<ClientSession>,
    invite_code: Option<Secret>,
    /// The host has asked for onboarding, and the code was not submitted yet.
    offer: bool,
    /// The code was submitted automatically, and has no reply yet.
    offered: Option<CallId>,
    connect_wanted: bool,
}

impl ClientProtocol {
    pub(super) const fn new(
        config: Arc<ClientConfig>,
        signer: RequestSigner,
        session: Arc<ClientSession>,
        invite_code: Option<Secret>,
    ) -> Self {
        Self {
            config,
            signer,
            session,
            invite_code,
            offer: false,
            offered: None,
            connect_wanted: false,
        }
    }

    /// Sends another CONNECT for the session.
    fn connect_again(&self, machine: &mut ClientConn, now: Instant) -> Result<(), Refused> {
        let signed = self.signer.sign(self.signer.draft())?;
        machine.connect(&self.connect(signed), now)
    }

    /// Creates the CONNECT for the session, without the conversation if that is too large to be
    /// sent: the host has its own copy, and a refused CONNECT would end the connection for good.
    fn connect(&self, signed: Signed) -> Connect {
        let mut connect = self.session.connect(signed);
        let max = self.config.max_sent_bytes;
        let may_be_large = |it: &Json| it.get().len() > max / 2;
        if connect.session.as_ref().is_some_and(may_be_large)
            && encode(&connect).is_ok_and(|text| text.len() > max)
        {
            connect.session = None;
        }
        connect
    }

    fn offer_code(&mut self, machine: &mut ClientConn, now: Instant) {
        let Some(code) = self.invite_code.take() else {
            return;
        };
        // Whoever cannot sign this could not sign the CONNECT.
        self.offered = self
            .signer
            .invite(code.expose())
            .and_then(|submit| machine.onboard(&submit, now))
            .ok();
    }

    fn reply(
        &mut self,
        id: CallId,
        result: Result<Reply, CallError<ErrorFrame>>,
    ) -> LinkAction<Self> {
        if self.offered == Some(id) {
            self.offered = None;
            return match result {
                Err(CallError::Remote(error)) => LinkAction::Event(Event::Complaint(error)),
                _ => LinkAction::Ignore,
            };
        }
        let heard = match &result {
            Ok(Reply::Input(taken)) => self.session.answered(id, &Ok(taken.clone())),
            Ok(_) => false,
            Err(error) => self.session.answered(id, &Err(error.clone())),
        };
        if heard {
            LinkAction::Ignore
        } else {
            LinkAction::Reply(id, result)
        }
    }
}

impl Protocol for ClientProtocol {
    type Machine = ClientConn;
    type Call = CallId;
    type Value = Reply;
    type Remote = ErrorFrame;
    type Item = Infallible;
    type Event = Event;

    const SYSTEM: &'static str = SYSTEM;

    fn open(&mut self, now: Instant, entropy: u64) -> ClientConn {
        self.offer = false;
        self.connect_wanted = false;
        let config = Arc::clone(&self.config);
        match self.signer.sign(self.signer.draft()) {
            Ok(signed) => {
                let connect = self.connect(signed);
                ClientConn::new(config, &connect, entropy, now)
            }
            Err(refused) => ClientConn::without_connect(config, &refused.to_string(), now),
        }
    }

    fn classify(&mut self, event: ClientEvent) -> LinkAction<Self> {
        match event {
            ClientEvent::Connected(frame) => {
                self.session.connected(&frame);
                self.session.wake();
                LinkAction::Ready(Some(Event::Connected(frame)))
            }
            ClientEvent::OnboardRequired(frame) => {
                self.offer = self.invite_code.is_some();
                self.session.wake();
                LinkAction::Event(Event::OnboardRequired(frame))
            }
            ClientEvent::ConnectWanted => {
                self.connect_wanted = true;
                self.session.wake();
                LinkAction::Ignore
            }
            ClientEvent::Refused(error) => LinkAction::Event(Event::Refused(error)),
            ClientEvent::Step(step) => match self.session.step(step) {
                Some(step) => LinkAction::Event(Event::Step(step)),
                None => LinkAction::Ignore,
            },
            ClientEvent::Reply { id, result } => self.reply(id, result),
            ClientEvent::RunEnded(result) => match self.session.run_ended(&result) {
                Some(result) => LinkAction::Event(Event::RunEnded(result)),
                None => LinkAction::Ignore,
            },
            // It was sent twice to be on the safe side, and had arrived.
            ClientEvent::AnswerRefused { request_id, .. }
                if self.session.was_repeated(request_id.as_deref()) =>
            {
                LinkAction::Ignore
            }
            ClientEvent::AnswerRefused { request_id, error } => {
                LinkAction::Event(Event::AnswerRefused { request_id, error })
            }
            ClientEvent::Unsent(response) => {
                self.session.keep(response);
                LinkAction::Ignore
            }
            ClientEvent::Unconfirmed(response) => {
                self.session.doubt(response);
                LinkAction::Ignore
            }
            ClientEvent::CaughtUp => {
                self.session.caught_up();
                self.session.wake();
                LinkAction::Ignore
            }
            ClientEvent::Complaint(error) => LinkAction::Event(Event::Complaint(error)),
            ClientEvent::Unknown(other) => LinkAction::Event(Event::Unknown(other)),
            ClientEvent::Warning(warning) => LinkAction::Event(Event::Warning(warning)),
            ClientEvent::Closed(reason) => LinkAction::Closed(reason),
        }
    }

    fn close(machine: &mut ClientConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(machine: &mut ClientConn, call: CallId, _: Instant) {
        machine.cancel(call);
    }

    fn before_write(&mut self, machine: &mut ClientConn, now: Instant) {
        if std::mem::take(&mut self.offer) {
            self.offer_code(machine, now);
        }
        if std::mem::take(&mut self.connect_wanted) {
            // What cannot be sent now runs into the machine's deadline.
            let _ = self.connect_again(machine, now);
        }
        if machine.is_running() {
            for response in self.session.take_unsent() {
                if machine.respond(&response, now).is_err() {
                    self.session.keep(response);
                }
            }
        }
    }

    fn in_flight(machine: &ClientConn) -> usize {
        machine.in_flight()
    }

    fn weight(event: &Event) -> usize {
        event.weight()
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}

/// Ends all runs, however the connection ends.
impl Drop for ClientProtocol {
    fn drop(&mut self) {
        let link = self.session.link().and_then(WeakLink::upgrade);
        let reason = link.and_then(|link| match link.state() {
            LinkState::GaveUp { cause: reason } | LinkState::Closed { reason } => Some(reason),
            _ => None,
        });
        self.session.end(&reason.unwrap_or(CloseReason::TaskGone));
    }
}

impl fmt::Debug for ClientProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientProtocol")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// The parts of a signature: the key, the recipient, and the wall clock.
#[derive(Clone)]
pub(super) struct RequestSigner {
    identity: Arc<dyn Sign>,
    host: Option<Address>,
    clock: fn() -> SystemTime,
}

impl RequestSigner {
    pub(super) fn new(
        identity: Arc<dyn Sign>,
        host: Option<Address>,
        clock: fn() -> SystemTime,
    ) -> Self {
        Self {
            identity,
            host,
            clock,
        }
    }

    pub(super) fn address(&self) -> Address {
        self.identity.address()
    }

    /// Creates a unique payload, because hosts may accept a signature only once.
    pub(super) fn draft(&self) -> Draft {
        let now = unix_seconds((self.clock)());
        let random =
            u128::from(rpc_core::net::entropy()) << 64 | u128::from(rpc_core::net::entropy());
        let draft = Draft::exact(now).with_nonce(random);
        match &self.host {
            Some(host) => draft.with_to(host),
            None => draft,
        }
    }

    // By value, as a draft is signed once.
    #[expect(clippy::needless_pass_by_value, reason = "a draft is signed once")]
    pub(super) fn sign(&self, draft: Draft) -> Result<Signed, Refused> {
        self.identity.sign(&draft)
    }

    pub(super) fn invite(&self, code: &str) -> Result<OnboardSubmit, Refused> {
        let signed = self.sign(self.draft().with("invite_code", code))?;
        Ok(OnboardSubmit::new(signed))
    }
}
