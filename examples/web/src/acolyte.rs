//! `AcolyteClient`: chats with a coding agent.

use acolyte_proto::auth::ApiKey;
use acolyte_proto::client::{ChatUpdate, ClientConfig, ClientEvent, Outcome as Ended};
use acolyte_proto::error::RpcError;
use acolyte_proto::frame::{Answer, ChatRequest};
use acolyte_proto::id::TaskId;
use acolyte_proto::net::{Chat, connect_with, dialer};
use rpc_core::Retry;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use super::js::{Failure, Options, Outcome, Remote, Until, object, parse, read, write};
use super::stream::{Source, Stream};
use super::{Common, client};

client!(AcolyteClient, acolyte_proto);

impl Remote for RpcError {}

impl AcolyteClient {
    fn event(&self, event: ClientEvent) -> Option<Outcome> {
        match event {
            ClientEvent::ServerError(error) => {
                Some(Ok(object([("error", error.to_string().into())])))
            }
            ClientEvent::Unknown { raw, .. } => Some(parse(raw.get())),
            _ => None,
        }
    }
}

/// How a chat has ended, without its reply.
fn failure(ended: &Ended) -> Failure {
    let delivery = ended.delivery();
    match ended {
        Ended::NotSent(refused) => refused.clone().into(),
        Ended::Closed { reason, .. } => {
            Failure::new(ended, reason, reason.retry() != Retry::Never, delivery)
        }
        _ => Failure::new(
            ended,
            ended,
            matches!(ended, Ended::TimedOut { .. }),
            delivery,
        ),
    }
}

/// The next update of a chat, as the server sends it.
pub(crate) async fn next(chat: &mut Chat) -> Option<Outcome> {
    loop {
        let answer = match chat.next().await? {
            ChatUpdate::Accepted { task_id } => Answer::Accepted(task_id),
            ChatUpdate::Queued { position } => Answer::Queued(position),
            ChatUpdate::Started => Answer::Started,
            ChatUpdate::Event(event) => Answer::Event(event),
            ChatUpdate::Unknown { raw, .. } => return Some(parse(raw.get())),
            ChatUpdate::Ended(Ended::Done(_)) => return None,
            ChatUpdate::Ended(ended) => return Some(Err(failure(&ended))),
            _ => continue,
        };
        return Some(write(&answer));
    }
}

pub(crate) async fn result(chat: &mut Chat) -> Outcome {
    match chat.finish().await {
        Ended::Done(reply) => write(&*reply),
        ended => Err(failure(&ended)),
    }
}

#[wasm_bindgen]
impl AcolyteClient {
    /// Connects to a server.
    pub async fn connect(url: String, options: JsValue) -> Outcome<AcolyteClient> {
        let options = Options::new(&options);
        let common = Common::take(&options)?;
        let defaults = ClientConfig::default();
        let chat_idle_timeout = options.milliseconds("idleTimeout")?;
        let key = options.text("apiKey")?.map(ApiKey::new).transpose();
        let mut config = ClientConfig {
            api_key: key.map_err(|why| Failure::invalid("apiKey", why))?,
            call_timeout: common.call_timeout.unwrap_or(defaults.call_timeout),
            chat_idle_timeout: chat_idle_timeout.or(defaults.chat_idle_timeout),
            insecure: common.insecure,
            ..defaults
        };
        options.watch(&mut config.link)?;
        let (client, events, connection) = connect_with(dialer(&url, &config)?, config);
        common.start(connection).await?;
        Ok(Self::new(client, events))
    }

    /// Starts a chat. Resolves once it is sent. To leave its loop aborts it.
    pub async fn chat(&self, request: JsValue, options: JsValue) -> Outcome<Stream> {
        let until = Until::of(&options)?;
        let request: ChatRequest = read(&request, "request")?;
        let chat = self.client.chat(request).await;
        Ok(Stream::new(Source::Acolyte(chat), until))
    }

    /// Requests the server's status.
    pub async fn status(&self, options: JsValue) -> Outcome {
        write(&*Until::of(&options)?.wait(self.client.status()).await?)
    }

    /// Requests the state of a task: what became of a chat whose connection was lost. `null` if the
    /// server does not know it.
    #[wasm_bindgen(js_name = taskStatus)]
    pub async fn task_status(&self, id: String, options: JsValue) -> Outcome {
        let until = Until::of(&options)?;
        let id: TaskId = id.parse().map_err(|why| Failure::invalid("id", why))?;
        write(&until.wait(self.client.task_status(&id)).await?)
    }
}
