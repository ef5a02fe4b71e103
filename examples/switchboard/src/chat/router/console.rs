//! [`Console`]: a router in a conversation with the person in front of it.

use std::collections::HashSet;
use std::time::Duration;

use rpc_core::net::LinkEvent;
use serde_json::json;
use smarthole_proto::hub::{HubError, HubEvent, Input as Said, Settlement};
use smarthole_proto::id::MessageId;
use smarthole_proto::limits::{MAX_PAYLOAD, SHUTDOWN_TIMEOUT};
use smarthole_proto::net::{HubEvents, RouterRuntime, ServerHandle};

use crate::chat::router::show::Show;
use crate::chat::terminal::{ChatEvent, Command, Waits};
use crate::chat::{Out, Peer, State};
use crate::cli::Failure;
use crate::router::json;

/// Where a router listens, and when it is enough.
#[derive(Clone, Debug)]
pub(crate) struct ConsoleConfig {
    pub(crate) url: String,
    /// Where texts can be posted.
    pub(crate) input: String,
    /// What decides who gets a message.
    pub(crate) model: String,
    /// Lines are read when so many clients are there.
    pub(crate) clients: usize,
    /// Whether it is enough when the lines have ended and all of them are settled.
    pub(crate) once: bool,
}

/// What the person sees and writes.
pub(crate) struct Console {
    runtime: RouterRuntime,
    handle: ServerHandle,
    events: HubEvents,
    show: Show,
    wanted: ConsoleConfig,
    /// What the status line says.
    status: Option<String>,
    /// Lines that are not settled.
    open: HashSet<MessageId>,
    sent: usize,
    /// Lines that no client took.
    lost: usize,
    /// How the connections have ended.
    pub(crate) report: Option<rpc_core::net::DrainReport>,
}

impl Console {
    pub(crate) fn new(
        runtime: RouterRuntime,
        handle: ServerHandle,
        show: Show,
        wanted: ConsoleConfig,
    ) -> Self {
        Self {
            events: runtime.events(),
            runtime,
            handle,
            show,
            wanted,
            status: None,
            open: HashSet::new(),
            sent: 0,
            lost: 0,
            report: None,
        }
    }

    /// Returns how many lines there were and how many of them no client took.
    pub(crate) fn lost(&self) -> (usize, usize) {
        (self.sent, self.lost + self.open.len())
    }

    /// Tells in the status line what the open messages wait for.
    async fn show_status(&mut self, out: &Out) {
        if self.status.take_if(|_| self.open.is_empty()).is_some() {
            out.people([ChatEvent::Ended]).await;
        } else if !self.open.is_empty() {
            let status = self.status.get_or_insert_with(|| "routing".to_owned());
            out.people([ChatEvent::Activity(status.clone())]).await;
        }
    }

    async fn event(&mut self, event: LinkEvent<HubEvent>, out: &Out) {
        let event = match event {
            LinkEvent::Event(event) => event,
            LinkEvent::Lagged(events) => {
                let words = format!("too slow: {events} events are not shown");
                out.report("lagged", json!({ "events": events }), &words)
                    .await;
                if self.runtime.in_flight() == 0 {
                    self.open.clear();
                }
                return;
            }
            _ => return,
        };
        if let Some(json) = json::event(&event) {
            out.line(json.to_string()).await;
        }
        lines(self.show.event(&event), out).await;
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

async fn lines(lines: Vec<String>, out: &Out) {
    out.people(lines.into_iter().map(ChatEvent::Line)).await;
}

impl Peer for Console {
    /// `None`: the router has ended.
    type Event = Option<LinkEvent<HubEvent>>;

    const NAME: &'static str = "router";
    const INTRO: &'static str = "\
Write what you want done; the router decides who gets it.
  NAME: TEXT              goes to the client NAME and no other";
    const MAX_BYTES: usize = MAX_PAYLOAD;
    const STOPS: bool = false;
    /// Twice the time: first for answers, then for goodbyes.
    const GOODBYE: Duration = SHUTDOWN_TIMEOUT.saturating_mul(3);

    fn commands(&self) -> Vec<Command> {
        vec![
            Command::new("clients", "", "list the clients").waits(Waits::InPipe),
            Command::new("history", "", "list the last messages and outcomes").waits(Waits::InPipe),
        ]
    }

    fn state(&self) -> State {
        // Once there were enough, it does not matter who leaves.
        match self.sent > 0 || self.runtime.clients().len() >= self.wanted.clients {
            true => State::Idle,
            false => State::Busy,
        }
    }

    fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    fn serves(&self) -> bool {
        !self.wanted.once
    }

    async fn begin(&mut self, out: &Out) {
        let ConsoleConfig {
            url, input, model, ..
        } = &self.wanted;
        out.program("listening", json!({ "url": url, "input": input }))
            .await;
        let words = format!("listening on {url} (input: POST {input})");
        let model = format!("model: {model}");
        out.people([ChatEvent::Line(words), ChatEvent::Line(model)])
            .await;
    }

    async fn next(&mut self) -> Self::Event {
        self.events.next_link().await
    }

    async fn handle(&mut self, event: Self::Event, out: &Out) -> Result<(), Failure> {
        let event = event.ok_or_else(|| Failure::new("the router has ended"))?;
        self.event(event, out).await;
        self.show_status(out).await;
        Ok(())
    }

    async fn submit(&mut self, text: String, out: &Out) -> Result<(), Failure> {
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
                out.wrong(Failure::new(words)).await;
            }
        }
        self.show_status(out).await;
        Ok(())
    }

    async fn command(&mut self, name: &str, _: &str, out: &Out) -> Result<(), String> {
        if name == "clients" {
            let clients = self.runtime.clients();
            let about = json!({ "clients": json::clients(&clients) });
            out.program("clients", about).await;
            lines(self.show.clients(&clients), out).await;
        } else {
            let history = self.runtime.history();
            let about = json!({ "history": json::history(&history) });
            out.program("history", about).await;
            lines(self.show.history(&history), out).await;
        }
        Ok(())
    }

    /// Shows what happens until all clients have left.
    async fn leave(&mut self, out: &Out) {
        if !self.wanted.once {
            out.note("clients may finish their messages; Ctrl-C again ends at once")
                .await;
        }
        let handle = self.handle.clone();
        let drained = handle.drain(2 * SHUTDOWN_TIMEOUT);
        let mut drained = std::pin::pin!(drained);
        let mut more = true;
        self.report = loop {
            tokio::select! {
                report = &mut drained => break Some(report),
                event = self.events.next_link(), if more => match event {
                    Some(event) => self.event(event, out).await,
                    None => more = false,
                },
            }
        };
        while let Some(event) = self.events.try_next_link() {
            self.event(event, out).await;
        }
    }
}
