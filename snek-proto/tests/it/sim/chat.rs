//! Random lives of a chat: users whose lines are slow, jammed, cut and half open, and a server that
//! answers late, in any order, or never. What must hold for every call and every message.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use rpc_core::{CallError, CallId, CloseFrame, CloseReason, Delivery, Limits, Machine as _};
use snek_proto::client::{ClientConfig, ClientConn, ClientEvent, Warning, reconnect_policy};
use snek_proto::error::RpcError;
use snek_proto::frame::{self, Channel, Final, User};
use snek_proto::hub::{ConnId, Hub, HubConfig};
use snek_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};
use switchboard_testing::sim::{self, Bounds, Dialling, Line, Outcome, Rng, Tally, World, ensure};

const USERS: [&str; 3] = ["ann", "bob", "cid"];
/// Who is where: all in the first, two in the second.
const CHANNELS: [(&str, usize); 2] = [("all", 3), ("two", 2)];
const MINUTE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(190);
const MAX_CALLS: usize = 6;
const MAX_FRAMES: usize = 16;
const MAX_EVENTS: usize = 8;
const GARBAGE: [&str; 8] = [
    "",
    "{",
    "[1]",
    r#"{"event":"message","message":null}"#,
    r#"{"event":"join","data":"x"}"#,
    r#"{"callId":"0000000000000000","success":true,"data":{}}"#,
    r#"{"callId":{},"success":"no","data":[]}"#,
    r#"{"method":"login","args":["a","b"],"callId":"1"}"#,
];

/// What the server has done about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Posted,
    Refused,
}

struct Call {
    text: String,
    at: Instant,
}

/// One connection, from the first frame to the last.
struct Conn {
    line: Line<ClientConn, ServerConn>,
    user: usize,
    /// The calls in flight.
    calls: HashMap<CallId, Call>,
    /// How calls that the connection took with it have ended.
    ended_by: Option<CloseReason>,
    is_closed: bool,
    is_ready: bool,
    /// What the server has sent of the channels and has not arrived yet.
    due: VecDeque<String>,
    has_heard: bool,
    /// Early events that were dropped: those missed, and those admitted.
    missed: u64,
    admitted: u64,
    /// Requests that the server has yet to answer.
    open: Vec<(RequestId, Result<snek_proto::hub::HubAnswer, String>)>,
}

struct Chat {
    rng: Rng,
    now: Instant,
    hub: Hub,
    talks: BTreeMap<u64, Conn>,
    /// The connection of each user.
    current: [Option<u64>; 3],
    dialling: [Dialling; 3],
    texts: u64,
    verdicts: HashMap<String, Verdict>,
    seen: HashSet<String>,
    calm: bool,
    tally: Tally,
}

impl Chat {
    fn new(rng: Rng) -> Self {
        let now = Instant::now();
        let mut hub = Hub::new(HubConfig::default());
        for user in USERS {
            hub.add_user(User::new(user, user)).unwrap();
        }
        for (channel, members) in CHANNELS {
            hub.add_channel(Channel::new(channel, channel, None))
                .unwrap();
            for user in &USERS[..members] {
                hub.join(user, channel).unwrap();
            }
        }
        Self {
            rng,
            now,
            hub,
            talks: BTreeMap::new(),
            current: [None; 3],
            dialling: [(); 3].map(|()| Dialling::new(reconnect_policy(), now)),
            texts: 0,
            verdicts: HashMap::new(),
            seen: HashSet::new(),
            calm: false,
            tally: Tally::default(),
        }
    }

