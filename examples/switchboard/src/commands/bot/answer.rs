//! `switchboard bot` without a subcommand: answers messages in the channels of a Snek server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rpc_core::CallError;
use serde_json::json;
use snek_proto::bot::{Bot, BotConfig, RetrySend};
use snek_proto::error::BotError;
use snek_proto::net::dialer;
use snek_proto::permission::Triggers;
use tokio::sync::watch;

use super::model;
use crate::bot::BotHandler;
use crate::chat::bot::PASSWORD;
use crate::cli::{self, Failure, LineArgs, Service, Urls, complain};
use crate::commands::choice;
use crate::model::provider::Provider;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The URL of the server: ws://HOST:PORT or wss://HOST; several, separated by commas, for its nodes. The
    /// default path is /rpc.ws.
    #[arg(long, env = "SNEK_URL")]
    url: Option<Urls>,
    #[command(flatten)]
    line: LineArgs,
    /// The login name.
    #[arg(long, value_name = "NAME", env = "SNEK_USERNAME")]
    username: Option<String>,
    /// Allow sending the password to another machine without encryption.
    #[arg(long)]
    insecure: bool,
    /// Also answer messages that match this regular expression, in every channel; may be repeated.
    #[arg(long = "trigger", value_name = "REGEX")]
    triggers: Vec<String>,
    /// What to do when sending a message has failed.
    #[arg(long, default_value = "spec", value_parser = choice([
        ("spec", "Try three times, as the protocol requires. A message may appear twice", RetrySend::SpecCompat),
        ("unsent", "Repeat only messages that certainly did not arrive", RetrySend::OnlyIfUnsent),
        ("off", "Never repeat", RetrySend::Off),
    ]))]
    retry: RetrySend,
    #[command(flatten)]
    pings: cli::Pings,
    /// How long to wait for the answer to a call, such as sending a part of an answer.
    #[arg(long, value_name = "TIME", default_value = "190s", value_parser = cli::duration)]
    request_timeout: Duration,
    /// Exit after the first answer.
    #[arg(long)]
    once: bool,
    /// Exit after this time; with --once, fail if nothing has been answered by then.
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    within: Option<Duration>,
    /// Print one JSON object for each event: connected, joined, answered, lost and so on.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: model::BotModelArgs,
}

pub(crate) async fn answer(args: Args) -> Result<(), Failure> {
    let ended = answer_messages(&args).await;
    ended.inspect_err(|failure| failure.report(args.json))
}

async fn answer_messages(args: &Args) -> Result<(), Failure> {
    let url = args.url.as_ref().ok_or_else(|| {
        Failure::usage(
            "no server: give --url ws://HOST:PORT or set SNEK_URL ('switchboard bot serve --open' starts one)",
        )
    })?;
    let config = config(args)?;
    let (mut assistant, pictures, place) = model::assistant(&args.model)?;
    let json = args.json;
    assistant.on_notice = Box::new(move |notice| {
        let message = notice.to_string();
        let words = format!("bot: {message}");
        cli::report(json, "notice", json!({ "message": message }), words);
    });

    let (answers, mut answered) = watch::channel(0_u64);
    let triggers = config.triggers.clone();
    let username = config.client.username.clone();
    let was_in = Arc::new(AtomicBool::new(false));
    let client = Arc::new(OnceLock::new());
    let handler = BotHandler {
        triggers,
        answers,
        assistant,
        pictures,
        knows_words: args.model.model.provider() == Provider::Scripted,
        was_in: Arc::clone(&was_in),
        client: Arc::clone(&client),
        url: url.clone(),
        json: args.json,
    };
    let line = args.line.to(url)?;
    let dialer = dialer(url.expose(), &config.client)?;
    if !args.json {
        complain(format_args!("bot: model: {place}"));
    }
    let bot = Bot::with_dialer(line.dialer(dialer), config, handler);

    // It was empty until now.
    let _ = client.set(bot.client());
    let mut is_interrupted = false;
    let ending = |why: &str| {
        let words = format!("bot: {why}");
        cli::report(json, "note", json!({ "message": why }), words);
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
            () = first_answer => ending("answered once"),
            () = time_is_up => ending("the time of --within is up"),
            () = cli::end_signal() => {
                is_interrupted = true;
                ending("finishing the answers in progress; Ctrl-C again ends at once");
            }
        }
    };
    let report = bot.run_until(enough).await.map_err(|error| match error {
        BotError::AuthenticationError { message } => Failure::refused(format_args!(
            "the server refused the login of {username:?}: {message}; check --username and the \
             password in {PASSWORD}"
        )),
        BotError::ConnectionError { cause, .. } => match *cause {
            CallError::Closed { reason, .. } if !was_in.load(Ordering::Relaxed) => {
                cli::unreached(&Service::SNEK, url, &reason)
            }
            cause => Failure::new(cause),
        },
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
    let password = cli::secret(PASSWORD)?.ok_or_else(|| {
        Failure::usage(format_args!(
            "no password: set the environment variable {PASSWORD}; it is never given on the command line, \
             where other users could see it"
        ))
    })?;
    let mut config = BotConfig::new(username, password);
    config.client.call_timeout = args.request_timeout;
    // A call may take long; a server that does not answer a login speaks another protocol.
    config.client.handshake_timeout = Some(args.request_timeout.min(Duration::from_secs(10)));
    config.client.insecure = args.insecure;
    config.client.keep_alive = args.pings.over(config.client.keep_alive);
    config.triggers = Triggers::new(&args.triggers).map_err(Failure::usage)?;
    config.retry_send = args.retry;
    Ok(config)
}
