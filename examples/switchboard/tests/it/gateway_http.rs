//! The gateway's webhooks and the page's chats, over real sockets, with a channel adapter that is no
//! plugin.

mod chats;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::binding::{Binding, Bindings};
use exoclaw_proto::budget::Budgets;
use exoclaw_proto::frame::SessionRef;
use exoclaw_proto::net::{Server, ServerHandle, ServerOptions, http_config};
use rpc_core::store::MemoryStore;
use serde_json::{Value, json};
use snek_proto::llm::tool::ToolDefinition;
use switchboard::gateway::backend::GatewayBackend;
use switchboard::gateway::config::AgentConfig;
use switchboard::gateway::engine::{Engine, EngineParts, unix_seconds};
use switchboard::gateway::site::Site;
use switchboard::gateway::store::{GatewayStore, GatewayStoreConfig};
use switchboard::gateway::tool::{ChannelAdapter, Incoming, PostError, Tool, ToolOutput, Tools};
use switchboard::model::scripted::Scripted;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::wire::ask;

/// Speaks JSON. Its name says how it answers.
struct Service {
    name: &'static str,
    posted: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Service {
    fn name(&self) -> &str {
        self.name
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        None
    }

    fn adapter(&self) -> Option<&dyn ChannelAdapter> {
        (self.name != "tool").then_some(self)
    }

    async fn call(&self, _: &str) -> ToolOutput {
        ToolOutput::error("not called")
    }
}

#[async_trait]
impl ChannelAdapter for Service {
    async fn parse_incoming(&self, body: &[u8]) -> Result<Incoming, String> {
        Incoming::parse(body)
    }

    async fn format_outgoing(&self, content: &str) -> Result<Vec<u8>, String> {
        Ok(match self.name {
            "broken" => return Err("no luck".to_owned()),
            "posts" => json!({"url": "https://chat.example/send", "body": {"say": content}}),
            "posts-text" => json!({"url": "https://chat.example/send"}),
            "denied" => json!({"url": "https://other.example/"}),
            "down" => json!({"url": "https://down.example/"}),
            "plain" => return Ok(format!("<{content}>").into_bytes()),
            _ => json!({ "text": content }),
        }
        .to_string()
        .into_bytes())
    }

