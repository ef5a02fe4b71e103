//! What a bot lets others see: its states, the channels that it joins, messages that grow.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rpc_core::net::mem::{self, MemListener};
use serde_json::json;
use snek_proto::bot::{Bot, BotConfig, Context, Handler, Notice, State};
use snek_proto::error::BotError;
use snek_proto::frame::Message;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::scripted::Peer;

const SECOND: Duration = Duration::from_secs(1);

/// Writes down what it sees. A handler of partial messages waits for its turn.
#[derive(Clone)]
struct Display {
    seen: Arc<Mutex<Vec<String>>>,
    turns: Arc<Semaphore>,
    states: Arc<OnceLock<watch::Receiver<State>>>,
}

impl Display {
    fn write(&self, line: String) {
        self.seen.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    fn state(&self) -> State {
        *self.states.get().unwrap().borrow()
    }
}

impl Handler for Display {
    async fn on_partial(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        let Message {
            username, message, ..
        } = message;
        self.write(format!("{} {username}: {message}", cx.channel()));
        if message.contains("panic") {
            panic!("as asked");
        }
        self.turns.acquire().await.unwrap().forget();
        Ok(())
    }

    async fn on_mention(&self, _: &Context, message: &Message) -> Result<(), BotError> {
        self.write(format!("all: {}", message.message));
        Ok(())
    }

    async fn on_join(&self, cx: &Context) -> Result<(), BotError> {
        self.write(format!("join {}", cx.channel()));
        Ok(())
    }

    async fn on_message(&self, _: &Context, message: &Message) -> Result<(), BotError> {
        self.write(format!("heard {}", message.message));
        Ok(())
    }

