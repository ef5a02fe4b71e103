//! Time: idle chats, questions, queues, pings.

use super::*;

#[test]
fn any_message_of_a_chat_restarts_its_timeout() {
    let mut played = Played::with(quiet());
    let id = played.chat();
    for members in [
        json!({"type": "chat.accepted", "taskId": "task_a"}),
        json!({"type": "chat.started"}),
        json!({"type": "chat.event", "event": {"type": "later"}}),
        json!({"type": "chat.event", "event": 7}),
        json!({"type": "chat.later"}),
    ] {
        played.wait(179 * SECOND);
        played.send(id, members);
    }
    played.wait(179 * SECOND);
    assert!(
        !played
            .updates()
            .iter()
            .any(|it| matches!(it, ChatUpdate::Ended(_)))
    );
    played.wait(SECOND);
    played.times_out();
}

#[test]
fn an_interactive_chat_has_no_timeout() {
    let mut played = Played::with(ClientConfig {
        chat_idle_timeout: None,
        ..quiet()
    });
    played.chat();
    played.wait(100_000 * SECOND);
    assert_eq!(played.events(), []);
    assert_eq!(played.conn.poll_timeout(), None);
}

#[test]
fn calls_time_out_after_ten_seconds() {
    let mut played = Played::new();
    let task_id = "task_a".parse::<TaskId>().unwrap();
    let status = played.conn.status(played.now).unwrap();
    let task = played.conn.task_status(&task_id, played.now).unwrap();
    played.wait(9 * SECOND);
    assert_eq!(played.events(), []);
    played.wait(SECOND);
    let timed_out: CallError<RpcError> = CallError::TimedOut {
        delivery: Delivery::Unknown,
    };
    let events = played.events();
    assert_eq!(events.len(), 2);
    assert!(events.contains(&ClientEvent::Reply {
        id: status,
        result: Err(timed_out.clone()),
    }));
    assert!(events.contains(&ClientEvent::Reply {
        id: task,
        result: Err(timed_out),
    }));
}

#[test]
fn a_queued_chat_waits_while_the_running_one_progresses() {
    let mut played = Played::with(quiet());
    let runs = played.chat();
    let waits = played.chat();
    played.send(runs, json!({"type": "chat.started"}));
    played.send(waits, json!({"type": "chat.queued", "position": 1}));
    for _ in 0..10 {
        played.wait(170 * SECOND);
        played.event(runs, &json!({"type": "text-delta", "text": "."}));
    }
    assert!(
        !played
            .updates()
            .iter()
            .any(|it| matches!(it, ChatUpdate::Ended(_)))
    );
    played.wait(180 * SECOND);
    let ends = played.updates();
    assert_eq!(ends.len(), 2);
    assert!(
        ends.iter()
            .all(|it| matches!(ended(Some(it)), Outcome::TimedOut { .. }))
    );
    assert_eq!(
        played.conn.next_timeout().map(|(_, what)| what),
        Some("call")
    );
}

#[test]
fn a_forgotten_queued_chat_times_out_although_later_ones_progress() {
    let mut played = Played::with(quiet());
    let forgotten = played.chat();
    let busy = played.chat();
    played.send(forgotten, json!({"type": "chat.queued", "position": 1}));
    played.send(busy, json!({"type": "chat.started"}));
    for _ in 0..9 {
        played.wait(20 * SECOND);
        played.event(busy, &json!({"type": "text-delta", "text": "."}));
    }
    let ended = played.events().into_iter().filter_map(|event| match event {
        ClientEvent::Chat { id, update } => {
            matches!(update, ChatUpdate::Ended(Outcome::TimedOut { .. })).then_some(id)
        }
        _ => None,
    });
    assert_eq!(ended.collect::<Vec<_>>(), [forgotten]);
}

#[test]
fn a_chat_that_leaves_the_queue_gets_its_own_timeout() {
    let mut played = Played::with(quiet());
    let runs = played.chat();
    let waits = played.chat();
    played.send(waits, json!({"type": "chat.queued", "position": 1}));
    played.done(runs);
    played.wait(100 * SECOND);
    played.send(waits, json!({"type": "chat.started"}));
    played.events();
    played.wait(179 * SECOND);
    assert_eq!(played.events(), []);
    played.wait(SECOND);
    played.times_out();
}

#[test]
fn nothing_times_out_while_its_answer_may_be_unread() {
    let limits = Limits {
        max_events: 1,
        ..Limits::default()
    };
    let mut played = Played::with(ClientConfig { limits, ..quiet() });
    let id = played.chat();
    played.conn.status(played.now).unwrap();
    played.send(id, json!({"type": "chat.started"}));
    assert!(!played.conn.wants_input());
    played.wait(1_000 * SECOND);
    assert_eq!(played.events().len(), 1);
    played.conn.handle_timeout(played.now);
    assert_eq!(played.events(), []);
    // What has come meanwhile is read first.
    played.wait(SECOND);
    let events = played.events();
    assert!(
        matches!(&events[..], [ClientEvent::Reply { result: Err(_), .. }]),
        "{events:?}"
    );
}
