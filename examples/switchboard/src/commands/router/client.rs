//! `switchboard router client`: a client that keeps notes.

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rpc_core::net::LinkEvent;
use rpc_core::sync::Mutex;
use rpc_core::{CloseReason, Retry};
use serde_json::{Value, json};
use smarthole_proto::error::{ErrorCode, RegistrationError};
use smarthole_proto::frame::{Notification, Registration};
use smarthole_proto::id::ClientId;
use smarthole_proto::limits::{DEFAULT_URL, MAX_ATTEMPTS};
use smarthole_proto::net::{Event, InboundMessage, dialer};
use smarthole_proto::plugin::{AppError, Context, Ended, Handler, Plugin, PluginConfig};
use tokio::sync::{Notify, oneshot};

use crate::chat::router::notes::{Note, Notes, asks_for_notes};
use crate::cli::{self, Failure, LineArgs, Service, Signals, Urls, complain};
use crate::text::{counted, printable};

/// Notes in one notification.
const TOLD: usize = 10;

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  Two clients of the router on this machine:
    switchboard router client --name notes --description 'Keeps notes and shopping lists.'
    switchboard router client --name ideas --description 'Keeps ideas.' --capability ideas --file ideas.txt
  Clients that do not take everything, to see what a router does then:
    switchboard router client --name shop --description 'Keeps shopping lists.' --only milk --only bread
    switchboard router client --name lights --description 'Switches lamps.' --reject 'The bulb is broken.'
    switchboard router client --name slow --description 'Thinks for long.' --delay 40s";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name of the client, by which users can address it: 'NAME: TEXT'.
    #[arg(long, value_name = "NAME", default_value = "notes")]
    name: String,
    /// What the client does. The router chooses clients by their description.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "Keeps notes and shopping lists: what to remember, what to buy."
    )]
    description: String,
    /// A word for what the client can do; may be repeated.
    #[arg(long = "capability", value_name = "WORD")]
    capabilities: Vec<String>,
    /// A file for the notes. Without it, the last 1,000 are kept in memory.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The URL of the router: ws://HOST:PORT; several, separated by commas, for its nodes.
    #[arg(long, env = "SMARTHOLE_URL", default_value = DEFAULT_URL)]
    url: Urls,
    #[command(flatten)]
    line: LineArgs,
    #[command(flatten)]
    pings: cli::Pings,
    /// Accept only messages with this word; may be repeated.
    #[arg(long = "only", value_name = "WORD")]
    only: Vec<String>,
    /// Reject every message for this reason; with --only, the reason for those without a word.
    #[arg(long, value_name = "REASON")]
    reject: Option<String>,
    /// Wait this long before each answer. After 30 s the router passes the message to another client.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = cli::duration)]
    delay: Duration,
    /// How many times to retry while there is no router.
    #[arg(long, value_name = "COUNT", default_value_t = MAX_ATTEMPTS)]
    attempts: u32,
    /// Print one JSON object for each event: registered, message, rejected, lost and so on.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let json = args.json;
    let ended = keep_notes(args).await;
    ended.inspect_err(|failure| failure.report(json))
}

async fn keep_notes(args: Args) -> Result<(), Failure> {
    let config = config(&args)?;
    let standing = Arc::new(RegistrationState::default());
    let file = args.file.clone().unwrap_or_default();
    let notes = Notes::open(args.file).map_err(|error| {
        let why = format!("--file {}: {error}", file.display());
        cli::cannot_write(why, "--file", error.kind())
    })?;
    let keeper = Keeper {
        notes: Arc::new(notes),
        writing: tokio::sync::Mutex::new(()),
        only: args.only.iter().map(|word| word.to_lowercase()).collect(),
        reject: args.reject,
        delay: args.delay,
        attempts: args.attempts,
        url: args.url.clone(),
        standing: Arc::clone(&standing),
        json: args.json,
    };
    let line = args.line.to(&args.url)?;
    let dialer = dialer(args.url.expose(), &config.client)?;
    let plugin = Plugin::with_dialer(line.dialer(dialer), config, keeper);
    let mut signals = Signals::listen();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut running = pin!(plugin.run_until(async {
        tokio::select! {
            _ = stopped => {}
            () = standing.refused.notified() => {}
        }
    }));
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = signals.asked() => {
            complain("client: finishing the messages in progress; Ctrl-C again ends at once");
            drop(stop);
            signals.finish(running).await?
        }
    };
    if let Some(error) = &*standing.refusal.lock() {
        return Err(refused(error));
    }
    match ended {
        Ended::Stopped(report) => {
            if report.aborted > 0 {
                let aborted = report.aborted;
                complain(format_args!("client: {aborted} messages were cut off"));
            }
            Ok(())
        }
        Ended::Refused(error) => Err(refused(&error)),
        Ended::GaveUp(reason) => {
            if reason.retry() != Retry::Never {
                complain("client: Max reconnection attempts reached");
            }
            if standing.was_in.load(Ordering::Relaxed) {
                return Err(Failure::new(reason));
            }
            Err(cli::unreached(&Service::SMARTHOLE, &args.url, &reason))
        }
        other => Err(Failure::new(other)),
    }
}

