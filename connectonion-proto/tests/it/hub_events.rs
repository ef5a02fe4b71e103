//! The hub by itself: events of runs that outlive their host.

use connectonion_proto::frame::{Connect, Connected, SessionState, Signed};
use connectonion_proto::internals::{ConnId, RunId};
use connectonion_proto::session::{HubConfig, LogLimits, Owner};
use serde_json::Value;

use crate::hub_play::{Play, config};

const OWNER: Owner = Owner::Unsigned;

fn keeping() -> HubConfig {
    config(|it| (it.store_events, it.max_reruns) = (true, 2))
}

/// A run of the session `s`, which the socket 1 has started.
fn running(config: HubConfig) -> (Play, RunId) {
    let mut play = Play::new(config);
    let run = play.begin("s", "work");
    (play, run)
}

/// Connects as a client that has shown events up to this one.
fn resume(play: &mut Play, conn: u64, last_msg_id: Option<&str>) -> Connected {
    let mut connect = Connect::new(Signed::none());
    connect.session_id = Some("s".into());
    connect.last_msg_id = last_msg_id.map(Into::into);
    play.connect_with(conn, OWNER, connect);
    play.store_all();
    *play.sockets[&ConnId(conn)].connected.clone().unwrap()
}

fn said(play: &Play, conn: u64) -> Vec<&str> {
    let frames = play.sockets[&ConnId(conn)].frames.iter();
    frames
        .map(|it| it["content"].as_str().or(it["type"].as_str()).unwrap())
        .collect()
}

#[test]
fn events_are_sent_at_once_and_stored_in_batches() {
    let (mut play, run) = running(keeping());
    assert_eq!(play.jobs(), 0, "the prompt is stored with the first step");
    for text in ["a", "b", "c"] {
        play.emit(run, text);
    }
    assert_eq!(said(&play, 1), ["work", "a", "b", "c"]);
    assert_eq!(play.jobs(), 1);
    play.store_one(false);
    assert_eq!((play.events("s"), play.jobs()), (2, 1));
    play.store_one(false);
    assert_eq!((play.events("s"), play.jobs()), (4, 0));
    play.emit(run, "d");
    play.emit(run, "e");
    play.finish(run, "done");
    play.store_all();
    assert_eq!(play.events("s"), 0);
    assert_eq!(play.sockets[&ConnId(1)].count("OUTPUT"), 1);
}

#[test]
fn a_storage_without_event_support_stores_none() {
    let (mut play, run) = running(HubConfig::default());
    play.emit(run, "a");
    assert_eq!(play.jobs(), 0);
}

#[test]
fn a_client_resumes_within_an_interrupted_run() {
    for comes_first in [true, false] {
        let (mut play, run) = running(keeping());
        let ids = ["a", "b", "c"].map(|text| play.emit(run, text).unwrap());
        play.store_all();
        play.kill(keeping());
        if !comes_first {
            assert!(play.recover("s"));
            play.store_all();
        }
        let connected = resume(&mut play, 2, Some(&ids[0]));
        assert_eq!(connected.status, SessionState::Running);
        resume(&mut play, 3, None);
        let run = *play.agents.keys().next().unwrap();
        play.emit(run, "new");
        play.finish(run, "done");
        play.store_all();
        assert_eq!(said(&play, 2), ["b", "c", "new", "OUTPUT"]);
        assert_eq!(said(&play, 3), ["work", "a", "b", "c", "new", "OUTPUT"]);
        let sockets = &play.sockets;
        assert_eq!(sockets[&ConnId(2)].frames[0]["id"], ids[1]);
        // What the interrupted run did is not a part of the conversation.
        let output: &Value = sockets[&ConnId(2)].frames.last().unwrap();
        let trace = output["session"]["trace"].as_array().unwrap();
        let trace: Vec<_> = trace.iter().map(|it| &it["content"]).collect();
        assert_eq!(trace, ["work", "new"]);
    }
}

#[test]
fn a_client_ahead_of_the_store_gets_only_the_new_run() {
    let (mut play, run) = running(keeping());
    play.emit(run, "a");
    play.store_all();
    let last = play.emit(run, "b").unwrap();
    play.kill(keeping());
    resume(&mut play, 2, Some(&last));
    assert_eq!(said(&play, 2), [""; 0]);
    let run = *play.agents.keys().next().unwrap();
    let last = play.emit(run, "new").unwrap();
    assert_eq!(said(&play, 2), ["new"]);
    // It may lose its connection then.
    play.emit(run, "newer");
    resume(&mut play, 3, Some(&last));
    assert_eq!(said(&play, 3), ["newer"]);
}

#[test]
fn a_run_interrupted_twice_keeps_all_its_events() {
    let (mut play, run) = running(keeping());
    let first = play.emit(run, "first").unwrap();
    play.store_all();
    play.kill(keeping());
    assert!(play.recover("s"));
    play.store_all();
    let run = *play.agents.keys().next().unwrap();
    play.emit(run, "second");
    play.store_all();
    play.kill(keeping());
    resume(&mut play, 2, Some(&first));
    assert_eq!(said(&play, 2), ["second"]);
}

#[test]
fn questions_of_a_dead_host_are_not_asked_again() {
    let (mut play, run) = running(keeping());
    play.emit(run, "a");
    play.ask(run);
    play.store_all();
    play.kill(keeping());
    resume(&mut play, 2, None);
    assert_eq!(said(&play, 2), ["work", "a"]);
}

#[test]
fn steps_of_a_run_that_is_not_rerun_stay_in_the_conversation() {
    let (mut play, run) = running(keeping());
    play.emit(run, "a");
    play.store_all();
    play.kill(HubConfig {
        max_reruns: 0,
        ..keeping()
    });
    let connected = resume(&mut play, 2, None);
    assert_eq!(connected.status, SessionState::New);
    assert_eq!(said(&play, 2), [""; 0]);
    let items = connected.chat_items.unwrap();
    let items: Value = serde_json::from_str(items.get()).unwrap();
    let items = items.as_array().unwrap().iter();
    let items: Vec<_> = items.map(|it| &it["content"]).collect();
    assert_eq!(items, ["work", "a"]);
}

#[test]
fn stored_events_are_bounded() {
    let log = LogLimits {
        max_events: 3,
        ..LogLimits::default()
    };
    let (mut play, run) = running(config(|it| {
        *it = keeping();
        it.log = log;
    }));
    for text in ["a", "b", "c", "d"] {
        play.emit(run, text);
        play.store_all();
    }
    assert_eq!(play.events("s"), 3);
}

#[test]
fn an_owner_whose_event_is_refused_stops() {
    let (mut play, run) = running(keeping());
    play.emit(run, "a");
    play.store_fenced();
    assert_eq!(play.cancelled, [run]);
    assert_eq!(play.sockets[&ConnId(1)].closed, Some(1012));
    assert!(play.hub.is_idle());
}
