//! Runs, sentence by sentence: what is seen of them, said to them, and left of them.

use crate::frame::{Answer, EventKind, SessionState};
use crate::hub::{AppError, HubEvent, Prompt, Reply};
use crate::limits::AUTHENTICATE_FIRST;
use crate::replay::LogLimits;

use super::play::{ALICE, Accepted, Ask, Play, config};
use crate::hub::agent::MAX_QUESTIONS;

#[test]
fn a_returning_client_gets_what_it_has_not_seen() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    for event in ["a", "b", "c"] {
        play.event(run, event);
    }
    play.disconnect(conn);
    play.event(run, "d");
    let resume = |last| {
        let ask = Ask::new(ALICE).with_session_id(Some(&id));
        ask.with_last_msg_id(last)
    };
    for (last, replayed) in [
        (Some("b"), vec!["c", "d"]),
        (Some("d"), vec![]),
        (Some("unknown"), vec!["a", "b", "c", "d"]),
        (None, vec!["a", "b", "c", "d"]),
    ] {
        let (conn, connected) = play.connect(resume(last));
        assert_eq!(connected.status, SessionState::Running);
        assert!(!connected.has_session);
        assert_eq!(play.frames(conn), replayed, "{last:?}");
    }
    let (conn, _) = play.connect(resume(Some("c")));
    play.finish(run);
    assert_eq!(play.frames(conn), ["d", "OUTPUT"]);
}

#[test]
fn a_run_that_ended_unwatched_is_not_replayed() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    play.event(run, "a");
    play.disconnect(conn);
    play.finish(run);
    let request = Ask::new(ALICE).with_session_id(Some(&id));
    let (conn, connected) = play.connect(request.with_last_msg_id(Some("a")));
    assert_eq!(connected.status, SessionState::Connected);
    assert!(play.frames(conn).is_empty());
    assert_eq!(play.hub.log_bytes(), 0);
}

#[test]
fn returning_and_slow_clients_learn_of_a_gap() {
    let log = LogLimits {
        max_events: 2,
        ..LogLimits::default()
    };
    let mut play = Play::with(config(|it| it.log = log));
    let (slow, id) = play.alice();
    let run = play.start(slow);
    for event in ["a", "b", "c"] {
        play.event(run, event);
    }
    let (conn, connected) = play.back(&id);
    assert!(connected.has_session);
    assert_eq!(play.frames(conn), ["b", "c"]);
    assert_eq!(play.frames(slow), ["session_sync", "b", "c"]);
}

#[test]
fn all_sockets_of_a_session_see_everything_once() {
    let mut play = Play::new();
    let (first, id) = play.alice();
    let (second, _) = play.back(&id);
    let run = play.start(first);
    play.event(run, "a");
    play.event(run, "b");
    let ready: Vec<_> = std::iter::from_fn(|| play.hub.poll_ready()).collect();
    assert_eq!(ready, [first, second]);
    assert_eq!(play.frames(first), ["a", "b"]);
    play.finish(run);
    assert_eq!(play.frames(first), ["OUTPUT"]);
    assert!(play.hub.log_bytes() > 0);
    assert_eq!(play.frames(second), ["a", "b", "OUTPUT"]);
    assert_eq!(play.hub.log_bytes(), 0);
}

#[test]
fn a_slow_socket_gets_the_end_of_a_run_before_the_next_one() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    play.event(run, "a");
    play.finish(run);
    let run = play.start(conn);
    play.event(run, "b");
    assert_eq!(play.frames(conn), ["a", "OUTPUT", "b"]);
    let (other, _) = play.back(&id);
    assert_eq!(play.frames(other), ["b"]);
}

#[test]
fn an_input_during_a_run_waits() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let (other, _) = play.back(&id);
    let run = play.start(conn);
    assert_eq!(play.input(other, "say please"), Ok(Accepted::Queued(run)));
    assert_eq!(play.input(other, ""), Err("prompt required".to_owned()));
    let inputs = play.hub.next_inputs(run, play.now).unwrap();
    assert_eq!(inputs.len(), 1);
    assert_eq!(inputs[0].text, "say please");
    play.finish(run);
}

