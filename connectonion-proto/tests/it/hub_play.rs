//! A hub with sockets, agents and a storage that answer when the test says so.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use connectonion_proto::frame::{
    AskUser, Connect, Connected, EventKind, Mode, ModeChange, ReceivedFile, Signed, Thinking,
};
use connectonion_proto::internals::{
    ConnId, ConnectRequest, Hub, HubEvent, Job, Now, Reply, RunId, StorageError,
};
use connectonion_proto::net::Prompt;
use connectonion_proto::server::ServerEvent;
use connectonion_proto::session::{HubConfig, Owner};
use connectonion_proto::storage::Record;
use serde_json::Value;

use crate::stored::{NOW, Stored};

/// What a socket has been told.
#[derive(Default)]
pub struct Socket {
    /// How many answers it waits for.
    pub asked: usize,
    /// What it has said last.
    prompt: String,
    pub accepted: usize,
    /// How it was admitted last.
    pub connected: Option<Box<Connected>>,
    pub refused: Vec<String>,
    pub begun: usize,
    /// Whether the last prompt was taken.
    pub answer: Option<bool>,
    pub acknowledged: Vec<String>,
    pub frames: Vec<Value>,
    /// The code that its connection was closed with.
    pub closed: Option<u16>,
}

/// A configuration with these changes.
pub fn config(set: impl FnOnce(&mut HubConfig)) -> HubConfig {
    let mut config = HubConfig::default();
    set(&mut config);
    config
}

pub struct Play {
    pub hub: Hub,
    pub now: Now,
    storage: Stored,
    jobs: VecDeque<Job>,
    pub sockets: BTreeMap<ConnId, Socket>,
    /// Agents at work, with the prompt that began their runs.
    pub agents: BTreeMap<RunId, String>,
    /// Every prompt that began a run, and in which session.
    pub started: Vec<(String, String)>,
    pub cancelled: Vec<RunId>,
    /// Every session that was given to other hosts.
    pub released: Vec<String>,
    /// Every other prompt that an agent was given.
    pub read: Vec<String>,
    /// Every question that was answered.
    pub answered: Vec<String>,
    /// Every question.
    questions: Vec<(RunId, String)>,
    /// What a host writes on its console.
    pub lines: Vec<String>,
    /// How often the host was killed.
    pub kills: u32,
    /// The prompts that were acknowledged, by their ids.
    acknowledged: BTreeMap<String, String>,
    /// The files that no one needs.
    pub unused: Vec<ReceivedFile>,
}

impl Play {
    pub fn new(config: HubConfig) -> Self {
        let instant = Instant::now();
        Self {
            hub: Hub::new(config, 0x5eed, instant),
            now: Now { instant, unix: NOW },
            storage: Stored::new(),
            jobs: VecDeque::new(),
            sockets: BTreeMap::new(),
            agents: BTreeMap::new(),
            started: Vec::new(),
            cancelled: Vec::new(),
            released: Vec::new(),
            read: Vec::new(),
            answered: Vec::new(),
            questions: Vec::new(),
            lines: Vec::new(),
            kills: 0,
            acknowledged: BTreeMap::new(),
            unused: Vec::new(),
        }
    }

    pub fn advance(&mut self, time: Duration) {
        self.now.instant += time;
        self.now.unix += time.as_secs_f64();
        self.hub.handle_timeout(self.now);
        self.settle();
    }

    pub fn connect(&mut self, conn: u64, owner: Owner, session_id: Option<&str>) {
        let mut connect = Connect::new(Signed::none());
        connect.session_id = session_id.map(Into::into);
        self.connect_with(conn, owner, connect);
    }

    pub fn connect_with(&mut self, conn: u64, owner: Owner, connect: Connect) {
        self.connect_from(conn, None, owner, connect);
    }

    pub fn connect_from(
        &mut self,
        conn: u64,
        caller: Option<IpAddr>,
        owner: Owner,
        connect: Connect,
    ) {
        let random = u128::from(conn) << 64 | self.started.len() as u128;
        let mut request = ConnectRequest::new(owner, connect, random);
        request.caller = caller;
        self.sockets.entry(ConnId(conn)).or_default().asked += 1;
        self.hub.connect(ConnId(conn), request, self.now);
        self.settle();
    }

