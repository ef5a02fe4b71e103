//! [`Codec`]: writes the calls of a connection as frames of its protocol, and reads which answer completes which call.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::time::SystemTime;

use acolyte_proto::frame as acolyte;
use connectonion_proto::auth::{Draft, Signer, unix_seconds};
use connectonion_proto::frame as connectonion;
use exoclaw_proto::frame as exoclaw;
use rpc_core::encode::encode;
use rpc_core::testing::Side;
use rpc_core::{Json, Text};
use serde::Serialize;
use smarthole_proto::frame as smarthole;
use snek_proto::frame as snek;

use super::scenario::{Kind, Scenario};
use super::stats::Call;
use crate::Protocol;
use crate::frame::{Frame, member, text_of};

const NAME: &str = "load";
const LOGIN: &str = "login";
const CHANNELS: &str = "channels";
const MODEL: &str = "rpc_model";

/// What follows from a frame of the server, or from the opening.
#[derive(Debug)]
pub(crate) enum Output {
    /// Calls may begin.
    Ready,
    /// The server does not want this client.
    Refused(String),
    /// This is to be sent.
    Send(Text),
    /// A call has its answer.
    Done(u64),
    /// The answer of a call begins.
    First(u64),
    /// A call has failed.
    Failed(u64, String),
    /// A message that was due at this time, in nanoseconds, has come to this connection.
    Seen(u64),
    /// It cannot be read.
    Unreadable,
}

/// How a call is made.
#[derive(Debug)]
pub(super) enum Request {
    /// By a frame.
    Frame(Text),
    /// By a text that is posted over HTTP.
    Post(String),
}

/// The codec of one connection: it knows the calls that answers have no ids for.
pub(crate) struct Codec {
    scenario: Scenario,
    connection: u64,
    /// The Snek channel, the ConnectOnion session, or the Acolyte model.
    target: String,
    /// Calls in their order, where answers have no ids.
    waiting: VecDeque<u64>,
    /// Snek messages that are answered, or have come back, but not both.
    half: BTreeSet<u64>,
    begun: Option<u64>,
}

fn error_answer(words: &str) -> String {
    format!("error answer: {words}")
}

fn send(frame: &impl Serialize) -> Output {
    match encode(frame) {
        Ok(text) => Output::Send(text),
        Err(error) => Output::Refused(error.to_string()),
    }
}

fn snek_call(method: &str, id: &str, args: impl Serialize) -> snek::ClientFrame {
    let mut frame = snek::ClientFrame::new(method, Some(snek_proto::id::WireId::text(id)));
    frame.args = Json::of(&args).unwrap_or(frame.args);
    frame
}

impl Codec {
    pub(crate) fn new(scenario: &Scenario, connection: u64) -> Self {
        Self {
            scenario: scenario.clone(),
            connection,
            target: scenario.caller.model.clone().unwrap_or_default(),
            waiting: VecDeque::new(),
            half: BTreeSet::new(),
            begun: None,
        }
    }

    /// Returns a name of this connection alone.
    fn name(&self) -> String {
        format!("{NAME}-{:x}-{}", self.scenario.run, self.connection)
    }

    /// Returns what is said first, or that nothing is.
    pub(crate) fn open(&self) -> Option<Output> {
        let caller = &self.scenario.caller;
        match self.scenario.protocol {
            Protocol::Snek => {
                let args = (&caller.username, caller.password.expose());
                Some(send(&snek_call(LOGIN, LOGIN, args)))
            }
            Protocol::Exoclaw => {
                let token = caller.token.as_ref()?;
                Some(send(&exoclaw::Token::new(token.expose().as_str())))
            }
            Protocol::SmartHole => {
                let words = "Takes what a load test says.";
                Some(send(
                    &smarthole::Registration::new(self.name(), words).frame(),
                ))
            }
            Protocol::ConnectOnion => Some(match self.signed() {
                Ok(signed) => send(&connectonion::ClientFrame::Connect(
                    connectonion::Connect::new(signed),
                )),
                Err(error) => Output::Refused(error),
            }),
            Protocol::Acolyte => Some(match MODEL.parse() {
                Ok(id) if self.scenario.kind == Kind::Chat && self.target.is_empty() => {
                    send(&acolyte::ClientFrame::new(id, acolyte::Request::StatusGet))
                }
                _ => Output::Ready,
            }),
        }
    }

    fn signed(&self) -> Result<connectonion::Signed, String> {
        let caller = &self.scenario.caller;
        let signer = caller.key.clone().map_or_else(Signer::generate, Ok);
        let signer = signer.map_err(|error| error.to_string())?;
        let nonce = (u128::from(self.scenario.run) << 64) + u128::from(self.connection);
        let mut draft = Draft::new(unix_seconds(SystemTime::now())).with_nonce(nonce);
        if let Some(host) = &caller.host {
            draft = draft.with_to(host);
        }
        let signed = signer.sign_payload(&draft);
        signed.map_err(|error| error.to_string())
    }

