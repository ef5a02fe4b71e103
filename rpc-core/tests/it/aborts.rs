//! A machine that drops its line without a word: under virtual time, in memory and over sockets.

use std::time::{Duration, Instant};

use rpc_core::net::server::{Accepted, HttpConfig, Server};
use rpc_core::net::{Driver, mem};
use rpc_core::testing::Pair;
use rpc_core::{Disconnect, Incoming, Limits, Machine, Outbox, Outgoing, Text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Repeats what it hears, and deserts when it hears `go`. Says how it ended.
struct Deserter {
    outbox: Outbox,
    event: Option<Disconnect>,
    closed: bool,
}

impl Deserter {
    fn new() -> Self {
        Self {
            outbox: Outbox::new(&Limits::default()),
            event: None,
            closed: false,
        }
    }

    fn end(&mut self, why: Disconnect) {
        if !self.closed {
            self.closed = true;
            self.event = Some(why);
        }
    }
}

impl Machine for Deserter {
    type Event = Disconnect;

    fn handle_message(&mut self, message: Incoming<'_>, _: Instant) {
        match message {
            Incoming::Text("go") if !self.closed => {
                self.outbox.text(Text::from("never said")).unwrap();
                self.outbox.abort();
                self.end(Disconnect::Local);
            }
            Incoming::Text(text) if !self.closed => {
                self.outbox.text(Text::from(text)).unwrap();
            }
            _ => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.outbox.discard();
        self.end(why);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outbox.pop()
    }

    fn poll_event(&mut self) -> Option<Disconnect> {
        self.event.take()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn is_closed(&self) -> bool {
        self.closed
    }
}

#[test]
fn under_virtual_time_the_other_end_sees_a_cut_line() {
    let mut pair = Pair::new(Deserter::new(), Deserter::new(), Instant::now());
    pair.client.outbox.text(Text::from("go")).unwrap();
    pair.settle();
    assert_eq!(pair.take_server_events(), [Disconnect::Local]);
    assert_eq!(pair.take_client_events(), [Disconnect::Eof]);
    assert_eq!(pair.trace().to_string(), "+0ms C> go\n+0ms S> (abort)\n");
}

#[tokio::test(start_paused = true)]
async fn in_memory_the_other_end_sees_a_cut_line() {
    let (ours, theirs) = mem::duplex(8);
    let mut deserter = Driver::new(Deserter::new(), ours);
    let mut deserted = Driver::new(Deserter::new(), theirs);
    let outbox = &mut deserted.machine_mut().outbox;
    outbox.text(Text::from("go")).unwrap();
    let (left, lost) = tokio::join!(deserter.next(), deserted.next());
    assert_eq!(
        (left, lost),
        (Some(Disconnect::Local), Some(Disconnect::Eof))
    );
    assert_eq!(deserter.next().await, None);
}

#[tokio::test]
async fn over_sockets_the_line_ends_without_a_close_frame() {
    let server = Server::bind("127.0.0.1:0", HttpConfig::default())
        .await
        .unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run(|accepted: Accepted| async move {
        let mut driver = Driver::new(Deserter::new(), accepted.socket);
        while driver.next().await.is_some() {}
    }));
    let mut tcp = TcpStream::connect(address).await.unwrap();
    let request = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\n\
                   upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    tcp.write_all(request.as_bytes()).await.unwrap();
    let words = b"\x81\x82\0\0\0\0hi\x81\x82\0\0\0\0go";
    tcp.write_all(&words[..8]).await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"\x81\x02hi") {
        assert_ne!(tcp.read_buf(&mut heard).await.unwrap(), 0, "{heard:?}");
    }
    heard.clear();
    tcp.write_all(&words[8..]).await.unwrap();
    let end = timeout(Duration::from_millis(300), tcp.read_to_end(&mut heard));
    end.await.expect("an end in time").unwrap();
    assert!(heard.is_empty(), "{heard:?}");
}
