//! Runs, sentence by sentence: what is seen of them, said to them, and left of them.

use connectonion_proto::frame::SessionState;
use connectonion_proto::replay::{Entry, LogLimits};
use connectonion_proto::session::{
    Accepted, AgentError, AnswerError, Finish, InputError, RegistryConfig, RequestKind, RunOver,
    RunRefused, SessionRequest,
};

use super::desk::{ALICE, Desk};

#[test]
fn a_client_that_comes_back_gets_what_it_has_not_shown() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    for event in ["a", "b", "c"] {
        desk.event(run, event);
    }
    desk.registry.disconnect(conn, desk.now);
    desk.event(run, "d");
    let resume = |last| {
        let request = SessionRequest::new(ALICE).with_session_id(Some(&id));
        request.with_last_msg_id(last)
    };
    for (last, replayed) in [
        (Some("b"), vec!["c", "d"]),
        (Some("d"), vec![]),
        (Some("unknown"), vec!["a", "b", "c", "d"]),
        (None, vec!["a", "b", "c", "d"]),
    ] {
        let (conn, connected) = desk.connect(resume(last));
        assert_eq!(connected.status, SessionState::Running);
        assert_eq!(connected.gap, None);
        assert_eq!(desk.frames(conn), replayed, "{last:?}");
    }
    let (conn, _) = desk.connect(resume(Some("c")));
    desk.finish(run);
    assert_eq!(desk.frames(conn), ["d", "OUTPUT"]);
}

#[test]
fn what_ended_while_nobody_watched_is_not_replayed() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    desk.event(run, "a");
    desk.registry.disconnect(conn, desk.now);
    desk.finish(run);
    let request = SessionRequest::new(ALICE).with_session_id(Some(&id));
    let (conn, connected) = desk.connect(request.with_last_msg_id(Some("a")));
    assert_eq!(connected.status, SessionState::Connected);
    assert!(desk.frames(conn).is_empty());
    assert_eq!(desk.registry.log_bytes(), 0);
}

#[test]
fn a_gap_is_told_to_those_who_come_back_and_to_those_who_are_slow() {
    let log = LogLimits::default().with_max_events(2);
    let mut desk = Desk::with(RegistryConfig::default().with_log(log));
    let (slow, id) = desk.alice();
    let run = desk.start(slow);
    for event in ["a", "b", "c"] {
        desk.event(run, event);
    }
    let (conn, connected) = desk.back(&id);
    assert_eq!(connected.gap.map(|gap| gap.missed), Some(1));
    assert_eq!(desk.frames(conn), ["b", "c"]);
    assert_eq!(desk.frames(slow), ["gap 1", "b", "c"]);
}

#[test]
fn all_sockets_of_a_session_see_everything_once() {
    let mut desk = Desk::new();
    let (first, id) = desk.alice();
    let (second, _) = desk.back(&id);
    let run = desk.start(first);
    desk.event(run, "a");
    desk.event(run, "b");
    let ready: Vec<_> = std::iter::from_fn(|| desk.registry.poll_ready()).collect();
    assert_eq!(ready, [first, second]);
    assert_eq!(desk.frames(first), ["a", "b"]);
    desk.finish(run);
    assert_eq!(desk.frames(first), ["OUTPUT"]);
    assert!(desk.registry.log_bytes() > 0);
    assert_eq!(desk.frames(second), ["a", "b", "OUTPUT"]);
    assert_eq!(desk.registry.log_bytes(), 0);
}

#[test]
fn a_slow_socket_gets_the_end_of_a_run_before_the_next_one() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    desk.event(run, "a");
    desk.finish(run);
    let run = desk.start(conn);
    desk.event(run, "b");
    assert_eq!(desk.frames(conn), ["a", "OUTPUT", "b"]);
    let (other, _) = desk.back(&id);
    assert_eq!(desk.frames(other), ["b"]);
}

#[test]
fn an_input_while_the_agent_runs_waits_for_it() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let (other, _) = desk.back(&id);
    let run = desk.start(conn);
    assert_eq!(desk.input(other, "say please"), Ok(Accepted::Queued(run)));
    assert_eq!(desk.input(other, ""), Err(InputError::NoPrompt));
    let inputs = desk.registry.run_mut(run).unwrap().take_inputs();
    assert_eq!(inputs.len(), 1);
    assert_eq!(inputs[0].prompt, "say please");
    desk.finish(run);
}

#[test]
fn a_run_with_a_waiting_input_does_not_finish() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    assert_eq!(desk.input(conn, "too late?"), Ok(Accepted::Queued(run)));
    let finish = desk.registry.finish(run, "OUTPUT".into(), desk.now);
    let Ok(Finish::More(inputs)) = finish else {
        panic!("{finish:?}")
    };
    assert_eq!(inputs[0].prompt, "too late?");
    assert!(desk.frames(conn).is_empty());
    assert_eq!(desk.status(&id), Some(SessionState::Running));
    desk.finish(run);
    assert_eq!(desk.frames(conn), ["OUTPUT"]);
}

