//! [`Client`]: the machine of a client of one of five protocols: it logs in, and makes calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use acolyte_proto::client as acolyte;
use acolyte_proto::event::Event;
use acolyte_proto::frame::ChatRequest;
use connectonion_proto::auth::{Draft, Signer, unix_seconds};
use connectonion_proto::client as connectonion;
use connectonion_proto::frame::{Connect, EventKind, Input};
use exoclaw_proto::client as exoclaw;
use exoclaw_proto::frame::{ChatSend, StreamEvent};
use rpc_core::{CallError, CloseFrame, CloseReason, Incoming, Instant, Machine, Outgoing, Refused};
use smarthole_proto::client as smarthole;
use smarthole_proto::frame::Answer;
use snek_proto::client as snek;
use snek_proto::frame::{Final, NoKwargs};

use super::scenario::{Kind, Scenario};
use super::stats::Call;

/// The name that calls have at servers.
const NAME: &str = "load";
/// What becomes of a call that takes too long.
pub(super) const TIMED_OUT: &str = "timed out";

/// What follows from a frame of the server, or from the opening.
#[derive(Debug)]
pub(crate) enum Output {
    /// Calls may begin.
    Ready,
    /// A call has its answer.
    Done(u64),
    /// The answer of a call begins.
    First(u64),
    /// A call has failed.
    Failed(u64, String),
    /// A message that was due at this time, in nanoseconds, has come to this connection.
    Seen(u64),
    /// A frame cannot be read.
    Unreadable,
    /// The server does not want this client.
    Refused(String),
    /// The connection has ended.
    Closed(String),
}

/// How a call is made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// The machine sends a frame.
    Sent,
    /// This text is to be posted over HTTP.
    Post(String),
}

enum Conn {
    Snek(Box<snek::ClientConn>),
    Exoclaw(Box<exoclaw::ClientConn>),
    SmartHole(Box<smarthole::ClientConn>),
    ConnectOnion(Box<connectonion::ClientConn>),
    Acolyte(Box<acolyte::ClientConn>),
}

macro_rules! each {
    ($this:expr, $conn:ident => $does:expr) => {
        match $this {
            Conn::Snek($conn) => $does,
            Conn::Exoclaw($conn) => $does,
            Conn::SmartHole($conn) => $does,
            Conn::ConnectOnion($conn) => $does,
            Conn::Acolyte($conn) => $does,
        }
    };
}

/// A client on one connection.
pub(crate) struct Client {
    conn: Conn,
    calls: Calls,
}

/// The calls of a connection.
struct Calls {
    scenario: Scenario,
    connection: u64,
    /// The Snek channel, the ConnectOnion session, or the Acolyte model.
    target: String,
    /// The numbers of calls, by their ids.
    numbers: BTreeMap<u64, u64>,
    /// Snek messages that are answered, or have come back, but not both.
    half: BTreeSet<u64>,
    /// The call whose answer has begun.
    begun: Option<u64>,
    /// The call that a ConnectOnion agent works at.
    running: Option<u64>,
    /// What follows from the last event besides.
    next: Option<Output>,
}

impl Client {
    /// Creates the client of a connection that was just opened.
    ///
    /// # Errors
    /// Why it cannot log in.
    pub(crate) fn new(scenario: &Scenario, connection: u64, now: Instant) -> Result<Self, String> {
        let seed = scenario.run ^ connection;
        let calls = Calls {
            scenario: scenario.clone(),
            connection,
            target: scenario.caller.model.clone().unwrap_or_default(),
            numbers: BTreeMap::new(),
            half: BTreeSet::new(),
            begun: None,
            running: None,
            next: None,
        };
        let conn = match scenario.protocol {
            crate::Protocol::Snek => {
                Conn::Snek(Box::new(snek::ClientConn::new(scenario.snek(), seed, now)))
            }
            crate::Protocol::Exoclaw => {
                let config = scenario.exoclaw();
                Conn::Exoclaw(Box::new(exoclaw::ClientConn::new(config, seed, now)))
            }
            crate::Protocol::SmartHole => {
                let config = scenario.smarthole(calls.name())?;
                Conn::SmartHole(Box::new(smarthole::ClientConn::new(config, now)))
            }
            crate::Protocol::ConnectOnion => {
                let (config, connect) = (scenario.connectonion(), calls.connect()?);
                let conn = connectonion::ClientConn::new(config, &connect, seed, now);
                Conn::ConnectOnion(Box::new(conn))
            }
            crate::Protocol::Acolyte => {
                let config = scenario.acolyte()?;
                Conn::Acolyte(Box::new(acolyte::ClientConn::new(config, seed, now)))
            }
        };
        Ok(Self { conn, calls })
    }

