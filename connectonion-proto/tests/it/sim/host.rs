//! A host: its hub, a storage and agents that act when the schedule says so, and the truth about
//! every prompt and every event.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use connectonion_proto::auth::Address;
use connectonion_proto::frame::{AskUser, Connect, EventKind, Signed, Thinking};
use connectonion_proto::internals::{
    ConnId, ConnectRequest, Hub, HubEvent, Job, Now, Reply, RunId, StorageError,
};
use connectonion_proto::net::Prompt;
use connectonion_proto::session::{HubConfig, Owner};
use switchboard_testing::sim::{Outcome, Rng, ensure, trace};

use crate::stored::{NOW, Stored};

pub(crate) const OWNER: Owner = Owner::Key(Address::from_bytes([1; 32]));

/// What the host has said to a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A run has begun with it, or it is queued.
    Taken,
    Refused,
}

/// What an agent has said in a run.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    pub(crate) session: String,
    /// The ids of its events.
    pub(crate) events: Vec<String>,
}

pub(crate) struct Host {
    pub(crate) hub: Hub,
    start: Instant,
    jobs: VecDeque<Job>,
    storage: Stored,
    /// Agents at work, with their sessions.
    agents: BTreeMap<RunId, String>,
    /// Runs by name: every host counts its own again.
    pub(crate) runs: HashMap<String, Closed>,
    /// How often a prompt was given to an agent.
    pub(crate) given: HashMap<String, u32>,
    pub(crate) verdicts: HashMap<String, Verdict>,
    answered: HashSet<String>,
    /// Every question.
    questions: Vec<(RunId, String)>,
    /// Connections of its own, to look at conversations.
    looks: u64,
    pub(crate) kills: u32,
    /// Runs that did not come to a good end.
    pub(crate) broken: u32,
}

