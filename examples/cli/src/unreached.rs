//! [`unreached`], [`cannot_listen`], [`cannot_open`] and [`cannot_write`]: what a command cannot do, and what its user
//! can do about it.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf, absolute};

use rpc_core::net::ws::urls;
use rpc_core::store::StoreError;
use rpc_core::{CloseReason, ConnectErrorKind};

use super::{Failure, Urls};

/// A kind of server, as messages describe it.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// With its article, such as `a gateway`.
    pub name: &'static str,
    /// The command that starts one; empty if it can be any.
    pub start: &'static str,
    /// Where the client's credentials come from: a variable or options; empty if it has none.
    pub credentials: &'static str,
}

impl Service {
    /// A Snek server.
    pub const SNEK: Self = Self {
        name: "a Snek server",
        start: "switchboard bot serve --open",
        credentials: "--username and the password in SNEK_PASSWORD",
    };
    /// A server of Exoclaw.
    pub const EXOCLAW: Self = Self {
        name: "a gateway",
        start: "switchboard gateway",
        credentials: "EXOCLAW_TOKEN",
    };
    /// A router of SmartHole.
    pub const SMARTHOLE: Self = Self {
        name: "a router",
        start: "switchboard router",
        credentials: "",
    };
    /// A host of ConnectOnion.
    pub const CONNECTONION: Self = Self {
        name: "an agent",
        start: "switchboard agent host",
        credentials: "",
    };
    /// An Acolyte server.
    pub const ACOLYTE: Self = Self {
        name: "an Acolyte server",
        start: "switchboard daemon serve",
        credentials: "ACOLYTE_API_KEY",
    };
}

/// Returns the failure that there is no connection to a server, with what its user can do.
#[must_use]
pub fn unreached(service: &Service, to: &Urls, reason: &CloseReason) -> Failure {
    let name = service.name;
    let why = match reason {
        // Somebody is there: with a certificate that is refused, or with another interface.
        CloseReason::Connect {
            message,
            retryable: false,
            ..
        } => format!("{to} cannot be used as {name}: {message}"),
        CloseReason::Connect { message, .. } => format!("no connection to {to}: {message}"),
        CloseReason::HandshakeTimeout { .. } | CloseReason::Violation { .. } => {
            format!("{to} does not answer as {name}: {reason}")
        }
        _ => format!("no connection to {to}: {reason}"),
    };
    Failure::refused(with_step(why, connected(service, to, reason)))
}

/// Returns the failure of a server that cannot listen at an address, which these `options` choose.
#[must_use]
pub fn cannot_listen(address: impl Display, options: &str, error: &io::Error) -> Failure {
    let cause = match error.kind() {
        ErrorKind::AddrInUse => Some("another program listens there: stop it, or"),
        ErrorKind::AddrNotAvailable => Some("this machine does not have that address:"),
        ErrorKind::PermissionDenied => Some("that port needs more rights:"),
        _ => None,
    };
    let step = cause.map(|cause| format!("{cause} choose another with {options}"));
    let why = format!("cannot listen on {address}: {error}");
    Failure::new(with_step(why, step))
}

/// Returns the failure that what is to be kept cannot be, which these `options` choose. `why` names the whole path.
#[must_use]
pub fn cannot_write(why: impl Display, options: &str, kind: ErrorKind) -> Failure {
    let cause = match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("make room there, or"),
        ErrorKind::PermissionDenied => Some("this user cannot write there:"),
        ErrorKind::ReadOnlyFilesystem => Some("that disk is read-only:"),
        ErrorKind::NotFound => Some("nothing can be made there:"),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => Some("a folder is needed there:"),
        ErrorKind::IsADirectory => Some("a file is needed there:"),
        ErrorKind::ResourceBusy => Some("stop that program, or"),
        ErrorKind::FileTooLarge => Some("shorten it, or"),
        _ => None,
    };
    let step = cause.map(|cause| format!("{cause} choose another with {options}"));
    Failure::new(with_step(why.to_string(), step))
}

