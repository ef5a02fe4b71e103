//! Sessions, sentence by sentence: who gets which, and how long they live.

use std::time::Duration;

use connectonion_proto::frame::SessionState;
use connectonion_proto::replay::Entry;
use connectonion_proto::session::{
    Accepted, AgentError, ConnId, ConnectError, InputError, Owner, RegistryConfig, RegistryEvent,
    Removed, RunOver, SessionRequest,
};

use super::desk::{ALICE, BOB, Desk, HOUR, MINUTE};

#[test]
fn without_an_id_a_session_gets_a_uuid() {
    let mut desk = Desk::new();
    for id in [None, Some("")] {
        let (_, connected) = desk.connect(SessionRequest::new(ALICE).with_session_id(id));
        assert_eq!(connected.status, SessionState::New);
        assert_eq!(connected.session_id.as_str().len(), 36);
    }
    assert_eq!(desk.registry.len(), 2);
}

#[test]
fn an_unknown_id_is_new_and_keeps_its_name() {
    let mut desk = Desk::new();
    let (_, connected) = desk.back("my talk");
    assert_eq!(connected.status, SessionState::New);
    assert_eq!(connected.session_id.as_str(), "my talk");
    let (_, connected) = desk.back(&"x".repeat(257));
    assert_eq!(connected.session_id.as_str().len(), 36);
}

#[test]
fn a_session_is_there_from_connect_on() {
    let mut desk = Desk::new();
    let (_, id) = desk.alice();
    assert_eq!(desk.status(&id), Some(SessionState::Connected));
    let (_, connected) = desk.back(&id);
    assert_eq!(connected.status, SessionState::Connected);
    assert_eq!(connected.session_id.as_str(), id);
}

#[test]
fn a_running_session_says_so() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    assert_eq!(desk.status(&id), Some(SessionState::Running));
    assert_eq!(desk.back(&id).1.status, SessionState::Running);
    desk.finish(run);
    assert_eq!(desk.back(&id).1.status, SessionState::Connected);
}

#[test]
fn somebody_elses_id_gets_a_new_session_under_another_id() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    for owner in [BOB, Owner::Unsigned] {
        let request = SessionRequest::new(owner).with_session_id(Some(&id));
        let (thief, connected) = desk.connect(request);
        assert_eq!(connected.status, SessionState::New);
        assert_ne!(connected.session_id.as_str(), id);
        desk.event(run, "secret");
        assert!(desk.frames(thief).is_empty());
        assert_eq!(desk.registry.status(Some(owner), &id), None);
    }
    assert_eq!(desk.registry.status(None, &id), None);
}

#[test]
fn an_id_that_is_free_is_given_to_whoever_asks_and_one_that_is_taken_is_not() {
    let mut desk = Desk::new();
    let (_, taken) = desk.alice();
    let status = |desk: &Desk, id: &str| desk.registry.status(Some(BOB), id);
    assert_eq!(status(&desk, &taken), status(&desk, "free"));
    for (id, is_given) in [(taken.as_str(), false), ("free", true)] {
        let request = SessionRequest::new(BOB).with_session_id(Some(id));
        let (_, connected) = desk.connect(request);
        assert_eq!(connected.status, SessionState::New);
        assert_eq!(connected.session_id.as_str() == id, is_given, "{id}");
    }
}

#[test]
fn the_owner_of_a_forgotten_session_is_the_one_that_the_storage_knows() {
    let mut desk = Desk::new();
    let stored = |owner| SessionRequest::new(owner).with_session_id(Some("old"));
    let (_, connected) = desk.connect(stored(BOB).with_stored_owner(Some(ALICE)));
    assert_ne!(connected.session_id.as_str(), "old");
    let (_, connected) = desk.connect(stored(ALICE).with_stored_owner(Some(ALICE)));
    assert_eq!(connected.session_id.as_str(), "old");
}

#[test]
fn who_did_not_sign_is_known_by_the_id() {
    let mut desk = Desk::new();
    let (_, connected) = desk.connect(SessionRequest::new(Owner::Unsigned));
    let id = connected.session_id.to_string();
    let request = SessionRequest::new(Owner::Unsigned).with_session_id(Some(&id));
    assert_eq!(desk.connect(request).1.status, SessionState::Connected);
    let signed = SessionRequest::new(ALICE).with_session_id(Some(&id));
    assert_eq!(desk.connect(signed).1.status, SessionState::New);
}

