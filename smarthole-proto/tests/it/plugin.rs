//! Plugins over a line in memory: handlers, shutdown, and how they end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use rpc_core::CloseReason;
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::LinkEvent;
use rpc_core::net::mem::{self, MemListener};
use rpc_core::net::ws::{WsConfig, WsStream};
use serde_json::json;
use smarthole_proto::client::ClientConfig;
use smarthole_proto::error::ErrorCode;
use smarthole_proto::frame::{Notification, Registration};
use smarthole_proto::id::ClientId;
use smarthole_proto::net::{Client, DROPPED, Event, InboundMessage};
use smarthole_proto::plugin::{
    AppError, Context, Ended, Handler, Plugin, PluginConfig, handler_fn,
};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::played::{Router, acked, registration, rejected, response};

const SECOND: Duration = Duration::from_secs(1);

fn config() -> PluginConfig {
    let config = PluginConfig::new(registration()).unwrap();
    let client = ClientConfig {
        keep_alive: KeepAlive::off(),
        ..config.client.clone()
    };
    PluginConfig { client, ..config }
}

/// A plugin that runs until it is told to stop.
struct Harness {
    listener: MemListener,
    client: Client,
    stop: Arc<Notify>,
    task: JoinHandle<Ended>,
}

fn start(config: PluginConfig, handler: impl Handler) -> Harness {
    let (dialer, listener) = mem::listen(64);
    let plugin = Plugin::with_dialer(dialer, config, handler);
    let client = plugin.client();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(plugin.run_until(async move { stopped.notified().await }));
    Harness {
        listener,
        client,
        stop,
        task,
    }
}

async fn registered(config: PluginConfig, handler: impl Handler) -> (Harness, Router) {
    let mut harness = start(config, handler);
    let router = Router::registered(&mut harness.listener).await;
    harness.client.ready().await.unwrap();
    (harness, router)
}

/// Does what the text of the message says, and notes what happens.
#[derive(Clone, Default)]
struct Obedient {
    seen: Arc<Mutex<Vec<String>>>,
    go: Arc<Notify>,
}

