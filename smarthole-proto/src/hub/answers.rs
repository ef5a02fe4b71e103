//! Answers of clients and their effects: deliveries end, messages settle, the history grows.

use super::event::{HubEvent, Ignored, Outcome};
use super::message::{self, State};
use super::{ConnId, Hub};
use crate::frame::Answer;
use crate::id::MessageId;
use crate::router::Rejection;

impl Hub {
    pub(super) fn take_response(
        &mut self,
        conn: ConnId,
        message_id: &str,
        answer: Answer,
    ) -> Result<(), Ignored> {
        let client = self.clients.of_conn(conn).ok_or(Ignored::NotRegistered)?;
        let client = client.registration.name.clone();
        let message = self.messages.get_mut(message_id);
        let message = message.ok_or(Ignored::UnknownMessage)?;
        let place = message.place(&client).ok_or(Ignored::UnknownMessage)?;
        let delivery = message.delivery_mut(place).ok_or(Ignored::UnknownMessage)?;
        let outcome = delivery.after(&answer)?;
        let (late, attempt) = (delivery.late, delivery.attempt);
        let id = message.id.clone();
        self.end(&id, place, outcome.clone());
        match (answer, outcome) {
            (Answer::Notification(shown), _) => {
                if !shown.is_blank() {
                    let title = shown.title.filter(|title| !title.is_empty());
                    self.notify_in_room(HubEvent::Notification {
                        message: id.clone(),
                        title: title.unwrap_or_else(|| client.clone()),
                        client,
                        body: shown.body.unwrap_or_default(),
                        priority: shown.priority.unwrap_or_default(),
                        late,
                    });
                }
            }
            (_, Outcome::Rejected { reason }) => {
                self.events.push_back(HubEvent::Rejected {
                    message: id.clone(),
                    client: client.clone(),
                    reason: reason.clone(),
                    timed_out: false,
                    late,
                });
                if !late {
                    self.reroute(&id, Rejection { client, reason }, attempt);
                }
            }
            _ => self.events.push_back(HubEvent::Acked {
                message: id.clone(),
                client,
                late,
            }),
        }
        self.settle(&id);
        self.trim_history();
        Ok(())
    }

    /// Ends the delivery of a client that did not answer in time. Its timer is gone.
    pub(super) fn time_out(&mut self, id: &MessageId, place: usize) {
        let message = self.messages.get_mut(id);
        let Some(delivery) = message.and_then(|message| message.delivery_mut(place)) else {
            return;
        };
        delivery.late = true;
        let (client, attempt) = (delivery.client.clone(), delivery.attempt);
        let reason = message::timeout_reason();
        self.end(id, place, Outcome::TimedOut);
        self.events.push_back(HubEvent::Rejected {
            message: id.clone(),
            client: client.clone(),
            reason: reason.clone(),
            timed_out: true,
            late: false,
        });
        self.reroute(id, Rejection { client, reason }, attempt);
        self.settle(id);
    }

    /// Records how a delivery ended, or its new outcome.
    fn end(&mut self, id: &MessageId, place: usize, outcome: Outcome) {
        let Some(message) = self.messages.get_mut(id) else {
            return;
        };
        let Some(delivery) = message.delivery_mut(place) else {
            return;
        };
        let before = std::mem::replace(&mut delivery.state, State::Ended { outcome });
        if let State::Open { timer } = before {
            // A timer that has fired is gone already.
            let _ = self.timers.complete(timer);
            message.open -= 1;
            message.remembered += 1;
            self.history.push_back((id.clone(), place));
        }
    }

    /// Reports, once that is so, that nothing about a message is open; and keeps count.
    pub(super) fn settle(&mut self, id: &MessageId) {
        let Some(message) = self.messages.get_mut(id) else {
            return;
        };
        let (idle, size) = (message.is_idle(), message.input.text.len());
        if idle == message.counted {
            message.counted = !idle;
            if idle {
                self.open -= 1;
                self.open_bytes -= size;
            } else {
                // Rejected by a client that had taken it.
                self.open += 1;
                self.open_bytes += size;
            }
        }
        if !idle {
            return;
        }
        if !message.is_taken()
            && let Some(why) = message.why.take()
        {
            self.events.push_back(HubEvent::Unroutable {
                message: id.clone(),
                text: message.input.text.clone(),
                why,
                tried: message.rejections.clone(),
            });
        }
        if !message.settled {
            message.settled = true;
            self.events.push_back(HubEvent::Settled {
                message: id.clone(),
                outcomes: message.outcomes(),
            });
        }
        if message.remembered == 0 {
            self.messages.remove(id);
        }
    }

    /// Removes the oldest ended deliveries beyond the limit.
    pub(super) fn trim_history(&mut self) {
        while self.history.len() > self.config.max_history {
            let Some((id, place)) = self.history.pop_front() else {
                return;
            };
            let Some(message) = self.messages.get_mut(&id) else {
                continue;
            };
            message.forget(place);
            if message.remembered == 0 && message.is_idle() {
                self.messages.remove(&id);
            }
        }
    }

    /// Adds an event that a client can cause any number of times, if there is room for it.
    pub(super) fn notify_in_room(&mut self, event: HubEvent) {
        if self.events.len() < self.config.max_queued {
            self.events.push_back(event);
        }
    }
}
