//! [`ClientConsole`]: a router's client at a terminal: what it works on is in a status line, and a line
//! can ask for its notes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::sync::mpsc;

use crate::chat::router::notes::{Note, Notes, on_disk};
use crate::chat::terminal::{ChatEvent, Command, Waits};
use crate::chat::{Out, Peer, State};
use crate::cli::Failure;

/// Most events that wait to be shown; more of them are left out.
const WAITING: usize = 64;

/// The messages that are being answered.
#[derive(Clone, Debug)]
pub(crate) struct Answering {
    open: Arc<AtomicUsize>,
    shown: mpsc::Sender<ChatEvent>,
}

impl Answering {
    /// Says in the status line that a message is being answered.
    pub(crate) fn begins(&self, text: &str) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let activity = ChatEvent::Activity(format!("answering {text:?}"));
        let _ = self.shown.try_send(activity);
    }

    /// Says that a message is answered.
    pub(crate) fn ends(&self) {
        if self.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _ = self.shown.try_send(ChatEvent::Ended);
        }
    }
}

/// A client in a conversation with the person in front of it.
#[derive(Debug)]
pub(crate) struct ClientConsole {
    notes: Arc<Notes>,
    shown: mpsc::Receiver<ChatEvent>,
}

impl ClientConsole {
    pub(crate) fn new(notes: Arc<Notes>) -> (Self, Answering) {
        let (sender, shown) = mpsc::channel(WAITING);
        let answering = Answering {
            open: Arc::default(),
            shown: sender,
        };
        (Self { notes, shown }, answering)
    }
}

impl Peer for ClientConsole {
    type Event = ChatEvent;

    const NAME: &'static str = "router-client";
    const INTRO: &'static str = "Messages come from the router; what was kept can be read here.";
    const MAX_BYTES: usize = 4096;
    const STOPS: bool = false;
    const GREETING: Option<&'static str> = None;

    fn commands(&self) -> Vec<Command> {
        vec![Command::new("notes", "", "show what was kept").waits(Waits::InPipe)]
    }

    fn state(&self) -> State {
        State::Idle
    }

    fn serves(&self) -> bool {
        true
    }

    async fn next(&mut self) -> ChatEvent {
        match self.shown.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    async fn handle(&mut self, event: ChatEvent, out: &Out) -> Result<(), Failure> {
        // There is no status line in a pipe.
        if out.is_terminal() {
            out.people([event]).await;
        }
        Ok(())
    }

    async fn say(&mut self, _: String, out: &Out) -> Result<(), Failure> {
        let why = "write to the router what you want done; see /help";
        out.wrong(Failure::new(why)).await;
        Ok(())
    }

    async fn command(&mut self, _: &str, _: &str, out: &Out) -> Result<(), String> {
        let notes = on_disk(&self.notes, Notes::all).await;
        let notes = notes.map_err(|error| error.to_string())?;
        let texts: Vec<_> = notes.iter().map(|note| &note.text).collect();
        out.answer("notes", json!({ "notes": texts }), &listed(&notes))
            .await;
        Ok(())
    }
}

fn listed(notes: &[Note]) -> String {
    if notes.is_empty() {
        return "no notes yet".to_owned();
    }
    let lines = notes
        .iter()
        .map(|note| format!("{}  {}", note.time, note.text));
    lines.collect::<Vec<_>>().join("\n")
}
