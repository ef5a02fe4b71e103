//! The gateway over real sockets: as it is set up from a configuration, and with a model that
//! waits when it is told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::error::ErrorKind;
use exoclaw_proto::frame::ChatSend;
use exoclaw_proto::net::{Client, Server, ServerHandle, ServerOptions, connect_lazy};
use futures_util::{StreamExt as _, stream};
use rpc_core::store::MemoryStore;
use rpc_core::{CallError, Secret};
use serde_json::{Value, json};
use switchboard::gateway::backend::GatewayBackend;
use switchboard::gateway::config::{AgentConfig, Config};
use switchboard::gateway::engine::{Engine, EngineParts, unix_seconds};
use switchboard::gateway::memory::Mark;
use switchboard::gateway::setup::{Gateway, Overrides};
use switchboard::gateway::store::{GatewayStore, GatewayStoreConfig};
use switchboard::gateway::tool::Tools;
use switchboard::gateway::usage::Ending;
use switchboard::model::{ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError, Usage};
use tokio::sync::{Semaphore, mpsc};

use crate::wire::{Frame, Wire, ask, frame, upgrade_request};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway from a configuration.
struct Running {
    address: SocketAddr,
    handle: ServerHandle,
}

async fn start(change: impl FnOnce(&mut Config), token: Option<&str>) -> Running {
    let mut config = Config::default();
    config.gateway.port = 0;
    change(&mut config);
    let overrides = Overrides {
        token: token.map(|token| Secret::from(token.to_owned())),
        ..Overrides::default()
    };
    let gateway = Gateway::start(config, overrides, &|_| None).await.unwrap();
    let address = gateway.url().trim_start_matches("ws://").to_owned();
    let address = address.trim_end_matches("/ws").parse().unwrap();
    let handle = gateway.handle();
    tokio::spawn(gateway.run());
    Running { address, handle }
}

fn client(address: SocketAddr, token: Option<&str>) -> Client {
    let mut config = ClientConfig {
        channel: "ws".into(),
        account: "ann".into(),
        peer: Some("main".into()),
        ..ClientConfig::default()
    };
    config.token = token.map(|token| Secret::from(token.to_owned()));
    let (client, _, connection) = connect_lazy(&format!("ws://{address}"), config).unwrap();
    tokio::spawn(connection.run());
    client
}

/// A model that says one word, waits to be let go on, and says another one.
#[derive(Debug)]
struct Waits {
    gate: Arc<Semaphore>,
    told: mpsc::UnboundedSender<&'static str>,
}

struct DropSignal(mpsc::UnboundedSender<&'static str>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        let _ = self.0.send("stopped");
    }
}

#[async_trait]
impl ChatModel for Waits {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let (gate, told) = (Arc::clone(&self.gate), DropSignal(self.told.clone()));
        let question = request.messages.last().unwrap().content.text().into_owned();
        let usage = Usage {
            prompt: 8,
            completion: 2,
        };
        let wait = stream::once(async move {
            let told = told;
            gate.acquire().await.unwrap().forget();
            drop(told);
            Ok(Delta::Text(" done".to_owned()))
        });
        let first = stream::iter([Ok(Delta::Text(question))]);
        let last = stream::iter([Ok(Delta::Usage(usage)), Ok(Delta::Finish(Finish::Stop))]);
        Ok(first.chain(wait).chain(last).boxed())
    }
}

/// A gateway whose model waits.
struct Waiting {
    address: SocketAddr,
    handle: ServerHandle,
    gate: Arc<Semaphore>,
    heard: mpsc::UnboundedReceiver<&'static str>,
    engine: Arc<Engine>,
    store: Arc<GatewayStore>,
    cut: Arc<AtomicUsize>,
}

impl Waiting {
    async fn start() -> Self {
        Self::start_with(ServerOptions::default()).await
    }

    async fn start_with(options: ServerOptions) -> Self {
        let config = GatewayStoreConfig::default();
        let store = GatewayStore::open(Arc::new(MemoryStore::new()), config, unix_seconds).await;
        let store = store.unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let (told, heard) = mpsc::unbounded_channel();
        let model = Waits {
            gate: Arc::clone(&gate),
            told,
        };
        let agent = AgentConfig::default();
        let mut parts = EngineParts::new(agent, Arc::new(model), Tools::new(), Arc::clone(&store));
        // It would be one more call of the model for each turn.
        parts.memory.semantic = false;
        let engine = Arc::new(Engine::new(parts));
        let backend = GatewayBackend::new(Arc::clone(&engine), false);
        let cut = backend.cut();
        let server = Server::bind("127.0.0.1:0", backend, options);
        let server = server.await.unwrap();
        let (address, handle) = (server.local_addr(), server.handle());
        tokio::spawn(server.run());
        Self {
            address,
            handle,
            gate,
            heard,
            engine,
            store,
            cut,
        }
    }
}