#[test]
fn a_run_with_a_waiting_input_does_not_finish() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    assert_eq!(play.input(conn, "too late?"), Ok(Accepted::Queued(run)));
    let inputs = play.try_finish(run).unwrap();
    assert_eq!(inputs[0].text, "too late?");
    assert_eq!(play.frames(conn), ["assistant"]);
    assert_eq!(play.status(&id), SessionState::Running);
    play.finish(run);
    assert_eq!(play.frames(conn), ["OUTPUT"]);
}

#[test]
fn after_an_error_the_session_is_usable_at_once() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    play.fail(run).unwrap();
    assert_eq!(play.status(&id), SessionState::Connected);
    assert_eq!(play.frames(conn), ["ERROR"]);
    assert_eq!(play.back(&id).1.failure, None);
    let run = play.start(conn);
    // What was not read begins another run.
    assert!(play.input(conn, "unread").is_ok());
    play.reported.clear();
    play.fail(run).unwrap();
    let Some(HubEvent::Start { prompt, .. }) = play.reported.pop_front() else {
        panic!("a run")
    };
    assert_eq!(prompt.text, "unread");
}

#[test]
fn an_unseen_error_is_sent_to_the_next_connection_once() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    play.disconnect(conn);
    play.fail(run).unwrap();
    assert_eq!(play.back(&id).1.failure.as_deref(), Some("failed"));
    assert_eq!(play.back(&id).1.failure, None);
}

#[test]
fn an_error_is_forgotten_when_the_next_run_begins() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let run = play.start(conn);
    play.fail(run).unwrap();
    let run = play.start(conn);
    play.disconnect(conn);
    play.finish(run);
    assert_eq!(play.back(&id).1.failure, None);
}

#[test]
fn an_answer_reaches_its_question_from_any_socket_and_once() {
    let mut play = Play::new();
    let (first, id) = play.alice();
    let (second, _) = play.back(&id);
    let run = play.start(first);
    let asked = play.ask(run).unwrap();
    play.disconnect(first);
    let (third, _) = play.back(&id);
    let answered = Ok((run, asked.clone()));
    assert_eq!(play.answer(third, Some(&asked)), answered);
    let late = Err("stale".to_owned());
    assert_eq!(play.answer(second, Some(&asked)), late);
    let gone = Err(AUTHENTICATE_FIRST.to_owned());
    assert_eq!(play.answer(first, Some(&asked)), gone);
}

#[test]
fn an_answer_after_the_run_is_stale() {
    let mut play = Play::new();
    let (conn, _) = play.alice();
    let run = play.start(conn);
    let asked = play.ask(run).unwrap();
    play.finish(run);
    let run = play.start(conn);
    for id in [None, Some(&*asked)] {
        assert_eq!(play.answer(conn, id), Err("stale".to_owned()));
    }
    play.finish(run);
    assert_eq!(play.answer(conn, None), Err("stale".to_owned()));
}

#[test]
fn an_interrupt_needs_a_run() {
    let mut play = Play::new();
    let (conn, _) = play.alice();
    play.replies.clear();
    play.interrupt(conn);
    let Some((_, Reply::Frame(text))) = play.replies.pop_front() else {
        panic!("an ERROR")
    };
    assert!(text.as_str().contains("interrupt requires an active turn"));
    let run = play.start(conn);
    assert!(!play.hub.is_interrupted(run));
    play.interrupt(conn);
    let reported = play.reported.pop_back();
    assert!(matches!(reported, Some(HubEvent::Told(it)) if it == run));
    assert!(play.hub.is_interrupted(run));
}

#[test]
fn a_stale_agent_has_no_effect() {
    let mut play = Play::new();
    let (conn, id) = play.alice();
    let old = play.start(conn);
    play.hub.give_up_all(play.now);
    play.settle();
    assert_eq!(play.removed.front(), Some(&id));
    let (conn, _) = play.back(&id);
    let run = play.start(conn);
    assert_eq!(play.try_event(old, "stale"), Err(AppError::Over));
    assert_eq!(play.try_finish(old), Err(AppError::Over));
    assert_eq!(play.fail(old), Err(AppError::Over));
    assert_eq!(play.ask(old), Err(AppError::Over));
    play.finish(run);
    assert_eq!(play.frames(conn), ["OUTPUT"]);
}

#[test]
fn the_events_of_all_sessions_together_are_bounded() {
    let mut play = Play::with(config(|it| it.max_log_bytes = 5000));
    let runs: Vec<_> = (0..10)
        .map(|_| {
            let (conn, _) = play.alice();
            play.start(conn)
        })
        .collect();
    for _ in 0..20 {
        for run in &runs {
            play.event(*run, &"x".repeat(50));
            assert!(play.hub.log_bytes() <= 5000);
        }
    }
    for run in runs {
        play.finish(run);
    }
}

