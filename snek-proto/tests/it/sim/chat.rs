//! Random lives of a chat: users whose lines are slow, jammed, cut and half open, and a server that
//! answers late, in any order, or never. What must hold for every call and every message.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use rpc_core::{CallError, CallId, CloseFrame, Delivery, Limits, Machine as _};
use snek_proto::client::{ClientConfig, ClientConn, ClientEvent, Warning, reconnect_policy};
use snek_proto::error::RpcError;
use snek_proto::frame::{self, Channel, Final, User};
use snek_proto::hub::{ConnId, Hub, HubConfig};
use snek_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};
use switchboard_testing::sim::{
    self, Bounds, Connections, ConnectionsOf, Effect, Lives, Opened, Outcome, Rng, ensure,
    random_lives,
};

const USERS: [&str; 3] = ["ann", "bob", "cid"];
/// Who is where: all in the first, two in the second.
const CHANNELS: [(&str, usize); 2] = [("all", 3), ("two", 2)];
const PATIENCE: Duration = Duration::from_secs(190);
const MAX_CALLS: usize = 6;
const MAX_FRAMES: usize = 16;
const MAX_EVENTS: usize = 8;

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

/// What is known of a connection.
#[derive(Default)]
struct Known {
    /// The calls in flight.
    calls: HashMap<CallId, Call>,
    is_ready: bool,
    /// What the server has sent of the channels and has not arrived yet.
    due: VecDeque<String>,
    has_received: bool,
    /// Early events that were dropped: those missed, and those admitted.
    missed: u64,
    admitted: u64,
    /// Requests that the server has yet to answer.
    open: Vec<(RequestId, Result<snek_proto::hub::HubAnswer, String>)>,
}

type Connection = sim::Connection<ClientConn, ServerConn, Known>;

struct Chat {
    conns: ConnectionsOf<Self>,
    hub: Hub,
    texts: u64,
    verdicts: HashMap<String, Verdict>,
    seen: HashSet<String>,
}

impl Chat {
    fn call(&mut self, user: usize) -> Outcome {
        let (now, text) = (self.conns.now, format!("text {}", self.texts));
        self.texts += 1;
        let channel = self.conns.rng.pick(&CHANNELS).unwrap().0;
        let kind = self.conns.rng.below(10);
        let Some(Connection { line, own, .. }) = self.conns.acting(user) else {
            return Ok(());
        };
        let conn = &mut line.client.machine;
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
                let is_new = own.calls.insert(id, call).is_none();
                ensure(is_new, || format!("{id:?} was given twice"))?;
                ensure(before < MAX_CALLS, || "too many calls".to_owned())
            }
            Err(_) => ensure(conn.in_flight() == before, || {
                "a refused call is in flight".to_owned()
            }),
        }
    }

    fn cancel(&mut self, user: usize) {
        let roll = self.conns.rng.next_u64();
        let Some(Connection { line, own, .. }) = self.conns.of(user) else {
            return;
        };
        let mut ids: Vec<(&str, CallId)> = (own.calls.iter())
            .map(|(id, call)| (&*call.text, *id))
            .collect();
        ids.sort_unstable_by_key(|(text, _)| *text);
        let index = roll.checked_rem(ids.len() as u64);
        if let Some(id) = index.map(|index| ids[index as usize].1)
            && line.client.machine.cancel(id)
        {
            own.calls.remove(&id);
            self.conns.tally.ended += 1;
        }
    }

    /// The server answers a request, perhaps not the oldest; now and then it forgets one.
    fn answer(&mut self) {
        let Connections { rng, calm, .. } = &mut self.conns;
        let (roll, forgets) = (rng.next_u64(), !*calm && rng.chance(5));
        let Some(Connection { line, own, .. }) = self.conns.any() else {
            return;
        };
        let Some(index) = roll.checked_rem(own.open.len() as u64) else {
            return;
        };
        let (id, answer) = own.open.swap_remove(index as usize);
        let server = &mut line.server.machine;
        if forgets {
            server.forget(id);
            return;
        }
        let sent = match &answer {
            Ok(answer) => server.reply(id, answer),
            Err(error) => server.fail(id, error),
        };
        if sent.is_err() {
            own.open.push((id, answer));
        }
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
        let (reach, sender) = (self.reach(), self.conns.all[&conn].client);
        let is_message = posted.is_some();
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
                self.spread(&reach, members, &format!("{channel}: {text}"))?;
            }
        }
        let answer = answer.map_err(|error| error.to_string());
        let Connection { line, own, .. } = self.conns.all.get_mut(&conn).unwrap();
        match answer {
            Ok(answer) if !is_message => drop(line.server.machine.reply(id, &answer)),
            answer => own.open.push((id, answer)),
        }
        Ok(())
    }

    /// The connections that the hub should know.
    fn reach(&self) -> Vec<u64> {
        let conns = self.conns.all.keys().copied();
        conns
            .filter(|conn| self.hub.user_of(ConnId(*conn)).is_some())
            .collect()
    }

    /// A message goes to every connection of every member, once.
    fn spread(&mut self, reach: &[u64], members: usize, text: &str) -> Outcome {
        let conns = &mut self.conns;
        let mut expected: HashSet<u64> = (reach.iter().copied())
            .filter(|conn| conns.all[conn].client < members)
            .collect();
        while let Some((conn, frame)) = self.hub.poll_transmit() {
            ensure(expected.remove(&conn.0), || {
                format!("{text} went to {conn:?}")
            })?;
            let Connection { line, own, .. } = conns.all.get_mut(&conn.0).unwrap();
            let server = &mut line.server.machine;
            match server.push(frame) {
                Ok(()) => own.due.push_back(text.to_owned()),
                Err(_) => server.close_with(CloseFrame::new(CloseFrame::POLICY, "slow"), conns.now),
            }
        }
        ensure(expected.is_empty(), || {
            format!("{text} did not go to {expected:?}")
        })
    }
}

