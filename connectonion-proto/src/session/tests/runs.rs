//! Runs, sentence by sentence: what is seen of them, said to them, and left of them.

use crate::frame::SessionState;
use crate::replay::{Entry, LogLimits};
use crate::session::run::AnswerError;
use crate::session::{
    Accepted, AgentError, Finished, InputError, RunOver, RunRefused, SessionRequest,
};

use super::clocked::{ALICE, HostRuntime, config};

#[test]
fn a_client_that_comes_back_gets_what_it_has_not_shown() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    for event in ["a", "b", "c"] {
        runtime.event(run, event);
    }
    runtime.registry.disconnect(conn, runtime.now);
    runtime.event(run, "d");
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
        let (conn, connected) = runtime.connect(resume(last));
        assert_eq!(connected.status, SessionState::Running);
        assert_eq!(connected.gap, None);
        assert_eq!(runtime.frames(conn), replayed, "{last:?}");
    }
    let (conn, _) = runtime.connect(resume(Some("c")));
    runtime.finish(run);
    assert_eq!(runtime.frames(conn), ["d", "OUTPUT"]);
}

#[test]
fn what_ended_while_nobody_watched_is_not_replayed() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    runtime.event(run, "a");
    runtime.registry.disconnect(conn, runtime.now);
    runtime.finish(run);
    let request = SessionRequest::new(ALICE).with_session_id(Some(&id));
    let (conn, connected) = runtime.connect(request.with_last_msg_id(Some("a")));
    assert_eq!(connected.status, SessionState::Connected);
    assert!(runtime.frames(conn).is_empty());
    assert_eq!(runtime.registry.log_bytes(), 0);
}

#[test]
fn a_gap_is_told_to_those_who_come_back_and_to_those_who_are_slow() {
    let log = LogLimits::default().with_max_events(2);
    let mut runtime = HostRuntime::with(config(|it| it.log = log));
    let (slow, id) = runtime.alice();
    let run = runtime.start(slow);
    for event in ["a", "b", "c"] {
        runtime.event(run, event);
    }
    let (conn, connected) = runtime.back(&id);
    assert_eq!(connected.gap.map(|gap| gap.missed), Some(1));
    assert_eq!(runtime.frames(conn), ["b", "c"]);
    assert_eq!(runtime.frames(slow), ["gap 1", "b", "c"]);
}

#[test]
fn all_sockets_of_a_session_see_everything_once() {
    let mut runtime = HostRuntime::new();
    let (first, id) = runtime.alice();
    let (second, _) = runtime.back(&id);
    let run = runtime.start(first);
    runtime.event(run, "a");
    runtime.event(run, "b");
    let ready: Vec<_> = std::iter::from_fn(|| runtime.registry.poll_ready()).collect();
    assert_eq!(ready, [first, second]);
    assert_eq!(runtime.frames(first), ["a", "b"]);
    runtime.finish(run);
    assert_eq!(runtime.frames(first), ["OUTPUT"]);
    assert!(runtime.registry.log_bytes() > 0);
    assert_eq!(runtime.frames(second), ["a", "b", "OUTPUT"]);
    assert_eq!(runtime.registry.log_bytes(), 0);
}

#[test]
fn a_slow_socket_gets_the_end_of_a_run_before_the_next_one() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    runtime.event(run, "a");
    runtime.finish(run);
    let run = runtime.start(conn);
    runtime.event(run, "b");
    assert_eq!(runtime.frames(conn), ["a", "OUTPUT", "b"]);
    let (other, _) = runtime.back(&id);
    assert_eq!(runtime.frames(other), ["b"]);
}

#[test]
fn an_input_while_the_agent_runs_waits_for_it() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let (other, _) = runtime.back(&id);
    let run = runtime.start(conn);
    assert_eq!(
        runtime.input(other, "say please"),
        Ok(Accepted::Queued(run))
    );
    assert_eq!(runtime.input(other, ""), Err(InputError::NoPrompt));
    let inputs = runtime.registry.run_mut(run).unwrap().take_inputs();
    assert_eq!(inputs.len(), 1);
    assert_eq!(inputs[0].text, "say please");
    runtime.finish(run);
}

#[test]
fn a_run_with_a_waiting_input_does_not_finish() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    assert_eq!(runtime.input(conn, "too late?"), Ok(Accepted::Queued(run)));
    let finish = runtime.registry.finish(run, "OUTPUT".into(), runtime.now);
    let Ok(Finished::More(inputs)) = finish else {
        panic!("{finish:?}")
    };
    assert_eq!(inputs[0].text, "too late?");
    assert!(runtime.frames(conn).is_empty());
    assert_eq!(runtime.status(&id), Some(SessionState::Running));
    runtime.finish(run);
    assert_eq!(runtime.frames(conn), ["OUTPUT"]);
}

#[test]
fn an_agent_that_reads_no_more_gets_no_more() {
    let mut runtime = HostRuntime::new();
    let (conn, _) = runtime.alice();
    let run = runtime.start(conn);
    assert_eq!(
        runtime.registry.run_mut(run).unwrap().finish(),
        Finished::Done
    );
    let late = runtime.input(conn, "late").unwrap_err();
    assert_eq!(late, InputError::Running(RunRefused::TooLate));
    assert_eq!(late.to_string(), "session already has a running agent");
    assert!(late.is_retryable());
    runtime.finish(run);
    runtime.start(conn);
}

