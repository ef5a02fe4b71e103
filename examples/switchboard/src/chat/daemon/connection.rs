//! [`Server`]: the options of the way to a daemon; [`Connection`]: one over a WebSocket or over HTTP.

use std::future::pending;
use std::time::Duration;

use acolyte_proto::auth::ApiKey;
use acolyte_proto::client::{ClientConfig, ClientEvent, Warning};
use acolyte_proto::error::{ErrorKind, RpcError};
use acolyte_proto::frame::{ChatRequest, Skill, Status};
use acolyte_proto::id::{ResourceId, SessionId};
use acolyte_proto::net::{Chat, Client, Events, SseClient, connect_with, dialer};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, ConnectErrorKind, Secret};
use tokio::task::JoinHandle;

use crate::bounded;
use crate::chat;
use crate::cli::{self, Failure, LineArgs, Service, Urls};
use crate::daemon::ask_first::{ASK_FIRST, INSTRUCTIONS};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The server")]
pub(crate) struct Server {
    /// The URL of the server; several, separated by commas, for its nodes.
    #[arg(long, env = "ACOLYTE_URL", default_value = "http://127.0.0.1:6767")]
    pub(crate) url: Urls,
    /// The key of the server. Prefer the variable ACOLYTE_API_KEY: other users can see command lines.
    #[arg(long, value_name = "KEY")]
    api_key: Option<Secret>,
    #[command(flatten)]
    line: LineArgs,
    /// Allow sending the key to another machine without encryption.
    #[arg(long)]
    insecure: bool,
    /// Use HTTP and server-sent events in place of a WebSocket. Chats then do not queue.
    #[arg(long)]
    sse: bool,
    /// How long the server may be silent while a chat is running; 0 for no limit.
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    idle_timeout: Option<Duration>,
    #[command(flatten)]
    pings: cli::Pings,
}

/// What goes with every chat.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "The chat")]
pub(crate) struct ChatOptions {
    /// The model to use; servers refuse one that they do not have. Default: the server's.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The folder to work in, as the server sees it. Default: the server's.
    #[arg(long, value_name = "FOLDER")]
    workspace: Option<String>,
    /// The owner of what the server remembers, as user_NAME or proj_NAME.
    #[arg(long, value_name = "ID")]
    resource: Option<ResourceId>,
    /// The conversation to continue, as sess_NAME. Without it, 'chat' starts a new one, and the server
    /// remembers nothing of a 'run'.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionId>,
    /// Let the server edit files and run commands without asking.
    #[arg(long)]
    pub(crate) yes: bool,
    /// A skill to activate: its name, and instructions or @ and a file with them; may be repeated.
    #[arg(long = "skill", value_name = "NAME=TEXT", value_parser = skill)]
    skills: Vec<Skill>,
    /// A hint for the model; may be repeated.
    #[arg(long = "suggest", value_name = "TEXT")]
    suggestions: Vec<String>,
}

fn skill(text: &str) -> Result<Skill, String> {
    let (name, rest) = text
        .split_once('=')
        .ok_or("a skill is NAME=TEXT or NAME=@FILE")?;
    let instructions = match rest.strip_prefix('@') {
        Some(file) => bounded::given_text(file, file.as_ref()).map_err(|it| it.to_string())?,
        None => rest.to_owned(),
    };
    if name.is_empty() || instructions.is_empty() {
        return Err("a skill has a name and instructions".to_owned());
    }
    Ok(Skill::new(name.to_owned(), instructions))
}

impl ChatOptions {
    pub(crate) fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    pub(crate) fn request(&self, message: &str, status: &Status) -> ChatRequest {
        let model = match &self.model {
            Some(model) => model.as_str(),
            None if status.model.is_empty() => "default",
            None => &status.model,
        };
        let mut request = ChatRequest::new(message.to_owned(), model.to_owned());
        if let Some(workspace) = &self.workspace {
            request.workspace = Some(workspace.clone().into());
        }
        request.resource_id.clone_from(&self.resource);
        request.session_id.clone_from(&self.session);
        request.active_skills.clone_from(&self.skills);
        if !self.yes {
            request
                .active_skills
                .push(Skill::new(ASK_FIRST, INSTRUCTIONS));
        }
        let suggestions = self.suggestions.iter();
        request.suggestions = suggestions.map(|text| text.as_str().into()).collect();
        request
    }
}

/// The way to a server.
pub(crate) struct Connection {
    pub(crate) status: Box<Status>,
    way: Way,
    http: SseClient,
}

enum Way {
    Socket(Client, Events, JoinHandle<CloseReason>),
    Http,
}

/// The key of an option, else of the environment.
pub(crate) fn api_key(given: Option<&Secret>) -> Result<Option<ApiKey>, Failure> {
    let key = cli::secret_or("--api-key", given, "ACOLYTE_API_KEY")?;
    key.map(ApiKey::new).transpose().map_err(Failure::usage)
}

