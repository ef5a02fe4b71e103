//! Random lives of a host and its users: lines are slow, jammed, cut and half open, agents and the
//! storage fail, and the host is killed.

use std::collections::HashSet;
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
use switchboard_testing::sim::{
    self, Bounds, Connections, ConnectionsOf, Effect, Lives, Opened, Outcome, Rng, ensure,
    random_lives,
};

use crate::sim::host::{Host, OWNER, Verdict};
use crate::sim::user::User;

/// The first two users share a session.
const SESSIONS: [&str; 3] = ["s-0", "s-0", "s-1"];
const MINUTE: Duration = Duration::from_secs(60);
const MAX_CALLS: usize = 4;
const MAX_FRAMES: usize = 32;
const MAX_EVENTS: usize = 16;

/// What is known of a connection.
#[derive(Default)]
struct Known {
    /// Its host is alive, and knows it.
    is_attached: bool,
    /// What the host may have to send has been looked at.
    is_drained: bool,
    /// The prompt that waits for a verdict.
    asked: Option<String>,
}

type Connection = sim::Connection<ClientConn, ServerConn, Known>;

struct Life {
    conns: ConnectionsOf<Self>,
    host: Host,
    users: Vec<User>,
    texts: u64,
    /// Prompts that have reached a host.
    arrived: HashSet<String>,
}

impl Life {
    /// The machine of a user that does something, and the user.
    fn acting(&mut self, user: usize) -> Option<(&mut ClientConn, &mut User)> {
        let conn = self.conns.acting(user)?;
        Some((&mut conn.line.client.machine, &mut self.users[user]))
    }

    fn input(&mut self, user: usize) -> Outcome {
        let (now, text) = (self.conns.now, format!("prompt {}.", self.texts));
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
        let now = self.conns.now;
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
        let now = self.conns.now;
        if let Some((conn, _)) = self.acting(user) {
            let _ = conn.interrupt(now);
        }
    }

    fn store(&mut self) {
        let fails = self.conns.rng.chance(3);
        self.conns.tally.faults += u64::from(fails);
        self.host.store_one(fails, self.conns.now);
    }

