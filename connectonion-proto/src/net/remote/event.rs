//! [`Event`]: what the application learns besides its runs.

use rpc_core::CallError;
use rpc_core::Str;

use crate::client::{OtherFrame, Step, Warning};
use crate::frame::{Connected, ErrorFrame, OnboardRequired, Output};

/// An event on an agent's connection. The link's state reports losses and reconnects.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The client is admitted, for the first time or again. If the host has a newer conversation
    /// than the client, it is included: show that one instead.
    Connected(Connected),
    /// The client is a stranger here and must call [`onboard`](super::Client::onboard). There is no
    /// deadline.
    OnboardRequired(OnboardRequired),
    /// The CONNECT was refused.
    Refused(ErrorFrame),
    /// A step of a run that no [`Run`](super::Run) listens to: another device has started it, or it was
    /// found going on, or its `Run` was dropped. Or a change between two runs. With
    /// [`follow`](super::Client::follow) the rest of the run comes as a `Run`. It does not count as taken in
    /// [`Client::session`](super::Client::session).
    Step(Step),
    /// The end of a run that no [`Run`](super::Run) listens to.
    RunEnded(Result<Output, CallError<ErrorFrame>>),
    /// An answer to a question of the agent came too late.
    AnswerRefused {
        /// The event that it answered.
        request_id: Option<Str>,
        /// The host's error.
        error: ErrorFrame,
    },
    /// The host reports an error about a frame that has no reply of its own: a change of mode, an
    /// interrupt, an automatic invite code.
    Complaint(ErrorFrame),
    /// A frame of an unknown type. Ignore it, or read it yourself.
    Unknown(OtherFrame),
    /// A violation of the protocol that the connection survived.
    Warning(Warning),
}

impl Event {
    /// Returns the approximate size of the event in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let kept = match self {
            Self::Connected(connected) => {
                let session = connected.session.as_ref();
                let items = connected.chat_items.as_ref();
                session.map_or(0, |it| it.get().len()) + items.map_or(0, |it| it.get().len())
            }
            Self::Step(step) => step.frame.get().len(),
            Self::RunEnded(Ok(output)) => {
                let session = output.session.as_ref().map_or(0, |it| it.get().len());
                let items = output.chat_items.as_ref().map_or(0, |it| it.get().len());
                output.result.len() + session + items
            }
            Self::Unknown(other) => other.frame.get().len(),
            _ => 0,
        };
        size_of::<Self>() + kept
    }
}
