//! Reconnects: delays, one reconnect for many callers, refused logins, observable state.

use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::{LinkConfig, LinkState, mem};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Refused};

use crate::toy::net::{End, GuestSide, HostSide};

fn policy() -> ReconnectPolicy {
    let backoff = BackoffPolicy {
        max_attempts: Some(3),
        ..BackoffPolicy::new(Duration::from_secs(1), 2.0)
    };
    ReconnectPolicy {
        cycles: None,
        ..ReconnectPolicy::new(backoff)
    }
}

fn guest(name: &str, dialer: mem::MemDialer) -> End<GuestSide> {
    let config = LinkConfig {
        reconnect: policy(),
        ..LinkConfig::default()
    };
    End::spawn(rpc_core::net::open(GuestSide::new(name), dialer, config))
}

/// Accepts one connection and serves it until it ends.
async fn accept(listener: &mut mem::MemListener) -> (End<HostSide>, mem::Cutter) {
    let transport = listener.accept().await.unwrap();
    let cutter = transport.cutter();
    let link = rpc_core::net::over(HostSide::default(), transport, LinkConfig::default());
    (End::spawn(link), cutter)
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_reconnects_after_the_first_delay() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("ann", dialer);
    let (_host, cutter) = accept(&mut listener).await;
    assert_eq!(guest.link.ready().await, Ok(1));
    cutter.cut();
    let mut states = guest.link.states();
    let lost = states
        .wait_for(|state| matches!(state, LinkState::Lost { .. }))
        .await
        .unwrap();
    let expected = LinkState::Lost {
        cause: CloseReason::Lost,
        retry_in: Duration::from_secs(1),
        exhausted: false,
    };
    assert_eq!(*lost, expected);
    drop(lost);
    let before = tokio::time::Instant::now();
    let (_host, _cutter) = accept(&mut listener).await;
    assert_eq!(before.elapsed().as_secs(), 1);
    assert_eq!(guest.link.ready().await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn attempts_that_fail_before_the_handshake_use_all_delays() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("ann", dialer);
    let start = tokio::time::Instant::now();
    let mut seen = Vec::new();
    for attempt in 0..6 {
        // The line opens, and is dropped before the handshake.
        let line = listener.accept().await.unwrap();
        assert_eq!(guest.link.state(), LinkState::Connecting { attempt });
        drop(line);
        seen.push(start.elapsed().as_secs());
    }
    // 1, 2, 4 and then the cycle again: an opened socket alone resets nothing.
    assert_eq!(seen, [0, 1, 3, 7, 8, 10]);
    assert!(!guest.link.state().is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_is_not_retried() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("mallory", dialer);
    let (_host, _) = accept(&mut listener).await;
    let cause = CloseReason::Authentication {
        message: "not you".to_owned(),
    };
    assert_eq!(guest.link.ready().await, Err(cause.clone()));
    assert_eq!(guest.link.state(), LinkState::GaveUp { cause });
}

#[tokio::test(start_paused = true)]
async fn many_failed_calls_cause_one_reconnect() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("ann", dialer);
    let (_host, cutter) = accept(&mut listener).await;
    guest.link.ready().await.unwrap();
    cutter.cut();
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let link = guest.link.clone();
            tokio::spawn(async move {
                link.reconnect(1);
                link.ready().await
            })
        })
        .collect();
    let (_host, _cutter) = accept(&mut listener).await;
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(guest.link.ready().await, Ok(2));
    let another = tokio::time::timeout(Duration::from_secs(60), listener.accept()).await;
    assert!(another.is_err(), "a second reconnect was made");
}

#[tokio::test(start_paused = true)]
async fn a_command_while_disconnected_fails_at_once() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("ann", dialer);
    let (_host, cutter) = accept(&mut listener).await;
    guest.link.ready().await.unwrap();
    cutter.cut();
    let mut states = guest.link.states();
    states.wait_for(|state| !state.is_ready()).await.unwrap();
    let refused = guest.link.call_with("ask", |_, _| Ok(1)).await;
    assert_eq!(refused, Err(CallError::Refused(Refused::NotConnected)));
}

#[tokio::test(start_paused = true)]
async fn closing_while_disconnected_ends_the_link() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("ann", dialer);
    drop(listener.accept().await.unwrap());
    let mut states = guest.link.states();
    states
        .wait_for(|state| matches!(state, LinkState::Lost { .. }))
        .await
        .unwrap();
    guest.link.close();
    assert_eq!(guest.task.await.unwrap(), CloseReason::Local);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_nobody_has_stops_dialling() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("ann", dialer);
    drop(listener.accept().await.unwrap());
    let mut states = guest.link.states();
    let lost = states.wait_for(|state| matches!(state, LinkState::Lost { .. }));
    lost.await.unwrap();
    let start = tokio::time::Instant::now();
    drop(guest.link);
    assert_eq!(guest.task.await.unwrap(), CloseReason::Local);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_dial_ends_at_the_connect_timeout() {
    struct Hang;
    impl rpc_core::net::Dialer for Hang {
        type Transport = mem::MemTransport;
        async fn dial(&self) -> Result<mem::MemTransport, rpc_core::net::DialError> {
            std::future::pending().await
        }
    }
    let config = LinkConfig {
        reconnect: ReconnectPolicy::off(),
        ..LinkConfig::default()
    };
    let guest = End::spawn(rpc_core::net::open(GuestSide::new("ann"), Hang, config));
    let reason = guest.task.await.unwrap();
    assert!(
        matches!(
            reason,
            CloseReason::Connect {
                retryable: true,
                ..
            }
        ),
        "{reason:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_requested_reconnect_replaces_a_live_connection_once() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("ann", dialer);
    let (_host, _) = accept(&mut listener).await;
    let generation = guest.link.ready().await.unwrap();
    guest.link.reconnect(generation);
    guest.link.reconnect(generation);
    let (_second, _) = accept(&mut listener).await;
    let mut states = guest.link.states();
    let again = |state: &LinkState| *state == LinkState::Ready { generation: 2 };
    states.wait_for(again).await.unwrap();
    guest.link.reconnect(generation);
    let third = tokio::time::timeout(Duration::from_secs(60), listener.accept()).await;
    assert!(third.is_err(), "an order for an old line made a new one");
}

#[tokio::test(start_paused = true)]
async fn a_connection_aborted_by_its_machine_reconnects() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = guest("ann", dialer);
    let (host, _) = accept(&mut listener).await;
    guest.link.ready().await.unwrap();
    guest.link.cut();
    assert_eq!(host.task.await.unwrap(), CloseReason::Lost);
    let (_host, _cutter) = accept(&mut listener).await;
    assert_eq!(guest.link.ready().await, Ok(2));
}
