//! Random lives of a daemon: clients whose lines are slow, jammed, cut and half open, chats that
//! wait in line, are aborted and given up, and an agent that works as it likes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use acolyte_proto::client::{
    CallId, ChatUpdate, ClientConfig, ClientConn, ClientEvent, Failure, Outcome as Ended,
    reconnect_policy,
};
use acolyte_proto::error::AppError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, Reply};
use acolyte_proto::id::{RpcId, TaskId};
use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};
use acolyte_proto::task::TaskState;
use rpc_core::{CallError, CloseFrame, CloseReason, Delivery, Limits, Machine as _};
use switchboard_testing::sim::{self, Bounds, Dialling, Line, Outcome, Rng, Tally, World, ensure};

use crate::sim::life::{ConnectionModel, Report};

const CLIENTS: usize = 2;
const MINUTE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_CALLS: usize = 8;
const MAX_WAITING: usize = 3;
const MAX_FRAMES: usize = 32;
const MAX_EVENTS: usize = 16;
const GARBAGE: [&str; 8] = [
    "",
    "{",
    "[1]",
    r#"{"id":"rpc_x","type":"nonsense"}"#,
    r#"{"id":"rpc_x","type":"chat.abort","payload":{"requestId":"rpc_y"}}"#,
    r#"{"id":"rpc_x","type":"chat.done","payload":{}}"#,
    r#"{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}"#,
    r#"{"id":"rpc_0000000000000","type":"chat.started"}"#,
];

/// A chat in flight, as its client knows it.
#[derive(Debug)]
struct Chat {
    text: String,
    at: Instant,
    task: Option<TaskId>,
    aborted: bool,
}

/// What the agent works on.
struct Work {
    id: RpcId,
    task: TaskId,
    aborted: bool,
}

/// One connection, from the first frame to the last.
struct Connection {
    line: Line<ClientConn, ServerConn>,
    client: usize,
    order: Vec<CallId>,
    chats: HashMap<CallId, Chat>,
    /// Other requests: aborts and questions.
    others: HashSet<CallId>,
    desk: ConnectionModel,
    work: Option<Work>,
    questions: Vec<RpcId>,
    ended_by: Option<CloseReason>,
    is_closed: bool,
    /// Someone has sent what neither end has: words that fit no request are taken for the answer to
    /// the oldest.
    is_disturbed: bool,
    asked: usize,
    /// Chats that never left their client, as it says.
    never_sent: Vec<String>,
}

struct Daemon {
    rng: Rng,
    now: Instant,
    talks: BTreeMap<u64, Connection>,
    /// The connection of each client.
    current: [Option<u64>; CLIENTS],
    dialling: [Dialling; CLIENTS],
    texts: u64,
    /// Chats that have started to run, by text.
    started: HashSet<String>,
    calm: bool,
    tally: Tally,
}

impl Daemon {
    fn new(rng: Rng) -> Self {
        let now = Instant::now();
        Self {
            rng,
            now,
            talks: BTreeMap::new(),
            current: [None; CLIENTS],
            dialling: [(); CLIENTS].map(|()| Dialling::new(reconnect_policy(), now)),
            texts: 0,
            started: HashSet::new(),
            calm: false,
            tally: Tally::default(),
        }
    }

    fn step(&mut self) -> Outcome {
        let client = self.rng.below(CLIENTS as u64) as usize;
        match self.rng.below(100) {
            0..20 => self.chat(client)?,
            20..24 => self.abort(client),
            24..27 => self.cancel(client),
            27..30 => self.ask(client),
            30..65 => self.work()?,
            65..78 => self.wait(Duration::from_millis(400))?,
            78..83 => self.wait(MINUTE)?,
            83..85 => self.sleep(),
            85..98 => self.fault(client),
            _ => self.close(client),
        }
        sim::settle(self, self.now)
    }

    fn wait(&mut self, most: Duration) -> Outcome {
        let time = self.rng.duration(most);
        self.now = sim::advance(self, self.now, time)?;
        Ok(())
    }