fn config(args: &Args) -> Result<PluginConfig, Failure> {
    let mut registration = Registration::new(args.name.as_str(), args.description.as_str());
    registration.version = Some(env!("CARGO_PKG_VERSION").into());
    for capability in &args.capabilities {
        registration.capabilities.push(capability.as_str().into());
    }
    let mut config = PluginConfig::new(registration).map_err(|error| {
        let option = match error.code {
            ErrorCode::InvalidName => "--name: ",
            ErrorCode::InvalidDescription => "--description: ",
            _ => "",
        };
        Failure::usage(format_args!("{option}{}", error.message))
    })?;
    config.client.link.reconnect.backoff.max_attempts = Some(args.attempts);
    config.client.keep_alive = args.pings.over(config.client.keep_alive);
    Ok(config)
}

fn refused(error: &RegistrationError) -> Failure {
    let hint = match error.code {
        ErrorCode::DuplicateName => "; choose another one with --name",
        _ => "",
    };
    let error = error.to_string();
    Failure::refused(format_args!(
        "the router refuses the registration: {}{hint}",
        printable(&error)
    ))
}

/// How the client stands with the router.
#[derive(Debug, Default)]
struct RegistrationState {
    was_in: AtomicBool,
    /// Why the client is refused that was never let in.
    refusal: Mutex<Option<RegistrationError>>,
    refused: Notify,
}

/// What the client does with messages.
struct Keeper {
    notes: Arc<Notes>,
    /// Held while the file is written.
    writing: tokio::sync::Mutex<()>,
    /// Words of the messages that are taken, in small letters; all of them if there are none.
    only: Vec<String>,
    reject: Option<String>,
    delay: Duration,
    /// How often it tries to come back.
    attempts: u32,
    url: Urls,
    standing: Arc<RegistrationState>,
    /// Events are printed as JSON.
    json: bool,
}

impl Handler for Keeper {
    async fn on_message(&self, _: &Context, message: &InboundMessage) -> Result<(), AppError> {
        let text = &*message.text;
        self.report(
            "message",
            json!({ "text": text }),
            &format!("gets {text:?}"),
        );
        tokio::time::sleep(self.delay).await;
        if message.time_left().is_zero() {
            // Someone else has it by now.
            return Err(AppError::rejected("it took too long"));
        }
        if let Some(reason) = self.refusal(text) {
            let words = format!("rejects it: {reason}");
            self.report("rejected", json!({ "reason": reason }), &words);
            return Err(AppError::rejected(reason));
        }
        if asks_for_notes(text) {
            let notes = self.on_disk(Notes::all).await?;
            message.ack().await?;
            message.notify(notification(&notes)).await?;
        } else {
            let kept = text.to_owned();
            self.on_disk(move |notes| notes.add(&kept, SystemTime::now()))
                .await?;
            // Only now: what was acknowledged is safe.
            message.ack().await?;
            let shown = Notification::titled("Note saved", text);
            message.notify(shown).await?;
        }
        Ok(())
    }

    async fn on_ready(&self, cx: &Context, _: Option<&ClientId>) {
        self.standing.was_in.store(true, Ordering::Relaxed);
        let name = &cx.registration().name;
        let place = match self.notes.file() {
            Some(file) => format!("notes go to {}", file.display()),
            None => "notes are kept until it ends (--file keeps them for longer)".to_owned(),
        };
        let node = cx.client().node().map(|node| node.to_string());
        let at = node.as_deref().unwrap_or("the router");
        let words = format!("registered as {name} at {at}; {place}");
        self.report(
            "registered",
            json!({ "name": **name, "node": node }),
            &words,
        );
    }

    async fn on_error(&self, _: &Context, error: AppError) {
        let words = match self.notes.file() {
            Some(file) => format!("{}: {error}", file.display()),
            None => error.to_string(),
        };
        self.report("failed", json!({ "message": words }), &words);
    }

