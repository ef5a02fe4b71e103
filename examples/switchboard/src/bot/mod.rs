//! [`BotHandler`]: what the bot does with messages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use rpc_core::Delivery;
use serde_json::{Value, json};
use snek_proto::bot::{Context, Handler, Notice};
use snek_proto::error::BotError;
use snek_proto::frame::Message;
use snek_proto::limits::RECONNECT_MAX_RETRIES;
use snek_proto::net::Client;
use snek_proto::permission::Triggers;
use tokio::sync::watch;

use crate::assistant::pictures::Pictures;
use crate::assistant::{Assistant, is_apology, replies};
use crate::cli::{self, Service, Urls};
use crate::model::{scripted, seconds};
use crate::text::printable;

/// What the bot does with messages.
pub(crate) struct BotHandler {
    pub(crate) triggers: Triggers,
    /// Counts the messages that were answered.
    pub(crate) answers: watch::Sender<u64>,
    /// Answers what is more than a word.
    pub(crate) assistant: Assistant,
    pub(crate) pictures: Option<Box<dyn Pictures>>,
    /// Whether some words are answered without the model. A real model knows better.
    pub(crate) knows_words: bool,
    /// Whether it was logged in.
    pub(crate) was_in: Arc<AtomicBool>,
    /// Says on which node it is.
    pub(crate) client: Arc<OnceLock<Client>>,
    /// Where the server is.
    pub(crate) url: Urls,
    /// Events are printed as JSON.
    pub(crate) json: bool,
}

impl Handler for BotHandler {
    /// `ping` has been answered already when this is called.
    async fn on_ping(&self, _: &Context, _: &Message, _: &str) -> Result<(), BotError> {
        self.answered();
        Ok(())
    }

    async fn on_join(&self, cx: &Context) -> Result<(), BotError> {
        self.tell_channel("joined", cx.channel().as_str());
        cx.reply(greeting(self.knows_words)).await?;
        self.answered();
        Ok(())
    }

    async fn on_leave(&self, cx: &Context) -> Result<(), BotError> {
        self.tell_channel("left", cx.channel().as_str());
        Ok(())
    }

    async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        self.answer(cx, message, true).await
    }

    async fn on_message(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        let is_dm = cx.channel_record().is_some_and(|channel| channel.is_dm());
        let addressed = is_dm || self.triggers.matches(&message.message);
        self.answer(cx, message, addressed).await
    }

    fn on_notice(&self, notice: &Notice) {
        match notice {
            Notice::Connected { generation } => {
                self.was_in.store(true, Ordering::Relaxed);
                let node = self.client.get().and_then(|client| client.node());
                let node = node.map(|node| node.to_string());
                let place = node.as_deref().unwrap_or("the server");
                let words = match generation {
                    1 => format!("logged in at {place}"),
                    _ => format!("logged in again (connection {generation}) at {place}"),
                };
                let about = json!({ "generation": generation, "node": node });
                self.report("connected", about, &words);
            }
            Notice::Lost {
                cause,
                attempt,
                retry_in,
                ..
            } => {
                let message = match self.was_in.load(Ordering::Relaxed) {
                    true => cause.to_string(),
                    false => cli::unreached(&Service::SNEK, &self.url, cause).to_string(),
                };
                let about = json!({
                    "message": message,
                    "retryInMs": retry_in.as_millis(),
                    "attempt": attempt,
                });
                let words = format!(
                    "{message}; trying again in {} (attempt {attempt}/{RECONNECT_MAX_RETRIES})",
                    seconds(*retry_in)
                );
                self.report("lost", about, &words);
            }
            Notice::TooManyChannels { channel } => {
                let words = format!("too many channels, not joining {}", channel.as_str());
                self.report("not_joined", json!({ "channel": channel.as_str() }), &words);
            }
            Notice::Stopped { channel, author } => {
                let channel = channel.as_str();
                let words =
                    format!("stopped answering {author} in {channel} for now, it may be a loop");
                let about = json!({ "channel": channel, "author": author.as_str() });
                self.report("stopped", about, &words);
            }
            Notice::Resent { attempt, delivery } => {
                let note = match delivery {
                    Delivery::NotSent => "the last one was not sent",
                    _ => "the last one may have arrived: the message can appear twice",
                };
                let words = format!("sending again, attempt {attempt}; {note}");
                self.report("resent", json!({ "attempt": attempt }), &words);
            }
            Notice::Lagged { events } => {
                let words = format!("too slow, {events} events were dropped");
                self.report("lagged", json!({ "events": events }), &words);
            }
            Notice::Warning(warning) => {
                let message = warning.to_string();
                let words = format!("warning: {message}");
                self.report("warning", json!({ "message": message }), &words);
            }
            other => {
                let words = format!("{other:?}");
                self.report("notice", json!({ "message": words }), &words);
            }
        }
    }
}

impl BotHandler {
    fn report(&self, event: &str, about: Value, words: &str) {
        cli::report(
            self.json,
            event,
            about,
            format_args!("bot: {}", printable(words)),
        );
    }

    fn tell_channel(&self, event: &str, channel: &str) {
        let words = format!("{event} {channel}");
        self.report(event, json!({ "channel": channel }), &words);
    }

    async fn answer(
        &self,
        cx: &Context,
        message: &Message,
        addressed: bool,
    ) -> Result<(), BotError> {
        let text = &*message.message;
        // Explanations are not explained again: two bots would keep each other busy.
        if [replies::HELP, scripted::HELP].contains(&text) || is_apology(text) {
            return Ok(());
        }
        let word = if self.knows_words {
            replies::answer(text, SystemTime::now())
        } else {
            None
        };
        // In a channel with others, what the rules do not know is not the bot's business.
        if word.is_some() || self.knows_words && !addressed {
            let (channel, nick) = (cx.channel().as_str(), &*message.user_nick);
            self.assistant
                .remember(channel, nick, text, word.as_deref());
            return self.reply(cx, word).await;
        }
        let pictures = self.pictures.as_deref();
        if let Err(error) = self.assistant.reply(cx, message, pictures).await? {
            let message = error.to_string();
            let words = format!("no answer: {message}");
            self.report("no_answer", json!({ "message": message }), &words);
        }
        self.answered();
        Ok(())
    }

    async fn reply(&self, cx: &Context, answer: Option<String>) -> Result<(), BotError> {
        if let Some(answer) = answer {
            cx.reply(answer).await?;
            self.answered();
        }
        Ok(())
    }

    fn answered(&self) {
        self.answers.send_modify(|answers| *answers += 1);
        if self.json {
            let count = *self.answers.borrow();
            self.report("answered", json!({ "count": count }), "");
        }
    }
}

/// What is said first in a channel. A real model does not know the words of the rules.
fn greeting(knows_words: bool) -> String {
    let help = if knows_words {
        replies::HELP
    } else {
        "Ask me what you want to know"
    };
    format!("here I am. {help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_work_are_advertised() {
        assert!(greeting(true).ends_with(replies::HELP));
        let greeting = greeting(false);
        for word in ["help", "time", "echo"] {
            assert!(!greeting.contains(word), "{greeting}");
        }
    }
}
