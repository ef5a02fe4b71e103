//! Sessions, sentence by sentence: who gets which, and how long they live.

use std::time::Duration;

use crate::frame::SessionState;
use crate::replay::Entry;
use crate::session::event::ConnectError;
use crate::session::{
    Accepted, AgentError, ConnId, InputError, Owner, Removed, RemovedSession, RunOver,
    SessionRequest,
};

use super::clocked::{ALICE, BOB, HOUR, HostRuntime, MINUTE, config};

#[test]
fn without_an_id_a_session_gets_a_uuid() {
    let mut runtime = HostRuntime::new();
    for id in [None, Some("")] {
        let (_, connected) = runtime.connect(SessionRequest::new(ALICE).with_session_id(id));
        assert_eq!(connected.status, SessionState::New);
        assert_eq!(connected.session_id.as_str().len(), 36);
    }
    assert_eq!(runtime.registry.len(), 2);
}

#[test]
fn an_unknown_id_is_new_and_keeps_its_name() {
    let mut runtime = HostRuntime::new();
    let (_, connected) = runtime.back("my talk");
    assert_eq!(connected.status, SessionState::New);
    assert_eq!(connected.session_id.as_str(), "my talk");
    let (_, connected) = runtime.back(&"x".repeat(257));
    assert_eq!(connected.session_id.as_str().len(), 36);
}

#[test]
fn a_session_is_there_from_connect_on() {
    let mut runtime = HostRuntime::new();
    let (_, id) = runtime.alice();
    assert_eq!(runtime.status(&id), Some(SessionState::Connected));
    let (_, connected) = runtime.back(&id);
    assert_eq!(connected.status, SessionState::Connected);
    assert_eq!(connected.session_id.as_str(), id);
}

#[test]
fn a_running_session_says_so() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    assert_eq!(runtime.status(&id), Some(SessionState::Running));
    assert_eq!(runtime.back(&id).1.status, SessionState::Running);
    runtime.finish(run);
    assert_eq!(runtime.back(&id).1.status, SessionState::Connected);
}

#[test]
fn somebody_elses_id_gets_a_new_session_under_another_id() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    for owner in [BOB, Owner::Unsigned] {
        let request = SessionRequest::new(owner).with_session_id(Some(&id));
        let (thief, connected) = runtime.connect(request);
        assert_eq!(connected.status, SessionState::New);
        assert_ne!(connected.session_id.as_str(), id);
        runtime.event(run, "secret");
        assert!(runtime.frames(thief).is_empty());
        assert_eq!(runtime.registry.status(Some(owner), &id), None);
    }
    assert_eq!(runtime.registry.status(None, &id), None);
}

#[test]
fn an_id_that_is_free_is_given_to_whoever_asks_and_one_that_is_taken_is_not() {
    let mut runtime = HostRuntime::new();
    let (_, taken) = runtime.alice();
    let status = |runtime: &HostRuntime, id: &str| runtime.registry.status(Some(BOB), id);
    assert_eq!(status(&runtime, &taken), status(&runtime, "free"));
    for (id, is_given) in [(taken.as_str(), false), ("free", true)] {
        let request = SessionRequest::new(BOB).with_session_id(Some(id));
        let (_, connected) = runtime.connect(request);
        assert_eq!(connected.status, SessionState::New);
        assert_eq!(connected.session_id.as_str() == id, is_given, "{id}");
    }
}

#[test]
fn the_owner_of_a_forgotten_session_is_the_one_that_the_storage_knows() {
    let mut runtime = HostRuntime::new();
    let stored = |owner| SessionRequest::new(owner).with_session_id(Some("old"));
    let (_, connected) = runtime.connect(stored(BOB).with_stored_owner(Some(ALICE)));
    assert_ne!(connected.session_id.as_str(), "old");
    let (_, connected) = runtime.connect(stored(ALICE).with_stored_owner(Some(ALICE)));
    assert_eq!(connected.session_id.as_str(), "old");
}

#[test]
fn who_did_not_sign_is_known_by_the_id() {
    let mut runtime = HostRuntime::new();
    let (_, connected) = runtime.connect(SessionRequest::new(Owner::Unsigned));
    let id = connected.session_id.to_string();
    let request = SessionRequest::new(Owner::Unsigned).with_session_id(Some(&id));
    assert_eq!(runtime.connect(request).1.status, SessionState::Connected);
    let signed = SessionRequest::new(ALICE).with_session_id(Some(&id));
    assert_eq!(runtime.connect(signed).1.status, SessionState::New);
}

