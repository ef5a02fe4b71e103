//! [`Proxy`]: passes bytes between any client and any server, and records the frames in them.

mod faulty;
mod record;
pub(crate) mod scan;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::transcript::Kind;
use http::Uri;
use rpc_core::net::server::{Guards, Listener};
use rpc_core::net::tls::TlsAcceptor;
use rpc_core::net::ws::{Socket, WsDialer};
use rpc_core::testing::Side;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

pub(crate) use faulty::Faults;
pub(crate) use record::Recorder;

use self::record::Tap;
use crate::head::{Head, read_head, respond};
use crate::web::TEXT;

/// How much is read at once.
const BUFFER: usize = 16 * 1024;
/// The time for a head to come, of a client after it has connected and of a server after a request for
/// a WebSocket.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The time for a peer to close after the other one has.
const LINGER: Duration = Duration::from_secs(5);
/// How often the recording is written out.
const FLUSH: Duration = Duration::from_millis(200);

/// A proxy for WebSockets and plain HTTP/1. What it passes on is what came, byte for byte, but for these
/// headers of requests: `Host` names the server; `Sec-WebSocket-Extensions` is left out, so that frames
/// stay readable; a plain request says `Connection: close`, so that a connection has one.
///
/// A connection holds two buffers of 16 KiB, and with a recorder a message in each direction. A slow
/// peer slows the other one down.
#[derive(Clone)]
pub(crate) struct Proxy {
    /// Where to connect to.
    pub server: WsDialer,
    /// The path for requests of `/`.
    pub path: String,
    /// Which requests are passed on.
    pub guards: Guards,
    /// Origins that pass beside those that the guards admit, such as `null` and `file://`.
    pub origins: Vec<String>,
    /// TLS for the clients.
    pub tls: Option<TlsAcceptor>,
    /// Where frames are recorded.
    pub recorder: Option<Recorder>,
    /// What goes wrong on purpose.
    pub faults: Option<Faults>,
}

/// What a proxy has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Connections that came.
    pub connections: u32,
    /// Those that were cut at the end.
    pub cut: usize,
}

