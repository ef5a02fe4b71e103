//! The rules of `Machine` for the client, alone and against the server's machine.

use std::time::Instant;

use acolyte_proto::client::{CallId, ChatUpdate, ClientConfig, ClientConn, ClientEvent};
use acolyte_proto::error::AppError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::id::{RpcId, TaskId};
use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};
use rpc_core::Machine;
use rpc_core::testing::Pair;
use rpc_core::testing::conformance::{self, Calls};
use switchboard_testing::sim;

fn nasty() -> Vec<String> {
    let mut nasty = conformance::nasty_texts();
    for text in [
        r#"{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}"#,
        r#"{"id":"rpc_a","type":"chat.done"}"#,
        r#"{"id":"rpc_a","type":"chat.queued","position":0}"#,
        r#"{"id":7,"type":"chat.event","event":[]}"#,
        r#"{"id":"rpc_A","type":"status.result","status":null}"#,
        r#"{"id":"rpc_a","type":"chat.error","errorId":null,"error":"x"}"#,
    ] {
        nasty.push(text.to_owned());
    }
    nasty
}

#[test]
fn the_client_machine_conforms() {
    let now = Instant::now();
    let nasty = nasty();
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    let fresh = || ClientConn::new(ClientConfig::default(), 7, now);
    let mut busy = fresh();
    busy.status(now).unwrap();
    let chat = busy.chat(&ChatRequest::new("hi", "m"), now).unwrap();
    busy.abort(chat, now).unwrap();
    for mut client in [busy, fresh()] {
        while client.poll_event().is_some() {}
        conformance::early_timeout_is_a_no_op(&mut client, now);
        conformance::any_text_is_survived(&mut client, &texts, now);
        conformance::timeouts_make_progress(&mut client, 10);
        conformance::closed_is_inert(&mut client, &texts, now);
    }
}

/// What the server has to do.
enum Open {
    Chat(RpcId),
    Status(RpcId),
    Task(RpcId),
}

#[derive(Default)]
struct Played {
    open: Vec<Open>,
    turn: usize,
}

impl Calls for Played {
    type Client = ClientConn;
    type Server = ServerConn;
    type Id = CallId;

    fn connect(&mut self, now: Instant, entropy: u64) -> Pair<ClientConn, ServerConn> {
        self.open.clear();
        let client = ClientConn::new(ClientConfig::default(), entropy, now);
        Pair::new(
            client,
            ServerConn::new(ServerConfig::default(), entropy, now),
            now,
        )
    }

    fn call(&mut self, client: &mut ClientConn, now: Instant) -> Option<CallId> {
        self.turn += 1;
        match self.turn % 4 {
            0 => client.status(now).ok(),
            1 => client.task_status(&TaskId::random(1), now).ok(),
            _ => client.chat(&ChatRequest::new("hi", "m"), now).ok(),
        }
    }

    fn answer(&mut self, server: &mut ServerConn, index: u64, _: Instant) {
        if self.open.is_empty() {
            return;
        }
        let at = usize::try_from(index).unwrap_or(0) % self.open.len();
        self.turn += 1;
        // A chat that was given up refuses, which is fine.
        let _ = match &self.open[at] {
            Open::Status(id) => server.status(id, &Status::new("m", "s")),
            Open::Task(id) => server.task_status(id, None),
            Open::Chat(id) => match self.turn % 4 {
                0 => return drop(server.event(id, &Event::text("more"))),
                1 => server.fail(id, &AppError::failed("no")),
                _ => server.done(id, &Reply::new("fine", "m")),
            },
        };
        self.open.swap_remove(at);
    }

    fn cancel(&mut self, client: &mut ClientConn, id: CallId, now: Instant) {
        client.cancel(id, now);
    }

    fn server_event(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Start { id, .. } => self.open.push(Open::Chat(id)),
            ServerEvent::StatusGet { id } => self.open.push(Open::Status(id)),
            ServerEvent::TaskStatus { id, .. } => self.open.push(Open::Task(id)),
            _ => {}
        }
    }

    fn ended(&mut self, event: &ClientEvent) -> Option<CallId> {
        match event {
            ClientEvent::Chat {
                id,
                update: ChatUpdate::Ended(_),
            }
            | ClientEvent::Reply { id, .. } => Some(*id),
            _ => None,
        }
    }
}

#[test]
fn every_request_and_chat_ends_exactly_once_over_random_schedules() {
    sim::run(100, |rng| {
        conformance::every_call_ends_once(&mut Played::default(), rng, 100, Instant::now())
    });
}
