//! [`Harness`]: one client, the port that it dials, and what has to hold at the end of every fault.

use std::fmt::Debug;
use std::future::Future;

use futures_util::future::join;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::raw::{RawFrame, RawListener, RawPeer};
use super::{ATTEMPTS, ClientUnderTest, Ended, PATIENCE, SharedEvents, Terms};
use rpc_core::net::{Link, LinkState};
use rpc_core::{CloseReason, Delivery};

/// What has to come, on any machine.
pub(super) async fn soon<F: Future>(future: F) -> F::Output {
    match timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => broken("nothing hangs", &PATIENCE),
    }
}

#[track_caller]
pub(super) fn check(holds: bool, promise: &str, detail: &dyn Debug) {
    if !holds {
        broken(promise, detail);
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "an assertion of a test tool")]
pub(super) fn broken(promise: &str, detail: &dyn Debug) -> ! {
    panic!("promise broken: {promise} ({detail:?})");
}

/// One client, and the port that it dials.
pub(super) struct Harness<'c, C: ClientUnderTest> {
    pub(super) test: &'c C,
    pub(super) listener: RawListener,
    pub(super) handle: C::Handle,
    pub(super) events: SharedEvents<C>,
    pub(super) task: JoinHandle<CloseReason>,
    /// How many connections were accepted.
    pub(super) accepted: u32,
}

impl<'c, C: ClientUnderTest> Harness<'c, C> {
    pub(super) async fn start(test: &'c C, terms: Terms) -> Self {
        match RawListener::bind().await {
            Ok(listener) => Self::on(listener, test, terms),
            Err(error) => broken("a free port", &error),
        }
    }

    pub(super) fn on(listener: RawListener, test: &'c C, terms: Terms) -> Self {
        let dialer = test.dialer(listener.address(), &terms);
        let (handle, events, task) = test.start(dialer, terms);
        Self {
            test,
            listener,
            handle,
            events: Mutex::new(events),
            task,
            accepted: 0,
        }
    }

    pub(super) fn link(&self) -> &Link<C::Protocol> {
        self.test.link(&self.handle)
    }

    pub(super) fn generation(&self) -> Option<u64> {
        match self.link().state() {
            LinkState::Ready { generation } => Some(generation),
            _ => None,
        }
    }

    /// The next connection, of which nothing was read.
    pub(super) async fn accept(&mut self) -> RawPeer {
        match soon(self.listener.accept()).await {
            Ok(line) => {
                self.accepted += 1;
                line
            }
            Err(error) => broken("a connection", &error),
        }
    }

    /// The next connection, upgraded, with so many steps of the handshake behind it.
    pub(super) async fn accept_after(&mut self, steps: usize) -> RawPeer {
        loop {
            let mut line = self.accept().await;
            if self.welcome(&mut line, steps).await.is_some() {
                return line;
            }
        }
    }

    /// The server's side of the handshake, up to a step.
    pub(super) async fn welcome(&self, line: &mut RawPeer, steps: usize) -> Option<()> {
        soon(line.accept_upgrade()).await.ok()?;
        for step in 0..steps {
            self.test.step(line, step).await?;
        }
        Some(())
    }

    /// A connection on which the client is ready; `None` if it has given up before.
    pub(super) async fn try_ready(&mut self) -> Option<RawPeer> {
        let link = self.link().clone();
        let mut next = None;
        loop {
            let mut line = match next.take() {
                Some(line) => line,
                None => tokio::select! {
                    line = self.accept() => line,
                    _ = link.closed() => return None,
                },
            };
            if self.welcome(&mut line, C::STEPS).await.is_none() {
                continue;
            }
            tokio::select! {
                biased;
                ready = link.ready() => return ready.ok().map(|_| line),
                // Too slow for a short deadline: the machine is busy.
                again = self.accept() => next = Some(again),
            }
        }
    }

    /// A connection on which the client is ready.
    pub(super) async fn ready(&mut self) -> RawPeer {
        match self.try_ready().await {
            Some(line) => line,
            None => broken("a healthy server is worked with", &self.link().state()),
        }
    }

    pub(super) async fn call(&self) -> Ended {
        soon(self.test.call(&self.handle, &self.events)).await
    }

    /// A call and its answer; whether all went well.
    pub(super) async fn exchange(&self, line: &mut RawPeer) -> Option<()> {
        let serve = async {
            let call = self.test.called(line).await?;
            self.test.answer(line, &call).await
        };
        let (ended, served) = join(self.call(), serve).await;
        served.filter(|()| ended == Ended::Answered)
    }

