//! [`Server`]: the options of the way to a gateway; [`Connected`]: a connection to it, and what can be asked there.

use std::time::Duration;

use exoclaw_proto::DecodeError;
use exoclaw_proto::client::{ClientConfig, ClientEvent};
use exoclaw_proto::error::{ErrorKind, RpcError};
use exoclaw_proto::frame::{BudgetStatus, BudgetUse, ChatSend, SessionRef};
use exoclaw_proto::limits::WS_PATH;
use exoclaw_proto::net::{Client, Events, connect_with, dialer};
use rpc_core::backoff::{Backoff, BackoffPolicy};
use rpc_core::net::ws::{Socket, WsDialer, WsStream, urls};
use rpc_core::net::{DialError, Dialer, LinkEvent, Node};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Delivery, Secret, Str};
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::chat;
use crate::cli::{self, Failure, LineArgs, Service, Urls};
use crate::gateway::engine::{Forgotten, MEMORY_FORGET};
use crate::text::{counted, printable, printable_lines};

#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// The gateway; several URLs, separated by commas, for its nodes.
    #[arg(long, env = "EXOCLAW_URL", default_value = "ws://127.0.0.1:7200")]
    pub(crate) url: Urls,
    /// The gateway's token. Prefer the variable EXOCLAW_TOKEN: other users can see command lines.
    #[arg(long, value_name = "TOKEN")]
    token: Option<Secret>,
    #[command(flatten)]
    line: LineArgs,
    /// The channel. The gateway keeps a conversation for each channel, account and peer.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    channel: String,
    /// The account within the channel.
    #[arg(long, value_name = "NAME", default_value = "user")]
    account: String,
    /// The peer.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) peer: String,
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
}

/// How long the gateway may take to say hello.
const HELLO: Duration = Duration::from_secs(5);
/// How long the page of a gateway may take to name the model, and most bytes of it.
const ABOUT: Duration = Duration::from_secs(1);
const MAX_ABOUT: usize = 1024 * 1024;
/// The longest message from standard input, in bytes.
pub(crate) const MAX_TEXT: usize = 512 * 1024;

/// More facts than a gateway keeps of a conversation.
const MAX_FACTS: u64 = 1000;

/// What else can be asked than a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    History(u64),
    /// What is known or was said of these words; without words, all that is known.
    Search(String),
    /// Forgets what is known by this name.
    Forget(String),
    Clear,
    Budget,
}

impl Server {
    fn config(&self) -> ClientConfig {
        ClientConfig {
            channel: self.channel.as_str().into(),
            account: self.account.as_str().into(),
            peer: Some(self.peer.as_str().into()),
            chat_idle_timeout: self.idle_timeout.filter(|time| !time.is_zero()),
            ..ClientConfig::default()
        }
    }

    /// The model that answers, if the gateway has a page that names it.
    pub(crate) async fn model(&self) -> Option<String> {
        let dialer = dialer(self.url.expose(), &self.config()).ok()?;
        let mut dialer = self.line.to(&self.url).ok()?.dialer(dialer);
        let token = cli::secret_or("--token", self.token.as_ref(), "EXOCLAW_TOKEN").ok()?;
        if let Some(token) = token {
            let bearer = Secret::from(format!("Bearer {}", token.expose()));
            dialer = dialer.with_secret_header("authorization", &bearer).ok()?;
        }
        let first = urls(self.url.expose()).next()?;
        let place = first.split_once("://").map_or(first, |(_, place)| place);
        let path = place.find('/').map_or("", |at| place.split_at(at).1);
        let path = path.trim_end_matches('/').trim_end_matches(WS_PATH);
        let path = format!("{path}/models");
        let asked = dialer.get(&path, MAX_ABOUT);
        let (status, body) = timeout(ABOUT, asked).await.ok()?.ok()?;
        let about: Value = serde_json::from_slice(&body)
            .ok()
            .filter(|_| status == 200)?;
        Some(printable(about["model"].as_str()?).into_owned())
    }

    pub(crate) fn message(&self, text: &str) -> ChatSend {
        let mut chat = self.config().chat(text);
        (chat.session.guild, chat.session.team) = (self.guild.clone(), self.team.clone());
        chat
    }
}

/// Dials a gateway, and again while it says that it is not ready. An absent server is reported at once.
struct RetryDialer(WsDialer);

impl Dialer for RetryDialer {
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
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) events: Events,
    pub(crate) connection: JoinHandle<CloseReason>,
    /// The methods that the gateway has beyond the specification.
    pub(crate) extensions: Vec<Str>,
}