    /// Begins a call.
    pub(super) fn call(&mut self, call: Call, now: Instant) -> Result<Made, Refused> {
        let Calls {
            scenario,
            connection,
            target,
            ..
        } = &self.calls;
        let Scenario { caller, run, .. } = scenario;
        let (is_chat, prompt) = (scenario.kind == Kind::Chat, caller.prompt.as_str());
        let id = match &mut self.conn {
            Conn::Snek(conn) if is_chat => {
                let (number, due) = (call.number, call.due.as_nanos());
                let text = format!("{prompt} #{run:x}.{connection}.{number}.{due}");
                conn.send_message(target.as_str(), &text, Final::Yes, now)?
                    .raw()
            }
            Conn::Snek(conn) => conn.call("get_user", &[()], &NoKwargs {}, now)?.raw(),
            Conn::Exoclaw(conn) if is_chat => {
                let mut chat = ChatSend::new(NAME, NAME, prompt);
                chat.session.peer = Some(format!("{run:x}-{connection}").as_str().into());
                conn.chat_send(&chat, now)?.raw()
            }
            Conn::Exoclaw(conn) => conn.ping(now)?.raw(),
            Conn::SmartHole(_) => {
                let text = format!("{}: call {}", self.calls.name(), call.number);
                return Ok(Made::Post(text));
            }
            Conn::ConnectOnion(conn) if is_chat => {
                let id = conn.input(&Input::new(prompt), now)?.raw();
                self.calls.running = Some(call.number);
                id
            }
            Conn::ConnectOnion(conn) => conn.query(target.as_str(), now)?.raw(),
            Conn::Acolyte(conn) if is_chat => conn
                .chat(&ChatRequest::new(prompt, target.as_str()), now)?
                .raw(),
            Conn::Acolyte(conn) => conn.status(now)?.raw(),
        };
        self.calls.numbers.insert(id, call.number);
        Ok(Made::Sent)
    }

    /// Forgets a call that takes too long. Returns whether the connection can be used further.
    pub(super) fn forget(&mut self, number: u64) -> bool {
        self.calls.half.remove(&number);
        self.calls.numbers.retain(|_, known| *known != number);
        // The server works on, and the next prompt would wait, or be taken for a word in between.
        let is_alone = matches!(self.conn, Conn::ConnectOnion(_) | Conn::Acolyte(_));
        !(is_alone && self.calls.scenario.kind == Kind::Chat)
    }