impl Known {
    /// Messages come once, in the order of the server, without gaps. Only those from before the
    /// opening was done may be missing, and then it is reported.
    fn receive(&mut self, text: &str) -> Outcome {
        while let Some(next) = self.due.pop_front() {
            if next == text {
                self.has_received = true;
                return Ok(());
            }
            ensure(!self.has_received, || format!("{text} instead of {next}"))?;
            self.missed += 1;
        }
        Err(format!("{text} came again, or was never sent"))
    }
}

/// A call ends once, for a reason that fits.
fn end(
    conn: &mut Connection,
    id: CallId,
    result: &Result<(), CallError<RpcError>>,
    verdicts: &HashMap<String, Verdict>,
    now: Instant,
) -> Outcome {
    let call = conn.own.calls.remove(&id);
    let Call { text, at } = call.ok_or_else(|| format!("{id:?} ended twice"))?;
    let verdict = verdicts.get(&text).copied();
    let fits = match result {
        Ok(()) => verdict == Some(Verdict::Posted),
        Err(CallError::Remote(_)) => verdict == Some(Verdict::Refused),
        Err(CallError::TimedOut { .. }) => now >= at + PATIENCE,
        Err(CallError::Closed { reason, .. }) => conn.closes_with(reason),
        Err(_) => false,
    };
    let unsent = result.as_ref().err().map(CallError::delivery) == Some(Delivery::NotSent);
    ensure(fits && (!unsent || verdict.is_none()), || {
        format!("{text} ended with {result:?}, and the server: {verdict:?}")
    })
}

