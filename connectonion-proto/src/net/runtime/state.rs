//! The locked state of a [`HostRuntime`](super::HostRuntime): the hub and its connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use rpc_core::net::{Connections, HubState, time};
use rpc_core::{Instant, Refused};

use super::turn::Head;
use crate::console;
use crate::hub::{ConnId, Hub, Now, Reply};
use crate::server::ServerConn;

pub(super) struct State {
    pub(super) hub: Hub,
    pub(super) connections: Connections<ServerConn>,
    /// The upgrade requests of those that have one.
    pub(super) heads: HashMap<ConnId, Arc<Head>>,
}

impl HubState for State {
    type Now = Now;

    fn now() -> Now {
        Now::new(time::now(), SystemTime::now())
    }

    fn drain_outputs(&mut self, now: Now) -> bool {
        while let Some(line) = self.hub.poll_line() {
            tracing::info!(target: console::TARGET, "{line}");
        }
        while let Some((conn, reply)) = self.hub.poll_reply() {
            if let Reply::Close(frame) = reply {
                if let Some(handle) = self.connections.get(conn.0) {
                    handle.close_with(frame);
                }
                continue;
            }
            self.connections
                .write(conn.0, |machine| send(machine, reply));
        }
        while let Some(conn) = self.hub.poll_ready() {
            self.connections.write(conn.0, |machine| {
                let mut sent = Ok(());
                while machine.has_room()
                    && let Some(frame) = self.hub.next_frame(conn, now)
                {
                    sent = sent.and(machine.send(frame));
                }
                sent
            });
        }
        // The runtime's task takes them.
        self.hub.has_events()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.hub.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Now) {
        self.hub.handle_timeout(now);
    }

    fn is_idle(&self) -> bool {
        self.hub.is_idle()
    }

    fn end(&mut self) {
        while self.hub.poll_event().is_some() {}
    }
}

fn send(machine: &mut ServerConn, reply: Reply) -> Result<(), Refused> {
    match reply {
        Reply::Accept(connected) => match machine.accept(&connected) {
            // The conversation is with the client too, as it was.
            Err(Refused::TooLarge { .. }) => machine.accept(&connected.with_newer(None)),
            sent => sent,
        },
        Reply::Refuse(error) => machine.refuse(&error),
        Reply::Begun => machine.begun(),
        Reply::Acknowledge(ack) => machine.acknowledge(&ack),
        Reply::Frame(text) => machine.send_text(text),
        Reply::Close(_) => Ok(()),
    }
}
