//! The client's machine against recordings of real hosts: what they said, it understands.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use connectonion_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState, Warning};
use connectonion_proto::frame::{ClientFrame, Connect, OnboardSubmit, ServerFrame, Signed};

use rpc_core::{Incoming, Limits, Machine, Outgoing};
use serde_json::value::RawValue;

#[derive(serde::Deserialize)]
struct Line {
    conn: Option<u32>,
    dir: Option<String>,
    frame: Option<Box<RawValue>>,
}

/// One connection of a recording: frames in order, and whether the client sent them.
type Recorded = Vec<(bool, String)>;

/// The connections of a recording that open with a CONNECT.
fn connections(name: &str) -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let text = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
    let mut connections: BTreeMap<u32, Recorded> = BTreeMap::new();
    for line in text.lines() {
        let line: Line = serde_json::from_str(line).unwrap();
        if let (Some(conn), Some(dir), Some(frame)) = (line.conn, line.dir, line.frame) {
            let frames = connections.entry(conn).or_default();
            frames.push((dir == "c2s", frame.get().to_owned()));
        }
    }
    let opens = |frames: &Recorded| {
        let (ours, text) = &frames[0];
        *ours && text.contains("\"CONNECT\"")
    };
    connections.into_values().filter(opens).collect()
}

/// What a client made of a connection.
#[derive(Debug, Default, PartialEq)]
struct Made {
    connected: usize,
    refused: usize,
    gates: usize,
    replies: usize,
    steps: usize,
    outputs: usize,
    failures: usize,
    complaints: usize,
    unknown: usize,
    pongs: usize,
}

struct Player {
    conn: ClientConn,
    made: Made,
    now: Instant,
}

impl Player {
    fn new(connect: &str) -> Self {
        let limits = Limits::default();
        let Ok(ClientFrame::Connect(frame)) = ClientFrame::decode(connect, &limits) else {
            panic!("{connect}");
        };
        let frame: Connect = frame;
        let now = Instant::now();
        Self {
            conn: ClientConn::new(
                ClientConfig {
                    session_sync: true,
                    ..ClientConfig::default()
                },
                &frame,
                7,
                now,
            ),
            made: Made::default(),
            now,
        }
    }

    /// The recorded client did this, so this one does.
    fn act(&mut self, text: &str) {
        let (conn, now) = (&mut self.conn, self.now);
        match ClientFrame::decode(text, &Limits::default()) {
            Ok(ClientFrame::Input(input)) => drop(conn.input(&input, now)),
            Ok(ClientFrame::Response(answer)) => {
                let _ = conn.respond(&answer, now);
            }
            Ok(ClientFrame::OnboardSubmit(submit)) => {
                drop(conn.onboard(&submit, now));
            }
            Ok(ClientFrame::SessionQuery(query)) => {
                drop(conn.query(query.session_id.as_deref().unwrap_or_default(), now));
            }
            Ok(ClientFrame::Interrupt) => drop(conn.interrupt(now)),
            _ => {}
        }
    }

    fn recv(&mut self, text: &str) {
        self.now += Duration::from_millis(1);
        self.conn.handle_message(Incoming::Text(text), self.now);
        while let Some(sent) = self.conn.poll_transmit() {
            if let Outgoing::Text(sent) = sent {
                self.made.pongs += usize::from(sent.as_str().contains("PONG"));
            }
        }
        while let Some(event) = self.conn.poll_event() {
            let made = &mut self.made;
            let count = match event {
                ClientEvent::Connected(_) => &mut made.connected,
                ClientEvent::Refused(_) => &mut made.refused,
                ClientEvent::OnboardRequired(_) => &mut made.gates,
                ClientEvent::Reply { .. } => &mut made.replies,
                ClientEvent::Step(_) => &mut made.steps,
                ClientEvent::RunEnded(Ok(_)) => &mut made.outputs,
                ClientEvent::RunEnded(Err(_)) => &mut made.failures,
                ClientEvent::Complaint(_) | ClientEvent::AnswerRefused { .. } => {
                    &mut made.complaints
                }
                ClientEvent::Unknown { .. } => &mut made.unknown,
                // The other one: a recorded client that answers what no one asked.
                ClientEvent::Closed(_)
                | ClientEvent::Warning(Warning::Unexpected {
                    name: "ONBOARD_SUCCESS",
                }) => continue,
                other => panic!("{other:?} after {text}"),
            };
            *count += 1;
        }
    }
}

fn play(frames: &Recorded) -> Player {
    let mut player = Player::new(&frames[0].1);
    let mut said = BTreeMap::<&str, usize>::new();
    for (ours, text) in &frames[1..] {
        if player.conn.is_closed() {
            break;
        }
        if *ours {
            // A client of this crate opens another connection for another CONNECT.
            if text.contains("\"CONNECT\"") {
                break;
            }
            player.act(text);
        } else {
            let kind = match ServerFrame::decode(text, &Limits::default()).unwrap() {
                ServerFrame::Event(_) => "step",
                ServerFrame::Output(_) => "output",
                ServerFrame::Ping => "ping",
                _ => "other",
            };
            *said.entry(kind).or_default() += 1;
            player.recv(text);
        }
    }
    let said = |kind| said.get(kind).copied().unwrap_or_default();
    let made = &player.made;
    assert_eq!(made.steps, said("step"), "{made:?}");
    assert_eq!(made.outputs, said("output"), "{made:?}");
    assert_eq!(made.pongs, said("ping"), "{made:?}");
    player
}

