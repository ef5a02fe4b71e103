//! The bot under faults, over real sockets: handlers that panic or never return, lines that break, and
//! shutdowns in the middle of everything.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::reconnect::ReconnectPolicy;
use serde_json::{Value, json};
use snek_proto::bot::{Bot, BotConfig, Context, Handler, Notice};
use snek_proto::error::BotError;
use snek_proto::frame::Message;
use switchboard_testing::faults::{End, RawFrame, RawListener, RawPeer};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A deadline that must not pass.
const PATIENCE: Duration = Duration::from_secs(60);
/// One that has to.
const SHORT: Duration = Duration::from_millis(150);

/// Does what it is told.
#[derive(Clone, Default)]
struct Obedient {
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Handler for Obedient {
    async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        if message.message.contains("panic") {
            panic!("as told");
        }
        if message.message.contains("hang") {
            std::future::pending::<()>().await;
        }
        cx.reply("here").await?;
        Ok(())
    }

    fn on_notice(&self, notice: &Notice) {
        self.notices.lock().unwrap().push(notice.clone());
    }
}

struct Running {
    listener: RawListener,
    notices: Arc<Mutex<Vec<Notice>>>,
    stop: Arc<Notify>,
    task: JoinHandle<Result<rpc_core::net::DrainReport, BotError>>,
}

async fn start() -> Running {
    let listener = RawListener::bind().await.unwrap();
    let backoff = BackoffPolicy {
        max_attempts: Some(10),
        ..BackoffPolicy::new(Duration::from_millis(10), 1.0)
    };
    let mut config = BotConfig {
        shutdown_timeout: SHORT,
        ..BotConfig::new("mybot", "mypassword")
    };
    config.client.link.reconnect = ReconnectPolicy::new(backoff);
    let handler = Obedient::default();
    let notices = Arc::clone(&handler.notices);
    let bot = Bot::new(&format!("ws://{}", listener.address()), config, handler).unwrap();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(bot.run_until(async move { stopped.notified().await }));
    Running {
        listener,
        notices,
        stop,
        task,
    }
}

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("nothing hangs")
}

/// The code of the Close, which is answered.
async fn closed(mut line: RawPeer) -> Option<u16> {
    while let Ok(Some(frame)) = soon(line.receive()).await {
        if let Some(code) = frame.close_code() {
            let _ = line.frame(RawFrame::close(code)).await;
            return Some(code);
        }
    }
    None
}

async fn recv(line: &mut RawPeer) -> Value {
    serde_json::from_str(&soon(line.next_text()).await.unwrap()).unwrap()
}

async fn answer(line: &mut RawPeer, method: &str, data: Value) -> Value {
    let frame = recv(line).await;
    assert_eq!(frame["method"], method, "{frame}");
    let answer = json!({"callId": frame["callId"], "data": data});
    line.text(&answer.to_string()).await.unwrap();
    frame
}

async fn mention(line: &mut RawPeer, what: &str) {
    let message = json!({
        "event": "message", "message": format!("@mybot {what}"), "username": "ann",
        "user_nick": "Ann", "channel_uid": "ch1", "is_final": true,
    });
    line.text(&message.to_string()).await.unwrap();
}

impl Running {
    async fn accept(&self) -> RawPeer {
        soon(self.listener.accept_upgraded()).await.unwrap().0
    }

    async fn logged_in(&self) -> RawPeer {
        let mut line = self.accept().await;
        answer(&mut line, "login", json!({})).await;
        let user = json!({"username": "mybot", "nick": "mybot"});
        answer(&mut line, "get_user", user).await;
        let channels = json!([{"uid": "ch1", "name": "general", "tag": "public"}]);
        answer(&mut line, "get_channels", channels).await;
        line
    }

    fn panics(&self) -> usize {
        let notices = self.notices.lock().unwrap();
        let panics = notices
            .iter()
            .filter(|it| matches!(it, Notice::HandlerPanicked));
        panics.count()
    }
}

/// The bot does what is asked of it.
async fn works(line: &mut RawPeer) {
    mention(line, "hello").await;
    let sent = answer(line, "send_message", json!({})).await;
    assert_eq!(sent["args"][1], "here");
}

#[tokio::test]
async fn a_bot_survives_panicking_handlers() {
    let bot = start().await;
    let mut line = bot.logged_in().await;
    for _ in 0..3 {
        mention(&mut line, "panic").await;
    }
    works(&mut line).await;
    assert_eq!(bot.panics(), 3);
}

#[tokio::test]
async fn hanging_handlers_do_not_block_the_bot() {
    let bot = start().await;
    let mut line = bot.logged_in().await;
    for _ in 0..3 {
        mention(&mut line, "hang").await;
    }
    works(&mut line).await;
    bot.stop.notify_one();
    assert_eq!(closed(line).await, Some(1000));
    let report = soon(bot.task).await.unwrap().unwrap();
    assert_eq!(report.aborted, 3);
}

#[tokio::test]
async fn a_bot_logs_in_again_after_any_disconnect() {
    let bot = start().await;
    let mut line = bot.logged_in().await;
    works(&mut line).await;
    drop(line);
    let mut line = bot.logged_in().await;
    works(&mut line).await;
    line.reset();
    let mut line = bot.logged_in().await;
    works(&mut line).await;
    line.frame(RawFrame::close(1001)).await.unwrap();
    assert_eq!(soon(line.end()).await, End::Close(1001));
    let mut line = bot.logged_in().await;
    line.frame(RawFrame::text("{}").masked(true)).await.unwrap();
    assert_eq!(soon(line.end()).await, End::Close(1002));
    // In the middle of the login, too.
    let mut line = bot.accept().await;
    recv(&mut line).await;
    line.reset();
    let mut line = bot.logged_in().await;
    works(&mut line).await;
}

#[tokio::test]
async fn a_bot_can_be_stopped_in_any_state() {
    // While it dials.
    let bot = start().await;
    let line = soon(bot.listener.accept()).await.unwrap();
    bot.stop.notify_one();
    soon(bot.task).await.unwrap().unwrap();
    drop(line);
    // In the login.
    let bot = start().await;
    let mut line = bot.accept().await;
    recv(&mut line).await;
    bot.stop.notify_one();
    assert_eq!(closed(line).await, Some(1000));
    soon(bot.task).await.unwrap().unwrap();
    // With a message on its way.
    let bot = start().await;
    let mut line = bot.logged_in().await;
    mention(&mut line, "hello").await;
    assert_eq!(recv(&mut line).await["method"], "send_message");
    bot.stop.notify_one();
    assert_eq!(closed(line).await, Some(1000));
    let report = soon(bot.task).await.unwrap().unwrap();
    assert_eq!(report.finished + report.aborted, 1);
}
