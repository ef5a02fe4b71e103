//! A Snek message to all members of a channel, without sockets: through the hub and into the outbox
//! of every member's connection, from which its frame is taken and dropped. A round is one recipient.

use std::hint::black_box;
use std::time::Instant;

use rpc_core::{Incoming, Machine, Outgoing, Text};
use snek_proto::codec::encode;
use snek_proto::frame::{Channel, Event, Final, Message, User};
use snek_proto::hub::{ConnId, Hub, HubConfig};
use snek_proto::server::{ServerConfig, ServerConn, ServerEvent};

use super::COSTS;
use crate::text;
use crate::time;
use crate::work::Work;

const MEMBERS: u64 = 10_000;

pub(super) fn works() -> Vec<Work> {
    vec![
        Work::new(COSTS, "Snek message to 10,000 members, each", 0, |n| {
            broadcasts(n, |shared| shared);
        })
        .beside("encoded for each", |n| {
            let event = Event::Message(Message::new("ch1", "u0", "", text::words(50)));
            broadcasts(n, |_| encode(&event).unwrap());
        })
        .rounds(4 * MEMBERS),
    ]
}

/// A channel `ch1` whose members `u0`, `u1` and so on have one connection each.
pub(super) fn channel(members: u64) -> Hub {
    let mut hub = Hub::new(HubConfig::default());
    hub.add_channel(Channel::new("ch1", "General", None))
        .unwrap();
    for number in 0..members {
        let name = format!("u{number}");
        hub.add_user(User::new(name.as_str(), "")).unwrap();
        hub.join(&name, "ch1").unwrap();
        hub.connect(ConnId(number), &name).unwrap();
    }
    assert!(hub.poll_transmit().is_none());
    hub
}

/// A message of the first member to all.
pub(super) fn say(hub: &mut Hub, words: &str, members: u64) {
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

fn broadcasts(n: u64, frame: impl Fn(Text) -> Text) {
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
    broadcast(&mut |taken| match taken {
        Outgoing::Text(text) => assert_eq!(text.as_str(), expected),
        other => panic!("{other:?}"),
    });
    let start = Instant::now();
    for _ in 0..n / MEMBERS {
        broadcast(&mut |taken| drop(black_box(taken)));
    }
    time::began(start);
}
