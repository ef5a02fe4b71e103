//! A run that a program attaches to late: what came before is in it, once and in order.

use std::ops::Range;
use std::time::Duration;

use connectonion_proto::client::ClientConfig;
use connectonion_proto::client::{ClientEvent, Resume};
use connectonion_proto::frame::SessionState;
use connectonion_proto::net::{Client, Events, Run, RunEvent, connect_with};
use rpc_core::net::{LagPolicy, LinkEvent, QueueConfig, mem};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::net_client::{next, open, options};
use crate::scripted::{Host, client_key, connected, event, output, thinking};

/// A restarted program.
fn resumed() -> ClientConfig {
    ClientConfig {
        resume: Resume::parse(r#"{"session_id":"s-1"}"#).unwrap(),
        ..options()
    }
}

/// Its queue of events has so much room.
fn with_room(max_items: usize, policy: LagPolicy) -> ClientConfig {
    let mut options = resumed();
    options.link.events = QueueConfig {
        max_items,
        policy,
        ..QueueConfig::default()
    };
    options
}

fn parts(numbers: Range<usize>) -> Vec<Value> {
    let part = |number: usize| {
        let members = json!({"content": number.to_string(), "message_id": "m"});
        event("assistant_delta", &number.to_string(), &members)
    };
    numbers.map(part).collect()
}

fn ids(numbers: Range<usize>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

/// Says all this, and waits until the client has it.
async fn send(host: &mut Host, frames: &[Value]) {
    host.send_all(frames).await;
    host.send(&json!({"type": "PING"})).await;
    host.recv_type("PONG").await;
}

/// A program whose session is running, and has heard this so far.
async fn running(options: ClientConfig, said: &[Value]) -> (Client, Events, Host) {
    let (agent, events, mut listener) = open(options);
    let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
    agent.ready().await.unwrap();
    send(&mut host, said).await;
    (agent, events, host)
}

/// What a run gives until it ends or waits: the ids of steps, `lost n`, `asks`.
async fn delivered(run: &mut Run) -> Vec<String> {
    let mut delivered = Vec::new();
    while let Ok(Some(event)) = timeout(Duration::from_secs(5), run.next()).await {
        delivered.push(match event.unwrap() {
            RunEvent::Step(step) => step.event.id.unwrap().as_str().to_owned(),
            RunEvent::Lagged(steps) => format!("lost {steps}"),
            RunEvent::AskUser(_) => "asks".to_owned(),
            other => panic!("{other:?}"),
        });
    }
    delivered
}

fn result(run: &Run) -> &str {
    &run.outcome().unwrap().as_ref().unwrap().result
}

#[tokio::test(start_paused = true)]
async fn the_recipe_of_the_guide_gets_every_part() {
    // `connect` does this, and the host goes on meanwhile.
    let (dialer, mut listener) = mem::listen(64);
    let (agent, mut events, connection) = connect_with(dialer, client_key(), resumed());
    let (connection, mut host) = tokio::join!(connection.establish(), async {
        let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
        host.send_all(&parts(0..10)).await;
        host
    });
    tokio::spawn(connection.unwrap().run());
    send(&mut host, &parts(10..12)).await;
    loop {
        match events.next_link().await.unwrap() {
            LinkEvent::Event(ClientEvent::Connected(first)) => {
                assert_eq!(first.status, SessionState::Running);
                break;
            }
            LinkEvent::State(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let mut run = agent.attach();
    send(&mut host, &parts(12..40)).await;
    host.send(&output("all")).await;
    assert_eq!(delivered(&mut run).await, ids(0..40));
    assert_eq!(result(&run), "all");
    assert!(events.try_next().is_none(), "nothing comes twice");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_attaches_before_it_reads_an_event_gets_all_of_the_run() {
    let (agent, mut events, mut host) = running(resumed(), &parts(0..5)).await;
    let mut run = agent.attach();
    send(&mut host, &parts(5..7)).await;
    assert_eq!(delivered(&mut run).await, ids(0..7));
    assert!(matches!(events.try_next(), Some(ClientEvent::Connected(_))));
    assert!(events.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn steps_that_a_program_has_taken_do_not_come_again() {
    let (agent, mut events, mut host) = running(resumed(), &parts(0..5)).await;
    assert!(matches!(next(&mut events).await, ClientEvent::Step(_)));
    let (mut first, mut second) = (agent.attach(), agent.attach());
    send(&mut host, &parts(5..7)).await;
    assert_eq!(delivered(&mut first).await, ids(1..7));
    assert_eq!(delivered(&mut second).await, ids(5..7), "what came since");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ended_before_its_program_attached_is_told_with_its_end() {
    let (agent, mut events, mut host) = running(resumed(), &parts(0..3)).await;
    send(&mut host, &[output("first")]).await;
    send(&mut host, &parts(3..5)).await;
    send(&mut host, &[output("second")]).await;
    let mut run = agent.attach();
    assert_eq!(delivered(&mut run).await, ids(3..5));
    assert_eq!(result(&run), "second");
    // The one before is where it was.
    for _ in 0..3 {
        assert!(matches!(next(&mut events).await, ClientEvent::Step(_)));
    }
    let ended = next(&mut events).await;
    assert!(matches!(ended, ClientEvent::RunEnded(Ok(first)) if first.result == "first"));
    // And the next one is waited for.
    let mut run = agent.attach();
    send(&mut host, &parts(5..6)).await;
    assert_eq!(delivered(&mut run).await, ids(5..6));
}

#[tokio::test(start_paused = true)]
async fn the_current_run_is_told_without_the_one_before() {
    let (agent, _events, mut host) = running(resumed(), &parts(0..3)).await;
    send(&mut host, &[output("first"), thinking("t")]).await;
    let mut run = agent.attach();
    send(&mut host, &[output("second")]).await;
    assert_eq!(delivered(&mut run).await, ["t"]);
    assert_eq!(result(&run), "second");
}

#[tokio::test(start_paused = true)]
async fn a_run_says_how_many_of_its_steps_a_full_queue_has_dropped() {
    let options = with_room(4, LagPolicy::DropOldest);
    let (agent, _events, mut host) = running(options, &parts(0..10)).await;
    let mut run = agent.attach();
    send(&mut host, &parts(10..11)).await;
    let mut expected = ids(6..11);
    expected.insert(0, "lost 6".to_owned());
    assert_eq!(delivered(&mut run).await, expected);
    assert_eq!(delivered(&mut agent.attach()).await, [""; 0], "it was told");
}

#[tokio::test(start_paused = true)]
async fn a_run_says_how_many_of_its_steps_nobody_took() {
    let (agent, events, mut host) = running(resumed(), &parts(0..2)).await;
    drop(events);
    send(&mut host, &parts(2..5)).await;
    let mut run = agent.attach();
    send(&mut host, &parts(5..6)).await;
    assert_eq!(delivered(&mut run).await, ["lost 5", "5"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_on_its_way_to_a_full_queue_goes_to_the_run_in_its_place() {
    let deadline = Duration::from_secs(30);
    let options = with_room(1, LagPolicy::Block { deadline });
    let (agent, _events, mut listener) = open(options);
    let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
    agent.ready().await.unwrap();
    host.send_all(&parts(0..5)).await;
    // The first waits, the second waits for its place.
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    let mut run = agent.attach();
    assert_eq!(delivered(&mut run).await, ids(0..5));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_waits_among_the_events_is_asked_once_and_in_its_place() {
    let question = |id| event("ask_user", id, &json!({"question": "Which?"}));
    let mut said = parts(0..2);
    said.extend([question("q"), thinking("t"), question("r")]);
    let (agent, _events, _host) = running(resumed(), &said).await;
    // A replay: the last question counts as open once nothing follows it.
    tokio::time::advance(Duration::from_secs(2)).await;
    let mut run = agent.attach();
    assert_eq!(delivered(&mut run).await, ["0", "1", "q", "t", "asks"]);
}
