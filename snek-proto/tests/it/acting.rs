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
        line.say("ch1", "ann", "@MyBot").await;
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
