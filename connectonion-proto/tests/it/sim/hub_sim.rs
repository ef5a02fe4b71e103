//! Random lives of hosts: users whose lines are lost, agents that fail, storages that fail, hosts that
//! are killed. What must hold for every prompt and every event of every life.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use connectonion_proto::frame::{Connect, SessionState, Signed};
use connectonion_proto::internals::{ConnId, RunId};
use connectonion_proto::session::{HubConfig, Owner};
use serde_json::Value;
use switchboard_testing::sim::{self, Outcome, Rng, Tally, ensure};

use crate::hub_play::Play;

const MINUTE: Duration = Duration::from_secs(60);
const OWNER: Owner = Owner::Key(connectonion_proto::auth::Address::from_bytes([1; 32]));
/// The first two users share a session.
const SESSIONS: [&str; 3] = ["s-0", "s-0", "s-1"];

/// What a user knows of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It was sent, and nothing came back.
    Sent,
    Refused,
    /// A run has begun with it, or it was queued.
    Taken,
    /// The line was lost before an answer came.
    Unknown,
}

/// A user: what has arrived, which may be less than what was sent.
#[derive(Default)]
struct User {
    conn: Option<u64>,
    session: &'static str,
    /// How many frames of this connection have arrived.
    arrived: usize,
    /// An event has arrived on this connection.
    has_heard: bool,
    /// The event that arrived last.
    last: Option<String>,
    seen: HashSet<String>,
    /// The order in which events were seen first.
    order: Vec<String>,
    ended: HashSet<String>,
    prompts: Vec<(String, Fate)>,
}

/// What an agent has said in a run.
#[derive(Default)]
struct Said {
    session: String,
    events: Vec<String>,
    questions: Vec<String>,
}

struct Life {
    play: Play,
    users: Vec<User>,
    /// By host and run, because every host counts its runs again.
    runs: BTreeMap<(u32, RunId), Said>,
    conns: u64,
    prompts: u64,
}

impl Life {
    fn new() -> Self {
        let users = SESSIONS.map(|session| User {
            session,
            ..User::default()
        });
        Self {
            play: Play::new(HubConfig::default()),
            users: users.into(),
            runs: BTreeMap::new(),
            conns: 0,
            prompts: 0,
        }
    }

    fn step(&mut self, rng: &mut Rng) -> Outcome {
        let user = usize::try_from(rng.below(3)).unwrap_or_default();
        match rng.below(100) {
            0..12 => self.connect(user),
            12..17 => self.cut(user),
            17..32 => self.input(user),
            32..45 => self.arrive(user, rng)?,
            45..65 => drop(self.play.store_one(rng.chance(4))),
            65..92 => self.work(rng),
            92..94 => self.answer(user),
            94..95 => self.interrupt(user),
            95..98 => self.wait(rng),
            98..99 => self.play.advance(rng.duration(20 * MINUTE)),
            _ => self.kill(rng),
        }
        self.notice();
        Ok(())
    }

    fn connect(&mut self, user: usize) {
        let user = &mut self.users[user];
        if user.conn.is_some() {
            return;
        }
        self.conns += 1;
        user.conn = Some(self.conns);
        user.arrived = 0;
        user.has_heard = false;
        let mut connect = Connect::new(Signed::none());
        connect.session_id = Some(user.session.into());
        if let Some(last) = &user.last {
            connect.last_msg_id = Some(last.as_str().into());
        }
        self.play.connect_with(self.conns, OWNER, connect);
    }

    fn cut(&mut self, user: usize) {
        if let Some(conn) = self.users[user].conn.take() {
            self.play.disconnect(conn);
            self.users[user].lose();
        }
    }

    fn input(&mut self, user: usize) {
        let Some(conn) = self.users[user].conn.filter(|conn| !self.play.waits(*conn)) else {
            return;
        };
        // What came back of the one before.
        self.notice();
        self.prompts += 1;
        let prompt = format!("prompt {}.", self.prompts);
        self.users[user].prompts.push((prompt.clone(), Fate::Sent));
        self.play.input(conn, &prompt);
    }

    /// Some of what was sent to a user arrives.
    fn arrive(&mut self, user: usize, rng: &mut Rng) -> Outcome {
        let count = usize::try_from(rng.below(8)).unwrap_or_default();
        self.take(user, count)
    }