    fn step(&mut self) -> Outcome {
        let user = self.rng.below(3) as usize;
        match self.rng.below(100) {
            0..35 => self.call(user)?,
            35..40 => self.cancel(user),
            40..62 => self.answer(),
            62..76 => self.wait(Duration::from_millis(400))?,
            76..82 => self.wait(MINUTE)?,
            82..84 => self.sleep(),
            84..98 => self.fault(user),
            _ => self.close(user),
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

    fn talk(&mut self, user: usize) -> Option<&mut Conn> {
        self.talks.get_mut(&self.current[user]?)
    }

    fn call(&mut self, user: usize) -> Outcome {
        let (now, text) = (self.now, format!("text {}", self.texts));
        self.texts += 1;
        let channel = self.rng.pick(&CHANNELS).unwrap().0;
        let kind = self.rng.below(10);
        let Some(talk) = self.talk(user) else {
            return Ok(());
        };
        if talk.line.client.hangs {
            return Ok(());
        }
        let conn = &mut talk.line.client.machine;
        let is_final = if kind < 7 { Final::Yes } else { Final::No };
        if kind == 0 {
            // No one waits for the answer, and a text that was not sent is never seen.
            let _ = conn.notify_message(channel, &text, is_final);
            return Ok(());
        }
        let before = conn.in_flight();
        match conn.send_message(channel, &text, is_final, now) {
            Ok(id) => {
                let call = Call { text, at: now };
                let is_new = talk.calls.insert(id, call).is_none();
                ensure(is_new, || format!("{id:?} was given twice"))?;
                ensure(before < MAX_CALLS, || "too many calls".to_owned())
            }
            Err(_) => ensure(conn.in_flight() == before, || {
                "a refused call is in flight".to_owned()
            }),
        }
    }

    fn cancel(&mut self, user: usize) {
        let Some(talk) = self.talks.get_mut(&self.current[user].unwrap_or_default()) else {
            return;
        };
        let mut ids: Vec<(String, CallId)> = (talk.calls.iter())
            .map(|(id, call)| (call.text.clone(), *id))
            .collect();
        ids.sort_by(|one, other| one.0.cmp(&other.0));
        if let Some((_, id)) = self.rng.pick(&ids)
            && talk.line.client.machine.cancel(*id)
        {
            talk.calls.remove(id);
            self.tally.ended += 1;
        }
    }

    /// The server answers a request, perhaps not the oldest; now and then it forgets one.
    fn answer(&mut self) {
        let conns: Vec<u64> = self.talks.keys().copied().collect();
        let Some(talk) = (self.rng.pick(&conns)).and_then(|conn| self.talks.get_mut(conn)) else {
            return;
        };
        if talk.open.is_empty() {
            return;
        }
        let index = self.rng.below(talk.open.len() as u64) as usize;
        let (id, answer) = talk.open.swap_remove(index);
        let server = &mut talk.line.server.machine;
        if !self.calm && self.rng.chance(5) {
            server.forget(id);
            return;
        }
        let sent = match &answer {
            Ok(answer) => server.reply(id, answer),
            Err(error) => server.fail(id, error),
        };
        if sent.is_err() {
            talk.open.push((id, answer));
        }
    }

    fn fault(&mut self, user: usize) {
        let talk = self.talks.get_mut(&self.current[user].unwrap_or_default());
        if let Some(talk) = talk {
            self.tally.faults += 1;
            talk.line.suffer(&GARBAGE, self.now, &mut self.rng);
        }
    }

    fn close(&mut self, user: usize) {
        let (now, by_client) = (self.now, self.rng.chance(50));
        if let Some(talk) = self.talk(user) {
            if by_client {
                talk.line.client.machine.close(now);
            } else {
                let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "restart");
                talk.line.server.machine.close_with(frame, now);
            }
        }
    }

    fn dial(&mut self, user: usize) -> bool {
        let failing = if self.calm { 0 } else { 20 };
        if !self.dialling[user].dials(failing, self.now, &mut self.rng) {
            return false;
        }
        let limits = Limits {
            max_pending: MAX_CALLS,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..Limits::default()
        };
        let mut config = ClientConfig::new(USERS[user], "secret");
        config.limits = limits.clone();
        config.call_timeout = PATIENCE;
        let client = ClientConn::new(config, self.rng.next_u64(), self.now);
        let config = ServerConfig {
            max_requests: MAX_CALLS,
            limits,
            ..ServerConfig::default()
        };
        let server = ServerConn::new(config, self.now);
        self.tally.lines += 1;
        // Pings and a Close need no room, and the ends of calls none among the events; what came
        // before the opening was done is given out at once.
        let most = MAX_FRAMES + 3;
        let line = Line::new(self.tally.lines, client, server).with_bounds(
            Bounds::new(most, 2 * MAX_EVENTS + MAX_CALLS + 3),
            Bounds::new(most, MAX_EVENTS + MAX_CALLS + 1),
        );
        self.talks.insert(self.tally.lines, Conn::new(line, user));
        self.current[user] = Some(self.tally.lines);
        true
    }

    fn on_server_event(&mut self, conn: u64, event: ServerEvent) -> Outcome {
        let Some(talk) = self.talks.get_mut(&conn) else {
            return Ok(());
        };
        let server = &mut talk.line.server.machine;
        match event {
            ServerEvent::Login { id, .. } => {
                if !self.calm && self.rng.chance(5) {
                    let _ = server.refuse_login(id, "not today");
                    return Ok(());
                }
                let name = USERS[talk.user];
                if server.accept_login(id, User::new(name, name)).is_ok() {
                    self.hub
                        .connect(ConnId(conn), name)
                        .map_err(|error| error.to_string())?;
                }
            }
            ServerEvent::Request { id, call } => self.on_request(conn, id, &call)?,
            ServerEvent::Closed(_) => {
                self.hub.disconnect(ConnId(conn));
                talk.open.clear();
            }
            _ => {}
        }
        Ok(())
    }

    fn on_request(&mut self, conn: u64, id: RequestId, call: &frame::Call) -> Outcome {
        let mut posted = None;
        if let frame::Call::SendMessage {
            channel_uid,
            message,
            ..
        } = call
        {
            let text = message.as_str().to_owned();
            ensure(self.seen.insert(text.clone()), || {
                format!("{text} came twice")
            })?;
            posted = Some((channel_uid.as_str().to_owned(), text));
        }
        let answer = self.hub.handle(ConnId(conn), call);
        let (reach, sender) = (self.reach(), self.talks[&conn].user);
        if let Some((channel, text)) = posted {
            let members = CHANNELS.iter().find(|it| it.0 == channel).unwrap().1;
            let verdict = if sender < members {
                Verdict::Posted
            } else {
                Verdict::Refused
            };
            ensure(answer.is_ok() == (verdict == Verdict::Posted), || {
                format!("{text}: {answer:?}")
            })?;
            self.verdicts.insert(text.clone(), verdict);
            if verdict == Verdict::Posted {
                self.spread(&reach[..], members, &format!("{channel}: {text}"))?;
            }
        }
        let answer = answer.map_err(|error| error.to_string());
        let talk = self.talks.get_mut(&conn).unwrap();
        let server = &mut talk.line.server.machine;
        match answer {
            Ok(answer) if !matches!(call, frame::Call::SendMessage { .. }) => {
                let _ = server.reply(id, &answer);
            }
            answer => talk.open.push((id, answer)),
        }
        Ok(())
    }

    /// The connections that the hub should know.
    fn reach(&self) -> Vec<u64> {
        let conns = self.talks.keys().copied();
        conns
            .filter(|conn| self.hub.user_of(ConnId(*conn)).is_some())
            .collect()
    }

    /// A message goes to every connection of every member, once.
    fn spread(&mut self, reach: &[u64], members: usize, text: &str) -> Outcome {
        let mut expected: HashSet<u64> = (reach.iter().copied())
            .filter(|conn| self.talks[conn].user < members)
            .collect();
        while let Some((conn, frame)) = self.hub.poll_transmit() {
            ensure(expected.remove(&conn.0), || {
                format!("{text} went to {conn:?}")
            })?;
            let talk = self.talks.get_mut(&conn.0).unwrap();
            let server = &mut talk.line.server.machine;
            match server.push(frame) {
                Ok(()) => talk.due.push_back(text.to_owned()),
                Err(_) => server.close_with(CloseFrame::new(CloseFrame::POLICY, "slow"), self.now),
            }
        }
        ensure(expected.is_empty(), || {
            format!("{text} did not go to {expected:?}")
        })
    }

    /// Everything works again, everyone comes back, and a message reaches all of them.
    fn recover(&mut self) -> Outcome {
        self.calm = true;
        for talk in self.talks.values_mut() {
            talk.line.heal();
        }
        // What is under way arrives.
        self.now = sim::advance(self, self.now, Duration::from_secs(5))?;
        self.serve_for(10 * MINUTE)?;
        for (user, name) in USERS.iter().enumerate() {
            ensure(self.is_well(user), || format!("{name} is not back"))?;
        }
        let (answered, now) = (self.tally.answered, self.now);
        for user in 0..USERS.len() {
            let text = format!("back {user}");
            let talk = self.talk(user).unwrap();
            let sent = talk
                .line
                .client
                .machine
                .send_message("all", &text, Final::Yes, now);
            let id = sent.map_err(|error| format!("{text}: {error}"))?;
            talk.calls.insert(id, Call { text, at: now });
        }
        self.serve_for(MINUTE)?;
        ensure(self.tally.answered == answered + 3, || {
            "not answered".to_owned()
        })?;
        for user in 0..USERS.len() {
            let talk = self.talk(user).unwrap();
            ensure(talk.due.is_empty(), || format!("{:?} never came", talk.due))?;
        }
        Ok(())
    }

    /// Whether a user is back, on a line that is whole, with nothing to wait for.
    fn is_well(&self, user: usize) -> bool {
        let talk = self.current[user].map(|conn| &self.talks[&conn]);
        talk.is_some_and(|it| it.is_ready && it.calls.is_empty() && it.line.is_whole())
    }

    fn serve_for(&mut self, time: Duration) -> Outcome {
        let until = self.now + time;
        while self.now < until {
            self.now = sim::advance(self, self.now, Duration::from_secs(1))?;
            while self.talks.values().any(|talk| !talk.open.is_empty()) {
                self.answer();
            }
            if (0..USERS.len()).all(|user| self.is_well(user)) {
                break;
            }
        }
        self.now = sim::advance(self, self.now, Duration::from_secs(5))?;
        Ok(())
    }

    /// The server goes away; nothing is left.
    fn shut_down(&mut self) -> Outcome {
        let now = self.now;
        for talk in self.talks.values_mut() {
            talk.line.server.machine.close(now);
        }
        sim::settle(self, now)?;
        ensure(self.talks.is_empty(), || "connections are left".to_owned())?;
        ensure(self.reach().is_empty(), || {
            "the hub knows connections".to_owned()
        })
    }
}

impl Conn {
    fn new(line: Line<ClientConn, ServerConn>, user: usize) -> Self {
        Self {
            line,
            user,
            calls: HashMap::new(),
            ended_by: None,
            is_closed: false,
            is_ready: false,
            due: VecDeque::new(),
            has_heard: false,
            missed: 0,
            admitted: 0,
            open: Vec::new(),
        }
    }

