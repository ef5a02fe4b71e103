//! [`Show`]: whatever shows events.

use super::ChatEvent;

/// Shows events, each at once.
pub(super) trait Show: Send {
    /// Shows an event.
    fn show(&mut self, event: ChatEvent);
}
