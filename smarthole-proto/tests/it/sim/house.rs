//! Random lives of a router and its clients: lines are slow, jammed, cut and half open, clients
//! answer late, twice or never, names are taken while the old line is not known to be gone.

use std::time::{Instant, SystemTime};

use rpc_core::{CloseFrame, Limits, Machine as _, Refused};
use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent, Received, reconnect_policy};
use smarthole_proto::frame::{Answer, Notification, Registration, Response};
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubEvent, Input, RouteId};
use smarthole_proto::id::MessageId;
use smarthole_proto::limits::defaults;
use smarthole_proto::router::{Choice, RouterError};
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};
use switchboard_testing::sim::{
    self, Bounds, Connections, ConnectionsOf, Effect, Lives, Opened, Outcome, Rng, ensure,
    random_lives,
};

use crate::sim::ledger::{Ledger, Word};

const NAMES: [&str; 3] = ["ann", "bob", "cid"];
const MAX_FRAMES: usize = 16;
const MAX_EVENTS: usize = 8;
const MAX_OPEN: usize = 6;
/// A message that no hub has sent.
const FAKE: &str = "msg-fake";

type Connection = sim::Connection<ClientConn, ServerConn, bool>;

struct House {
    /// Of each connection: whether its client is registered.
    conns: ConnectionsOf<Self>,
    start: Instant,
    hub: Hub,
    /// Messages that each client has not answered, or not often enough.
    unanswered: [Vec<MessageId>; 3],
    questions: Vec<(RouteId, Vec<String>)>,
    ledger: Ledger,
    texts: u64,
}

impl House {
    /// The user says something, now and then to a certain client.
    fn submit(&mut self) -> Outcome {
        self.texts += 1;
        let name = self.conns.rng.pick(&NAMES);
        let name = name.filter(|_| self.texts.is_multiple_of(3));
        let text = match name {
            Some(name) => format!("{name}: text {}", self.texts),
            None => format!("text {}", self.texts),
        };
        let now = self.conns.now;
        let wall = SystemTime::UNIX_EPOCH + (now - self.start);
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
        let index = self.conns.rng.below(self.questions.len() as u64) as usize;
        let (route, candidates) = self.questions.swap_remove(index);
        if !self.conns.calm && self.conns.rng.chance(5) {
            let failed = self.hub.fail(route, RouterError::Failed("no idea".into()));
            return failed.map_err(|error| error.to_string());
        }
        let mut choices: Vec<Choice> = Vec::new();
        for _ in 0..=self.conns.rng.below(3) {
            let choice = self.conns.rng.pick(&candidates);
            choices.extend(choice.map(|it| Choice::new(it.as_str())));
        }
        if !self.conns.calm && self.conns.rng.chance(10) {
            choices.push(Choice::new("nobody"));
        }
        let decided = self.hub.decide(route, choices, self.conns.now);
        decided.map(drop).map_err(|error| error.to_string())
    }

    /// A client says something to a message that it has got, perhaps on an earlier connection.
    fn answer(&mut self, client: usize) {
        let Connections { rng, calm, .. } = &mut self.conns;
        let calm = *calm;
        let (roll, word, later, again) = (
            rng.next_u64(),
            rng.below(10),
            rng.chance(20),
            rng.chance(30),
        );
        let messages = &mut self.unanswered[client];
        let (Some(conn), Some(index)) = (
            self.conns.acting(client),
            roll.checked_rem(messages.len() as u64),
        ) else {
            return;
        };
        let id = messages[index as usize].clone();
        let word = match word {
            _ if calm => Word::Ack,
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
        let conn = &mut conn.line.client.machine;
        let sent = if later {
            conn.respond_later(response);
            Ok(())
        } else {
            conn.respond(response.message_id, response.answer)
        };
        if sent.is_ok() {
            self.ledger.sends(&id, NAMES[client], word);
            // Now and then something more is said to the same message.
            if calm || !again {
                messages.swap_remove(index as usize);
            }
        }
    }
}

impl Lives for House {
    type Client = ClientConn;
    type Server = ServerConn;
    type Own = bool;
    const GARBAGE: &'static [&'static str] = &[
        "",
        "{",
        "[1]",
        r#"{"type":"nonsense","payload":{}}"#,
        r#"{"type":"message","payload":{"id":"msg-fake","text":"x","timestamp":"t"}}"#,
        r#"{"type":"message","payload":{"id":7}}"#,
    ];

    fn new(mut rng: Rng) -> Self {
        let config = HubConfig {
            reroute_direct: rng.chance(50),
            max_history: 20,
            ..HubConfig::default()
        };
        let entropy = rng.next_u64().into();
        let conns: ConnectionsOf<Self> = Connections::new(rng, NAMES.len(), reconnect_policy());
        Self {
            start: conns.now,
            hub: Hub::new(config, entropy, conns.now),
            conns,
            unanswered: Default::default(),
            questions: Vec::new(),
            ledger: Ledger::default(),
            texts: 0,
        }
    }

