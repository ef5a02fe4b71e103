//! [`Harness`]: one client, the port that it dials, and what has to hold at the end of every fault.

use futures_util::future::join;
use rpc_core::net::{Link, LinkState};
use rpc_core::{CloseReason, Delivery};
use switchboard_faults::{Fault, RawFrame};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::super::{End, RawListener, RawPeer, broken, check, must, soon};
use super::{ATTEMPTS, ClientUnderTest, Ended, SharedEvents, Terms};

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
        let listener = must("a free port", RawListener::bind().await);
        Self::on(listener, test, terms)
    }

    /// A client that is ready, and the connection on which it is.
    pub(super) async fn ready_on(test: &'c C, terms: Terms) -> (Self, RawPeer) {
        let mut harness = Self::start(test, terms).await;
        let line = harness.ready().await;
        (harness, line)
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

    pub(super) fn generation(&self) -> Option<u64> {
        match self.handle.state() {
            LinkState::Ready { generation } => Some(generation),
            _ => None,
        }
    }

    /// The next connection, of which nothing was read.
    pub(super) async fn accept(&mut self) -> RawPeer {
        let line = soon(self.listener.accept()).await;
        self.accepted += 1;
        must("a connection", line)
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
        let link = Link::clone(&self.handle);
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
        let ready = self.try_ready().await;
        ready.unwrap_or_else(|| broken("a healthy server is worked with", &self.handle.state()))
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
        let works = answered && before.is_some() && before == self.generation();
        check(works, "the connection goes on", &self.handle.state());
    }

    /// The client comes back to a healthy server on the same port, works, and leaves when told to.
    pub(super) async fn recovers(mut self) {
        let mut line = self.ready().await;
        while self.exchange(&mut line).await.is_none() {
            let may_fail = self.accepted < ATTEMPTS;
            check(may_fail, "a healthy server is worked with", &self.accepted);
            line = self.ready().await;
        }
        self.handle.close();
        hang_up(line).await;
        let reason = soon(self.handle.closed()).await;
        check(reason == CloseReason::Local, "a close ends it", &reason);
    }

    /// The client has given up, and says why.
    pub(super) async fn gave_up(&self, why: impl Fn(&CloseReason) -> bool) {
        let reason = soon(self.handle.closed()).await;
        check(why(&reason), "the client says why it gave up", &reason);
        let late = self.call().await;
        let not_sent = match &late {
            Ended::Closed { delivery, .. } => *delivery == Delivery::NotSent,
            Ended::Refused(_) => true,
            _ => false,
        };
        check(not_sent, "no call is taken after the end", &late);
    }

    /// As [`gave_up`](Self::gave_up), on its first line.
    pub(super) async fn gave_up_at_once(&self, why: impl Fn(&CloseReason) -> bool) {
        self.gave_up(why).await;
        check(self.accepted == 1, "nobody dials again", &self.accepted);
    }

    /// A call that is in flight while the server does something, and ends for this reason.
    pub(super) async fn call_ends<T>(
        &self,
        why: impl Fn(&CloseReason) -> bool,
        server: impl Future<Output = T>,
    ) -> T {
        let (ended, outcome) = soon(join(self.call(), server)).await;
        self.check_end(&ended, why);
        outcome
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

/// Lets each of these faults happen on a ready line with a call in flight: once to a client that does
/// not dial again, which has to give the reason, and once to one that does, which has to come back.
/// The line ends so, if the client has anything to say to the fault.
pub(super) async fn befall<C: ClientUnderTest>(
    test: &C,
    terms: &Terms,
    why: impl Fn(&CloseReason) -> bool + Copy,
    faults: &[Fault],
    ends: Option<End>,
) {
    for fault in faults {
        befalls(test, terms, why, async |line| {
            let (kept, end) = line.inject(fault).await;
            let as_promised = end.is_none() || ends.is_none() || end == ends;
            check(as_promised, "the client says what was wrong", &(end, fault));
            kept
        })
        .await;
    }
}

/// As [`befall`], for a fault that needs more than one side.
///
/// `fault` gives back what of the line has to stay open meanwhile.
pub(super) async fn befalls<C: ClientUnderTest, K>(
    test: &C,
    terms: &Terms,
    why: impl Fn(&CloseReason) -> bool + Copy,
    fault: impl AsyncFn(RawPeer) -> K,
) {
    for dials_again in [false, true] {
        let terms = terms.clone().reconnecting(dials_again);
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
            let is_new = before.is_none() || harness.generation() != before;
            let promise = "a line whose calls have ended is not ready";
            check(!is_over || is_new, promise, &harness.handle.state());
            ended
        };
        let (ended, (received, kept)) = join(call, server).await;
        if received {
            harness.check_end(&ended, why);
        }
        match dials_again {
            true => harness.recovers().await,
            false => harness.gave_up_at_once(why).await,
        }
        drop(kept);
    }
}
