//! [`Queue`]: what waits to be shown. A terminal that takes nothing blocks the program only once the queue is full.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::Duration;

use rpc_core::sync::Mutex;
use tokio::sync::Notify;

use super::{ChatEvent, Show};

/// Most events that wait, and most bytes of text in them. More of the same text is not a new event.
const MAX_EVENTS: usize = 1024;
const MAX_BYTES: usize = 1024 * 1024;

/// The events between those who have something to show and the thread that shows it.
#[derive(Clone, Default)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// For threads: something was added, taken or ended.
    changed: Condvar,
    /// For tasks: something was taken or ended.
    taken: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<ChatEvent>,
    bytes: usize,
    is_asked_to_end: bool,
    /// What shows events when the thread has ended.
    after: Option<Box<dyn Show>>,
}

/// What was taken from a queue.
pub(super) struct Taken {
    pub(super) events: VecDeque<ChatEvent>,
    /// Nothing follows that must be waited for.
    pub(super) is_last: bool,
}

impl Queue {
    /// Adds an event as soon as there is room. Shows it at once if the thread has ended.
    pub(super) async fn push(&self, mut event: ChatEvent) {
        loop {
            // Registered before the check, so that no room is missed.
            let taken = self.0.taken.notified();
            match self.state().push(event) {
                Ok(()) => return self.0.changed.notify_all(),
                Err(back) => event = back,
            }
            taken.await;
        }
    }

    /// Adds an event as soon as there is room; blocks until then.
    pub(super) fn push_blocking(&self, mut event: ChatEvent) {
        let mut state = self.state();
        while let Err(back) = state.push(event) {
            event = back;
            let waited = self.0.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.0.changed.notify_all();
    }

    /// Takes everything; waits for something until the time is over.
    pub(super) fn take(&self, within: Duration) -> Taken {
        let waits = |state: &mut State| state.waiting.is_empty() && !state.is_asked_to_end;
        let waited = (self.0.changed).wait_timeout_while(self.state(), within, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let taken = Taken {
            events: std::mem::take(&mut state.waiting),
            is_last: state.is_asked_to_end,
        };
        state.bytes = 0;
        drop(state);
        self.0.changed.notify_all();
        self.0.taken.notify_waiters();
        taken
    }

    /// Asks the thread to end.
    pub(super) fn end(&self) {
        self.state().is_asked_to_end = true;
        self.0.changed.notify_all();
    }

    /// The thread has ended: `after` shows what waits, and what comes later.
    pub(super) fn ended(&self, mut after: Box<dyn Show>) {
        let mut state = self.state();
        for event in state.waiting.drain(..) {
            after.show(event);
        }
        state.after = Some(after);
        drop(state);
        self.0.changed.notify_all();
        self.0.taken.notify_waiters();
    }

    /// Waits for the end of the thread; returns whether it came in time.
    pub(super) fn wait_for_end(&self, within: Duration) -> bool {
        let waits = |state: &mut State| state.after.is_none();
        let waited = (self.0.changed).wait_timeout_while(self.state(), within, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.after.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

impl State {
    /// Adds an event, or returns it if there is no room.
    fn push(&mut self, event: ChatEvent) -> Result<(), ChatEvent> {
        if let Some(after) = &mut self.after {
            after.show(event);
            return Ok(());
        }
        let bytes = event.bytes();
        if !self.waiting.is_empty() && self.bytes.saturating_add(bytes) > MAX_BYTES {
            return Err(event);
        }
        let event = match self.waiting.back_mut() {
            Some(last) => match last.merge(event) {
                Some(event) => event,
                None => {
                    self.bytes += bytes;
                    return Ok(());
                }
            },
            None => event,
        };
        if self.waiting.len() >= MAX_EVENTS {
            return Err(event);
        }
        self.bytes += bytes;
        self.waiting.push_back(event);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_continued_text_needs_no_room_for_an_event() {
        let queue = Queue::default();
        for _ in 0..10 * MAX_EVENTS {
            queue.push(ChatEvent::Text("x".to_owned())).await;
        }
        let taken = queue.take(Duration::ZERO);
        assert_eq!(taken.events, [ChatEvent::Text("x".repeat(10 * MAX_EVENTS))]);
    }

    #[tokio::test(start_paused = true)]
    async fn too_much_output_waits_for_the_terminal() {
        let queue = Queue::default();
        let half = || ChatEvent::Text("x".repeat(MAX_BYTES / 2));
        queue.push(half()).await;
        queue.push(half()).await;
        let more = queue.push(ChatEvent::Text("more".to_owned()));
        tokio::pin!(more);
        let late = tokio::time::timeout(Duration::from_secs(60), &mut more).await;
        assert!(late.is_err());
        assert_eq!(queue.take(Duration::ZERO).events.len(), 1);
        more.await;
        let taken = queue.take(Duration::ZERO);
        assert_eq!(taken.events, [ChatEvent::Text("more".to_owned())]);
    }
}
