//! ConnectOnion: questions for the session, and prompts until their output.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use connectonion_proto::auth::{Draft, Signer, unix_seconds};
use connectonion_proto::frame::{
    ClientFrame, Connect, EventKind, Input, ServerFrame, SessionQuery, Signed,
};
use rpc_core::encode::encode;

use super::{Call, Caller, ClientEvent, Kind, Request, error_answer, limits, say};

pub(super) struct Client {
    caller: Arc<Caller>,
    kind: Kind,
    nonce: u128,
    session: String,
    /// Calls without an answer; answers come in their order.
    waiting: VecDeque<u64>,
    /// Whether the text of the first one has begun.
    has_begun: bool,
}

impl Client {
    pub(super) fn new(caller: Arc<Caller>, kind: Kind, run: u64, connection: u64) -> Self {
        Self {
            caller,
            kind,
            nonce: (u128::from(run) << 64) + u128::from(connection),
            session: String::new(),
            waiting: VecDeque::new(),
            has_begun: false,
        }
    }

    fn signed(&self) -> Result<Signed, String> {
        let signer = match &self.caller.key {
            Some(key) => key.clone(),
            None => Signer::generate().map_err(|error| error.to_string())?,
        };
        let now = unix_seconds(SystemTime::now());
        let mut draft = Draft::new(now).with_nonce(self.nonce);
        if let Some(host) = &self.caller.host {
            draft = draft.with_to(host);
        }
        signer
            .sign_payload(&draft)
            .map_err(|error| error.to_string())
    }

    fn answered(&mut self) -> Option<u64> {
        self.has_begun = false;
        self.waiting.pop_front()
    }
}

impl super::Client for Client {
    fn open(&mut self, heard: &mut Vec<ClientEvent>) {
        match self.signed() {
            Ok(signed) => say(&ClientFrame::Connect(Connect::new(signed)), heard),
            Err(error) => heard.push(ClientEvent::Refused(error)),
        }
    }

    fn call(&mut self, call: Call) -> Option<Request> {
        let frame = match self.kind {
            Kind::Chat => ClientFrame::Input(Input::new(self.caller.prompt.as_str())),
            _ => ClientFrame::SessionQuery(SessionQuery::new(self.session.as_str())),
        };
        let text = encode(&frame).ok()?;
        self.waiting.push_back(call.number);
        Some(Request::Frame(text))
    }

    fn hear(&mut self, text: &str, heard: &mut Vec<ClientEvent>) {
        match ServerFrame::decode(text, &limits()) {
            Ok(ServerFrame::Connected(connected)) => {
                connected.session_id.as_str().clone_into(&mut self.session);
                heard.push(ClientEvent::Ready);
            }
            Ok(ServerFrame::Ping) => say(&ClientFrame::Pong, heard),
            Ok(ServerFrame::OnboardRequired(_)) => {
                heard.push(ClientEvent::Refused("onboarding is required".to_owned()));
            }
            Ok(ServerFrame::Output(_) | ServerFrame::SessionStatus(_)) => {
                heard.extend(self.answered().map(ClientEvent::Done));
            }
            Ok(ServerFrame::Error(error)) => match self.answered() {
                Some(number) => {
                    heard.push(ClientEvent::Failed(number, error_answer(&error.message)));
                }
                None => heard.push(ClientEvent::Refused(error.message.as_str().to_owned())),
            },
            Ok(ServerFrame::Event(event)) => {
                let is_text = matches!(
                    event.kind,
                    EventKind::Assistant(_) | EventKind::AssistantDelta(_)
                );
                if is_text && !self.has_begun {
                    self.has_begun = true;
                    heard.extend(self.waiting.front().copied().map(ClientEvent::First));
                }
            }
            Ok(_) => {}
            Err(_) => heard.push(ClientEvent::Unreadable),
        }
    }

    fn forget(&mut self, _number: u64) -> bool {
        // The host works on, and would take the next prompt for a word in between.
        self.kind != Kind::Chat
    }
}
