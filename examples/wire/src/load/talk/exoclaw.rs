//! Exoclaw: pings, and chats that are streamed.

use std::sync::Arc;

use exoclaw_proto::frame::{Call as Method, ChatSend, Request, ServerFrame, StreamEvent, Token};
use exoclaw_proto::id::WireId;
use rpc_core::encode::encode;

use super::{Call, Caller, ClientEvent, Kind, error_answer, limits, say};

/// The channel and the account of the chats.
const NAME: &str = "load";

pub(super) struct Client {
    caller: Arc<Caller>,
    kind: Kind,
    /// The peer of the chats: a session for each connection.
    peer: String,
    /// The last call whose text has begun.
    begun: Option<u64>,
}

impl Client {
    pub(super) fn new(caller: Arc<Caller>, kind: Kind, run: u64, connection: u64) -> Self {
        Self {
            caller,
            kind,
            peer: format!("{run:x}-{connection}"),
            begun: None,
        }
    }
}

impl super::Client for Client {
    fn open(&mut self, heard: &mut Vec<ClientEvent>) {
        if let Some(token) = &self.caller.token {
            say(&Token::new(token.expose().as_str()), heard);
        }
    }

    fn call(&mut self, call: Call) -> Option<super::Request> {
        let method = match self.kind {
            Kind::Chat => {
                let mut chat = ChatSend::new(NAME, NAME, self.caller.prompt.as_str());
                chat.session.peer = Some(self.peer.as_str().into());
                Method::ChatSend(chat)
            }
            _ => Method::Ping,
        };
        let id = WireId::from_text(&call.number.to_string());
        let text = encode(&Request::new(id, method)).ok()?;
        Some(super::Request::Frame(text))
    }

    fn hear(&mut self, text: &str, heard: &mut Vec<ClientEvent>) {
        let Ok(frame) = ServerFrame::decode(text, &limits()) else {
            return heard.push(ClientEvent::Unreadable);
        };
        let number = frame.id().and_then(|id| id.parse::<u64>().ok());
        match (frame, number) {
            (ServerFrame::Hello(_), _) => heard.push(ClientEvent::Ready),
            (ServerFrame::AuthFailed { error, .. }, _) => {
                heard.push(ClientEvent::Refused(error.as_str().to_owned()));
            }
            (ServerFrame::Result { .. }, Some(number)) => heard.push(ClientEvent::Done(number)),
            (ServerFrame::Error { error, .. }, Some(number)) => {
                heard.push(ClientEvent::Failed(number, error_answer(&error)));
            }
            (ServerFrame::Stream { event, .. }, Some(number)) => match event {
                StreamEvent::Text(text) if !text.is_empty() && self.begun != Some(number) => {
                    self.begun = Some(number);
                    heard.push(ClientEvent::First(number));
                }
                StreamEvent::Done => heard.push(ClientEvent::Done(number)),
                StreamEvent::Error(error) => {
                    heard.push(ClientEvent::Failed(number, error_answer(&error)));
                }
                _ => {}
            },
            _ => heard.push(ClientEvent::Unreadable),
        }
    }
}
