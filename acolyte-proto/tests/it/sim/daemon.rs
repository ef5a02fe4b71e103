//! Random lives of a daemon: clients whose lines are slow, jammed, cut and half open, chats that
//! wait in line, are aborted and given up, and an agent that works as it likes.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

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
use rpc_core::{CallError, Delivery, Instant, Limits, Machine as _};
use switchboard_testing::sim::{
    self, Bounds, Connections, ConnectionsOf, Effect, Lives, Opened, Outcome, Rng, ensure,
    random_lives,
};

use crate::sim::life::{ConnectionModel, Report};

const CLIENTS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_CALLS: usize = 8;
const MAX_WAITING: usize = 3;
const MAX_FRAMES: usize = 32;
const MAX_EVENTS: usize = 16;
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

/// What is known of a connection.
#[derive(Default)]
struct Known {
    order: Vec<CallId>,
    chats: HashMap<CallId, Chat>,
    /// Other requests: aborts and questions.
    others: HashSet<CallId>,
    model: ConnectionModel,
    work: Option<Work>,
    questions: Vec<RpcId>,
    asked: usize,
    /// Chats that never left their client, as it says.
    never_sent: Vec<String>,
}

type Connection = sim::Connection<ClientConn, ServerConn, Known>;

struct Daemon {
    conns: ConnectionsOf<Self>,
    texts: u64,
    /// Chats that have started to run, by text.
    started: HashSet<String>,
}

impl Daemon {
    fn chat(&mut self, client: usize) -> Outcome {
        let (now, text) = (self.conns.now, format!("text {}", self.texts));
        self.texts += 1;
        let Some(Connection { line, own, .. }) = self.conns.acting(client) else {
            return Ok(());
        };
        let conn = &mut line.client.machine;
        let before = conn.in_flight();
        let request = ChatRequest::new(text.clone(), "gpt-5-mini");
        let Ok(id) = conn.chat(&request, now) else {
            return ensure(conn.in_flight() == before, || {
                "a refused chat is in flight".to_owned()
            });
        };
        own.asked += 1;
        own.order.push(id);
        let chat = Chat {
            text,
            at: now,
            task: None,
            aborted: false,
        };
        let is_new = own.chats.insert(id, chat).is_none();
        ensure(is_new && before < MAX_CALLS, || {
            format!("{id:?} is one too many")
        })
    }

    /// A client gives a chat up: politely, or without waiting for its end.
    fn give_up(&mut self, client: usize, is_aborted: bool) {
        let (now, roll) = (self.conns.now, self.conns.rng.next_u64());
        let Some(Connection { line, own, .. }) = self.conns.acting(client) else {
            return;
        };
        let Some(chat) = own.pick(roll) else {
            return;
        };
        let conn = &mut line.client.machine;
        if is_aborted && let Ok(id) = conn.abort(chat, now) {
            own.others.insert(id);
            own.chats.get_mut(&chat).unwrap().aborted = true;
        } else if !is_aborted && conn.cancel(chat, now) {
            own.forget(chat);
            self.conns.tally.ended += 1;
        }
    }

    fn ask(&mut self, client: usize) {
        let now = self.conns.now;
        if let Some(Connection { line, own, .. }) = self.conns.acting(client) {
            let asked = line.client.machine.task_status(&TaskId::random(7), now);
            own.others.extend(asked);
        }
    }

    /// The agent goes on, or the server answers a question.
    fn work(&mut self) -> Outcome {
        let roll = self.conns.rng.below(10);
        let conn = self.conns.any().filter(|it| !it.line.server.hangs);
        let Some(Connection { line, own, .. }) = conn else {
            return Ok(());
        };
        let server = &mut line.server.machine;
        own.questions
            .retain(|id| server.task_status(id, None).is_err());
        let Some(Work { id, task, aborted }) = &own.work else {
            return Ok(());
        };
        let piece = own.model.next_piece(task);
        let over = match roll {
            0..3 => server.done(id, &Reply::new("done", "gpt-5-mini")).is_ok(),
            3..5 => server.fail(id, &AppError::failed("no")).is_ok(),
            _ if *aborted => {
                let sent = server.event(id, &Event::text("late"));
                ensure(sent.is_err(), || format!("{id} goes on after its abort"))?;
                false
            }
            _ => {
                let sent = server.event(id, &Event::text(piece.to_string()));
                if sent.is_ok() {
                    own.model.on_piece(task)?;
                }
                false
            }
        };
        if over {
            own.work = None;
        }
        Ok(())
    }
}

