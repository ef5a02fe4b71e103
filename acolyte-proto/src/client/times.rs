//! How long requests wait, and chats in the server's queue.

use std::time::{Duration, Instant};

use rpc_core::timers::later;
use rpc_core::{CallError, Delivery, Machine};

use super::run::{Kind, Pending};
use super::{CallId, ChatUpdate, ClientConn, ClientEvent, Outcome, Timer};

/// How long is read after a long pause before requests time out again.
const CATCH_UP: Duration = Duration::from_secs(1);

impl ClientConn {
    /// Something came for a chat that goes on.
    pub(super) fn chat_lives(&mut self, id: CallId, queued: bool, now: Instant) {
        self.heard_at = now;
        self.answered(id);
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        let Kind::Chat(run) = &mut call.kind else {
            return;
        };
        let was_queued = std::mem::replace(&mut run.queued, queued);
        let (idle, deadline) = (run.idle, run.deadline(now));
        self.calls.extend(id, deadline);
        match (was_queued, queued) {
            (false, true) => {
                self.queued.push(id);
                if let Some(idle) = idle {
                    self.watch_queue(later(now, idle));
                }
            }
            (true, false) => self.leave_queue(id),
            _ => {}
        }
    }

    /// Looks after the queue then, or earlier.
    pub(super) fn watch_queue(&mut self, at: Instant) {
        let set = self.timers.get(Timer::Queue);
        self.timers
            .set(Timer::Queue, set.map_or(at, |set| set.min(at)));
    }

    pub(super) fn leave_queue(&mut self, id: CallId) {
        self.queued.retain(|queued| *queued != id);
        if self.queued.is_empty() {
            self.timers.stop(Timer::Queue);
        }
    }

    /// Notes when reading stops and goes on.
    pub(super) fn note_pause(&mut self, now: Instant) {
        if !self.wants_input() {
            self.paused_at.get_or_insert(now);
        } else if let Some(since) = self.paused_at.take() {
            let pause = now.saturating_duration_since(since);
            self.catching_up = Some(later(now, pause.min(CATCH_UP)));
        }
    }

    /// Whether what has come has been read, so that what is missing is late.
    pub(super) fn is_up_to_date(&mut self, now: Instant) -> bool {
        self.note_pause(now);
        self.paused_at.is_none() && self.catching_up.is_none_or(|until| until <= now)
    }

    pub(super) fn time_out(&mut self, id: CallId, call: &Pending, now: Instant) {
        let delivery = self.delivery(call);
        match call.kind {
            Kind::Chat(_) => self.chat_timed_out(id, delivery, now),
            Kind::Abort { chat, .. } => {
                // Whoever does not even answer an abort is not waited for.
                if let Some(run) = self.calls.get(chat) {
                    let delivery = self.delivery(run);
                    self.end_chat(chat, |_| Outcome::TimedOut { delivery });
                }
                self.fail(id, &call.kind, CallError::TimedOut { delivery });
            }
            Kind::Status | Kind::Task => {
                self.fail(id, &call.kind, CallError::TimedOut { delivery });
            }
        }
    }

    /// A chat that was taken out has waited too long: the server need not go on with it.
    fn chat_timed_out(&mut self, id: CallId, delivery: Delivery, now: Instant) {
        let update = ChatUpdate::Ended(Outcome::TimedOut { delivery });
        self.push(ClientEvent::Chat { id, update });
        self.owe_abort(id, now);
    }

    /// Ends the chats that wait in the server's queue although no chat gets on.
    pub(super) fn queue_timed_out(&mut self, now: Instant) {
        let mut next: Option<Instant> = None;
        for id in std::mem::take(&mut self.queued) {
            let Some(Kind::Chat(run)) = self.calls.get(id).map(|call| &call.kind) else {
                continue;
            };
            let at = run.idle.map(|idle| later(self.heard_at, idle));
            if at.is_none_or(|at| at > now) {
                self.queued.push(id);
                next = next.into_iter().chain(at).min();
            } else if let Some(call) = self.calls.complete(id).live() {
                let delivery = self.delivery(&call);
                self.unanswered -= usize::from(!call.answered);
                self.chat_timed_out(id, delivery, now);
            }
        }
        if let Some(next) = next {
            self.timers.set(Timer::Queue, next);
        }
    }
}
