//! An agent that does what the message of a chat says, a server around it, and clients by hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acolyte_proto::error::AppError;
use acolyte_proto::event::{Checklist, Event, ToolCall, ToolResult};
use acolyte_proto::frame::{ChatRequest, ClientFrame, Reply, ServerFrame, Status};
use acolyte_proto::limits;
use acolyte_proto::net::{Agent, ChatReply, Server, ServerHandle, ServerOptions};
use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::ws::{WsConfig, WsDialer, WsStream};
use rpc_core::net::{DialError, Dialer as _, Message};
use rpc_core::{Outgoing, Text};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::order::OrderChecker;

/// Longer than anything that works takes, shorter than patience.
pub const DEADLINE: Duration = Duration::from_millis(300);
/// For what has to move megabytes, or serves hundreds, first.
pub const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Shared {
    /// Lets chats and tools that wait go on.
    pub gate: Notify,
    /// Calls of tools so far.
    pub tools: AtomicUsize,
    /// Steps of 8 KiB that were sent so far.
    pub floods: AtomicUsize,
}

pub struct Puppet {
    shared: Arc<Shared>,
    /// Messages of chats whose work was dropped or has ended.
    reported: mpsc::UnboundedSender<String>,
}

/// Says what ended, even if it was dropped.
struct Guard(mpsc::UnboundedSender<String>, String);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(std::mem::take(&mut self.1));
    }
}

impl Agent for Puppet {
    async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        let message = request.message.to_string();
        let _guard = Guard(self.reported.clone(), message.clone());
        let stopped = |_| AppError::failed("stopped");
        match message.as_str() {
            // Does not look whether it was aborted.
            "hang" => std::future::pending().await,
            "wait" => self.shared.gate.notified().await,
            "obey" => {
                run.cancelled().await;
                let _ = self.reported.send("obeyed".to_owned());
            }
            "tools" => {
                for _ in 0..3 {
                    self.shared.tools.fetch_add(1, Ordering::SeqCst);
                    let call = ToolCall::new("call_1", "shell", json!({}));
                    run.emit(&Event::ToolCall(call))
                        .await
                        .map_err(|_| AppError::failed("stopped"))?;
                    tokio::select! {
                        () = self.shared.gate.notified() => {}
                        () = run.cancelled() => return Err(AppError::failed("killed")),
                    }
                    let ended = Event::ToolResult(ToolResult::ok("call_1", "shell"));
                    run.emit(&ended)
                        .await
                        .map_err(|_| AppError::failed("stopped"))?;
                }
            }
            "flood" => loop {
                run.text(&"x".repeat(8 * 1024)).await.map_err(stopped)?;
                self.shared.floods.fetch_add(1, Ordering::SeqCst);
            },
            "many" => {
                for n in 0..10_000 {
                    run.text(&n.to_string()).await.map_err(stopped)?;
                }
            }
            "some" => {
                for n in 0..100 {
                    run.text(&n.to_string()).await.map_err(stopped)?;
                }
            }
            "panic" => panic!("asked to"),
            "fail" => {
                return Err(AppError {
                    code: Some("E_NO".into()),
                    ..AppError::failed("no")
                });
            }
            "ill" => {
                let mut reply = Reply::new("", "m");
                reply.error = Some("the model failed".into());
                return Ok(reply);
            }
            "large step" => {
                run.text(&"x".repeat(16 * 1024 * 1024))
                    .await
                    .map_err(stopped)?;
            }
            "large reply" => return Ok(Reply::new("x".repeat(16 * 1024 * 1024), "m")),
            "error event" => {
                let event = Event::Error(AppError::failed("no"));
                assert!(run.emit(&event).await.is_err());
            }
            "list" => {
                let list = Event::Checklist(Checklist::new("g", "title"));
                run.emit(&list)
                    .await
                    .map_err(|_| AppError::failed("stopped"))?;
            }
            "keep" => {
                // A clone that is used after the end.
                let (run, reported) = (run.clone(), self.reported.clone());
                tokio::spawn(async move {
                    while run.text("x").await.is_ok() {
                        tokio::task::yield_now().await;
                    }
                    let _ = reported.send("refused".to_owned());
                });
            }
            other => run.text(other).await.map_err(stopped)?,
        }
        Ok(Reply {
            output_streamed: Some(true),
            ..Reply::new(message, request.model)
        })
    }

    async fn status(&self) -> Status {
        Status {
            providers: vec!["openai".into()],
            ..Status::new("puppet", "")
        }
    }
}

pub struct Running {
    pub address: SocketAddr,
    pub handle: ServerHandle,
    pub shared: Arc<Shared>,
    pub recv: mpsc::UnboundedReceiver<String>,
}

pub fn puppet() -> (Puppet, Arc<Shared>, mpsc::UnboundedReceiver<String>) {
    let (reported, recv) = mpsc::unbounded_channel();
    let shared = Arc::<Shared>::default();
    let puppet = Puppet {
        shared: Arc::clone(&shared),
        reported,
    };
    (puppet, shared, recv)
}

