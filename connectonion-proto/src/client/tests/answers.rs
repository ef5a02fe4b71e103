//! Answers to questions of the agent: which of them come back when the line is lost.

use serde_json::json;
use switchboard_testing::play::Play as _;

use super::super::*;
use super::{Played, raw};
use crate::frame::{Answer, Response};

#[test]
fn questions_are_answered_by_id_and_late_answers_reported() {
    let (mut played, _) = Played::running();
    played.take(&json!({"type": "ask_user", "question": "Which?", "id": "q", "ts": 1.0}));
    let answer = Response::new("q", Answer::AskUser(raw("\"red\"")));
    played.conn.respond(&answer, played.now).unwrap();
    assert_eq!(
        played.sent(),
        [
            json!({"type": "ASK_USER_RESPONSE", "answer": "red", "request_id": "q"}),
            // Its reply is the receipt.
            json!({"type": "SESSION_STATUS", "session": {"session_id": "s"}}),
        ]
    );
    played.events();
    let stale = json!({"type": "ERROR", "code": "STALE_ANSWER", "request_id": "q",
        "message": "stale"});
    let event = played.after(&stale);
    assert!(matches!(event, ClientEvent::AnswerRefused { request_id: Some(id), .. } if id == "q"));
    assert_eq!(played.conn.state(), ClientState::Running);
}

#[test]
fn an_unsent_answer_is_returned_when_the_connection_is_lost() {
    let (mut played, _) = Played::running();
    let sent = Response::new("q1", Answer::PlanReview("yes".into()));
    let unsent = Response::new("q2", Answer::PlanReview("no".into()));
    played.conn.respond(&sent, played.now).unwrap();
    played.sent();
    played.conn.respond(&unsent, played.now).unwrap();
    let events = played.lose();
    assert!(matches!(&events[0], ClientEvent::RunEnded(Err(lost))
        if lost.delivery() == Delivery::Delivered));
    assert_eq!(events[1], ClientEvent::Unconfirmed(sent));
    assert_eq!(events[2], ClientEvent::Unsent(unsent));
    assert_eq!(events[3], ClientEvent::Closed(CloseReason::Lost));
    assert_eq!(events.len(), 4);
}

#[test]
fn a_delivered_answer_is_not_returned() {
    let (mut played, _) = Played::running();
    for id in ["q1", "q2", "q3"] {
        let answer = Response::new(id, Answer::PlanReview("yes".into()));
        played.conn.respond(&answer, played.now).unwrap();
    }
    played.sent();
    // The host handles frames in order, so these are the receipts of the first two.
    for _ in 0..2 {
        played.take(&json!({"type": "SESSION_STATUS", "session_id": "s-1", "status": "running"}));
    }
    let events = played.lose();
    let left = |event: &ClientEvent| match event {
        ClientEvent::Unconfirmed(answer) => answer.request_id.clone(),
        _ => None,
    };
    let left: Vec<_> = events.iter().filter_map(left).collect();
    assert_eq!(left, ["q3"]);
}

#[test]
fn a_host_without_receipts_is_queried_once() {
    let complaints = [
        json!({"type": "ERROR", "message": "no such frame: SESSION_STATUS"}),
        json!({"type": "ERROR", "message": "what?", "received": "{\"type\":\"SESSION_STATUS\"}"}),
    ];
    for complaint in complaints {
        let (mut played, _) = Played::running();
        let answer = |id| Response::new(id, Answer::PlanReview("yes".into()));
        played.conn.respond(&answer("q1"), played.now).unwrap();
        assert_eq!(played.sent().len(), 2);
        played.take(&complaint);
        assert_eq!(played.events(), [], "nobody has asked for this");
        assert_eq!(played.conn.state(), ClientState::Running);
        played.conn.respond(&answer("q2"), played.now).unwrap();
        assert_eq!(played.sent().len(), 1, "the answer alone");
        let events = played.lose();
        assert_eq!(events[1], ClientEvent::Unconfirmed(answer("q2")));
    }
}