#[test]
fn an_agent_that_reads_no_more_gets_no_more() {
    let mut desk = Desk::new();
    let (conn, _) = desk.alice();
    let run = desk.start(conn);
    assert!(desk.registry.run_mut(run).unwrap().last_call().is_empty());
    let late = desk.input(conn, "late").unwrap_err();
    assert_eq!(late, InputError::Running(RunRefused::TooLate));
    assert_eq!(late.to_string(), "session already has a running agent");
    assert!(late.is_retryable());
    desk.finish(run);
    desk.start(conn);
}

#[test]
fn after_an_error_the_session_is_usable_at_once() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    assert!(desk.input(conn, "unread").is_ok());
    let unread = desk.fail(run);
    assert_eq!(unread[0].prompt, "unread");
    assert_eq!(desk.status(&id), Some(SessionState::Connected));
    assert_eq!(desk.frames(conn), ["ERROR"]);
    assert_eq!(desk.back(&id).1.failure, None);
    desk.start(conn);
}

#[test]
fn an_error_that_nobody_saw_is_told_to_the_next_socket_and_not_again() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    desk.registry.disconnect(conn, desk.now);
    desk.fail(run);
    let failure = desk.back(&id).1.failure.unwrap();
    assert_eq!(failure.as_str(), "ERROR");
    assert_eq!(desk.back(&id).1.failure, None);
}

#[test]
fn an_error_is_forgotten_when_the_next_run_begins() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    desk.fail(run);
    let run = desk.start(conn);
    desk.registry.disconnect(conn, desk.now);
    desk.finish(run);
    assert_eq!(desk.back(&id).1.failure, None);
}

#[test]
fn an_answer_reaches_its_question_from_any_socket_and_once() {
    let mut desk = Desk::new();
    let (first, id) = desk.alice();
    let (second, _) = desk.back(&id);
    let run = desk.start(first);
    let state = desk.registry.run_mut(run).unwrap();
    state.ask(RequestKind::Approval, "q1").unwrap();
    desk.registry.disconnect(first, desk.now);
    let (third, _) = desk.back(&id);
    let mut answer = |conn| {
        let kind = RequestKind::Approval;
        desk.registry.answer(conn, kind, Some("q1"))
    };
    assert_eq!(answer(third).unwrap(), (run, "q1".into()));
    let late = Err(AgentError::Answer(AnswerError::Stale));
    assert_eq!(answer(second), late);
    assert_eq!(answer(first), Err(AgentError::NotConnected));
}

#[test]
fn an_answer_after_the_run_is_stale() {
    let mut desk = Desk::new();
    let (conn, _) = desk.alice();
    let run = desk.start(conn);
    let state = desk.registry.run_mut(run).unwrap();
    state.ask(RequestKind::AskUser, "q1").unwrap();
    desk.finish(run);
    let run = desk.start(conn);
    for id in [None, Some("q1")] {
        let answer = desk.registry.answer(conn, RequestKind::AskUser, id);
        assert_eq!(answer, Err(AgentError::Answer(AnswerError::Stale)));
    }
    desk.finish(run);
    let answer = desk.registry.answer(conn, RequestKind::AskUser, None);
    assert_eq!(answer, Err(AgentError::Answer(AnswerError::Stale)));
}

#[test]
fn an_interrupt_needs_a_run() {
    let mut desk = Desk::new();
    let (conn, _) = desk.alice();
    let idle = desk.registry.interrupt(conn).unwrap_err();
    assert_eq!(idle.to_string(), "interrupt requires an active turn");
    let run = desk.start(conn);
    assert_eq!(desk.registry.interrupt(conn), Ok(run));
    assert!(desk.registry.run_mut(run).unwrap().take_interrupt());
    assert!(!desk.registry.run_mut(run).unwrap().take_interrupt());
}

#[test]
fn an_agent_of_an_earlier_run_reaches_nothing() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let old = desk.start(conn);
    assert!(desk.registry.remove(&id));
    assert_eq!(desk.removed().unwrap().3, Some(old));
    let (conn, _) = desk.back(&id);
    let run = desk.start(conn);
    let now = desk.now;
    let registry = &mut desk.registry;
    let event = Entry::event("stale".into());
    assert_eq!(registry.event(old, event, now), Err(RunOver));
    assert_eq!(registry.finish(old, "stale".into(), now), Err(RunOver));
    assert_eq!(registry.fail(old, "stale".into(), now), Err(RunOver));
    assert!(registry.run_mut(old).is_err());
    desk.finish(run);
    assert_eq!(desk.frames(conn), ["OUTPUT"]);
}

#[test]
fn the_events_of_all_sessions_together_are_bounded() {
    let mut desk = Desk::with(RegistryConfig::default().with_max_log_bytes(1000));
    let runs: Vec<_> = (0..10)
        .map(|_| {
            let (conn, _) = desk.alice();
            desk.start(conn)
        })
        .collect();
    for _ in 0..20 {
        for run in &runs {
            let entry = Entry::event("x".repeat(50).into());
            desk.registry.event(*run, entry, desk.now).unwrap();
            assert!(desk.registry.log_bytes() <= 1000);
        }
    }
    for run in runs {
        desk.finish(run);
    }
}
