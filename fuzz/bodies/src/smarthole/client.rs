//! The client's machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rpc_core::{Instant, Json, Machine as _, Outgoing, Refused};
use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState, Received};
use smarthole_proto::frame::{Answer, ClientFrame, Notification, Registration, Response};
use smarthole_proto::limits::REGISTRATION_FAILED_CODE;

use crate::frames::written;
use crate::machine::{FEW, Model, Run, drive, frequent_pings, small};
use crate::script::Script;

/// How long a message waits for its response.
const PATIENCE: Duration = Duration::from_secs(30);

/// Messages that a server may send.
const IDS: [&str; 6] = ["m0", "m1", "m2", "m3", "m4", "m5"];

/// What else a server may send.
const FRAMES: &str = include_str!("../../frames/smarthole_server.txt");

#[derive(Default)]
struct Client {
    /// Messages without a response, as the application knows them.
    open: BTreeMap<String, Instant>,
    /// What has to leave, in order.
    frames: VecDeque<String>,
    /// Responses that leave when there is room.
    owed: VecDeque<String>,
    /// Which messages they are about. These are answered at some time until the last one leaves.
    promised: BTreeSet<String>,
    registered: bool,
    refused: bool,
}

/// Runs a client through operations: the registration comes first and once, messages only after the
/// answer to it, every response that was taken leaves, and nothing is overdue that was answered.
pub fn client_conn(data: &[u8]) {
    let (settings, script) = Script::with_settings(data);
    let mut registration = Registration::new("notes", "Keeps notes.");
    registration.capabilities = vec!["lists".into()];
    let first = written(&registration.frame()).as_str().to_owned();
    let config = ClientConfig::new(registration).expect("a good registration");
    let model = Client {
        frames: [first].into(),
        ..Client::default()
    };
    let (_, mut run) = drive(model, script, |now| {
        ClientConn::new(configured(config.clone(), settings), now)
    });
    assert_eq!(run.conn.in_flight(), 0, "nothing is open after the end");
    assert_eq!(
        run.conn.respond("m0", Answer::Ack),
        Err(Refused::Closed),
        "after the end"
    );
}

fn configured(mut config: ClientConfig, settings: u8) -> ClientConfig {
    config.limits = small();
    config.response_timeout = PATIENCE;
    config.handshake_timeout = config.handshake_timeout.filter(|_| settings & 1 == 0);
    if settings & 2 == 2 {
        config.keep_alive = frequent_pings();
    }
    config
}

impl Model for Client {
    type Conn = ClientConn;
    /// What is promised follows as soon as there is room.
    const FRAMES: usize = 2 * FEW;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        match op % 16 {
            0 => run.hear_text(),
            1 | 2 => {
                let text = run.script.pick_line(FRAMES);
                run.hear(text);
            }
            3..=6 => {
                let id = run.script.pick_text(&IDS);
                run.hear(&format!(
                    r#"{{"type":"message","payload":{{"id":"{id}","text":"t","timestamp":"z","x":[1]}}}}"#
                ));
            }
            7..=9 => {
                let id = run.script.pick_text(&IDS);
                let answer = match run.script.byte_or_zero() % 5 {
                    0 => Answer::Ack,
                    1 => Answer::reject(Some("no".into())),
                    2 => Answer::reject(None),
                    3 => Answer::Notification(Notification::new(run.script.text())),
                    _ => Answer::Unknown {
                        tag: "later".into(),
                        content: Json::new("[1]").ok(),
                    },
                };
                self.respond(run, &Response::new(id, answer));
            }
            10 => {
                let id = run.script.pick_text(&IDS);
                self.respond_later(run, id);
            }
            11 | 12 => run.wait(),
            13 => run.timeout(),
            14 => run.hear_binary(b"x"),
            _ => match run.script.byte_or_zero() {
                3 => run.hear(&"x".repeat(3000)),
                4 => run.pong(),
                other => run.happen(other),
            },
        }
    }

    /// What leaves is what was promised next.
    fn sent(&mut self, text: &str, _: &ClientConn) {
        let next = self.frames.pop_front();
        let next = next.or_else(|| self.owed.pop_front());
        assert_eq!(Some(text), next.as_deref(), "what leaves");
    }

    fn sent_control(&mut self, frame: &Outgoing, _: &ClientConn) {
        if let Outgoing::Close(close) = frame {
            let failed = close.code == REGISTRATION_FAILED_CODE;
            assert!(!failed || !self.registered, "a registration that failed");
        }
    }

    fn all_sent(&mut self, conn: &ClientConn) {
        if !conn.is_closed() {
            let held = conn.state() == ClientState::AwaitRegistered;
            assert!(self.frames.is_empty(), "a frame is missing");
            assert!(held || self.owed.is_empty(), "what was promised is kept");
        }
    }

    fn event(&mut self, event: ClientEvent, run: &Run<'_, ClientConn>) {
        match event {
            ClientEvent::Registered { .. } => {
                assert!(!self.registered && !self.refused, "registered once");
                self.registered = true;
            }
            ClientEvent::Refused(_) => {
                assert!(!self.registered && !self.refused, "refused once");
                self.refused = true;
            }
            ClientEvent::Message(Received {
                message, deadline, ..
            }) => {
                assert!(self.registered, "a message before the registration");
                assert!(deadline <= run.now + PATIENCE, "a deadline");
                self.open.insert(message.id.as_str().to_owned(), deadline);
            }
            ClientEvent::Overdue { id } => {
                let deadline = self.open.remove(id.as_str());
                let is_overdue = deadline.is_some_and(|at| at <= run.now);
                assert!(is_overdue, "it is not overdue");
            }
            ClientEvent::Unknown { .. } => assert!(self.registered, "a frame before"),
            ClientEvent::Warning(_) => {}
            ClientEvent::Closed(_) => self.open.clear(),
            other => panic!("no rule for {other:?}"),
        }
    }

    fn all_told(&mut self, _: usize, run: &mut Run<'_, ClientConn>) {
        let conn = &run.conn;
        if self.owed.is_empty() {
            let promised = std::mem::take(&mut self.promised);
            self.open
                .retain(|id, _| !promised.contains(id) || conn.is_open(id));
        }
        if !run.closed && self.promised.is_empty() {
            assert_eq!(self.open.len(), conn.in_flight(), "what is open");
            let all = self.open.keys().all(|id| conn.is_open(id));
            assert!(all, "what is open");
        }
    }
}

impl Client {
    /// A command: what it changes is known only if nothing is left to be told.
    fn respond(&mut self, run: &mut Run<'_, ClientConn>, response: &Response) {
        run.take_events(self);
        let text = written(&ClientFrame::Response(response.clone()));
        let (id, answer) = (response.message_id.clone(), response.answer.clone());
        let result = run.conn.respond(id, answer);
        if run.took(&result, self.registered) {
            // What is owed leaves first.
            self.frames.append(&mut self.owed);
            self.frames.push_back(text.as_str().to_owned());
            if !matches!(response.answer, Answer::Unknown { .. }) {
                let id = response.message_id.as_str();
                assert!(!run.conn.is_open(id), "it is answered");
                self.open.remove(id);
            }
        }
    }

    fn respond_later(&mut self, run: &mut Run<'_, ClientConn>, id: &'static str) {
        run.take_events(self);
        if run.conn.is_closed() || self.owed.len() >= FEW {
            return;
        }
        let response = Response::new(id, Answer::reject(None));
        let text = written(&ClientFrame::Response(response.clone()));
        self.owed.push_back(text.as_str().to_owned());
        self.promised.insert(id.to_owned());
        run.conn.respond_later(response);
    }
}