    /// The computer sleeps: deadlines are handled late.
    fn sleep(&mut self) {
        self.tally.faults += 1;
        self.now += self.rng.duration(20 * MINUTE);
    }

    /// The connection of a client that does something.
    fn talk(&mut self, client: usize) -> Option<&mut Connection> {
        let talk = self.talks.get_mut(&self.current[client]?)?;
        (!talk.line.client.hangs).then_some(talk)
    }

    fn chat(&mut self, client: usize) -> Outcome {
        let (now, text) = (self.now, format!("text {}", self.texts));
        self.texts += 1;
        let Some(talk) = self.talk(client) else {
            return Ok(());
        };
        let conn = &mut talk.line.client.machine;
        let before = conn.in_flight();
        let request = ChatRequest::new(text.clone(), "gpt-5-mini");
        let Ok(id) = conn.chat(&request, now) else {
            return ensure(conn.in_flight() == before, || {
                "a refused chat is in flight".to_owned()
            });
        };
        talk.asked += 1;
        talk.order.push(id);
        let chat = Chat {
            text,
            at: now,
            task: None,
            aborted: false,
        };
        let is_new = talk.chats.insert(id, chat).is_none();
        ensure(is_new && before < MAX_CALLS, || {
            format!("{id:?} is one too many")
        })
    }

    fn abort(&mut self, client: usize) {
        let (now, roll) = (self.now, self.rng.next_u64());
        if let Some(talk) = self.talk(client)
            && let Some(chat) = talk.pick(roll)
            && let Ok(id) = talk.line.client.machine.abort(chat, now)
        {
            talk.others.insert(id);
            talk.chats.get_mut(&chat).unwrap().aborted = true;
        }
    }

    fn cancel(&mut self, client: usize) {
        let (now, roll) = (self.now, self.rng.next_u64());
        if let Some(talk) = self.talk(client)
            && let Some(chat) = talk.pick(roll)
            && talk.line.client.machine.cancel(chat, now)
        {
            talk.forget(chat);
            self.tally.ended += 1;
        }
    }

    fn ask(&mut self, client: usize) {
        let now = self.now;
        if let Some(talk) = self.talk(client) {
            let task = TaskId::random(7);
            let asked = talk.line.client.machine.task_status(&task, now);
            talk.others.extend(asked);
        }
    }

    /// The agent goes on, or the server answers a question.
    fn work(&mut self) -> Outcome {
        let conns: Vec<u64> = self.talks.keys().copied().collect();
        let picked = self.rng.pick(&conns).copied();
        let Some(talk) = picked.and_then(|conn| self.talks.get_mut(&conn)) else {
            return Ok(());
        };
        if talk.line.server.hangs {
            return Ok(());
        }
        let server = &mut talk.line.server.machine;
        talk.questions
            .retain(|id| server.task_status(id, None).is_err());
        let Some(Work { id, task, aborted }) = &talk.work else {
            return Ok(());
        };
        let piece = talk.desk.next_piece(task);
        let over = match self.rng.below(10) {
            0..3 => server.done(id, &Reply::new("done", "gpt-5-mini")).is_ok(),
            3..5 => server.fail(id, &AppError::failed("no")).is_ok(),
            _ if *aborted => false,
            _ => {
                let sent = server.event(id, &Event::text(piece.to_string()));
                if sent.is_ok() {
                    talk.desk.on_piece(task)?;
                }
                false
            }
        };
        if over {
            talk.work = None;
        }
        Ok(())
    }

    fn fault(&mut self, client: usize) {
        let talk = self
            .talks
            .get_mut(&self.current[client].unwrap_or_default());
        if let Some(talk) = talk {
            self.tally.faults += 1;
            talk.is_disturbed |= talk.line.suffer(&GARBAGE, self.now, &mut self.rng);
        }
    }

