//! [`Client`]: the client of one of five protocols on one connection, as a machine: it logs in, makes calls, and sends
//! frames by hand. What moves its frames is a [`Driver`](rpc_core::net::Driver).

use std::collections::VecDeque;
use std::fmt::Display;

use acolyte_proto::client::{self as acolyte, ChatUpdate, Outcome};
use acolyte_proto::event::Event;
use acolyte_proto::frame::ChatRequest;
use connectonion_proto::client as connectonion;
use connectonion_proto::frame::EventKind::{Assistant, AssistantDelta};
use connectonion_proto::frame::Input;
use exoclaw_proto::client as exoclaw;
use exoclaw_proto::frame::{ChatSend, StreamEvent};
use rpc_core::{
    CallError, CallId, CloseFrame, CloseReason, ConnectErrorKind, Disconnect, Incoming, Instant,
    Machine, Outgoing, Refused, Text,
};
use smarthole_proto::client as smarthole;
use smarthole_proto::frame::Answer;
use snek_proto::client as snek;
use snek_proto::frame::{Final, NoKwargs};

use crate::Protocol;
use crate::load::scenario::{Kind, NAME, Scenario};

/// The machine of a client.
pub(crate) struct Client {
    conn: Conn,
    scenario: Scenario,
    /// A name of this connection alone.
    pub(crate) name: String,
    /// The Snek channel, the ConnectOnion session, or the Acolyte model.
    target: String,
    /// The ConnectOnion run.
    run: u64,
    by_hand: VecDeque<Text>,
}

enum Conn {
    Snek(snek::ClientConn),
    Exoclaw(exoclaw::ClientConn),
    SmartHole(smarthole::ClientConn),
    ConnectOnion(connectonion::ClientConn),
    Acolyte(acolyte::ClientConn),
}

macro_rules! each {
    ($conn:expr, $it:ident => $does:expr) => {
        match $conn {
            Conn::Snek($it) => $does,
            Conn::Exoclaw($it) => $does,
            Conn::SmartHole($it) => $does,
            Conn::ConnectOnion($it) => $does,
            Conn::Acolyte($it) => $does,
        }
    };
}

/// What has happened on a connection. Calls have the numbers of their ids.
#[derive(Debug)]
pub(crate) enum Happened {
    /// Calls may begin.
    Ready,
    /// The first text of a call may have come.
    Text(u64),
    /// A call has ended.
    Ended(u64, Result<(), String>),
    /// A message has come that a call has caused, with this text.
    Message(String),
    /// Whatever was asked first has failed.
    Failed(&'static str),
    /// The connection has ended.
    Closed(CloseReason),
    Nothing,
}

impl Client {
    /// Creates the client of a connection, which logs in at once.
    ///
    /// # Errors
    /// What it would say is not valid.
    pub(crate) fn new(
        scenario: &Scenario,
        name: String,
        seed: u64,
        now: Instant,
    ) -> Result<Self, String> {
        let conn = match scenario.protocol {
            Protocol::Snek => Conn::Snek(snek::ClientConn::new(scenario.snek(), seed, now)),
            Protocol::Exoclaw => {
                Conn::Exoclaw(exoclaw::ClientConn::new(scenario.exoclaw(), seed, now))
            }
            Protocol::SmartHole => {
                let config = scenario.smarthole(name.clone())?;
                Conn::SmartHole(smarthole::ClientConn::new(config, now))
            }
            Protocol::ConnectOnion => {
                let (config, connect) = (scenario.connectonion(), scenario.connect(seed)?);
                let conn = connectonion::ClientConn::new(config, &connect, seed, now);
                Conn::ConnectOnion(conn)
            }
            Protocol::Acolyte => {
                Conn::Acolyte(acolyte::ClientConn::new(scenario.acolyte()?, seed, now))
            }
        };
        Ok(Self {
            conn,
            scenario: scenario.clone(),
            name,
            target: String::new(),
            run: 0,
            by_hand: VecDeque::new(),
        })
    }

    /// Sends a text as it is.
    pub(crate) fn send(&mut self, text: Text) {
        self.by_hand.push_back(text);
    }

