//! What the store does for a node.

use rpc_core::store::StoreError;

use super::{Event, NODES, PAGE, World};
use crate::sim::node::{Call, Input};
use crate::sim::publish::PublishReply;
use crate::sim::store::{CHANNELS, Record};

impl World {
    /// Lets the store do what a node asks for.
    pub(super) fn call(&mut self, slot: usize, life: u32, call: Call) {
        if self.now < self.store_down_until {
            if self.rng.chance(50) {
                self.reply(slot, life, unavailable(&call));
            }
            return;
        }
        let now = self.now;
        let input = match call {
            Call::Key(call) => Some(Input::Key {
                number: call.number,
                reply: self.store.key(call, now),
            }),
            Call::Chat {
                key,
                attempt,
                draft,
            } => {
                let (reply, new) = self.store.publish(draft, now);
                if let Some((record, previous)) = new {
                    self.feed(draft.subject, record, previous);
                }
                Some(Input::Chatted {
                    key,
                    attempt,
                    reply,
                })
            }
            Call::Write {
                session,
                write,
                attempt,
                draft,
            } => Some(Input::Written {
                session,
                fence: draft.fence,
                write,
                attempt,
                reply: self.store.publish(draft, now).0,
            }),
            Call::Log {
                session,
                fence,
                after,
            } => {
                let records = self.store.after(CHANNELS + session, after);
                let records = records[..records.len().min(PAGE)].to_vec();
                Some(Input::Log {
                    session,
                    fence,
                    after,
                    records,
                })
            }
            Call::Subscribe => {
                self.slots[slot].subscribed |= self.slots[slot].life == life;
                let last = std::array::from_fn(|channel| self.store.last_of(channel));
                Some(Input::Subscribed { last })
            }
            Call::Fill { channel, fill } => {
                let records = self.store.after(channel, fill.after).iter();
                let records = records
                    .take_while(|record| fill.until.is_none_or(|until| record.sequence <= until));
                let records: Vec<_> = records.take(PAGE).copied().collect();
                let last = records.last().map_or(fill.after, |record| record.sequence);
                let through = fill.until.filter(|_| records.len() < PAGE).unwrap_or(last);
                Some(Input::Filled {
                    channel,
                    fill,
                    records,
                    through,
                })
            }
        };
        self.reply(slot, life, input);
    }

    pub(super) fn reply(&mut self, slot: usize, life: u32, input: Option<Input>) {
        if let (Some(input), Some(at)) = (input, self.line(slot)) {
            self.push(at, Event::Node { slot, life, input });
        }
    }

    /// Tells all who follow a channel.
    pub(super) fn feed(&mut self, channel: usize, record: Record, previous: u64) {
        for slot in 0..NODES {
            let at = &self.slots[slot];
            let cut = at.cut_until > self.now;
            if !at.subscribed || cut || (self.now < self.calm_at && self.rng.chance(6)) {
                continue;
            }
            let life = at.life;
            let input = Input::Feed {
                channel,
                record,
                previous,
            };
            self.reply(slot, life, Some(input));
        }
    }
}

/// What a node hears that is not connected.
fn unavailable(call: &Call) -> Option<Input> {
    match call {
        Call::Key(call) => Some(Input::Key {
            number: call.number,
            reply: Err(StoreError::unavailable("the store is down")),
        }),
        Call::Chat { key, attempt, .. } => Some(Input::Chatted {
            key: *key,
            attempt: *attempt,
            reply: PublishReply::Unknown,
        }),
        Call::Write {
            session,
            write,
            attempt,
            draft,
        } => Some(Input::Written {
            session: *session,
            fence: draft.fence,
            write: *write,
            attempt: *attempt,
            reply: PublishReply::Unknown,
        }),
        Call::Log { .. } | Call::Subscribe | Call::Fill { .. } => None,
    }
}
