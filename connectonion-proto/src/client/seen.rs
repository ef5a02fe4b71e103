//! [`SeenEvents`]: the events of a run that were already shown.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::frame::{EventKind, StreamEvent, ToolStatus};

/// The number of events remembered: as many as a host keeps of a run.
const MAX_SEEN: usize = 65_536;

/// The events of a run that were already shown, so that events repeated after a reconnect are shown
/// once.
///
/// A host resumes after the *first* event with the given id, and the start and the end of one
/// operation share an id, so events are distinguished by id, type and status together. Events
/// without an id are always new. The newest 65,536 are remembered.
#[derive(Debug, Default)]
pub(super) struct SeenEvents {
    /// Hashes suffice: a collision costs one event in about 2⁶⁴.
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl SeenEvents {
    /// Returns whether the event was already shown.
    pub(super) fn contains(&self, event: &StreamEvent) -> bool {
        key(event).is_some_and(|key| self.known.contains(&key))
    }

    /// Remembers that the event was shown.
    pub(super) fn insert(&mut self, event: &StreamEvent) {
        if let Some(key) = key(event)
            && self.known.insert(key)
        {
            self.order.push_back(key);
            if self.order.len() > MAX_SEEN
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
    }
}

/// Returns what distinguishes an event; `None` without an id.
fn key(event: &StreamEvent) -> Option<u64> {
    let id = event.id.as_ref()?;
    let mut hasher = DefaultHasher::new();
    (id.as_str(), event.kind.tag(), status(&event.kind)).hash(&mut hasher);
    Some(hasher.finish())
}

/// Returns the progress of the operation that the event is about.
fn status(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::LlmCall(it) | EventKind::LlmResult(it) => it.status.as_deref(),
        EventKind::Thinking(it) => it.status.as_deref(),
        EventKind::ToolCall(it) => it.status.as_ref().map(ToolStatus::name),
        EventKind::ToolResult(it) => it.status.as_ref().map(ToolStatus::name),
        EventKind::Compact(it) => Some(&*it.status),
        EventKind::Intent(it) => it.status.as_deref(),
        EventKind::Eval(it) => it.status.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::frame::{Compact, Thinking};

    use super::*;

    fn event(id: &str, kind: EventKind) -> StreamEvent {
        StreamEvent::new(kind, id, 1.0, "s")
    }

    fn is_new(seen: &mut SeenEvents, event: &StreamEvent) -> bool {
        let is_new = !seen.contains(event);
        seen.insert(event);
        is_new
    }

    #[test]
    fn a_start_and_its_end_may_share_an_id() {
        let mut seen = SeenEvents::default();
        let compact = |phase| event("c", EventKind::Compact(Compact::new(phase)));
        assert!(is_new(&mut seen, &compact("compacting")));
        assert!(is_new(&mut seen, &compact("done")));
        assert!(!is_new(&mut seen, &compact("done")));
        assert!(is_new(
            &mut seen,
            &event("c", EventKind::Thinking(Thinking::new("x")))
        ));
    }

    #[test]
    fn an_event_without_an_id_is_never_a_duplicate() {
        let mut seen = SeenEvents::default();
        let mut thought = event("t", EventKind::Thinking(Thinking::new("x")));
        thought.id = None;
        assert!(is_new(&mut seen, &thought) && is_new(&mut seen, &thought));
    }

    #[test]
    fn only_the_newest_are_remembered() {
        let mut seen = SeenEvents::default();
        for id in 0..=MAX_SEEN {
            let id = id.to_string();
            assert!(is_new(
                &mut seen,
                &event(&id, EventKind::Thinking(Thinking::default()))
            ));
        }
        assert_eq!(seen.known.len(), MAX_SEEN);
        assert!(is_new(
            &mut seen,
            &event("0", EventKind::Thinking(Thinking::default()))
        ));
        assert!(!is_new(
            &mut seen,
            &event("7", EventKind::Thinking(Thinking::default()))
        ));
    }
}