#[test]
fn a_second_connect_must_ask_for_the_same() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let now = runtime.now;
    let mut again = |request| {
        let connected = runtime.registry.connect(conn, request, 9, now);
        connected.map(|it| (it.session_id.to_string(), it.status))
    };
    let same = Ok((id.clone(), SessionState::Connected));
    assert_eq!(
        again(SessionRequest::new(ALICE).with_session_id(Some(&id))),
        same
    );
    assert_eq!(again(SessionRequest::new(ALICE)), same);
    let refused = Err(ConnectError::AlreadyConnected);
    assert_eq!(
        again(SessionRequest::new(BOB).with_session_id(Some(&id))),
        refused
    );
    let other = SessionRequest::new(ALICE).with_session_id(Some("other"));
    assert_eq!(again(other), refused);
    assert_eq!(runtime.registry.len(), 1);
    let run = runtime.start(conn);
    // Now a new session was meant.
    let again = runtime
        .registry
        .connect(conn, SessionRequest::new(ALICE), 9, now);
    assert_eq!(
        again,
        refused.map(|_: (String, SessionState)| unreachable!())
    );
    runtime.finish(run);
}

#[test]
fn a_second_connect_loses_no_frame() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    runtime.event(run, "a");
    runtime.finish(run);
    let request = SessionRequest::new(ALICE).with_session_id(Some(&id));
    let now = runtime.now;
    runtime.registry.connect(conn, request, 9, now).unwrap();
    assert_eq!(runtime.frames(conn), ["a", "OUTPUT"]);
}

#[test]
fn an_idle_session_ends_ten_minutes_after_the_last_word() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    runtime.wait(9 * MINUTE);
    assert!(runtime.registry.heard(conn, runtime.now));
    runtime.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(runtime.status(&id), Some(SessionState::Connected));
    runtime.wait(Duration::from_millis(1));
    assert_eq!(runtime.status(&id), None);
    let removed = runtime.removed().unwrap();
    assert_eq!(removed, (id, Removed::Idle, vec![conn], None));
    assert_eq!(runtime.registry.poll_timeout(), None);
}

#[test]
fn a_connect_to_an_idle_session_starts_its_ten_minutes_anew() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    runtime.registry.disconnect(conn, runtime.now);
    runtime.wait(9 * MINUTE);
    let (_, connected) = runtime.back(&id);
    assert_eq!(connected.status, SessionState::Connected);
    runtime.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(runtime.status(&id), Some(SessionState::Connected));
    runtime.wait(Duration::from_millis(1));
    assert_eq!(runtime.status(&id), None);
}

#[test]
fn a_socket_of_a_removed_session_may_connect_again() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    runtime.wait(10 * MINUTE);
    assert_eq!(runtime.input(conn, "hi"), Err(InputError::NotConnected));
    assert!(!runtime.registry.heard(conn, runtime.now));
    let request = SessionRequest::new(ALICE).with_session_id(Some(&id));
    let now = runtime.now;
    let connected = runtime.registry.connect(conn, request, 9, now).unwrap();
    assert_eq!(connected.status, SessionState::New);
    assert_eq!(connected.session_id.as_str(), id);
}

#[test]
fn a_session_outlives_its_last_socket_by_ten_minutes() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    runtime.wait(9 * MINUTE);
    let left = runtime.registry.disconnect(conn, runtime.now);
    assert_eq!(left.unwrap().as_str(), id);
    assert_eq!(runtime.registry.disconnect(conn, runtime.now), None);
    runtime.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(runtime.status(&id), Some(SessionState::Connected));
    runtime.wait(Duration::from_millis(1));
    assert_eq!(runtime.removed().unwrap().1, Removed::Idle);
}

#[test]
fn the_grace_counts_from_the_last_of_several_sockets() {
    let config = config(|it| it.grace = MINUTE);
    let mut runtime = HostRuntime::with(config);
    let (first, id) = runtime.alice();
    let (second, _) = runtime.back(&id);
    runtime.registry.disconnect(first, runtime.now);
    runtime.wait(2 * MINUTE);
    assert_eq!(runtime.status(&id), Some(SessionState::Connected));
    runtime.registry.disconnect(second, runtime.now);
    runtime.wait(MINUTE);
    assert_eq!(runtime.status(&id), None);
}

#[test]
fn a_run_goes_on_without_a_socket_and_its_end_begins_the_grace() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    runtime.registry.disconnect(conn, runtime.now);
    runtime.wait(50 * MINUTE);
    assert_eq!(runtime.status(&id), Some(SessionState::Running));
    runtime.finish(run);
    runtime.wait(9 * MINUTE);
    assert_eq!(runtime.back(&id).1.status, SessionState::Connected);
}

