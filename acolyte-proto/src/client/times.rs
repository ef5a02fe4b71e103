//! The timeouts of requests, and of chats in the server's queue.

use rpc_core::Instant;
use rpc_core::timers::later;
use rpc_core::{CallError, Delivery};

use super::run::{Kind, Pending};
use super::{CallId, ChatUpdate, ClientConn, ClientEvent, Outcome};

impl ClientConn {
    /// Notes that a message came for a chat in flight.
    pub(super) fn chat_lives(&mut self, id: CallId, queued: bool, now: Instant) {
        self.answered(id);
        if let Some(call) = self.calls.get_mut(id)
            && let Kind::Chat(run) = &mut call.kind
        {
            run.received = now;
            run.queued = queued;
            run.end_by = None;
            self.progress.on_frame(call.frame, now);
        }
    }

    /// Ends a request at its deadline, unless something has come for it meanwhile.
    pub(super) fn on_deadline(&mut self, id: CallId, now: Instant) {
        if let Some(call) = self.calls.get(id)
            && let Kind::Chat(run) = &call.kind
        {
            let ahead = self.progress.since(call.frame).filter(|_| run.queued);
            let deadline = run.deadline(ahead.unwrap_or(run.received));
            if deadline.is_none_or(|at| at > now) {
                self.calls.extend(id, deadline);
                return;
            }
        }
        if let Some(call) = self.take(id) {
            self.time_out(id, &call, now);
        }
    }

    fn time_out(&mut self, id: CallId, call: &Pending, now: Instant) {
        let delivery = self.delivery(call);
        match call.kind {
            Kind::Chat(_) => self.chat_timed_out(id, delivery, now),
            Kind::Abort { chat, .. } => {
                // A server that does not even answer an abort is not waited for.
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

    /// Ends a chat that was removed because it waited too long, and aborts it at the server.
    fn chat_timed_out(&mut self, id: CallId, delivery: Delivery, now: Instant) {
        let update = ChatUpdate::Ended(Outcome::TimedOut { delivery });
        self.push(ClientEvent::Chat { id, update });
        self.defer_abort(id, now);
    }

    /// Expects the end of a chat within the call timeout.
    pub(super) fn expect_end(&mut self, chat: CallId, now: Instant) {
        let end_by = later(now, self.config.call_timeout);
        if let Some(run) = self.run_mut(chat) {
            run.queued = false;
            run.end_by = Some(end_by);
            self.calls.extend(chat, Some(end_by));
        }
    }
}