#[test]
fn a_second_connect_must_ask_for_the_same() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let now = desk.now;
    let mut again = |request| {
        let connected = desk.registry.connect(conn, request, 9, now);
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
    assert_eq!(desk.registry.len(), 1);
    let run = desk.start(conn);
    // Now a new session was meant.
    let again = desk
        .registry
        .connect(conn, SessionRequest::new(ALICE), 9, now);
    assert_eq!(
        again,
        refused.map(|_: (String, SessionState)| unreachable!())
    );
    desk.finish(run);
}

#[test]
fn a_second_connect_loses_no_frame() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    desk.event(run, "a");
    desk.finish(run);
    let request = SessionRequest::new(ALICE).with_session_id(Some(&id));
    let now = desk.now;
    desk.registry.connect(conn, request, 9, now).unwrap();
    assert_eq!(desk.frames(conn), ["a", "OUTPUT"]);
}

#[test]
fn an_idle_session_ends_ten_minutes_after_the_last_word() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    desk.wait(9 * MINUTE);
    assert!(desk.registry.heard(conn, desk.now));
    desk.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(desk.status(&id), Some(SessionState::Connected));
    desk.wait(Duration::from_millis(1));
    assert_eq!(desk.status(&id), None);
    let removed = desk.removed().unwrap();
    assert_eq!(removed, (id, Removed::Idle, vec![conn], None));
    assert_eq!(desk.registry.poll_timeout(), None);
}

#[test]
fn a_connect_to_an_idle_session_starts_its_ten_minutes_anew() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    desk.registry.disconnect(conn, desk.now);
    desk.wait(9 * MINUTE);
    let (_, connected) = desk.back(&id);
    assert_eq!(connected.status, SessionState::Connected);
    desk.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(desk.status(&id), Some(SessionState::Connected));
    desk.wait(Duration::from_millis(1));
    assert_eq!(desk.status(&id), None);
}

#[test]
fn a_socket_of_a_removed_session_may_connect_again() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    desk.wait(10 * MINUTE);
    assert_eq!(desk.input(conn, "hi"), Err(InputError::NotConnected));
    assert!(!desk.registry.heard(conn, desk.now));
    let request = SessionRequest::new(ALICE).with_session_id(Some(&id));
    let now = desk.now;
    let connected = desk.registry.connect(conn, request, 9, now).unwrap();
    assert_eq!(connected.status, SessionState::New);
    assert_eq!(connected.session_id.as_str(), id);
}

#[test]
fn a_session_outlives_its_last_socket_by_ten_minutes() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    desk.wait(9 * MINUTE);
    let left = desk.registry.disconnect(conn, desk.now);
    assert_eq!(left.unwrap().as_str(), id);
    assert_eq!(desk.registry.disconnect(conn, desk.now), None);
    desk.wait(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(desk.status(&id), Some(SessionState::Connected));
    desk.wait(Duration::from_millis(1));
    assert_eq!(desk.removed().unwrap().1, Removed::Idle);
}

#[test]
fn the_grace_counts_from_the_last_of_several_sockets() {
    let config = RegistryConfig::default().with_grace(MINUTE);
    let mut desk = Desk::with(config);
    let (first, id) = desk.alice();
    let (second, _) = desk.back(&id);
    desk.registry.disconnect(first, desk.now);
    desk.wait(2 * MINUTE);
    assert_eq!(desk.status(&id), Some(SessionState::Connected));
    desk.registry.disconnect(second, desk.now);
    desk.wait(MINUTE);
    assert_eq!(desk.status(&id), None);
}

#[test]
fn a_run_goes_on_without_a_socket_and_its_end_begins_the_grace() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    desk.registry.disconnect(conn, desk.now);
    desk.wait(50 * MINUTE);
    assert_eq!(desk.status(&id), Some(SessionState::Running));
    desk.finish(run);
    desk.wait(9 * MINUTE);
    assert_eq!(desk.back(&id).1.status, SessionState::Connected);
}

