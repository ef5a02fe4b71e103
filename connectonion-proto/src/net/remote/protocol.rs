//! [`ClientProtocol`]: the client's machine on a [`Link`](rpc_core::net::Link), and [`Shared`]: its
//! session, and who listens to the runs.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Arc, MutexGuard, OnceLock};

use rpc_core::net::{
    Consumer, LagPolicy, LinkAction, Producer, Protocol, QueueConfig, WeakLink, queue,
};
use rpc_core::sync::Mutex;
use rpc_core::{CallError, CallId, CloseReason, Delivery, Instant, Refused, Secret, Str};

use super::signer::RequestSigner;
use crate::auth::Draft;
use crate::client::{
    ClientConfig, ClientConn, ClientEvent, ClientSession, End, Reply, Step, Taken,
};
use crate::codec::redact;
use crate::frame::{Connect, ErrorFrame, Input, OnboardSubmit, Response};
use crate::net::SYSTEM;

/// The client's protocol: every connection starts with its own, freshly signed CONNECT for the
/// session of the last one. [`connect_with`](crate::net::connect_with) creates it.
pub struct ClientProtocol {
    pub(super) config: Arc<ClientConfig>,
    pub(super) signer: RequestSigner,
    pub(super) shared: Arc<Shared>,
    pub(super) invite_code: Option<Secret>,
    /// The host has asked for onboarding, and the code was not submitted yet.
    pub(super) offer: bool,
    /// The code was submitted automatically, and has no reply yet.
    pub(super) offered: Option<CallId>,
    pub(super) connect_wanted: bool,
}

impl ClientProtocol {
    /// Makes the CONNECT for the session.
    fn connect(&self) -> Result<Connect, Refused> {
        let signed = self.signer.sign(|draft| draft)?;
        Ok(self.shared.lock().session.connect(signed))
    }
}

impl Protocol for ClientProtocol {
    type Machine = ClientConn;
    type Call = CallId;
    type Value = Reply;
    type Remote = ErrorFrame;
    type Item = Infallible;
    type Event = ClientEvent;

    const SYSTEM: &'static str = SYSTEM;

    fn open(&mut self, now: Instant, entropy: u64) -> ClientConn {
        self.offer = false;
        self.connect_wanted = false;
        let config = Arc::clone(&self.config);
        match self.connect() {
            Ok(connect) => ClientConn::new(config, &connect, entropy, now),
            Err(refused) => ClientConn::without_connect(config, &refused.to_string(), now),
        }
    }

    fn classify(&mut self, event: ClientEvent) -> LinkAction<Self> {
        match &event {
            ClientEvent::OnboardRequired(_) => {
                self.offer = self.invite_code.is_some();
                self.shared.lock().stranger = !self.offer;
            }
            ClientEvent::ConnectWanted => self.connect_wanted = true,
            ClientEvent::Connected(_) | ClientEvent::CaughtUp => {}
            ClientEvent::Reply { id, result } if self.offered == Some(*id) => {
                self.offered = None;
                return match result {
                    Err(CallError::Remote(error)) => {
                        self.shared.lock().stranger = true;
                        LinkAction::Event(ClientEvent::Complaint(error.clone()))
                    }
                    _ => LinkAction::Ignore,
                };
            }
            _ => return self.shared.lock().handle(event),
        }
        // They lead to frames of this side.
        self.shared.wake();
        self.shared.lock().handle(event)
    }

    fn cancel(machine: &mut ClientConn, call: CallId, _: Instant) {
        machine.cancel(call);
    }

