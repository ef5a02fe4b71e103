//! A runtime under virtual time: real clients' behaviour over lines in memory.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::mem::{self, MemTransport};
use rpc_core::net::{Driver, DriverConfig, Message, time};
use rpc_core::{CloseFrame, CloseReason, Machine as _, Outgoing, Text};
use serde_json::Value;
use smarthole_proto::hub::{HubConfig, HubEvent, Ignored, Input, Outcome, Unroutable};
use smarthole_proto::id::client_id;
use smarthole_proto::net::{RouterOptions, RouterRuntime, Settled};
use smarthole_proto::router::{Choice, RouteRequest, Router, RouterError};
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::harness::{Obedient, until};
use crate::raw_client::{ack, registration};

const SECOND: Duration = Duration::from_secs(1);

fn runtime() -> RouterRuntime {
    switch_with(HubConfig::default(), Obedient::default())
}

fn switch_with(config: HubConfig, router: impl Router) -> RouterRuntime {
    let runtime = RouterRuntime::new(config);
    let running = runtime.clone();
    tokio::spawn(async move {
        running
            .run(Arc::new(router), RouterOptions::default())
            .await
    });
    runtime
}

struct Client {
    line: MemTransport,
    served: JoinHandle<CloseReason>,
}

impl Client {
    /// A registered client that is never pinged, so that it need not listen.
    async fn new(runtime: &RouterRuntime, name: &str) -> Self {
        let config = ServerConfig {
            keep_alive: KeepAlive::off(),
            ..ServerConfig::default()
        };
        Self::with(runtime, name, config).await
    }

    async fn with(runtime: &RouterRuntime, name: &str, config: ServerConfig) -> Self {
        let (line, theirs) = mem::duplex(64);
        let serving = runtime.serve(theirs, config, DriverConfig::default());
        let served = tokio::spawn(serving);
        let mut client = Self { line, served };
        client.send(&registration(name)).await;
        let answer = client.recv().await;
        assert_eq!(answer["payload"]["success"], true);
        client
    }

    async fn send(&mut self, text: &str) {
        self.line
            .send(Outgoing::Text(Text::from(text)))
            .await
            .unwrap();
    }

