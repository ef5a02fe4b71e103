//! The third hop, Exoclaw: a gateway whose model has two tools, a coding agent and a herald.

use std::sync::Arc;
use std::time::Duration;

use acolyte_proto::client::{ChatUpdate, Outcome};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net as acolyte;
use async_trait::async_trait;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::net::{
    Client, Server, ServerHandle, ServerOptions, connect_with, dialer, link_config,
};
use futures_util::FutureExt;
use rpc_core::Secret;
use serde_json::{Map, Value, json};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};
use switchboard::cli::Failure;
use switchboard::gateway::backend::GatewayBackend;
use switchboard::gateway::config::AgentConfig;
use switchboard::gateway::engine::{Engine, EngineParts};
use switchboard::gateway::store::{EmbeddedStore, Keeper, StoreLimits};
use switchboard::gateway::tool::{Tool, ToolOutput, Tools};
use switchboard::screen::exoclaw::Frames;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::channel::News;
use super::hop::Hop;
use super::script::Script;
use crate::tour::patience::in_time;

/// What clients have to show.
const TOKEN: &str = "open barley, please";

/// A tool: gives work to the coding agent, and returns what comes of it.
struct Code {
    definition: ToolDefinition,
    client: acolyte::Client,
}

#[async_trait]
impl Tool for Code {
    fn name(&self) -> &str {
        self.definition.name()
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        Some(&self.definition)
    }

    async fn call(&self, input: &str) -> ToolOutput {
        let request = ChatRequest::new(argument(input), "script");
        let mut chat = self.client.start_chat(request).await;
        while let Some(update) = chat.next().await {
            match update {
                ChatUpdate::Ended(Outcome::Done(reply)) => return ToolOutput::new(reply.output),
                ChatUpdate::Ended(outcome) => return ToolOutput::failed(&outcome.to_string()),
                _ => {}
            }
        }
        ToolOutput::failed("the chat has no end")
    }
}

/// A tool: has the bot tell something in its channel.
struct Announce {
    definition: ToolDefinition,
    news: mpsc::Sender<News>,
}

#[async_trait]
impl Tool for Announce {
    fn name(&self) -> &str {
        self.definition.name()
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        Some(&self.definition)
    }

    async fn call(&self, input: &str) -> ToolOutput {
        let (told, posted) = oneshot::channel();
        let text = argument(input);
        let given = self.news.send(News { text, told }).await;
        match (given, posted.await) {
            (Ok(()), Ok(())) => ToolOutput::new("the channel knows"),
            _ => ToolOutput::failed("the herald is gone"),
        }
    }
}

/// What a tool with one argument is given.
fn argument(input: &str) -> String {
    let arguments: Map<String, Value> = serde_json::from_str(input).unwrap_or_default();
    let text = arguments.get("text").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn definition(name: &str, what: &str) -> ToolDefinition {
    ToolDefinition::new(name, what).param(Param::new("text", ParamType::String))
}

/// The gateway, and the agent's client of it.
pub(super) struct Gateway {
    client: Client,
    engine: Arc<Engine>,
    server: JoinHandle<()>,
    handle: ServerHandle,
}

/// Opens it.
pub(super) async fn open(
    hop: &Hop,
    daemon: acolyte::Client,
    news: mpsc::Sender<News>,
) -> Result<Gateway, Failure> {
    let mut tools = Tools::new();
    let code = Code {
        definition: definition("code", "Has a coding agent do some work."),
        client: daemon,
    };
    let announce = Announce {
        definition: definition("announce", "Tells everybody in the channel."),
        news,
    };
    tools.add(Arc::new(code)).map_err(Failure::new)?;
    tools.add(Arc::new(announce)).map_err(Failure::new)?;
    let script = Script {
        steps: &[
            ("code", |asked| json!({ "text": asked })),
            (
                "announce",
                |done| json!({ "text": format!("News! {done}") }),
            ),
        ],
        answer: |said| format!("It is done: {}.", said.join(", and ")),
        pause: None,
    };
    let store = EmbeddedStore::in_memory(StoreLimits::default()).map_err(Failure::new)?;
    let store = Keeper::start(Arc::new(store)).map_err(Failure::new)?;
    let parts = EngineParts::new(AgentConfig::default(), Arc::new(script), tools, store);
    let engine = Arc::new(Engine::start(parts).await.map_err(Failure::new)?);
    let auth = Auth::token(Secret::from(TOKEN)).map_err(Failure::new)?;
    let options = ServerOptions::new(auth);
    let backend = GatewayBackend::new(Arc::clone(&engine), false);
    let server = Server::bind("127.0.0.1:0", backend, options)
        .await
        .map_err(Failure::new)?;
    let (url, handle) = (server.url(), server.handle());
    hop.event(&format!("listens on {url}"));
    let server = tokio::spawn(server.run().map(drop));

    let mut config = ClientConfig::new(TOKEN);
    config.account = "agent".into();
    let dialer = dialer(&url, &config).map_err(Failure::new)?;
    let link = link_config().with_observer(hop.line(hop.name, Frames::default()));
    let (client, _, connection) = connect_with(dialer, config, link);
    tokio::spawn(connection.run());
    in_time("the gateway's hello", client.ready())
        .await?
        .map_err(Failure::new)?;
    Ok(Gateway {
        client,
        engine,
        server,
        handle,
    })
}

impl Gateway {
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) async fn close(self, within: Duration) -> Result<(), Failure> {
        self.client.drain(within).await;
        self.handle.drain(within).await;
        let ended = in_time("the end of the gateway", self.server).await?;
        self.engine.close().await;
        ended.map_err(Failure::new)
    }
}
