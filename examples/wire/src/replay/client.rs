//! [`Clients`]: those that call a replay, which answers as the recorded server did.

use std::time::Duration;

use rpc_core::net::server::{Guards, Listener};
use rpc_core::net::tls::TlsAcceptor;
use tokio::time::timeout;

use super::exchange::Exchange;
use super::line::Line;
use super::{Difference, Peer, Playback, Script};
use crate::check::conn::{self, Request};
use crate::secrets::{split, within};

/// The time for a request to come after a client has connected.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Headers of a recorded answer that do not fit another connection.
const OWN: [&str; 5] = [
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "date",
];

/// A listener for clients.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct Clients {
    /// Where they connect.
    pub listener: Listener,
    /// TLS, if they have to use it.
    pub tls: Option<TlsAcceptor>,
    /// Which requests are answered.
    pub guards: Guards,
}

impl Clients {
    /// Returns the next request that the guards let pass.
    async fn request(&self) -> Result<Request, String> {
        loop {
            let (tcp, peer) = self
                .listener
                .accept()
                .await
                .map_err(|error| error.to_string())?;
            let _ = tcp.set_nodelay(true);
            let reading = async {
                let line: conn::BoxStream = match &self.tls {
                    Some(tls) => Box::new(tls.accept(tcp).await?),
                    None => Box::new(tcp),
                };
                Request::read(line).await
            };
            let Ok(Ok(request)) = timeout(HEAD_TIME, reading).await else {
                continue;
            };
            let parts = request.parts();
            match parts.map(|parts| self.guards.check(&parts, peer)) {
                Some(Ok(())) => return Ok(request),
                Some(Err((status, _))) => {
                    let _ = request.refuse(status.as_str()).await;
                }
                None => {
                    let _ = request.refuse("400").await;
                }
            }
        }
    }

    async fn answer(&self, script: &Exchange, playback: &Playback) -> Result<Option<Line>, String> {
        let request = self.request().await?;
        let is_plain = request.header("upgrade").is_none();
        if is_plain != script.is_plain {
            let kind = |plain| match plain {
                true => "a plain request",
                false => "a request for a WebSocket",
            };
            let _ = request.refuse("400").await;
            return Err(format!(
                "{} comes: {} is recorded",
                kind(is_plain),
                kind(script.is_plain)
            ));
        }
        let path = playback.bound(&script.path);
        // Queries hold tokens and numbers of attempts.
        let without_query = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
        if !path.is_empty() && without_query(&path) != without_query(&request.path) {
            let (got, recorded) = (within(&request.path), within(&path));
            let _ = request.refuse("404").await;
            return Err(format!("a request for {got} comes: {recorded} is recorded"));
        }
        if is_plain {
            return plain(request, script, playback).await.map(Some);
        }
        if script.is_refused() {
            let status = script.status().unwrap_or(401).to_string();
            let _ = request.refuse(&status).await;
            return Ok(None);
        }
        let mut config = conn::config();
        if let Some(selected) = script.answer_header("sec-websocket-protocol") {
            let offers = request.header("sec-websocket-protocol").unwrap_or_default();
            let mut offers = offers.split(',').map(str::trim);
            // Another token is as good as the recorded one.
            let offered = offers.find(|offer| {
                *offer == selected
                    || (offer.starts_with("bearer.") && selected.starts_with("bearer."))
            });
            let Some(offered) = offered else {
                let _ = request.refuse("400").await;
                return Err("the client does not offer the recorded subprotocol".to_owned());
            };
            config = config
                .with_subprotocol(offered)
                .map_err(|error| error.to_string())?;
        }
        let ws = request.accept(&config).await?;
        Ok(Some(Line::web_socket(ws)))
    }
}

/// Begins the recorded answer to a plain request, if it is the recorded one.
async fn plain(
    mut request: Request,
    script: &Exchange,
    playback: &Playback,
) -> Result<Line, String> {
    let method = script.request.split(' ').next().unwrap_or_default();
    if method != request.method {
        return Err(format!("{} comes: {method} is recorded", request.method));
    }
    let body = request.body().await.map_err(|error| error.to_string())?;
    let compared = playback.compare(split(&script.request).1, &body);
    compared.map_err(|changes| {
        let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
        format!(
            "the body of the request differs\n  {}",
            changes.join("\n  ")
        )
    })?;
    let mut lines = script.answer.split("\r\n");
    let mut head = lines.next().unwrap_or("HTTP/1.1 200 OK").to_owned();
    for line in lines {
        let name = line.split(':').next().unwrap_or_default().trim();
        if !OWN.contains(&name.to_ascii_lowercase().as_str()) {
            head = format!("{head}\r\n{line}");
        }
    }
    let line = request
        .answer(&format!("{head}\r\nConnection: close\r\n\r\n"))
        .await
        .map_err(|error| error.to_string())?;
    Ok(Line::answering(line, script.is_stream()))
}

impl Peer for Clients {
    type Transport = Line;

    async fn open(
        &mut self,
        script: &Script,
        playback: &Playback,
    ) -> Result<Option<Line>, Difference> {
        let answered = self.answer(&Exchange::of(script), playback).await;
        answered.map_err(|what| script.differs(what))
    }
}
