//! The bot against a scripted server: routing, repeats, reconnects, shutdown. Paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_core::net::mem;
use rpc_core::{Delivery, Limits};
use serde_json::json;
use snek_proto::bot::{Bot, BotConfig, Context, Handler, Notice, RetrySend, State};
use snek_proto::client::ClientConfig;
use snek_proto::error::BotError;
use snek_proto::frame::{Message, OtherEvent, Typing};
use snek_proto::permission::Triggers;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::acting::Acting;
use crate::scripted::Peer;

/// Answers everything with what it is, and writes down what it saw.
#[derive(Clone, Default)]
struct Diary {
    lines: Arc<Mutex<Vec<String>>>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Diary {
    fn write(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn notices(&self) -> Vec<Notice> {
        self.notices.lock().unwrap().clone()
    }
}

impl Handler for Diary {
    async fn on_own_message(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        self.write(format!("own {} {}", cx.channel(), message.message));
        Ok(())
    }

    async fn on_ping(&self, _: &Context, _: &Message, rest: &str) -> Result<(), BotError> {
        self.write(format!("ping {rest}"));
        Ok(())
    }

    async fn on_join(&self, cx: &Context) -> Result<(), BotError> {
        self.write(format!("join {} {}", cx.channel(), cx.is_joined()));
        Ok(())
    }

    async fn on_leave(&self, cx: &Context) -> Result<(), BotError> {
        self.write(format!("leave {} {}", cx.channel(), cx.is_joined()));
        Ok(())
    }

    async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        if message.message.contains("panic") {
            panic!("as asked");
        }
        if message.message.contains("wait") {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        cx.reply(format!("hi {}", message.user_nick)).await?;
        Ok(())
    }

    async fn on_message(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        cx.reply(format!("heard {}", message.message)).await?;
        Ok(())
    }

    async fn on_set_typing(&self, cx: &Context, typing: &Typing) -> Result<(), BotError> {
        self.write(format!(
            "typing {} {:?}",
            cx.channel(),
            typing.color.as_deref()
        ));
        Ok(())
    }

    async fn on_event(&self, _: &Context, event: &OtherEvent) -> Result<(), BotError> {
        self.write(format!("event {} {}", event.tag, event.data.get()));
        Ok(())
    }

    async fn on_error(&self, _: &Context, error: BotError) {
        self.write(format!("error {}", error.name()));
    }

    fn on_notice(&self, notice: &Notice) {
        self.notices.lock().unwrap().push(notice.clone());
    }
}

struct Running {
    diary: Diary,
    listener: mem::MemListener,
    states: tokio::sync::watch::Receiver<State>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<rpc_core::net::DrainReport, BotError>>,
}

fn start(config: BotConfig) -> Running {
    let (dialer, listener) = mem::listen(64);
    let diary = Diary::default();
    let bot = Bot::with_dialer(dialer, config, diary.clone());
    let states = bot.lifecycle();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(bot.run_until(async {
        let _ = stopped.await;
    }));
    Running {
        diary,
        listener,
        states,
        stop: Some(stop),
        task,
    }
}

fn config() -> BotConfig {
    BotConfig::new("mybot", "mypassword")
}

/// Lets everything happen that happens without time.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn each_message_goes_to_the_handler_with_its_priority() {
    let mut bot = start(BotConfig {
        triggers: Triggers::new(["^!"]).unwrap(),
        ..config()
    });
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "mybot", "ping from myself").await;
    line.send_message("ch1", "ann", "hello @MyBot").await;
    assert_eq!(line.posted().await, ("ch1".into(), "hi ann".into()));
    line.send_message("ch1", "ann", "ping  there ").await;
    assert_eq!(line.posted().await, ("ch1".into(), "pong there".into()));
    line.send_message("ch1", "ann", "nobody in particular")
        .await;
    line.send_message("dm1", "ann", "just us").await;
    assert_eq!(line.posted().await, ("dm1".into(), "heard just us".into()));
    line.send_message("ch1", "ann", "!help").await;
    assert_eq!(line.posted().await, ("ch1".into(), "heard !help".into()));
    line.send_message("ch1", "ann", "@mybot join").await;
    settle().await;
    line.send_message("ch1", "ann", "anything").await;
    assert_eq!(line.posted().await, ("ch1".into(), "heard anything".into()));
    line.send(json!({"event": "leave", "data": {"channel_uid": "ch1"}}))
        .await;
    line.send(json!({"event": "set_typing", "data": {"channel_uid": "ch1", "color": "#FF0000"}}))
        .await;
    line.send(json!({"event": "weather", "data": {"rain": 1}}))
        .await;
    settle().await;
    let mut lines = bot.diary.lines();
    lines.sort();
    let expected = [
        "event weather {\"rain\":1}",
        "join ch1 true",
        "leave ch1 false",
        "own ch1 ping from myself",
        "ping there",
        "typing ch1 Some(\"#FF0000\")",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn partial_messages_do_not_reach_message_handlers() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send(json!({
        "event": "message", "message": "ping so", "username": "ann", "user_nick": "Ann",
        "channel_uid": "ch1", "is_final": false,
    }))
    .await;
    line.send_message("ch1", "ann", "ping so far").await;
    assert_eq!(line.posted().await.1, "pong so far");
    settle().await;
    assert_eq!(bot.diary.lines(), ["ping so far"]);
}

#[tokio::test(start_paused = true)]
async fn outgoing_names_and_incoming_drive_links_are_sanitized() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("dm1", "ann", "see [x](/drive.bin/1) of Snek")
        .await;
    let (_, text) = line.posted().await;
    assert_eq!(
        text,
        "heard see [x](https://snek.molodetz.nl/drive.bin/1) of S-nek"
    );
    line.send_message("dm1", "ann", "ping lisa").await;
    assert_eq!(line.posted().await.1, "pong l-isa");
}