impl Obedient {
    fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Handler for Obedient {
    async fn on_message(&self, cx: &Context, message: &InboundMessage) -> Result<(), AppError> {
        match &*message.text {
            "ack" => message.ack().await?,
            "notify" => message.notify(Notification::new("done")).await?,
            "decline" => return Err(AppError::rejected("I keep notes only")),
            "fail" => return Err(AppError::failed("disk full")),
            "ack and fail" => {
                message.ack().await?;
                return Err(AppError::failed("too late"));
            }
            "panic" => panic!("as told"),
            "wait" => self.go.notified().await,
            "wait for the end" => cx.cancellation().cancelled().await,
            "wait for ever" => std::future::pending().await,
            other => self.note(other),
        }
        Ok(())
    }

    async fn on_ready(&self, cx: &Context, client_id: Option<&ClientId>) {
        let id = client_id.unwrap();
        self.note(format!("{} is {id}", cx.registration().name));
    }

    async fn on_error(&self, _: &Context, error: AppError) {
        self.note(format!("error: {error}"));
    }

    fn on_lost(&self, cause: &CloseReason, retry_in: Duration, attempt: u32) {
        self.note(format!("{cause}, again in {retry_in:?}, attempt {attempt}"));
    }

    fn on_event(&self, event: &LinkEvent<Event>) {
        self.note(format!("{event:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn every_message_gets_a_response_whatever_the_handler_does() {
    let handler = Obedient::default();
    let (_stage, mut router) = registered(config(), handler.clone()).await;
    for (text, frame) in [
        ("nothing", acked("1")),
        ("ack", acked("1")),
        (
            "notify",
            response("1", "notification", &json!({"body": "done"})),
        ),
        ("decline", rejected("1", "I keep notes only")),
        ("fail", rejected("1", "disk full")),
        ("ack and fail", acked("1")),
        ("panic", rejected("1", "internal error")),
        ("still here", acked("1")),
    ] {
        router.route("1", text).await;
        assert_eq!(router.recv().await, frame, "{text}");
    }
    assert!(router.try_recv().now_or_never().is_none());
    let expected = [
        "notes is c-1",
        "nothing",
        "error: disk full",
        "error: too late",
        "error: internal error",
        "still here",
    ];
    assert_eq!(handler.seen(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_closure_can_move_the_message() {
    let (sender, mut kept) = mpsc::unbounded_channel();
    let handler = handler_fn(move |cx, message| {
        let sender = sender.clone();
        async move {
            if message.text == "keep" {
                sender.send((cx, message)).unwrap();
                return Ok(());
            }
            Err(AppError::rejected("not mine"))
        }
    });
    let (_stage, mut router) = registered(config(), handler).await;
    router.route("1", "keep").await;
    assert_eq!(router.recv().await, acked("1"));
    let (cx, message) = kept.recv().await.unwrap();
    assert_eq!(cx.registration().name, "notes");
    message.notify(Notification::new("late")).await.unwrap();
    drop(message);
    let late = response("1", "notification", &json!({"body": "late"}));
    assert_eq!(router.recv().await, late);
    router.route("2", "other").await;
    assert_eq!(router.recv().await, rejected("2", "not mine"));
}

/// Counts how many handlers run at once.
struct Counting {
    gate: Semaphore,
    now: AtomicUsize,
    most: AtomicUsize,
}

#[tokio::test(start_paused = true)]
async fn concurrent_handlers_are_bounded() {
    let counting = Arc::new(Counting {
        gate: Semaphore::new(0),
        now: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    });
    let shared = Arc::clone(&counting);
    let handler = handler_fn(move |_, _| {
        let counting = Arc::clone(&shared);
        async move {
            let now = counting.now.fetch_add(1, Ordering::SeqCst) + 1;
            counting.most.fetch_max(now, Ordering::SeqCst);
            counting.gate.acquire().await.unwrap().forget();
            counting.now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    });
    let (_stage, mut router) = registered(
        PluginConfig {
            max_handlers: 2,
            ..config()
        },
        handler,
    )
    .await;
    for id in ["1", "2", "3", "4", "5"] {
        router.route(id, "text").await;
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!(counting.now.load(Ordering::SeqCst), 2);
    counting.gate.add_permits(5);
    let mut answered = Vec::new();
    for _ in 0..5 {
        let frame = router.recv().await;
        assert_eq!(frame["payload"]["type"], "ack");
        answered.push(frame["payload"]["messageId"].as_str().unwrap().to_owned());
    }
    answered.sort();
    assert_eq!(answered, ["1", "2", "3", "4", "5"]);
    assert_eq!(counting.most.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_expired_message_is_not_handled() {
    let handler = Obedient::default();
    let (_stage, mut router) = registered(
        PluginConfig {
            max_handlers: 1,
            ..config()
        },
        handler.clone(),
    )
    .await;
    router.route("1", "wait").await;
    tokio::time::sleep(SECOND).await;
    router.route("2", "too late").await;
    tokio::time::sleep(30 * SECOND).await;
    router.route("3", "in time").await;
    handler.go.notify_one();
    // The first one's time has run out too, and the router no longer wants to know.
    assert_eq!(router.recv().await, acked("3"));
    let expected = [
        "notes is c-1",
        r#"Event(Overdue { id: "1" })"#,
        r#"Event(Overdue { id: "2" })"#,
        "in time",
    ];
    let seen = handler.seen();
    for what in expected {
        assert!(seen.iter().any(|seen| seen == what), "{what}: {seen:?}");
    }
    assert!(!seen.contains(&"too late".to_owned()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn an_ack_waits_for_the_reconnect() {
    let handler = Obedient::default();
    let (mut harness, mut router) = registered(config(), handler.clone()).await;
    router.route("1", "wait").await;
    tokio::time::sleep(SECOND).await;
    router.cut();
    tokio::time::sleep(SECOND / 2).await;
    handler.go.notify_one();
    let mut router = Router::registered(&mut harness.listener).await;
    assert_eq!(router.recv().await, acked("1"));
    tokio::time::sleep(SECOND).await;
    let expected = [
        "notes is c-1",
        "the connection was lost, again in 1s, attempt 1",
        "notes is c-1",
    ];
    assert_eq!(handler.seen(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_finishes_handlers_and_rejects_new_messages() {
    let (harness, mut router) = registered(config(), Obedient::default()).await;
    router.route("1", "wait for the end").await;
    tokio::time::sleep(SECOND).await;
    harness.stop.notify_one();
    assert_eq!(router.recv().await, acked("1"));
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
    let ended = harness.task.await.unwrap();
    let Ended::Stopped(report) = &ended else {
        panic!("{ended:?}")
    };
    assert_eq!((report.finished, report.aborted), (1, 0));
    assert_eq!((ended.exit_code(), &*ended.to_string()), (0, "stopped"));

    let handler = Obedient::default();
    let (harness, mut router) = registered(config(), handler.clone()).await;
    router.route("1", "wait").await;
    tokio::time::sleep(SECOND).await;
    harness.stop.notify_one();
    tokio::time::sleep(SECOND).await;
    router.route("2", "too late").await;
    let reason = "The client is shutting down";
    assert_eq!(router.recv().await, rejected("2", reason));
    handler.go.notify_one();
    assert_eq!(router.recv().await, acked("1"));
    assert!(matches!(harness.task.await, Ok(Ended::Stopped(_))));
}

#[tokio::test(start_paused = true)]
async fn unfinished_handlers_are_aborted_and_their_messages_rejected() {
    let (harness, mut router) = registered(config(), Obedient::default()).await;
    router.route("1", "wait for ever").await;
    tokio::time::sleep(SECOND).await;
    harness.stop.notify_one();
    tokio::time::sleep(4 * SECOND).await;
    assert!(!harness.task.is_finished());
    assert_eq!(router.recv().await, rejected("1", DROPPED));
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
    let ended = harness.task.await.unwrap();
    let Ended::Stopped(report) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!((report.finished, report.aborted), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn closing_the_client_ends_the_plugin() {
    let (harness, mut router) = registered(config(), Obedient::default()).await;
    harness.client.close();
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
    assert!(matches!(harness.task.await, Ok(Ended::Stopped(_))));
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_router_ends_the_plugin_despite_hanging_handlers() {
    let config = PluginConfig {
        max_handlers: 1,
        ..config()
    };
    let (harness, mut router) = registered(config, Obedient::default()).await;
    router.route("1", "wait for ever").await;
    tokio::time::sleep(SECOND).await;
    router.cut();
    drop(harness.listener);
    let ended = harness.task.await.unwrap();
    assert!(matches!(ended, Ended::GaveUp(CloseReason::Connect { .. })));
    assert_eq!(ended.exit_code(), 1);
    assert!(ended.to_string().starts_with("gave up: could not connect"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_registration_ends_the_plugin() {
    for (code, attempts) in [("INVALID_DESCRIPTION", 1), ("DUPLICATE_NAME", 11)] {
        let handler = Obedient::default();
        let mut harness = start(config(), handler.clone());
        for _ in 0..attempts {
            let mut router = Router::accept(&mut harness.listener).await;
            router.refuse(code).await;
            assert_eq!(router.recv().await, json!([4000, "Registration failed"]));
        }
        let ended = harness.task.await.unwrap();
        let Ended::Refused(error) = &ended else {
            panic!("{ended:?}")
        };
        assert_eq!((error.code.name(), ended.exit_code()), (code, 1));
        let refusals = handler.seen();
        let refusals = refusals.iter().filter(|seen| seen.contains("Refused"));
        assert_eq!(refusals.count(), attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn a_freed_name_is_taken() {
    let handler = Obedient::default();
    let mut harness = start(config(), handler.clone());
    let mut router = Router::accept(&mut harness.listener).await;
    router.refuse("DUPLICATE_NAME").await;
    let mut router = Router::registered(&mut harness.listener).await;
    router.route("1", "hello").await;
    assert_eq!(router.recv().await, acked("1"));
    // A later loss is not the refusal's fault.
    drop(router);
    drop(harness.listener);
    assert!(matches!(harness.task.await, Ok(Ended::GaveUp(_))));
}

#[tokio::test]
async fn a_plugin_over_a_real_websocket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let plugin = Plugin::new(&url, config(), Obedient::default()).unwrap();
    let client = plugin.client();
    let task = tokio::spawn(plugin.run());
    let (tcp, _) = listener.accept().await.unwrap();
    let stream = WsStream::accept(tcp, &WsConfig::default()).await.unwrap();
    let mut router = Router(stream);
    router.register().await;
    router.route("1", "notify").await;
    let shown = response("1", "notification", &json!({"body": "done"}));
    assert_eq!(router.recv().await, shown);
    client.close();
    assert_eq!(router.recv().await, json!([1000, "Client disconnect"]));
    assert!(matches!(task.await, Ok(Ended::Stopped(_))));
}

#[test]
fn an_invalid_plugin_is_refused_before_it_runs() {
    let refused = PluginConfig::new(Registration::new("1", "I keep notes."));
    assert_eq!(refused.unwrap_err().code, ErrorCode::InvalidName);
    let plugin = |url| Plugin::new(url, config(), Obedient::default());
    assert!(plugin("nonsense").is_err());
    assert!(plugin("ws://127.0.0.1:9473").is_ok());
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_reported_with_delay_and_number() {
    let handler = Obedient::default();
    let (mut harness, router) = registered(config(), handler.clone()).await;
    router.cut();
    let router = Router::registered(&mut harness.listener).await;
    tokio::time::sleep(SECOND).await;
    router.cut();
    drop(harness.listener);
    harness.task.await.unwrap();
    let seen = handler.seen();
    let reported = seen.iter().filter_map(|line| line.split_once("again in "));
    let reported: Vec<_> = reported.map(|(_, what)| what).collect();
    let expected = [
        "1s, attempt 1",
        // It was registered meanwhile.
        "1s, attempt 1",
        "2s, attempt 2",
        "4s, attempt 3",
        "8s, attempt 4",
        "16s, attempt 5",
        "30s, attempt 6",
        "30s, attempt 7",
        "30s, attempt 8",
        "30s, attempt 9",
        "30s, attempt 10",
    ];
    assert_eq!(reported, expected, "{seen:?}");
}
