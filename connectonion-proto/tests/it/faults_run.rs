//! Runs under faults, over real sockets: lines that break in the middle of one, and its end without any.

use std::time::Duration;

use connectonion_proto::client::ClientConfig;
use connectonion_proto::net::{Client, Run, RunEvent, connect_lazy};
use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::LinkConfig;
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Delivery};
use serde_json::Value;
use switchboard_testing::faults::{RawFrame, RawListener, RawPeer};
use tokio::time::timeout;

use crate::scripted::{client_key, connected, output, thinking, user_input};

/// A deadline that must not pass.
const PATIENCE: Duration = Duration::from_secs(60);

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("nothing hangs")
}

async fn recv(line: &mut RawPeer) -> Value {
    serde_json::from_str(&soon(line.next_text()).await.unwrap()).unwrap()
}

async fn send(line: &mut RawPeer, frame: &Value) {
    line.text(&frame.to_string()).await.unwrap();
}

/// The next line, let in like this.
async fn accept(listener: &RawListener, status: &str) -> RawPeer {
    let (mut line, _) = soon(listener.accept_upgraded()).await.unwrap();
    assert_eq!(recv(&mut line).await["type"], "CONNECT");
    send(&mut line, &connected(status)).await;
    line
}

/// A run with two steps.
async fn in_mid_run(attempts: u32) -> (Client, Run, RawListener, RawPeer) {
    let listener = RawListener::bind().await.unwrap();
    let backoff = BackoffPolicy::new(Duration::from_millis(10), 1.0);
    let policy = ReconnectPolicy::new(BackoffPolicy {
        max_attempts: Some(attempts),
        ..backoff
    });
    let link = LinkConfig {
        reconnect: policy,
        ..ClientConfig::default().link
    };
    let options = ClientConfig {
        link,
        ..ClientConfig::default()
    };
    let url = format!("ws://{}", listener.address());
    let (agent, _, connection) = connect_lazy(&url, client_key(), options).unwrap();
    tokio::spawn(connection.run());
    let mut line = accept(&listener, "new").await;
    soon(agent.ready()).await.unwrap();
    let mut run = agent.chat("hello").await;
    assert_eq!(recv(&mut line).await["type"], "INPUT");
    for (frame, name) in [
        (user_input("hello", "u"), "user_input"),
        (thinking("t1"), "thinking"),
    ] {
        send(&mut line, &frame).await;
        step(&mut run, name).await;
    }
    (agent, run, listener, line)
}

async fn step(run: &mut Run, name: &str) {
    match soon(run.next()).await {
        Some(Ok(RunEvent::Step(step))) => assert_eq!(step.event.kind.tag(), name),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_run_survives_every_way_a_connection_can_end() {
    let (agent, mut run, listener, line) = in_mid_run(10).await;
    drop(line);
    // A host that comes back and fails at once, in each of the usual ways.
    drop(soon(listener.accept()).await.unwrap());
    soon(listener.accept_upgraded()).await.unwrap().0.reset();
    let line = accept(&listener, "running").await;
    line.reset();
    let mut line = accept(&listener, "running").await;
    line.frame(RawFrame::close(1011)).await.unwrap();
    soon(line.end()).await;
    let mut line = accept(&listener, "running").await;
    line.frame(RawFrame::text(&b"\xff"[..])).await.unwrap();
    soon(line.end()).await;
    let mut line = accept(&listener, "running").await;
    send(&mut line, &thinking("t2")).await;
    step(&mut run, "thinking").await;
    send(&mut line, &output("hi")).await;
    assert_eq!(soon(run.finish()).await.unwrap().result, "hi");
    assert!(soon(run.next()).await.is_none());
    assert_eq!(agent.session().last_msg_id.as_deref(), Some("t2"));
}

#[tokio::test]
async fn a_run_ends_with_the_reason_when_the_client_gives_up() {
    let (agent, mut run, listener, line) = in_mid_run(2).await;
    drop(line);
    drop(soon(listener.accept()).await.unwrap());
    drop(soon(listener.accept()).await.unwrap());
    let Some(Err(CallError::Closed { reason, delivery })) = soon(run.next()).await else {
        panic!("no end")
    };
    assert!(matches!(reason, CloseReason::Connect { .. }), "{reason:?}");
    assert_eq!(delivery, Delivery::Delivered);
    assert!(soon(run.next()).await.is_none());
    assert_eq!(soon(agent.closed()).await, reason);
}

#[tokio::test]
async fn a_run_ends_with_a_shutdown_of_its_client() {
    for drains in [false, true] {
        let (agent, mut run, _listener, mut line) = in_mid_run(10).await;
        if drains {
            let deadline = Duration::from_millis(100);
            let (report, _) = tokio::join!(soon(agent.drain(deadline)), async {
                while soon(line.receive())
                    .await
                    .unwrap()
                    .unwrap()
                    .close_code()
                    .is_none()
                {}
                line.frame(RawFrame::close(1000)).await.unwrap();
            });
            assert_eq!((report.finished, report.aborted), (0, 1));
        } else {
            agent.close();
            drop(line);
        }
        let Some(Err(CallError::Closed { delivery, .. })) = soon(run.next()).await else {
            panic!("no end")
        };
        assert_eq!(delivery, Delivery::Delivered);
        assert!(soon(run.next()).await.is_none());
    }
}
