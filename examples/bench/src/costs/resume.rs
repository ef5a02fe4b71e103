//! ConnectOnion: a client that has missed 10,000 events of a run connects again. The host's hub
//! finds the session and hands the events to the connection, whose frames are taken and dropped. A
//! round is one event.

use std::hint::black_box;
use std::time::Instant;

use connectonion_proto::codec::encode;
use connectonion_proto::frame::{Connected, EventKind, ServerFrame, SessionState, StreamEvent};
use connectonion_proto::frame::{ToolResult, ToolStatus};
use connectonion_proto::internals::{ConnId, ConnectRequest, Hub, HubEvent, Now, Reply};
use connectonion_proto::net::Prompt;
use connectonion_proto::server::{ServerConfig, ServerConn, ServerEvent};
use connectonion_proto::session::{HubConfig, Owner};
use rpc_core::{Incoming, Limits, Machine, Outgoing, Text};

use super::COSTS;
use crate::text;
use crate::time;
use crate::work::Work;

const MISSED: u64 = 10_000;
const SESSION: &str = "3f2a9f0e-7f34-4f4f-8a57-2f9f8d1a7b10";

pub(super) fn works() -> Vec<Work> {
    vec![
        Work::new(
            COSTS,
            "ConnectOnion resume after 10,000 events, each",
            0,
            ours,
        )
        .beside("encoded again", encoded_again)
        .rounds(2 * MISSED),
    ]
}

/// A host with one session, whose agent works on.
struct Host {
    hub: Hub,
    now: Now,
    conns: u64,
    session: String,
}

impl Host {
    /// The client saw the event `seen`, and missed all that came after.
    fn new() -> Self {
        let now = Now {
            instant: Instant::now(),
            unix: 1_770_000_000.5,
        };
        let hub = Hub::new(HubConfig::default(), 7, now.instant);
        let mut host = Self {
            hub,
            now,
            conns: 0,
            session: String::new(),
        };
        let (conn, _) = host.connect(r#"{"type":"CONNECT"}"#, |_| {});
        host.hub.input(conn, Prompt::new("search"), None, now);
        let mut run = None;
        while let Some(event) = host.hub.poll_event() {
            match event {
                HubEvent::Store(job) => host.hub.done(job, Ok(None), now),
                HubEvent::Start { run: started, .. } => run = Some(started),
                _ => {}
            }
        }
        let run = run.unwrap();
        assert_eq!(host.hub.poll_reply(), Some((conn, Reply::Begun)));
        for number in 0..=MISSED {
            let (status, words) = (ToolStatus::Completed, text::words(45));
            let result = ToolResult::new("call_1", "search", status, words);
            let id = (number == 0).then_some("seen");
            let kind = EventKind::ToolResult(result);
            host.hub.emit(run, kind, id, now).unwrap();
        }
        host.session = host.hub.session_of(conn).unwrap().to_string();
        host.hub.disconnect(conn, now);
        host
    }

    /// Connects with this CONNECT, and takes all that the client is sent.
    fn connect(&mut self, connect: &str, mut take: impl FnMut(Text)) -> (ConnId, u64) {
        let mut machine = ServerConn::new(ServerConfig::default(), self.now.instant);
        machine.handle_message(Incoming::Text(connect), self.now.instant);
        let Some(ServerEvent::Connect(connect)) = machine.poll_event() else {
            panic!("no CONNECT");
        };
        self.conns += 1;
        let conn = ConnId(self.conns);
        let request = ConnectRequest::new(Owner::Unsigned, connect, 0x5eed);
        self.hub.connect(conn, request, self.now);
        while let Some(event) = self.hub.poll_event() {
            if let HubEvent::Store(job) = event {
                self.hub.done(job, Ok(None), self.now);
            }
        }
        let Some((_, Reply::Accept(connected))) = self.hub.poll_reply() else {
            panic!("refused");
        };
        machine.accept(&connected).unwrap();
        let mut sent = 0;
        while self.hub.poll_ready().is_some() || machine.poll_event().is_some() {
            while machine.has_room()
                && let Some(frame) = self.hub.next_frame(conn, self.now)
            {
                machine.send(frame).unwrap();
            }
            sent += taken(&mut machine, &mut take);
        }
        sent += taken(&mut machine, &mut take);
        (conn, sent)
    }

    /// The client comes back and goes again.
    fn resume(&mut self, take: impl FnMut(Text)) {
        let connect = format!(
            r#"{{"type":"CONNECT","session_id":"{}","last_msg_id":"seen"}}"#,
            self.session
        );
        let (conn, sent) = self.connect(&connect, take);
        assert_eq!(sent, 1 + MISSED);
        self.hub.disconnect(conn, self.now);
    }
}

fn taken(machine: &mut ServerConn, take: &mut impl FnMut(Text)) -> u64 {
    let mut count = 0;
    while let Some(frame) = machine.poll_transmit() {
        let Outgoing::Text(text) = frame else {
            panic!("{frame:?}");
        };
        take(text);
        count += 1;
    }
    count
}

fn ours(n: u64) {
    let mut host = Host::new();
    assert_eq!(events(&mut host).len() as u64, MISSED);
    let start = Instant::now();
    for _ in 0..n / MISSED {
        host.resume(|text| drop(black_box(text)));
    }
    time::began(start);
}

/// What a client gets that resumes.
fn events(host: &mut Host) -> Vec<StreamEvent> {
    let mut frames = Vec::new();
    host.resume(|text| frames.push(text));
    assert!(frames[0].as_str().contains(r#""status":"running""#));
    let frames = frames[1..].iter().map(|text| {
        let frame = ServerFrame::decode(text.as_str(), &Limits::default());
        match frame.unwrap() {
            ServerFrame::Event(event) => event,
            other => panic!("{other:?}"),
        }
    });
    frames.collect()
}

/// The same frames, from events that are kept as values.
fn encoded_again(n: u64) {
    let now = Instant::now();
    let events = events(&mut Host::new());
    let connected = Connected::new(SESSION, SessionState::Running);
    let start = Instant::now();
    for _ in 0..n / MISSED {
        let mut machine = ServerConn::new(ServerConfig::default(), now);
        machine.handle_message(Incoming::Text(r#"{"type":"CONNECT"}"#), now);
        machine.poll_event().unwrap();
        machine.accept(&connected).unwrap();
        let mut left = events.iter();
        let mut sent = 0;
        while sent < 1 + MISSED {
            while machine.has_room()
                && let Some(event) = left.next()
            {
                machine.send(encode(event).unwrap()).unwrap();
            }
            sent += taken(&mut machine, &mut |text| drop(black_box(text)));
            while machine.poll_event().is_some() {}
        }
    }
    time::began(start);
}
