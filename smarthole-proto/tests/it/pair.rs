//! Clients, connections and the hub together, under virtual time.

use std::time::{Duration, SystemTime};

use rpc_core::testing::Side;
use rpc_core::{CloseReason, Machine as _};
use smarthole_proto::client::{ClientConfig, ClientEvent};
use smarthole_proto::error::ErrorCode;
use smarthole_proto::frame::{Answer, InputMethod, Notification, Priority, Registration};
use smarthole_proto::hub::{HubConfig, HubEvent, Ignored, Input, Outcome, Unroutable};
use smarthole_proto::router::{Candidate, RouteRequest};

use crate::house::{House, config};

const SECOND: Duration = Duration::from_secs(1);

/// How the settled message ended at every client.
fn outcomes(events: &[HubEvent]) -> Vec<(String, Outcome)> {
    let settled = events.iter().filter_map(|event| match event {
        HubEvent::Settled { outcomes, .. } => Some(outcomes),
        _ => None,
    });
    let settled: Vec<_> = settled.collect();
    assert_eq!(settled.len(), 1, "{events:?}");
    let outcome =
        |one: &smarthole_proto::hub::Settlement| (one.client.to_string(), one.outcome.clone());
    settled[0].iter().map(outcome).collect()
}

fn rejected(reason: &'static str) -> Outcome {
    Outcome::Rejected {
        reason: reason.into(),
    }
}

#[test]
fn the_whole_conversation_matches_the_specification() {
    let mut house = House::new();
    let notes = house.client("notes");
    let client_id = house.hub.client("notes").unwrap().id.to_string();
    let id = house.say("notes: remember to buy milk");
    let line = &mut house.lines[notes];
    line.client.respond(&id, Answer::Ack).unwrap();
    let shown = Notification {
        title: Some("Note Saved".into()),
        priority: Some(Priority::Low),
        ..Notification::new("Your note has been saved.")
    };
    line.client
        .respond(&id, Answer::Notification(shown))
        .unwrap();
    house.settle();
    house.advance(30 * SECOND);
    let now = house.now;
    house.lines[notes].client.close(now);
    house.settle();
    // Ids are random, also here.
    let trace = house.lines[notes].trace().to_string();
    insta::assert_snapshot!(trace.replace(&id, "msg-1").replace(&client_id, "c-1"));
    assert!(house.hub.client("notes").is_none());
}

#[test]
fn a_taken_name_is_free_once_its_client_has_left() {
    let mut house = House::new();
    let first = house.client("notes");
    let second = house.open(config("notes"));
    let events = house.lines[second].take_client_events();
    let Some(ClientEvent::Refused(error)) = events.first() else {
        panic!("{events:?}");
    };
    assert_eq!(error.code, ErrorCode::DuplicateName);
    let now = house.now;
    house.lines[first].client.close(now);
    house.settle();
    house.client("notes");
}

#[test]
fn a_rejection_reaches_the_router_with_its_reason() {
    let mut house = House::new();
    let (notes, lights) = (house.client("notes"), house.client("lights"));
    let id = house.say("hello");
    let request = house.choose(&["notes"]);
    assert_eq!(request.candidates.len(), 2);
    assert_eq!(house.got(notes), [id.as_str()]);
    let line = &mut house.lines[notes];
    line.client
        .respond(&id, Answer::reject(Some("not mine".into())))
        .unwrap();
    house.settle();
    let request = house.choose(&["lights"]);
    assert_eq!(request.excluded, ["notes"]);
    assert_eq!(request.rejections[0].reason, "not mine");
    assert_eq!(house.got(lights), [id.as_str()]);
    house.lines[lights]
        .client
        .respond(&id, Answer::Ack)
        .unwrap();
    house.settle();
    let expected = [
        ("notes".to_owned(), rejected("not mine")),
        ("lights".to_owned(), Outcome::Acked),
    ];
    assert_eq!(outcomes(&house.events()), expected);
}

#[test]
fn the_router_gets_capabilities_and_input_method() {
    let mut house = House::new();
    let registration = Registration {
        version: Some("1.0.0".into()),
        capabilities: vec!["tasks".into(), "reminders".into()],
        ..Registration::new("notes", "I keep notes.")
    };
    house.open(ClientConfig::new(registration).unwrap());
    let notes = Candidate {
        capabilities: vec!["tasks".into(), "reminders".into()].into(),
        ..Candidate::new("notes", "I keep notes.")
    };
    // A confidence above 1 counts as absent.
    for (confidence, told) in [(0.5, Some(0.5)), (1.5, None)] {
        let input = Input::voice("buy milk", Some(confidence));
        let wall = SystemTime::UNIX_EPOCH;
        house.hub.submit(input, house.now, wall).unwrap();
        house.settle();
        let expected = RouteRequest {
            input_method: InputMethod::Voice,
            confidence: told,
            candidates: vec![notes.clone()],
            ..RouteRequest::new("buy milk")
        };
        assert_eq!(house.question().request, expected);
    }
}

