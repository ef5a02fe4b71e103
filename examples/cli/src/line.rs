//! [`LineArgs`]: what all clients say about the way to their server; [`Urls`]: where it is.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use acolyte_proto::net::SseClient;
use rpc_core::Secret;
use rpc_core::net::tls::TlsConfig;
use rpc_core::net::ws::{ProxyConfig, WsConfig, WsDialer, redact_urls, urls};

use super::{Failure, bounded};

/// The URL of a server, or several. What may be a secret in it is never printed.
#[derive(Clone)]
pub struct Urls(String);

impl Urls {
    /// Returns the URLs with their secrets, to dial them.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether there are several nodes to choose from.
    #[must_use]
    pub fn are_several(&self) -> bool {
        urls(&self.0).nth(1).is_some()
    }
}

impl From<String> for Urls {
    fn from(urls: String) -> Self {
        Self(urls.trim().to_owned())
    }
}

impl Display for Urls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact_urls(&self.0))
    }
}

impl fmt::Debug for Urls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// What goes along to a server, and which one is trusted.
#[allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LineArgs {
    /// A header for a server or what is in front of it, as 'NAME: VALUE', or @FILE with one a line; may be
    /// repeated. A proxy on the way comes from HTTPS_PROXY, HTTP_PROXY (ws://), ALL_PROXY and NO_PROXY.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<Secret>,
    /// Trust servers with a certificate of these issuers, or with one of these, and no others: a PEM file.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// What [`LineArgs`] say, read and checked.
#[derive(Clone, Debug, Default)]
pub struct Line {
    headers: Vec<(String, Secret)>,
    tls: Option<TlsConfig>,
    proxy: ProxyConfig,
}

impl LineArgs {
    /// Reads the files and the environment and checks the headers like [`open`](Self::open), and checks
    /// each of these URLs.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read, a header cannot be sent, or a URL is invalid.
    pub fn to(&self, to: &Urls) -> Result<Line, Failure> {
        for url in urls(&to.0) {
            check_url(url, "ws")?;
        }
        self.open()
    }

    /// Reads the files and the proxies of the environment, and checks the headers.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read, or a header cannot be sent.
    pub fn open(&self) -> Result<Line, Failure> {
        Ok(Line {
            headers: headers("--header", &self.headers)?,
            tls: trusted("--ca", self.ca.as_deref())?,
            proxy: ProxyConfig::from_env(),
        })
    }
}

/// Checks the URL of a server, which most often has this `scheme`.
///
/// # Errors
/// [`Failure`] if it cannot be dialled, with how to write it.
pub fn check_url(url: &str, scheme: &str) -> Result<(), Failure> {
    let shown = redact_urls(url);
    let why = match WsDialer::new(url) {
        Ok(_) => return Ok(()),
        Err(_) if shown.is_empty() => format!("the URL is empty: write it as {scheme}://HOST:PORT"),
        Err(_) if WsDialer::new(&format!("{scheme}://{url}")).is_ok() => {
            format!("{shown:?} is not a URL: did you mean {scheme}://{shown}?")
        }
        Err(error) => format!("{error}; write it as {scheme}://HOST:PORT"),
    };
    Err(Failure::usage(why))
}

/// Reads headers, each as `NAME: VALUE` or as `@FILE` with one a line. `place` is the option or setting.
///
/// # Errors
/// [`Failure`] if a file cannot be read, or a header cannot be sent.
pub fn headers(place: &str, given: &[Secret]) -> Result<Vec<(String, Secret)>, Failure> {
    let mut headers = Vec::new();
    for given in given {
        match given.expose().strip_prefix('@') {
            Some(file) => {
                let text = bounded::given_text(format_args!("{place} @{file}"), file.as_ref())?;
                for text in text.lines().filter(|text| !text.trim().is_empty()) {
                    headers.push(header(place, text)?);
                }
            }
            None => headers.push(header(place, given.expose())?),
        }
    }
    Ok(headers)
}

/// Reads a header. Its value is in no error.
fn header(place: &str, text: &str) -> Result<(String, Secret), Failure> {
    let wrong = || Failure::usage(format_args!("{place}: write it as 'NAME: VALUE', or @FILE"));
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let (name, value) = (name.trim(), Secret::from(value.trim()));
    WsConfig::default()
        .with_secret_header(name, &value)
        .map_err(|error| Failure::usage(format_args!("{place} {name}: {error}")))?;
    Ok((name.to_owned(), value))
}

/// Reads the certificates that an option or setting names, if it does.
///
/// # Errors
/// [`Failure`] if the file cannot be read, or has no certificate.
pub fn trusted(place: &str, file: Option<&Path>) -> Result<Option<TlsConfig>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let place = format!("{place} {}", file.display());
    let tls = TlsConfig::with_root_certificates(&bounded::given(&place, file)?).map(Some);
    tls.map_err(|error| Failure::usage(format_args!("{place}: {error}")))
}

impl Line {
    /// Adds it to a dialer.
    #[must_use]
    pub fn dialer(&self, mut dialer: WsDialer) -> WsDialer {
        for (name, value) in &self.headers {
            // It was checked when it was read.
            dialer = (dialer.clone().with_secret_header(name, value)).unwrap_or(dialer);
        }
        dialer = dialer.with_proxy(self.proxy.clone());
        match &self.tls {
            Some(tls) => dialer.with_tls(tls.clone()),
            None => dialer,
        }
    }

    /// Adds it to a client over HTTP.
    #[must_use]
    pub fn sse(&self, client: SseClient) -> SseClient {
        client.with_dialer(|dialer| self.dialer(dialer))
    }

    /// Returns whether there are headers.
    #[must_use]
    pub const fn has_headers(&self) -> bool {
        !self.headers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(headers: &[&str]) -> Result<Line, String> {
        let headers = headers.iter().map(|&header| Secret::from(header)).collect();
        let args = LineArgs { headers, ca: None };
        args.open().map_err(|failure| failure.to_string())
    }

    #[test]
    fn headers_go_along_and_are_never_printed() {
        let line = open(&["X-Key: hunter2", "authorization:Bearer hunter2"]).unwrap();
        let dialer = line.dialer(WsDialer::new("ws://h").unwrap());
        let headers = dialer.headers().unwrap();
        assert_eq!(headers["x-key"], "hunter2");
        assert_eq!(headers["authorization"], "Bearer hunter2");
        assert!(!format!("{line:?} {dialer:?}").contains("hunter2"));
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_reported_without_its_value() {
        for wrong in [
            "hunter2",
            "a b: hunter2",
            "x: hunter2\r\ny: z",
            "Upgrade: hunter2",
        ] {
            let error = open(&[wrong]).unwrap_err();
            assert!(error.starts_with("--header"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = open(&["@/nowhere"]).unwrap_err();
        assert!(error.starts_with("--header @/nowhere: "), "{error}");
    }

    #[test]
    fn a_url_without_a_scheme_gets_a_suggestion() {
        let opened = LineArgs::default().to(&Urls::from("localhost:7200".to_owned()));
        let error = opened.unwrap_err().to_string();
        assert!(
            error.ends_with("did you mean ws://localhost:7200?"),
            "{error}"
        );
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        let urls = Urls::from(" ws://ann:hunter2@h/x?token=hunter2 ".to_owned());
        assert_eq!(format!("{urls} {urls:?}"), "ws://h/x ws://h/x");
        assert!(urls.expose().ends_with("=hunter2"));
    }
}
