//! `switchboard wire replay`: plays one side of a recording, and checks the other.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::check::Suite;
use crate::cli::{self, Failure, print_line};
use crate::play::{Action, Frame, Listening, Peer, Settings, Variables};
use crate::recording;
use crate::replay::{Difference, Edit, Options, is_signed, read, run as replay, signs};
use crate::side;
use crate::text::{Colour, paint, printable_lines};
use connectonion_proto::auth::Signer;
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
    /// The address to listen on, as the server.
    #[arg(long, default_value = "127.0.0.1:7100", value_name = "ADDRESS", value_parser = cli::address)]
    listen: SocketAddr,
    #[command(flatten)]
    options: Options,
    /// Use another value than the recorded one, such as a token or an address; may be given again.
    #[arg(long = "bind", value_name = "RECORDED=VALUE", value_parser = pair)]
    bound: Vec<(String, String)>,
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
    let pair = text.split_once('=').filter(|(was, _)| !was.is_empty());
    let (was, is) = pair.ok_or("write RECORDED=VALUE")?;
    Ok((was.to_owned(), is.to_owned()))
}

/// How long the other side may take to answer a Close.
const QUIET: Duration = Duration::from_secs(1);
/// How long a played server waits for its first client.
const START: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format_args!("{}: {error}", args.file.display()))
    };
    let mut text = String::new();
    recording::open(super::open(&args.file)?)
        .and_then(|mut lines| lines.read_to_string(&mut text))
        .map_err(|error| wrong(&error))?;
    let suite = read(&text, args.plays, &args.options).map_err(|error| wrong(&error))?;
    let steps = suite.rows.iter().flat_map(|row| &row.steps);
    let connections = steps
        .filter(|it| matches!(it.action, Action::Ask(_)))
        .count();
    if connections == 0 {
        return Err(wrong(&"there is no connection"));
    }
    let edit = key(&args, &suite)?.map(|key| Box::new(signs(key)) as Edit);
    let settings = Settings {
        timeout: args.options.timeout,
        quiet: QUIET,
        start: START,
        jobs: 1,
        variables: Variables::of_recording(&args.bound),
        pace: Arc::default(),
    };
    let peer = match args.plays {
        Side::Client => server(&args)?,
        Side::Server => clients(&args).await?,
    };
    let report = |difference: Difference| print_difference(&difference, args.json);
    let count = tokio::select! {
        count = replay(&suite, &peer, &settings, (&args.options, edit), report) => {
            count.map_err(Failure::new)?
        }
        () = cli::end_signal() => return Err(Failure::aborted()),
    };
    let about = json!({ "connections": connections, "differences": count });
    match count {
        0 => {
            let words = format!("{connections} connections: all as recorded");
            cli::report(args.json, "ended", about, words);
            Ok(())
        }
        1 => Err(Failure::new("there is a difference")),
        _ => Err(Failure::new(format_args!("there are {count} differences"))),
    }
}

/// The key for frames that have to be signed again.
fn key(args: &Args, suite: &Suite) -> Result<Option<Signer>, Failure> {
    if let Some(file) = &args.key {
        let key = Signer::load(file);
        return key
            .map(Some)
            .map_err(|error| Failure::usage(format_args!("--key: {error}")));
    }
    let mut steps = suite.rows.iter().flat_map(|row| &row.steps);
    let signs = steps
        .any(|step| matches!(&step.action, Action::Send(Frame::Text(text)) if is_signed(text)));
    match args.plays == Side::Client && signs {
        true => Err(Failure::usage(
            "the recorded client signs frames, and hosts refuse old signatures: \
             give the key of a client with --key FILE",
        )),
        false => Ok(None),
    }
}

fn server(args: &Args) -> Result<Peer, Failure> {
    let url = args.options.url.as_deref().unwrap_or_default();
    let mut dialer = WsDialer::new(url).map_err(Failure::usage)?;
    if let Some(tls) = cli::trusted("--ca", args.ca.as_deref())? {
        dialer = dialer.with_tls(tls);
    }
    super::warn_of_exposure(url);
    Ok(Peer::Server(Arc::new(dialer), url.to_owned()))
}

async fn clients(args: &Args) -> Result<Peer, Failure> {
    if !args.listen.ip().is_loopback() {
        let words = "a replay listens on this machine only: use 'wire proxy' in front of it";
        return Err(Failure::usage(words));
    }
    let listener = super::listen(args.listen).await?;
    let local = listener.local_addr().map_err(Failure::new)?;
    let url = format!("ws://{local}");
    let words = format!("listening on {url}");
    cli::report(args.json, "listening", json!({ "url": url }), words);
    Ok(Peer::Client(Arc::new(Listening(Mutex::new(Some(
        listener,
    ))))))
}

fn print_difference(difference: &Difference, json: bool) {
    if json {
        let mut about = json!({ "event": "difference" });
        if let (Some(about), Ok(Value::Object(members))) =
            (about.as_object_mut(), serde_json::to_value(difference))
        {
            about.extend(members);
        }
        return print_line(about);
    }
    let text = difference.to_string();
    let text = printable_lines(&text);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let colour = cli::wants_colour(&std::io::stdout());
    print_line(paint(colour, Colour::Red, first));
    if !rest.is_empty() {
        print_line(rest);
    }
}
