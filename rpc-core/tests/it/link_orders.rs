//! Orders to a link (close, drain, reconnect) that meet each other, and waits without an end.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::ws::{WsConfig, WsDialer};
use rpc_core::net::{
    DriverConfig, LagPolicy, LinkConfig, LinkState, Message, Parts, QueueConfig, TransportError,
    mem, open, over,
};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Delivery, Outgoing, Refused};
use switchboard_testing::faults::{RawFrame, RawListener, RawPeer};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::toy::guest::GuestEvent;
use crate::toy::net::{End, GuestSide, HostLink, HostSide, connected, echo};

const LONG: Duration = Duration::from_secs(99);

fn config() -> LinkConfig {
    LinkConfig::default()
}

/// A guest that dials, and the host of its first connection, both ready.
async fn dialled() -> (End<GuestSide>, End<HostSide>, mem::MemListener) {
    let (dialer, mut listener) = mem::listen(8);
    let guest = End::spawn(open(GuestSide::new("ann"), dialer, config()));
    let host = accept(&mut listener).await;
    guest.link.ready().await.unwrap();
    (guest, host, listener)
}

async fn accept(listener: &mut mem::MemListener) -> End<HostSide> {
    let transport = listener.accept().await.unwrap();
    End::spawn(over(HostSide::default(), transport, config()))
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what)
        .await
        .expect("it never happened")
}

