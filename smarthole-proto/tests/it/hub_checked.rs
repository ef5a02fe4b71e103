//! A hub and its naive model under the same operations: both have to do the same.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use rpc_core::Instant;
use smarthole_proto::frame::{Answer, Notification, Registration, Response};
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubError, HubEvent, Input, RouteId};
use smarthole_proto::router::{Choice, RouterError};

use super::hub_naive::{Kind, Model, NAMES, TIMEOUT, state_name};
use super::hub_play::{Names, outcome};

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Join(usize),
    Leave(usize),
    Say(Option<usize>),
    Decide(usize, Vec<&'static str>),
    Fail(usize),
    Answer(usize, usize, Kind),
    Wait(u64),
}

pub(crate) struct Both {
    hub: Hub,
    start: Instant,
    model: Model,
    names: Names,
    conns: HashMap<&'static str, ConnId>,
    next_conn: u64,
    ids: Vec<smarthole_proto::id::MessageId>,
    routes: Vec<RouteId>,
}

impl Both {
    pub(crate) fn new(limit: u32, reroute_direct: bool, max_history: usize) -> Self {
        let start = Instant::now();
        let config = HubConfig {
            routing_limit: limit,
            reroute_direct,
            max_history,
            ..HubConfig::default()
        };
        Self {
            hub: Hub::new(config, 7, start),
            start,
            model: Model {
                limit,
                reroute_direct,
                max_history,
                now: 0,
                clients: Vec::new(),
                messages: Vec::new(),
                questions: Vec::new(),
                asked: 0,
                sent: Vec::new(),
                history: Vec::new(),
                lines: Vec::new(),
            },
            names: Names::default(),
            conns: HashMap::new(),
            next_conn: 1,
            ids: Vec::new(),
            routes: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.model.now)
    }

    fn register(&mut self, name: &'static str) -> bool {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        let registered = self.hub.register(conn, &Registration::new(name, "d"));
        if registered.is_ok() {
            self.conns.insert(name, conn);
        }
        registered.is_ok()
    }

    pub(crate) fn perform(&mut self, op: Op) {
        let now = self.now();
        match op {
            Op::Join(name) => {
                let name = NAMES[name];
                let joined = self.register(name);
                assert_eq!(joined, self.model.join(name));
            }
            Op::Leave(name) => {
                let name = NAMES[name];
                let conn = self.conns.remove(name);
                let left = conn.is_some_and(|conn| self.hub.disconnect(conn));
                assert_eq!(left, self.model.leave(name));
            }
            Op::Say(to) => {
                let to = to.map(|name| NAMES[name]);
                let text = to.map_or("x".to_owned(), |to| format!("{to}: x"));
                let submitted = self
                    .hub
                    .submit(Input::text(text), now, SystemTime::UNIX_EPOCH);
                assert_eq!(submitted.is_ok(), self.model.send(to, "x"));
                if let Ok(id) = submitted {
                    self.names.message(&id);
                    self.ids.push(id);
                }
            }
            // Questions and messages are counted from the newest: those are open.
            Op::Decide(question, choices) => {
                if let Some(number) = self.routes.len().checked_sub(question + 1) {
                    self.decide(number, &choices);
                }
            }
            Op::Fail(question) => {
                if let Some(number) = self.routes.len().checked_sub(question + 1) {
                    let failed = self
                        .hub
                        .fail(self.routes[number], RouterError::Failed("no".into()));
                    assert_eq!(failed.is_ok(), self.model.fail(number));
                }
            }
            Op::Answer(name, message, kind) => {
                let name = NAMES[name];
                if let (Some(conn), Some(message)) = (
                    self.conns.get(name),
                    self.ids.len().checked_sub(message + 1),
                ) {
                    let response = Response::new(self.ids[message].as_str(), answer(kind));
                    self.hub.respond(*conn, response);
                    self.model.answer(name, message, kind);
                }
            }
            Op::Wait(time) => {
                let end = self.model.now + time;
                let mut steps = 0;
                while let Some(at) = self.hub.poll_timeout()
                    && at <= self.start + Duration::from_millis(end)
                {
                    steps += 1;
                    assert!(steps < 100_000, "something is due again and again");
                    self.hub.handle_timeout(at);
                }
                self.model.advance(end);
                self.hub.handle_timeout(self.now());
            }
        }
        self.compare();
    }

