//! `switchboard gateway chat`: says something to a gateway and shows the reply as it comes, or asks what it
//! remembers; a dialogue at a terminal.

mod dialogue;
mod line;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgGroup;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::error::{ErrorKind, RpcError};
use exoclaw_proto::frame::{BudgetStatus, BudgetUse, ChatSend, SessionRef, StreamEvent};
use exoclaw_proto::net::{Client, connect_with, dialer, link_config};
use rpc_core::backoff::{Backoff, BackoffPolicy};
use rpc_core::net::ws::{Socket, WsDialer, WsStream};
use rpc_core::net::{DialError, Dialer, Node};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Delivery, Secret, Str};
use serde::Serialize;
use serde_json::json;
use switchboard::cli::{self, Failure, LineArgs, Urls, say};
use switchboard::screen::{printable, printable_lines};
use switchboard::terminal::{self, ChatEvent, ChatView};
use tokio::task::JoinHandle;

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what"))]
pub(crate) struct Args {
    /// What to say; '-' reads it from standard input. Without it: a dialogue at a terminal, else standard
    /// input.
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
    /// The gateway; several URLs, separated by commas, for its nodes.
    #[arg(
        long,
        value_name = "URL",
        env = "EXOCLAW_URL",
        hide_env_values = true,
        default_value = "ws://127.0.0.1:7200"
    )]
    url: Urls,
    /// The gateway's token. Better given in the variable EXOCLAW_TOKEN: others can see command lines.
    #[arg(long, value_name = "TOKEN")]
    token: Option<Secret>,
    #[command(flatten)]
    line: LineArgs,
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
    /// How long the gateway may be silent during a reply. Default: as long as it waits for its model.
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    idle_timeout: Option<Duration>,
    #[command(flatten)]
    pings: cli::Pings,
    /// A file that keeps the lines of a dialogue.
    #[arg(long, value_name = "FILE")]
    history_file: Option<PathBuf>,
    /// Print one JSON object for each event of the reply, the last with the event 'done' or 'error'; or
    /// for each turn, or for what else is asked.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The longest message from standard input, in bytes.
const MAX_TEXT: usize = 512 * 1024;

/// What else can be asked than a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Query {
    History(u64),
    Search(String),
    Clear,
    Budget,
}

impl Args {
    fn query(&self) -> Option<Query> {
        if let Some(limit) = self.history {
            return Some(Query::History(limit));
        }
        if let Some(words) = &self.search {
            return Some(Query::Search(words.clone()));
        }
        match (self.clear, self.budget) {
            (true, _) => Some(Query::Clear),
            (_, true) => Some(Query::Budget),
            _ => None,
        }
    }

    fn config(&self) -> ClientConfig {
        ClientConfig {
            channel: self.channel.as_str().into(),
            account: self.account.as_str().into(),
            peer: Some(self.peer.as_str().into()),
            chat_idle_timeout: self.idle_timeout.filter(|time| !time.is_zero()),
            ..ClientConfig::default()
        }
    }

    fn message(&self, text: &str) -> ChatSend {
        let mut chat = self.config().chat(text);
        (chat.session.guild, chat.session.team) = (self.guild.clone(), self.team.clone());
        chat
    }
}

/// Dials a gateway, and again while it says that it is not ready. That nobody is there is told at once.
struct Patient(WsDialer);

impl Dialer for Patient {
    type Transport = WsStream<Socket>;

    async fn dial(&self) -> Result<Self::Transport, DialError> {
        let mut delays = BackoffPolicy::new(Duration::from_millis(500), 2.0);
        delays.max_attempts = Some(3);
        let mut delays = Backoff::new(delays);
        loop {
            let dialed = self.0.dial().await;
            let is_busy = matches!(dialed, Err(DialError::Status { status: 503, .. }));
            match delays.next_delay(0) {
                Some(delay) if is_busy => tokio::time::sleep(delay).await,
                _ => return dialed,
            }
        }
    }

    fn node(&self) -> Option<Node> {
        self.0.node()
    }
}

/// A connection to the gateway.
struct Connected {
    client: Client,
    connection: JoinHandle<CloseReason>,
}

impl Connected {
    async fn open(args: &Args) -> Result<Self, Failure> {
        let mut config = args.config();
        config.keep_alive = args.pings.over(config.keep_alive);
        config.token = cli::secret_or("--token", args.token.as_ref(), "EXOCLAW_TOKEN")?;
        let dialer = dialer(args.url.expose(), &config).map_err(Failure::usage)?;
        let dialer = args.line.open()?.dialer(dialer);
        // A gateway that goes is told at once, not waited for.
        let mut link = link_config();
        link.reconnect = ReconnectPolicy::off();
        let (client, _, connection) = connect_with(Patient(dialer), config, link);
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
        Ok(Self { client, connection })
    }

    /// Whether the connection has ended or is closing.
    fn is_over(&self) -> bool {
        !self.client.state().is_ready()
    }

    /// Says in words which node this is.
    fn place(&self, again: bool) -> String {
        let again = if again { " again" } else { "" };
        let node = self.client.node().map(|node| format!(", at {node}"));
        format!("connected{again}{}", node.unwrap_or_default())
    }

    /// The same as an event.
    fn event(&self) -> serde_json::Value {
        let node = self.client.node().map(|node| node.to_string());
        json!({ "event": "connected", "data": { "node": node } })
    }

    async fn close(self) -> Result<(), Failure> {
        self.client.close();
        self.connection.await.map(drop).map_err(Failure::new)
    }
}

