//! The second hop, ConnectOnion: an agent that asks the gateway and keeps a diary, over a line that can be
//! cut.

use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::auth::Signer;
use connectonion_proto::frame::{Approval, ApprovalNeeded, Rejection, Scope};
use connectonion_proto::net::{
    AgentOptions, Client, Human, Server, ServerHandle, ServerOptions, connect_with, dialer,
};
use connectonion_proto::storage::MemoryStorage;
use connectonion_proto::trust::TrustLevel;
use exoclaw_proto::net::Client as Gateway;
use rpc_core::backoff::BackoffPolicy;
use rpc_core::reconnect::ReconnectPolicy;
use serde_json::{Value, json};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};
use switchboard::agent::tools::{WRITE_FILE, tools};
use switchboard::agent::{Folder, Worker};
use switchboard::cli::Failure;
use switchboard::screen::connectonion::Frames;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::cable::Cable;
use super::hop::Hop;
use super::script::Script;
use crate::tour::patience::in_time;
use crate::tour::temp_dir::TempDir;

/// How long until a lost line is dialled again: nobody would wait for the usual second here.
const BACK: Duration = Duration::from_millis(20);
const DIARY: &str = "diary.txt";

/// Whoever answers the agent's questions: it may keep its diary, and nothing else.
struct Owner;

impl Human for Owner {
    async fn approve(&self, tool: &ApprovalNeeded) -> Approval {
        let arguments = tool.arguments.as_ref().map_or("", |json| json.get());
        if tool.tool == WRITE_FILE && arguments.contains(DIARY) {
            Approval::granted(Scope::Once)
        } else {
            Approval::refused(Rejection::Hard)
        }
    }
}

/// An agent somewhere else, as the router's client has it.
#[derive(Clone)]
pub(super) struct Remote {
    agent: Client,
}

impl Remote {
    /// What the agent answers, or why it does not.
    pub(super) async fn asks(&self, text: &str) -> Result<String, String> {
        let mut run = self.agent.input(text).await;
        let ended = run.complete(&Owner).await;
        let output = ended.map_err(|error| error.to_string())?;
        Ok(output.result.to_string())
    }
}

/// The agent, and the line to it.
pub(super) struct Agent {
    remote: Remote,
    plug: watch::Sender<bool>,
    place: TempDir,
    server: JoinHandle<()>,
    handle: ServerHandle,
}

/// Opens it.
pub(super) async fn open(hop: &Hop, gateway: Gateway) -> Result<Agent, Failure> {
    let place = TempDir::new("diary")?;
    let folder = Folder::open(place.path()).map_err(Failure::new)?;
    // Tools are functions on threads of their own, so they may wait.
    let runtime = Handle::current();
    let tools = tools(Some(&folder)).with(
        ToolDefinition::new("gateway", "Asks a gateway that can have code written.")
            .param(Param::new("question", ParamType::String)),
        Arc::new(move |arguments, _| {
            let question = arguments.get("question").and_then(Value::as_str);
            let question = question.unwrap_or_default();
            let answer = async { gateway.chat(question).await.text().await };
            let answer = runtime.block_on(answer);
            answer.map(Value::from).map_err(|error| error.to_string())
        }),
    );
    let script = Script {
        steps: &[
            ("gateway", |asked| json!({ "question": asked })),
            (
                WRITE_FILE,
                |answer| json!({ "path": DIARY, "text": answer }),
            ),
        ],
        answer: |said| said.first().cloned().unwrap_or_default(),
        pause: None,
    };
    let key = Signer::from_seed(&[5; 32]);
    let worker = Worker::new(Arc::new(script), "script", tools);
    let mut options = ServerOptions::new(&key, TrustLevel::Open);
    options.runtime.storage = Arc::new(MemoryStorage::new(1));
    let host = Server::bind("127.0.0.1:0", worker, options)
        .await
        .map_err(Failure::new)?;
    let (url, handle) = (host.url(), host.handle());
    hop.event(&format!("listens on {url}"));
    let server = tokio::spawn(async move {
        host.run().await;
    });

    let mut options = AgentOptions::default();
    let soon = ReconnectPolicy::new(BackoffPolicy::new(BACK, 1.0));
    let shown = hop.line(hop.name, Frames);
    options.link.reconnect = soon;
    options.host = Some(*key.address());
    options.link.driver.observer = Some(shown);
    let (cable, plug) = Cable::new(dialer(&url, &options).map_err(Failure::new)?);
    let (agent, _, connection) = connect_with(cable, Signer::from_seed(&[6; 32]), options);
    tokio::spawn(connection.run());
    in_time("a line to the agent", agent.ready())
        .await?
        .map_err(Failure::new)?;
    Ok(Agent {
        remote: Remote { agent },
        plug,
        place,
        server,
        handle,
    })
}

impl Agent {
    pub(super) fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Cuts the line, as a network does, and it stays so.
    pub(super) fn cut(&self) {
        self.plug.send_replace(false);
        self.remote.agent.cut();
    }

    /// Lets the line come back.
    pub(super) fn mend(&self) {
        self.plug.send_replace(true);
    }

    /// What the agent has written down.
    pub(super) fn diary(&self) -> Result<String, Failure> {
        self.place.read(DIARY)
    }

    pub(super) async fn close(self, within: Duration) -> Result<(), Failure> {
        self.remote.agent.drain(within).await;
        self.handle.drain(within).await;
        in_time("the end of the agent", self.server)
            .await?
            .map_err(Failure::new)
    }
}
