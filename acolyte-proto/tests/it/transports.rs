//! One agent behind both transports of a real server: the same chats, told the same.

use std::time::Duration;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::client::{ChatUpdate, ClientConfig, Failure, Outcome};
use acolyte_proto::error::{AppError, ErrorKind};
use acolyte_proto::event::{
    Checklist, ChecklistItem, Event, Notice, Part, RunKind, RunState, ToolCall, ToolOutput,
    ToolResult, Usage,
};
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{
    self, Agent, Chat, ChatReply, Client, EmitError, Server, ServerOptions, SseClient,
};
use rpc_core::Json;
use rpc_core::net::ws::{WsConfig, WsStream};
use rpc_core::{CallError, CloseReason, Delivery};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// More than any queue on the way holds.
const MANY: usize = 80_000;
const SOON: Duration = Duration::from_secs(60);
/// Almost the largest message.
const LARGE: usize = 15 * 1024 * 1024;

/// Does what the message says.
struct Scripted {
    /// Hears of chats that were cancelled.
    cancelled: mpsc::UnboundedSender<()>,
}

fn steps() -> Vec<Event> {
    let args = Json::new(r#"{"path":"a.txt"}"#).unwrap();
    let item = ChecklistItem::new("1", "read", 0);
    vec![
        Event::Usage(Usage::new(3_000, 0)),
        Event::Reasoning("Hm.\r\n".into()),
        Event::text("Reading \u{1f4c4}\u{2028}\n\n"),
        Event::ToolCall(ToolCall::new("c1", "file-read", args)),
        Event::ToolOutput(ToolOutput::new(
            "c1",
            "file-read",
            Part::text("data: no frame\n\n"),
        )),
        Event::ToolResult(ToolResult::ok("c1", "file-read")),
        Event::Checklist(Checklist {
            items: vec![item],
            ..Checklist::new("g", "Plan")
        }),
        Event::Notice(Notice::warn("careful")),
        Event::text("x".repeat(1_000)),
        Event::Usage(Usage::new(11, 7)),
    ]
}

impl Agent for Scripted {
    async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        let mut reply = Reply {
            output_streamed: Some(true),
            ..Reply::new("fine", request.model.clone())
        };
        match &*request.message {
            "steps" => {
                for event in steps() {
                    run.emit(&event).await.unwrap();
                }
                Ok(reply)
            }
            "strays" => {
                let output = ToolOutput::new("c1", "t", Part::NoOutput);
                let strays = [
                    Event::ToolOutput(output),
                    Event::ToolResult(ToolResult::ok("c1", "t")),
                ];
                for event in &strays {
                    let refused = run.emit(event).await;
                    assert!(
                        matches!(refused, Err(EmitError::Invalid { .. })),
                        "{refused:?}"
                    );
                }
                let call = ToolCall::new("c1", "t", Json::EMPTY_OBJECT);
                run.emit(&Event::ToolCall(call)).await.unwrap();
                for event in &strays {
                    run.emit(event).await.unwrap();
                }
                Ok(reply)
            }
            "many" => {
                for number in 0..MANY {
                    let _ = run.text(&number.to_string()).await;
                }
                Ok(reply)
            }
            "model" => {
                reply.error = Some("the model failed".into());
                Ok(reply)
            }
            "large" => Ok(Reply::new("x".repeat(LARGE), "m")),
            "fail" => Err(AppError {
                code: Some("E_X".into()),
                ..AppError::failed("no")
            }),
            "wait" => {
                let _ = run.text("waiting").await;
                let dropped = OnDrop(self.cancelled.clone());
                run.cancelled().await;
                drop(dropped);
                Err(AppError::failed("stopped"))
            }
            _ => Ok(reply),
        }
    }

    async fn status(&self) -> Status {
        Status {
            providers: vec!["openai".into()],
            ..Status::new("m", "")
        }
    }
}

