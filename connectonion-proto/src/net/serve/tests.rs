//! Tests of a host's end that need a line in memory.

use futures_util::{SinkExt, StreamExt};
use rpc_core::net::Message;
use rpc_core::net::mem::{self, MemTransport};
use rpc_core::{Limits, Outgoing};

use super::*;
use crate::auth::Signer;
use crate::frame::{EventKind, Thinking};
use crate::hub::Hub;
use crate::limits::defaults;
use crate::net::{AppError, Prompt, Reply, Turn};
use crate::trust::TrustLevel;

/// Says more than there is room for, and is done.
struct Chatter;

impl Agent for Chatter {
    async fn run(&self, turn: &Turn, _: Prompt) -> Result<Reply, AppError> {
        for _ in 0..100 {
            turn.emit(EventKind::Thinking(Thinking::new("hm")))?;
        }
        Ok(Reply::new("said it all"))
    }
}

async fn send(line: &mut MemTransport, frame: &str) {
    line.send(Outgoing::Text(frame.into())).await.unwrap();
}

/// The next frame, or the code of the Close.
async fn recv(line: &mut MemTransport) -> String {
    loop {
        match line.next().await.expect("the line is up").unwrap() {
            Message::Text(text) => return text.as_str().to_owned(),
            Message::Close(frame) => return frame.expect("a code").code.to_string(),
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_sends_outputs_before_closes() {
    let limits = Limits {
        max_outbox_frames: 16,
        ..defaults()
    };
    let mut options = ServerOptions::new(&Signer::from_seed(&[1; 32]), TrustLevel::Open);
    options.connection.limits = limits;
    options.shutdown_timeout = Duration::from_secs(4);
    let (server, _) = Server::mount(Chatter, options);
    let (runtime, handle) = (server.runtime(), server.handle());
    tokio::spawn(server.run());
    let (mut line, theirs) = mem::duplex(4);
    handle.serve(theirs, None);
    send(&mut line, r#"{"type":"CONNECT"}"#).await;
    assert!(recv(&mut line).await.contains("CONNECTED"));
    send(&mut line, r#"{"type":"INPUT","prompt":"hello"}"#).await;
    assert!(recv(&mut line).await.contains("user_input"));
    while !runtime.read(Hub::is_idle) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Most of the run has not left when the end comes: the client was slow.
    tokio::spawn(async move { handle.drain(Duration::from_secs(9)).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (mut last, mut received) = (String::new(), 0);
    let code = loop {
        let frame = recv(&mut line).await;
        if !frame.starts_with('{') {
            break frame;
        }
        (last, received) = (frame, received + 1);
    };
    assert_eq!(code, "1012");
    assert!(last.contains(r#""result":"said it all""#), "{last}");
    assert_eq!(received, 101);
}