fn played(name: &str) -> Vec<Player> {
    connections(name).iter().map(play).collect()
}

#[test]
fn two_prompts_on_one_connection_are_two_runs() {
    let players = played("v1.2.1__01_new_session_two_inputs");
    let made = &players[0].made;
    assert_eq!((made.connected, made.replies, made.outputs), (1, 2, 2));
    assert_eq!(players[0].conn.state(), ClientState::Ready);
}

#[test]
fn a_session_that_runs_is_resumed_and_ends() {
    for name in [
        "v1.2.1__05_resume_running_last_msg_id",
        "v1.2.1__08_finished_while_away",
    ] {
        let players = played(name);
        assert!(players.len() >= 2, "{name}");
        for player in &players {
            assert_eq!(player.made.connected, 1, "{name}");
            assert_eq!(player.made.complaints, 0, "{name}");
        }
    }
}

#[test]
fn the_recorded_onboarding_admits_a_stranger() {
    let players = played("v1.2.1__15_onboarding_gate");
    assert!(
        players
            .iter()
            .any(|it| it.made.gates > 0 && it.made.connected == 1)
    );
}

#[test]
fn a_prompt_while_the_agent_works_is_acknowledged() {
    let players = played("v1.2.1__16_interjection_while_running");
    let made = &players[0].made;
    assert!(made.replies > made.outputs, "{made:?}");
}

#[test]
fn questions_and_approvals_are_answered_as_recorded() {
    for name in ["v1.2.1__17_ask_user", "v1.2.1__18_approval"] {
        let players = played(name);
        assert!(players.iter().any(|it| it.made.outputs > 0), "{name}");
    }
}

#[test]
fn a_failed_agent_fails_its_run_once() {
    let players = played("v1.2.1__27_agent_error");
    let made = &players[0].made;
    assert_eq!((made.failures, made.outputs, made.replies), (1, 0, 2));
}

#[test]
fn every_recording_is_read_to_its_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut names = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        for player in played(name) {
            let Made {
                connected,
                refused,
                gates,
                ..
            } = player.made;
            assert!(connected + refused + gates > 0, "{name}: {:?}", player.made);
        }
        names += 1;
    }
    assert!(names > 10);
}

#[test]
fn an_offer_without_onboarding_is_refused_locally() {
    let now = Instant::now();
    let connect = Connect::new(Signed::none());
    let mut conn = ClientConn::new(ClientConfig::default(), &connect, 7, now);
    let offer = OnboardSubmit::from(Signed::none());
    assert!(conn.onboard(&offer, now).is_err());
}

/// A client that was admitted, and reads no further behind two events that are not taken.
fn let_in(now: Instant) -> ClientConn {
    let limits = Limits {
        max_events: 2,
        ..Limits::default()
    };
    let config = ClientConfig {
        limits,
        ..ClientConfig::default()
    };
    let connect = Connect::new(Signed::none());
    let mut conn = ClientConn::new(config, &connect, 7, now);
    recv(
        &mut conn,
        r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#,
        now,
    );
    assert!(matches!(conn.poll_event(), Some(ClientEvent::Connected(_))));
    conn
}

fn recv(conn: &mut ClientConn, frame: &str, now: Instant) {
    conn.handle_message(Incoming::Text(frame), now);
}

#[test]
fn nothing_times_out_while_its_answer_may_be_unread() {
    let (mut now, second) = (Instant::now(), Duration::from_secs(1));
    let mut conn = let_in(now);
    let asked = [(); 2].map(|()| conn.query("s", now).unwrap());
    for _ in 0..2 {
        recv(&mut conn, r#"{"type":"later"}"#, now);
    }
    assert!(!conn.wants_input());
    // The application takes no event for ten minutes.
    let until = now + 600 * second;
    while let Some(at) = conn.poll_timeout().filter(|at| *at <= until) {
        assert!(at > now, "a deadline that moves nothing");
        now = at;
        conn.handle_timeout(now);
    }
    now = until;
    assert!(conn.poll_event().is_some() && conn.poll_event().is_some());
    conn.handle_timeout(now);
    assert!(conn.poll_event().is_none());
    // What has come meanwhile is read first.
    let status = r#"{"type":"SESSION_STATUS","session_id":"s","status":"running"}"#;
    recv(&mut conn, status, now);
    assert!(matches!(
        conn.poll_event(),
        Some(ClientEvent::Reply { id, result: Ok(_) }) if id == asked[0]
    ));
    conn.handle_timeout(now + second);
    let late = conn.poll_event();
    assert!(
        matches!(late, Some(ClientEvent::Reply { id, result: Err(_) }) if id == asked[1]),
        "{late:?}"
    );
}