    fn before_write(&mut self, machine: &mut ClientConn, now: Instant) {
        if std::mem::take(&mut self.offer)
            && let Some(code) = self.invite_code.take()
        {
            // A key that cannot sign this could not sign the CONNECT.
            let code = |draft: Draft| draft.with("invite_code", code.expose().as_str());
            let submit = self.signer.sign(code).map(OnboardSubmit::from);
            let offered = submit.and_then(|submit| machine.onboard(&submit, now));
            self.offered = offered.ok();
        }
        if std::mem::take(&mut self.connect_wanted) {
            // What cannot be sent now runs into the machine's deadline.
            let connect = self.connect();
            let _ = connect.and_then(|connect| machine.connect(&connect, now));
        }
        self.shared.lock().session.send_answers(machine, now);
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}

/// Ends all runs, however the connection ends.
impl Drop for ClientProtocol {
    fn drop(&mut self) {
        let link = self.shared.link.get().and_then(WeakLink::upgrade);
        let reason = link.and_then(|link| link.state().ended().cloned());
        self.shared
            .lock()
            .end(&reason.unwrap_or(CloseReason::TaskGone));
    }
}

rpc_core::debug_fields!([] ClientProtocol, this => { session: this.shared.lock().session });

/// State shared by the handles and the connection's task.
pub(super) struct Shared {
    link: OnceLock<WeakLink<ClientProtocol>>,
    run: QueueConfig,
    state: Mutex<State>,
}

/// The session and the listeners of its runs.
pub(super) struct State {
    pub(super) session: ClientSession,
    listeners: Vec<Listener>,
    /// No further connection follows.
    ended: bool,
    /// The agent asks for onboarding, and has not taken the invite code, if there is one.
    pub(super) stranger: bool,
}

/// An item for a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are steps")]
pub(super) enum Item {
    Step(Step),
    Queued { id: Str },
    End(Box<End>),
}

/// The sending end of a run.
struct Listener {
    items: Producer<Item>,
    /// Its prompt, until the host has replied to it.
    waits: Option<CallId>,
}

impl Listener {
    /// Sends the last item, which has no weight, so that it displaces no other.
    fn end(self, end: End) {
        self.items.push(Item::End(Box::new(end)), 0);
    }
}

impl Shared {
    pub(super) fn new(session: ClientSession, mut run: QueueConfig) -> Self {
        run.policy = LagPolicy::DropOldest;
        Self {
            link: OnceLock::new(),
            run,
            state: Mutex::new(State {
                session,
                listeners: Vec::new(),
                ended: false,
                stranger: false,
            }),
        }
    }

    /// Sets the link whose task writes this session.
    pub(super) fn attach(&self, link: WeakLink<ClientProtocol>) {
        // There is one link for each session, so it is not attached before.
        let _ = self.link.set(link);
    }