impl Connected {
    pub(crate) async fn open(args: &Server) -> Result<Self, Failure> {
        let mut config = args.config();
        config.keep_alive = args.pings.over(config.keep_alive);
        config.token = cli::secret_or("--token", args.token.as_ref(), "EXOCLAW_TOKEN")?;
        // What is silent and wants no token may be no gateway.
        let credentials = match config.token {
            Some(_) => Service::EXOCLAW.credentials,
            None => "EXOCLAW_TOKEN, host and port",
        };
        // A server that is silent for longer speaks another protocol.
        config.handshake_timeout = HELLO;
        let line = args.line.to(&args.url)?;
        let dialer = line.dialer(dialer(args.url.expose(), &config)?);
        // A gateway that leaves is reported at once, not waited for.
        config.link.reconnect = ReconnectPolicy::off();
        let (client, mut events, connection) = connect_with(RetryDialer(dialer), config);
        let connection = tokio::spawn(connection.run());
        let service = Service {
            credentials,
            ..Service::EXOCLAW
        };
        let ready = client.ready().await;
        ready.map_err(|reason| cli::unreached(&service, &args.url, &reason))?;
        let mut extensions = Vec::new();
        while let Some(event) = events.next_link().await {
            if let LinkEvent::Event(ClientEvent::Ready(hello)) = event {
                extensions = hello.extensions();
                break;
            }
        }
        Ok(Self {
            client,
            events,
            connection,
            extensions,
        })
    }

    /// Waits for a frame that cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(crate) async fn unreadable(&mut self) -> DecodeError {
        chat::wait_for(&mut self.events, |event| match event {
            ClientEvent::Warning(error) => Some(error),
            _ => None,
        })
        .await
    }

    /// Whether the connection has ended or is closing.
    pub(crate) fn is_over(&self) -> bool {
        !self.client.state().is_ready()
    }

    /// Which of several gateways this is.
    pub(crate) fn node(&self) -> Option<String> {
        self.client.node().map(|node| node.to_string())
    }

    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.client.close();
        self.connection.await.map(drop).map_err(Failure::new)
    }
}

/// What has failed, in the gateway's own words if it has any. Whether it has `begun` to answer.
pub(crate) fn explain(error: CallError<RpcError>, begun: bool) -> Failure {
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
pub(crate) async fn ask(
    client: &Client,
    session: SessionRef,
    json: bool,
    query: Query,
) -> Result<Vec<String>, CallError<RpcError>> {
    Ok(match query {
        Query::History(limit) => {
            let turns = client.chat_history(session, Some(limit)).await?;
            let words = turns.iter().map(|turn| {
                answer(json, turn, || {
                    let mark = turn.mark.as_ref().map(|mark| format!("({mark})"));
                    let reply = (!turn.assistant.is_empty()).then(|| turn.assistant.to_string());
                    let lines = [Some(format!("> {}", turn.user)), reply, mark];
                    let lines: Vec<_> = lines.into_iter().flatten().collect();
                    printable_lines(&lines.join("\n"))
                })
            });
            words.collect()
        }
        Query::Search(words) => {
            let facts = client
                .memory_search(session, &words, Some(MAX_FACTS))
                .await?;
            let words = facts
                .iter()
                .map(|fact| answer(json, fact, || printable(&fact.text).into_owned()));
            words.collect()
        }
        Query::Forget(name) => {
            let facts = client
                .memory_search(session.clone(), "", Some(MAX_FACTS))
                .await?;
            let mut forgotten = Vec::new();
            for fact in &facts {
                if let (Some(subject), Some(relation)) = (&fact.subject, &fact.relation)
                    && format!("{subject}, {relation}").to_lowercase() == name.to_lowercase()
                {
                    let asked = Forgotten {
                        session: session.clone(),
                        subject: subject.to_string(),
                        relation: relation.to_string(),
                    };
                    client.call(MEMORY_FORGET, &asked).await?;
                    let words = || format!("forgotten: {}", printable(&fact.text));
                    forgotten.push(answer(json, fact, words));
                }
            }
            forgotten
        }
        Query::Clear => {
            let cleared = client.session_clear(session).await?;
            vec![answer(json, &cleared, || {
                let words =
                    |count, what| counted(usize::try_from(count).unwrap_or(usize::MAX), what);
                let facts = (cleared.facts > 0).then(|| words(cleared.facts, "fact"));
                let all = [Some(words(cleared.turns, "turn")), facts];
                let all: Vec<_> = all.into_iter().flatten().collect();
                format!("{} forgotten", all.join(" and "))
            })]
        }
        Query::Budget => {
            let budget = client.budget_status(Some(session)).await?;
            vec![answer(json, &budget, || words(&budget))]
        }
    })
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
