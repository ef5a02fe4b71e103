//! [`Scenario`]: which calls are made to which server, and as whom.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use acolyte_proto::auth::ApiKey;
use connectonion_proto::auth::{Address, Signer};
use rpc_core::Secret;
use rpc_core::net::ws::{ConnectError, WsDialer};

use crate::Protocol;

/// What calls are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The smallest question that the server answers.
    Echo,
    /// A message or a prompt, until its answer is complete.
    Chat,
    /// A new connection with its login, for each call.
    Connect,
}

impl Kind {
    /// Returns the name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Chat => "chat",
            Self::Connect => "connect",
        }
    }
}

/// Who calls, and what they say.
#[derive(Clone, Debug, Default, clap::Args)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct Caller {
    /// The text of a chat.
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    pub prompt: String,
    /// The login name at a Snek server; its password is in the environment variable SNEK_PASSWORD.
    #[arg(
        long,
        value_name = "NAME",
        env = "SNEK_USERNAME",
        default_value = "load"
    )]
    pub username: String,
    /// The password there.
    #[arg(skip)]
    pub password: Secret<String>,
    /// The channel of a Snek server, by uid. Default: the first one.
    #[arg(long, value_name = "UID")]
    pub channel: Option<String>,
    /// The token of a gateway, or the key of an Acolyte server. Better given in the environment, as
    /// EXOCLAW_TOKEN or ACOLYTE_API_KEY: others can see command lines.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Secret<String>>,
    /// The key that signs at ConnectOnion hosts, a file. Default: a new one for each connection.
    #[arg(long, value_name = "FILE", value_parser = key)]
    pub key: Option<Signer>,
    /// The host that ConnectOnion signatures name.
    #[arg(skip)]
    pub host: Option<Address>,
    /// The model of an Acolyte server. Default: the server's.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Let passwords, tokens and prompts go to another machine without encryption.
    #[arg(long)]
    pub insecure: bool,
}

fn key(file: &str) -> Result<Signer, String> {
    Signer::load(file).map_err(|error| error.to_string())
}

/// The calls of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The protocol of the server.
    pub protocol: Protocol,
    /// What the calls are made of.
    pub kind: Kind,
    pub(super) caller: Arc<Caller>,
    /// Tells this run from others.
    pub(super) run: u64,
}

impl Scenario {
    /// Creates a scenario; without a kind, it is the first one that the protocol has.
    ///
    /// # Errors
    /// The protocol has no such scenario.
    pub fn new(protocol: Protocol, kind: Option<Kind>, caller: Caller) -> Result<Self, String> {
        let has_echo = protocol != Protocol::SmartHole;
        let kind = kind.unwrap_or(if has_echo { Kind::Echo } else { Kind::Chat });
        if kind == Kind::Echo && !has_echo {
            let name = protocol.name();
            return Err(format!(
                "{name} has no scenario 'echo'; it has: chat, connect"
            ));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let run = now.map_or(0, |now| now.as_nanos() & u128::from(u64::MAX));
        Ok(Self {
            protocol,
            kind,
            caller: Arc::new(caller),
            run: u64::try_from(run).unwrap_or_default(),
        })
    }

    /// Returns what is measured beside the calls, if anything.
    #[must_use]
    pub fn mark(&self) -> Option<&'static str> {
        match (self.protocol, self.kind) {
            (Protocol::Snek, Kind::Chat) => Some("each member has it"),
            (Protocol::SmartHole, _) | (_, Kind::Echo | Kind::Connect) => None,
            (_, Kind::Chat) => Some("first text"),
        }
    }

    /// Returns how many calls a connection has in flight at most.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        match (self.protocol, self.kind) {
            (_, Kind::Connect) => 1,
            (Protocol::Snek | Protocol::SmartHole, _) | (_, Kind::Echo) => 256,
            (_, Kind::Chat) => 1,
        }
    }

    fn acolyte(&self) -> Result<acolyte_proto::client::ClientConfig, String> {
        let key = self.caller.token.clone().map(ApiKey::new).transpose();
        Ok(acolyte_proto::client::ClientConfig {
            api_key: key.map_err(|error| error.to_string())?,
            insecure: self.caller.insecure,
            ..Default::default()
        })
    }

    /// Returns a dialer for the server.
    ///
    /// # Errors
    /// The URL is not valid, or credentials could be seen on the way.
    pub fn dialer(&self, url: &str) -> Result<WsDialer, String> {
        let Caller {
            insecure, token, ..
        } = &*self.caller;
        let insecure = *insecure;
        let words = |error: ConnectError| error.to_string();
        match self.protocol {
            Protocol::Snek => {
                let mut config = snek_proto::client::ClientConfig::new("", "");
                config.insecure = insecure;
                snek_proto::net::dialer(url, &config).map_err(words)
            }
            Protocol::Exoclaw => {
                let config = exoclaw_proto::client::ClientConfig {
                    token: token.clone(),
                    insecure,
                    ..Default::default()
                };
                exoclaw_proto::net::dialer(url, &config).map_err(words)
            }
            Protocol::SmartHole => Ok(WsDialer::new(url).map_err(|error| error.to_string())?),
            Protocol::ConnectOnion => {
                let mut options = connectonion_proto::client::ClientConfig::default();
                options.insecure |= insecure;
                connectonion_proto::net::dialer(url, &options).map_err(words)
            }
            Protocol::Acolyte => acolyte_proto::net::dialer(url, &self.acolyte()?).map_err(words),
        }
    }
}
