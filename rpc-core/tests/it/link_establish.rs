//! The first attempt to connect: ready, or why not; and connections that no one runs.

use std::time::Duration;

use rpc_core::net::{LinkConfig, LinkState, mem};
use rpc_core::{CloseReason, Refused};

use crate::toy::net::{GuestSide, HostSide};

#[tokio::test(start_paused = true)]
async fn an_established_connection_is_ready_with_all_events() {
    let (left, right) = mem::duplex(16);
    let host = rpc_core::net::over(HostSide::default(), right, LinkConfig::default());
    let (host, _questions, work) = host;
    tokio::spawn(work.run());
    let (guest, mut events, connection) =
        rpc_core::net::over(GuestSide::new("ann"), left, LinkConfig::default());
    let connection = connection.establish().await.unwrap();
    assert_eq!(guest.state(), LinkState::Ready { generation: 1 });
    host.ready().await.unwrap();
    let asked =
        tokio::spawn(async move { host.call_with("ask", |host, now| host.ask("a", now)).await });
    tokio::spawn(connection.run());
    assert!(events.next().await.is_some());
    guest.close();
    assert!(asked.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_refused_first_attempt_is_returned_and_not_retried() {
    let (dialer, listener) = mem::listen(8);
    drop(listener);
    let (guest, _events, connection) =
        rpc_core::net::open(GuestSide::new("ann"), dialer, LinkConfig::default());
    let before = tokio::time::Instant::now();
    let refused = connection.establish().await.map(drop);
    assert!(
        matches!(refused, Err(CloseReason::Connect { .. })),
        "{refused:?}"
    );
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert!(guest.state().ended().is_some());
}

#[tokio::test(start_paused = true)]
async fn calls_on_a_connection_that_is_not_run_fail_at_once() {
    let (left, right) = mem::duplex(16);
    let host = rpc_core::net::over(HostSide::default(), right, LinkConfig::default());
    tokio::spawn(host.2.run());
    let (guest, _events, connection) =
        rpc_core::net::over(GuestSide::new("ann"), left, LinkConfig::default());
    let connection = connection.establish().await.unwrap();
    let forgotten = guest.command(|_, _| ()).await;
    assert_eq!(forgotten, Err(Refused::NotConnected));
    let running = connection.run();
    drop(running);
    let gone = guest.command(|_, _| ()).await;
    assert_eq!(gone, Err(Refused::Closed));
    assert_eq!(guest.closed().await, CloseReason::TaskGone);
}