    async fn post(&self, url: &str, body: Vec<u8>) -> Result<Vec<u8>, PostError> {
        match url {
            "https://chat.example/send" => {
                let body = String::from_utf8(body).unwrap();
                self.posted.lock().unwrap().push(body);
                Ok(b"sent".to_vec())
            }
            "https://down.example/" => Err(PostError::Failed("connection refused".to_owned())),
            _ => Err(PostError::Denied {
                host: "other.example".to_owned(),
            }),
        }
    }
}

const NAMES: [&str; 8] = [
    "json",
    "plain",
    "broken",
    "posts",
    "posts-text",
    "denied",
    "down",
    "tool",
];

struct Running {
    address: SocketAddr,
    engine: Arc<Engine>,
    posted: Arc<Mutex<Vec<String>>>,
    _handle: ServerHandle,
}

async fn start(secret: Option<&str>, token: Option<&str>, daily: Option<u64>) -> Running {
    let posted: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut tools = Tools::new();
    for name in NAMES {
        let posted = Arc::clone(&posted);
        tools.add(Arc::new(Service { name, posted })).unwrap();
    }
    let config = GatewayStoreConfig::default().with_budgets(Budgets {
        daily,
        ..Budgets::default()
    });
    let store = GatewayStore::open(Arc::new(MemoryStore::new()), config, unix_seconds).await;
    let model = Arc::new(Scripted::default().with_commands(true));
    let mut parts = EngineParts::new(AgentConfig::default(), model, tools.clone(), store.unwrap());
    let bindings = vec![
        Binding {
            guild_id: Some("g".into()),
            ..Binding::new("guilds")
        },
        Binding {
            team_id: Some("t".into()),
            ..Binding::new("teams")
        },
    ];
    parts.router = Bindings::new(bindings, Some("default".to_owned())).unwrap();
    let engine = Arc::new(Engine::new(parts));
    let auth = token.map_or(Auth::open(), |token| Auth::token(token).unwrap());
    let secret = secret.map(|secret| Auth::token(secret).unwrap());
    let site = Arc::new(Site::new(Arc::clone(&engine), auth, tools, secret));
    let doors = Arc::clone(&site);
    let http = http_config().with_authorize(move |parts, _| doors.refusal(parts));
    let http = http.with_http(move |request, _| {
        let site = Arc::clone(&site);
        async move { site.respond(request).await }
    });
    let backend = GatewayBackend::new(Arc::clone(&engine), false);
    let options = ServerOptions {
        http,
        ..ServerOptions::default()
    };
    let server = Server::bind("127.0.0.1:0", backend, options).await.unwrap();
    let (address, handle) = (server.local_addr(), server.handle());
    tokio::spawn(server.run());
    Running {
        address,
        engine,
        posted,
        _handle: handle,
    }
}

impl Running {
    /// Status and body of the answer to a webhook.
    async fn post(&self, channel: &str, more: &str, body: &str) -> (String, String) {
        let length = body.len();
        self.request(&format!(
            "POST /webhook/{channel} HTTP/1.1\r\nhost: localhost\r\n{more}\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
        .await
    }

    async fn request(&self, request: &str) -> (String, String) {
        let answer = ask(self.address, request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[..3].to_owned(), body.to_owned())
    }

    async fn says(&self, channel: &str, content: &str) -> (String, String) {
        let body = json!({"content": content, "account": "ann", "peer": "p"});
        self.post(channel, SECRET, &body.to_string()).await
    }

    async fn sessions(&self) -> u64 {
        self.engine.status().await.sessions
    }
}

/// Far longer than anything takes.
const DEADLINE: Duration = Duration::from_secs(10);
/// An id as the page makes them.
const OWN: &str = "0123456789abcdef0123456789abcdef";
const SECRET: &str = "x-webhook-secret: s3cret\r\n";

fn answer(status: &str, body: &str) -> (String, String) {
    (status.to_owned(), body.to_owned())
}

#[tokio::test]
async fn a_webhook_goes_through_its_adapter_and_the_engine() {
    let gateway = start(Some("s3cret"), None, None).await;
    let reply = "I count: 1 2 - done";
    let formed = json!({ "text": reply }).to_string();
    assert_eq!(
        gateway.says("json", "count to 2").await,
        answer("200", &formed)
    );
    let plain = format!("<{reply}>");
    assert_eq!(
        gateway.says("plain", "count to 2").await,
        answer("200", &plain)
    );
    // An answer that is there is not thrown away.
    assert_eq!(
        gateway.says("broken", "count to 2").await,
        answer("200", reply)
    );
    // The conversation is a session of the channel, and its tokens count.
    let keys: Vec<_> = gateway.engine.usage(9).await.unwrap();
    assert!(keys.iter().any(|it| it.session == "default:json:ann:p"));
    assert!(keys.iter().all(|it| it.tokens() > 0));
    // Guild and team choose the agent; account and peer have defaults.
    for (body, session) in [
        (json!({"content": "hi"}), "default:json:webhook:main"),
        (
            json!({"content": "hi", "guild": "g"}),
            "guilds:json:webhook:main",
        ),
        (
            json!({"content": "hi", "team": "t"}),
            "teams:json:webhook:main",
        ),
    ] {
        let (status, _) = gateway.post("json", SECRET, &body.to_string()).await;
        let newest = gateway.engine.usage(1).await.unwrap();
        assert_eq!((&*status, &*newest[0].session), ("200", session));
    }
}

#[tokio::test]
async fn a_webhook_without_an_adapter_is_404_with_the_reason() {
    let gateway = start(Some("s3cret"), None, None).await;
    for channel in ["telegram", "tool", "JSON"] {
        let expected = format!("no channel adapter for '{channel}'");
        assert_eq!(gateway.says(channel, "hi").await, answer("404", &expected));
    }
    assert_eq!(gateway.sessions().await, 0);
}

#[tokio::test]
async fn a_webhook_needs_the_secret() {
    let gateway = start(Some("s3cret"), None, None).await;
    let body = r#"{"content":"count to 1"}"#;
    for right in [
        SECRET,
        "authorization: Bearer s3cret\r\n",
        "x-telegram-bot-api-secret-token: s3cret\r\n",
    ] {
        assert_eq!(gateway.post("plain", right, body).await.0, "200", "{right}");
    }
    let before = gateway.engine.usage(99).await.unwrap().len();
    for wrong in [
        "",
        "x-webhook-secret: s3cre\r\n",
        "x-webhook-secret: \r\n",
        "authorization: Basic s3cret\r\n",
        "cookie: s3cret\r\n",
    ] {
        let (status, why) = gateway.post("plain", wrong, body).await;
        assert_eq!(status, "401", "{wrong}");
        assert!(!why.contains("s3cre"), "{why}");
    }
    assert_eq!(gateway.engine.usage(99).await.unwrap().len(), before);
    // The gateway's token opens no webhook, and without a secret nothing does.
    let gateway = start(None, Some("s3cret"), None).await;
    let (status, why) = gateway.post("plain", SECRET, body).await;
    assert_eq!(status, "403");
    assert!(why.contains("EXOCLAW_WEBHOOK_SECRET"), "{why}");
}

#[tokio::test]
async fn a_webhook_is_guarded_and_bounded_like_everything_else() {
    let gateway = start(Some("s3cret"), None, None).await;
    let foreign = format!("{SECRET}origin: https://evil.example\r\n");
    assert_eq!(gateway.post("plain", &foreign, "{}").await.0, "403");
    let request = "POST /webhook/plain HTTP/1.1\r\nhost: evil.example\r\n\
        x-webhook-secret: s3cret\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_eq!(gateway.request(request).await.0, "403");
    let huge = format!(
        "POST /webhook/plain HTTP/1.1\r\nhost: localhost\r\n{SECRET}\
         content-length: {}\r\nconnection: close\r\n\r\n",
        (1 << 20) + 1
    );
    assert_eq!(gateway.request(&huge).await.0, "413");
    assert_eq!(gateway.sessions().await, 0);
}

#[tokio::test]
async fn failures_use_the_words_of_the_known_gateway() {
    let gateway = start(Some("s3cret"), None, Some(500)).await;
    let (status, why) = gateway.post("json", SECRET, "no json").await;
    assert_eq!(status, "400");
    assert!(why.starts_with("parse_incoming failed: "), "{why}");
    let empty = answer("400", "empty message content");
    assert_eq!(
        gateway.post("json", SECRET, r#"{"account":"a"}"#).await,
        empty
    );
    let (status, why) = gateway.says("json", "!fail").await;
    assert_eq!(status, "500");
    assert!(why.starts_with("provider error: "), "{why}");
    let (status, why) = gateway.says("json", &"long ".repeat(1000)).await;
    assert_eq!(status, "500");
    let expected = "agent error: token budget exceeded (daily: ";
    assert!(why.starts_with(expected), "{why}");
}

#[tokio::test]
async fn an_answer_is_posted_for_the_adapter_to_the_hosts_it_may_reach() {
    let gateway = start(Some("s3cret"), None, None).await;
    assert_eq!(
        gateway.says("posts", "count to 1").await,
        answer("200", "sent")
    );
    assert_eq!(
        gateway.says("posts-text", "count to 1").await,
        answer("200", "sent")
    );
    let posted = gateway.posted.lock().unwrap().clone();
    let reply = "I count: 1 - done";
    let expected = [json!({ "say": reply }), json!({ "text": reply })];
    let posted: Vec<Value> = posted
        .iter()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(posted, expected);
    let denied = "proxy denied: other.example not in allowed_hosts for adapter 'denied'";
    assert_eq!(gateway.says("denied", "hi").await, answer("403", denied));
    let down = "proxy call failed: connection refused";
    assert_eq!(gateway.says("down", "hi").await, answer("502", down));
}

/// A page that looks at a chat.
struct Page(Lines<BufReader<TcpStream>>);

impl Page {
    async fn next(&mut self) -> Value {
        let lines = async {
            loop {
                // Between the lines are the sizes of the pieces.
                let line = self
                    .0
                    .next_line()
                    .await
                    .unwrap()
                    .expect("the line has ended");
                if line.starts_with('{') {
                    return serde_json::from_str(&line).unwrap();
                }
            }
        };
        timeout(DEADLINE, lines).await.expect("nothing comes")
    }

    /// Reads on to an event, and returns the text that has come before.
    async fn until(&mut self, event: &str) -> String {
        let mut text = String::new();
        loop {
            let next = self.next().await;
            if next["event"] == event {
                return text;
            }
            text.push_str(next["data"].as_str().unwrap_or_default());
        }
    }
}

impl Running {
    async fn looks(&self, more: &str) -> (Page, Value) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET /chats/{OWN} HTTP/1.1\r\nhost: localhost\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut page = Page(BufReader::new(stream).lines());
        let past = page.next().await;
        assert_eq!(past["event"], "past");
        (page, past["data"].clone())
    }

    /// Status and body of the answer to a request about a chat.
    async fn chat(&self, method: &str, path: &str, more: &str, body: &str) -> (String, String) {
        let length = body.len();
        self.request(&format!(
            "{method} /chats/{path} HTTP/1.1\r\nhost: localhost\r\n{more}content-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
        .await
    }

    async fn asks(&self, id: &str, content: &str) -> String {
        let body = json!({ "id": id, "content": content }).to_string();
        self.chat("POST", OWN, "", &body).await.0
    }
}

const FIRST: &str = "00000000000000000000000000000001";
const SECOND: &str = "00000000000000000000000000000002";
