//! What a client, a bot and a server do about the less usual: early events, odd events, calls
//! without a connection, callers that give up, cycles of reconnects.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_core::net::mem::{self, MemListener};
use rpc_core::{CallError, CloseReason, Limits, Machine};
use serde_json::json;
use snek_proto::bot::{Bot, BotConfig, Context, Handler, Notice};
use snek_proto::client::{ClientEvent, Warning};
use snek_proto::error::BotError;
use snek_proto::frame::{Message, OtherEvent};
use snek_proto::net::{Client, connect_with};
use snek_proto::server::ServerEvent;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::played::ready;
use crate::scripted::Peer;
use crate::vectors::{Hand, config};

const SECOND: Duration = Duration::from_secs(1);

// The client's machine

#[test]
fn notifications_leave_no_pending_calls() {
    let mut hand = Hand::ready(config());
    let mut ids = HashSet::new();
    for _ in 0..10_000 {
        hand.conn.set_typing("ch1", "#FF6B35").unwrap();
        let id = hand.sent().unwrap()["callId"].clone();
        hand.take(&json!({"callId": id, "data": null}).to_string());
        assert!(ids.insert(id.to_string()), "{id} came twice");
    }
    assert_eq!(hand.conn.in_flight(), 0);
    assert_eq!(hand.conn.stray_frames(), 10_000);
    assert!(hand.events().is_empty());
}

#[test]
fn a_message_over_4_mib_is_skipped() {
    let mut hand = Hand::ready(config());
    let id = hand.conn.ping(hand.now).unwrap();
    let frame = |data: &str| json!({"callId": id.to_string(), "data": data}).to_string();
    let room = Limits::default().max_message_bytes - frame("").len();
    assert_eq!(Limits::default().max_message_bytes, 4 * 1024 * 1024);
    hand.take(&frame(&"x".repeat(room + 1)));
    assert!(matches!(
        hand.events()[..],
        [ClientEvent::Warning(Warning::BadFrame(_))]
    ));
    assert_eq!(hand.conn.in_flight(), 1);
    hand.take(&frame(&"x".repeat(room)));
    assert!(matches!(
        hand.events()[..],
        [ClientEvent::Reply { result: Ok(_), .. }]
    ));
}

#[test]
fn a_bad_frame_does_not_delay_the_next_one() {
    let mut hand = Hand::ready(config());
    let id = hand.conn.ping(hand.now).unwrap().to_string();
    hand.take("not JSON");
    hand.take(&json!({"callId": id, "data": 1}).to_string());
    let events = hand.events();
    assert!(
        matches!(
            events[..],
            [ClientEvent::Warning(_), ClientEvent::Reply { .. }]
        ),
        "{events:?}"
    );
}

// Client and server together

#[test]
fn both_ends_ping_after_30_seconds_and_disconnect_15_later() {
    let mut pair = ready(11, std::time::Instant::now());
    pair.take_client_events();
    pair.mute_pongs();
    // No one answers, but a ping itself is life: cut the frames off too.
    pair.set_latency(Duration::from_secs(100_000));
    pair.advance(Duration::from_millis(44_999));
    assert!(!pair.client.is_closed() && !pair.server.is_closed());
    let trace = pair.trace().to_string();
    assert!(trace.contains("+30000ms C>") && trace.contains("+30000ms S>"));
    pair.advance(Duration::from_millis(1));
    let after = SECOND * 15;
    assert_eq!(
        pair.take_client_events(),
        [ClientEvent::Closed(CloseReason::KeepAlive { after })]
    );
    assert_eq!(
        pair.take_server_events(),
        [ServerEvent::Closed(CloseReason::KeepAlive { after })]
    );
}

// The client at level 3

fn client() -> (Client, MemListener) {
    let (dialer, listener) = mem::listen(64);
    let (client, events, connection) = connect_with(dialer, config());
    drop(events);
    tokio::spawn(connection.run());
    (client, listener)
}

#[tokio::test(start_paused = true)]
async fn a_mistyped_reply_fails_its_call() {
    let (client, mut listener) = client();
    let mut line = Peer::logged_in(&mut listener).await;
    client.ready().await.unwrap();
    let call = tokio::spawn(async move { client.get_channels().await });
    let request = line.request().await;
    line.answer(&request, json!({"uid": "ch1"})).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Remote(_)), "{error:?}");
}

// The bot

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        let mut lines = std::mem::take(&mut *self.0.lock().unwrap());
        lines.sort();
        lines
    }
}

impl Handler for Seen {
    async fn on_own_message(&self, _: &Context, message: &Message) -> Result<(), BotError> {
        self.note(format!("own {}", message.message));
        Ok(())
    }

    async fn on_ping(&self, _: &Context, _: &Message, rest: &str) -> Result<(), BotError> {
        self.note(format!("ping {rest}"));
        Ok(())
    }

    async fn on_join(&self, cx: &Context) -> Result<(), BotError> {
        self.note(format!("join {}", cx.channel()));
        Ok(())
    }

    async fn on_leave(&self, cx: &Context) -> Result<(), BotError> {
        self.note(format!("leave {}", cx.channel()));
        Ok(())
    }

    async fn on_mention(&self, _: &Context, message: &Message) -> Result<(), BotError> {
        self.note(format!("mention {}", message.message));
        Ok(())
    }

    async fn on_message(&self, _: &Context, message: &Message) -> Result<(), BotError> {
        self.note(format!("message {}", message.message));
        Ok(())
    }

    async fn on_event(&self, _: &Context, event: &OtherEvent) -> Result<(), BotError> {
        self.note(format!("event {}", event.tag));
        Ok(())
    }

