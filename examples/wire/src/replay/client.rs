//! [`Clients`]: those that call a replay, which answers as the recorded server did.

use std::time::Duration;

use rpc_core::net::server::{Guards, Listener};
use tokio::time::timeout;

use super::exchange::Exchange;
use super::line::Line;
use super::{Peer, Playback, Script};
use crate::check::conn::{self, Request};
use crate::head::Head;
use crate::secrets::within;

/// The time for a request to come after a client has connected.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Headers of a recorded answer that do not fit another connection.
const OWN: &str = "connection content-length transfer-encoding keep-alive date";

/// A listener for clients.
#[derive(Debug)]
pub(crate) struct Clients {
    /// Where they connect.
    pub listener: Listener,
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
            let reading = Request::read(Box::new(tcp));
            let Ok(Ok(request)) = timeout(HEAD_TIME, reading).await else {
                continue;
            };
            let parts = request.head.parts();
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

    async fn answer(
        &self,
        script: &Exchange,
        playback: &mut Playback,
    ) -> Result<Option<Line>, String> {
        let request = self.request().await?;
        let is_plain = request.head.header("upgrade").is_none();
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
        if !path.is_empty() && without_query(&path) != without_query(request.head.target()) {
            let got = within(request.head.target()).into_owned();
            let recorded = within(&path);
            let _ = request.refuse("404").await;
            return Err(format!("a request for {got} comes: {recorded} is recorded"));
        }
        if is_plain {
            return plain(request, script, playback).await.map(Some);
        }
        if script.is_refused() {
            let status = script.answer.status().unwrap_or(401).to_string();
            let _ = request.refuse(&status).await;
            return Ok(None);
        }
        let mut config = conn::config();
        if let Some(selected) = script.answer.header("sec-websocket-protocol") {
            let offers = request
                .head
                .header("sec-websocket-protocol")
                .unwrap_or_default();
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
        Ok(Some(Line::new(ws)))
    }
}

/// Begins the recorded answer to a plain request, if it is the recorded one.
async fn plain(
    mut request: Request,
    script: &Exchange,
    playback: &mut Playback,
) -> Result<Line, String> {
    let method = script.request.method();
    if method != request.head.method() {
        return Err(format!(
            "{} comes: {method} is recorded",
            request.head.method()
        ));
    }
    let body = request.body().await.map_err(|error| error.to_string())?;
    let compared = playback.compare(&script.body, &body);
    compared.map_err(|changes| {
        let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
        format!(
            "the body of the request differs\n  {}",
            changes.join("\n  ")
        )
    })?;
    let mut head = script.answer.clone();
    if head.status().is_none() {
        head = Head::of("HTTP/1.1 200 OK");
    }
    OWN.split(' ').for_each(|name| head.remove(name));
    head.set("Connection", "close");
    let line = request.answer(&head.text()).await;
    let line = line.map_err(|error| error.to_string())?;
    Ok(Line::answering(line, script.answer.is_stream()))
}

impl Peer for Clients {
    async fn open(
        &mut self,
        script: &Script,
        playback: &mut Playback,
    ) -> Result<Option<Line>, String> {
        self.answer(&Exchange::of(script), playback).await
    }
}
