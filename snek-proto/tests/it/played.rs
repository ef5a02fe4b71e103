//! A client and a server wired together, with an application that is played by a function.

use std::time::Instant;

use rpc_core::Secret;
use rpc_core::testing::Pair;
use snek_proto::client::{ClientConfig, ClientConn, ClientState};
use snek_proto::frame::{Call, Channel, User};
use snek_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};

pub(crate) type Machines = Pair<ClientConn, ServerConn>;

pub(crate) fn line(config: ClientConfig, seed: u64, now: Instant) -> Machines {
    Pair::new(
        ClientConn::new(config, seed, now),
        ServerConn::new(ServerConfig::default(), now),
        now,
    )
}

pub(crate) fn config() -> ClientConfig {
    ClientConfig::new("mybot", Secret::from("mypassword"))
}

/// Answers the opening's calls as a server would. Returns what it is not a part of.
pub(crate) fn serve(pair: &mut Machines) -> Vec<(RequestId, Call)> {
    let mut rest = Vec::new();
    loop {
        pair.settle();
        let events = pair.take_server_events();
        if events.is_empty() {
            return rest;
        }
        for event in events {
            match event {
                ServerEvent::Login { id, .. } => {
                    pair.server
                        .accept_login(id, User::new("mybot", "MyBot"))
                        .unwrap();
                }
                ServerEvent::Request {
                    id,
                    call: Call::GetUser { .. },
                } => {
                    let user = pair.server.user().unwrap().clone();
                    pair.server.reply(id, &user).unwrap();
                }
                ServerEvent::Request {
                    id,
                    call: Call::GetChannels,
                } => {
                    let channels = [
                        Channel::new("ch1", "general", Some("public")),
                        Channel::new("ch2", "DM", Some("dm")),
                    ];
                    pair.server.reply(id, &channels).unwrap();
                }
                ServerEvent::Request { id, call } => rest.push((id, call)),
                _ => {}
            }
        }
    }
}

pub(crate) fn ready(seed: u64, now: Instant) -> Machines {
    let mut pair = line(config(), seed, now);
    assert!(serve(&mut pair).is_empty());
    assert_eq!(pair.client.state(), ClientState::Ready);
    pair
}
