//! One connection of a run: it is opened, makes the calls that it is given, and is opened again if it ends.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::ws::WsStream;
use rpc_core::net::{DialError, Dialer as _, Message, TransportError};
use rpc_core::{Outgoing, Text};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Sleep, sleep, timeout};

use super::post::Posts;
use super::run::{Shared, lock};
use super::schedule::Call;
use super::sse;
use super::talk::{Client, ClientEvent, Kind, Request};

/// The pause before a connection that could not be opened, or was lost, is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a server may take to close.
const GOODBYE: Duration = Duration::from_secs(1);
/// Frames that wait to be written before no more calls are taken.
const MAX_OUT: usize = 64;
/// What happened to a call whose answer did not come in time.
pub(super) const TIMED_OUT: &str = "timed out";

/// Keeps one connection open until the sender of its calls is gone. Says on `tried` when the first attempt
/// is over.
pub(super) async fn keep(
    shared: Arc<Shared>,
    index: usize,
    mut calls: mpsc::UnboundedReceiver<Call>,
    tried: oneshot::Sender<()>,
) {
    if shared.scenario.kind() == Kind::Connect {
        let _ = tried.send(());
        return connect_each(shared, index, calls).await;
    }
    if let Some(client) = shared.scenario.sse().cloned() {
        return sse::serve(shared, index, client, calls, tried).await;
    }
    let number = u64::try_from(index).unwrap_or_default();
    let mut tried = Some(tried);
    sleep(shared.start_of(index)).await;
    loop {
        let opened = open(&shared, index, number).await;
        let over = match opened {
            Ok(mut line) => {
                lock(&shared.stats).opened += 1;
                lock(&shared.dispatch).opened(index);
                shared.freed.notify_one();
                tried.take().map(|tried| tried.send(()));
                let ended = line.serve(&mut calls).await;
                lock(&shared.dispatch).closed(index);
                let kind = ended.as_ref().err().map_or("closed", String::as_str);
                line.fail_all(&mut calls, kind);
                ended.map_err(|kind| lock(&shared.stats).lost.add(&kind))
            }
            Err(kind) => {
                lock(&shared.stats).refused.add(&kind);
                tried.take().map(|tried| tried.send(()));
                Err(())
            }
        };
        if over.is_ok() {
            return;
        }
        if !pause(&shared, &mut calls).await {
            return;
        }
    }
}

/// Waits before a connection is tried again. Returns whether the run still goes on: while a connection is
/// closed, no call comes, and only the end of all does.
pub(super) async fn pause(shared: &Shared, calls: &mut mpsc::UnboundedReceiver<Call>) -> bool {
    tokio::select! {
        () = sleep(PAUSE) => true,
        call = calls.recv() => match call {
            Some(call) => {
                lock(&shared.stats).failed(call, "not connected");
                true
            }
            None => false,
        },
    }
}

/// Opens a connection for each call, until the server takes calls on it.
async fn connect_each(shared: Arc<Shared>, index: usize, mut calls: mpsc::UnboundedReceiver<Call>) {
    lock(&shared.dispatch).opened(index);
    shared.freed.notify_one();
    while let Some(call) = calls.recv().await {
        let sent = shared.now();
        lock(&shared.stats).sent(call, sent);
        let left = (call.due + shared.patience).saturating_sub(sent);
        match timeout(left, open(&shared, index, call.number)).await {
            Ok(Ok(mut line)) => {
                let now = shared.now();
                {
                    let mut stats = lock(&shared.stats);
                    stats.opened += 1;
                    stats.answered(call, sent, now);
                }
                let _ = timeout(GOODBYE, line.ws.close()).await;
            }
            Ok(Err(kind)) => lock(&shared.stats).failed(call, &kind),
            Err(_) => lock(&shared.stats).failed(call, TIMED_OUT),
        }
        lock(&shared.dispatch).finished(index);
        shared.freed.notify_one();
    }
}

/// Opens a connection, as the one with this number, and says what comes first.
async fn open(shared: &Arc<Shared>, index: usize, number: u64) -> Result<Connection, String> {
    let _permit = shared.dials.acquire().await;
    let ws = shared
        .dialer
        .dial()
        .await
        .map_err(|error| of_dial(&error))?;
    let mut line = Connection {
        ws,
        talk: shared.scenario.talk(number),
        index,
        out: VecDeque::new(),
        is_unflushed: false,
        flights: BTreeMap::new(),
        heard: Vec::new(),
        taken: Vec::new(),
        posts: Posts::new(shared.dialer.clone()),
        timer: Box::pin(sleep(shared.patience)),
        is_armed: false,
        shared: Arc::clone(shared),
    };
    match timeout(shared.patience, line.begin()).await {
        Ok(begun) => begun.map(|()| line),
        Err(_) => Err("no answer to the first frame".to_owned()),
    }
}

