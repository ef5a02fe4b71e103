//! Both machines on one line, under virtual time.

use rpc_core::Machine as _;
use std::time::Instant;

use acolyte_proto::client::{CallId, ChatUpdate, ClientConfig, ClientConn, ClientEvent, Outcome};
use acolyte_proto::event::{Event, Usage};
use acolyte_proto::frame::{ChatRequest, Reply};
use acolyte_proto::id::RpcId;
use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};
use rpc_core::testing::Pair;

use crate::transcript::Transcript;

struct Harness {
    pair: Pair<ClientConn, ServerConn>,
}

impl Harness {
    fn new(config: ServerConfig) -> Self {
        let now = Instant::now();
        let client = ClientConn::new(ClientConfig::default(), 7, now);
        let mut pair = Pair::new(client, ServerConn::new(config, 1, now), now);
        pair.settle();
        assert_eq!(pair.take_client_events(), [ClientEvent::Ready]);
        Self { pair }
    }

    fn chat(&mut self) -> CallId {
        let request = ChatRequest::new("hi", "m");
        let now = self.pair.now();
        let id = self.pair.client.chat(&request, now).unwrap();
        self.pair.settle();
        id
    }

    fn abort(&mut self, id: CallId) {
        let now = self.pair.now();
        self.pair.client.abort(id, now).unwrap();
        self.pair.settle();
    }

    /// What the client heard of its chats.
    fn updates(&mut self) -> Vec<(CallId, ChatUpdate)> {
        let events = self.pair.take_client_events().into_iter();
        let update = |event| match event {
            ClientEvent::Chat { id, update } => Some((id, update)),
            _ => None,
        };
        events.filter_map(update).collect()
    }

    fn started(&mut self) -> Option<RpcId> {
        let events = self.pair.take_server_events();
        events.into_iter().rev().find_map(|event| match event {
            ServerEvent::Start { id, .. } => Some(id),
            _ => None,
        })
    }

    fn done(&mut self, id: &RpcId) {
        let reply = Reply {
            output_streamed: Some(true),
            ..Reply::new("fine", "m")
        };
        self.pair.server.done(id, &reply).unwrap();
        self.pair.settle();
    }
}

fn positions(updates: &[(CallId, ChatUpdate)], chat: CallId) -> Vec<u32> {
    let of = updates.iter().filter(|(id, _)| *id == chat);
    let position = |(_, update): &(CallId, ChatUpdate)| match update {
        ChatUpdate::Queued { position } => Some(*position),
        _ => None,
    };
    of.filter_map(position).collect()
}

fn end(updates: &[(CallId, ChatUpdate)], chat: CallId) -> Option<&Outcome> {
    updates.iter().find_map(|(id, update)| match update {
        ChatUpdate::Ended(outcome) if *id == chat => Some(outcome),
        _ => None,
    })
}

#[test]
fn a_chat_runs_from_start_to_reply() {
    let mut line = Harness::new(ServerConfig::default());
    let chat = line.chat();
    let id = line.started().unwrap();
    assert_eq!(id, RpcId::from(chat));
    for event in [
        Event::text("Hello, "),
        Event::Usage(Usage::new(3_000, 1)),
        Event::text("world."),
    ] {
        line.pair.server.event(&id, &event).unwrap();
    }
    line.done(&id);
    let mut transcript = Transcript::default();
    for (_, update) in line.updates() {
        transcript.apply(&update);
    }
    assert_eq!(transcript.text, "Hello, world.");
    assert!(transcript.outcome.as_ref().unwrap().is_done());
    assert!(transcript.task_id.is_some());
}

#[test]
fn positions_follow_the_queue() {
    let mut line = Harness::new(ServerConfig::default());
    let chats: Vec<_> = (0..4).map(|_| line.chat()).collect();
    let first = line.started().unwrap();
    let updates = line.updates();
    assert!(positions(&updates, chats[0]).is_empty());
    assert_eq!(positions(&updates, chats[3]), [3]);
    line.abort(chats[1]);
    let updates = line.updates();
    assert_eq!(positions(&updates, chats[2]), [1]);
    assert_eq!(positions(&updates, chats[3]), [2]);
    assert!(matches!(
        end(&updates, chats[1]),
        Some(Outcome::Aborted { .. })
    ));
    line.done(&first);
    let updates = line.updates();
    assert!(end(&updates, chats[0]).unwrap().is_done());
    assert!(updates.contains(&(chats[2], ChatUpdate::Started)));
    assert_eq!(positions(&updates, chats[3]), [1]);
}

#[test]
fn a_chat_beyond_the_queue_is_refused() {
    let mut line = Harness::new(ServerConfig::default());
    let chats: Vec<_> = (0..27).map(|_| line.chat()).collect();
    let updates = line.updates();
    let Some(Outcome::Refused { error }) = end(&updates, chats[26]) else {
        panic!("{updates:?}")
    };
    assert_eq!(
        error.message(),
        "RPC queue is full (25 queued). Try again shortly."
    );
    assert_eq!(line.pair.client.in_flight(), 26);
}

#[test]
fn a_cancelled_chat_is_aborted_at_the_server() {
    let mut line = Harness::new(ServerConfig::default());
    let chat = line.chat();
    let id = line.started().unwrap();
    line.updates();
    let now = line.pair.now();
    assert!(line.pair.client.cancel(chat, now));
    line.pair.settle();
    let aborted = ServerEvent::Abort { id };
    assert!(line.pair.take_server_events().contains(&aborted));
    assert_eq!((line.updates(), line.pair.client.in_flight()), (vec![], 0));
}