#[tokio::test(start_paused = true)]
async fn pongs_and_sanitizing_can_be_disabled() {
    let config = BotConfig {
        auto_pong: false,
        sanitize: false,
        drive_base: None,
        ..config()
    };
    let mut bot = start(config);
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "ping").await;
    settle().await;
    assert_eq!(bot.diary.lines(), ["ping "]);
    line.send_message("dm1", "ann", "see [x](/drive.bin/1) of Snek")
        .await;
    assert_eq!(line.posted().await.1, "heard see [x](/drive.bin/1) of Snek");
}

#[tokio::test(start_paused = true)]
async fn a_reconnect_logs_in_fully_and_keeps_joined_channels() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot join").await;
    settle().await;
    line.cut();
    let before = tokio::time::Instant::now();
    let mut line = Peer::logged_in(&mut bot.listener).await;
    assert_eq!(before.elapsed().as_secs(), 1);
    line.send_message("ch1", "ann", "still there?").await;
    assert_eq!(line.posted().await.1, "heard still there?");
    let notices = bot.diary.notices();
    assert!(
        matches!(notices[0], Notice::Connected { generation: 1 }),
        "{notices:?}"
    );
    assert!(
        matches!(
            notices[1],
            Notice::Lost {
                exhausted: false,
                ..
            }
        ),
        "{notices:?}"
    );
    assert!(
        matches!(notices[2], Notice::Connected { generation: 2 }),
        "{notices:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_message_is_sent_three_times() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot").await;
    for wait in [1, 2] {
        assert_eq!(line.request().await.method, "send_message");
        let before = tokio::time::Instant::now();
        // No answer: the call times out, and the next attempt comes over a new line.
        tokio::spawn(async move { while line.try_request().await.is_some() {} });
        line = Peer::logged_in(&mut bot.listener).await;
        assert_eq!(before.elapsed().as_secs(), 190 + wait);
    }
    assert_eq!(line.request().await.method, "send_message");
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(bot.diary.lines(), ["error ConnectionError"]);
    let resent: Vec<_> = bot
        .diary
        .notices()
        .into_iter()
        .filter(|notice| matches!(notice, Notice::Resent { .. }))
        .collect();
    let delivery = Delivery::Unknown;
    let expected = [
        Notice::Resent {
            attempt: 2,
            delivery,
        },
        Notice::Resent {
            attempt: 3,
            delivery,
        },
    ];
    assert_eq!(resent, expected);
}

