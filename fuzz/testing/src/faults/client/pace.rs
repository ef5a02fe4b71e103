//! Servers that are too slow or too fast: slow readers, slow writers, floods of events.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use rpc_core::net::ws::Role;
use rpc_core::net::{LagPolicy, LinkEvent, QueueConfig};
use rpc_core::{CloseReason, Refused};
use serde_json::Value;
use switchboard_faults::RawFrame;

use super::super::raw::{RawListener, RawPeer, agree};
use super::super::{check, must, soon};
use super::harness::{Harness, arrive, befalls, hang_up};
use super::{ClientUnderTest, Ended, Line, MAX_MESSAGE, SHORT, Terms};

/// More than a line takes whose other end never reads.
const LOADS: usize = 400;
/// Between two bytes of a server that is slow, and between two tries of a client that has no room.
const STEP: Duration = Duration::from_millis(1);
const EVENTS: usize = 2_000;
/// Of those, how many may wait to be taken.
const ROOM: usize = 16;

fn is_slow(why: &CloseReason) -> bool {
    *why == CloseReason::SlowConsumer
}

/// It never reads.
///
/// What does not leave in time ends the line, and with it every call.
pub(super) async fn slow_reader<C: ClientUnderTest>(test: &C) {
    for dials_again in [false, true] {
        let terms = Terms::new().with(|it| it.link.driver.write_timeout = SHORT);
        let terms = terms.reconnecting(dials_again);
        let listener = must("a free port", RawListener::bind_narrow());
        let mut harness = Harness::on(listener, test, terms);
        let line = harness.ready().await;
        let loads = (0..LOADS).map(|_| load_until_the_end(test, &harness.handle));
        let ends = soon(join_all(loads)).await;
        let promise = "what cannot leave ends with the line";
        for ended in &ends {
            let as_promised = match ended {
                Ended::Closed { reason, .. } => is_slow(reason),
                Ended::Refused(refused) => matches!(
                    refused,
                    Refused::NotConnected | Refused::NotReady | Refused::Closed
                ),
                _ => false,
            };
            check(as_promised, promise, ended);
        }
        let with_line = |ended: &Ended| !C::CALLS || matches!(ended, Ended::Closed { .. });
        check(ends.iter().any(with_line), promise, &ends.len());
        match dials_again {
            true => harness.recovers().await,
            false => harness.gave_up(is_slow).await,
        }
        drop(line);
    }
}

/// Sends, as soon as there is room for it, until there is no line.
async fn load_until_the_end<C: ClientUnderTest>(test: &C, handle: &C::Handle) -> Ended {
    loop {
        match test.load(handle, MAX_MESSAGE / 2).await {
            Ended::Refused(Refused::QueueFull | Refused::TooManyCalls { .. }) => {
                tokio::time::sleep(STEP).await;
            }
            // It has left, as far as this side knows.
            Ended::Answered if !C::CALLS => {}
            ended => return ended,
        }
    }
}

/// A healthy server that writes byte by byte, with this pause before each.
struct Slow<'l>(&'l mut RawPeer, Duration);

#[async_trait]
impl Line for Slow<'_> {
    async fn recv(&mut self) -> Option<Value> {
        self.0.recv().await
    }

    async fn send(&mut self, frame: Value) -> Option<()> {
        let bytes = RawFrame::text(frame.to_string()).into_bytes(Role::Server);
        self.0.trickle(&bytes, self.1).await.ok()
    }
}

impl Slow<'_> {
    async fn accept_upgrade(&mut self) -> Option<()> {
        let request = soon(self.0.head()).await.ok()?;
        let answer = agree(&request);
        self.0.trickle(answer.as_bytes(), self.1).await.ok()
    }
}

/// It writes byte by byte, but it gets on: that is legal.
///
/// Byte by byte the whole way: the upgrade, the handshake, and an answer.
pub(super) async fn slow_but_steady<C: ClientUnderTest>(test: &C) {
    let mut harness = Harness::start(test, Terms::new()).await;
    let mut line = harness.accept().await;
    let mut slow = Slow(&mut line, STEP);
    let serve = async {
        slow.accept_upgrade().await?;
        for step in 0..C::STEPS {
            test.step(&mut slow, step).await?;
        }
        soon(harness.handle.ready()).await.ok()?;
        let answer = async {
            let call = test.called(&mut slow).await?;
            test.answer(&mut slow, &call).await
        };
        let (ended, served) = join(harness.call(), answer).await;
        served.filter(|()| ended == Ended::Answered)
    };
    let served = soon(serve).await;
    check(served.is_some(), "a slow server is waited for", &served);
    let is_first = harness.generation() == Some(1);
    check(is_first, "a slow server is waited for", &is_first);
}

