//! Random lives of a host and its users: lines are slow, jammed, cut and half open, agents and the
//! storage fail, and the host is killed.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use connectonion_proto::Json;
use connectonion_proto::client::{
    ClientConfig, ClientConn, ClientEvent, ClientState, reconnect_policy,
};
use connectonion_proto::frame::{Answer, Input, Response};
use connectonion_proto::internals::{ConnId, ConnectRequest, Reply};
use connectonion_proto::net::Prompt;
use connectonion_proto::server::{ServerConfig, ServerConn, ServerEvent};
use rpc_core::{CloseFrame, Limits, Machine as _, Refused};
use switchboard_testing::sim::{self, Bounds, Dialling, Line, Outcome, Rng, Tally, World, ensure};

use crate::sim::host::{Host, OWNER, Verdict};
use crate::sim::user::User;

/// The first two users share a session.
const SESSIONS: [&str; 3] = ["s-0", "s-0", "s-1"];
const MINUTE: Duration = Duration::from_secs(60);
const MAX_CALLS: usize = 4;
const MAX_FRAMES: usize = 32;
const MAX_EVENTS: usize = 16;
const GARBAGE: [&str; 6] = [
    "",
    "{",
    "[1]",
    r#"{"type":"NONSENSE"}"#,
    r#"{"type":"PONG"}"#,
    r#"{"type":"PING"}"#,
];

/// One connection, from the first frame to the last.
struct Connection {
    line: Line<ClientConn, ServerConn>,
    user: usize,
    is_closed: bool,
    /// Its host is alive, and knows it.
    is_seated: bool,
    /// What the host may have to send has been looked at.
    is_drained: bool,
    /// The prompt that waits for a verdict.
    asked: Option<String>,
}

struct Life {
    rng: Rng,
    now: Instant,
    host: Host,
    users: Vec<User>,
    talks: BTreeMap<u64, Connection>,
    /// The connection of each user.
    current: [Option<u64>; 3],
    dialling: [Dialling; 3],
    texts: u64,
    /// Prompts that have reached a host.
    arrived: HashSet<String>,
    calm: bool,
    tally: Tally,
}

impl Life {
    fn new(rng: Rng) -> Self {
        let now = Instant::now();
        let alone = |session| SESSIONS.iter().filter(|it| **it == session).count() == 1;
        Self {
            rng,
            now,
            host: Host::new(now),
            users: SESSIONS.map(|it| User::new(it, alone(it))).into(),
            talks: BTreeMap::new(),
            current: [None; 3],
            dialling: [(); 3].map(|()| Dialling::new(reconnect_policy(), now)),
            texts: 0,
            arrived: HashSet::new(),
            calm: false,
            tally: Tally::default(),
        }
    }

    fn step(&mut self) -> Outcome {
        let user = self.rng.below(3) as usize;
        match self.rng.below(200) {
            0..26 => self.input(user)?,
            26..34 => self.answer(user),
            34..36 => self.interrupt(user),
            36..76 => self.store(),
            76..126 => self.host.work(self.now, &mut self.rng),
            126..154 => self.wait(Duration::from_millis(400))?,
            154..166 => self.wait(MINUTE)?,
            166..169 => self.sleep(),
            169..196 => self.fault(user),
            196..199 => self.close(user),
            _ => self.kill(),
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
        self.now += self.rng.duration(70 * MINUTE);
    }

    /// The machine of a user that does something, and the user.
    fn acting(&mut self, user: usize) -> Option<(&mut ClientConn, &mut User)> {
        let talk = self.talks.get_mut(&self.current[user]?)?;
        if talk.line.client.hangs {
            return None;
        }
        Some((&mut talk.line.client.machine, &mut self.users[user]))
    }

    fn input(&mut self, user: usize) -> Outcome {
        let (now, text) = (self.now, format!("prompt {}.", self.texts));
        self.texts += 1;
        let Some((conn, user)) = self.acting(user) else {
            return Ok(());
        };
        let before = conn.in_flight();
        if let Ok(id) = conn.input(&Input::new(text.as_str()), now) {
            user.prompts.push(text.clone());
            let again = user.calls.insert(id, text);
            ensure(again.is_none(), || format!("{id:?} was given twice"))
        } else {
            ensure(conn.in_flight() == before, || {
                "a refused prompt is under way".to_owned()
            })
        }
    }

    /// A user answers a question, or sends what could not leave before.
    fn answer(&mut self, user: usize) {
        let now = self.now;
        let Some((conn, user)) = self.acting(user) else {
            return;
        };
        if let Some(question) = user.questions.pop() {
            let yes = Json::of("yes").unwrap();
            let response = Response::new(question.as_str(), Answer::AskUser(yes));
            user.client.respond(response).unwrap();
        }
        user.client.send_answers(conn, now);
    }

    fn interrupt(&mut self, user: usize) {
        let now = self.now;
        if let Some((conn, _)) = self.acting(user) {
            let _ = conn.interrupt(now);
        }
    }

    fn store(&mut self) {
        let fails = self.rng.chance(3);
        self.tally.faults += u64::from(fails);
        self.host.store_one(fails, self.now);
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
        let talk = self.talks.get_mut(&self.current[user].unwrap_or_default());
        if let Some(talk) = talk {
            if by_client {
                talk.line.client.machine.close(now);
            } else {
                let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "restart");
                talk.line.server.machine.close_with(frame, now);
            }
        }
    }