/// Returns the failure that a store in a file, which this `option` names, cannot be opened.
#[must_use]
pub fn cannot_open(option: &str, path: &Path, error: &StoreError) -> Failure {
    let kind = match error {
        StoreError::Config { .. } => ErrorKind::ResourceBusy,
        StoreError::Full { .. } => ErrorKind::StorageFull,
        // The engine does not say of which kind its other failures are.
        _ => ErrorKind::Other,
    };
    match writable(path) {
        Err((place, cause)) => {
            let place = absolute(&place).unwrap_or(place);
            let why = format!("{option}: {}: {cause}", place.display());
            cannot_write(why, option, cause.kind())
        }
        Ok(()) => cannot_write(format_args!("{option}: {error}"), option, kind),
    }
}

/// Says why NATS did not do what a program needs for its start.
#[must_use]
pub fn nats_failure(error: &StoreError) -> Failure {
    let message = match error {
        StoreError::Full { .. } => format!("--nats: {error}; ask for less with --nats-bytes"),
        _ => format!("--nats: {error}"),
    };
    match error {
        StoreError::Config { .. } | StoreError::TooLarge => Failure::usage(message),
        _ => Failure::refused(message),
    }
}

/// Checks whether a file can be read and written, or made with its folders: by another one that is removed again.
///
/// # Errors
/// Where it cannot, and the system's error.
pub fn writable(file: &Path) -> Result<(), (PathBuf, io::Error)> {
    // Not only written: opening a pipe would wait for its other end.
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    match options.open(file) {
        Ok(_) => return Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        Err(error) => return Err((file.to_owned(), error)),
    }
    let mut folder = file.parent().unwrap_or(file);
    while !folder.as_os_str().is_empty() && !folder.exists() {
        folder = folder.parent().unwrap_or(Path::new(""));
    }
    let beside = folder.join(format!(".switchboard-{:016x}", rpc_core::net::entropy()));
    let made = options.create_new(true).open(&beside).and_then(|mut made| {
        made.write_all(&[0; 4096])?;
        made.sync_all()
    });
    // What cannot be made is not there.
    let _ = std::fs::remove_file(beside);
    made.map_err(|error| (folder.to_owned(), error))
}

/// Adds what the user can do about a failure, if anything is known that the reason does not name.
fn with_step(why: String, step: Option<String>) -> String {
    match step {
        Some(step) => format!("{why}; {step}"),
        None => why,
    }
}

