//! [`ClientSession`]: the session, its runs and their listeners, over all connections.

use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rpc_core::net::{Producer, QueueConfig, WeakLink, queue};
use rpc_core::{CallError, CallId, CloseReason, Delivery, Limits, Refused, Retry};
use rpc_core::{Json, Str};

use super::protocol::ClientProtocol;
use super::questions::{Questions, goes_on};
use super::run::{End, Item, Run};
use crate::client::{Found, Resume, Seen, Step, Taken, find_answer};
use crate::frame::{
    Connect, Connected, ErrorFrame, EventKind, Input, Output, Response, SessionState, Signed,
};

/// The session from this client's view. Shared by the handles and the connection's task.
pub(super) struct ClientSession {
    link: OnceLock<WeakLink<ClientProtocol>>,
    run: QueueConfig,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What another program needs to go on: its last event is the last that was taken from a run.
    resume: Resume,
    /// The last event that came. What waits to be taken waits here, so the next line begins behind it.
    received: Option<Str>,
    /// How many events came, and which of them was taken last.
    came: u64,
    taken: u64,
    /// The conversation in mid-run, as the host has sent it last.
    live: Option<Json>,
    seen: Seen,
    /// The host may repeat events that were shown before.
    replaying: bool,
    questions: Questions,
    listeners: Vec<Listener>,
    /// The current run, if this client takes part in it.
    open: Option<Open>,
    /// Answers that could not be sent yet.
    unsent: Vec<Response>,
    /// No further connection follows.
    ended: bool,
}

/// A run that this client started, or that it has seen.
#[derive(Default)]
struct Open {
    /// The prompt that started it, until the host has replied to it.
    id: Option<CallId>,
    /// The text that started it, if this client did.
    prompt: Option<Str>,
    /// The number of prompts in the conversation before it.
    turn: Option<u64>,
    /// Whether the host is known to have the prompt.
    delivery: Option<Delivery>,
    /// Why the connection on which it started was lost.
    lost: Option<CloseReason>,
}

/// The sending end of a [`Run`].
struct Listener {
    items: Producer<Item>,
    /// Its prompt, until the host has replied to it.
    waits: Option<(CallId, Str)>,
}

impl Listener {
    fn push(&self, item: Item, step: &Step) {
        let weight = size_of::<Step>() + step.frame.get().len();
        self.items.push(item, weight);
    }

    /// Sends the last item, which has no weight, so that it displaces no other.
    fn end(self, end: End) {
        self.items.push(Item::End(Box::new(end)), 0);
    }
}

impl ClientSession {
    pub(super) fn new(resume: Resume, run: QueueConfig, limits: Limits) -> Self {
        let state = State {
            received: resume.last_msg_id.clone(),
            resume,
            ..State::default()
        };
        Self {
            link: OnceLock::new(),
            run,
            limits,
            state: Mutex::new(state),
        }
    }

    /// Sets the link whose task writes this session.
    pub(super) fn attach(&self, link: WeakLink<ClientProtocol>) {
        // There is one link for each session, so it is not attached before.
        let _ = self.link.set(link);
    }

    pub(super) fn link(&self) -> Option<&WeakLink<ClientProtocol>> {
        self.link.get()
    }

