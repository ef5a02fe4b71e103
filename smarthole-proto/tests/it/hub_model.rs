//! The hub against a naive model, under random schedules.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::{Duration, Instant, SystemTime};

use proptest::prelude::*;
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubError, HubEvent, Input, RouteId};
use smarthole_proto::router::{Choice, RouterError};
use smarthole_proto::{Answer, Notification, Registration, Response};

use super::hub_play::{Names, outcome};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "A"];
const TIMEOUT: u64 = 30_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Open { deadline: u64 },
    Acked,
    Notified,
    Rejected,
    TimedOut,
}

#[derive(Clone, Debug)]
struct Got {
    client: &'static str,
    attempt: u32,
    state: State,
    late: bool,
    forgotten: bool,
}

#[derive(Default)]
struct Message {
    text: String,
    direct: bool,
    got: Vec<Got>,
    rejections: Vec<(&'static str, &'static str)>,
    why: Option<&'static str>,
    settled: bool,
}

struct Question {
    number: usize,
    message: usize,
    attempt: u32,
    asked: Vec<&'static str>,
    reached: usize,
}

/// Everything in lists, looked through from the front.
struct Model {
    limit: u32,
    reroute_direct: bool,
    max_history: usize,
    now: u64,
    clients: Vec<&'static str>,
    messages: Vec<Message>,
    questions: Vec<Question>,
    asked: usize,
    /// Deliveries in the order of sending, and those that ended in the order of ending.
    sent: Vec<(usize, usize)>,
    history: Vec<(usize, usize)>,
    /// What is expected of the hub.
    lines: Vec<String>,
}

impl Message {
    fn has(&self, client: &str) -> bool {
        self.got.iter().any(|got| got.client == client)
    }

    fn reasons(&self) -> String {
        let mut list = String::new();
        for (client, reason) in &self.rejections {
            let _ = write!(list, "\n      {client}: {reason}");
        }
        list
    }
}

impl Model {
    fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    fn join(&mut self, name: &'static str) -> bool {
        if self.clients.contains(&name) {
            return false;
        }
        self.clients.push(name);
        self.line(format!("registered {name}"));
        true
    }

    fn leave(&mut self, name: &'static str) -> bool {
        let before = self.clients.len();
        self.clients.retain(|one| *one != name);
        if self.clients.len() == before {
            return false;
        }
        self.line(format!("left {name}"));
        true
    }

    fn say(&mut self, to: Option<&str>, text: &str) -> bool {
        if self.clients.is_empty() {
            return false;
        }
        let similar = |to: &str, name: &str| name.eq_ignore_ascii_case(to);
        let named = to.and_then(|to| {
            let clients = || self.clients.iter().copied();
            clients()
                .find(|name| *name == to)
                .or_else(|| clients().find(|name| similar(to, name)))
        });
        self.messages.push(Message {
            text: to.map_or(text.to_owned(), |to| format!("{to}: {text}")),
            direct: named.is_some(),
            ..Message::default()
        });
        let message = self.messages.len() - 1;
        match named {
            Some(name) => self.deliver(message, name, 1, true, text),
            None => self.ask(message, 1),
        }
        true
    }

    fn deliver(
        &mut self,
        message: usize,
        client: &'static str,
        attempt: u32,
        direct: bool,
        text: &str,
    ) {
        assert!(!self.messages[message].has(client), "got it twice");
        assert!(attempt <= self.limit.max(1), "beyond the limit");
        let deadline = self.now + TIMEOUT;
        self.messages[message].got.push(Got {
            client,
            attempt,
            state: State::Open { deadline },
            late: false,
            forgotten: false,
        });
        let place = self.messages[message].got.len() - 1;
        self.sent.push((message, place));
        let how = if direct { " directly" } else { "" };
        self.line(format!(
            "delivered m{} to {client}{how} {text:?} (-)",
            message + 1
        ));
    }

    fn ask(&mut self, message: usize, attempt: u32) {
        let one = &self.messages[message];
        let candidates: Vec<_> = self
            .clients
            .iter()
            .copied()
            .filter(|name| !one.has(name))
            .collect();
        if attempt > self.limit.max(1) || candidates.is_empty() {
            let why = if self.clients.is_empty() && one.got.is_empty() {
                "no client is connected"
            } else {
                "no client could handle the message"
            };
            self.messages[message].why = Some(why);
            return;
        }
        let excluded: String = one
            .got
            .iter()
            .map(|got| format!(" not {}", got.client))
            .collect();
        let line = format!(
            "route m{} {:?} to {}{excluded}{}",
            message + 1,
            one.text,
            candidates.join(" | "),
            one.reasons()
        );
        self.questions.push(Question {
            number: self.asked,
            message,
            attempt,
            asked: self.clients.clone(),
            reached: one.got.len(),
        });
        self.asked += 1;
        self.line(line);
    }

