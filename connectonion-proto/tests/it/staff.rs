//! What the tests of runtime and host share: a scripted agent, and a client that says what it is told.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use connectonion_proto::Json;
use connectonion_proto::auth::{Draft, Signer};
use connectonion_proto::frame::{
    ApprovalNeeded, AskUser, EventKind, LlmCall, Mode, PlanReview, Thinking, ToolCall,
    UlwTurnsReached,
};
use connectonion_proto::net::{Agent, AppError, HostRuntime, Prompt, Reply, RuntimeOptions, Turn};
use connectonion_proto::server::ServerConfig;
use connectonion_proto::storage::{Record, export};
use connectonion_proto::trust::TrustLevel;
use futures_util::{SinkExt, StreamExt};
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::mem::{self, MemTransport};
use rpc_core::net::ws::{WsConfig, WsDialer, WsStream};
use rpc_core::net::{Dialer, DriverConfig, Message, Transport};
use rpc_core::store::Store;
use rpc_core::{CloseFrame, Outgoing, Text};
use serde_json::{Value, json};

pub const SECOND: Duration = Duration::from_secs(1);

pub fn host_key() -> Signer {
    Signer::from_seed(&[1; 32])
}

pub fn client_key() -> Signer {
    Signer::from_seed(&[2; 32])
}

/// Counts the runs of `stall` with this name in this process.
fn count_run(name: &str) -> u32 {
    static RUNS: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
    let mut runs = RUNS.lock().unwrap();
    let count = runs.entry(name.to_owned()).or_default();
    *count += 1;
    *count
}

/// Does what its prompt says.
pub struct Scripted;

impl Agent for Scripted {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        let text = prompt.text.to_string();
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let reply = match word {
            "think" => {
                turn.emit(EventKind::Thinking(Thinking::new(rest)))?;
                format!("thought {rest}")
            }
            // Says something so many times, as fast as one client reads.
            "chatter" => {
                for number in 0..rest.parse().unwrap_or(1) {
                    turn.emit(EventKind::Thinking(Thinking::new(format!("{number}"))))?;
                    tokio::time::sleep(SECOND / 1000).await;
                }
                "said it all".to_owned()
            }
            "tool" => {
                let id = turn.emit(EventKind::LlmCall(LlmCall::new("stub", 1)))?;
                assert!(!id.is_empty());
                let args = Json::of(&json!({"a": 2})).unwrap();
                let call = ToolCall::new("c1", "add", args);
                let sum = turn.tool(call, async { Ok::<_, AppError>(5) }).await??;
                assert_eq!(sum, 5);
                "sum is 5".to_owned()
            }
            // A tool that takes its time, and fails.
            "break" => {
                let work = async {
                    tokio::time::sleep(SECOND).await;
                    Err::<u8, _>(AppError::failed(rest))
                };
                let call = ToolCall::new("c1", "break", Json::EMPTY_ARRAY);
                turn.tool(call, work).await?.unwrap_err().to_string()
            }
            // What was said, as values.
            "recall" => {
                #[derive(serde::Deserialize)]
                struct Closed {
                    role: String,
                    content: String,
                }
                if rest == "numbers" {
                    let error = turn.messages::<u64>().unwrap_err();
                    return Ok(Reply::new(error.to_string()));
                }
                let said = turn.messages::<Closed>()?.into_iter();
                let said: Vec<_> = said.map(|it| it.role + ": " + &it.content).collect();
                said.join(", ")
            }
            // Says something so many times, and goes on.
            "babble" => {
                for number in 0..rest.parse().unwrap_or(1) {
                    turn.emit(EventKind::Thinking(Thinking::new(format!("{number}"))))?;
                }
                turn.interrupted().await;
                return Ok(Reply::interrupted());
            }
            // Waits until someone says something, and repeats it.
            "listen" => {
                turn.input_waits().await;
                let said = turn.next_inputs()?;
                let said: Vec<&str> = said.iter().map(|it| &*it.text).collect();
                format!("heard {}", said.join(", "))
            }
            "sleep" => {
                let seconds: u64 = rest.parse().unwrap_or(1);
                tokio::time::sleep(SECOND * u32::try_from(seconds).unwrap_or(1)).await;
                format!("slept {seconds}")
            }
            "wait" => {
                turn.interrupted().await;
                return Ok(Reply::interrupted());
            }
            // Never answers the first time, and at once when it is run again.
            "stall" => {
                let runs = count_run(rest);
                if runs == 1 {
                    turn.interrupted().await;
                }
                format!("run {runs} of {rest}")
            }
            "ask" => {
                let answer = turn.ask_user(AskUser::new(rest)).await?;
                if answer.get() == "\"fail\"" {
                    return Err(AppError::failed("as it was told"));
                }
                format!("answer {}", answer.get())
            }
            "approve" => {
                let args = Json::of(&json!({"path": rest})).unwrap();
                let tool = ApprovalNeeded::new("delete", args, "");
                let approval = turn.approve(tool).await?;
                format!("approved {}", approval.approved)
            }
            "plan" => {
                let message = turn.plan_review(PlanReview::new(rest)).await?;
                format!("plan {message}")
            }
            "mode" => format!(
                "mode {}",
                turn.mode()
                    .map_or("none".to_owned(), |it| it.name().to_owned())
            ),
            "turns" => format!("turns {:?}", turn.ulw_turns()),
            "reached" => {
                let answer = turn.ulw_turns_reached(UlwTurnsReached::new(7, 7)).await?;
                format!("go on: {}", answer.action.name())
            }
            "goal" => {
                turn.ask_user(AskUser::new(rest)).await?;
                format!("goal {}", turn.take_goal().unwrap_or_default())
            }
            "switch" => {
                turn.set_mode(Mode::Plan)?;
                "switched".to_owned()
            }
            "count" => {
                let session = turn.session()?;
                let session: Value = session.parse().unwrap();
                format!("{} messages", session["messages"].as_array().unwrap().len())
            }
            "look" => format!(
                "{} images, {} files",
                prompt.images.len(),
                prompt.files.len()
            ),
            "read" => std::fs::read_to_string(prompt.files[0].path.as_deref().unwrap()).unwrap(),
            // A header of the request of who says this.
            "header" => {
                let header = turn.parts().and_then(|it| it.headers.get(rest));
                header.map_or("none", |it| it.to_str().unwrap()).to_owned()
            }
            "fail" => return Err(AppError::failed(rest)),
            "panic" => panic!("{rest}"),
            "nothing" => String::new(),
            _ => format!("echo: {text}"),
        };
        Ok(Reply::new(reply))
    }
}

