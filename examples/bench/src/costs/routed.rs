//! A SmartHole message that the router sends to all clients, without sockets: through the hub and
//! into the outbox of every client's connection, from which its frame is taken and dropped, and the
//! client's acknowledgement back into the hub. A round is one client.

use std::hint::black_box;
use std::time::{Instant, SystemTime};

use rpc_core::{Incoming, Limits, Machine, Outgoing, Text};
use smarthole_proto::codec::encode;
use smarthole_proto::frame::{Answer, Registration, Response, ServerFrame};
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubEvent, Input};
use smarthole_proto::router::Choice;
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};

use super::COSTS;
use crate::time;
use crate::work::Work;

const CLIENTS: u64 = 100;

pub(super) fn works() -> Vec<Work> {
    vec![
        Work::new(
            COSTS,
            "SmartHole message to 100 clients, each with its ack",
            0,
            |n| messages(n, |_, shared| shared),
        )
        .beside("encoded for each", |n| {
            messages(n, |message, _| encode(message).unwrap());
        })
        .rounds(10 * CLIENTS),
    ]
}

/// A hub with its clients' connections, all of which get each message.
struct Router {
    hub: Hub,
    conns: Vec<ServerConn>,
    choices: Vec<Choice>,
    now: Instant,
}

impl Router {
    fn new() -> Self {
        let now = Instant::now();
        let mut hub = Hub::new(HubConfig::default(), 7, now);
        let mut choices = Vec::new();
        let register = |number: u64| {
            let registration = Registration::new(format!("client-{number}"), "Takes all.");
            let asked = encode(&registration.frame()).unwrap();
            let mut conn = ServerConn::new(ServerConfig::default(), now);
            conn.handle_message(Incoming::Text(asked.as_str()), now);
            let Some(ServerEvent::Registration { registration }) = conn.poll_event() else {
                panic!("no registration");
            };
            let id = hub.register(ConnId(number), &registration);
            conn.accept(&id.unwrap()).unwrap();
            conn.poll_transmit().unwrap();
            choices.push(Choice::new(registration.name));
            conn
        };
        let conns = (0..CLIENTS).map(register).collect();
        while hub.poll_event().is_some() {}
        Self {
            hub,
            conns,
            choices,
            now,
        }
    }

    /// A text that the router sends to all clients, who take it and acknowledge it.
    fn broadcast(&mut self, frame: impl Fn(Text) -> Text, mut take: impl FnMut(Outgoing)) {
        let input = Input::text("turn off everything in the house");
        let submitted = self.hub.submit(input, self.now, SystemTime::UNIX_EPOCH);
        let Some(HubEvent::Route { route, .. }) = self.hub.poll_event() else {
            panic!("no question to the router");
        };
        let sent = self.hub.decide(route, self.choices.clone(), self.now);
        assert_eq!(sent, Ok(self.conns.len()));
        while let Some((to, shared)) = self.hub.poll_transmit() {
            self.conns[to.0 as usize].send(frame(shared)).unwrap();
        }
        let message = submitted.unwrap();
        for (number, conn) in (0..).zip(&mut self.conns) {
            take(conn.poll_transmit().unwrap());
            let ack = Response::new(message.as_str(), Answer::Ack);
            self.hub.respond(ConnId(number), ack);
        }
        while let Some(event) = self.hub.poll_event() {
            black_box(event);
        }
        assert_eq!(self.hub.open_messages(), 0);
    }
}

/// `frame` may write its own from a message, which is as long as the shared one.
fn messages(n: u64, frame: impl Fn(&ServerFrame, Text) -> Text) {
    let mut router = Router::new();
    let mut first = None;
    router.broadcast(|shared| shared, |taken| first = Some(taken));
    let Some(Outgoing::Text(first)) = first else {
        panic!("no text");
    };
    assert!(first.as_str().contains("turn off everything"));
    let message = ServerFrame::decode(first.as_str(), &Limits::default()).unwrap();
    assert_eq!(frame(&message, first.clone()), first);
    let start = Instant::now();
    for _ in 0..n / CLIENTS {
        router.broadcast(
            |shared| frame(&message, shared),
            |taken| drop(black_box(taken)),
        );
    }
    time::began(start);
}
