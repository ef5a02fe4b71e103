//! What a host writes on its console, as whoever listens to `tracing` reads it.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex};

use connectonion_proto::auth::{Draft, Signer};
use connectonion_proto::limits::CONSOLE_TARGET;
use connectonion_proto::limits::MAX_USED_SIGNATURES;
use connectonion_proto::net::{HostRuntime, RuntimeOptions};
use connectonion_proto::server::ServerConfig;
use connectonion_proto::trust::{AccessControl, TrustLevel};
use rpc_core::keepalive::KeepAlive;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::scratch::Scratch;
use crate::staff::{
    Client, SECOND, client_key, connect, host_key, input, now, runtime_with, signed,
};

/// Keeps the lines of the console.
#[derive(Clone, Default)]
struct Console(Arc<Mutex<Vec<String>>>);

impl Console {
    /// Listens on this thread while the guard lives.
    fn listen() -> (Self, DefaultGuard) {
        // While there is one listener only, a thread without one decides for all whether a line that
        // it writes first is wanted.
        static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Console::default()));
        LazyLock::force(&ANOTHER);
        let console = Self::default();
        let guard = tracing::subscriber::set_default(console.clone());
        (console, guard)
    }

    /// The lines since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Visit for &Console {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Console {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == CONSOLE_TARGET
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A client of this machine that has not connected.
fn open(runtime: &HostRuntime) -> Client {
    let config = ServerConfig {
        keep_alive: KeepAlive::off(),
        ping_interval: None,
        ..ServerConfig::default()
    };
    Client::open_from(runtime, Some(IpAddr::from([127, 0, 0, 1])), config)
}

/// How the console calls the usual client.
fn identity() -> String {
    client_key().address().short()
}

#[tokio::test(start_paused = true)]
async fn client_events_are_logged_on_the_console() {
    let scratch = Scratch::new();
    let mut options = RuntimeOptions::new(&host_key(), TrustLevel::Open);
    options.uploads = scratch.path().into();
    let runtime = runtime_with(options);
    let (console, _guard) = Console::listen();
    let mut client = open(&runtime);
    assert_eq!(console.take(), ["⚡ ws+ 127.0.0.1 (0 active)"]);
    let session = json!({"messages": [{"role": "user", "content": "a"}], "turn": 1});
    let members = json!({"session_id": "s", "session": session});
    client.send(&connect(&client_key(), members)).await;
    client.recv_type("CONNECTED").await;
    let connected = format!("✓ CONNECT identity={} session=s status=", identity());
    let new = format!("{connected}new");
    assert_eq!(console.take(), [&new, "  ↑ client session: 1 messages"]);
    let mut look = input("look");
    look["images"] = json!(["data:image/png;base64,AA==", "data:image/png;base64,AQ=="]);
    look["files"] = json!([{"name": "a.txt", "data": "aGk="}]);
    client.send(&look).await;
    client.output().await;
    let said = format!("✓ INPUT identity={} session=s prompt=", identity());
    let lines = console.take();
    assert!(lines[0].starts_with(&format!("{said}look")), "{lines:?}");
    assert!(
        lines[0].ends_with(" prompt=look"),
        "what the caller wrote: {lines:?}"
    );
    assert_eq!(lines[1..], ["  ↑ 2 images, 1 files"]);
    client.send(&input("listen")).await;
    client.recv_type("user_input").await;
    assert_eq!(console.take(), [format!("{said}listen")]);
    drop(client);
    tokio::time::sleep(SECOND).await;
    assert_eq!(console.take(), ["⚡ ws- (1 active)"]);
    let mut client = open(&runtime);
    let members = json!({"session_id": "s", "session": {"messages": [], "turn": 0}});
    client.send(&connect(&client_key(), members)).await;
    client.recv_type("CONNECTED").await;
    let running = format!("{connected}running");
    assert_eq!(
        console.take(),
        [
            "⚡ ws+ 127.0.0.1 (1 active)",
            &running,
            "  ↑ client session: 0 messages",
            "  ↕ merged sessions (server newer)",
            "  ↻ reattaching to running agent",
        ]
    );
    client.send(&input("psst")).await;
    client.output().await;
    assert_eq!(console.take(), ["↳ RUNTIME_INPUT session=s prompt=psst"]);
    client.send(&input("fail out of luck")).await;
    client.recv_until("ERROR").await;
    assert_eq!(console.take()[1..], ["✗ agent error: out of luck"]);
}

#[tokio::test(start_paused = true)]
async fn every_refused_connect_or_input_is_logged_on_the_console() {
    let access = AccessControl::new(*host_key().address(), TrustLevel::Open);
    let access = access.with_used_signatures(MAX_USED_SIGNATURES);
    let runtime = runtime_with(RuntimeOptions::with_access(access));
    let (console, _guard) = Console::listen();
    let mut client = open(&runtime);
    let good = connect(&client_key(), json!({"session_id": "s"}));
    let mut forged = connect(&client_key(), json!({}));
    forged["payload"]["timestamp"] = json!(now() + 1.0);
    let with = |name: &str, value: Value| {
        let mut frame = input("hello");
        frame[name] = value;
        frame
    };
    let draft = Draft::new(now()).with("prompt", "hello");
    let mut slipped_in = signed("INPUT", &client_key(), &draft, json!({}));
    slipped_in["payload"]["prompt"] = json!("goodbye");
    let stranger = Signer::from_seed(&[3; 32]);
    let bad_base64 = json!([{"name": "a.txt", "data": "#"}]);
    let refused = |what: &str| format!("✗ {what}");
    for (frame, expected) in [
        (
            input("hello"),
            "INPUT rejected: not authenticated (send CONNECT first)",
        ),
        (
            forged,
            "CONNECT auth error: unauthorized: invalid signature",
        ),
        (
            json!({"type": "CONNECT", "session": 7}),
            "CONNECT auth error: ",
        ),
        (good.clone(), ""),
        (
            good,
            "CONNECT auth error: unauthorized: this CONNECT was already used",
        ),
        (
            connect(&client_key(), json!({"session_id": "other"})),
            "CONNECT auth error: already authenticated: open a new connection",
        ),
        (
            connect(&stranger, json!({"session_id": "s"})),
            "CONNECT auth error: already authenticated: open a new connection",
        ),
        (input(""), "INPUT rejected: prompt required"),
        (json!({"type": "INPUT", "prompt": 7}), "INPUT rejected: "),
        (
            with("images", json!([7])),
            "INPUT rejected: Invalid INPUT: ",
        ),
        (with("files", bad_base64), "INPUT rejected: "),
        (
            slipped_in,
            "INPUT rejected: unauthorized: invalid signature",
        ),
    ] {
        console.take();
        client.send(&frame).await;
        let answer = client.recv().await;
        let lines = console.take();
        if expected.is_empty() {
            assert_eq!(answer["type"], "CONNECTED");
            continue;
        }
        assert_eq!(answer["type"], "ERROR", "{frame}");
        assert_eq!(lines.len(), 1, "{frame}: {lines:?}");
        assert!(
            lines[0].starts_with(&refused(expected)),
            "{frame}: {lines:?}"
        );
    }
    runtime.drain(SECOND).await;
    client.send(&input("hello")).await;
    client.recv_type("ERROR").await;
    assert_eq!(
        console.take(),
        ["✗ INPUT rejected: the host is shutting down"]
    );
}
