//! The choice of an agent for a chat: [`Binding`]s, and the [`Bindings`] over them.

use std::borrow::Cow;
use std::collections::HashMap;

use rpc_core::Refused;
use serde::{Deserialize, Serialize};

use crate::error::{NO_AGENT, RpcError};
use crate::frame::SessionRef;
use crate::session::SessionKey;

/// A rule that sends chats with these properties to an agent. Sets at least one of the five.
/// Exoclaw specification, `chat.send`, step 1.
///
/// ```
/// use exoclaw_proto::binding::Binding;
///
/// let binding = Binding {
///     channel: Some("discord".to_owned()),
///     guild_id: Some("g1".to_owned()),
///     ..Binding::new("helper")
/// };
/// assert_eq!(binding.agent_id, "helper");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Binding {
    /// The agent.
    pub agent_id: String,
    /// The channel, such as `websocket`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The account within the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_id: Option<String>,
    /// The guild or server, in channels that have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<String>,
    /// The team within a guild.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
}

impl Binding {
    /// Creates a binding to this agent without properties.
    pub fn new(agent_id: impl Into<String>) -> Self {
        Self {
            agent_id: agent_id.into(),
            ..Self::default()
        }
    }
}

/// Most specific first: peer, guild, team, account, channel.
const KINDS: usize = 5;

/// The properties of a binding or a route, in the order of [`KINDS`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Selector<'a>([Option<Cow<'a, str>>; KINDS]);

impl<'a> Selector<'a> {
    fn of_binding(binding: Binding) -> (Self, String) {
        let fields = [
            binding.peer_id,
            binding.guild_id,
            binding.team_id,
            binding.account_id,
            binding.channel,
        ];
        (
            Self(fields.map(|field| field.map(Cow::Owned))),
            binding.agent_id,
        )
    }

    /// Returns the fields of the route whose bits are in the mask, or `None` if it lacks one of
    /// them.
    fn of_chat(chat: &'a SessionRef, mask: Mask) -> Option<Self> {
        let fields = [
            Some(chat.peer()),
            chat.guild.as_deref(),
            chat.team.as_deref(),
            Some(&*chat.account),
            Some(&*chat.channel),
        ];
        let mut selector = Self([const { None }; KINDS]);
        for (kind, (field, place)) in fields.into_iter().zip(&mut selector.0).enumerate() {
            if mask.has(kind) {
                *place = Some(Cow::Borrowed(field?));
            }
        }
        Some(selector)
    }

    fn mask(&self) -> Mask {
        let bits = self.0.iter().enumerate();
        Mask(bits.fold(0, |mask, (kind, field)| {
            mask | u8::from(field.is_some()) << kind
        }))
    }
}

/// The set of fields: bit 0 is the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mask(u8);

impl Mask {
    const fn has(self, kind: usize) -> bool {
        self.0 >> kind & 1 == 1
    }

    /// Returns the sort key: the more specific comes first, then the one that sets more.
    const fn rank(self) -> (u32, u32) {
        (self.0.trailing_zeros(), u32::MAX - self.0.count_ones())
    }
}

/// A table of bindings that finds the agent of a chat.
///
/// A binding matches if *all* its properties are equal. Of several matches, the one with the most
/// specific property wins (peer, then guild, team, account, channel); then the one that sets more;
/// then the first. The lookup time does not depend on the number of bindings: there are 31
/// combinations of five fields, and one table lookup for each that is in use.
///
/// ```
/// use exoclaw_proto::binding::{Binding, Bindings};
/// use exoclaw_proto::frame::SessionRef;
///
/// let bindings = vec![
///     Binding { channel: Some("discord".to_owned()), ..Binding::new("chatty") },
///     Binding { peer_id: Some("ann".to_owned()), ..Binding::new("private") },
/// ];
/// let router = Bindings::new(bindings, None)?;
/// let chat = |channel, peer: &str| SessionRef {
///     peer: Some(peer.into()),
///     ..SessionRef::new(channel, "a1")
/// };
/// assert_eq!(router.resolve(&chat("discord", "ann")), Ok("private"));
/// assert_eq!(router.resolve(&chat("discord", "bob")), Ok("chatty"));
/// let error = router.resolve(&chat("telegram", "bob")).unwrap_err();
/// assert_eq!(error.to_string(), "no agent configured for telegram:a1:bob");
/// # Ok::<(), rpc_core::Refused>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// The first binding with these properties.
    index: HashMap<Selector<'static>, usize>,
    /// The agent of each binding.
    agents: Vec<String>,
    /// The masks in use, the preferred ones first.
    masks: Vec<Mask>,
    default_agent: Option<String>,
}

