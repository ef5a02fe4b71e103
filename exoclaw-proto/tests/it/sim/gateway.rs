//! Random lives of a gateway: clients whose lines are slow, jammed, cut and half open, with chats
//! that stream side by side, and a gateway that answers late, in any order, or never.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::{ClientConfig, ClientConn, ClientEvent, reconnect_policy};
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{self, ChatHistory, ChatSend, Method, SessionRef, StreamEvent};
use exoclaw_proto::id::CallId;
use exoclaw_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};
use rpc_core::{CallError, Delivery, Instant, Limits, Machine as _, Refused};
use switchboard_testing::sim::{
    self, Bounds, Connections, ConnectionsOf, Effect, Lives, Opened, Outcome, Rng, ensure,
    random_lives,
};

const CLIENTS: usize = 2;
const IDLE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(30);
const TOKEN: &str = "a token that is long enough";
const MAX_CALLS: usize = 6;
const MAX_FRAMES: usize = 24;
const MAX_EVENTS: usize = 8;

/// What the gateway has done about a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Work {
    /// Tokens that it has sent.
    tokens: u64,
    /// It has ended the request, and this is how.
    end: Option<bool>,
}

/// A request in flight, as its client knows it.
#[derive(Debug)]
struct Call {
    number: u64,
    is_chat: bool,
    at: Instant,
    tokens: u64,
}

/// What is known of a connection.
#[derive(Default)]
struct Known {
    calls: BTreeMap<u64, CallId>,
    pending: HashMap<CallId, Call>,
    is_ready: bool,
    /// Requests that the gateway has yet to end.
    open: Vec<(RequestId, u64, bool)>,
}

type Connection = sim::Connection<ClientConn, ServerConn, Known>;

struct Gateway {
    conns: ConnectionsOf<Self>,
    accepted: [bool; CLIENTS],
    /// What has reached the gateway, by number.
    work: HashMap<u64, Work>,
    numbers: u64,
}

impl Gateway {
    fn call(&mut self, client: usize) -> Outcome {
        let (now, number) = (self.conns.now, self.numbers);
        let is_chat = self.conns.rng.chance(75);
        self.numbers += 1;
        let Some(Connection { line, own, .. }) = self.conns.acting(client) else {
            return Ok(());
        };
        let conn = &mut line.client.machine;
        let before = conn.in_flight();
        let asked = if is_chat {
            let content = number.to_string();
            conn.chat_send(&ChatSend::new("websocket", "user", content), now)
        } else {
            let session = SessionRef::new("websocket", "user");
            let limit = Some(number);
            let call = frame::Call::ChatHistory(ChatHistory { session, limit });
            conn.request(&call, now)
        };
        let Ok(id) = asked else {
            return ensure(conn.in_flight() == before, || {
                "a refused request is in flight".to_owned()
            });
        };
        own.calls.insert(number, id);
        let call = Call {
            number,
            is_chat,
            at: now,
            tokens: 0,
        };
        let is_new = own.pending.insert(id, call).is_none();
        ensure(is_new && before < MAX_CALLS, || {
            format!("{id:?} is one too many")
        })
    }

    fn cancel(&mut self, client: usize) {
        let roll = self.conns.rng.next_u64();
        // Steps that wait to be taken still come of a chat that is cancelled.
        let Some(Connection { line, own, .. }) = self.conns.acting(client) else {
            return;
        };
        let index = roll.checked_rem(own.calls.len() as u64);
        let call = index.and_then(|index| own.calls.iter().nth(index as usize));
        if let Some((&number, &id)) = call
            && line.client.machine.cancel(id)
        {
            own.forget(number);
            self.conns.tally.ended += 1;
        }
    }

    /// The gateway goes on with a request, perhaps not the oldest.
    fn progress(&mut self) {
        let Connections { rng, calm, .. } = &mut self.conns;
        let (roll, kind) = (rng.next_u64(), if *calm { 5 } else { rng.below(20) });
        let Some(Connection { line, own, .. }) = self.conns.any() else {
            return;
        };
        let Some(index) = roll.checked_rem(own.open.len() as u64) else {
            return;
        };
        let (id, number, is_chat) = own.open[index as usize];
        let work = self.work.entry(number).or_default();
        let server = &mut line.server.machine;
        let done = match kind {
            0 => {
                server.forget(id);
                Ok(())
            }
            _ if !is_chat && kind < 10 => end_work(work, true, server.reply(id, &number)),
            1 if work.tokens == 0 => end_work(work, false, server.fail(id, &RpcError::new("no"))),
            2 if is_chat => end_work(work, false, server.error(id, "provider error: x")),
            3..7 if is_chat => end_work(work, true, server.done(id)),
            _ if is_chat => {
                let sent = server.text(id, &format!("{number}:{}", work.tokens));
                work.tokens += u64::from(sent.is_ok());
                return;
            }
            _ => return,
        };
        if done.is_ok() {
            own.open.swap_remove(index as usize);
        }
    }
}

