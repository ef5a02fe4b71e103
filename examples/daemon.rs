//! A coding agent of the Acolyte protocol: `cargo run -p examples --bin daemon -- --bind 127.0.0.1:6767 --folder .`,
//! then `cargo run -p switchboard -- daemon chat --yes`, or Acolyte's own command line. It asks for a key if
//! `ACOLYTE_API_KEY` has one.
//!
//! It reads, writes and deletes files in one folder, out of which no path and no link leads, and does not ask before.
//! Chats wait in a queue; an aborted one starts nothing more.
//!
//! Left out: it runs no commands, which would need a sandbox, and its model is [`think`] of `src/lib.rs`.
#![allow(clippy::print_stdout)]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use acolyte_proto::Json;
use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::error::AppError;
use acolyte_proto::event::ToolCall;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{Agent, ChatReply, Server, ServerOptions};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use examples::{Failure, Step, cannot, options, stopped, think};

/// The name of the model.
const MODEL: &str = "scripted";
/// How many steps a model may take for one answer.
const MAX_STEPS: usize = 8;
/// The bytes of a file that the model is shown.
const MAX_READ: u64 = 64 * 1024;

/// The agent, and the folder in which it works.
pub(crate) struct Coder {
    /// Paths are resolved inside it, links too: the system refuses what leads out.
    pub(crate) folder: Dir,
    pub(crate) name: String,
}

impl Agent for Coder {
    async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        let (mut answer, mut results) = (String::new(), Vec::new());
        for step in 0..MAX_STEPS {
            // A real model gets `request.history` as well.
            let (name, argument) = match think(&request.message, &results) {
                Step::Say(pieces) => {
                    for piece in pieces {
                        // Waits while the client reads slowly; fails once the chat is aborted.
                        if run.text(&piece).await.is_err() {
                            break;
                        }
                        answer.push_str(&piece);
                        tokio::task::yield_now().await;
                    }
                    break;
                }
                Step::Tool { name, argument } => (name, argument),
            };
            let call = ToolCall::new(format!("call-{step}"), name, Json::string(&argument));
            // Tells the client of the call and of its result.
            let work = async {
                let done = self.tool(name, &argument);
                done.map_err(|error| AppError::failed(error.to_string()))
            };
            match run.tool(call, work).await {
                Ok(Ok(result)) => results.push(result),
                Ok(Err(error)) => results.push(format!("failed: {error}")), // the model is told
                Err(_) => break,                                            // aborted
            }
        }
        Ok(Reply {
            output_streamed: Some(true),
            ..Reply::new(answer, MODEL)
        })
    }

    async fn status(&self) -> Status {
        Status::new(MODEL, &*self.name)
    }
}

impl Coder {
    /// Runs a tool. It is short: a longer one looks at [`ChatReply::is_cancelled`] between its steps.
    fn tool(&self, name: &str, argument: &str) -> io::Result<String> {
        let (path, text) = argument.split_once(' ').unwrap_or((argument, ""));
        match name {
            "read" => {
                let mut found = Vec::new();
                let file = self.folder.open(path)?;
                file.take(MAX_READ).read_to_end(&mut found)?;
                let mut text = String::from_utf8_lossy(&found).into_owned();
                if found.len() as u64 == MAX_READ {
                    text.push_str("\n(the rest is not shown)");
                }
                Ok(text)
            }
            "write" => {
                // Whole or not at all, also if the program is killed meanwhile. Nothing has the draft's name.
                let draft = format!("{path}.{:x}", RandomState::new().hash_one(path));
                let mut options = OpenOptions::new();
                options.write(true).create_new(true);
                let mut file = self.folder.open_with(&draft, &options)?;
                let written = file.write_all(text.as_bytes());
                let written = written.and_then(|()| self.folder.rename(&draft, &self.folder, path));
                written.inspect_err(|_| drop(self.folder.remove_file(&draft)))?;
                Ok(format!("{path} has {} bytes", text.len()))
            }
            "delete" => {
                self.folder.remove_file(path)?;
                Ok(format!("{path} is gone"))
            }
            other => Err(io::Error::other(format!("there is no tool {other:?}"))),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let known = [("--bind", "127.0.0.1:6767"), ("--folder", ".")];
    let [address, name] = options(include_str!("daemon.rs"), known);
    let folder = Dir::open_ambient_dir(&name, ambient_authority());
    let folder = folder.map_err(cannot("open", &name))?;
    let auth = match std::env::var("ACOLYTE_API_KEY") {
        Ok(key) => Auth::key(ApiKey::new(key)?),
        Err(_) => Auth::open(), // this machine only: `bind` refuses other addresses
    };
    let agent = Coder { folder, name };
    let server = Server::bind(&address, agent, ServerOptions::new(auth)).await;
    let server = server.map_err(cannot("listen on", address))?;
    println!("daemon at {}", server.url());
    server.run_until(stopped()?, Duration::from_secs(5)).await;
    Ok(())
}