pub(crate) async fn chat(args: &Args) -> Result<(), Failure> {
    let query = args.query();
    let text = match (&args.text, &query) {
        (Some(text), _) if text != "-" => Some(text.clone()),
        (None, Some(_)) => None,
        (Some(_), _) => Some(terminal::read_all(MAX_TEXT)?),
        (None, None) if args.json || !io::stdin().is_terminal() => {
            Some(terminal::read_all(MAX_TEXT)?)
        }
        (None, None) => return dialogue::run(args).await,
    };
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Failure::usage(
            "nothing to say: give a text, or write one to standard input",
        ));
    }
    let connected = Connected::open(args).await?;
    match args.json {
        _ if !args.url.are_several() => {}
        true => say(connected.event()),
        false => cli::complain(connected.place(false)),
    }
    let outcome = match (text, query) {
        (Some(text), _) => converse(&connected.client, args.message(&text), args.json).await,
        (None, Some(query)) => tell(&connected.client, args, query).await,
        (None, None) => Ok(()),
    };
    connected.close().await?;
    outcome
}

/// Waits for `work`, unless the user ends it.
async fn unless_ended<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::select! {
        done = work => Ok(done),
        () = cli::end_signal() => Err(Failure::aborted()),
    }
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

/// An answer as a line of JSON, or in words.
fn answer(json: bool, value: &impl Serialize, words: impl FnOnce() -> String) -> String {
    match serde_json::to_string(value) {
        Ok(line) if json => line,
        _ => words(),
    }
}

/// Asks what the gateway remembers: a text for each answer.
async fn ask(
    client: &Client,
    args: &Args,
    query: Query,
) -> Result<Vec<String>, CallError<RpcError>> {
    let mut session: SessionRef = client.session();
    (session.guild, session.team) = (args.guild.clone(), args.team.clone());
    let json = args.json;
    Ok(match query {
        Query::History(limit) => {
            let turns = client.chat_history(session, Some(limit)).await?;
            let words = turns.iter().map(|turn| {
                answer(json, turn, || {
                    let mark = turn.mark.as_ref().map(|mark| format!("({mark})"));
                    let said = (!turn.assistant.is_empty()).then(|| turn.assistant.to_string());
                    let lines = [Some(format!("> {}", turn.user)), said, mark];
                    let lines: Vec<_> = lines.into_iter().flatten().collect();
                    printable_lines(&lines.join("\n"))
                })
            });
            words.collect()
        }
        Query::Search(words) => {
            let facts = client.memory_search(session, &words, None).await?;
            let words = facts
                .iter()
                .map(|fact| answer(json, fact, || printable(&fact.text).into_owned()));
            words.collect()
        }
        Query::Clear => {
            let cleared = client.session_clear(session).await?;
            vec![answer(json, &cleared, || {
                format!("{} turns forgotten", cleared.turns)
            })]
        }
        Query::Budget => {
            let budget = client.budget_status(Some(session)).await?;
            vec![answer(json, &budget, || words(&budget))]
        }
    })
}

/// Prints what the gateway remembers.
async fn tell(client: &Client, args: &Args, query: Query) -> Result<(), Failure> {
    let lines = unless_ended(ask(client, args, query)).await?;
    let lines = lines.map_err(|error| explain(error, false))?;
    lines.iter().for_each(say);
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

/// Says something and shows the reply.
async fn converse(client: &Client, chat: ChatSend, json: bool) -> Result<(), Failure> {
    let view = match json {
        true => ChatView::plain(),
        false => ChatView::new(None),
    };
    let outcome = unless_ended(follow(client, chat, json, &view)).await;
    // However it ends: the terminal keeps nothing of what went on.
    view.finish().await;
    outcome?
}

async fn follow(
    client: &Client,
    chat: ChatSend,
    json: bool,
    view: &ChatView,
) -> Result<(), Failure> {
    view.show(ChatEvent::Activity("thinking".to_owned())).await;
    let mut chat = client.chat_send(chat).await;
    let (mut has_begun, mut tokens) = (false, 0);
    while let Some(event) = chat.next().await {
        let event = event.map_err(|error| explain(error, has_begun))?;
        has_begun = true;
        let shown = match json {
            true => Some(ChatEvent::Line(
                serde_json::to_string(&event).map_err(Failure::new)?,
            )),
            false => shown(event, &mut tokens),
        };
        if let Some(shown) = shown {
            view.show(shown).await;
        }
    }
    if json {
        let done = r#"{"event":"done"}"#;
        view.show(ChatEvent::Line(done.to_owned())).await;
    }
    Ok(())
}

/// What the view shows of a step, and the tokens with those of the step.
fn shown(event: StreamEvent, tokens: &mut u64) -> Option<ChatEvent> {
    Some(match event {
        StreamEvent::Text(text) => ChatEvent::Text(text.to_string()),
        StreamEvent::ToolUse(tool) => ChatEvent::ToolCall {
            id: tool.id.to_string(),
            name: tool.name.to_string(),
            arguments: tool.input.get().to_owned(),
        },
        StreamEvent::ToolResult(result) => {
            let content = result.content.to_string();
            ChatEvent::ToolResult {
                id: result.tool_use_id.to_string(),
                outcome: match result.is_error {
                    true => Err(content),
                    false => Ok(content),
                },
            }
        }
        StreamEvent::Usage(usage) => {
            *tokens = tokens
                .saturating_add(usage.input_tokens)
                .saturating_add(usage.output_tokens);
            ChatEvent::Usage(*tokens)
        }
        _ => return None,
    })
}