fn chat(id: &str, account: &str, content: &str) -> String {
    let params = json!({"channel": "ws", "account": account, "content": content});
    json!({"id": id, "method": "chat.send", "params": params}).to_string()
}

/// The next frame, as JSON.
async fn next(wire: &mut Wire) -> Value {
    serde_json::from_str(&wire.text().await).unwrap()
}

fn piece(id: &str, text: &str) -> Value {
    json!({"id": id, "event": "text", "data": text})
}

fn done(id: &str) -> Value {
    json!({"id": id, "event": "done"})
}

async fn open(address: SocketAddr) -> Wire {
    let mut wire = Wire::open(address).await;
    assert_eq!(next(&mut wire).await["ok"], json!(true));
    wire
}

#[tokio::test]
async fn without_a_token_this_machine_is_served() {
    let gateway = start(|_| (), None).await;
    let client = client(gateway.address, None);
    client.ready().await.unwrap();
    client.ping().await.unwrap();
    let mut chat = client.chat("count to 3").await;
    assert!(chat.finish().await.unwrap().contains('3'));
    assert!(chat.summary().unwrap().usage.output_tokens > 0);
    let status = client.status().await.unwrap();
    assert_eq!((status.sessions, status.plugins), (1, 0));
    let error = client.session_list().await.unwrap_err();
    let CallError::Remote(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), ErrorKind::UnknownMethod);
}

#[tokio::test]
async fn a_token_is_required_if_one_is_set() {
    let gateway = start(|_| (), Some("s3cret")).await;
    let right = client(gateway.address, Some("s3cret"));
    right.ready().await.unwrap();
    right.ping().await.unwrap();
    let wrong = client(gateway.address, Some("guess"));
    assert!(wrong.ready().await.is_err());
    let mut wire = Wire::open(gateway.address).await;
    wire.say(r#"{"id":"1","method":"status"}"#).await;
    let refusal = json!({"error": "auth_failed", "code": 4001});
    assert_eq!(next(&mut wire).await, refusal);
    let close = Frame::Close(4001, "auth_failed".to_owned());
    assert_eq!(wire.next().await, close);
}

#[tokio::test]
async fn page_and_health_are_served_on_the_same_port_and_need_no_token() {
    let gateway = start(|_| (), Some("s3cret")).await;
    let get = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{more}connection: close\r\n\r\n")
    };
    let health = ask(gateway.address, &get("/health", "")).await;
    assert!(
        health.starts_with("200") && health.ends_with("ok"),
        "{health}"
    );
    let page = ask(gateway.address, &get("/", "")).await;
    assert!(page.starts_with("200") && page.contains("<html"), "{page}");
    let foreign = get("/", "origin: https://evil.example\r\n");
    assert!(ask(gateway.address, &foreign).await.starts_with("403"));
    let host = "GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert!(ask(gateway.address, host).await.starts_with("403"));
}

#[tokio::test]
async fn pages_of_this_machine_and_of_the_list_may_connect_and_no_others() {
    let gateway = start(
        |config| {
            config.gateway.allowed_origins = vec!["https://chat.example".to_owned()];
            config.gateway.allowed_hosts = vec!["chat.example".to_owned()];
        },
        None,
    )
    .await;
    let own = format!("http://{}", gateway.address);
    for (origin, status) in [
        (&*own, "101"),
        ("http://localhost:3000", "101"),
        ("https://chat.example", "101"),
        ("https://evil.example", "403"),
        ("null", "403"),
    ] {
        let origin = format!("origin: {origin}\r\n");
        let request = upgrade_request("/ws", &origin);
        assert_eq!(head(gateway.address, &request).await, status, "{origin}");
    }
    for (host, status) in [
        ("localhost", "101"),
        ("127.0.0.1:7200", "101"),
        ("chat.example", "101"),
        ("evil.example", "403"),
    ] {
        let request = upgrade_request("/ws", "");
        let request = request.replace("host: localhost", &format!("host: {host}"));
        assert_eq!(head(gateway.address, &request).await, status, "{host}");
    }
}

