//! A hub with clients of the real machine, under virtual time.

use std::time::{Duration, Instant, SystemTime};

use rpc_core::testing::Pair;
use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent, Received};
use smarthole_proto::frame::Registration;
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubEvent, Input, RouteId};
use smarthole_proto::router::{Choice, RouteRequest};
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};

pub(crate) type Machines = Pair<ClientConn, ServerConn>;

/// Far more than happens in the longest test: what goes on for ever fails, and does not hang.
const MOST_STEPS: usize = 1_000_000;

/// A question to the router, for the test to answer.
pub(crate) struct Question {
    pub(crate) route: RouteId,
    pub(crate) request: RouteRequest,
}

pub(crate) struct House {
    pub(crate) hub: Hub,
    pub(crate) lines: Vec<Machines>,
    pub(crate) now: Instant,
    events: Vec<HubEvent>,
    questions: Vec<Question>,
}

pub(crate) fn config(name: &str) -> ClientConfig {
    let description = format!("The client {name}.");
    ClientConfig::new(Registration::new(name, description)).unwrap()
}

impl House {
    pub(crate) fn new() -> Self {
        Self::with(HubConfig::default())
    }

    pub(crate) fn with(config: HubConfig) -> Self {
        let now = Instant::now();
        Self {
            hub: Hub::new(config, 7, now),
            lines: Vec::new(),
            now,
            events: Vec::new(),
            questions: Vec::new(),
        }
    }

    /// Opens a line for a client, which registers by itself. Returns its place.
    pub(crate) fn open(&mut self, config: ClientConfig) -> usize {
        let client = ClientConn::new(config, self.now);
        let server = ServerConn::new(ServerConfig::default(), self.now);
        self.lines.push(Pair::new(client, server, self.now));
        self.settle();
        self.lines.len() - 1
    }

    /// A registered client.
    pub(crate) fn client(&mut self, name: &str) -> usize {
        let place = self.open(config(name));
        let events = self.lines[place].take_client_events();
        assert!(
            matches!(&events[..], [ClientEvent::Registered { .. }]),
            "{events:?}"
        );
        place
    }

    pub(crate) fn say(&mut self, text: &str) -> String {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(1_705_314_600_000);
        let message = self.hub.submit(Input::text(text), self.now, wall);
        self.settle();
        message.unwrap().to_string()
    }

    /// The question to the router that is open.
    pub(crate) fn question(&mut self) -> Question {
        assert_eq!(self.questions.len(), 1);
        self.questions.remove(0)
    }

    /// Answers the open question, and returns what it was.
    pub(crate) fn choose(&mut self, names: &[&str]) -> RouteRequest {
        let Question { route, request } = self.question();
        let choices = names.iter().map(|name| Choice::new(*name)).collect();
        let delivered = self.hub.decide(route, choices, self.now).unwrap();
        assert_eq!(delivered, names.len());
        self.settle();
        request
    }

    /// The hub's events since the last time, without the questions.
    pub(crate) fn events(&mut self) -> Vec<HubEvent> {
        std::mem::take(&mut self.events)
    }

    /// The ids of the messages that a client has got since the last time.
    pub(crate) fn got(&mut self, place: usize) -> Vec<String> {
        let events = self.lines[place].take_client_events();
        let id = |event: ClientEvent| match event {
            ClientEvent::Message(Received { message, .. }) => Some(message.id.to_string()),
            _ => None,
        };
        events.into_iter().filter_map(id).collect()
    }

    /// Lets happen whatever happens at this instant.
    pub(crate) fn settle(&mut self) {
        for _ in 0..MOST_STEPS {
            let mut active = false;
            for place in 0..self.lines.len() {
                self.lines[place].settle();
                let conn = ConnId(place as u64);
                for event in self.lines[place].take_server_events() {
                    active = true;
                    self.take(conn, event);
                }
            }
            while let Some((ConnId(place), frame)) = self.hub.poll_transmit() {
                active = true;
                let line = &mut self.lines[usize::try_from(place).unwrap()];
                // A client that is gone gets nothing, as over a socket.
                let _ = line.server.send(frame);
            }
            while let Some(event) = self.hub.poll_event() {
                match event {
                    HubEvent::Route { route, request, .. } => {
                        self.questions.push(Question { route, request });
                    }
                    other => self.events.push(other),
                }
            }
            if !active {
                return;
            }
        }
        panic!("it never settles");
    }

    fn take(&mut self, conn: ConnId, event: ServerEvent) {
        match event {
            ServerEvent::Registration { registration } => {
                let line = &mut self.lines[usize::try_from(conn.0).unwrap()];
                match self.hub.register(conn, &registration) {
                    Ok(id) => line.server.accept(&id).unwrap(),
                    Err(error) => line.server.refuse(error).unwrap(),
                }
            }
            ServerEvent::Response { response } => self.hub.respond(conn, response),
            ServerEvent::Closed(_) => {
                self.hub.disconnect(conn);
            }
            _ => {}
        }
    }

    /// Lets `time` pass; what happens on the way happens in order.
    pub(crate) fn advance(&mut self, time: Duration) {
        let until = self.now + time;
        for step in 0.. {
            assert!(step < MOST_STEPS, "something is due again and again");
            self.settle();
            let lines = self.lines.iter().filter_map(Machines::next_instant);
            let next = lines.chain(self.hub.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.go_to(next);
        }
        self.go_to(until);
        self.settle();
    }

    fn go_to(&mut self, at: Instant) {
        let at = at.max(self.now);
        for line in &mut self.lines {
            line.advance(at - line.now());
        }
        self.now = at;
        self.hub.handle_timeout(at);
    }
}
