//! [`ClientFrame`]: the frames of a client.

use rpc_core::json::tagged::read_alone;
use rpc_core::json::{TagKind, Tagged, decode};
use rpc_core::{DecodeError, Json, Limits, Str};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::connect::{AdminRequest, Connect, OnboardSubmit, SessionQuery};
use super::input::Input;
use super::json::{in_frame, type_alone, verbatim};
use super::response::{Answer, ModeChange, PromptUpdate, Response};

/// One frame of the client, as a server reads it. ConnectOnion specification, *Client → Server*.
///
/// ```
/// use connectonion_proto::frame::ClientFrame;
/// use connectonion_proto::limits::defaults;
///
/// let text = r#"{"type":"INPUT","prompt":"hello"}"#;
/// let ClientFrame::Input(input) = ClientFrame::decode(text, &defaults())? else { panic!() };
/// assert_eq!(input.prompt.as_deref(), Some("hello"));
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "Tags")]
#[non_exhaustive]
pub enum ClientFrame {
    /// Identifies the client and requests a session.
    Connect(Connect),
    /// A prompt.
    Input(Input),
    /// Answers a PING.
    #[serde(serialize_with = "pong")]
    Pong,
    /// Answers a question of the agent.
    Response(Response),
    /// Changes the mode.
    ModeChange(ModeChange),
    /// Changes the goal.
    PromptUpdate(PromptUpdate),
    /// Stops the agent after its current step. Not in the specification.
    #[serde(serialize_with = "interrupt")]
    Interrupt,
    /// Requests the status of a session.
    SessionQuery(SessionQuery),
    /// A stranger's onboarding.
    OnboardSubmit(OnboardSubmit),
    /// An administrator's command.
    Admin(AdminRequest),
    /// A frame of any other type. A server replies with an ERROR.
    #[serde(serialize_with = "verbatim")]
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole frame.
        raw: Json,
    },
}

impl ClientFrame {
    /// Decodes a frame. [`error::refusal`](crate::error::refusal) is a server's reply to text that
    /// does not decode.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object, has no string `type`, or is of a known type
    /// with a member of the wrong type. Members whose absence has a reply of its own (`prompt`,
    /// `payload`, `from`, `signature`) may be absent.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        decode(text, limits)
            .map_err(|error| in_frame(error, text, Tags::TAGS.iter().chain(Answer::TAGS)))
    }

    /// Returns the type on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Connect(_) => "CONNECT",
            Self::Input(_) => "INPUT",
            Self::Pong => "PONG",
            Self::Response(response) => response.answer.tag(),
            Self::ModeChange(_) => "mode_change",
            Self::PromptUpdate(_) => "prompt_update",
            Self::Interrupt => "INTERRUPT",
            Self::SessionQuery(_) => "SESSION_STATUS",
            Self::OnboardSubmit(_) => "ONBOARD_SUBMIT",
            Self::Admin(admin) => admin.action.name(),
            Self::Unknown { tag, .. } => tag,
        }
    }
}

/// Reads a frame by its type.
struct Tags(ClientFrame);

impl From<Tags> for ClientFrame {
    fn from(Tags(frame): Tags) -> Self {
        frame
    }
}

impl Tagged for Tags {
    const TAG: &'static str = "type";
    const CONTENT: Option<&'static str> = None;
    /// Without those of answers. `ADMIN` is the start of administrators' types.
    const TAGS: &'static [&'static str] = &[
        "CONNECT",
        "INPUT",
        "PONG",
        "mode_change",
        "prompt_update",
        "INTERRUPT",
        "SESSION_STATUS",
        "ONBOARD_SUBMIT",
        "ADMIN",
    ];

    fn kind(tag: &str) -> TagKind {
        match tag {
            "PONG" | "INTERRUPT" => TagKind::Unit,
            "CONNECT" | "INPUT" | "mode_change" | "prompt_update" | "SESSION_STATUS"
            | "ONBOARD_SUBMIT" => TagKind::Content,
            _ if tag.starts_with("ADMIN_") => TagKind::Content,
            _ => Answer::kind(tag),
        }
    }

    fn read<'de, D: Deserializer<'de>>(tag: &str, from: D) -> Result<Self, D::Error> {
        Ok(Self(match tag {
            "CONNECT" => ClientFrame::Connect(Deserialize::deserialize(from)?),
            "INPUT" => ClientFrame::Input(Deserialize::deserialize(from)?),
            "mode_change" => ClientFrame::ModeChange(Deserialize::deserialize(from)?),
            "prompt_update" => ClientFrame::PromptUpdate(Deserialize::deserialize(from)?),
            "SESSION_STATUS" => ClientFrame::SessionQuery(Deserialize::deserialize(from)?),
            "ONBOARD_SUBMIT" => ClientFrame::OnboardSubmit(Deserialize::deserialize(from)?),
            _ if tag.starts_with("ADMIN_") => ClientFrame::Admin(AdminRequest {
                action: Str::from(tag).into(),
                signed: Deserialize::deserialize(from)?,
            }),
            answer => ClientFrame::Response(Response::read_rest(Some(answer), from)?),
        }))
    }

    fn without<E: Error>(tag: &str, raw: Option<Json>) -> Result<Self, E> {
        Ok(Self(match (tag, raw) {
            (tag, Some(raw)) => ClientFrame::Unknown {
                tag: tag.into(),
                raw,
            },
            ("INTERRUPT", None) => ClientFrame::Interrupt,
            (_, None) => ClientFrame::Pong,
        }))
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_alone(from)
    }
}

fn pong<S: Serializer>(to: S) -> Result<S::Ok, S::Error> {
    type_alone("PONG", to)
}

fn interrupt<S: Serializer>(to: S) -> Result<S::Ok, S::Error> {
    type_alone("INTERRUPT", to)
}

// Prints the type only: the contents are private.
rpc_core::debug_fields!([] ClientFrame, this => { name: this.name() });
