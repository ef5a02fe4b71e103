//! What a script asks over HTTP: upgrades, those that are refused, and requests.

use rpc_core::testing::Side;
use tokio::time::timeout_at;

use super::conn::{Conn, Io};
use super::expect::{found, is_status};
use super::http::{self, Asked};
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
        let (status, _) = self.ask(&**dial, url, None, &path, headers, "").await?;
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
        let headers = self.expanded(headers)?;
        self.log(number, true, &format!("{method} {path} {body}"));
        let asked = self.ask(&**dial, url, Some(method), &path, headers, &body);
        let (status, io) = asked.await?;
        self.status = self.status(status, &path);
        if let Io::Http(answer) = &io {
            self.head = self.seen(answer.head.clone(), Side::Server);
        }
        let words = format!("({})", self.status);
        self.log(number, false, &words);
        self.orders.remove(&number);
        let conn = Conn::new(io, number, Side::Server, &self.tamper);
        self.conns.insert(number, conn);
        Ok(())
    }

    /// Asks a server; without a method, for a WebSocket. Returns the status, and what was opened.
    pub(super) async fn ask(
        &self,
        dial: &dyn Dial,
        url: &str,
        method: Option<&str>,
        path: &str,
        headers: Headers,
        body: &str,
    ) -> Result<(u16, Io), String> {
        let asked = Asked {
            method,
            path: self.tamper.instead(Side::Client, "path", path),
            headers,
            body,
        };
        let asking = async { http::ask(url, dial.dial().await?, asked).await };
        let answer = timeout_at(self.deadline, asking).await;
        let answer = answer.map_err(|_| "no answer comes")?;
        answer.map_err(|error| error.to_string())
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
}
