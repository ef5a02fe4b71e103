//! [`ClientProtocol`]: the client's machine on a [`Link`](rpc_core::net::Link), and [`Shared`]: its
//! session, and who listens to the runs.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Arc, MutexGuard, OnceLock};

use rpc_core::net::{
    Consumer, LagPolicy, Link, LinkAction, LinkEvent, Producer, Protocol, QueueConfig, WeakLink,
    queue,
};
use rpc_core::sync::Mutex;
use rpc_core::{CallError, CallId, CloseReason, Delivery, Instant, Refused, Secret};

use super::signer::RequestSigner;
use crate::auth::Draft;
use crate::client::{
    CallValue, ClientConfig, ClientConn, ClientEvent, ClientSession, End, Step, Taken, goes_on,
};
use crate::codec::redact;
use crate::frame::{Connect, ErrorFrame, Input, OnboardSubmit, Response, SessionState};
use crate::id::EventId;
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
        let signed = self.signer.sign("CONNECT", |draft| draft)?;
        Ok(self.shared.lock().session.connect(signed))
    }
}

impl Protocol for ClientProtocol {
    type Machine = ClientConn;
    type Call = CallId;
    type Value = CallValue;
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
            _ => return self.shared.handle(event),
        }
        // They lead to frames of this side.
        self.shared.wake();
        self.shared.handle(event)
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
            let submit = self
                .signer
                .sign("ONBOARD_SUBMIT", code)
                .map(OnboardSubmit::from);
            let offered = submit.and_then(|submit| machine.onboard(&submit, now));
            self.offered = offered.ok();
        }
        if std::mem::take(&mut self.connect_wanted) {
            // What cannot be sent now runs into the machine's deadline.
            let connect = self.connect();
            let _ = connect.and_then(|connect| machine.connect(&connect, now));
        }
        let mut state = self.shared.lock();
        self.shared.catch_up(&mut state);
        state.session.send_answers(machine, now);
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}

