//! The client's and the server's machine.

use std::time::Duration;

use rpc_core::{CallId, Instant, Limits, Refused, Text};
use snek_proto::client::{ClientConfig, ClientConn, ClientEvent};
use snek_proto::frame::{ClientFrame, Final, ServerFrame, User};
use snek_proto::id::WireId;
use snek_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};

use crate::calls::{Calls, State};
use crate::machine::{FEW, Model, Run, Settings, readable, small};

fn limits() -> Limits {
    Limits {
        max_message_bytes: 4096,
        ..small()
    }
}

/// What the application saw of a client: every call ends exactly once.
#[derive(Default)]
pub(super) struct Client {
    calls: Calls<CallId, ()>,
}

impl Model for Client {
    type Conn = ClientConn;
    const OWN: u8 = 4;
    const LINES: &'static str = include_str!("../../frames/snek_server.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ClientConn) {
        let mut config = ClientConfig {
            limits: limits(),
            call_timeout: Duration::from_secs(10),
            ..ClientConfig::new("mybot", "mypassword")
        };
        settings.pings(1, &mut config.keep_alive);
        (Self::default(), ClientConn::new(config, 0x5eed, now))
    }

    fn ids(&self) -> &[String] {
        &self.calls.ids
    }

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        let (conn, script, now) = (&mut run.conn, &mut run.script, run.now);
        match op {
            0 | 1 => {
                let sent = conn.send_message("ch1", script.text(), Final::No, now);
                self.calls.made(&sent, ());
            }
            2 => self.calls.cancel(script, |id| conn.cancel(id)),
            _ => drop(conn.set_typing(script.text(), "#FF0000")),
        }
    }

    fn sent(&mut self, text: &str, _: &ClientConn) {
        let frame = readable(ClientFrame::decode(text, &Limits::default()));
        assert!(frame.call().is_ok(), "a request must be valid");
        if let Some(id) = frame.call_id.as_ref().and_then(WireId::as_text) {
            self.calls.sent(id);
        }
    }

    fn event(&mut self, event: ClientEvent, _: &Run<'_, ClientConn>) {
        match event {
            ClientEvent::Reply { id, .. } => {
                let before = self.calls.end(id, None);
                assert_eq!(before, State::Open, "a reply to what was cancelled");
            }
            ClientEvent::Closed(_) => self.calls.assert_none_open(),
            _ => {}
        }
    }

    fn all_taken(&mut self, events: usize, _: &mut Run<'_, ClientConn>) {
        self.calls.events_taken(events);
    }

    fn late(&mut self, conn: &mut ClientConn, now: Instant) -> Option<Refused> {
        conn.send_message("ch1", "late", Final::No, now).err()
    }
}

/// What the application saw of a server: every open request is answered once.
#[derive(Default)]
pub(super) struct Server {
    logins: Vec<RequestId>,
    open: Vec<RequestId>,
}

impl Model for Server {
    type Conn = ServerConn;
    const OWN: u8 = 4;
    const LINES: &'static str = include_str!("../../frames/snek_client.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ServerConn) {
        let mut config = ServerConfig {
            limits: limits(),
            max_requests: FEW,
            ..ServerConfig::default()
        };
        settings.pings(1, &mut config.keep_alive);
        (Self::default(), ServerConn::new(config, now))
    }

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        let conn = &mut run.conn;
        match op {
            0 | 1 => {
                let login = self.logins.pop();
                let _ = login.map(|id| match op {
                    0 => conn.accept_login(id, User::new("a", "A")),
                    _ => conn.fail(id, "no"),
                });
            }
            2 => {
                if let Some(id) = self.open.pop()
                    && conn.reply(id, &"value").is_ok()
                {
                    let again = conn.reply(id, &"again");
                    assert!(again.is_err(), "a request was answered twice");
                }
            }
            _ => drop(conn.push(Text::from(r#"{"event":"x"}"#))),
        }
    }

    fn sent(&mut self, text: &str, _: &ServerConn) {
        readable(ServerFrame::decode(text, &Limits::default()));
    }

    fn event(&mut self, event: ServerEvent, _: &Run<'_, ServerConn>) {
        match event {
            ServerEvent::Login { id, .. } => self.logins.push(id),
            ServerEvent::Request { id, .. } => self.open.push(id),
            _ => {}
        }
    }

    fn late(&mut self, conn: &mut ServerConn, _: Instant) -> Option<Refused> {
        conn.push(Text::from(r#"{"event":"x"}"#)).err()
    }
}