impl Proxy {
    /// Creates a proxy to the server at this URL (`ws`, `wss`, `http` or `https`), without TLS for
    /// its clients and without a recorder. Its path is for requests without one.
    ///
    /// # Errors
    /// What is wrong with the URL.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let server = WsDialer::new(url).map_err(|error| error.to_string())?;
        let headers = server.headers().map_err(|error| error.to_string())?;
        if headers.contains_key(http::header::AUTHORIZATION) {
            return Err("clients send their own user and password: leave them out here".to_owned());
        }
        let uri: Uri = url.parse().map_err(|_| "not a URL".to_owned())?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            server,
            path: path.to_owned(),
            guards: Guards::default(),
            origins: Vec::new(),
            tls: None,
            recorder: None,
            faults: None,
        })
    }

    /// Serves until `stop`, and then `drain` longer what is open. `warn` gets what went wrong with a
    /// connection.
    ///
    /// # Errors
    /// At the end, if the recording could not be written.
    ///
    /// # Cancel safety
    /// Dropping the future closes all connections.
    pub(crate) async fn run(
        self,
        listener: Listener,
        stop: impl Future<Output = ()>,
        drain: Duration,
        warn: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<Report> {
        let (this, warn) = (Arc::new(self), Arc::new(warn));
        let mut report = Report::default();
        let mut open = JoinSet::new();
        let mut flush = interval(FLUSH);
        let mut stop = std::pin::pin!(stop);
        // A disk that is full ends the recording, and no connection.
        let (mut is_full, mut is_crowded) = (false, false);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = flush.tick() => if let Err(error) = this.flush() && !std::mem::replace(&mut is_full, true) {
                    warn(format!("the recording ends here: {error}"));
                },
                Some(_) = open.join_next(), if !open.is_empty() => {}
                accepted = listener.accept() => {
                    let (tcp, peer) = match accepted {
                        Ok(accepted) => accepted,
                        Err(error) => {
                            if !std::mem::replace(&mut is_crowded, true) {
                                warn(format!("{error}, with {} connections: others wait", open.len()));
                            }
                            // Some will be closed.
                            tokio::time::sleep(FLUSH).await;
                            continue;
                        }
                    };
                    is_crowded = false;
                    report.connections += 1;
                    let (this, warn, conn) = (Arc::clone(&this), Arc::clone(&warn), report.connections);
                    open.spawn(async move {
                        if let Err(error) = this.serve(tcp, peer, conn).await {
                            this.record(conn, None, Kind::Note, &error);
                            warn(format!("connection {conn}: {error}"));
                        }
                    });
                }
            }
        }
        drop(listener);
        let all = async { while open.join_next().await.is_some() {} };
        if timeout(drain, all).await.is_err() {
            report.cut = open.len();
            open.shutdown().await;
        }
        this.flush().map(|()| report)
    }

    fn flush(&self) -> io::Result<()> {
        self.recorder.as_ref().map_or(Ok(()), Recorder::flush)
    }

    fn record(&self, conn: u32, from: Option<Side>, kind: Kind, data: &str) {
        if let Some(recorder) = &self.recorder {
            recorder.entry(conn, from, kind, data, None);
        }
    }

    async fn serve(&self, tcp: TcpStream, peer: SocketAddr, conn: u32) -> Result<(), String> {
        let _ = tcp.set_nodelay(true);
        let accept = async {
            let mut client = match &self.tls {
                Some(tls) => tls.accept(tcp).await?,
                None => tcp.into(),
            };
            let head = read_head(&mut client, Vec::new()).await?;
            io::Result::Ok((client, head))
        };
        let read = timeout(HEAD_TIME, accept).await;
        let read = read.map_err(|_| "the client sent no request in time".to_owned())?;
        let (mut client, head) = read.map_err(|error| format!("the client: {error}"))?;
        let Some((mut head, rest)) = head else {
            return Ok(());
        };
        self.record(conn, Some(Side::Client), Kind::Http, &head.text());
        if let Err((status, why)) = self.admit(&head, peer) {
            let _ = refuse(&mut client, &status, &why).await;
            return Err(format!("refused, {status}: {why}"));
        }
        let is_upgrade = head.is_upgrade();
        let faults = self.faults.as_ref().filter(|_| is_upgrade);
        if let Some(status) = faults.and_then(|it| it.plan.refusal(it.seed, conn)) {
            self.record(conn, None, Kind::Fault, &format!("refused with {status}"));
            let status = http::StatusCode::from_u16(status)
                .unwrap_or_default()
                .to_string();
            let _ = refuse(&mut client, &status, "refused on purpose").await;
            return Ok(());
        }
        self.change(&mut head);
        let server = self.server.open().await.map_err(|error| error.to_string());
        let server = match server {
            Ok((server, _)) => server,
            Err(error) => {
                let _ = refuse(&mut client, "502 Bad Gateway", &error).await;
                return Err(error);
            }
        };
        let passed = self
            .pass(client, server, &head, rest, is_upgrade, conn)
            .await;
        passed.map_err(|error| error.to_string())
    }

    /// Checks a request as the server would that listens here.
    fn admit(&self, head: &Head, peer: SocketAddr) -> Result<(), (String, String)> {
        let bad = || {
            let status = "400 Bad Request".to_owned();
            (status, "the request is not valid".to_owned())
        };
        let mut parts = head.parts().ok_or_else(bad)?;
        // Which of the two ends the body, client and server might see in different ways.
        if head.header("content-length").is_some() && head.header("transfer-encoding").is_some() {
            return Err(bad());
        }
        let origin = head.header("origin").map(str::to_owned);
        if origin.as_ref().is_some_and(|it| self.origins.contains(it)) {
            parts.headers.remove(http::header::ORIGIN);
        }
        let checked = self.guards.check(&parts, peer);
        checked.map_err(|(status, why)| {
            let hint = origin.map_or_else(String::new, |origin| {
                format!("; --allow-origin {origin} admits its page")
            });
            (status.to_string(), format!("{why}{hint}"))
        })
    }

    fn change(&self, head: &mut Head) {
        if let Ok(headers) = self.server.headers()
            && let Some(Ok(host)) = headers.get(http::header::HOST).map(|host| host.to_str())
        {
            head.set("Host", host);
        }
        if head.target() == "/" {
            head.set_target(&self.path);
        }
        if head.is_upgrade() {
            head.remove("Sec-WebSocket-Extensions");
        } else {
            head.set("Connection", "close");
        }
    }

    /// Passes on a request and what follows it.
    async fn pass(
        &self,
        client: Socket,
        mut server: Socket,
        head: &Head,
        rest: Vec<u8>,
        is_upgrade: bool,
        conn: u32,
    ) -> io::Result<()> {
        server.write_all(&head.bytes()).await?;
        server.flush().await?;
        let (mut client_reads, mut client_writes) = tokio::io::split(client);
        let (mut server_reads, mut server_writes) = tokio::io::split(server);
        let in_chunks = |head: &Head| head.header("transfer-encoding").is_some();
        let body = |from, is_sse, in_chunks| {
            let recorder = self.recorder.clone();
            recorder.map(|recorder| Tap::body(recorder, conn, from, is_sse, in_chunks))
        };
        let (server_in, client_out) = (&mut server_reads, &mut client_writes);
        let answer = async move {
            let mut came = Vec::new();
            loop {
                let Some((answer, rest)) = read_head(server_in, came).await? else {
                    return Err(io::Error::other("the server closed without an answer"));
                };
                self.record(conn, Some(Side::Server), Kind::Http, &answer.text());
                client_out.write_all(&answer.bytes()).await?;
                client_out.flush().await?;
                if !answer.is_interim() {
                    return Ok((answer, rest, server_in, client_out));
                }
                came = rest;
            }
        };
        let passed = if is_upgrade {
            let answer = timeout(HEAD_TIME, answer).await;
            let late = |_| io::Error::other("the server did not answer in time");
            let (answer, answer_rest, server_in, client_out) = answer.map_err(late)??;
            let is_web_socket = answer.status() == Some(101);
            if is_web_socket && let Some(faults) = &self.faults {
                let (client, server) = (
                    client_reads.unsplit(client_writes),
                    server_reads.unsplit(server_writes),
                );
                let recorder = self.recorder.as_ref();
                let first = [rest, answer_rest];
                return faulty::pass(faults, recorder, conn, client, server, first).await;
            }
            let tap = |from| {
                let recorder = self.recorder.clone();
                recorder.map(|recorder| Tap::web_socket(recorder, conn, from))
            };
            let (up_tap, down_tap) = match is_web_socket {
                true => (tap(Side::Client), tap(Side::Server)),
                false => (
                    body(Side::Client, false, false),
                    body(Side::Server, false, in_chunks(&answer)),
                ),
            };
            let up = pump(
                &mut client_reads,
                &mut server_writes,
                up_tap,
                rest,
                u64::MAX,
            );
            let down = pump(server_in, client_out, down_tap, answer_rest, u64::MAX);
            both(up, down).await
        } else {
            // Another request behind this one has a connection of its own.
            let len = match in_chunks(head) {
                true => u64::MAX,
                false => head
                    .header("content-length")
                    .map_or(0, |len| len.parse().unwrap_or(0)),
            };
            let up_tap = body(Side::Client, false, in_chunks(head));
            let up = pump(&mut client_reads, &mut server_writes, up_tap, rest, len);
            let down = async {
                let (answer, rest, server_in, client_out) = answer.await?;
                let tap = body(Side::Server, answer.is_stream(), in_chunks(&answer));
                pump(server_in, client_out, tap, rest, u64::MAX).await
            };
            both(up, down).await
        };
        if is_reset(&passed) {
            reset([
                client_reads.unsplit(client_writes),
                server_reads.unsplit(server_writes),
            ]);
        }
        passed
    }
}