    fn decide(&mut self, number: usize, choices: &[&'static str]) {
        let now = self.now();
        let names = choices.iter().map(|name| Choice::new(*name)).collect();
        let decided = self.hub.decide(self.routes[number], names, now);
        match self.model.decide(number, choices) {
            Some(reached) => assert_eq!(decided, Ok(reached)),
            None => assert_eq!(decided, Err(HubError::UnknownRoute)),
        }
    }

    fn compare(&mut self) {
        let mut lines = Vec::new();
        let mut delivered = Vec::new();
        while let Some(event) = self.hub.poll_event() {
            match &event {
                HubEvent::Route { route, .. } => self.routes.push(*route),
                HubEvent::Delivered { client, .. } => delivered.push(client.to_string()),
                _ => {}
            }
            lines.push(self.names.line(&event));
        }
        assert_eq!(lines, std::mem::take(&mut self.model.lines));
        let mut receivers = Vec::new();
        while let Some((conn, _)) = self.hub.poll_transmit() {
            let client = self.hub.clients().find(|it| it.conn == conn).unwrap();
            receivers.push(client.registration.name.to_string());
        }
        assert_eq!(receivers, delivered);
        let clients = self.hub.clients().map(|one| one.registration.name.as_str());
        assert!(clients.eq(self.model.clients.iter().copied()));
        let history: Vec<_> = self.hub.history().collect();
        assert_eq!(history.len(), self.model.history.len());
        for (entry, (message, place)) in history.iter().zip(&self.model.history) {
            let got = &self.model.messages[*message].got[*place];
            assert_eq!(entry.message, self.ids[*message]);
            assert_eq!((&*entry.client, entry.late), (got.client, got.late));
            assert_eq!(outcome(&entry.outcome), state_name(got.state));
        }
        let next = self.model.next_deadline();
        let deadline = next.map(|(at, ..)| self.start + Duration::from_millis(at));
        let poll = self.hub.poll_timeout();
        assert_eq!(poll.is_some(), deadline.is_some());
        assert!(poll <= deadline, "too late: {poll:?} for {deadline:?}");
        let busy = (0..self.model.messages.len()).filter(|one| !self.model.is_idle(*one));
        assert_eq!(self.hub.open_messages(), busy.count());
    }

    /// Answers every question and lets time run until nothing is open.
    pub(crate) fn finish(&mut self) {
        for _ in 0..1_000 {
            while let Some(question) = self.model.questions.first() {
                let number = question.number;
                let free = self.model.clients.iter();
                let free = free.filter(|name| !self.model.messages[question.message].has(name));
                let first: Vec<_> = free.copied().take(1).collect();
                self.decide(number, &first);
                self.compare();
            }
            if self.hub.poll_timeout().is_none() {
                break;
            }
            self.perform(Op::Wait(TIMEOUT));
        }
        assert!(self.model.messages.iter().all(|message| message.settled));
        assert_eq!(self.hub.in_flight(), 0);
        assert_eq!(self.hub.open_messages(), 0);
        assert_eq!(self.hub.poll_timeout(), None);
    }
}

fn answer(kind: Kind) -> Answer {
    match kind {
        Kind::Ack => Answer::Ack,
        Kind::Reject => Answer::reject(Some("no".into())),
        Kind::Notify => Answer::Notification(Notification::new("hi")),
        Kind::Blank => Answer::Notification(Notification::new("")),
        Kind::Mumble => Answer::Unknown {
            tag: "mumble".into(),
            content: None,
        },
    }
}
