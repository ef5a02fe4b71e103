//! `switchboard wire load`: calls at a fixed rate, and what callers see of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Protocol;
use crate::cli::{self, Failure, LineArgs, Signals, Urls, complain, say};
use crate::load::usage::listener;
use crate::load::{
    Caller, Finished, Kind, Load, Progress, Report, Run, RunError, Scenario, Schedule,
};
use connectonion_proto::auth::Signer;
use connectonion_proto::net::find_with;
use indicatif::{ProgressBar, ProgressStyle};
use rpc_core::Secret;
use rpc_core::net::ws::WsDialer;
use tokio::sync::oneshot;

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  switchboard bot serve --open
  switchboard wire load ws://127.0.0.1:8080 --protocol snek --rate 1000 --duration 10s
  switchboard wire load ws://127.0.0.1:7200 --protocol exoclaw --scenario chat --connections 50 --rate 20
  switchboard wire load http://127.0.0.1:6767 --protocol acolyte --scenario chat --sse --rate 5
  switchboard wire load ws://127.0.0.1:7200 --protocol exoclaw --json > before.json
  switchboard wire load ws://127.0.0.1:7200 --protocol exoclaw --compare before.json --allow 1.2";

/// How often the progress is shown.
const SHOWN: Duration = Duration::from_millis(200);
/// The name and text of a caller at servers without accounts.
const ANYBODY: &str = "load";

/// Makes calls at a fixed rate, and reports the latency that callers see, and what failed.
///
/// A call is due at its time whatever becomes of those before, and its latency counts from then: a server
/// that stands still shows in every call that had to wait. One thread makes the calls. Ctrl-C ends early,
/// with the report of what was done.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", cli::EXIT_CODES))]
pub(super) struct Args {
    /// The URL of the server: ws://, wss://, http:// or https://. The default path is the protocol's.
    url: Urls,
    /// The protocol. Default: the one that the path of the URL names.
    #[arg(long, value_enum)]
    protocol: Option<Protocol>,
    /// The kind of calls. Default: echo, or chat where there is no echo.
    #[arg(long, value_enum)]
    scenario: Option<Kind>,
    /// How many connections make calls.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// Calls a second, of all connections together.
    #[arg(long, value_name = "R", default_value = "100", value_parser = rate)]
    rate: f64,
    /// How long to make calls that count.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = cli::duration)]
    duration: Duration,
    /// How long to make calls before those, which do not count.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = cli::duration)]
    warmup: Duration,
    /// How long a call may take, from when it is due.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = cli::duration)]
    timeout: Duration,
    /// The text of a chat.
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    prompt: String,
    /// The login name at a Snek server; its password is in the environment variable SNEK_PASSWORD.
    #[arg(long, value_name = "NAME", env = "SNEK_USERNAME", default_value = ANYBODY)]
    username: String,
    /// The channel of a Snek server, by uid. Default: the first one.
    #[arg(long, value_name = "UID")]
    channel: Option<String>,
    /// The token of a gateway, or the key of an Acolyte server. Better given in the environment, as
    /// EXOCLAW_TOKEN or ACOLYTE_API_KEY: others can see command lines.
    #[arg(long, value_name = "TOKEN")]
    token: Option<Secret>,
    /// The key that signs at ConnectOnion hosts, a file. Default: a new one for each connection.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The model of an Acolyte server. Default: the server's.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Make the calls of an Acolyte server over HTTP, where chats are read as server-sent events: 'echo'
    /// asks for the status, and each call has a connection of its own.
    #[arg(long)]
    sse: bool,
    #[command(flatten)]
    line: LineArgs,
    /// Let passwords, tokens and prompts go to another machine without encryption.
    #[arg(long)]
    insecure: bool,
    /// Print the report as one JSON object.
    #[arg(long)]
    json: bool,
    /// Compare with an earlier report, a file that --json has written.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Fail if throughput, failures or latency up to p99 are worse than in the earlier report by more than
    /// this factor: 1.2 allows a fifth.
    #[arg(long, value_name = "FACTOR", requires = "compare", value_parser = factor)]
    allow: Option<f64>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok();
    let rate = rate.filter(|rate: &f64| (0.001..=10_000_000.0).contains(rate));
    rate.ok_or_else(|| "write calls a second, such as 100 or 0.5".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok();
    let factor = factor.filter(|factor: &f64| (1.0..=1000.0).contains(factor));
    factor.ok_or_else(|| "write a factor from 1, such as 1.2".to_owned())
}

pub(super) async fn run(args: Args) -> Result<(), Failure> {
    // Before the run: it would be in vain.
    let earlier = args.compare.as_deref().map(read).transpose()?;
    let load = load(&args).await?;
    let run = Run::new(load.clone());
    // Each connection needs a file.
    let _ = cli::raise_file_limit(u64::from(args.connections) * 2 + cli::SOME_FILES);
    let (finished, is_stopped) = make(&run, &args).await?;
    let report = Report::new(&args.url.to_string(), &load, &finished);
    if args.json {
        say(serde_json::to_string(&report).map_err(Failure::new)?);
    } else {
        say(report.words().trim_end());
    }
    if let Some(earlier) = earlier {
        compare(&report, &earlier, &args)?;
    }
    if is_stopped {
        return Err(Failure::aborted_with("stopped before the time"));
    }
    match (report.ok, report.opened) {
        (0, 0) => Err(Failure::refused("no connection could be opened")),
        (0, _) => Err(Failure::new("no call was answered")),
        _ => Ok(()),
    }
}

async fn load(args: &Args) -> Result<Load, Failure> {
    let protocol = super::protocol(args.protocol, args.url.expose())?;
    let variable = match protocol {
        Protocol::Exoclaw => Some("EXOCLAW_TOKEN"),
        Protocol::Acolyte => Some("ACOLYTE_API_KEY"),
        _ => None,
    };
    let token = variable.map(|name| cli::secret_or("--token", args.token.as_ref(), name));
    let token = token.transpose()?.flatten();
    let line = args.line.open()?;
    let url = args.url.expose();
    let key = args.key.as_deref().map(Signer::load).transpose();
    let key = key.map_err(|error| Failure::usage(format_args!("--key: {error}")))?;
    let host = match protocol {
        // Newer hosts want to be named in what is signed.
        Protocol::ConnectOnion => {
            let found = find_with(url, None, |dialer| line.dialer(dialer)).await;
            found.ok().map(|found| found.address)
        }
        _ => None,
    };
    let caller = Caller {
        username: args.username.clone(),
        password: cli::secret("SNEK_PASSWORD")?.unwrap_or_else(|| ANYBODY.into()),
        token,
        key,
        host,
        channel: args.channel.clone(),
        model: args.model.clone(),
        prompt: args.prompt.clone(),
        insecure: args.insecure,
    };
    let mut scenario = Scenario::new(protocol, args.scenario, caller).map_err(Failure::usage)?;
    WsDialer::new(url).map_err(Failure::usage)?;
    let insecure = |error| format!("{error}; say --insecure if it may be seen on the way");
    let dialer = scenario
        .dialer(url)
        .map_err(insecure)
        .map_err(Failure::usage)?;
    if args.sse {
        let over_sse = scenario.over_sse(url, &line);
        scenario = over_sse.map_err(|error| Failure::usage(format_args!("--sse: {error}")))?;
    }
    Ok(Load {
        in_flight: scenario.in_flight(),
        scenario,
        dialer: line.dialer(dialer),
        schedule: Schedule {
            rate: args.rate,
            warmup: args.warmup,
            duration: args.duration,
        },
        connections: usize::from(args.connections),
        patience: args.timeout,
        pid: local_port(&args.url.to_string()).and_then(listener),
    })
}

/// Returns the port of a server on this machine.
fn local_port(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ if matches!(scheme, "wss" | "https") => (authority, 443),
        _ => (authority, 80),
    };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    let is_local = address.map_or(host == "localhost", |ip: std::net::IpAddr| ip.is_loopback());
    is_local.then_some(port)
}

