//! [`Client`]: a client of one of five protocols on one connection: it logs in, and makes calls.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

use acolyte_proto::client::{self as acolyte, ChatUpdate, Outcome};
use acolyte_proto::event::Event;
use acolyte_proto::frame::ChatRequest;
use connectonion_proto::client as connectonion;
use connectonion_proto::frame::EventKind::{Assistant, AssistantDelta};
use connectonion_proto::net::RunEvent;
use exoclaw_proto::client as exoclaw;
use exoclaw_proto::frame::{ChatSend, StreamEvent};
use rpc_core::{CallError, CloseReason, ConnectErrorKind};
use smarthole_proto::client as smarthole;
use snek_proto::client as snek;
use snek_proto::frame::{Final, NoKwargs};
use tokio::spawn;
use tokio::sync::oneshot;

use super::run::{Shared, lock};
use super::scenario::{Kind, NAME, Scenario};
use super::stats::Call;
use crate::Protocol;
use crate::play::http;

/// Where texts for a router are posted.
const INPUT: &str = "/input";

/// A client that is logged in.
pub(super) struct Client {
    conn: Conn,
    /// The Snek channel, the ConnectOnion session, or the Acolyte model.
    target: String,
    events: Events,
}

enum Conn {
    Snek(snek_proto::net::Client),
    Exoclaw(exoclaw_proto::net::Client),
    SmartHole(smarthole_proto::net::Client),
    ConnectOnion(connectonion_proto::net::Client),
    Acolyte(acolyte_proto::net::Client),
}

macro_rules! each {
    ($conn:expr, $client:ident => $does:expr) => {
        match $conn {
            Conn::Snek($client) => $does,
            Conn::Exoclaw($client) => $does,
            Conn::SmartHole($client) => $does,
            Conn::ConnectOnion($client) => $does,
            Conn::Acolyte($client) => $does,
        }
    };
}

/// Runs a connection, and does this with its events.
macro_rules! run {
    ($parts:expr, $($event:pat => $does:expr),+) => {{
        let (client, mut events, connection) = $parts;
        spawn(connection.run());
        spawn(async move {
            while let Some(event) = events.next().await {
                match event {
                    $($event => $does,)+
                    _ => {}
                }
            }
        });
        client
    }};
}

/// Calls that wait, each with what is told that their text has come, or that they have failed.
type Waiting = BTreeMap<u64, oneshot::Sender<Result<(), String>>>;

/// What comes to a connection beside the answers to its calls.
#[derive(Clone)]
struct Events {
    shared: Arc<Shared>,
    connection: u64,
    /// The calls that wait, by their numbers.
    waiting: Arc<Mutex<Waiting>>,
}

impl Events {
    /// Returns a name of this connection alone.
    fn name(&self) -> String {
        let run = self.shared.load.scenario.run;
        format!("{NAME}-{run:x}-{}", self.connection)
    }

    /// Lets a call wait for what comes.
    async fn of(&self, number: u64) -> Result<(), String> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(number, sender);
        let lost = |_| Err("connection lost".to_owned());
        receiver.await.unwrap_or_else(lost)
    }

    /// Fails the call that has waited for the longest time.
    fn fail(&self, why: &str) {
        let mut waiting = lock(&self.waiting);
        // Some no longer wait.
        while let Some((_, call)) = waiting.pop_first()
            && call.send(Err(why.to_owned())).is_err()
        {}
    }

    /// Notes that the text of a call has come.
    fn came(&self, number: u64) {
        if let Some(call) = lock(&self.waiting).remove(&number) {
            // It may no longer wait.
            let _gone = call.send(Ok(()));
        }
    }

    /// Notes a Snek message.
    fn message(&self, text: &str) {
        let Some((connection, number, due)) = self.mark(text) else {
            return;
        };
        let now = self.shared.now();
        lock(&self.shared.stats).marked(std::time::Duration::from_nanos(due), now);
        if connection == self.connection {
            self.came(number);
        }
    }

    /// Returns connection, number and due time of a message of this run.
    fn mark(&self, text: &str) -> Option<(u64, u64, u64)> {
        let (_, mark) = text.rsplit_once('#')?;
        let (run, mark) = mark.split_once('.')?;
        let numbers: Vec<u64> = mark.split('.').map_while(|it| it.parse().ok()).collect();
        let [connection, number, due] = *numbers.first_chunk()?;
        let is_own = u64::from_str_radix(run, 16) == Ok(self.shared.load.scenario.run);
        is_own.then_some((connection, number, due))
    }
}