/// Notes how a request was ended, if it was.
fn end_work(work: &mut Work, well: bool, sent: Result<(), Refused>) -> Result<(), Refused> {
    if sent.is_ok() {
        work.end = Some(well);
    }
    sent
}

impl Known {
    fn forget(&mut self, number: u64) -> Option<Call> {
        self.pending.remove(&self.calls.remove(&number)?)
    }

    /// Tokens of a chat come in order, without gaps, and none after its end.
    fn receive(&mut self, id: CallId, event: &StreamEvent) -> Outcome {
        let call = self.pending.get_mut(&id);
        let call = call.ok_or_else(|| format!("{event:?} after the end"))?;
        let expected = format!("{}:{}", call.number, call.tokens);
        let is_next = matches!(event, StreamEvent::Text(text) if **text == *expected);
        call.tokens += 1;
        ensure(is_next, || format!("{event:?} instead of {expected}"))
    }
}

/// A request ends once, for a reason that fits; a chat that ends in order came whole.
fn end(
    conn: &mut Connection,
    id: CallId,
    result: &Result<(), CallError<RpcError>>,
    work: &HashMap<u64, Work>,
    now: Instant,
) -> Outcome {
    let number = conn.own.pending.get(&id).map(|call| call.number);
    let call = number.and_then(|number| conn.own.forget(number));
    let call = call.ok_or_else(|| format!("{id:?} ended twice"))?;
    let work = work.get(&call.number).copied();
    let is_whole = |well| {
        let work = work.unwrap_or_default();
        work.end == Some(well) && work.tokens == call.tokens
    };
    let (fits, delivery) = match result {
        Ok(()) => (is_whole(true), Delivery::Delivered),
        Err(CallError::Remote(_)) => (is_whole(false), Delivery::Delivered),
        Err(CallError::TimedOut { delivery }) => {
            let patience = if call.is_chat { IDLE } else { PATIENCE };
            (now >= call.at + patience, *delivery)
        }
        Err(CallError::Closed { reason, delivery }) => (conn.closes_with(reason), *delivery),
        Err(_) => (false, Delivery::Unknown),
    };
    let true_delivery = match delivery {
        Delivery::NotSent => work.is_none(),
        Delivery::Delivered => work.is_some(),
        Delivery::Unknown => true,
    };
    ensure(fits && true_delivery, || {
        format!("{call:?} ended with {result:?}, and the gateway: {work:?}")
    })
}

