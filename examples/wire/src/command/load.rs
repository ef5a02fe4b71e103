//! `switchboard wire load`: calls at a fixed rate, and what callers see of them.

use std::pin::pin;
use std::time::Duration;

use crate::Protocol;
use crate::cli::{self, Failure, LineArgs, Service, Signals, Urls, complain, print_line};
use crate::load::{Caller, Finished, Kind, Load, Run, RunError, Scenario, Schedule};
use crate::text::counted;
use connectonion_proto::net::find_with;
use indicatif::{ProgressBar, ProgressStyle};
use rpc_core::net::ws::WsDialer;
use tokio::sync::Notify;

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  switchboard bot serve --open
  switchboard wire load ws://127.0.0.1:8080 --protocol snek --rate 1000 --duration 10s
  switchboard wire load ws://127.0.0.1:7200 --protocol exoclaw --scenario chat --connections 50 --rate 20
  switchboard wire load ws://127.0.0.1:7200 --protocol exoclaw --json > report.json";

/// The password at servers without accounts.
const ANYBODY: &str = "load";
/// How often the progress is shown.
const SHOWN: Duration = Duration::from_millis(200);

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
    #[command(flatten)]
    schedule: Schedule,
    /// How many calls may fail before the command does.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    max_failed: u64,
    /// How long a call may take, from when it is due.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = cli::duration)]
    timeout: Duration,
    #[command(flatten)]
    caller: Caller,
    #[command(flatten)]
    line: LineArgs,
    /// Print the report as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let load = load(&args).await?;
    let run = Run::new(load.clone());
    // Each connection needs a file.
    let _ = cli::raise_file_limit(u64::from(args.connections) * 2 + cli::SOME_FILES);
    let (finished, is_stopped) = make(&run, &args).await?;
    let Service { name, start, .. } = super::service(load.scenario.protocol);
    let step = format!("check host and port, or start {name} with '{start}'");
    let finished = finished.map_err(|error| match error {
        RunError::NotConnected(_) if is_stopped => Failure::aborted(),
        RunError::NotConnected(_) => Failure::refused(format_args!("{error}; {step}")),
        RunError::Io(_) => Failure::new(error),
    })?;
    match args.json {
        true => print_line(finished.json(&args.url.to_string(), &load)),
        false => print_line(finished.words(&load).trim_end()),
    }
    if is_stopped {
        return Err(Failure::aborted_with("stopped before the time"));
    }
    let (stats, failed) = (&finished.stats, finished.stats.failed.total());
    match (stats.ok, stats.opened) {
        (0, 0) => Err(Failure::refused(format_args!(
            "no connection could be opened; {step}"
        ))),
        (0, _) => Err(Failure::new("no call was answered")),
        _ if failed > args.max_failed => {
            let count = counted(usize::try_from(failed).unwrap_or(usize::MAX), "call");
            let allowed = args.max_failed;
            let why = format_args!("{count} failed: --max-failed allows {allowed}");
            Err(Failure::new(why))
        }
        _ => Ok(()),
    }
}

async fn load(args: &Args) -> Result<Load, Failure> {
    let protocol = super::protocol(args.protocol, args.url.expose())?;
    let caller = args.caller.clone();
    let (scenario, dialer) =
        prepare(protocol, &args.url, args.scenario, caller, &args.line).await?;
    Ok(Load {
        in_flight: scenario.in_flight(),
        scenario,
        dialer,
        schedule: args.schedule,
        connections: usize::from(args.connections),
        patience: args.timeout,
    })
}

/// Returns what is called, as whom, and how the server is reached.
pub(super) async fn prepare(
    protocol: Protocol,
    url: &Urls,
    kind: Option<Kind>,
    mut caller: Caller,
    line: &LineArgs,
) -> Result<(Scenario, WsDialer), Failure> {
    let variable = match protocol {
        Protocol::Exoclaw => Some("EXOCLAW_TOKEN"),
        Protocol::Acolyte => Some("ACOLYTE_API_KEY"),
        _ => None,
    };
    let token = variable.map(|name| cli::secret_or("--token", caller.token.as_ref(), name));
    caller.token = token.transpose()?.flatten();
    caller.password = cli::secret("SNEK_PASSWORD")?.unwrap_or_else(|| ANYBODY.into());
    let (line, url) = (line.open()?, url.expose());
    if protocol == Protocol::ConnectOnion {
        // Newer hosts want to be named in what is signed.
        let found = find_with(url, None, |dialer| line.dialer(dialer)).await;
        caller.host = found.ok().map(|found| found.address);
    }
    let scenario = Scenario::new(protocol, kind, caller).map_err(Failure::usage)?;
    WsDialer::new(url).map_err(Failure::usage)?;
    let insecure = |error| format!("{error}; say --insecure if it may be seen on the way");
    let dialer = scenario
        .dialer(url)
        .map_err(insecure)
        .map_err(Failure::usage)?;
    Ok((scenario, line.dialer(dialer)))
}

/// Runs on a thread of its own, so that nothing else is on its processor's time.
async fn make(run: &Run, args: &Args) -> Result<Made, Failure> {
    let (running, signals) = (run.clone(), Signals::listen());
    let mut running = tokio::task::spawn_blocking(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().map_err(Failure::new)?;
        runtime.block_on(until_stopped(&running, signals))
    });
    let (rate, time) = (args.schedule.rate, args.schedule.duration.as_secs_f64());
    complain(format_args!(
        "{} connections, {rate} calls/s for {time} s",
        args.connections
    ));
    let bar = bar(args);
    let mut ticks = tokio::time::interval(SHOWN);
    let made = loop {
        tokio::select! {
            made = &mut running => break made,
            _ = ticks.tick() => show(&bar, run),
        }
    };
    bar.finish_and_clear();
    made.map_err(Failure::new)?
}

/// What has become of a run, and whether it was stopped.
type Made = (Result<Finished, RunError>, bool);

/// Makes the calls, up to the first signal.
async fn until_stopped(run: &Run, mut signals: Signals) -> Result<Made, Failure> {
    let stop = Notify::new();
    let mut going = pin!(run.go(stop.notified()));
    tokio::select! {
        finished = &mut going => Ok((finished, false)),
        () = signals.asked() => {
            stop.notify_one();
            complain("waiting for the last answers; once more ends at once");
            Ok((signals.finish(going).await?, true))
        }
    }
}

/// A bar on standard error, if that is a terminal.
fn bar(args: &Args) -> ProgressBar {
    if cli::is_quiet() {
        return ProgressBar::hidden();
    }
    let total = args.schedule.end().as_millis();
    let bar = ProgressBar::new(u64::try_from(total).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:20} {percent:>3}%  {wide_msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(bar: &ProgressBar, run: &Run) {
    let stats = run.stats();
    let open = format!("{} connections", stats.open);
    let Some(elapsed) = run.elapsed() else {
        return bar.set_message(open);
    };
    let (ok, failed, p99) = (
        stats.ok,
        stats.failed.total(),
        stats.latency.quantiles().p99,
    );
    drop(stats);
    bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    bar.set_message(format!(
        "{open}, {ok} answered, {failed} failed, p99 {p99:.1} ms"
    ));
}
