//! A bot whose handler is a closure, on an in-memory line.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rpc_core::Delivery;
use rpc_core::net::mem;
use snek_proto::bot::{Bot, BotConfig, Context, Handler, Notice};
use snek_proto::error::BotError;
use snek_proto::frame::Message;
use snek_proto::id::ChannelUid;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::scripted::Peer;

type Act = dyn Fn(Context) -> BoxFuture<'static, Result<(), BotError>> + Send + Sync;

/// Does one thing when it is mentioned, and writes down what went wrong.
struct Actor {
    act: Box<Act>,
    errors: Arc<Mutex<Vec<BotError>>>,
}

impl Handler for Actor {
    async fn on_mention(&self, cx: &Context, _: &Message) -> Result<(), BotError> {
        (self.act)(cx.clone()).await
    }

    async fn on_error(&self, _: &Context, error: BotError) {
        self.errors.lock().unwrap().push(error);
    }

    fn on_notice(&self, _: &Notice) {}
}

pub struct Acting {
    pub listener: mem::MemListener,
    pub stop: Option<oneshot::Sender<()>>,
    pub task: JoinHandle<Result<rpc_core::net::DrainReport, BotError>>,
    errors: Arc<Mutex<Vec<BotError>>>,
}

impl Acting {
    pub fn start<F>(config: BotConfig, act: impl Fn(Context) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), BotError>> + Send + 'static,
    {
        let (dialer, listener) = mem::listen(64);
        let errors = Arc::default();
        let actor = Actor {
            act: Box::new(move |cx| Box::pin(act(cx))),
            errors: Arc::clone(&errors),
        };
        let bot = Bot::with_dialer(dialer, config, actor);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(bot.run_until(async {
            let _ = stopped.await;
        }));
        Self {
            listener,
            stop: Some(stop),
            task,
            errors,
        }
    }

    /// A line over which the bot was just mentioned.
    pub async fn mentioned(&mut self) -> Peer {
        let mut line = Peer::logged_in(&mut self.listener).await;
        line.send_message("ch1", "ann", "@MyBot").await;
        line
    }

    pub fn errors(&self) -> Vec<BotError> {
        self.errors.lock().unwrap().clone()
    }

    pub fn shut_down(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

pub fn config() -> BotConfig {
    BotConfig::new("mybot", "mypassword")
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_send_to_any_channel() {
    let mut bot = Acting::start(BotConfig::new("mybot", "pass"), |cx| async move {
        cx.send(&ChannelUid::new("dm1"), "snek").await?;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    assert_eq!(line.posted().await, ("dm1".into(), "s-nek".into()));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_channel_is_a_validation_error() {
    let mut bot = Acting::start(BotConfig::new("mybot", "pass"), |cx| async move {
        cx.send(&ChannelUid::new("no/channel"), "x").await?;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    let sent = tokio::time::timeout(Duration::from_secs(10), line.request()).await;
    assert!(sent.is_err(), "{sent:?}");
    let errors = bot.errors();
    let [BotError::ValidationError { what, .. }] = &errors[..] else {
        panic!("{errors:?}")
    };
    assert_eq!(what, "channel_uid");
    assert_eq!(errors[0].delivery(), Some(Delivery::NotSent));
}

#[tokio::test(start_paused = true)]
async fn a_bot_says_once_that_it_stops_and_answers_others() {
    for (channel, text) in [("ch1", "@mybot x"), ("dm1", "@mybot x"), ("ch1", "ping")] {
        let mut bot = Acting::start(config(), |cx| async move {
            cx.reply("pong").await?;
            Ok(())
        });
        let mut line = Peer::logged_in(&mut bot.listener).await;
        for _ in 0..9 {
            line.send_message(channel, "eve", text).await;
        }
        line.send_message(channel, "ann", "@mybot hello").await;
        let mut posted = Vec::new();
        for _ in 0..7 {
            posted.push(line.posted().await.1);
        }
        // Eve's five, the word and Ann's: handlers run at the same time, in whatever order.
        let (answers, words): (Vec<_>, Vec<_>) = posted.iter().partition(|it| *it == "pong");
        assert_eq!((answers.len(), words.len()), (6, 1), "{posted:?}");
        assert!(words[0].contains("I stop answering"), "{words:?}");
        // Ann has ended it.
        line.send_message(channel, "eve", text).await;
        assert_eq!(line.posted().await.1, "pong");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_bound_every_message_is_answered() {
    let config = BotConfig {
        max_answers: None,
        ..config()
    };
    let mut bot = Acting::start(config, |_| async { Ok(()) });
    let mut line = Peer::logged_in(&mut bot.listener).await;
    for _ in 0..50 {
        line.send_message("ch1", "eve", "ping").await;
        assert_eq!(line.posted().await.1, "pong");
    }
}

/// Is in all channels, hears all that is said, and replies to questions.
struct Listening(Arc<Mutex<usize>>);

impl Handler for Listening {
    async fn on_message(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        *self.0.lock().unwrap() += 1;
        if message.message.ends_with('?') {
            cx.reply("no").await?;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_bot_only_listens_to_is_no_answer() {
    let (dialer, mut listener) = mem::listen(64);
    let received = Arc::default();
    let bot = Bot::with_dialer(dialer, config(), Listening(Arc::clone(&received)));
    let _bot = tokio::spawn(bot.run_until(std::future::pending()));
    let mut line = Peer::logged_in(&mut listener).await;
    line.send_message("ch1", "ann", "@mybot join").await;
    for _ in 0..50 {
        line.send_message("ch1", "eve", "you know").await;
    }
    for _ in 0..5 {
        line.send_message("ch1", "eve", "is it?").await;
        assert_eq!(line.posted().await.1, "no");
    }
    assert_eq!(*received.lock().unwrap(), 55);
    line.send_message("ch1", "eve", "is it?").await;
    assert!(line.posted().await.1.contains("I stop answering"));
}
