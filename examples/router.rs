//! A router of the SmartHole protocol: `cargo run -p examples --bin router -- --bind 127.0.0.1:9473`, then start
//! plugins, such as `cargo run -p switchboard -- router client`, and type what should be passed to them.
//!
//! It finds the plugin by its name (`notes: buy milk`), or by the words of its description; several at once if the
//! text names several (`notes and lamp: good night`). What a plugin rejects goes to the next one.
//!
//! Left out: it hears no voice, and keeps no history on disk. Only this machine is served.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use examples::{Failure, cannot, lines, options, stopped};
use smarthole_proto::hub::{HubEvent, Input, Outcome};
use smarthole_proto::net::{HubEvents, RouterRuntime, Server, ServerOptions};
use smarthole_proto::router::{Choice, Keywords, RouteRequest, Router, RouterError};

/// Names first, then words.
#[derive(Default)]
pub(crate) struct NamesThenWords {
    words: Keywords,
}

impl Router for NamesThenWords {
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
        // One name before a colon is the server's own rule; several are ours.
        if let Some((names, text)) = request.text.split_once(':') {
            let mut choices = Vec::new();
            for name in names.split(" and ").map(str::trim) {
                let found = request.candidates.iter();
                let mut found = found.filter(|it| it.name.eq_ignore_ascii_case(name));
                choices.extend(found.next().map(|it| Choice {
                    text: Some(text.trim().into()),
                    reason: Some("you named it".into()),
                    ..Choice::new(it.name.clone())
                }));
            }
            if !choices.is_empty() {
                return Ok(choices);
            }
        }
        // Candidates that have rejected the text are not among those of the request.
        self.words.route(request).await
    }
}

/// Passes on what is typed, and reports its outcome.
async fn pass_on(runtime: RouterRuntime) {
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        if line.trim().is_empty() {
            continue;
        }
        let runtime = runtime.clone();
        // A plugin may take 30 s: the next line does not wait for it.
        tokio::spawn(async move {
            match runtime.ask(Input::text(line)).await {
                Ok(settled) => {
                    for one in settled.outcomes {
                        println!("{}: {}", one.client, describe(&one.outcome));
                    }
                    if let Some(why) = settled.unroutable {
                        println!("no client took it: {why}");
                    }
                }
                Err(error) => println!("not passed on: {error}"),
            }
        });
    }
}

pub(crate) fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Acked => "accepted".to_owned(),
        Outcome::Rejected { reason } => format!("rejected: {reason}"),
        Outcome::TimedOut => "no answer in time".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Shows who comes, who goes, and what plugins say.
async fn show(mut events: HubEvents) {
    while let Some(event) = events.next().await {
        match event {
            HubEvent::Registered { name, .. } => println!("{name} is here"),
            HubEvent::Left { name, .. } => println!("{name} has left"),
            HubEvent::Notification { client, body, .. } => println!("{client} says: {body}"),
            _ => {}
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let [address] = options(include_str!("router.rs"), [("--bind", "127.0.0.1:9473")]);
    let router = NamesThenWords::default();
    let server = Server::bind(&address, router, ServerOptions::default()).await;
    let server = server.map_err(cannot("listen on", address))?;
    let runtime = server.runtime();
    println!("router at {}", server.url());
    tokio::spawn(show(runtime.events()));
    tokio::spawn(pass_on(runtime));
    server.run_until(stopped()?, Duration::from_secs(5)).await;
    Ok(())
}
