//! [`Show`]: the lines of each event.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use serde_json::json;
use smarthole_proto::frame::{Message, Metadata};
use smarthole_proto::hub::ConnId;
use smarthole_proto::id::MessageId;
use smarthole_proto::router::Rejection;

use super::*;

fn id() -> MessageId {
    MessageId::new("msg-1")
}

fn route(rejections: &[Rejection]) -> HubEvent {
    use smarthole_proto::hub::{Hub, HubConfig, Input};
    let (now, wall) = (std::time::Instant::now(), std::time::SystemTime::now());
    let mut hub = Hub::new(HubConfig::default(), 1, now);
    let notes = smarthole_proto::frame::Registration::new("notes", "Keeps notes.");
    hub.register(ConnId(1), &notes).unwrap();
    hub.submit(Input::text("milk"), now, wall).unwrap();
    let mut events = std::iter::from_fn(|| hub.poll_event());
    let mut route = events
        .find(|event| matches!(event, HubEvent::Route { .. }))
        .unwrap();
    if let HubEvent::Route {
        message, request, ..
    } = &mut route
    {
        *message = id();
        request.rejections = rejections.to_vec();
    }
    route
}

fn rejected(timed_out: bool, late: bool) -> HubEvent {
    HubEvent::Rejected {
        message: id(),
        client: "notes".into(),
        reason: "no\u{1b}[2J".into(),
        timed_out,
        late,
    }
}

fn delivered(direct: bool, reason: Option<&str>) -> HubEvent {
    let mut metadata = Metadata::default();
    metadata.direct_routed = direct;
    metadata.routing_reason = reason.map(Into::into);
    HubEvent::Delivered {
        client: "notes".into(),
        message: Message {
            metadata,
            ..Message::new(id(), "buy \"milk\"\n", "t")
        },
    }
}

fn notification(title: &str, body: &str, priority: Priority) -> HubEvent {
    HubEvent::Notification {
        message: id(),
        client: "notes".into(),
        title: title.into(),
        body: body.into(),
        priority,
        late: false,
    }
}

fn unroutable(why: Unroutable) -> HubEvent {
    HubEvent::Unroutable {
        message: id(),
        text: "milk".into(),
        why,
        tried: vec![
            Rejection::new("notes", "no"),
            Rejection::new("home", "never"),
        ],
    }
}

fn acked(late: bool) -> HubEvent {
    HubEvent::Acked {
        message: id(),
        client: "notes".into(),
        late,
    }
}

fn left() -> HubEvent {
    HubEvent::Left {
        conn: ConnId(1),
        name: "notes".into(),
    }
}

#[test]
fn a_person_sees_the_recipient_the_reason_and_the_answer() {
    let again = [Rejection::new("home", "no")];
    for (event, expected) in [
        (left(), "notes has left"),
        (route(&[]), r#"#1 "milk": choosing"#),
        (route(&again), "#1 choosing again"),
        (
            delivered(true, None),
            r#"#1 "buy \"milk\"\n" to notes: you named it"#,
        ),
        (
            delivered(false, Some("a note")),
            r#"#1 "buy \"milk\"\n" to notes: a note"#,
        ),
        (delivered(false, None), r#"#1 "buy \"milk\"\n" to notes"#),
        (acked(false), "#1 notes has taken it"),
        (acked(true), "#1 notes has taken it, too late"),
        (rejected(false, false), r"#1 notes rejects it: no\u{1b}[2J"),
        (rejected(true, false), "#1 notes did not answer in time"),
        (
            notification("notes", "saved", Priority::Normal),
            "#1 notes says: saved",
        ),
        (
            notification("Saved", "milk\n\nand\u{1b} bread", Priority::High),
            "#1 notes says (!): Saved\n     milk\n     and\\u{1b} bread",
        ),
        (
            unroutable(Unroutable::Exhausted),
            "#1 no client takes \"milk\": no client could handle the message\n     \
             tried notes: no\n     tried home: never",
        ),
        (
            unroutable(Unroutable::Rejected),
            r#"#1 no client takes "milk": the client did not take the message"#,
        ),
    ] {
        let mut show = Show::new(false);
        assert_eq!(show.event(&event).join("\n"), expected);
    }
}

#[test]
fn programs_read_one_object_for_each_event() {
    for (event, expected) in [
        (left(), json!({ "event": "left", "client": "notes" })),
        (
            acked(false),
            json!({ "event": "acked", "id": "msg-1", "client": "notes", "late": false }),
        ),
        (
            delivered(false, Some("why")),
            json!({
                "event": "delivered",
                "id": "msg-1",
                "client": "notes",
                "direct": false,
                "text": "buy \"milk\"\n",
                "reason": "why",
            }),
        ),
        (
            unroutable(Unroutable::NobodyChosen),
            json!({
                "event": "unroutable",
                "id": "msg-1",
                "text": "milk",
                "code": "NOBODY_CHOSEN",
                "message": "no client fits it; write NAME: in front of it to choose one, or say it in other words",
                "tried": [
                    { "client": "notes", "reason": "no" },
                    { "client": "home", "reason": "never" },
                ],
            }),
        ),
    ] {
        assert_eq!(crate::router::json::event(&event), Some(expected));
    }
}

#[test]
fn colours_are_used_only_where_wanted() {
    let mut show = Show::new(true);
    let lines = show.event(&acked(false));
    assert!(lines[0].contains("\u{1b}[36mnotes\u{1b}[0m"), "{lines:?}");
}
