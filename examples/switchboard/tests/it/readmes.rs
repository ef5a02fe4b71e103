//! The programs of the READMEs and guides, each run against a server of this process, and the examples of the
//! documentation that are not run.

use std::env;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use acolyte_proto::error::AppError;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use connectonion_proto::auth::Signer;
use connectonion_proto::trust::TrustLevel;
use exoclaw_proto::net::MemoryBackend;
use smarthole_proto::hub::Input;
use smarthole_proto::router::Keywords;
use snek_proto::client::ClientConfig;
use snek_proto::frame::Final;
use snek_proto::net as snek;
use tokio::runtime::Runtime;

use crate::daemon_cli::Fixture;
use crate::programs::Running;
use crate::tree::{list, read, root, rust_files};

#[allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    clippy::print_stdout,
    reason = "programs for readers"
)]
mod written {
    include!(concat!(env!("OUT_DIR"), "/readmes.rs"));
}

const PROGRAM: &str = "README_PROGRAM";
const URL: &str = "README_URL";
/// Between two looks at whether a program is there.
const PAUSE: Duration = Duration::from_millis(10);

/// Where a program connects to, or listens.
pub(crate) fn url() -> String {
    env::var(URL).unwrap()
}

/// An agent that repeats what it is told.
struct Echo;

impl connectonion_proto::net::Agent for Echo {
    async fn run(
        &self,
        _: &connectonion_proto::net::Turn,
        prompt: connectonion_proto::net::Prompt,
    ) -> Result<connectonion_proto::net::Reply, connectonion_proto::net::AppError> {
        let text = format!("echo: {}", prompt.text);
        Ok(connectonion_proto::net::Reply::new(text))
    }
}

impl acolyte_proto::net::Agent for Echo {
    async fn run(
        &self,
        run: acolyte_proto::net::ChatReply,
        request: ChatRequest,
    ) -> Result<Reply, AppError> {
        let _ = run.text(&format!("echo: {}", request.message)).await;
        Ok(Reply {
            output_streamed: Some(true),
            ..Reply::new(request.message, request.model)
        })
    }

    async fn status(&self) -> Status {
        Status::new("echo", "")
    }
}

/// Runs the program that a test below has asked for. Otherwise there is nothing to do.
#[test]
fn the_program_of_a_test() {
    let Ok(name) = env::var(PROGRAM) else { return };
    let runtime = Runtime::new().unwrap();
    match &*name {
        "snek_1" => written::snek_1::main().unwrap(),
        "exoclaw_1" => written::exoclaw_1::main().unwrap(),
        "smarthole_1" => written::smarthole_1::main().unwrap(),
        "smarthole_guide_1" => written::smarthole_guide_1::main().unwrap(),
        "connectonion_1" => written::connectonion_1::main().unwrap(),
        "connectonion_guide_1" => runtime
            .block_on(written::connectonion_guide_1::host(Echo))
            .unwrap(),
        "acolyte_1" => written::acolyte_1::main().unwrap(),
        other => panic!("{other} is never run"),
    }
}

/// A program of a text, as a process of its own in an empty folder.
struct Program {
    running: Option<Running>,
    folder: PathBuf,
}