impl Host {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            hub: Hub::new(HubConfig::default(), 0x5eed, now),
            start: now,
            jobs: VecDeque::new(),
            storage: Stored::new(),
            agents: BTreeMap::new(),
            runs: HashMap::new(),
            given: HashMap::new(),
            verdicts: HashMap::new(),
            answered: HashSet::new(),
            questions: Vec::new(),
            looks: 1 << 40,
            kills: 0,
            broken: 0,
        }
    }

    /// Both clocks.
    pub(crate) fn clocks(&self, instant: Instant) -> Now {
        let unix = NOW + (instant - self.start).as_secs_f64();
        Now { instant, unix }
    }

    /// What a run is called in the words of its agent.
    fn name(&self, run: RunId) -> String {
        format!("{}-{}", self.kills, run.0)
    }

    /// The storage does its next job, well or not.
    pub(crate) fn store_one(&mut self, fails: bool, now: Instant) -> bool {
        let Some(job) = self.jobs.pop_front() else {
            return false;
        };
        let now = self.clocks(now);
        let failure = || StorageError::Failed {
            message: "no room".to_owned(),
            is_retryable: true,
        };
        let outcome = match fails {
            true => Err(failure()),
            false => self.storage.carry_out(&job, now.unix),
        };
        self.hub.done(job, outcome, now);
        true
    }

    /// An agent does something.
    pub(crate) fn work(&mut self, now: Instant, rng: &mut Rng) {
        let runs: Vec<RunId> = self.agents.keys().copied().collect();
        let Some(run) = rng.pick(&runs).copied() else {
            return;
        };
        let (clocks, name) = (self.clocks(now), self.name(run));
        match rng.below(12) {
            0..6 => {
                let thinking = EventKind::Thinking(Thinking::new("x"));
                let id = self.hub.emit(run, thinking, None, clocks);
                self.sends(&name, id.ok().map(|id| id.to_string()));
            }
            6..9 => {
                if let Ok(inputs) = self.hub.next_inputs(run, clocks) {
                    self.give(&inputs);
                }
            }
            9 => {
                let question = EventKind::AskUser(AskUser::new("?"));
                let id = self.hub.ask(run, question, clocks);
                let id = id.ok().map(|id| id.to_string());
                self.questions.extend(id.clone().map(|id| (run, id)));
                self.sends(&name, id);
            }
            10 => self.finish(run, now),
            _ => {
                self.agents.remove(&run);
                self.broken += 1;
                let _ = self.hub.fail(run, &format!("failure {name}"), clocks);
            }
        }
    }

    /// Every agent answers, and reads what it has not read.
    pub(crate) fn finish_all(&mut self, now: Instant) {
        for run in self.agents.keys().copied().collect::<Vec<_>>() {
            self.finish(run, now);
        }
    }

    fn finish(&mut self, run: RunId, now: Instant) {
        let (clocks, name) = (self.clocks(now), self.name(run));
        match self.hub.finish(run, &format!("result {name}"), clocks) {
            Ok(inputs) if !inputs.is_empty() => self.give(&inputs),
            _ => drop(self.agents.remove(&run)),
        }
    }

    fn sends(&mut self, run: &str, event: Option<String>) {
        let sends = self.runs.get_mut(run);
        sends.unwrap().events.extend(event);
    }

    fn give(&mut self, inputs: &[Prompt]) {
        for input in inputs {
            *self.given.entry(input.text.to_string()).or_default() += 1;
        }
    }

    /// The host dies, and another one goes on with what was stored. Some of what the storage was told
    /// is done in time.
    pub(crate) fn kill(&mut self, now: Instant, rng: &mut Rng) {
        while rng.chance(60) && self.store_one(false, now) {}
        trace(|| "the host is killed".to_owned());
        self.kills += 1;
        self.hub = Hub::new(HubConfig::default(), 0x5eed + u128::from(self.kills), now);
        self.jobs.clear();
        self.agents.clear();
        let unix = self.clocks(now).unix;
        self.storage.restart(unix);
    }

    /// Takes what the hub has to be done.
    pub(crate) fn carry_out(&mut self) -> Outcome<bool> {
        let mut active = false;
        while let Some(event) = self.hub.poll_event() {
            active = true;
            match event {
                HubEvent::Store(job) => self.jobs.push_back(job),
                HubEvent::Start {
                    run,
                    session_id,
                    prompt,
                    ..
                } => {
                    let session = session_id.to_string();
                    let sends = Closed {
                        session: session.clone(),
                        events: Vec::new(),
                    };
                    self.runs.insert(self.name(run), sends);
                    let other = self.agents.values().any(|it| *it == session);
                    ensure(!other, || format!("two agents in {session}"))?;
                    self.agents.insert(run, session);
                    *self.given.entry(prompt.text.to_string()).or_default() += 1;
                }
                HubEvent::Cancel(run) => {
                    self.broken += 1;
                    self.agents.remove(&run);
                }
                HubEvent::Told(run) => {
                    for (_, id) in self.questions.iter().filter(|(of, _)| *of == run) {
                        if let Ok(Some(_)) = self.hub.take_answer(run, id) {
                            let is_new = self.answered.insert(id.clone());
                            ensure(is_new, || format!("{id} was answered twice"))?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(active)
    }

    /// The conversation of a session, as a client would get it who knows nothing of it.
    pub(crate) fn conversation(&mut self, session: &str, now: Instant) -> Outcome<String> {
        self.looks += 1;
        let conn = ConnId(self.looks);
        let mut connect = Connect::new(Signed::none());
        connect.session_id = Some(session.into());
        let request = ConnectRequest::new(OWNER, connect, self.looks.into());
        self.hub.connect(conn, request, self.clocks(now));
        let mut found = None;
        loop {
            let mut active = self.carry_out()? | self.store_one(false, now);
            while let Some((to, reply)) = self.hub.poll_reply() {
                active = true;
                if let (true, Reply::Accept(connected)) = (to == conn, reply) {
                    let newer = connected.session.as_ref();
                    found = Some(newer.map_or(String::new(), |it| it.get().to_owned()));
                }
            }
            if !active {
                break;
            }
        }
        self.hub.disconnect(conn, self.clocks(now));
        found.ok_or_else(|| format!("{session} lets nobody in"))
    }

    /// Nothing is left when everyone has been gone for a while.
    pub(crate) fn check_empty(&mut self, now: Instant) -> Outcome {
        let later = now + Duration::from_secs(11 * 60);
        // What is forgotten is stored once more.
        for _ in 0..2 {
            while self.carry_out()? | self.store_one(false, later) {}
            self.hub.handle_timeout(self.clocks(later));
        }
        let is_empty = self.hub.sessions() == 0 && self.hub.log_bytes() == 0;
        ensure(is_empty, || "sessions are left".to_owned())?;
        let idle = self.hub.poll_timeout().is_none() && self.hub.is_idle();
        ensure(idle, || "work is left".to_owned())
    }
}
