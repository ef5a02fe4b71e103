//! WebSockets alone: a client and a server in one task, over a pipe in memory. The client sends a
//! text of 100 bytes, the server sends it back, and both read it.

mod fast;
mod ours;
mod tungstenite;

use bytes::Bytes;

use crate::text;
use crate::work::Work;

/// What the pipe holds: more than a burst.
const PIPE: usize = 64 * 1024;
/// Messages of a burst, which are flushed together.
const BURST: u64 = 64;

pub(crate) fn works() -> Vec<Work> {
    vec![
        Work::new("ws", "WebSocket echo of 100 B, in memory", 100, |n| {
            run(ours::echo(n, 1))
        })
        .beside("tokio-tungstenite", |n| run(tungstenite::echo(n, 1)))
        .beside("fastwebsockets", |n| run(fast::echo(n, 1)))
        .rounds(BURST * 32),
        Work::new(
            "ws",
            "WebSocket echo of 100 B, 64 at once, in memory",
            100,
            |n| run(ours::echo(n, BURST)),
        )
        .beside("tokio-tungstenite", |n| run(tungstenite::echo(n, BURST)))
        .beside("fastwebsockets", |n| run(fast::echo(n, BURST)))
        .rounds(BURST * 32),
    ]
}

fn run(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(work);
}

fn payload() -> Bytes {
    let text = text::exoclaw_text(&text::words(50));
    assert_eq!(text.len(), 100);
    text.into()
}
