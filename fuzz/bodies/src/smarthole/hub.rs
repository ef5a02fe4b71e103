//! The hub.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, SystemTime};

use rpc_core::Instant;
use smarthole_proto::direct;
use smarthole_proto::frame::{Answer, Notification, Registration, Response, ServerFrame};
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubError, HubEvent, Input, Outcome, RouteId};
use smarthole_proto::id::MessageId;
use smarthole_proto::router::{Choice, RouteRequest, RouterError};

use crate::machine::small;
use crate::script::Script;

/// Names of clients; two differ in case only.
const NAMES: [&str; 6] = ["a", "b", "c", "A", "dd", "e-f"];

/// What a user may say.
const TEXTS: [&str; 9] = [
    "buy milk",
    "a: buy milk",
    "B, x",
    "A: x",
    "dd: \n",
    "nobody: x",
    " ",
    "E-F:: x",
    "c,x",
];

const CONNS: u8 = 7;
const HISTORY: usize = 5;
const LIMIT: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(30);

/// A message as everyone outside of the hub sees it.
#[derive(Default)]
struct State {
    /// Its receivers, with the outcome; `None` is open.
    clients: BTreeMap<String, Option<Outcome>>,
    direct: bool,
    /// Questions to the router that are open.
    routes: usize,
    settled: usize,
    unroutable: usize,
    /// A client rejected what it had taken.
    reopened: bool,
}

struct Question {
    route: RouteId,
    message: MessageId,
    request: RouteRequest,
}

struct World {
    hub: Hub,
    now: Instant,
    wall: SystemTime,
    reroute_direct: bool,
    conns: BTreeMap<u8, &'static str>,
    messages: BTreeMap<String, State>,
    ids: Vec<MessageId>,
    questions: Vec<Question>,
    /// Frames that have to come.
    frames: VecDeque<(ConnId, String)>,
}

/// Runs a hub through operations: every message settles exactly once, no one gets one twice, and each
/// is open for as long as someone has time left or the router is asked.
pub fn hub(data: &[u8]) {
    let (settings, mut script) = Script::with_settings(data);
    let now = Instant::now();
    let reroute_direct = settings & 1 == 1;
    let config = HubConfig {
        response_timeout: PATIENCE,
        routing_limit: LIMIT,
        reroute_direct,
        max_history: HISTORY,
        max_open: if settings & 2 == 2 { 2 } else { 100 },
        limits: small(),
        ..HubConfig::default()
    };
    let mut world = World {
        hub: Hub::new(config, 0x5eed, now),
        now,
        wall: SystemTime::UNIX_EPOCH,
        reroute_direct,
        conns: BTreeMap::new(),
        messages: BTreeMap::new(),
        ids: Vec::new(),
        questions: Vec::new(),
        frames: VecDeque::new(),
    };
    while let Some(op) = script.byte() {
        world.operate(op, &mut script);
        world.look();
    }
    world.finish();
}

impl World {
    fn operate(&mut self, op: u8, script: &mut Script<'_>) {
        match op % 12 {
            0 | 1 => self.register(script),
            2 => {
                let conn = script.byte_or_zero() % CONNS;
                let was = self.conns.remove(&conn).is_some();
                let left = self.hub.disconnect(ConnId(conn.into()));
                assert_eq!(left, was, "who left");
            }
            3..=5 => self.submit(script),
            6 | 7 => self.decide(script),
            8 => {
                if let Some(question) = self.question(script) {
                    let error = RouterError::Failed("no".into());
                    assert_eq!(self.hub.fail(question.route, error), Ok(()), "a failure");
                    self.answered(&question);
                }
            }
            9 | 10 => self.respond(script),
            _ => {
                let until = self.now + script.seconds();
                self.wait(until);
            }
        }
    }

    fn register(&mut self, script: &mut Script<'_>) {
        let conn = script.byte_or_zero() % CONNS;
        let name = script.pick_text(&NAMES);
        let registration = Registration::new(name, "Does things.");
        let result = self.hub.register(ConnId(conn.into()), &registration);
        let free = !self.conns.values().any(|taken| *taken == name);
        let may = free && !self.conns.contains_key(&conn);
        assert_eq!(result.is_ok(), may, "who may register");
        if may {
            self.conns.insert(conn, name);
        }
    }

