//! How the client's machine rides on a [`Link`](rpc_core::net::Link).

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rpc_core::encode::encode;
use rpc_core::net::{LinkState, Protocol, Sorted, WeakLink};
use rpc_core::{CallError, CallId, CloseFrame, CloseReason, Json, Refused, Secret};

use super::book::Book;
use super::event::Event;
use crate::auth::{Address, Draft, unix_seconds};
use crate::client::{ClientConfig, ClientConn, ClientEvent, Reply, Sign};
use crate::codec::redact;
use crate::frame::{Connect, ErrorFrame, OnboardSubmit, Signed};

/// The client's side: every connection opens with a CONNECT of its own, freshly signed, for the
/// session that the last one had. [`connect_with`](crate::net::connect_with) makes it.
pub struct ClientSide {
    config: Arc<ClientConfig>,
    pen: Pen,
    book: Arc<Book>,
    invite_code: Option<Secret>,
    /// The host has asked, and the code has not been offered.
    offer: bool,
    /// The code was offered by itself, and has no answer.
    offered: Option<CallId>,
    connect_wanted: bool,
}

impl ClientSide {
    pub(super) const fn new(
        config: Arc<ClientConfig>,
        pen: Pen,
        book: Arc<Book>,
        invite_code: Option<Secret>,
    ) -> Self {
        Self {
            config,
            pen,
            book,
            invite_code,
            offer: false,
            offered: None,
            connect_wanted: false,
        }
    }

    /// Another CONNECT for the session.
    fn connect_again(&self, machine: &mut ClientConn, now: Instant) -> Result<(), Refused> {
        let signed = self.pen.sign(self.pen.draft())?;
        machine.connect(&self.connect(signed), now)
    }

    /// The CONNECT for the session, without the conversation if that is too large to be sent: the
    /// host has a copy of its own, and a refused CONNECT would end it all.
    fn connect(&self, signed: Signed) -> Connect {
        let mut connect = self.book.connect(signed);
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
            .pen
            .invite(code.expose())
            .and_then(|submit| machine.onboard(&submit, now))
            .ok();
    }

    fn reply(&mut self, id: CallId, result: Result<Reply, CallError<ErrorFrame>>) -> Sorted<Self> {
        if self.offered == Some(id) {
            self.offered = None;
            return match result {
                Err(CallError::Remote(error)) => Sorted::Event(Event::Complaint(error)),
                _ => Sorted::Ignore,
            };
        }
        let heard = match &result {
            Ok(Reply::Input(taken)) => self.book.taken(id, &Ok(taken.clone())),
            Ok(_) => false,
            Err(error) => self.book.taken(id, &Err(error.clone())),
        };
        if heard {
            Sorted::Ignore
        } else {
            Sorted::Reply(id, result)
        }
    }
}

impl Protocol for ClientSide {
    type Machine = ClientConn;
    type Call = CallId;
    type Value = Reply;
    type Remote = ErrorFrame;
    type Item = Infallible;
    type Event = Event;

    fn open(&mut self, now: Instant, entropy: u64) -> ClientConn {
        self.offer = false;
        self.connect_wanted = false;
        let config = Arc::clone(&self.config);
        match self.pen.sign(self.pen.draft()) {
            Ok(signed) => {
                let connect = self.connect(signed);
                ClientConn::new(config, &connect, entropy, now)
            }
            Err(refused) => ClientConn::without_connect(config, &refused.to_string(), now),
        }
    }

    fn sort(&mut self, event: ClientEvent) -> Sorted<Self> {
        match event {
            ClientEvent::Connected(frame) => {
                self.book.connected(&frame);
                self.book.nudge();
                Sorted::Ready(Some(Event::Connected(frame)))
            }
            ClientEvent::OnboardRequired(frame) => {
                self.offer = self.invite_code.is_some();
                self.book.nudge();
                Sorted::Event(Event::OnboardRequired(frame))
            }
            ClientEvent::ConnectWanted => {
                self.connect_wanted = true;
                self.book.nudge();
                Sorted::Ignore
            }
            ClientEvent::Refused(error) => Sorted::Event(Event::Refused(error)),
            ClientEvent::Step(step) => match self.book.step(step) {
                Some(step) => Sorted::Event(Event::Step(step)),
                None => Sorted::Ignore,
            },
            ClientEvent::Reply { id, result } => self.reply(id, result),
            ClientEvent::RunEnded(result) => match self.book.run_ended(&result) {
                Some(result) => Sorted::Event(Event::RunEnded(result)),
                None => Sorted::Ignore,
            },
            // It was sent twice to be on the safe side, and had arrived.
            ClientEvent::AnswerRefused { request_id, .. }
                if self.book.was_repeated(request_id.as_deref()) =>
            {
                Sorted::Ignore
            }
            ClientEvent::AnswerRefused { request_id, error } => {
                Sorted::Event(Event::AnswerRefused { request_id, error })
            }
            ClientEvent::Unsent(response) => {
                self.book.keep(response);
                Sorted::Ignore
            }
            ClientEvent::Unconfirmed(response) => {
                self.book.doubt(response);
                Sorted::Ignore
            }
            ClientEvent::CaughtUp => {
                self.book.caught_up();
                self.book.nudge();
                Sorted::Ignore
            }
            ClientEvent::Complaint(error) => Sorted::Event(Event::Complaint(error)),
            ClientEvent::Unknown(other) => Sorted::Event(Event::Unknown(other)),
            ClientEvent::Warning(warning) => Sorted::Event(Event::Warning(warning)),
            ClientEvent::Closed(reason) => Sorted::Closed(reason),
        }
    }

    fn close(machine: &mut ClientConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(machine: &mut ClientConn, call: CallId, _: Instant) {
        machine.cancel(call);
    }

    fn gather(&mut self, machine: &mut ClientConn, now: Instant) {
        if std::mem::take(&mut self.offer) {
            self.offer_code(machine, now);
        }
        if std::mem::take(&mut self.connect_wanted) {
            // What cannot be sent now runs into the machine's deadline.
            let _ = self.connect_again(machine, now);
        }
        if machine.is_running() {
            for response in self.book.take_unsent() {
                if machine.respond(&response, now).is_err() {
                    self.book.keep(response);
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

/// However the connection ends, nobody listens on.
impl Drop for ClientSide {
    fn drop(&mut self) {
        let link = self.book.link().and_then(WeakLink::upgrade);
        let reason = link.and_then(|link| match link.state() {
            LinkState::GaveUp { cause: reason } | LinkState::Closed { reason } => Some(reason),
            _ => None,
        });
        self.book.end(&reason.unwrap_or(CloseReason::TaskGone));
    }
}

impl fmt::Debug for ClientSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSide")
            .field("book", &self.book)
            .finish_non_exhaustive()
    }
}

/// What signs: the key, whom it is for, and the wall clock.
#[derive(Clone)]
pub(super) struct Pen {
    identity: Arc<dyn Sign>,
    host: Option<Address>,
    clock: fn() -> SystemTime,
}

impl Pen {
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

    /// A payload that is like no other: hosts may take a signature once only.
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
