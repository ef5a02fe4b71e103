//! Where to start, and what the example programs share: a scripted model and the lines of a person.
//!
//! # I want to write
//!
//! | I want to | Use | Read | Copy |
//! |---|---|---|---|
//! | write a chat bot | [`snek_proto::bot`] | [bots](../snek_proto/guide/index.html#bots) | `examples/bot.rs`; `cargo run -p snek-proto --example bot` |
//! | give a model tools | [`snek_proto::llm`] | [tools](../snek_proto/guide/index.html#language-models-tools-and-images) | `examples/bot.rs` |
//! | serve a chat platform | [`snek_proto::net::Backend`] | [server](../snek_proto/guide/index.html#server) | `cargo run -p snek-proto --example server` |
//! | serve a model to chat programs | [`exoclaw_proto::net::Backend`] | [server](../exoclaw_proto/guide/index.html#server) | `examples/gateway.rs` |
//! | chat with a gateway | [`exoclaw_proto::net::connect`] | [client](../exoclaw_proto/guide/index.html#client) | `cargo run -p exoclaw-proto --example stream` |
//! | host an agent that asks and is asked | [`connectonion_proto::net::Agent`] | [server](../connectonion_proto/guide/index.html#server) | `examples/agent.rs` |
//! | follow an agent over lost connections | [`connectonion_proto::net::connect`] | [client](../connectonion_proto/guide/index.html#client) | `cargo run -p connectonion-proto --example resume` |
//! | pass what a user says to programs | [`smarthole_proto::router`] | [server](../smarthole_proto/guide/index.html#server) | `examples/router.rs` |
//! | act on what a user says | [`smarthole_proto::plugin`] | [client](../smarthole_proto/guide/index.html#client) | `cargo run -p smarthole-proto --example plugin` |
//! | serve a coding agent | [`acolyte_proto::net::Agent`] | [server](../acolyte_proto/guide/index.html#server) | `examples/daemon.rs` |
//! | give work to a coding agent | [`acolyte_proto::net::connect`] | [client](../acolyte_proto/guide/index.html#client) | `cargo run -p acolyte-proto --example abort` |
//!
//! # With any of the protocols
//!
//! | I want to | Read | Copy, from the `examples/` of each crate |
//! |---|---|---|
//! | know what I can rely on | [reliability], then page by page | `client.rs`, `server.rs` |
//! | repeat a call that failed | [reconnects] | `client.rs` |
//! | serve inside axum | [servers] | `axum.rs` |
//! | open a server to other machines | [security], [limits] | `server.rs` |
//! | run several servers as one | [scale] | |
//! | run a client in a web page | [browser] | `examples/web` of the workspace |
//! | use a transport of my own | [testing] | `transport.rs` |
//! | drive a connection without tokio | [`Machine`] | `machine.rs` |
//! | test my program without a server | [testing] | |
//! | speak another protocol | [`adding_a_protocol`] | |
//!
//! [`snek_proto::bot`]: ../snek_proto/bot/index.html
//! [`snek_proto::llm`]: ../snek_proto/llm/index.html
//! [`snek_proto::net::Backend`]: ../snek_proto/net/trait.Backend.html
//! [`exoclaw_proto::net::Backend`]: ../exoclaw_proto/net/trait.Backend.html
//! [`exoclaw_proto::net::connect`]: ../exoclaw_proto/net/fn.connect.html
//! [`connectonion_proto::net::Agent`]: ../connectonion_proto/net/trait.Agent.html
//! [`connectonion_proto::net::connect`]: ../connectonion_proto/net/fn.connect.html
//! [`smarthole_proto::router`]: ../smarthole_proto/router/index.html
//! [`smarthole_proto::plugin`]: ../smarthole_proto/plugin/index.html
//! [`acolyte_proto::net::Agent`]: ../acolyte_proto/net/trait.Agent.html
//! [`acolyte_proto::net::connect`]: ../acolyte_proto/net/fn.connect.html
//! [reliability]: ../rpc_core/guide/reliability/index.html
//! [reconnects]: ../rpc_core/guide/reconnects/index.html
//! [servers]: ../rpc_core/guide/servers/index.html
//! [security]: ../rpc_core/guide/security/index.html
//! [limits]: ../rpc_core/guide/limits/index.html
//! [scale]: ../rpc_core/guide/scale/index.html
//! [browser]: ../rpc_core/guide/browser/index.html
//! [testing]: ../rpc_core/guide/testing/index.html
//! [`adding_a_protocol`]: ../rpc_core/guide/adding_a_protocol/index.html
//! [`Machine`]: ../rpc_core/trait.Machine.html
//!
//! # What the programs share
//!
//! Replace [`think`] by a request to your model: it gets the prompt, and says what to do next.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::fmt::{self, Display};
use std::future::Future;
use std::hash::BuildHasher as _;
use std::io::{BufRead as _, stdin};
use std::process::exit;

