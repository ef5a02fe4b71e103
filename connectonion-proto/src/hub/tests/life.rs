//! Sessions, sentence by sentence: who gets which, and how long they live.

use std::time::Duration;

use crate::frame::SessionState;
use crate::hub::{AppError, ConnId, HubEvent, Owner, Reply};
use crate::limits::AUTHENTICATE_FIRST;
use crate::storage::{Record, RecordStatus};

use super::play::{ALICE, Accepted, Ask, BOB, HOUR, MINUTE, Play, config};

#[test]
fn without_an_id_a_session_gets_a_uuid() {
    let mut play = Play::new();
    for id in [None, Some("")] {
        let (_, connected) = play.connect(Ask::new(ALICE).with_session_id(id));
        assert_eq!(connected.status, SessionState::New);
        assert_eq!(connected.session_id.as_str().len(), 36);
    }
    assert_eq!(play.hub.sessions(), 2);
}

#[test]
fn an_unknown_id_is_new_and_keeps_its_name() {
    let mut play = Play::new();
    let (_, connected) = play.back("my talk");
    assert_eq!(connected.status, SessionState::New);
    assert_eq!(connected.session_id.as_str(), "my talk");
    let (_, connected) = play.back(&"x".repeat(257));
    assert_eq!(connected.session_id.as_str().len(), 36);
}

#[test]
fn a_session_exists_from_connect_on() {
    let mut play = Play::new();
    let (_, id) = play.alice();
    assert_eq!(play.status(&id), SessionState::Connected);
    let (_, connected) = play.back(&id);
    assert_eq!(connected.status, SessionState::Connected);
    assert_eq!(connected.session_id.as_str(), id);
}

#[test]
fn a_running_session_says_so() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    assert_eq!(play.status(&id), SessionState::Running);
    assert_eq!(play.back(&id).1.status, SessionState::Running);
    play.finish(run);
    assert_eq!(play.back(&id).1.status, SessionState::Connected);
}

#[test]
fn the_id_of_a_foreign_session_gets_a_new_session() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    for owner in [BOB, Owner::Unsigned] {
        let request = Ask::new(owner).with_session_id(Some(&id));
        let (thief, connected) = play.connect(request);
        assert_eq!(connected.status, SessionState::New);
        assert_ne!(connected.session_id.as_str(), id);
        play.event(run, "secret");
        assert!(play.frames(thief).is_empty());
        assert_eq!(play.status_for(Some(owner), &id), SessionState::NotFound);
    }
    assert_eq!(play.status_for(None, &id), SessionState::NotFound);
}

#[test]
fn an_evicted_session_keeps_its_stored_owner() {
    let mut play = Play::new();
    let mut record = Record::new("old", RecordStatus::Running, "", 0.0);
    record.owner = Some(ALICE);
    play.stored = Some(record);
    let (_, connected) = play.connect(Ask::new(BOB).with_session_id(Some("old")));
    assert_ne!(connected.session_id.as_str(), "old");
    let (_, connected) = play.back("old");
    assert_eq!(connected.session_id.as_str(), "old");
}

#[test]
fn unsigned_callers_are_identified_by_the_session_id() {
    let mut play = Play::new();
    let (_, connected) = play.connect(Ask::new(Owner::Unsigned));
    let id = connected.session_id.to_string();
    let request = Ask::new(Owner::Unsigned).with_session_id(Some(&id));
    assert_eq!(play.connect(request).1.status, SessionState::Connected);
    let signed = Ask::new(ALICE).with_session_id(Some(&id));
    assert_eq!(play.connect(signed).1.status, SessionState::New);
}

#[test]
fn a_second_connect_must_name_the_same_session() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let mut again = |ask| {
        let connected = play.connect_at(conn, ask);
        connected.map(|it| (it.session_id, it.status))
    };
    let same = Ok((id.clone(), SessionState::Connected));
    assert_eq!(again(Ask::new(ALICE).with_session_id(Some(&id))), same);
    assert_eq!(again(Ask::new(ALICE)), same);
    let refused = Err("already authenticated: open a new connection".to_owned());
    assert_eq!(again(Ask::new(BOB).with_session_id(Some(&id))), refused);
    let other = Ask::new(ALICE).with_session_id(Some("other"));
    assert_eq!(again(other), refused);
    assert_eq!(play.hub.sessions(), 1);
    let run = play.start(conn);
    // Now a new session was meant.
    let again = play.connect_at(conn, Ask::new(ALICE));
    assert_eq!(again.map(|it| (it.session_id, it.status)), refused);
    play.finish(run);
}

#[test]
fn a_second_connect_loses_no_frame() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    play.event(run, "a");
    play.finish(run);
    let ask = Ask::new(ALICE).with_session_id(Some(&id));
    play.connect_at(conn, ask).unwrap();
    assert_eq!(play.frames(conn), ["a", "OUTPUT"]);
}

#[test]
fn an_idle_session_ends_after_ten_minutes() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    play.wait(9 * MINUTE);
    play.touch(conn);
    play.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(play.status(&id), SessionState::Connected);
    play.wait(Duration::from_millis(1));
    assert_eq!(play.status(&id), SessionState::NotFound);
    assert_eq!(play.removed, [id]);
    assert!(play.reported.is_empty() && play.hub.session_of(conn).is_none());
    assert_eq!(play.hub.poll_timeout(), None);
}