impl Bindings {
    /// Creates a router over these bindings. A chat that matches none of them goes to the default
    /// agent, if there is one.
    ///
    /// # Errors
    /// [`Refused::Invalid`] for the first invalid binding.
    pub fn new(bindings: Vec<Binding>, default_agent: Option<String>) -> Result<Self, Refused> {
        let mut router = Self {
            default_agent,
            ..Self::default()
        };
        for (index, binding) in bindings.into_iter().enumerate() {
            let (selector, agent_id) = Selector::of_binding(binding);
            let mask = selector.mask();
            if mask == Mask(0) {
                return Err(invalid(format!(
                    "number {index} (agent '{agent_id}') names none of \
                     channel, account_id, peer_id, guild_id, team_id"
                )));
            }
            if agent_id.is_empty() {
                return Err(invalid(format!("number {index} has an empty agent_id")));
            }
            if !router.masks.contains(&mask) {
                router.masks.push(mask);
            }
            router.index.entry(selector).or_insert(index);
            router.agents.push(agent_id);
        }
        router.masks.sort_by_key(|mask| mask.rank());
        Ok(router)
    }

    /// Creates a router without bindings: every chat goes to this agent.
    #[must_use]
    pub fn all_to(agent_id: impl Into<String>) -> Self {
        Self {
            default_agent: Some(agent_id.into()),
            ..Self::default()
        }
    }

    /// Returns the agent for a chat.
    ///
    /// # Errors
    /// [`RpcError`] of the kind [`NoAgent`](crate::error::ErrorKind::NoAgent) if no binding matches and there
    /// is no default agent. It is the answer for the client.
    pub fn resolve(&self, chat: &SessionRef) -> Result<&str, RpcError> {
        self.bound(chat)
            .or(self.default_agent.as_deref())
            .ok_or_else(|| {
                let (channel, account, peer) = (&chat.channel, &chat.account, chat.peer());
                RpcError::new(format!("{NO_AGENT}{channel}:{account}:{peer}"))
            })
    }

    /// Returns the key of a chat's session: its agent, channel, account and peer. Exoclaw
    /// specification, `chat.send`, steps 1 and 2.
    ///
    /// # Errors
    /// [`RpcError`] of the kind [`NoAgent`](crate::error::ErrorKind::NoAgent) if no binding matches and there
    /// is no default agent. It is the answer for the client.
    pub fn session(&self, chat: &SessionRef) -> Result<SessionKey, RpcError> {
        let agent = self.resolve(chat)?;
        Ok(SessionKey::new(
            agent,
            &chat.channel,
            &chat.account,
            chat.peer(),
        ))
    }

    fn bound(&self, chat: &SessionRef) -> Option<&str> {
        for same_rank in self.masks.chunk_by(|a, b| a.rank() == b.rank()) {
            let found = same_rank.iter().filter_map(|mask| {
                let selector = Selector::of_chat(chat, *mask)?;
                // A lookup with borrowed names, without a copy of them.
                self.index.get(&selector).copied()
            });
            if let Some(first) = found.min() {
                return self.agents.get(first).map(String::as_str);
            }
        }
        None
    }
}