#[test]
fn inputs_are_read_once_and_in_order() {
    let mut play = Play::new();
    let (conn, _) = play.alice();
    let run = play.start(conn);
    for prompt in ["a", "b"] {
        assert_eq!(play.input(conn, prompt), Ok(Accepted::Queued(run)));
    }
    assert!(play.hub.has_inputs(run));
    let mut read = || {
        let inputs = play.hub.next_inputs(run, play.now).unwrap();
        let texts = inputs.iter().map(|it| it.text.to_string());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(read(), ["a", "b"]);
    assert!(read().is_empty());
    play.finish(run);
}

#[test]
fn waiting_inputs_are_bounded() {
    let mut play = Play::with(config(|it| {
        it.max_session_bytes = 20_000;
    }));
    let (conn, _) = play.alice();
    let run = play.start(conn);
    let refused = play.input(conn, &"x".repeat(20_000)).unwrap_err();
    assert!(refused.contains("this host takes 20000"), "{refused}");
    for _ in 0..64 {
        assert_eq!(play.input(conn, "x"), Ok(Accepted::Queued(run)));
    }
    let full = Err("too many inputs wait for the agent".to_owned());
    assert_eq!(play.input(conn, "x"), full);
    assert_eq!(play.hub.next_inputs(run, play.now).unwrap().len(), 64);
    assert_eq!(play.input(conn, "x"), Ok(Accepted::Queued(run)));
}

#[test]
fn an_input_that_comes_while_a_run_ends_begins_another_one() {
    let mut play = Play::new();
    let (conn, _) = play.alice();
    let run = play.start(conn);
    play.hub.finish(run, "done", play.now).unwrap();
    play.hub.input(conn, Prompt::new("late"), None, play.now);
    play.settle();
    let begun = play.reported.pop_back();
    assert!(matches!(begun, Some(HubEvent::Start { run: next, .. }) if next != run));
    assert_eq!(play.frames(conn), ["OUTPUT"]);
}

#[test]
fn an_answer_goes_to_the_question_it_names() {
    let mut play = Play::new();
    let (conn, _) = play.alice();
    let run = play.start(conn);
    let (a, b) = (play.ask(run).unwrap(), play.ask(run).unwrap());
    let vague = Err("request_id_required".to_owned());
    assert_eq!(play.answer(conn, None), vague);
    assert_eq!(play.answer(conn, Some(&b)), Ok((run, b.clone())));
    assert_eq!(play.answer(conn, Some(&b)), Err("stale".to_owned()));
    // Of another kind, it is for nothing.
    for id in [None, Some(&*a)] {
        let answer = play.answer_with(conn, id, Answer::PlanReview("fine".into()));
        assert_eq!(answer, Err("stale".to_owned()));
    }
    assert_eq!(play.answer(conn, None), Ok((run, a)));
}

#[test]
fn questions_are_bounded_and_end_when_withdrawn() {
    let mut play = Play::new();
    let (conn, _) = play.alice();
    let run = play.start(conn);
    let (a, b) = (play.ask(run).unwrap(), play.ask(run).unwrap());
    let others: Vec<_> = (2..MAX_QUESTIONS).map(|_| play.ask(run).unwrap()).collect();
    assert_eq!(play.ask(run), Err(AppError::NoRoom));
    for id in others.iter().chain([&a]) {
        play.hub.withdraw(run, id);
    }
    assert_eq!(play.answer(conn, Some(&a)), Err("stale".to_owned()));
    assert_eq!(play.answer(conn, None), Ok((run, b)));
    let event = EventKind::Assistant("no question".into());
    let refused = play.hub.ask(run, event, play.now);
    assert_eq!(refused, Err(AppError::NoRoom));
}

#[test]
fn a_late_answer_is_refused_with_the_known_error() {
    let frame = crate::hub::run::stale(Some("q1"));
    assert_eq!(
        serde_json::to_string(&frame).unwrap(),
        concat!(
            r#"{"type":"ERROR","message":"that request is no longer waiting for an answer","#,
            r#""code":"STALE_ANSWER","reason":"stale","request_id":"q1"}"#
        )
    );
}
