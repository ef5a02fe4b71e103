//! A hundred clients and a thousand messages in flight.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};

use rpc_core::Limits;
use smarthole_proto::frame::{Answer, Notification, Registration, Response, ServerFrame};
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubEvent, Input, Outcome};
use smarthole_proto::id::MessageId;
use smarthole_proto::router::{Choice, Keywords};

const CLIENTS: usize = 100;
const MESSAGES: usize = 1_000;

struct Crowd {
    hub: Hub,
    now: Instant,
    /// How often a client got a message, and how often that ended.
    sent: HashMap<(MessageId, String), u32>,
    ended: HashMap<(MessageId, String), u32>,
    settled: HashMap<MessageId, Vec<Outcome>>,
    shown: usize,
    unroutable: HashSet<MessageId>,
}

impl Crowd {
    fn new() -> Self {
        let now = Instant::now();
        let mut hub = Hub::new(HubConfig::default(), 7, now);
        for index in 0..CLIENTS {
            let registration = Registration {
                capabilities: vec![format!("topic{index}").into()],
                ..Registration::new(format!("client-{index}"), "d")
            };
            hub.register(ConnId(index as u64), &registration).unwrap();
        }
        Self {
            hub,
            now,
            sent: HashMap::new(),
            ended: HashMap::new(),
            settled: HashMap::new(),
            shown: 0,
            unroutable: HashSet::new(),
        }
    }

    fn say(&mut self, text: String) {
        let input = Input::text(text);
        self.hub
            .submit(input, self.now, SystemTime::UNIX_EPOCH)
            .unwrap();
    }

