//! One connection of a run: it is opened, makes the calls that are due on it, and is opened again if it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rpc_core::net::ws::WsStream;
use rpc_core::net::{Dialer as _, Driver};
use rpc_core::{CloseReason, Instant, Machine as _};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::run::Shared;
use super::scenario::{Kind, NAME};
use super::stats::Call;
use crate::Protocol;
use crate::client::{Client, Happened, why};
use crate::lock;
use crate::play::http;

/// What becomes of a call that takes too long.
const TIMED_OUT: &str = "timed out";
/// How long a connection that has ended waits before it is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// The time for a server to answer a Close.
const GOODBYE: Duration = Duration::from_secs(1);
/// Where texts for a router are posted.
const INPUT: &str = "/input";

/// A connection, its client, and what passes on it.
type Line = Driver<Client, WsStream>;

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
        return connect(&shared, &mut turns).await;
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
        if let Ok(line) = opened {
            let mut serving = Serving {
                shared: &shared,
                connection: index as u64,
                line,
                waiting: VecDeque::new(),
                posts: FuturesUnordered::new(),
            };
            match serving.run(&mut turns).await {
                None => return close(serving.line).await,
                Some(why) => {
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

/// Makes calls that are connections, one at a time.
async fn connect(shared: &Arc<Shared>, turns: &mut Turns<'_>) {
    loop {
        let now = shared.now();
        let Some(call) = turns.take(now) else {
            if turns.leave() {
                return;
            }
            turns.wait().await;
            continue;
        };
        lock(&shared.stats).sent(call, now);
        let left = (call.due + shared.load.patience).saturating_sub(now);
        let opened = timeout(left, open(shared, call.number)).await;
        let mut stats = lock(&shared.stats);
        match opened {
            Ok(Ok(line)) => {
                stats.opened += 1;
                stats.answered(call, now, shared.now());
                // Not a part of the call.
                tokio::spawn(close(line));
            }
            Ok(Err(kind)) => stats.failed(call, &kind),
            Err(_) => stats.failed(call, TIMED_OUT),
        }
    }
}

/// Opens a connection, up to where calls may begin. Fails with the reason.
async fn open(shared: &Shared, connection: u64) -> Result<Line, String> {
    let opening = async {
        let _permit = shared.dials.acquire().await;
        let ws = shared.load.dialer.dial().await;
        let ws = ws.map_err(|error| why(&CloseReason::from(&error)))?;
        let scenario = &shared.load.scenario;
        let (name, seed) = (
            format!("{NAME}-{:x}-{connection}", scenario.run),
            scenario.run ^ connection,
        );
        let client = Client::new(scenario, name, seed, Instant::now())?;
        let mut line = Driver::new(client, ws);
        loop {
            match line.next().await {
                Some(Happened::Ready) => return Ok(line),
                Some(Happened::Ended(_, Err(why))) => return Err(why),
                Some(Happened::Failed(why)) => return Err(why.to_owned()),
                Some(Happened::Closed(reason)) => return Err(why(&reason)),
                Some(_) => {}
                None => return Err(why(&CloseReason::Lost)),
            }
        }
    };
    let opened = timeout(shared.load.patience, opening).await;
    opened.unwrap_or_else(|_| Err("no answer to the first frame".to_owned()))
}

async fn close(mut line: Line) {
    line.machine_mut().close(Instant::now());
    // The server may answer, or not.
    let _closed = timeout(GOODBYE, async { while line.next().await.is_some() {} }).await;
}

/// A call that waits.
struct Waiting {
    call: Call,
    /// The number of its id.
    id: u64,
    sent: Duration,
    /// How much of its answer has not come.
    missing: u8,
    has_text: bool,
}

/// An open connection, and the calls that wait on it.
struct Serving<'s> {
    shared: &'s Shared,
    connection: u64,
    line: Line,
    /// The first one is due first.
    waiting: VecDeque<Waiting>,
    posts: FuturesUnordered<BoxFuture<'s, (u64, Result<(), String>)>>,
}

impl Serving<'_> {
    /// Makes calls until the run is over, or the connection has ended: for the reason that it returns.
    async fn run(&mut self, turns: &mut Turns<'_>) -> Option<String> {
        let Self { shared, .. } = *self;
        let load = &shared.load;
        loop {
            let now = shared.now();
            while self.waiting.len() < load.in_flight
                && let Some(call) = turns.take(now)
            {
                self.begin(call, now);
            }
            let is_over = turns.leave();
            let first = self.waiting.front();
            if first.is_none() && is_over {
                return None;
            }
            let limit = first.map_or(now, |it| it.call.due) + load.patience;
            tokio::select! {
                biased;
                happened = self.line.next() => {
                    let happened = happened.unwrap_or(Happened::Closed(CloseReason::Lost));
                    if let Some(why) = self.happened(happened) {
                        return Some(why);
                    }
                }
                Some((number, posted)) = self.posts.next() => {
                    self.came(|it| it.call.number == number, posted);
                }
                () = turns.wait(), if !is_over => {}
                () = sleep(limit.saturating_sub(now)), if !self.waiting.is_empty() => {
                    self.came(|_| true, Err(TIMED_OUT.to_owned()));
                    if load.scenario.is_alone() {
                        return Some("left after a timeout".to_owned());
                    }
                }
            }
        }
    }

    fn begin(&mut self, call: Call, now: Duration) {
        let (shared, connection) = (self.shared, self.connection);
        let scenario = &shared.load.scenario;
        lock(&shared.stats).sent(call, now);
        let (number, due, run) = (call.number, call.due.as_nanos(), scenario.run);
        // What was sent is to come back.
        let comes_back = matches!(scenario.protocol, Protocol::Snek | Protocol::SmartHole)
            && scenario.kind == Kind::Chat;
        let mark = match comes_back {
            true => format!("#{run:x}.{connection}.{number}.{due}"),
            false => String::new(),
        };
        let client = self.line.machine_mut();
        let id = match client.call(&mark, Instant::now()) {
            Ok(id) => id,
            Err(why) => return lock(&shared.stats).failed(call, &why),
        };
        if scenario.protocol == Protocol::SmartHole {
            let text = format!("{}: call {mark}", client.name);
            let posting = async move { (number, post(shared, &text).await) };
            self.posts.push(Box::pin(posting));
        }
        self.waiting.push_back(Waiting {
            call,
            id,
            sent: now,
            missing: 1 + u8::from(comes_back),
            has_text: false,
        });
    }

    /// Takes what has happened. Returns why the connection has ended, if it has.
    fn happened(&mut self, happened: Happened) -> Option<String> {
        match happened {
            Happened::Ended(id, result) => self.came(|it| it.id == id, result),
            Happened::Text(id) => {
                let mut waiting = self.waiting.iter_mut();
                if let Some(it) = waiting.find(|it| it.id == id && !it.has_text) {
                    it.has_text = true;
                    lock(&self.shared.stats).marked(it.call.due, self.shared.now());
                }
            }
            Happened::Message(text) => self.message(&text),
            Happened::Failed(why) => self.came(|_| true, Err(why.to_owned())),
            Happened::Closed(reason) => {
                let why = why(&reason);
                while !self.waiting.is_empty() {
                    self.came(|_| true, Err(why.clone()));
                }
                return Some(why);
            }
            Happened::Ready | Happened::Nothing => {}
        }
        None
    }

    /// Takes a part of the answer to the first call that it is, or that it has failed.
    fn came(&mut self, is_it: impl Fn(&Waiting) -> bool, part: Result<(), String>) {
        let Some(at) = self.waiting.iter().position(is_it) else {
            return;
        };
        if let Some(waiting) = self.waiting.get_mut(at)
            && part.is_ok()
            && waiting.missing > 1
        {
            waiting.missing -= 1;
            return;
        }
        let Some(Waiting { call, sent, .. }) = self.waiting.remove(at) else {
            return;
        };
        let mut stats = lock(&self.shared.stats);
        match part {
            Ok(()) => stats.answered(call, sent, self.shared.now()),
            Err(why) => stats.failed(call, &why),
        }
    }

    /// Takes a message that a call of this run may have caused.
    fn message(&mut self, text: &str) {
        let mut marks = text.rsplit_once('#').map_or("", |(_, it)| it).split('.');
        let run = marks.next().and_then(|it| u64::from_str_radix(it, 16).ok());
        let mut next = || marks.next()?.parse::<u64>().ok();
        let (Some(connection), Some(number), Some(due)) = (next(), next(), next()) else {
            return;
        };
        if run != Some(self.shared.load.scenario.run) {
            return;
        }
        if self.shared.load.scenario.mark().is_some() {
            lock(&self.shared.stats).marked(Duration::from_nanos(due), self.shared.now());
        }
        if connection == self.connection {
            self.came(|it| it.call.number == number, Ok(()));
        }
    }
}

/// Posts a text.
async fn post(shared: &Shared, text: &str) -> Result<(), String> {
    let dialer = &shared.load.dialer;
    let (socket, node) = dialer.open().await.map_err(|error| error.to_string())?;
    let headers = dialer.node_headers(&node);
    let headers = headers.map_err(|error| error.to_string())?;
    let own = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (name.to_string(), value.into_owned())
    });
    let kind = ("content-type".to_owned(), "text/plain".to_owned());
    let headers: Vec<_> = own.chain([kind]).collect();
    let answer = http::request(Box::new(socket), "POST", INPUT, &headers, text).await;
    let answer = answer.map_err(|error| format!("{INPUT}: {}", error.kind()))?;
    match answer.head.status().unwrap_or_default() {
        200..=299 => Ok(()),
        status => Err(format!("error answer: {INPUT} {status}")),
    }
}
