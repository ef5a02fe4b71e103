//! One connection of a run: it is opened, makes the calls that are due on it, and is opened again if it ends.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::run::{Shared, lock};
use super::scenario::Kind;
use super::stats::Call;

/// What becomes of a call that takes too long.
const TIMED_OUT: &str = "timed out";
/// How long a connection that has ended waits before it is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// The time for a server to answer a Close.
const GOODBYE: Duration = Duration::from_secs(1);

/// The calls of one connection: every n-th of all, where n is the number of connections.
struct Turns<'s> {
    shared: &'s Shared,
    index: usize,
    next: u64,
}

impl Turns<'_> {
    /// Returns the next call that is due.
    fn take(&mut self, now: Duration) -> Option<Call> {
        let load = &self.shared.load;
        while self.shared.has_begun() {
            let ended = self.shared.ended.get();
            let now = ended.map_or(now, |ended| ended.at);
            let due = load.schedule.due(self.next).filter(|due| *due <= now)?;
            let call = Call {
                number: self.next,
                due,
            };
            self.next += load.connections as u64;
            match ended {
                // What was due in the moment of a stop did not fail.
                Some(ended) if ended.is_stopped => {}
                _ if now - due < load.patience => return Some(call),
                _ => lock(&self.shared.stats).failed(call, TIMED_OUT),
            }
        }
        None
    }

    /// Once the run is over, leaves what is due and was not sent. Returns whether it is.
    fn leave(&mut self) -> bool {
        let Some(ended) = self.shared.ended.get() else {
            return false;
        };
        while let Some(call) = self.take(ended.at) {
            lock(&self.shared.stats).unsent(call, ended.at);
        }
        true
    }

    /// Waits until a call is due, or the run over.
    async fn wait(&self) {
        if let Some(wake) = self.shared.wakes.get(self.index) {
            wake.notified().await;
        }
    }
}

/// Keeps a connection open for as long as the run takes. The first attempt is told to `tried`.
pub(super) async fn keep(shared: Arc<Shared>, index: usize, tried: oneshot::Sender<()>) {
    let mut turns = Turns {
        shared: &shared,
        index,
        next: index as u64,
    };
    if shared.load.scenario.kind == Kind::Connect {
        lock(&shared.stats).open += 1;
        let _ = tried.send(());
        let connect = |call| connect(&shared, call);
        // Each of its calls has a connection, and an end.
        let _ended = serve(&shared, &mut turns, connect, pending(), false).await;
        return;
    }
    let mut tried = Some(tried);
    loop {
        let opened = open(&shared, index as u64).await;
        {
            let mut stats = lock(&shared.stats);
            match &opened {
                Ok(_) => (stats.opened, stats.open) = (stats.opened + 1, stats.open + 1),
                Err(kind) => stats.refused.add(kind),
            }
        }
        tried.take().map(|tried| tried.send(()));
        if let Ok(client) = opened {
            let (call, ended) = (|call| client.call(call), client.closed());
            match serve(&shared, &mut turns, call, ended, client.is_busy()).await {
                Ok(()) => return close(client).await,
                Err(why) => {
                    let mut stats = lock(&shared.stats);
                    stats.open -= 1;
                    stats.lost.add(&why);
                }
            }
        }
        let pause = sleep(PAUSE);
        tokio::pin!(pause);
        // Calls that are due meanwhile wait.
        while !turns.leave() {
            tokio::select! {
                () = &mut pause => break,
                () = turns.wait() => {}
            }
        }
        if turns.leave() {
            return;
        }
    }
}

/// Opens a connection, up to where calls may begin.
async fn open(shared: &Arc<Shared>, number: u64) -> Result<Client, String> {
    let opened = timeout(shared.load.patience, Client::open(shared, number)).await;
    opened.unwrap_or_else(|_| Err("no answer to the first frame".to_owned()))
}

async fn close(client: Client) {
    client.close();
    // The server may answer, or not.
    let _closed = timeout(GOODBYE, client.closed()).await;
}

/// Makes calls until the run is over, or the connection `ended`, for the reason that it returns. One that `is_alone` is
/// left with a call that takes too long.
async fn serve<F>(
    shared: &Shared,
    turns: &mut Turns<'_>,
    call: impl Fn(Call) -> F,
    ended: impl Future<Output = String>,
    is_alone: bool,
) -> Result<(), String>
where
    F: Future<Output = Result<(), String>>,
{
    let mut flights = FuturesUnordered::new();
    let mut ended = std::pin::pin!(ended);
    let mut lost = None;
    loop {
        let now = shared.now();
        while lost.is_none()
            && flights.len() < shared.load.in_flight
            && let Some(it) = turns.take(now)
        {
            lock(&shared.stats).sent(it, now);
            let left = (it.due + shared.load.patience).saturating_sub(now);
            let answer = timeout(left, call(it));
            flights.push(async move { (it, now, answer.await) });
        }
        let is_over = turns.leave();
        if flights.is_empty() && (is_over || lost.is_some()) {
            return lost.map_or(Ok(()), Err);
        }
        tokio::select! {
            Some((call, sent, answer)) = flights.next() => {
                let mut stats = lock(&shared.stats);
                match answer {
                    Ok(Ok(())) => stats.answered(call, sent, shared.now()),
                    Ok(Err(kind)) => stats.failed(call, &kind),
                    Err(_) => {
                        stats.failed(call, TIMED_OUT);
                        if is_alone {
                            return Err("left after a timeout".to_owned());
                        }
                    }
                }
            }
            why = &mut ended, if lost.is_none() => lost = Some(why),
            () = turns.wait(), if !is_over => {}
        }
    }
}

async fn connect(shared: &Arc<Shared>, call: Call) -> Result<(), String> {
    let client = open(shared, call.number).await?;
    lock(&shared.stats).opened += 1;
    // Not a part of the call.
    tokio::spawn(close(client));
    Ok(())
}
