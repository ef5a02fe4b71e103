//! [`Call`]: a request with typed parameters, and [`ChatSend`] and [`SessionRef`], what it carries.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{
    self, DecodeError, Field, FrameCopy, Members, RawJson, SharedJson, SharedStr, Slot,
};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::method::Method;
use super::positional;
use crate::codec::NoParams;
use crate::error::RpcError;
use crate::limits::DEFAULT_PEER;

/// A method and its parameters. `S` is a text and `J` a raw JSON value: borrowed from the frame
/// ([`BorrowedCall`]) or owned ([`OwnedCall`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call<S, J> {
    /// Is the gateway there?
    Ping,
    /// Version, plugins and sessions.
    Status,
    /// Say something and get a streamed answer.
    ChatSend(ChatSend<S>),
    /// The plugins that are loaded.
    PluginList,
    /// The last turns of a session.
    ChatHistory {
        /// Which session.
        session: SessionRef<S>,
        /// Most turns that are wanted; `None` leaves it to the gateway.
        limit: Option<u64>,
    },
    /// The sessions.
    SessionList,
    /// Forget the turns of a session.
    SessionClear(SessionRef<S>),
    /// Load a plugin.
    PluginLoad {
        /// Its name.
        name: S,
        /// Its file.
        path: S,
    },
    /// Unload a plugin.
    PluginUnload {
        /// Its name.
        name: S,
    },
    /// What is used of the token budgets, for the whole gateway or also for one session.
    BudgetStatus(Option<SessionRef<S>>),
    /// Search what is remembered about a session's user.
    MemorySearch {
        /// Which session.
        session: SessionRef<S>,
        /// Words to look for.
        query: S,
        /// Most facts that are wanted; `None` leaves it to the gateway.
        limit: Option<u64>,
    },
    /// A method that this crate does not know.
    Unknown {
        /// Its name.
        method: S,
        /// Its parameters, raw; `None` if there are none.
        params: Option<J>,
    },
}

/// A [`Call`] that borrows from the frame.
pub type BorrowedCall<'a> = Call<Cow<'a, str>, RawJson<'a>>;

/// A [`Call`] whose texts share one copy of the frame.
pub type OwnedCall = Call<SharedStr, SharedJson>;

/// The parameters of `chat.send`. Exoclaw specification, *Methods*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ChatSend<S = String> {
    /// The channel, for example `websocket`.
    pub channel: S,
    /// The account within the channel.
    pub account: S,
    /// The peer; `None` is [`DEFAULT_PEER`].
    pub peer: Option<S>,
    /// What the user says.
    pub content: S,
    /// The guild or server, in channels that have them.
    pub guild: Option<S>,
    /// The team within a guild.
    pub team: Option<S>,
}

/// Names a session: the same members as a chat, without the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SessionRef<S = String> {
    /// The channel.
    pub channel: S,
    /// The account within the channel.
    pub account: S,
    /// The peer; `None` is [`DEFAULT_PEER`].
    pub peer: Option<S>,
    /// The guild or server, in channels that have them.
    pub guild: Option<S>,
    /// The team within a guild.
    pub team: Option<S>,
}

impl<S> ChatSend<S> {
    /// A chat with the default peer.
    pub fn new(channel: impl Into<S>, account: impl Into<S>, content: impl Into<S>) -> Self {
        Self {
            channel: channel.into(),
            account: account.into(),
            peer: None,
            content: content.into(),
            guild: None,
            team: None,
        }
    }

    /// Sets [`peer`](Self::peer).
    #[must_use]
    pub fn with_peer(mut self, peer: impl Into<S>) -> Self {
        self.peer = Some(peer.into());
        self
    }

    /// Sets [`guild`](Self::guild).
    #[must_use]
    pub fn with_guild(mut self, guild: impl Into<S>) -> Self {
        self.guild = Some(guild.into());
        self
    }

    /// Sets [`team`](Self::team).
    #[must_use]
    pub fn with_team(mut self, team: impl Into<S>) -> Self {
        self.team = Some(team.into());
        self
    }