use tokio::sync::mpsc;

/// What a model does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It says this, a piece at a time.
    Say(Vec<String>),
    /// It wants the result of a tool, and is then asked again.
    Tool {
        /// The name of the tool.
        name: &'static str,
        /// Its argument.
        argument: String,
    },
}

/// A scripted model. `results` are those of the tools that it has asked for, in order.
///
/// - `roll 3` asks for the tool `roll`, `write FILE TEXT` for `write`, `read FILE` for `read`, and `delete FILE` for
///   `delete`; the answer names the result.
/// - `count 100` is a long answer.
/// - It repeats everything else.
#[must_use]
pub fn think(prompt: &str, results: &[String]) -> Step {
    let prompt = prompt.trim();
    let (word, rest) = prompt.split_once(' ').unwrap_or((prompt, ""));
    let name = match word.to_lowercase().as_str() {
        "roll" => "roll",
        "write" => "write",
        "read" => "read",
        "delete" => "delete",
        "count" => {
            let end = rest.parse().unwrap_or(10_u32).min(10_000);
            return Step::Say((1..=end).map(|number| format!("{number} ")).collect());
        }
        _ => return Step::Say(pieces(&format!("You said: {prompt}"))),
    };
    match results.last() {
        None => Step::Tool {
            name,
            argument: rest.to_owned(),
        },
        Some(result) => Step::Say(pieces(&format!("The result of {name}: {result}"))),
    }
}

/// The words of a text, as a model sends them.
fn pieces(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

/// The tool of three programs: rolls a die with this number of sides, 6 if there is none.
///
/// # Errors
/// The argument is not a number of sides. A model that gets this error may try again.
pub fn roll(argument: &str) -> Result<u64, String> {
    let text = argument.trim();
    let sides = if text.is_empty() { Ok(6) } else { text.parse() };
    match sides.map_err(|_| format!("{text:?} is not a number"))? {
        0 => Err("a die has at least one side".to_owned()),
        sides => Ok(RandomState::new().hash_one(0) % sides + 1),
    }
}

/// Runs a tool of two programs, which is [`roll`].
///
/// # Errors
/// There is no such tool, or its argument is wrong. A model that gets this error may try again.
pub fn tool(name: &str, argument: &str) -> Result<String, String> {
    match name {
        "roll" => roll(argument).map(|rolled| rolled.to_string()),
        other => Err(format!("there is no tool {other:?}")),
    }
}

/// How many tokens a text has, about.
#[must_use]
pub const fn tokens(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

/// The lines of standard input. They are read in a thread of their own: a read that waits must not keep a
/// program from its end.
#[must_use]
pub fn lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Returns a future that is ready at Ctrl-C, and on Unix at SIGTERM.
///
/// # Errors
/// The system gives no signals.
pub fn stopped() -> std::io::Result<impl Future<Output = ()> + Send> {
    #[cfg(unix)]
    let mut signals = {
        use tokio::signal::unix::{SignalKind, signal};
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        )
    };
    Ok(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = signals.0.recv() => {}
            _ = signals.1.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Why a program ends, as a sentence: `main` prints it.
pub struct Failure(String);

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says what has failed: `cannot listen on 127.0.0.1:80: Permission denied`.
pub fn cannot<E: Error>(what: &str, on: impl Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure(format!("cannot {what} {on}: {error}"))
}

/// Returns the values of the program's options. Each has a name and a default, and is given as `--name VALUE`.
///
/// `--help` prints the header of the program's source, and ends the program. So does a mistake, with exit code 2.
#[must_use]
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "for the user")]
pub fn options<const N: usize>(source: &str, known: [(&str, &str); N]) -> [String; N] {
    let mut values = known.map(|(_, default)| default.to_owned());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let at = known.iter().position(|(known, _)| *known == name);
        let why = match (at.and_then(|at| values.get_mut(at)), arguments.next()) {
            (Some(value), Some(given)) => {
                *value = given;
                continue;
            }
            (Some(_), None) => "needs a value",
            (None, _) if name == "--help" => {
                let header = source.lines().map_while(|it| it.strip_prefix("//!"));
                header.for_each(|line| println!("{}", line.trim()));
                exit(0)
            }
            (None, _) => "is not an option",
        };
        eprintln!("Error: {name} {why}; see --help");
        exit(2)
    }
    values
}