fn invalid(why: String) -> Refused {
    Refused::invalid("binding", why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn router(bindings: Vec<Binding>) -> Bindings {
        Bindings::new(bindings, None).unwrap()
    }

    fn chat(channel: &str, account: &str, peer: &str) -> SessionRef {
        SessionRef {
            peer: Some(peer.into()),
            ..SessionRef::new(channel, account)
        }
    }

    fn on_channel() -> Binding {
        Binding {
            channel: Some("c".to_owned()),
            ..Binding::new("a")
        }
    }

    #[test]
    fn a_binding_needs_a_criterion_and_an_agent() {
        let bindings = vec![on_channel(), Binding::new("b")];
        let error = Bindings::new(bindings, None).unwrap_err();
        let words = "number 1 (agent 'b') names none of ";
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(
            Bindings::new(
                vec![Binding {
                    channel: Some("c".into()),
                    ..Binding::new("")
                }],
                None
            )
            .unwrap_err(),
            invalid("number 0 has an empty agent_id".to_owned())
        );
    }

    #[test]
    fn all_criteria_of_a_binding_must_match() {
        let router = router(vec![Binding {
            peer_id: Some("p".to_owned()),
            ..on_channel()
        }]);
        assert_eq!(router.resolve(&chat("c", "x", "p")), Ok("a"));
        assert!(router.resolve(&chat("other", "x", "p")).is_err());
        assert!(router.resolve(&chat("c", "x", "other")).is_err());
    }

    #[test]
    fn the_more_specific_kind_wins_whatever_the_order() {
        let router = router(vec![
            Binding {
                channel: Some("c".into()),
                ..Binding::new("channel")
            },
            Binding {
                channel: Some("c".into()),
                account_id: Some("a".into()),
                ..Binding::new("account")
            },
            Binding {
                team_id: Some("t".into()),
                ..Binding::new("team")
            },
            Binding {
                guild_id: Some("g".into()),
                ..Binding::new("guild")
            },
            Binding {
                peer_id: Some("p".into()),
                ..Binding::new("peer")
            },
        ]);
        let text = |text: &str| Some(text.into());
        let route = |peer, guild, team, account| SessionRef {
            guild,
            team,
            ..chat("c", account, peer)
        };
        let found = [
            route("p", text("g"), text("t"), "a"),
            route("", text("g"), text("t"), "a"),
            route("", None, text("t"), "a"),
            route("", None, None, "a"),
            route("", None, None, ""),
        ]
        .map(|route| router.resolve(&route).unwrap());
        assert_eq!(found, ["peer", "guild", "team", "account", "channel"]);
    }

    #[test]
    fn more_criteria_win_and_then_the_first_binding() {
        let router = router(vec![
            Binding {
                peer_id: Some("p".into()),
                ..Binding::new("peer")
            },
            Binding {
                peer_id: Some("p".into()),
                account_id: Some("a".into()),
                ..Binding::new("peer of a")
            },
            Binding {
                peer_id: Some("p".into()),
                channel: Some("c".into()),
                ..Binding::new("peer in c")
            },
            Binding {
                peer_id: Some("p".into()),
                ..Binding::new("again")
            },
        ]);
        let found = [("c", "a"), ("c", "x"), ("x", "a"), ("x", "x")]
            .map(|(channel, account)| router.resolve(&chat(channel, account, "p")).unwrap());
        assert_eq!(found, ["peer of a", "peer in c", "peer of a", "peer"]);
    }

    #[test]
    fn without_a_default_agent_the_error_names_the_route() {
        let error = router(Vec::new())
            .resolve(&SessionRef {
                guild: Some("g".into()),
                ..SessionRef::new("websocket", "acc")
            })
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "no agent configured for websocket:acc:main"
        );
    }

    #[test]
    fn unmatched_chats_go_to_the_default_agent() {
        let router = Bindings::new(vec![on_channel()], Some("d".to_owned())).unwrap();
        assert_eq!(router.resolve(&chat("x", "", "")), Ok("d"));
        assert_eq!(router.resolve(&chat("c", "", "")), Ok("a"));
    }

    #[test]
    fn bindings_deserialize_from_configuration_files() {
        let json = r#"{"agent_id":"a","channel":"c","guild_id":"g"}"#;
        let binding: Binding = serde_json::from_str(json).unwrap();
        let guild_id = Some("g".to_owned());
        let expected = Binding {
            guild_id,
            ..on_channel()
        };
        assert_eq!(binding, expected);
        assert_eq!(serde_json::to_string(&binding).unwrap(), json);
    }

    type Fields = [Option<String>; KINDS];

    fn naive<'a>(bindings: &'a [(String, Fields)], route: &Fields) -> Option<&'a str> {
        let fits = |fields: &Fields| {
            let mut pairs = fields.iter().zip(route);
            pairs.all(|(named, has)| named.is_none() || named == has)
        };
        let fitting = bindings.iter().enumerate().filter(|(_, it)| fits(&it.1));
        let best = fitting.min_by_key(|(at, (_, fields))| {
            let specific = fields.iter().position(Option::is_some);
            (
                specific,
                fields.iter().flatten().count().wrapping_neg(),
                *at,
            )
        });
        best.map(|(_, (agent, _))| agent.as_str())
    }

    fn fields() -> impl Strategy<Value = Fields> {
        prop::array::uniform5(prop::option::of("[xy]"))
    }

    proptest! {
        #[test]
        fn the_router_agrees_with_a_linear_search(
            named in prop::collection::vec(fields(), 0..20),
            routes in prop::collection::vec(fields(), 1..20),
        ) {
            let named = named.into_iter().filter(|it| it.iter().any(Option::is_some));
            let agents: Vec<_> = named.enumerate().map(|(i, it)| (i.to_string(), it)).collect();
            let bindings = agents.iter().map(|(agent_id, fields)| {
                let [peer_id, guild_id, team_id, account_id, channel] = fields.clone();
                let agent_id = agent_id.clone();
                Binding { agent_id, channel, account_id, peer_id, guild_id, team_id }
            });
            let router = router(bindings.collect());
            for mut route in routes {
                for always in [0, 3, 4] {
                    route[always].get_or_insert_default();
                }
                let [peer, guild, team, account, channel] = route.each_ref().map(Option::as_deref);
                let asked = SessionRef {
                    guild: guild.map(Into::into),
                    team: team.map(Into::into),
                    ..chat(channel.unwrap(), account.unwrap(), peer.unwrap())
                };
                prop_assert_eq!(router.resolve(&asked).ok(), naive(&agents, &route));
            }
        }
    }
}
