//! The gateway's webhooks and the page's chats, over real sockets, with a channel adapter that is no
//! plugin.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::binding::{Binding, Router};
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
    parts.router = Router::new(bindings, Some("default".to_owned())).unwrap();
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

#[tokio::test]
async fn all_pages_of_a_chat_see_the_same_and_later_ones_its_history() {
    let gateway = start(None, None, None).await;
    let (mut one, past) = gateway.looks("").await;
    assert_eq!(past, json!([]));
    let (mut other, _) = gateway.looks("").await;
    assert_eq!(gateway.asks(FIRST, "count to 2").await, "202");
    for page in [&mut one, &mut other] {
        let mut asked = page.next().await;
        assert!(asked["data"]["at"].take().is_u64(), "{asked}");
        let data = json!({ "id": FIRST, "content": "count to 2", "at": null });
        assert_eq!(asked, json!({ "event": "asked", "data": data }));
        assert_eq!(page.until("done").await, "I count: 1 2 - done");
    }
    let (_, mut past) = gateway.looks("").await;
    for member in ["at", "asked", "usage"] {
        assert!(!past[0][member].take().is_null(), "{member}: {past}");
    }
    let turn = json!({
        "id": FIRST, "user": "count to 2", "assistant": "I count: 1 2 - done", "mark": null,
        "at": null, "asked": null, "usage": null,
    });
    assert_eq!(past, json!([turn]));
}

#[tokio::test]
async fn an_edited_question_begins_a_chat_with_the_turns_before_it() {
    const OTHER: &str = "000000000000000000000000000000ff";
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    for (id, content) in [(FIRST, "count to 2"), (SECOND, "count to 3")] {
        assert_eq!(gateway.asks(id, content).await, "202");
        page.until("done").await;
    }
    let from = json!({ "chat": OWN, "turn": SECOND });
    let edited = json!({ "id": OTHER, "content": "count to 4", "from": from }).to_string();
    assert_eq!(gateway.chat("POST", OTHER, "", &edited).await.0, "202");
    let peer = |id: &str| {
        let mut session = SessionRef::new("web", "browser");
        session.peer = Some(id.into());
        session
    };
    gateway.engine.ended(&peer(OTHER)).await.unwrap();
    for (id, expected) in [
        (OTHER, ["count to 2", "count to 4"]),
        (OWN, ["count to 2", "count to 3"]),
    ] {
        let kept = gateway.engine.kept(&peer(id), 9).await.unwrap();
        let said: Vec<_> = kept.iter().map(|turn| &*turn.user).collect();
        assert_eq!(said, expected, "{id}");
    }
    let words = json!({ "words": "1 2 3 4", "chats": [OWN, OTHER, "no id"] }).to_string();
    let request = format!(
        "POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{words}",
        words.len()
    );
    let found = gateway.request(&request).await;
    assert!(found.1.ends_with(&json!([OTHER]).to_string()));
}

#[tokio::test]
async fn a_model_that_the_provider_does_not_list_is_refused_and_the_question_kept() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    let asked = json!({ "id": FIRST, "content": "hello", "model": "gpt-0" }).to_string();
    assert_eq!(gateway.chat("POST", OWN, "", &asked).await.0, "202");
    page.until("error").await;
    let (_, past) = gateway.looks("").await;
    assert_eq!(past[0]["user"], "hello");
    let mark = past[0]["mark"].as_str().unwrap();
    assert!(
        mark.starts_with("failed: the provider lists no model \"gpt-0\""),
        "{mark}"
    );
    let about = "GET /models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let about = gateway.request(about).await.1;
    assert!(
        about.ends_with(&json!({ "model": "scripted", "models": [] }).to_string()),
        "{about}"
    );
}

#[tokio::test]
async fn an_answer_continues_without_its_page_until_it_is_stopped() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    assert_eq!(gateway.asks(FIRST, "!slow 1000").await, "202");
    page.until("text").await;
    drop(page);
    assert_eq!(gateway.asks(SECOND, "more").await, "409");
    let (mut page, past) = gateway.looks("").await;
    assert_eq!(past, json!([]), "it is not complete");
    assert_eq!(page.next().await["data"]["id"], FIRST);
    page.until("text").await;
    let path = format!("{OWN}/answer");
    assert_eq!(gateway.chat("DELETE", &path, "", "").await.0, "204");
    page.until("stopped").await;
    let (_, past) = gateway.looks("").await;
    assert!(
        past[0]["assistant"].as_str().unwrap().starts_with('1'),
        "{past}"
    );
    assert_eq!(past[0]["mark"], "stopped");
}

