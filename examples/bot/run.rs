//! The bot itself: its options, its handler, its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use clap::ValueEnum;
use examples::assistant::{Assistant, is_apology};
use examples::cli::{self, Failure, complain};
use examples::model::scripted;
use examples::pictures::Pictures;
use examples::replies;
use examples::screen::{Colour, Screen, printable, snek};
use rpc_core::Delivery;
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::entropy;
use serde_json::{Value, json};
use snek_proto::bot::{Bot, BotConfig, Context, Handler, Notice, RetrySend};
use snek_proto::client::ClientConfig;
use snek_proto::error::BotError;
use snek_proto::frame::Message;
use snek_proto::limits::RECONNECT_MAX_RETRIES;
use snek_proto::net::link_config;
use snek_proto::permission::Triggers;
use tokio::sync::watch;

use crate::bot::think;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server: ws://HOST:PORT or wss://HOST. Without a path, /rpc.ws is meant.
    #[arg(long, env = "SNEK_URL")]
    url: Option<String>,
    /// The login name.
    #[arg(long, value_name = "NAME", env = "SNEK_USERNAME")]
    username: Option<String>,
    /// The environment variable that holds the password.
    #[arg(long, value_name = "VAR", default_value = "SNEK_PASSWORD")]
    password_env: String,
    /// Let the password go to another machine without encryption.
    #[arg(long)]
    insecure: bool,
    /// A regular expression: messages in which it is found are answered in every channel.
    #[arg(long = "trigger", value_name = "REGEX")]
    triggers: Vec<String>,
    /// What to do when a message could not be sent.
    #[arg(long, value_enum, default_value_t = Retry::Spec)]
    retry: Retry,
    /// How often to ping the server; 0 is never.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = cli::duration)]
    heartbeat: Duration,
    /// How long a ping may stay unanswered.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = cli::duration)]
    pong_timeout: Duration,
    /// How long a call may stay unanswered, the messages of a growing answer included.
    #[arg(long, value_name = "TIME", default_value = "190s", value_parser = cli::duration)]
    request_timeout: Duration,
    /// End after the first answer.
    #[arg(long)]
    once: bool,
    /// End after this time; with --once, fail if nothing was answered by then.
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    within: Option<Duration>,
    /// Show every frame. Passwords are left out.
    #[arg(long)]
    frames: bool,
    /// Print one JSON object for each event: connected, joined, answered, lost and so on.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    think: think::ModelArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Retry {
    /// Three attempts, as the protocol orders: a message may appear twice.
    Spec,
    /// Repeat only what certainly did not arrive.
    Unsent,
    /// Never repeat.
    Off,
}

impl From<Retry> for RetrySend {
    fn from(retry: Retry) -> Self {
        match retry {
            Retry::Spec => Self::SpecCompat,
            Retry::Unsent => Self::OnlyIfUnsent,
            Retry::Off => Self::Off,
        }
    }
}

pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let ended = answer_messages(&args).await;
    ended.inspect_err(|failure| failure.tell(args.json))
}

