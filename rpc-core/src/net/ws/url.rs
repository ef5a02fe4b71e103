//! The target of a dialer: a `ws` or `wss` URL, checked once.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;

use http::Uri;
use http::uri::PathAndQuery;

use crate::net::dial::DialError;

/// A URL that can be dialled.
#[derive(Clone)]
pub(super) struct Target {
    /// The URL with scheme `ws` or `wss` and a path.
    pub(super) uri: Uri,
    /// The host without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    /// Whether the URL was given with scheme `http` or `https`.
    is_http: bool,
    /// The `Host` header: host and port as the URL spells them.
    pub(super) authority: String,
    /// User and password as the URL spells them.
    pub(super) login: Option<String>,
}

impl Target {
    /// Parses and checks a URL. Schemes `http` and `https` mean `ws` and `wss`.
    pub(super) fn parse(url: &str) -> Result<Self, DialError> {
        let bad = |why: &str| DialError::BadUrl {
            url: redact(url),
            why: why.to_owned(),
        };
        if url.contains('#') {
            return Err(bad("a WebSocket URL has no fragment"));
        }
        // Names keep their form: they are not for us to translate.
        let path = url.find("://").map_or(0, |at| at + 3);
        let path = url
            .get(path..)
            .and_then(|rest| Some(path + rest.find(['/', '?'])?));
        let (host, path) = url.split_at(path.unwrap_or(url.len()));
        let uri = format!("{host}{}", ascii(path)).parse::<Uri>();
        let uri = uri.map_err(|_| match url.contains('@') {
            true => {
                bad("not a URL: in user and password, write what is not a letter or digit as %XX")
            }
            false => bad("not a URL"),
        })?;
        let mut parts = uri.into_parts();
        let scheme = parts.scheme.as_ref();
        let scheme = scheme.map(|scheme| scheme.as_str().to_ascii_lowercase());
        let is_tls = match scheme.as_deref() {
            Some("ws" | "http") => false,
            Some("wss" | "https") => true,
            Some(_) => return Err(bad("the scheme must be ws, wss, http or https")),
            None => return Err(bad("the scheme is missing")),
        };
        let authority = parts.authority.as_ref();
        let authority = authority.ok_or_else(|| bad("the host is missing"))?;
        let whole = authority.as_str();
        let (login, spelled) = match whole.rsplit_once('@') {
            Some((login, rest)) => (Some(login.to_owned()), rest),
            None => (None, whole),
        };
        let bracketed = authority.host();
        let host = bracketed.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad("the host is missing"));
        }
        if host.contains(',') {
            return Err(bad("each URL of a list needs its scheme"));
        }
        let port = match (authority.port_u16(), spelled.len() == bracketed.len()) {
            (Some(0), _) | (None, false) => return Err(bad("the port must be from 1 to 65535")),
            (Some(port), _) => port,
            (None, true) if is_tls => 443,
            (None, true) => 80,
        };
        let (host, authority) = (host.to_owned(), spelled.to_owned());
        let is_http = scheme.is_some_and(|scheme| scheme.starts_with("http"));
        let scheme = if is_tls { "wss" } else { "ws" };
        parts.scheme = Some(scheme.parse().map_err(|_| bad("not a URL"))?);
        let parsed = authority.parse().map_err(|_| bad("not a URL"))?;
        parts.authority = Some(parsed);
        let path = parts.path_and_query.as_ref();
        if path.is_none_or(|path| path.as_str().is_empty()) {
            parts.path_and_query = Some(PathAndQuery::from_static("/"));
        }
        let uri = Uri::from_parts(parts).map_err(|_| bad("not a URL"))?;
        Ok(Self {
            uri,
            host,
            port,
            is_tls,
            is_http,
            authority,
            login,
        })
    }

    /// Adds the path to a base: a URL whose own path ends with `/`, or an `http(s)` one that does not end
    /// with this path. Its query stays.
    pub(super) fn or_path(mut self, path: &str) -> Result<Self, DialError> {
        let own = self.uri.path();
        if own.ends_with('/') || self.is_http && !own.ends_with(path) {
            let query = self.uri.query().map(|query| format!("?{query}"));
            let base = own.trim_end_matches('/');
            let whole = ascii(&format!("{base}{path}{}", query.unwrap_or_default())).parse();
            let parsed = path.starts_with('/').then(|| whole.ok()).flatten();
            let mut parts = self.uri.clone().into_parts();
            parts.path_and_query = Some(parsed.ok_or_else(|| self.bad("the path is invalid"))?);
            self.uri = Uri::from_parts(parts).map_err(|_| self.bad("the path is invalid"))?;
        }
        Ok(self)
    }

    /// Returns the error for an operation that this URL does not support.
    pub(super) fn bad(&self, why: &str) -> DialError {
        DialError::BadUrl {
            url: self.printable(),
            why: why.to_owned(),
        }
    }

    /// Returns whether the host is this machine by its name.
    pub(super) fn is_localhost(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
    }

    /// Returns whether traffic to this URL stays on this machine.
    pub(super) fn is_this_machine(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.is_localhost() || address.is_ok_and(|it| it.to_canonical().is_loopback())
    }

    /// Returns host and port for error messages.
    pub(super) fn peer(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    pub(super) fn unreachable(&self, source: io::Error) -> DialError {
        DialError::Unreachable {
            host: self.peer(),
            source,
        }
    }

    /// Returns the URL in a form that may be printed.
    pub(super) fn printable(&self) -> String {
        redact(&self.uri.to_string())
    }
}

