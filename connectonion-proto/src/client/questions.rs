//! [`Questions`]: answers that have not left, and the open questions of the agent after a lost
//! connection.

use rpc_core::Refused;

use super::Step;
use crate::frame::{Answer, EventKind, Response};
use crate::id::EventId;

/// The number of answers and ids that are kept; the oldest are forgotten first.
const MAX_KEPT: usize = 64;

/// The answers of a run, and the state of its questions when it goes on over another connection.
///
/// Hosts keep a question among the events of its run and replay it, whether it was answered or not.
/// An agent does nothing while it waits, so the open question is the one that nothing follows.
/// Hosts that bind answers to questions may ask several at a time, but refuse a second answer, so
/// answers to theirs are simply sent again.
#[derive(Default)]
pub(super) struct Questions {
    /// The host is replaying events.
    is_replay: bool,
    /// The last question of the replay, and whether it was shown before.
    last: Option<(Step, bool)>,
    /// The answers that wait for a connection.
    unsent: Vec<Response>,
    /// The answers that the host may not have.
    unconfirmed: Vec<Response>,
    /// The questions whose answers were sent twice.
    repeated: Vec<EventId>,
}

impl Questions {
    /// Adds an answer that was not sent. During a replay its question may be closed by now.
    pub(super) fn keep(&mut self, answer: Response) {
        match self.is_replay {
            true => self.doubt(answer),
            false => push(&mut self.unsent, answer),
        }
    }

    /// Sends the answers that wait; those that cannot be sent go on waiting.
    pub(super) fn send_waiting(&mut self, mut send: impl FnMut(&Response) -> Result<(), Refused>) {
        self.unsent.retain(|answer| send(answer).is_err());
    }

    /// Adds an answer that the host may not have. One that names no question is not sent again: its
    /// question is asked again.
    pub(super) fn doubt(&mut self, answer: Response) {
        if answer.request_id.is_some() {
            push(&mut self.unconfirmed, answer);
        }
    }

    /// Goes on over another connection, with a replay unless the host binds answers to questions:
    /// to such a host all answers are sent again at once.
    pub(super) fn resume(&mut self, is_bound: bool) {
        self.last = None;
        self.is_replay = !is_bound;
        if is_bound {
            for answer in std::mem::take(&mut self.unconfirmed) {
                self.repeat(answer);
            }
        } else {
            // Another question may be open by now.
            for answer in std::mem::take(&mut self.unsent) {
                self.doubt(answer);
            }
        }
    }

    pub(super) const fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Adds a question of the replay, which is open if nothing follows.
    pub(super) fn keep_last(&mut self, question: Step, was_shown: bool) {
        self.last = Some((question, was_shown));
    }

    /// Notes that the agent has gone on. Returns the question that was answered, unless it was
    /// shown.
    pub(super) fn pass(&mut self) -> Option<Step> {
        let (question, was_shown) = self.last.take()?;
        let id = &question.event.id;
        self.unconfirmed.retain(|answer| answer.request_id != *id);
        (!was_shown).then_some(question)
    }

    /// Ends the replay. Sends the answer again to the question that is open, or returns the question
    /// to show: one that was not shown, or whose answer was a permission. If that answer has arrived
    /// after all, this host would take a second one for its next question, so the user decides.
    pub(super) fn caught_up(&mut self) -> Option<Step> {
        self.is_replay = false;
        let mut answers = std::mem::take(&mut self.unconfirmed).into_iter();
        let (question, was_shown) = self.last.take()?;
        let id = &question.event.id;
        match answers.find(|answer| answer.request_id == *id) {
            None => (!was_shown).then_some(question),
            Some(answer) if is_permission(&answer.answer) => Some(question),
            Some(answer) => {
                self.repeat(answer);
                None
            }
        }
    }

    /// Returns whether the answer to this question was sent twice; a refusal then means that it had
    /// arrived.
    pub(super) fn was_repeated(&mut self, request_id: Option<&str>) -> bool {
        let is_it = |id: &EventId| Some(id.as_str()) == request_id;
        let at = self.repeated.iter().position(is_it);
        at.map(|at| self.repeated.remove(at)).is_some()
    }

    fn repeat(&mut self, answer: Response) {
        if let Some(id) = &answer.request_id {
            push(&mut self.repeated, id.clone());
        }
        push(&mut self.unsent, answer);
    }
}

fn is_permission(answer: &Answer) -> bool {
    match answer {
        Answer::Approval(approval) => approval.approved,
        Answer::Ulw(_) => true,
        _ => false,
    }
}

/// Returns whether an event shows that the agent has gone on, if it waited for an answer. Modes,
/// snapshots and unknown events show nothing.
pub(crate) const fn goes_on(kind: &EventKind) -> bool {
    !matches!(
        kind,
        EventKind::ModeChanged(_) | EventKind::SessionSync(_) | EventKind::Unknown { .. }
    )
}

fn push<T>(kept: &mut Vec<T>, item: T) {
    if kept.len() == MAX_KEPT {
        kept.remove(0);
    }
    kept.push(item);
}