/// It writes byte by byte, and a deadline passes: that of the dial, of the handshake, or of the
/// life that the connection has to show.
///
/// Bytes that come do not move a deadline: what counts is the end of the upgrade, of the handshake, or
/// of a frame.
pub(super) async fn slow_writer<C: ClientUnderTest>(test: &C) {
    let pause = SHORT / 4;
    let slow_upgrade = Terms::new().with(|it| it.link.connect_timeout = SHORT);
    let mut harness = Harness::start(test, slow_upgrade).await;
    let mut line = harness.accept().await;
    let mut slow = Slow(&mut line, pause);
    let upgraded = soon(slow.accept_upgrade()).await;
    check(upgraded.is_none(), "a dial has one deadline", &upgraded);
    harness.recovers().await;

    if C::STEPS > 0 {
        let mut harness = Harness::start(test, Terms::new().with(|it| it.handshake = SHORT)).await;
        let mut line = harness.accept_after(0).await;
        let mut slow = Slow(&mut line, pause);
        let stepped = soon(test.step(&mut slow, 0)).await;
        check(stepped.is_none(), "a handshake has one deadline", &stepped);
        harness.recovers().await;
    }

    // Long enough for every deadline.
    let event = test.event(0).to_string();
    let frame = RawFrame::text(format!("{}{event}", " ".repeat(1_000)));
    let frame = frame.into_bytes(Role::Server);
    let dead = |why: &CloseReason| matches!(why, CloseReason::KeepAlive { .. });
    let terms = Terms::new().with(|it| it.silence = SHORT);
    befalls(test, &terms, dead, async |mut line| {
        let _ = line.trickle(&frame, pause).await;
        line
    })
    .await;
}

fn queue(policy: LagPolicy) -> QueueConfig {
    QueueConfig {
        max_items: ROOM,
        policy,
        ..QueueConfig::default()
    }
}

async fn flood<C: ClientUnderTest>(test: &C, line: &mut RawPeer) -> Option<()> {
    for number in 0..EVENTS {
        line.text(&test.event(number).to_string()).await.ok()?;
    }
    Some(())
}

/// It sends events faster than they are taken.
///
/// Events are dropped and counted; calls are answered all the same.
pub(super) async fn event_flood<C: ClientUnderTest>(test: &C) {
    let terms = Terms::new().with(|it| it.link.events = queue(LagPolicy::DropOldest));
    let (harness, mut line) = Harness::ready_on(test, terms).await;
    let sent = soon(flood(test, &mut line)).await;
    check(sent.is_some(), "a flood does not end the line", &sent);
    // Behind the flood, so that all of it has been read when the answer has come.
    arrive(&mut line).await;
    let mut events = harness.events.lock().await;
    let (mut given, mut lost) = (0, 0);
    while let Some(event) = events.try_next_link() {
        match event {
            LinkEvent::Event(_) => given += 1,
            LinkEvent::Lagged(n) => lost += n,
            _ => {}
        }
    }
    drop(events);
    let counted = given <= ROOM + 1 && lost > 0 && lost >= (EVENTS - ROOM - 1) as u64;
    check(counted, "what is dropped is counted", &(given, lost));
    harness.works(&mut line).await;
}

/// The same, with a client that would rather lose the line than an event.
///
/// An application that wants no gaps loses the line instead, and knows why.
pub(super) async fn event_flood_that_closes<C: ClientUnderTest>(test: &C) {
    let policies = [LagPolicy::Close, LagPolicy::Block { deadline: SHORT }];
    for policy in policies {
        let terms = Terms::new().with(|it| it.link.events = queue(policy));
        let (harness, mut line) = Harness::ready_on(test, terms.clone().reconnecting(false)).await;
        let server = async {
            flood(test, &mut line).await;
            hang_up(line).await;
        };
        soon(join(harness.gave_up(is_slow), server)).await;
    }
}