impl Client {
    /// Connects and logs in. Fails with the reason.
    pub(super) async fn open(shared: &Arc<Shared>, connection: u64) -> Result<Self, String> {
        const UNREADABLE: &str = "unreadable answer";
        let _permit = shared.dials.acquire().await;
        let (scenario, dialer) = (&shared.load.scenario, shared.load.dialer.clone());
        let events = Events {
            shared: Arc::clone(shared),
            connection,
            waiting: Arc::default(),
        };
        let it = events.clone();
        let conn = match scenario.protocol {
            Protocol::Snek => Conn::Snek(run!(
                snek_proto::net::connect_with(dialer, scenario.snek()),
                snek::ClientEvent::Message(message) => it.message(&message.message),
                snek::ClientEvent::Warning(_) => it.fail(UNREADABLE)
            )),
            Protocol::Exoclaw => Conn::Exoclaw(run!(
                exoclaw_proto::net::connect_with(dialer, scenario.exoclaw()),
                exoclaw::ClientEvent::Warning(_) => it.fail(UNREADABLE)
            )),
            Protocol::SmartHole => {
                let config = scenario.smarthole(events.name())?;
                Conn::SmartHole(run!(
                    smarthole_proto::net::connect_with(dialer, config),
                    smarthole::ClientEvent::Message(message) => {
                        let number = message.text.rsplit_once("call ").map(|it| it.1.parse());
                        if message.ack().await.is_ok() && let Some(Ok(number)) = number {
                            it.came(number);
                        }
                    },
                    smarthole::ClientEvent::Warning(_) => it.fail(UNREADABLE)
                ))
            }
            Protocol::ConnectOnion => {
                let signer = scenario.signer()?;
                Conn::ConnectOnion(run!(
                    connectonion_proto::net::connect_with(dialer, signer, scenario.connectonion()),
                    connectonion::ClientEvent::OnboardRequired(_) => {
                        it.fail("refused: onboarding is required");
                    },
                    connectonion::ClientEvent::Warning(_) => it.fail(UNREADABLE)
                ))
            }
            Protocol::Acolyte => Conn::Acolyte(run!(
                acolyte_proto::net::connect_with(dialer, scenario.acolyte()?),
                acolyte::ClientEvent::Warning(_) => it.fail(UNREADABLE)
            )),
        };
        let mut client = Self {
            conn,
            target: String::new(),
            events,
        };
        client.target = tokio::select! {
            ready = client.log_in() => ready?,
            Err(why) = client.events.of(0) => return Err(why),
        };
        Ok(client)
    }

    /// Waits until calls may begin, and returns their target.
    async fn log_in(&self) -> Result<String, String> {
        let ready = each!(&self.conn, client => client.ready().await);
        ready.map_err(|reason| why(&reason))?;
        let Scenario { kind, caller, .. } = &self.events.shared.load.scenario;
        let refused = |why: &dyn Display| format!("refused: {why}");
        Ok(match &self.conn {
            Conn::Snek(client) if *kind == Kind::Chat => {
                let channels = client.get_channels().await.map_err(|it| refused(&it))?;
                let mut uids = channels.iter().map(|channel| channel.uid.as_ref());
                let wanted = caller.channel.as_deref();
                let uid = uids.find(|uid: &&str| wanted.is_none_or(|wanted| wanted == *uid));
                uid.ok_or_else(|| refused(&"no such channel"))?.to_owned()
            }
            Conn::ConnectOnion(client) => {
                client.session().session_id.unwrap_or_default().to_string()
            }
            Conn::Acolyte(client) => match &caller.model {
                None if *kind == Kind::Chat => {
                    let status = client.status().await.map_err(|it| refused(&it))?;
                    status.model.to_string()
                }
                model => model.clone().unwrap_or_default(),
            },
            _ => String::new(),
        })
    }

    /// Makes a call. Fails with what has happened.
    pub(super) async fn call(&self, call: Call) -> Result<(), String> {
        let (asked, came) = (self.ask(call), self.events.of(call.number));
        let is_chat = self.events.shared.load.scenario.kind == Kind::Chat;
        let answer = if is_chat && matches!(self.conn, Conn::Snek(_) | Conn::SmartHole(_)) {
            // What was sent is to come back.
            tokio::try_join!(asked, came).map(drop)
        } else {
            tokio::select! {
                biased;
                answer = asked => answer,
                Err(why) = came => Err(why),
            }
        };
        lock(&self.events.waiting).remove(&call.number);
        answer
    }

