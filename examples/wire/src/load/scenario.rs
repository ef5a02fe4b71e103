//! [`Scenario`]: which calls are made to which server, and as whom.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use acolyte_proto::auth::ApiKey;
use acolyte_proto::client as acolyte;
use connectonion_proto::auth::{Address, Draft, Signer, unix_seconds};
use connectonion_proto::client as connectonion;
use connectonion_proto::frame::Connect;
use exoclaw_proto::client as exoclaw;
use rpc_core::Secret;
use rpc_core::net::ws::{ConnectError, WsDialer};
use smarthole_proto::client as smarthole;
use smarthole_proto::frame::Registration;
use snek_proto::client as snek;

use crate::Protocol;

/// The name that calls have at servers.
pub(crate) const NAME: &str = "load";
/// The time that a client gives a server: a run has limits of its own.
const FOR_EVER: Duration = Duration::MAX;

rpc_core::words! {
    /// What calls are made of.
    #[derive(clap::ValueEnum)]
    pub enum Kind {
        /// The smallest question that the server answers.
        "echo" => Echo,
        /// A message or a prompt, until its answer is complete.
        "chat" => Chat,
        /// A new connection with its login, for each call.
        "connect" => Connect,
    }
}

/// Who calls, and what they say.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Caller {
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
pub(crate) struct Scenario {
    /// The protocol of the server.
    pub protocol: Protocol,
    /// What the calls are made of.
    pub kind: Kind,
    pub(crate) caller: Arc<Caller>,
    /// Tells this run from others.
    pub(crate) run: u64,
}

impl Scenario {
    /// Creates a scenario; without a kind, it is the first one that the protocol has.
    ///
    /// # Errors
    /// The protocol has no such scenario.
    pub(crate) fn new(
        protocol: Protocol,
        kind: Option<Kind>,
        caller: Caller,
    ) -> Result<Self, String> {
        let has_echo = protocol != Protocol::SmartHole;
        let kind = kind.unwrap_or(if has_echo { Kind::Echo } else { Kind::Chat });
        if kind == Kind::Echo && !has_echo {
            let name = protocol.name();
            return Err(format!(
                "{name} has no scenario 'echo'; it has: chat, connect"
            ));
        }
        Ok(Self {
            protocol,
            kind,
            caller: Arc::new(caller),
            run: rpc_core::net::entropy(),
        })
    }

    /// Returns what is measured beside the calls, if anything.
    pub(crate) fn mark(&self) -> Option<&'static str> {
        match (self.protocol, self.kind) {
            (Protocol::Snek, Kind::Chat) => Some("each member has it"),
            (Protocol::SmartHole, _) | (_, Kind::Echo | Kind::Connect) => None,
            (_, Kind::Chat) => Some("first text"),
        }
    }

    /// Returns whether a connection is of no use after a call that takes too long: the server may work at it, and the
    /// next prompt would wait, or be taken for a word in between.
    pub(crate) fn is_alone(&self) -> bool {
        let works = matches!(self.protocol, Protocol::ConnectOnion | Protocol::Acolyte);
        works && self.kind == Kind::Chat
    }

    /// Returns how many calls a connection has in flight at most.
    pub(crate) fn in_flight(&self) -> usize {
        match (self.protocol, self.kind) {
            (_, Kind::Connect) => 1,
            (Protocol::Snek | Protocol::SmartHole, _) | (_, Kind::Echo) => 256,
            (_, Kind::Chat) => 1,
        }
    }

    pub(crate) fn snek(&self) -> snek::ClientConfig {
        let Caller {
            username, password, ..
        } = &*self.caller;
        snek::ClientConfig {
            insecure: self.caller.insecure,
            call_timeout: FOR_EVER,
            handshake_timeout: None,
            ..snek::ClientConfig::new(username.clone(), password.clone())
        }
    }

    pub(crate) fn exoclaw(&self) -> exoclaw::ClientConfig {
        exoclaw::ClientConfig {
            token: self.caller.token.clone(),
            insecure: self.caller.insecure,
            handshake_timeout: FOR_EVER,
            tokenless_handshake_timeout: FOR_EVER,
            call_timeout: FOR_EVER,
            chat_idle_timeout: None,
            ..Default::default()
        }
    }

    pub(crate) fn smarthole(&self, name: String) -> Result<smarthole::ClientConfig, String> {
        let registration = Registration::new(name, "Takes what a load test says.");
        let config = smarthole::ClientConfig::new(registration);
        Ok(smarthole::ClientConfig {
            handshake_timeout: None,
            ..config.map_err(|error| error.to_string())?
        })
    }

    pub(crate) fn connectonion(&self) -> connectonion::ClientConfig {
        let mut config = connectonion::ClientConfig {
            host: self.caller.host,
            handshake_timeout: None,
            answer_timeout: None,
            ..Default::default()
        };
        config.insecure |= self.caller.insecure;
        config
    }

    /// Returns what a ConnectOnion host is told first, signed.
    pub(crate) fn connect(&self, nonce: u64) -> Result<Connect, String> {
        let signer = self.signer()?;
        let mut draft = Draft::new(unix_seconds(SystemTime::now())).with_nonce(nonce.into());
        if let Some(host) = &self.caller.host {
            draft = draft.with_to(host);
        }
        let signed = signer.sign_payload(&draft);
        signed.map(Connect::new).map_err(|error| error.to_string())
    }

    fn signer(&self) -> Result<Signer, String> {
        let signer = self.caller.key.clone().map_or_else(Signer::generate, Ok);
        signer.map_err(|error| error.to_string())
    }

    pub(crate) fn acolyte(&self) -> Result<acolyte::ClientConfig, String> {
        let key = self.caller.token.clone().map(ApiKey::new).transpose();
        Ok(acolyte::ClientConfig {
            api_key: key.map_err(|error| error.to_string())?,
            insecure: self.caller.insecure,
            call_timeout: FOR_EVER,
            chat_idle_timeout: None,
            ..Default::default()
        })
    }

    /// Returns a dialer for the server.
    ///
    /// # Errors
    /// The URL is not valid, or credentials could be seen on the way.
    pub(crate) fn dialer(&self, url: &str) -> Result<WsDialer, String> {
        let words = |error: ConnectError| error.to_string();
        match self.protocol {
            Protocol::Snek => snek_proto::net::dialer(url, &self.snek()).map_err(words),
            Protocol::Exoclaw => exoclaw_proto::net::dialer(url, &self.exoclaw()).map_err(words),
            Protocol::SmartHole => WsDialer::new(url).map_err(|error| error.to_string()),
            Protocol::ConnectOnion => {
                connectonion_proto::net::dialer(url, &self.connectonion()).map_err(words)
            }
            Protocol::Acolyte => acolyte_proto::net::dialer(url, &self.acolyte()?).map_err(words),
        }
    }
}