    fn submit(&mut self, script: &mut Script<'_>) {
        let text = match script.byte_or_zero() {
            255 => "x".repeat(3000),
            at => TEXTS[usize::from(at) % TEXTS.len()].to_owned(),
        };
        let clients = self.hub.clients().map(|it| it.registration.name.clone());
        let clients: Vec<_> = clients.collect();
        let named = direct::route(&text, clients.iter().map(|name| &**name));
        let named = named.map(|(client, rest)| (client.to_owned(), rest.to_owned()));
        match self
            .hub
            .submit(Input::text(text.as_str()), self.now, self.wall)
        {
            Ok(id) => {
                assert!(!self.conns.is_empty(), "somebody is there");
                let known = self.messages.contains_key(id.as_str());
                assert!(!known, "an id was given twice");
                let told = State {
                    direct: named.is_some(),
                    ..State::default()
                };
                self.messages.insert(id.as_str().to_owned(), told);
                self.ids.push(id.clone());
                self.told_at_once(&id, named.as_ref());
            }
            Err(HubError::NoClients) => assert!(self.conns.is_empty(), "somebody is there"),
            Err(HubError::Blank) => assert_eq!(text, " ", "a text"),
            Err(HubError::TooLarge { .. }) => assert_eq!(text.len(), 3000, "a short text"),
            Err(HubError::Busy) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// A message goes to the client that it names, else to the router.
    fn told_at_once(&mut self, id: &MessageId, named: Option<&(String, String)>) {
        let event = self.hub.poll_event();
        match (&event, named) {
            (Some(HubEvent::Delivered { client, message }), Some((name, rest))) => {
                assert!(message.metadata.direct_routed, "the user named it");
                let told = (&**client, &*message.text);
                assert_eq!(told, (&**name, &**rest), "the client");
            }
            (Some(HubEvent::Route { message, .. }), None) => {
                assert_eq!(message, id, "the question");
            }
            _ => panic!("it goes somewhere else: {event:?}"),
        }
        if let Some(event) = event {
            self.event(event);
        }
    }

    fn question(&mut self, script: &mut Script<'_>) -> Option<Question> {
        let at = usize::from(script.byte_or_zero());
        let at = at.checked_rem(self.questions.len())?;
        Some(self.questions.swap_remove(at))
    }

    fn answered(&mut self, question: &Question) {
        let again = self
            .hub
            .fail(question.route, RouterError::Failed("no".into()));
        assert_eq!(again, Err(HubError::UnknownRoute), "answered twice");
        self.told(&question.message).routes -= 1;
    }

    fn decide(&mut self, script: &mut Script<'_>) {
        let Some(question) = self.question(script) else {
            return;
        };
        let count = script.byte_or_zero() % 4;
        let mut choices = Vec::new();
        for _ in 0..count {
            let pick = script.byte_or_zero();
            let name = NAMES.get(usize::from(pick & 7)).copied();
            let mut choice = Choice::new(name.unwrap_or("nobody"));
            if pick & 8 == 8 {
                choice.text = Some("in other words".into());
            }
            if pick & 16 == 16 {
                choice.reason = Some("because".into());
            }
            choices.push(choice);
        }
        let has = |name: &str| self.conns.values().any(|it| *it == name);
        let names: BTreeSet<&str> = choices.iter().map(|it| &*it.client).collect();
        let Some(told) = self.messages.get(question.message.as_str()) else {
            panic!("a question about nothing")
        };
        let fit = names.iter().filter(|name| has(name));
        let fit = fit.filter(|name| !told.clients.contains_key(**name));
        let fit = fit.count();
        let found = self.hub.decide(question.route, choices, self.now);
        assert_eq!(found, Ok(fit), "how many get it");
        self.answered(&question);
    }

    fn respond(&mut self, script: &mut Script<'_>) {
        let conn = script.byte_or_zero() % CONNS;
        let id = script.pick(&self.ids).cloned();
        let id = id.map_or_else(|| "unknown".to_owned(), |id| id.as_str().to_owned());
        let answer = match script.byte_or_zero() % 6 {
            0 | 1 => Answer::Ack,
            2 => Answer::reject(Some("no".into())),
            3 => Answer::reject(None),
            4 => Answer::Notification(Notification::new("done")),
            _ => Answer::Unknown {
                tag: "later".into(),
                content: None,
            },
        };
        self.hub
            .respond(ConnId(conn.into()), Response::new(id.as_str(), answer));
    }

    /// Time passes: every deadline fires, and each moves on.
    fn wait(&mut self, until: Instant) {
        for _ in 0..1_000 {
            let Some(at) = self.hub.poll_timeout().filter(|at| *at <= until) else {
                self.now = until;
                self.hub.handle_timeout(until);
                return;
            };
            self.now = at.max(self.now);
            self.hub.handle_timeout(self.now);
            self.look();
            if let Some(next) = self.hub.poll_timeout() {
                assert!(next > at, "a handled deadline must move later");
            }
        }
        panic!("deadlines make no progress");
    }

    fn told(&mut self, id: &MessageId) -> &mut State {
        match self.messages.get_mut(id.as_str()) {
            Some(told) => told,
            None => panic!("a message that nobody submitted"),
        }
    }

    /// Takes what there is, and compares what is open.
    fn look(&mut self) {
        while let Some(event) = self.hub.poll_event() {
            self.event(event);
        }
        while let Some((conn, frame)) = self.hub.poll_transmit() {
            let Ok(ServerFrame::Message(message)) = ServerFrame::decode(frame.as_str(), &small())
            else {
                panic!("a hub must send messages")
            };
            let expected = self.frames.pop_front();
            assert_eq!(Some((conn, message.id.to_string())), expected, "a frame");
        }
        assert!(self.frames.is_empty(), "a frame is missing");
        let open = self.messages.values().map(State::open).sum::<usize>();
        assert_eq!(self.hub.in_flight(), open, "what is open");
        assert_eq!(self.hub.poll_timeout().is_some(), open > 0, "a deadline");
        assert!(self.hub.history().count() <= HISTORY, "the history");
        for told in self.messages.values() {
            let idle = told.open() == 0 && told.routes == 0;
            assert!(!idle || told.settled == 1, "it has to settle");
            assert!(told.settled == 0 || idle || told.reopened, "settled early");
        }
    }

    fn event(&mut self, event: HubEvent) {
        match event {
            HubEvent::Route {
                route,
                message,
                request,
            } => {
                self.asked(&message, &request);
                self.questions.push(Question {
                    route,
                    message,
                    request,
                });
            }
            HubEvent::Delivered { client, message } => self.delivered(&message.id, &client),
            HubEvent::Acked {
                message, client, ..
            } => {
                let outcome = self.told(&message).outcome(&client);
                assert!(
                    !matches!(outcome, Some(Outcome::Rejected { .. })),
                    "it was rejected"
                );
                *outcome = Some(Outcome::Acked);
            }
            HubEvent::Notification {
                message, client, ..
            } => {
                let outcome = self.told(&message).outcome(&client);
                if matches!(outcome, None | Some(Outcome::TimedOut)) {
                    *outcome = Some(Outcome::Notified);
                }
            }
            HubEvent::Rejected {
                message,
                client,
                reason,
                timed_out,
                late,
            } => {
                let told = self.told(&message);
                let outcome = told.outcome(&client);
                let was_taken = outcome.as_ref().is_some_and(Outcome::is_taken);
                assert!(!timed_out || outcome.is_none(), "time for an answer");
                *outcome = Some(if timed_out {
                    Outcome::TimedOut
                } else {
                    Outcome::Rejected { reason }
                });
                told.reopened |= was_taken && !late;
            }
            HubEvent::Unroutable { message, .. } => {
                let told = self.told(&message);
                told.unroutable += 1;
                assert!(!told.is_taken(), "somebody took it");
            }
            HubEvent::Settled { message, outcomes } => {
                let told = self.told(&message);
                told.settled += 1;
                assert_eq!(told.settled, 1, "settled twice");
                let all = outcomes.len() == told.clients.len();
                assert!(all, "an outcome for everybody");
                assert!(told.is_taken() || told.unroutable > 0, "it was lost");
            }
            _ => {}
        }
    }

    fn asked(&mut self, message: &MessageId, request: &RouteRequest) {
        let reroute_direct = self.reroute_direct;
        let names: Vec<_> = self.conns.values().copied().collect();
        let told = self.told(message);
        told.routes += 1;
        assert!(!told.direct || reroute_direct, "the user chose");
        assert!(!request.candidates.is_empty(), "nobody to choose");
        for candidate in &request.candidates {
            let name = candidate.name.as_str();
            assert!(names.contains(&name), "a candidate is there");
            assert!(!told.clients.contains_key(name), "a candidate has it");
            assert!(!request.excluded.contains(&candidate.name), "excluded");
        }
        let reached = request.excluded.len() == told.clients.len();
        assert!(reached, "everybody who has it is excluded");
    }

    fn delivered(&mut self, message: &MessageId, client: &str) {
        let conn = self.conns.iter().find(|(_, name)| **name == client);
        let Some((conn, _)) = conn else {
            panic!("nobody is there")
        };
        let conn = ConnId((*conn).into());
        self.frames.push_back((conn, message.as_str().to_owned()));
        let again = self.told(message).clients.insert(client.to_owned(), None);
        assert_eq!(again, None, "it was delivered twice");
    }

    /// Whatever is open ends: the router fails, and clients let their time pass.
    fn finish(&mut self) {
        for _ in 0..1_000 {
            let questions = std::mem::take(&mut self.questions);
            for question in &questions {
                assert!(!question.request.text.is_empty(), "a question has a text");
                let failed = self
                    .hub
                    .fail(question.route, RouterError::Failed("no".into()));
                assert_eq!(failed, Ok(()), "a failure");
                self.answered(question);
            }
            self.wait(self.now + PATIENCE * 2);
            self.look();
            if self.questions.is_empty() && self.hub.in_flight() == 0 {
                break;
            }
        }
        assert_eq!(self.hub.in_flight(), 0, "it does not end");
        assert!(
            self.messages.values().all(|told| told.settled == 1),
            "a message is lost"
        );
    }
}

impl State {
    fn open(&self) -> usize {
        self.clients.values().filter(|it| it.is_none()).count()
    }

    fn is_taken(&self) -> bool {
        let mut outcomes = self.clients.values().flatten();
        outcomes.any(Outcome::is_taken)
    }

    fn outcome(&mut self, client: &str) -> &mut Option<Outcome> {
        match self.clients.get_mut(client) {
            Some(outcome) => outcome,
            None => panic!("a client that never got it"),
        }
    }
}