    /// The host dies with all its ends of the lines.
    fn kill(&mut self) {
        self.tally.faults += 1;
        self.host.kill(self.now, &mut self.rng);
        for talk in self.talks.values_mut() {
            talk.is_seated = false;
            talk.asked = None;
            let learns = self
                .rng
                .chance(90)
                .then(|| self.now + self.rng.duration(MINUTE));
            talk.line.cut(learns, Some(self.now));
        }
    }

    fn dial(&mut self, user: usize) -> bool {
        let failing = if self.calm { 0 } else { 20 };
        if !self.dialling[user].dials(failing, self.now, &mut self.rng) {
            return false;
        }
        let limits = |limits: Limits| Limits {
            max_pending: MAX_CALLS,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..limits
        };
        let mut config = ClientConfig::default();
        config.limits = limits(config.limits);
        let connect = self.users[user].connect();
        let seed = self.rng.next_u64();
        let conn = ClientConn::new(config, &connect, seed, self.now);
        let mut config = ServerConfig::default();
        config.limits = limits(config.limits);
        let server = ServerConn::new(config, self.now);
        self.tally.lines += 1;
        // Pings and a Close need no room, and the ends of prompts none among the events. One frame
        // may begin a run, answer a prompt and be a step.
        let line = Line::new(self.tally.lines, conn, server).with_bounds(
            Bounds::new(MAX_FRAMES + 3, MAX_EVENTS + MAX_CALLS + MAX_FRAMES + 4),
            Bounds::new(MAX_FRAMES + 3, MAX_EVENTS + 3),
        );
        let talk = Connection {
            line,
            user,
            is_closed: false,
            is_seated: true,
            is_drained: false,
            asked: None,
        };
        self.talks.insert(self.tally.lines, talk);
        self.current[user] = Some(self.tally.lines);
        true
    }

    fn on_server_event(&mut self, id: u64, event: ServerEvent) -> Outcome {
        let talk = self.talks.get_mut(&id).unwrap();
        if !talk.is_seated {
            return Ok(());
        }
        let (conn, now) = (ConnId(id), self.host.clocks(self.now));
        let hub = &mut self.host.hub;
        hub.touch(conn, self.now);
        match event {
            ServerEvent::Connect(connect) => {
                let random = u128::from(self.rng.next_u64()) << 64 | u128::from(id);
                hub.connect(conn, ConnectRequest::new(OWNER, connect, random), now);
            }
            ServerEvent::Input(input) => {
                let prompt = input.prompt.ok_or("an INPUT without a prompt")?;
                let is_new = self.arrived.insert(prompt.to_string());
                ensure(is_new, || format!("{prompt} came twice"))?;
                talk.asked = Some(prompt.to_string());
                hub.input(conn, Prompt::new(prompt), None, now);
            }
            command @ (ServerEvent::Response(_) | ServerEvent::Interrupt) => {
                hub.command(conn, command, now);
            }
            ServerEvent::Writable => talk.is_drained = false,
            ServerEvent::Closed(_) => {
                talk.is_seated = false;
                hub.disconnect(conn, now);
            }
            _ => {}
        }
        Ok(())
    }