    fn map<T>(&self, text: impl Fn(&S) -> T) -> ChatSend<T> {
        ChatSend {
            channel: text(&self.channel),
            account: text(&self.account),
            peer: self.peer.as_ref().map(&text),
            content: text(&self.content),
            guild: self.guild.as_ref().map(&text),
            team: self.team.as_ref().map(&text),
        }
    }
}

impl<S: AsRef<str>> ChatSend<S> {
    /// The peer, `main` if none is named.
    #[must_use]
    pub fn peer(&self) -> &str {
        self.peer.as_ref().map_or(DEFAULT_PEER, AsRef::as_ref)
    }
}

impl<S> SessionRef<S> {
    /// The session of the default peer.
    pub fn new(channel: impl Into<S>, account: impl Into<S>) -> Self {
        Self {
            channel: channel.into(),
            account: account.into(),
            peer: None,
            guild: None,
            team: None,
        }
    }

    /// Sets [`peer`](Self::peer).
    #[must_use]
    pub fn with_peer(mut self, peer: impl Into<S>) -> Self {
        self.peer = Some(peer.into());
        self
    }

    /// Sets [`guild`](Self::guild), which may lead to another agent.
    #[must_use]
    pub fn with_guild(mut self, guild: impl Into<S>) -> Self {
        self.guild = Some(guild.into());
        self
    }

    /// Sets [`team`](Self::team), which may lead to another agent.
    #[must_use]
    pub fn with_team(mut self, team: impl Into<S>) -> Self {
        self.team = Some(team.into());
        self
    }

    fn map<T>(&self, text: impl Fn(&S) -> T) -> SessionRef<T> {
        SessionRef {
            channel: text(&self.channel),
            account: text(&self.account),
            peer: self.peer.as_ref().map(&text),
            guild: self.guild.as_ref().map(&text),
            team: self.team.as_ref().map(&text),
        }
    }
}

impl<S: AsRef<str>> SessionRef<S> {
    /// The peer, `main` if none is named.
    #[must_use]
    pub fn peer(&self) -> &str {
        self.peer.as_ref().map_or(DEFAULT_PEER, AsRef::as_ref)
    }
}

impl<S, J> Call<S, J> {
    /// The method; `None` for one that this crate does not know.
    #[must_use]
    pub const fn method(&self) -> Option<Method> {
        match self {
            Self::Ping => Some(Method::Ping),
            Self::Status => Some(Method::Status),
            Self::ChatSend(_) => Some(Method::ChatSend),
            Self::PluginList => Some(Method::PluginList),
            Self::ChatHistory { .. } => Some(Method::ChatHistory),
            Self::SessionList => Some(Method::SessionList),
            Self::SessionClear(_) => Some(Method::SessionClear),
            Self::PluginLoad { .. } => Some(Method::PluginLoad),
            Self::PluginUnload { .. } => Some(Method::PluginUnload),
            Self::BudgetStatus(_) => Some(Method::BudgetStatus),
            Self::MemorySearch { .. } => Some(Method::MemorySearch),
            Self::Unknown { .. } => None,
        }
    }
}

impl<S: AsRef<str>, J> Call<S, J> {
    /// The method's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match (self, self.method()) {
            (Self::Unknown { method, .. }, _) => method.as_ref(),
            (_, Some(method)) => method.name(),
            // Only `Unknown` has no method.
            (_, None) => "",
        }
    }
}

/// The members of every method's parameters.
#[derive(Default)]
struct Params<'a> {
    channel: Slot<Cow<'a, str>>,
    account: Slot<Cow<'a, str>>,
    peer: Slot<Cow<'a, str>>,
    content: Slot<Cow<'a, str>>,
    guild: Slot<Cow<'a, str>>,
    team: Slot<Cow<'a, str>>,
    limit: Slot<u64>,
    query: Slot<Cow<'a, str>>,
    name: Slot<Cow<'a, str>>,
    path: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for Params<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "channel" => field.str("channel", &mut self.channel),
            "account" => field.str("account", &mut self.account),
            "peer" => field.str("peer", &mut self.peer),
            "content" => field.str("content", &mut self.content),
            "guild" => field.str("guild", &mut self.guild),
            "team" => field.str("team", &mut self.team),
            "limit" => field.u64("limit", &mut self.limit),
            "query" => field.str("query", &mut self.query),
            "name" => field.str("name", &mut self.name),
            "path" => field.str("path", &mut self.path),
            _ => field.skip(),
        }
    }
}

