//! [`Session`]: the calls of one connection, as a machine: what leaves, what they wait for, and how they end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rpc_core::timers::sooner;
use rpc_core::{CloseFrame, Disconnect, Incoming, Instant, Machine, Outgoing};

use super::client::{Client, Made, Output, TIMED_OUT};
use super::run::{Shared, lock};
use super::stats::Call;

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
    client: Client,
    /// Calls without their end, with the time when they were sent. The first one is due first.
    flights: BTreeMap<u64, (Call, Duration)>,
    events: VecDeque<Event>,
    /// Texts that are to be posted.
    pub(super) posts: Vec<(u64, String)>,
    end: Option<String>,
}

impl Session {
    /// Creates the session of a connection that was just opened.
    ///
    /// # Errors
    /// Why its client cannot log in.
    pub(super) fn new(shared: Arc<Shared>, number: u64) -> Result<Self, String> {
        let now = Instant::now();
        let mut this = Self {
            client: Client::new(&shared.load.scenario, number, now)?,
            shared,
            flights: BTreeMap::new(),
            events: VecDeque::new(),
            posts: Vec::new(),
            end: None,
        };
        this.follow(now);
        Ok(this)
    }

    /// Returns why the session has ended.
    pub(super) fn end(&self) -> &str {
        self.end.as_deref().unwrap_or("connection lost")
    }

    /// Begins a call.
    pub(super) fn call(&mut self, call: Call, now: Instant) {
        let at = self.shared.since(now);
        self.flights.insert(call.number, (call, at));
        match self.client.call(call, now) {
            Ok(Made::Sent) => {}
            Ok(Made::Post(text)) => self.posts.push((call.number, text)),
            Err(error) => return self.fail(call.number, &error.to_string()),
        }
        lock(&self.shared.stats).sent(call, at);
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
    fn give_up(&mut self, why: String, now: Instant) {
        self.finish(why);
        self.client
            .close_with(CloseFrame::new(CloseFrame::NORMAL, ""), now);
    }

    /// Takes what follows from the events of the client.
    fn follow(&mut self, now: Instant) {
        let at = self.shared.since(now);
        while let Some(output) = self.client.poll(now) {
            match output {
                None => {}
                Some(Output::Ready) => self.events.push_back(Event::Ready),
                Some(Output::Refused(why)) => self.give_up(format!("refused: {why}"), now),
                Some(Output::Closed(why)) => self.finish(why),
                Some(Output::Done(number)) => {
                    if let Some((call, sent)) = self.flights.remove(&number) {
                        lock(&self.shared.stats).answered(call, sent, at);
                        self.over();
                    }
                }
                Some(Output::First(number)) => {
                    if let Some((call, _)) = self.flights.get(&number) {
                        lock(&self.shared.stats).marked(call.due, at);
                    }
                }
                Some(Output::Failed(number, kind)) => self.fail(number, &kind),
                Some(Output::Seen(nanos)) => {
                    lock(&self.shared.stats).marked(Duration::from_nanos(nanos), at);
                }
                Some(Output::Unreadable) => match self.flights.keys().next().copied() {
                    // Most likely it is the answer to the oldest.
                    Some(number) => {
                        self.client.forget(number);
                        self.fail(number, UNREADABLE);
                    }
                    None => self.give_up(UNREADABLE.to_owned(), now),
                },
            }
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
        self.client.handle_message(message, now);
        self.follow(now);
    }

    fn handle_disconnect(&mut self, why: Disconnect, now: Instant) {
        self.client.handle_disconnect(why, now);
        self.follow(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let at = self.shared.since(now);
        while let Some((number, until)) = self.oldest()
            && until <= at
        {
            self.fail(number, TIMED_OUT);
            if !self.client.forget(number) {
                self.give_up("left after a timeout".to_owned(), now);
            }
        }
        self.client.handle_timeout(now);
        self.follow(now);
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.client.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let oldest = self.oldest().and_then(|(_, until)| self.shared.at(until));
        sooner(
            self.client.next_timeout(),
            oldest.map(|at| (at, "patience")),
        )
    }

    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    fn close_with(&mut self, frame: CloseFrame, now: Instant) {
        self.client.close_with(frame, now);
        self.follow(now);
    }

    fn in_flight(&self) -> usize {
        self.flights.len()
    }
}
