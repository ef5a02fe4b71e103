//! The client's and the server's machine.

use std::time::Duration;

use rpc_core::{CallId, Limits, Text};
use snek_proto::client::{ClientConfig, ClientConn, ClientEvent};
use snek_proto::frame::{ClientFrame, Final, ServerFrame, User};
use snek_proto::id::WireId;
use snek_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};

use crate::calls::{Calls, State};
use crate::machine::{FEW, Model, Run, drive, readable, small};
use crate::script::Script;

fn limits() -> Limits {
    Limits {
        max_message_bytes: 4096,
        ..small()
    }
}

/// What the application saw of a client.
#[derive(Default)]
struct Client {
    calls: Calls<CallId, ()>,
    /// Ids on the wire.
    ids: Vec<String>,
}

/// Runs a client through operations. Every call must end exactly once.
pub fn client_conn(data: &[u8]) {
    drive(Client::default(), Script::new(data), |now| {
        let mut config = ClientConfig::new("mybot", "mypassword");
        config.limits = limits();
        config.call_timeout = Duration::from_secs(10);
        ClientConn::new(config, 0x5eed, now)
    });
}

impl Client {
    fn answer(id: &str, data: &str, run: &mut Run<'_, ClientConn>) {
        let text = format!(r#"{{"callId":"{id}","data":{data}}}"#);
        run.hear(&text);
    }
}

impl Model for Client {
    type Conn = ClientConn;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        let now = run.now;
        match op % 12 {
            0 => run.hear_text(),
            1 => {
                let data = run.script.text();
                let id = run.script.pick(&self.ids).cloned().unwrap_or_default();
                Self::answer(&id, data, run);
            }
            step @ 2..=4 => {
                // The answer that the opening waits for, most of the time.
                let id = self.ids.last().cloned().unwrap_or_default();
                let data = match step {
                    2 => "{}",
                    3 => r#"{"username":"mybot","nick":"MyBot"}"#,
                    _ => r#"[{"uid":"ch1"}]"#,
                };
                Self::answer(&id, data, run);
            }
            5 | 6 => {
                let sent = run
                    .conn
                    .send_message("ch1", run.script.text(), Final::No, now);
                self.calls.made(sent.ok(), ());
            }
            7 => self.calls.cancel(&mut run.script, |id| run.conn.cancel(id)),
            8 => run.wait(),
            9 => run.timeout(),
            10 => {
                let _ = run.conn.set_typing(run.script.text(), "#FF0000");
                run.pong();
            }
            _ => run.line(),
        }
    }

    fn sent(&mut self, text: &str, _: &ClientConn) {
        let frame = readable(ClientFrame::decode(text, &Limits::default()));
        assert!(frame.call().is_ok(), "a request must be valid");
        let id = frame.call_id.as_ref().and_then(WireId::as_text);
        self.ids.extend(id.map(String::from));
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
}

#[derive(Default)]
struct Server {
    logins: Vec<RequestId>,
    open: Vec<RequestId>,
}

/// Runs a server's connection through operations. Every open request can be answered once.
pub fn server_conn(data: &[u8]) {
    drive(Server::default(), Script::new(data), |now| {
        let config = ServerConfig {
            limits: limits(),
            max_requests: FEW,
            ..ServerConfig::default()
        };
        ServerConn::new(config, now)
    });
}

impl Model for Server {
    type Conn = ServerConn;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        match op % 11 {
            0 => run.hear_text(),
            1 => run.hear(r#"{"method":"login","args":["a","b"],"callId":"L"}"#),
            step @ 2..=3 => {
                let login = self.logins.pop();
                let _ = login.map(|id| match step {
                    2 => run.conn.accept_login(id, User::new("a", "A")),
                    _ => run.conn.fail(id, "no"),
                });
            }
            4 | 5 => {
                let args = run.script.text();
                let text = format!(r#"{{"method":"search_user","args":[{args}],"callId":7}}"#);
                run.hear(&text);
            }
            6 => {
                if let Some(id) = self.open.pop()
                    && run.conn.reply(id, &"value").is_ok()
                {
                    let again = run.conn.reply(id, &"again");
                    assert!(again.is_err(), "a request was answered twice");
                }
            }
            7 => drop(run.conn.push(Text::from(r#"{"event":"x"}"#))),
            8 => run.wait(),
            9 => {
                run.timeout();
                run.pong();
            }
            _ => run.line(),
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
}
