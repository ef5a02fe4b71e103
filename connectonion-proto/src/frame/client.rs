//! [`ClientFrame`]: what a client sends.

use rpc_core::json::{TagKind, Tagged, decode};
use rpc_core::{DecodeError, Json, Limits, Str};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::connect::{AdminRequest, Connect, OnboardSubmit, SessionQuery};
use super::frames::frames;
use super::input::Input;
use super::json::in_frame;
use super::response::{Answer, ModeChange, PromptUpdate, Response};
use super::word::Word;

frames! {
    /// One frame of the client, as a server reads it, which answers an ERROR to what is unknown.
    /// ConnectOnion specification, *Client → Server*.
    pub enum ClientFrame {
        /// The client says who it is, and which session it wants.
        "CONNECT" => Connect(Connect),
        /// A prompt.
        "INPUT" => Input(Input),
        /// Another mode.
        "mode_change" => ModeChange(ModeChange),
        /// Another goal.
        "prompt_update" => PromptUpdate(PromptUpdate),
        /// How does a session stand?
        "SESSION_STATUS" => SessionQuery(SessionQuery),
        /// What a stranger offers.
        "ONBOARD_SUBMIT" => OnboardSubmit(OnboardSubmit),
    } alone {
        /// The answer to a PING.
        "PONG" => Pong,
        /// The agent is to stop after what it is doing. Not in the specification.
        "INTERRUPT" => Interrupt,
    } others {
        /// The user's answer to a question of the agent.
        Response(response: Response) = response.answer.tag(),
        /// What an administrator wants: `ADMIN_…`.
        Admin(admin: AdminRequest) = admin.action.as_str(),
    }
}

impl ClientFrame {
    /// Decodes a frame. What a server answers to a text that is none, says
    /// [`error::refusal`](crate::error::refusal).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no string `type`, or is of a known type with a
    /// member of the wrong type. Members whose absence has an answer of its own (`prompt`,
    /// `payload`, `from`, `signature`) may be absent.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        decode(text, limits).map_err(|error| {
            let names = Self::TAGS.iter().chain(Answer::TAGS);
            in_frame(error, text, names.chain(&["ADMIN"]))
        })
    }

    fn kind_of_other(tag: &str) -> TagKind {
        match tag.starts_with("ADMIN_") {
            true => TagKind::Content,
            false => Answer::kind(tag),
        }
    }

    fn read_other<'de, D: Deserializer<'de>>(tag: &str, from: D) -> Result<Self, D::Error> {
        if !tag.starts_with("ADMIN_") {
            return Response::read_rest(Some(tag), from).map(Self::Response);
        }
        let action = Word::parse(tag);
        Deserialize::deserialize(from).map(|signed| Self::Admin(AdminRequest { action, signed }))
    }

    const fn unknown(tag: Str, raw: Json) -> Self {
        Self::Unknown { tag, raw }
    }
}
