//! The second half: one agent on three hosts, of which one is killed in mid-answer.

use std::sync::Arc;

use connectonion_proto::auth::{Address, Signer};
use connectonion_proto::net::{AgentOptions, RunEvent, connect_lazy};
use switchboard::cli::Failure;
use switchboard::screen::connectonion::Frames;
use switchboard::screen::{Colour, Screen};
use tokio::process::Child;

use super::start_node;
use crate::tour::patience::{expect, in_time};
use crate::tour::temp_dir::TempDir;

/// The seconds after which a host without a sign of life is dead: nobody would wait for the usual ten here.
const LEASE: &str = "2";
/// An answer of so many words, each after so many milliseconds.
const PROMPT: &str = "!slow 20 50";

pub(super) async fn tell(screen: &Arc<Screen>, nats: u16) -> Result<(), Failure> {
    screen.title("5. An agent on three hosts");
    let home = TempDir::new("agents")?;
    let home = home.path().display().to_string();
    let args = ["agent", "host", "--home", &home, "--lease", LEASE];
    let mut hosts: Vec<(Child, String)> = Vec::new();
    let mut address = None;
    for _ in 0..3 {
        let (process, line) = start_node(&args, nats).await?;
        let (url, agent) = places(&line)
            .ok_or_else(|| Failure::new(format_args!("expected two places in {line:?}")))?;
        screen.note(&format!("a host listens on {url}"));
        hosts.push((process, url));
        address = Some(agent);
    }
    let urls: Vec<&str> = hosts.iter().map(|(_, url)| url.as_str()).collect();
    let mut options = AgentOptions::default();
    let shown = screen.observer("dan", Colour::Blue, Frames);
    options.link = options.link.with_observer(shown);
    options.host = address;
    let key = Signer::from_seed(&[7; 32]);
    let (dan, mut events, connection) =
        connect_lazy(&urls.join(","), key, options).map_err(Failure::new)?;
    tokio::spawn(connection.run());
    tokio::spawn(async move { while events.next().await.is_some() {} });
    in_time("a line to the agent", dan.ready())
        .await?
        .map_err(Failure::new)?;

    screen.title("6. The host is killed in mid-answer");
    let mut run = dan.input(PROMPT).await;
    let begun = async {
        while let Some(event) = run.next().await {
            if let RunEvent::Step(step) = event.map_err(Failure::new)?
                && step.event.kind.delta().is_some()
            {
                return Ok(());
            }
        }
        Err(Failure::new("the run has ended before its first word"))
    };
    in_time("a word of the agent", begun).await??;
    let at = dan.node().map_or(0, |node| node.index());
    hosts[at].0.start_kill().map_err(Failure::new)?;
    screen.event("node", Colour::Red, "SIGKILL");
    let output = in_time("an answer", run.output()).await?;
    let output = output.map_err(Failure::new)?;
    expect(output.result.ends_with("19 20"), "the whole answer")?;
    let now = dan.node().map_or(at, |node| node.index());
    expect(now != at, "another host to have answered")?;
    screen.note("another host has taken the session over, and run the stored prompt again");
    let conversation = dan.session().session;
    let said = conversation.map_or(0, |it| it.get().matches(r#""role":"user""#).count());
    expect(said == 1, "the prompt in the conversation once")?;
    dan.close();
    Ok(())
}

/// The URL for WebSockets and the agent's address, out of what a host says at its start.
fn places(line: &str) -> Option<(String, Address)> {
    let (_, rest) = line.split_once("WebSocket: ")?;
    let (url, rest) = rest.split_once(", address: ")?;
    let address = Address::parse(rest.trim_end().trim_end_matches(')')).ok()?;
    Some((url.to_owned(), address))
}