#[tokio::test(start_paused = true)]
async fn a_drain_overrides_a_requested_reconnect() {
    let (dialer, mut listener) = mem::listen(8);
    let guest = End::spawn(open(GuestSide::new("ann"), dialer, config()));
    let host = accept(&mut listener).await;
    let generation = guest.link.ready().await.unwrap();
    guest.link.reconnect(generation);
    let drain = guest.link.drain(Duration::from_secs(1));
    soon(drain).await;
    assert_eq!(guest.task.await.unwrap(), CloseReason::Drained);
    host.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stale_reconnect_request_is_ignored() {
    let (guest, _host, mut listener) = dialled().await;
    guest.link.reconnect(1);
    let _second = accept(&mut listener).await;
    let mut states = guest.link.states();
    let again = |state: &LinkState| *state == LinkState::Ready { generation: 2 };
    states.wait_for(again).await.unwrap();
    guest.link.reconnect(2);
    guest.link.reconnect(1);
    soon(accept(&mut listener)).await;
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_drain_deadlines_wins() {
    let (short, long) = (Duration::from_secs(1), LONG * 2);
    for (first, second) in [(short, long), (long, short)] {
        let (mut guest, host, _) = connected(config(), config()).await;
        let call = host.asking(LONG);
        guest.event().await;
        let start = Instant::now();
        let earlier = tokio::spawn({
            let link = host.link.clone();
            async move { link.drain(first).await }
        });
        tokio::time::sleep(short / 2).await;
        let report = host.link.drain(second).await;
        assert_eq!((report.finished, report.aborted), (0, 1));
        assert_eq!(earlier.await.unwrap(), report);
        assert!(start.elapsed() < 2 * short);
        assert!(matches!(call.await.unwrap(), Err(CallError::Closed { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_during_a_drain_ends_it_with_a_report() {
    let (mut guest, host, _) = connected(config(), config()).await;
    let call = host.asking(LONG);
    guest.event().await;
    let drain = tokio::spawn({
        let link = host.link.clone();
        async move { link.drain(LONG).await }
    });
    tokio::task::yield_now().await;
    host.link.close();
    let report = drain.await.unwrap();
    assert_eq!((report.finished, report.aborted), (0, 1));
    assert!(call.await.unwrap().is_err());
    assert_eq!(host.task.await.unwrap(), CloseReason::Local);
}

#[tokio::test(start_paused = true)]
async fn timeouts_can_be_as_long_as_duration_max() {
    let driver = DriverConfig {
        write_timeout: Duration::MAX,
        close_timeout: Duration::MAX,
        ..DriverConfig::default()
    };
    let block = LagPolicy::Block {
        deadline: Duration::MAX,
    };
    let queue = QueueConfig {
        max_items: 1,
        policy: block,
        ..QueueConfig::default()
    };
    let endless = LinkConfig {
        driver,
        connect_timeout: Duration::MAX,
        max_commands: usize::MAX,
        events: queue.clone(),
        streams: queue,
        ..config()
    };
    let (mut guest, host, _) = connected(endless.clone(), endless).await;
    let mut stream = host.stream(LONG).await;
    // More frames than the line holds, so that writes have to wait too.
    guest.answer_in_parts().await;
    let drain = tokio::spawn({
        let link = host.link.clone();
        async move { link.drain(Duration::MAX).await }
    });
    tokio::time::sleep(LONG / 2).await;
    for n in 0..50 {
        assert_eq!(stream.next().await, Some(n.to_string()));
    }
    assert_eq!(stream.outcome().await, Some(Ok("end".to_owned())));
    drain.await.unwrap();
    assert_eq!(host.task.await.unwrap(), CloseReason::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_driver_without_a_read_budget_still_reads() {
    let mut none = LinkConfig {
        max_commands: 0,
        ..config()
    };
    none.driver.read_budget = 0;
    let (guest, host, _) = soon(connected(none.clone(), none)).await;
    tokio::spawn(echo(guest));
    let answer = host.ask("hi").await;
    assert_eq!(answer, Ok("hi".to_owned()));
}

/// Calls until the connection says that it is over.
async fn call_until_the_end(link: HostLink) -> CallError<String> {
    loop {
        match link.call_with("ask", |m, now| m.ask("?", now)).await {
            Err(CallError::Refused(Refused::NotReady)) => {}
            Err(error) => return error,
            Ok(answer) => panic!("{answer}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn calls_racing_with_the_end_of_a_link_all_end() {
    for round in 0..3000 {
        let (left, _right) = mem::duplex(8);
        let (link, _events, connection) = over(HostSide::default(), left, config());
        let run = tokio::spawn(connection.run());
        let calls = [(); 2].map(|()| tokio::spawn(call_until_the_end(link.clone())));
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        if round % 2 == 0 {
            link.close();
        } else {
            run.abort();
        }
        for call in calls {
            assert_eq!(call.await.unwrap().delivery(), Delivery::NotSent);
        }
    }
}

/// A link in whose queue one command has room, and the other end of its line.
fn one_command() -> (Parts<HostSide>, mem::MemTransport) {
    let (left, right) = mem::duplex(8);
    let one = LinkConfig {
        max_commands: 1,
        ..config()
    };
    (over(HostSide::default(), left, one), right)
}

/// A link whose task has run once and given the only place in its command queue to `waiting`,
/// and which has then ended or been dropped.
async fn end_behind<F: Future>(is_dropped: bool, waiting: impl FnOnce(HostLink) -> F) -> F::Output {
    let ((link, _events, connection), _right) = one_command();
    let mut run = Box::pin(connection.run());
    assert!(futures_util::poll!(run.as_mut()).is_pending());
    link.try_command(|_, _| ()).unwrap();
    let mut waiting = Box::pin(waiting(link.clone()));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    assert!(futures_util::poll!(run.as_mut()).is_pending());
    if is_dropped {
        drop(run);
    } else {
        link.close();
        soon(run).await;
    }
    soon(waiting).await
}

#[tokio::test(start_paused = true)]
async fn a_command_queued_too_late_ends_with_the_link() {
    for is_dropped in [false, true] {
        let call =
            |link: HostLink| async move { link.call_with("ask", |m, now| m.ask("?", now)).await };
        let ended = end_behind(is_dropped, call).await.unwrap_err();
        assert_eq!(ended.delivery(), Delivery::NotSent);
        let command = |link: HostLink| async move { link.command(|_, _| ()).await };
        let ended = end_behind(is_dropped, command).await;
        assert_eq!(ended, Err(Refused::Closed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_is_refused_while_as_many_wait_as_may() {
    let ((link, _events, connection), _right) = one_command();
    let mut run = Box::pin(connection.run());
    for _ in 0..2 {
        assert!(futures_util::poll!(run.as_mut()).is_pending());
        assert_eq!(link.try_command(|_, _| ()), Ok(()));
        assert_eq!(link.try_command(|_, _| ()), Err(Refused::QueueFull));
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_that_cannot_dial_ignores_reconnect_requests() {
    let (guest, host, _cutter) = connected(config(), config()).await;
    tokio::spawn(echo(guest));
    let generation = host.link.ready().await.unwrap();
    host.link.reconnect(generation);
    let answer = soon(host.ask("hi")).await;
    assert_eq!(answer, Ok("hi".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn output_deferred_by_the_protocol_is_sent_after_a_wake() {
    let (left, right) = mem::duplex(8);
    let side = HostSide::default();
    let mail = Arc::clone(&side.mail);
    let mut guest = End::spawn(over(GuestSide::new("ann"), left, config()));
    let host = End::spawn(over(side, right, config()));
    soon(host.link.ready()).await.unwrap();
    mail.lock().unwrap().push("by hand".to_owned());
    host.link.downgrade().wake();
    assert_eq!(
        soon(guest.event()).await,
        Some(GuestEvent::Told("by hand".to_owned()))
    );
    // It is looked for in every turn, whatever the turn is for.
    mail.lock().unwrap().push("on the way".to_owned());
    host.link.command(|_, _| ()).await.unwrap();
    assert_eq!(
        soon(guest.event()).await,
        Some(GuestEvent::Told("on the way".to_owned()))
    );
}

/// A line that notes the state of its link whenever a frame leaves.
struct Noting {
    line: mem::MemTransport,
    link: Arc<OnceLock<HostLink>>,
    seen: mpsc::UnboundedSender<LinkState>,
}

impl Stream for Noting {
    type Item = Result<Message, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.line.poll_next_unpin(cx)
    }
}

impl Sink<Outgoing> for Noting {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.line.poll_ready_unpin(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Outgoing) -> Result<(), Self::Error> {
        self.seen.send(self.link.get().unwrap().state()).unwrap();
        self.line.start_send_unpin(frame)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.line.poll_flush_unpin(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.line.poll_close_unpin(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn local_state_changes_before_the_answer_is_sent() {
    let (line, theirs) = mem::duplex(8);
    let (seen, mut states) = mpsc::unbounded_channel();
    let link = Arc::new(OnceLock::new());
    let noting = Noting {
        line,
        link: Arc::clone(&link),
        seen,
    };
    let host = End::spawn(over(HostSide::default(), noting, config()));
    link.set(host.link.clone()).unwrap();
    let guest = End::spawn(over(GuestSide::new("ann"), theirs, config()));
    soon(guest.link.ready()).await.unwrap();
    assert_eq!(states.try_recv(), Ok(LinkState::Ready { generation: 1 }));
}

/// A guest over a real WebSocket, ready, and its peer, which does nothing by itself.
async fn ready_with(listener: &RawListener) -> (End<GuestSide>, RawPeer) {
    let url = format!("ws://{}", listener.address());
    let ws = WsConfig {
        max_message: 1024,
        ..WsConfig::default()
    };
    let dialer = WsDialer::new(&url).unwrap().with_config(ws);
    let at_once = BackoffPolicy::new(Duration::from_millis(1), 1.0);
    let driver = DriverConfig {
        close_timeout: Duration::from_millis(200),
        ..DriverConfig::default()
    };
    let config = LinkConfig {
        reconnect: ReconnectPolicy::new(at_once),
        driver,
        ..config()
    };
    let guest = End::spawn(open(GuestSide::new("ann"), dialer, config));
    let line = welcome(listener).await;
    guest.link.ready().await.unwrap();
    (guest, line)
}

async fn welcome(listener: &RawListener) -> RawPeer {
    let mut line = listener.accept().await.unwrap();
    line.accept_upgrade().await.unwrap();
    let welcome = RawFrame::text(r#"{"welcome":"ann"}"#);
    line.frame(welcome).await.unwrap();
    line
}

#[tokio::test]
async fn a_closing_connection_is_not_ready() {
    let listener = RawListener::bind().await.unwrap();
    let (guest, _line) = ready_with(&listener).await;
    let mut states = guest.link.states();
    guest.link.close();
    let closing = soon(states.wait_for(|state| !state.is_ready())).await;
    assert_eq!(*closing.unwrap(), LinkState::Closing);
    let refused = guest.link.call_with("ask", |_, _| Ok(1)).await;
    assert_eq!(refused, Err(CallError::Refused(Refused::Closed)));
    assert_eq!(guest.link.ready().await, Err(CloseReason::Local));
    assert_eq!(guest.task.await.unwrap(), CloseReason::Local);
}

#[tokio::test]
async fn a_loop_of_ready_and_call_does_not_spin_while_closing() {
    let listener = RawListener::bind().await.unwrap();
    let (guest, mut line) = ready_with(&listener).await;
    let too_large = RawFrame::text("").announcing(1025);
    line.frame(too_large).await.unwrap();
    // The peer does not hang up, so the line lingers.
    let mut calls = 0;
    let calling = async {
        while guest.link.ready().await == Ok(1) {
            calls += 1;
            let _ = guest.link.call_with("ask", |_, _| Ok(1)).await;
        }
    };
    soon(async { tokio::join!(welcome(&listener), calling) }).await;
    assert!(calls < 3, "{calls} calls");
}