impl Lives for Gateway {
    type Client = ClientConn;
    type Server = ServerConn;
    type Own = Known;
    const GARBAGE: &'static [&'static str] = &[
        "",
        "{",
        "[1]",
        r#"{"ok":true,"version":"9"}"#,
        r#"{"id":"0","error":"parse error: x"}"#,
        r#"{"id":"0000000000000000","event":"done","data":null}"#,
        r#"{"id":"0000000000000000","result":1}"#,
        r#"{"id":7,"event":"text","data":[]}"#,
        r#"{"id":"7","method":"nothing","params":{}}"#,
    ];

    fn new(rng: Rng) -> Self {
        Self {
            conns: Connections::new(rng, CLIENTS, reconnect_policy()),
            accepted: [false; CLIENTS],
            work: HashMap::new(),
            numbers: 0,
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
            0..25 => self.call(client)?,
            25..29 => self.cancel(client),
            _ => self.progress(),
        }
        Ok(())
    }

    fn open(&mut self, client: usize) -> Opened<Self> {
        let limits = Limits {
            max_pending: MAX_CALLS,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..Limits::default()
        };
        let Connections { rng, now, calm, .. } = &mut self.conns;
        let is_wrong = !*calm && rng.chance(3);
        let config = ClientConfig {
            token: Some(if is_wrong { "wrong" } else { TOKEN }.into()),
            call_timeout: PATIENCE,
            chat_idle_timeout: Some(IDLE),
            limits: limits.clone(),
            ..ClientConfig::default()
        };
        let seed = rng.next_u64();
        let conn = if self.accepted[client] {
            ClientConn::again(config, seed, *now)
        } else {
            ClientConn::new(config, seed, *now)
        };
        let config = ServerConfig {
            extensions: Method::EXTENSIONS.to_vec(),
            in_order: rng.chance(30),
            max_requests: MAX_CALLS,
            limits,
            ..ServerConfig::default()
        };
        let server = ServerConn::new(config, Auth::token(TOKEN).unwrap(), *now);
        // Pings and a Close need no room, and the ends of requests none among the events.
        let frames = MAX_FRAMES + 3;
        (
            (conn, Bounds::new(frames, MAX_EVENTS + MAX_CALLS + 3)),
            (server, Bounds::new(frames, MAX_EVENTS + 2 * MAX_CALLS)),
            Known::default(),
        )
    }

    fn on_server_event(&mut self, conn: u64, event: ServerEvent) -> Outcome {
        let own = &mut self.conns.all.get_mut(&conn).unwrap().own;
        match event {
            ServerEvent::Request { id, call } => {
                let (number, is_chat) = match &call {
                    frame::Call::ChatSend(chat) => (chat.content.parse().ok(), true),
                    frame::Call::ChatHistory(history) => (history.limit, false),
                    _ => return Err(format!("nobody asked for {call:?}")),
                };
                let number = number.ok_or("a request without a number")?;
                let is_new = self.work.insert(number, Work::default()).is_none();
                ensure(is_new, || format!("{number} came twice"))?;
                own.open.push((id, number, is_chat));
            }
            ServerEvent::Closed(_) => own.open.clear(),
            _ => {}
        }
        Ok(())
    }

    fn on_client_event(&mut self, conn: u64, event: ClientEvent) -> Outcome<Effect> {
        let now = self.conns.now;
        let tally = &mut self.conns.tally;
        let conn = self.conns.all.get_mut(&conn).unwrap();
        match event {
            ClientEvent::Ready(_) => {
                conn.own.is_ready = true;
                self.accepted[conn.client] = true;
                return Ok(Effect::Ready);
            }
            ClientEvent::Chat { id, event } => conn.own.receive(id, &event)?,
            ClientEvent::ChatEnded { id, result } => {
                let frames = result.as_ref().map(|summary| summary.frames);
                if let (Ok(frames), Some(call)) = (frames, conn.own.pending.get(&id)) {
                    ensure(frames == call.tokens, || {
                        format!("{frames} counted: {call:?}")
                    })?;
                }
                tally.answered += u64::from(result.is_ok());
                tally.ended += 1;
                end(conn, id, &result.map(drop), &self.work, now)?;
            }
            ClientEvent::Reply { id, result } => {
                if let (Ok(answer), Some(call)) = (&result, conn.own.pending.get(&id)) {
                    let right = answer.get() == call.number.to_string();
                    ensure(right, || format!("{answer:?} answers {call:?}"))?;
                }
                tally.answered += u64::from(result.is_ok());
                tally.ended += 1;
                end(conn, id, &result.map(drop), &self.work, now)?;
            }
            ClientEvent::Closed(reason) => {
                ensure(conn.own.pending.is_empty(), || {
                    "requests never ended".to_owned()
                })?;
                return Ok(Effect::Closed(reason));
            }
            _ => {}
        }
        Ok(Effect::Nothing)
    }

    fn is_idle(&self, conn: u64) -> bool {
        let own = &self.conns.all[&conn].own;
        own.is_ready && own.pending.is_empty()
    }

    fn serve(&mut self) -> Outcome<bool> {
        (0..20).for_each(|_| self.progress());
        Ok(true)
    }

    /// Chats and requests are answered.
    fn check_works(&mut self) -> Outcome {
        let answered = self.conns.tally.answered;
        for client in 0..CLIENTS {
            for _ in 0..3 {
                self.call(client)?;
            }
        }
        self.serve_all()?;
        let all = self.conns.tally.answered == answered + 3 * CLIENTS as u64;
        ensure(all, || "not everything was answered".to_owned())
    }
}

#[test]
fn streams_arrive_in_order_and_end_once_under_random_faults() {
    random_lives::<Gateway>("exoclaw", 400);
}
