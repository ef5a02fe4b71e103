//! `switchboard gateway chat`: says something to a gateway and prints the reply as it comes, or asks what it
//! remembers.

use std::io::Write as _;

use clap::ArgGroup;
use examples::cli::{self, Failure, complain, say};
use examples::screen::{printable, printable_lines};
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::error::{ErrorKind, RpcError};
use exoclaw_proto::frame::{BudgetStatus, BudgetUse, ChatSend, SessionRef, StreamEvent};
use exoclaw_proto::net::{Client, connect_with, dialer, link_config};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Delivery, Secret, Str};
use serde::Serialize;

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what").required(true))]
pub(crate) struct Args {
    /// What to say.
    #[arg(group = "what")]
    text: Option<String>,
    /// Print the last turns of the conversation, oldest first. This and what follows works with a
    /// gateway that has 'extensions = true'.
    #[arg(long, group = "what", value_name = "COUNT", num_args = 0..=1, require_equals = true,
          default_missing_value = "10")]
    history: Option<u64>,
    /// Forget the turns of the conversation. What the gateway knows of you stays.
    #[arg(long, group = "what")]
    clear: bool,
    /// Print what the gateway knows of you about these words.
    #[arg(long, group = "what", value_name = "WORDS")]
    search: Option<String>,
    /// Print how many tokens are used.
    #[arg(long, group = "what")]
    budget: bool,
    /// The gateway.
    #[arg(
        long,
        value_name = "URL",
        env = "EXOCLAW_URL",
        default_value = "ws://127.0.0.1:7200"
    )]
    url: String,
    /// The gateway's token. Better given in the environment: others can see command lines.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "EXOCLAW_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
    /// Whom to be: the conversation is remembered under channel, account and peer.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    channel: String,
    /// The account within the channel.
    #[arg(long, value_name = "NAME", default_value = "user")]
    account: String,
    /// The peer.
    #[arg(long, value_name = "NAME", default_value = "main")]
    peer: String,
    /// The guild or server, by which the gateway may choose the agent.
    #[arg(long, value_name = "NAME")]
    guild: Option<Str>,
    /// The team within the guild.
    #[arg(long, value_name = "NAME")]
    team: Option<Str>,
    /// Print one JSON object for each event of the reply, the last with the event 'done' or 'error'; or
    /// for each turn and fact, or for what else is asked.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn chat(args: &Args) -> Result<(), Failure> {
    let mut config = ClientConfig::new()
        .with_channel(args.channel.as_str())
        .with_account(args.account.as_str())
        .with_peer(args.peer.as_str());
    let token = args.token.as_deref();
    config.token = token.filter(|token| !token.is_empty()).map(Secret::from);
    let dialer = dialer(&args.url, &config).map_err(Failure::usage)?;
    // A gateway that is not there is told at once, not waited for.
    let link = link_config().with_reconnect(ReconnectPolicy::off());
    let (client, _, connection) = connect_with(dialer, config.clone(), link);
    let connection = tokio::spawn(connection.run());
    client.ready().await.map_err(|reason| {
        let hint = match reason {
            CloseReason::Authentication { .. } => " (the token comes from EXOCLAW_TOKEN)",
            _ => "",
        };
        Failure::refused(format_args!(
            "no connection to {}: {reason}{hint}",
            args.url
        ))
    })?;

    let work = async {
        match &args.text {
            Some(text) => {
                let mut chat = config.chat(text);
                (chat.guild, chat.team) = (args.guild.clone(), args.team.clone());
                converse(&client, chat, args.json).await
            }
            None => ask(&client, args)
                .await
                .map_err(|error| explain(error, false)),
        }
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        () = cli::end_signal() => Err(Failure::aborted()),
    };
    client.close();
    connection.await.map_err(Failure::new)?;
    outcome
}

