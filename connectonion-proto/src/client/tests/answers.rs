//! Answers to questions of the agent: which of them come back when the line is lost.

use serde_json::json;
use switchboard_testing::play::Play as _;

use super::super::*;
use super::{Played, raw};
use crate::frame::{Answer, Response};

#[test]
fn questions_are_answered_by_their_id_and_a_late_answer_is_told() {
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
fn an_answer_that_had_not_left_when_the_line_was_lost_comes_back() {
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
fn an_answer_that_the_host_is_known_to_have_does_not_come_back() {
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
fn a_host_that_knows_no_queries_is_asked_for_one_receipt_only() {
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
