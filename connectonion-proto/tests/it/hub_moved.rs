//! The hub by itself: sessions that another host serves now, and runs that begin again.

use connectonion_proto::frame::SessionState;
use connectonion_proto::internals::ConnId;
use connectonion_proto::session::{HubConfig, Owner};

use crate::hub_play::Play;

const OWNER: Owner = Owner::Unsigned;

#[test]
fn a_prompt_for_a_session_of_another_host_is_not_acknowledged() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, OWNER, Some("s"));
    play.connect(2, OWNER, Some("s"));
    play.connect(3, OWNER, Some("other"));
    play.store_all();
    play.input(1, "first");
    play.store_all();
    play.input(1, "second");
    play.store_fenced();
    for conn in [1, 2] {
        let socket = &play.sockets[&ConnId(conn)];
        assert_eq!(socket.closed, Some(1012));
        assert!(socket.acknowledged.is_empty());
    }
    assert_eq!(play.sockets[&ConnId(3)].closed, None);
    assert!(play.agents.is_empty() && play.cancelled.len() == 1);
    assert_eq!(play.hub.sessions(), 1);
    assert!(play.hub.is_idle());
}

#[test]
fn a_prompt_after_its_session_moved_is_refused_with_that_reason() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, OWNER, Some("s"));
    play.store_all();
    let now = play.now;
    play.hub.give_up_all(now);
    play.input(1, "first");
    let socket = &play.sockets[&ConnId(1)];
    assert_eq!(socket.closed, Some(1012));
    // No other host need serve it: this one has lost its lease.
    let reason = "this host does not serve the session: connect again";
    assert_eq!(socket.refused, [reason]);
    play.hub.disconnect(ConnId(1), now);
    assert!(play.hub.is_idle());
}

#[test]
fn a_fenced_result_is_not_sent() {
    let mut play = Play::new(HubConfig::default());
    let run = play.begin("s", "first");
    play.finish(run, "done");
    play.store_fenced();
    let socket = &play.sockets[&ConnId(1)];
    assert_eq!((socket.count("OUTPUT"), socket.closed), (0, Some(1012)));
    assert!(play.hub.is_idle());
}

#[test]
fn a_session_of_another_host_is_refused() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, OWNER, Some("s"));
    play.store_fenced();
    let socket = &play.sockets[&ConnId(1)];
    assert_eq!((socket.accepted, socket.closed), (0, Some(1012)));
    assert_eq!(play.hub.sessions(), 0);
}

#[test]
fn a_waiting_prompt_of_a_moved_session_starts_no_run() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, OWNER, Some("s"));
    play.store_all();
    play.input(1, "first");
    play.store_fenced();
    assert!(play.started.is_empty() && play.hub.is_idle());
    // The session may come back.
    play.connect(4, OWNER, Some("s"));
    play.store_all();
    play.input(4, "again");
    play.store_all();
    assert_eq!(play.agents.len(), 1);
}

#[test]
fn an_interrupted_run_restarts_up_to_its_limit() {
    let config = HubConfig {
        max_reruns: 2,
        ..HubConfig::default()
    };
    let mut play = Play::new(config.clone());
    play.connect(1, OWNER, Some("s"));
    play.store_all();
    play.input(1, "first");
    play.store_all();
    play.input(1, "second");
    play.store_all();
    for _ in 0..2 {
        play.kill(config.clone());
        play.started.clear();
        play.connect(1, OWNER, Some("s"));
        play.store_all();
        let connected = play.sockets[&ConnId(1)].connected.clone().unwrap();
        assert_eq!(connected.status, SessionState::Running);
        assert_eq!(play.started, [("s".to_owned(), "first".to_owned())]);
    }
    let run = *play.agents.keys().next().unwrap();
    play.read.clear();
    play.next_inputs(run);
    assert_eq!(play.read, ["second"]);
    play.kill(config);
    play.connect(1, OWNER, Some("s"));
    play.store_all();
    let connected = play.sockets[&ConnId(1)].connected.clone().unwrap();
    assert_eq!(connected.status, SessionState::New);
    assert!(play.agents.is_empty());
}

#[test]
fn a_restarted_run_that_ended_stays_ended() {
    let config = HubConfig {
        max_reruns: 9,
        ..HubConfig::default()
    };
    let mut play = Play::new(config.clone());
    play.connect(1, OWNER, Some("s"));
    play.store_all();
    play.input(1, "first");
    play.store_all();
    play.kill(config.clone());
    play.connect(1, OWNER, Some("s"));
    play.store_all();
    let run = *play.agents.keys().next().unwrap();
    play.finish(run, "done");
    play.store_all();
    assert_eq!(play.sockets[&ConnId(1)].count("OUTPUT"), 1);
    let record = play.storage_record("s");
    let session = record.session.unwrap();
    assert_eq!(
        session.get().matches(r#""content":"first""#).count(),
        2,
        "once in the trace"
    );
    play.kill(config);
    play.connect(1, OWNER, Some("s"));
    play.store_all();
    assert!(play.agents.is_empty());
}
