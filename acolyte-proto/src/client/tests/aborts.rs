//! Chats that this side ends.

use super::*;

fn answer(played: &mut Played, abort: CallId, chat: CallId, aborted: bool) {
    played.send(
        abort,
        json!({"type": "chat.abort.result", "requestId": chat.to_string(), "aborted": aborted}),
    );
}

fn started() -> (Played, CallId, CallId) {
    let mut played = Played::new();
    let chat = played.chat();
    played.send(chat, json!({"type": "chat.started"}));
    played.events();
    let abort = played.conn.abort(chat, played.now).unwrap();
    played.sent();
    (played, chat, abort)
}

#[test]
fn an_abort_ends_a_chat_that_sends_nothing_more() {
    let (mut played, chat, abort) = started();
    answer(&mut played, abort, chat, true);
    played.done(chat);
    let events = played.events();
    let update = ChatUpdate::Ended(Outcome::Aborted { error: None });
    let result = Ok(CallValue::Aborted(true));
    assert_eq!(
        events,
        [
            ClientEvent::Chat { id: chat, update },
            ClientEvent::Reply { id: abort, result },
        ]
    );
    assert_eq!(
        (played.conn.in_flight(), played.conn.stray_frames()),
        (0, 1)
    );
}

#[test]
fn an_error_before_the_abort_reply_ends_the_aborted_chat() {
    let (mut played, chat, abort) = started();
    let error = json!({"type": "chat.error", "errorMessage": "aborted", "errorCode": "E_ABORTED"});
    played.send(chat, error);
    answer(&mut played, abort, chat, true);
    let events = played.events();
    let [
        ClientEvent::Chat {
            update: ChatUpdate::Ended(Outcome::Aborted { error: Some(error) }),
            ..
        },
        ClientEvent::Reply {
            result: Ok(CallValue::Aborted(true)),
            ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(error.code.as_deref(), Some("E_ABORTED"));
}

#[test]
fn a_reply_before_the_abort_reply_completes_the_chat() {
    let (mut played, chat, abort) = started();
    played.done(chat);
    answer(&mut played, abort, chat, true);
    let events = played.events();
    assert!(
        matches!(
            &events[..],
            [
                ClientEvent::Chat {
                    update: ChatUpdate::Ended(Outcome::Done(_)),
                    ..
                },
                ClientEvent::Reply {
                    result: Ok(CallValue::Aborted(true)),
                    ..
                },
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn an_aborted_chat_unknown_to_the_server_ends() {
    let (mut played, chat, abort) = started();
    assert!(played.conn.set_idle_timeout(chat, None, played.now));
    answer(&mut played, abort, chat, false);
    assert!(matches!(
        played.events()[..],
        [ClientEvent::Reply {
            result: Ok(CallValue::Aborted(false)),
            ..
        }]
    ));
    played.wait(10 * SECOND);
    played.times_out();
}

#[test]
fn a_failed_abort_restores_the_chats_timeout() {
    let (mut played, chat, abort) = started();
    answer(&mut played, abort, chat, false);
    played.event(chat, &json!({"type": "text-delta", "text": "still here"}));
    assert_eq!(played.events().len(), 2);
    played.wait(179 * SECOND);
    assert_eq!(played.events(), []);
    played.wait(SECOND);
    played.times_out();
}

#[test]
fn an_unanswered_abort_ends_the_chat() {
    let (mut played, chat, _) = started();
    assert!(played.conn.set_idle_timeout(chat, None, played.now));
    played.wait(10 * SECOND);
    let events = played.events();
    assert!(
        matches!(
            &events[..],
            [
                ClientEvent::Chat {
                    update: ChatUpdate::Ended(Outcome::TimedOut { .. }),
                    ..
                },
                ClientEvent::Reply {
                    result: Err(CallError::TimedOut { .. }),
                    ..
                },
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn a_refused_or_malformed_abort_reply_does_not_leave_the_chat_pending() {
    for answer in [
        json!({"type": "error", "error": "Invalid RPC message"}),
        json!({"type": "chat.abort.result"}),
    ] {
        let (mut played, chat, abort) = started();
        assert!(played.conn.set_idle_timeout(chat, None, played.now));
        played.send(abort, answer);
        assert!(matches!(
            played.events()[..],
            [ClientEvent::Reply {
                result: Err(CallError::Remote(_)),
                ..
            }]
        ));
        played.wait(10 * SECOND);
        played.times_out();
    }
}

#[test]
fn only_chats_can_be_aborted() {
    let mut played = Played::new();
    let status = played.conn.status(played.now).unwrap();
    let chat = played.chat();
    played.done(chat);
    for id in [status, chat] {
        assert_eq!(played.conn.abort(id, played.now), Err(Refused::UnknownId));
    }
}

#[test]
fn a_dropped_chat_is_aborted_and_emits_nothing_more() {
    let mut played = Played::new();
    let chat = played.chat();
    assert!(played.conn.cancel(chat, played.now));
    let sent = played.sent();
    assert_eq!(sent[0]["type"], "chat.abort");
    assert_eq!(sent[0]["payload"]["requestId"], chat.to_string());
    let abort = CallId::parse(sent[0]["id"].as_str().unwrap()).unwrap();
    played.event(chat, &json!({"type": "text-delta", "text": "late"}));
    answer(&mut played, abort, chat, true);
    assert_eq!(played.events(), []);
    assert_eq!(
        (played.conn.in_flight(), played.conn.stray_frames()),
        (0, 1)
    );
    assert!(!played.conn.cancel(chat, played.now));
}

#[test]
fn an_abort_waits_for_room_in_the_outbox() {
    let limits = Limits {
        max_outbox_frames: 2,
        ..Limits::default()
    };
    let mut played = Played::with(ClientConfig {
        limits,
        ..ClientConfig::default()
    });
    let chat = played.chat();
    played.conn.status(played.now).unwrap();
    played.conn.status(played.now).unwrap();
    assert!(played.conn.cancel(chat, played.now));
    let kinds: Vec<_> = played.sent().iter().map(|it| it["type"].clone()).collect();
    assert_eq!(kinds, ["status.get", "status.get", "chat.abort"]);
}

#[test]
fn closing_sends_pending_aborts_first() {
    let mut played = Played::new();
    let chat = played.chat();
    played.conn.cancel(chat, played.now);
    played.conn.close(played.now);
    let sent = played.sent();
    assert_eq!(sent[0]["type"], "chat.abort");
    assert_eq!(sent[1], json!(1000));
}

#[test]
fn a_chat_that_waits_too_long_is_aborted_at_the_server() {
    let mut played = Played::new();
    let chat = played.chat();
    played.wait(180 * SECOND);
    let updates = played.updates();
    assert_eq!(
        ended(updates.last()),
        &Outcome::TimedOut {
            delivery: Delivery::Unknown
        }
    );
    let aborts = |sent: &Value| sent["payload"]["requestId"] == chat.to_string();
    assert!(played.sent().iter().any(aborts));
}