    fn take(&mut self, user: usize, count: usize) -> Outcome {
        let user = &mut self.users[user];
        let Some(conn) = user.conn else {
            return Ok(());
        };
        let Some(socket) = self.play.sockets.get(&ConnId(conn)) else {
            return Ok(());
        };
        let frames = socket.frames.iter().skip(user.arrived).take(count);
        for frame in frames {
            user.arrived += 1;
            let connected = socket.connected.as_ref();
            let was_running = connected.is_some_and(|it| it.status == SessionState::Running);
            // Who comes after a failure is told of it, and has the conversation with CONNECTED.
            user.has_heard |= frame["ts"].is_number();
            if was_running || user.has_heard || frame["type"] != "ERROR" {
                user.hear(frame, &self.runs)?;
            }
        }
        Ok(())
    }

    /// An agent does something.
    fn work(&mut self, rng: &mut Rng) {
        let agents: Vec<RunId> = self.play.agents.keys().copied().collect();
        let Some(run) = rng.pick(&agents).copied() else {
            return;
        };
        let key = (self.play.kills, run);
        let name = format!("{}-{}", key.0, run.0);
        let said = self.runs.entry(key).or_default();
        match rng.below(12) {
            0..6 => said.events.extend(self.play.emit(run, "x")),
            6..9 => self.play.next_inputs(run),
            9..10 => {
                let id = self.play.ask(run);
                said.events.extend(id.clone());
                said.questions.extend(id);
            }
            10..11 => self.play.finish(run, &format!("result {name}")),
            _ => self.play.fail(run, &format!("failure {name}")),
        }
    }

    fn answer(&mut self, user: usize) {
        let user = &self.users[user];
        let open = self
            .runs
            .values()
            .rev()
            .find(|it| it.session == user.session);
        let question = open.and_then(|it| it.questions.last());
        if let (Some(conn), Some(question)) = (user.conn, question) {
            self.play.answer(conn, question);
        }
    }

    fn interrupt(&mut self, user: usize) {
        if let Some(conn) = self.users[user].conn {
            self.play.interrupt(conn);
        }
    }

    /// Time passes; now and then so much that sessions are forgotten and agents given up.
    fn wait(&mut self, rng: &mut Rng) {
        let time = match rng.below(10) {
            0 => 61 * MINUTE,
            1 => 11 * MINUTE,
            _ => rng.duration(MINUTE),
        };
        self.play.advance(time);
    }

    fn kill(&mut self, rng: &mut Rng) {
        // Some of what the storage was told is done in time.
        while rng.chance(60) && self.play.store_one(false) {}
        self.notice();
        self.play.kill(HubConfig::default());
        for user in &mut self.users {
            user.conn = None;
            user.lose();
        }
    }

    /// What the host has answered reaches the user that has asked, and new runs get their sessions.
    fn notice(&mut self) {
        for user in &mut self.users {
            let socket = user
                .conn
                .and_then(|conn| self.play.sockets.get(&ConnId(conn)));
            if let (Some(socket), Some((_, fate))) = (socket, user.prompts.last_mut())
                && *fate == Fate::Sent
                && socket.asked == 0
            {
                *fate = match &socket.answer {
                    Some(true) => Fate::Taken,
                    Some(false) => Fate::Refused,
                    None => continue,
                };
            }
        }
        for (run, prompt) in &self.play.agents {
            let started = self.play.started.iter().find(|(_, it)| it == prompt);
            if let Some((session, _)) = started {
                let said = self.runs.entry((self.play.kills, *run)).or_default();
                said.session.clone_from(session);
            }
        }
    }

    /// Everyone does what is left to do.
    fn settle(&mut self) -> Outcome {
        for user in 0..3 {
            self.connect(user);
        }
        self.play.store_all();
        while let Some(run) = self.play.agents.keys().next().copied() {
            let name = format!("{}-{}", self.play.kills, run.0);
            self.notice();
            self.play.finish(run, &format!("result {name}"));
            self.play.store_all();
        }
        self.notice();
        for user in 0..3 {
            self.take(user, usize::MAX)?;
        }
        ensure(self.play.hub.is_idle(), || "the hub has work".to_owned())?;
        for (conn, socket) in &self.play.sockets {
            ensure(socket.asked == 0, || format!("{conn:?} was not answered"))?;
        }
        Ok(())
    }