    /// Makes a call, and returns the number of its id. `mark` stands behind the text of a message.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub(crate) fn call(&mut self, mark: &str, now: Instant) -> Result<u64, String> {
        let is_chat = self.scenario.kind == Kind::Chat;
        let prompt = &*self.scenario.caller.prompt;
        let id = match &mut self.conn {
            Conn::Snek(conn) if is_chat => {
                let text = format!("{prompt} {mark}");
                number(conn.send_message(&*self.target, &text, Final::Yes, now))
            }
            Conn::Snek(conn) => number(conn.call("get_user", &[()], &NoKwargs {}, now)),
            Conn::Exoclaw(conn) if is_chat => {
                let mut chat = ChatSend::new(NAME, NAME, prompt);
                chat.session.peer = Some(self.name.as_str().into());
                number(conn.chat_send(&chat, now))
            }
            Conn::Exoclaw(conn) => number(conn.ping(now)),
            // It is called by a post.
            Conn::SmartHole(_) => Ok(0),
            Conn::ConnectOnion(conn) if is_chat => {
                let id = number(conn.input(&Input::new(prompt), now));
                self.run = *id.as_ref().unwrap_or(&0);
                id
            }
            Conn::ConnectOnion(conn) => number(conn.query(&*self.target, now)),
            Conn::Acolyte(conn) if is_chat => {
                number(conn.chat(&ChatRequest::new(prompt, &*self.target), now))
            }
            Conn::Acolyte(conn) => number(conn.status(now)),
        };
        id.map_err(|error| error.to_string())
    }

    fn snek(&mut self, event: snek::ClientEvent) -> Happened {
        use snek::ClientEvent::{Closed, Message, Ready, Reply, Warning};
        match event {
            Ready(ready) => {
                let wanted = self.scenario.caller.channel.as_deref();
                let mut uids = ready.channels.into_iter().map(|it| it.uid.to_string());
                let uid = uids.find(|uid| wanted.is_none_or(|wanted| wanted == uid));
                if uid.is_none() && self.scenario.kind == Kind::Chat {
                    return Happened::Failed("refused: no such channel");
                }
                self.target = uid.unwrap_or_default();
                Happened::Ready
            }
            Reply { id, result } => Happened::Ended(id.raw(), ended(result)),
            Message(message) => Happened::Message(message.message.to_string()),
            Warning(_) => UNREADABLE,
            Closed(reason) => Happened::Closed(reason),
            _ => Happened::Nothing,
        }
    }

    fn connectonion(&mut self, event: connectonion::ClientEvent) -> Happened {
        use connectonion::CallValue::Input;
        use connectonion::ClientEvent::{
            Closed, Connected, OnboardRequired, Reply, RunEnded, Step, Warning,
        };
        match event {
            Connected(connected) => {
                self.target = connected.session_id.to_string();
                Happened::Ready
            }
            OnboardRequired(_) => Happened::Failed("refused: onboarding is required"),
            Step(step) => match step.event.kind {
                Assistant(_) | AssistantDelta(_) => Happened::Text(self.run),
                _ => Happened::Nothing,
            },
            Reply {
                result: Ok(Input(_)),
                ..
            } => Happened::Nothing,
            Reply { id, result } => Happened::Ended(id.raw(), ended(result)),
            RunEnded(result) => Happened::Ended(self.run, ended(result)),
            Warning(_) => UNREADABLE,
            Closed(reason) => Happened::Closed(reason),
            _ => Happened::Nothing,
        }
    }

    fn acolyte(&mut self, event: acolyte::ClientEvent) -> Happened {
        use acolyte::CallValue::Status;
        use acolyte::ClientEvent::{Chat, Closed, Ready, Reply, Warning};
        let is_chat = self.scenario.kind == Kind::Chat;
        match event {
            Ready => {
                let model = self.scenario.caller.model.clone();
                self.target = model.unwrap_or_default();
                // The server knows its own.
                match &mut self.conn {
                    Conn::Acolyte(conn) if is_chat && self.target.is_empty() => {
                        let asked = conn.status(Instant::now());
                        asked.map_or(UNREADABLE, |_| Happened::Nothing)
                    }
                    _ => Happened::Ready,
                }
            }
            Reply {
                result: Ok(Status(status)),
                ..
            } if is_chat => {
                self.target = status.model.to_string();
                Happened::Ready
            }
            Reply { id, result } => Happened::Ended(id.raw(), ended(result)),
            Chat { id, update } => match update {
                ChatUpdate::Event(Event::TextDelta(_)) => Happened::Text(id.raw()),
                ChatUpdate::Ended(outcome) => Happened::Ended(
                    id.raw(),
                    match outcome {
                        Outcome::Closed { reason, .. } => Err(why(&reason)),
                        outcome if outcome.is_done() => Ok(()),
                        outcome => Err(format!("error answer: {outcome}")),
                    },
                ),
                _ => Happened::Nothing,
            },
            Warning(_) => UNREADABLE,
            Closed(reason) => Happened::Closed(reason),
            _ => Happened::Nothing,
        }
    }
}