    /// A call on a line that has to be as good as new.
    pub(super) async fn works(&self, line: &mut RawPeer) {
        let before = self.generation();
        let answered = self.exchange(line).await.is_some();
        let unchanged = before.is_some() && before == self.generation();
        check(
            answered && unchanged,
            "the connection goes on",
            &self.link().state(),
        );
    }

    /// The client comes back to a healthy server on the same port, works, and leaves when told to.
    pub(super) async fn recovers(mut self) {
        let line = loop {
            let mut line = self.ready().await;
            if self.exchange(&mut line).await.is_some() {
                break line;
            }
            check(
                self.accepted < ATTEMPTS,
                "a healthy server is worked with",
                &self.accepted,
            );
        };
        self.link().close();
        hang_up(line).await;
        let reason = soon(self.link().closed()).await;
        check(reason == CloseReason::Local, "a close ends it", &reason);
    }

    /// The client has given up, and says why.
    pub(super) async fn gave_up(&self, why: impl Fn(&CloseReason) -> bool) {
        let reason = soon(self.link().closed()).await;
        check(why(&reason), "the client says why it gave up", &reason);
        let late = self.call().await;
        let not_sent = match &late {
            Ended::Closed { delivery, .. } => *delivery == Delivery::NotSent,
            Ended::Refused(_) => true,
            _ => false,
        };
        check(not_sent, "no call is taken after the end", &late);
    }

    /// A call that was in flight on a line that ended for this reason.
    pub(super) fn check_end(&self, ended: &Ended, why: impl Fn(&CloseReason) -> bool) {
        let as_promised = match ended {
            Ended::Closed { reason, delivery } => why(reason) && *delivery != Delivery::NotSent,
            Ended::TimedOut { delivery } => {
                C::CALLS_OUTLAST_PINGS && *delivery != Delivery::NotSent
            }
            Ended::Refused(_) => !C::CALLS,
            _ => false,
        };
        check(as_promised, "a call ends with the line's reason", ended);
    }
}

/// Waits until the client has read everything that was said.
pub(super) async fn arrive(line: &mut RawPeer) {
    const LAST: &[u8] = b"last";
    let _ = line.frame(RawFrame::ping(LAST)).await;
    while let Ok(Some(frame)) = soon(line.receive()).await {
        if frame.is_pong() && frame.payload == LAST {
            return;
        }
    }
}

/// Answers the client's Close, and ends the line.
pub(super) async fn hang_up(mut line: RawPeer) {
    while let Ok(Some(frame)) = soon(line.receive()).await {
        if let Some(code) = frame.close_code() {
            let _ = line.frame(RawFrame::close(code)).await;
            return;
        }
    }
}

/// Lets `fault` happen on a ready line with a call in flight: once to a client that does not dial
/// again, which has to give the reason, and once to one that does, which has to come back.
///
/// `fault` gives back what of the line has to stay open meanwhile.
pub(super) async fn befalls<C, K>(
    test: &C,
    terms: Terms,
    why: impl Fn(&CloseReason) -> bool + Copy,
    fault: impl AsyncFn(RawPeer) -> K,
) where
    C: ClientUnderTest,
{
    for dials_again in [false, true] {
        let terms = terms.clone();
        let terms = if dials_again {
            terms
        } else {
            terms.without_reconnects()
        };
        let (harness, mut line) = loop {
            let mut harness = Harness::start(test, terms.clone()).await;
            match harness.try_ready().await {
                Some(line) => break (harness, line),
                // A short deadline passed because the machine is busy.
                None => harness.gave_up(why).await,
            }
        };
        let server = async {
            let received = harness.test.called(&mut line).await;
            (received.is_some(), soon(fault(line)).await)
        };
        let before = harness.generation();
        let call = async {
            let ended = harness.call().await;
            let is_over = matches!(ended, Ended::Closed { .. });
            check(
                !is_over || before.is_none() || harness.generation() != before,
                "a line whose calls have ended is not ready",
                &harness.link().state(),
            );
            ended
        };
        let (ended, (received, kept)) = join(call, server).await;
        if received {
            harness.check_end(&ended, why);
        }
        if dials_again {
            harness.recovers().await;
        } else {
            harness.gave_up(why).await;
            check(
                harness.accepted == 1,
                "nobody dials again",
                &harness.accepted,
            );
        }
        drop(kept);
    }
}