    fn close(&mut self, client: usize) {
        let (now, by_client) = (self.now, self.rng.chance(50));
        if let Some(talk) = self.talk(client) {
            if by_client {
                talk.line.client.machine.close(now);
            } else {
                let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "restart");
                talk.line.server.machine.close_with(frame, now);
            }
        }
    }

    fn dial(&mut self, client: usize) -> bool {
        let failing = if self.calm { 0 } else { 20 };
        if !self.dialling[client].dials(failing, self.now, &mut self.rng) {
            return false;
        }
        let limits = Limits {
            max_pending: MAX_CALLS,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..Limits::default()
        };
        let config = ClientConfig {
            limits: limits.clone(),
            ..ClientConfig::default()
        };
        let conn = ClientConn::new(config, self.rng.next_u64(), self.now);
        let config = ServerConfig {
            max_queued: MAX_WAITING,
            silent_aborts: self.rng.chance(20),
            limits,
            ..ServerConfig::default()
        };
        let server = ServerConn::new(config, self.rng.next_u64(), self.now);
        self.tally.lines += 1;
        // Pings and a Close need no room, and the ends of requests none among the events; one frame
        // from the client brings about a few events of its tasks, and so does the end.
        let line = Line::new(self.tally.lines, conn, server).with_bounds(
            Bounds::new(MAX_FRAMES + 3, MAX_EVENTS + 2 * MAX_CALLS + 3),
            Bounds::new(MAX_FRAMES + 3, MAX_EVENTS + 3 * MAX_CALLS),
        );
        self.talks
            .insert(self.tally.lines, Connection::new(line, client));
        self.current[client] = Some(self.tally.lines);
        true
    }

    fn on_server_event(&mut self, conn: u64, event: ServerEvent) -> Outcome {
        let talk = self.talks.get_mut(&conn).unwrap();
        match event {
            ServerEvent::Task { task_id, state } => {
                let goes = talk.line.server.machine.is_closed();
                talk.desk.on_task(&task_id, state, goes)?;
            }
            ServerEvent::Start {
                id,
                task_id,
                request,
            } => {
                ensure(talk.work.is_none(), || format!("{id} beside another"))?;
                let text = request.message.to_string();
                let is_new = self.started.insert(text.clone());
                ensure(is_new, || format!("{text} came twice"))?;
                talk.work = Some(Work {
                    id,
                    task: task_id,
                    aborted: false,
                });
            }
            ServerEvent::Abort { id } => {
                let work = talk.work.as_mut().filter(|work| work.id == id);
                work.ok_or("an abort of what does not run")?.aborted = true;
            }
            ServerEvent::GivenUp { id } => {
                let work = talk.work.take();
                let was_aborted = work.is_some_and(|work| work.id == id && work.aborted);
                ensure(was_aborted, || format!("{id} was given up"))?;
            }
            ServerEvent::TaskStatus { id, .. } => talk.questions.push(id),
            ServerEvent::Closed(_) => {
                talk.desk.check_all_ended()?;
                talk.work = None;
                talk.questions.clear();
            }
            _ => {}
        }
        Ok(())
    }

    fn on_client_event(&mut self, conn: u64, event: ClientEvent) -> Outcome {
        let talk = self.talks.get_mut(&conn).unwrap();
        ensure(!talk.is_closed, || format!("{event:?} after the end"))?;
        match event {
            ClientEvent::Ready => self.dialling[talk.client].ready(),
            ClientEvent::Chat {
                id,
                update: ChatUpdate::Ended(outcome),
            } => {
                self.tally.ended += 1;
                let is_answered = outcome.is_done() || matches!(outcome, Ended::Failed(_));
                self.tally.answered += u64::from(is_answered);
                talk.end(id, &outcome, self.now)?;
            }
            ClientEvent::Chat { id, update } => talk.hear(id, &update)?,
            ClientEvent::Reply { id, result } => {
                self.tally.answered += u64::from(result.is_ok());
                self.tally.ended += 1;
                talk.end_other(id, result.err())?;
            }
            ClientEvent::Closed(reason) => {
                talk.is_closed = true;
                let left = talk.chats.len() + talk.others.len();
                ensure(left == 0, || format!("{left} requests never ended"))?;
                let told = talk.ended_by.as_ref().is_none_or(|it| *it == reason);
                ensure(told, || format!("{reason:?} is not what was told before"))?;
                self.current[talk.client] = None;
                let client = talk.client;
                self.dialling[client].lost(reason.retry(), self.now, &mut self.rng);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a client is back, on a line that is whole, with nothing to wait for.
    fn is_well(&self, client: usize) -> bool {
        let talk = self.current[client].map(|conn| &self.talks[&conn]);
        talk.is_some_and(|it| {
            let is_idle = it.chats.is_empty() && it.others.is_empty();
            // What the client has given up may still be in the line.
            is_idle && it.line.is_whole() && it.line.server.machine.in_flight() == 0
        })
    }

    /// Everything works again: everyone comes back, and chats end.
    fn recover(&mut self) -> Outcome {
        self.calm = true;
        for talk in self.talks.values_mut() {
            talk.line.heal();
        }
        // What is under way arrives, and so do the answers to what someone has thrown in.
        self.now = sim::advance(self, self.now, Duration::from_secs(5))?;
        self.work_all()?;
        for client in 0..CLIENTS {
            ensure(self.is_well(client), || format!("{client} is not back"))?;
        }
        let answered = self.tally.answered;
        for client in 0..CLIENTS {
            for _ in 0..3 {
                self.chat(client)?;
            }
        }
        self.work_all()?;
        let all = self.tally.answered == answered + 3 * CLIENTS as u64;
        ensure(all, || "not every chat came to its end".to_owned())
    }

    fn work_all(&mut self) -> Outcome {
        for _ in 0..600 {
            self.now = sim::advance(self, self.now, Duration::from_secs(1))?;
            for _ in 0..20 {
                self.work()?;
                sim::settle(self, self.now)?;
            }
            if (0..CLIENTS).all(|client| self.is_well(client)) {
                break;
            }
        }
        Ok(())
    }

    /// The daemon goes away; nothing is left.
    fn shut_down(&mut self) -> Outcome {
        for talk in self.talks.values_mut() {
            talk.line.server.machine.close(self.now);
        }
        sim::settle(self, self.now)?;
        ensure(self.talks.is_empty(), || "connections are left".to_owned())
    }
}

impl Connection {
    fn new(line: Line<ClientConn, ServerConn>, client: usize) -> Self {
        Self {
            line,
            client,
            order: Vec::new(),
            chats: HashMap::new(),
            others: HashSet::new(),
            desk: ConnectionModel::default(),
            work: None,
            questions: Vec::new(),
            ended_by: None,
            is_closed: false,
            is_disturbed: false,
            asked: 0,
            never_sent: Vec::new(),
        }
    }

    fn pick(&self, roll: u64) -> Option<CallId> {
        let place = roll.checked_rem(self.order.len() as u64)?;
        self.order.get(place as usize).copied()
    }

    fn forget(&mut self, id: CallId) -> Option<Chat> {
        self.order.retain(|it| *it != id);
        self.chats.remove(&id)
    }

    /// A chat's updates are those of the naive model, in its order.
    fn hear(&mut self, id: CallId, update: &ChatUpdate) -> Outcome {
        let chat = self.chats.get_mut(&id);
        let chat = chat.ok_or_else(|| format!("{update:?} after the end"))?;
        let told = match update {
            ChatUpdate::Accepted { task_id } => {
                ensure(chat.task.is_none(), || "accepted twice".to_owned())?;
                chat.task = Some(task_id.clone());
                Report::Accepted
            }
            ChatUpdate::Queued { position } => Report::Queued(*position),
            ChatUpdate::Started => Report::Started,
            ChatUpdate::Event(Event::TextDelta(text)) => {
                Report::Piece(text.parse().map_err(|_| format!("{text} is not a piece"))?)
            }
            other => return Err(format!("nobody said {other:?}")),
        };
        let task = chat.task.as_ref().ok_or("not accepted")?;
        self.desk.hear(task, told)
    }

    /// A chat ends once, for a reason that fits.
    fn end(&mut self, id: CallId, outcome: &Ended, now: Instant) -> Outcome {
        let chat = self.forget(id);
        let chat = chat.ok_or_else(|| format!("{id} ended twice: {outcome:?}"))?;
        let states: &[TaskState] = match outcome {
            Ended::Done(_) => &[TaskState::Completed],
            // Chats are cancelled when the server goes away, and it says so.
            Ended::Failed(Failure::Server(_)) => &[TaskState::Failed, TaskState::Cancelled],
            Ended::Aborted { .. } if chat.aborted => &[TaskState::Cancelled, TaskState::Failed],
            _ => &[],
        };
        if let Some(task) = chat.task.as_ref().filter(|_| !states.is_empty()) {
            return self.desk.hear_end(task, states);
        }
        let fits = match outcome {
            Ended::Refused { .. } => chat.task.is_none() || self.is_disturbed,
            Ended::TimedOut { .. } => now >= chat.at + PATIENCE,
            Ended::Closed { reason, .. } => self.closes_with(reason),
            _ => false,
        };
        let was_sent = outcome.delivery() != Delivery::NotSent;
        ensure(fits && (was_sent || chat.task.is_none()), || {
            format!("{chat:?} ended with {outcome:?}")
        })?;
        if !was_sent {
            self.never_sent.push(chat.text);
        }
        Ok(())
    }

    /// Both ends have told everything: it fits together.
    fn check(&self, started: &HashSet<String>) -> Outcome {
        ensure(self.is_closed, || "closed, and nobody was told".to_owned())?;
        self.desk.check_all_told()?;
        let lied = self.never_sent.iter().find(|text| started.contains(*text));
        ensure(lied.is_none(), || format!("{lied:?} was sent all the same"))?;
        let left = self.asked - self.never_sent.len();
        ensure(self.desk.accepted() <= left, || {
            "more came than was sent".to_owned()
        })
    }

    fn end_other<R>(&mut self, id: CallId, error: Option<CallError<R>>) -> Outcome {
        ensure(self.others.remove(&id), || format!("{id} ended twice"))?;
        match error {
            Some(CallError::Closed { reason, .. }) => ensure(self.closes_with(&reason), || {
                format!("another end: {reason:?}")
            }),
            Some(CallError::Remote(_)) => {
                ensure(self.is_disturbed, || "nobody refused it".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Everything that ends with the connection hears the same reason.
    fn closes_with(&mut self, reason: &CloseReason) -> bool {
        self.ended_by.get_or_insert_with(|| reason.clone()) == reason
    }
}

impl World for Daemon {
    fn next_instant(&self) -> Option<Instant> {
        let lines = self
            .talks
            .values()
            .filter_map(|talk| talk.line.next_instant());
        let dials = self.dialling.iter().filter_map(Dialling::next_instant);
        lines.chain(dials).min()
    }

    fn turn(&mut self, now: Instant) -> Outcome<bool> {
        self.now = now;
        let mut active = false;
        for client in 0..CLIENTS {
            active |= self.dial(client);
        }
        let conns: Vec<u64> = self.talks.keys().copied().collect();
        for conn in conns {
            active |= self.talks.get_mut(&conn).unwrap().line.settle(now)?;
            while let Some(event) = self.talks.get_mut(&conn).unwrap().line.server.next_event() {
                self.on_server_event(conn, event)?;
                active = true;
            }
            while let Some(event) = self.talks.get_mut(&conn).unwrap().line.client.next_event() {
                self.on_client_event(conn, event)?;
                active = true;
            }
            let talk = &self.talks[&conn];
            if talk.line.is_over() {
                talk.check(&self.started)?;
                self.tally.frames += talk.line.frames();
                self.talks.remove(&conn);
            }
        }
        Ok(active)
    }
}

#[test]
fn chats_run_in_turn_and_end_once_under_random_faults() {
    sim::lifecycles("acolyte", 400, |rng, tally| {
        let mut daemon = Daemon::new(rng.clone());
        let steps = 20 + rng.below(120);
        for _ in 0..steps {
            daemon.step()?;
        }
        daemon.recover()?;
        daemon.shut_down()?;
        *tally += daemon.tally;
        Ok(())
    });
}