struct OnDrop(mpsc::UnboundedSender<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

struct Served {
    url: String,
    cancelled: mpsc::UnboundedReceiver<()>,
    client: Client,
    sse: SseClient,
}

async fn served() -> Served {
    let key = ApiKey::new("s3cret").unwrap();
    let (sender, cancelled) = mpsc::unbounded_channel();
    let options = ServerOptions::new(Auth::key(key.clone()));
    let agent = Scripted { cancelled: sender };
    let server = Server::bind("127.0.0.1:0", agent, options).await.unwrap();
    let url = server.url();
    tokio::spawn(server.run());
    let config = ClientConfig::new(key);
    let sse = SseClient::new(&url, config.clone()).unwrap();
    let (client, _, connection) = net::connect_lazy(&url, config).unwrap();
    tokio::spawn(connection.run());
    timeout(SOON, client.ready()).await.unwrap().unwrap();
    Served {
        url,
        cancelled,
        client,
        sse,
    }
}

impl Served {
    /// The same chat over both transports.
    async fn both(&self, message: &'static str) -> [Chat; 2] {
        let request = || ChatRequest::new(message, "m");
        [
            self.client.chat(request()).await,
            self.sse.chat(request()).await,
        ]
    }
}

async fn updates(mut chat: Chat) -> Vec<ChatUpdate> {
    let mut updates = Vec::new();
    while let Some(update) = timeout(SOON, chat.next()).await.unwrap() {
        updates.push(update);
    }
    updates
}

#[tokio::test]
async fn both_transports_show_the_same() {
    let served = served().await;
    for message in ["steps", "model", "quiet"] {
        let [ws, sse] = served.both(message).await;
        let mut ws = updates(ws).await;
        // A chat over HTTP is not a task, so it is not accepted as one.
        let accepted = ws.remove(0);
        assert!(
            matches!(accepted, ChatUpdate::Accepted { .. }),
            "{accepted:?}"
        );
        assert_eq!(ws, updates(sse).await, "{message}");
        let outcome = ws.pop();
        let expected = |outcome: &Outcome| match message {
            "model" => matches!(outcome, Outcome::Failed(Failure::Model(_))),
            _ => outcome.is_done(),
        };
        assert!(
            matches!(&outcome, Some(ChatUpdate::Ended(outcome)) if expected(outcome)),
            "{outcome:?}"
        );
        assert_eq!(ws.remove(0), ChatUpdate::Started);
        if message == "steps" {
            // The server begins every chat with its state.
            let events =
                std::iter::once(Event::Status(RunState::new(RunKind::Running))).chain(steps());
            let events: Vec<_> = events.map(ChatUpdate::Event).collect();
            assert_eq!(ws, events);
        }
    }
}

#[tokio::test]
async fn an_agent_cannot_report_a_tool_without_its_call() {
    let served = served().await;
    for chat in served.both("strays").await {
        let tags = updates(chat)
            .await
            .into_iter()
            .filter_map(|update| match update {
                ChatUpdate::Event(event) => Some(event.tag().to_owned()),
                ChatUpdate::Warning(warning) => Some(warning.to_string()),
                _ => None,
            });
        let tags: Vec<_> = tags.collect();
        assert_eq!(tags, ["status", "tool-call", "tool-output", "tool-result"]);
    }
}

#[tokio::test]
async fn a_long_chat_that_is_read_late_loses_nothing() {
    let served = served().await;
    for mut chat in served.both("many").await {
        let mut next = 0;
        while let Some(update) = chat.next().await {
            if let ChatUpdate::Event(Event::TextDelta(text)) = update {
                assert_eq!(*text, *next.to_string());
                next += 1;
            }
        }
        assert_eq!(next, MANY);
        assert!(chat.outcome().unwrap().is_done());
    }
}

#[tokio::test]
async fn a_reply_of_15_mib_comes_over_both() {
    let served = served().await;
    for mut chat in served.both("large").await {
        let outcome = timeout(Duration::from_secs(20), chat.finish()).await;
        let outcome = outcome.unwrap();
        let output = outcome.reply().map(|reply| reply.output.len());
        assert_eq!(output, Some(LARGE), "{:?}", outcome.delivery());
    }
}

#[tokio::test]
async fn an_abort_stops_the_work_over_both() {
    let mut served = served().await;
    for mut chat in served.both("wait").await {
        loop {
            let update = timeout(SOON, chat.next()).await.unwrap().unwrap();
            if matches!(update, ChatUpdate::Event(_)) {
                break;
            }
        }
        assert_eq!(timeout(SOON, chat.abort()).await.unwrap(), Ok(true));
        let outcome = timeout(SOON, chat.finish()).await.unwrap();
        assert!(matches!(outcome, Outcome::Aborted { .. }), "{outcome:?}");
        timeout(SOON, served.cancelled.recv())
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn a_dropped_chat_stops_the_work_over_both() {
    let mut served = served().await;
    for mut chat in served.both("wait").await {
        loop {
            let update = timeout(SOON, chat.next()).await.unwrap().unwrap();
            if matches!(update, ChatUpdate::Event(_)) {
                break;
            }
        }
        drop(chat);
        timeout(SOON, served.cancelled.recv())
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn the_status_is_the_same_over_both() {
    let served = served().await;
    let ws = served.client.status().await.unwrap();
    let sse = served.sse.status().await.unwrap();
    assert_eq!(ws, sse);
    assert!(ws.agree(&["stream.sse"]).is_ok());
}

#[tokio::test]
async fn a_server_that_selects_no_subprotocol_for_a_key_is_used() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let accepted = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        // It knows no subprotocols.
        WsStream::accept(socket, &WsConfig::default()).await
    });
    let config = ClientConfig::new(ApiKey::new("s3cret").unwrap());
    let (client, _, connection) = net::connect_lazy(&url, config).unwrap();
    tokio::spawn(connection.run());
    timeout(SOON, client.ready()).await.unwrap().unwrap();
    accepted.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_wrong_key_is_refused() {
    let served = served().await;
    let config = ClientConfig::new(ApiKey::new("wrong").unwrap());
    let (client, _, connection) = net::connect_lazy(&served.url, config.clone()).unwrap();
    tokio::spawn(connection.run());
    let reason = timeout(SOON, client.ready()).await.unwrap().unwrap_err();
    assert!(
        matches!(reason, CloseReason::Authentication { .. }),
        "{reason:?}"
    );
    let sse = SseClient::new(&served.url, config).unwrap();
    let outcome = sse.chat(ChatRequest::new("hi", "m")).await.finish().await;
    assert!(!outcome.may_have_run());
    let Outcome::Refused { error } = outcome else {
        panic!("{outcome}");
    };
    let known = (error.kind(), error.message());
    assert_eq!(known, (ErrorKind::Status(401), "Unauthorized"));
    assert_eq!(sse.status().await, Err(CallError::Remote(error)));
}

#[tokio::test]
async fn an_unreachable_server_was_sent_nothing() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let sse = SseClient::new(&url, ClientConfig::default()).unwrap();
    let outcome = sse.chat(ChatRequest::new("hi", "m")).await.finish().await;
    assert!(
        matches!(
            &outcome,
            Outcome::Closed {
                delivery: Delivery::NotSent,
                ..
            }
        ),
        "{outcome:?}"
    );
    let status = sse.status().await.unwrap_err();
    assert_eq!(status.delivery(), Delivery::NotSent);
}

/// A server of one connection that answers a request with these bytes and hangs up.
async fn answers(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/base/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 64 * 1024];
        let read = tcp.read(&mut request).await.unwrap();
        let request = String::from_utf8_lossy(&request[..read]).into_owned();
        assert!(
            request.starts_with("POST /base/v1/chat/stream HTTP/1.1\r\n"),
            "{request}"
        );
        tcp.write_all(answer).await.unwrap();
    });
    url
}

#[tokio::test]
async fn a_response_that_is_not_a_stream_is_an_error() {
    let page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello";
    let sse = SseClient::new(&answers(page).await, ClientConfig::default()).unwrap();
    let outcome = sse.chat(ChatRequest::new("hi", "m")).await.finish().await;
    let Outcome::Refused { error } = outcome else {
        panic!("{outcome}");
    };
    let known = (error.kind(), error.message());
    assert_eq!(known, (ErrorKind::Status(200), "hello"));
}