    /// Every prompt was given to an agent once at most, and never if it was refused; and what was
    /// taken is in the conversation, whatever became of its host.
    fn check_prompts(&mut self) -> Outcome {
        for user in &self.users {
            let lied = user.never_sent.iter().find(|it| self.arrived.contains(*it));
            ensure(lied.is_none(), || format!("{lied:?} was sent all the same"))?;
        }
        for session in ["s-0", "s-1"] {
            let conversation = self.host.conversation(session, self.conns.now)?;
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
}

fn check_sent(conn: &mut Connection, sent: Result<(), Refused>, now: Instant) -> Outcome {
    match sent {
        Ok(()) | Err(Refused::Closed) => {}
        Err(Refused::QueueFull) => {
            let frame = CloseFrame::new(CloseFrame::TRY_AGAIN, "slow");
            conn.line.server.machine.close_with(frame, now);
        }
        Err(why) => return Err(format!("a frame was not sent: {why}")),
    }
    Ok(())
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

impl Lives for Life {
    type Client = ClientConn;
    type Server = ServerConn;
    type Own = Known;
    const GARBAGE: &'static [&'static str] = &[
        "",
        "{",
        "[1]",
        r#"{"type":"NONSENSE"}"#,
        r#"{"type":"PONG"}"#,
        r#"{"type":"PING"}"#,
    ];
    const SLEEP: Duration = Duration::from_secs(70 * 60);

    fn new(rng: Rng) -> Self {
        let conns: ConnectionsOf<Self> = Connections::new(rng, SESSIONS.len(), reconnect_policy());
        let alone = |session| SESSIONS.iter().filter(|it| **it == session).count() == 1;
        Self {
            host: Host::new(conns.now),
            conns,
            users: SESSIONS.map(|it| User::new(it, alone(it))).into(),
            texts: 0,
            arrived: HashSet::new(),
        }
    }

    fn conns(&mut self) -> &mut ConnectionsOf<Self> {
        &mut self.conns
    }

    fn see(&self) -> &ConnectionsOf<Self> {
        &self.conns
    }

    fn act(&mut self, user: usize) -> Outcome {
        let Connections { rng, now, .. } = &mut self.conns;
        match rng.below(126) {
            0..26 => self.input(user)?,
            26..34 => self.answer(user),
            34..36 => self.interrupt(user),
            36..76 => self.store(),
            _ => self.host.work(*now, rng),
        }
        Ok(())
    }

    /// The host dies with all its ends of the lines.
    fn own_fault(&mut self) {
        self.conns.tally.faults += 1;
        let Connections { rng, now, all, .. } = &mut self.conns;
        self.host.kill(*now, rng);
        for conn in all.values_mut() {
            (conn.own.is_attached, conn.own.asked) = (false, None);
            let learns = rng.chance(90).then(|| *now + rng.duration(MINUTE));
            conn.line.cut(learns, Some(*now));
        }
    }

    fn open(&mut self, user: usize) -> Opened<Self> {
        let limits = |limits: Limits| Limits {
            max_pending: MAX_CALLS,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..limits
        };
        let Connections { rng, now, .. } = &mut self.conns;
        let mut config = ClientConfig::default();
        config.limits = limits(config.limits);
        let connect = self.users[user].connect();
        let conn = ClientConn::new(config, &connect, rng.next_u64(), *now);
        let mut config = ServerConfig::default();
        config.limits = limits(config.limits);
        let server = ServerConn::new(config, *now);
        let own = Known {
            is_attached: true,
            ..Known::default()
        };
        // Pings and a Close need no room, and the ends of prompts none among the events. One frame
        // may begin a run, answer a prompt and be a step.
        let frames = MAX_FRAMES + 3;
        (
            (
                conn,
                Bounds::new(frames, frames + MAX_EVENTS + MAX_CALLS + 1),
            ),
            (server, Bounds::new(frames, MAX_EVENTS + 3)),
            own,
        )
    }

    fn on_server_event(&mut self, id: u64, event: ServerEvent) -> Outcome {
        let own = &mut self.conns.all.get_mut(&id).unwrap().own;
        if !own.is_attached {
            return Ok(());
        }
        let (conn, now) = (ConnId(id), self.host.clocks(self.conns.now));
        let hub = &mut self.host.hub;
        hub.touch(conn, self.conns.now);
        match event {
            ServerEvent::Connect(connect) => {
                let random = u128::from(self.conns.rng.next_u64()) << 64 | u128::from(id);
                hub.connect(conn, ConnectRequest::new(OWNER, connect, random), now);
            }
            ServerEvent::Input(input) => {
                let prompt = input.prompt.ok_or("an INPUT without a prompt")?;
                let is_new = self.arrived.insert(prompt.to_string());
                ensure(is_new, || format!("{prompt} came twice"))?;
                own.asked = Some(prompt.to_string());
                hub.input(conn, Prompt::new(prompt), None, now);
            }
            command @ (ServerEvent::Response(_) | ServerEvent::Interrupt) => {
                hub.command(conn, command, now);
            }
            ServerEvent::Writable => own.is_drained = false,
            ServerEvent::Closed(_) => {
                own.is_attached = false;
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
            let Some(talk) = self
                .conns
                .all
                .get_mut(&conn.0)
                .filter(|it| it.own.is_attached)
            else {
                continue;
            };
            let verdict = match &reply {
                Reply::Begun | Reply::Acknowledge(_) => Some(Verdict::Taken),
                Reply::Refuse(_) => Some(Verdict::Refused),
                _ => None,
            };
            if let (Some(verdict), Some(prompt)) = (verdict, &talk.own.asked) {
                self.host.verdicts.insert(prompt.clone(), verdict);
                talk.own.asked = None;
            }
            let sent = send(&mut talk.line.server.machine, reply);
            check_sent(talk, sent, self.conns.now)?;
        }
        while let Some(conn) = self.host.hub.poll_ready() {
            active = true;
            if let Some(talk) = self.conns.all.get_mut(&conn.0) {
                talk.own.is_drained = false;
            }
        }
        let now = self.host.clocks(self.conns.now);
        for (id, talk) in &mut self.conns.all {
            if !talk.own.is_attached || std::mem::replace(&mut talk.own.is_drained, true) {
                continue;
            }
            while talk.line.server.machine.has_room()
                && let Some(frame) = self.host.hub.next_frame(ConnId(*id), now)
            {
                active = true;
                let sent = talk.line.server.machine.send(frame);
                check_sent(talk, sent, self.conns.now)?;
            }
        }
        Ok(active)
    }

    fn on_client_event(&mut self, id: u64, event: ClientEvent) -> Outcome<Effect> {
        let user = &mut self.users[self.conns.all[&id].client];
        let received = match &event {
            ClientEvent::Connected(_) => Effect::Ready,
            ClientEvent::Closed(reason) => {
                user.closes_with(reason)?;
                Effect::Closed(reason.clone())
            }
            _ => Effect::Nothing,
        };
        user.on_event(event, &self.host)?;
        let is_open = !matches!(received, Effect::Closed(_));
        ensure(is_open || user.calls.is_empty(), || {
            "prompts never answered".to_owned()
        })?;
        Ok(received)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host.hub.poll_timeout()
    }

    fn handle_timeout(&mut self) {
        let clocks = self.host.clocks(self.conns.now);
        self.host.hub.handle_timeout(clocks);
    }

    /// Whether a user is admitted. Who read nothing while a session was given up and forgotten learns of it
    /// with the next prompt.
    fn is_idle(&self, conn: u64) -> bool {
        match self.conns.all[&conn].line.client.machine.state() {
            ClientState::Ready => true,
            ClientState::Running => self.host.hub.session_of(ConnId(conn)).is_none(),
            _ => false,
        }
    }

    fn serve(&mut self) -> Outcome<bool> {
        while self.host.store_one(false, self.conns.now) {
            self.settle()?;
        }
        self.host.finish_all(self.conns.now);
        self.settle()?;
        Ok(self.host.hub.is_idle())
    }

    /// Every prompt is answered.
    fn check_works(&mut self) -> Outcome {
        for user in 0..SESSIONS.len() {
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
            self.conns.tally.ended += self.users[user].ended_calls;
            self.conns.tally.answered += self.users[user].answered;
        }
        self.check_prompts()
    }

    fn check_empty(&mut self) -> Outcome {
        self.host.check_empty(self.conns.now)
    }
}

#[test]
fn random_faults_never_run_a_prompt_twice() {
    random_lives::<Life>("connectonion", 300);
}