    fn on_lost(&self, cause: &CloseReason, retry_in: Duration, attempt: u32) {
        let message = match self.standing.was_in.load(Ordering::Relaxed) {
            true => cause.to_string(),
            false => cli::unreached(&Service::SMARTHOLE, &self.url, cause).to_string(),
        };
        let wait = retry_in.as_millis();
        let attempts = self.attempts;
        let words =
            format!("{message}. Reconnecting in {wait}ms (attempt {attempt}/{attempts})...");
        let about = json!({ "message": message, "retryInMs": wait, "attempt": attempt });
        self.report("lost", about, &words);
    }

    fn on_event(&self, event: &LinkEvent<Event>) {
        match event {
            // Who was in before may still have the name, on a line that the router believes in.
            LinkEvent::Event(Event::Refused(error))
                if !self.standing.was_in.load(Ordering::Relaxed) =>
            {
                *self.standing.refusal.lock() = Some(error.clone());
                self.standing.refused.notify_one();
            }
            LinkEvent::Event(Event::Overdue { id }) => {
                let words = format!("{} was not answered in time", &**id);
                self.report("overdue", json!({ "id": &**id }), &words);
            }
            LinkEvent::Lagged(events) => {
                let words = format!("too slow, {events} events were dropped");
                self.report("lagged", json!({ "events": events }), &words);
            }
            other => tracing::info!(event = ?other, "client"),
        }
    }
}

impl Keeper {
    fn report(&self, event: &str, about: Value, words: &str) {
        cli::report(
            self.json,
            event,
            about,
            format_args!("client: {}", printable(words)),
        );
    }

    /// Why a text is not taken.
    fn refusal(&self, text: &str) -> Option<String> {
        let words = || text.split(|c: char| !c.is_alphanumeric());
        let wanted = |word: &str| self.only.contains(&word.to_lowercase());
        if self.only.is_empty() {
            self.reject.clone()
        } else if words().any(wanted) {
            None
        } else {
            let only = || format!("I only take messages about: {}", self.only.join(", "));
            Some(self.reject.clone().unwrap_or_else(only))
        }
    }

    /// Works on the file, one after the other, without holding up anything else.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Notes) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let _writing = self.writing.lock().await;
        let notes = Arc::clone(&self.notes);
        let done = tokio::task::spawn_blocking(move || work(&notes)).await;
        done.map_err(io::Error::other)?
    }
}

/// The last notes, the newest last.
fn notification(notes: &[Note]) -> Notification {
    let title = match notes.len() {
        0 => "No notes yet".to_owned(),
        count => counted(count, "note"),
    };
    let skipped = notes.len().saturating_sub(TOLD);
    let last = notes.iter().skip(skipped).zip(skipped + 1..);
    let lines = last.map(|(note, number)| format!("{number}. {}", note.text));
    let lines: Vec<_> = lines.collect();
    Notification::titled(title, lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper(only: &[&str], reject: Option<&str>) -> Keeper {
        Keeper {
            notes: Arc::new(Notes::open(None).unwrap()),
            writing: tokio::sync::Mutex::new(()),
            only: only.iter().map(|word| (*word).to_owned()).collect(),
            reject: reject.map(str::to_owned),
            delay: Duration::ZERO,
            url: Urls::from(String::new()),
            attempts: MAX_ATTEMPTS,
            standing: Arc::default(),
            json: false,
        }
    }

    #[test]
    fn rejects_messages_without_the_words() {
        let picky = keeper(&["milk", "grüße"], None);
        for text in ["buy Milk!", "milk", "GRÜSSE oder Grüße"] {
            assert_eq!(picky.refusal(text), None, "{text}");
        }
        let reason = picky.refusal("buttermilk").unwrap();
        assert!(reason.contains("milk, grüße"), "{reason}");
        assert_eq!(
            keeper(&["a"], Some("no")).refusal("b").as_deref(),
            Some("no")
        );
        assert_eq!(keeper(&[], Some("no")).refusal("b").as_deref(), Some("no"));
        assert_eq!(keeper(&[], None).refusal("b"), None);
    }

    #[test]
    fn the_last_notes_are_listed() {
        let note = |number: usize| Note {
            time: String::new(),
            text: format!("note {number}"),
        };
        let notes: Vec<_> = (1..=12).map(note).collect();
        let shown = notification(&notes);
        assert_eq!(shown.title.as_deref(), Some("12 notes"));
        let body = shown.body.unwrap();
        assert!(body.starts_with("3. note 3\n"), "{body}");
        assert!(body.ends_with("12. note 12"), "{body}");
        assert_eq!(notification(&[]).title.as_deref(), Some("No notes yet"));
    }
}