    /// Wakes the connection's task to pass waiting answers to the machine.
    pub(super) fn wake(&self) {
        if let Some(link) = self.link.get() {
            link.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn resume(&self) -> Resume {
        self.lock().resume.clone()
    }

    /// Creates the CONNECT of the next connection.
    pub(super) fn connect(&self, signed: Signed) -> Connect {
        let state = self.lock();
        let mut connect = state.resume.connect(signed);
        connect.last_msg_id.clone_from(&state.received);
        if state.open.is_some() || !state.listeners.is_empty() {
            // The host's conversation is the newer one if it has the run.
            connect.session = state.resume.session_before_a_run(&self.limits);
        }
        connect
    }

    /// Starts another session with the next connection, with the same conversation or a new one.
    pub(super) fn renew(&self, keeps_conversation: bool) {
        let mut state = self.lock();
        let session = state.resume.session.take().filter(|_| keeps_conversation);
        state.resume = Resume {
            session,
            ..Resume::default()
        };
        state.forget_events();
    }

    pub(super) fn live(&self) -> Option<Json> {
        self.lock().live.clone()
    }

    /// Listens to the current run, or to the one that the next CONNECTED reports.
    pub(super) fn listen(&self, run: impl FnOnce(rpc_core::net::Consumer<Item>) -> Run) -> Run {
        let (items, consumer) = queue(self.run.clone());
        let listener = Listener { items, waits: None };
        let mut state = self.lock();
        if state.ended {
            listener.end(Err(CallError::Refused(Refused::Closed)));
        } else {
            state.listeners.push(listener);
        }
        run(consumer)
    }

    /// Listens to the current run on this connection.
    pub(super) fn follow(&self, items: Producer<Item>) {
        let listener = Listener { items, waits: None };
        self.lock().listeners.push(listener);
    }

    /// Returns the two ends of a run that is about to be started.
    pub(super) fn ends(&self) -> (Producer<Item>, rpc_core::net::Consumer<Item>) {
        queue(self.run.clone())
    }

    /// Notes that a prompt was passed to the machine.
    pub(super) fn begin(&self, id: CallId, input: &Input, items: Producer<Item>, starts: bool) {
        let prompt = input.prompt.clone().unwrap_or_default();
        let mut state = self.lock();
        if starts {
            state.open = Some(Open {
                id: Some(id),
                prompt: Some(prompt.clone()),
                turn: state.resume.turn(),
                ..Open::default()
            });
        }
        let waits = Some((id, prompt));
        state.listeners.push(Listener { items, waits });
    }

    /// The host has said what became of a prompt; `false` if no run waits for that.
    pub(super) fn answered(
        &self,
        id: CallId,
        result: &Result<Taken, CallError<ErrorFrame>>,
    ) -> bool {
        let mut state = self.lock();
        let is_its = |listener: &Listener| listener.waits.as_ref().is_some_and(|(of, _)| *of == id);
        let Some(at) = state.listeners.iter().position(is_its) else {
            if matches!(result, Ok(Taken::Started)) {
                state.start(None);
            }
            return false;
        };
        match result {
            Ok(Taken::Started) => {
                let waits = state.listeners.get_mut(at).and_then(|it| it.waits.take());
                state.start(waits.map(|(_, prompt)| prompt));
            }
            Ok(Taken::Queued { id: name }) => {
                if state.is_open(id) {
                    // The run is another device's.
                    let delivery = Some(Delivery::Delivered);
                    state.open = Some(Open {
                        delivery,
                        ..Open::default()
                    });
                }
                if let Some(listener) = state.listeners.get_mut(at) {
                    listener.waits = None;
                    let queued = Item::Queued { id: name.clone() };
                    listener.items.push(queued, 0);
                }
            }
            Err(CallError::Closed { reason, delivery })
                if is_passing(reason) && state.is_open(id) =>
            {
                // The next CONNECTED tells more.
                if let Some(listener) = state.listeners.get_mut(at) {
                    listener.waits = None;
                }
                state.lose(reason, *delivery);
            }
            Err(error) => {
                if state.is_open(id) {
                    state.open = None;
                }
                state.end_one(at, &Err(error.clone()));
            }
        }
        true
    }

    /// Passes a step to the listeners. Returns it if there are none.
    pub(super) fn step(&self, step: Step) -> Option<Step> {
        let mut state = self.lock();
        let asks = step.event.kind.awaits().is_some();
        let was_shown = state.replaying && state.seen.contains(&step.event);
        if state.questions.is_replay() && goes_on(&step.event.kind) {
            state.pass();
            if asks && (was_shown || state.is_heard()) {
                state.replaying &= was_shown;
                state.questions.hold(step, was_shown);
                return None;
            }
        }
        if was_shown {
            return None;
        }
        state.replaying = false;
        state.seen.is_new(&step.event);
        // A question is done with when it is answered, and a text when it is whole: whoever goes on
        // here has to hear them.
        if let Some(id) = &step.event.id
            && !asks
            && step.event.kind.delta().is_none()
        {
            state.received = Some(id.clone().into());
        }
        state.came += 1;
        if let EventKind::SessionSync(session) = &step.event.kind {
            state.live = Some(session.clone());
            return None;
        }
        let number = state.came;
        let shown = state.show(&step, |step| Item::Step { step, number });
        (!shown).then_some(step)
    }

    /// A step was taken from a run. Another program need not be told it again, unless it asks
    /// something or is part of a text: a question is done with when it is answered, and a text when
    /// it is whole.
    pub(super) fn taken(&self, step: &Step, number: u64) {
        let mut state = self.lock();
        if number > state.taken
            && step.event.kind.awaits().is_none()
            && step.event.kind.delta().is_none()
            && let Some(id) = &step.event.id
        {
            state.taken = number;
            state.resume.last_msg_id = Some(id.clone().into());
        }
    }

    /// Ends the replay.
    pub(super) fn caught_up(&self) {
        let mut state = self.lock();
        let (answer, question) = state.questions.caught_up();
        state.unsent.extend(answer);
        if let Some(question) = question {
            state.seen.is_new(&question.event);
            state.show(&question, |step| Item::Step { step, number: 0 });
        }
    }

    /// Ends the run. Returns the result if there are no listeners.
    pub(super) fn run_ended(&self, result: &End) -> Option<End> {
        let mut state = self.lock();
        match result {
            Ok(output) => {
                state.pass();
                if let Some(session) = &output.session {
                    state.resume.session = Some(session.clone());
                }
            }
            Err(CallError::Closed { reason, .. }) if is_passing(reason) => {
                state.open.get_or_insert_default();
                state.lose(reason, Delivery::Delivered);
                return None;
            }
            Err(_) => {}
        }
        state.open = None;
        state.live = None;
        state.forget_run();
        state.end_listeners(result)
    }

    /// Handles CONNECTED, for the first time or again.
    pub(super) fn connected(&self, frame: &Connected) {
        let mut state = self.lock();
        let same = state
            .resume
            .session_id
            .as_ref()
            .is_some_and(|id| *id == frame.session_id);
        if !same {
            state.resume.last_msg_id = None;
            state.forget_events();
            state.resume.session_id = Some(frame.session_id.clone());
        }
        state.live = None;
        state.replaying = false;
        let open = state.open.take();
        let found = match (&open, &frame.session) {
            (
                Some(Open {
                    prompt: Some(prompt),
                    turn,
                    ..
                }),
                Some(newer),
            ) => find_answer(newer, prompt, *turn, &self.limits),
            _ => Found::Nothing,
        };
        let newer = frame.session.clone();
        if frame.status == SessionState::Running {
            // A turn that has not ended is no conversation to go on with elsewhere.
            state.live = newer;
            state.replaying = true;
            if !frame.bound_answers {
                // Another question may be open by now.
                for answer in std::mem::take(&mut state.unsent) {
                    state.questions.doubt(answer);
                }
            }
            let again = state.questions.resume(frame.bound_answers);
            state.unsent.extend(again);
            state.open = Some(Open {
                delivery: Some(Delivery::Delivered),
                ..open.unwrap_or_default()
            });
            return;
        }
        if newer.is_some() {
            state.resume.session = newer;
        }
        let end = match (open, found) {
            // Whoever listens hoped for a run.
            (None, _) => Err(CallError::Refused(Refused::UnknownId)),
            (Some(_), Found::Answer(answer)) => Ok(output(answer, frame)),
            (Some(open), found) => Err(CallError::Closed {
                reason: open.lost.unwrap_or(CloseReason::Lost),
                delivery: match found {
                    Found::Nothing => open.delivery.unwrap_or(Delivery::Unknown),
                    _ => Delivery::Delivered,
                },
            }),
        };
        state.forget_run();
        state.end_listeners(&end);
    }

    /// Keeps an answer for the next connection.
    pub(super) fn keep(&self, response: Response) {
        self.lock().unsent.push(response);
    }

    /// Keeps an answer until the host's replay is over. Returns `false` if it can be sent at once.
    pub(super) fn defers(&self, response: &Response) -> bool {
        let mut state = self.lock();
        let is_replay = state.questions.is_replay();
        if is_replay {
            state.questions.doubt(response.clone());
        }
        is_replay
    }

    /// Notes that the host may not have this answer.
    pub(super) fn doubt(&self, response: Response) {
        self.lock().questions.doubt(response);
    }

    /// Returns whether the answer to this question was sent twice.
    pub(super) fn was_repeated(&self, request_id: Option<&str>) -> bool {
        self.lock().questions.was_repeated(request_id)
    }

    /// Takes the answers that wait for a connection.
    pub(super) fn take_unsent(&self) -> Vec<Response> {
        std::mem::take(&mut self.lock().unsent)
    }

    /// Ends everything, for this reason.
    pub(super) fn end(&self, reason: &CloseReason) {
        let mut state = self.lock();
        state.ended = true;
        let open = state.open.take().unwrap_or_default();
        let end = Err(CallError::Closed {
            reason: reason.clone(),
            delivery: open.delivery.unwrap_or(Delivery::Unknown),
        });
        for listener in std::mem::take(&mut state.listeners) {
            listener.end(end.clone());
        }
    }
}

impl State {
    /// Starts a run with this prompt, or with one that no run waits for.
    fn start(&mut self, prompt: Option<Str>) {
        self.forget_run();
        let turn = self.resume.turn();
        self.open = Some(Open {
            prompt,
            turn,
            delivery: Some(Delivery::Delivered),
            ..Open::default()
        });
    }

    /// Forgets the events and questions of the last run.
    fn forget_run(&mut self) {
        self.seen.clear();
        self.replaying = false;
        self.questions.clear();
        self.unsent.clear();
    }

    /// Another session has other events. Those that wait to be taken say nothing about it.
    fn forget_events(&mut self) {
        self.received = None;
        self.taken = self.came;
        self.forget_run();
    }

    /// The agent has gone on since the last question of the replay.
    fn pass(&mut self) {
        if let Some(question) = self.questions.pass() {
            self.seen.is_new(&question.event);
            self.show(&question, Item::Past);
        }
    }

    /// Returns whether the run has listeners.
    fn is_heard(&self) -> bool {
        let hears = |it: &Listener| it.waits.is_none() && !it.items.is_abandoned();
        self.listeners.iter().any(hears)
    }

    /// Gives a step to who listens; `false` if nobody does.
    fn show(&mut self, step: &Step, item: impl Fn(Step) -> Item) -> bool {
        self.listeners
            .retain(|it| !it.items.is_abandoned() || it.waits.is_some());
        let mut heard = false;
        for listener in self.listeners.iter().filter(|it| it.waits.is_none()) {
            listener.push(item(step.clone()), step);
            heard = true;
        }
        heard
    }

    /// Returns whether this prompt is to start the run.
    fn is_open(&self, id: CallId) -> bool {
        self.open.as_ref().is_some_and(|open| open.id == Some(id))
    }

    /// Handles the loss of the connection on which the run was in progress.
    fn lose(&mut self, reason: &CloseReason, delivery: Delivery) {
        if let Some(open) = &mut self.open {
            open.id = None;
            open.delivery.get_or_insert(delivery);
            open.lost = Some(reason.clone());
        }
    }

    fn end_one(&mut self, at: usize, end: &End) {
        if at < self.listeners.len() {
            self.listeners.remove(at).end(end.clone());
        }
    }

    /// Ends the listeners whose prompts the run has answered. Returns the result if there are none.
    fn end_listeners(&mut self, end: &End) -> Option<End> {
        let (waiting, ended): (Vec<_>, Vec<_>) = std::mem::take(&mut self.listeners)
            .into_iter()
            .partition(|listener| listener.waits.is_some());
        self.listeners = waiting;
        let nobody = ended.iter().all(|it| it.items.is_abandoned());
        for listener in ended {
            listener.end(end.clone());
        }
        if nobody { Some(end.clone()) } else { None }
    }
}

/// Returns whether another connection may follow one that ended like this.
fn is_passing(reason: &CloseReason) -> bool {
    reason.retry() != Retry::Never
}

/// Returns the output of a run that ended without a connection.
fn output(answer: Str, frame: &Connected) -> Output {
    let mut output = Output::new(answer, frame.session_id.clone(), 0);
    output.duration_ms = None;
    output.session = frame.session.clone();
    output.chat_items = frame.chat_items.clone();
    output
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("ClientSession")
            .field("session_id", &state.resume.session_id)
            .field("listeners", &state.listeners.len())
            .finish_non_exhaustive()
    }
}
