//! Common parts of the commands: how much is printed, durations, colours, the end signal.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write as _};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
#[cfg(unix)]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use connectonion_proto::limits::CONSOLE_TARGET as TARGET;
use serde_json::Value;
use tracing::field::Field;
use tracing::{Event, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::screen::printable;
use crate::terminal;

mod failure;
mod health;
mod line;
#[cfg(feature = "nats")]
mod nats;
mod nats_settings;
#[cfg(not(feature = "nats"))]
mod no_nats;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod serving;
mod signals;
mod variable;

pub use failure::{EXIT_CODES, Failure, REFUSED, USAGE, finish};
pub use health::health;
pub use line::{Line, LineArgs, Urls, trusted, unreached};
#[cfg(feature = "nats")]
pub use nats::{LeaseArgs, NatsArgs, nats_failure};
pub use nats_settings::NatsSettings;
#[cfg(not(feature = "nats"))]
pub use no_nats::NoNats;
pub use output::{Stdout, announce, is_output_lost, parse, say};
pub use serving::{Pings, Reach, TlsArgs, guards, web_pages};
pub use signals::Signals;
pub use variable::{
    SecretError, SecretProblem, secret, secret_file, secret_or, secret_text, variable,
};

/// The crates of this workspace, for log filters.
const OURS: [&str; 8] = [
    "switchboard",
    "acolyte_proto",
    "connectonion_proto",
    "exoclaw_proto",
    "smarthole_proto",
    "snek_proto",
    "rpc_core",
    // The spans of connections and calls.
    "rpc",
];

/// The extra time for connections to close after the work in progress, when a server ends.
pub const GOODBYE: Duration = Duration::from_secs(2);
/// Open files for a server with the default limit of connections, with a reserve.
pub const SOME_FILES: u64 = 4_096;

/// How much a command prints.
#[allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Verbosity {
    /// Print only answers, questions and errors.
    #[arg(short, long, global = true, display_order = 900)]
    quiet: bool,
    /// Log more; twice for even more. Without this and --quiet, RUST_LOG decides what is logged.
    #[arg(
        short,
        long,
        global = true,
        display_order = 901,
        conflicts_with = "quiet",
        action = clap::ArgAction::Count
    )]
    verbose: u8,
}

/// Whether remarks are left out.
static QUIET: AtomicBool = AtomicBool::new(false);

impl Verbosity {
    /// Applies the options to this process, and begins to write logs to standard error. If the
    /// command `warns`, warnings of the libraries are among them.
    pub fn start(self, warns: bool) {
        QUIET.store(self.quiet, Ordering::Relaxed);
        log(self, warns);
    }
}

/// Returns whether only answers, questions and errors are printed.
#[must_use]
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes a remark to standard error, unless the user wants [none](is_quiet). Does not panic if the
/// reader is gone.
pub fn complain(line: impl Display) {
    if !is_quiet() {
        let _ = writeln!(Stderr, "{line}");
    }
}

/// Writes a question to standard error.
pub fn ask(line: impl Display) {
    let _ = writeln!(Stderr, "{line}");
}

/// Standard error; in a terminal with a line editor, the rows above the edited line.
///
/// Each write must be one or more whole lines.
#[derive(Clone, Copy, Debug)]
pub struct Stderr;

impl io::Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stderr = io::stderr();
        if stderr.is_terminal() {
            let text = String::from_utf8_lossy(bytes);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            if terminal::write_above(text.to_owned()).is_ok() {
                return Ok(());
            }
        }
        stderr.lock().write_all(bytes)
    }

    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Writes a remark to standard output, unless the user wants [none](is_quiet).
pub fn remark(line: impl Display) {
    if !is_quiet() {
        announce(line);
    }
}

/// Tells of an event: as a line of JSON on standard output, or in words on standard error.
pub fn tell(json: bool, event: &str, mut about: Value, words: impl Display) {
    if !json {
        return complain(words);
    }
    about["event"] = event.into();
    say(about);
}

/// Parses `30`, `0.5`, `30s` or `250ms`.
///
/// # Errors
/// A description of the mistake.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1000.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    number
        .trim()
        .parse()
        .ok()
        .and_then(|number: f64| Duration::try_from_secs_f64(number / unit).ok())
        .ok_or_else(|| "write seconds like 30 or 0.5s, or milliseconds like 250ms".to_owned())
}

/// Parses a [duration] that is more than 0: with a timeout of 0, everything fails.
///
/// # Errors
/// A description of the mistake.
pub fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration(text)?;
    match timeout.is_zero() {
        true => Err("a timeout has to be more than 0".to_owned()),
        false => Ok(timeout),
    }
}

/// Parses where a server listens, as `127.0.0.1:80`, `[::1]:80` or `localhost:80`; a name stands for the first of its
/// addresses.
///
/// # Errors
/// A description of the mistake.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or("write HOST:PORT")?;
    let port: u16 = port.parse().map_err(|_| "the port is not a port")?;
    if host.eq_ignore_ascii_case("localhost") {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let found = (host, port).to_socket_addrs();
    let mut found = found.map_err(|error| format!("{host:?}: {error}"))?;
    found
        .next()
        .ok_or_else(|| format!("{host:?} has no address"))
}

/// Returns whether to use colours: not in pipes and files, and not if `NO_COLOR` is set.
#[must_use]
pub fn wants_colour(stream: &impl IsTerminal) -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !no_colour && !dumb
}

