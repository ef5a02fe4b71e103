//! [`Server`]: the server that a replay calls as the recorded client did.

use rpc_core::net::DialError;
use rpc_core::net::tls::TlsConfig;
use rpc_core::net::ws::WsDialer;

use super::exchange::Exchange;
use super::line::Line;
use super::{Peer, Playback, Script};
use crate::check::Headers;
use crate::check::conn::Io;
use crate::check::http::{Asked, ask, split};
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
    /// Returns the headers of a recorded request that do not belong to its connection, and those that replace them.
    fn headers(&self, script: &Exchange, playback: &Playback) -> Headers {
        let recorded = script.request.headers().filter_map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            let is_replaced = self.headers.iter().any(|(other, _)| *other == name);
            (!is_replaced).then(|| (name, playback.bound(value)))
        });
        let all = recorded.chain(self.headers.iter().cloned());
        let is_own =
            |name: &str| is_one(name, OWN) && (script.is_plain || name != "sec-websocket-protocol");
        all.filter(|(name, _)| !is_own(name)).collect()
    }

    async fn ask(&self, script: &Exchange, playback: &Playback) -> Result<Option<Line>, String> {
        let mut dialer = WsDialer::new(&self.url).map_err(|error| error.to_string())?;
        if let Some(tls) = &self.tls {
            dialer = dialer.with_tls(tls.clone());
        }
        let recorded = script.answer.status();
        let wanted = recorded.unwrap_or(101);
        let wrong = |error: DialError| match script.is_plain {
            true => error.to_string(),
            false => format!("{error}: {wanted} is recorded"),
        };
        let (line, _) = dialer.open().await.map_err(wrong)?;
        let (path, body) = (playback.bound(&script.path), playback.bound(&script.body));
        let own = split(&self.url).2;
        let asked = Asked {
            method: script.is_plain.then(|| script.request.method()),
            path: if own.is_empty() { &path } else { own },
            headers: self.headers(script, playback),
            body: &body,
        };
        let (status, io) = ask(&self.url, Box::new(line), asked).await.map_err(wrong)?;
        match io {
            Io::Http(answer) => match recorded {
                Some(recorded) if recorded != status => {
                    Err(format!("the status is {status}: {recorded} is recorded"))
                }
                _ => Ok(Some(Line::answer(*answer))),
            },
            Io::WebSocket(_) if script.is_refused() => Err(format!(
                "the server accepts the connection: {wanted} is recorded"
            )),
            Io::WebSocket(ws) => {
                let selected = ws.subprotocol();
                let expected = script.answer.header("sec-websocket-protocol");
                // A selected token is as secret as an offered one.
                let is_other = selected.is_some() != expected.is_some()
                    || (selected != expected
                        && !expected.is_some_and(|it| it.starts_with("bearer.")));
                if is_other && recorded.is_some() && self.headers.is_empty() {
                    return Err("the server selects another subprotocol than recorded".to_owned());
                }
                Ok(Some(Line::new(*ws)))
            }
            Io::None if status == wanted => Ok(None),
            Io::None => Err(format!("the status is {status}: {wanted} is recorded")),
        }
    }
}

impl Peer for Server {
    async fn open(
        &mut self,
        script: &Script,
        playback: &mut Playback,
    ) -> Result<Option<Line>, String> {
        self.ask(&Exchange::of(script), playback).await
    }
}