    /// Messages come once, in the order of the server, without gaps. Only those from before the
    /// opening was done may be missing, and then it is said.
    fn hear(&mut self, text: &str) -> Outcome {
        while let Some(next) = self.due.pop_front() {
            if next == text {
                self.has_heard = true;
                return Ok(());
            }
            ensure(!self.has_heard, || {
                format!("heard {text} instead of {next}")
            })?;
            self.missed += 1;
        }
        Err(format!("{text} came again, or was never sent"))
    }

    /// A call ends once, for a reason that fits.
    fn end(
        &mut self,
        id: CallId,
        result: &Result<(), CallError<RpcError>>,
        verdict: impl Fn(&str) -> Option<Verdict>,
        now: Instant,
    ) -> Outcome {
        let call = self.calls.remove(&id);
        let Call { text, at } = call.ok_or_else(|| format!("{id:?} ended twice"))?;
        let verdict = verdict(&text);
        let fits = match result {
            Ok(()) => verdict == Some(Verdict::Posted),
            Err(CallError::Remote(_)) => verdict == Some(Verdict::Refused),
            Err(CallError::TimedOut { .. }) => now >= at + PATIENCE,
            Err(CallError::Closed { reason, .. }) => {
                let first = self.ended_by.get_or_insert_with(|| reason.clone());
                first == reason
            }
            Err(_) => false,
        };
        let sent = result.is_ok()
            || result
                .as_ref()
                .is_err_and(|error| error.delivery() != Delivery::NotSent);
        ensure(fits && (sent || verdict.is_none()), || {
            format!("{text} ended with {result:?}, and the server: {verdict:?}")
        })
    }
}

impl World for Chat {
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
        for user in 0..USERS.len() {
            active |= self.dial(user);
        }
        let conns: Vec<u64> = self.talks.keys().copied().collect();
        for conn in conns {
            let talk = self.talks.get_mut(&conn).unwrap();
            active |= talk.line.settle(now)?;
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
                ensure(talk.admitted >= talk.missed, || {
                    format!("{} missed, {} admitted", talk.missed, talk.admitted)
                })?;
                self.tally.frames += talk.line.frames();
                self.talks.remove(&conn);
            }
        }
        Ok(active)
    }
}