    /// Takes events; questions are answered by words, and if those lead nowhere, with the first
    /// candidate.
    fn events(&mut self) {
        while let Some(event) = self.hub.poll_event() {
            match event {
                HubEvent::Route { route, request, .. } => {
                    let mut choices = Keywords::new().choose(&request);
                    if choices.is_empty() {
                        choices.push(Choice::new(request.candidates[0].name.clone()));
                    }
                    self.hub.decide(route, choices, self.now).unwrap();
                }
                HubEvent::Delivered { client, message } => {
                    let sent = (message.id, client.to_string());
                    *self.sent.entry(sent).or_default() += 1;
                }
                HubEvent::Acked {
                    message,
                    client,
                    late: false,
                }
                | HubEvent::Rejected {
                    message,
                    client,
                    late: false,
                    ..
                } => *self.ended.entry((message, client.to_string())).or_default() += 1,
                HubEvent::Notification { .. } => self.shown += 1,
                HubEvent::Unroutable { message, .. } => {
                    assert!(self.unroutable.insert(message));
                }
                HubEvent::Settled { message, outcomes } => {
                    let outcomes = outcomes.into_iter().map(|one| one.outcome).collect();
                    assert_eq!(self.settled.insert(message, outcomes), None);
                }
                HubEvent::Registered { .. } | HubEvent::Left { .. } => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
    }

    /// Takes frames, with what each of them says.
    fn frames(&mut self) -> Vec<(ConnId, MessageId, String)> {
        let limits = Limits::default();
        let frames = std::iter::from_fn(|| self.hub.poll_transmit());
        frames
            .map(|(conn, frame)| {
                let frame = ServerFrame::decode(frame.as_str(), &limits).unwrap();
                let ServerFrame::Message(message) = frame else {
                    panic!("{frame:?}");
                };
                (conn, message.id, message.text.into())
            })
            .collect()
    }

    fn answer(&mut self, conn: ConnId, id: &MessageId, answer: Answer) {
        self.hub.respond(conn, Response::new(id.as_str(), answer));
    }
}

#[test]
fn each_of_a_thousand_messages_ends_exactly_once() {
    let mut crowd = Crowd::new();
    for number in 0..MESSAGES {
        crowd.say(format!("{number} topic{}", number % CLIENTS));
    }
    crowd.events();
    assert_eq!(crowd.hub.in_flight(), MESSAGES);
    assert_eq!(crowd.hub.open_messages(), MESSAGES);
    let mut first = crowd.frames();
    assert_eq!(first.len(), MESSAGES);
    first.reverse();
    let number = |text: &str| text.split(' ').next().unwrap().parse::<usize>().unwrap();
    for (conn, id, text) in &first {
        match number(text) % 5 {
            0 => crowd.answer(*conn, id, Answer::Ack),
            1 => crowd.answer(*conn, id, Answer::reject(None)),
            2 => {
                let shown = Notification::new("done");
                crowd.answer(*conn, id, Answer::Notification(shown));
                crowd.answer(*conn, id, Answer::Ack);
            }
            3 => {
                // Comes back before it answers.
                crowd.hub.disconnect(*conn);
                let registration = Registration::new(format!("client-{}", conn.0), "d");
                crowd.hub.register(*conn, &registration).unwrap();
                crowd.answer(*conn, id, Answer::Ack);
            }
            _ => {}
        }
        crowd.events();
    }
    // The rejected fifth went to someone else, who says nothing either.
    assert_eq!(crowd.frames().len(), MESSAGES / 5);
    assert_eq!(crowd.hub.in_flight(), 2 * MESSAGES / 5);
    for _ in 0..3 {
        crowd.now += Duration::from_secs(30);
        crowd.hub.handle_timeout(crowd.now);
        crowd.events();
    }
    assert_eq!(crowd.hub.poll_timeout(), None);
    assert_eq!(crowd.hub.open_messages(), 0);
    assert_eq!(crowd.settled.len(), MESSAGES);
    assert!(crowd.sent.values().all(|times| *times == 1));
    assert_eq!(crowd.sent.len(), crowd.ended.len());
    assert!(crowd.ended.values().all(|times| *times == 1));
    assert_eq!(crowd.shown, MESSAGES / 5);
    assert_eq!(crowd.unroutable.len(), 2 * MESSAGES / 5);
    assert_eq!(crowd.hub.history().count(), 100);
}

#[test]
fn a_thousand_messages_to_a_hundred_clients_each_are_all_accounted_for() {
    let mut crowd = Crowd::new();
    let everybody: Vec<_> = (0..CLIENTS)
        .map(|index| Choice::new(format!("client-{index}")))
        .collect();
    for _ in 0..MESSAGES {
        crowd.say("x".to_owned());
        while let Some(event) = crowd.hub.poll_event() {
            if let HubEvent::Route { route, .. } = event {
                let choices = everybody.clone();
                let reached = crowd.hub.decide(route, choices, crowd.now);
                assert_eq!(reached, Ok(CLIENTS));
                break;
            }
        }
        while crowd.hub.poll_event().is_some() {}
    }
    assert_eq!(crowd.hub.in_flight(), MESSAGES * CLIENTS);
    let frames: Vec<_> = std::iter::from_fn(|| crowd.hub.poll_transmit()).collect();
    assert_eq!(frames.len(), MESSAGES * CLIENTS);
    // One encoding for the hundred recipients of a message.
    let bytes: HashSet<_> = frames
        .iter()
        .map(|(_, frame)| frame.as_str().as_ptr())
        .collect();
    assert_eq!(bytes.len(), MESSAGES);
    let ids: Vec<_> = frames
        .iter()
        .step_by(CLIENTS)
        .map(|(_, frame)| {
            let frame = ServerFrame::decode(frame.as_str(), &Limits::default()).unwrap();
            match frame {
                ServerFrame::Message(message) => MessageId::new(&*message.id),
                other => panic!("{other:?}"),
            }
        })
        .collect();
    for id in &ids {
        for client in 0..CLIENTS {
            // Every second client is silent.
            if client % 2 == 0 {
                crowd.answer(ConnId(client as u64), id, Answer::Ack);
            }
        }
    }
    crowd.events();
    assert_eq!(crowd.settled.len(), 0);
    assert_eq!(crowd.ended.len(), MESSAGES * CLIENTS / 2);
    crowd.now += Duration::from_secs(30);
    crowd.hub.handle_timeout(crowd.now);
    crowd.events();
    assert_eq!(crowd.ended.len(), MESSAGES * CLIENTS);
    assert!(crowd.ended.values().all(|times| *times == 1));
    assert_eq!(crowd.settled.len(), MESSAGES);
    assert!(crowd.settled.values().all(|outcomes| {
        outcomes.len() == CLIENTS
            && outcomes.iter().filter(|one| one.is_taken()).count() == CLIENTS / 2
    }));
    assert_eq!(crowd.hub.in_flight(), 0);
}