#[tokio::test(start_paused = true)]
async fn a_message_lost_with_its_connection_is_resent_after_one_second() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot").await;
    assert_eq!(line.request().await.method, "send_message");
    let before = tokio::time::Instant::now();
    line.cut();
    let mut line = Peer::logged_in(&mut bot.listener).await;
    assert_eq!(line.posted().await.1, "hi ann");
    assert_eq!(before.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_reconnect_uses_up_an_attempt() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot").await;
    line.request().await;
    line.cut();
    // The second attempt finds no server that talks to it.
    drop(Peer::accept(&mut bot.listener).await);
    let mut line = Peer::logged_in(&mut bot.listener).await;
    assert_eq!(line.posted().await.1, "hi ann");
    let resent: Vec<_> = bot
        .diary
        .notices()
        .into_iter()
        .filter_map(|notice| match notice {
            Notice::Resent { attempt, .. } => Some(attempt),
            _ => None,
        })
        .collect();
    assert_eq!(resent, [3]);
}

#[tokio::test(start_paused = true)]
async fn only_if_unsent_never_posts_twice() {
    let mut bot = start(BotConfig {
        retry_send: RetrySend::OnlyIfUnsent,
        ..config()
    });
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot").await;
    line.request().await;
    line.cut();
    let mut line = Peer::logged_in(&mut bot.listener).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bot.diary.lines(), ["error RPCError"]);
    line.send_message("ch1", "ann", "ping").await;
    assert_eq!(line.posted().await.1, "pong");
}

#[tokio::test(start_paused = true)]
async fn only_if_unsent_resends_unsent_messages() {
    let config = BotConfig {
        retry_send: RetrySend::OnlyIfUnsent,
        ..config()
    };
    let mut bot = Acting::start(config, |cx| async move {
        // By then the line is down.
        tokio::time::sleep(Duration::from_millis(500)).await;
        cx.reply("hi").await?;
        Ok(())
    });
    let line = bot.mentioned().await;
    settle().await;
    line.cut();
    let mut line = Peer::logged_in(&mut bot.listener).await;
    assert_eq!(line.posted().await.1, "hi");
    assert_eq!(bot.errors(), []);
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_is_not_resent() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot").await;
    let request = line.request().await;
    line.refuse(&request, "no such channel").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bot.diary.lines(), ["error RPCError"]);
}

