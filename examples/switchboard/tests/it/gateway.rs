//! The gateway over real sockets: as it is set up from a configuration, and with a model that
//! waits when it is told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::ChatSend;
use exoclaw_proto::net::{Client, Server, ServerHandle, ServerOptions, connect_lazy};
use futures_util::{StreamExt as _, stream};
use rpc_core::store::MemoryStore;
use rpc_core::{CallError, Secret};
use serde_json::{Value, json};
use switchboard::gateway::backend::GatewayBackend;
use switchboard::gateway::config::{AgentConfig, Config};
use switchboard::gateway::engine::{Engine, EngineParts, unix_seconds};
use switchboard::gateway::setup::{Gateway, Overrides};
use switchboard::gateway::store::{GatewayStore, GatewayStoreConfig};
use switchboard::gateway::tool::Tools;
use switchboard::model::{ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError, Usage};
use tokio::sync::{Semaphore, mpsc};

use crate::wire::{Wire, ask, upgrade_request};

const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a gateway from a configuration.
async fn start(change: impl FnOnce(&mut Config), token: Option<&str>) -> SocketAddr {
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
    tokio::spawn(gateway.run());
    address
}

fn client(address: SocketAddr) -> Client {
    let config = ClientConfig {
        channel: "ws".into(),
        account: "ann".into(),
        peer: Some("main".into()),
        ..ClientConfig::default()
    };
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
    cut: Arc<AtomicUsize>,
}

impl Waiting {
    async fn start(options: ServerOptions) -> Self {
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
        let mut parts = EngineParts::new(agent, Arc::new(model), Tools::new(), store);
        // It would be one more call of the model for each turn.
        parts.memory.semantic = false;
        let engine = Arc::new(Engine::new(parts));
        let backend = GatewayBackend::new(engine, false);
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

async fn open(address: SocketAddr) -> Wire {
    let mut wire = Wire::open(address).await;
    assert_eq!(next(&mut wire).await["ok"], json!(true));
    wire
}

#[tokio::test]
async fn page_and_health_are_served_on_the_same_port_and_need_no_token() {
    let gateway = start(|_| (), Some("s3cret")).await;
    let get = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{more}connection: close\r\n\r\n")
    };
    let health = ask(gateway, &get("/health", "")).await;
    assert!(
        health.starts_with("200") && health.ends_with("ok"),
        "{health}"
    );
    let page = ask(gateway, &get("/", "")).await;
    assert!(page.starts_with("200") && page.contains("<html"), "{page}");
    let foreign = get("/", "origin: https://evil.example\r\n");
    assert!(ask(gateway, &foreign).await.starts_with("403"));
    let host = "GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert!(ask(gateway, host).await.starts_with("403"));
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
    let own = format!("http://{gateway}");
    for (origin, status) in [
        (&*own, "101"),
        ("http://localhost:3000", "101"),
        ("https://chat.example", "101"),
        ("https://evil.example", "403"),
        ("null", "403"),
    ] {
        let origin = format!("origin: {origin}\r\n");
        let request = upgrade_request("/ws", &origin);
        assert_eq!(head(gateway, &request).await, status, "{origin}");
    }
    for (host, status) in [
        ("localhost", "101"),
        ("127.0.0.1:7200", "101"),
        ("chat.example", "101"),
        ("evil.example", "403"),
    ] {
        let request = upgrade_request("/ws", "");
        let request = request.replace("Host: localhost", &format!("host: {host}"));
        assert_eq!(head(gateway, &request).await, status, "{host}");
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
async fn a_drain_counts_the_replies_that_it_cuts() {
    let options = ServerOptions {
        shutdown_timeout: Duration::from_millis(50),
        ..ServerOptions::default()
    };
    let gateway = Waiting::start(options).await;
    let client = client(gateway.address);
    client.ready().await.unwrap();
    let mut done = client.chat("done before").await;
    assert!(done.next().await.unwrap().is_ok());
    gateway.gate.add_permits(1);
    assert_eq!(done.finish().await.unwrap(), " done");
    let mut left = open(gateway.address).await;
    left.send(&chat("1", "bob", "leaves before")).await;
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
async fn refusals_use_the_words_of_the_protocol() {
    for scope in ["session", "daily", "monthly"] {
        let budget = |config: &mut Config| match scope {
            "session" => config.budgets.session = Some(1),
            "daily" => config.budgets.daily = Some(1),
            _ => config.budgets.monthly = Some(1),
        };
        let gateway = start(budget, None).await;
        let client = client(gateway);
        client.ready().await.unwrap();
        let error = client.chat("hello there").await.finish().await.unwrap_err();
        let CallError::Remote(error) = error else {
            panic!("{error}");
        };
        let expected = format!("token budget exceeded ({scope}: 0/1); estimates count too (3");
        assert!(error.message().starts_with(&expected), "{error}");
    }
    let gateway = start(|_| (), None).await;
    let client = client(gateway);
    client.ready().await.unwrap();
    let long = ChatSend::new("x".repeat(513), "a", "b");
    let error = client.chat_send(long).await.finish().await.unwrap_err();
    let CallError::Remote(error) = error else {
        panic!("{error}");
    };
    let expected = "invalid chat.send params: channel is longer than 512 bytes";
    assert_eq!(error.message(), expected);
}