/// The status of an answer after which the line may stay open.
async fn head(address: SocketAddr, request: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut tcp = tokio::net::TcpStream::connect(address).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    let read = tcp.read_exact(&mut head);
    tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

#[tokio::test]
async fn streams_of_one_connection_interleave_and_a_ping_does_not_wait_for_them() {
    let gateway = Waiting::start().await;
    let mut wire = open(gateway.address).await;
    wire.say(&chat("a", "ann", "one")).await;
    assert_eq!(next(&mut wire).await, piece("a", "one"));
    wire.say(&chat("b", "bob", "two")).await;
    assert_eq!(next(&mut wire).await, piece("b", "two"));
    wire.say(r#"{"id":"p","method":"ping"}"#).await;
    assert_eq!(next(&mut wire).await, json!({"id": "p", "result": "pong"}));
    wire.send(&frame(9, b"there?")).await;
    assert_eq!(wire.next().await, Frame::Pong(b"there?".to_vec()));
    gateway.gate.add_permits(2);
    let mut rest = Vec::new();
    for _ in 0..6 {
        rest.push(next(&mut wire).await);
    }
    for id in ["a", "b"] {
        let of_it: Vec<_> = rest.iter().filter(|it| it["id"] == id).collect();
        let usage = json!({"input_tokens": 8, "output_tokens": 2});
        let usage = json!({"id": id, "event": "usage", "data": usage});
        assert_eq!(of_it, [&piece(id, " done"), &usage, &done(id)]);
    }
}

#[tokio::test]
async fn two_clients_of_one_session_take_turns_and_of_two_do_not() {
    let gateway = Waiting::start().await;
    let mut first = open(gateway.address).await;
    let mut second = open(gateway.address).await;
    let mut other = open(gateway.address).await;
    first.say(&chat("1", "ann", "one")).await;
    assert_eq!(next(&mut first).await, piece("1", "one"));
    second.say(&chat("2", "ann", "two")).await;
    other.say(&chat("3", "bob", "three")).await;
    assert_eq!(next(&mut other).await, piece("3", "three"));
    // What was sent before has been read before; the turn is not there yet.
    second.say(r#"{"id":"p","method":"ping"}"#).await;
    assert_eq!(next(&mut second).await["result"], "pong");
    gateway.gate.add_permits(3);
    assert_eq!(next(&mut first).await, piece("1", " done"));
    assert_eq!(next(&mut second).await, piece("2", "two"));
    let turns = || gateway.store.recall("default:ws:ann:main", None, 9);
    while turns()
        .await
        .unwrap()
        .iter()
        .filter(|it| it.mark.is_none())
        .count()
        < 2
    {
        tokio::task::yield_now().await;
    }
    let said = turns().await.unwrap();
    let said: Vec<_> = said.iter().map(|turn| &*turn.assistant).collect();
    assert_eq!(said, ["one done", "two done"]);
}

#[tokio::test]
async fn a_client_that_vanishes_stops_the_model_and_is_counted() {
    let mut gateway = Waiting::start().await;
    let mut wire = open(gateway.address).await;
    wire.say(&chat("1", "ann", "12345678")).await;
    assert_eq!(next(&mut wire).await, piece("1", "12345678"));
    drop(wire);
    let stopped = tokio::time::timeout(PATIENCE, gateway.heard.recv());
    assert_eq!(stopped.await.unwrap(), Some("stopped"));
    // The next message of the session waits only until it is stored.
    let mut wire = open(gateway.address).await;
    wire.say(&chat("2", "ann", "next")).await;
    assert_eq!(next(&mut wire).await, piece("2", "next"));
    gateway.engine.close().await;
    let log = gateway.store.usage(9).await.unwrap();
    assert_eq!(log.len(), 1);
    let entry = &log[0];
    assert_eq!(entry.ending, Ending::Cancelled);
    assert_eq!((entry.tokens(), entry.estimated), (4, true));
    let recalled = gateway.store.recall("default:ws:ann:main", None, 9);
    let turns = recalled.await.unwrap();
    let turns = turns
        .iter()
        .map(|it| (&*it.user, &*it.assistant, it.mark.clone()));
    let turns: Vec<_> = turns.collect();
    let stopped = ("12345678", "12345678", Some(Mark::Stopped));
    assert_eq!(turns.first(), Some(&stopped));
    // The question that is being answered.
    assert_eq!((turns.len(), turns[1].0), (2, "next"));
}

#[tokio::test]
async fn a_drain_lets_a_reply_finish() {
    let gateway = Waiting::start().await;
    let client = client(gateway.address, None);
    client.ready().await.unwrap();
    let mut chat = client.chat("one").await;
    assert!(chat.next().await.unwrap().is_ok());
    let handle = gateway.handle.clone();
    let drain = tokio::spawn(async move { handle.drain(PATIENCE).await });
    while tokio::net::TcpStream::connect(gateway.address)
        .await
        .is_ok()
    {
        tokio::task::yield_now().await;
    }
    gateway.gate.add_permits(1);
    assert_eq!(chat.finish().await.unwrap(), " done");
    let report = drain.await.unwrap();
    assert_eq!((report.finished, report.aborted), (1, 0));
    gateway.engine.close().await;
    assert_eq!(
        gateway.store.usage(9).await.unwrap()[0].ending,
        Ending::Done
    );
    assert_eq!(gateway.cut.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_drain_counts_the_replies_that_it_cuts() {
    let options = ServerOptions {
        shutdown_timeout: Duration::from_millis(50),
        ..ServerOptions::default()
    };
    let gateway = Waiting::start_with(options).await;
    let client = client(gateway.address, None);
    client.ready().await.unwrap();
    let mut done = client.chat("done before").await;
    assert!(done.next().await.unwrap().is_ok());
    gateway.gate.add_permits(1);
    assert_eq!(done.finish().await.unwrap(), " done");
    let mut left = open(gateway.address).await;
    left.say(&chat("1", "bob", "leaves before")).await;
    assert_eq!(next(&mut left).await, piece("1", "leaves before"));
    drop(left);
    let mut heard = gateway.heard;
    assert_eq!(heard.recv().await, Some("stopped"));
    assert_eq!(heard.recv().await, Some("stopped"));
    let mut cut = client.chat("one").await;
    assert!(cut.next().await.unwrap().is_ok());
    let report = gateway.handle.drain(PATIENCE).await;
    assert!(cut.finish().await.is_err());
    // The connection was closed in good order; the reply was not.
    assert_eq!((report.finished, report.aborted), (1, 0));
    assert_eq!(gateway.cut.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn extensions_answer_if_they_are_switched_on() {
    let gateway = start(|config| config.gateway.extensions = true, None).await;
    let client = client(gateway.address, None);
    client.ready().await.unwrap();
    let mut chat = client.chat("My name is Ann.").await;
    chat.finish().await.unwrap();
    let sessions = client.session_list().await.unwrap();
    assert_eq!(sessions[0].key, "default:ws:ann:main");
    let history = client.chat_history(client.session(), None).await.unwrap();
    assert_eq!(history[0].user, "My name is Ann.");
    let found = client.memory_search(client.session(), "name", None).await;
    assert_eq!(found.unwrap()[0].text, "My name is Ann.");
    let budget = client.budget_status(Some(client.session())).await.unwrap();
    assert!(budget.daily.used > 0 && budget.daily.limit.is_none());
    let cleared = client.session_clear(client.session()).await.unwrap();
    assert_eq!(cleared.turns, 1);
    gateway.handle.drain(PATIENCE).await;
}

#[tokio::test]
async fn refusals_use_the_words_of_the_protocol() {
    for scope in ["session", "daily", "monthly"] {
        let budget = |config: &mut Config| match scope {
            "session" => config.budgets.session = Some(1),
            "daily" => config.budgets.daily = Some(1),
            _ => config.budgets.monthly = Some(1),
        };
        let gateway = start(budget, None).await;
        let client = client(gateway.address, None);
        client.ready().await.unwrap();
        let error = client.chat("hello there").await.finish().await.unwrap_err();
        let CallError::Remote(error) = error else {
            panic!("{error}");
        };
        let expected = format!("token budget exceeded ({scope}: 0/1); estimates count too (3");
        assert!(error.message().starts_with(&expected), "{error}");
    }
    let gateway = start(|_| (), None).await;
    let client = client(gateway.address, None);
    client.ready().await.unwrap();
    let long = ChatSend::new("x".repeat(513), "a", "b");
    let error = client.chat_send(long).await.finish().await.unwrap_err();
    let CallError::Remote(error) = error else {
        panic!("{error}");
    };
    let expected = "invalid chat.send params: channel is longer than 512 bytes";
    assert_eq!(error.message(), expected);
}
