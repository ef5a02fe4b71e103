//! A hub with a clock and a storage that answers at once, and what it told so far.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::auth::Address;
use crate::frame::{
    Answer, Approval, ApprovalNeeded, Connect, EventKind, Response, SessionState, Signed, Thinking,
};
use crate::hub::job::Request;
use crate::hub::{
    AppError, ConnId, ConnectRequest, Hub, HubConfig, HubEvent, Now, Owner, Prompt, Reply, RunId,
};
use crate::server::ServerEvent;
use crate::storage::Record;
use rpc_core::{Instant, Json, Str};
use serde_json::Value;

pub const ALICE: Owner = Owner::Key(Address::from_bytes([1; 32]));
pub const BOB: Owner = Owner::Key(Address::from_bytes([2; 32]));
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3600);

/// What a CONNECT asks for.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub owner: Owner,
    pub session_id: Option<&'a str>,
    pub last_msg_id: Option<&'a str>,
}

impl<'a> Ask<'a> {
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            session_id: None,
            last_msg_id: None,
        }
    }

    pub fn with_session_id(mut self, id: Option<&'a str>) -> Self {
        self.session_id = id;
        self
    }

    pub fn with_last_msg_id(mut self, id: Option<&'a str>) -> Self {
        self.last_msg_id = id;
        self
    }
}

/// How a socket was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    pub session_id: String,
    pub status: SessionState,
    /// Whether it got the session in place of events that are gone.
    pub has_session: bool,
    /// The ERROR of the last run.
    pub failure: Option<String>,
}

/// The outcome of an INPUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    Started(RunId),
    Queued(RunId),
}

pub struct Play {
    pub hub: Hub,
    pub now: Now,
    pub sockets: u64,
    pub random: u128,
    /// What the storage has of every session that it is asked for.
    pub stored: Option<Record>,
    /// The replies that no one has looked at.
    pub replies: VecDeque<(ConnId, Reply)>,
    /// What agents were told.
    pub reported: VecDeque<HubEvent>,
    /// The questions of agents.
    asked: Vec<(RunId, Str)>,
    /// The sessions that are there.
    alive: BTreeSet<String>,
    /// Those that were removed.
    pub removed: VecDeque<String>,
    /// The records that were stored at the ends of sessions: how many unread prompts they have.
    pub noted: VecDeque<usize>,
}

impl Play {
    pub fn new() -> Self {
        Self::with(HubConfig::default())
    }

    pub fn with(config: HubConfig) -> Self {
        let instant = Instant::now();
        Self {
            hub: Hub::new(config, 0x5eed, instant),
            now: Now {
                instant,
                unix: 1_795_293_457.5,
            },
            sockets: 0,
            random: 0,
            stored: None,
            replies: VecDeque::new(),
            reported: VecDeque::new(),
            asked: Vec::new(),
            alive: BTreeSet::new(),
            removed: VecDeque::new(),
            noted: VecDeque::new(),
        }
    }

    /// The storage answers, and everything that is told is kept.
    pub fn settle(&mut self) {
        while let Some(event) = self.hub.poll_event() {
            match event {
                HubEvent::Store(job) => {
                    let id = job.session_id().to_string();
                    if job.is_release() && self.alive.remove(&id) {
                        self.removed.push_back(id);
                    }
                    if let Request::Append(record, None) = &job.request {
                        self.noted.push_back(record.inputs.len());
                    }
                    let is_load = matches!(job.request, Request::Load(_));
                    let found = self.stored.clone().filter(|_| is_load);
                    self.hub.done(job, Ok(found), self.now);
                }
                other => self.reported.push_back(other),
            }
        }
        while let Some(reply) = self.hub.poll_reply() {
            if let (_, Reply::Accept(connected)) = &reply {
                self.alive.insert(connected.session_id.to_string());
            }
            self.replies.push_back(reply);
        }
    }

    pub fn wait(&mut self, time: Duration) {
        self.now.instant += time;
        self.hub.handle_timeout(self.now);
        self.settle();
    }

    /// A socket that sends CONNECT.
    pub fn connect_at(&mut self, conn: ConnId, ask: Ask<'_>) -> Result<Joined, String> {
        let mut connect = Connect::new(Signed::none());
        connect.session_id = ask.session_id.map(Into::into);
        connect.last_msg_id = ask.last_msg_id.map(Into::into);
        self.random += 1;
        let request = ConnectRequest::new(ask.owner, connect, self.random);
        self.replies.clear();
        self.hub.connect(conn, request, self.now);
        self.settle();
        let mut replies = self.replies.iter().filter(|(to, _)| *to == conn);
        match replies.next().unwrap() {
            (_, Reply::Accept(connected)) => Ok(Joined {
                session_id: connected.session_id.to_string(),
                status: connected.status,
                has_session: connected.session.is_some(),
                failure: replies.next().map(|(_, reply)| match reply {
                    Reply::Frame(text) => message(text.as_str()),
                    other => panic!("{other:?}"),
                }),
            }),
            (_, Reply::Refuse(error)) => Err(error.message.to_string()),
            (_, other) => panic!("{other:?}"),
        }
    }

    pub fn try_connect(&mut self, ask: Ask<'_>) -> Result<(ConnId, Joined), String> {
        self.sockets += 1;
        let conn = ConnId(self.sockets);
        self.connect_at(conn, ask).map(|joined| (conn, joined))
    }

    pub fn connect(&mut self, ask: Ask<'_>) -> (ConnId, Joined) {
        self.try_connect(ask).unwrap()
    }

