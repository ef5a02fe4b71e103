//! Ending a server in good order: [`ServerHandle`].

use std::future::{Future, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::connection::{Accepted, Arrival};
use super::service::UNKNOWN;
use crate::Instant;
use crate::net::{Cancellation, DrainReport, Transport, time};
use crate::timers::later;

/// Ends a running server, and passes it connections. Cheap to clone; dropping it has no effect.
#[derive(Clone, Debug)]
pub struct ServerHandle {
    pub(super) arrivals: UnboundedSender<Arrival>,
    cancellation: Cancellation,
    request: watch::Sender<Option<Instant>>,
    report: watch::Receiver<Option<DrainReport>>,
}

impl ServerHandle {
    /// Serves one connection over any transport, such as [`mem`](crate::net::mem), like one that
    /// the server has accepted, without an upgrade request. Dropped if the server has ended.
    pub fn serve(&self, transport: impl Transport, peer: Option<SocketAddr>) {
        let cancellation = self.cancellation.clone();
        let accepted = Accepted::new(transport, peer.unwrap_or(UNKNOWN), cancellation);
        // Dropping the transport tells the peer.
        let _ = self.arrivals.send(Box::pin(ready(Some(accepted))));
    }

    /// Stops accepting, cancels every handler's [`Cancellation`](crate::net::Cancellation), waits
    /// at most `deadline` for them, and cuts the rest.
    ///
    /// May be called more than once; an earlier deadline counts, and every call returns the same
    /// report. If the future of [`ProtocolServer::run`](super::ProtocolServer::run) was dropped meanwhile, all
    /// connections have ended with it and the report is empty.
    ///
    /// # Cancel safety
    /// If the future is dropped, the drain goes on; only the report is lost.
    pub async fn drain(&self, deadline: Duration) -> DrainReport {
        let at = later(time::now(), deadline);
        self.request.send_if_modified(|request| {
            let earlier = request.is_none_or(|before| at < before);
            if earlier {
                *request = Some(at);
            }
            earlier
        });
        let mut report = self.report.clone();
        match report.wait_for(Option::is_some).await {
            Ok(report) => report.unwrap_or_default(),
            Err(_) => DrainReport::default(),
        }
    }

    /// Awaits a server's `run`; drains it within `deadline` once `shutdown` resolves. Returns the
    /// report of the run.
    ///
    /// # Cancel safety
    /// Dropping the future drops the run, which cuts all connections.
    pub async fn run_until(
        &self,
        run: impl Future<Output = DrainReport>,
        shutdown: impl Future<Output = ()>,
        deadline: Duration,
    ) -> DrainReport {
        let mut run = pin!(run);
        let drained = async {
            shutdown.await;
            self.drain(deadline).await
        };
        tokio::select! {
            report = &mut run => report,
            _ = drained => run.await,
        }
    }
}

/// The server's end of a [`ServerHandle`].
#[derive(Debug)]
pub(super) struct Drain {
    // Held so that `request` never closes while the server runs.
    handle: ServerHandle,
    request: watch::Receiver<Option<Instant>>,
    report: watch::Sender<Option<DrainReport>>,
}

impl Drain {
    pub(super) fn new(arrivals: UnboundedSender<Arrival>, cancellation: Cancellation) -> Self {
        let (request, requested) = watch::channel(None);
        let (report, reported) = watch::channel(None);
        Self {
            handle: ServerHandle {
                arrivals,
                cancellation,
                request,
                report: reported,
            },
            request: requested,
            report,
        }
    }

    pub(super) fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Waits for the first request.
    pub(super) async fn requested(&mut self) {
        let _ = self.request.wait_for(Option::is_some).await;
    }

    /// Waits until the deadline of the drain, which may move while this waits.
    pub(super) async fn deadline(&mut self) {
        loop {
            let at = *self.request.borrow_and_update();
            let at = at.unwrap_or_else(|| later(time::now(), Duration::MAX));
            tokio::select! {
                () = time::sleep_until(at) => return,
                _ = self.request.changed() => {}
            }
        }
    }

    pub(super) fn report(&self, report: DrainReport) {
        self.report.send_replace(Some(report));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    fn drain() -> Drain {
        Drain::new(unbounded_channel().0, Cancellation::new().1)
    }

    #[tokio::test]
    async fn draining_an_ended_server_returns() {
        let drain = drain();
        let handle = drain.handle();
        drop(drain);
        let report = handle.drain(Duration::MAX).await;
        assert_eq!(report, DrainReport::default());
    }

    #[tokio::test]
    async fn run_until_drains_and_returns_its_report() {
        let mut drain = drain();
        let handle = drain.handle();
        let expected = DrainReport {
            finished: 1,
            aborted: 2,
        };
        let run = async {
            drain.requested().await;
            drain.report(expected);
            expected
        };
        let report = handle.run_until(run, ready(()), Duration::from_secs(1));
        assert_eq!(report.await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deadline_replaces_a_later_one() {
        let mut drain = drain();
        let (late, early) = (drain.handle(), drain.handle());
        let late = tokio::spawn(async move { late.drain(Duration::from_secs(1000)).await });
        drain.requested().await;
        let started = tokio::time::Instant::now();
        let early = tokio::spawn(async move { early.drain(Duration::from_secs(1)).await });
        drain.deadline().await;
        assert!(started.elapsed() < Duration::from_secs(1000));
        drain.report(DrainReport {
            finished: 1,
            aborted: 2,
        });
        assert_eq!(late.await.unwrap(), early.await.unwrap());
    }
}
