//! The client's machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::take;
use std::time::Duration;

use rpc_core::{Instant, Json, Machine as _, Outgoing, Refused};
use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState, Received};
use smarthole_proto::frame::{Answer, ClientFrame, Notification, Registration, Response};
use smarthole_proto::limits::REGISTRATION_FAILED_CODE;

use crate::frames::written;
use crate::machine::{Expected, FEW, Model, Run, Settings, small};

/// How long a message waits for its response.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the application saw of a client: the registration comes first and once, messages only after
/// the answer to it, every response that was taken leaves, and nothing is overdue that was answered.
#[derive(Default)]
pub(super) struct Client {
    /// Messages that a server may send.
    ids: Vec<String>,
    /// Messages without a response, as the application knows them.
    open: BTreeMap<String, Instant>,
    expected: Expected<()>,
    /// Responses that leave when there is room.
    owed: VecDeque<String>,
    /// Which messages they are about. These are answered at some time until the last one leaves.
    promised: BTreeSet<String>,
    registered: bool,
    refused: bool,
}

impl Model for Client {
    type Conn = ClientConn;
    const OWN: u8 = 4;
    /// What is promised follows as soon as there is room.
    const FRAMES: usize = 2 * FEW;
    const LINES: &'static str = include_str!("../../frames/smarthole_server.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ClientConn) {
        let mut registration = Registration::new("notes", "Keeps notes.");
        registration.capabilities = vec!["lists".into()];
        let mut model = Self {
            ids: (0..6).map(|number| format!("m{number}")).collect(),
            ..Self::default()
        };
        model.expected.leaves(&registration.frame());
        let mut config = ClientConfig {
            limits: small(),
            response_timeout: PATIENCE,
            ..ClientConfig::new(registration).expect("a good registration")
        };
        settings.removes(1, &mut config.handshake_timeout);
        settings.pings(2, &mut config.keep_alive);
        (model, ClientConn::new(config, now))
    }

    fn ids(&self) -> &[String] {
        &self.ids
    }

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        // What a command changes is known only if no event waits.
        run.take_events(self);
        let id = run.script.pick(&self.ids).cloned().unwrap_or_default();
        if op == 3 {
            return self.respond_later(run, id);
        }
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
        let is_known = !matches!(answer, Answer::Unknown { .. });
        let frame = ClientFrame::Response(Response::new(&*id, answer.clone()));
        let result = run.conn.respond(&*id, answer);
        if run.took(&result, self.registered) {
            // What is owed leaves first.
            self.expected.frames.append(&mut self.owed);
            self.expected.leaves(&frame);
            if is_known {
                assert!(!run.conn.is_open(&id), "it is answered");
                self.open.remove(&id);
            }
        }
    }

    /// What leaves is what was promised next.
    fn sent(&mut self, text: &str, _: &ClientConn) {
        let next = self.expected.frames.pop_front();
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
        self.expected.all_sent(conn);
        let waits = matches!(
            conn.state(),
            ClientState::AwaitRegistered | ClientState::Closed
        );
        assert!(waits || self.owed.is_empty(), "what was promised is kept");
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

    fn all_taken(&mut self, _: usize, run: &mut Run<'_, ClientConn>) {
        let conn = &run.conn;
        if self.owed.is_empty() {
            let promised = take(&mut self.promised);
            self.open
                .retain(|id, _| !promised.contains(id) || conn.is_open(id));
        }
        if !run.closed && self.promised.is_empty() {
            assert_eq!(self.open.len(), conn.in_flight(), "what is open");
            let all = self.open.keys().all(|id| conn.is_open(id));
            assert!(all, "what is open");
        }
    }

    fn late(&mut self, conn: &mut ClientConn, _: Instant) -> Option<Refused> {
        assert_eq!(conn.in_flight(), 0, "nothing is open after the end");
        conn.respond("m0", Answer::Ack).err()
    }
}

impl Client {
    fn respond_later(&mut self, run: &mut Run<'_, ClientConn>, id: String) {
        if run.conn.is_closed() || self.owed.len() >= FEW {
            return;
        }
        let response = Response::new(&*id, Answer::reject(None));
        let text = written(&ClientFrame::Response(response.clone()));
        self.owed.push_back(text.as_str().to_owned());
        self.promised.insert(id);
        run.conn.respond_later(response);
    }
}
