//! `switchboard wire check`: conformance of anybody's server or client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::check::report::{Report, evidence};
use crate::check::{Outcome, Row, Suite, Verdict, run};
use crate::cli::{self, Failure, Urls, print_line};
use crate::play::{Command, Dial as _, Peer, Settings, Variables};
use crate::secrets::within;
use crate::text::{Colour, paint, printable, printable_lines};
use crate::{Protocol, side};
use clap::Subcommand;
use rpc_core::CloseReason;
use rpc_core::net::ws::WsDialer;
use rpc_core::testing::Side;

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  A gateway on this machine, and one that requires a token:
    switchboard wire check server ws://127.0.0.1:7200/ws --protocol exoclaw
    EXOCLAW_TOKEN=.. switchboard wire check server wss://gateway.example/ws --protocol exoclaw \\
        --set token=\"$EXOCLAW_TOKEN\" --junit report.xml --html report.html
  A client, which is started for each row with the address of a server for it alone:
    switchboard wire check client --protocol exoclaw -- switchboard gateway chat --url '{url}' 'hello'";

/// Checks whether a server or a client keeps to its protocol: each row has an id, the section of the
/// specification, MUST or SHOULD, a verdict, and the frames as evidence.
///
/// Fails if a row that the specification demands does not hold, or if no row could be checked.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", cli::EXIT_CODES))]
pub(crate) struct CheckArgs {
    #[command(subcommand)]
    who: Who,
}

