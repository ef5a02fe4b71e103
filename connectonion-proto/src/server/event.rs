//! What happens on a connection: [`ServerEvent`].

use rpc_core::CloseReason;
use rpc_core::{DecodeError, Str};

use crate::auth::{Address, AuthError};
use crate::console::NOT_AUTHENTICATED;
use crate::frame::{
    AdminRequest, Connect, Input, ModeChange, OnboardSubmit, PromptUpdate, Response, SessionQuery,
    Signed,
};
use crate::limits::PROMPT_REQUIRED;

/// What happened on a connection. Every one of them, also those that the machine answers by itself,
/// says that the client is alive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client wants to come in. Nothing of it has been verified. Answer with
    /// [`accept`](super::ServerConn::accept), [`gate`](super::ServerConn::gate) or
    /// [`refuse`](super::ServerConn::refuse); meanwhile nothing more of the connection is handed
    /// out. A client that is in may send another one.
    Connect {
        /// What it sent.
        connect: Connect,
    },
    /// A stranger at the gate offers something. Answer with
    /// [`welcome`](super::ServerConn::welcome) or [`refuse`](super::ServerConn::refuse); meanwhile
    /// nothing more of the connection is handed out.
    Onboard {
        /// Whose CONNECT waits at the gate. Whoever answers has to be the same.
        identity: Address,
        /// What it sent. Nothing of it has been verified.
        submit: OnboardSubmit,
    },
    /// A stranger was let through the gate, and here is the CONNECT that waited there. Answer it as
    /// [`Connect`](Self::Connect), but do not verify it again: its time may be over.
    Onboarded {
        /// Whose it is.
        identity: Address,
        /// The CONNECT.
        connect: Connect,
    },
    /// A prompt. Answer with [`begun`](super::ServerConn::begun),
    /// [`acknowledge`](super::ServerConn::acknowledge) or [`refuse`](super::ServerConn::refuse);
    /// meanwhile nothing more of the connection is handed out.
    Input {
        /// What it sent. There is a prompt, here or in the signed part.
        input: Input,
    },
    /// The user answers the agent.
    Response {
        /// The answer.
        response: Response,
    },
    /// The user wants another mode.
    ModeChange {
        /// Which.
        change: ModeChange,
    },
    /// The user has another goal for the mode `ulw`.
    PromptUpdate {
        /// The goal.
        update: PromptUpdate,
    },
    /// The agent is to stop after what it is doing.
    Interrupt,
    /// Somebody asks how a session stands; it may not be connected. Answer with
    /// [`tell`](super::ServerConn::tell).
    SessionQuery {
        /// Which session.
        query: SessionQuery,
    },
    /// Somebody wants what only administrators may; it may not be connected. Answer with
    /// [`tell`](super::ServerConn::tell).
    Admin {
        /// What. Nothing of it has been verified.
        request: AdminRequest,
    },
    /// A command of a client that [signs](Connect::signs_commands) all of them, so that nobody else
    /// can slip one in: INPUT, an answer, `mode_change`, `prompt_update` or INTERRUPT. Verify `signed`
    /// (`trust::AccessControl::command`), then treat `command`, which is what was signed, as if it had come
    /// alone. If it is not good, [`refuse`](super::ServerConn::refuse) an INPUT, and
    /// [`tell`](super::ServerConn::tell) an ERROR to anything else.
    Signed {
        /// The proof. It has a `type`, a `nonce` and a `to`; nothing else of it has been checked.
        signed: Signed,
        /// The command.
        command: Box<Self>,
    },
    /// The client has answered a PING.
    Pong,
    /// There is [room](super::ServerConn::has_room) again.
    Writable,
    /// A frame was answered with an ERROR, or ignored.
    Warning(Warning),
    /// The connection has ended. The last event.
    Closed(CloseReason),
}

/// Why a frame of the client was not handed out. The client has got an ERROR, unless it says
/// otherwise here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// It is no frame.
    #[error(transparent)]
    BadFrame(#[from] DecodeError),
    /// It is a binary message that is no text.
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
    /// The INPUT without a prompt that npm's `connectonion` 0.1.4 sends when it is through the gate.
    /// It got no answer: that client would close on one.
    #[error("an INPUT without a prompt, right after onboarding")]
    EmptyInput,
    /// An `ONBOARD_SUBMIT` of a client that is not at the gate.
    #[error("an offer of a client that is not at the gate")]
    NotGated,
    /// A command that does not prove whose it is, of a client that
    /// [signs](Connect::signs_commands) its commands.
    #[error("{why}")]
    Unsigned {
        /// The type.
        tag: Str,
        /// What it lacks.
        why: AuthError,
    },
    /// Its type is none that a server takes.
    #[error("a frame of the type {tag:?}")]
    UnknownType {
        /// The type.
        tag: Str,
    },
}
