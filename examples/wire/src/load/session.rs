//! [`Session`]: the calls of one connection, as a machine: what leaves, what they wait for, and how they end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rpc_core::{CloseFrame, Disconnect, Incoming, Instant, Machine, Outgoing};

use super::codec::{Codec, Output, Request};
use super::run::{Shared, lock};
use super::stats::Call;

pub(super) const TIMED_OUT: &str = "timed out";
const UNREADABLE: &str = "unreadable answer";

/// What the owner of a session has to know.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Calls may begin.
    Ready,
    /// A call is over: there is room for another, or nothing more to wait for.
    Over,
}

pub(super) struct Session {
    shared: Arc<Shared>,
    codec: Codec,
    /// Calls without their end, with the time when they were sent. The first one is due first.
    flights: BTreeMap<u64, (Call, Duration)>,
    out: VecDeque<Outgoing>,
    events: VecDeque<Event>,
    /// Texts that are to be posted.
    pub(super) posts: Vec<(u64, String)>,
    outputs: Vec<Output>,
    end: Option<String>,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, number: u64) -> Self {
        let codec = Codec::new(&shared.load.scenario, number);
        let first = codec.open();
        let mut this = Self {
            shared,
            codec,
            flights: BTreeMap::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
            posts: Vec::new(),
            outputs: Vec::new(),
            end: None,
        };
        if let Some(first) = first {
            this.take(first, Duration::ZERO);
        }
        this
    }

    /// Returns why the session has ended.
    pub(super) fn end(&self) -> &str {
        self.end.as_deref().unwrap_or("connection lost")
    }

    /// Begins a call.
    pub(super) fn call(&mut self, call: Call, now: Duration) {
        self.flights.insert(call.number, (call, now));
        match self.codec.call(call) {
            Some(Request::Frame(text)) => self.out.push_back(Outgoing::Text(text)),
            Some(Request::Post(text)) => self.posts.push((call.number, text)),
            None => return self.fail(call.number, "cannot be written"),
        }
        lock(&self.shared.stats).sent(call, now);
    }

    /// Ends a call that has failed.
    pub(super) fn fail(&mut self, number: u64, kind: &str) {
        if let Some((call, _)) = self.flights.remove(&number) {
            lock(&self.shared.stats).failed(call, kind);
            self.over();
        }
    }

    /// Wakes the owner after the end of a call, if that waits for it.
    fn over(&mut self) {
        let was_full = self.flights.len() + 1 >= self.shared.load.in_flight;
        if was_full || self.shared.ended.get().is_some() {
            self.events.push_back(Event::Over);
        }
    }

    fn finish(&mut self, why: String) {
        for number in self.flights.keys().copied().collect::<Vec<_>>() {
            self.fail(number, &why);
        }
        self.end.get_or_insert(why);
    }

    /// Closes the connection, because nothing more can come of it.
    fn give_up(&mut self, why: String) {
        self.out
            .push_back(Outgoing::Close(CloseFrame::new(CloseFrame::NORMAL, "")));
        self.finish(why);
    }

    fn take(&mut self, outputs: Output, now: Duration) {
        match outputs {
            Output::Ready => self.events.push_back(Event::Ready),
            Output::Refused(why) => self.give_up(format!("refused: {why}")),
            Output::Send(text) => self.out.push_back(Outgoing::Text(text)),
            Output::Done(number) => {
                if let Some((call, sent)) = self.flights.remove(&number) {
                    lock(&self.shared.stats).answered(call, sent, now);
                    self.over();
                }
            }
            Output::First(number) => {
                if let Some((call, _)) = self.flights.get(&number) {
                    lock(&self.shared.stats).marked(call.due, now);
                }
            }
            Output::Failed(number, kind) => self.fail(number, &kind),
            Output::Seen(nanos) => {
                lock(&self.shared.stats).marked(Duration::from_nanos(nanos), now);
            }
            Output::Unreadable => match self.flights.keys().next().copied() {
                // Most likely it is the answer to the oldest.
                Some(number) => {
                    self.codec.forget(number);
                    self.fail(number, UNREADABLE);
                }
                None => self.give_up(UNREADABLE.to_owned()),
            },
        }
    }

    /// Returns the first call, and when it is given up.
    fn oldest(&self) -> Option<(u64, Duration)> {
        let (number, (call, _)) = self.flights.first_key_value()?;
        Some((*number, call.due + self.shared.load.patience))
    }
}

impl Machine for Session {
    type Event = Event;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        if let Incoming::Text(text) = message {
            let now = self.shared.since(now);
            let mut outputs = std::mem::take(&mut self.outputs);
            self.codec.decode(text, &mut outputs);
            outputs.drain(..).for_each(|it| self.take(it, now));
            self.outputs = outputs;
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.finish(match why {
            Disconnect::PeerClosed(Some(frame)) => format!("closed with {}", frame.code),
            Disconnect::PeerClosed(None) => "closed without a code".to_owned(),
            Disconnect::Eof => "connection lost".to_owned(),
            Disconnect::Failed { message } => format!("connection lost: {message}"),
            other => format!("connection lost: {other:?}"),
        });
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.shared.since(now);
        while let Some((number, until)) = self.oldest()
            && until <= now
        {
            self.fail(number, TIMED_OUT);
            if !self.codec.forget(number) {
                return self.give_up("left after a timeout".to_owned());
            }
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let (_, until) = self.oldest()?;
        Some((self.shared.at(until)?, "patience"))
    }

    fn is_closed(&self) -> bool {
        self.end.is_some()
    }

    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        if !self.is_closed() {
            self.out.push_back(Outgoing::Close(frame));
            self.finish("closed".to_owned());
        }
    }

    fn in_flight(&self) -> usize {
        self.flights.len()
    }
}