    /// The next frame.
    async fn recv(&mut self) -> Value {
        match self.line.next().await {
            Some(Ok(Message::Text(text))) => serde_json::from_str(text.as_str()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The id of the next message.
    async fn id(&mut self) -> String {
        let frame = self.recv().await;
        assert_eq!(frame["type"], "message");
        frame["payload"]["id"].as_str().unwrap().to_owned()
    }
}

fn ask(runtime: &RouterRuntime, text: &str) -> JoinHandle<Settled> {
    let (runtime, input) = (runtime.clone(), Input::text(text));
    tokio::spawn(async move { runtime.ask(input).await.unwrap() })
}

#[tokio::test(start_paused = true)]
async fn silence_reroutes_after_30_seconds_up_to_three_clients() {
    let runtime = runtime();
    let mut clients = Vec::new();
    for name in ["a", "b", "c", "d"] {
        clients.push(Client::new(&runtime, name).await);
    }
    let start = Instant::now();
    let asked = ask(&runtime, "hello");
    let first = clients[0].id().await;
    for client in &mut clients[1..3] {
        let id = client.id().await;
        assert_eq!(id, first);
    }
    assert_eq!(start.elapsed().as_secs(), 60);
    let settled = asked.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 90);
    assert_eq!(settled.unroutable, Some(Unroutable::Exhausted));
    let outcomes: Vec<_> = settled
        .outcomes
        .iter()
        .map(|one| (&*one.client, &one.outcome))
        .collect();
    let out = &Outcome::TimedOut;
    assert_eq!(outcomes, [("a", out), ("b", out), ("c", out)]);
    assert!(clients[3].line.next().now_or_never().is_none());
}

/// Decides when it is told to.
struct Slow(Arc<tokio::sync::Semaphore>);

impl Router for Slow {
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
        self.0.acquire().await.unwrap().forget();
        let all = request.candidates.iter();
        Ok(all.map(|one| Choice::new(one.name.clone())).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_router_times_out_after_30_seconds() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let runtime = switch_with(HubConfig::default(), Slow(gate));
    let _notes = Client::new(&runtime, "notes").await;
    let start = Instant::now();
    let settled = ask(&runtime, "hello").await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 30);
    let after = 30 * SECOND;
    let why = Unroutable::Router(RouterError::TimedOut(after));
    assert_eq!(settled.unroutable, Some(why));
}

#[tokio::test(start_paused = true)]
async fn without_automatic_registration_the_application_decides() {
    let (mut line, theirs) = mem::duplex(64);
    let conn = ServerConn::new(ServerConfig::default(), time::now());
    let mut driver = Driver::new(conn, theirs);
    let send = |text: String| Outgoing::Text(Text::from(text));
    line.send(send(registration("notes"))).await.unwrap();
    line.send(send(ack("msg-1"))).await.unwrap();
    loop {
        match driver.next().await.unwrap() {
            ServerEvent::Registration { registration } => {
                assert_eq!(registration.name, "notes");
                assert_eq!(driver.machine_mut().accept(&client_id(7)), Ok(()));
            }
            ServerEvent::Response { response } => {
                assert_eq!(response.message_id, "msg-1");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(line.next().await, Some(Ok(Message::Text(_)))));
    driver.machine_mut().close(time::now());
    let ended = tokio::spawn(async move { driver.next().await });
    let close = CloseFrame::new(CloseFrame::NORMAL, "");
    let bye = line.next().await.unwrap().unwrap();
    assert_eq!(bye, Message::Close(Some(close)));
    let closed = ServerEvent::Closed(CloseReason::Local);
    assert_eq!(ended.await.unwrap(), Some(closed));
}

#[tokio::test(start_paused = true)]
async fn dropping_an_ask_does_not_cancel_the_message() {
    let runtime = runtime();
    let mut events = runtime.events();
    let mut notes = Client::new(&runtime, "notes").await;
    let asked = ask(&runtime, "hello");
    let id = notes.id().await;
    asked.abort();
    notes.send(&ack(&id)).await;
    let settled = until(&mut events, |event| match event {
        HubEvent::Settled { message, .. } => Some(message.to_string()),
        _ => None,
    });
    assert_eq!(settled.await, id);
}

#[tokio::test(start_paused = true)]
async fn events_are_emitted_in_order() {
    let runtime = runtime();
    let mut events = runtime.events();
    let mut notes = Client::new(&runtime, "notes").await;
    let asked = ask(&runtime, "hello");
    let id = notes.id().await;
    notes.send(&ack(&id)).await;
    notes.send(&ack(&id)).await;
    asked.await.unwrap();
    let bye = CloseFrame::new(CloseFrame::NORMAL, "bye");
    notes.line.send(Outgoing::Close(bye)).await.unwrap();
    notes.served.await.unwrap();
    let mut reported = Vec::new();
    while let Some(event) = events.try_next() {
        reported.push(match event {
            HubEvent::Registered { name, .. } => format!("{name} registered"),
            HubEvent::Route { .. } => "asked".to_owned(),
            HubEvent::Delivered { client, message } => {
                let reason = message.metadata.routing_reason;
                format!("to {client} {}", reason.unwrap_or_default())
            }
            HubEvent::Acked { client, .. } => format!("{client} took it"),
            HubEvent::Settled { .. } => "settled".to_owned(),
            HubEvent::Ignored { why, .. } => {
                assert_eq!(why, Ignored::AlreadyAcked);
                "ignored".to_owned()
            }
            HubEvent::Left { name, .. } => format!("{name} left"),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(
        reported,
        [
            "notes registered",
            "asked",
            "to notes as told",
            "notes took it",
            "settled",
            "ignored",
            "notes left"
        ]
    );
}
