//! [`ClientEvent`]: what a [`ClientConn`](super::ClientConn) and a
//! [`ClientSession`](super::ClientSession) report to the application.

use rpc_core::{CallError, CallId, CloseReason, DecodeError, Json, Str};

use crate::frame::{
    AdminResult, Connected, ErrorFrame, OnboardRequired, OnboardSuccess, Output, Response,
    SessionStatus, StreamEvent,
};
use crate::id::EventId;

/// An event on a connection.
///
/// The answer to the CONNECT comes first: `Connected`, `OnboardRequired` (and `Connected` later) or
/// `Refused`. `Closed` is the last event; all requests and every run end before it.
///
/// At level 3 a call, a run or the state of the link tells most of it. The events there are what is
/// left, such as the steps and the end of a run without a listener.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The client is admitted. Use the session id of this event: it may differ from the requested
    /// one. If the host has a newer conversation than the client, it is included: show that one
    /// instead. If the session is running, the events of its run follow.
    Connected(Connected),
    /// The client is a stranger here and must call [`onboard`](super::ClientConn::onboard). There
    /// is no deadline.
    OnboardRequired(OnboardRequired),
    /// The stranger was admitted, but the host has not finished the CONNECT and requires another
    /// one, freshly signed: pass it to [`connect`](super::ClientConn::connect).
    ConnectWanted,
    /// The CONNECT was refused; the connection closes.
    Refused(ErrorFrame),
    /// One step of the agent's work, or a change between two runs.
    Step(Step),
    /// A request has ended.
    Reply {
        /// The request.
        id: CallId,
        /// The result.
        result: Result<CallValue, CallError<ErrorFrame>>,
    },
    /// The run has ended, of this client or another one. [`CallError::Remote`] is the agent's or the host's
    /// error; the session can be used again after it. If the connection ended first, the run goes
    /// on at the host.
    RunEnded(Result<Output, CallError<ErrorFrame>>),
    /// An answer came too late, or to no question; the run goes on.
    AnswerRefused {
        /// The event that it answered.
        request_id: Option<EventId>,
        /// The host's error.
        error: ErrorFrame,
    },
    /// An accepted answer was not sent before the connection was lost. Sending it on the next
    /// connection sends it once.
    Unsent(Response),
    /// An answer was sent, and the connection was lost before the host was known to have it. If the
    /// host repeats the question and nothing after it, the question is still open.
    Unconfirmed(Response),
    /// The host has repeated the events of a running session, and nothing has followed for a
    /// second: the last questions among them are open.
    CaughtUp,
    /// The host reports an error about another frame. The connection and the run go on.
    Complaint(ErrorFrame),
    /// An unknown frame of a newer host. Ignore it, or read it yourself.
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole frame.
        raw: Json,
    },
    /// A violation of the protocol that the connection survived.
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
    /// Whether this is a question that the agent waits for no longer: a
    /// [`ClientSession`](super::ClientSession) has seen what follows it.
    pub answered: bool,
    /// Which of the session's events it is; 0 if it does not count.
    pub(super) number: u64,
}

impl Step {
    /// Returns the id of a step that need not be shown again to the client that has shown it.
    pub(super) fn is_done(&self) -> Option<EventId> {
        let kind = &self.event.kind;
        let is_done = kind.awaits().is_none() && kind.delta().is_none();
        self.event.id.clone().filter(|_| is_done)
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallValue {
    /// To [`input`](super::ClientConn::input): the host has the prompt.
    Input(Taken),
    /// To [`onboard`](super::ClientConn::onboard): the stranger is a contact now.
    Onboarded(OnboardSuccess),
    /// To [`query`](super::ClientConn::query).
    Status(SessionStatus),
    /// To [`admin`](super::ClientConn::admin).
    Admin(AdminResult),
}

/// The outcome of a prompt. Exhaustive: there is no other case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It started a run.
    Started,
    /// An agent was running: the prompt is queued, and an event `user_input` with this id says when
    /// the agent reads it. The end of that run answers both.
    Queued {
        /// The host's id for it.
        id: EventId,
    },
}

/// A violation of the protocol that a connection survived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A frame could not be read and was skipped.
    #[error("a frame was skipped: {0}")]
    BadFrame(DecodeError),
    /// A frame of this type was not expected here, and was skipped.
    #[error("a frame {name} came at the wrong time")]
    Unexpected {
        /// Its type.
        name: &'static str,
    },
}
