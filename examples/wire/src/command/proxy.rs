//! `switchboard wire proxy`: stands between a client and a server, and records what passes.

use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use crate::Protocol;
use crate::cli::{self, Failure, Reach, Signals, Stdout, TlsArgs, complain, print_line};
use crate::decode::{Options, Printer};
use crate::explain::Explainer;
use crate::page::Site;
use crate::proxy::{Faults, Proxy, Recorder};
use crate::secrets::Shown;
use crate::text::printable;
use crate::transcript::{Header, Kind};
use crate::view::{Fed, Feed, Shared, View};
use rpc_core::net::server::{Guards, Listener};
use rpc_core::net::ws::redact_urls;
use rpc_core::timestamp;
use serde_json::json;
use switchboard_faults::Plan;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// As many files as are asked for, of which each connection needs two.
const MAX_FILES: u64 = 1 << 20;

/// Stands between any client and any server, WebSockets and plain HTTP/1, and records what passes.
///
/// Frames pass byte for byte, with their headers, subprotocols and codes. Only headers of requests that
/// have to change do: Host, Connection of plain requests, and the offer of compression, which is left out.
/// With --fault each frame is taken apart first: a ping may then pass before the rest of a
/// message in parts. What is no WebSocket frame, or one above 16 MiB, passes as it is.
/// Ctrl-C ends it, after a while for what is open; a second one ends at once.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:7100", value_name = "ADDRESS", value_parser = cli::address)]
    listen: SocketAddr,
    /// The server: ws://, wss://, http:// or https://. Its path is for requests that have none.
    #[arg(long, value_name = "URL")]
    to: String,
    /// Record everything in this file, passwords and tokens too. Only you can read it; it must not exist.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Faults to inject, such as 'c2s INPUT drop 1/3; s2c * delay 50..200ms; at 5s reset':
    /// a direction and the kind of a frame if they matter, a fault, and how often (1/3, 25%, or #2 for the second
    /// frame); may be given again. Faults: drop, duplicate, delay TIME or TIME..TIME, reorder, corrupt MEMBER,
    /// truncate or truncate BYTES, half-open, reset, slow BYTES, bandwidth BYTES (a second), close CODE, refuse or refuse STATUS.
    #[arg(long = "fault", value_name = "RULES")]
    faults: Vec<String>,
    /// Repeat the faults of an earlier run. Default: another seed for each run, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Print each frame as it passes, as decode does.
    #[arg(long)]
    print: bool,
    /// Serve a page that shows the frames as they pass.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7180")]
    page: Option<SocketAddr>,
    #[command(flatten)]
    shown: Shown,
    /// The protocol, for the recording. Default: the one that the frames show to its readers.
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Trust servers with a certificate of these issuers, and no others: a PEM file.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The origin of web pages that may connect, null and file:// among them; may be given again. Default: none.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// How long open connections may go on at the end.
    #[arg(long, default_value = "5s", value_parser = cli::duration, value_name = "TIME")]
    drain: Duration,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    tls: TlsArgs,
}

pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let is_public = args.reach.check(args.listen)?;
    let wrong = |error: String| Failure::usage(format_args!("--to: {error}"));
    let mut proxy = Proxy::new(&args.to).map_err(wrong)?;
    if let Some(tls) = cli::trusted("--ca", args.ca.as_deref())? {
        proxy.server = proxy.server.with_tls(tls);
    }
    proxy.tls = args.tls.acceptor()?;
    let listener = super::listen(args.listen).await?;
    let local = listener.local_addr().map_err(Failure::new)?;
    let is_opaque = |origin: &&String| matches!(origin.as_str(), "null" | "file://");
    let (opaque, origins): (Vec<_>, Vec<_>) = args.origins.iter().partition(is_opaque);
    let origins: Vec<_> = origins.into_iter().cloned().collect();
    proxy.origins = opaque.into_iter().cloned().collect();
    let guards = cli::guards(Guards::default(), &args.reach.hosts, &origins)?;
    proxy.guards = guards.for_bind(local);
    proxy.faults = faults(&args)?;
    let to = redact_urls(&args.to);
    let view = args.page.map(|_| View::named(&*to));
    let (recorder, printing) = recorder(&args, view.as_ref())?;
    let note = proxy.faults.as_ref().and_then(Faults::note);
    if let (Some(recorder), Some(note)) = (&recorder, note) {
        recorder.entry(0, None, Kind::Note, &note, None);
    }
    proxy.recorder = recorder;
    let signals = Signals::listen();
    // It ends with the command.
    let mut pages = JoinSet::new();
    if let (Some(address), Some(view)) = (args.page, view) {
        let mut site = Site::new(view, true, args.protocol, args.shown.clone());
        if let Some(faults) = &proxy.faults {
            site = site.with_faults(faults.plan.rules());
        }
        let server = super::page::serve(site, address, &args.reach, args.json).await?;
        pages.spawn(server.run());
    }
    announce(&args, local, is_public);
    // A server takes as many as the system lets it.
    let _ = cli::raise_file_limit(MAX_FILES);
    serve(proxy, listener, signals, args.drain, args.json).await?;
    // What is recorded is printed to its end.
    let printed = tokio::task::spawn_blocking(|| printing.map_or(Ok(()), JoinHandle::join));
    match printed.await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Failure::new("the frames could not be printed to the end")),
    }
}