    /// Returns what follows from the next event, if there is one.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Option<Output>> {
        let calls = &mut self.calls;
        if let Some(next) = calls.next.take() {
            return Some(Some(next));
        }
        let is_chat = calls.scenario.kind == Kind::Chat;
        Some(match &mut self.conn {
            Conn::Snek(conn) => match conn.poll_event()? {
                snek::ClientEvent::Ready(ready) if is_chat => {
                    let wanted = calls.scenario.caller.channel.as_deref();
                    let mut channels = ready.channels.iter().map(|channel| channel.uid.as_ref());
                    let found =
                        channels.find(|uid: &&str| wanted.is_none_or(|wanted| wanted == *uid));
                    Some(match found {
                        Some(uid) => {
                            uid.clone_into(&mut calls.target);
                            Output::Ready
                        }
                        None => Output::Refused("no such channel".to_owned()),
                    })
                }
                snek::ClientEvent::Ready(_) => Some(Output::Ready),
                snek::ClientEvent::Reply { id, result } => match (is_chat, &result) {
                    (true, Ok(_)) => {
                        let number = calls.numbers.remove(&id.raw());
                        number.and_then(|number| calls.halved(number))
                    }
                    _ => calls.ended(id.raw(), result),
                },
                snek::ClientEvent::Message(message) => calls.message(&message.message),
                snek::ClientEvent::Warning(snek::Warning::BadFrame(_)) => Some(Output::Unreadable),
                snek::ClientEvent::Closed(reason) => Some(closed(&reason)),
                _ => None,
            },
            Conn::Exoclaw(conn) => match conn.poll_event()? {
                exoclaw::ClientEvent::Ready(_) => Some(Output::Ready),
                exoclaw::ClientEvent::Reply { id, result } => calls.ended(id.raw(), result),
                exoclaw::ClientEvent::Chat { id, event } => {
                    let is_text = matches!(event, StreamEvent::Text(text) if !text.is_empty());
                    let number = calls.numbers.get(&id.raw()).copied();
                    number.filter(|_| is_text).and_then(|it| calls.first(it))
                }
                exoclaw::ClientEvent::ChatEnded { id, result } => calls.ended(id.raw(), result),
                exoclaw::ClientEvent::Warning(_) => Some(Output::Unreadable),
                exoclaw::ClientEvent::Closed(reason) => Some(closed(&reason)),
                _ => None,
            },
            Conn::SmartHole(conn) => match conn.poll_event()? {
                smarthole::ClientEvent::Registered { .. } => Some(Output::Ready),
                smarthole::ClientEvent::Message(received) => {
                    let message = received.message;
                    let number = message.text.rsplit_once("call ").map(|it| it.1.parse());
                    let answered = conn.respond(message.id, Answer::Ack);
                    let number = number.and_then(Result::ok).filter(|_| answered.is_ok());
                    number.map(Output::Done)
                }
                smarthole::ClientEvent::Warning(smarthole::Warning::BadFrame(_)) => {
                    Some(Output::Unreadable)
                }
                smarthole::ClientEvent::Closed(reason) => Some(closed(&reason)),
                _ => None,
            },
            Conn::ConnectOnion(conn) => match conn.poll_event()? {
                connectonion::ClientEvent::Connected(connected) => {
                    calls.target = connected.session_id.to_string();
                    Some(Output::Ready)
                }
                connectonion::ClientEvent::OnboardRequired(_) => {
                    Some(Output::Refused("onboarding is required".to_owned()))
                }
                // The run that it has begun ends later.
                connectonion::ClientEvent::Reply {
                    id,
                    result: Ok(connectonion::Reply::Input(_)),
                } => {
                    calls.numbers.remove(&id.raw());
                    None
                }
                connectonion::ClientEvent::Reply { id, result } => calls.ended(id.raw(), result),
                connectonion::ClientEvent::Step(step) => {
                    use EventKind::{Assistant, AssistantDelta};
                    let is_text = matches!(step.event.kind, Assistant(_) | AssistantDelta(_));
                    let number = calls.running.filter(|_| is_text);
                    number.and_then(|number| calls.first(number))
                }
                connectonion::ClientEvent::RunEnded(result) => {
                    let number = calls.running.take();
                    number.map(|number| outcome(number, result))
                }
                connectonion::ClientEvent::Warning(connectonion::Warning::BadFrame(_)) => {
                    Some(Output::Unreadable)
                }
                connectonion::ClientEvent::Closed(reason) => Some(closed(&reason)),
                _ => None,
            },
            Conn::Acolyte(conn) => match conn.poll_event()? {
                acolyte::ClientEvent::Ready if is_chat && calls.target.is_empty() => {
                    let asked = conn.status(now).err();
                    asked.map(|error| Output::Refused(error.to_string()))
                }
                acolyte::ClientEvent::Ready => Some(Output::Ready),
                acolyte::ClientEvent::Reply { result, .. }
                    if calls.target.is_empty() && is_chat =>
                {
                    Some(match result {
                        Ok(acolyte::CallValue::Status(status)) => {
                            calls.target = status.model.to_string();
                            Output::Ready
                        }
                        Ok(_) => Output::Unreadable,
                        Err(error) => Output::Refused(words(&error)),
                    })
                }
                acolyte::ClientEvent::Reply { id, result } => calls.ended(id.raw(), result),
                acolyte::ClientEvent::Chat { id, update } => match update {
                    acolyte::ChatUpdate::Event(Event::TextDelta(_)) => {
                        let number = calls.numbers.get(&id.raw()).copied();
                        number.and_then(|number| calls.first(number))
                    }
                    acolyte::ChatUpdate::Ended(acolyte::Outcome::Done(_)) => {
                        calls.ended(id.raw(), Ok::<_, CallError<String>>(()))
                    }
                    acolyte::ChatUpdate::Ended(outcome) => {
                        let failed = CallError::<String>::Remote(outcome.to_string());
                        calls.ended(id.raw(), Err::<(), _>(failed))
                    }
                    _ => None,
                },
                acolyte::ClientEvent::Warning(acolyte::Warning::BadFrame(_)) => {
                    Some(Output::Unreadable)
                }
                acolyte::ClientEvent::Closed(reason) => Some(closed(&reason)),
                _ => None,
            },
        })
    }

    pub(crate) fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        each!(&mut self.conn, conn => conn.handle_message(message, now));
    }

    pub(super) fn handle_disconnect(&mut self, why: rpc_core::Disconnect, now: Instant) {
        each!(&mut self.conn, conn => conn.handle_disconnect(why, now));
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        each!(&mut self.conn, conn => conn.handle_timeout(now));
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Outgoing> {
        each!(&mut self.conn, conn => conn.poll_transmit())
    }

    pub(super) fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        each!(&self.conn, conn => conn.next_timeout())
    }

    pub(super) fn is_closed(&self) -> bool {
        each!(&self.conn, conn => conn.is_closed())
    }

    pub(super) fn close_with(&mut self, frame: CloseFrame, now: Instant) {
        each!(&mut self.conn, conn => conn.close_with(frame, now));
    }
}