    /// The host that had the session has died.
    pub fn recover(&mut self, session_id: &str) -> bool {
        let is_room = self.hub.recover(session_id.into());
        self.settle();
        is_room
    }

    pub fn disconnect(&mut self, conn: u64) {
        self.hub.disconnect(ConnId(conn), self.now);
        self.sockets.remove(&ConnId(conn));
        self.settle();
    }

    pub fn input(&mut self, conn: u64, prompt: &str) {
        self.input_with(conn, Prompt::new(prompt));
    }

    pub fn input_with(&mut self, conn: u64, prompt: Prompt) {
        let socket = self.sockets.get_mut(&ConnId(conn)).unwrap();
        socket.asked += 1;
        socket.answer = None;
        socket.prompt = prompt.text.to_string();
        self.hub.input(ConnId(conn), prompt, None, self.now);
        self.settle();
    }

    /// An unsigned client with the connection 1 enters a session and begins a run.
    pub fn begin(&mut self, session_id: &str, prompt: &str) -> RunId {
        self.connect(1, Owner::Unsigned, Some(session_id));
        self.store_all();
        self.input(1, prompt);
        self.store_all();
        *self.agents.keys().next().unwrap()
    }

    pub fn mode(&mut self, conn: u64) {
        let plan = ModeChange::new(Mode::Plan);
        let command = ServerEvent::ModeChange(plan);
        self.hub.command(ConnId(conn), command, self.now);
        self.settle();
    }

    /// Whether the socket waits for an answer: then its machine hands nothing out.
    pub fn waits(&self, conn: u64) -> bool {
        self.sockets
            .get(&ConnId(conn))
            .is_some_and(|it| it.asked > 0)
    }

    /// The storage does its next job, well or not.
    pub fn store_one(&mut self, fails: bool) -> bool {
        let Some(job) = self.jobs.pop_front() else {
            return false;
        };
        let failure = || StorageError::Failed {
            message: "no room".to_owned(),
            is_retryable: true,
        };
        let outcome = match fails {
            true => Err(failure()),
            false => self.storage.carry_out(&job, self.now.unix),
        };
        self.hub.done(job, outcome, self.now);
        self.settle();
        true
    }

    /// The storage says of its next job that another host serves the session.
    pub fn store_fenced(&mut self) {
        self.refuse_one(StorageError::Fenced);
    }

    /// The storage refuses its next job.
    pub fn refuse_one(&mut self, error: StorageError) {
        let job = self.jobs.pop_front().unwrap();
        self.hub.done(job, Err(error), self.now);
        self.settle();
    }

    pub fn storage_record(&self, session_id: &str) -> Record {
        self.storage
            .load(session_id, self.now.unix)
            .unwrap()
            .unwrap()
    }

    /// How many events of a session are stored.
    pub fn events(&self, session_id: &str) -> usize {
        let record = self.storage.load(session_id, self.now.unix).unwrap();
        record.map_or(0, |record| record.events.len())
    }