/// Returns what the user can do about a failure to connect.
fn connected(service: &Service, to: &Urls, reason: &CloseReason) -> Option<String> {
    let Service {
        name,
        start,
        credentials,
    } = service;
    let elsewhere = || {
        Some(format!(
            "check host, port and path: {name} may listen elsewhere"
        ))
    };
    // The same with TLS, or without.
    let other_scheme = || {
        let first = urls(to.expose()).next()?;
        let (scheme, rest) = first.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let other = match scheme.as_str() {
            "wss" => "ws".to_owned(),
            "https" => "http".to_owned(),
            plain => format!("{plain}s"),
        };
        Some(format!("use {}", Urls::from(format!("{other}://{rest}"))))
    };
    match reason {
        CloseReason::Authentication { .. } if credentials.is_empty() => {
            Some("what is in front of it may want a --header".to_owned())
        }
        CloseReason::Authentication { .. } => Some(format!("check {credentials}")),
        CloseReason::HandshakeTimeout { .. } | CloseReason::Violation { .. } => elsewhere(),
        // The codes of protocols, and this one does not know it.
        CloseReason::Peer(frame) if (4000..5000).contains(&frame.code) => elsewhere(),
        CloseReason::Connect { kind, .. } => match kind {
            ConnectErrorKind::UnknownHost => Some("check the host name".to_owned()),
            ConnectErrorKind::Refused if start.is_empty() => {
                Some("nothing listens there: check host and port, and start it".to_owned())
            }
            ConnectErrorKind::Refused => Some(format!(
                "nothing listens there: check host and port, or start {name} with '{start}'"
            )),
            ConnectErrorKind::HungUp => {
                let step = other_scheme()?;
                Some(format!("if the server does not expect that scheme, {step}"))
            }
            ConnectErrorKind::TimedOut => {
                Some("check host and port, and the firewalls on the way".to_owned())
            }
            ConnectErrorKind::Proxy => Some(
                "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY name the proxy, and NO_PROXY the hosts without one"
                    .to_owned(),
            ),
            ConnectErrorKind::Certificate => {
                Some("if it is only the issuer, trust it with --ca FILE; else the server needs another certificate".to_owned())
            }
            ConnectErrorKind::PlainServer | ConnectErrorKind::TlsServer => other_scheme(),
            ConnectErrorKind::Status(300..=399) => Some("use the URL that it names".to_owned()),
            ConnectErrorKind::Status(429 | 503) => Some("try again later".to_owned()),
            ConnectErrorKind::Status(403 | 407) => {
                Some("check the path; what is in front of it may want a --header".to_owned())
            }
            ConnectErrorKind::Status(500..=599) => Some(format!(
                "a proxy answers in its place: check whether {name} runs behind it"
            )),
            ConnectErrorKind::Status(_) | ConnectErrorKind::Handshake => elsewhere(),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rpc_core::CloseFrame;

    use super::*;

    #[test]
    fn each_failure_says_what_failed_and_what_to_do() {
        let connect = |kind, retryable| CloseReason::Connect {
            kind,
            message: "why".to_owned(),
            retryable,
        };
        let after = std::time::Duration::from_secs(3);
        use ConnectErrorKind as Kind;
        for (url, reason, expected) in [
            (
                "ws://h:1",
                connect(Kind::UnknownHost, true),
                "no connection to ws://h:1: why; check the host name",
            ),
            (
                "ws://h:1",
                connect(Kind::Refused, true),
                "no connection to ws://h:1: why; nothing listens there: check host and port, or start a gateway with 'switchboard gateway'",
            ),
            (
                "ws://h:1",
                connect(Kind::HungUp, true),
                "no connection to ws://h:1: why; if the server does not expect that scheme, use wss://h:1",
            ),
            (
                "ws://h:1/x",
                connect(Kind::TlsServer, false),
                "ws://h:1/x cannot be used as a gateway: why; use wss://h:1/x",
            ),
            (
                "https://a@h:1,wss://i",
                connect(Kind::PlainServer, false),
                "https://h:1,wss://i cannot be used as a gateway: why; use http://h:1",
            ),
            (
                "wss://h",
                connect(Kind::Certificate, false),
                "wss://h cannot be used as a gateway: why; if it is only the issuer, trust it with --ca FILE; else the server needs another certificate",
            ),
            (
                "ws://h",
                connect(Kind::Status(301), true),
                "no connection to ws://h: why; use the URL that it names",
            ),
            (
                "ws://h",
                connect(Kind::Status(404), false),
                "ws://h cannot be used as a gateway: why; check host, port and path: a gateway may listen elsewhere",
            ),
            (
                "ws://h",
                connect(Kind::Status(502), true),
                "no connection to ws://h: why; a proxy answers in its place: check whether a gateway runs behind it",
            ),
            (
                "ws://h",
                CloseReason::Violation {
                    message: "no hello".to_owned(),
                },
                "ws://h does not answer as a gateway: the peer violated the protocol: no hello; check host, port and path: a gateway may listen elsewhere",
            ),
            (
                "ws://h",
                CloseReason::HandshakeTimeout { after },
                "ws://h does not answer as a gateway: the handshake did not finish within 3s; check host, port and path: a gateway may listen elsewhere",
            ),
            (
                "ws://h",
                CloseReason::Authentication {
                    message: "no".to_owned(),
                },
                "no connection to ws://h: authentication failed: no; check EXOCLAW_TOKEN",
            ),
            (
                "ws://h",
                CloseReason::Peer(CloseFrame::new(4001, "no")),
                "no connection to ws://h: closed by the peer (4001: no); check host, port and path: a gateway may listen elsewhere",
            ),
            (
                "ws://h",
                connect(Kind::Status(403), false),
                "ws://h cannot be used as a gateway: why; check the path; what is in front of it may want a --header",
            ),
            (
                "ws://h",
                CloseReason::Peer(CloseFrame::new(1012, "restart")),
                "no connection to ws://h: closed by the peer (1012: restart)",
            ),
        ] {
            let failure = unreached(&Service::EXOCLAW, &Urls::from(url.to_owned()), &reason);
            assert_eq!(failure.to_string(), expected);
            assert_eq!(failure.code(), crate::REFUSED);
        }
    }

    #[test]
    fn what_cannot_be_listened_at_or_written_names_the_options_that_change_it() {
        let listen = "127.0.0.1:80";
        for (kind, step) in [
            (
                ErrorKind::AddrInUse,
                "; another program listens there: stop it, or choose another with --listen",
            ),
            (
                ErrorKind::AddrNotAvailable,
                "; this machine does not have that address: choose another with --listen",
            ),
            (
                ErrorKind::PermissionDenied,
                "; that port needs more rights: choose another with --listen",
            ),
            (ErrorKind::Other, ""),
        ] {
            let error = io::Error::new(kind, "why");
            let failure = cannot_listen(listen, "--listen", &error).to_string();
            assert_eq!(failure, format!("cannot listen on {listen}: why{step}"));
        }
        for (kind, cause) in [
            (ErrorKind::NotFound, "nothing can be made there:"),
            (ErrorKind::PermissionDenied, "this user cannot write there:"),
            (ErrorKind::ReadOnlyFilesystem, "that disk is read-only:"),
            (ErrorKind::NotADirectory, "a folder is needed there:"),
            (ErrorKind::IsADirectory, "a file is needed there:"),
            (ErrorKind::StorageFull, "make room there, or"),
            (ErrorKind::ResourceBusy, "stop that program, or"),
        ] {
            let failure = cannot_write("--home /x: why", "--home", kind).to_string();
            let step = format!("{cause} choose another with --home");
            assert_eq!(failure, format!("--home /x: why; {step}"));
        }
        let failure = cannot_write("why", "--home", ErrorKind::InvalidData);
        assert_eq!(failure.to_string(), "why");
    }

    #[test]
    fn a_store_that_cannot_be_opened_names_what_is_in_its_way() {
        let unopened = |path: &Path, error| cannot_open("--store", path, &error).to_string();
        let damaged = || StoreError::Failed {
            message: "it is damaged".to_owned(),
        };
        let folder = std::env::temp_dir();
        let failure = unopened(&folder, damaged());
        let step = "a file is needed there: choose another with --store";
        assert!(
            failure.starts_with(&format!("--store: {}: ", folder.display())),
            "{failure}"
        );
        assert!(failure.ends_with(step), "{failure}");
        // A file that can be written says itself what is wrong with it.
        let file = folder.join(format!("switchboard-opened-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            unopened(&file, damaged()),
            "--store: the store failed: it is damaged"
        );
        let below = unopened(&file.join("below/store"), damaged());
        assert!(below.contains(&format!("{}: ", file.display())), "{below}");
        let step = "a folder is needed there: choose another with --store";
        assert!(below.ends_with(step), "{below}");
        std::fs::remove_file(&file).unwrap();
        let used = StoreError::Config {
            message: "x is in use by y".to_owned(),
        };
        assert_eq!(
            unopened(&file, used),
            "--store: x is in use by y; stop that program, or choose another with --store"
        );
    }
}
