//! [`Server`]: the server that a replay calls as the recorded client did.

use rpc_core::net::tls::TlsConfig;
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{DialError, Dialer as _};

use super::exchange::Exchange;
use super::line::Line;
use super::{Difference, Peer, Playback, Script};
use crate::check::http;
use crate::frame::is_one;

/// Headers that belong to a connection, and are made anew.
const OWN: &str = "host connection upgrade sec-websocket-key sec-websocket-version sec-websocket-extensions \
    sec-websocket-protocol content-length transfer-encoding keep-alive accept-encoding proxy-connection";

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its URL. A path of its own replaces the recorded one.
    pub url: String,
    /// Which certificates are trusted.
    pub tls: Option<TlsConfig>,
    /// Headers in place of the recorded ones, with names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Server {
    /// Returns the headers of a recorded request, and those that replace them.
    fn headers(&self, script: &Exchange, playback: &Playback) -> Vec<(String, String)> {
        let recorded = script.request.headers().filter_map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            let is_replaced = self.headers.iter().any(|(other, _)| *other == name);
            (!is_replaced).then(|| (name, playback.bound(value)))
        });
        recorded.chain(self.headers.iter().cloned()).collect()
    }

    fn dialer(&self, script: &Exchange, playback: &Playback) -> Result<WsDialer, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut dialer = WsDialer::new(&self.url).map_err(|error| text(&error))?;
        if script.path.starts_with('/') {
            let path = playback.bound(&script.path);
            dialer = dialer.or_path(&path).map_err(|error| text(&error))?;
        }
        if let Some(tls) = &self.tls {
            dialer = dialer.with_tls(tls.clone());
        }
        Ok(dialer)
    }

    async fn dial(&self, script: &Exchange, playback: &Playback) -> Result<Option<Line>, String> {
        let mut dialer = self.dialer(script, playback)?;
        for (name, value) in self.headers(script, playback) {
            if name == "sec-websocket-protocol" {
                for offer in value.split(',').map(str::trim) {
                    dialer = dialer
                        .with_subprotocol(offer)
                        .map_err(|error| error.to_string())?;
                }
            } else if !is_one(&name, OWN) {
                dialer = dialer
                    .with_secret_header(&name, &value.into())
                    .map_err(|error| error.to_string())?;
            }
        }
        let recorded = script.answer.status().unwrap_or(101);
        let ws = match dialer.dial().await {
            Ok(_) if script.is_refused() => {
                return Err(format!(
                    "the server accepts the connection: {recorded} is recorded"
                ));
            }
            Ok(ws) => ws,
            Err(DialError::Status { status, .. }) if status == recorded => return Ok(None),
            Err(error) => return Err(format!("{error}: {recorded} is recorded")),
        };
        let selected = ws.subprotocol().map(str::to_owned);
        let expected = script.answer.header("sec-websocket-protocol");
        // A selected token is as secret as an offered one.
        let is_other = selected.is_some() != expected.is_some()
            || (selected.as_deref() != expected
                && !expected.is_some_and(|it| it.starts_with("bearer.")));
        if is_other && script.answer.status().is_some() && self.headers.is_empty() {
            return Err("the server selects another subprotocol than recorded".to_owned());
        }
        Ok(Some(Line::new(ws)))
    }

    async fn request(
        &self,
        script: &Exchange,
        playback: &Playback,
    ) -> Result<Option<Line>, String> {
        let dialer = self.dialer(script, playback)?;
        let (line, _) = dialer.open().await.map_err(|error| error.to_string())?;
        let mut headers = self.headers(script, playback);
        headers.retain(|(name, _)| !is_one(name, OWN));
        if let Ok(own) = dialer.headers()
            && let Some(Ok(host)) = own.get(::http::header::HOST).map(|host| host.to_str())
        {
            headers.push(("host".to_owned(), host.to_owned()));
        }
        let method = script.request.method();
        let path = playback.bound(&script.path);
        let body = playback.bound(&script.body);
        let answer = http::request(Box::new(line), method, &path, &headers, &body).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match script.answer.status() {
            Some(recorded) if recorded != answer.status => Err(format!(
                "the status is {}: {recorded} is recorded",
                answer.status
            )),
            _ => Ok(Some(Line::answer(answer))),
        }
    }
}

impl Peer for Server {
    async fn open(
        &mut self,
        script: &Script,
        playback: &mut Playback,
    ) -> Result<Option<Line>, Difference> {
        let exchange = Exchange::of(script);
        let opened = match exchange.is_plain {
            true => self.request(&exchange, playback).await,
            false => self.dial(&exchange, playback).await,
        };
        opened.map_err(|what| script.differs(what))
    }
}
