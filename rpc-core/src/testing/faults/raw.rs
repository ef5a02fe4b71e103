//! A WebSocket peer that does with its bytes whatever it is told to: [`RawPeer`], [`RawListener`].

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::net::ws::{Role, answer_to};

/// Opcodes (RFC 6455, section 5.2).
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const KEY: [u8; 4] = [1, 2, 3, 4];

/// A WebSocket's upgrade request: `path`, and further header lines that each end in `\r\n`.
#[must_use]
pub fn upgrade_request(path: &str, headers: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    )
}

/// A frame to send, right or wrong. [`RawPeer::frame`] masks it if its side has to, unless told
/// otherwise.
#[derive(Clone, Debug)]
#[must_use = "a frame is sent by `RawPeer::frame`"]
pub struct RawFrame {
    first: u8,
    payload: Vec<u8>,
    masked: Option<bool>,
    announced: Option<u64>,
}

impl RawFrame {
    /// A frame with this first byte: FIN, the reserved bits and the opcode.
    pub fn new(first: u8, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            first,
            payload: payload.into(),
            masked: None,
            announced: None,
        }
    }

    /// A whole message of text, which need not be UTF-8.
    pub fn text(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(FINAL | TEXT, payload)
    }

    /// A whole binary message.
    pub fn binary(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(FINAL | BINARY, payload)
    }

    /// A ping.
    pub fn ping(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(FINAL | PING, payload)
    }

    /// A pong.
    pub fn pong(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(FINAL | PONG, payload)
    }

    /// A Close with this code and no reason.
    pub fn close(code: u16) -> Self {
        Self::new(FINAL | CLOSE, code.to_be_bytes())
    }

    /// A continuation, the last one of its message or not.
    pub fn continuation(is_final: bool, payload: impl Into<Vec<u8>>) -> Self {
        Self::new(if is_final { FINAL } else { 0 }, payload)
    }

    /// The same frame as the first of several: without FIN.
    pub const fn unfinished(mut self) -> Self {
        self.first &= !FINAL;
        self
    }

    /// Masks, or does not, whatever the role asks for.
    pub const fn masked(mut self, masked: bool) -> Self {
        self.masked = Some(masked);
        self
    }

    /// Announces another length than the payload has.
    pub const fn announcing(mut self, len: u64) -> Self {
        self.announced = Some(len);
        self
    }

    /// The frame's bytes as this side sends them.
    #[must_use]
    pub fn into_bytes(self, role: Role) -> Vec<u8> {
        let Self {
            first,
            mut payload,
            masked,
            announced,
        } = self;
        let is_masked = masked.unwrap_or(role == Role::Client);
        let len = announced.unwrap_or(payload.len() as u64);
        let bit = if is_masked { MASKED } else { 0 };
        let mut bytes = vec![first];
        match (u8::try_from(len), u16::try_from(len)) {
            (Ok(short @ ..126), _) => bytes.push(bit | short),
            (_, Ok(middle)) => {
                bytes.push(bit | 126);
                bytes.extend_from_slice(&middle.to_be_bytes());
            }
            _ => {
                bytes.push(bit | 127);
                bytes.extend_from_slice(&len.to_be_bytes());
            }
        }
        if is_masked {
            bytes.extend_from_slice(&KEY);
            for (byte, key) in payload.iter_mut().zip(KEY.iter().cycle()) {
                *byte ^= key;
            }
        }
        bytes.append(&mut payload);
        bytes
    }
}

/// A frame that came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// FIN, the reserved bits and the opcode.
    pub first: u8,
    /// The payload, without its mask.
    pub payload: Vec<u8>,
}

impl Received {
    /// The text of a whole message; `None` for any other frame.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self.first {
            0x81 => std::str::from_utf8(&self.payload).ok(),
            _ => None,
        }
    }

    /// Whether this is a ping.
    #[must_use]
    pub const fn is_ping(&self) -> bool {
        self.first == FINAL | PING
    }

    /// Whether this is a pong.
    #[must_use]
    pub const fn is_pong(&self) -> bool {
        self.first == FINAL | PONG
    }

    /// The code of a Close, 1005 if it has none; `None` for any other frame.
    #[must_use]
    pub fn close_code(&self) -> Option<u16> {
        (self.first == FINAL | CLOSE).then(|| match self.payload.first_chunk() {
            Some(code) => u16::from_be_bytes(*code),
            None => 1005,
        })
    }
}

/// How the other end ended a connection. There is no fourth way, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a Close of this code (1005 if it had none), or with an HTTP answer of this status.
    Said(u16),
    /// The line ended, and nothing was said.
    Fin,
    /// The line was reset, and nothing was said.
    Reset,
}

/// One end of a TCP connection on which everything is done by hand.
#[derive(Debug)]
pub struct RawPeer {
    tcp: TcpStream,
    role: Role,
    /// What was read and not taken yet.
    buffer: Vec<u8>,
}