#[test]
fn a_run_is_given_up_after_an_hour_of_silence() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    assert!(matches!(
        runtime.input(conn, "too"),
        Ok(Accepted::Queued(_))
    ));
    runtime.wait(59 * MINUTE);
    runtime.event(run, "a");
    runtime.wait(59 * MINUTE);
    runtime.registry.heard(conn, runtime.now);
    runtime.wait(59 * MINUTE);
    assert_eq!(runtime.status(&id), Some(SessionState::Running));
    runtime.wait(MINUTE);
    let Some(RemovedSession {
        why,
        sockets,
        run: stopped,
        unread,
        ..
    }) = runtime.registry.poll_removed()
    else {
        panic!("nothing was removed")
    };
    assert_eq!((why, sockets), (Removed::Stuck, vec![conn]));
    assert_eq!((stopped, unread.len()), (Some(run), 1));
    assert_eq!(runtime.registry.running(), 0);
    let entry = Entry::event("late".into());
    let late = runtime.registry.event(run, entry, runtime.now);
    assert_eq!(late, Err(RunOver));
}

#[test]
fn a_timeout_that_comes_early_does_nothing() {
    let mut runtime = HostRuntime::new();
    let (_, id) = runtime.alice();
    let at = runtime.registry.poll_timeout().unwrap();
    runtime
        .registry
        .handle_timeout(at - Duration::from_millis(1));
    assert_eq!(runtime.status(&id), Some(SessionState::Connected));
    assert!(runtime.registry.poll_removed().is_none());
}

#[test]
fn a_full_registry_drops_who_was_away_longest_and_never_who_is_there() {
    let mut runtime = HostRuntime::with(config(|it| it.max_sessions = 3));
    let (attached, kept) = runtime.alice();
    let (away, first) = runtime.alice();
    let (runner, running) = runtime.alice();
    let run = runtime.start(runner);
    runtime.registry.disconnect(away, runtime.now);
    runtime.registry.disconnect(runner, runtime.now);
    let (_, fourth) = runtime.alice();
    assert_eq!(
        runtime.removed().unwrap(),
        (first, Removed::Evicted, vec![], None)
    );
    for id in [&kept, &running, &fourth] {
        assert!(runtime.status(id).is_some());
    }
    let full = runtime.try_connect(SessionRequest::new(BOB)).unwrap_err();
    assert_eq!(full, ConnectError::TooManySessions);
    assert!(full.is_retryable());
    runtime.finish(run);
    runtime.connect(SessionRequest::new(BOB));
    assert_eq!(runtime.removed().unwrap().0, running);
    assert!(runtime.registry.heard(attached, runtime.now));
}

#[test]
fn sockets_and_runs_are_bounded() {
    let config = config(|it| (it.max_sockets, it.max_running) = (2, 1));
    let mut runtime = HostRuntime::with(config);
    let (conn, id) = runtime.alice();
    runtime.back(&id);
    let third = runtime.try_connect(SessionRequest::new(ALICE).with_session_id(Some(&id)));
    assert_eq!(third.unwrap_err(), ConnectError::TooManySockets);
    let (other, _) = runtime.alice();
    let run = runtime.start(conn);
    assert_eq!(runtime.input(other, "hi"), Err(InputError::TooManyRuns));
    runtime.finish(run);
    runtime.start(other);
}

#[test]
fn nothing_is_heard_from_who_is_not_connected() {
    let mut runtime = HostRuntime::new();
    let nobody = ConnId(77);
    assert_eq!(runtime.input(nobody, "hi"), Err(InputError::NotConnected));
    assert!(!runtime.registry.heard(nobody, runtime.now));
    assert_eq!(runtime.registry.next_frame(nobody), None);
    assert_eq!(
        runtime.registry.interrupt(nobody),
        Err(AgentError::NotConnected)
    );
    let text = InputError::NotConnected.to_string();
    assert_eq!(text, "authenticate first (send CONNECT)");
}

#[test]
fn times_too_long_to_count_are_for_ever() {
    let config = config(|it| it.idle_timeout = Duration::MAX);
    let mut runtime = HostRuntime::with(config);
    let (_, id) = runtime.alice();
    assert_eq!(runtime.registry.poll_timeout(), None);
    runtime.wait(1000 * HOUR);
    assert_eq!(runtime.status(&id), Some(SessionState::Connected));
}