/// Encodes what is not ASCII in a path or query with percent signs.
pub(super) fn ascii(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii() {
            encoded.push(byte.into());
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Splits a list of URLs at the commas that a scheme follows: `ws://a:81,ws://b:82/rpc?x=1,2` holds
/// two. Spaces around a URL do not count. A text without such a comma is one URL.
pub fn urls(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let commas = text.match_indices(',').map(|(at, _)| at);
        let cut = commas.into_iter().find_map(|at| {
            let (url, later) = text.split_at(at);
            let later = later.get(1..)?;
            has_scheme(later.trim_start()).then_some((url, later))
        });
        let Some((url, later)) = cut else {
            return Some(text.trim());
        };
        rest = Some(later);
        Some(url.trim())
    })
}

/// Returns whether the text begins with a scheme and `://`.
fn has_scheme(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
    end.is_some_and(|end| end > 0 && text.get(end..).is_some_and(|it| it.starts_with("://")))
}

/// Returns a URL, or a list as [`urls`] reads it, as it may be printed: without credentials, queries
/// and fragments. Also works on text that is not a URL.
///
/// ```
/// use rpc_core::net::ws::redact_urls;
/// let list = "wss://ann:secret@a.example/rpc?token=secret,ws://b.example:81";
/// assert_eq!(redact_urls(list), "wss://a.example/rpc,ws://b.example:81");
/// ```
#[must_use]
pub fn redact_urls(list: &str) -> String {
    urls(list).map(redact).collect::<Vec<_>>().join(",")
}

fn redact(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) if has_scheme(url) => (format!("{scheme}://"), rest),
        _ => (String::new(), url),
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, hidden) = rest.split_at(end);
    // Everything up to the last '@' goes: a password may hold a slash.
    let place = match place.rsplit_once('@') {
        Some((_, place)) => place,
        // What looks like a port may be the begin of a password that holds a question mark.
        None if hidden.contains('@') => place.split(':').next().unwrap_or_default(),
        None => place,
    };
    format!("{scheme}{place}")
}

#[cfg(test)]
mod tests {
    use super::super::dialer::basic;
    use super::*;