    /// Begins a call; `None` if it cannot be written.
    pub(super) fn call(&mut self, call: Call) -> Option<Request> {
        let Scenario { caller, run, .. } = &self.scenario;
        let (is_chat, prompt) = (self.scenario.kind == Kind::Chat, caller.prompt.as_str());
        let (id, connection) = (call.number.to_string(), self.connection);
        let text = match self.scenario.protocol {
            Protocol::Snek if is_chat => {
                let due = call.due.as_nanos();
                let text = format!("{prompt} #{run:x}.{connection}.{id}.{due}");
                encode(&snek_call("send_message", &id, (&self.target, text, true)))
            }
            Protocol::Snek => encode(&snek_call("get_user", &id, [Option::<&str>::None])),
            Protocol::Exoclaw => {
                let method = if is_chat {
                    let mut chat = exoclaw::ChatSend::new(NAME, NAME, prompt);
                    chat.session.peer = Some(format!("{run:x}-{connection}").as_str().into());
                    exoclaw::Call::ChatSend(chat)
                } else {
                    exoclaw::Call::Ping
                };
                let id = exoclaw_proto::id::WireId::from_text(&id);
                encode(&exoclaw::Request::new(id, method))
            }
            Protocol::SmartHole => {
                return Some(Request::Post(format!("{}: call {id}", self.name())));
            }
            Protocol::ConnectOnion => {
                self.waiting.push_back(call.number);
                let session = self.target.as_str();
                encode(&match is_chat {
                    true => connectonion::ClientFrame::Input(connectonion::Input::new(prompt)),
                    false => connectonion::ClientFrame::SessionQuery(
                        connectonion::SessionQuery::new(session),
                    ),
                })
            }
            Protocol::Acolyte => {
                let chat = || acolyte::ChatRequest::new(prompt, self.target.as_str());
                let method = match is_chat {
                    true => acolyte::Request::ChatStart(Box::new(chat())),
                    false => acolyte::Request::StatusGet,
                };
                let id = format!("rpc_{id}").parse().ok()?;
                encode(&acolyte::ClientFrame::new(id, method))
            }
        };
        text.ok().map(Request::Frame)
    }

    /// Forgets a call that takes too long. Returns whether the connection can be used further.
    pub(super) fn forget(&mut self, number: u64) -> bool {
        self.half.remove(&number);
        // The server works on, and the next prompt would wait, or be taken for a word in between.
        let is_alone = matches!(
            self.scenario.protocol,
            Protocol::ConnectOnion | Protocol::Acolyte
        );
        !(is_alone && self.scenario.kind == Kind::Chat)
    }

