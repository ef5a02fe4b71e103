//! [`Partials`]: messages that are still growing; the newest of a sender and channel is shown.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use rpc_core::Str;
use rpc_core::sync::Mutex;

use crate::frame::Message;
use crate::id::ChannelUid;

/// The channel and the sender.
type Key = (ChannelUid, Str);

/// The growing messages for which a handler is at work, each with the one that comes next. So there
/// are never more entries than handlers.
#[derive(Default)]
pub(super) struct Partials(Mutex<HashMap<Key, Option<Message>>>);

impl Partials {
    /// Takes a message in place of the one that waits. `Some` if no handler is at work: start one.
    pub(super) fn put(self: &Arc<Self>, message: Message) -> Option<Growing> {
        let key = (message.channel_uid.clone(), message.username.clone());
        match self.0.lock().entry(key.clone()) {
            Entry::Occupied(mut waiting) => {
                waiting.insert(Some(message));
                None
            }
            Entry::Vacant(place) => {
                place.insert(Some(message));
                let partials = Arc::clone(self);
                Some(Growing {
                    partials,
                    key,
                    ended: false,
                })
            }
        }
    }

    /// Drops the partial message that waits, because the complete one has arrived.
    pub(super) fn complete(&self, message: &Message) {
        let key = (message.channel_uid.clone(), message.username.clone());
        if let Some(waiting) = self.0.lock().get_mut(&key) {
            *waiting = None;
        }
    }
}

/// The growing message that one handler shows.
pub(super) struct Growing {
    partials: Arc<Partials>,
    key: Key,
    /// The entry is gone; there may be one of another handler by now.
    ended: bool,
}

impl Growing {
    /// The newest message; `None` if there is none, and then the handler ends.
    pub(super) fn next(&mut self) -> Option<Message> {
        let mut partials = self.partials.0.lock();
        let waiting = partials.get_mut(&self.key).and_then(Option::take);
        if waiting.is_none() {
            partials.remove(&self.key);
            self.ended = true;
        }
        waiting
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        if !self.ended {
            self.partials.0.lock().remove(&self.key);
        }
    }
}
