//! A machine that drops its line without a word: under virtual time, in memory and over sockets.

use std::time::{Duration, Instant};

use rpc_core::net::server::{Accepted, HttpConfig, Server};
use rpc_core::net::{Driver, mem};
use rpc_core::testing::Pair;
use rpc_core::{CloseReason, Disconnect, Incoming, Machine, MachineCore, Outgoing, Text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Repeats what it hears, and deserts when it hears `go`. Says how it ended.
struct Deserter {
    core: MachineCore<CloseReason>,
}

impl Deserter {
    fn new() -> Self {
        Self {
            core: MachineCore::default(),
        }
    }

    fn say(&mut self, text: &str) {
        self.core.send_text(Text::from(text)).unwrap();
    }
}

impl Machine for Deserter {
    type Event = CloseReason;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        let Some(Incoming::Text(text)) = self.core.received(message, now) else {
            return;
        };
        if text == "go" {
            self.say("never said");
            self.core.abort(CloseReason::Local);
        } else {
            self.say(text);
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.core.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<CloseReason> {
        self.core.poll_event(|reason| reason)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }
}

#[test]
fn under_virtual_time_the_other_end_sees_a_cut_line() {
    let mut pair = Pair::new(Deserter::new(), Deserter::new(), Instant::now());
    pair.client.say("go");
    pair.settle();
    assert_eq!(pair.take_server_events(), [CloseReason::Local]);
    assert_eq!(pair.take_client_events(), [CloseReason::Lost]);
    assert_eq!(pair.trace().to_string(), "+0ms C> go\n+0ms S> (abort)\n");
}

#[tokio::test(start_paused = true)]
async fn in_memory_the_other_end_sees_a_cut_line() {
    let (ours, theirs) = mem::duplex(8);
    let mut deserter = Driver::new(Deserter::new(), ours);
    let mut deserted = Driver::new(Deserter::new(), theirs);
    deserted.machine_mut().say("go");
    let (left, lost) = tokio::join!(deserter.next(), deserted.next());
    assert_eq!(
        (left, lost),
        (Some(CloseReason::Local), Some(CloseReason::Lost))
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