    fn parse(url: &str) -> Target {
        Target::parse(url).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refuse(url: &str) -> String {
        match Target::parse(url) {
            Err(error @ DialError::BadUrl { .. }) => error.to_string(),
            Err(error) => panic!("{url}: {error}"),
            Ok(target) => panic!("{url} was taken as {}", target.uri),
        }
    }

    #[test]
    fn schemes_choose_tls_and_the_default_port() {
        for (url, is_tls, port) in [
            ("ws://example.com", false, 80),
            ("http://example.com/x", false, 80),
            ("wss://example.com", true, 443),
            ("https://example.com:8443/x", true, 8443),
            ("WS://EXAMPLE.com:81", false, 81),
        ] {
            let target = parse(url);
            assert_eq!((target.is_tls, target.port), (is_tls, port), "{url}");
        }
    }

    #[test]
    fn a_url_list_is_split_at_commas_before_schemes() {
        for (list, expected) in [
            ("ws://a", &["ws://a"][..]),
            ("ws://a,wss://b:1/x", &["ws://a", "wss://b:1/x"]),
            (" ws://a , http://b ", &["ws://a", "http://b"]),
            ("ws://a/?x=1,2,ws://b", &["ws://a/?x=1,2", "ws://b"]),
            ("ws://a,b", &["ws://a,b"]),
            ("ws://a,://b", &["ws://a,://b"]),
            ("", &[""]),
        ] {
            assert_eq!(urls(list).collect::<Vec<_>>(), expected, "{list}");
        }
    }

    #[test]
    fn the_rewritten_url_keeps_path_and_query() {
        assert_eq!(
            parse("https://example.com/a/b?c=d").uri,
            "wss://example.com/a/b?c=d"
        );
        assert_eq!(parse("ws://example.com?c=d").uri.query(), Some("c=d"));
        assert_eq!(parse("ws://example.com").uri, "ws://example.com/");
    }

    #[test]
    fn an_ipv6_address_loses_its_brackets_for_resolving_only() {
        let target = parse("ws://[::1]:9000/");
        assert_eq!((target.host.as_str(), target.port), ("::1", 9000));
        assert_eq!(target.authority, "[::1]:9000");
        assert_eq!(target.peer(), "[::1]:9000");
    }

    #[test]
    fn only_a_base_gets_the_path() {
        for (given, meant) in [
            ("ws://h:1", "ws://h:1/ws"),
            ("wss://h/", "wss://h/ws"),
            ("ws://h/other", "ws://h/other"),
            ("ws://h?a=1", "ws://h/ws?a=1"),
            ("ws://h/?a=1", "ws://h/ws?a=1"),
            ("ws://h/other?a=1", "ws://h/other?a=1"),
            ("ws://h/other/", "ws://h/other/ws"),
            ("http://h/other?a=1", "ws://h/other/ws?a=1"),
            ("https://h/other/ws", "wss://h/other/ws"),
        ] {
            assert_eq!(parse(given).or_path("/ws").unwrap().uri, meant);
        }
        for bad in ["", "ws", "/a b"] {
            assert!(parse("ws://h").or_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn loopback_is_recognized_by_address_and_name() {
        for url in [
            "ws://127.0.0.1:7200",
            "http://127.9.9.9",
            "ws://[::1]:7200/ws",
            "ws://[::ffff:127.0.0.1]",
            "ws://LocalHost",
        ] {
            assert!(parse(url).is_this_machine(), "{url}");
        }
        for url in [
            "ws://example.org:7200",
            "http://192.168.0.7/ws",
            "WS://[fe80::1]:7200",
            "ws://localhost.example.org?127.0.0.1",
            "ws://127.0.0.1.example.org",
            "ws://0.0.0.0",
        ] {
            assert!(!parse(url).is_this_machine(), "{url}");
        }
    }

    #[test]
    fn invalid_urls_are_refused() {
        for url in [
            "",
            "example.com",
            "/path",
            "ftp://example.com",
            "ws://",
            "ws://:80",
            "ws://example.com:",
            "ws://example.com:0",
            "ws://example.com:99999",
            "ws://example.com/#top",
            "ws://exa mple.com/",
            "mailto:a@b",
            "ws://a.example,b.example",
        ] {
            refuse(url);
        }
    }

    #[test]
    fn credentials_become_a_header_and_leave_the_url() {
        for (url, expected) in [
            ("ws://ann:wonder@h:1/x", "Basic YW5uOndvbmRlcg=="),
            ("ws://ann:w%40n%2Fder@h:1/x", "Basic YW5uOndAbi9kZXI="),
            ("ws://ann@h:1/x", "Basic YW5uOg=="),
        ] {
            let target = parse(url);
            let header = target.login.as_deref().and_then(basic);
            assert_eq!(header.unwrap(), expected, "{url}");
            assert_eq!(target.uri, "ws://h:1/x");
            assert_eq!(
                (target.host.as_str(), target.authority.as_str()),
                ("h", "h:1")
            );
        }
        assert!(parse("ws://h:1/x?mail=a@b").login.is_none());
    }

    #[test]
    fn displayed_urls_are_redacted() {
        for (list, printed) in [
            ("ws://h:81/x?mail=hunter@2", "ws://h"),
            ("ws://h:81/x?a=1#b,ws://u:hunter2@i", "ws://h:81/x,ws://i"),
            ("u:hunter2@h/x", "h/x"),
            ("ws://u:hun?ter2@h/x", "ws://u"),
            ("u:hunter2?://@h", "u"),
            ("nats://hunter2@a:1,u:hunter2@b", "nats://b"),
        ] {
            assert_eq!(redact_urls(list), printed, "{list}");
        }
    }

    #[test]
    fn errors_contain_no_credentials_or_query() {
        for url in [
            "ws://user:hunter2@exa mple.com/x",
            "ws://user:hun?ter2@example.com",
            "ws://example.com:99999/x?token=hunter2",
            "ws://example.com/x#hunter2",
            "hunter2@example.com",
            "ws://user:hun/ter2@example.com",
            "ftp://u:hunter2@example.com/?hunter2#hunter2",
        ] {
            let message = refuse(url);
            assert!(
                !message.contains("hun") && !message.contains("ter2"),
                "{message}"
            );
        }
        assert_eq!(
            parse("ws://example.com/x?token=hunter2").printable(),
            "ws://example.com/x"
        );
    }
}