impl Program {
    fn start(name: &str, url: &str) -> Self {
        assert!(written::NAMES.contains(&name), "{name} is not written");
        let folder = env::temp_dir().join(format!("readme-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "readmes::the_program_of_a_test", "--nocapture"])
            .current_dir(&folder)
            .env(PROGRAM, name)
            .env(URL, url)
            .env("SNEK_PASSWORD", "secret")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let running = Some(Running::start(command));
        Self { running, folder }
    }

    /// What it said, once it has ended well.
    fn end(mut self) -> String {
        let (code, lines) = self.running.take().unwrap().end_with_lines();
        assert_eq!(code, Some(0), "{lines:#?}");
        lines.join("\n")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.running.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_exoclaw_has_its_answer() {
    let options = exoclaw_proto::net::ServerOptions::default();
    let backend = MemoryBackend::new();
    let server = exoclaw_proto::net::Server::bind("127.0.0.1:0", backend, options);
    let server = server.await.unwrap();
    let program = Program::start("exoclaw_1", &server.url());
    tokio::spawn(server.run());
    let said = tokio::task::spawn_blocking(|| program.end()).await.unwrap();
    assert!(said.contains("hi") && said.contains(" tokens)"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_acolyte_has_its_answer() {
    let options = acolyte_proto::net::ServerOptions::default();
    let server = acolyte_proto::net::Server::bind("127.0.0.1:0", Echo, options);
    let server = server.await.unwrap();
    let program = Program::start("acolyte_1", &server.url());
    tokio::spawn(server.run());
    let said = tokio::task::spawn_blocking(|| program.end()).await.unwrap();
    assert!(said.contains("echo: What is in this folder?"), "{said}");
}

#[test]
fn the_client_of_acolyte_has_the_answer_of_our_daemon() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let said = Program::start("acolyte_1", &server.url).end();
    assert!(said.contains("(done"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_connectonion_has_its_answer() {
    let key = Signer::from_seed(&[7; 32]);
    let options = connectonion_proto::net::ServerOptions::new(&key, TrustLevel::Open);
    let host = connectonion_proto::net::Server::bind("127.0.0.1:0", Echo, options);
    let host = host.await.unwrap();
    let url = format!("http://{}", host.local_addr());
    let program = Program::start("connectonion_1", &url);
    tokio::spawn(host.run());
    let said = tokio::task::spawn_blocking(|| program.end()).await.unwrap();
    assert!(said.contains("echo: Tidy up my notes."), "{said}");
}

#[test]
fn the_host_of_connectonion_answers() {
    // Free, and soon taken again.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = free.local_addr().unwrap();
    drop(free);
    let _program = Program::start("connectonion_guide_1", &address.to_string());
    let found = Runtime::new().unwrap().block_on(async {
        let url = format!("http://{address}");
        loop {
            match connectonion_proto::net::find(&url, None).await {
                Ok(found) => break found,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    });
    assert!(found.url.contains(&address.to_string()), "{found:?}");
}

/// A message is taken by a program that has registered as `notes`.
async fn notes_are_taken(name: &str) {
    let options = smarthole_proto::net::ServerOptions::default();
    let server = smarthole_proto::net::Server::bind("127.0.0.1:0", Keywords::new(), options);
    let server = server.await.unwrap();
    let runtime = server.runtime();
    let mut events = runtime.events();
    let _program = Program::start(name, &server.url());
    tokio::spawn(server.run());
    while runtime.clients().is_empty() {
        events.next().await;
    }
    let settled = runtime.ask(Input::text("notes: milk")).await.unwrap();
    assert!(settled.is_taken(), "{name}: {settled:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_of_smarthole_take_a_message() {
    notes_are_taken("smarthole_1").await;
    notes_are_taken("smarthole_guide_1").await;
}

/// A bot that is called `bot` greets whoever mentions it.
async fn a_bot_greets(name: &str, bot: &str) {
    let backend = snek::MemoryBackend::new().with_channel("general", "General");
    let backend = Arc::new(backend.open());
    let options = snek::ServerOptions::default();
    let server = snek::Server::bind("127.0.0.1:0", backend.clone(), options);
    let server = server.await.unwrap();
    let url = server.url();
    tokio::spawn(server.run());
    let config = ClientConfig::new("ann", "secret");
    let (ann, mut events, connection) = snek::connect_lazy(&url, config).unwrap();
    tokio::spawn(connection.run());
    ann.ready().await.unwrap();
    let _program = Program::start(name, &url);
    while !backend.is_online(bot) {
        tokio::time::sleep(PAUSE).await;
    }
    for text in [format!("@{bot} join"), format!("@{bot} hello")] {
        ann.send_message("general", &text, Final::Yes)
            .await
            .unwrap();
    }
    loop {
        let event = events.next().await.unwrap();
        if format!("{event:?}").contains("hi ann") {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bot_of_snek_greets() {
    a_bot_greets("snek_1", "mybot").await;
}

/// Programs of [`written`] that the tests above run.
const RUN: [&str; 7] = [
    "snek_1",
    "exoclaw_1",
    "smarthole_1",
    "smarthole_guide_1",
    "connectonion_1",
    "connectonion_guide_1",
    "acolyte_1",
];

#[test]
fn every_program_of_a_text_is_run() {
    assert_eq!(written::NAMES, RUN);
}

/// Examples that are compiled with the documentation and not run with it, and why.
const NOT_RUN: &[(&str, &str)] = &[(
    "connectonion-proto/src/net/cluster/mod.rs",
    "needs a NATS server",
)];

#[test]
fn every_example_is_run_or_says_why_not() {
    let mut found = Vec::new();
    for folder in ["rpc-core", "snek-proto", "exoclaw-proto", "smarthole-proto"]
        .into_iter()
        .chain([
            "connectonion-proto",
            "acolyte-proto",
            "examples/switchboard",
            "fuzz/bodies",
            "fuzz/testing",
        ])
    {
        let pages = list(&root().join(folder).join("src/guide")).into_iter();
        let pages = pages.filter(|path| path.extension().is_some_and(|end| end == "md"));
        for path in rust_files(&root().join(folder).join("src"))
            .into_iter()
            .chain(pages)
        {
            let fences = read(&path);
            let fences = fences
                .lines()
                .filter_map(|line| line.trim_start_matches([' ', '/', '!']).strip_prefix("```"));
            let skipped = ["no_run", "ignore", "compile_fail"];
            let skipped = fences.filter(|fence| skipped.iter().any(|word| fence.contains(word)));
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.extend(skipped.map(|_| name.clone()));
        }
    }
    let listed: Vec<_> = NOT_RUN.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, listed, "an example that nobody runs");
}