impl Known {
    fn pick(&self, roll: u64) -> Option<CallId> {
        let index = roll.checked_rem(self.order.len() as u64)?;
        self.order.get(index as usize).copied()
    }

    fn forget(&mut self, id: CallId) -> Option<Chat> {
        self.order.retain(|it| *it != id);
        self.chats.remove(&id)
    }

    /// A chat's updates are those of the naive model, in its order.
    fn update(&mut self, id: CallId, update: &ChatUpdate) -> Outcome {
        let chat = self.chats.get_mut(&id);
        let chat = chat.ok_or_else(|| format!("{update:?} after the end"))?;
        let report = match update {
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
            other => return Err(format!("nobody sent {other:?}")),
        };
        let task = chat.task.as_ref().ok_or("not accepted")?;
        self.model.received(task, report)
    }
}

/// A chat ends once, for a reason that fits.
fn end(conn: &mut Connection, id: CallId, outcome: &Ended, now: Instant) -> Outcome {
    let chat = conn.own.forget(id);
    let chat = chat.ok_or_else(|| format!("{id} ended twice: {outcome:?}"))?;
    let states: &[TaskState] = match outcome {
        Ended::Done(_) => &[TaskState::Completed],
        // Chats are cancelled when the server goes away, and it says so.
        Ended::Failed(Failure::Server(_)) => &[TaskState::Failed, TaskState::Cancelled],
        Ended::Aborted { .. } if chat.aborted => &[TaskState::Cancelled, TaskState::Failed],
        _ => &[],
    };
    if let Some(task) = chat.task.as_ref().filter(|_| !states.is_empty()) {
        return conn.own.model.received_end(task, states);
    }
    let fits = match outcome {
        Ended::Refused { .. } => chat.task.is_none() || conn.is_disturbed,
        Ended::TimedOut { .. } => now >= chat.at + PATIENCE,
        Ended::Closed { reason, .. } => conn.closes_with(reason),
        _ => false,
    };
    let was_sent = outcome.delivery() != Delivery::NotSent;
    ensure(fits && (was_sent || chat.task.is_none()), || {
        format!("{chat:?} ended with {outcome:?}")
    })?;
    if !was_sent {
        conn.own.never_sent.push(chat.text);
    }
    Ok(())
}

fn end_other<R>(conn: &mut Connection, id: CallId, error: Option<CallError<R>>) -> Outcome {
    ensure(conn.own.others.remove(&id), || format!("{id} ended twice"))?;
    match error {
        Some(CallError::Closed { reason, .. }) => ensure(conn.closes_with(&reason), || {
            format!("another end: {reason:?}")
        }),
        Some(CallError::Remote(_)) => ensure(conn.is_disturbed, || "nobody refused it".to_owned()),
        _ => Ok(()),
    }
}

