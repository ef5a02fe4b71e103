//! Tests of [`Hub`](super::Hub) by hand. Whole conversations are in `tests/it/hub.rs`.

mod history;
mod ids;
mod request;

use std::time::{Duration, SystemTime};

use rpc_core::{Instant, Str};

use super::*;
use crate::error::ErrorCode;
use crate::frame::{Answer, InputMethod, Notification, ServerFrame};
use crate::limits::{MAX_PAYLOAD, MAX_REASON};
use crate::router::{Choice, RouterError};

const WALL: SystemTime = SystemTime::UNIX_EPOCH;

struct Test {
    hub: Hub,
    now: Instant,
}

impl Test {
    /// A hub with these clients, on connections from 1.
    fn with(config: HubConfig, clients: &[&str]) -> Self {
        let now = Instant::now();
        let mut hub = Hub::new(config, 7, now);
        for (conn, name) in (1..).zip(clients) {
            hub.register(ConnId(conn), &Registration::new(*name, "d"))
                .unwrap();
        }
        let mut test = Self { hub, now };
        test.events();
        test
    }

    fn new(clients: &[&str]) -> Self {
        Self::with(HubConfig::default(), clients)
    }

    fn submit(&mut self, text: &str) -> Result<MessageId, HubError> {
        self.hub.submit(Input::text(text), self.now, WALL)
    }

    fn events(&mut self) -> Vec<HubEvent> {
        std::iter::from_fn(|| self.hub.poll_event()).collect()
    }

    fn frames(&mut self) -> Vec<(u64, Text)> {
        let frames = std::iter::from_fn(|| self.hub.poll_transmit());
        frames.map(|(conn, text)| (conn.0, text)).collect()
    }

    /// The open question; events before it are dropped.
    fn question(&mut self) -> RouteId {
        let events = self.events();
        let question = events.into_iter().rev().find_map(|event| match event {
            HubEvent::Route { route, .. } => Some(route),
            _ => None,
        });
        question.unwrap()
    }

    fn choose(&mut self, choices: Vec<Choice>) -> Result<usize, HubError> {
        let question = self.question();
        self.hub.decide(question, choices, self.now)
    }

    /// Says something and sends it to these clients.
    fn send(&mut self, clients: &[&str]) -> MessageId {
        let id = self.submit("x").unwrap();
        let choices = clients.iter().map(|name| Choice::new(*name)).collect();
        assert_eq!(self.choose(choices), Ok(clients.len()));
        self.frames();
        self.events();
        id
    }

    fn answer(&mut self, conn: u64, id: &MessageId, answer: Answer) -> Vec<HubEvent> {
        let response = Response::new(id.as_str(), answer);
        self.hub.respond(ConnId(conn), response);
        self.events()
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.hub.handle_timeout(self.now);
    }
}

fn reject(reason: &str) -> Answer {
    Answer::reject(Some(reason.into()))
}

fn whys(events: &[HubEvent]) -> Vec<&Ignored> {
    let events = events.iter();
    events
        .filter_map(|event| match event {
            HubEvent::Ignored { why, .. } => Some(why),
            _ => None,
        })
        .collect()
}

#[test]
fn names_are_unique_and_case_sensitive() {
    let mut test = Test::new(&["notes"]);
    let mut register = |conn, name: &str| {
        let registration = Registration::new(name, "d");
        let client_id = test.hub.register(ConnId(conn), &registration);
        client_id.map_err(|error| (error.code, error.message.to_string()))
    };
    assert_eq!(
        register(2, "notes"),
        Err((
            ErrorCode::DuplicateName,
            "A client with name 'notes' is already registered".to_owned()
        ))
    );
    let (code, _) = register(1, "!").unwrap_err();
    assert_eq!(code, ErrorCode::AlreadyRegistered);
    let (code, _) = register(2, "!").unwrap_err();
    assert_eq!(code, ErrorCode::InvalidName);
    let one = register(2, "Notes").unwrap();
    let other = register(3, "lights").unwrap();
    assert_ne!(one, other);
    let names = test.hub.clients().map(|one| one.registration.name.clone());
    assert_eq!(names.collect::<Vec<_>>(), ["notes", "Notes", "lights"]);
    assert_eq!(test.hub.client("Notes").unwrap().conn, ConnId(2));
    assert_eq!(test.hub.clients.of_conn(ConnId(3)).unwrap().id, other);
    assert_eq!(test.events().len(), 2);
}

