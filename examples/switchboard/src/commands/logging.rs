//! [`Verbosity`]: how much a command prints, and the logs of the libraries on standard error.

use std::{fmt, io};

use connectonion_proto::limits::CONSOLE_TARGET as TARGET;
use tracing::field::Field;
use tracing::{Event, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::chat::terminal;
use crate::cli::{Stderr, complain, set_editor, set_quiet, wants_colour};
use crate::text::printable;

#[cfg(feature = "otlp")]
pub(super) mod otlp;

/// The crates of this workspace and the spans of connections and calls, for log filters.
const OURS: &str = "switchboard acolyte_proto connectonion_proto exoclaw_proto smarthole_proto snek_proto rpc_core rpc";

/// How much a command prints.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Verbosity {
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

impl Verbosity {
    /// Applies the options to this process, and begins to write logs to standard error. If the
    /// command `warns`, warnings of the libraries are among them.
    pub(crate) fn start(self, warns: bool) {
        set_quiet(self.quiet);
        set_editor(terminal::write_above);
        log(self, warns);
    }
}

/// Writes the logs of the libraries to standard error: warnings, with `-v` information, with `-vv`
/// more, with `-q` errors only. Without these options, `RUST_LOG` decides.
fn log(Verbosity { quiet, verbose }: Verbosity, warns: bool) {
    use tracing_subscriber::EnvFilter;
    let ours = |level: &str| {
        let crates = OURS.split(' ').map(|name| format!(",{name}={level}"));
        // The WebSocket library logs whole requests, secrets included, so it stays at `info`.
        format!("info{}", crates.collect::<String>())
    };
    let variable = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = match (quiet, verbose) {
        (true, _) => None,
        // An empty variable orders nothing.
        (_, 0) => Some(variable.trim()).filter(|ordered| !ordered.is_empty()),
        _ => None,
    };
    let filter = filter.and_then(|ordered| {
        let odd = |error| complain(format_args!("warning: RUST_LOG is ignored: {error}"));
        EnvFilter::try_new(ordered).map_err(odd).ok()
    });
    let filter = filter.unwrap_or_else(|| {
        EnvFilter::new(match (quiet, verbose) {
            (true, _) => "error".to_owned(),
            (_, 0) if !warns => "error".to_owned(),
            // Clients tell of lost connections themselves.
            (_, 0) => format!("warn,rpc_core::net::link=error,{TARGET}=info"),
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn logged_text_of_a_peer_controls_no_terminal_and_forges_no_line() {
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
                .all(|line| !line.contains(crate::text::is_control)),
            "{log:?}"
        );
        assert!(
            log.contains(r"error=no\u{1b}[2J\u{9b}1m\u{202e}\n ERROR"),
            "{log}"
        );
    }
}