impl RawPeer {
    /// Opens the TCP connection of a client. Nothing is sent.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        Ok(Self::new(TcpStream::connect(address).await?, Role::Client))
    }

    /// As [`connect`](Self::connect), with little room for what comes: whoever sends to this peer
    /// soon has to wait for it to read.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn connect_narrow(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        socket.set_recv_buffer_size(4096)?;
        Ok(Self::new(socket.connect(address).await?, Role::Client))
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
    ///
    /// # Cancel safety
    /// Dropping the future may leave a part of the bytes sent.
    pub async fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tcp.write_all(bytes).await
    }

    /// Sends one byte after the other with a pause before each.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    ///
    /// # Cancel safety
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
    ///
    /// # Cancel safety
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
    ///
    /// # Cancel safety
    /// As [`bytes`](Self::bytes).
    pub async fn frame(&mut self, frame: RawFrame) -> io::Result<()> {
        let bytes = frame.into_bytes(self.role);
        self.tcp.write_all(&bytes).await
    }

    /// Sends a whole message of text.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    ///
    /// # Cancel safety
    /// As [`bytes`](Self::bytes).
    pub async fn text(&mut self, text: &str) -> io::Result<()> {
        self.frame(RawFrame::text(text)).await
    }

    /// Sends an upgrade request and reads the answer's head, which should say 101.
    ///
    /// # Errors
    /// What the system says, or `UnexpectedEof` if the line ends within the head.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the handshake half done.
    pub async fn upgrade(&mut self, request: &str) -> io::Result<String> {
        self.bytes(request.as_bytes()).await?;
        self.head().await
    }

    /// Reads a client's upgrade request and agrees to it, with the first subprotocol of those that
    /// are offered. Gives the request.
    ///
    /// # Errors
    /// As [`upgrade`](Self::upgrade).
    ///
    /// # Cancel safety
    /// Dropping the future leaves the handshake half done.
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
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
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
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn receive(&mut self) -> io::Result<Option<Received>> {
        loop {
            if let Some((frame, len)) = parse(&self.buffer) {
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
    ///
    /// # Cancel safety
    /// A pong may be left half sent when the future is dropped.
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

    /// Reads whatever comes to the end of the connection, answers nothing, and says how it ended.
    /// What the last words were counts more than how the line ended after them.
    ///
    /// # Cancel safety
    /// What was read is forgotten when the future is dropped.
    pub async fn end(&mut self) -> End {
        let mut said = None;
        loop {
            match self.receive().await {
                Ok(Some(frame)) => said = frame.close_code().map(End::Said).or(said),
                Ok(None) => return said.unwrap_or(End::Fin),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return said.unwrap_or(End::Fin);
                }
                Err(_) => return said.unwrap_or(End::Reset),
            }
        }
    }

    /// As [`end`](Self::end), before the upgrade: reads an HTTP answer, if one comes, to the end.
    ///
    /// # Cancel safety
    /// What was read is forgotten when the future is dropped.
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
        status.map_or(ended, End::Said)
    }

    /// Reads and forgets everything that has come by now.
    ///
    /// # Errors
    /// What the system says.
    pub fn discard(&mut self) -> io::Result<()> {
        self.buffer.clear();
        let mut rest = [0; 4096];
        loop {
            match self.tcp.try_read(&mut rest) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the sending side; what comes can still be read.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the side as it is.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.tcp.shutdown().await
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
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// As [`bind`](Self::bind), for connections with little room for what comes: see
    /// [`RawPeer::connect_narrow`].
    ///
    /// # Errors
    /// What the system says.
    pub fn bind_narrow() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(16)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
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
    ///
    /// # Cancel safety
    /// No connection is lost when the future is dropped.
    pub async fn accept(&self) -> io::Result<RawPeer> {
        let (tcp, _) = self.listener.accept().await?;
        Ok(RawPeer::new(tcp, Role::Server))
    }

    /// The next connection, upgraded. Gives the request too.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancel safety
    /// Dropping the future cuts a connection that is being upgraded.
    pub async fn accept_upgraded(&self) -> io::Result<(RawPeer, String)> {
        let mut peer = self.accept().await?;
        let request = peer.accept_upgrade().await?;
        Ok((peer, request))
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
    let accept = answer_to(header("sec-websocket-key").unwrap_or_default().as_bytes());
    let offered = header("sec-websocket-protocol").and_then(|list| list.split(',').next());
    let subprotocol = offered.map_or_else(String::new, |name| {
        format!("Sec-WebSocket-Protocol: {}\r\n", name.trim())
    });
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{subprotocol}\r\n"
    )
}

/// The first frame of these bytes and its length; `None` if it is not complete.
fn parse(bytes: &[u8]) -> Option<(Received, usize)> {
    let (&[first, second], rest) = bytes.split_first_chunk()?;
    let (len, rest) = match second & !MASKED {
        126 => {
            let (len, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*len)), rest)
        }
        127 => {
            let (len, rest) = rest.split_first_chunk()?;
            (usize::try_from(u64::from_be_bytes(*len)).ok()?, rest)
        }
        short => (usize::from(short), rest),
    };
    let (key, rest) = if second & MASKED == 0 {
        ([0; 4], rest)
    } else {
        let (key, rest) = rest.split_first_chunk()?;
        (*key, rest)
    };
    let mut payload = rest.get(..len)?.to_vec();
    for (byte, key) in payload.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
    let used = bytes.len() - rest.len() + len;
    Some((Received { first, payload }, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_raw_peer_writes_is_what_it_reads() {
        for len in [0, 125, 126, 65_535, 65_536] {
            for role in [Role::Client, Role::Server] {
                let payload = vec![7; len];
                let bytes = RawFrame::binary(payload.clone()).into_bytes(role);
                let (frame, used) = parse(&bytes).unwrap();
                assert_eq!((frame.payload, used), (payload, bytes.len()));
                assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
            }
        }
    }

    #[tokio::test]
    async fn two_raw_peers_talk_and_say_how_it_ended() {
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
        assert_eq!(client.end().await, End::Said(1001));
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
