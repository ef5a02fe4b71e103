//! Vectors of connections: what a client does, step by step, and what comes of it.

use std::time::Duration;

use rpc_core::reconnect::{ReconnectPolicy, Reconnector, ResetOn};
use rpc_core::{CloseFrame, Disconnect, Incoming, Instant, Limits, Machine, Outgoing, Retry, Text};
use serde_json::Value;
use smarthole_proto::client::reconnect_policy;
use smarthole_proto::error::RegistrationError;
use smarthole_proto::frame::{RegistrationResponse, ServerFrame};
use smarthole_proto::id;
use smarthole_proto::limits::defaults;
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};

use super::{Vector, run};

#[test]
fn connections_match_the_vectors() {
    run("sequences", |vector| {
        let mut played = Played::new(vector);
        for step in vector.list("steps") {
            played.step(step);
            played.tell();
        }
        assert_eq!(played.sent, vector.strs("sent"), "{}", vector.name());
        assert_eq!(played.events, vector.strs("events"), "{}", vector.name());
    });
}

struct Played {
    conn: ServerConn,
    now: Instant,
    sent: Vec<String>,
    events: Vec<String>,
}

impl Played {
    fn new(vector: &Vector) -> Self {
        let now = Instant::now();
        let timeout = vector.get("registration_timeout").as_u64();
        let config = ServerConfig {
            handshake_timeout: timeout.map(Duration::from_secs),
            limits: Limits {
                max_message_rate: None,
                ..defaults()
            },
            ..ServerConfig::default()
        };
        Self {
            conn: ServerConn::new(config, now),
            now,
            sent: Vec::new(),
            events: Vec::new(),
        }
    }

    fn step(&mut self, step: &Value) {
        let text = |at: usize| step[at].as_str().unwrap_or_default();
        let number = |at: usize| step[at].as_u64().unwrap();
        let now = self.now;
        match text(0) {
            "text" => self.conn.handle_message(Incoming::Text(text(1)), now),
            "binary" => {
                let bytes = text(1).as_bytes();
                self.conn.handle_message(Incoming::Binary(bytes), now);
            }
            "times" => (0..number(1)).for_each(|_| self.step(&step[2])),
            "pong" => self.conn.handle_message(Incoming::Pong(b""), now),
            // What is out of turn is refused.
            "accept" => drop(self.conn.accept(&id::client_id(7))),
            "refuse" => {
                let name = self.conn.name().cloned().unwrap_or_default();
                drop(self.conn.refuse(RegistrationError::duplicate_name(&name)));
            }
            "send" => drop(self.conn.send(Text::from(text(1).to_owned()))),
            "wait" => {
                self.now += Duration::from_secs(number(1));
                self.conn.handle_timeout(self.now);
            }
            "close" => {
                let code = u16::try_from(number(1)).unwrap();
                self.conn.close_with(CloseFrame::new(code, text(2)), now);
            }
            "closed" => {
                let code = u16::try_from(number(1)).unwrap();
                let frame = CloseFrame::new(code, "");
                let why = Disconnect::PeerClosed(Some(frame));
                self.conn.handle_disconnect(why, now);
            }
            "eof" => self.conn.handle_disconnect(Disconnect::Eof, now),
            other => panic!("a step {other}"),
        }
    }

    fn tell(&mut self) {
        while let Some(frame) = self.conn.poll_transmit() {
            self.sent.push(match frame {
                Outgoing::Text(text) => shown(text.as_str()),
                Outgoing::Ping(_) => "ping".to_owned(),
                // The words of the machine's own closes are for people.
                Outgoing::Close(close) if close.code == CloseFrame::POLICY => "close 1008".into(),
                Outgoing::Close(close) => format!("close {} {}", close.code, close.reason),
                Outgoing::Abort => "abort".to_owned(),
                other => panic!("{other:?}"),
            });
        }
        while let Some(event) = self.conn.poll_event() {
            self.events.push(match event {
                ServerEvent::Registration { registration } => {
                    format!("registration {}", registration.name)
                }
                ServerEvent::Response { response } => {
                    format!("response {} {}", response.message_id, response.answer.tag())
                }
                ServerEvent::Warning(_) => "warning".to_owned(),
                ServerEvent::Closed(_) => "closed".to_owned(),
                other => panic!("{other:?}"),
            });
        }
    }
}

fn shown(text: &str) -> String {
    match ServerFrame::decode(text, &defaults()) {
        Ok(ServerFrame::RegistrationResponse(answer)) => match answer {
            RegistrationResponse::Accepted { message, .. } => {
                let words = message.unwrap();
                let name = words.split('\'').nth(1).unwrap();
                format!("accepted {name}")
            }
            RegistrationResponse::Refused { code, .. } => {
                format!("refused {}", code.unwrap().name())
            }
            other => panic!("{other:?}"),
        },
        _ => format!("text {text}"),
    }
}

#[test]
fn reconnects_match_the_vectors() {
    run("reconnects", |vector| {
        let reset = match vector.str("reset") {
            "open" => ResetOn::Open,
            _ => ResetOn::Ready,
        };
        let now = Instant::now();
        let mut reconnector = Reconnector::new(ReconnectPolicy {
            reset_on: reset,
            ..reconnect_policy()
        });
        let mut delays = Vec::new();
        for step in vector.strs("steps") {
            match step {
                "open" => reconnector.on_open(),
                "registered" => {
                    reconnector.on_open();
                    reconnector.on_ready();
                }
                _ => {
                    let dial = reconnector.on_lost(Retry::Backoff, now, 7);
                    delays.push(dial.map(|dial| (dial.at - now).as_secs()));
                }
            }
        }
        let expected: Vec<_> = vector.list("delays").iter().map(Value::as_u64).collect();
        assert_eq!(delays, expected, "{}", vector.name());
    });
}