#[test]
fn a_run_is_given_up_after_an_hour_of_silence() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    assert!(matches!(desk.input(conn, "too"), Ok(Accepted::Queued(_))));
    desk.wait(59 * MINUTE);
    desk.event(run, "a");
    desk.wait(59 * MINUTE);
    desk.registry.heard(conn, desk.now);
    desk.wait(59 * MINUTE);
    assert_eq!(desk.status(&id), Some(SessionState::Running));
    desk.wait(MINUTE);
    let Some(RegistryEvent::Removed {
        why,
        sockets,
        run: stopped,
        unread,
        ..
    }) = desk.registry.poll_event()
    else {
        panic!("nothing was removed")
    };
    assert_eq!((why, sockets), (Removed::Stuck, vec![conn]));
    assert_eq!((stopped, unread.len()), (Some(run), 1));
    assert_eq!(desk.registry.running(), 0);
    let entry = Entry::event("late".into());
    let late = desk.registry.event(run, entry, desk.now);
    assert_eq!(late, Err(RunOver));
}

#[test]
fn a_timeout_that_comes_early_does_nothing() {
    let mut desk = Desk::new();
    let (_, id) = desk.alice();
    let at = desk.registry.poll_timeout().unwrap();
    desk.registry.handle_timeout(at - Duration::from_millis(1));
    assert_eq!(desk.status(&id), Some(SessionState::Connected));
    assert!(desk.registry.poll_event().is_none());
}

#[test]
fn a_full_registry_drops_who_was_away_longest_and_never_who_is_there() {
    let mut desk = Desk::with(RegistryConfig::default().with_max_sessions(3));
    let (attached, kept) = desk.alice();
    let (away, first) = desk.alice();
    let (runner, running) = desk.alice();
    let run = desk.start(runner);
    desk.registry.disconnect(away, desk.now);
    desk.registry.disconnect(runner, desk.now);
    let (_, fourth) = desk.alice();
    assert_eq!(
        desk.removed().unwrap(),
        (first, Removed::Evicted, vec![], None)
    );
    for id in [&kept, &running, &fourth] {
        assert!(desk.status(id).is_some());
    }
    let full = desk.try_connect(SessionRequest::new(BOB)).unwrap_err();
    assert_eq!(full, ConnectError::TooManySessions);
    assert!(full.is_retryable());
    desk.finish(run);
    desk.connect(SessionRequest::new(BOB));
    assert_eq!(desk.removed().unwrap().0, running);
    assert!(desk.registry.heard(attached, desk.now));
}

#[test]
fn sockets_and_runs_are_bounded() {
    let config = RegistryConfig::default()
        .with_max_sockets(2)
        .with_max_running(1);
    let mut desk = Desk::with(config);
    let (conn, id) = desk.alice();
    desk.back(&id);
    let third = desk.try_connect(SessionRequest::new(ALICE).with_session_id(Some(&id)));
    assert_eq!(third.unwrap_err(), ConnectError::TooManySockets);
    let (other, _) = desk.alice();
    let run = desk.start(conn);
    assert_eq!(desk.input(other, "hi"), Err(InputError::TooManyRuns));
    desk.finish(run);
    desk.start(other);
}

#[test]
fn nothing_is_heard_from_who_is_not_connected() {
    let mut desk = Desk::new();
    let nobody = ConnId(77);
    assert_eq!(desk.input(nobody, "hi"), Err(InputError::NotConnected));
    assert!(!desk.registry.heard(nobody, desk.now));
    assert_eq!(desk.registry.next_frame(nobody), None);
    assert_eq!(
        desk.registry.interrupt(nobody),
        Err(AgentError::NotConnected)
    );
    let text = InputError::NotConnected.to_string();
    assert_eq!(text, "authenticate first (send CONNECT)");
}

#[test]
fn times_too_long_to_count_are_for_ever() {
    let config = RegistryConfig::default().with_idle_timeout(Duration::MAX);
    let mut desk = Desk::with(config);
    let (_, id) = desk.alice();
    assert_eq!(desk.registry.poll_timeout(), None);
    desk.wait(1000 * HOUR);
    assert_eq!(desk.status(&id), Some(SessionState::Connected));
}