/// Ends all runs, however the connection ends.
impl Drop for ClientProtocol {
    fn drop(&mut self) {
        let link = self.shared.link();
        let reason = link.and_then(|link| link.state().ended().cloned());
        let mut state = self.shared.lock();
        self.shared.catch_up(&mut state);
        state.end(&reason.unwrap_or(CloseReason::TaskGone));
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
#[derive(Default)]
pub(super) struct State {
    pub(super) session: ClientSession,
    listeners: Vec<Listener>,
    /// The agent works, as far as is known.
    running: bool,
    /// How much of the last run no listener got.
    undelivered: u64,
    /// The event before the last listener came may have been on its way to the events.
    late: bool,
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
    Queued { id: EventId },
    Lagged(u64),
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
                ..State::default()
            }),
        }
    }

    /// Sets the link whose task writes this session.
    pub(super) fn attach(&self, link: WeakLink<ClientProtocol>) {
        // There is one link for each session, so it is not attached before.
        let _ = self.link.set(link);
    }

    fn link(&self) -> Option<Link<ClientProtocol>> {
        self.link.get().and_then(WeakLink::upgrade)
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

    /// Listens to the current run, to the last one if its end waits among the events, or to the one
    /// that the next CONNECTED reports.
    pub(super) fn listen(&self) -> Consumer<Item> {
        let (items, consumer) = self.ends();
        let mut state = self.lock();
        let (waiting, lost) = self.take_back(&mut state);
        if lost > 0 {
            items.push(Item::Lagged(lost), 0);
        }
        let open = state.session.open.clone();
        if let Some(question) = open
            && !waiting.contains(&ClientEvent::Step(question.clone()))
        {
            items.push(Item::Step(question), 0);
        }
        let listener = Listener { items, waits: None };
        let others = std::mem::replace(&mut state.listeners, vec![listener]);
        for event in waiting {
            state.deliver(event);
        }
        if state.ended {
            state.end_run(&Err(Refused::Closed.into()));
        } else if !state.listeners.is_empty() {
            state.session.attach();
            state.late = true;
            self.wake();
        }
        state.listeners.extend(others);
        consumer
    }

    /// Takes what waits among the events of the current run, or of the last one with its end. Returns
    /// also how many of its steps were dropped from there.
    fn take_back(&self, state: &mut State) -> (Vec<ClientEvent>, u64) {
        let Some(link) = self.link() else {
            return (Vec::new(), 0);
        };
        // From the newest event on: whether it is of the run, whose end may be to come.
        let (mut is_of_run, mut wants_end) = (state.running, !state.running);
        let (taken, lost) = link.events().take_back(|event| match event {
            LinkEvent::Event(ClientEvent::Step(_)) => is_of_run,
            LinkEvent::Event(ClientEvent::RunEnded(_)) => {
                is_of_run = std::mem::take(&mut wants_end);
                is_of_run
            }
            _ => false,
        });
        let mut events = Vec::new();
        for event in taken {
            if let LinkEvent::Event(event) = event {
                events.push(event);
            }
        }
        let undelivered = std::mem::take(&mut state.undelivered);
        let lost = lost.min(undelivered.saturating_sub(events.len() as u64));
        (events, lost)
    }

    /// Passes on what was on its way to the events when the last listener came.
    fn catch_up(&self, state: &mut State) {
        let receives = |it: &Listener| it.waits.is_none() && !it.items.is_abandoned();
        if state.late && state.listeners.iter().any(receives) {
            for event in self.take_back(state).0 {
                state.deliver(event);
            }
        }
    }

    /// Passes an event of the machine through the session to the listeners. Returns what is left for
    /// the link.
    fn handle(&self, event: ClientEvent) -> LinkAction<ClientProtocol> {
        let mut state = self.lock();
        self.catch_up(&mut state);
        state.late = false;
        let replied = match &event {
            ClientEvent::Reply { id, .. } => Some(*id),
            _ => None,
        };
        state.session.handle_event(event);
        let mut action = LinkAction::Ignore;
        while let Some(event) = state.session.poll_event() {
            let next = state.deliver(event);
            match std::mem::replace(&mut action, next) {
                // The end of a run that is in CONNECTED is reported there, also without a listener.
                ready @ LinkAction::Ready(_) => action = ready,
                LinkAction::Event(event) => {
                    if let Some(link) = self.link() {
                        link.events()
                            .push(LinkEvent::Event(event), size_of::<ClientEvent>());
                    }
                }
                _ => {}
            }
        }
        // A reply that the session keeps back is reported by the run.
        let is_it = |it: &&mut Listener| it.waits.is_some() && it.waits == replied;
        if let Some(listener) = state.listeners.iter_mut().find(is_it) {
            listener.waits = None;
        }
        action
    }

    /// Answers a question, over the next connection if there is none.
    pub(super) async fn respond(self: &Arc<Self>, response: Response) -> Result<(), Refused> {
        let link = self.link().ok_or(Refused::Closed)?;
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

    fn deliver(&mut self, event: ClientEvent) -> LinkAction<ClientProtocol> {
        match event {
            ClientEvent::Connected(frame) => {
                self.running = frame.status == SessionState::Running;
                LinkAction::Ready(Some(ClientEvent::Connected(frame)))
            }
            ClientEvent::Step(step) => {
                if goes_on(&step.event.kind) && !std::mem::replace(&mut self.running, true) {
                    self.undelivered = 0;
                }
                let received = self.show(&step);
                self.left(received, ClientEvent::Step(step))
            }
            ClientEvent::Reply { id, result } => self.reply(id, result),
            ClientEvent::RunEnded(end) => {
                self.running = false;
                let received = self.end_run(&end);
                self.left(received, ClientEvent::RunEnded(end))
            }
            ClientEvent::ConnectWanted => LinkAction::Ignore,
            ClientEvent::Closed(reason) => LinkAction::Closed(reason),
            other => LinkAction::Event(other),
        }
    }

    /// Leaves an event of a run to the link that no listener has heard.
    fn left(&mut self, received: bool, event: ClientEvent) -> LinkAction<ClientProtocol> {
        if received {
            return LinkAction::Ignore;
        }
        self.undelivered += 1;
        LinkAction::Event(event)
    }

    /// Passes a step to the listeners; `false` if there are none.
    fn show(&mut self, step: &Step) -> bool {
        self.listeners
            .retain(|it| !it.items.is_abandoned() || it.waits.is_some());
        let weight = size_of::<Step>() + step.frame.get().len();
        let mut received = false;
        for listener in self.listeners.iter().filter(|it| it.waits.is_none()) {
            listener.items.push(Item::Step(step.clone()), weight);
            received = true;
        }
        received
    }

    fn reply(
        &mut self,
        id: CallId,
        result: Result<CallValue, CallError<ErrorFrame>>,
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
            Ok(CallValue::Input(Taken::Queued { id })) => {
                listener.items.push(Item::Queued { id }, 0);
            }
            Ok(_) => {}
        }
        self.running = true;
        self.listeners.push(listener);
        LinkAction::Ignore
    }

    /// Ends the listeners whose prompts the run has answered; `false` if there are none.
    fn end_run(&mut self, end: &End) -> bool {
        let ended = self.listeners.extract_if(.., |it| it.waits.is_none());
        let mut received = false;
        for listener in ended {
            received |= !listener.items.is_abandoned();
            listener.end(end.clone());
        }
        received
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