    /// How many get the message.
    fn decide(&mut self, number: usize, choices: &[&'static str]) -> Option<usize> {
        let at = self.questions.iter().position(|one| one.number == number)?;
        let question = self.questions.remove(at);
        let message = question.message;
        let mut chosen = Vec::new();
        let mut lost = false;
        for (index, name) in choices.iter().enumerate() {
            if choices[..index].contains(name) {
                continue;
            }
            let got = &self.messages[message].got;
            let place = got.iter().position(|got| got.client == *name);
            if self.clients.contains(name) && place.is_none() {
                chosen.push(*name);
            } else {
                let had_it = place.is_some_and(|place| place < question.reached);
                lost |= question.asked.contains(name) && !had_it;
            }
        }
        if chosen.is_empty() && lost {
            self.ask(message, question.attempt + 1);
        } else if chosen.is_empty() {
            self.messages[message].why = Some("no client was chosen");
        }
        let text = self.messages[message].text.clone();
        for name in &chosen {
            self.deliver(message, name, question.attempt, false, &text);
        }
        self.settle(message);
        Some(chosen.len())
    }

    fn fail(&mut self, number: usize) -> bool {
        let Some(at) = self.questions.iter().position(|one| one.number == number) else {
            return false;
        };
        let message = self.questions.remove(at).message;
        self.messages[message].why = Some("the router failed: no");
        self.settle(message);
        true
    }

    fn answer(&mut self, client: &'static str, message: usize, kind: Kind) {
        let ignored = |why: &str| format!("ignored m{}: {why}", message + 1);
        let Some(place) = self.messages[message]
            .got
            .iter()
            .position(|got| got.client == client)
        else {
            return self.line(ignored("no such message of this client"));
        };
        let got = &mut self.messages[message].got[place];
        if got.forgotten {
            return self.line(ignored("no such message of this client"));
        }
        let (before, late, attempt) = (got.state, got.late, got.attempt);
        got.state = match (kind, before) {
            (Kind::Mumble, _) => return self.line(ignored("unknown answer \"mumble\"")),
            (Kind::Ack, State::Acked) => return self.line(ignored("the message is taken already")),
            (Kind::Ack | Kind::Reject, State::Rejected) => {
                return self.line(ignored("the message is rejected already"));
            }
            (Kind::Ack, _) => State::Acked,
            (Kind::Reject, _) => State::Rejected,
            (_, State::Open { .. } | State::TimedOut) => State::Notified,
            (_, state) => state,
        };
        if let State::Open { .. } = before {
            self.history.push((message, place));
        }
        let tag = if late { " late" } else { "" };
        let id = message + 1;
        match kind {
            Kind::Ack => self.line(format!("acked m{id} by {client}{tag}")),
            Kind::Reject => {
                self.line(format!("rejected m{id} by {client}{tag} (no)"));
                if !late {
                    self.reroute(message, client, "no", attempt);
                }
            }
            Kind::Notify => self.line(format!(
                "notification m{id} by {client}{tag} \"{client}\" \"hi\" normal"
            )),
            Kind::Blank | Kind::Mumble => {}
        }
        self.settle(message);
        self.trim();
    }

    fn reroute(
        &mut self,
        message: usize,
        client: &'static str,
        reason: &'static str,
        attempt: u32,
    ) {
        let one = &mut self.messages[message];
        one.rejections.push((client, reason));
        if one.direct && !self.reroute_direct {
            one.why = Some("the client did not take the message");
        } else {
            self.ask(message, attempt + 1);
        }
    }

    /// The next deadline, and the delivery that was sent first among those of it.
    fn next_deadline(&self) -> Option<(u64, usize, usize)> {
        let open = self.sent.iter().filter_map(|&(message, place)| {
            match self.messages[message].got[place].state {
                State::Open { deadline } => Some((deadline, message, place)),
                _ => None,
            }
        });
        open.min_by_key(|(deadline, ..)| *deadline)
    }

    fn advance(&mut self, to: u64) {
        while let Some((deadline, message, place)) = self.next_deadline()
            && deadline <= to
        {
            self.now = deadline;
            let got = &mut self.messages[message].got[place];
            got.state = State::TimedOut;
            got.late = true;
            let (client, attempt) = (got.client, got.attempt);
            self.history.push((message, place));
            self.line(format!(
                "timed out m{} by {client} (Response timeout)",
                message + 1
            ));
            self.reroute(message, client, "Response timeout", attempt);
            self.settle(message);
            self.trim();
        }
        self.now = to;
    }

    fn is_idle(&self, message: usize) -> bool {
        let asked = self.questions.iter().any(|one| one.message == message);
        let got = &self.messages[message].got;
        !asked
            && !got
                .iter()
                .any(|got| matches!(got.state, State::Open { .. }))
    }

    fn settle(&mut self, message: usize) {
        if !self.is_idle(message) {
            return;
        }
        let one = &mut self.messages[message];
        let taken = |got: &Got| matches!(got.state, State::Acked | State::Notified);
        let reasons = one.reasons();
        if !one.got.iter().any(taken)
            && let Some(why) = one.why.take()
        {
            let line = format!("unroutable m{} {:?}: {why}{reasons}", message + 1, one.text);
            self.lines.push(line);
        }
        let one = &mut self.messages[message];
        if !one.settled {
            one.settled = true;
            let outcomes = one.got.iter();
            let outcomes =
                outcomes.map(|got| format!(", {} {}", got.client, state_name(got.state)));
            let line = format!("settled m{}{}", message + 1, outcomes.collect::<String>());
            self.lines.push(line);
        }
    }

    fn trim(&mut self) {
        while self.history.len() > self.max_history {
            let (message, place) = self.history.remove(0);
            self.messages[message].got[place].forgotten = true;
        }
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Open { .. } => "open",
        State::Acked => "acked",
        State::Notified => "notified",
        State::Rejected => "rejected",
        State::TimedOut => "timed out",
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Ack,
    Reject,
    Notify,
    Blank,
    Mumble,
}

#[derive(Clone, Debug)]
enum Op {
    Join(usize),
    Leave(usize),
    Say(Option<usize>),
    Decide(usize, Vec<&'static str>),
    Fail(usize),
    Answer(usize, usize, Kind),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let name = || 0..NAMES.len();
    let choice = prop_oneof![
        9 => prop::sample::select(&NAMES[..]),
        1 => Just("ghost"),
    ];
    let kind = prop_oneof![
        3 => Just(Kind::Ack),
        5 => Just(Kind::Reject),
        1 => Just(Kind::Notify),
        1 => Just(Kind::Blank),
        1 => Just(Kind::Mumble),
    ];
    prop_oneof![
        3 => name().prop_map(Op::Join),
        2 => name().prop_map(Op::Leave),
        4 => prop::option::weighted(0.3, name()).prop_map(Op::Say),
        6 => (0..8_usize, prop::collection::vec(choice, 0..4)).prop_map(|(q, c)| Op::Decide(q, c)),
        1 => (0..8_usize).prop_map(Op::Fail),
        12 => (name(), 0..4_usize, kind).prop_map(|(c, m, k)| Op::Answer(c, m, k)),
        4 => prop::sample::select(vec![1, 700, 5_000, 15_000, 29_999, 30_000]).prop_map(Op::Wait),
    ]
}

struct Both {
    hub: Hub,
    start: Instant,
    model: Model,
    names: Names,
    conns: HashMap<&'static str, ConnId>,
    next_conn: u64,
    ids: Vec<smarthole_proto::MessageId>,
    routes: Vec<RouteId>,
}

impl Both {
    fn new(limit: u32, reroute_direct: bool, max_history: usize) -> Self {
        let start = Instant::now();
        let config = HubConfig::default()
            .with_routing_limit(limit)
            .with_reroute_direct(reroute_direct)
            .with_max_history(max_history);
        Self {
            hub: Hub::new(config, 7, start),
            start,
            model: Model {
                limit,
                reroute_direct,
                max_history,
                now: 0,
                clients: NAMES[..3].to_vec(),
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

    fn perform(&mut self, op: Op) {
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
                assert_eq!(submitted.is_ok(), self.model.say(to, "x"));
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
                        .fail(self.routes[number], RouterError::failed("no"));
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
                while let Some(at) = self.hub.poll_timeout()
                    && at <= self.start + Duration::from_millis(end)
                {
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
        let decided = self
            .hub
            .decide(self.routes[number], names, now, SystemTime::UNIX_EPOCH);
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
            let client = self.hub.client_of(conn).unwrap();
            receivers.push(client.registration.name.to_string());
        }
        assert_eq!(receivers, delivered);
        let clients = self.hub.clients().map(|one| one.registration.name.as_str());
        assert!(clients.eq(self.model.clients.iter().copied()));
        let history: Vec<_> = self.hub.history().collect();
        assert_eq!(history.len(), self.model.history.len());
        for (entry, (message, place)) in history.iter().zip(&self.model.history) {
            let got = &self.model.messages[*message].got[*place];
            assert_eq!(*entry.message, self.ids[*message]);
            assert_eq!((entry.client, entry.late), (got.client, got.late));
            assert_eq!(outcome(entry.outcome), state_name(got.state));
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
    fn finish(&mut self) {
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
            payload: None,
        },
    }
}

proptest! {
    #[test]
    fn the_hub_does_what_a_naive_model_does(
        limit in 0..5_u32,
        reroute_direct: bool,
        max_history in prop_oneof![Just(0_usize), Just(1), Just(3), Just(100)],
        ops in prop::collection::vec(op(), 0..60),
    ) {
        let mut both = Both::new(limit, reroute_direct, max_history);
        both.model.clients.clear();
        for name in 0..3 {
            both.perform(Op::Join(name));
        }
        for op in ops {
            both.perform(op);
        }
        both.finish();
    }
}
