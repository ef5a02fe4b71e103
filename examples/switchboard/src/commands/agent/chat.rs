//! `switchboard agent chat`: talks to an agent from the terminal.

use std::collections::VecDeque;
use std::path::PathBuf;

use connectonion_proto::auth::Address;
use connectonion_proto::client::{ClientConfig, Resume};
use connectonion_proto::frame::Mode;
use connectonion_proto::net::{AgentEndpoint, FindError, connect_with, dialer, find_with, look_up};
use rpc_core::net::DialError;
use rpc_core::net::ws::urls;
use rpc_core::{CloseReason, ConnectErrorKind, Secret};
use serde_json::Value;
use tokio::task::JoinSet;

use super::home::Home;
use crate::chat::agent::{Agent, Attachments, LastSession, Status, Steps, parse_mode};
use crate::chat::{self, Options, Peer as _, terminal};
use crate::cli::{self, Failure, Line, LineArgs, Service, Urls};
use crate::text::printable;

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  A conversation:
    switchboard agent chat http://127.0.0.1:8000
  One question, for a script; what happens on the way goes to standard error:
    switchboard agent chat http://127.0.0.1:8000 'What is 6 * 7?'
    echo 'n' | switchboard agent chat http://127.0.0.1:8000 'Write milk to notes.txt'
    switchboard agent chat http://127.0.0.1:8000 --file report.txt 'Read the file' --json
  Go on where you were, also if the agent is still at work:
    switchboard agent chat http://127.0.0.1:8000 --resume
  An agent that you know by its address, so that no other can take its place:
    switchboard agent chat 0x3d40.. --endpoint wss://agent.example.org/ws";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The agent: a URL like http://127.0.0.1:8000 or wss://HOST/ws, several of its nodes separated by commas,
    /// or its address.
    #[arg(env = "AGENT_URL", default_value = "http://127.0.0.1:8000")]
    agent: Urls,
    /// The message to send, '-' for all of standard input: prints the answer and ends. Default: reads lines.
    prompt: Option<String>,
    /// The URL of an agent that is given by its address; several, separated by commas, for its nodes.
    #[arg(long, value_name = "URL", conflicts_with = "relay")]
    endpoint: Option<Urls>,
    /// The URL of a relay, which finds an agent by its address.
    #[arg(long, value_name = "URL")]
    relay: Option<Urls>,
    #[command(flatten)]
    line: LineArgs,
    #[command(flatten)]
    home: Home,
    /// Your key, made if it is missing. Default: chat.key at home
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The invite code, if the agent requires one. Prefer the variable AGENT_INVITE: other users can see
    /// command lines.
    #[arg(long, value_name = "CODE")]
    invite: Option<Secret>,
    /// Continue the last session with this agent, or the one with this id.
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    resume: Option<String>,
    /// A file to send with the first prompt, for the agent's tools; may be repeated.
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// An image to send with the first prompt; may be repeated.
    #[arg(long = "image", value_name = "FILE")]
    images: Vec<PathBuf>,
    /// The mode to begin with: safe, plan, accept_edits or ulw.
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    mode: Option<Mode>,
    /// Approve every tool that the agent asks about.
    #[arg(long)]
    yes: bool,
    /// Print one JSON object for each event, the answer too: its event is 'output'.
    #[arg(long)]
    json: bool,
    /// The history file of the terminal. Default: one in ~/.local/state/switchboard
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Let prompts go to another machine without encryption.
    #[arg(long)]
    insecure: bool,
}

pub(crate) async fn chat(args: Args) -> Result<(), Failure> {
    let options = Options {
        once: terminal::only(args.prompt.clone(), Agent::MAX_BYTES, args.json)?,
        json: args.json,
        history: args.history.clone(),
        place: args.agent.to_string(),
    };
    let agent = open(args).await;
    let mut agent = agent.inspect_err(|failure| failure.report(options.json))?;
    chat::run(&mut agent, options).await
}

