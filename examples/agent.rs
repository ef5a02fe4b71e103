//! A host of the ConnectOnion protocol: `cargo run -p examples --bin agent -- --bind 127.0.0.1:8000`, then
//! `cargo run -p switchboard -- agent chat`, or ConnectOnion's own clients.
//!
//! It asks before it uses its tool, goes on while a client is away, and keeps its sessions: a client that comes back,
//! also after a restart, finds its question and its answers. They and its key are in `--folder FOLDER`, by default
//! `~/.agent/example`.
//!
//! Left out: its model is [`think`] of `src/lib.rs`. Everyone may connect (`TrustLevel::Open`).
#![allow(clippy::print_stdout)]

use std::env::home_dir;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::Json;
use connectonion_proto::auth::Signer;
use connectonion_proto::frame::{ApprovalNeeded, EventKind, Thinking, ToolCall};
use connectonion_proto::net::{Agent, AppError, Prompt, Reply, Server, ServerOptions, Turn};
use connectonion_proto::storage::{FileConfig, FileStore};
use connectonion_proto::trust::TrustLevel;
use examples::{Failure, Step, cannot, options, stopped, think, tool};

/// How many steps a model may take for one answer.
const MAX_STEPS: usize = 8;

/// The agent. One `run` is one prompt and its answer.
pub(crate) struct Assistant;

impl Agent for Assistant {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        let (mut prompt, mut results) = (prompt.text.to_string(), Vec::new());
        for step in 0..MAX_STEPS {
            // What the user has said meanwhile.
            for more in turn.next_inputs()? {
                prompt = more.text.to_string();
                results.clear();
            }
            turn.emit(EventKind::Thinking(Thinking::new("one moment")))?;
            // A real model gets `turn.messages()`, the conversation so far.
            let (name, argument) = match think(&prompt, &results) {
                Step::Say(pieces) => return Ok(Reply::new(pieces.concat())),
                Step::Tool { name, argument } => (name, argument),
            };
            // The question stays until someone answers it, over lost connections.
            let arguments = Json::string(&argument);
            let question = ApprovalNeeded::new(name, arguments.clone(), "");
            let approval = turn.approve(question).await?;
            if !approval.approved {
                results.push("the user does not allow it".to_owned());
                continue;
            }
            let call = ToolCall::new(format!("call-{step}"), name, arguments);
            // It takes its time: interrupt it, or leave and come back.
            let work = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                tool(name, &argument)
            };
            // Tells the clients of the call and of its result.
            let outcome = turn.tool(call, work).await?;
            results.push(outcome.unwrap_or_else(|why| why));
            if turn.is_interrupted() {
                return Ok(Reply::interrupted());
            }
        }
        Err(AppError::failed("the model has taken too many steps"))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let known = [("--bind", "127.0.0.1:8000"), ("--folder", "")];
    let [address, folder] = options(include_str!("agent.rs"), known);
    let folder = match (&*folder, home_dir()) {
        ("", Some(home)) => home.join(".agent/example"),
        _ => PathBuf::from(folder),
    };
    // Its key is its address: clients know the agent by it.
    let key = Signer::load_or_generate(folder.join("agent.key"))?;
    let sessions = FileStore::open(&folder.join("sessions.redb"), FileConfig::default());
    let sessions = sessions.map_err(cannot("keep sessions in", folder.display()))?;
    let mut options = ServerOptions::new(&key, TrustLevel::Open);
    options.name = "assistant".to_owned();
    options.runtime.store = Some(Arc::new(sessions));
    options.runtime.uploads = folder.join("uploads");
    let server = Server::bind(&address, Assistant, options).await;
    let server = server.map_err(cannot("listen on", address))?;
    println!("agent {} at {}", key.address(), server.url());
    server.run_until(stopped()?, Duration::from_secs(5)).await;
    Ok(())
}