#[test]
fn a_name_is_free_once_its_connection_is_lost() {
    let mut test = Test::new(&["notes"]);
    assert!(test.hub.disconnect(ConnId(1)));
    assert!(!test.hub.disconnect(ConnId(1)));
    let again = Registration::new("notes", "d");
    test.hub.register(ConnId(2), &again).unwrap();
    assert_eq!(test.hub.clients.of_conn(ConnId(1)), None);
    assert_eq!(test.hub.clients().len(), 1);
}

#[test]
fn description_length_is_counted_in_characters() {
    let mut test = Test::new(&[]);
    for (number, faces, fits) in [(1, 1_024, true), (2, 1_025, false)] {
        let registration = Registration::new(format!("c{number}"), "😀".repeat(faces));
        let registered = test.hub.register(ConnId(number), &registration);
        assert_eq!(registered.is_ok(), fits, "{faces}");
    }
}

#[test]
fn a_message_without_a_possible_receiver_is_refused_at_once() {
    let mut test = Test::new(&[]);
    assert_eq!(test.submit(""), Err(HubError::Blank));
    assert_eq!(test.submit(" \n\u{feff}"), Err(HubError::Blank));
    assert_eq!(test.submit("x"), Err(HubError::NoClients));
    assert!(HubError::NoClients.is_retryable() && !HubError::Blank.is_retryable());
    assert_eq!(test.hub.open_messages(), 0);
    assert_eq!(test.events(), []);
}

#[test]
fn a_frame_over_a_mebibyte_is_refused() {
    for prefix in ["", "notes: "] {
        let mut test = Test::new(&["notes"]);
        let mut text = format!("{prefix}x");
        test.submit(&text).unwrap();
        if prefix.is_empty() {
            test.choose(vec![Choice::new("notes")]).unwrap();
        }
        let room = MAX_PAYLOAD - test.frames()[0].1.len();
        // Two bytes as JSON each, and the odd one.
        text.push_str(&"\n".repeat(room / 2 - 1));
        text.push_str(&"x".repeat(2 + room % 2));
        test.submit(&text).unwrap();
        if prefix.is_empty() {
            let long = "why ".repeat(100);
            let choice = Choice {
                reason: Some(long.into()),
                ..Choice::new("notes")
            };
            assert_eq!(test.choose(vec![choice]), Ok(1));
        }
        let frame = test.frames().remove(0).1;
        assert_eq!(frame.len(), MAX_PAYLOAD);
        assert!(!frame.as_str().contains("routingReason"));
        text.push('x');
        let error = HubError::TooLarge {
            size: MAX_PAYLOAD + 1,
            max: MAX_PAYLOAD,
        };
        assert_eq!(test.submit(&text), Err(error));
    }
}

#[test]
fn an_oversized_direct_text_is_refused_only_if_rerouted() {
    for reroutes in [false, true] {
        let config = HubConfig {
            reroute_direct: reroutes,
            ..HubConfig::default()
        };
        let mut test = Test::with(config, &["notes", "lights"]);
        test.submit("notes: x").unwrap();
        let room = MAX_PAYLOAD - test.frames()[0].1.len();
        // Without its prefix it fills a frame, and with it does not fit.
        let text = format!("notes: x{}", "x".repeat(room));
        let said = test.submit(&text);
        assert_eq!(said.is_ok(), !reroutes, "{said:?}");
        let largest = MAX_PAYLOAD + "notes: ".len() + "false".len() - "true".len();
        if reroutes {
            let (size, max) = (largest, MAX_PAYLOAD);
            assert_eq!(said, Err(HubError::TooLarge { size, max }));
        }
        // What is taken finds its second way.
        let short = text.get(..text.len() - (largest - MAX_PAYLOAD)).unwrap();
        test.frames();
        let id = test.submit(short).unwrap();
        test.frames();
        test.events();
        let events = test.answer(1, &id, Answer::reject(Some("no".into())));
        let route = events.into_iter().find_map(|event| match event {
            HubEvent::Route { route, .. } => Some(route),
            _ => None,
        });
        assert_eq!(route.is_some(), reroutes);
        if let Some(route) = route {
            let choice = vec![Choice::new("lights")];
            assert_eq!(test.hub.decide(route, choice, test.now), Ok(1));
            assert_eq!(test.frames()[0].1.len(), MAX_PAYLOAD);
        }
    }
}

