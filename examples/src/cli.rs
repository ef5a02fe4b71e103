//! Common parts of the command lines: exit codes, durations, colours, the end signal.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use connectonion_proto::console::TARGET;
use rpc_core::net::server::{Guards, OriginPolicy};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::terminal;

mod health;
mod signals;
mod variable;

pub use health::health;
pub use signals::Signals;
pub use variable::variable;

/// The crates of this workspace, for log filters.
const OURS: [&str; 7] = [
    "examples",
    "acolyte_proto",
    "connectonion_proto",
    "exoclaw_proto",
    "smarthole_proto",
    "snek_proto",
    "rpc_core",
];

/// The exit code for a failure at run time.
pub const FAILURE: u8 = 1;
/// The exit code for a wrong command line or environment.
pub const USAGE: u8 = 2;
/// The exit code if the peer is absent or refuses. Only in programs that document it.
pub const REFUSED: u8 = 3;
/// The exit code after an abort by the user, as shells report Ctrl-C.
pub const ABORTED: u8 = 130;

/// The extra time for connections to close after the work in progress, when a server ends.
pub const GOODBYE: Duration = Duration::from_secs(2);
/// Open files for a server with the default limit of connections, with a reserve.
pub const SOME_FILES: u64 = 4_096;

/// Writes a line to standard error. Does not panic if the reader is gone.
pub fn complain(line: impl Display) {
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

/// Writes a line to standard output.
pub fn say(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Describes which web pages these guards admit, for a line at start.
#[must_use]
pub fn web_pages(guards: &Guards) -> String {
    let (group, listed) = match &guards.origins {
        OriginPolicy::List(list) => (None, &list[..]),
        OriginPolicy::Loopback(list) => (Some("those of this machine, at any port"), &list[..]),
        OriginPolicy::Any => (Some("all"), &[][..]),
        _ => (None, &[][..]),
    };
    let own = guards.same_origin.then_some("its own");
    let named = own.into_iter().chain(group).map(str::to_owned);
    let pages: Vec<_> = named
        .chain(listed.iter().map(ToString::to_string))
        .collect();
    match pages.is_empty() {
        true => "web pages that may connect: none".to_owned(),
        false => format!("web pages that may connect: {}", pages.join("; ")),
    }
}

/// An error message with an exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// Creates a failure of the program.
    pub fn new(message: impl Display) -> Self {
        let message = message.to_string();
        Self {
            code: FAILURE,
            message,
        }
    }

    /// Creates a failure because the peer is absent or refuses. Nothing was done.
    pub fn refused(message: impl Display) -> Self {
        Self {
            code: REFUSED,
            ..Self::new(message)
        }
    }

    /// Creates a failure because the user aborted it.
    #[must_use]
    pub fn aborted() -> Self {
        Self {
            code: ABORTED,
            ..Self::new("aborted")
        }
    }

    /// Creates a failure because of wrong usage. The message says what is right.
    pub fn usage(message: impl Display) -> Self {
        let message = message.to_string();
        Self {
            code: USAGE,
            message,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Ends a program: prints nothing on success, otherwise `error: ...`, and returns the exit code.
pub fn finish(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message }) => {
            complain(format_args!(
                "error: {}",
                crate::screen::printable_lines(&message)
            ));
            ExitCode::from(code)
        }
    }
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

/// Returns whether to use colours: not in pipes and files, and not if `NO_COLOR` is set.
#[must_use]
pub fn wants_colour(stream: &impl IsTerminal) -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !no_colour && !dumb
}

/// Writes the logs of the libraries to standard error: warnings, with `-v` information, with `-vv`
/// more. `RUST_LOG` overrides it.
pub fn log(verbose: u8) {
    use tracing_subscriber::EnvFilter;
    let ours = |level: &str| {
        let crates = OURS.map(|name| format!(",{name}={level}"));
        // The WebSocket library logs whole requests, secrets included, so it stays at `info`.
        format!("info{}", crates.concat())
    };
    let default = match verbose {
        0 => format!("warn,{TARGET}=info"),
        1 => ours("debug"),
        _ => ours("trace"),
    };
    // An empty variable orders nothing.
    let ordered = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let ordered = Some(ordered.trim()).filter(|ordered| !ordered.is_empty());
    let filter = ordered.and_then(|ordered| EnvFilter::try_new(ordered).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new(default));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(wants_colour(&io::stderr()))
        .with_writer(|| Stderr)
        .map_event_format(Lines)
        .try_init();
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

/// Waits for Ctrl-C, or for the termination signal of a service manager.
pub async fn end_signal() {
    let ctrl_c = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut term) = signal(SignalKind::terminate()) else {
            return ctrl_c.await;
        };
        tokio::select! {
            () = ctrl_c => {}
            _ = term.recv() => {}
        }
    }
    #[cfg(not(unix))]
    ctrl_c.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        for (text, millis) in [("30", 30_000), ("0.5", 500), ("2s", 2000), ("250ms", 250)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1", "1h", "nan", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_line_at_start_names_every_web_page_that_may_connect() {
        let of_this_machine = OriginPolicy::Loopback(Vec::new());
        let listing = |guards: Guards| guards.with_allowed_origin("http://LOCALHOST:80").unwrap();
        for (guards, pages) in [
            (Guards::default(), "none"),
            (Guards::default().with_same_origin(true), "its own"),
            (listing(Guards::default()), "http://localhost"),
            (
                listing(Guards::default().with_origins(of_this_machine)).with_same_origin(true),
                "its own; those of this machine, at any port; http://localhost",
            ),
            (Guards::default().with_origins(OriginPolicy::Any), "all"),
        ] {
            let line = format!("web pages that may connect: {pages}");
            assert_eq!(web_pages(&guards), line);
        }
    }
}