#[test]
fn a_connect_restarts_the_idle_timeout() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    play.disconnect(conn);
    play.wait(9 * MINUTE);
    let (_, connected) = play.back(&id);
    assert_eq!(connected.status, SessionState::Connected);
    play.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(play.status(&id), SessionState::Connected);
    play.wait(Duration::from_millis(1));
    assert_eq!(play.status(&id), SessionState::NotFound);
}

#[test]
fn a_socket_of_a_removed_session_may_connect_again() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    play.wait(10 * MINUTE);
    assert_eq!(play.input(conn, "hi"), Err(AUTHENTICATE_FIRST.to_owned()));
    let ask = Ask::new(ALICE).with_session_id(Some(&id));
    let connected = play.connect_at(conn, ask).unwrap();
    assert_eq!(connected.status, SessionState::New);
    assert_eq!(connected.session_id.as_str(), id);
}

#[test]
fn a_session_ends_ten_minutes_after_its_last_connection() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    play.wait(9 * MINUTE);
    play.disconnect(conn);
    play.disconnect(conn);
    play.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(play.status(&id), SessionState::Connected);
    play.wait(Duration::from_millis(1));
    assert_eq!(play.removed, [id]);
}

#[test]
fn the_grace_starts_with_the_last_connection_lost() {
    let config = config(|it| it.grace = MINUTE);
    let mut play = Play::with(config);
    let (first, id) = play.alice();
    let (second, _) = play.back(&id);
    play.disconnect(first);
    play.wait(2 * MINUTE);
    assert_eq!(play.status(&id), SessionState::Connected);
    play.disconnect(second);
    play.wait(MINUTE);
    assert_eq!(play.status(&id), SessionState::NotFound);
}

#[test]
fn a_run_continues_without_a_connection_and_its_end_starts_the_grace() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    play.disconnect(conn);
    play.wait(50 * MINUTE);
    assert_eq!(play.status(&id), SessionState::Running);
    play.finish(run);
    play.wait(9 * MINUTE);
    assert_eq!(play.back(&id).1.status, SessionState::Connected);
}

#[test]
fn a_silent_run_ends_after_an_hour() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    assert_eq!(play.input(conn, "too"), Ok(Accepted::Queued(run)));
    play.wait(59 * MINUTE);
    play.event(run, "a");
    play.wait(59 * MINUTE);
    play.touch(conn);
    play.wait(59 * MINUTE);
    assert_eq!(play.status(&id), SessionState::Running);
    play.replies.clear();
    play.wait(MINUTE);
    assert_eq!((play.removed.len(), play.noted.pop_front()), (1, Some(1)));
    let reported = play.replies.pop_front();
    assert!(matches!(reported, Some((to, Reply::Frame(_))) if to == conn));
    let stopped = play.reported.pop_back();
    assert!(matches!(stopped, Some(HubEvent::Cancel(it)) if it == run));
    assert_eq!(play.hub.running(), 0);
    assert_eq!(play.try_event(run, "late"), Err(AppError::Over));
}

#[test]
fn a_full_registry_evicts_the_longest_absent_session() {
    let mut play = Play::with(config(|it| it.max_sessions = 3));
    let (attached, kept) = play.alice();
    let (away, first) = play.alice();
    let (runner, running) = play.alice();
    let run = play.start(runner);
    play.disconnect(away);
    play.disconnect(runner);
    let (_, fourth) = play.alice();
    assert_eq!(play.removed, [first]);
    for id in [&kept, &running, &fourth] {
        assert_ne!(play.status(id), SessionState::NotFound);
    }
    let full = play.try_connect(Ask::new(BOB)).unwrap_err();
    assert_eq!(full, "too many sessions");
    let Some((_, Reply::Refuse(error))) = play.replies.pop_back() else {
        panic!("a refusal")
    };
    assert_eq!(error.retryable, Some(true));
    play.finish(run);
    play.connect(Ask::new(BOB));
    assert_eq!(play.removed.back(), Some(&running));
    assert!(play.hub.session_of(attached).is_some());
}

#[test]
fn sockets_and_runs_are_bounded() {
    let config = config(|it| (it.max_sockets, it.max_running) = (2, 1));
    let mut play = Play::with(config);
    let (conn, id) = play.alice();
    play.back(&id);
    let third = play.try_connect(Ask::new(ALICE).with_session_id(Some(&id)));
    assert_eq!(third.unwrap_err(), "too many connections to this session");
    let (other, _) = play.alice();
    let run = play.start(conn);
    let refused = Err("too many agents are running".to_owned());
    assert_eq!(play.input(other, "hi"), refused);
    play.finish(run);
    play.start(other);
}

#[test]
fn overlong_timeouts_mean_never() {
    let config = config(|it| it.idle_timeout = Duration::MAX);
    let mut play = Play::with(config);
    let (_, id) = play.alice();
    assert_eq!(play.hub.poll_timeout(), None);
    play.wait(1000 * HOUR);
    assert_eq!(play.status(&id), SessionState::Connected);
}

#[test]
fn clients_that_miss_pongs_are_disconnected() {
    let mut play = Play::new();
    let conns: Vec<ConnId> = (0..1_000).map(|_| play.alice().0).collect();
    for _ in 0..30 {
        for conn in conns.iter().take(500) {
            play.touch(*conn);
        }
        play.wait(MINUTE);
    }
    assert_eq!(play.hub.sessions(), 500);
}