    /// Brings the machines what the hub has for them: replies, and frames as far as there is room.
    fn pass_on(&mut self) -> Outcome<bool> {
        let mut active = self.host.carry_out()?;
        while let Some((conn, reply)) = self.host.hub.poll_reply() {
            active = true;
            let Some(talk) = self.talks.get_mut(&conn.0).filter(|talk| talk.is_seated) else {
                continue;
            };
            let verdict = match &reply {
                Reply::Begun | Reply::Acknowledge(_) => Some(Verdict::Taken),
                Reply::Refuse(_) => Some(Verdict::Refused),
                _ => None,
            };
            if let (Some(verdict), Some(prompt)) = (verdict, &talk.asked) {
                self.host.verdicts.insert(prompt.clone(), verdict);
                talk.asked = None;
            }
            let sent = send(&mut talk.line.server.machine, reply);
            talk.check(sent, self.now)?;
        }
        while let Some(conn) = self.host.hub.poll_ready() {
            active = true;
            if let Some(talk) = self.talks.get_mut(&conn.0) {
                talk.is_drained = false;
            }
        }
        let now = self.host.clocks(self.now);
        for (id, talk) in &mut self.talks {
            if !talk.is_seated || std::mem::replace(&mut talk.is_drained, true) {
                continue;
            }
            while talk.line.server.machine.has_room()
                && let Some(frame) = self.host.hub.next_frame(ConnId(*id), now)
            {
                active = true;
                let sent = talk.line.server.machine.send(frame);
                talk.check(sent, self.now)?;
            }
        }
        Ok(active)
    }

    fn on_client_event(&mut self, id: u64, event: ClientEvent) -> Outcome {
        let talk = self.talks.get_mut(&id).unwrap();
        ensure(!talk.is_closed, || format!("{event:?} after the end"))?;
        let index = talk.user;
        let user = &mut self.users[index];
        match event {
            ClientEvent::Closed(reason) => {
                talk.is_closed = true;
                user.closes_with(&reason)?;
                user.on_event(ClientEvent::Closed(reason.clone()), &self.host)?;
                ensure(user.calls.is_empty(), || {
                    "prompts never answered".to_owned()
                })?;
                self.current[index] = None;
                self.dialling[index].lost(reason.retry(), self.now, &mut self.rng);
                Ok(())
            }
            event => {
                if matches!(event, ClientEvent::Connected(_)) {
                    self.dialling[index].ready();
                }
                user.on_event(event, &self.host)
            }
        }
    }

    /// Whether a user is admitted, on a line that is whole, with nothing to wait for. Who read nothing
    /// while a session was given up and forgotten learns of it with the next prompt.
    fn is_well(&self, user: usize) -> bool {
        let talk = self.current[user].map(|conn| (conn, &self.talks[&conn]));
        talk.is_some_and(|(conn, it)| {
            let is_forgotten = self.host.hub.session_of(ConnId(conn)).is_none();
            match it.line.client.machine.state() {
                ClientState::Ready => it.line.is_whole(),
                ClientState::Running => it.line.is_whole() && is_forgotten,
                _ => false,
            }
        })
    }

    /// Everything works again: everyone comes back, and every prompt is answered.
    fn recover(&mut self) -> Outcome {
        self.calm = true;
        for talk in self.talks.values_mut() {
            talk.line.heal();
        }
        // What is under way arrives.
        self.now = sim::advance(self, self.now, Duration::from_secs(5))?;
        self.serve_all()?;
        for user in 0..3 {
            ensure(self.is_well(user), || format!("user {user} is not back"))?;
        }
        for user in 0..3 {
            let before = self.users[user].answered;
            // A session that was forgotten while its user slept costs one prompt, which is refused.
            for _ in 0..2 {
                if self.users[user].answered == before {
                    self.input(user)?;
                    self.serve_all()?;
                }
            }
            let answered = self.users[user].answered == before + 1;
            ensure(answered, || format!("user {user} has no answer"))?;
        }
        Ok(())
    }

    fn serve_all(&mut self) -> Outcome {
        for _ in 0..600 {
            self.now = sim::advance(self, self.now, Duration::from_secs(1))?;
            while self.host.store_one(false, self.now) {
                sim::settle(self, self.now)?;
            }
            self.host.finish_all(self.now);
            sim::settle(self, self.now)?;
            if self.host.hub.is_idle() && (0..3).all(|user| self.is_well(user)) {
                break;
            }
        }
        Ok(())
    }

