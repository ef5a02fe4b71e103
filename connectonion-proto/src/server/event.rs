//! [`ServerEvent`]: what a connection reports to the application.

use rpc_core::{CloseReason, DecodeError, Str};

use crate::auth::{Address, AuthError};
use crate::console::NOT_AUTHENTICATED;
use crate::frame::{
    AdminRequest, Connect, Input, ModeChange, OnboardSubmit, PromptUpdate, Response, SessionQuery,
    Signed,
};
use crate::limits::PROMPT_REQUIRED;

/// An event on a connection. Each one, also one that the machine answers itself, shows that the
/// client is alive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client asks to be admitted. Nothing in it is verified. Reply with
    /// [`accept`](super::ServerConn::accept), [`gate`](super::ServerConn::gate) or
    /// [`refuse`](super::ServerConn::refuse); until then, no further frame of the connection is
    /// reported. An admitted client may send another one.
    Connect(Connect),
    /// A stranger submits its onboarding. Reply with [`welcome`](super::ServerConn::welcome) or
    /// [`refuse`](super::ServerConn::refuse); until then, no further frame of the connection is
    /// reported.
    Onboard {
        /// The sender of the kept CONNECT. The signer of the submission must be the same.
        identity: Address,
        /// The frame. Nothing in it is verified.
        submit: OnboardSubmit,
    },
    /// A stranger went through onboarding, and this is its kept CONNECT. Reply as to
    /// [`Connect`](Self::Connect), but do not verify it again: its signature may have expired.
    Onboarded {
        /// The sender.
        identity: Address,
        /// The CONNECT.
        connect: Connect,
    },
    /// A prompt, in the frame itself or in its signed part. Reply with [`begun`](super::ServerConn::begun),
    /// [`acknowledge`](super::ServerConn::acknowledge) or [`refuse`](super::ServerConn::refuse);
    /// until then, no further frame of the connection is reported.
    Input(Input),
    /// The user answers a question of the agent.
    Response(Response),
    /// The user changes the mode.
    ModeChange(ModeChange),
    /// The user changes the goal of the mode `ulw`.
    PromptUpdate(PromptUpdate),
    /// The user stops the agent after its current step.
    Interrupt,
    /// A client requests the status of a session; it may not be admitted. Reply with
    /// [`send_text`](super::ServerConn::send_text).
    SessionQuery(SessionQuery),
    /// A client sends an administrator's command; it may not be admitted, and nothing in it is
    /// verified. Reply with [`send_text`](super::ServerConn::send_text) and [`resume`](super::ServerConn::resume);
    /// until then, no further frame of the connection is reported.
    Admin(AdminRequest),
    /// A command of a client that [signs](Connect::signs_commands) all its commands, so that no one
    /// else can insert one: INPUT, an answer, `mode_change`, `prompt_update` or INTERRUPT. Verify
    /// `signed`, then handle `command`, which is the signed
    /// content, as if it had come alone. If verification fails,
    /// [`refuse`](super::ServerConn::refuse) an INPUT, and [`send_text`](super::ServerConn::send_text) an
    /// ERROR for anything else. After anything but an INPUT [`resume`](super::ServerConn::resume);
    /// until then, no further frame of the connection is reported.
    Signed {
        /// The proof. It has a `type`, a `nonce` and a `to`; nothing else in it is checked.
        signed: Signed,
        /// The command.
        command: Box<Self>,
    },
    /// The client has answered a PING.
    Pong,
    /// There is [room](super::ServerConn::has_room) again.
    Writable,
    /// A frame got an ERROR, or was ignored.
    Warning(Warning),
    /// The connection has ended. The last event.
    Closed(CloseReason),
}

/// Why a frame of the client was not reported. The client has got an ERROR, unless noted otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// It does not decode.
    #[error(transparent)]
    BadFrame(#[from] DecodeError),
    /// It is a binary message that is not text.
    #[error("a binary message")]
    Binary,
    /// It may only be sent after CONNECT.
    #[error("{NOT_AUTHENTICATED}")]
    NotConnected {
        /// The type.
        tag: Str,
    },
    /// An INPUT without a prompt.
    #[error("{PROMPT_REQUIRED}")]
    NoPrompt,
    /// The INPUT without a prompt that npm's `connectonion` 0.1.4 sends right after onboarding. It
    /// got no reply: that client would close on one.
    #[error("an INPUT without a prompt, right after onboarding")]
    EmptyInput,
    /// An `ONBOARD_SUBMIT` of a client that is not in onboarding.
    #[error("an ONBOARD_SUBMIT of a client that is not in onboarding")]
    NotGated,
    /// A command that does not prove whose it is, of a client that
    /// [signs](Connect::signs_commands) its commands.
    #[error("{why}")]
    Unsigned {
        /// The type.
        tag: Str,
        /// Why the signature does not suffice.
        why: AuthError,
    },
    /// A server does not take frames of this type.
    #[error("a frame of the type {tag:?}")]
    UnknownType {
        /// The type.
        tag: Str,
    },
}
