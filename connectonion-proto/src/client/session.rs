//! [`ClientSession`]: a client's session over all its connections.

use std::collections::VecDeque;
use std::sync::Arc;

use rpc_core::encode::encode;
use rpc_core::{
    CallError, CallId, CloseReason, Delivery, Instant, Json, Limits, Refused, Retry, Str,
};

use super::questions::{Questions, goes_on};
use super::resume::{Match, Resume, find_answer};
use super::seen::SeenEvents;
use super::{CallValue, ClientConfig, ClientConn, ClientEvent, ClientState, Step, Taken};
use crate::frame::{Connect, Connected, ErrorFrame, Input, Output, Response, SessionState, Signed};
use crate::id::EventId;
use crate::merge::turn_of;

/// How a run ends.
pub(crate) type End = Result<Output, CallError<ErrorFrame>>;

/// A client's session over all its connections: what is resumed, what was shown, which prompts and
/// answers the host may not have. ConnectOnion specification, *Client Reconnect*.
///
/// Every connection begins with the CONNECT of [`connect`](Self::connect), and its events go through
/// [`handle_event`](Self::handle_event) and [`poll_event`](Self::poll_event). Then
///
/// - a run goes on over the next connection: what was missed comes, what comes twice is dropped. If
///   it has ended meanwhile, [`RunEnded`](ClientEvent::RunEnded) follows `Connected`, with the
///   answer from the conversation, or with whether its prompt has arrived;
/// - no prompt is ever sent twice;
/// - an answer waits for the next connection, and one that was lost is sent again if its question
///   is still open;
/// - the newer conversation, the host's or the client's, is the one that goes on.
///
/// ```
/// use std::time::Instant;
/// use connectonion_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientSession, Resume};
/// use connectonion_proto::frame::{Input, Signed};
/// use connectonion_proto::{Disconnect, Incoming, Machine, Refused};
///
/// /// A connection that was just opened, after the host's answer to its CONNECT.
/// fn open(session: &mut ClientSession, answer: &str, now: Instant) -> ClientConn {
///     let connect = session.connect(Signed::none()); // sign it: most hosts want that
///     let mut conn = ClientConn::new(ClientConfig::default(), &connect, 7, now);
///     conn.handle_message(Incoming::Text(answer), now);
///     pass(&mut conn, session, now);
///     conn
/// }
///
/// /// After every input of the connection, before its frames are sent.
/// fn pass(conn: &mut ClientConn, session: &mut ClientSession, now: Instant) {
///     while let Some(event) = conn.poll_event() {
///         session.handle_event(event);
///     }
///     session.send_answers(conn, now);
/// }
///
/// let now = Instant::now();
/// let mut session = ClientSession::new(ClientConfig::default(), Resume::default());
/// let answer = r#"{"type":"CONNECTED","session_id":"abc","status":"new"}"#;
/// let mut conn = open(&mut session, answer, now);
/// assert!(matches!(session.poll_event(), Some(ClientEvent::Connected(_))));
/// session.input(&mut conn, &Input::new("hello"), now)?;
/// conn.handle_disconnect(Disconnect::Eof, now); // the prompt may have arrived
/// pass(&mut conn, &mut session, now);
/// assert!(matches!(session.poll_event(), Some(ClientEvent::Closed(_))));
///
/// let answer = r#"{"type":"CONNECTED","session_id":"abc","status":"connected","server_newer":true,
///     "session":{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]}}"#;
/// open(&mut session, answer, now);
/// assert!(matches!(session.poll_event(), Some(ClientEvent::Connected(_))));
/// let Some(ClientEvent::RunEnded(Ok(output))) = session.poll_event() else { unreachable!() };
/// assert_eq!(output.result, "hi");
/// # Ok::<(), Refused>(())
/// ```
#[derive(Default)]
pub struct ClientSession {
    config: Arc<ClientConfig>,
    /// What another program needs to go on: its last event is the last that was shown.
    resume: Resume,
    /// The number of prompts in its conversation, if that says so.
    turn: Option<u64>,
    /// The last event that came. What waits to be shown waits here, so the next connection begins
    /// behind it.
    received: Option<EventId>,
    /// How many events came, and which of them was shown last.
    came: u64,
    shown: u64,
    seen: SeenEvents,
    /// The host may repeat events that came before.
    replaying: bool,
    questions: Questions,
    /// The question that nothing has followed.
    pub(crate) open: Option<Step>,
    /// The prompts of this connection that the host has not replied to.
    prompts: Vec<(CallId, Str)>,
    run: Option<OpenRun>,
    events: VecDeque<ClientEvent>,
}