    fn on_notice(&self, notice: &Notice) {
        match notice {
            Notice::Warning(_) => self.note("warning"),
            Notice::Lost {
                exhausted,
                attempt,
                retry_in,
                ..
            } => self.note(format!("lost {exhausted} {attempt} {retry_in:?}")),
            _ => {}
        }
    }
}

type Run = JoinHandle<Result<rpc_core::net::DrainReport, BotError>>;

fn bot(config: BotConfig) -> (Seen, MemListener, Run) {
    let (dialer, listener) = mem::listen(64);
    let seen = Seen::default();
    let bot = Bot::with_dialer(dialer, config, seen.clone());
    let run = tokio::spawn(bot.run_until(std::future::pending()));
    (seen, listener, run)
}

fn bot_config() -> BotConfig {
    BotConfig::new("mybot", "mypassword")
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn other_events_do_not_reach_message_handlers() {
    let (seen, mut listener, _run) = bot(bot_config());
    let mut line = Peer::logged_in(&mut listener).await;
    let data = json!({"channel_uid": "ch1", "username": "ann", "message": "x"});
    for event in ["ping", "mention", "own_message", "PING", "on_ping", "a-b"] {
        line.send(json!({"event": event, "data": data})).await;
    }
    settle().await;
    let expected = [
        "event PING",
        "event a-b",
        "event mention",
        "event on_ping",
        "event own_message",
        "event ping",
    ];
    assert_eq!(seen.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn joins_by_event_and_by_message_reach_the_same_handler() {
    let (seen, mut listener, _run) = bot(bot_config());
    let mut line = Peer::logged_in(&mut listener).await;
    for (event, text) in [("join", "@MyBot join"), ("leave", "@mybot leave")] {
        line.send(json!({"event": event, "data": {"channel_uid": "ch1"}}))
            .await;
        line.send_message("ch9", "ann", text).await;
        settle().await;
        assert_eq!(
            seen.take(),
            [format!("{event} ch1"), format!("{event} ch9")]
        );
    }
    line.send(json!({"event": "join", "data": {}})).await;
    line.send(json!({"event": "leave"})).await;
    settle().await;
    assert_eq!(seen.take(), ["warning", "warning"]);
}

#[tokio::test(start_paused = true)]
async fn messages_before_the_own_name_is_known_are_routed_after() {
    let (seen, mut listener, _run) = bot(bot_config());
    let mut line = Peer::accept(&mut listener).await;
    let login = line.request().await;
    line.answer(&login, json!({"username": "mybot"})).await;
    line.send_message("ch1", "mybot", "from myself").await;
    line.send_message("ch1", "ann", "hi @MyBot").await;
    let user = line.request().await;
    let record = json!({"username": "mybot", "nick": "MyBot"});
    line.answer(&user, record).await;
    line.send_message("ch1", "ann", "just saying").await;
    settle().await;
    assert!(seen.take().is_empty());
    let channels = line.request().await;
    line.answer(&channels, json!([])).await;
    settle().await;
    assert_eq!(seen.take(), ["mention hi @MyBot", "own from myself"]);
}

#[tokio::test(start_paused = true)]
async fn an_unlisted_channel_is_public() {
    let (seen, mut listener, _run) = bot(bot_config());
    let mut line = Peer::logged_in(&mut listener).await;
    line.send_message("elsewhere", "ann", "hello").await;
    line.send_message("elsewhere", "ann", "hello mybot").await;
    line.send_message("elsewhere", "ann", "ping").await;
    let (channel, text) = line.posted().await;
    assert_eq!((&*channel, &*text), ("elsewhere", "pong"));
    settle().await;
    assert_eq!(seen.take(), ["message hello mybot", "ping "]);
}

#[tokio::test(start_paused = true)]
async fn three_failed_attempts_are_reported_and_another_cycle_begins() {
    let (seen, mut listener, _run) = bot(bot_config());
    Peer::logged_in(&mut listener).await.cut();
    let before = Instant::now();
    let mut waits = Vec::new();
    for _ in 0..5 {
        let line = Peer::accept(&mut listener).await;
        waits.push(before.elapsed().as_secs());
        line.cut();
    }
    settle().await;
    // After 1, 2, 4 seconds, then again after 1 and 2.
    assert_eq!(waits, [1, 3, 7, 8, 10]);
    let lost: Vec<_> = std::mem::take(&mut *seen.0.lock().unwrap());
    let expected = [
        "lost false 1 1s",
        "lost false 2 2s",
        "lost false 3 4s",
        "lost true 1 1s",
        "lost false 2 2s",
        "lost false 3 4s",
    ];
    assert_eq!(lost, expected);
    Peer::logged_in(&mut listener).await.cut();
    let before = Instant::now();
    Peer::logged_in(&mut listener).await;
    assert_eq!(before.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_cycles_ends_the_bot_with_a_connection_error() {
    let mut config = bot_config();
    config.client.link.reconnect.cycles = Some(1);
    let (_, mut listener, run) = bot(config);
    for _ in 0..4 {
        Peer::accept(&mut listener).await.cut();
    }
    let error = run.await.unwrap().unwrap_err();
    assert_eq!(error.name(), "ConnectionError");
    assert!(
        matches!(error, BotError::ConnectionError { attempts: 4, .. }),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_early_events_does_not_cost_the_bot_its_own_name() {
    let (seen, mut listener, _run) = bot(bot_config());
    let mut line = Peer::accept(&mut listener).await;
    for _ in 0..3_000 {
        line.send_message("ch1", "ann", "nothing").await;
    }
    line.log_in().await;
    settle().await;
    line.send_message("ch1", "ann", "hi @MyBot").await;
    settle().await;
    assert_eq!(seen.take(), ["mention hi @MyBot", "warning"]);
}
