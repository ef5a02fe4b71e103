//! Acolyte: questions for status and tasks, and chats until they are done.

use std::sync::Arc;

use acolyte_proto::event::Event;
use acolyte_proto::frame::{Answer, ChatRequest, ClientFrame, Request as Method, ServerFrame};
use acolyte_proto::id::{RpcId, TaskId};
use rpc_core::encode::encode;

use super::{Call, Caller, ClientEvent, Kind, Request, error_answer, limits, say};

/// The question for the model of the chats.
const MODEL: &str = "rpc_model";
/// A task that no server has.
const TASK: &str = "task_load";

pub(super) struct Client {
    caller: Arc<Caller>,
    kind: Kind,
    model: Option<String>,
    /// The last call whose text has begun.
    begun: Option<u64>,
}

impl Client {
    pub(super) fn new(caller: Arc<Caller>, kind: Kind) -> Self {
        let model = caller.model.clone();
        Self {
            caller,
            kind,
            model,
            begun: None,
        }
    }
}

impl super::Client for Client {
    fn open(&mut self, heard: &mut Vec<ClientEvent>) {
        match MODEL.parse::<RpcId>() {
            Ok(id) if self.kind == Kind::Chat && self.model.is_none() => {
                say(&ClientFrame::new(id, Method::StatusGet), heard);
            }
            _ => heard.push(ClientEvent::Ready),
        }
    }

    fn call(&mut self, call: Call) -> Option<Request> {
        let id = format!("rpc_{}", call.number).parse::<RpcId>().ok()?;
        let method = match self.kind {
            Kind::Echo | Kind::Connect => Method::StatusGet,
            Kind::Task => Method::TaskStatus(TASK.parse::<TaskId>().ok()?),
            Kind::Chat => {
                let model = self.model.as_deref().unwrap_or_default();
                let chat = ChatRequest::new(self.caller.prompt.as_str(), model);
                Method::ChatStart(Box::new(chat))
            }
        };
        let text = encode(&ClientFrame::new(id, method)).ok()?;
        Some(Request::Frame(text))
    }

    fn hear(&mut self, text: &str, heard: &mut Vec<ClientEvent>) {
        let Ok(frame) = ServerFrame::decode(text, &limits()) else {
            return heard.push(ClientEvent::Unreadable);
        };
        if frame.id.as_str() == MODEL {
            return heard.push(match frame.answer {
                Answer::Status(status) => {
                    self.model = Some(status.model.as_str().to_owned());
                    ClientEvent::Ready
                }
                Answer::Error(refusal) => ClientEvent::Refused(refusal.error.as_str().to_owned()),
                _ => ClientEvent::Unreadable,
            });
        }
        let number = frame.id.as_str().strip_prefix("rpc_");
        let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) else {
            return heard.push(ClientEvent::Unreadable);
        };
        match frame.answer {
            Answer::Status(_) | Answer::TaskStatus(_) | Answer::Done(_) => {
                heard.push(ClientEvent::Done(number));
            }
            Answer::Event(Event::TextDelta(_)) if self.begun != Some(number) => {
                self.begun = Some(number);
                heard.push(ClientEvent::First(number));
            }
            Answer::Failed(error) => {
                let words = error.code.as_ref().unwrap_or(&error.message);
                heard.push(ClientEvent::Failed(number, error_answer(words)));
            }
            Answer::Error(refusal) => {
                heard.push(ClientEvent::Failed(number, error_answer(&refusal.error)));
            }
            _ => {}
        }
    }

    fn forget(&mut self, _number: u64) -> bool {
        // A chat that goes on keeps the next ones waiting.
        self.kind != Kind::Chat
    }
}
