//! `SnekClient`: a user of a chat.

use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::error::RpcError;
use snek_proto::frame::{Event, Final};
use snek_proto::net::{connect_with, dialer};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use super::js::{Options, Outcome, Remote, Until, members, parse, read, write};
use super::{Common, client};

client!(SnekClient, snek_proto);

impl Remote for RpcError {}

impl SnekClient {
    fn event(&self, event: ClientEvent) -> Option<Outcome> {
        let event = match event {
            ClientEvent::Message(message) => Event::Message(message),
            ClientEvent::SetTyping(data) => Event::SetTyping { data },
            ClientEvent::Joined(data) => Event::Join { data },
            ClientEvent::Left(data) => Event::Leave { data },
            ClientEvent::Unknown(other) => Event::Unknown(other),
            _ => return None,
        };
        Some(write(&event))
    }
}

#[wasm_bindgen]
impl SnekClient {
    /// Connects and logs in.
    pub async fn connect(url: String, options: JsValue) -> Outcome<SnekClient> {
        let options = Options::new(&options);
        let common = Common::take(&options)?;
        let username = options.required("username")?;
        let mut config = ClientConfig::new(username, options.required("password")?);
        config.insecure = common.insecure;
        config.call_timeout = common.call_timeout.unwrap_or(config.call_timeout);
        options.watch(&mut config.link)?;
        let (client, events, connection) = connect_with(dialer(&url, &config)?, config);
        common.start(connection).await?;
        Ok(Self::new(client, events))
    }

    /// Posts a message. With `final: false` it is the text so far of one that grows.
    #[wasm_bindgen(js_name = sendMessage)]
    pub async fn send_message(&self, channel: String, text: String, options: JsValue) -> Outcome {
        let options = Options::new(&options);
        let is_final = options.flag("final")?.unwrap_or(true);
        let is_final = if is_final { Final::Yes } else { Final::No };
        let sent = self.client.send_message(&channel, &text, is_final);
        parse(options.until()?.wait(sent).await?.data().get())
    }

    /// Fetches the channels that the user can see.
    #[wasm_bindgen(js_name = getChannels)]
    pub async fn get_channels(&self, options: JsValue) -> Outcome {
        let channels = self.client.get_channels();
        write(&Until::of(&options)?.wait(channels).await?)
    }

    /// Calls any method.
    pub async fn call(
        &self,
        method: String,
        args: JsValue,
        kwargs: JsValue,
        options: JsValue,
    ) -> Outcome {
        let args: Option<Vec<rpc_core::Json>> = read(&args, "args")?;
        let (args, kwargs) = (args.unwrap_or_default(), members(kwargs, "kwargs")?);
        let called = self.client.call(&method, &args, &kwargs);
        parse(Until::of(&options)?.wait(called).await?.data().get())
    }
}