/// Names the kind of a failed attempt to connect.
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

/// Names the kind of the end of a connection.
fn of_end(message: Option<Result<Message, TransportError>>) -> String {
    match message {
        Some(Ok(Message::Close(Some(frame)))) => format!("closed with {}", frame.code),
        Some(Ok(_)) => "closed without a code".to_owned(),
        Some(Err(TransportError::Io(error))) => format!("connection lost: {}", error.kind()),
        Some(Err(error)) => error.to_string(),
        None => "connection lost".to_owned(),
    }
}

#[derive(Clone, Copy)]
struct Flight {
    call: Call,
    sent: Duration,
}

enum Event {
    Calls(usize),
    Message(Option<Result<Message, TransportError>>),
    Refused(u64, String),
    Tick,
}

/// An open connection.
struct Connection {
    shared: Arc<Shared>,
    index: usize,
    ws: WsStream,
    talk: Box<dyn Client>,
    out: VecDeque<Text>,
    is_unflushed: bool,
    /// By number, and so by due time.
    flights: BTreeMap<u64, Flight>,
    heard: Vec<ClientEvent>,
    taken: Vec<Call>,
    posts: Posts,
    timer: Pin<Box<Sleep>>,
    is_armed: bool,
}

impl Connection {
    /// Says what a client says first, until the server takes calls.
    async fn begin(&mut self) -> Result<(), String> {
        let mut heard = Vec::new();
        self.talk.open(&mut heard);
        loop {
            for it in heard.drain(..) {
                match it {
                    ClientEvent::Ready => return Ok(()),
                    ClientEvent::Refused(why) => return Err(format!("refused: {why}")),
                    ClientEvent::Say(text) => self.out.push_back(text),
                    ClientEvent::Unreadable => return Err("unreadable answer".to_owned()),
                    ClientEvent::Done(_)
                    | ClientEvent::First(_)
                    | ClientEvent::Failed(..)
                    | ClientEvent::Seen(_) => {}
                }
            }
            match std::future::poll_fn(|cx| self.poll_io(cx)).await {
                Some(Ok(Message::Text(text))) => self.talk.hear(text.as_str(), &mut heard),
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                end => return Err(of_end(end)),
            }
        }
    }

