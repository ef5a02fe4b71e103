//! Random lives of a router and its clients: lines are slow, jammed, cut and half open, clients
//! answer late, twice or never, names are taken while the old line is not known to be gone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use rpc_core::{CloseFrame, Limits, Machine as _, Refused};
use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent, Received, reconnect_policy};
use smarthole_proto::frame::{Answer, Notification, Registration, Response};
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubEvent, Input, RouteId};
use smarthole_proto::id::MessageId;
use smarthole_proto::limits::defaults;
use smarthole_proto::router::{Choice, RouterError};
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};
use switchboard_testing::sim::{self, Bounds, Dialling, Line, Outcome, Rng, Tally, World, ensure};

use crate::sim::ledger::{Ledger, Word};

const NAMES: [&str; 3] = ["ann", "bob", "cid"];
const MINUTE: Duration = Duration::from_secs(60);
const MAX_FRAMES: usize = 16;
const MAX_EVENTS: usize = 8;
const MAX_OPEN: usize = 6;
/// A message that no hub has sent.
const FAKE: &str = "msg-fake";
const GARBAGE: [&str; 6] = [
    "",
    "{",
    "[1]",
    r#"{"type":"nonsense","payload":{}}"#,
    r#"{"type":"message","payload":{"id":"msg-fake","text":"x","timestamp":"t"}}"#,
    r#"{"type":"message","payload":{"id":7}}"#,
];

/// One connection, from the first frame to the last.
struct Connection {
    line: Line<ClientConn, ServerConn>,
    client: usize,
    is_registered: bool,
    is_closed: bool,
}

struct House {
    rng: Rng,
    start: Instant,
    now: Instant,
    hub: Hub,
    talks: BTreeMap<u64, Connection>,
    /// The connection of each client.
    current: [Option<u64>; 3],
    dialling: [Dialling; 3],
    /// Messages that each client has not answered, or not often enough.
    unanswered: [Vec<MessageId>; 3],
    questions: Vec<(RouteId, Vec<String>)>,
    ledger: Ledger,
    texts: u64,
    calm: bool,
    tally: Tally,
}

impl House {
    fn new(mut rng: Rng) -> Self {
        let now = Instant::now();
        let config = HubConfig {
            reroute_direct: rng.chance(50),
            max_history: 20,
            ..HubConfig::default()
        };
        Self {
            start: now,
            now,
            hub: Hub::new(config, rng.next_u64().into(), now),
            rng,
            talks: BTreeMap::new(),
            current: [None; 3],
            dialling: [(); 3].map(|()| Dialling::new(reconnect_policy(), now)),
            unanswered: Default::default(),
            questions: Vec::new(),
            ledger: Ledger::default(),
            texts: 0,
            calm: false,
            tally: Tally::default(),
        }
    }

    fn step(&mut self) -> Outcome {
        let client = self.rng.below(3) as usize;
        match self.rng.below(100) {
            0..18 => self.submit()?,
            18..35 => self.route()?,
            35..62 => self.answer(client),
            62..77 => self.wait(Duration::from_millis(400))?,
            77..83 => self.wait(MINUTE)?,
            83..85 => self.sleep(),
            85..98 => self.fault(client),
            _ => self.close(client),
        }
        sim::settle(self, self.now)
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + (self.now - self.start)
    }

    fn wait(&mut self, most: Duration) -> Outcome {
        let time = self.rng.duration(most);
        self.now = sim::advance(self, self.now, time)?;
        Ok(())
    }

    /// The computer sleeps: deadlines are handled late.
    fn sleep(&mut self) {
        self.tally.faults += 1;
        self.now += self.rng.duration(20 * MINUTE);
    }

    /// The user says something, now and then to a certain client.
    fn submit(&mut self) -> Outcome {
        self.texts += 1;
        let name = self
            .rng
            .pick(&NAMES)
            .filter(|_| self.texts.is_multiple_of(3));
        let text = match name {
            Some(name) => format!("{name}: text {}", self.texts),
            None => format!("text {}", self.texts),
        };
        let (now, wall) = (self.now, self.wall());
        match self.hub.submit(Input::text(text), now, wall) {
            Ok(id) => self.ledger.submitted(&id),
            Err(error) => ensure(self.hub.clients().len() == 0, || error.to_string()),
        }
    }

    /// The router decides, well or badly.
    fn route(&mut self) -> Outcome {
        if self.questions.is_empty() {
            return Ok(());
        }
        let index = self.rng.below(self.questions.len() as u64) as usize;
        let (route, candidates) = self.questions.swap_remove(index);
        if !self.calm && self.rng.chance(5) {
            let failed = self.hub.fail(route, RouterError::Failed("no idea".into()));
            return failed.map_err(|error| error.to_string());
        }
        let mut choices: Vec<Choice> = Vec::new();
        for _ in 0..=self.rng.below(3) {
            choices.extend(
                self.rng
                    .pick(&candidates)
                    .map(|it| Choice::new(it.as_str())),
            );
        }
        if !self.calm && self.rng.chance(10) {
            choices.push(Choice::new("nobody"));
        }
        let decided = self.hub.decide(route, choices, self.now);
        decided.map(drop).map_err(|error| error.to_string())
    }

