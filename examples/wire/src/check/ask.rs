//! What a script asks over HTTP: upgrades, those that are refused, and requests.

use tokio::time::timeout_at;

use super::conn::{Conn, Io};
use super::expect::{found, is_status};
use super::http::{self, Asked};
use super::peer::Dial;
use super::play::Script;
use super::run::Peer;
use super::script::Headers;

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
        self.status = status;
        if let Io::Http(answer) = &io {
            self.head = answer.head.clone();
        }
        self.log(number, false, &format!("({status})"));
        self.orders.remove(&number);
        self.conns.insert(number, Conn::new(io));
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
            path,
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
        let expand =
            |(name, value): &(String, String)| Ok((name.clone(), self.variables.expand(value)?));
        headers.iter().map(expand).collect()
    }

    pub(super) fn header(&self, name: &str, regex: &str) -> Result<(), String> {
        let value = self.head.header(name);
        let value = value.ok_or_else(|| format!("there is no header {name}"))?;
        found(&self.variables.expand(regex)?, value, name)
    }
}
