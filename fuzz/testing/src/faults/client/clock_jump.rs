//! A clock that jumps: a laptop that slept.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join;
use futures_util::{SinkExt, StreamExt as _};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::advance;

use super::super::{check, soon};
use super::{ClientUnderTest, Ended, Line, Terms};
use rpc_core::CloseReason;
use rpc_core::Outgoing;
use rpc_core::net::mem::{self, MemTransport};
use rpc_core::net::{LinkState, Message};

/// How long the machine sleeps.
const NIGHT: Duration = Duration::from_secs(8 * 60 * 60);

#[async_trait]
impl Line for MemTransport {
    async fn recv(&mut self) -> Option<Value> {
        loop {
            match self.next().await? {
                Ok(Message::Text(text)) => return serde_json::from_str(text.as_str()).ok(),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    async fn send(&mut self, frame: Value) -> Option<()> {
        let text = Outgoing::Text(frame.to_string().into());
        SinkExt::send(self, text).await.ok()
    }
}

/// Lets the clock jump over a night while the client is idle: the line has one fresh chance to show
/// life. If it does, all goes on; if it does not, it is given up then.
///
/// To be called on a paused clock.
pub(super) async fn clock_jump<C: ClientUnderTest>(client: &C) {
    for answers in [true, false] {
        let (dialer, mut listener) = mem::listen(64);
        let terms = Terms::new().reconnecting(false);
        let silence = terms.silence;
        let (handle, events, _task) = client.start(dialer, terms);
        let events = Mutex::new(events);
        let link = &*handle;
        let Some(mut line) = listener.accept().await else {
            return check(false, "a connection", &answers);
        };
        for step in 0..C::STEPS {
            client.step(&mut line, step).await;
        }
        let ready = soon(link.ready()).await;
        check(ready == Ok(1), "a healthy server is worked with", &ready);
        // A ping is on its way when the machine falls asleep.
        advance(silence * 2 / 3).await;
        tokio::task::yield_now().await;
        advance(NIGHT).await;
        // Everything is late now, and looked at once.
        tokio::task::yield_now().await;
        let state = link.state();
        let up = state == LinkState::Ready { generation: 1 };
        check(up, "a line gets a fresh chance after a sleep", &state);
        if answers {
            let server = async {
                let call = client.called(&mut line).await?;
                client.answer(&mut line, &call).await
            };
            let call = client.call(&handle, &events);
            let (ended, served) = soon(join(call, server)).await;
            let works = served.is_some() && ended == Ended::Answered;
            check(works, "the connection goes on", &ended);
        } else {
            let gone = tokio::time::timeout(silence * 3, link.closed()).await;
            let dead = matches!(gone, Ok(CloseReason::KeepAlive { .. }));
            check(dead, "there is one fresh chance, not more", &gone);
        }
    }
}