fn faults(args: &Args) -> Result<Option<Faults>, Failure> {
    let wrong = |error| Failure::usage(format_args!("--fault: {error}"));
    let plan = Plan::parse(&args.faults.join(";"), cli::duration).map_err(wrong)?;
    if plan.is_empty() {
        return Ok(None);
    }
    let seed = args.seed.unwrap_or_else(|| rpc_core::net::entropy() >> 32);
    complain(format_args!("faults with --seed {seed}"));
    let plan = Arc::new(plan);
    Ok(Some(Faults { plan, seed }))
}

fn announce(args: &Args, local: SocketAddr, is_public: bool) {
    let url = args.tls.url(&format!("ws://{local}"));
    // A query of the server's URL may hold a token.
    let to = redact_urls(&args.to);
    if args.json {
        print_line(json!({ "event": "listening", "url": url, "to": to }));
    } else {
        print_line(format_args!("listening on {url}, for {}", printable(&to)));
    }
    super::warn_of_exposure(&args.to);
    if is_public {
        args.reach.warn(&args.tls);
    }
}

/// A recorder for the file, the view and the terminal, if there is one of them; and the thread that prints.
fn recorder(
    args: &Args,
    view: Option<&Shared>,
) -> Result<(Option<Recorder>, Option<JoinHandle<()>>), Failure> {
    let create = |file| super::create("--record", file);
    let file = args.record.as_deref().map(create).transpose()?;
    let mut header = Header::new();
    header.protocol = args.protocol.map(|protocol| protocol.name().to_owned());
    header.created = Some(timestamp::format(SystemTime::now()));
    header.server = Some(redact_urls(&args.to));
    let out: Box<dyn Write + Send> = match file {
        Some(file) => {
            super::mark_written(&file);
            Box::new(BufWriter::with_capacity(64 * 1024, file))
        }
        None if view.is_none() && !args.print => return Ok((None, None)),
        None => Box::new(std::io::sink()),
    };
    if view.is_none() && !args.print {
        return Ok((Some(Recorder::new(out, &header)), None));
    }
    let explainer = Explainer::new(args.protocol, args.shown.clone());
    let mut fill = view.map(|view| crate::view::fill(explainer, Arc::clone(view)));
    let options = Options {
        protocol: args.protocol,
        shown: args.shown.clone(),
        json: args.json,
        colour: cli::wants_colour(&std::io::stdout()),
        ..Options::default()
    };
    let mut printer = args.print.then(|| Printer::new(&options));
    let take = move |fed: Fed<'_>| {
        if let (Some(printer), Fed::Line(n, line)) = (&mut printer, &fed) {
            // That nobody reads is reported, and changes nothing for those who are connected.
            let _lost = printer.line(*n, line, &mut Stdout, &mut |_| {});
        }
        if let Some(fill) = &mut fill {
            fill(&fed);
        }
    };
    let (feed, thread) = Feed::new(out, take).map_err(Failure::new)?;
    Ok((Some(Recorder::new(feed, &header)), Some(thread)))
}

/// Serves until the first signal, then drains until the second one.
async fn serve(
    proxy: Proxy,
    listener: Listener,
    mut signals: Signals,
    drain: Duration,
    json: bool,
) -> Result<(), Failure> {
    let recorder = proxy.recorder.clone();
    let stop = Notify::new();
    let warn = move |words: String| {
        let about = json!({ "message": &words });
        cli::report(json, "warning", about, printable(&words));
    };
    let mut serving = pin!(proxy.run(listener, stop.notified(), drain, warn));
    let ended = tokio::select! {
        biased;
        () = signals.asked() => {
            stop.notify_one();
            complain("finishing what is under way; once more ends at once");
            let finished = signals.finish(serving).await;
            if let (Err(_), Some(recorder)) = (&finished, recorder) {
                // That it ends at once is said.
                let _ = recorder.flush();
            }
            finished?
        }
        ended = &mut serving => ended,
    };
    let report = ended.map_err(|error| Failure::new(format_args!("--record: {error}")))?;
    let (connections, cut) = (report.connections, report.cut);
    let about = json!({ "connections": connections, "cut": cut });
    cli::report(
        json,
        "ended",
        about,
        format_args!("ended: {connections} connections, {cut} cut"),
    );
    Ok(())
}