    /// Wakes the connection's task to send what waits.
    fn wake(&self) {
        if let Some(link) = self.link.get() {
            link.wake();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns the two ends of a run that is about to be started.
    pub(super) fn ends(&self) -> (Producer<Item>, Consumer<Item>) {
        queue(self.run.clone())
    }

    /// Listens to the current run, or to the one that the next CONNECTED reports.
    pub(super) fn listen(&self) -> Consumer<Item> {
        let (items, consumer) = self.ends();
        let listener = Listener { items, waits: None };
        let mut state = self.lock();
        if state.ended {
            listener.end(Err(Refused::Closed.into()));
        } else {
            if let Some(question) = state.session.open_question().cloned() {
                listener.items.push(Item::Step(question), 0);
            }
            state.session.attach();
            state.listeners.push(listener);
        }
        consumer
    }

    /// Answers a question, over the next connection if there is none.
    pub(super) async fn respond(self: &Arc<Self>, response: Response) -> Result<(), Refused> {
        let link = self.link.get().and_then(WeakLink::upgrade);
        let link = link.ok_or(Refused::Closed)?;
        self.lock().session.respond(response)?;
        // A close of the link after this sends it before.
        let shared = Arc::clone(self);
        let sent = link.command(move |conn, now| shared.lock().session.send_answers(conn, now));
        match sent.await {
            Err(Refused::Closed) => Err(Refused::Closed),
            _ => Ok(()),
        }
    }
}

impl State {
    /// Sends a prompt, and has its run listened to.
    pub(super) fn input(
        &mut self,
        conn: &mut ClientConn,
        input: &Input,
        items: Producer<Item>,
        now: Instant,
    ) -> Result<(), Refused> {
        let waits = Some(self.session.input(conn, input, now)?);
        self.listeners.push(Listener { items, waits });
        Ok(())
    }

    /// Passes an event of the machine through the session to the listeners. Returns what is left for
    /// the link.
    fn handle(&mut self, event: ClientEvent) -> LinkAction<ClientProtocol> {
        let replied = match &event {
            ClientEvent::Reply { id, .. } => Some(*id),
            _ => None,
        };
        self.session.handle_event(event);
        let mut action = LinkAction::Ignore;
        while let Some(event) = self.session.poll_event() {
            let next = self.deliver(event);
            // The end of a run that is in CONNECTED is reported there, also without a listener.
            if !matches!(action, LinkAction::Ready(_)) {
                action = next;
            }
        }
        // A reply that the session keeps back is reported by the run.
        if let Some(listener) = self
            .listeners
            .iter_mut()
            .find(|it| it.waits.is_some() && it.waits == replied)
        {
            listener.waits = None;
        }
        action
    }

    fn deliver(&mut self, event: ClientEvent) -> LinkAction<ClientProtocol> {
        match event {
            ClientEvent::Connected(frame) => LinkAction::Ready(Some(ClientEvent::Connected(frame))),
            ClientEvent::Step(step) => match self.show(&step) {
                true => LinkAction::Ignore,
                false => LinkAction::Event(ClientEvent::Step(step)),
            },
            ClientEvent::Reply { id, result } => self.reply(id, result),
            ClientEvent::RunEnded(end) if self.end_run(&end) => LinkAction::Ignore,
            ClientEvent::ConnectWanted => LinkAction::Ignore,
            ClientEvent::Closed(reason) => LinkAction::Closed(reason),
            other => LinkAction::Event(other),
        }
    }

    /// Passes a step to the listeners; `false` if there are none.
    fn show(&mut self, step: &Step) -> bool {
        self.listeners
            .retain(|it| !it.items.is_abandoned() || it.waits.is_some());
        let weight = size_of::<Step>() + step.frame.get().len();
        let mut heard = false;
        for listener in self.listeners.iter().filter(|it| it.waits.is_none()) {
            listener.items.push(Item::Step(step.clone()), weight);
            heard = true;
        }
        heard
    }

    fn reply(
        &mut self,
        id: CallId,
        result: Result<Reply, CallError<ErrorFrame>>,
    ) -> LinkAction<ClientProtocol> {
        let Some(at) = self.listeners.iter().position(|it| it.waits == Some(id)) else {
            return LinkAction::Reply(id, result);
        };
        let mut listener = self.listeners.swap_remove(at);
        listener.waits = None;
        match result {
            Err(error) => {
                listener.end(Err(error));
                return LinkAction::Ignore;
            }
            Ok(Reply::Input(Taken::Queued { id })) => {
                listener.items.push(Item::Queued { id }, 0);
            }
            Ok(_) => {}
        }
        self.listeners.push(listener);
        LinkAction::Ignore
    }

    /// Ends the listeners whose prompts the run has answered; `false` if there are none.
    fn end_run(&mut self, end: &End) -> bool {
        let ended = self.listeners.extract_if(.., |it| it.waits.is_none());
        let mut heard = false;
        for listener in ended {
            heard |= !listener.items.is_abandoned();
            listener.end(end.clone());
        }
        heard
    }

    /// Ends everything, for this reason.
    fn end(&mut self, reason: &CloseReason) {
        self.ended = true;
        self.session.end(reason);
        while let Some(event) = self.session.poll_event() {
            self.deliver(event);
        }
        let end = Err(CallError::Closed {
            reason: reason.clone(),
            delivery: Delivery::Unknown,
        });
        for listener in self.listeners.drain(..) {
            listener.end(end.clone());
        }
    }
}