    /// A client says something to a message that it has got, perhaps on an earlier connection.
    fn answer(&mut self, client: usize) {
        let Some(talk) = self.current[client].and_then(|conn| self.talks.get_mut(&conn)) else {
            return;
        };
        let messages = &mut self.unanswered[client];
        if talk.line.client.hangs || messages.is_empty() {
            return;
        }
        let index = self.rng.below(messages.len() as u64) as usize;
        let id = messages[index].clone();
        let word = match self.rng.below(10) {
            _ if self.calm => Word::Ack,
            0..5 => Word::Ack,
            5..8 => Word::Reject,
            _ => Word::Notify,
        };
        let answer = match word {
            Word::Ack => Answer::Ack,
            Word::Reject => Answer::reject(Some("no".into())),
            Word::Notify => Answer::Notification(Notification::new("hi")),
        };
        let response = Response::new(id.as_str(), answer);
        let conn = &mut talk.line.client.machine;
        let sent = if self.rng.chance(20) {
            conn.respond_later(response);
            Ok(())
        } else {
            conn.respond(response.message_id, response.answer)
        };
        if sent.is_ok() {
            self.ledger.says(&id, NAMES[client], word);
            // Now and then something more is said to the same message.
            if self.calm || self.rng.chance(70) {
                messages.swap_remove(index);
            }
        }
    }

    fn fault(&mut self, client: usize) {
        let talk = self
            .talks
            .get_mut(&self.current[client].unwrap_or_default());
        if let Some(talk) = talk {
            self.tally.faults += 1;
            talk.line.suffer(&GARBAGE, self.now, &mut self.rng);
        }
    }