    /// Reads a frame of the server.
    pub(crate) fn decode(&mut self, text: &str, outputs: &mut Vec<Output>) {
        let protocol = self.scenario.protocol;
        let Some(frame) = Frame::new(protocol, Side::Server, text).filter(|it| it.kind != "?")
        else {
            return outputs.push(Output::Unreadable);
        };
        let words = |paths: &[&[&str]]| {
            let found = paths.iter().find_map(|path| text_of(text, path));
            found.map_or_else(|| "no reason".to_owned(), Cow::into_owned)
        };
        let id = frame.id.as_deref().unwrap_or_default();
        let number = id.strip_prefix("rpc_").unwrap_or(id).parse::<u64>();
        let failed = |number, words: String| Output::Failed(number, error_answer(&words));
        match (protocol, &*frame.kind, number) {
            (Protocol::Snek, "answer", number) => {
                let refusal = (frame.raw("success") == Some("false"))
                    .then(|| words(&[&["data", "error"], &["error"], &["data"]]));
                outputs.extend(self.snek_answer(id, number.ok(), text, refusal));
            }
            (Protocol::Snek, "message", _) => {
                let message = text_of(text, &["message"]).unwrap_or_default();
                if let Some((connection, number, due)) = self.mark(&message) {
                    outputs.push(Output::Seen(due));
                    if connection == self.connection {
                        outputs.extend(self.halved(number));
                    }
                }
            }
            (Protocol::Exoclaw, "hello", _) | (Protocol::SmartHole, "registration_response", _)
                if member(text, &["payload", "success"]) != Some("false") =>
            {
                outputs.push(Output::Ready);
            }
            (Protocol::SmartHole, "registration_response", _) => {
                outputs.push(Output::Refused(words(&[
                    &["payload", "code"],
                    &["payload", "message"],
                ])));
            }
            (Protocol::SmartHole, "message", _) => {
                let answer = smarthole::Response::new(id, smarthole::Answer::Ack);
                outputs.push(send(&smarthole::ClientFrame::Response(answer)));
                let message = text_of(text, &["payload", "text"]).unwrap_or_default();
                let number = message
                    .rsplit_once("call ")
                    .map(|(_, number)| number.parse());
                outputs.extend(number.and_then(Result::ok).map(Output::Done));
            }
            (Protocol::Exoclaw, "error", Err(_)) => {
                outputs.push(Output::Refused(words(&[&["error"]])));
            }
            (Protocol::Exoclaw, "error", Ok(number)) => {
                outputs.push(failed(number, words(&[&["error"], &["data"]])));
            }
            (Protocol::Exoclaw, "text", Ok(number)) => {
                let is_text = frame.raw("data").is_some_and(|it| it != "\"\"");
                outputs.extend(self.first(number).filter(|_| is_text));
            }
            (Protocol::ConnectOnion, "CONNECTED", _) => {
                self.target = words(&[&["session_id"]]);
                outputs.push(Output::Ready);
            }
            (Protocol::ConnectOnion, "PING", _) => {
                outputs.push(send(&connectonion::ClientFrame::Pong));
            }
            (Protocol::ConnectOnion, "ONBOARD_REQUIRED", _) => {
                outputs.push(Output::Refused("onboarding is required".to_owned()));
            }
            (Protocol::ConnectOnion, "OUTPUT" | "SESSION_STATUS", _) => {
                self.begun = None;
                outputs.extend(self.waiting.pop_front().map(Output::Done));
            }
            (Protocol::ConnectOnion, "ERROR", _) => {
                self.begun = None;
                let words = words(&[&["message"], &["error"]]);
                outputs.push(match self.waiting.pop_front() {
                    Some(number) => failed(number, words),
                    None => Output::Refused(words),
                });
            }
            (Protocol::ConnectOnion, "assistant" | "assistant_delta", _) => {
                let number = self.waiting.front().copied();
                outputs.extend(number.and_then(|number| self.first(number)));
            }
            (Protocol::Acolyte, "status.result", _) if id == MODEL => {
                self.target = words(&[&["status", "model"]]);
                outputs.push(Output::Ready);
            }
            (Protocol::Acolyte, _, Err(_)) if id == MODEL => {
                outputs.push(Output::Refused(words(&[&["error"]])));
            }
            (Protocol::Acolyte | Protocol::Exoclaw, _, Err(_)) => outputs.push(Output::Unreadable),
            (Protocol::Exoclaw, "result" | "done", Ok(number))
            | (Protocol::Acolyte, "status.result" | "chat.done", Ok(number)) => {
                outputs.push(Output::Done(number));
            }
            (Protocol::Acolyte, "chat.event/text-delta", Ok(number)) => {
                outputs.extend(self.first(number));
            }
            (Protocol::Acolyte, "chat.error" | "error", Ok(number)) => {
                outputs.push(failed(
                    number,
                    words(&[&["error", "code"], &["error", "message"], &["error"]]),
                ));
            }
            _ => {}
        }
    }

    /// Notes the first text of a call.
    fn first(&mut self, number: u64) -> Option<Output> {
        (self.begun.replace(number) != Some(number)).then_some(Output::First(number))
    }

    fn snek_answer(
        &mut self,
        id: &str,
        number: Option<u64>,
        text: &str,
        refusal: Option<String>,
    ) -> Option<Output> {
        let is_chat = self.scenario.kind == Kind::Chat;
        Some(match (id, refusal) {
            (LOGIN | CHANNELS, Some(why)) => Output::Refused(why),
            (LOGIN, None) if is_chat => send(&snek_call("get_channels", CHANNELS, [(); 0])),
            (LOGIN, None) => Output::Ready,
            (CHANNELS, None) => {
                let channels = member(text, &["data"]).unwrap_or("[]");
                let channels: Vec<snek::Channel> =
                    serde_json::from_str(channels).unwrap_or_default();
                let wanted = self.scenario.caller.channel.as_deref();
                let mut channels = channels.iter().map(|channel| channel.uid.as_ref());
                match channels.find(|uid: &&str| wanted.is_none_or(|wanted| wanted == *uid)) {
                    Some(uid) => {
                        self.target = uid.to_owned();
                        Output::Ready
                    }
                    None => Output::Refused("no such channel".to_owned()),
                }
            }
            (_, None) if is_chat => return self.halved(number?),
            (_, None) => Output::Done(number?),
            (_, Some(why)) => {
                self.half.remove(&number?);
                Output::Failed(number?, error_answer(&why))
            }
        })
    }

    /// A message is answered or has come back: it is done when both are true.
    fn halved(&mut self, number: u64) -> Option<Output> {
        let is_second = !self.half.insert(number);
        is_second.then(|| {
            self.half.remove(&number);
            Output::Done(number)
        })
    }

    /// Returns connection, number and due time of a message of this run.
    fn mark(&self, text: &str) -> Option<(u64, u64, u64)> {
        let (_, mark) = text.rsplit_once('#')?;
        let (run, mark) = mark.split_once('.')?;
        let numbers: Vec<u64> = mark.split('.').map_while(|it| it.parse().ok()).collect();
        let is_own = u64::from_str_radix(run, 16) == Ok(self.scenario.run);
        let [connection, number, due] = *numbers.first_chunk()?;
        is_own.then_some((connection, number, due))
    }
}

#[cfg(test)]
mod tests;
