//! The registry of sessions, sentence by sentence.

use std::time::{Duration, Instant};

use connectonion_proto::replay::{Entry, LogLimits, Next};
use connectonion_proto::session::{
    Accepted, AgentError, AnswerError, ConnId, Connect, ConnectError, Connected, Finish,
    InputError, Owner, RegistryConfig, RegistryEvent, Removed, RequestKind, RunId, RunOver,
    RunRefused, RuntimeInput, SessionRegistry, Status,
};

const ALICE: Owner = Owner::Key([1; 32]);
const BOB: Owner = Owner::Key([2; 32]);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A registry with a clock, and what it told so far.
struct Desk {
    registry: SessionRegistry,
    now: Instant,
    sockets: u64,
    random: u128,
}

impl Desk {
    fn new() -> Self {
        Self::with(RegistryConfig::default())
    }

    fn with(config: RegistryConfig) -> Self {
        let now = Instant::now();
        Self {
            registry: SessionRegistry::new(config, now),
            now,
            sockets: 0,
            random: 0,
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.registry.handle_timeout(self.now);
    }

    fn try_connect(&mut self, request: Connect<'_>) -> Result<(ConnId, Connected), ConnectError> {
        self.sockets += 1;
        self.random += 1;
        let conn = ConnId(self.sockets);
        let connected = self
            .registry
            .connect(conn, request, self.random, self.now)?;
        Ok((conn, connected))
    }

    fn connect(&mut self, request: Connect<'_>) -> (ConnId, Connected) {
        self.try_connect(request).unwrap()
    }

    /// A session of Alice and a socket at it.
    fn alice(&mut self) -> (ConnId, String) {
        let (conn, connected) = self.connect(Connect::new(ALICE));
        (conn, connected.session_id.to_string())
    }

    fn back(&mut self, id: &str) -> (ConnId, Connected) {
        self.connect(Connect::new(ALICE).with_session_id(Some(id)))
    }

    fn input(&mut self, conn: ConnId, prompt: &str) -> Result<Accepted, InputError> {
        let input = RuntimeInput::new("input", prompt);
        self.registry.input(conn, input, self.now)
    }

    fn start(&mut self, conn: ConnId) -> RunId {
        match self.input(conn, "hello") {
            Ok(Accepted::Started(run)) => run,
            other => panic!("{other:?}"),
        }
    }

    fn event(&mut self, run: RunId, id: &str) {
        let entry = Entry::event(id.into()).with_id(id);
        self.registry.event(run, entry, self.now).unwrap();
    }

    fn finish(&mut self, run: RunId) {
        let finish = self.registry.finish(run, "OUTPUT".into(), self.now);
        assert_eq!(finish, Ok(Finish::Done));
    }

    fn fail(&mut self, run: RunId) -> Vec<RuntimeInput> {
        let unread = self.registry.fail(run, "ERROR".into(), self.now);
        unread.unwrap()
    }

    /// What a socket can take now.
    fn frames(&mut self, conn: ConnId) -> Vec<String> {
        let next = || self.registry.next_frame(conn);
        let frames = std::iter::from_fn(next).map(|next| match next {
            Next::Event(text) | Next::Closing(text) => text.as_str().to_owned(),
            Next::Gap(gap) => format!("gap {}", gap.missed),
        });
        frames.collect()
    }

    fn removed(&mut self) -> Option<(String, Removed, Vec<ConnId>, Option<RunId>)> {
        match self.registry.poll_event()? {
            RegistryEvent::Removed {
                session_id,
                why,
                sockets,
                run,
                ..
            } => Some((session_id.to_string(), why, sockets, run)),
            other => panic!("{other:?}"),
        }
    }

    fn status(&self, id: &str) -> Option<Status> {
        self.registry.status(Some(ALICE), id)
    }
}

#[test]
fn without_an_id_a_session_gets_a_uuid() {
    let mut desk = Desk::new();
    for id in [None, Some("")] {
        let (_, connected) = desk.connect(Connect::new(ALICE).with_session_id(id));
        assert_eq!(connected.status, Status::New);
        assert_eq!(connected.session_id.as_str().len(), 36);
    }
    assert_eq!(desk.registry.len(), 2);
}

#[test]
fn an_unknown_id_is_new_and_keeps_its_name() {
    let mut desk = Desk::new();
    let (_, connected) = desk.back("my talk");
    assert_eq!(connected.status, Status::New);
    assert_eq!(connected.session_id.as_str(), "my talk");
    let (_, connected) = desk.back(&"x".repeat(257));
    assert_eq!(connected.session_id.as_str().len(), 36);
}

#[test]
fn a_session_is_there_from_connect_on() {
    let mut desk = Desk::new();
    let (_, id) = desk.alice();
    assert_eq!(desk.status(&id), Some(Status::Connected));
    let (_, connected) = desk.back(&id);
    assert_eq!(connected.status, Status::Connected);
    assert_eq!(connected.session_id.as_str(), id);
}

#[test]
fn a_running_session_says_so() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    assert_eq!(desk.status(&id), Some(Status::Running));
    assert_eq!(desk.back(&id).1.status, Status::Running);
    desk.finish(run);
    assert_eq!(desk.back(&id).1.status, Status::Connected);
}