    fn check(&mut self) -> Outcome {
        let mut times: HashMap<&str, usize> = HashMap::new();
        let started = self.play.started.iter().map(|(_, prompt)| prompt);
        for prompt in started.chain(&self.play.read) {
            *times.entry(prompt).or_default() += 1;
        }
        let mut answers = HashSet::new();
        for answer in &self.play.answered {
            ensure(answers.insert(answer), || {
                format!("{answer} was answered twice")
            })?;
        }
        let mut prompts = Vec::new();
        for user in &self.users {
            for (prompt, fate) in &user.prompts {
                prompts.push((user.session, prompt.clone(), *fate));
                let times = times.get(prompt.as_str()).copied().unwrap_or_default();
                ensure(times <= 1, || format!("{prompt} ran {times} times"))?;
                ensure(*fate != Fate::Sent, || format!("{prompt} was not answered"))?;
                let ran = times == 0 || *fate != Fate::Refused;
                ensure(ran, || format!("{prompt} was refused and ran"))?;
            }
        }
        self.survivors(&prompts)
    }

    /// What was taken is in the conversation, whatever became of its host.
    fn survivors(&mut self, prompts: &[(&str, String, Fate)]) -> Outcome {
        self.play.kill(HubConfig::default());
        for session in ["s-0", "s-1"] {
            self.conns += 1;
            self.play.connect(self.conns, OWNER, Some(session));
            self.play.store_all();
            let socket = &self.play.sockets[&ConnId(self.conns)];
            let newer = socket.connected.as_ref().and_then(|it| it.session.as_ref());
            let conversation = newer.map_or("", |it| it.get());
            let taken = prompts.iter();
            let mut taken = taken.filter(|it| it.0 == session && it.2 == Fate::Taken);
            let lost = taken.find(|it| !conversation.contains(&format!("\"{}\"", it.1)));
            ensure(lost.is_none(), || format!("{:?} was lost", lost.unwrap()))?;
        }
        Ok(())
    }

    /// Nothing is kept of those who have gone.
    fn leave(&mut self) -> Outcome {
        let conns: Vec<ConnId> = self.play.sockets.keys().copied().collect();
        for conn in conns {
            self.play.disconnect(conn.0);
        }
        self.play.store_all();
        self.play.advance(11 * MINUTE);
        self.play.store_all();
        let hub = &self.play.hub;
        let is_empty = hub.sessions() == 0 && hub.log_bytes() == 0;
        ensure(is_empty, || "sessions are left".to_owned())?;
        let idle = self.play.hub.poll_timeout().is_none() && self.play.hub.is_idle();
        ensure(idle, || "work is left".to_owned())
    }
}

impl User {
    fn lose(&mut self) {
        for (_, fate) in &mut self.prompts {
            if *fate == Fate::Sent {
                *fate = Fate::Unknown;
            }
        }
    }

    fn hear(&mut self, frame: &Value, runs: &BTreeMap<(u32, RunId), Said>) -> Outcome {
        let text = |name: &str| frame[name].as_str().unwrap_or_default();
        if let Some(id) = frame["id"].as_str().filter(|_| frame["ts"].is_number()) {
            if self.seen.insert(id.to_owned()) {
                self.order.push(id.to_owned());
            }
            self.last = Some(id.to_owned());
        }
        let words = match text("type") {
            "OUTPUT" => text("result").strip_prefix("result "),
            "ERROR" => text("message").strip_prefix("failure "),
            _ => None,
        };
        let Some(name) = words else {
            return Ok(());
        };
        let first = self.ended.insert(name.to_owned());
        ensure(first, || format!("run {name} ended twice"))?;
        let (host, run) = name.split_once('-').unwrap_or_default();
        let host = host.parse().unwrap_or_default();
        let run = RunId(run.parse().unwrap_or_default());
        // Who hears the end has heard all of it, in its order.
        let said = &runs[&(host, run)].events;
        let missing = said.iter().find(|id| !self.seen.contains(*id));
        ensure(missing.is_none(), || {
            format!("{missing:?} of {name} was lost")
        })?;
        let mine = self.order.iter().filter(|id| said.contains(id));
        ensure(mine.eq(said.iter()), || {
            format!("{name} came in another order")
        })
    }
}

fn live(rng: &mut Rng, tally: &mut Tally) -> Outcome {
    let mut life = Life::new();
    let steps = 20 + rng.below(200);
    for _ in 0..steps {
        life.step(rng)?;
    }
    life.settle()?;
    life.check()?;
    let prompts = || life.users.iter().flat_map(|user| &user.prompts);
    tally.lines += life.conns;
    tally.ended += prompts().count() as u64;
    tally.answered += prompts().filter(|it| it.1 == Fate::Taken).count() as u64;
    life.leave()
}

#[test]
fn random_faults_lose_and_double_nothing() {
    sim::lifecycles("connectonion's hub", 600, live);
}
