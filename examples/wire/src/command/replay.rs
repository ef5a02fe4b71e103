//! `switchboard wire replay`: plays one side of a recording, and checks the other.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::cli::{self, Failure, say};
use crate::recording;
use crate::replay::{
    Clients, Difference, Peer, Playback, Script, Server, Settings, is_signed, signs, with_bodies,
};
use crate::side;
use crate::text::{Colour, paint, printable_lines};
use crate::transcript::Kind;
use connectonion_proto::auth::Signer;
use rpc_core::net::server::Guards;
use rpc_core::net::ws::WsDialer;
use rpc_core::testing::Side;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  Whether a server still does what it did:
    switchboard wire replay run.jsonl --as client ws://127.0.0.1:7200
  Play the server of a bug report to a client:
    switchboard wire replay bug.jsonl --as server --listen 127.0.0.1:7100";

/// Plays one side of a recording, and checks the other.
///
/// What the other side makes, such as ids, tokens and signatures, is bound to what it sends at the first
/// use, and stands for the recorded value from then on. Times are not compared. All else has to be as
/// recorded: the kinds and members of frames, their order on each connection, and how it ends.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", cli::EXIT_CODES))]
pub(super) struct Args {
    /// The recording.
    file: PathBuf,
    /// The side to play.
    #[arg(long = "as", value_parser = plays, value_name = "client|server")]
    plays: Side,
    /// The server to call as the recorded client did. A path of its own replaces the recorded one.
    #[arg(required_if_eq("plays", "client"))]
    url: Option<String>,
    /// The address to listen on, as the server.
    #[arg(long, default_value = "127.0.0.1:7100", value_name = "ADDRESS", value_parser = cli::address)]
    listen: SocketAddr,
    #[command(flatten)]
    settings: Settings,
    /// Use another value than the recorded one, such as a token or an address; may be given again.
    #[arg(long = "bind", value_name = "RECORDED=VALUE", value_parser = pair)]
    bound: Vec<(String, String)>,
    /// Send a header in place of the recorded one; may be given again.
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Sign frames of ConnectOnion again with this key: hosts refuse what was signed before.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Trust servers with a certificate of these issuers, and no others: a PEM file.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

fn plays(text: &str) -> Result<Side, String> {
    let mut sides = [Side::Client, Side::Server].into_iter();
    let found = sides.find(|it| side(*it) == text);
    found.ok_or_else(|| "write client or server".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (was, is) = text.split_once('=').ok_or("write RECORDED=VALUE")?;
    match was.is_empty() {
        true => Err("write RECORDED=VALUE".to_owned()),
        false => Ok((was.to_owned(), is.to_owned())),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME:VALUE")?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut scripts = read(&args.file)?;
    let plays = args.plays;
    let key = key(&args, &scripts)?;
    with_bodies(&mut scripts, plays);
    let mut playback = Playback::new(plays, args.settings.clone());
    for (recorded, live) in &args.bound {
        playback = playback.with_bound(recorded, live);
    }
    if let Some(key) = key {
        playback = playback.with_edit(signs(key));
    }
    match plays {
        Side::Client => play(playback, scripts, server(&args)?, args.json).await,
        Side::Server => play(playback, scripts, clients(&args).await?, args.json).await,
    }
}

fn read(file: &Path) -> Result<Vec<Script>, Failure> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {error}", file.display()));
    let mut text = String::new();
    recording::open(super::open(file)?)
        .and_then(|mut lines| lines.read_to_string(&mut text))
        .map_err(|error| wrong(&error))?;
    let scripts = Script::parse(&text).map_err(|error| wrong(&error))?;
    match scripts.is_empty() {
        true => Err(wrong(&"there is no connection")),
        false => Ok(scripts),
    }
}

/// The key for frames that have to be signed again.
fn key(args: &Args, scripts: &[Script]) -> Result<Option<Signer>, Failure> {
    if let Some(file) = &args.key {
        let key = Signer::load(file);
        return key
            .map(Some)
            .map_err(|error| Failure::usage(format_args!("--key: {error}")));
    }
    let mut entries = scripts.iter().flat_map(|script| &script.entries);
    let signs = entries.any(|(_, entry)| {
        (entry.from, entry.kind) == (Some(Side::Client), Kind::Text) && is_signed(&entry.data)
    });
    match args.plays == Side::Client && signs {
        true => Err(Failure::usage(
            "the recorded client signs frames, and hosts refuse old signatures: \
             give the key of a client with --key FILE",
        )),
        false => Ok(None),
    }
}

fn server(args: &Args) -> Result<Server, Failure> {
    let url = args.url.as_deref().unwrap_or_default();
    WsDialer::new(url).map_err(Failure::usage)?;
    let server = Server {
        url: url.to_owned(),
        tls: cli::trusted("--ca", args.ca.as_deref())?,
        headers: args.headers.clone(),
    };
    super::warn_of_exposure(url);
    Ok(server)
}

async fn clients(args: &Args) -> Result<Clients, Failure> {
    if !args.listen.ip().is_loopback() {
        let words = "a replay listens on this machine only: use 'wire proxy' in front of it";
        return Err(Failure::usage(words));
    }
    let listener = super::listen(args.listen).await?;
    let local = listener.local_addr().map_err(Failure::new)?;
    let url = format!("ws://{local}");
    let words = format!("listening on {url}");
    cli::tell(args.json, "listening", json!({ "url": url }), words);
    Ok(Clients {
        listener,
        guards: Guards::default().for_bind(local),
    })
}

async fn play(
    playback: Playback,
    scripts: Vec<Script>,
    peer: impl Peer,
    json: bool,
) -> Result<(), Failure> {
    let connections = scripts.len();
    let report = move |difference: Difference| tell(&difference, json);
    let count = tokio::select! {
        count = playback.run(scripts, peer, report) => count,
        () = cli::end_signal() => return Err(Failure::aborted()),
    };
    let about = json!({ "connections": connections, "differences": count });
    match count {
        0 => {
            let words = format!("{connections} connections: all as recorded");
            cli::tell(json, "ended", about, words);
            Ok(())
        }
        1 => Err(Failure::new("there is a difference")),
        _ => Err(Failure::new(format_args!("there are {count} differences"))),
    }
}

fn tell(difference: &Difference, json: bool) {
    if json {
        let mut about = json!({ "event": "difference" });
        if let (Some(about), Ok(Value::Object(members))) =
            (about.as_object_mut(), serde_json::to_value(difference))
        {
            about.extend(members);
        }
        return say(about);
    }
    let text = difference.to_string();
    let text = printable_lines(&text);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let colour = cli::wants_colour(&std::io::stdout());
    say(paint(colour, Colour::Red, first));
    if !rest.is_empty() {
        say(rest);
    }
}