/// The run that this client has started, takes part in, or expects.
#[derive(Default)]
struct OpenRun {
    /// The prompt that is to start it, until the host has replied to it.
    id: Option<CallId>,
    /// The text that has started it, if this client did.
    prompt: Option<Str>,
    /// The number of prompts in the conversation before it.
    turn: Option<u64>,
    /// Whether the host is known to have the prompt; `None` while that is open, or without one.
    delivery: Option<Delivery>,
    /// Why the connection on which it was in progress was lost.
    lost: Option<CloseReason>,
}

impl ClientSession {
    /// Creates the session that goes on at `resume`, or a new one.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>, resume: Resume) -> Self {
        Self {
            config: config.into(),
            received: resume.last_msg_id.clone(),
            turn: resume.session.as_ref().and_then(turn_of),
            resume,
            ..Self::default()
        }
    }

    /// Creates the CONNECT of the next connection. A conversation that is too large to be sent is
    /// left out: the host has its own copy, and a refused CONNECT would end the connection for good.
    #[must_use]
    pub fn connect(&self, signed: Signed) -> Connect {
        let mut connect = Connect::new(signed);
        connect.session_id.clone_from(&self.resume.session_id);
        connect.last_msg_id.clone_from(&self.received);
        connect.session = match &self.run {
            // The host's conversation is the newer one if it has the run.
            Some(_) => self.resume.session_before_a_run(&self.config.limits),
            None => self.resume.session.clone(),
        };
        let max = self.config.max_sent_bytes;
        let may_be_large = |it: &Json| it.get().len() > max / 2;
        if connect.session.as_ref().is_some_and(may_be_large)
            && encode(&connect).is_ok_and(|text| text.len() > max)
        {
            connect.session = None;
        }
        connect
    }

    /// Returns what another program needs to go on: the session, the conversation as of the last run
    /// that ended, and the last [delivered](Self::mark_delivered) step. What came after that step is sent again
    /// to the other program, and so is a question that is open.
    #[must_use]
    pub const fn resume(&self) -> &Resume {
        &self.resume
    }

    /// Opens another session with the next connection, with the same conversation or an empty one.
    pub fn renew(&mut self, keep_conversation: bool) {
        let session = self.resume.session.take().filter(|_| keep_conversation);
        self.turn = self.turn.filter(|_| keep_conversation);
        self.resume = Resume {
            session,
            ..Resume::default()
        };
        self.forget_events();
    }

    /// Expects a run that this program has not started. If the next CONNECTED reports none,
    /// [`RunEnded`](ClientEvent::RunEnded) follows it with [`Refused::UnknownId`].
    pub fn attach(&mut self) {
        self.run.get_or_insert_default();
    }

    /// Sends a prompt, as [`ClientConn::input`] does. If it was to start a run, and the connection
    /// is lost before its reply, no reply follows: after the next CONNECTED, the run goes on or
    /// [`RunEnded`](ClientEvent::RunEnded) tells what is known of it.
    ///
    /// # Errors
    /// As for [`ClientConn::input`].
    pub fn input(
        &mut self,
        conn: &mut ClientConn,
        input: &Input,
        now: Instant,
    ) -> Result<CallId, Refused> {
        let starts = conn.state() == ClientState::Ready;
        let id = conn.input(input, now)?;
        if starts {
            self.run = Some(OpenRun {
                id: Some(id),
                turn: self.turn,
                ..OpenRun::default()
            });
        }
        self.prompts
            .push((id, input.prompt.clone().unwrap_or_default()));
        Ok(id)
    }

    /// Answers a question of the agent. [`send_answers`](Self::send_answers) sends the answer, over the
    /// next connection if this one is down; it is dropped if the run is over by then. While a
    /// host that does not bind answers to questions repeats the events of a run, it waits, and is
    /// dropped if its question is no longer open.
    ///
    /// # Errors
    /// [`Refused::TooLarge`] beyond [`max_sent_bytes`](ClientConfig::max_sent_bytes).
    pub fn respond(&mut self, response: Response) -> Result<(), Refused> {
        let (size, max) = (encode(&response)?.len(), self.config.max_sent_bytes);
        if size > max {
            return Err(Refused::TooLarge { size, max });
        }
        let answers = |it: &mut Step| it.event.id == response.request_id;
        self.open.take_if(answers);
        self.questions.keep(response);
        Ok(())
    }

    /// Notes that a step was shown: another program need not get it again, unless it asks
    /// something or is part of a text. A question is done with when it is answered, and a text when
    /// it is whole.
    pub fn mark_delivered(&mut self, step: &Step) {
        if step.number > self.shown
            && let Some(id) = step.is_done()
        {
            self.shown = step.number;
            self.resume.last_msg_id = Some(id);
        }
    }

    /// Notes that no further connection follows, for this reason: what is open ends.
    pub fn end(&mut self, reason: &CloseReason) {
        if let Some(run) = self.run.take() {
            let reason = reason.clone();
            let delivery = run.delivery.unwrap_or(Delivery::Unknown);
            self.push(ClientEvent::RunEnded(Err(CallError::Closed {
                reason,
                delivery,
            })));
        }
    }

    /// Sends the answers that wait, if this connection is admitted.
    pub fn send_answers(&mut self, conn: &mut ClientConn, now: Instant) {
        if matches!(conn.state(), ClientState::Ready | ClientState::Running) {
            self.questions
                .send_waiting(|answer| conn.respond(answer, now));
        }
    }

    /// Returns the next event for the application. [`Unsent`](ClientEvent::Unsent),
    /// [`Unconfirmed`](ClientEvent::Unconfirmed) and [`CaughtUp`](ClientEvent::CaughtUp) are not among
    /// them.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Handles an event of the current connection. None, one or several come out.
    pub fn handle_event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Connected(frame) => self.connected(frame),
            ClientEvent::Step(step) => self.step(step),
            ClientEvent::Reply { id, result } => self.reply(id, result),
            ClientEvent::RunEnded(result) => self.run_ended(result),
            // It was sent twice to be on the safe side, and had arrived.
            ClientEvent::AnswerRefused { request_id, .. }
                if self.questions.was_repeated(request_id.as_deref()) => {}
            ClientEvent::Unsent(response) => self.questions.keep(response),
            ClientEvent::Unconfirmed(response) => self.questions.doubt(response),
            ClientEvent::CaughtUp => {
                if let Some(question) = self.questions.caught_up() {
                    self.seen.insert(&question.event);
                    self.push(ClientEvent::Step(question));
                }
            }
            ClientEvent::Closed(reason) => {
                self.prompts.clear();
                if !is_passing(&reason) {
                    self.end(&reason);
                }
                self.push(ClientEvent::Closed(reason));
            }
            other => self.push(other),
        }
    }

    fn push(&mut self, event: ClientEvent) {
        match &event {
            ClientEvent::Step(step) if step.event.kind.awaits().is_some() && !step.answered => {
                self.open = Some(step.clone());
            }
            ClientEvent::Step(step) if !goes_on(&step.event.kind) => {}
            ClientEvent::Step(_) | ClientEvent::RunEnded(_) => self.open = None,
            _ => {}
        }
        self.events.push_back(event);
    }

    fn connected(&mut self, frame: Connected) {
        if self.resume.session_id.as_ref() != Some(&frame.session_id) {
            self.resume.last_msg_id = None;
            self.forget_events();
            if frame.session.is_some() {
                (self.resume.session, self.turn) = (None, None);
            }
            self.resume.session_id = Some(frame.session_id.clone());
        }
        self.replaying = false;
        let run = self.run.take();
        if frame.status == SessionState::Running {
            // The conversation of a turn that has not ended cannot be continued elsewhere.
            self.replaying = true;
            self.questions.resume(frame.bound_answers);
            self.run = Some(OpenRun {
                delivery: Some(Delivery::Delivered),
                ..run.unwrap_or_default()
            });
            return self.push(ClientEvent::Connected(frame));
        }
        self.go_on_with(frame.session.as_ref());
        self.forget_run();
        let end = run.map(|run| run.end(&frame, &self.config.limits));
        self.push(ClientEvent::Connected(frame));
        if let Some(end) = end {
            self.push(end);
        }
    }

    fn step(&mut self, mut step: Step) {
        let asks = step.event.kind.awaits().is_some();
        let was_shown = self.replaying && self.seen.contains(&step.event);
        if self.questions.is_replay() && goes_on(&step.event.kind) {
            self.pass();
            if asks {
                self.replaying &= was_shown;
                return self.questions.keep_last(step, was_shown);
            }
        }
        if was_shown {
            return;
        }
        self.replaying = false;
        self.seen.insert(&step.event);
        // The program that resumes here needs the others.
        if let Some(id) = step.is_done() {
            self.received = Some(id);
        }
        self.came += 1;
        step.number = self.came;
        self.push(ClientEvent::Step(step));
    }

    /// The agent has gone on since the last question of the replay.
    fn pass(&mut self) {
        if let Some(mut question) = self.questions.pass() {
            self.seen.insert(&question.event);
            question.answered = true;
            self.push(ClientEvent::Step(question));
        }
    }

    /// The host has reported the outcome of a request, or the connection has ended before.
    fn reply(&mut self, id: CallId, result: Result<CallValue, CallError<ErrorFrame>>) {
        let at = self.prompts.iter().position(|(prompt, _)| *prompt == id);
        let prompt = at.map(|at| self.prompts.remove(at).1);
        let run = self.run.as_mut().filter(|run| run.id == Some(id));
        match (&result, run) {
            (Ok(CallValue::Input(Taken::Started)), _) => {
                self.forget_run();
                self.run = Some(OpenRun {
                    prompt,
                    turn: self.turn,
                    delivery: Some(Delivery::Delivered),
                    ..OpenRun::default()
                });
            }
            // The run is another device's.
            (Ok(_), Some(run)) => {
                *run = OpenRun {
                    delivery: Some(Delivery::Delivered),
                    ..OpenRun::default()
                }
            }
            (Err(CallError::Closed { reason, delivery }), Some(run)) if is_passing(reason) => {
                run.prompt = prompt;
                return run.lose(reason, *delivery);
            }
            (Err(_), Some(_)) => self.run = None,
            (_, None) => {}
        }
        self.push(ClientEvent::Reply { id, result });
    }

    fn run_ended(&mut self, result: End) {
        if let Err(CallError::Closed { reason, .. }) = &result {
            if is_passing(reason) {
                // The next CONNECTED tells more.
                let run = self.run.get_or_insert_default();
                return run.lose(reason, Delivery::Delivered);
            }
        } else {
            if let Ok(output) = &result {
                self.go_on_with(output.session.as_ref());
            }
            self.pass();
            self.forget_run();
        }
        self.run = None;
        self.push(ClientEvent::RunEnded(result));
    }

    /// Takes the host's conversation, unless it has fewer turns than this one.
    fn go_on_with(&mut self, session: Option<&Json>) {
        let Some(session) = session else { return };
        let turn = turn_of(session);
        if turn.unwrap_or_default() >= self.turn.unwrap_or_default() {
            self.turn = turn;
            self.resume.session = Some(session.clone());
        }
    }

    /// Forgets the events and questions of the last run.
    fn forget_run(&mut self) {
        self.seen = SeenEvents::default();
        self.replaying = false;
        self.questions = Questions::default();
    }

    /// Another session has other events. Those that wait to be shown say nothing about it.
    fn forget_events(&mut self) {
        self.received = None;
        self.shown = self.came;
        self.forget_run();
    }
}

