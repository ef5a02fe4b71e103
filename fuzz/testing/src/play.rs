//! [`Play`]: a machine whose peer, clock and application a test plays.

use std::fmt::Display;
use std::iter::from_fn;
use std::time::{Duration, Instant};

use rpc_core::{CloseFrame, Incoming, Machine, Outgoing};
use serde_json::{Value, json};

use super::fail;

/// A machine and its clock. A test adds what its protocol says.
pub trait Play {
    /// The machine.
    type Conn: Machine;

    /// The machine, and what time it is.
    fn parts(&mut self) -> (&mut Self::Conn, &mut Instant);

    /// A frame comes in: a text, or a value as JSON.
    fn take(&mut self, frame: &(impl Display + ?Sized)) {
        let (conn, now) = self.parts();
        conn.handle_message(Incoming::Text(&frame.to_string()), *now);
    }

    /// All frames that wait to leave: texts as JSON, `"ping"`, and closes as [`close`](Self::close)
    /// has them.
    ///
    /// # Panics
    /// If a text is no JSON, or something else leaves.
    #[track_caller]
    fn sent(&mut self) -> Vec<Value> {
        let value = |frame| match frame {
            Outgoing::Text(text) => serde_json::from_str(text.as_str())
                .unwrap_or_else(|error| fail(&format!("{text:?}: {error}"))),
            Outgoing::Ping(_) => json!("ping"),
            Outgoing::Close(close) => Self::close(&close),
            other => fail(&format!("{other:?}")),
        };
        let (conn, _) = self.parts();
        from_fn(|| conn.poll_transmit()).map(value).collect()
    }

    /// All frames that wait to leave, as texts.
    fn sent_texts(&mut self) -> Vec<String> {
        let text = |frame| match frame {
            Outgoing::Text(text) => text.as_str().to_owned(),
            Outgoing::Close(frame) => format!("close {} {}", frame.code, frame.reason),
            Outgoing::Ping(_) => "ping".to_owned(),
            Outgoing::Abort => "abort".to_owned(),
            other => format!("{other:?}"),
        };
        let (conn, _) = self.parts();
        from_fn(|| conn.poll_transmit()).map(text).collect()
    }

    /// A Close among the [sent](Self::sent) frames: its code.
    fn close(close: &CloseFrame) -> Value {
        json!(close.code)
    }

    /// All events that wait.
    fn events(&mut self) -> Vec<<Self::Conn as Machine>::Event> {
        let (conn, _) = self.parts();
        from_fn(|| conn.poll_event()).collect()
    }

    /// Time passes, and every deadline is handled when it comes.
    fn wait(&mut self, time: Duration) {
        let (conn, now) = self.parts();
        let until = *now + time;
        while let Some(at) = conn.poll_timeout().filter(|at| *at <= until) {
            // One that was suspended is handled late.
            *now = at.max(*now);
            conn.handle_timeout(*now);
        }
        *now = until;
    }

    /// Time passes while the machine sleeps: what is due by then is handled late.
    fn sleep(&mut self, time: Duration) {
        let (conn, now) = self.parts();
        *now += time;
        conn.handle_timeout(*now);
    }
}
