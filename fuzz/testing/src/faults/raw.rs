//! A WebSocket peer that sends any bytes: [`RawPeer`], [`RawListener`].

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rpc_core::net::ws::Role;
use switchboard_faults::{Fault, RawFrame, Received};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::fail;

/// A WebSocket's upgrade request: `path`, and further header lines that each end in `\r\n`.
#[must_use]
pub fn upgrade_request(path: &str, headers: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    )
}

/// How the other end ended a connection. There is no fourth way, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a Close of this code (1005 if it had none), or with an HTTP answer of this status.
    Close(u16),
    /// The line ended, and nothing was said.
    Fin,
    /// The line was reset, and nothing was said.
    Reset,
}

/// One end of a TCP connection on which everything is done by hand.
#[derive(Debug)]
pub struct RawPeer {
    /// The connection, for what a peer does to it.
    pub tcp: TcpStream,
    role: Role,
    /// What was read and not taken yet.
    buffer: Vec<u8>,
}

impl RawPeer {
    /// Opens the TCP connection of a client. Nothing is sent.
    ///
    /// # Errors
    /// What the system says.
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        Ok(Self::new(TcpStream::connect(address).await?, Role::Client))
    }

    /// As [`connect`](Self::connect), with little room for what comes: whoever sends to this peer
    /// soon has to wait for it to read.
    ///
    /// # Errors
    /// What the system says.
    pub async fn connect_narrow(address: SocketAddr) -> io::Result<Self> {
        let line = narrow_socket()?.connect(address).await?;
        Ok(Self::new(line, Role::Client))
    }

    fn new(tcp: TcpStream, role: Role) -> Self {
        // Every write is a packet of its own, as far as that can be had.
        let _ = tcp.set_nodelay(true);
        Self {
            tcp,
            role,
            buffer: Vec::new(),
        }
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// What the system says; the other end may be gone.
    pub async fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tcp.write_all(bytes).await
    }

    /// Sends one byte after the other with a pause before each.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    pub async fn trickle(&mut self, bytes: &[u8], pause: Duration) -> io::Result<()> {
        for byte in bytes {
            tokio::time::sleep(pause).await;
            self.tcp.write_all(&[*byte]).await?;
        }
        Ok(())
    }

    /// Sends as many of these bytes as the line takes, until it takes none for so long. Gives their
    /// number.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    pub async fn push(&mut self, bytes: &[u8], patience: Duration) -> io::Result<usize> {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            match tokio::time::timeout(patience, self.tcp.write(rest)).await {
                Ok(written) => sent += written?,
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    pub async fn frame(&mut self, frame: RawFrame) -> io::Result<()> {
        let bytes = frame.into_bytes(self.role);
        self.tcp.write_all(&bytes).await
    }

    /// Sends a whole message of text.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    pub async fn text(&mut self, text: &str) -> io::Result<()> {
        self.frame(RawFrame::text(text)).await
    }

    /// Sends an upgrade request and reads the answer's head, which should say 101.
    ///
    /// # Errors
    /// What the system says, or `UnexpectedEof` if the line ends within the head.
    pub async fn upgrade(&mut self, request: &str) -> io::Result<String> {
        self.bytes(request.as_bytes()).await?;
        self.head().await
    }

    /// Reads a client's upgrade request and agrees to it, with the first subprotocol of those that
    /// are offered. Gives the request.
    ///
    /// # Errors
    /// As [`upgrade`](Self::upgrade).
    pub async fn accept_upgrade(&mut self) -> io::Result<String> {
        let request = self.head().await?;
        let answer = agree(&request);
        self.bytes(answer.as_bytes()).await?;
        Ok(request)
    }

    /// Reads the head of an HTTP request or answer, to its empty line.
    ///
    /// # Errors
    /// What the system says, or `UnexpectedEof` if the line ends within the head.
    pub async fn head(&mut self) -> io::Result<String> {
        const END: &[u8] = b"\r\n\r\n";
        loop {
            let end = self.buffer.windows(END.len()).position(|part| part == END);
            if let Some(end) = end {
                let head = self.buffer.drain(..end + END.len()).collect();
                return String::from_utf8(head).map_err(io::Error::other);
            }
            if self.read().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next frame; `None` at the end of the line.
    ///
    /// # Errors
    /// What the system says, or `UnexpectedEof` if the line ends within a frame.
    pub async fn receive(&mut self) -> io::Result<Option<Received>> {
        loop {
            if let Some((frame, len)) = Received::parse(&self.buffer) {
                self.buffer.drain(..len);
                return Ok(Some(frame));
            }
            if self.read().await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// The next message of text. Pings are answered, pongs skipped; a Close or the end of the line
    /// is an error.
    ///
    /// # Errors
    /// As [`receive`](Self::receive), and `UnexpectedEof` if no further text comes.
    pub async fn next_text(&mut self) -> io::Result<String> {
        loop {
            let Some(frame) = self.receive().await? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            if let Some(text) = frame.text() {
                return Ok(text.to_owned());
            }
            if let Some(code) = frame.close_code() {
                let why = format!("closed with {code} instead of a message");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
            if frame.is_ping() {
                self.frame(RawFrame::pong(frame.payload)).await?;
            }
        }
    }

    /// Lets a fault happen to what this side sends. Gives what is left of the connection, and how it
    /// ended, if it has.
    ///
    /// # Panics
    /// If the fault is one of frames that pass.
    pub async fn inject(mut self, fault: &Fault) -> (Option<Self>, Option<End>) {
        // Whatever is sent, the other end may have ended the line already.
        match fault {
            Fault::HalfOpen => return (Some(self), None),
            Fault::End => return (None, None),
            Fault::Reset => {
                self.reset();
                return (None, None);
            }
            Fault::HalfClose => drop(self.tcp.shutdown().await),
            Fault::Close(code) => drop(self.frame(RawFrame::close(*code)).await),
            Fault::Bytes(bytes) => drop(self.bytes(bytes).await),
            Fault::Refuse(status) => {
                let answer = format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n");
                drop(self.bytes(answer.as_bytes()).await);
                return (Some(self), None);
            }
            Fault::Frames(frames) => {
                for frame in frames {
                    let _ = self.frame(frame.clone()).await;
                }
            }
            other => fail(&format!("{other:?} is a fault of frames that pass")),
        }
        let end = self.end().await;
        (Some(self), Some(end))
    }

    /// Reads whatever comes to the end of the connection, answers nothing, and says how it ended.
    /// What the last words were counts more than how the line ended after them.
    pub async fn end(&mut self) -> End {
        end_of(&mut self.tcp, &mut self.buffer).await
    }

    /// Sends a frame again and again, at most so many times, while it reads; then it goes on reading
    /// and says how it ended, as [`end`](Self::end) does.
    pub async fn flood(&mut self, frame: RawFrame, times: usize) -> End {
        let bytes = frame.into_bytes(self.role);
        let (mut from, mut to) = self.tcp.split();
        let writing = async {
            for _ in 0..times {
                if to.write_all(&bytes).await.is_err() {
                    break;
                }
            }
        };
        tokio::join!(end_of(&mut from, &mut self.buffer), writing).0
    }

    /// As [`end`](Self::end), before the upgrade: reads an HTTP answer, if one comes, to the end.
    pub async fn http_end(&mut self) -> End {
        let ended = loop {
            match self.read().await {
                Ok(0) => break End::Fin,
                Ok(_) => {}
                Err(_) => break End::Reset,
            }
        };
        let answer = std::str::from_utf8(&self.buffer).unwrap_or_default();
        let status = answer
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok());
        status.map_or(ended, End::Close)
    }

    /// Cuts the connection with a reset, as a machine does that knows it no longer.
    pub fn reset(self) {
        #[allow(
            deprecated,
            reason = "it blocks where it lingers, and with zero it does not"
        )]
        let _ = self.tcp.set_linger(Some(Duration::ZERO));
    }

    /// Reads once; 0 bytes are the end of the line.
    async fn read(&mut self) -> io::Result<usize> {
        self.tcp.read_buf(&mut self.buffer).await
    }
}

/// A listener whose connections are [`RawPeer`]s with the role of a server.
#[derive(Debug)]
pub struct RawListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl RawListener {
    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    /// What the system says.
    pub async fn bind() -> io::Result<Self> {
        Self::new(TcpListener::bind("127.0.0.1:0").await?)
    }

    fn new(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// As [`bind`](Self::bind), for connections with little room for what comes: see
    /// [`RawPeer::connect_narrow`].
    ///
    /// # Errors
    /// What the system says.
    pub fn bind_narrow() -> io::Result<Self> {
        let socket = narrow_socket()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Self::new(socket.listen(16)?)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection. Nothing is read or sent.
    ///
    /// # Errors
    /// What the system says.
    pub async fn accept(&self) -> io::Result<RawPeer> {
        let (tcp, _) = self.listener.accept().await?;
        Ok(RawPeer::new(tcp, Role::Server))
    }

    /// The next connection, upgraded. Gives the request too.
    ///
    /// # Errors
    /// What the system says.
    pub async fn accept_upgraded(&self) -> io::Result<(RawPeer, String)> {
        let mut peer = self.accept().await?;
        let request = peer.accept_upgrade().await?;
        Ok((peer, request))
    }
}

/// A socket with little room for what comes.
fn narrow_socket() -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    Ok(socket)
}

/// Reads to the end of the line, and says how it ended.
async fn end_of(line: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> End {
    let mut code = None;
    loop {
        while let Some((frame, len)) = Received::parse(buffer) {
            code = frame.close_code().map(End::Close).or(code);
            buffer.drain(..len);
        }
        match line.read_buf(buffer).await {
            Ok(0) => return code.unwrap_or(End::Fin),
            Ok(_) => {}
            Err(_) => return code.unwrap_or(End::Reset),
        }
    }
}

/// What a server answers to this request if it agrees.
pub(super) fn agree(request: &str) -> String {
    let header = |wanted: &str| {
        request.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then_some(value.trim())
        })
    };
    let accept = derive_accept_key(header("sec-websocket-key").unwrap_or_default().as_bytes());
    let offered = header("sec-websocket-protocol").and_then(|list| list.split(',').next());
    let subprotocol = offered.map_or_else(String::new, |name| {
        format!("Sec-WebSocket-Protocol: {}\r\n", name.trim())
    });
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{subprotocol}\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_raw_peers_report_how_the_connection_ended() {
        let listener = RawListener::bind().await.unwrap();
        let mut client = RawPeer::connect(listener.address()).await.unwrap();
        let request = upgrade_request("/ws", "Sec-WebSocket-Protocol: a, b\r\n");
        let (head, accepted) = tokio::join!(client.upgrade(&request), listener.accept_upgraded());
        let (mut server, seen) = accepted.unwrap();
        assert_eq!(seen, request);
        let head = head.unwrap();
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        assert!(head.contains("Sec-WebSocket-Protocol: a\r\n"), "{head}");
        client.text("hello").await.unwrap();
        assert_eq!(server.next_text().await.unwrap(), "hello");
        server.frame(RawFrame::close(1001)).await.unwrap();
        drop(server);
        assert_eq!(client.end().await, End::Close(1001));
    }

    #[tokio::test]
    async fn a_reset_and_an_end_look_different() {
        let listener = RawListener::bind().await.unwrap();
        for (reset, end) in [(true, End::Reset), (false, End::Fin)] {
            let mut client = RawPeer::connect(listener.address()).await.unwrap();
            let server = listener.accept().await.unwrap();
            if reset {
                server.reset();
            } else {
                drop(server);
            }
            assert_eq!(client.end().await, end);
        }
    }
}