    /// How many jobs the storage has to do.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    pub fn store_all(&mut self) {
        while self.store_one(false) {}
    }

    /// The host dies, and another one goes on with what was stored.
    pub fn kill(&mut self, config: HubConfig) {
        self.kills += 1;
        self.hub = Hub::new(config, 0x5eed + u128::from(self.kills), self.now.instant);
        self.jobs.clear();
        self.sockets.clear();
        self.agents.clear();
        self.storage.restart(self.now.unix);
    }

    /// The host is about to end.
    pub fn store_again(&mut self) {
        self.hub.store_again(self.now);
        self.settle();
    }

    pub fn finish(&mut self, run: RunId, result: &str) {
        match self.hub.finish(run, result, self.now) {
            Ok(inputs) if !inputs.is_empty() => {
                let prompts = inputs.iter().map(|it| it.text.to_string());
                self.read.extend(prompts);
            }
            _ => drop(self.agents.remove(&run)),
        }
        self.settle();
    }

    pub fn fail(&mut self, run: RunId, message: &str) {
        self.agents.remove(&run);
        let _ = self.hub.fail(run, message, self.now);
        self.settle();
    }

    /// The agent says something. Returns what it is called.
    pub fn emit(&mut self, run: RunId, text: &str) -> Option<String> {
        let thinking = EventKind::Thinking(Thinking::new(text));
        let id = self.hub.emit(run, thinking, None, self.now);
        self.settle();
        id.ok().map(|id| id.to_string())
    }

    pub fn ask(&mut self, run: RunId) -> Option<String> {
        let question = EventKind::AskUser(AskUser::new("?"));
        let id = self.hub.ask(run, question, self.now).ok()?;
        self.questions.push((run, id.to_string()));
        self.settle();
        Some(id.to_string())
    }

    pub fn interrupt(&mut self, conn: u64) {
        self.hub
            .command(ConnId(conn), ServerEvent::Interrupt, self.now);
        self.settle();
    }

    pub fn next_inputs(&mut self, run: RunId) {
        if let Ok(inputs) = self.hub.next_inputs(run, self.now) {
            let prompts = inputs.iter().map(|it| it.text.to_string());
            self.read.extend(prompts);
        }
        self.settle();
    }

    /// Carries out what the hub wants, except for the storage, and takes every frame.
    pub fn settle(&mut self) {
        loop {
            let mut active = false;
            while let Some(event) = self.hub.poll_event() {
                active = true;
                self.carry_out(event);
            }
            while let Some(line) = self.hub.poll_line() {
                self.lines.push(line);
            }
            while let Some((conn, reply)) = self.hub.poll_reply() {
                active = true;
                if let Some(socket) = self.sockets.get_mut(&conn) {
                    if let Reply::Acknowledge(ack) = &reply {
                        let prompt = socket.prompt.clone();
                        self.acknowledged.insert(ack.id.to_string(), prompt);
                    }
                    socket.take(reply);
                }
            }
            while let Some(conn) = self.hub.poll_ready() {
                active = true;
                while let Some(frame) = self.hub.next_frame(conn, self.now) {
                    let socket = self.sockets.get_mut(&conn).expect("a socket that is there");
                    let frame = serde_json::from_str(frame.as_str());
                    socket.frames.push(frame.unwrap());
                }
            }
            if !active {
                return;
            }
        }
    }

    fn carry_out(&mut self, event: HubEvent) {
        match event {
            HubEvent::Store(job) if job.is_release() => {
                self.released.push(job.session_id().to_string());
                self.hub.done(job, Ok(None), self.now);
            }
            HubEvent::Store(job) => self.jobs.push_back(job),
            HubEvent::Start {
                run,
                session_id,
                prompt,
                ..
            } => {
                let prompt = prompt.text.to_string();
                self.started.push((session_id.to_string(), prompt.clone()));
                assert!(self.agents.insert(run, prompt).is_none());
            }
            HubEvent::Cancel(run) => {
                self.agents.remove(&run);
                self.cancelled.push(run);
            }
            HubEvent::Told(run) => {
                for (_, id) in self.questions.iter().filter(|(of, _)| *of == run) {
                    if let Ok(Some(_)) = self.hub.take_answer(run, id) {
                        self.answered.push(id.to_string());
                    }
                }
            }
            HubEvent::Unused(files) => self.unused.extend(files),
            _ => {}
        }
    }
}

impl Socket {
    fn take(&mut self, reply: Reply) {
        match reply {
            Reply::Frame(text) => {
                self.frames
                    .push(serde_json::from_str(text.as_str()).unwrap());
                return;
            }
            Reply::Close(frame) => {
                self.closed = Some(frame.code);
                return;
            }
            Reply::Accept(connected) => {
                self.accepted += 1;
                self.connected = Some(connected);
            }
            Reply::Refuse(error) => {
                self.answer = Some(false);
                self.refused.push(error.message.to_string());
            }
            Reply::Begun => {
                self.answer = Some(true);
                self.begun += 1;
            }
            Reply::Acknowledge(ack) => {
                self.answer = Some(true);
                self.acknowledged.push(ack.id.to_string());
            }
            other => panic!("{other:?}"),
        }
        assert!(self.asked > 0, "an answer that nobody asked for");
        self.asked -= 1;
    }

    /// How many frames of this type have come.
    pub fn count(&self, kind: &str) -> usize {
        self.frames.iter().filter(|it| it["type"] == kind).count()
    }
}
