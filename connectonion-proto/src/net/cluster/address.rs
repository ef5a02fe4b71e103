//! How the hosts of a cluster reach each other.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, SinkExt as _};
use rpc_core::net::server::HttpConfig;
#[cfg(feature = "tls")]
use rpc_core::net::tls::TlsConfig;
use rpc_core::net::ws::{WsConfig, WsDialer};
use rpc_core::net::{DialError, Dialer as _, Transport, entropy, time};
use rpc_core::{CloseFrame, Outgoing, Str};

use super::Cluster;
use super::node::Node;
use super::peers::{Head, Question, Replied};
use crate::limits::WS_PATH;

/// How long a connection to another host may take: as long as its ticket counts.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to another host, or why there is none.
pub(super) type Dialled = Result<Box<dyn Transport>, DialError>;
type Open = dyn Fn(WsDialer) -> BoxFuture<'static, Dialled> + Send + Sync;

/// How this host reaches others, and they it.
#[derive(Default)]
pub(super) struct Links {
    /// What others dial, before a ticket.
    url: OnceLock<String>,
    ws: OnceLock<WsConfig>,
    open: OnceLock<Box<Open>>,
}

impl Cluster {
    /// Sets how this host opens its connections to others, for example with
    /// [certification authorities](WsDialer::with_tls) of your own. Call it before the server starts: a later call
    /// changes nothing. Default: [`WsDialer::dial`], with the platform's roots.
    pub fn dial_with<F, R, T>(&self, open: F)
    where
        F: Fn(WsDialer) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, DialError>> + Send + 'static,
        T: Transport,
    {
        let open = move |dialer| {
            let opened = open(dialer);
            async move {
                opened
                    .await
                    .map(|transport| Box::new(transport) as Box<dyn Transport>)
            }
            .boxed()
        };
        let _ = self.shared.links.open.set(Box::new(open));
    }

    /// Adds to the configuration of the server that it serves what other hosts pass on. The configuration of
    /// the connections to them is `ws`.
    pub(in crate::net) fn configure(&self, http: &mut HttpConfig, mut ws: WsConfig) {
        let Links { url, ws: ours, .. } = &self.shared.links;
        ws.connect_timeout = DIAL_TIMEOUT;
        let _ = ours.set(ws);
        if let Some(Ok(advertised)) = self.advertised() {
            let _ = url.set(advertised);
        }
        http.tickets = Some(Arc::clone(&self.shared.tickets));
    }

    /// Returns what is advertised, or what is wrong with it.
    fn advertised(&self) -> Option<Result<String, String>> {
        let url = self.shared.options.advertise.as_ref()?;
        let url = url.trim_end_matches('/').to_owned() + WS_PATH;
        Some(match WsDialer::new(&url) {
            Ok(_) if url.contains(['?', ',']) => Err("advertise one URL without a query".into()),
            Ok(_) => Ok(url),
            Err(error) => Err(format!("the URL to advertise: {error}")),
        })
    }

    /// Notes where the server listens.
    ///
    /// # Errors
    /// Other hosts cannot reach it there.
    pub(in crate::net) fn listens_at(&self, local: SocketAddr, is_tls: bool) -> io::Result<()> {
        let ip = local.ip().to_canonical();
        let is_reached = !ip.is_loopback() || self.shared.store.is_local();
        let scheme = if is_tls { "wss" } else { "ws" };
        let url = match self.advertised() {
            Some(url) => url,
            None if ip.is_unspecified() || !is_reached => Err(format!(
                "the other hosts of the cluster do not reach {local}: advertise a URL at which they do"
            )),
            None => Ok(format!("{scheme}://{local}{WS_PATH}")),
        };
        let url = url.map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let _ = self.shared.links.url.set(url);
        Ok(())
    }

    /// Returns the URL with a ticket for a client, if there is room.
    pub(super) fn ticket(&self, head: &Head) -> Option<Str> {
        let (peer, head) = head.parts()?;
        let ticket = self.shared.tickets.issue(peer, head)?;
        // Without a URL there is none to dial.
        let url = self.shared.links.url.get();
        Some(url.map_or(Str::EMPTY, |url| {
            format!("{url}/{}", ticket.expose()).into()
        }))
    }

    /// Opens a connection to another host with a ticket of it.
    pub(super) async fn dial(&self, url: &str) -> Dialled {
        let Links { ws, open, .. } = &self.shared.links;
        let mut dialer = WsDialer::new(url)?;
        if let Some(ws) = ws.get() {
            dialer = dialer.with_config(ws.clone());
        }
        open.get_or_init(default_open)(dialer).await
    }

    /// Dials another host that is alive, and has it dial this one, for the logs of both.
    pub(super) async fn probe_another(self, node: Arc<Node>) {
        if self.shared.links.url.get().is_none() {
            tracing::warn!("other hosts cannot reach this one: it does not advertise a URL");
        }
        let nodes = node.lease.nodes().await.unwrap_or_default();
        let others = nodes.into_iter().filter(|it| it != node.id());
        let Some(other) = others.min_by_key(|_| entropy()) else {
            return;
        };
        let nowhere = (Ipv4Addr::UNSPECIFIED, 0).into();
        let request = http::Request::new(()).into_parts().0;
        let head = || Head::new(nowhere, &request, time::system_now());
        if let Some(url) = self.ticket(&head()) {
            let _ = node.ask(&other, &Question::Dial(url)).await;
        }
        if let Ok(Replied::Ticket(url)) = node.ask(&other, &Question::Ticket(head())).await {
            self.probe(url).await;
        }
    }

    /// Dials another host.
    pub(super) async fn probe(self, url: Str) {
        match self.dial(&url).await {
            Ok(mut transport) => {
                let close = CloseFrame::new(CloseFrame::NORMAL, "");
                let _ = transport.send(Outgoing::Close(close)).await;
            }
            Err(error) => tracing::warn!(
                %error,
                "this host does not reach another one, nor does it serve the sessions that are in use there"
            ),
        }
    }
}

/// Dials, and trusts what the platform trusts, which is read once.
fn default_open() -> Box<Open> {
    #[cfg(feature = "tls")]
    let platform = OnceLock::new();
    Box::new(move |dialer: WsDialer| {
        #[cfg(feature = "tls")]
        let dialer = match platform.get_or_init(TlsConfig::platform) {
            Ok(tls) => dialer.with_tls(tls.clone()),
            // It says so itself.
            Err(_) => dialer,
        };
        async move { Ok(Box::new(dialer.dial().await?) as Box<dyn Transport>) }.boxed()
    })
}
