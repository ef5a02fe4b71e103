//! The hub by itself: many sessions, and what must hold whatever happens.

use std::time::{Duration, Instant};

use connectonion_proto::frame::{Connect, EventKind, Signed};
use connectonion_proto::internals::{ConnId, RunId};
use connectonion_proto::net::AppError;
use connectonion_proto::session::{HubConfig, Owner};
use rpc_core::Json;
use serde_json::json;

use crate::hub_play::{Play, config};

const MINUTE: Duration = Duration::from_secs(60);

fn owner(number: u8) -> Owner {
    Owner::Key(connectonion_proto::auth::Address::from_bytes([number; 32]))
}

#[test]
fn a_prompt_is_stored_before_it_is_acknowledged() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, owner(1), None);
    play.input(1, "first");
    assert!(play.waits(1) && play.started.is_empty());
    play.store_all();
    assert_eq!(play.sockets[&ConnId(1)].begun, 1);
    let run = *play.agents.keys().next().unwrap();
    play.input(1, "second");
    assert!(play.waits(1));
    play.store_all();
    assert_eq!(play.sockets[&ConnId(1)].acknowledged.len(), 1);
    play.next_inputs(run);
    play.finish(run, "done");
    assert_eq!(play.sockets[&ConnId(1)].count("OUTPUT"), 0);
    play.store_all();
    assert_eq!(play.sockets[&ConnId(1)].count("OUTPUT"), 1);
}

#[test]
fn the_console_log_matches_the_specification() {
    let mut play = Play::new(HubConfig::default());
    let reported = |play: &mut Play, expected: &[&str]| {
        let lines: Vec<_> = play.lines.drain(..).collect();
        assert_eq!(lines, expected);
    };
    play.connect(1, Owner::Unsigned, Some("s"));
    play.store_all();
    reported(
        &mut play,
        &["✓ CONNECT identity=unsigned session=s status=new"],
    );
    play.input(1, "analyze this");
    play.store_all();
    reported(
        &mut play,
        &["✓ INPUT identity=unsigned session=s prompt=analyze this"],
    );
    let run = *play.agents.keys().next().unwrap();
    let status = |status| format!("✓ CONNECT identity=unsigned session=s status={status}");
    play.connect(2, Owner::Unsigned, Some("s"));
    reported(
        &mut play,
        &[&status("running"), "  ↻ reattaching to running agent"],
    );
    play.input(2, "and this");
    play.store_all();
    play.next_inputs(run);
    play.finish(run, "done");
    play.store_all();
    reported(&mut play, &["↳ RUNTIME_INPUT session=s prompt=and this"]);
    let mut connect = Connect::new(Signed::none());
    connect.session_id = Some("s".into());
    let old = json!({"messages": [{}, {}, {}, {}], "turn": 0});
    connect.session = Some(Json::of(&old).unwrap());
    play.connect_with(3, Owner::Unsigned, connect);
    reported(
        &mut play,
        &[
            &status("connected"),
            "  ↑ client session: 4 messages",
            "  ↕ merged sessions (server newer)",
        ],
    );
    play.input(3, "fail");
    play.store_all();
    let run = *play.agents.keys().next().unwrap();
    play.fail(run, "out of paper");
    play.store_all();
    play.lines.remove(0);
    reported(&mut play, &["✗ agent error: out of paper"]);
    play.input(3, "say nothing");
    play.store_all();
    let run = *play.agents.keys().next().unwrap();
    play.finish(run, "");
    play.store_all();
    play.lines.remove(0);
    reported(
        &mut play,
        &["✗ agent error: Agent completed without result"],
    );
}

#[test]
fn a_silent_agent_reads_acknowledged_prompts() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, owner(1), None);
    for prompt in ["first", "second"] {
        play.input(1, prompt);
        play.store_all();
    }
    let run = *play.agents.keys().next().unwrap();
    play.interrupt(1);
    play.finish(run, "");
    assert_eq!(play.read, ["second"]);
    assert!(
        !play.hub.is_interrupted(run),
        "what came last is what counts"
    );
    play.finish(run, "done");
    play.store_all();
    let socket = &play.sockets[&ConnId(1)];
    assert_eq!((socket.count("OUTPUT"), socket.count("ERROR")), (1, 0));
    assert_eq!(socket.count("assistant"), 0, "it has said nothing");
}