/// Runs on a thread of its own, so that nothing else is on its processor's time.
async fn make(run: &Run, args: &Args) -> Result<(Finished, bool), Failure> {
    let mut signals = Signals::listen();
    let (stop, stopped) = oneshot::channel::<()>();
    let (done, mut result) = oneshot::channel();
    let running = run.clone();
    std::thread::Builder::new()
        .name("load".to_owned())
        .spawn(move || {
            let stopped = async {
                let _ = stopped.await;
            };
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let result = match runtime {
                Ok(runtime) => runtime.block_on(running.go(stopped)),
                Err(error) => Err(RunError::Io(error)),
            };
            let _ = done.send(result);
        })
        .map_err(Failure::new)?;
    let (rate, time) = (args.rate, args.duration.as_secs_f64());
    complain(format_args!(
        "{} connections, {rate} calls/s for {time} s",
        args.connections
    ));
    let bar = bar(args);
    let mut stop = Some(stop);
    let mut ticks = tokio::time::interval(SHOWN);
    let result = loop {
        tokio::select! {
            result = &mut result => break result,
            () = signals.asked() => match stop.take() {
                Some(stop) => {
                    let _ = stop.send(());
                    complain("waiting for the last answers; once more ends at once");
                }
                None => return Err(Failure::aborted()),
            },
            _ = ticks.tick() => show(&bar, run.progress()),
        }
    };
    bar.finish_and_clear();
    let result = result.map_err(Failure::new)?;
    let finished = result.map_err(|error| match error {
        RunError::NotConnected(_) if stop.is_none() => Failure::aborted(),
        RunError::NotConnected(_) => Failure::refused(error),
        RunError::Io(_) => Failure::new(error),
    })?;
    Ok((finished, stop.is_none()))
}

/// A bar on standard error, if that is a terminal.
fn bar(args: &Args) -> ProgressBar {
    if cli::is_quiet() {
        return ProgressBar::hidden();
    }
    let total = (args.warmup + args.duration).as_millis();
    let bar = ProgressBar::new(u64::try_from(total).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:20} {percent:>3}%  {wide_msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(bar: &ProgressBar, progress: Progress) {
    let Progress {
        elapsed,
        open,
        ok,
        failed,
        p99,
    } = progress;
    match elapsed {
        None => bar.set_message(format!("{open} connections")),
        Some(elapsed) => {
            bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
            bar.set_message(format!(
                "{open} connections, {ok} answered, {failed} failed, p99 {p99:.1} ms"
            ));
        }
    }
}

fn read(file: &Path) -> Result<Report, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format_args!("--compare {}: {error}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    serde_json::from_str(&text).map_err(|error| wrong(&error))
}

fn compare(now: &Report, earlier: &Report, args: &Args) -> Result<(), Failure> {
    let (table, worse) = now.compare(earlier, args.allow);
    let tell: fn(&str) = if args.json {
        |text| complain(text)
    } else {
        |text| say(text)
    };
    tell(&format!("\n{}", table.trim_end()));
    let differences = now.differences(earlier);
    if !differences.is_empty() {
        complain(format_args!(
            "warning: the earlier run had another {}",
            differences.join(", ")
        ));
    }
    if worse.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format_args!(
        "worse than the earlier run by more than --allow: {}",
        worse.join(", ")
    )))
}
