//! The bytes of the conversations that a hub holds.

use std::collections::HashMap;

use rpc_core::Json;

use super::{Hub, Owner, Prompt, Session};
use crate::frame::ErrorFrame;

/// The memory of a conversation besides its bytes.
const OVERHEAD: usize = 1024;

/// What is held, or more: what goes is noticed when all is counted again.
#[derive(Default)]
pub(super) struct Held {
    all: usize,
    by_owner: HashMap<Owner, usize>,
}

impl Held {
    pub(super) fn add(&mut self, owner: Owner, bytes: usize) {
        let bytes = bytes.saturating_add(OVERHEAD);
        self.all = self.all.saturating_add(bytes);
        let of_owner = self.by_owner.entry(owner).or_default();
        *of_owner = of_owner.saturating_add(bytes);
    }
}

impl Hub {
    /// Makes room for `more` bytes of a conversation that has these many, or returns the refusal.
    pub(super) fn hold(&mut self, owner: Owner, before: usize, more: usize) -> Option<ErrorFrame> {
        let config = &self.config;
        let (size, max) = (before.saturating_add(more), config.max_session_bytes);
        if size > max {
            let words = format!(
                "the conversation has {size} bytes, and this host takes {max}: begin a new session"
            );
            return Some(ErrorFrame::new(words));
        }
        let (max, max_owner) = (config.max_held_bytes, config.max_owner_bytes);
        let is_over = |held: &Held| {
            held.all + more > max
                || held.by_owner.get(&owner).map_or(0, |it| *it) + more > max_owner
        };
        if is_over(&self.held) {
            self.held = self.count();
        }
        if is_over(&self.held) {
            let (max, whose) = match self.held.all + more > max {
                true => (max, ""),
                false => (max_owner, "your "),
            };
            let words =
                format!("this host holds {max} bytes of {whose}conversations: try again later");
            return Some(ErrorFrame::new(words).with_retryable(true));
        }
        self.held.add(owner, more);
        None
    }

    fn count(&self) -> Held {
        let mut held = Held::default();
        for (_, session) in self.sessions.iter().filter(|(_, it)| it.is_known) {
            held.add(session.owner, session.bytes());
        }
        for entering in self.entering.values() {
            held.add(entering.owner, entering.bytes);
        }
        held
    }
}

impl Session {
    /// Returns the bytes of the conversation and of what waits to become a part of it.
    pub(super) fn bytes(&self) -> usize {
        let waiting = self.prompts.iter().skip(self.read);
        let waiting: usize = waiting.map(Prompt::size).sum();
        let run = self.run.as_ref();
        let run = run.map_or(0, |run| run.message_bytes + run.trace_bytes);
        len_of(self.copy.as_ref()) + waiting + run
    }
}

/// Returns the bytes of a conversation, if there is one.
pub(super) fn len_of(session: Option<&Json>) -> usize {
    session.map_or(0, |it| it.get().len())
}
