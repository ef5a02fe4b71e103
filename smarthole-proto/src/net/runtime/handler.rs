//! Handles the events of one connection of a runtime.

use std::time::Duration;

use rpc_core::net::{ConnectionHandler, Running};
use rpc_core::{CloseFrame, CloseReason};

use super::RouterRuntime;
use crate::hub::ConnId;
use crate::limits::SHUTTING_DOWN;
use crate::net::SYSTEM;
use crate::server::{ServerConn, ServerEvent};

/// Passes the events of a connection to the hub, in the connection's own task, so that frames sent
/// before the client left count, and its name is free at once. Dropping it removes the client from
/// the hub.
pub(in crate::net) struct Handler {
    pub(super) runtime: RouterRuntime,
    pub(super) conn: ConnId,
    /// Called before the hub reports that the client has left.
    pub(in crate::net) before_leaving: Option<Box<dyn Fn() + Send>>,
    /// How long open messages may still be answered when the server shuts down.
    pub(in crate::net) drain_timeout: Duration,
}

impl Handler {
    fn leave(&self) {
        if let Some(before_leaving) = &self.before_leaving {
            before_leaving();
        }
        self.runtime.leave(self.conn);
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.leave();
    }
}

impl ConnectionHandler for Handler {
    type Machine = ServerConn;
    const SYSTEM: &'static str = SYSTEM;

    fn on_event(&mut self, event: ServerEvent, _: &mut Running) -> Option<CloseReason> {
        match event {
            ServerEvent::Registration { registration } => {
                self.runtime.register(self.conn, &registration);
            }
            ServerEvent::Response { response } => self.runtime.respond(self.conn, response),
            ServerEvent::Warning(warning) => {
                tracing::debug!(conn = self.conn.0, %warning, "a frame was ignored");
            }
            ServerEvent::Closed(reason) => {
                self.leave();
                return Some(reason);
            }
        }
        None
    }

    fn shut_down(&mut self, tasks: &mut Running) {
        let (runtime, conn, timeout) = (self.runtime.clone(), self.conn, self.drain_timeout);
        tasks.push(async move {
            runtime.drain(timeout).await;
            runtime.close(conn, CloseFrame::new(CloseFrame::GOING_AWAY, SHUTTING_DOWN));
        });
    }
}