/// Finds the agent, and makes everything ready to talk to it.
async fn open(args: Args) -> Result<Agent, Failure> {
    check(&args)?;
    let key = args.home.key(args.key.as_deref(), "chat.key")?;
    let mut along = Attachments::default();
    let named = |option, why: String| Failure::usage(format_args!("{option} {why}"));
    for path in &args.files {
        along.file(path).map_err(|why| named("--file", why))?;
    }
    for path in &args.images {
        along.image(path).map_err(|why| named("--image", why))?;
    }
    let keeper = LastSession::new(&args.home.folder()?, &args.agent.to_string());
    let place = args.endpoint.as_ref().or(args.relay.as_ref());
    let line = args.line.to(place.unwrap_or(&args.agent))?;
    let mut options = ClientConfig {
        insecure: args.insecure,
        ..ClientConfig::default()
    };
    if args.relay.is_none() {
        dialer(place.unwrap_or(&args.agent).expose(), &options)?;
    }
    let (url, host, about) = whereabouts(&args, &line).await?;
    options.host = host;
    let code = cli::secret_or("--invite", args.invite.as_ref(), "AGENT_INVITE")?;
    let offers_code = code.is_some();
    if let Some(code) = code {
        options.invite_code = Some(code);
    }
    let mut seeks = None;
    if let Some(id) = &args.resume {
        let last = keeper
            .load()?
            .filter(|last| id.is_empty() || last.session_id.as_deref() == Some(id));
        options.resume = match last {
            Some(last) => last,
            None if !id.is_empty() => {
                seeks = Some(id.clone());
                Resume {
                    session_id: Some(id.as_str().into()),
                    ..Resume::default()
                }
            }
            None => {
                let why = "there is no session with this agent yet: run without --resume";
                return Err(Failure::new(why));
            }
        };
    }
    let dialer = dialer(url.expose(), &options)?;
    let (client, events, connection) = connect_with(line.dialer(dialer), key, options);
    Ok(Agent {
        run: client.attach(),
        client,
        found: about,
        url,
        events,
        connection: tokio::spawn(connection.run()),
        keeper,
        along,
        offers_code,
        allow_all: args.yes,
        mode: args.mode,
        seeks,
        is_once: args.prompt.is_some(),
        status: Status::default(),
        steps: Steps::default(),
        questions: VecDeque::new(),
        interjections: JoinSet::new(),
    })
}

/// What options do not go together.
fn check(args: &Args) -> Result<(), Failure> {
    let address = Address::parse(args.agent.expose());
    let is_placed = args.endpoint.is_some() || args.relay.is_some();
    match (address.is_ok(), is_placed) {
        (false, false) if args.agent.expose().starts_with("0x") => address
            .map(drop)
            .map_err(|error| Failure::usage(format_args!("AGENT: {error}"))),
        (true, false) => Err(Failure::usage(
            "where is the agent with this address? give --endpoint URL or --relay URL",
        )),
        (false, true) => Err(Failure::usage(
            "--endpoint and --relay need an agent's address, like 0x3d40..",
        )),
        _ => Ok(()),
    }
}

/// What an agent says of itself, for people.
fn about(found: &AgentEndpoint) -> Vec<String> {
    let info: Value = found.info.parse().unwrap_or_default();
    let members = [("name", ""), ("model", "model "), ("folder", "folder ")];
    let named = members.into_iter().filter_map(|(member, label)| {
        let text = printable(info[member].as_str()?);
        Some(format!("{label}{text}"))
    });
    named.collect()
}

/// Where an agent is, its address as far as it is known, and what it says of itself.
type Whereabouts = (Urls, Option<Address>, Vec<String>);

async fn whereabouts(args: &Args, line: &Line) -> Result<Whereabouts, Failure> {
    let wanted = Address::parse(args.agent.expose()).ok();
    let place = args.endpoint.as_ref().unwrap_or(&args.agent);
    let found = match (&wanted, &args.relay) {
        (Some(address), Some(relay)) => {
            if line.has_headers() {
                let why = "--header cannot be used with --relay, which names other servers";
                return Err(Failure::usage(why));
            }
            look_up(address, relay.expose(), |dialer| line.dialer(dialer)).await
        }
        _ => {
            find_with(place.expose(), wanted.as_ref(), |dialer| {
                line.dialer(dialer)
            })
            .await
        }
    };
    match found {
        Ok(found) => {
            let about = about(&found);
            Ok((found.url.into(), Some(found.address), about))
        }
        // It need not say who it is, unless that matters.
        Err(FindError::Status(_) | FindError::Document(_))
            if wanted.is_none() || is_elsewhere(place.expose()) =>
        {
            Ok((place.clone(), wanted, Vec::new()))
        }
        Err(FindError::Dial(error @ DialError::BadUrl { .. })) => Err(Failure::usage(error)),
        Err(error) => {
            let place = args.relay.as_ref().unwrap_or(place);
            let message = error.to_string();
            let reason = match &error {
                FindError::Dial(error) => error.into(),
                FindError::Status(status) => CloseReason::Connect {
                    kind: ConnectErrorKind::Status(*status),
                    message,
                    retryable: false,
                },
                FindError::Document(_) => CloseReason::Violation { message },
                _ => {
                    return Err(Failure::refused(format_args!(
                        "no agent at {place}: {error}"
                    )));
                }
            };
            Err(cli::unreached(&Service::CONNECTONION, place, &reason))
        }
    }
}

/// Whether a URL of a list has a path of its own, beside which there may be nothing else.
fn is_elsewhere(list: &str) -> bool {
    urls(list).any(has_own_path)
}

fn has_own_path(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('?').next().unwrap_or_default();
    let path = rest.find('/').and_then(|at| rest.get(at..));
    !matches!(path, None | Some("/" | "/ws"))
}
