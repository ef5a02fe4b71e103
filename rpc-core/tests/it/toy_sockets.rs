//! The toy protocol over real WebSockets: calls, many guests, reconnects, drains, dropped futures.

use std::time::Duration;

use futures_util::SinkExt as _;
use rpc_core::net::{Dialer as _, LinkState};
use rpc_core::{CallError, CloseFrame, CloseReason, Machine as _, Outgoing, Refused, Text};

use crate::link_drops::poll_times;
use crate::toy::house::{DEADLINE, House, ask, config, eager};
use crate::toy::net::{End, GuestSide, HostSide};

#[tokio::test]
async fn a_drained_server_closes_with_1001_and_reports() {
    let mut house = House::open().await;
    let mut guests = Vec::new();
    for name in ["ann", "ben", "eve"] {
        guests.push(house.guest(name, config()));
        house.room().await;
    }
    let report = house.shutdown.drain(DEADLINE).await;
    assert_eq!((report.finished, report.aborted), (3, 0));
    let goodbye = CloseFrame::new(CloseFrame::GOING_AWAY, "drain");
    for guest in guests {
        let reason = guest.task.await.unwrap();
        assert_eq!(reason, CloseReason::Peer(goodbye.clone()));
    }
    let late = house.guest("late", config());
    assert!(matches!(
        late.task.await.unwrap(),
        CloseReason::Connect {
            retryable: true,
            ..
        }
    ));
}

/// Whatever is dropped half way, the next question is answered over the same line.
#[tokio::test]
async fn futures_can_be_dropped_at_any_await() {
    let mut house = House::open().await;
    let room = house.echoing("ann").await;
    let long = "x".repeat(100_000);
    for polls in 0..30 {
        let text = long.clone();
        poll_times(
            room.link.call_with("ask", move |m, now| m.ask(&text, now)),
            polls,
        )
        .await;
        let stream = async {
            let mut stream = room
                .link
                .stream("ask", |m, now| m.ask("dropped", now))
                .await;
            stream.next().await;
            stream.outcome().await
        };
        poll_times(stream, polls).await;
        let text = long.clone();
        poll_times(room.link.command(move |m, _| m.tell(&text)), polls).await;
        poll_times(room.link.closed(), polls).await;
        assert_eq!(ask(&room, "hi").await, Ok("hi".to_owned()), "{polls} polls");
        while room.link.command(|m, _| m.in_flight()).await != Ok(0) {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(house.counters.upgraded(), 1);
}

#[tokio::test]
async fn dials_can_be_dropped_at_any_await() {
    let house = House::open().await;
    for polls in 0..30 {
        let dialled = poll_times(house.dialer().dial(), polls).await;
        drop(dialled);
        let mut guest = house.guest("ann", config());
        poll_times(guest.event(), polls).await;
        guest.task.abort();
    }
    while house.counters.open() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_drain_continues_after_its_future_is_dropped() {
    for polls in 0..8 {
        let mut house = House::open().await;
        let guest = house.guest("ann", config());
        let room = house.room().await;
        poll_times(room.link.drain(Duration::from_millis(100)), polls).await;
        poll_times(house.shutdown.drain(DEADLINE), polls.max(1)).await;
        let reason = guest.task.await.unwrap();
        assert!(matches!(reason, CloseReason::Peer(_)), "{reason:?}");
        house.task.await.unwrap();
    }
}

#[tokio::test]
async fn a_call_on_a_closing_connection_is_retryable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    // It says nothing, so the host gives it up; it does not answer the Close either.
    let silent = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let config = rpc_core::net::ws::WsConfig::default();
        let _ws = rpc_core::net::ws::WsStream::accept(tcp, &config).await;
        std::future::pending::<()>().await;
    });
    let side = HostSide {
        handshake: Duration::from_millis(20),
        ..HostSide::default()
    };
    let dialer = rpc_core::net::ws::WsDialer::new(&url).unwrap();
    let host = End::spawn(rpc_core::net::open(side, dialer, eager()));
    let mut states = host.link.states();
    let mut refusals = Vec::new();
    while !matches!(*states.borrow_and_update(), LinkState::Lost { .. }) {
        let refused = host.ask("?").await.unwrap_err();
        refusals.push(refused);
        tokio::task::yield_now().await;
    }
    silent.abort();
    for refused in refusals {
        let CallError::Refused(refused) = refused else {
            panic!("{refused:?}")
        };
        assert!(refused.is_retryable(), "{refused:?}");
    }
}

#[tokio::test]
async fn a_drain_during_a_reconnect_ends_the_link() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    // It does not answer the Close, so the old line stays for a while.
    let deaf = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let config = rpc_core::net::ws::WsConfig::default();
        let accepted = rpc_core::net::ws::WsStream::accept(tcp, &config).await;
        let mut ws = accepted.unwrap();
        let welcome = Text::from(r#"{"welcome":"ann"}"#);
        ws.send(Outgoing::Text(welcome)).await.unwrap();
        std::future::pending::<()>().await;
    });
    let dialer = rpc_core::net::ws::WsDialer::new(&url).unwrap();
    let side = GuestSide::new("ann");
    let guest = End::spawn(rpc_core::net::open(side, dialer, eager()));
    let generation = guest.link.ready().await.unwrap();
    guest.link.reconnect(generation);
    let refused = guest.link.command(|_, _| ()).await;
    assert_eq!(refused, Err(Refused::NotConnected));
    let drain = tokio::time::timeout(DEADLINE * 20, guest.link.drain(DEADLINE)).await;
    assert!(drain.is_ok(), "the link went on");
    assert_eq!(guest.task.await.unwrap(), CloseReason::Drained);
    deaf.abort();
}