#[derive(Debug, Subcommand)]
enum Who {
    /// Checks a server: connects to it as a client does, once or twice for each row.
    Server {
        /// The URL of the server: ws://HOST:PORT/PATH.
        url: String,
        #[command(flatten)]
        options: Options,
    },
    /// Checks a client: starts it for each row with the address of a server for it alone.
    ///
    /// The address replaces {url} in the command, and is in the environment variable SWITCHBOARD_URL;
    /// {NAME} is replaced by what --set sets.
    Client {
        #[command(flatten)]
        options: Options,
        /// The program and its arguments, after '--'.
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Options {
    /// The protocol. Default: the one that the path of the URL names.
    #[arg(long, value_enum)]
    protocol: Option<Protocol>,
    /// Set what the rows need: a token, a password, the text of a chat; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Check only rows whose id contains this text; may be repeated.
    #[arg(long = "only", value_name = "TEXT")]
    only: Vec<String>,
    /// How long a row waits for what it expects.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = cli::duration)]
    timeout: Duration,
    /// How long the peer must stay silent for a case to pass.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = cli::duration)]
    quiet_time: Duration,
    /// How many rows run at once.
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    jobs: usize,
    /// List the rows, and check nothing.
    #[arg(long)]
    list: bool,
    /// Print the report as one JSON object.
    #[arg(long)]
    json: bool,
    /// Write the report as JUnit XML to a file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the report as one HTML page to a file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) async fn check(args: CheckArgs) -> Result<(), Failure> {
    match args.who {
        Who::Server { url, options } => {
            let remote = WsDialer::new(&url).map_err(Failure::usage)?;
            let protocol = super::protocol(options.protocol, &url)?;
            if !options.list {
                let dialing = tokio::time::timeout(options.timeout, remote.dial()).await;
                let after = options.timeout;
                let late = |_| CloseReason::HandshakeTimeout { after };
                let dialed = dialing.map_err(late);
                let dialed = dialed.and_then(|it| it.map_err(|error| CloseReason::from(&error)));
                let (service, to) = (super::service(protocol), Urls::from(url.clone()));
                dialed.map_err(|reason| cli::unreached(&service, &to, &reason))?;
            }
            let peer = Peer::Server(Arc::new(remote), url.clone());
            report(protocol, Side::Server, &within(&url), &peer, options).await
        }
        Who::Client { options, command } => {
            let target = command.join(" ");
            let peer = Peer::Client(Arc::new(Command { line: command }));
            let protocol = super::protocol(options.protocol, "")?;
            report(protocol, Side::Client, &target, &peer, options).await
        }
    }
}

async fn report(
    protocol: Protocol,
    role: Side,
    target: &str,
    peer: &Peer,
    options: Options,
) -> Result<(), Failure> {
    let name = protocol.name();
    let mut suite = Suite::load(protocol, role).map_err(Failure::new)?;
    if !options.only.is_empty() {
        suite
            .rows
            .retain(|row| options.only.iter().any(|text| row.id.contains(text)));
    }
    if options.list {
        for row in &suite.rows {
            let (level, Row { id, says, .. }) = (row.level.name(), row);
            let needs = match row.needs.join(", ") {
                none if none.is_empty() => none,
                needs => format!(" (needs --set {needs})"),
            };
            print_line(format!("{level:6} {id}: {says}{needs}"));
        }
        let (needed, defaults) = suite.variables();
        let needed = needed.join(", ");
        print_line(format!("\nVariables without a default: {needed}"));
        for (name, value) in defaults {
            print_line(format!("Default: {name}={value}"));
        }
        return Ok(());
    }
    let mut variables = Variables::default();
    for (name, value) in &options.set {
        variables.set(name, value);
    }
    let settings = Settings {
        timeout: options.timeout,
        quiet: options.quiet_time,
        start: Settings::START,
        jobs: options.jobs,
        variables,
        pace: Arc::default(),
    };
    let colour = cli::wants_colour(&std::io::stdout());
    let mut section = String::new();
    let told = |row: &Row, outcome: &Outcome| {
        if !options.json {
            if row.section != section {
                section.clone_from(&row.section);
                print_line(format!("\n{section}"));
            }
            print_row(row, outcome, colour);
        }
    };
    let outcomes = tokio::select! {
        // First: a signal that comes before it is listened to would leave a client alone that was just started.
        biased;
        () = cli::end_signal() => return Err(Failure::aborted()),
        outcomes = run(&suite, peer, &settings, told) => outcomes,
    };
    if let Some(other) = outcomes.iter().find_map(|outcome| outcome.foreign) {
        let (role, other) = (side(role), other.name());
        return Err(Failure::refused(format!(
            "this is no {name} {role}: its first frame is of {other}; say --protocol {other}"
        )));
    }
    let report = Report::new(protocol, role, target, &suite, &settings, &outcomes);
    if let Some(file) = &options.junit {
        write(file, &report.junit().map_err(Failure::new)?)?;
    }
    if let Some(file) = &options.html {
        write(file, &report.html())?;
    }
    let counts = report.counts;
    if options.json {
        print_line(serde_json::to_string(&report).map_err(Failure::new)?);
    } else {
        print_line(format!("\n{counts}"));
    }
    if counts.fail_must > 0 {
        let count = counts.fail_must;
        let why = format!("{count} rows fail that the specification demands");
        return Err(Failure::new(why));
    }
    let mut blocked = outcomes.iter().filter(|it| it.verdict == Verdict::Blocked);
    if let Some(why) = blocked.next().and_then(Outcome::why) {
        let words = format!("{} rows {}", counts.blocked, printable(&why));
        return Err(match counts.pass {
            0 => Failure::refused(words),
            _ => Failure::new(words),
        });
    }
    if counts.pass == 0 {
        return Err(Failure::refused(format!(
            "no row could be checked: is this a {name} {}?",
            side(role)
        )));
    }
    Ok(())
}

fn print_row(row: &Row, outcome: &Outcome, colour: bool) {
    let colour_of = match outcome.verdict {
        Verdict::Pass => Colour::Green,
        Verdict::Fail => Colour::Red,
        Verdict::Late | Verdict::Blocked => Colour::Yellow,
        Verdict::NotApplicable => Colour::Dim,
    };
    let word = paint(colour, colour_of, &format!("{:4}", outcome.verdict.word()));
    let Row { id, says, .. } = row;
    print_line(format!("  {word} {:6} {id}: {says}", row.level.name()));
    let mut text = outcome.why().unwrap_or_default() + "\n";
    if outcome.is_failure() {
        text += &evidence(&outcome.evidence);
    }
    for line in printable_lines(text.trim_end()).lines() {
        print_line(format!("         {line}"));
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| Failure::new(format!("{}: {error}", file.display())))
}