impl<'a> Params<'a> {
    fn session(self) -> Result<SessionRef<Cow<'a, str>>, DecodeError> {
        Ok(SessionRef {
            channel: self.channel.require("channel")?,
            account: self.account.require("account")?,
            peer: self.peer.take(),
            guild: self.guild.take(),
            team: self.team.take(),
        })
    }

    fn chat(self) -> Result<ChatSend<Cow<'a, str>>, DecodeError> {
        Ok(ChatSend {
            channel: self.channel.require("channel")?,
            account: self.account.require("account")?,
            peer: self.peer.take(),
            content: self.content.require("content")?,
            guild: self.guild.take(),
            team: self.team.take(),
        })
    }
}

impl<'a> BorrowedCall<'a> {
    /// Reads the parameters of `method`. Those of methods without parameters are not looked at.
    pub(super) fn read(
        method: &'a str,
        params: Option<&'a RawJson<'_>>,
        limits: &Limits,
    ) -> Result<Self, RpcError> {
        let Some(known) = Method::parse(method) else {
            return Ok(Self::Unknown {
                method: Cow::Borrowed(method),
                params: params.map(RawJson::borrowed),
            });
        };
        Self::read_known(known, params.map(RawJson::get), limits)
            .map_err(|error| RpcError::invalid_params(known, &error.kind().to_string()))
    }

    fn read_known(
        method: Method,
        params: Option<&'a str>,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let json = params.unwrap_or("{}");
        let members = || decode::object::<Params<'a>>(json, limits);
        Ok(match method {
            Method::Ping => Self::Ping,
            Method::Status => Self::Status,
            Method::PluginList => Self::PluginList,
            Method::SessionList => Self::SessionList,
            Method::ChatSend if decode::first_byte(json) == Some(b'[') => {
                Self::ChatSend(positional::chat_send(json, limits)?)
            }
            Method::ChatSend => Self::ChatSend(members()?.chat()?),
            Method::ChatHistory => {
                let members = members()?;
                let limit = members.limit.get().copied();
                let session = members.session()?;
                Self::ChatHistory { session, limit }
            }
            Method::SessionClear => Self::SessionClear(members()?.session()?),
            Method::PluginLoad => {
                let members = members()?;
                Self::PluginLoad {
                    name: members.name.require("name")?,
                    path: members.path.require("path")?,
                }
            }
            Method::PluginUnload => Self::PluginUnload {
                name: members()?.name.require("name")?,
            },
            Method::BudgetStatus => {
                let members = members()?;
                let named = members.channel.get().is_some() || members.account.get().is_some();
                Self::BudgetStatus(named.then(|| members.session()).transpose()?)
            }
            Method::MemorySearch => {
                let mut members = members()?;
                let limit = members.limit.get().copied();
                let query = std::mem::take(&mut members.query).require("query")?;
                let session = members.session()?;
                Self::MemorySearch {
                    session,
                    query,
                    limit,
                }
            }
        })
    }

    /// An owned copy. `copy` is of the frame that the call was read from.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> OwnedCall {
        let text = |text: &Cow<'_, str>| copy.str(text);
        match self {
            Self::Ping => Call::Ping,
            Self::Status => Call::Status,
            Self::PluginList => Call::PluginList,
            Self::SessionList => Call::SessionList,
            Self::ChatSend(chat) => Call::ChatSend(chat.map(text)),
            Self::ChatHistory { session, limit } => Call::ChatHistory {
                session: session.map(text),
                limit: *limit,
            },
            Self::SessionClear(session) => Call::SessionClear(session.map(text)),
            Self::PluginLoad { name, path } => Call::PluginLoad {
                name: text(name),
                path: text(path),
            },
            Self::PluginUnload { name } => Call::PluginUnload { name: text(name) },
            Self::BudgetStatus(session) => {
                Call::BudgetStatus(session.as_ref().map(|session| session.map(text)))
            }
            Self::MemorySearch {
                session,
                query,
                limit,
            } => Call::MemorySearch {
                session: session.map(text),
                query: text(query),
                limit: *limit,
            },
            Self::Unknown { method, params } => Call::Unknown {
                method: text(method),
                params: params.as_ref().map(|params| copy.json(params)),
            },
        }
    }
}