pub async fn serve(options: ServerOptions) -> Running {
    let (puppet, shared, recv) = puppet();
    let server = Server::bind("127.0.0.1:0", puppet, options).await.unwrap();
    let (address, handle) = (server.local_addr(), server.handle());
    tokio::spawn(server.run());
    Running {
        address,
        handle,
        shared,
        recv,
    }
}

impl Running {
    pub async fn client(&self) -> Peer {
        self.dial(&[]).await.unwrap()
    }

    /// Connects with these subprotocols.
    pub async fn dial(&self, subprotocols: &[&str]) -> Result<Peer, DialError> {
        let url = format!("ws://{}/v1/rpc", self.address);
        let mut config = WsConfig::default();
        for name in subprotocols {
            config = config.with_subprotocol(*name).unwrap();
        }
        let ws = WsDialer::new(&url)?.with_config(config).dial().await?;
        Ok(Peer::new(ws))
    }

    /// What has ended next.
    pub async fn ended(&mut self) -> String {
        let ended = timeout(LONG, self.recv.recv()).await;
        ended.expect("something ends in time").unwrap()
    }

    /// Sends a request as it is and reads the answer to its end.
    pub async fn ask(&self, request: &str) -> String {
        let mut tcp = TcpStream::connect(self.address).await.unwrap();
        tcp.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = timeout(LONG, tcp.read_to_string(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        answer
    }
}

/// A client that says what a test says, and sees to it that the server keeps the order.
pub struct Peer {
    pub ws: WsStream,
    order: OrderChecker,
}

pub fn start(id: &str, message: &str) -> Value {
    let request = json!({"message": message, "history": [], "model": "m"});
    json!({"id": id, "type": "chat.start", "payload": {"request": request}})
}

impl Peer {
    pub fn new(ws: WsStream) -> Self {
        let order = OrderChecker::default();
        Self { ws, order }
    }

    pub async fn send(&mut self, message: &Value) {
        let text = message.to_string();
        if let Ok(frame) = ClientFrame::decode(&text, &limits::defaults()) {
            self.order.sent(&frame);
        }
        let text = Outgoing::Text(Text::from(text));
        self.ws.send(text).await.unwrap();
    }

    pub async fn start(&mut self, id: &str, message: &str) {
        self.send(&start(id, message)).await;
    }

    pub async fn abort(&mut self, id: &str, request_id: &str) {
        let payload = json!({"requestId": request_id});
        let abort = json!({"id": id, "type": "chat.abort", "payload": payload});
        self.send(&abort).await;
    }

    /// The next message, or the Close.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let message = timeout(LONG, self.ws.next()).await.expect("in time");
            match message?.ok()? {
                Message::Text(text) => {
                    let frame = ServerFrame::decode(text.as_str(), &limits::defaults());
                    self.order.received(&frame.unwrap()).unwrap();
                    return Some(serde_json::from_str(text.as_str()).unwrap());
                }
                Message::Close(frame) => {
                    return Some(json!(frame.map_or(1005, |frame| frame.code)));
                }
                _ => {}
            }
        }
    }

    /// The next message in short: its id and its type, and what it ends with.
    pub async fn short(&mut self) -> String {
        let Some(message) = self.next().await else {
            return "end".to_owned();
        };
        if let Some(code) = message.as_u64() {
            return format!("close {code}");
        }
        let id = message["id"].as_str().unwrap().trim_start_matches("rpc_");
        let kind = message["type"].as_str().unwrap();
        let more = match kind {
            "chat.event" => match message["event"]["type"].as_str().unwrap() {
                "text-delta" => format!(" {}", message["event"]["text"].as_str().unwrap()),
                kind => format!(" {kind}"),
            },
            "chat.queued" => format!(" {}", message["position"]),
            "chat.error" => format!(" {}", message["errorCode"].as_str().unwrap()),
            "chat.abort.result" => format!(" {}", message["aborted"]),
            _ => String::new(),
        };
        format!("{id} {kind}{more}")
    }

    pub async fn shorts(&mut self, count: usize) -> Vec<String> {
        let mut shorts = Vec::new();
        for _ in 0..count {
            shorts.push(self.short().await);
        }
        shorts
    }

    /// Reads until this message, in short.
    pub async fn until(&mut self, wanted: &str) {
        loop {
            let short = self.short().await;
            assert_ne!(short, "end", "{wanted} did not come");
            if short == wanted {
                return;
            }
        }
    }

    pub async fn is_silent(&mut self) -> bool {
        timeout(Duration::from_millis(50), self.ws.next())
            .await
            .is_err()
    }

    pub async fn task_state(&mut self, task_id: &str) -> Value {
        let payload = json!({"taskId": task_id});
        let ask = json!({"id": "rpc_task", "type": "task.status", "payload": payload});
        self.send(&ask).await;
        let answer = self.next().await.unwrap();
        assert_eq!(answer["type"], "task.status.result");
        answer["task"]["state"].clone()
    }
}