/// Writes the logs of the libraries to standard error: warnings, with `-v` information, with `-vv`
/// more, with `-q` errors only. Without these options, `RUST_LOG` decides.
fn log(Verbosity { quiet, verbose }: Verbosity, warns: bool) {
    use tracing_subscriber::EnvFilter;
    let ours = |level: &str| {
        let crates = OURS.map(|name| format!(",{name}={level}"));
        // The WebSocket library logs whole requests, secrets included, so it stays at `info`.
        format!("info{}", crates.concat())
    };
    let variable = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = match (quiet, verbose) {
        (true, _) => None,
        // An empty variable orders nothing.
        (_, 0) => Some(variable.trim()).filter(|ordered| !ordered.is_empty()),
        _ => None,
    };
    let filter = filter.and_then(|ordered| EnvFilter::try_new(ordered).ok());
    let filter = filter.unwrap_or_else(|| {
        EnvFilter::new(match (quiet, verbose) {
            (true, _) => "error".to_owned(),
            (_, 0) if !warns => "error".to_owned(),
            (_, 0) => format!("warn,{TARGET}=info"),
            (_, 1) => ours("debug"),
            _ => ours("trace"),
        })
    });
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(wants_colour(&io::stderr()))
        .with_writer(|| Stderr)
        .map_event_format(Lines)
        .fmt_fields(debug_fn(field).delimited(" "))
        .with_filter(filter);
    let layers = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otlp")]
    let layers = layers.with(otlp::layer());
    let _ = layers.try_init();
}

/// Writes a field of an event: values come from peers, too.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = format!("{value:?}");
    match field.name() {
        "message" => writer.write_str(&printable(&value)),
        name => write!(writer, "{name}={}", printable(&value)),
    }
}

/// A host's console lines as the protocol has them; everything else as the inner format has it.
struct Lines<F>(F);

impl<S, N, F> FormatEvent<S, N> for Lines<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        cx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() != TARGET {
            return self.0.format_event(cx, writer, event);
        }
        cx.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Raises the limit of open files (each connection needs one) to `wanted` or as far as the system
/// allows, and returns the new limit. `None` if it did not change.
#[must_use]
pub fn raise_file_limit(wanted: u64) -> Option<u64> {
    rlimit::increase_nofile_limit(wanted)
        .inspect_err(|error| tracing::warn!(%error, "the limit of open files stays as it is"))
        .ok()
}

/// Listens from this call on for Ctrl-C, for the termination signal of a service manager, and for the end of the
/// terminal (SIGHUP, unless it is ignored, as with `nohup`). The future ends with the first of them.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn end_signal() -> impl Future<Output = ()> + Send + 'static {
    first_of(true)
}

/// Like [`end_signal`], after the first signal: one that ends at once what is still in progress. That is no SIGHUP,
/// which the shell and the system both send when a terminal closes.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn second_signal() -> impl Future<Output = ()> + Send + 'static {
    first_of(false)
}

fn first_of(with_hangup: bool) -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    let signals = {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = (with_hangup && !ignores_hangup()).then(SignalKind::hangup);
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        kinds.into_iter().chain(hangup).map(signal)
    };
    #[cfg(windows)]
    let signals = {
        let _ = with_hangup;
        [tokio::signal::windows::ctrl_c()].into_iter()
    };
    // All of them listen from now on.
    let signals: Vec<_> = signals.flatten().collect();
    async move {
        let waits = signals.into_iter().map(|mut signal| {
            Box::pin(async move {
                signal.recv().await;
            })
        });
        let waits: Vec<_> = waits.collect();
        if waits.is_empty() {
            std::future::pending::<()>().await;
        }
        futures_util::future::select_all(waits).await;
    }
}

/// Returns whether this process was started with SIGHUP ignored, where the system tells that.
#[cfg(unix)]
#[must_use]
pub fn ignores_hangup() -> bool {
    static IGNORES: LazyLock<bool> = LazyLock::new(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // The first bit is that of signal 1.
        ignored.is_some_and(|mask| mask & 1 == 1)
    });
    *IGNORES
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_signal_that_comes_before_somebody_waits_is_not_lost() {
        use rustix::process::{Signal, getpid, kill_process};
        // Not where these tests themselves are to survive their terminal.
        let hangup = (!ignores_hangup()).then_some(Signal::HUP);
        for signal in std::iter::once(Signal::TERM).chain(hangup) {
            let end = end_signal();
            kill_process(getpid(), signal).unwrap();
            end.await;
        }
    }

    #[test]
    fn servers_listen_at_an_address_or_a_name() {
        for (text, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("LOCALHOST:80", "127.0.0.1:80"),
        ] {
            assert_eq!(address(text), Ok(expected.parse().unwrap()), "{text}");
        }
        for text in ["", "80", "127.0.0.1", "localhost:", "localhost:99999"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_logged_of_a_peer_controls_no_terminal_and_forges_no_line() {
        #[derive(Clone, Default)]
        struct Log(Arc<Mutex<Vec<u8>>>);
        impl io::Write for Log {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let log = Log::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .map_event_format(Lines)
            .fmt_fields(debug_fn(field).delimited(" "));
        let error = "no\x1b[2J\u{9b}1m\u{202e}\n ERROR all is lost";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            tracing::warn!(%error, text = error, "said {error}");
            tracing::info!(target: TARGET, "{error}");
        });
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.lines().count(), 2, "{log}");
        assert!(
            log.lines()
                .all(|line| !line.contains(crate::screen::is_control)),
            "{log:?}"
        );
        assert!(
            log.contains(r"error=no\u{1b}[2J\u{9b}1m\u{202e}\n ERROR"),
            "{log}"
        );
    }

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        for (text, millis) in [("30", 30_000), ("0.5", 500), ("2s", 2000), ("250ms", 250)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1", "1h", "nan", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["0", "0s", "0.0", "0ms", "1e-30"] {
            assert_eq!(duration(text), Ok(Duration::ZERO), "{text}");
            assert!(timeout(text).is_err(), "{text}");
        }
        assert_eq!(timeout("1ms"), Ok(Duration::from_millis(1)));
    }
}
