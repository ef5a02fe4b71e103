//! One accepted connection, from TLS to the handler: [`Accepted`].

use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::request::Parts;
use http::{Request, StatusCode};
use hyper::server::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::brake::Brake;
use super::http1::{Agreed, Exchange};
use super::permits::{Evicted, Opening, Permit, Refusal, until_login};
use super::run::Shared;
use super::write_timeout::WriteTimeout;
use crate::net::serve::serve_peer;
use crate::net::ws::{Receive, Role, Socket, WsStream};
use crate::net::{Cancellation, ConnectionHandler, DriverConfig, Handle, Transport};
use crate::sync::Mutex;

/// How long a connection that was answered may take to close.
const LINGER: Duration = Duration::from_secs(1);
/// How long the server reads a request that has already arrived, once it shuts down.
const GRACE: Duration = Duration::from_millis(50);
/// A year: hyper adds the deadline to its clock and panics beyond the clock's range.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The smallest buffer that hyper takes.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// An accepted connection, as the handler receives it.
#[non_exhaustive]
pub struct Accepted {
    /// The WebSocket, or the transport that was passed to a [`ServerHandle`](super::ServerHandle).
    pub socket: Box<dyn Transport>,
    /// The peer's address; unspecified (`0.0.0.0:0`) if it is not known. Of a connection with a
    /// [ticket](super::Tickets) it is the client's, and so are `parts` and `caller`.
    pub peer: SocketAddr,
    /// The head of the upgrade request, with the extensions of the upgrade hook and, of a
    /// mounted server, those of the host. The headers of the
    /// handshake itself (`Connection`, `Upgrade`, `Sec-WebSocket-Key` and `Sec-WebSocket-Version`)
    /// are removed. Empty for other transports.
    pub parts: Arc<Parts>,
    /// Cancelled when the server drains: say goodbye and return.
    pub cancellation: Cancellation,
    /// Who has connected, for limits: see [`Guards::caller`](super::Guards::caller).
    pub caller: IpAddr,
    /// Slows down who guesses the secrets of this server.
    pub brake: Arc<Brake>,
    /// The connection's place among the WebSockets, held until the handler's future ends. `None`
    /// for other transports.
    pub permit: Option<Permit>,
}

impl Accepted {
    /// Creates a connection over any transport, without an upgrade request.
    #[must_use]
    pub fn new(transport: impl Transport, peer: SocketAddr, cancellation: Cancellation) -> Self {
        Self {
            socket: Box::new(transport),
            peer,
            parts: Arc::new(Request::new(()).into_parts().0),
            cancellation,
            caller: peer.ip().to_canonical(),
            brake: Arc::default(),
            permit: None,
        }
    }

    /// [Serves](crate::net::serve()) the connection to its end with the handler, which shuts down
    /// when the server drains.
    ///
    /// While `is_logged_in` returns `false`, messages are
    /// [small](super::ServerLimits::max_before_login), and the connection makes room for others: at
    /// [`max_connections`](super::ServerLimits::max_connections) and
    /// [`max_websockets`](super::ServerLimits::max_websockets) the oldest such connection is closed
    /// with code 1013 in favour of the next one.
    ///
    /// # Cancel safety
    /// As for [`serve`](crate::net::serve()).
    pub fn serve<H: ConnectionHandler>(
        self,
        handle: Handle<H::Machine>,
        handler: H,
        driver: DriverConfig,
        is_logged_in: fn(&H::Machine) -> bool,
    ) -> impl Future<Output = ()> + Send + use<H> {
        let permit = self.permit.as_ref();
        let shutdown = until_login(permit, &handle, is_logged_in, self.cancellation);
        let peer = Some(self.peer).filter(|peer| !peer.ip().is_unspecified());
        serve_peer(handle, self.socket, handler, driver, peer, shutdown).map(drop)
    }
}

// Prints no headers and no query: both may hold secrets.
crate::debug::debug_fields!([] Accepted, this => { peer: this.peer, path: this.parts.uri.path() });

