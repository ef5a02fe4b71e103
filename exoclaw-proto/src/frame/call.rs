//! [`Call`]: a request's method and its parameters.

use rpc_core::json::Nothing;
use rpc_core::{Limits, Str, tagged};
use serde::de::Error;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::method::Method;
use crate::error::RpcError;
use crate::limits::DEFAULT_PEER;

tagged! {
    /// A method and its parameters. Exoclaw specification, *Methods*.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Call by "method" in "params" {
        /// Check that the gateway responds.
        "ping" => Ping = Nothing {},
        /// Get version, plugins and sessions.
        "status" => Status = Nothing {},
        /// Send a chat message and get a streamed answer.
        "chat.send" => ChatSend(ChatSend),
        /// List the loaded plugins.
        "plugin.list" => PluginList = Nothing {},
        /// Get the last turns of a session.
        "chat.history" => ChatHistory(ChatHistory),
        /// List the sessions.
        "session.list" => SessionList = Nothing {},
        /// Forget the turns and the facts of a session.
        "session.clear" => SessionClear(SessionRef),
        /// Get the use of the token budgets.
        "budget.status" => BudgetStatus(BudgetOf),
        /// Search what is remembered of a session.
        "memory.search" => MemorySearch(MemorySearch),
    }
}

impl Call {
    /// Returns the method; `None` for an unknown method or wrong parameters.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        match self {
            Self::Unknown { .. } => None,
            known => Method::parse(known.tag()),
        }
    }

    /// Returns the error that a gateway answers to [`Unknown`](Self::Unknown): that the method is
    /// unknown, or what is wrong with its parameters. `None` for all other calls.
    #[must_use]
    pub fn refusal(&self, limits: &Limits) -> Option<RpcError> {
        let Self::Unknown { tag, content } = self else {
            return None;
        };
        let read = super::head::read(tag, content.as_ref(), limits);
        Some(match (Method::parse(tag), read) {
            (Some(_), Err(error)) => RpcError::invalid_params(tag, &error.kind().to_string()),
            _ => RpcError::unknown_method(tag),
        })
    }
}

/// The parameters of `chat.send`. Exoclaw specification, *Methods*.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatSend {
    /// The channel, account and peer of the session.
    pub session: SessionRef,
    /// The user's message.
    pub content: Str,
}

/// The parameters that name a session: those of a chat, without the content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionRef {
    /// The channel.
    pub channel: Str,
    /// The account within the channel.
    pub account: Str,
    /// The peer; `None` is `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Str>,
    /// The guild or server, in channels that have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild: Option<Str>,
    /// The team within a guild.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<Str>,
}

/// The parameters of `chat.history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct ChatHistory {
    /// The session.
    #[serde(flatten)]
    pub session: SessionRef,
    /// Most turns to return; `None` leaves it to the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The parameters of `budget.status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct BudgetOf {
    /// The session; `None` for the whole gateway only.
    #[serde(flatten)]
    pub session: Option<SessionRef>,
}

/// The parameters of `memory.search`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct MemorySearch {
    /// The session.
    #[serde(flatten)]
    pub session: SessionRef,
    /// The words to search for.
    pub query: Str,
    /// Most facts to return; `None` leaves it to the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The parameters of a question about a session: the members of both on one level.
#[derive(Deserialize)]
struct Question {
    channel: Option<Str>,
    account: Option<Str>,
    peer: Option<Str>,
    guild: Option<Str>,
    team: Option<Str>,
    content: Option<Str>,
    query: Option<Str>,
    limit: Option<u64>,
}

impl Question {
    fn session<E: Error>(self) -> Result<SessionRef, E> {
        Ok(SessionRef {
            channel: need(self.channel, "channel")?,
            account: need(self.account, "account")?,
            peer: self.peer,
            guild: self.guild,
            team: self.team,
        })
    }
}

fn need<E: Error>(member: Option<Str>, name: &'static str) -> Result<Str, E> {
    member.ok_or_else(|| E::missing_field(name))
}

/// In the order of the specification.
impl Serialize for ChatSend {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let session = &self.session;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("channel", &session.channel)?;
        map.serialize_entry("account", &session.account)?;
        map.serialize_entry("content", &self.content)?;
        for (name, member) in [
            ("peer", &session.peer),
            ("guild", &session.guild),
            ("team", &session.team),
        ] {
            if let Some(member) = member {
                map.serialize_entry(name, member)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ChatSend {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut question = Question::deserialize(from)?;
        let content = question.content.take();
        let session = question.session()?;
        let content = need(content, "content")?;
        Ok(Self { session, content })
    }
}

impl<'de> Deserialize<'de> for ChatHistory {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let question = Question::deserialize(from)?;
        let limit = question.limit;
        let session = question.session()?;
        Ok(Self { session, limit })
    }
}

impl<'de> Deserialize<'de> for BudgetOf {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let question = Question::deserialize(from)?;
        let is_named = question.channel.is_some() || question.account.is_some();
        let session = is_named.then(|| question.session()).transpose()?;
        Ok(Self { session })
    }
}

impl<'de> Deserialize<'de> for MemorySearch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut question = Question::deserialize(from)?;
        let limit = question.limit;
        let query = need(question.query.take(), "query")?;
        let session = question.session()?;
        Ok(Self {
            session,
            query,
            limit,
        })
    }
}

impl ChatSend {
    /// Creates a chat with the default peer.
    pub fn new(channel: impl Into<Str>, account: impl Into<Str>, content: impl Into<Str>) -> Self {
        Self {
            session: SessionRef::new(channel, account),
            content: content.into(),
        }
    }
}

impl SessionRef {
    /// Creates the name of a session with the default peer.
    pub fn new(channel: impl Into<Str>, account: impl Into<Str>) -> Self {
        Self {
            channel: channel.into(),
            account: account.into(),
            ..Self::default()
        }
    }

    /// Returns the peer, `main` by default.
    #[must_use]
    pub fn peer(&self) -> &str {
        self.peer.as_deref().unwrap_or(DEFAULT_PEER)
    }
}