#[test]
fn after_an_error_the_session_is_usable_at_once() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    assert!(runtime.input(conn, "unread").is_ok());
    let unread = runtime.fail(run);
    assert_eq!(unread[0].text, "unread");
    assert_eq!(runtime.status(&id), Some(SessionState::Connected));
    assert_eq!(runtime.frames(conn), ["ERROR"]);
    assert_eq!(runtime.back(&id).1.failure, None);
    runtime.start(conn);
}

#[test]
fn an_error_that_nobody_saw_is_told_to_the_next_socket_and_not_again() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    runtime.registry.disconnect(conn, runtime.now);
    runtime.fail(run);
    let failure = runtime.back(&id).1.failure.unwrap();
    assert_eq!(failure.as_str(), "ERROR");
    assert_eq!(runtime.back(&id).1.failure, None);
}

#[test]
fn an_error_is_forgotten_when_the_next_run_begins() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let run = runtime.start(conn);
    runtime.fail(run);
    let run = runtime.start(conn);
    runtime.registry.disconnect(conn, runtime.now);
    runtime.finish(run);
    assert_eq!(runtime.back(&id).1.failure, None);
}

#[test]
fn an_answer_reaches_its_question_from_any_socket_and_once() {
    let mut runtime = HostRuntime::new();
    let (first, id) = runtime.alice();
    let (second, _) = runtime.back(&id);
    let run = runtime.start(first);
    let state = runtime.registry.run_mut(run).unwrap();
    state.ask("APPROVAL_RESPONSE", "q1").unwrap();
    runtime.registry.disconnect(first, runtime.now);
    let (third, _) = runtime.back(&id);
    let mut answer = |conn| {
        let kind = "APPROVAL_RESPONSE";
        runtime.registry.answer(conn, kind, Some("q1"))
    };
    assert_eq!(answer(third).unwrap(), (run, "q1".into()));
    let late = Err(AgentError::Answer(AnswerError::Stale));
    assert_eq!(answer(second), late);
    assert_eq!(answer(first), Err(AgentError::NotConnected));
}

#[test]
fn an_answer_after_the_run_is_stale() {
    let mut runtime = HostRuntime::new();
    let (conn, _) = runtime.alice();
    let run = runtime.start(conn);
    let state = runtime.registry.run_mut(run).unwrap();
    state.ask("ASK_USER_RESPONSE", "q1").unwrap();
    runtime.finish(run);
    let run = runtime.start(conn);
    for id in [None, Some("q1")] {
        let answer = runtime.registry.answer(conn, "ASK_USER_RESPONSE", id);
        assert_eq!(answer, Err(AgentError::Answer(AnswerError::Stale)));
    }
    runtime.finish(run);
    let answer = runtime.registry.answer(conn, "ASK_USER_RESPONSE", None);
    assert_eq!(answer, Err(AgentError::Answer(AnswerError::Stale)));
}

#[test]
fn an_interrupt_needs_a_run() {
    let mut runtime = HostRuntime::new();
    let (conn, _) = runtime.alice();
    let idle = runtime.registry.interrupt(conn).unwrap_err();
    assert_eq!(idle.to_string(), "interrupt requires an active turn");
    let run = runtime.start(conn);
    assert_eq!(runtime.registry.interrupt(conn), Ok(run));
    assert!(runtime.registry.run_mut(run).unwrap().take_interrupt());
    assert!(!runtime.registry.run_mut(run).unwrap().take_interrupt());
}

#[test]
fn an_agent_of_an_earlier_run_reaches_nothing() {
    let mut runtime = HostRuntime::new();
    let (conn, id) = runtime.alice();
    let old = runtime.start(conn);
    assert!(runtime.registry.remove(&id));
    assert_eq!(runtime.removed().unwrap().3, Some(old));
    let (conn, _) = runtime.back(&id);
    let run = runtime.start(conn);
    let now = runtime.now;
    let registry = &mut runtime.registry;
    let event = Entry::event("stale".into());
    assert_eq!(registry.event(old, event, now), Err(RunOver));
    assert_eq!(registry.finish(old, "stale".into(), now), Err(RunOver));
    assert_eq!(registry.fail(old, "stale".into(), now), Err(RunOver));
    assert!(registry.run_mut(old).is_err());
    runtime.finish(run);
    assert_eq!(runtime.frames(conn), ["OUTPUT"]);
}

#[test]
fn the_events_of_all_sessions_together_are_bounded() {
    let mut runtime = HostRuntime::with(config(|it| it.max_log_bytes = 1000));
    let runs: Vec<_> = (0..10)
        .map(|_| {
            let (conn, _) = runtime.alice();
            runtime.start(conn)
        })
        .collect();
    for _ in 0..20 {
        for run in &runs {
            let entry = Entry::event("x".repeat(50).into());
            runtime.registry.event(*run, entry, runtime.now).unwrap();
            assert!(runtime.registry.log_bytes() <= 1000);
        }
    }
    for run in runs {
        runtime.finish(run);
    }
}
