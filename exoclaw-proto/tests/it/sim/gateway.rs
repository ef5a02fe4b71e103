//! Random lives of a gateway: clients whose lines are slow, jammed, cut and half open, with chats
//! that stream side by side, and a gateway that answers late, in any order, or never.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::{ClientConfig, ClientConn, ClientEvent, reconnect_policy};
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{self, ChatHistory, ChatSend, Method, SessionRef, StreamEvent};
use exoclaw_proto::id::CallId;
use exoclaw_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};
use rpc_core::{CallError, CloseFrame, CloseReason, Delivery, Limits, Machine as _, Refused};
use switchboard_testing::sim::{self, Bounds, Dialling, Line, Outcome, Rng, Tally, World, ensure};

const CLIENTS: usize = 2;
const MINUTE: Duration = Duration::from_secs(60);
const IDLE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(30);
const TOKEN: &str = "a token that is long enough";
const MAX_CALLS: usize = 6;
const MAX_FRAMES: usize = 24;
const MAX_EVENTS: usize = 8;
const GARBAGE: [&str; 9] = [
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

/// One connection, from the first frame to the last.
struct Connection {
    line: Line<ClientConn, ServerConn>,
    client: usize,
    calls: BTreeMap<u64, CallId>,
    pending: HashMap<CallId, Call>,
    ended_by: Option<CloseReason>,
    is_ready: bool,
    is_closed: bool,
    /// Requests that the gateway has yet to end.
    open: Vec<(RequestId, u64, bool)>,
}

struct Gateway {
    rng: Rng,
    now: Instant,
    talks: BTreeMap<u64, Connection>,
    /// The connection of each client.
    current: [Option<u64>; CLIENTS],
    dialling: [Dialling; CLIENTS],
    let_in: [bool; CLIENTS],
    /// What has reached the gateway, by number.
    work: HashMap<u64, Work>,
    numbers: u64,
    calm: bool,
    tally: Tally,
}

impl Gateway {
    fn new(rng: Rng) -> Self {
        let now = Instant::now();
        Self {
            rng,
            now,
            talks: BTreeMap::new(),
            current: [None; CLIENTS],
            dialling: [(); CLIENTS].map(|()| Dialling::new(reconnect_policy(), now)),
            let_in: [false; CLIENTS],
            work: HashMap::new(),
            numbers: 0,
            calm: false,
            tally: Tally::default(),
        }
    }

    fn step(&mut self) -> Outcome {
        let client = self.rng.below(CLIENTS as u64) as usize;
        match self.rng.below(100) {
            0..25 => self.call(client)?,
            25..29 => self.cancel(client),
            29..65 => self.serve(),
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

    fn talk(&mut self, client: usize) -> Option<&mut Connection> {
        self.talks.get_mut(&self.current[client]?)
    }

    fn call(&mut self, client: usize) -> Outcome {
        let (now, number) = (self.now, self.numbers);
        let is_chat = self.rng.chance(75);
        self.numbers += 1;
        let Some(talk) = self.talk(client).filter(|talk| !talk.line.client.hangs) else {
            return Ok(());
        };
        let conn = &mut talk.line.client.machine;
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
        talk.calls.insert(number, id);
        let call = Call {
            number,
            is_chat,
            at: now,
            tokens: 0,
        };
        let is_new = talk.pending.insert(id, call).is_none();
        ensure(is_new && before < MAX_CALLS, || {
            format!("{id:?} is one too many")
        })
    }

    fn cancel(&mut self, client: usize) {
        let Some(talk) = self
            .talks
            .get_mut(&self.current[client].unwrap_or_default())
        else {
            return;
        };
        // Steps that wait to be taken are still told of a chat that is cancelled.
        if talk.line.client.hangs {
            return;
        }
        let numbers: Vec<u64> = talk.calls.keys().copied().collect();
        if let Some(number) = self.rng.pick(&numbers)
            && talk.line.client.machine.cancel(talk.calls[number])
        {
            talk.forget(*number);
            self.tally.ended += 1;
        }
    }

    /// The gateway goes on with a request, perhaps not the oldest.
    fn serve(&mut self) {
        let conns: Vec<u64> = self.talks.keys().copied().collect();
        let picked = self.rng.pick(&conns).copied();
        if let Some(talk) = picked.and_then(|conn| self.talks.get_mut(&conn))
            && !talk.open.is_empty()
        {
            let index = self.rng.below(talk.open.len() as u64) as usize;
            let (id, number, is_chat) = talk.open[index];
            let work = self.work.entry(number).or_default();
            let server = &mut talk.line.server.machine;
            let kind = if self.calm { 5 } else { self.rng.below(20) };
            let done = match kind {
                0 => {
                    server.forget(id);
                    Ok(())
                }
                _ if !is_chat && kind < 10 => end(work, true, server.reply(id, &number)),
                1 if work.tokens == 0 => end(work, false, server.fail(id, &RpcError::new("no"))),
                2 if is_chat => end(work, false, server.error(id, "provider error: x")),
                3..7 if is_chat => end(work, true, server.done(id)),
                _ if is_chat => {
                    let sent = server.text(id, &format!("{number}:{}", work.tokens));
                    work.tokens += u64::from(sent.is_ok());
                    return;
                }
                _ => return,
            };
            if done.is_ok() {
                talk.open.swap_remove(index);
            }
        }
    }

    fn fault(&mut self, client: usize) {
        let talk = self
            .talks
            .get_mut(&self.current[client].unwrap_or_default());
        if let Some(talk) = talk {
            self.tally.faults += 1;
            talk.line.suffer(&GARBAGE, self.now, &mut self.rng);
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
        let is_wrong = !self.calm && self.rng.chance(3);
        let config = ClientConfig {
            token: Some(if is_wrong { "wrong" } else { TOKEN }.into()),
            call_timeout: PATIENCE,
            chat_idle_timeout: Some(IDLE),
            limits: limits.clone(),
            ..ClientConfig::default()
        };
        let seed = self.rng.next_u64();
        let conn = if self.let_in[client] {
            ClientConn::again(config, seed, self.now)
        } else {
            ClientConn::new(config, seed, self.now)
        };
        let config = ServerConfig {
            extensions: Method::EXTENSIONS.to_vec(),
            in_order: self.rng.chance(30),
            max_requests: MAX_CALLS,
            limits,
            ..ServerConfig::default()
        };
        let auth = Auth::token(TOKEN).unwrap();
        let server = ServerConn::new(config, auth, self.now);
        self.tally.lines += 1;
        // Pings and a Close need no room, and the ends of requests none among the events.
        let line = Line::new(self.tally.lines, conn, server).with_bounds(
            Bounds::new(MAX_FRAMES + 3, MAX_EVENTS + MAX_CALLS + 3),
            Bounds::new(MAX_FRAMES + 3, MAX_EVENTS + 2 * MAX_CALLS),
        );
        self.talks
            .insert(self.tally.lines, Connection::new(line, client));
        self.current[client] = Some(self.tally.lines);
        true
    }

    fn on_server_event(&mut self, conn: u64, event: ServerEvent) -> Outcome {
        let talk = self.talks.get_mut(&conn).unwrap();
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
                talk.open.push((id, number, is_chat));
            }
            ServerEvent::Closed(_) => talk.open.clear(),
            _ => {}
        }
        Ok(())
    }

    fn on_client_event(&mut self, conn: u64, event: ClientEvent) -> Outcome {
        let talk = self.talks.get_mut(&conn).unwrap();
        ensure(!talk.is_closed, || format!("{event:?} after the end"))?;
        match event {
            ClientEvent::Ready(_) => {
                talk.is_ready = true;
                self.let_in[talk.client] = true;
                self.dialling[talk.client].ready();
            }
            ClientEvent::Chat { id, event } => talk.hear(id, &event)?,
            ClientEvent::ChatEnded { id, result } => {
                let frames = result.as_ref().map(|summary| summary.frames);
                if let (Ok(frames), Some(call)) = (frames, talk.pending.get(&id)) {
                    ensure(frames == call.tokens, || {
                        format!("{frames} counted: {call:?}")
                    })?;
                }
                self.tally.answered += u64::from(result.is_ok());
                self.tally.ended += 1;
                talk.end(id, &result.map(drop), &self.work, self.now)?;
            }
            ClientEvent::Reply { id, result } => {
                if let (Ok(answer), Some(call)) = (&result, talk.pending.get(&id)) {
                    let right = answer.get() == call.number.to_string();
                    ensure(right, || format!("{answer:?} answers {call:?}"))?;
                }
                self.tally.answered += u64::from(result.is_ok());
                self.tally.ended += 1;
                talk.end(id, &result.map(drop), &self.work, self.now)?;
            }
            ClientEvent::Closed(reason) => {
                talk.is_closed = true;
                ensure(talk.pending.is_empty(), || {
                    "requests never ended".to_owned()
                })?;
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
        talk.is_some_and(|it| it.is_ready && it.pending.is_empty() && it.line.is_whole())
    }

    /// Everything works again: everyone comes back, and chats and requests are answered.
    fn recover(&mut self) -> Outcome {
        self.calm = true;
        for talk in self.talks.values_mut() {
            talk.line.heal();
        }
        // What is under way arrives.
        self.now = sim::advance(self, self.now, Duration::from_secs(5))?;
        self.serve_all()?;
        for client in 0..CLIENTS {
            ensure(self.is_well(client), || format!("{client} is not back"))?;
        }
        let (answered, mut asked) = (self.tally.answered, 0);
        for client in 0..CLIENTS {
            for _ in 0..3 {
                self.call(client)?;
            }
            asked += self.talk(client).unwrap().pending.len() as u64;
        }
        self.serve_all()?;
        let all = self.tally.answered == answered + asked && asked == 3 * CLIENTS as u64;
        ensure(all, || "not everything was answered".to_owned())
    }

    fn serve_all(&mut self) -> Outcome {
        for _ in 0..600 {
            self.now = sim::advance(self, self.now, Duration::from_secs(1))?;
            for _ in 0..20 {
                self.serve();
            }
            if (0..CLIENTS).all(|client| self.is_well(client)) {
                break;
            }
        }
        Ok(())
    }

    /// The gateway goes away; nothing is left.
    fn shut_down(&mut self) -> Outcome {
        for talk in self.talks.values_mut() {
            talk.line.server.machine.close(self.now);
        }
        sim::settle(self, self.now)?;
        ensure(self.talks.is_empty(), || "connections are left".to_owned())
    }
}

/// Notes how a request was ended, if it was.
fn end(work: &mut Work, well: bool, sent: Result<(), Refused>) -> Result<(), Refused> {
    if sent.is_ok() {
        work.end = Some(well);
    }
    sent
}

impl Connection {
    fn new(line: Line<ClientConn, ServerConn>, client: usize) -> Self {
        Self {
            line,
            client,
            calls: BTreeMap::new(),
            pending: HashMap::new(),
            ended_by: None,
            is_ready: false,
            is_closed: false,
            open: Vec::new(),
        }
    }

    fn forget(&mut self, number: u64) -> Option<Call> {
        self.pending.remove(&self.calls.remove(&number)?)
    }

    /// Tokens of a chat come in order, without gaps, and none after its end.
    fn hear(&mut self, id: CallId, event: &StreamEvent) -> Outcome {
        let call = self.pending.get_mut(&id);
        let call = call.ok_or_else(|| format!("{event:?} after the end"))?;
        let expected = format!("{}:{}", call.number, call.tokens);
        let is_next = matches!(event, StreamEvent::Text(text) if **text == *expected);
        call.tokens += 1;
        ensure(is_next, || format!("{event:?} instead of {expected}"))
    }

    /// A request ends once, for a reason that fits; a chat that ends in order was heard whole.
    fn end(
        &mut self,
        id: CallId,
        result: &Result<(), CallError<RpcError>>,
        work: &HashMap<u64, Work>,
        now: Instant,
    ) -> Outcome {
        let number = self.pending.get(&id).map(|call| call.number);
        let call = number.and_then(|number| self.forget(number));
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
            Err(CallError::Closed { reason, delivery }) => {
                let first = self.ended_by.get_or_insert_with(|| reason.clone());
                (first == reason, *delivery)
            }
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
}

impl World for Gateway {
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
                ensure(talk.is_closed, || "closed, and nobody was told".to_owned())?;
                self.tally.frames += talk.line.frames();
                self.talks.remove(&conn);
            }
        }
        Ok(active)
    }
}

#[test]
fn streams_arrive_in_order_and_end_once_under_random_faults() {
    sim::lifecycles("exoclaw", 400, |rng, tally| {
        let mut gateway = Gateway::new(rng.clone());
        let steps = 20 + rng.below(120);
        for _ in 0..steps {
            gateway.step()?;
        }
        gateway.recover()?;
        gateway.shut_down()?;
        *tally += gateway.tally;
        Ok(())
    });
}