    async fn ask(&self, call: Call) -> Result<(), String> {
        let (shared, connection) = (&self.events.shared, self.events.connection);
        let Scenario {
            kind, caller, run, ..
        } = &shared.load.scenario;
        let (prompt, number, target) = (&*caller.prompt, call.number, &*self.target);
        let mut has_begun = false;
        let mut begins = || {
            if !std::mem::replace(&mut has_begun, true) {
                lock(&shared.stats).marked(call.due, shared.now());
            }
        };
        match &self.conn {
            Conn::Snek(client) if *kind == Kind::Chat => {
                let due = call.due.as_nanos();
                let text = format!("{prompt} #{run:x}.{connection}.{number}.{due}");
                ended(client.send_message(target, &text, Final::Yes).await)
            }
            Conn::Snek(client) => ended(client.call("get_user", &[()], &NoKwargs {}).await),
            Conn::Exoclaw(client) if *kind == Kind::Chat => {
                let mut chat = ChatSend::new(NAME, NAME, prompt);
                chat.session.peer = Some(format!("{run:x}-{connection}").as_str().into());
                let mut chat = client.chat_send(chat).await;
                while let Some(step) = chat.next().await {
                    if matches!(step.map_err(words)?, StreamEvent::Text(text) if !text.is_empty()) {
                        begins();
                    }
                }
                Ok(())
            }
            Conn::Exoclaw(client) => ended(client.ping().await),
            Conn::SmartHole(_) => {
                self.post(&format!("{}: call {number}", self.events.name()))
                    .await
            }
            Conn::ConnectOnion(client) if *kind == Kind::Chat => {
                let mut run = client.chat(prompt).await;
                while let Some(step) = run.next().await {
                    if let RunEvent::Step(step) = step.map_err(words)?
                        && matches!(step.event.kind, Assistant(_) | AssistantDelta(_))
                    {
                        begins();
                    }
                }
                Ok(())
            }
            Conn::ConnectOnion(client) => ended(client.status(target).await),
            Conn::Acolyte(client) if *kind == Kind::Chat => {
                let mut chat = client.chat(ChatRequest::new(prompt, target)).await;
                while let Some(update) = chat.next().await {
                    match update {
                        ChatUpdate::Event(Event::TextDelta(_)) => begins(),
                        ChatUpdate::Ended(Outcome::Closed { reason, .. }) => {
                            return Err(why(&reason));
                        }
                        ChatUpdate::Ended(outcome) if !outcome.is_done() => {
                            return Err(format!("error answer: {outcome}"));
                        }
                        _ => {}
                    }
                }
                Ok(())
            }
            Conn::Acolyte(client) => ended(client.status().await),
        }
    }

    /// Posts a text.
    async fn post(&self, text: &str) -> Result<(), String> {
        let words = |error: &dyn Display| error.to_string();
        let dialer = &self.events.shared.load.dialer;
        let (socket, node) = dialer.open().await.map_err(|error| words(&error))?;
        let headers = dialer.node_headers(&node).map_err(|error| words(&error))?;
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

    /// Returns whether the server works at a call that nobody waits for any more, and the next prompt would wait, or
    /// be taken for a word in between.
    pub(super) fn is_busy(&self) -> bool {
        let is_alone = matches!(self.conn, Conn::ConnectOnion(_) | Conn::Acolyte(_));
        is_alone && self.events.shared.load.scenario.kind == Kind::Chat
    }

    /// Waits for the end, with which all calls fail, and returns why.
    pub(super) async fn closed(&self) -> String {
        let why = why(&each!(&self.conn, client => client.closed().await));
        let waiting = std::mem::take(&mut *lock(&self.events.waiting));
        for call in waiting.into_values() {
            // It may no longer wait.
            let _gone = call.send(Err(why.clone()));
        }
        why
    }

    pub(super) fn close(&self) {
        each!(&self.conn, client => client.close());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

fn ended<T, E: Display>(result: Result<T, CallError<E>>) -> Result<(), String> {
    result.map(drop).map_err(words)
}

/// Says why a call has failed.
fn words<E: Display>(error: CallError<E>) -> String {
    match error {
        CallError::Remote(error) => format!("error answer: {error}"),
        CallError::Closed { reason, .. } => why(&reason),
        other => other.to_string(),
    }
}

/// Says why a connection has ended.
fn why(reason: &CloseReason) -> String {
    use CloseReason::{Authentication, Connect, Lost, Peer, Refused, Transport};
    match reason {
        CloseReason::Local => "closed".to_owned(),
        Peer(frame) => format!("closed with {}", frame.code),
        Lost => "connection lost".to_owned(),
        Transport { message } => format!("connection lost: {message}"),
        Authentication { message } | Refused { message, .. } => format!("refused: {message}"),
        Connect { kind, message, .. } => match kind {
            ConnectErrorKind::Refused => "connection refused".to_owned(),
            ConnectErrorKind::TimedOut => "not connected in time".to_owned(),
            ConnectErrorKind::Status(status) => format!("upgrade refused: {status}"),
            _ => message.clone(),
        },
        other => other.to_string(),
    }
}
