//! How much a link holds while nothing happens on it. Printed, and bounded from above.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use allocation_counter::measure;
use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use rpc_core::Outgoing;
use rpc_core::net::link::over;
use rpc_core::net::ws::{Role, WsConfig, WsStream};
use rpc_core::net::{LinkConfig, mem};
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
        let mut config = LinkConfig::default().with_max_commands(max_commands);
        config.events = config.events.with_max_items(max_events);
        config
    };
    // What the first one costs only once is left out.
    let first = runtime.block_on(connected(config(), config()));
    let mut lines = Vec::with_capacity(LINES);
    let info = measure(|| {
        runtime.block_on(async {
            for _ in 0..LINES {
                let (guest, mut host, cutter) = connected(config(), config()).await;
                while host.events.try_next().is_some() {}
                lines.push((guest, host, cutter));
            }
        });
    });
    drop((first, lines));
    info.bytes_current / LINES as i64
}

#[test]
fn an_idle_link_holds_little_however_much_it_may_hold() {
    let each = held_by_each(1, 1);
    println!("both ends of an idle link: {each} bytes");
    assert!(each <= 7 * 1024, "{each} bytes");
    assert_eq!(each, held_by_each(1 << 20, 1 << 20));
}

/// A line that gives what is in it and takes everything.
struct Script(VecDeque<Vec<u8>>);

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(mut piece) = self.0.pop_front() else {
            return Poll::Pending;
        };
        let rest = piece.split_off(piece.len().min(buffer.remaining()));
        buffer.put_slice(&piece);
        if !rest.is_empty() {
            self.0.push_front(rest);
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

#[test]
fn an_idle_websocket_holds_nothing_whatever_went_through_it() {
    let mut large = vec![0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 0];
    large.resize(large.len() + (1 << 20), 7);
    let small = b"\x81\x02hi\x89\x04ping".repeat(1_000);
    let mut pieces = VecDeque::with_capacity(8);
    pieces.extend([
        large,
        small,
        b"\x01\x02be".to_vec(),
        b"\x80\x03gun".to_vec(),
    ]);
    let config = WsConfig::default();
    let mut messages = 0;
    let mut ws = None;
    let held = measure(|| {
        let line = Script(pieces);
        let opened = WsStream::from_upgraded(line, Bytes::new(), Role::Client, &config);
        let ws = ws.insert(opened.now_or_never().unwrap());
        while let Some(Some(Ok(_))) = ws.next().now_or_never() {
            messages += 1;
        }
        for len in [1 << 20, 10, 10] {
            let message = Outgoing::Binary(vec![7; len].into());
            ws.feed(message).now_or_never().unwrap().unwrap();
        }
        ws.flush().now_or_never().unwrap().unwrap();
    });
    assert_eq!(messages, 1 + 2_000 + 1);
    // The list of pieces was there before; the pieces themselves are gone.
    assert!(held.bytes_current <= 0, "{} bytes", held.bytes_current);
}