/// What a store has of a session.
pub async fn stored(store: &dyn Store, session_id: &str) -> Option<Record> {
    let mut lines = Vec::new();
    export(store, &mut lines).await.unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let mut records = lines.lines().map(|line| Record::parse(line).unwrap());
    records.find(|record| record.session_id == session_id)
}

/// A runtime with a scripted agent, open to everyone, in this runtime.
pub fn runtime() -> HostRuntime {
    runtime_with(RuntimeOptions::new(&host_key(), TrustLevel::Open))
}

/// A runtime that forgets its sessions.
pub fn runtime_with(options: RuntimeOptions) -> HostRuntime {
    let runtime = HostRuntime::new(Scripted, options);
    let running = runtime.clone();
    tokio::spawn(async move { running.run().await });
    runtime
}

pub fn now() -> f64 {
    connectonion_proto::auth::unix_seconds(std::time::SystemTime::now())
}

/// A CONNECT of this key, with these members, signed as no other one is.
pub fn connect(key: &Signer, members: Value) -> Value {
    static NONCE: AtomicU64 = AtomicU64::new(0);
    let draft = Draft::new(now())
        .with_to(host_key().address())
        .with_nonce(NONCE.fetch_add(1, Ordering::Relaxed).into());
    signed("CONNECT", key, &draft, members)
}

pub fn signed(kind: &str, key: &Signer, draft: &Draft, members: Value) -> Value {
    let signed = key.sign_payload(draft).unwrap();
    let mut frame = json!({
        "type": kind,
        "payload": serde_json::from_str::<Value>(signed.payload.unwrap().get()).unwrap(),
        "from": signed.from,
        "signature": signed.signature,
    });
    let Value::Object(members) = members else {
        panic!("members are an object");
    };
    frame.as_object_mut().unwrap().extend(members);
    frame
}

pub fn input(prompt: &str) -> Value {
    json!({"type": "INPUT", "prompt": prompt})
}

/// A client that says what it is told to say.
pub struct Client<T = MemTransport> {
    pub line: T,
}

impl Client {
    pub fn open(runtime: &HostRuntime) -> Self {
        let config = ServerConfig {
            keep_alive: KeepAlive::off(),
            ping_interval: None,
            ..ServerConfig::default()
        };
        Self::open_with(runtime, config)
    }

    pub fn open_with(runtime: &HostRuntime, config: ServerConfig) -> Self {
        Self::open_from(runtime, None, config)
    }

