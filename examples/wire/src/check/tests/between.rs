//! What stands between a check and one of our own programs, and breaks what passes by [`Rules`].

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rpc_core::net::DialError;
use rpc_core::testing::Side;
use rpc_core::{Limits, sse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as WsFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::broken::{Passed, Rules};
use super::{BoxStream, Client, Dial, Ended, Frame, Peer, Started, Variables};
use crate::head::{Head, read_head};
use crate::proxy::scan::{Message, Scanner};
use crate::transcript::{Entry, Kind};

/// Bytes between two programs in memory.
const SIZE: usize = 256 * 1024;

/// Returns a peer that is broken by these rules.
pub(super) fn broken(peer: &Peer, rules: Arc<Rules>) -> Peer {
    let between = Arc::new(Between {
        rules,
        front: match peer {
            Peer::Server(..) => Side::Client,
            Peer::Client(_) => Side::Server,
        },
        opened: AtomicU8::new(0),
        ended_by: Mutex::default(),
        left: Notify::new(),
        early: Mutex::default(),
    });
    match peer {
        Peer::Server(dial, url) => {
            let dial = Arc::clone(dial);
            Peer::Server(Arc::new(Server { dial, between }), url.clone())
        }
        Peer::Client(client) => {
            let client = Arc::clone(client);
            Peer::Client(Arc::new(Program { client, between }))
        }
    }
}

struct Between {
    rules: Arc<Rules>,
    /// Where the check is.
    front: Side,
    /// How many WebSockets were asked for.
    opened: AtomicU8,
    /// How the check has ended a connection: `cut`, or the code of its Close.
    ended_by: Mutex<String>,
    /// A connection is over that a program has left by itself, or that the check has refused.
    left: Notify,
    /// The end of a connection that the check was given before the program opened it.
    early: Mutex<Option<BoxStream>>,
}

struct Server {
    dial: Arc<dyn Dial>,
    between: Arc<Between>,
}

#[async_trait]
impl Dial for Server {
    async fn dial(&self) -> Result<BoxStream, DialError> {
        let server = self.dial.dial().await?;
        let (here, there) = duplex(SIZE);
        let between = Arc::clone(&self.between);
        tokio::spawn(async move {
            if let Ok(Some((head, client, rest))) = between.request(Box::new(there)).await {
                let _ = between.pass(head, client, rest, server, false).await;
            }
        });
        Ok(Box::new(here))
    }
}

struct Program {
    client: Arc<dyn Client>,
    between: Arc<Between>,
}

#[async_trait]
impl Client for Program {
    async fn start(&self, path: &str, variables: &Variables) -> io::Result<Started> {
        let mut started = self.client.start(path, variables).await?;
        let (sender, connections) = mpsc::channel(16);
        let between = Arc::clone(&self.between);
        tokio::spawn(async move {
            while let Some(client) = started.connections.recv().await {
                tokio::spawn(connection(Arc::clone(&between), client, sender.clone()));
            }
        });
        let between = Arc::clone(&self.between);
        let ended = Box::pin(async move {
            let ended = started.ended.await;
            let code = ended
                .code
                .map_or("none".to_owned(), |code| code.to_string());
            let ended_by = between.ended_by.lock().unwrap().clone();
            let word = |by: &str| between.rules.word(Side::Client, "exit", by);
            let told = word(&code).or_else(|| word(&ended_by));
            let told = told.and_then(|code| code.parse().ok());
            let output = between.rules.instead(Side::Client, "output", &ended.output);
            Ended {
                code: told.or(ended.code),
                output: output.to_owned(),
                ..ended
            }
        });
        Ok(Started {
            connections,
            ended,
            guards: None,
        })
    }
}

/// Passes on a connection of a program, and opens one more where the rules say so.
async fn connection(between: Arc<Between>, client: BoxStream, sender: mpsc::Sender<BoxStream>) {
    let Ok(Some((head, client, rest))) = between.request(client).await else {
        return;
    };
    let rules = &between.rules;
    let number = between.opened.load(Ordering::Relaxed);
    let ended_by = between.ended_by.lock().unwrap().clone();
    let is_dropped = |by: &str| rules.drops(Side::Client, "connection", by);
    // A client that does not come back comes back never.
    if head.is_upgrade()
        && ((1..=number).any(|number| is_dropped(&number.to_string())) || is_dropped(&ended_by))
    {
        return;
    }
    let early = between.early.lock().unwrap().take();
    let is_early = early.is_some();
    let server = match early {
        Some(server) => server,
        None => between.open(&sender).await,
    };
    let (next, sent) = ((number + 1).to_string(), head.clone());
    let again = rules.word(Side::Client, "connection", &next);
    let passing = async {
        let passed = between.pass(head, client, rest, server, is_early);
        let _ = passed.await;
        if again == Some("early") {
            let mut server = between.open(&sender).await;
            server.write_all(&sent.bytes()).await.unwrap();
            *between.early.lock().unwrap() = Some(server);
        }
    };
    let extra = async {
        between.left.notified().await;
        match again {
            Some("extra") => Some(between.open(&sender).await),
            _ => None,
        }
    };
    tokio::join!(passing, extra);
}

/// One direction: where it comes from and goes to.
struct Way {
    reads: ReadHalf<BoxStream>,
    writes: WriteHalf<BoxStream>,
    scanner: Scanner,
    /// Whether nothing comes any more, or nothing of it goes on.
    is_over: bool,
}

/// A request, who makes it, and what came behind it.
type Request = (Head, BoxStream, Vec<u8>);

impl Between {
    /// Gives the check a connection, and returns its other end.
    async fn open(&self, sender: &mpsc::Sender<BoxStream>) -> BoxStream {
        let (here, there) = duplex(SIZE);
        // The row may be over.
        let _gone = sender.send(Box::new(here)).await;
        Box::new(there)
    }

    /// Reads a request, as the rules change it.
    async fn request(&self, mut client: BoxStream) -> io::Result<Option<Request>> {
        let Some((mut head, rest)) = read_head(&mut client, Vec::new()).await? else {
            return Ok(None);
        };
        let target = head.target().to_owned();
        head.set_target(self.rules.instead(Side::Client, "path", &target));
        self.change(&mut head, Side::Client);
        if head.is_upgrade() {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Some((head, client, rest)))
    }

    fn change(&self, head: &mut Head, from: Side) {
        let names: Vec<_> = head.headers().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            if self.rules.drops(from, "header", &name) {
                head.remove(&name);
            } else if let Some(value) = self.rules.word(from, "header", &name) {
                head.set(&name, value);
            }
        }
    }

    /// Passes a request on, and all that follows.
    async fn pass(
        &self,
        head: Head,
        client: BoxStream,
        rest: Vec<u8>,
        server: BoxStream,
        is_early: bool,
    ) -> io::Result<()> {
        let number = self.opened.load(Ordering::Relaxed);
        let (mut client_in, mut client_out) = split(client);
        let (mut server_in, mut server_out) = split(server);
        if !is_early {
            server_out.write_all(&head.bytes()).await?;
        }
        server_out.write_all(&rest).await?;
        let body = async {
            if !head.is_upgrade() {
                tokio::io::copy(&mut client_in, &mut server_out).await?;
            }
            std::future::pending::<io::Result<()>>().await
        };
        let answer = async {
            let answer = read_head(&mut server_in, Vec::new()).await?;
            let (mut answer, rest) = answer.ok_or(io::ErrorKind::UnexpectedEof)?;
            let status = answer.status().unwrap_or_default().to_string();
            let with_path = format!("{status}{}", head.target());
            let word = |of: &str| self.rules.word(Side::Server, "status", of);
            if let Some(other) = word(&with_path).or_else(|| word(&status)) {
                answer.first = format!("HTTP/1.1 {other} Other");
            }
            self.change(&mut answer, Side::Server);
            if let Some(key) = head.header("sec-websocket-key").filter(|_| is_early) {
                answer.set("sec-websocket-accept", &derive_accept_key(key.as_bytes()));
            }
            if answer.status() != Some(101) {
                // It may become longer.
                answer.remove("content-length");
            }
            client_out.write_all(&answer.bytes()).await?;
            if answer.status() != Some(101) {
                self.body(number, &answer, rest, &mut server_in, &mut client_out)
                    .await?;
                return Ok(None);
            }
            io::Result::Ok(Some(rest))
        };
        let rest = tokio::select! {
            ended = body => return ended,
            rest = answer => rest?,
        };
        let Some(rest) = rest else {
            return Ok(());
        };
        let way = |reads, writes| Way {
            reads,
            writes,
            scanner: Scanner::default(),
            is_over: false,
        };
        self.frames(
            number,
            [way(client_in, server_out), way(server_in, client_out)],
            rest,
        )
        .await
    }

    /// Passes on the body of an answer, or its events.
    async fn body(
        &self,
        number: u8,
        answer: &Head,
        rest: Vec<u8>,
        from: &mut ReadHalf<BoxStream>,
        to: &mut WriteHalf<BoxStream>,
    ) -> io::Result<()> {
        let mut decoder = sse::Decoder::new(&Limits::default());
        let (mut bytes, mut is_over) = (rest, false);
        while !is_over {
            let mut texts = Vec::new();
            if answer.is_stream() {
                let mut rest = &*bytes;
                while let Some(Ok(event)) = decoder.decode(&mut rest) {
                    texts.push(event.data);
                }
                bytes.clear();
                is_over = from.read_buf(&mut bytes).await? == 0;
            } else {
                from.read_to_end(&mut bytes).await?;
                is_over = true;
                texts.extend(Some(String::from_utf8_lossy(&bytes).into_owned()));
                texts.retain(|text| !text.is_empty());
            }
            for text in texts {
                for passed in self.rules.pass(number, Side::Server, Frame::Text(text)) {
                    let Passed::On(Frame::Text(text)) = passed else {
                        return Ok(());
                    };
                    let event = match answer.is_stream() {
                        true => format!("data: {}\n\n", text.replace('\n', "\ndata: ")),
                        false => text,
                    };
                    to.write_all(event.as_bytes()).await?;
                }
            }
        }
        to.shutdown().await
    }

    /// Passes on the frames of both sides.
    async fn frames(&self, number: u8, ways: [Way; 2], rest: Vec<u8>) -> io::Result<()> {
        let [mut up, mut down] = ways;
        for (from, way) in [(Side::Client, &mut up), (Side::Server, &mut down)] {
            if let Some(text) = self.rules.begin(number, from) {
                send(way, from, Frame::Text(text)).await?;
            }
        }
        let (mut up_bytes, mut down_bytes) = (Vec::new(), rest);
        loop {
            for (from, bytes) in [
                (Side::Client, &mut up_bytes),
                (Side::Server, &mut down_bytes),
            ] {
                let (way, back) = match from {
                    Side::Client => (&mut up, &mut down),
                    Side::Server => (&mut down, &mut up),
                };
                way.scanner.push(bytes);
                bytes.clear();
                while let Some(message) = way.scanner.next_message() {
                    let Some(frame) = frame(message) else {
                        continue;
                    };
                    if !self.take(number, from, frame, way, back).await? {
                        return Ok(());
                    }
                }
            }
            let (from, len) = tokio::select! {
                len = up.reads.read_buf(&mut up_bytes), if !up.is_over => (Side::Client, len),
                len = down.reads.read_buf(&mut down_bytes), if !down.is_over => (Side::Server, len),
                else => return Ok(()),
            };
            if len.unwrap_or(0) == 0 {
                let (way, back) = match from {
                    Side::Client => (&mut up, &mut down),
                    Side::Server => (&mut down, &mut up),
                };
                let end = Frame::End(String::new());
                if !self.take(number, from, end, way, back).await? {
                    return Ok(());
                }
                way.is_over = true;
            }
        }
    }

    /// Takes a frame. Returns whether the connection goes on.
    async fn take(
        &self,
        number: u8,
        from: Side,
        frame: Frame,
        way: &mut Way,
        back: &mut Way,
    ) -> io::Result<bool> {
        let is_end = matches!(frame, Frame::Close(..) | Frame::End(_));
        if from == self.front && is_end {
            let mut ended_by = self.ended_by.lock().unwrap();
            match &frame {
                Frame::Close(code, _) => {
                    *ended_by = code.to_string();
                    if *code >= 4000 {
                        self.left.notify_one();
                    }
                }
                _ if ended_by.is_empty() => "cut".clone_into(&mut ended_by),
                _ => {}
            }
        } else if is_end && self.ended_by.lock().unwrap().is_empty() {
            self.left.notify_one();
        }
        let other = match from {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        let passed = self.rules.pass(number, from, frame);
        // What nobody learns of does not end.
        way.is_over |= is_end && passed.is_empty();
        for passed in passed {
            match passed {
                Passed::On(frame) => send(way, from, frame).await?,
                Passed::Back(frame) => send(back, other, frame).await?,
                Passed::Closed(code) => {
                    let (front, own) = match from == self.front {
                        true => (back, other),
                        false => (way, from),
                    };
                    send(front, own, Frame::Close(code, String::new())).await?;
                    front.writes.shutdown().await?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Sends a frame of this side.
async fn send(way: &mut Way, from: Side, frame: Frame) -> io::Result<()> {
    let mut frame = match frame {
        Frame::Text(text) => WsFrame::message(text.into_bytes(), OpCode::Data(Data::Text), true),
        Frame::Binary(bytes) => WsFrame::message(bytes, OpCode::Data(Data::Binary), true),
        Frame::Ping(bytes) => WsFrame::ping(bytes),
        Frame::Pong(bytes) => WsFrame::pong(bytes),
        Frame::Close(code, _) => {
            let code = code.into();
            let reason = Utf8Bytes::default();
            WsFrame::close(Some(CloseFrame { code, reason }))
        }
        Frame::End(_) => return way.writes.shutdown().await,
    };
    frame.header_mut().mask = (from == Side::Client).then_some([0; 4]);
    let mut bytes = Vec::new();
    frame.format(&mut bytes).unwrap();
    way.writes.write_all(&bytes).await?;
    way.writes.flush().await
}

fn frame(message: Message) -> Option<Frame> {
    let Message { kind, data, code } = message;
    let bytes = || {
        let entry = Entry::new(std::time::Duration::ZERO, 1, None, kind, &*data);
        entry.payload().unwrap()
    };
    Some(match kind {
        Kind::Text => Frame::Text(data),
        Kind::Binary => Frame::Binary(bytes()),
        Kind::Ping => Frame::Ping(bytes()),
        Kind::Pong => Frame::Pong(bytes()),
        Kind::Close => Frame::Close(code.unwrap_or(1000), String::new()),
        _ => return None,
    })
}
