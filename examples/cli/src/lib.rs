//! What the command lines of the program and the wire tool share: output and its failures, signals, addresses,
//! durations, secrets, TLS; [`text`] of peers at a terminal, and the answers of pages over HTTP ([`web`]).

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write as _};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
#[cfg(unix)]
use std::sync::LazyLock;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

pub mod bounded;
mod failure;
mod line;
mod output;
mod serving;
mod signals;
pub mod text;
mod unreached;
mod variable;
pub mod web;

pub use failure::{EXIT_CODES, Failure, REFUSED, USAGE, finish};
pub use line::{Line, LineArgs, Urls, check_url, headers, trusted};
pub use output::{Stdout, announce, is_output_lost, parse, print_line};
pub use serving::{
    GOODBYE, Pings, Reach, TlsArgs, activated, guards, guards_of, guessable, trusting, web_pages,
};
pub use signals::{Signals, ready};
pub use unreached::{
    Service, cannot_listen, cannot_open, cannot_write, nats_failure, unreached, writable,
};
pub use variable::{SecretError, secret, secret_file, secret_or, secret_text, variable};

/// Open files for a server with the default limit of connections, with a reserve.
pub const SOME_FILES: u64 = 4_096;

/// Whether remarks are left out.
static QUIET: AtomicBool = AtomicBool::new(false);

/// What writes lines above the line that is edited at the terminal; it returns the text if there is none.
static EDITOR: OnceLock<fn(String) -> Result<(), String>> = OnceLock::new();

/// Leaves remarks out, or prints them.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Sets the function that writes lines above the line that is edited at the terminal. It returns the text
/// while nothing is edited.
pub fn set_editor(write_above: fn(String) -> Result<(), String>) {
    let _ = EDITOR.set(write_above);
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
        let stderr = io::stderr();
        if let Some(write_above) = EDITOR.get().filter(|_| stderr.is_terminal()) {
            let text = String::from_utf8_lossy(bytes);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            if write_above(text.to_owned()).is_ok() {
                return Ok(bytes.len());
            }
        }
        stderr.lock().write_all(bytes).map(|()| bytes.len())
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
pub fn report(json: bool, event: &str, mut about: Value, words: impl Display) {
    if !json {
        return complain(words);
    }
    about["event"] = event.into();
    print_line(about);
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
    if host.contains("://") {
        return Err("write HOST:PORT, without a scheme".to_owned());
    }
    let port: u16 = (port.parse()).map_err(|_| "the port must be a number from 0 to 65535")?;
    if host.eq_ignore_ascii_case("localhost") {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let found = (host, port).to_socket_addrs();
    let mut found = found.map_err(|error| format!("{host:?}: {error}; write HOST:PORT"))?;
    found
        .next()
        .ok_or_else(|| format!("{host:?} has no address"))
}

/// Returns whether to use colours: not in pipes and files, not for a [dumb](is_dumb) terminal, and not if `NO_COLOR` is
/// set.
#[must_use]
pub fn wants_colour(stream: &impl IsTerminal) -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !no_colour && (cfg!(windows) || !is_dumb())
}

/// Returns whether a terminal understands lines only, as far as is known: `TERM` is `dumb`, or not set.
#[must_use]
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
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

/// Keeps the process alive when a file would grow over the limit of its size (`ulimit -f`): the write fails, as on a
/// full disk. Programs that it starts have the system's default.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn outlive_file_limits() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // It stays in place after the listener has gone.
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    }
}

/// Returns whether this process was started with SIGHUP ignored, where the system reports that.
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