    /// Every prompt was given to an agent once at most, and never if it was refused; and what was
    /// taken is in the conversation, whatever became of its host.
    fn check(&mut self) -> Outcome {
        for user in &self.users {
            let lied = user.never_sent.iter().find(|it| self.arrived.contains(*it));
            ensure(lied.is_none(), || format!("{lied:?} was sent all the same"))?;
        }
        for session in ["s-0", "s-1"] {
            let conversation = self.host.conversation(session, self.now)?;
            let users = self.users.iter().filter(|user| user.session == session);
            for prompt in users.flat_map(|user| &user.prompts) {
                let times = self.host.given.get(prompt).copied().unwrap_or_default();
                let verdict = self.host.verdicts.get(prompt);
                let fits = match verdict {
                    Some(Verdict::Refused) => times == 0,
                    Some(Verdict::Taken) if self.host.kills + self.host.broken == 0 => times == 1,
                    _ => times <= 1,
                };
                ensure(fits, || format!("{prompt} ran {times} times: {verdict:?}"))?;
                let kept = conversation.contains(&format!("\"{prompt}\""));
                ensure(kept || verdict != Some(&Verdict::Taken), || {
                    format!("{prompt} was lost")
                })?;
            }
        }
        Ok(())
    }

    /// Everyone leaves; nothing is left.
    fn shut_down(&mut self) -> Outcome {
        for talk in self.talks.values_mut() {
            talk.line.server.machine.close(self.now);
        }
        sim::settle(self, self.now)?;
        ensure(self.talks.is_empty(), || "connections are left".to_owned())?;
        self.host.check_empty(self.now)
    }
}

impl Connection {
    fn check(&mut self, told: Result<(), Refused>, now: Instant) -> Outcome {
        match told {
            Ok(()) | Err(Refused::Closed) => {}
            Err(Refused::QueueFull) => {
                let frame = CloseFrame::new(CloseFrame::TRY_AGAIN, "slow");
                self.line.server.machine.close_with(frame, now);
            }
            Err(why) => return Err(format!("a frame was not sent: {why}")),
        }
        Ok(())
    }
}

fn send(machine: &mut ServerConn, reply: Reply) -> Result<(), Refused> {
    match reply {
        Reply::Accept(connected) => machine.accept(&connected),
        Reply::Refuse(error) => machine.refuse(&error),
        Reply::Begun => machine.begun(),
        Reply::Acknowledge(ack) => machine.acknowledge(&ack),
        Reply::Frame(text) => machine.send_text(text),
        other => unreachable!("{other:?}"),
    }
}

impl World for Life {
    fn next_instant(&self) -> Option<Instant> {
        let lines = self
            .talks
            .values()
            .filter_map(|talk| talk.line.next_instant());
        let dials = self.dialling.iter().filter_map(Dialling::next_instant);
        lines.chain(dials).chain(self.host.hub.poll_timeout()).min()
    }

    fn turn(&mut self, now: Instant) -> Outcome<bool> {
        self.now = now;
        let mut active = false;
        for user in 0..SESSIONS.len() {
            active |= self.dial(user);
        }
        if self.host.hub.poll_timeout().is_some_and(|at| at <= now) {
            let clocks = self.host.clocks(now);
            self.host.hub.handle_timeout(clocks);
            let moved = self.host.hub.poll_timeout().is_none_or(|at| at > now);
            ensure(moved, || "the hub's deadline is still due".to_owned())?;
            active = true;
        }
        let conns: Vec<u64> = self.talks.keys().copied().collect();
        for conn in conns {
            active |= self.talks.get_mut(&conn).unwrap().line.settle(now)?;
            while let Some(event) = self.talks.get_mut(&conn).unwrap().line.server.next_event() {
                self.on_server_event(conn, event)?;
                active = true;
            }
            active |= self.pass_on()?;
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
        active |= self.pass_on()?;
        Ok(active)
    }
}

#[test]
fn random_faults_never_run_a_prompt_twice() {
    sim::lifecycles("connectonion", 300, |rng, tally| {
        let mut life = Life::new(rng.clone());
        let steps = 20 + rng.below(100);
        for _ in 0..steps {
            life.step()?;
        }
        life.recover()?;
        life.check()?;
        life.shut_down()?;
        for user in &life.users {
            life.tally.ended += user.ended_calls;
            life.tally.answered += user.answered;
        }
        *tally += life.tally;
        Ok(())
    });
}