const UNREADABLE: Happened = Happened::Failed("unreadable answer");

fn exoclaw(event: exoclaw::ClientEvent) -> Happened {
    use exoclaw::ClientEvent::{Chat, ChatEnded, Closed, Ready, Reply, Warning};
    match event {
        Ready(_) => Happened::Ready,
        Reply { id, result } => Happened::Ended(id.raw(), ended(result)),
        Chat {
            id,
            event: StreamEvent::Text(text),
        } if !text.is_empty() => Happened::Text(id.raw()),
        ChatEnded { id, result } => Happened::Ended(id.raw(), ended(result)),
        Warning(_) => UNREADABLE,
        Closed(reason) => Happened::Closed(reason),
        _ => Happened::Nothing,
    }
}

fn smarthole(conn: &mut smarthole::ClientConn, event: smarthole::ClientEvent) -> Happened {
    use smarthole::ClientEvent::{Closed, Message, Registered, Warning};
    match event {
        Registered { .. } => Happened::Ready,
        Message(received) => match conn.respond(received.message.id, Answer::Ack) {
            Ok(()) => Happened::Message(received.message.text.to_string()),
            Err(_) => Happened::Nothing,
        },
        Warning(_) => UNREADABLE,
        Closed(reason) => Happened::Closed(reason),
        _ => Happened::Nothing,
    }
}

impl Machine for Client {
    type Event = Happened;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        each!(&mut self.conn, it => it.handle_message(message, now));
    }

    fn handle_disconnect(&mut self, why: Disconnect, now: Instant) {
        each!(&mut self.conn, it => it.handle_disconnect(why, now));
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(&mut self.conn, it => it.handle_timeout(now));
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        let own = each!(&mut self.conn, it => it.poll_transmit());
        own.or_else(|| self.by_hand.pop_front().map(Outgoing::Text))
    }

    fn poll_event(&mut self) -> Option<Happened> {
        Some(match &mut self.conn {
            Conn::Snek(conn) => {
                let event = conn.poll_event()?;
                self.snek(event)
            }
            Conn::Exoclaw(conn) => exoclaw(conn.poll_event()?),
            Conn::SmartHole(conn) => {
                let event = conn.poll_event()?;
                smarthole(conn, event)
            }
            Conn::ConnectOnion(conn) => {
                let event = conn.poll_event()?;
                self.connectonion(event)
            }
            Conn::Acolyte(conn) => {
                let event = conn.poll_event()?;
                self.acolyte(event)
            }
        })
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        each!(&self.conn, it => it.next_timeout())
    }

    fn is_closed(&self) -> bool {
        each!(&self.conn, it => it.is_closed())
    }

    fn wants_input(&self) -> bool {
        each!(&self.conn, it => it.wants_input())
    }

    fn close_with(&mut self, frame: CloseFrame, now: Instant) {
        each!(&mut self.conn, it => it.close_with(frame, now));
    }
}

fn number<F>(id: Result<CallId<F>, Refused>) -> Result<u64, Refused> {
    id.map(CallId::raw)
}

/// Returns how a call has ended, in words.
fn ended<T, E: Display>(result: Result<T, CallError<E>>) -> Result<(), String> {
    result.map(drop).map_err(|error| match error {
        CallError::Remote(error) => format!("error answer: {error}"),
        CallError::Closed { reason, .. } => why(&reason),
        other => other.to_string(),
    })
}

/// Says why a connection has ended.
pub(crate) fn why(reason: &CloseReason) -> String {
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
