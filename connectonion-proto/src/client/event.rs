//! [`ClientEvent`]: what the application learns from a [`ClientConn`](super::ClientConn).

use rpc_core::{CallError, CallId, CloseReason};
use rpc_core::{DecodeError, Json, Str};

use crate::frame::{
    AdminResult, Connected, ErrorFrame, OnboardRequired, OnboardSuccess, Output, Response,
    SessionStatus, StreamEvent,
};

/// What happened on a connection.
///
/// The answer to the CONNECT comes first: `Connected`, `OnboardRequired` (and `Connected` later) or
/// `Refused`. `Closed` is the last event; everything that was asked and every run has ended before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The client is let in. Use the session id of this event: it may be another than the one that
    /// was asked for. If the session is running, the events of its run follow.
    Connected(Connected),
    /// The client is a stranger here. [`onboard`](super::ClientConn::onboard) answers; a human may
    /// take as long as it takes.
    OnboardRequired(OnboardRequired),
    /// The stranger was let in, but the host has not finished the CONNECT: it wants another one,
    /// freshly signed. Hand it to [`connect`](super::ClientConn::connect).
    ConnectWanted,
    /// The CONNECT was refused; the connection closes.
    Refused(ErrorFrame),
    /// One step of the agent's work, or a change between two runs.
    Step(Step),
    /// Something that was asked has its answer.
    Reply {
        /// What was asked.
        id: CallId,
        /// The answer.
        result: Result<Reply, CallError<ErrorFrame>>,
    },
    /// The run has ended, whoever started it. [`CallError::Remote`] is the agent's or the host's
    /// error; the session can be used again after it. If the connection ended first, the run goes on
    /// without it.
    RunEnded(Result<Output, CallError<ErrorFrame>>),
    /// An answer came too late, or to nothing; the run goes on.
    AnswerRefused {
        /// The event that was answered.
        request_id: Option<Str>,
        /// The host's words.
        error: ErrorFrame,
    },
    /// An answer that was taken had not left when the line was lost. Sent on the next connection, it
    /// is sent once.
    Unsent(Response),
    /// An answer was sent, and the line was lost before the host was known to have it. If the host
    /// asks the same question again and nothing has happened since, it is still open.
    Unconfirmed(Response),
    /// A run goes on whose events the host has sent again, and nothing has followed for a second: the
    /// last questions among them are open.
    CaughtUp,
    /// The host complains about something else that was sent. The connection goes on, and so does
    /// the run.
    Complaint(ErrorFrame),
    /// A frame that this crate does not know: newer hosts have more. Ignore it, or read it yourself.
    Unknown(OtherFrame),
    /// Something odd that the connection survived.
    Warning(Warning),
    /// The connection has ended.
    Closed(CloseReason),
}

/// One step of the agent's work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// The step.
    pub event: StreamEvent,
    /// The whole frame, unknown members included.
    pub frame: Json,
}

/// The answer to something that was asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// To an [`input`](super::ClientConn::input): the host has it.
    Input(Taken),
    /// To [`onboard`](super::ClientConn::onboard): the stranger is a contact now.
    Onboarded(OnboardSuccess),
    /// To [`query`](super::ClientConn::query).
    Status(SessionStatus),
    /// To [`admin`](super::ClientConn::admin).
    Admin(AdminResult),
}

/// What became of a prompt. It can be nothing else, so the enum is exhaustive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A run has begun with it.
    Started,
    /// The agent was working: the prompt is queued, and an event `user_input` with this id says when
    /// the agent takes it in. The end of that run answers both.
    Queued {
        /// What the host calls it.
        id: Str,
    },
}

/// A frame that this crate does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherFrame {
    /// Its type.
    pub tag: Str,
    /// The whole frame.
    pub frame: Json,
}

/// Something odd that a connection survived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A frame could not be read and was skipped.
    #[error("a frame was skipped: {0}")]
    BadFrame(DecodeError),
    /// A frame came where none of its type is expected, and was skipped.
    #[error("a frame {name} came at the wrong time")]
    Unexpected {
        /// Its type.
        name: &'static str,
    },
}