#[test]
fn an_agent_cannot_send_the_frames_of_its_host() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, owner(1), None);
    play.input(1, "go");
    play.store_all();
    let run = *play.agents.keys().next().unwrap();
    let mut emit = |name: &str| {
        let event = EventKind::Unknown {
            tag: name.into(),
            raw: Json::EMPTY_ARRAY,
        };
        play.hub.emit(run, event, None, play.now)
    };
    for name in [
        "CONNECTED",
        "PING",
        "OUTPUT",
        "ERROR",
        "RUNTIME_INPUT_ACK",
        "SESSION_STATUS",
        "ONBOARD_REQUIRED",
        "ONBOARD_SUCCESS",
        "ADMIN_RESULT",
        &"x".repeat(129),
    ] {
        let refused = emit(name);
        assert!(
            matches!(refused, Err(AppError::Reserved { .. })),
            "{name}: {refused:?}"
        );
    }
    for name in ["my_own", &"x".repeat(128)] {
        assert!(emit(name).is_ok(), "{name}");
    }
}

#[test]
fn waiting_prompts_survive_a_kill() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, owner(1), Some("s"));
    play.store_all();
    for prompt in ["first", "second", "third"] {
        play.input(1, prompt);
        play.store_all();
    }
    let run = *play.agents.keys().next().unwrap();
    play.fail(run, "failed");
    // The end of the first run, and the beginning of another one with the second prompt.
    play.store_one(false);
    play.store_one(false);
    assert_eq!(play.started.len(), 2);
    play.kill(HubConfig::default());
    play.connect(2, owner(1), Some("s"));
    play.store_all();
    let connected = play.sockets[&ConnId(2)].connected.as_ref().unwrap();
    let session = connected.session.as_ref().unwrap().get();
    for prompt in ["first", "second", "third"] {
        assert!(session.contains(prompt), "{prompt}: {session}");
    }
}

#[test]
fn acknowledged_prompts_outlive_a_clients_copy_of_the_turn() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, owner(1), Some("s"));
    play.store_all();
    for prompt in ["first", "second"] {
        play.input(1, prompt);
        play.store_all();
    }
    let began = play.now.unix;
    play.kill(HubConfig::default());
    play.advance(MINUTE);
    let copy = serde_json::json!({
        "messages": [{"role": "user", "content": "first"}],
        "turn": 1, "iteration": 0, "updated": began,
    });
    let mut connect = Connect::new(Signed::none());
    connect.session_id = Some("s".into());
    connect.session = Some(Json::of(&copy).unwrap());
    play.connect_with(2, owner(1), connect);
    play.store_all();
    let connected = play.sockets[&ConnId(2)].connected.as_ref().unwrap();
    let session = connected.session.as_ref().unwrap().get();
    assert!(session.contains("second"), "{session}");
}

#[test]
fn a_storage_that_fails_refuses_prompts_and_keeps_results() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, owner(1), Some("s"));
    play.store_one(true);
    let refused = &play.sockets[&ConnId(1)].refused;
    assert!(refused[0].starts_with("the session is not available"));
    play.connect(1, owner(1), Some("s"));
    play.store_all();
    play.input(1, "lost");
    play.store_one(true);
    let refused = &play.sockets[&ConnId(1)].refused;
    assert!(refused[1].starts_with("the prompt was not stored"));
    assert!(play.started.is_empty());
    play.input(1, "taken");
    play.store_all();
    let run = *play.agents.keys().next().unwrap();
    play.finish(run, "kept here");
    play.store_one(true);
    assert_eq!(play.sockets[&ConnId(1)].count("OUTPUT"), 1);
    // The storage has it not, so the hub keeps it.
    play.disconnect(1);
    play.connect(2, owner(1), Some("s"));
    play.store_all();
    play.input(2, "and");
    play.store_all();
    let run = *play.agents.keys().next().unwrap();
    let session = play.hub.session(run, play.now).unwrap();
    assert!(session.get().contains("kept here"));
}