impl Chat {
    fn on_client_event(&mut self, conn: u64, event: ClientEvent) -> Outcome {
        let talk = self.talks.get_mut(&conn).unwrap();
        ensure(!talk.is_closed, || format!("{event:?} after the end"))?;
        let user = talk.user;
        match event {
            ClientEvent::Ready(ready) => {
                talk.is_ready = true;
                ensure(ready.user.username == USERS[user], || format!("{ready:?}"))?;
                self.dialling[user].ready();
            }
            ClientEvent::Reply { id, result } => {
                self.tally.ended += 1;
                self.tally.answered += u64::from(result.is_ok());
                let verdicts = &self.verdicts;
                talk.end(
                    id,
                    &result.map(drop),
                    |text| verdicts.get(text).copied(),
                    self.now,
                )?;
            }
            ClientEvent::Message(message) => {
                let text = format!("{}: {}", &*message.channel_uid, &*message.message);
                talk.hear(&text)?;
            }
            ClientEvent::Warning(Warning::EarlyEventsDropped { count }) => talk.admitted += count,
            ClientEvent::Closed(reason) => {
                talk.is_closed = true;
                ensure(talk.calls.is_empty(), || "calls never ended".to_owned())?;
                let told = talk.ended_by.as_ref().is_none_or(|it| *it == reason);
                ensure(told, || {
                    format!("{reason:?} is not what the calls were told")
                })?;
                self.current[user] = None;
                self.dialling[user].lost(reason.retry(), self.now, &mut self.rng);
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn every_call_ends_once_and_all_get_the_same_under_random_faults() {
    sim::lifecycles("snek", 400, |rng, tally| {
        let mut chat = Chat::new(rng.clone());
        let steps = 20 + rng.below(120);
        for _ in 0..steps {
            chat.step()?;
        }
        chat.recover()?;
        chat.shut_down()?;
        *tally += chat.tally;
        Ok(())
    });
}
