//! [`Helper`]: the bot of the tour. A bot is a type with a method per kind of message.

use std::sync::Arc;
use std::time::SystemTime;

use switchboard::assistant::{Assistant, Step};
use switchboard::pictures::FromHere;
use switchboard::replies;
use switchboard::screen::{Colour, Screen};
use rpc_core::net::entropy;
use snek_proto::bot::{Context, Handler, Notice};
use snek_proto::error::BotError;
use snek_proto::frame::Message;
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
    /// A language model with tools and the history of each channel.
    pub(crate) assistant: Assistant,
    pub(crate) pictures: FromHere,
}

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

    /// The assistant types while it thinks, runs the tools that its model asks for, and lets the
    /// answer grow in the channel: each part replaces the one before.
    async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        let thought = self
            .assistant
            .reply(cx, message, Some(&self.pictures))
            .await?;
        if let Err(error) = thought {
            let text = format!("no answer: {error}");
            self.screen.event("helper", Colour::Magenta, &text);
        }
        self.done();
        Ok(())
    }

    /// Called only where the bot may speak unasked: here, in the channel that it has joined.
    async fn on_message(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        let answer = replies::answer(&message.message, entropy(), SystemTime::now());
        let (channel, nick) = (cx.channel().as_str(), &*message.user_nick);
        self.assistant
            .heard(channel, nick, &message.message, answer.as_deref());
        if let Some(answer) = answer {
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

/// Shows what the model wants and gets; its words are seen in the channel.
pub(crate) fn show(screen: &Screen, step: &Step<'_>) {
    let text = match step {
        Step::Called { tool, arguments } => {
            let arguments = serde_json::to_string(arguments).unwrap_or_default();
            format!("the model calls {tool}({arguments})")
        }
        Step::Returned { tool, result } => match result {
            Ok(value) => format!("{tool} returns {value}"),
            Err(error) => format!("{tool} fails: {error}"),
        },
        _ => return,
    };
    screen.event("helper", Colour::Magenta, &text);
}