/// Returns whether a connection was reset, as the other one has to be then.
fn is_reset(passed: &io::Result<()>) -> bool {
    let error = passed.as_ref().err();
    error.is_some_and(|it| it.kind() == io::ErrorKind::ConnectionReset)
}

/// Resets connections: what one side did, the other one is to see.
fn reset(sockets: [Socket; 2]) {
    for socket in sockets {
        if let Some(tcp) = socket.tcp() {
            let _ = tcp.set_zero_linger();
        }
    }
}

/// Waits for both directions: for the second one only a while, unless the client is the first.
async fn both(
    up: impl Future<Output = io::Result<()>>,
    down: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    let (mut up, mut down) = (std::pin::pin!(up), std::pin::pin!(down));
    tokio::select! {
        ended = &mut up => {
            ended?;
            down.await
        }
        ended = &mut down => {
            ended?;
            // A client of plain HTTP need not close.
            timeout(LINGER, up).await.unwrap_or(Ok(()))
        }
    }
}

/// Passes on the bytes from one side to the other, the first ones first, and at most so many. Behind them, it waits for
/// the end.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut tap: Option<Tap>,
    first: Vec<u8>,
    mut most: u64,
) -> io::Result<()> {
    let mut buffer = first;
    let mut len = buffer.len();
    buffer.resize(len.max(BUFFER), 0);
    loop {
        let passed = len.min(usize::try_from(most).unwrap_or(usize::MAX));
        most = most.saturating_sub(if most == u64::MAX { 0 } else { passed as u64 });
        let bytes = buffer.get(..passed).unwrap_or_default();
        if !bytes.is_empty() {
            if let Some(tap) = &mut tap {
                tap.push(bytes);
            }
            to.write_all(bytes).await?;
            to.flush().await?;
        }
        len = match from.read(&mut buffer).await {
            Ok(0) => break,
            Ok(len) => len,
            // The peer is gone without a goodbye; the other one is to see the same.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        };
    }
    if let Some(tap) = &tap {
        tap.end();
    }
    shut(&mut to).await
}

/// Ends what is sent, if it has not ended.
async fn shut(to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    match to.shutdown().await {
        Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
        _ => Ok(()),
    }
}

async fn refuse(client: &mut Socket, status: &str, why: &str) -> io::Result<()> {
    respond(client, status, TEXT, &format!("{why}\n")).await
}

#[cfg(test)]
mod tests;
