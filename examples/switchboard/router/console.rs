//! [`Console`]: takes lines, hands them to the runtime, and shows what becomes of them.

use std::collections::HashSet;

use rpc_core::net::Queued;
use serde_json::{Value, json};
use smarthole_proto::hub::{HubError, HubEvent, Input as Said, Settlement};
use smarthole_proto::id::MessageId;
use smarthole_proto::net::{HubEvents, RouterRuntime};
use switchboard::cli::complain;
use switchboard::terminal::{self, ChatEvent, ChatView, Input};

use crate::router::input::{self, Line};
use crate::router::show::Show;

/// When lines are read, and when it is enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Lines are read when so many clients are there.
    pub(crate) clients: usize,
    /// Whether it is enough when the lines have ended and all of them are settled.
    pub(crate) once: bool,
}

/// What the person sees and writes.
pub(crate) struct Console {
    runtime: RouterRuntime,
    show: Show,
    input: Input<Line>,
    view: ChatView,
    /// What the status line says.
    status: Option<String>,
    /// Lines that are not settled.
    open: HashSet<MessageId>,
    sent: usize,
    /// Lines that nobody took.
    lost: usize,
}

impl Console {
    pub(crate) fn new(runtime: RouterRuntime, show: Show, input: Input<Line>) -> Self {
        let view = match &input.terminal {
            Some(terminal) => ChatView::new(Some(terminal)),
            None => ChatView::plain(),
        };
        Self {
            runtime,
            show,
            input,
            view,
            status: None,
            open: HashSet::new(),
            sent: 0,
            lost: 0,
        }
    }

    const fn is_terminal(&self) -> bool {
        self.input.terminal.is_some()
    }

    pub(crate) async fn say(&self, line: String) {
        self.view.show(ChatEvent::Line(line)).await;
    }

    /// Tells the person something that is no result.
    pub(crate) async fn warn(&self, line: &str) {
        if self.is_terminal() {
            // Standard error would go through the line that is being edited.
            self.say(line.to_owned()).await;
        } else {
            complain(line);
        }
    }

    async fn tell(&self, name: &str, about: Value, words: &str) {
        self.say(self.show.note(name, about, words)).await;
    }

    /// Tells somebody in front of a terminal what can be done.
    pub(crate) async fn greet(&self) {
        if self.is_terminal() && !self.show.is_json() {
            self.say("write what you want done, or /help".to_owned())
                .await;
        }
    }

    /// Works until it is enough.
    pub(crate) async fn work(&mut self, events: &mut HubEvents, wanted: Wanted) {
        let mut reading = true;
        loop {
            self.show_status().await;
            if wanted.once && !reading && self.open.is_empty() {
                return;
            }
            // Once there were enough, it does not matter who leaves.
            let enough = self.sent > 0 || self.runtime.clients().len() >= wanted.clients;
            tokio::select! {
                line = self.input.lines.recv(), if reading && enough => match line {
                    Some(Line::Quit) => return,
                    Some(line) => self.line(line).await,
                    // At a terminal that is the end; a pipe may just have said everything.
                    None if self.is_terminal() && !wanted.once => return,
                    None => reading = false,
                },
                event = events.next() => match event {
                    Some(event) => self.event(event).await,
                    None => return,
                },
            }
        }
    }

    /// Shows what happens until something else has happened, and what is left to show then.
    pub(crate) async fn until<T>(
        &mut self,
        events: &mut HubEvents,
        end: impl Future<Output = T>,
    ) -> T {
        let mut end = std::pin::pin!(end);
        let mut more = true;
        let ended = loop {
            tokio::select! {
                ended = &mut end => break ended,
                event = events.next(), if more => match event {
                    Some(event) => self.event(event).await,
                    None => more = false,
                },
            }
        };
        while let Some(event) = events.try_next() {
            self.event(event).await;
        }
        ended
    }

    /// Writes what is to be written, leaves the terminal as it was, and returns how many lines there
    /// were and how many of them nobody took.
    pub(crate) async fn finish(self) -> (usize, usize) {
        self.view.finish().await;
        (self.sent, self.lost + self.open.len())
    }

    /// Tells in the status line what the open messages wait for.
    async fn show_status(&mut self) {
        let status = self.status.take_if(|_| self.open.is_empty());
        if status.is_some() {
            self.view.show(ChatEvent::Ended).await;
        } else if !self.open.is_empty() && !self.show.is_json() {
            let status = self.status.get_or_insert_with(|| "routing".to_owned());
            self.view.show(ChatEvent::Activity(status.clone())).await;
        }
    }

    async fn line(&mut self, line: Line) {
        match line {
            Line::Text(text) => self.send(text).await,
            Line::Clients => {
                for line in self.show.clients(&self.runtime.clients()) {
                    self.say(line).await;
                }
            }
            Line::History => {
                for line in self.show.history(&self.runtime.history()) {
                    self.say(line).await;
                }
            }
            Line::Help if self.show.is_json() => {
                let help = terminal::help::<Line>(input::HELP);
                self.tell("help", json!({ "text": help }), "").await;
            }
            Line::Help => {
                let help = terminal::help::<Line>(input::HELP);
                self.view.show(ChatEvent::Info(help)).await;
            }
            Line::Wrong(why) => {
                self.tell("error", json!({ "message": why }), &why).await;
                if !self.is_terminal() {
                    self.sent += 1;
                    self.lost += 1;
                }
            }
            Line::Quit => {}
        }
    }

    async fn send(&mut self, text: String) {
        self.sent += 1;
        match self.runtime.submit(Said::text(text)) {
            Ok(id) => {
                self.open.insert(id);
            }
            Err(error) => {
                self.lost += 1;
                let mut words = error.to_string();
                if error == HubError::NoClients {
                    words.push_str(": start one, for example with 'switchboard router client'");
                }
                self.tell("error", json!({ "message": error.to_string() }), &words)
                    .await;
            }
        }
    }

    async fn event(&mut self, event: Queued<HubEvent>) {
        let event = match event {
            Queued::Item(event) => event,
            Queued::Lagged(events) => {
                let words = format!("too slow: {events} events are not shown");
                self.tell("lagged", json!({ "events": events }), &words)
                    .await;
                if self.runtime.in_flight() == 0 {
                    self.open.clear();
                }
                return;
            }
            _ => return,
        };
        for line in self.show.event(&event) {
            self.say(line).await;
        }
        match event {
            HubEvent::Route { message, .. } if self.open.contains(&message) => {
                self.status = Some("choosing a client".to_owned());
            }
            HubEvent::Delivered { client, .. } if !self.open.is_empty() => {
                self.status = Some(format!("waiting for {client}"));
            }
            HubEvent::Settled {
                message, outcomes, ..
            } if self.open.remove(&message) => {
                let taken = |at: &Settlement| at.outcome.is_taken();
                if !outcomes.iter().any(taken) {
                    self.lost += 1;
                }
            }
            _ => {}
        }
    }
}
