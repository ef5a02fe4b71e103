//! One connection of a run: it is opened, makes the calls that are due on it, and is opened again if it ends.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rpc_core::Machine as _;
use rpc_core::net::ws::WsStream;
use rpc_core::net::{DialError, Dialer as _, Driver};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::client::TIMED_OUT;
use super::run::{Shared, lock};
use super::scenario::Kind;
use super::session::{Event, Session};
use super::stats::Call;
use crate::check::http;

/// How long a connection that has ended waits before it is opened again.
const PAUSE: Duration = Duration::from_secs(1);
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
        return each(&shared, &mut turns, connect).await;
    }
    let mut tried = Some(tried);
    loop {
        let opened = Box::pin(open(&shared, index as u64)).await;
        {
            let mut stats = lock(&shared.stats);
            match &opened {
                Ok(_) => (stats.opened, stats.open) = (stats.opened + 1, stats.open + 1),
                Err(kind) => stats.refused.add(kind),
            }
        }
        tried.take().map(|tried| tried.send(()));
        let ended = match opened {
            Ok(driver) => serve(&shared, driver, &mut turns).await,
            Err(_) => Err(()),
        };
        if ended.is_ok() {
            return;
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
async fn open(shared: &Arc<Shared>, number: u64) -> Result<Driver<Session, WsStream>, String> {
    let _permit = shared.dials.acquire().await;
    let ws = shared.load.dialer.dial().await;
    let ws = ws.map_err(|error| of_dial(&error))?;
    let mut driver = Driver::new(Session::new(Arc::clone(shared), number)?, ws);
    match timeout(shared.load.patience, driver.next()).await {
        Ok(Some(Event::Ready)) => Ok(driver),
        Ok(_) => Err(driver.machine().end().to_owned()),
        Err(_) => Err("no answer to the first frame".to_owned()),
    }
}

async fn close(driver: &mut Driver<Session, WsStream>) {
    let now = driver.now();
    driver.machine_mut().close(now);
    let _ = timeout(GOODBYE, async { while driver.next().await.is_some() {} }).await;
}

fn of_dial(error: &DialError) -> String {
    match error {
        DialError::TimedOut { .. } => "not connected in time".to_owned(),
        DialError::Unreachable { source, .. } => match source.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            kind => format!("cannot be reached: {kind}"),
        },
        DialError::Status { status, .. } => format!("upgrade refused: {status}"),
        DialError::Tls { source, .. } => format!("TLS failed: {source}"),
        DialError::Certificate { why, .. } => format!("certificate refused: {why}"),
        other => other.to_string(),
    }
}

/// Makes calls until the run is over, or the connection lost.
async fn serve(
    shared: &Shared,
    mut driver: Driver<Session, WsStream>,
    turns: &mut Turns<'_>,
) -> Result<(), ()> {
    let mut posting = FuturesUnordered::new();
    loop {
        let now = driver.now();
        let session = driver.machine_mut();
        while session.in_flight() < shared.load.in_flight
            && let Some(call) = turns.take(shared.since(now))
        {
            session.call(call, now);
        }
        let is_over = turns.leave();
        if is_over && session.in_flight() == 0 {
            close(&mut driver).await;
            return Ok(());
        }
        posting.extend(session.posts.drain(..).map(|post| send(shared, post)));
        tokio::select! {
            event = driver.next() => if event.is_none() {
                let mut stats = lock(&shared.stats);
                stats.open -= 1;
                stats.lost.add(driver.machine().end());
                return Err(());
            },
            Some((number, sent)) = posting.next() => if let Err(kind) = sent {
                driver.machine_mut().fail(number, &kind);
            },
            () = turns.wait() => {}
        }
    }
}

/// Posts a text.
async fn send(shared: &Shared, (number, text): (u64, String)) -> (u64, Result<(), String>) {
    const INPUT: &str = "/input";
    let dialer = &shared.load.dialer;
    let sent = async {
        let (socket, node) = dialer.open().await.map_err(|error| error.to_string())?;
        let headers = dialer
            .node_headers(&node)
            .map_err(|error| error.to_string())?;
        let own = headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.to_string(), value.into_owned())
        });
        let kind = ("content-type".to_owned(), "text/plain".to_owned());
        let headers: Vec<_> = own.chain([kind]).collect();
        let answer = http::request(Box::new(socket), "POST", INPUT, &headers, &text).await;
        match answer
            .map_err(|error| format!("{INPUT}: {}", error.kind()))?
            .status
        {
            200..=299 => Ok(()),
            status => Err(format!("error answer: {INPUT} {status}")),
        }
    };
    (number, sent.await)
}

/// Makes each call by a future of its own.
async fn each<F>(shared: &Shared, turns: &mut Turns<'_>, call: impl Fn(Call) -> F)
where
    F: Future<Output = Result<(), String>>,
{
    let mut flights = FuturesUnordered::new();
    loop {
        let now = shared.now();
        while flights.len() < shared.load.in_flight
            && let Some(it) = turns.take(now)
        {
            lock(&shared.stats).sent(it, now);
            let left = (it.due + shared.load.patience).saturating_sub(now);
            let answer = timeout(left, call(it));
            flights.push(async move { (it, now, answer.await) });
        }
        let is_over = turns.leave();
        tokio::select! {
            Some((call, sent, answer)) = flights.next() => {
                let mut stats = lock(&shared.stats);
                match answer {
                    Ok(Ok(())) => stats.answered(call, sent, shared.now()),
                    Ok(Err(kind)) => stats.failed(call, &kind),
                    Err(_) => stats.failed(call, TIMED_OUT),
                }
            }
            () = turns.wait(), if !is_over => {}
            else => return,
        }
    }
}

async fn connect(shared: &Arc<Shared>, call: Call) -> Result<(), String> {
    let mut driver = open(shared, call.number).await?;
    lock(&shared.stats).opened += 1;
    // Not a part of the call.
    tokio::spawn(async move { close(&mut driver).await });
    Ok(())
}