    fn on_notice(&self, notice: &Notice) {
        match notice {
            Notice::Connected { .. } => self.write(format!("connected in {}", self.state())),
            Notice::TooManyChannels { channel } => self.write(format!("too many: {channel}")),
            _ => {}
        }
    }
}

type Run = JoinHandle<Result<rpc_core::net::DrainReport, BotError>>;

fn start(config: BotConfig) -> (Display, MemListener, Run) {
    let (dialer, listener) = mem::listen(64);
    let display = Display {
        seen: Arc::default(),
        turns: Arc::new(Semaphore::new(0)),
        states: Arc::default(),
    };
    let bot = Bot::with_dialer(dialer, config, display.clone());
    display.states.set(bot.lifecycle()).unwrap();
    let run = tokio::spawn(bot.run_until(std::future::pending()));
    (display, listener, run)
}

fn config() -> BotConfig {
    BotConfig::new("mybot", "mypassword")
}

async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

async fn grow(line: &mut Peer, channel: &str, username: &str, text: &str) {
    line.send(json!({
        "event": "message", "message": text, "username": username,
        "user_nick": username, "channel_uid": channel, "is_final": false,
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_growing_message_shows_its_newest_text() {
    let (display, mut listener, _run) = start(config());
    let mut line = Peer::logged_in(&mut listener).await;
    settle().await;
    display.take();
    for text in ["a", "a b", "a b c"] {
        grow(&mut line, "ch1", "ann", text).await;
        settle().await;
    }
    grow(&mut line, "ch1", "bo", "x (/drive.bin/1)").await;
    grow(&mut line, "ch2", "ann", "y").await;
    // Its own answers come back too: they are not news.
    grow(&mut line, "ch1", "mybot", "z").await;
    settle().await;
    let mut seen = display.take();
    seen.sort();
    let drive = "ch1 bo: x (https://snek.molodetz.nl/drive.bin/1)";
    assert_eq!(seen, ["ch1 ann: a", drive, "ch2 ann: y"]);
    display.turns.add_permits(3);
    settle().await;
    assert_eq!(display.take(), ["ch1 ann: a b c"]);
    // The next one begins again.
    display.turns.add_permits(1);
    settle().await;
    grow(&mut line, "ch1", "ann", "a b c d").await;
    settle().await;
    assert_eq!(display.take(), ["ch1 ann: a b c d"]);
}

#[tokio::test(start_paused = true)]
async fn a_complete_message_replaces_the_waiting_partial() {
    let (display, mut listener, _run) = start(config());
    let mut line = Peer::logged_in(&mut listener).await;
    settle().await;
    display.take();
    for text in ["hi", "hi @My"] {
        grow(&mut line, "ch1", "ann", text).await;
        settle().await;
    }
    line.send_message("ch1", "ann", "hi @MyBot").await;
    settle().await;
    assert_eq!(display.take(), ["ch1 ann: hi", "all: hi @MyBot"]);
    display.turns.add_permits(2);
    settle().await;
    assert!(display.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_panicking_display_gets_the_next_partial() {
    let (display, mut listener, _run) = start(config());
    let mut line = Peer::logged_in(&mut listener).await;
    settle().await;
    display.take();
    for text in ["panic", "go on"] {
        grow(&mut line, "ch1", "ann", text).await;
        settle().await;
        assert_eq!(display.take(), [format!("ch1 ann: {text}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn connected_means_logged_in_with_known_channels() {
    let (display, mut listener, _run) = start(config());
    let mut line = Peer::accept(&mut listener).await;
    let answers = [
        json!({"username": "mybot"}),
        json!({"username": "mybot", "nick": "MyBot"}),
        json!([]),
    ];
    for data in answers {
        let request = line.request().await;
        settle().await;
        assert_eq!(display.state(), State::Connecting, "{request:?}");
        assert!(display.take().is_empty());
        line.answer(&request, data).await;
    }
    settle().await;
    assert_eq!(display.take(), ["connected in CONNECTED"]);
    assert_eq!(display.state(), State::Running);
    line.cut();
    settle().await;
    let _line = Peer::accept(&mut listener).await;
    settle().await;
    assert_eq!(display.state(), State::Connecting);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_gets_the_error_of_a_failed_bot() {
    let mut config = config();
    config.client.link.reconnect.cycles = Some(1);
    let (display, mut listener, run) = start(config);
    let mut states = display.states.get().unwrap().clone();
    // A handler that is still at work is given its time.
    let mut line = Peer::logged_in(&mut listener).await;
    grow(&mut line, "ch1", "ann", "a").await;
    settle().await;
    line.cut();
    for _ in 0..3 {
        Peer::accept(&mut listener).await.cut();
    }
    let failed = states.wait_for(|state| *state == State::Error);
    assert_eq!(
        *timeout(SECOND, failed).await.unwrap().unwrap(),
        State::Error
    );
    assert!(!run.is_finished());
    let error = run.await.unwrap().unwrap_err();
    assert!(
        matches!(error, BotError::ConnectionError { attempts: 3, .. }),
        "{error:?}"
    );
    assert_eq!(display.state(), State::Error);
    assert!(states.changed().await.is_err(), "everything is released");
}

#[tokio::test(start_paused = true)]
async fn joined_channels_are_bounded() {
    for (config, room) in [
        (
            BotConfig {
                max_joined: 2,
                ..config()
            },
            2,
        ),
        (config(), 1_000),
    ] {
        let (display, mut listener, _run) = start(config);
        let mut line = Peer::logged_in(&mut listener).await;
        settle().await;
        display.take();
        for number in 0..room {
            line.send_message(&format!("c{number}"), "ann", "@mybot join")
                .await;
            settle().await;
        }
        assert_eq!(display.take().len(), room);
        line.send_message("more", "ann", "@mybot join").await;
        line.send_message("c0", "ann", "@mybot join").await;
        line.send_message("more", "ann", "one").await;
        line.send_message("c0", "ann", "two").await;
        settle().await;
        let mut seen = display.take();
        seen.sort();
        assert_eq!(seen, ["heard two", "join c0", "too many: more"]);
        let leave = json!({"event": "leave", "data": {"channel_uid": "c0"}});
        line.send(leave).await;
        line.send_message("more", "ann", "@mybot join").await;
        settle().await;
        assert_eq!(display.take(), ["join more"]);
    }
}