#[test]
fn both_ends_time_out_after_30_seconds() {
    let mut house = House::new();
    let notes = house.client("notes");
    let id = house.say("notes: hello");
    house.got(notes);
    house.advance(30 * SECOND - Duration::from_millis(1));
    assert_eq!(house.hub.in_flight(), 1);
    house.advance(Duration::from_millis(1));
    let overdue = ClientEvent::Overdue {
        id: id.as_str().into(),
    };
    assert_eq!(house.lines[notes].take_client_events(), [overdue]);
    let events = house.events();
    assert_eq!(outcomes(&events), [("notes".to_owned(), Outcome::TimedOut)]);
    assert!(events.iter().any(|event| matches!(
        event,
        HubEvent::Unroutable {
            why: Unroutable::Rejected,
            ..
        }
    )));
    // The client is not affected.
    house.lines[notes].client.respond(&id, Answer::Ack).unwrap();
    house.settle();
    assert!(matches!(
        &house.events()[..],
        [HubEvent::Acked { late: true, .. }]
    ));
    let next = house.say("notes: more");
    assert_eq!(house.got(notes), [next.as_str()]);
}

#[test]
fn a_message_for_two_ends_when_both_have_answered() {
    let mut house = House::new();
    let (notes, lights) = (house.client("notes"), house.client("lights"));
    let id = house.say("everybody");
    house.choose(&["lights", "notes"]);
    assert_eq!(house.got(notes), [id.as_str()]);
    assert_eq!(house.got(lights), [id.as_str()]);
    house.lines[lights]
        .client
        .respond(&id, Answer::Ack)
        .unwrap();
    house.advance(29 * SECOND);
    let shown = Notification::new("seen");
    house.lines[notes]
        .client
        .respond(&id, Answer::Notification(shown))
        .unwrap();
    house.settle();
    let expected = [
        ("lights".to_owned(), Outcome::Acked),
        ("notes".to_owned(), Outcome::Notified),
    ];
    assert_eq!(outcomes(&house.events()), expected);
    house.advance(60 * SECOND);
    assert_eq!(house.events(), []);
}

#[test]
fn pings_alone_keep_both_ends_connected() {
    let mut house = House::new();
    let notes = house.client("notes");
    house.events();
    house.advance(4 * 3600 * SECOND);
    assert_eq!(house.events(), []);
    assert!(house.lines[notes].take_client_events().is_empty());
    let lines = house.lines[notes].trace().lines();
    let pings = lines.filter(|line| line.ends_with("S> (ping)"));
    assert_eq!(pings.count(), 4 * 3600 / 30);
}

#[test]
fn a_half_open_connection_closes_10_seconds_after_a_ping() {
    let mut house = House::new();
    let notes = house.client("notes");
    house.events();
    house.lines[notes].mute_pongs();
    house.advance(40 * SECOND - Duration::from_millis(1));
    assert_eq!(house.events(), []);
    house.advance(Duration::from_millis(1));
    assert!(matches!(&house.events()[..], [HubEvent::Left { .. }]));
    let trace = house.lines[notes].trace().to_string();
    let last = |from: char| {
        let lines = house.lines[notes].trace().lines();
        let mut newest = lines.rev();
        let line = newest.find(|line| line.contains(&format!("ms {from}> ")));
        line.unwrap_or_default().to_owned()
    };
    let close = "+40000ms S> (close 1001 ";
    assert!(last('S').starts_with(close), "{trace}");
    // Anything that arrives is life to a client, and the server's ping has.
    let events = house.lines[notes].take_client_events();
    let closed = ClientEvent::Closed(CloseReason::Lost);
    assert!(events.len() == 1 && events[0] != closed, "{events:?}");
}

#[test]
fn meaningless_responses_are_harmless() {
    let mut house = House::new();
    let notes = house.client("notes");
    let id = house.say("notes: hello");
    house.events();
    for (frame, why) in [
        (
            r#"{"type":"response","payload":{"messageId":"msg-other","type":"ack","payload":{}}}"#
                .to_owned(),
            Some(Ignored::UnknownMessage),
        ),
        (
            format!(r#"{{"type":"response","payload":{{"messageId":"{id}","type":"later"}}}}"#),
            Some(Ignored::UnknownAnswer("later".into())),
        ),
        (
            format!(r#"{{"type":"response","payload":{{"messageId":"{id}","type":"reject"}}}}"#),
            None,
        ),
        ("nonsense".to_owned(), None),
        (r#"{"type":"message","payload":{}}"#.to_owned(), None),
    ] {
        house.lines[notes].inject(Side::Server, &frame);
        house.settle();
        let events = house.events();
        match (&events[..], why) {
            ([], None) => {}
            ([HubEvent::Ignored { why: told, .. }], Some(why)) => assert_eq!(*told, why),
            other => panic!("{frame}: {other:?}"),
        }
    }
    house.lines[notes].client.respond(&id, Answer::Ack).unwrap();
    house.settle();
    assert_eq!(outcomes(&house.events()).len(), 1);
}

#[test]
fn latency_counts_against_the_client() {
    let timeout = HubConfig {
        response_timeout: SECOND,
        ..HubConfig::default()
    };
    let mut house = House::with(timeout);
    let notes = house.client("notes");
    house.lines[notes].set_latency(Duration::from_millis(400));
    let id = house.say("notes: hello");
    house.advance(Duration::from_millis(400));
    assert_eq!(house.got(notes), [id.as_str()]);
    house.lines[notes].client.respond(&id, Answer::Ack).unwrap();
    house.advance(Duration::from_millis(400));
    let expected = [("notes".to_owned(), Outcome::Acked)];
    assert_eq!(outcomes(&house.events()), expected);
    house.lines[notes].set_latency(Duration::from_millis(600));
    let id = house.say("notes: hello");
    house.advance(Duration::from_millis(600));
    house.lines[notes].client.respond(&id, Answer::Ack).unwrap();
    house.advance(Duration::from_millis(600));
    let expected = [("notes".to_owned(), Outcome::TimedOut)];
    assert_eq!(outcomes(&house.events()), expected);
}