impl Calls {
    /// Returns a name of this connection alone.
    fn name(&self) -> String {
        format!("{NAME}-{:x}-{}", self.scenario.run, self.connection)
    }

    /// Returns what a ConnectOnion host is told first, signed.
    fn connect(&self) -> Result<Connect, String> {
        let Scenario { caller, run, .. } = &self.scenario;
        let signer = caller.key.clone().map_or_else(Signer::generate, Ok);
        let signer = signer.map_err(|error| error.to_string())?;
        let nonce = (u128::from(*run) << 64) + u128::from(self.connection);
        let mut draft = Draft::new(unix_seconds(SystemTime::now())).with_nonce(nonce);
        if let Some(host) = &caller.host {
            draft = draft.with_to(host);
        }
        let signed = signer.sign_payload(&draft);
        signed.map(Connect::new).map_err(|error| error.to_string())
    }

    /// Notes the end of a call.
    fn ended<T, E: std::fmt::Display>(
        &mut self,
        id: u64,
        result: Result<T, CallError<E>>,
    ) -> Option<Output> {
        let number = self.numbers.remove(&id)?;
        self.half.remove(&number);
        Some(outcome(number, result))
    }

    /// Notes the first text of a call.
    fn first(&mut self, number: u64) -> Option<Output> {
        (self.begun.replace(number) != Some(number)).then_some(Output::First(number))
    }

    /// Notes a Snek message.
    fn message(&mut self, text: &str) -> Option<Output> {
        let (_, mark) = text.rsplit_once('#')?;
        let (run, mark) = mark.split_once('.')?;
        let numbers: Vec<u64> = mark.split('.').map_while(|it| it.parse().ok()).collect();
        let [connection, number, due] = *numbers.first_chunk()?;
        (u64::from_str_radix(run, 16) == Ok(self.scenario.run)).then_some(())?;
        if connection == self.connection {
            self.next = self.halved(number);
        }
        Some(Output::Seen(due))
    }

    /// A message is answered or has come back: it is done when both are true.
    fn halved(&mut self, number: u64) -> Option<Output> {
        let is_second = !self.half.insert(number);
        is_second.then(|| {
            self.half.remove(&number);
            Output::Done(number)
        })
    }
}

fn outcome<T, E: std::fmt::Display>(number: u64, result: Result<T, CallError<E>>) -> Output {
    match result {
        Ok(_) => Output::Done(number),
        Err(error) => Output::Failed(number, words(&error)),
    }
}

/// Says why a call has failed.
fn words<E: std::fmt::Display>(error: &CallError<E>) -> String {
    match error {
        CallError::Remote(error) => format!("error answer: {error}"),
        CallError::Closed { reason, .. } => why(reason),
        CallError::TimedOut { .. } => TIMED_OUT.to_owned(),
        other => other.to_string(),
    }
}

fn closed(reason: &CloseReason) -> Output {
    match reason {
        CloseReason::Authentication { message } | CloseReason::Refused { message, .. } => {
            Output::Refused(message.clone())
        }
        reason => Output::Closed(why(reason)),
    }
}

/// Says why a connection has ended.
fn why(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Local => "closed".to_owned(),
        CloseReason::Peer(frame) => format!("closed with {}", frame.code),
        CloseReason::Lost => "connection lost".to_owned(),
        CloseReason::Transport { message } => format!("connection lost: {message}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