impl Server {
    fn config(&self, idle: Option<Duration>) -> Result<ClientConfig, Failure> {
        let idle = self.idle_timeout.or(idle).filter(|time| !time.is_zero());
        let mut config = ClientConfig {
            api_key: api_key(self.api_key.as_ref())?,
            insecure: self.insecure,
            chat_idle_timeout: idle,
            ..ClientConfig::default()
        };
        config.keep_alive = self.pings.over(config.keep_alive);
        Ok(config)
    }

    pub(crate) fn http(&self) -> Result<SseClient, Failure> {
        self.sse(self.config(None)?)
    }

    fn sse(&self, config: ClientConfig) -> Result<SseClient, Failure> {
        let line = self.line.to(&self.url)?;
        let client = SseClient::new(self.url.expose(), config)?;
        Ok(line.sse(client))
    }

    /// Asks the server for its status, as known clients do, and connects. `idle` is how long it may be
    /// silent, unless the user says otherwise.
    pub(crate) async fn open(&self, idle: Option<Duration>) -> Result<Connection, Failure> {
        let mut config = self.config(idle)?;
        let http = self.sse(config.clone())?;
        let status = http
            .status()
            .await
            .map_err(|error| self.unreachable(&error))?;
        status
            .agree(&[])
            .map_err(|error| self.refused(ConnectErrorKind::Handshake, &error.to_string()))?;
        let way = match self.sse {
            true => Way::Http,
            false => {
                let dialer = dialer(self.url.expose(), &config)?;
                let dialer = self.line.to(&self.url)?.dialer(dialer);
                // A server that leaves is reported at once: nothing could be resumed anyway.
                config.link.reconnect = ReconnectPolicy::off();
                let (client, events, connection) = connect_with(dialer, config);
                let running = tokio::spawn(connection.run());
                let ready = client.ready().await;
                ready.map_err(|reason| cli::unreached(&Service::ACOLYTE, &self.url, &reason))?;
                Way::Socket(client, events, running)
            }
        };
        Ok(Connection { status, way, http })
    }

    pub(crate) fn unreachable(&self, error: &CallError<RpcError>) -> Failure {
        let (kind, message) = match error {
            CallError::Remote(error) => match error.kind() {
                ErrorKind::Status(status) => (ConnectErrorKind::Status(status), error.to_string()),
                _ => (ConnectErrorKind::Handshake, error.to_string()),
            },
            CallError::Closed { reason, .. }
                if !matches!(reason, CloseReason::Transport { .. }) =>
            {
                return cli::unreached(&Service::ACOLYTE, &self.url, reason);
            }
            CallError::TimedOut { .. } => (ConnectErrorKind::TimedOut, error.to_string()),
            other => (ConnectErrorKind::Handshake, other.to_string()),
        };
        self.refused(kind, &message)
    }

    /// Returns the failure of a server that answers otherwise than this kind of server does.
    fn refused(&self, kind: ConnectErrorKind, message: &str) -> Failure {
        // A refusal may have no words.
        let message = message.trim_end_matches([':', ' ']).to_owned();
        let reason = match kind {
            ConnectErrorKind::Status(401) => CloseReason::Authentication { message },
            kind => CloseReason::Connect {
                message,
                retryable: !matches!(
                    kind,
                    ConnectErrorKind::Status(400..=499) | ConnectErrorKind::Handshake
                ),
                kind,
            },
        };
        cli::unreached(&Service::ACOLYTE, &self.url, &reason)
    }
}

impl Connection {
    pub(crate) async fn start(&self, request: ChatRequest) -> Chat {
        match &self.way {
            Way::Socket(client, ..) => client.chat(request).await,
            Way::Http => self.http.chat(request).await,
        }
    }

    /// What the server is now.
    pub(crate) async fn ask(&self) -> Result<Box<Status>, CallError<RpcError>> {
        match &self.way {
            Way::Socket(client, ..) => client.status().await,
            Way::Http => self.http.status().await,
        }
    }

    /// Waits for something wrong with the connection, such as a frame that cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(crate) async fn warning(&mut self) -> Warning {
        match &mut self.way {
            Way::Socket(_, events, _) => {
                chat::wait_for(events, |event| match event {
                    ClientEvent::Warning(warning) => Some(warning),
                    _ => None,
                })
                .await
            }
            Way::Http => pending().await,
        }
    }

    /// Returns whether the connection has ended or is closing. Over HTTP each request has its own.
    pub(crate) fn is_over(&self) -> bool {
        self.client().is_some_and(|it| !it.state().is_ready())
    }

    /// Returns which of several servers this is.
    pub(crate) fn node(&self) -> Option<String> {
        let node = match &self.way {
            Way::Socket(client, ..) => client.node(),
            Way::Http => self.http.node(),
        };
        node.map(|node| node.to_string())
    }

    /// The WebSocket, if there is one.
    pub(crate) const fn client(&self) -> Option<&Client> {
        match &self.way {
            Way::Socket(client, ..) => Some(client),
            Way::Http => None,
        }
    }

    /// Disconnects from the server, once.
    pub(crate) async fn close(&mut self) {
        if let Way::Socket(client, _, running) = &mut self.way {
            client.close();
            // Whatever became of it, this is the end.
            let _ = running.await;
        }
    }
}