    /// A session of Alice and a socket at it.
    pub fn alice(&mut self) -> (ConnId, String) {
        let (conn, joined) = self.connect(Ask::new(ALICE));
        (conn, joined.session_id)
    }

    pub fn back(&mut self, id: &str) -> (ConnId, Joined) {
        self.connect(Ask::new(ALICE).with_session_id(Some(id)))
    }

    pub fn disconnect(&mut self, conn: ConnId) {
        self.hub.disconnect(conn, self.now);
        self.settle();
    }

    pub fn touch(&mut self, conn: ConnId) {
        self.hub.touch(conn, self.now.instant);
    }

    pub fn input(&mut self, conn: ConnId, prompt: &str) -> Result<Accepted, String> {
        self.replies.clear();
        self.reported.clear();
        self.hub.input(conn, Prompt::new(prompt), None, self.now);
        self.settle();
        let (to, reply) = self.replies.pop_front().unwrap();
        assert_eq!(to, conn);
        match (reply, self.reported.pop_front()) {
            (Reply::Begun, Some(HubEvent::Start { run, .. })) => Ok(Accepted::Started(run)),
            (Reply::Acknowledge(_), Some(HubEvent::Told(run))) => Ok(Accepted::Queued(run)),
            (Reply::Refuse(error), None) => Err(error.message.to_string()),
            other => panic!("{other:?}"),
        }
    }

    pub fn start(&mut self, conn: ConnId) -> RunId {
        match self.input(conn, "hello") {
            Ok(Accepted::Started(run)) => run,
            other => panic!("{other:?}"),
        }
    }

    pub fn try_event(&mut self, run: RunId, id: &str) -> Result<Str, AppError> {
        let kind = EventKind::Thinking(Thinking::new(id));
        self.hub.emit(run, kind, Some(id), self.now)
    }

    pub fn event(&mut self, run: RunId, id: &str) {
        self.try_event(run, id).unwrap();
    }

    /// The agent asks whether a tool may run.
    pub fn ask(&mut self, run: RunId) -> Result<Str, AppError> {
        let tool = ApprovalNeeded::new("tool", Json::EMPTY_ARRAY, "");
        let kind = EventKind::ApprovalNeeded(tool);
        let id = self.hub.ask(run, kind, self.now)?;
        self.asked.push((run, id.clone()));
        Ok(id)
    }

    /// The user answers such a question. Returns the run and the question's id, or the reason why not.
    pub fn answer(&mut self, conn: ConnId, id: Option<&str>) -> Result<(RunId, Str), String> {
        self.answer_with(conn, id, Answer::Approval(Approval::default()))
    }

    pub fn answer_with(
        &mut self,
        conn: ConnId,
        id: Option<&str>,
        answer: Answer,
    ) -> Result<(RunId, Str), String> {
        self.replies.clear();
        self.reported.clear();
        let mut response = Response::new("", answer);
        response.request_id = id.map(Into::into);
        let command = ServerEvent::Response(response);
        self.hub.command(conn, command, self.now);
        self.settle();
        match (self.reported.pop_front(), self.replies.pop_front()) {
            (Some(HubEvent::Told(run)), None) => {
                let mut answered = self.asked.iter().filter(|(of, _)| *of == run);
                let answered =
                    answered.find(|(_, id)| matches!(self.hub.take_answer(run, id), Ok(Some(_))));
                Ok(answered.unwrap().clone())
            }
            (None, Some((_, Reply::Frame(text)))) => {
                let error: Value = serde_json::from_str(text.as_str()).unwrap();
                let reason = error["reason"].as_str().or(error["message"].as_str());
                Err(reason.unwrap().to_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn interrupt(&mut self, conn: ConnId) {
        self.hub.command(conn, ServerEvent::Interrupt, self.now);
        self.settle();
    }

    /// The agent returns. Returns the prompts that it has not read.
    pub fn try_finish(&mut self, run: RunId) -> Result<Vec<Prompt>, AppError> {
        let unread = self.hub.finish(run, "done", self.now);
        self.settle();
        unread
    }

    pub fn finish(&mut self, run: RunId) {
        assert_eq!(self.try_finish(run), Ok(Vec::new()));
    }

    pub fn fail(&mut self, run: RunId) -> Result<(), AppError> {
        let failed = self.hub.fail(run, "failed", self.now);
        self.settle();
        failed
    }

    /// What a socket can take now, without what only reports a prompt.
    pub fn frames(&mut self, conn: ConnId) -> Vec<String> {
        let next = || self.hub.next_frame(conn, self.now);
        let frames = std::iter::from_fn(next).map(|text| shown(text.as_str()));
        frames.filter(|it| it != "user_input").collect()
    }

    pub fn status(&self, id: &str) -> SessionState {
        self.status_for(Some(ALICE), id)
    }

    pub fn status_for(&self, asker: Option<Owner>, id: &str) -> SessionState {
        self.hub.status(asker, Some(&id.into())).status
    }
}

/// The words of an ERROR.
fn message(text: &str) -> String {
    let frame: Value = serde_json::from_str(text).unwrap();
    assert_eq!(frame["type"], "ERROR");
    frame["message"].as_str().unwrap().to_owned()
}

/// What an agent has thought, or the type of another frame.
pub fn shown(text: &str) -> String {
    let frame: Value = serde_json::from_str(text).unwrap();
    let kind = frame["type"].as_str().unwrap();
    match kind {
        "thinking" => frame["content"].as_str().unwrap().to_owned(),
        _ => kind.to_owned(),
    }
}

/// A configuration with these changes.
pub fn config(set: impl FnOnce(&mut HubConfig)) -> HubConfig {
    let mut config = HubConfig::default();
    set(&mut config);
    config
}