#[test]
fn a_silent_run_is_stopped_and_reported() {
    let mut play = Play::new(HubConfig::default());
    play.connect(1, owner(1), Some("s"));
    play.store_all();
    play.input(1, "for ever");
    play.store_all();
    play.advance(59 * MINUTE);
    assert!(play.cancelled.is_empty());
    play.advance(2 * MINUTE);
    assert_eq!(play.cancelled.len(), 1);
    let frames = &play.sockets[&ConnId(1)].frames;
    assert_eq!(frames.last().unwrap()["type"], "ERROR");
    play.input(1, "again");
    let refused = play.sockets[&ConnId(1)].refused.last().unwrap();
    assert_eq!(refused, "authenticate first (send CONNECT)");
    assert_eq!(
        play.lines.last().unwrap(),
        "✗ INPUT rejected: not authenticated (send CONNECT first)"
    );
    play.store_all();
    play.connect(1, owner(1), Some("s"));
    play.store_all();
    play.input(1, "again");
    play.store_all();
    assert_eq!(play.agents.len(), 1);
}

#[test]
fn concurrent_agents_are_bounded() {
    let mut play = Play::new(config(|it| it.max_running = 2));
    for conn in 1..=3 {
        play.connect(conn, owner(1), None);
        play.input(conn, "x");
    }
    play.store_all();
    assert_eq!(play.agents.len(), 2);
    assert_eq!(
        play.sockets[&ConnId(3)].refused,
        ["too many agents are running"]
    );
}

#[test]
fn late_writes_of_an_evicted_session_do_not_reach_the_next() {
    let mut play = Play::new(config(|it| it.max_sessions = 1));
    play.connect(1, owner(1), Some("s"));
    play.connect(2, owner(1), Some("s"));
    play.store_one(false);
    play.input(1, "evicted");
    play.disconnect(1);
    // Someone else takes its place for a moment, and the other connection begins it again.
    play.connect(3, owner(2), None);
    play.disconnect(3);
    play.store_one(false);
    play.input(2, "kept");
    play.store_one(false);
    assert!(play.started.is_empty());
    play.store_all();
    assert_eq!(play.started, [("s".into(), "kept".into())]);
    let run = *play.agents.keys().next().unwrap();
    play.finish(run, "done");
    play.store_all();
    assert_eq!(play.sockets[&ConnId(2)].count("OUTPUT"), 1);
    assert!(play.hub.is_idle());
}

#[test]
fn ten_thousand_sessions_with_a_thousand_running_cost_little() {
    let began = Instant::now();
    let mut play = Play::new(HubConfig::default());
    for conn in 0..10_000 {
        play.connect(conn, owner(1), Some(&format!("s-{conn}")));
    }
    play.store_all();
    assert_eq!(play.hub.sessions(), 10_000);
    for conn in 0..1_000 {
        play.input(conn, "work");
    }
    play.store_all();
    assert_eq!(play.hub.running(), 1_000);
    let runs: Vec<RunId> = play.agents.keys().copied().collect();
    for step in 0..10 {
        for run in &runs {
            drop(play.emit(*run, &format!("step {step}")));
        }
    }
    let bytes = play.hub.log_bytes();
    assert!(bytes < 1_000 * 10 * 400, "{bytes} bytes of events");
    for run in &runs {
        play.finish(*run, "done");
    }
    play.store_all();
    let reported = |conn| {
        play.sockets[&ConnId(conn)].count("thinking") + play.sockets[&ConnId(conn)].count("OUTPUT")
    };
    assert!((0..1_000).all(|conn| reported(conn) == 11));
    assert_eq!(play.hub.log_bytes(), 0);
    // All of them go, and nothing is left.
    for conn in 0..10_000 {
        play.disconnect(conn);
    }
    play.advance(11 * MINUTE);
    assert!(play.hub.sessions() == 0 && play.hub.is_idle());
    assert!(play.hub.poll_timeout().is_none());
    // A bound on what grows with the square, not on the machine.
    assert!(began.elapsed() < Duration::from_secs(60));
}