/// Handles every accepted connection.
pub(super) type Handler =
    dyn Fn(Accepted) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// What happens before the handler; `None` if there is nothing to handle.
pub(super) type Arrival = Pin<Box<dyn Future<Output = Option<Accepted>> + Send>>;

/// Serves one connection to its end. Each part has memory of its own, so that a connection does not
/// keep the memory of its opening.
pub(super) async fn serve(arrival: Arrival, handler: Arc<Handler>) {
    if let Some(accepted) = arrival.await {
        let permit = accepted.permit.clone();
        handler(accepted).await;
        permit.into_iter().for_each(Permit::end);
    }
}

/// Waits for a connection whose request came through a [`Service`](super::Service).
pub(super) async fn upgraded(
    shared: Arc<Shared>,
    on_upgrade: OnUpgrade,
    agreed: Agreed,
    peer: SocketAddr,
    opening: Opening,
) -> Option<Accepted> {
    let upgraded = timeout(shared.config.limits.handshake_timeout, on_upgrade).await;
    let Ok(Ok(upgraded)) = upgraded else {
        tracing::debug!(%peer, "the client left before the upgrade");
        return None;
    };
    let socket = Socket::from_upgraded(upgraded);
    let opening = Arc::new(opening);
    Some(accept(&shared, socket, Bytes::new(), agreed, opening).await)
}

/// Runs everything before the handler, within its deadline. `None` if there is nothing to handle.
pub(super) async fn open(
    shared: Arc<Shared>,
    tcp: TcpStream,
    peer: SocketAddr,
    opening: Opening,
    evicted: Evicted,
) -> Option<Accepted> {
    let opening = Arc::new(opening);
    let deadline = shared.config.limits.handshake_timeout;
    let streams = Arc::new(AtomicBool::new(false));
    let upgraded = {
        let mut exchange = pin!(exchange(&shared, tcp, peer, &streams, &opening, evicted));
        tokio::select! {
            biased;
            upgraded = &mut exchange => upgraded,
            // An answer that is streamed takes as long as it takes.
            () = sleep(deadline) => if streams.load(Ordering::Relaxed) {
                exchange.await
            } else {
                tracing::debug!(%peer, "no request in time");
                None
            },
        }
    };
    let (socket, read_already, agreed) = upgraded?;
    Some(accept(&shared, socket, read_already, agreed, opening).await)
}

/// Makes an upgraded connection what the handler receives.
async fn accept(
    shared: &Shared,
    socket: Socket,
    read_already: Bytes,
    agreed: Agreed,
    opening: Arc<Opening>,
) -> Accepted {
    shared.counters.upgraded.fetch_add(1, Ordering::Relaxed);
    let config = &shared.config;
    let caller = config.guards.caller(agreed.peer, &agreed.parts.headers);
    let permit = agreed.permit.for_connection(opening);
    let receive = Receive::new(&shared.receiving, caller, &permit.max_message());
    let socket = WsStream::from_upgraded(socket, read_already, Role::Server, &config.ws).await;
    let socket = socket.counting(receive);
    Accepted {
        parts: Arc::new(agreed.parts),
        caller,
        brake: Arc::clone(&config.brake),
        permit: Some(permit),
        ..Accepted::new(socket, agreed.peer, shared.cancellation.clone())
    }
}

