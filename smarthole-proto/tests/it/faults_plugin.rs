//! The plugin under faults, over real sockets: handlers that panic or never return, lines that break, and
//! shutdowns in the middle of everything.

use std::sync::Arc;
use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::reconnect::ReconnectPolicy;
use serde_json::{Value, json};
use smarthole_proto::net::DROPPED;
use smarthole_proto::plugin::{Ended, Plugin, PluginConfig, handler_fn};
use switchboard_testing::faults::{End, RawFrame, RawListener, RawPeer};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::played::{acked, message, registration, rejected};

/// A deadline that must not pass.
const PATIENCE: Duration = Duration::from_secs(60);
/// One that has to.
const SHORT: Duration = Duration::from_millis(150);

struct Running {
    listener: RawListener,
    stop: Arc<Notify>,
    task: JoinHandle<Ended>,
}

/// A plugin that does what the text of a message says.
async fn start() -> Running {
    let listener = RawListener::bind().await.unwrap();
    let backoff = BackoffPolicy {
        max_attempts: Some(10),
        ..BackoffPolicy::new(Duration::from_millis(10), 1.0)
    };
    let mut config = PluginConfig::new(registration()).unwrap();
    config.client.link.reconnect = ReconnectPolicy::new(backoff);
    config.shutdown_timeout = SHORT;
    let handler = handler_fn(|_, message| async move {
        match &*message.text {
            "panic" => panic!("as told"),
            "hang" => std::future::pending().await,
            _ => Ok(()),
        }
    });
    let url = format!("ws://{}", listener.address());
    let plugin = Plugin::new(&url, config, handler).unwrap();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(plugin.run_until(async move { stopped.notified().await }));
    Running {
        listener,
        stop,
        task,
    }
}

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("nothing hangs")
}

/// The code of the Close, which is answered.
async fn closed(mut line: RawPeer) -> Option<u16> {
    while let Ok(Some(frame)) = soon(line.receive()).await {
        if let Some(code) = frame.close_code() {
            let _ = line.frame(RawFrame::close(code)).await;
            return Some(code);
        }
    }
    None
}

async fn recv(line: &mut RawPeer) -> Value {
    serde_json::from_str(&soon(line.next_text()).await.unwrap()).unwrap()
}

async fn route(line: &mut RawPeer, id: &str, text: &str) {
    line.text(&message(id, text).to_string()).await.unwrap();
}

impl Running {
    async fn accept(&self) -> RawPeer {
        soon(self.listener.accept_upgraded()).await.unwrap().0
    }

    async fn registered(&self) -> RawPeer {
        let mut line = self.accept().await;
        assert_eq!(recv(&mut line).await["type"], "registration");
        let payload = json!({"success": true, "clientId": "c-1", "message": "welcome"});
        let answer = json!({"type": "registration_response", "payload": payload});
        line.text(&answer.to_string()).await.unwrap();
        line
    }

    async fn ended(self) -> (usize, usize) {
        match soon(self.task).await.unwrap() {
            Ended::Stopped(report) => (report.finished, report.aborted),
            other => panic!("{other:?}"),
        }
    }
}

async fn works(line: &mut RawPeer) {
    route(line, "w", "hello").await;
    assert_eq!(recv(line).await, acked("w"));
}

#[tokio::test]
async fn a_plugin_survives_panicking_handlers() {
    let plugin = start().await;
    let mut line = plugin.registered().await;
    for id in ["1", "2", "3"] {
        route(&mut line, id, "panic").await;
        assert_eq!(recv(&mut line).await, rejected(id, "internal error"));
    }
    works(&mut line).await;
}

#[tokio::test]
async fn hanging_handlers_do_not_block_the_plugin() {
    let plugin = start().await;
    let mut line = plugin.registered().await;
    route(&mut line, "1", "hang").await;
    works(&mut line).await;
    plugin.stop.notify_one();
    // No one waits in vain for an answer.
    assert_eq!(recv(&mut line).await, rejected("1", DROPPED));
    assert_eq!(closed(line).await, Some(1000));
    assert_eq!(plugin.ended().await, (0, 1));
}

#[tokio::test]
async fn a_plugin_registers_again_after_any_disconnect() {
    let plugin = start().await;
    let mut line = plugin.registered().await;
    works(&mut line).await;
    drop(line);
    let mut line = plugin.registered().await;
    works(&mut line).await;
    line.reset();
    let mut line = plugin.registered().await;
    works(&mut line).await;
    line.frame(RawFrame::close(1001)).await.unwrap();
    assert_eq!(soon(line.end()).await, End::Close(1001));
    let mut line = plugin.registered().await;
    line.frame(RawFrame::text("{}").masked(true)).await.unwrap();
    assert_eq!(soon(line.end()).await, End::Close(1002));
    // In the middle of the registration, too.
    let mut line = plugin.accept().await;
    recv(&mut line).await;
    line.reset();
    let mut line = plugin.registered().await;
    works(&mut line).await;
}

#[tokio::test]
async fn a_plugin_can_be_stopped_in_any_state() {
    // While it dials.
    let plugin = start().await;
    let line = soon(plugin.listener.accept()).await.unwrap();
    plugin.stop.notify_one();
    assert_eq!(plugin.ended().await, (0, 0));
    drop(line);
    // In the registration.
    let plugin = start().await;
    let mut line = plugin.accept().await;
    recv(&mut line).await;
    plugin.stop.notify_one();
    assert_eq!(closed(line).await, Some(1000));
    assert_eq!(plugin.ended().await, (0, 0));
    // Without a line.
    let plugin = start().await;
    drop(plugin.registered().await);
    plugin.stop.notify_one();
    assert_eq!(plugin.ended().await, (0, 0));
}