    fn conns(&mut self) -> &mut ConnectionsOf<Self> {
        &mut self.conns
    }

    fn see(&self) -> &ConnectionsOf<Self> {
        &self.conns
    }

    fn act(&mut self, client: usize) -> Outcome {
        match self.conns.rng.below(62) {
            0..18 => self.submit()?,
            18..35 => self.route()?,
            _ => self.answer(client),
        }
        Ok(())
    }

    fn open(&mut self, client: usize) -> Opened<Self> {
        let limits = Limits {
            max_pending: MAX_OPEN,
            max_outbox_frames: MAX_FRAMES,
            max_events: MAX_EVENTS,
            ..defaults()
        };
        let registration = Registration::new(NAMES[client], "Does something.");
        let mut config = ClientConfig::new(registration).unwrap();
        config.limits = limits.clone();
        let conn = ClientConn::new(config, self.conns.now);
        let config = ServerConfig {
            limits,
            ..ServerConfig::default()
        };
        let server = ServerConn::new(config, self.conns.now);
        // Pings and a Close need no room, and deadlines none among the events; promised answers
        // leave as soon as there is room.
        (
            (
                conn,
                Bounds::new(MAX_FRAMES + MAX_OPEN + 3, 2 * MAX_EVENTS + MAX_OPEN + 3),
            ),
            (server, Bounds::new(MAX_FRAMES + 3, MAX_EVENTS + 1)),
            false,
        )
    }
    fn on_server_event(&mut self, conn: u64, event: ServerEvent) -> Outcome {
        let server = &mut self.conns.all.get_mut(&conn).unwrap().line.server.machine;
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

    fn on_client_event(&mut self, conn: u64, event: ClientEvent) -> Outcome<Effect> {
        let Connection { client, own, .. } = self.conns.all.get_mut(&conn).unwrap();
        match event {
            ClientEvent::Registered { .. } => {
                *own = true;
                return Ok(Effect::Ready);
            }
            ClientEvent::Message(Received { message, .. }) => {
                ensure(*own, || "a message came first".to_owned())?;
                if message.id != *FAKE {
                    self.ledger.received(&message.id, NAMES[*client])?;
                }
                self.unanswered[*client].push(message.id);
            }
            ClientEvent::Closed(reason) => return Ok(Effect::Closed(reason)),
            _ => {}
        }
        Ok(Effect::Nothing)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.hub.poll_timeout()
    }

    fn handle_timeout(&mut self) {
        self.hub.handle_timeout(self.conns.now);
    }

    /// Takes what the hub has to report and to send.
    fn pass_on(&mut self) -> Outcome<bool> {
        let mut active = false;
        while let Some(event) = self.hub.poll_event() {
            active = true;
            self.ledger.on_event(&event, self.conns.now)?;
            if let HubEvent::Route { route, request, .. } = event {
                let names = request.candidates.iter().map(|one| one.name.to_string());
                self.questions.push((route, names.collect()));
            }
        }
        while let Some((conn, frame)) = self.hub.poll_transmit() {
            active = true;
            // Whose connection is gone does not get it, and the timeout does the rest.
            if let Some(conn) = self.conns.all.get_mut(&conn.0)
                && let Err(Refused::QueueFull) = conn.line.server.machine.send(frame)
            {
                let frame = CloseFrame::new(CloseFrame::TRY_AGAIN, "slow");
                conn.line.server.machine.close_with(frame, self.conns.now);
            }
        }
        Ok(active)
    }

    fn is_idle(&self, conn: u64) -> bool {
        self.conns.all[&conn].own
    }

    fn serve(&mut self) -> Outcome<bool> {
        for client in 0..NAMES.len() {
            self.route()?;
            self.answer(client);
            self.settle()?;
        }
        Ok(self.hub.open_messages() == 0 && self.unanswered.iter().all(Vec::is_empty))
    }

    /// Every message is taken.
    fn check_works(&mut self) -> Outcome {
        let before = (self.ledger.settled, self.ledger.taken);
        for _ in 0..6 {
            self.submit()?;
        }
        self.serve_all()?;
        let after = (self.ledger.settled, self.ledger.taken);
        ensure(after == (before.0 + 6, before.1 + 6), || {
            format!("six messages more: {before:?}, {after:?}")
        })?;
        self.ledger.check_all_settled()?;
        ensure(self.hub.open_messages() == 0, || {
            "messages are open".to_owned()
        })?;
        let idle = self.hub.in_flight() == 0 && self.hub.poll_timeout().is_none();
        ensure(idle, || "deliveries are open".to_owned())?;
        self.conns.tally.ended = self.ledger.settled;
        self.conns.tally.answered = self.ledger.taken;
        Ok(())
    }

    fn check_empty(&mut self) -> Outcome {
        ensure(self.hub.clients().len() == 0, || {
            "the hub knows clients".to_owned()
        })
    }
}

#[test]
fn every_message_is_settled_once_under_random_faults() {
    random_lives::<House>("smarthole", 400);
}