impl Lives for Daemon {
    type Client = ClientConn;
    type Server = ServerConn;
    type Own = Known;
    const GARBAGE: &'static [&'static str] = &[
        "",
        "{",
        "[1]",
        r#"{"id":"rpc_x","type":"nonsense"}"#,
        r#"{"id":"rpc_x","type":"chat.abort","payload":{"requestId":"rpc_y"}}"#,
        r#"{"id":"rpc_x","type":"chat.done","payload":{}}"#,
        r#"{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}"#,
        r#"{"id":"rpc_0000000000000","type":"chat.started"}"#,
    ];

    fn new(rng: Rng) -> Self {
        Self {
            conns: Connections::new(rng, CLIENTS, reconnect_policy()),
            texts: 0,
            started: HashSet::new(),
        }
    }

    fn conns(&mut self) -> &mut ConnectionsOf<Self> {
        &mut self.conns
    }

    fn see(&self) -> &ConnectionsOf<Self> {
        &self.conns
    }

    fn act(&mut self, client: usize) -> Outcome {
        match self.conns.rng.below(65) {
            0..20 => self.chat(client)?,
            20..24 => self.give_up(client, true),
            24..27 => self.give_up(client, false),
            27..30 => self.ask(client),
            _ => self.work()?,
        }
        Ok(())
    }

    fn open(&mut self, _: usize) -> Opened<Self> {
        let limits = Limits {
            max_pending: MAX_CALLS,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..Limits::default()
        };
        let Connections { rng, now, .. } = &mut self.conns;
        let config = ClientConfig {
            limits: limits.clone(),
            ..ClientConfig::default()
        };
        let client = ClientConn::new(config, rng.next_u64(), *now);
        let config = ServerConfig {
            max_queued: MAX_WAITING,
            silent_aborts: rng.chance(20),
            limits,
            ..ServerConfig::default()
        };
        let server = ServerConn::new(config, rng.next_u64(), *now);
        // Pings and a Close need no room, and the ends of requests none among the events; one frame
        // from the client brings about a few events of its tasks, and so does the end.
        let frames = MAX_FRAMES + 3;
        (
            (client, Bounds::new(frames, MAX_EVENTS + 2 * MAX_CALLS + 3)),
            (server, Bounds::new(frames, MAX_EVENTS + 3 * MAX_CALLS)),
            Known::default(),
        )
    }

    fn on_server_event(&mut self, conn: u64, event: ServerEvent) -> Outcome {
        let Connection { line, own, .. } = self.conns.all.get_mut(&conn).unwrap();
        match event {
            ServerEvent::Task { task_id, state } => {
                let goes = line.server.machine.is_closed();
                own.model.on_task(&task_id, state, goes)?;
            }
            ServerEvent::Start {
                id,
                task_id,
                request,
            } => {
                ensure(own.work.is_none(), || format!("{id} beside another"))?;
                let text = request.message.to_string();
                let is_new = self.started.insert(text.clone());
                ensure(is_new, || format!("{text} came twice"))?;
                own.work = Some(Work {
                    id,
                    task: task_id,
                    aborted: false,
                });
            }
            ServerEvent::Abort { id } => {
                let work = own.work.as_mut().filter(|work| work.id == id);
                work.ok_or("an abort of what does not run")?.aborted = true;
            }
            ServerEvent::GivenUp { id } => {
                let work = own.work.take();
                let was_aborted = work.is_some_and(|work| work.id == id && work.aborted);
                ensure(was_aborted, || format!("{id} was given up"))?;
            }
            ServerEvent::TaskStatus { id, .. } => own.questions.push(id),
            ServerEvent::Closed(_) => {
                own.model.check_all_ended()?;
                own.work = None;
                own.questions.clear();
            }
            _ => {}
        }
        Ok(())
    }

    fn on_client_event(&mut self, conn: u64, event: ClientEvent) -> Outcome<Effect> {
        let now = self.conns.now;
        let tally = &mut self.conns.tally;
        let conn = self.conns.all.get_mut(&conn).unwrap();
        match event {
            ClientEvent::Ready => return Ok(Effect::Ready),
            ClientEvent::Chat {
                id,
                update: ChatUpdate::Ended(outcome),
            } => {
                tally.ended += 1;
                let is_answered = outcome.is_done() || matches!(outcome, Ended::Failed(_));
                tally.answered += u64::from(is_answered);
                end(conn, id, &outcome, now)?;
            }
            ClientEvent::Chat { id, update } => conn.own.update(id, &update)?,
            ClientEvent::Reply { id, result } => {
                tally.answered += u64::from(result.is_ok());
                tally.ended += 1;
                end_other(conn, id, result.err())?;
            }
            ClientEvent::Closed(reason) => {
                let left = conn.own.chats.len() + conn.own.others.len();
                ensure(left == 0, || format!("{left} requests never ended"))?;
                return Ok(Effect::Closed(reason));
            }
            _ => {}
        }
        Ok(Effect::Nothing)
    }

    /// Both ends have reported everything: it fits together.
    fn check_ended(&self, Connection { own, .. }: &Connection) -> Outcome {
        own.model.check_all_reported()?;
        let mut never_sent = own.never_sent.iter();
        let lied = never_sent.find(|text| self.started.contains(*text));
        ensure(lied.is_none(), || format!("{lied:?} was sent all the same"))?;
        let left = own.asked - own.never_sent.len();
        ensure(own.model.accepted() <= left, || {
            "more came than was sent".to_owned()
        })
    }

    fn is_idle(&self, conn: u64) -> bool {
        let Connection { line, own, .. } = &self.conns.all[&conn];
        // What the client has given up may still be in the line.
        own.chats.is_empty() && own.others.is_empty() && line.server.machine.in_flight() == 0
    }

    fn serve(&mut self) -> Outcome<bool> {
        for _ in 0..20 {
            self.work()?;
            self.settle()?;
        }
        Ok(true)
    }

    fn check_works(&mut self) -> Outcome {
        let answered = self.conns.tally.answered;
        for client in 0..CLIENTS {
            for _ in 0..3 {
                self.chat(client)?;
            }
        }
        self.serve_all()?;
        let all = self.conns.tally.answered == answered + 3 * CLIENTS as u64;
        ensure(all, || "not every chat came to its end".to_owned())
    }
}

#[test]
fn chats_run_in_turn_and_end_once_under_random_faults() {
    random_lives::<Daemon>("acolyte", 400);
}