#[test]
fn a_blank_or_oversized_router_text_falls_back_to_the_users() {
    let mut test = Test::new(&["a", "b", "c", "d"]);
    test.submit("mine").unwrap();
    let large = "x".repeat(MAX_PAYLOAD);
    let choices = vec![
        Choice {
            text: Some(" ".into()),
            reason: Some("\n".into()),
            ..Choice::new("a")
        },
        Choice {
            text: Some(large.clone().into()),
            reason: Some("r".into()),
            ..Choice::new("b")
        },
        Choice {
            text: Some("yours".into()),
            reason: Some("r".into()),
            ..Choice::new("c")
        },
        // The text fits without the reason.
        Choice {
            text: Some("yours".into()),
            reason: Some(large.into()),
            ..Choice::new("d")
        },
    ];
    assert_eq!(test.choose(choices), Ok(4));
    let texts: Vec<_> = test
        .events()
        .into_iter()
        .map(|event| match event {
            HubEvent::Delivered { message, .. } => {
                let reason = message.metadata.routing_reason;
                (message.text.to_string(), reason.is_some())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("mine", false),
        ("mine", false),
        ("yours", true),
        ("yours", false),
    ];
    assert_eq!(texts, expected.map(|(text, why)| (text.to_owned(), why)));
}

#[test]
fn equal_frames_are_encoded_once() {
    let mut test = Test::new(&["a", "b", "c"]);
    test.submit("x").unwrap();
    let choices = vec![
        Choice {
            reason: Some("r".into()),
            ..Choice::new("a")
        },
        Choice::new("b"),
        Choice {
            reason: Some("r".into()),
            ..Choice::new("c")
        },
    ];
    test.choose(choices).unwrap();
    let bytes = test.frames().into_iter();
    let at: Vec<_> = bytes.map(|(_, text)| text.into_bytes().as_ptr()).collect();
    assert_eq!(at[0], at[2]);
    assert_ne!(at[0], at[1]);
}

#[test]
fn confidence_is_sent_for_voice_only_and_within_bounds() {
    let mut test = Test::new(&["notes"]);
    let typed = Input {
        confidence: Some(0.5),
        ..Input::text("notes: x")
    };
    let touched = Input {
        method: InputMethod::Other("touch".into()),
        ..Input::voice("notes: x", Some(0.5))
    };
    let voice = |sure| Input::voice("notes: x", sure);
    for (input, method, confidence) in [
        (voice(Some(0.95)), "voice", Some(0.95)),
        (voice(Some(1.0)), "voice", Some(1.0)),
        (voice(Some(1.01)), "voice", None),
        (voice(Some(0.0)), "voice", Some(0.0)),
        (voice(Some(-0.01)), "voice", None),
        (voice(Some(f64::NAN)), "voice", None),
        (voice(None), "voice", None),
        (typed, "text", None),
        (touched, "touch", None),
    ] {
        test.hub.submit(input, test.now, WALL).unwrap();
        let frame = test.frames().remove(0).1;
        let limits = rpc_core::Limits::default();
        let ServerFrame::Message(message) = ServerFrame::decode(frame.as_str(), &limits).unwrap()
        else {
            panic!("{}", frame.as_str());
        };
        assert_eq!(message.metadata.input_method.name(), method);
        assert_eq!(message.metadata.confidence, confidence);
    }
}

#[test]
fn open_messages_are_bounded_in_number_and_in_bytes() {
    let config = HubConfig {
        max_open_bytes: 9,
        ..HubConfig::default()
    };
    let mut test = Test::with(config, &["notes"]);
    let one = test.submit("notes: x").unwrap();
    assert_eq!(test.submit("yz"), Err(HubError::Busy));
    test.submit("y").unwrap();
    test.answer(1, &one, Answer::Ack);
    test.submit("z").unwrap();
    assert_eq!(test.hub.open_messages(), 2);
    let mut test = Test::with(HubConfig::default(), &["notes"]);
    for _ in 0..10_000 {
        test.submit("notes: x").unwrap();
    }
    assert_eq!(test.submit("notes: x"), Err(HubError::Busy));
}

#[test]
fn waiting_frames_and_events_are_bounded() {
    let config = HubConfig {
        max_queued: 3,
        ..HubConfig::default()
    };
    let mut test = Test::with(config, &["a", "b"]);
    let id = test.send(&["a"]);
    test.submit("x").unwrap();
    let question = test.question();
    test.submit("a: x").unwrap();
    test.submit("a: x").unwrap();
    let both = || vec![Choice::new("a"), Choice::new("b")];
    let decided = test.hub.decide(question, both(), test.now);
    assert_eq!(decided, Err(HubError::Busy));
    test.submit("a: x").unwrap();
    assert_eq!(test.submit("a: x"), Err(HubError::Busy));
    // Notifications that no one takes are dropped; what ends a delivery is not.
    for body in ["1", "2"] {
        let shown = Notification::new(body);
        let response = Response::new(id.as_str(), Answer::Notification(shown));
        test.hub.respond(ConnId(1), response);
    }
    assert_eq!(test.events().len(), 3 + 1);
    assert_eq!(test.frames().len(), 3);
    // The question was still open.
    let decided = test.hub.decide(question, both(), test.now);
    assert_eq!(decided, Ok(2));
}

#[test]
fn a_routing_request_is_answered_once() {
    let mut test = Test::new(&["a", "b"]);
    test.submit("x").unwrap();
    let question = test.question();
    let decide = |test: &mut Test| test.hub.decide(question, vec![Choice::new("a")], test.now);
    assert_eq!(decide(&mut test), Ok(1));
    assert_eq!(decide(&mut test), Err(HubError::UnknownRoute));
    let failed = test.hub.fail(question, RouterError::RateLimited);
    assert_eq!(failed, Err(HubError::UnknownRoute));
    assert_eq!(test.frames().len(), 1);
}

#[test]
fn unknown_excluded_and_repeated_clients_are_skipped() {
    let mut test = Test::new(&["a", "b", "c"]);
    let id = test.submit("x").unwrap();
    let choices = ["a", "nobody", "A", "a"].map(Choice::new).to_vec();
    assert_eq!(test.choose(choices), Ok(1));
    test.events();
    test.hub
        .respond(ConnId(1), Response::new(id.as_str(), reject("no")));
    let choices = ["a", "c", "b", "c"].map(Choice::new).to_vec();
    assert_eq!(test.choose(choices), Ok(2));
}

#[test]
fn a_router_choosing_no_candidate_ends_the_message() {
    for names in [&[][..], &["nobody"], &["A"]] {
        let mut test = Test::new(&["a"]);
        let id = test.submit("x").unwrap();
        let choices = names.iter().map(|name| Choice::new(*name)).collect();
        assert_eq!(test.choose(choices), Ok(0));
        assert_eq!(
            test.events(),
            [
                HubEvent::Unroutable {
                    message: id.clone(),
                    text: "x".into(),
                    why: Unroutable::NobodyChosen,
                    tried: vec![],
                },
                HubEvent::Settled {
                    message: id,
                    outcomes: vec![],
                }
            ]
        );
        assert_eq!(test.hub.open_messages(), 0);
        assert_eq!(test.hub.messages.len(), 0);
    }
}

#[test]
fn unmatched_responses_are_ignored_and_reported() {
    let mut test = Test::new(&["a", "b"]);
    let id = test.send(&["a"]);
    let ghost = MessageId::new("msg-ghost");
    let unknown = || Answer::Unknown {
        tag: "later".into(),
        content: None,
    };
    let cases = [
        (9, &id, Answer::Ack, Ignored::NotRegistered),
        (2, &id, Answer::Ack, Ignored::UnknownMessage),
        (1, &ghost, Answer::Ack, Ignored::UnknownMessage),
        (1, &id, unknown(), Ignored::UnknownAnswer("later".into())),
    ];
    for (conn, id, answer, why) in cases {
        let events = test.answer(conn, id, answer);
        assert_eq!(whys(&events), [&why]);
    }
    // None of them stopped the time.
    assert_eq!(test.hub.in_flight(), 1);
    assert_eq!(
        whys(&test.answer(1, &id, Answer::Ack)),
        Vec::<&Ignored>::new()
    );
    let events = test.answer(1, &id, Answer::Ack);
    assert_eq!(whys(&events), [&Ignored::AlreadyAcked]);
    test.answer(1, &id, reject("changed my mind"));
    for answer in [Answer::Ack, reject("again")] {
        let events = test.answer(1, &id, answer);
        assert_eq!(whys(&events), [&Ignored::AlreadyRejected]);
    }
}

#[test]
fn a_rejection_gets_a_default_reason_and_long_ones_are_shortened() {
    for (reason, kept) in [
        (None, "No reason provided".to_owned()),
        (Some(" ".to_owned()), "No reason provided".to_owned()),
        (Some("é".repeat(MAX_REASON)), "é".repeat(MAX_REASON / 2)),
        (
            Some(format!("x{}", "é".repeat(MAX_REASON))),
            format!("x{}", "é".repeat(MAX_REASON / 2 - 1)),
        ),
    ] {
        let mut test = Test::new(&["a"]);
        let id = test.send(&["a"]);
        let reason = reason.map(Str::from);
        let events = test.answer(1, &id, Answer::reject(reason));
        let HubEvent::Rejected { reason, .. } = &events[0] else {
            panic!("{events:?}");
        };
        assert_eq!(reason.as_str(), kept);
    }
}

#[test]
fn an_early_timeout_changes_nothing() {
    let mut test = Test::new(&["a"]);
    test.send(&["a"]);
    let deadline = test.now + Duration::from_secs(30);
    assert_eq!(test.hub.poll_timeout(), Some(deadline));
    test.wait(Duration::from_millis(29_999));
    assert_eq!(test.events(), []);
    assert_eq!(test.hub.poll_timeout(), Some(deadline));
    test.wait(Duration::from_millis(1));
    assert_eq!(test.events().len(), 3);
    assert_eq!(test.hub.poll_timeout(), None);
}

#[test]
fn a_missing_title_defaults_to_the_client_name() {
    let mut test = Test::new(&["notes"]);
    let id = test.send(&["notes"]);
    let untitled = Notification::new("x");
    for (shown, expected) in [
        (untitled.clone(), "notes"),
        (
            Notification {
                title: Some("".into()),
                ..untitled.clone()
            },
            "notes",
        ),
        (
            Notification {
                title: Some("Saved".into()),
                ..untitled
            },
            "Saved",
        ),
    ] {
        let events = test.answer(1, &id, Answer::Notification(shown));
        let HubEvent::Notification { title, .. } = &events[0] else {
            panic!("{events:?}");
        };
        assert_eq!(title, expected);
    }
}

#[test]
fn the_exact_name_wins_among_names_differing_in_case() {
    let mut test = Test::new(&["nOTES", "NOTES", "notes"]);
    for (text, conn) in [("notes: x", 3_u64), ("NOTES, x", 2), ("Notes: x", 1)] {
        test.submit(text).unwrap();
        let to: Vec<_> = test.frames().iter().map(|(conn, _)| *conn).collect();
        assert_eq!(to, [conn], "{text}");
    }
}

#[test]
fn a_routing_limit_of_zero_is_treated_as_one() {
    let config = HubConfig {
        routing_limit: 0,
        ..HubConfig::default()
    };
    let mut test = Test::with(config, &["a", "b"]);
    let id = test.send(&["a"]);
    let events = test.answer(1, &id, reject("no"));
    assert!(
        matches!(
            &events[..],
            [
                HubEvent::Rejected { .. },
                HubEvent::Unroutable {
                    why: Unroutable::Exhausted,
                    ..
                },
                HubEvent::Settled { .. },
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn a_notification_may_come_before_or_after_an_ack() {
    let mut test = Test::new(&["a"]);
    let id = test.send(&["a"]);
    let shown = || Answer::Notification(Notification::new("x"));
    for (answer, reported) in [(shown(), 2), (Answer::Ack, 1), (shown(), 1)] {
        let events = test.answer(1, &id, answer);
        assert_eq!(whys(&events), [&Ignored::AlreadyAcked; 0]);
        assert_eq!(events.len(), reported, "{events:?}");
    }
}