    fn close(&mut self, client: usize) {
        let (now, by_client) = (self.now, self.rng.chance(50));
        let talk = self
            .talks
            .get_mut(&self.current[client].unwrap_or_default());
        if let Some(talk) = talk {
            if by_client {
                talk.line.client.machine.close(now);
            } else {
                let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "restart");
                talk.line.server.machine.close_with(frame, now);
            }
        }
    }

    fn dial(&mut self, client: usize) -> bool {
        let failing = if self.calm { 0 } else { 20 };
        if !self.dialling[client].dials(failing, self.now, &mut self.rng) {
            return false;
        }
        let limits = Limits {
            max_pending: MAX_OPEN,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..defaults()
        };
        let registration = Registration::new(NAMES[client], "Does something.");
        let config = ClientConfig::new(registration).unwrap();
        let conn = ClientConn::new(
            ClientConfig {
                limits: limits.clone(),
                ..config
            },
            self.now,
        );
        let config = ServerConfig {
            limits,
            ..ServerConfig::default()
        };
        let server = ServerConn::new(config, self.now);
        self.tally.lines += 1;
        // Pings and a Close need no room, and deadlines none among the events; promised answers
        // leave as soon as there is room.
        let line = Line::new(self.tally.lines, conn, server).with_bounds(
            Bounds::new(MAX_FRAMES + MAX_OPEN + 3, 2 * MAX_EVENTS + MAX_OPEN + 3),
            Bounds::new(MAX_FRAMES + 3, MAX_EVENTS + 1),
        );
        let talk = Connection {
            line,
            client,
            is_registered: false,
            is_closed: false,
        };
        self.talks.insert(self.tally.lines, talk);
        self.current[client] = Some(self.tally.lines);
        true
    }

    fn on_server_event(&mut self, conn: u64, event: ServerEvent) -> Outcome {
        let server = &mut self.talks.get_mut(&conn).unwrap().line.server.machine;
        match event {
            ServerEvent::Registration { registration } => {
                let answered = match self.hub.register(ConnId(conn), &registration) {
                    Ok(id) => server.accept(&id),
                    Err(error) => server.refuse(error),
                };
                if !matches!(answered, Ok(()) | Err(Refused::Closed)) {
                    return Err(format!(
                        "a registration could not be answered: {answered:?}"
                    ));
                }
            }
            ServerEvent::Response { response } => self.hub.respond(ConnId(conn), response),
            ServerEvent::Closed(_) => {
                self.hub.disconnect(ConnId(conn));
            }
            _ => {}
        }
        Ok(())
    }

    fn on_client_event(&mut self, conn: u64, event: ClientEvent) -> Outcome {
        let talk = self.talks.get_mut(&conn).unwrap();
        ensure(!talk.is_closed, || format!("{event:?} after the end"))?;
        let client = talk.client;
        match event {
            ClientEvent::Registered { .. } => {
                talk.is_registered = true;
                self.dialling[client].ready();
            }
            ClientEvent::Message(Received { message, .. }) => {
                ensure(talk.is_registered, || "a message came first".to_owned())?;
                if message.id != *FAKE {
                    self.ledger.received(&message.id, NAMES[client])?;
                }
                self.unanswered[client].push(message.id);
            }
            ClientEvent::Closed(reason) => {
                talk.is_closed = true;
                self.current[client] = None;
                self.dialling[client].lost(reason.retry(), self.now, &mut self.rng);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes what the hub has to say and to send.
    fn drain_hub(&mut self) -> Outcome<bool> {
        let mut active = false;
        while let Some(event) = self.hub.poll_event() {
            active = true;
            self.ledger.on_event(&event, self.now)?;
            if let HubEvent::Route { route, request, .. } = event {
                let names = request.candidates.iter().map(|one| one.name.to_string());
                self.questions.push((route, names.collect()));
            }
        }
        while let Some((conn, frame)) = self.hub.poll_transmit() {
            active = true;
            // Whose connection is gone does not get it, and the timeout does the rest.
            if let Some(talk) = self.talks.get_mut(&conn.0)
                && let Err(Refused::QueueFull) = talk.line.server.machine.send(frame)
            {
                let frame = CloseFrame::new(CloseFrame::TRY_AGAIN, "slow");
                talk.line.server.machine.close_with(frame, self.now);
            }
        }
        Ok(active)
    }

    /// Whether a client is registered, on a line that is whole.
    fn is_well(&self, client: usize) -> bool {
        let talk = self.current[client].map(|conn| &self.talks[&conn]);
        talk.is_some_and(|it| it.is_registered && it.line.is_whole())
    }

    /// Everything works again: everyone comes back, and every message is taken.
    fn recover(&mut self) -> Outcome {
        self.calm = true;
        for talk in self.talks.values_mut() {
            talk.line.heal();
        }
        // What is under way arrives.
        self.now = sim::advance(self, self.now, Duration::from_secs(5))?;
        self.serve_all()?;
        for (client, name) in NAMES.iter().enumerate() {
            ensure(self.is_well(client), || format!("{name} is not back"))?;
        }
        let before = (self.ledger.settled, self.ledger.taken);
        for _ in 0..6 {
            self.submit()?;
        }
        self.serve_all()?;
        let after = (self.ledger.settled, self.ledger.taken);
        ensure(after == (before.0 + 6, before.1 + 6), || {
            format!("six messages more: {before:?}, {after:?}")
        })
    }

    fn serve_all(&mut self) -> Outcome {
        for _ in 0..600 {
            self.now = sim::advance(self, self.now, Duration::from_secs(1))?;
            for client in 0..3 {
                self.route()?;
                self.answer(client);
                sim::settle(self, self.now)?;
            }
            let done = self.hub.open_messages() == 0 && self.unanswered.iter().all(Vec::is_empty);
            if done && (0..3).all(|client| self.is_well(client)) {
                break;
            }
        }
        Ok(())
    }

    /// The router goes away; nothing is left.
    fn shut_down(&mut self) -> Outcome {
        self.ledger.check_all_settled()?;
        ensure(self.hub.open_messages() == 0, || {
            "messages are open".to_owned()
        })?;
        let idle = self.hub.in_flight() == 0 && self.hub.poll_timeout().is_none();
        ensure(idle, || "deliveries are open".to_owned())?;
        for talk in self.talks.values_mut() {
            talk.line.server.machine.close(self.now);
        }
        sim::settle(self, self.now)?;
        ensure(self.talks.is_empty(), || "connections are left".to_owned())?;
        ensure(self.hub.clients().len() == 0, || {
            "the hub knows clients".to_owned()
        })
    }
}

impl World for House {
    fn next_instant(&self) -> Option<Instant> {
        let lines = self
            .talks
            .values()
            .filter_map(|talk| talk.line.next_instant());
        let dials = self.dialling.iter().filter_map(Dialling::next_instant);
        lines.chain(dials).chain(self.hub.poll_timeout()).min()
    }

    fn turn(&mut self, now: Instant) -> Outcome<bool> {
        self.now = now;
        let mut active = false;
        for client in 0..NAMES.len() {
            active |= self.dial(client);
        }
        if self.hub.poll_timeout().is_some_and(|at| at <= now) {
            self.hub.handle_timeout(now);
            let moved = self.hub.poll_timeout().is_none_or(|at| at > now);
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
            active |= self.drain_hub()?;
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
        active |= self.drain_hub()?;
        Ok(active)
    }
}

#[test]
fn every_message_is_settled_once_under_random_faults() {
    sim::lifecycles("smarthole", 400, |rng, tally| {
        let mut house = House::new(rng.clone());
        let steps = 20 + rng.below(120);
        for _ in 0..steps {
            house.step()?;
        }
        house.recover()?;
        house.shut_down()?;
        house.tally.ended = house.ledger.settled;
        house.tally.answered = house.ledger.taken;
        *tally += house.tally;
        Ok(())
    });
}