#[tokio::test]
async fn a_question_that_is_asked_again_takes_the_place_of_the_first() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    for (id, content) in [
        (FIRST, "My name is Ann."),
        (SECOND, "hello"),
        (SECOND, "My name is Eve."),
    ] {
        assert_eq!(gateway.asks(id, content).await, "202");
        page.until("done").await;
    }
    let (_, past) = gateway.looks("").await;
    let said: Vec<_> = past
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["user"])
        .collect();
    assert_eq!(said, ["My name is Ann.", "My name is Eve."]);
}

#[tokio::test]
async fn a_page_shows_and_forgets_what_is_known_from_its_chat() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    let order = r#"/call remember {"subject":"user","relation":"name","value":"Ann"}"#;
    gateway.asks(FIRST, order).await;
    page.until("done").await;
    let memory = format!("{OWN}/memory");
    let known = async || {
        let (_, known) = gateway.chat("GET", &memory, "", "").await;
        serde_json::from_str::<Value>(&known).unwrap()
    };
    while known().await == json!([]) {
        tokio::task::yield_now().await;
    }
    assert_eq!(known().await[0]["value"], "Ann");
    let other = format!("{}/memory", OWN.replace('0', "1"));
    assert_eq!(gateway.chat("GET", &other, "", "").await.1, "[]");
    for (body, status) in [
        ("{}", "400"),
        (r#"{"subject":"user","relation":"home"}"#, "404"),
        (r#"{"subject":"user","relation":"name"}"#, "204"),
    ] {
        assert_eq!(gateway.chat("DELETE", &memory, "", body).await.0, status);
    }
    assert_eq!(known().await, json!([]));
    assert_eq!(gateway.chat("PUT", &memory, "", "").await.0, "405");
}

#[tokio::test]
async fn a_chat_that_is_deleted_is_forgotten() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    gateway.asks(FIRST, "My name is Ann.").await;
    page.until("done").await;
    gateway.asks(SECOND, "!slow 1000").await;
    page.until("text").await;
    assert_eq!(gateway.chat("DELETE", OWN, "", "").await.0, "204");
    page.until("past").await;
    assert_eq!(gateway.engine.sessions().await.unwrap(), []);
    gateway.asks(FIRST, "What do you know of me?").await;
    let known = page.until("done").await;
    assert!(!known.contains("Ann"), "{known}");
}

#[tokio::test]
async fn the_chats_are_for_their_own_page_with_a_token_only() {
    let gateway = start(Some("s3cret"), Some("t0ken"), None).await;
    let token = "authorization: Bearer t0ken\r\n";
    gateway.looks(token).await;
    let question = json!({ "id": FIRST, "content": "hi" }).to_string();
    for method in ["GET", "POST", "DELETE"] {
        for wrong in ["", "authorization: Bearer s3cret\r\n", SECRET] {
            let (status, _) = gateway.chat(method, OWN, wrong, &question).await;
            assert_eq!(status, "401", "{method} {wrong}");
        }
        let foreign = format!("{token}origin: https://evil.test\r\n");
        assert_eq!(
            gateway.chat(method, OWN, &foreign, &question).await.0,
            "403"
        );
        assert_eq!(
            gateway.chat(method, "main", token, &question).await.0,
            "404"
        );
    }
    for body in [
        "",
        "[]",
        r#"{"id":"1","content":"hi"}"#,
        &question.replace("hi", " "),
    ] {
        assert_eq!(
            gateway.chat("POST", OWN, token, body).await.0,
            "400",
            "{body}"
        );
    }
    assert_eq!(gateway.chat("PUT", OWN, token, &question).await.0, "405");
    let text = format!(
        "POST /chats/{OWN} HTTP/1.1\r\nhost: localhost\r\n{token}connection: close\r\n\r\n"
    );
    assert_eq!(gateway.request(&text).await.0, "415");
}