    /// Makes calls until their sender is gone and none is in flight.
    ///
    /// # Errors
    /// The kind of the end, if the connection ends before.
    async fn serve(&mut self, calls: &mut mpsc::UnboundedReceiver<Call>) -> Result<(), String> {
        let mut is_over = false;
        loop {
            if is_over && self.flights.is_empty() {
                let _ = timeout(GOODBYE, self.ws.close()).await;
                return Ok(());
            }
            let event = std::future::poll_fn(|cx| self.poll(cx, calls, is_over)).await;
            let now = self.shared.now();
            match event {
                Event::Calls(0) => is_over = true,
                Event::Calls(_) => self.send(now),
                Event::Message(Some(Ok(Message::Text(text)))) => {
                    let mut heard = std::mem::take(&mut self.heard);
                    self.talk.hear(text.as_str(), &mut heard);
                    for it in heard.drain(..) {
                        self.take(it, now)?;
                    }
                    self.heard = heard;
                }
                Event::Message(Some(Ok(
                    Message::Binary(_) | Message::Ping(_) | Message::Pong(_),
                ))) => {}
                Event::Message(end) => return Err(of_end(end)),
                Event::Refused(number, kind) => self.over(number, &kind),
                Event::Tick => self.expire(now)?,
            }
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        calls: &mut mpsc::UnboundedReceiver<Call>,
        is_over: bool,
    ) -> Poll<Event> {
        if let Poll::Ready(message) = self.poll_io(cx) {
            return Poll::Ready(Event::Message(message));
        }
        if let Poll::Ready((number, kind)) = self.posts.poll(cx) {
            return Poll::Ready(Event::Refused(number, kind));
        }
        if !is_over
            && self.out.len() < MAX_OUT
            && let Poll::Ready(count) = calls.poll_recv_many(cx, &mut self.taken, MAX_OUT)
        {
            return Poll::Ready(Event::Calls(count));
        }
        if self.is_armed && self.timer.as_mut().poll(cx).is_ready() {
            self.is_armed = false;
            return Poll::Ready(Event::Tick);
        }
        Poll::Pending
    }

    /// Writes what waits, and reads the next message; neither waits for the other.
    fn poll_io(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, TransportError>>> {
        while !self.out.is_empty() {
            match self.ws.poll_ready_unpin(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Pending => break,
            }
            if let Some(text) = self.out.pop_front() {
                self.is_unflushed = true;
                if let Err(error) = self.ws.start_send_unpin(Outgoing::Text(text)) {
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        if self.is_unflushed {
            match self.ws.poll_flush_unpin(cx) {
                Poll::Ready(Ok(())) => self.is_unflushed = false,
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Pending => {}
            }
        }
        self.ws.poll_next_unpin(cx)
    }

    /// Sends the calls that were taken.
    fn send(&mut self, now: Duration) {
        let mut taken = std::mem::take(&mut self.taken);
        for call in taken.drain(..) {
            let flight = Flight { call, sent: now };
            self.flights.insert(call.number, flight);
            match self.talk.call(call) {
                Some(Request::Frame(text)) => self.out.push_back(text),
                Some(Request::Post { path, body }) => self.posts.send(call.number, path, body),
                None => {
                    self.over(call.number, "cannot be written");
                    continue;
                }
            }
            lock(&self.shared.stats).sent(call, now);
        }
        self.taken = taken;
        self.arm();
    }

    /// Sets the timer for the oldest call.
    fn arm(&mut self) {
        if !self.is_armed
            && let Some(flight) = self.flights.values().next()
            && let Some(time) = self.shared.at(flight.call.due + self.shared.patience)
        {
            self.timer.as_mut().reset(time);
            self.is_armed = true;
        }
    }

    fn take(&mut self, heard: ClientEvent, now: Duration) -> Result<(), String> {
        match heard {
            ClientEvent::Ready => {}
            ClientEvent::Refused(why) => return Err(format!("refused: {why}")),
            ClientEvent::Say(text) => self.out.push_back(text),
            ClientEvent::Done(number) => {
                if let Some(flight) = self.flights.remove(&number) {
                    lock(&self.shared.stats).answered(flight.call, flight.sent, now);
                    self.finished();
                }
            }
            ClientEvent::First(number) => {
                if let Some(flight) = self.flights.get(&number) {
                    lock(&self.shared.stats).marked(flight.call.due, now);
                }
            }
            ClientEvent::Failed(number, kind) => self.over(number, &kind),
            ClientEvent::Seen(nanos) => {
                lock(&self.shared.stats).marked(Duration::from_nanos(nanos), now);
            }
            ClientEvent::Unreadable => {
                // Most likely it is the answer to the oldest.
                let oldest = self.flights.keys().next().copied();
                if let Some(number) = oldest {
                    self.talk.forget(number);
                    self.over(number, "unreadable answer");
                }
            }
        }
        Ok(())
    }

    /// Drops the calls whose callers have given up.
    fn expire(&mut self, now: Duration) -> Result<(), String> {
        while let Some(flight) = self.flights.values().next().copied()
            && flight.call.due + self.shared.patience <= now
        {
            let is_usable = self.talk.forget(flight.call.number);
            self.over(flight.call.number, TIMED_OUT);
            if !is_usable {
                return Err("left after a timeout".to_owned());
            }
        }
        self.arm();
        Ok(())
    }

    fn over(&mut self, number: u64, kind: &str) {
        if let Some(flight) = self.flights.remove(&number) {
            lock(&self.shared.stats).failed(flight.call, kind);
            self.finished();
        }
    }

    fn finished(&self) {
        lock(&self.shared.dispatch).finished(self.index);
        self.shared.freed.notify_one();
    }

    /// Ends all calls that this connection has.
    fn fail_all(&mut self, calls: &mut mpsc::UnboundedReceiver<Call>, kind: &str) {
        let mut stats = lock(&self.shared.stats);
        for flight in std::mem::take(&mut self.flights).into_values() {
            stats.failed(flight.call, kind);
        }
        let waiting = std::iter::from_fn(|| calls.try_recv().ok());
        for call in std::mem::take(&mut self.taken).into_iter().chain(waiting) {
            stats.failed(call, kind);
        }
    }
}
