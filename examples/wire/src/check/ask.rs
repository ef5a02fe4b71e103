//! What a script asks over HTTP: upgrades, those that are refused, and requests.

use rpc_core::net::DialError;
use rpc_core::net::ws::{BadHeader, WsDialer, WsStream};
use rpc_core::testing::Side;
use tokio::time::timeout_at;

use super::conn::{self, BoxStream, Conn, Io};
use super::expect::{found, is_status};
use super::http;
use super::peer::Dial;
use super::play::Script;
use super::run::Peer;
use super::script::Headers;
use crate::head::Head;

impl Script<'_> {
    pub(super) async fn refuse(
        &mut self,
        wanted: &str,
        path: &str,
        headers: &[(String, String)],
    ) -> Result<(), String> {
        let path = self.variables.expand(path)?;
        let Peer::Server(dial, url) = self.peer else {
            let request = self.request(1).await?;
            self.log(1, true, &format!("(refused with {wanted})"));
            let refused = request.refuse(wanted).await;
            return refused.map_err(|error| error.to_string());
        };
        let headers = self.expanded(headers)?;
        let status = match self.upgrade(&**dial, url, Some(&path), &headers).await? {
            Ok(_) => 101,
            Err(DialError::Status { status, .. }) => status,
            Err(error) => return Err(error.to_string()),
        };
        let status = self.status(status, &path);
        self.log(1, false, &format!("(open {path}: {status})"));
        is_status(wanted, status)
    }

    pub(super) async fn http(
        &mut self,
        number: u8,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> Result<(), String> {
        let Peer::Server(dial, url) = self.peer else {
            return Err("only servers answer HTTP requests".to_owned());
        };
        let (path, body) = (self.variables.expand(path)?, self.variables.expand(body)?);
        let mut lines: Headers = Vec::new();
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            lines.push(("Host".to_owned(), split(url).1.to_owned()));
        }
        lines.extend(self.expanded(headers)?);
        self.log(number, true, &format!("{method} {path} {body}"));
        let path = self.tamper.instead(Side::Client, "path", &path).to_owned();
        let asking = async {
            let line = dial.dial().await.map_err(|error| error.to_string())?;
            http::request(line, method, &path, &lines, &body)
                .await
                .map_err(|error| error.to_string())
        };
        let answer = timeout_at(self.deadline, asking)
            .await
            .map_err(|_| "no answer comes")??;
        let status = self.status(answer.status, &path);
        self.status = status;
        self.head = self.seen(answer.head.clone(), Side::Server);
        let told = format!("({status})");
        self.log(number, false, &told);
        let io = Io::Http(Box::new(answer));
        self.orders.remove(&number);
        let conn = Conn::new(io, number, Side::Server, &self.tamper);
        self.conns.insert(number, conn);
        Ok(())
    }

    /// Returns the headers that are sent.
    pub(super) fn expanded(&self, headers: &[(String, String)]) -> Result<Headers, String> {
        let kept = headers
            .iter()
            .filter(|(name, _)| !self.tamper.drops(Side::Client, "header", name));
        kept.map(|(name, value)| {
            let value = self
                .tamper
                .word(Side::Client, "header", name)
                .unwrap_or(value);
            Ok((name.clone(), self.variables.expand(value)?))
        })
        .collect()
    }

    /// Returns the status as the script sees it.
    fn status(&self, status: u16, path: &str) -> u16 {
        let with_path = format!("{status}{path}");
        let told = self.tamper.instead(Side::Server, "status", &with_path);
        let code = status.to_string();
        let told = match told == with_path {
            true => self.tamper.instead(Side::Server, "status", &code),
            false => told,
        };
        told.parse().unwrap_or(status)
    }

    /// Returns a head as the script sees it.
    pub(super) fn seen(&self, mut head: Head, from: Side) -> Head {
        let names = head.headers().map(|(name, _)| name.to_owned());
        let dropped = names.filter(|name| self.tamper.drops(from, "header", name));
        for name in dropped.collect::<Vec<_>>() {
            head.remove(&name);
        }
        head
    }

    pub(super) fn header(&self, name: &str, regex: &str) -> Result<(), String> {
        let value = self.head.header(name);
        let value = value.ok_or_else(|| format!("there is no header {name}"))?;
        found(&self.variables.expand(regex)?, value, name)
    }

    /// Asks a server for a WebSocket.
    pub(super) async fn upgrade(
        &self,
        dial: &dyn Dial,
        url: &str,
        path: Option<&str>,
        headers: &[(String, String)],
    ) -> Result<Result<WsStream<BoxStream>, DialError>, String> {
        let (scheme, authority, own) = split(url);
        let own = if own.is_empty() {
            &self.suite.path
        } else {
            own
        };
        let path = self
            .tamper
            .instead(Side::Client, "path", path.unwrap_or(own));
        let path = if path.is_empty() { "/" } else { path };
        let upgrading = async {
            let mut config = conn::config();
            for (name, value) in headers {
                let is_subprotocol = name.eq_ignore_ascii_case("sec-websocket-protocol");
                let with = match is_subprotocol {
                    true => config.with_subprotocol(value),
                    false => config.with_header(name, value),
                };
                let bad = |error: BadHeader| DialError::Handshake(error.to_string());
                config = with.map_err(bad)?;
            }
            let dialer = WsDialer::new(&format!("{scheme}://{authority}{path}"))?;
            let dialer = dialer.with_config(config);
            dialer.upgrade(dial.dial().await?).await
        };
        let upgraded = timeout_at(self.deadline, upgrading).await;
        upgraded.map_err(|_| "no answer to the upgrade".to_owned())
    }
}

/// Splits a URL into its scheme, its authority and its path, which is empty if it is `/` only.
fn split(url: &str) -> (&str, &str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("ws", url));
    let at = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    (scheme, authority, if path == "/" { "" } else { path })
}
