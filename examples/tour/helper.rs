//! [`Helper`]: the bot of the tour. A bot is a type with a method per kind of message.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use examples::screen::{Colour, Screen};
use examples::talk;
use rpc_core::net::link::entropy;
use snek_proto::bot::{Context, Handler, Notice};
use snek_proto::{BotError, Final, Message};
use tokio::sync::watch;

/// How far the bot has come; the script of the tour waits for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// How often it was connected.
    pub(crate) connections: u64,
    /// How many messages it has answered, to the end of the call.
    pub(crate) answers: u64,
}

pub(crate) struct Helper {
    pub(crate) screen: Arc<Screen>,
    pub(crate) progress: watch::Sender<Progress>,
}

#[async_trait]
impl Handler for Helper {
    /// `ping` has been answered already when this is called.
    async fn on_ping(&self, _: &Context, _: &Message, _: &str) -> Result<(), BotError> {
        self.done();
        Ok(())
    }

    async fn on_join(&self, cx: &Context) -> Result<(), BotError> {
        cx.reply("here I am; ask me for the time, or for dice")
            .await?;
        self.done();
        Ok(())
    }

    async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        // A long answer is shown while it grows. Each part replaces the one before.
        cx.set_typing(None).await?;
        let mut text = format!("{}, I count:", message.user_nick);
        for number in 1..=3 {
            text = format!("{text} {number}");
            let client = cx.client();
            client
                .notify_message(cx.channel(), &text, Final::No)
                .await?;
        }
        cx.reply(format!("{text} - done")).await?;
        self.done();
        Ok(())
    }

    /// Called only where the bot may speak unasked: here, in the channel that it has joined.
    async fn on_message(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        if let Some(answer) = talk::answer(&message.message, entropy(), SystemTime::now()) {
            cx.reply(answer).await?;
            self.done();
        }
        Ok(())
    }

    /// What happens to the bot itself. Nothing has to be done about it.
    fn on_notice(&self, notice: &Notice) {
        let tell = |text: &str| self.screen.event("helper", Colour::Magenta, text);
        match notice {
            Notice::Connected { generation } => {
                tell(&format!("logged in, connection {generation}"));
                self.progress
                    .send_modify(|progress| progress.connections = *generation);
            }
            Notice::Lost { cause, .. } => tell(&format!("{cause}; coming back by itself")),
            other => tell(&format!("{other:?}")),
        }
    }
}

impl Helper {
    fn done(&self) {
        self.progress.send_modify(|progress| progress.answers += 1);
    }
}