async fn answer_messages(args: &Args) -> Result<(), Failure> {
    let url = args.url.as_deref().ok_or_else(|| {
        Failure::usage(
            "no server: give --url ws://HOST:PORT or set SNEK_URL ('switchboard bot serve --open' starts one)",
        )
    })?;
    let config = config(args)?;
    let (assistant, pictures) = think::assistant(&args.think)?;

    let (answers, mut answered) = watch::channel(0_u64);
    let triggers = config.triggers.clone();
    let username = config.client.username.clone();
    let was_in = Arc::new(AtomicBool::new(false));
    let talker = Talker {
        triggers,
        answers,
        assistant,
        pictures,
        knows_words: args.think.model == think::Kind::Scripted,
        was_in: Arc::clone(&was_in),
        json: args.json,
    };
    let bot = Bot::new(url, config, talker).map_err(|error| {
        Failure::usage(format_args!(
            "{error}; write it like ws://127.0.0.1:8080 or wss://snek.example.com/rpc.ws, or say \
             --insecure if the password may be seen on the way"
        ))
    })?;

    let (json, mut is_interrupted) = (args.json, false);
    let ending = |why: &str| {
        let words = format!("bot: {why}");
        cli::tell(json, "ending", json!({ "why": why }), words);
    };
    let enough = async {
        let first_answer = async {
            if !args.once || answered.wait_for(|answers| *answers > 0).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let time_is_up = async {
            match args.within {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = first_answer => ending("answered once, that is all"),
            () = time_is_up => ending("the time is up"),
            () = cli::end_signal() => {
                is_interrupted = true;
                ending("finishing what is under way");
            }
        }
    };
    let report = bot.run_until(enough).await.map_err(|error| match error {
        BotError::AuthenticationError { message } => Failure::refused(format_args!(
            "the server refused the login of {username:?}: {message}; check --username and the \
             password in {}",
            args.password_env
        )),
        BotError::ConnectionError { cause, .. } if !was_in.load(Ordering::Relaxed) => {
            Failure::refused(cause)
        }
        BotError::ConnectionError { cause, .. } => Failure::new(cause),
        other => Failure::new(other),
    })?;
    if report.aborted > 0 {
        complain(format_args!("bot: {} answers were cut off", report.aborted));
    }
    match args.once && *answered.borrow() == 0 {
        true if is_interrupted => Err(Failure::aborted()),
        true => Err(Failure::new("nothing was answered")),
        false => Ok(()),
    }
}

fn config(args: &Args) -> Result<BotConfig, Failure> {
    let username = args
        .username
        .as_deref()
        .filter(|name| !name.is_empty())
        .ok_or_else(|| {
            Failure::usage("no login name: give --username NAME or set SNEK_USERNAME")
        })?;
    let variable = &args.password_env;
    let password = std::env::var(variable).map_err(|_| {
        Failure::usage(format_args!(
            "no password: set the environment variable {variable}, or name another one with \
             --password-env; it is never given on the command line, where other users could see it"
        ))
    })?;
    let triggers = Triggers::new(&args.triggers).map_err(Failure::usage)?;
    let heartbeat = Some(args.heartbeat).filter(|interval| !interval.is_zero());
    let keep_alive = KeepAlive::default()
        .with_interval(heartbeat)
        .with_pong_timeout(args.pong_timeout);
    let client = ClientConfig::new(username, password)
        .with_call_timeout(args.request_timeout)
        .with_insecure_password(args.insecure)
        .with_keep_alive(keep_alive);
    let mut link = link_config();
    if args.frames {
        let stderr = std::io::stderr();
        let colour = cli::wants_colour(&stderr);
        link = link.with_observer(Screen::new(stderr, colour).observer(
            username,
            Colour::Cyan,
            snek::Frames::default(),
        ));
    }
    Ok(BotConfig::new(username, "")
        .with_client(client)
        .with_link(link)
        .with_triggers(triggers)
        .with_retry_send(args.retry.into()))
}

/// What the bot does with messages.
struct Talker {
    triggers: Triggers,
    /// Counts the messages that were answered.
    answers: watch::Sender<u64>,
    /// Answers what is more than a word.
    assistant: Assistant,
    pictures: Option<Box<dyn Pictures>>,
    /// Whether some words are answered without the model. A real model knows better.
    knows_words: bool,
    /// Whether it was logged in.
    was_in: Arc<AtomicBool>,
    /// Events are told in JSON.
    json: bool,
}

#[async_trait]
impl Handler for Talker {
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
                let words = match generation {
                    1 => "logged in".to_owned(),
                    _ => format!("logged in again (connection {generation})"),
                };
                self.tell("connected", json!({ "generation": generation }), &words);
            }
            Notice::Lost {
                cause,
                attempt,
                retry_in,
                ..
            } => {
                let about = json!({
                    "message": cause.to_string(),
                    "retryInMs": retry_in.as_millis(),
                    "attempt": attempt,
                });
                let words = format!(
                    "{cause}; trying again in {retry_in:?} (attempt {attempt}/{RECONNECT_MAX_RETRIES})"
                );
                self.tell("lost", about, &words);
            }
            Notice::TooManyChannels { channel } => {
                let words = format!("too many channels, not joining {}", channel.as_str());
                self.tell("not_joined", json!({ "channel": channel.as_str() }), &words);
            }
            Notice::Resent { attempt, delivery } => {
                let note = match delivery {
                    Delivery::NotSent => "the last one was not sent",
                    _ => "the last one may have arrived: the message can appear twice",
                };
                let words = format!("sending again, attempt {attempt}; {note}");
                self.tell("resent", json!({ "attempt": attempt }), &words);
            }
            Notice::Lagged { events } => {
                let words = format!("too slow, {events} events were dropped");
                self.tell("lagged", json!({ "events": events }), &words);
            }
            Notice::Warning(warning) => {
                let message = warning.to_string();
                let words = format!("warning: {message}");
                self.tell("warning", json!({ "message": message }), &words);
            }
            other => {
                let words = format!("{other:?}");
                self.tell("notice", json!({ "message": words }), &words);
            }
        }
    }
}

impl Talker {
    fn tell(&self, event: &str, about: Value, words: &str) {
        cli::tell(
            self.json,
            event,
            about,
            format_args!("bot: {}", printable(words)),
        );
    }

    fn tell_channel(&self, event: &str, channel: &str) {
        let words = format!("{event} {channel}");
        self.tell(event, json!({ "channel": channel }), &words);
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
            replies::answer(text, entropy(), SystemTime::now())
        } else {
            None
        };
        // In a channel with others, what the rules do not know is no business of the bot.
        if word.is_some() || self.knows_words && !addressed {
            let (channel, nick) = (cx.channel().as_str(), &*message.user_nick);
            self.assistant.heard(channel, nick, text, word.as_deref());
            return self.reply(cx, word).await;
        }
        let pictures = self.pictures.as_deref();
        if let Err(error) = self.assistant.reply(cx, message, pictures).await? {
            let message = error.to_string();
            let words = format!("no answer: {message}");
            self.tell("no_answer", json!({ "message": message }), &words);
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
            self.tell("answered", json!({ "count": count }), "");
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
        for word in ["help", "time", "dice", "echo"] {
            assert!(!greeting.contains(word), "{greeting}");
        }
    }
}