/// A bot whose connection has these limits.
fn limited(limits: Limits) -> BotConfig {
    BotConfig {
        client: ClientConfig {
            limits,
            ..ClientConfig::new("mybot", "mypassword")
        },
        ..config()
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_without_room_is_resent_on_the_same_connection() {
    let mut bot = start(limited(Limits {
        max_pending: 1,
        ..Limits::default()
    }));
    let mut line = Peer::logged_in(&mut bot.listener).await;
    let before = tokio::time::Instant::now();
    line.send_message("ch1", "ann", "@MyBot").await;
    line.send_message("ch1", "ann", "@MyBot").await;
    let first = line.request().await;
    settle().await;
    line.answer(&first, json!({})).await;
    assert_eq!(line.posted().await.1, "hi ann");
    assert_eq!(before.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_oversized_message_is_not_resent() {
    let config = limited(Limits {
        max_message_bytes: 1024,
        ..Limits::default()
    });
    let mut bot = Acting::start(config, |cx| async move {
        let before = tokio::time::Instant::now();
        let error = cx.reply("x".repeat(1024)).await.unwrap_err();
        assert_eq!(before.elapsed(), Duration::ZERO);
        Err(error)
    });
    let mut line = bot.mentioned().await;
    let sent = tokio::time::timeout(Duration::from_secs(10), line.request()).await;
    assert!(sent.is_err(), "{sent:?}");
    assert_eq!(bot.errors()[0].name(), "RPCError");
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_ends_the_bot_with_an_authentication_error() {
    let mut bot = start(config());
    let mut line = Peer::accept(&mut bot.listener).await;
    let request = line.request().await;
    line.refuse(&request, "wrong password").await;
    let error = bot.task.await.unwrap().unwrap_err();
    let expected = BotError::AuthenticationError {
        message: "wrong password".into(),
    };
    assert_eq!(error, expected);
    assert_eq!(*bot.states.borrow(), State::Error);
    let another = tokio::time::timeout(Duration::from_secs(30), bot.listener.accept()).await;
    assert!(!matches!(another, Ok(Some(_))), "tried again");
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_is_reported_and_survived() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot panic").await;
    line.send_message("ch1", "ann", "ping").await;
    assert_eq!(line.posted().await.1, "pong");
    settle().await;
    assert!(bot.diary.notices().contains(&Notice::HandlerPanicked));
}

#[tokio::test(start_paused = true)]
async fn states_match_the_specification() {
    let mut bot = start(config());
    let mut seen = vec![*bot.states.borrow_and_update()];
    let states = bot.states.clone();
    let collector = tokio::spawn(async move {
        let mut states = states;
        while states.changed().await.is_ok() {
            seen.push(*states.borrow_and_update());
        }
        seen
    });
    let mut line = Peer::accept(&mut bot.listener).await;
    settle().await;
    line.log_in().await;
    settle().await;
    bot.stop.take().unwrap().send(()).unwrap();
    let report = bot.task.await.unwrap().unwrap();
    assert_eq!(report, rpc_core::net::DrainReport::default());
    let seen = collector.await.unwrap();
    assert!(
        seen.contains(&State::Connecting) && seen.contains(&State::Running),
        "{seen:?}"
    );
    assert_eq!(seen.last(), Some(&State::Shutdown));
    for pair in seen.windows(2) {
        let order = |state: &State| State::ALL.iter().position(|other| other == state);
        assert!(order(&pair[0]) < order(&pair[1]), "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bot_without_a_connection_is_not_running() {
    let mut bot = start(config());
    let line = Peer::logged_in(&mut bot.listener).await;
    settle().await;
    line.cut();
    settle().await;
    assert_eq!(*bot.states.borrow(), State::Connecting);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_finishes_or_aborts_handlers() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot wait").await;
    line.send_message("ch1", "ann", "@MyBot").await;
    let request = line.request().await;
    let before = tokio::time::Instant::now();
    bot.stop.take().unwrap().send(()).unwrap();
    settle().await;
    assert_eq!(*bot.states.borrow(), State::ShuttingDown);
    line.answer(&request, json!({})).await;
    let report = bot.task.await.unwrap().unwrap();
    assert_eq!((report.finished, report.aborted), (1, 1));
    assert_eq!(before.elapsed().as_secs(), 5);
    assert_eq!(*bot.states.borrow(), State::Shutdown);
    assert!(
        line.try_request().await.is_none(),
        "the line was not closed"
    );
}

#[tokio::test(start_paused = true)]
async fn handlers_run_concurrently_up_to_the_bound() {
    let mut bot = start(BotConfig {
        max_handlers: 2,
        ..config()
    });
    let mut line = Peer::logged_in(&mut bot.listener).await;
    for _ in 0..3 {
        line.send_message("ch1", "ann", "@MyBot").await;
    }
    let first = line.request().await;
    let second = line.request().await;
    let third = tokio::time::timeout(Duration::from_secs(1), line.request()).await;
    assert!(third.is_err(), "a third handler ran");
    line.answer(&second, json!({})).await;
    assert_eq!(line.request().await.method, "send_message");
    line.answer(&first, json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_handlers_run_concurrently_by_default() {
    let mut bot = start(config());
    let mut line = Peer::logged_in(&mut bot.listener).await;
    for n in 0..120 {
        line.send_message("ch1", &n.to_string(), "@MyBot").await;
    }
    for _ in 0..100 {
        line.request().await;
    }
    let more = tokio::time::timeout(Duration::from_secs(1), line.request()).await;
    assert!(more.is_err(), "more than a hundred handlers ran");
}

#[tokio::test(start_paused = true)]
async fn a_lagging_bot_gets_the_number_of_missed_events() {
    let mut bot = start(BotConfig {
        max_handlers: 1,
        ..config()
    });
    let mut line = Peer::logged_in(&mut bot.listener).await;
    line.send_message("ch1", "ann", "@MyBot").await;
    let request = line.request().await;
    for number in 0..1_200 {
        line.send(json!({"event": "n", "data": number})).await;
    }
    settle().await;
    line.answer(&request, json!({})).await;
    settle().await;
    let missed = bot.diary.notices().into_iter().map(|notice| match notice {
        Notice::Lagged { events } => events,
        _ => 0,
    });
    let missed = missed.sum::<u64>();
    assert!((100..=200).contains(&missed), "{missed}");
    assert_eq!(bot.diary.lines().len() as u64, 1_200 - missed);
}
