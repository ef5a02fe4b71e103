//! SmartHole: texts that the router passes to the client that they name.

use rpc_core::encode::encode;
use smarthole_proto::frame::{
    Answer, ClientFrame, Registration, RegistrationResponse, Response, ServerFrame,
};

use super::{Call, ClientEvent, Request, limits, say};

/// Where routers take the texts of users.
const INPUT: &str = "/input";

pub(super) struct Client {
    name: String,
}

impl Client {
    pub(super) fn new(run: u64, connection: u64) -> Self {
        Self {
            name: format!("load-{run:x}-{connection}"),
        }
    }
}

/// What a client says of itself.
pub(super) fn registration(name: &str) -> Registration {
    Registration::new(name, "Takes what a load test says.")
}

impl super::Client for Client {
    fn open(&mut self, heard: &mut Vec<ClientEvent>) {
        say(&registration(&self.name).frame(), heard);
    }

    fn call(&mut self, call: Call) -> Option<Request> {
        let body = format!("{}: call {}", self.name, call.number);
        Some(Request::Post { path: INPUT, body })
    }

    fn hear(&mut self, text: &str, heard: &mut Vec<ClientEvent>) {
        match ServerFrame::decode(text, &limits()) {
            Ok(ServerFrame::RegistrationResponse(RegistrationResponse::Accepted { .. })) => {
                heard.push(ClientEvent::Ready);
            }
            Ok(ServerFrame::RegistrationResponse(RegistrationResponse::Refused {
                code,
                message,
            })) => {
                let code = code.map(|code| code.name().to_owned());
                let message = message.map(|message| message.as_str().to_owned());
                heard.push(ClientEvent::Refused(code.or(message).unwrap_or_default()));
            }
            Ok(ServerFrame::Message(message)) => {
                let answer = Response::new(message.id.clone(), Answer::Ack);
                match encode(&ClientFrame::Response(answer)) {
                    Ok(text) => heard.push(ClientEvent::Say(text)),
                    Err(_) => heard.push(ClientEvent::Unreadable),
                }
                let number = message.text.rsplit_once("call ");
                if let Some(number) = number.and_then(|(_, number)| number.parse().ok()) {
                    heard.push(ClientEvent::Done(number));
                }
            }
            Ok(_) => {}
            Err(_) => heard.push(ClientEvent::Unreadable),
        }
    }
}