/// What every named session and chat writes; absent members are left out.
fn write_place<S: AsRef<str>, W: SerializeStruct>(
    to: &mut W,
    peer: Option<&S>,
    guild: Option<&S>,
    team: Option<&S>,
) -> Result<(), W::Error> {
    for (name, value) in [("peer", peer), ("guild", guild), ("team", team)] {
        if let Some(value) = value {
            to.serialize_field(name, value.as_ref())?;
        }
    }
    Ok(())
}

impl<S: AsRef<str>> Serialize for ChatSend<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut to = serializer.serialize_struct("ChatSend", 6)?;
        to.serialize_field("channel", self.channel.as_ref())?;
        to.serialize_field("account", self.account.as_ref())?;
        to.serialize_field("content", self.content.as_ref())?;
        write_place(
            &mut to,
            self.peer.as_ref(),
            self.guild.as_ref(),
            self.team.as_ref(),
        )?;
        to.end()
    }
}

impl<S: AsRef<str>> Serialize for SessionRef<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut to = serializer.serialize_struct("SessionRef", 5)?;
        to.serialize_field("channel", self.channel.as_ref())?;
        to.serialize_field("account", self.account.as_ref())?;
        write_place(
            &mut to,
            self.peer.as_ref(),
            self.guild.as_ref(),
            self.team.as_ref(),
        )?;
        to.end()
    }
}

/// Writes the parameters: `{}` where there are none.
impl<S: AsRef<str>, J: Serialize> Serialize for Call<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        match self {
            Self::Ping
            | Self::Status
            | Self::PluginList
            | Self::SessionList
            | Self::BudgetStatus(None)
            | Self::Unknown { params: None, .. } => NoParams {}.serialize(serializer),
            Self::ChatSend(chat) => chat.serialize(serializer),
            Self::SessionClear(session) | Self::BudgetStatus(Some(session)) => {
                session.serialize(serializer)
            }
            Self::ChatHistory { session, limit } => Query {
                session,
                query: None,
                limit: *limit,
            }
            .serialize(serializer),
            Self::MemorySearch {
                session,
                query,
                limit,
            } => Query {
                session,
                query: Some(query.as_ref()),
                limit: *limit,
            }
            .serialize(serializer),
            Self::PluginLoad { name, path } => {
                let mut to = serializer.serialize_struct("Params", 2)?;
                to.serialize_field("name", name.as_ref())?;
                to.serialize_field("path", path.as_ref())?;
                to.end()
            }
            Self::PluginUnload { name } => {
                let mut to = serializer.serialize_struct("Params", 1)?;
                to.serialize_field("name", name.as_ref())?;
                to.end()
            }
            Self::Unknown {
                params: Some(params),
                ..
            } => params.serialize(serializer),
        }
    }
}

/// A session and what is asked about it.
struct Query<'q, S> {
    session: &'q SessionRef<S>,
    query: Option<&'q str>,
    limit: Option<u64>,
}

impl<S: AsRef<str>> Serialize for Query<'_, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let session = self.session;
        let mut to = serializer.serialize_struct("Params", 7)?;
        to.serialize_field("channel", session.channel.as_ref())?;
        to.serialize_field("account", session.account.as_ref())?;
        write_place(
            &mut to,
            session.peer.as_ref(),
            session.guild.as_ref(),
            session.team.as_ref(),
        )?;
        if let Some(query) = self.query {
            to.serialize_field("query", query)?;
        }
        if let Some(limit) = self.limit {
            to.serialize_field("limit", &limit)?;
        }
        to.end()
    }
}
