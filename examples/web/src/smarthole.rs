//! `SmartHoleClient`: takes messages from a router.

use std::cell::RefCell;
use std::collections::HashMap;

use rpc_core::{Delivery, Str};
use smarthole_proto::client::{ClientConfig, ClientEvent};
use smarthole_proto::error::RegistrationError;
use smarthole_proto::frame::{Answer, Registration};
use smarthole_proto::id::MessageId;
use smarthole_proto::net::{Event, InboundMessage, connect_with, dialer};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use super::js::{Failure, Options, Outcome, parse, read};
use super::{Common, client};

client!(
    SmartHoleClient,
    smarthole_proto,
    RefCell<HashMap<MessageId, InboundMessage>>
);

impl From<RegistrationError> for Failure {
    fn from(error: RegistrationError) -> Self {
        Self::new(&error, &error.code, false, Delivery::NotSent)
    }
}

impl SmartHoleClient {
    fn event(&self, event: Event) -> Option<Outcome> {
        match event {
            ClientEvent::Message(message) => {
                let frame = parse(message.frame().get());
                let mut open = self.kept.borrow_mut();
                open.insert(message.id.clone(), message);
                Some(frame)
            }
            ClientEvent::Overdue { id } => {
                self.kept.borrow_mut().remove(&id);
                None
            }
            _ => None,
        }
    }
}

#[wasm_bindgen]
impl SmartHoleClient {
    /// Connects to a router and registers; after a lost connection once more.
    pub async fn connect(url: String, options: JsValue) -> Outcome<SmartHoleClient> {
        let options = Options::new(&options);
        let common = Common::take(&options)?;
        let mut registration =
            Registration::new(options.required("name")?, options.required("description")?);
        registration.version = options.text("version")?.map(Str::from);
        if let Some(capabilities) = options.take("capabilities")? {
            registration.capabilities = read(&capabilities, "capabilities")?;
        }
        let mut config = ClientConfig::new(registration)?;
        options.watch(&mut config.link)?;
        let (client, events, connection) = connect_with(dialer(&url, &config)?, config);
        common.start(connection).await?;
        Ok(Self::new(client, events))
    }

    /// Responds to a message, by its id. There may be several responses: an `ack` at once, and a
    /// `notification` when the work is done.
    pub async fn respond(&self, id: String, answer: JsValue) -> Outcome<()> {
        let id = MessageId::from(id);
        let answer: Answer = read(&answer, "answer")?;
        let message = self.kept.borrow_mut().remove(&id);
        match message {
            // It waits for the next connection if there is none.
            Some(message) => message.respond(answer).await?,
            None => self.client.respond(id, answer).await?,
        }
        Ok(())
    }
}
