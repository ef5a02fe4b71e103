//! `ExoclawClient`: chats with a gateway.

use exoclaw_proto::client::{ClientConfig, ClientEvent};
use exoclaw_proto::error::RpcError;
use exoclaw_proto::net::{connect_with, dialer};
use rpc_core::{CallError, Delivery, Str};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use super::js::{Options, Outcome, Remote, Until, members, object, parse, read, write};
use super::stream::{Source, Stream};
use super::{Common, client};

client!(ExoclawClient, exoclaw_proto);

impl Remote for RpcError {}

impl ExoclawClient {
    fn event(&self, event: ClientEvent) -> Option<Outcome> {
        match event {
            ClientEvent::GatewayError(error) => {
                Some(Ok(object([("error", error.to_string().into())])))
            }
            _ => None,
        }
    }
}

/// The next step of a chat.
pub(crate) async fn next(chat: &mut Option<exoclaw_proto::net::Chat>) -> Option<Outcome> {
    match chat.as_mut()?.next().await? {
        Ok(event) => Some(write(&event)),
        Err(error) => Some(Err(error.into())),
    }
}

/// The text that is left of a chat, and its usage.
pub(crate) async fn result(chat: &mut Option<exoclaw_proto::net::Chat>) -> Outcome {
    let Some(chat) = chat else {
        let delivery = Delivery::Unknown;
        return Err(CallError::<RpcError>::Cancelled { delivery }.into());
    };
    let text = chat.finish().await?;
    let usage = chat.summary().map(|it| it.usage).unwrap_or_default();
    Ok(object([("text", text.into()), ("usage", write(&usage)?)]))
}

#[wasm_bindgen]
impl ExoclawClient {
    /// Connects to a gateway, and logs in if there is a token.
    pub async fn connect(url: String, options: JsValue) -> Outcome<ExoclawClient> {
        let options = Options::new(&options);
        let common = Common::take(&options)?;
        let defaults = ClientConfig::default();
        let text = |name| Outcome::Ok(options.text(name)?.map(Str::from));
        let chat_idle_timeout = options.milliseconds("idleTimeout")?;
        let mut config = ClientConfig {
            token: options.text("token")?.map(Into::into),
            channel: text("channel")?.unwrap_or(defaults.channel),
            account: text("account")?.unwrap_or(defaults.account),
            peer: text("peer")?,
            call_timeout: common.call_timeout.unwrap_or(defaults.call_timeout),
            chat_idle_timeout: chat_idle_timeout.or(defaults.chat_idle_timeout),
            insecure: common.insecure,
            ..ClientConfig::default()
        };
        options.watch(&mut config.link)?;
        let (client, events, connection) = connect_with(dialer(&url, &config)?, config);
        common.start(connection).await?;
        Ok(Self::new(client, events))
    }

    /// Sends a message to the model. Resolves once it is sent.
    pub async fn chat(&self, content: JsValue, options: JsValue) -> Outcome<Stream> {
        let until = Until::of(&options)?;
        let chat = match content.as_string() {
            Some(text) => self.client.chat(text).await,
            None => self.client.chat_send(read(&content, "content")?).await,
        };
        Ok(Stream::new(Source::Exoclaw(Some(chat)), until))
    }

    pub async fn call(&self, method: String, params: JsValue, options: JsValue) -> Outcome {
        let until = Until::of(&options)?;
        let params = members(params, "params")?;
        parse(until.wait(self.client.call(&method, &params)).await?.get())
    }
}
