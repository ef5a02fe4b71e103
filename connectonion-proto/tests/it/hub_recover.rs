//! The hub by itself: sessions of hosts that have died go on without a client.

use connectonion_proto::frame::{Connect, SessionState, Signed};
use connectonion_proto::internals::ConnId;
use connectonion_proto::session::{HubConfig, Owner};
use connectonion_proto::storage::RecordStatus;
use rpc_core::Json;
use serde_json::json;

use crate::hub_play::Play;

const OWNER: Owner = Owner::Unsigned;

fn reruns() -> HubConfig {
    HubConfig {
        max_reruns: 2,
        ..HubConfig::default()
    }
}

/// A host whose predecessor has died in the runs of these sessions.
fn heir(config: HubConfig, sessions: &[&str]) -> Play {
    let mut play = Play::new(reruns());
    for (conn, session) in (1..).zip(sessions) {
        play.connect(conn, OWNER, Some(session));
        play.store_all();
        play.input(conn, &format!("do {session}"));
        play.store_all();
    }
    play.kill(config);
    play.started.clear();
    play
}

#[test]
fn an_interrupted_run_finishes_without_a_client() {
    let mut play = heir(reruns(), &["s"]);
    assert!(play.recover("s"));
    play.store_all();
    assert_eq!(play.started, [("s".to_owned(), "do s".to_owned())]);
    assert_eq!(play.storage_record("s").reruns, 1);
    let run = *play.agents.keys().next().unwrap();
    play.finish(run, "done");
    play.store_all();
    assert_eq!(play.storage_record("s").status, RecordStatus::Done);
    play.connect(9, OWNER, Some("s"));
    play.store_all();
    let connected = play.sockets[&ConnId(9)].connected.clone().unwrap();
    assert_eq!(connected.status, SessionState::Connected);
    let session = connected.session.unwrap();
    assert!(session.get().contains(r#""content":"done""#), "{session:?}");
    assert!(play.released.is_empty());
}

#[test]
fn a_client_arriving_during_a_takeover_gets_the_one_run() {
    // Before, between and after the jobs of the storage.
    for jobs in 0..4 {
        let mut play = heir(reruns(), &["s"]);
        assert!(play.recover("s"));
        for _ in 0..jobs {
            play.store_one(false);
        }
        play.connect(9, OWNER, Some("s"));
        play.store_all();
        let socket = &play.sockets[&ConnId(9)];
        let connected = socket.connected.clone().unwrap();
        assert_eq!(connected.status, SessionState::Running, "{jobs}");
        assert_eq!(socket.count("user_input"), 1, "{jobs}");
        assert_eq!(play.started.len(), 1, "{jobs}");
        let run = *play.agents.keys().next().unwrap();
        play.finish(run, "done");
        play.store_all();
        assert_eq!(play.sockets[&ConnId(9)].count("OUTPUT"), 1, "{jobs}");
    }
}

#[test]
fn a_run_that_begins_again_ends_when_the_client_has_more_turns() {
    for is_running in [false, true] {
        let mut play = heir(reruns(), &["s"]);
        if is_running {
            assert!(play.recover("s"));
            play.store_all();
        }
        let runs = play.started.len();
        let mut connect = Connect::new(Signed::none());
        connect.session_id = Some("s".into());
        connect.session = Some(Json::of(&json!({"messages": [], "turn": 7})).unwrap());
        play.connect_with(9, OWNER, connect);
        play.store_all();
        let connected = play.sockets[&ConnId(9)].connected.clone().unwrap();
        assert_ne!(connected.status, SessionState::Running);
        assert_eq!(connected.session, None);
        assert_eq!(play.started.len(), runs, "{is_running}");
        let record = play.storage_record("s");
        assert_eq!(record.status, RecordStatus::Connected);
        assert!(record.session.unwrap().get().contains(r#""turn":7"#));
        play.input(9, "next");
        play.store_all();
        assert_eq!(play.started[runs..], [("s".to_owned(), "next".to_owned())]);
    }
}

#[test]
fn a_session_is_taken_over_once() {
    let mut play = heir(reruns(), &["s"]);
    play.connect(9, OWNER, Some("s"));
    assert!(play.recover("s"));
    play.store_all();
    assert_eq!(play.started.len(), 1);
    assert!(play.released.is_empty());
}

#[test]
fn a_session_with_a_waiting_client_is_not_released() {
    // Nothing of it begins again, so it is taken over for no one.
    let mut play = heir(HubConfig::default(), &["s"]);
    assert!(play.recover("s"));
    play.connect(9, OWNER, Some("s"));
    play.store_all();
    assert!(play.released.is_empty());
    assert_eq!(play.hub.sessions(), 1);

    let mut play = heir(HubConfig::default(), &["s"]);
    assert!(play.recover("s"));
    play.connect(9, OWNER, Some("s"));
    play.disconnect(9);
    play.store_all();
    assert_eq!(play.released, ["s"]);
}

#[test]
fn a_session_without_an_interrupted_run_is_released() {
    // It ended, it may not be run again, and nothing is known of it.
    let mut play = heir(HubConfig::default(), &["cut"]);
    let run = play.begin("idle", "hello");
    play.finish(run, "done");
    play.store_all();
    play.kill(HubConfig::default());
    play.started.clear();
    for session in ["cut", "idle", "none"] {
        assert!(play.recover(session));
    }
    play.store_all();
    assert_eq!(play.released, ["cut", "idle", "none"]);
    assert!(play.started.is_empty() && play.hub.is_idle());
    assert_eq!(play.hub.sessions(), 0);
}

#[test]
fn a_session_taken_over_elsewhere_is_left_alone() {
    let mut play = heir(reruns(), &["s"]);
    assert!(play.recover("s"));
    play.store_fenced();
    assert!(play.started.is_empty() && play.hub.is_idle());
    assert_eq!(play.hub.sessions(), 0);
}

#[test]
fn a_full_hub_accepts_no_takeover() {
    for (sessions, running) in [(2, 10), (10, 2)] {
        let mut config = reruns();
        config.max_sessions = sessions;
        config.max_running = running;
        let mut play = heir(config, &["a", "b", "c"]);
        let taken = ["a", "b", "c"].map(|session| play.recover(session));
        assert_eq!(taken, [true, true, false]);
        play.store_all();
        assert_eq!(play.started.len(), 2);
        assert!(play.released.is_empty(), "c is left to others");
        let run = *play.agents.keys().next().unwrap();
        play.finish(run, "done");
        play.store_all();
        assert!(play.recover("c"));
    }
}
