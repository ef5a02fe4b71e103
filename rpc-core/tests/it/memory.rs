//! How much a link holds while nothing happens on it. Printed, and bounded from above.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use allocation_counter::measure;
use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use rpc_core::Outgoing;
use rpc_core::net::ws::{Role, WsConfig, WsStream};
use rpc_core::net::{LinkConfig, QueueConfig, mem, over};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::toy::net::{HostSide, connected};

const LINES: usize = 100;

#[test]
fn the_future_of_a_link_is_small() {
    let (_other, transport) = mem::duplex(1);
    let (_link, _events, connection) = over(HostSide::default(), transport, LinkConfig::default());
    let size = size_of_val(&connection.run());
    println!("the future of a link: {size} bytes");
    assert!(size <= 768, "{size} bytes");
}

/// Bytes that each of [`LINES`] idle links holds, both ends and the line in memory between them.
fn held_by_each(max_commands: usize, max_events: usize) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = move || {
        let events = QueueConfig {
            max_items: max_events,
            ..QueueConfig::default()
        };
        let config = LinkConfig {
            events,
            ..LinkConfig::default()
        };
        LinkConfig {
            max_commands,
            ..config
        }
    };
    // What the first one costs only once is left out.
    let first = runtime.block_on(connected(config(), config()));
    let mut lines = Vec::with_capacity(LINES);
    let info = measure(|| {
        runtime.block_on(async {
            for _ in 0..LINES {
                let (guest, mut host, cutter) = connected(config(), config()).await;
                while host.events.try_next_link().is_some() {}
                lines.push((guest, host, cutter));
            }
        });
    });
    drop((first, lines));
    info.bytes_current / LINES as i64
}

#[test]
fn an_idle_link_uses_little_memory() {
    let each = held_by_each(1, 1);
    println!("both ends of an idle link: {each} bytes");
    assert!(each <= 7 * 1024, "{each} bytes");
    assert_eq!(each, held_by_each(1 << 20, 1 << 20));
}

/// A line that gives what is in it and takes everything.
struct Script(VecDeque<Bytes>);

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(piece) = self.0.front_mut() else {
            return Poll::Pending;
        };
        buffer.put_slice(&piece.split_to(piece.len().min(buffer.remaining())));
        if piece.is_empty() {
            self.0.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Checks how much a client's WebSocket holds that has read so many messages from these pieces and
/// sent messages of these lengths, in bursts.
fn assert_holds(most: i64, pieces: &[Bytes], messages: usize, sent: &[&[usize]]) {
    let config = WsConfig::default();
    let use_one = |line| {
        let opened = WsStream::from_upgraded(line, Bytes::new(), Role::Client, &config);
        let mut ws = opened.now_or_never().unwrap();
        let mut came = 0;
        while let Some(Some(Ok(_))) = ws.next().now_or_never() {
            came += 1;
        }
        assert_eq!(came, messages);
        for burst in sent {
            for len in *burst {
                let message = Outgoing::Binary(vec![7; *len].into());
                ws.feed(message).now_or_never().unwrap().unwrap();
            }
            ws.flush().now_or_never().unwrap().unwrap();
        }
        ws
    };
    let line = || Script(pieces.iter().cloned().collect());
    // What the first one costs only once is left out.
    drop(use_one(line()));
    let line = line();
    let mut used = None;
    let held = measure(|| used = Some(use_one(line))).bytes_current;
    assert!(held <= most, "{held} bytes");
}

#[test]
fn an_idle_websocket_has_one_small_buffer() {
    assert_holds(1_600, &[], 0, &[]);
    let small = Bytes::from(b"\x81\x02hi\x89\x04ping".repeat(1_000));
    let [begin, end] = [&b"\x01\x02be"[..], b"\x80\x03gun"].map(Bytes::from_static);
    let pieces = [small, begin, end];
    assert_holds(3 * 1024, &pieces, 2_001, &[&[100, 200]]);
    assert_holds(3 * 1024, &pieces, 2_001, &[&[100; 1_000]]);
}

#[test]
fn the_buffer_of_a_short_burst_is_kept_until_a_small_one() {
    assert_holds(6 * 1024, &[], 0, &[&[100; 30]]);
    assert_holds(3 * 1024, &[], 0, &[&[100; 30], &[100]]);
}

#[test]
fn memory_of_a_large_message_is_released() {
    let mut large = vec![0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 0];
    large.resize(large.len() + (1 << 20), 7);
    let small = b"\x81\x02hi\x89\x04ping".repeat(1_000);
    let large = Bytes::from(large);
    assert_holds(1_600, std::slice::from_ref(&large), 1, &[]);
    assert_holds(3 * 1024, &[large.clone(), large, small.into()], 2_002, &[]);
    assert_holds(1_600, &[], 0, &[&[1 << 20]]);
}