/// Runs TLS and the request. `None` if the connection ended as plain HTTP.
async fn exchange(
    shared: &Arc<Shared>,
    tcp: TcpStream,
    peer: SocketAddr,
    streams: &Arc<AtomicBool>,
    opening: &Arc<Opening>,
    evicted: Evicted,
) -> Option<(Socket, Bytes, Agreed)> {
    // A failure here costs latency only.
    let _ = tcp.set_nodelay(true);
    let mut cancellation = shared.cancellation.clone();
    let mut evicted = pin!(evicted.wait());
    let secured = tokio::select! {
        biased;
        secured = secure(shared, tcp) => secured,
        () = cancellation.cancelled() => return None,
        () = &mut evicted => return None,
    };
    let socket = match secured {
        Ok(socket) => socket,
        Err(error) => {
            tracing::debug!(%peer, %error, "TLS failed");
            return None;
        }
    };
    let limits = &shared.config.limits;
    let agreed = Arc::new(Mutex::new(None));
    let service = Exchange {
        shared: Arc::clone(shared),
        peer,
        agreed: Arc::clone(&agreed),
        opening: Arc::clone(opening),
        streams: Arc::clone(streams),
    };
    let line = WriteTimeout::new(socket, limits.write_timeout);
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout.min(LONGEST_WAIT))
        .max_header_size(limits.max_header_bytes)
        .max_buf_size(limits.max_header_bytes.max(SMALLEST_BUFFER))
        .serve_connection(TokioIo::new(line), service);
    let mut is_closing = false;
    let served = loop {
        let served = tokio::select! {
            biased;
            served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Some(served),
            () = cancellation.cancelled(), if !is_closing => None,
            () = half_a_request(opening), if is_closing => return None,
            () = &mut evicted => {
                tracing::debug!(%peer, "no request yet; makes room for another connection");
                let mut socket = connection.into_parts().io.into_inner().into_inner();
                // No one waits for it: an idle line takes a few bytes at once, or not at all.
                let _ = write_refusal(&mut socket, Refusal::ServerFull).now_or_never();
                return None;
            }
        };
        match served {
            Some(served) => break served,
            None => {
                is_closing = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    if let Err(error) = &served {
        tracing::debug!(%peer, %error, "HTTP failed");
    }
    let parts = connection.into_parts();
    let mut socket = parts.io.into_inner().into_inner();
    let agreed = agreed.lock().take();
    if let (Ok(()), Some(agreed)) = (served, agreed) {
        return Some((socket, parts.read_buf, agreed));
    }
    let evicted_late = async {
        match opening.reopen(None) {
            Some(evicted) => evicted.wait().await,
            None => evicted.await,
        }
    };
    tokio::select! {
        biased;
        _ = timeout(LINGER, hang_up(&mut socket)) => {}
        () = cancellation.cancelled() => {}
        () = evicted_late => {}
    }
    None
}

/// Waits, during a shutdown, only for the part of a request that has already arrived. Pending
/// forever once the whole request is there, because it will be answered.
async fn half_a_request(opening: &Opening) {
    sleep(GRACE).await;
    if opening.is_finished() {
        pending::<()>().await;
    }
}

/// Closes this side and waits for the peer's: closing with unread bytes would reset the connection
/// and could lose the reply.
async fn hang_up(socket: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let _ = socket.shutdown().await;
    let mut rest = [0; 512];
    while matches!(socket.read(&mut rest).await, Ok(n) if n > 0) {}
}

/// Sends a peer the reason of its refusal, without reading its request.
pub(super) async fn refuse(mut tcp: TcpStream, refusal: Refusal) {
    let answer = async {
        if write_refusal(&mut tcp, refusal).await.is_ok() {
            hang_up(&mut tcp).await;
        }
    };
    let _ = timeout(LINGER, answer).await;
}

/// Writes a refusal and closes this side.
async fn write_refusal(line: &mut (impl AsyncWrite + Unpin), refusal: Refusal) -> io::Result<()> {
    let (status, why) = refusal.answer();
    let retry = if status == StatusCode::FORBIDDEN {
        ""
    } else {
        "retry-after: 1\r\n"
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\n{retry}\
         content-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\r\n{why}",
        why.len()
    );
    line.write_all(answer.as_bytes()).await?;
    line.shutdown().await
}

#[allow(clippy::unused_async, reason = "feature `tls` waits")]
async fn secure(shared: &Shared, tcp: TcpStream) -> io::Result<Socket> {
    #[cfg(feature = "tls")]
    if let Some(acceptor) = &shared.config.tls {
        return acceptor.accept(tcp).await;
    }
    let _ = shared;
    Ok(tcp.into())
}