impl Lives for Chat {
    type Client = ClientConn;
    type Server = ServerConn;
    type Own = Known;
    const GARBAGE: &'static [&'static str] = &[
        "",
        "{",
        "[1]",
        r#"{"event":"message","message":null}"#,
        r#"{"event":"join","data":"x"}"#,
        r#"{"callId":"0000000000000000","success":true,"data":{}}"#,
        r#"{"callId":{},"success":"no","data":[]}"#,
        r#"{"method":"login","args":["a","b"],"callId":"1"}"#,
    ];

    fn new(rng: Rng) -> Self {
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
            conns: Connections::new(rng, USERS.len(), reconnect_policy()),
            hub,
            texts: 0,
            verdicts: HashMap::new(),
            seen: HashSet::new(),
        }
    }

    fn conns(&mut self) -> &mut ConnectionsOf<Self> {
        &mut self.conns
    }

    fn see(&self) -> &ConnectionsOf<Self> {
        &self.conns
    }

    fn act(&mut self, user: usize) -> Outcome {
        match self.conns.rng.below(62) {
            0..35 => self.call(user)?,
            35..40 => self.cancel(user),
            _ => self.answer(),
        }
        Ok(())
    }

    fn open(&mut self, user: usize) -> Opened<Self> {
        let limits = Limits {
            max_pending: MAX_CALLS,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..Limits::default()
        };
        let Connections { rng, now, .. } = &mut self.conns;
        let mut config = ClientConfig::new(USERS[user], "secret");
        config.limits = limits.clone();
        config.call_timeout = PATIENCE;
        let client = ClientConn::new(config, rng.next_u64(), *now);
        let config = ServerConfig {
            max_requests: MAX_CALLS,
            limits,
            ..ServerConfig::default()
        };
        let server = ServerConn::new(config, *now);
        // Pings and a Close need no room, and the ends of calls none among the events; what came
        // before the opening was done is given out at once.
        let frames = MAX_FRAMES + 3;
        (
            (client, Bounds::new(frames, 2 * MAX_EVENTS + MAX_CALLS + 3)),
            (server, Bounds::new(frames, MAX_EVENTS + MAX_CALLS + 1)),
            Known::default(),
        )
    }

    fn on_server_event(&mut self, conn: u64, event: ServerEvent) -> Outcome {
        let Connections { rng, calm, all, .. } = &mut self.conns;
        let Some(Connection {
            line, own, client, ..
        }) = all.get_mut(&conn)
        else {
            return Ok(());
        };
        let server = &mut line.server.machine;
        match event {
            ServerEvent::Login { id, .. } => {
                if !*calm && rng.chance(5) {
                    let _ = server.refuse_login(id, "not today");
                    return Ok(());
                }
                let name = USERS[*client];
                if server.accept_login(id, User::new(name, name)).is_ok() {
                    self.hub
                        .connect(ConnId(conn), name)
                        .map_err(|error| error.to_string())?;
                }
            }
            ServerEvent::Request { id, call } => self.on_request(conn, id, &call)?,
            ServerEvent::Closed(_) => {
                self.hub.disconnect(ConnId(conn));
                own.open.clear();
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
            ClientEvent::Ready(ready) => {
                conn.own.is_ready = true;
                let is_own = ready.user.username == USERS[conn.client];
                ensure(is_own, || format!("{ready:?}"))?;
                return Ok(Effect::Ready);
            }
            ClientEvent::Reply { id, result } => {
                tally.ended += 1;
                tally.answered += u64::from(result.is_ok());
                end(conn, id, &result.map(drop), &self.verdicts, now)?;
            }
            ClientEvent::Message(message) => {
                let text = format!("{}: {}", &*message.channel_uid, &*message.message);
                conn.own.receive(&text)?;
            }
            ClientEvent::Warning(Warning::EarlyEventsDropped { count }) => {
                conn.own.admitted += count;
            }
            ClientEvent::Closed(reason) => {
                ensure(conn.own.calls.is_empty(), || "calls never ended".to_owned())?;
                return Ok(Effect::Closed(reason));
            }
            _ => {}
        }
        Ok(Effect::Nothing)
    }

    fn check_ended(&self, Connection { own, .. }: &Connection) -> Outcome {
        ensure(own.admitted >= own.missed, || {
            format!("{} missed, {} admitted", own.missed, own.admitted)
        })
    }

    fn is_idle(&self, conn: u64) -> bool {
        let own = &self.conns.all[&conn].own;
        own.is_ready && own.calls.is_empty()
    }

    fn serve(&mut self) -> Outcome<bool> {
        while self.conns.all.values().any(|it| !it.own.open.is_empty()) {
            self.answer();
        }
        Ok(true)
    }

    /// A message of everyone reaches everyone.
    fn check_works(&mut self) -> Outcome {
        self.wait(Duration::from_secs(5))?;
        let (answered, now) = (self.conns.tally.answered, self.conns.now);
        for user in 0..USERS.len() {
            let text = format!("back {user}");
            let Connection { line, own, .. } = self.conns.of(user).unwrap();
            let conn = &mut line.client.machine;
            let id = conn.send_message("all", &text, Final::Yes, now);
            let id = id.map_err(|error| format!("{text}: {error}"))?;
            own.calls.insert(id, Call { text, at: now });
        }
        self.serve_all()?;
        self.wait(Duration::from_secs(5))?;
        ensure(self.conns.tally.answered == answered + 3, || {
            "not answered".to_owned()
        })?;
        for user in 0..USERS.len() {
            let due = &self.conns.of(user).unwrap().own.due;
            ensure(due.is_empty(), || format!("{due:?} never came"))?;
        }
        Ok(())
    }

    fn check_empty(&mut self) -> Outcome {
        let mut conns = 1..=self.conns.tally.lines;
        let known = conns.find(|conn| self.hub.user_of(ConnId(*conn)).is_some());
        ensure(known.is_none(), || {
            format!("the hub knows connection {known:?}")
        })
    }
}

#[test]
fn every_call_ends_once_and_all_get_the_same_under_random_faults() {
    random_lives::<Chat>("snek", 400);
}