impl OpenRun {
    fn lose(&mut self, reason: &CloseReason, delivery: Delivery) {
        self.id = None;
        self.delivery.get_or_insert(delivery);
        self.lost = Some(reason.clone());
    }

    /// Returns how the run has ended that this CONNECTED does not report.
    fn end(self, frame: &Connected, limits: &Limits) -> ClientEvent {
        let Some(delivery) = self.delivery else {
            return ClientEvent::RunEnded(Err(Refused::UnknownId.into()));
        };
        let found = match (&self.prompt, &frame.session) {
            (Some(prompt), Some(newer)) => find_answer(newer, prompt, self.turn, limits),
            _ => Match::Nothing,
        };
        let delivery = match found {
            Match::Answer(answer) => return ClientEvent::RunEnded(Ok(output(answer, frame))),
            Match::Prompt => Delivery::Delivered,
            Match::Nothing => delivery,
        };
        let reason = self.lost.unwrap_or(CloseReason::Lost);
        ClientEvent::RunEnded(Err(CallError::Closed { reason, delivery }))
    }
}

/// Returns whether another connection may follow one that ended like this.
fn is_passing(reason: &CloseReason) -> bool {
    reason.retry() != Retry::Never
}

/// Returns the output of a run that ended without a connection.
fn output(answer: Str, frame: &Connected) -> Output {
    let mut output = Output::new(frame.session_id.clone(), answer, 0);
    output.duration_ms = None;
    output.session.clone_from(&frame.session);
    output.chat_items.clone_from(&frame.chat_items);
    output
}

// Prints the state, never the contents.
rpc_core::debug_fields!([] ClientSession, this => {
    session_id: this.resume.session_id,
    is_running: this.run.is_some(),
});
