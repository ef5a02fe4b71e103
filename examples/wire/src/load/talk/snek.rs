//! Snek: questions for the user, and messages that come back to every member.

use std::collections::BTreeSet;
use std::sync::Arc;

use rpc_core::Json;
use rpc_core::encode::encode;
use serde::Serialize;
use snek_proto::frame::{Channel, ClientFrame, Event, ServerFrame};
use snek_proto::id::WireId;

use super::{Call, Caller, ClientEvent, Kind, Request, error_answer, limits, say};

const LOGIN: &str = "login";
const CHANNELS: &str = "channels";

pub(super) struct Client {
    caller: Arc<Caller>,
    kind: Kind,
    run: u64,
    connection: u64,
    channel: String,
    /// Calls whose answer, or whose message, has come; not both.
    half: BTreeSet<u64>,
}

impl Client {
    pub(super) const fn new(caller: Arc<Caller>, kind: Kind, run: u64, connection: u64) -> Self {
        Self {
            caller,
            kind,
            run,
            connection,
            channel: String::new(),
            half: BTreeSet::new(),
        }
    }

    fn answered(&mut self, id: &str, frame: ServerFrame, heard: &mut Vec<ClientEvent>) {
        match (id, frame.into_result()) {
            (LOGIN | CHANNELS, Err(error)) => {
                heard.push(ClientEvent::Refused(error.message().to_owned()));
            }
            (LOGIN, Ok(_)) if self.kind == Kind::Chat => {
                say(&request("get_channels", CHANNELS, ()), heard);
            }
            (LOGIN, Ok(_)) => heard.push(ClientEvent::Ready),
            (CHANNELS, Ok(answer)) => {
                let channels: Vec<Channel> = answer.parse().unwrap_or_default();
                let wanted = self.caller.channel.as_deref();
                let mut channels = channels.iter().map(|channel| channel.uid.as_ref());
                match channels.find(|uid: &&str| wanted.is_none_or(|wanted| wanted == *uid)) {
                    Some(uid) => {
                        self.channel = uid.to_owned();
                        heard.push(ClientEvent::Ready);
                    }
                    None => heard.push(ClientEvent::Refused("no such channel".to_owned())),
                }
            }
            (id, result) => {
                let Ok(number) = id.parse() else { return };
                match result {
                    Ok(_) if self.kind == Kind::Chat => self.halved(number, heard),
                    Ok(_) => heard.push(ClientEvent::Done(number)),
                    Err(error) => {
                        self.half.remove(&number);
                        heard.push(ClientEvent::Failed(number, error_answer(error.message())));
                    }
                }
            }
        }
    }

    /// Notes one half of a call: its answer, or its message.
    fn halved(&mut self, number: u64, heard: &mut Vec<ClientEvent>) {
        if !self.half.insert(number) {
            self.half.remove(&number);
            heard.push(ClientEvent::Done(number));
        }
    }

    /// Takes a message, if it is one of this run.
    fn pushed(&mut self, text: &str, heard: &mut Vec<ClientEvent>) {
        let Some((connection, number, due)) = self.read(text) else {
            return;
        };
        heard.push(ClientEvent::Seen(due));
        if connection == self.connection {
            self.halved(number, heard);
        }
    }

    fn read(&self, text: &str) -> Option<(u64, u64, u64)> {
        let (_, mark) = text.rsplit_once('#')?;
        let mut parts = mark.split('.');
        let run = u64::from_str_radix(parts.next()?, 16).ok()?;
        let mut next = || parts.next();
        let (connection, number, due) = (next()?, next()?, next()?);
        (run == self.run).then_some(())?;
        Some((
            connection.parse().ok()?,
            number.parse().ok()?,
            due.parse().ok()?,
        ))
    }
}

fn request(method: &str, id: &str, args: impl Serialize) -> ClientFrame {
    let mut frame = ClientFrame::new(method, Some(WireId::text(id)));
    if let Ok(args) = Json::of(&args)
        && !args.is_null()
    {
        frame.args = args;
    }
    frame
}

impl super::Client for Client {
    fn open(&mut self, heard: &mut Vec<ClientEvent>) {
        let args = (&self.caller.username, self.caller.password.expose());
        say(&request(LOGIN, LOGIN, args), heard);
    }

    fn call(&mut self, call: Call) -> Option<Request> {
        let id = call.number.to_string();
        let frame = match self.kind {
            Kind::Chat => {
                let Self {
                    run, connection, ..
                } = self;
                let due = call.due.as_nanos();
                let text = format!("{} #{run:x}.{connection}.{id}.{due}", self.caller.prompt);
                request("send_message", &id, (&self.channel, text, true))
            }
            _ => request("get_user", &id, [Option::<&str>::None]),
        };
        encode(&frame).ok().map(Request::Frame)
    }

    fn hear(&mut self, text: &str, heard: &mut Vec<ClientEvent>) {
        let Ok(frame) = ServerFrame::decode(text, &limits()) else {
            return heard.push(ClientEvent::Unreadable);
        };
        match frame.call_id() {
            Some(id) => {
                let id = id.as_text().map_or_else(|| id.get().to_owned(), Into::into);
                self.answered(&id, frame, heard);
            }
            None => match frame.into_event() {
                Some(Ok(Event::Message(message))) => self.pushed(&message.message, heard),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => heard.push(ClientEvent::Unreadable),
            },
        }
    }

    fn forget(&mut self, number: u64) -> bool {
        self.half.remove(&number);
        true
    }
}