#[test]
fn somebody_elses_id_gets_a_new_session_under_another_id() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    for owner in [BOB, Owner::Unsigned] {
        let request = Connect::new(owner).with_session_id(Some(&id));
        let (thief, connected) = desk.connect(request);
        assert_eq!(connected.status, Status::New);
        assert_ne!(connected.session_id.as_str(), id);
        desk.event(run, "secret");
        assert!(desk.frames(thief).is_empty());
        assert_eq!(desk.registry.status(Some(owner), &id), None);
    }
    assert_eq!(desk.registry.status(None, &id), None);
}

#[test]
fn the_owner_of_a_forgotten_session_is_the_one_that_the_storage_knows() {
    let mut desk = Desk::new();
    let stored = |owner| Connect::new(owner).with_session_id(Some("old"));
    let (_, connected) = desk.connect(stored(BOB).with_stored_owner(Some(ALICE)));
    assert_ne!(connected.session_id.as_str(), "old");
    let (_, connected) = desk.connect(stored(ALICE).with_stored_owner(Some(ALICE)));
    assert_eq!(connected.session_id.as_str(), "old");
}

#[test]
fn who_did_not_sign_is_known_by_the_id() {
    let mut desk = Desk::new();
    let (_, connected) = desk.connect(Connect::new(Owner::Unsigned));
    let id = connected.session_id.to_string();
    let request = Connect::new(Owner::Unsigned).with_session_id(Some(&id));
    assert_eq!(desk.connect(request).1.status, Status::Connected);
    let signed = Connect::new(ALICE).with_session_id(Some(&id));
    assert_eq!(desk.connect(signed).1.status, Status::New);
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
    let same = Ok((id.clone(), Status::Connected));
    assert_eq!(again(Connect::new(ALICE).with_session_id(Some(&id))), same);
    assert_eq!(again(Connect::new(ALICE)), same);
    let refused = Err(ConnectError::AlreadyConnected);
    assert_eq!(again(Connect::new(BOB).with_session_id(Some(&id))), refused);
    let other = Connect::new(ALICE).with_session_id(Some("other"));
    assert_eq!(again(other), refused);
    assert_eq!(desk.registry.len(), 1);
    let run = desk.start(conn);
    // Now a new session was meant.
    let again = desk.registry.connect(conn, Connect::new(ALICE), 9, now);
    assert_eq!(again, refused.map(|_: (String, Status)| unreachable!()));
    desk.finish(run);
}

#[test]
fn a_second_connect_loses_no_frame() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    let run = desk.start(conn);
    desk.event(run, "a");
    desk.finish(run);
    let request = Connect::new(ALICE).with_session_id(Some(&id));
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
    assert_eq!(desk.status(&id), Some(Status::Connected));
    desk.wait(Duration::from_millis(1));
    assert_eq!(desk.status(&id), None);
    let removed = desk.removed().unwrap();
    assert_eq!(removed, (id, Removed::Idle, vec![conn], None));
    assert_eq!(desk.registry.poll_timeout(), None);
}

#[test]
fn a_socket_of_a_removed_session_may_connect_again() {
    let mut desk = Desk::new();
    let (conn, id) = desk.alice();
    desk.wait(10 * MINUTE);
    assert_eq!(desk.input(conn, "hi"), Err(InputError::NotConnected));
    assert!(!desk.registry.heard(conn, desk.now));
    let request = Connect::new(ALICE).with_session_id(Some(&id));
    let now = desk.now;
    let connected = desk.registry.connect(conn, request, 9, now).unwrap();
    assert_eq!(connected.status, Status::New);
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
    assert_eq!(desk.status(&id), Some(Status::Connected));
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
    assert_eq!(desk.status(&id), Some(Status::Connected));
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
    assert_eq!(desk.status(&id), Some(Status::Running));
    desk.finish(run);
    desk.wait(9 * MINUTE);
    assert_eq!(desk.back(&id).1.status, Status::Connected);
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
    assert_eq!(desk.status(&id), Some(Status::Running));
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
    assert_eq!(desk.status(&id), Some(Status::Connected));
    assert!(desk.registry.poll_event().is_none());
}

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
        let request = Connect::new(ALICE).with_session_id(Some(&id));
        request.with_last_msg_id(last)
    };
    for (last, replayed) in [
        (Some("b"), vec!["c", "d"]),
        (Some("d"), vec![]),
        (Some("unknown"), vec!["a", "b", "c", "d"]),
        (None, vec!["a", "b", "c", "d"]),
    ] {
        let (conn, connected) = desk.connect(resume(last));
        assert_eq!(connected.status, Status::Running);
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
    let request = Connect::new(ALICE).with_session_id(Some(&id));
    let (conn, connected) = desk.connect(request.with_last_msg_id(Some("a")));
    assert_eq!(connected.status, Status::Connected);
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
    assert_eq!(desk.status(&id), Some(Status::Running));
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
    assert_eq!(desk.status(&id), Some(Status::Connected));
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
    let full = desk.try_connect(Connect::new(BOB)).unwrap_err();
    assert_eq!(full, ConnectError::TooManySessions);
    assert!(full.is_retryable());
    desk.finish(run);
    desk.connect(Connect::new(BOB));
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
    let third = desk.try_connect(Connect::new(ALICE).with_session_id(Some(&id)));
    assert_eq!(third.unwrap_err(), ConnectError::TooManySockets);
    let (other, _) = desk.alice();
    let run = desk.start(conn);
    assert_eq!(desk.input(other, "hi"), Err(InputError::TooManyRuns));
    desk.finish(run);
    desk.start(other);
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
    assert_eq!(desk.status(&id), Some(Status::Connected));
}