    /// A client that comes from this address.
    pub fn open_from(runtime: &HostRuntime, peer: Option<IpAddr>, config: ServerConfig) -> Self {
        let (line, theirs) = mem::duplex(64);
        let serving = runtime.serve(theirs, peer, config, DriverConfig::default());
        tokio::spawn(serving);
        Self { line }
    }

    /// A client of this key that is in.
    pub async fn inside_as(runtime: &HostRuntime, key: &Signer) -> Self {
        let mut client = Self::open(runtime);
        client.send(&connect(key, json!({}))).await;
        client.recv_type("CONNECTED").await;
        client
    }

    /// A client of the usual key that is in, and its CONNECTED.
    pub async fn inside(runtime: &HostRuntime, members: Value) -> (Self, Value) {
        let mut client = Self::open(runtime);
        client.send(&connect(&client_key(), members)).await;
        let connected = client.recv_type("CONNECTED").await;
        (client, connected)
    }
}

impl Client<WsStream> {
    /// A client on a real socket.
    pub async fn dial(url: &str) -> Self {
        let config = WsConfig {
            max_outgoing: usize::MAX,
            ..WsConfig::default()
        };
        let dialer = WsDialer::new(url).unwrap().with_config(config);
        let line = dialer.dial().await.unwrap();
        Self { line }
    }

    /// As [`Client::inside`].
    pub async fn dial_in(url: &str, members: Value) -> (Self, Value) {
        let mut client = Self::dial(url).await;
        client.send(&connect(&client_key(), members)).await;
        let connected = client.recv_type("CONNECTED").await;
        (client, connected)
    }
}

impl<T: Transport> Client<T> {
    /// How the host closes.
    pub async fn close_frame(&mut self) -> CloseFrame {
        loop {
            let message = tokio::time::timeout(60 * SECOND, self.line.next()).await;
            match message.expect("the line ends").expect("with a Close") {
                Ok(Message::Close(frame)) => return frame.expect("with a code"),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub async fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        self.line
            .send(Outgoing::Text(Text::from(text)))
            .await
            .unwrap();
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let bytes = bytes.to_vec().into();
        self.line.send(Outgoing::Binary(bytes)).await.unwrap();
    }

    /// The next frame; `None` if none comes in this time, or ever. A Close is told as its code.
    pub async fn try_recv(&mut self, patience: Duration) -> Option<Value> {
        loop {
            let message = tokio::time::timeout(patience, self.line.next()).await;
            match message.ok()??.ok()? {
                Message::Text(text) => return serde_json::from_str(text.as_str()).ok(),
                Message::Close(frame) => return Some(json!({"close": frame.map(|it| it.code)})),
                _ => {}
            }
        }
    }

    /// The next frame, within a minute of the paused clock.
    pub async fn recv(&mut self) -> Value {
        loop {
            let message = tokio::time::timeout(60 * SECOND, self.line.next()).await;
            let message = message.expect("there is a frame").expect("the line is up");
            if let Message::Text(text) = message.unwrap() {
                return serde_json::from_str(text.as_str()).unwrap();
            }
        }
    }

    /// The next frame, which is of this type.
    pub async fn recv_type(&mut self, kind: &str) -> Value {
        let frame = self.recv().await;
        assert_eq!(frame["type"], kind, "{frame}");
        frame
    }

    /// What the next frame says, which is an ERROR.
    pub async fn error(&mut self) -> String {
        let error = self.recv_type("ERROR").await;
        error["message"].as_str().unwrap().to_owned()
    }

    /// What the host answers to a frame that it refuses.
    pub async fn refused(&mut self, frame: &Value) -> String {
        self.send(frame).await;
        self.error().await
    }

    /// The frames up to one of this type, and this one.
    pub async fn recv_until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = vec![self.recv().await];
        while frames.last().unwrap()["type"] != kind {
            frames.push(self.recv().await);
        }
        frames
    }

    pub async fn output(&mut self) -> Value {
        self.recv_until("OUTPUT").await.pop().unwrap()
    }

    /// Nothing comes for a while.
    pub async fn recv_nothing(&mut self) {
        let received = tokio::time::timeout(SECOND / 2, self.line.next()).await;
        assert!(received.is_err(), "{:?}", received.unwrap());
    }

    /// What a prompt is answered with.
    pub async fn ask(&mut self, prompt: &str) -> String {
        self.send(&input(prompt)).await;
        self.output().await["result"].as_str().unwrap().to_owned()
    }
}

pub fn types(frames: &[Value]) -> Vec<&str> {
    frames
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect()
}