/// What has failed, in the gateway's own words if it has any. Whether it has `begun` to answer.
fn explain(error: CallError<RpcError>, begun: bool) -> Failure {
    let is_refused = match &error {
        CallError::Remote(error) => !matches!(error.kind(), ErrorKind::Provider | ErrorKind::Other),
        other => other.delivery() == Delivery::NotSent,
    };
    let words = match error {
        CallError::Remote(error) if error.kind() == ErrorKind::UnknownMethod => {
            format!("{error} (the gateway needs 'extensions = true' for that)")
        }
        CallError::Remote(error) => error.to_string(),
        other => other.to_string(),
    };
    match is_refused && !begun {
        true => Failure::refused(words),
        false => Failure::new(words),
    }
}

/// Prints an answer as a line of JSON, or in words.
fn answer(json: bool, value: &impl Serialize, words: impl FnOnce() -> String) {
    match serde_json::to_string(value) {
        Ok(line) if json => say(line),
        _ => say(words()),
    }
}

/// Asks what the gateway remembers, and prints it.
async fn ask(client: &Client, args: &Args) -> Result<(), CallError<RpcError>> {
    let mut session: SessionRef = client.session();
    (session.guild, session.team) = (args.guild.clone(), args.team.clone());
    if let Some(limit) = args.history {
        for turn in client.chat_history(session, Some(limit)).await? {
            answer(args.json, &turn, || {
                let (user, assistant) = (&turn.user, &turn.assistant);
                format!(
                    "> {}\n{}",
                    printable_lines(user),
                    printable_lines(assistant)
                )
            });
        }
    } else if let Some(words) = &args.search {
        for fact in client.memory_search(session, words, None).await? {
            answer(args.json, &fact, || printable(&fact.text).into_owned());
        }
    } else if args.clear {
        let cleared = client.session_clear(session).await?;
        answer(args.json, &cleared, || {
            format!("{} turns forgotten", cleared.turns)
        });
    } else {
        let budget = client.budget_status(Some(session)).await?;
        answer(args.json, &budget, || words(&budget));
    }
    Ok(())
}

/// A line for each budget.
fn words(budget: &BudgetStatus) -> String {
    let of = [
        ("session", budget.session),
        ("day", Some(budget.daily)),
        ("month", Some(budget.monthly)),
    ];
    let lines = of.into_iter().filter_map(|(name, budget)| {
        let BudgetUse { used, limit } = budget?;
        let limit = limit.map_or("without a limit".to_owned(), |limit| format!("of {limit}"));
        Some(format!("{name}: {used} tokens {limit}"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Says something and prints the reply.
async fn converse(client: &Client, chat: ChatSend, json: bool) -> Result<(), Failure> {
    let mut chat = client.chat_send(chat).await;
    let mut shown = Shown::default();
    while let Some(event) = chat.next().await {
        let event = event.map_err(|error| {
            shown.end_line();
            explain(error, shown.has_begun)
        })?;
        shown.has_begun = true;
        match json {
            true => say(serde_json::to_string(&event).map_err(Failure::new)?),
            false => shown.event(&event),
        }
    }
    shown.end_line();
    if json {
        say(r#"{"event":"done"}"#);
    }
    Ok(())
}

/// What was printed of a reply.
#[derive(Default)]
struct Shown {
    has_begun: bool,
    /// The last line has no end yet.
    is_open: bool,
}

impl Shown {
    fn event(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Text(text) => {
                let mut out = std::io::stdout();
                // A reader that went away is no reason to panic.
                let _ = write!(out, "{}", printable_lines(text)).and_then(|()| out.flush());
                self.is_open = !text.ends_with('\n');
            }
            StreamEvent::ToolUse(tool) => complain(format_args!(
                "[{} {}]",
                printable(&tool.name),
                printable(tool.input.get())
            )),
            StreamEvent::ToolResult(result) => complain(format_args!(
                "[{}{}]",
                if result.is_error { "failed: " } else { "" },
                printable(&result.content)
            )),
            _ => {}
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let _ = writeln!(std::io::stdout());
        }
    }
}
