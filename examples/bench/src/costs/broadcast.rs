//! A message to all members of a channel, without sockets: through the hub and into the outbox of
//! every member's connection, from which its frame is taken and dropped. A round is one recipient.

use std::hint::black_box;
use std::time::{Instant, SystemTime};

use rpc_core::{Incoming, Limits, Machine, Outgoing, Text};
use smarthole_proto::frame::{Answer, Registration, Response, ServerFrame};
use smarthole_proto::hub::{HubConfig, HubEvent, Input};
use smarthole_proto::router::Choice;
use smarthole_proto::{hub as smarthole, server as smarthole_server};
use snek_proto::codec::encode;
use snek_proto::frame::{Channel, Event, Final, Message, User};
use snek_proto::hub as snek;
use snek_proto::server::{ServerConfig, ServerConn, ServerEvent};

use super::COSTS;
use crate::text;
use crate::work::Work;

const MEMBERS: u64 = 10_000;
const CLIENTS: u64 = 100;

pub(super) fn works() -> Vec<Work> {
    vec![
        Work::new(COSTS, "Snek message to 10,000 members, each", 0, |n| {
            snek(n, |shared| shared);
        })
        .beside("encoded for each", |n| {
            let event = Event::Message(Message::new("ch1", "u0", "", text::words(50)));
            snek(n, |_| encode(&event).unwrap());
        })
        .rounds(20 * MEMBERS),
        Work::new(
            COSTS,
            "SmartHole message to 100 clients, each with its ack",
            0,
            |n| smarthole(n, |_, shared| shared),
        )
        .beside("encoded for each", |n| {
            smarthole(n, |message, _| encode(message).unwrap());
        })
        .rounds(100 * CLIENTS),
    ]
}

/// A channel `ch1` whose members `u0`, `u1` and so on have one connection each.
pub(super) fn channel(members: u64) -> snek::Hub {
    let mut hub = snek::Hub::new(snek::HubConfig::default());
    hub.add_channel(Channel::new("ch1", "General", None))
        .unwrap();
    for number in 0..members {
        let name = format!("u{number}");
        hub.add_user(User::new(name.as_str(), "")).unwrap();
        hub.join(&name, "ch1").unwrap();
        hub.connect(snek::ConnId(number), &name).unwrap();
    }
    assert!(hub.poll_transmit().is_none());
    hub
}

/// A message of the first member; returns nothing until the hub's frames are taken.
pub(super) fn say(hub: &mut snek::Hub, words: &str, members: u64) {
    let sent = hub.send_message("u0", "ch1", words, Final::Yes);
    assert_eq!(sent, Ok(members as usize));
}

/// A connection whose client is logged in.
pub(super) fn logged_in(now: Instant) -> ServerConn {
    let mut conn = ServerConn::new(ServerConfig::default(), now);
    let login = r#"{"method":"login","args":["u","secret"],"kwargs":{},"callId":"1"}"#;
    conn.handle_message(Incoming::Text(login), now);
    let Some(ServerEvent::Login { id, username, .. }) = conn.poll_event() else {
        panic!("no login");
    };
    conn.accept_login(id, User::new(username, "")).unwrap();
    conn.poll_transmit().unwrap();
    conn
}

fn snek(n: u64, frame: impl Fn(Text) -> Text) {
    let now = Instant::now();
    let mut hub = channel(MEMBERS);
    let mut conns: Vec<ServerConn> = (0..MEMBERS).map(|_| logged_in(now)).collect();
    let words = text::words(50);
    let mut broadcast = |take: &mut dyn FnMut(Outgoing)| {
        say(&mut hub, &words, MEMBERS);
        while let Some((to, shared)) = hub.poll_transmit() {
            conns[to.0 as usize].push(frame(shared)).unwrap();
        }
        for conn in &mut conns {
            take(conn.poll_transmit().unwrap());
        }
    };
    let expected = format!(
        r#"{{"event":"message","message":"{words}","username":"u0","user_nick":"","channel_uid":"ch1","is_final":true}}"#
    );
    broadcast(&mut |taken| assert_eq!(text_of(&taken), expected));
    for _ in 0..n / MEMBERS {
        broadcast(&mut |taken| drop(black_box(taken)));
    }
}

fn text_of(frame: &Outgoing) -> &str {
    match frame {
        Outgoing::Text(text) => text.as_str(),
        other => panic!("{other:?}"),
    }
}

/// A hub with its clients' connections.
struct House {
    hub: smarthole::Hub,
    conns: Vec<smarthole_server::ServerConn>,
    choices: Vec<Choice>,
    now: Instant,
}

impl House {
    fn new() -> Self {
        let now = Instant::now();
        let mut hub = smarthole::Hub::new(HubConfig::default(), 7, now);
        let mut choices = Vec::new();
        let register = |number: u64| {
            let registration = Registration::new(format!("client-{number}"), "Takes all.");
            let asked = encode(&registration.frame()).unwrap();
            let mut conn =
                smarthole_server::ServerConn::new(smarthole_server::ServerConfig::default(), now);
            conn.handle_message(Incoming::Text(asked.as_str()), now);
            let Some(smarthole_server::ServerEvent::Registration { registration }) =
                conn.poll_event()
            else {
                panic!("no registration");
            };
            let id = hub.register(smarthole::ConnId(number), &registration);
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
            self.hub.respond(smarthole::ConnId(number), ack);
        }
        while let Some(event) = self.hub.poll_event() {
            black_box(event);
        }
        assert_eq!(self.hub.open_messages(), 0);
    }
}

/// `frame` may make its own of a message, which is as long as the shared one.
fn smarthole(n: u64, frame: impl Fn(&ServerFrame, Text) -> Text) {
    let mut house = House::new();
    let mut first = None;
    house.broadcast(|shared| shared, |taken| first = Some(taken));
    let first = first.unwrap();
    assert!(text_of(&first).contains("turn off everything"));
    let message = ServerFrame::decode(text_of(&first), &Limits::default()).unwrap();
    let same = frame(&message, Text::default());
    assert!(same.is_empty() || same.as_str() == text_of(&first));
    for _ in 0..n / CLIENTS {
        house.broadcast(
            |shared| frame(&message, shared),
            |taken| drop(black_box(taken)),
        );
    }
}
