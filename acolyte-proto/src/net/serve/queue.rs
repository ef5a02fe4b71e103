//! [`ResponseQueue`]: the steps and the end of one chat over HTTP, waiting for the body.

use bytes::Bytes;
use rpc_core::sync::Mutex;
use rpc_core::{Limits, Refused};
use tokio::sync::Notify;

use crate::error::AppError;
use crate::frame::Reply;
use crate::http::push_data;

/// The largest number of waiting steps.
const MAX_STEPS: usize = 128;
/// The largest size of the waiting steps in bytes; a single larger step passes.
const MAX_BYTES: usize = 16 * 1024;
/// The agent's error for a step that is too large.
pub(super) const STEP_TOO_LARGE: &str = "A step of the chat is too large to be sent.";

pub(super) type End = Result<Box<Reply>, Box<AppError>>;

/// Why a step was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotAdded {
    /// Try again when there is [room](ResponseQueue::room).
    Full,
    /// No more steps are accepted.
    Stopped,
    /// The step could not be written.
    Refused(Refused),
}

pub(super) struct ResponseQueue {
    state: Mutex<State>,
    room: Notify,
    filled: Notify,
    max_step: usize,
}

#[derive(Default)]
struct State {
    /// The steps, as events of the stream.
    text: String,
    steps: usize,
    end: Option<End>,
    /// The end was taken; there is only one.
    ended: bool,
    /// No more steps are accepted.
    stopped: bool,
}

impl State {
    fn is_full(&self) -> bool {
        self.steps >= MAX_STEPS || self.text.len() >= MAX_BYTES
    }
}

impl ResponseQueue {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::default(),
            room: Notify::new(),
            filled: Notify::new(),
            // The id and the names around it take the rest.
            max_step: limits.max_message_bytes.saturating_sub(2 * 1024),
        }
    }

    /// Adds a step, which `write` appends as JSON.
    pub(super) fn add(
        &self,
        write: impl FnOnce(&mut String) -> Result<(), Refused>,
    ) -> Result<(), NotAdded> {
        let mut state = self.state.lock();
        if state.stopped {
            return Err(NotAdded::Stopped);
        }
        if state.is_full() {
            return Err(NotAdded::Full);
        }
        let mut json = String::new();
        write(&mut json).map_err(NotAdded::Refused)?;
        if json.len() > self.max_step {
            drop(state);
            self.end(Err(Box::new(AppError::failed(STEP_TOO_LARGE))));
            return Err(NotAdded::Stopped);
        }
        push_data(&json, &mut state.text);
        state.steps += 1;
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Adds the end, unless there already is one. Nothing is accepted after it.
    pub(super) fn end(&self, end: End) {
        let mut state = self.state.lock();
        state.stopped = true;
        if !state.ended {
            state.end.get_or_insert(end);
        }
        drop(state);
        self.filled.notify_one();
        self.room.notify_waiters();
    }

    /// Waits until there is room, or until no more steps are accepted.
    pub(super) async fn room(&self) {
        loop {
            // Made before the look, so that no change falls between.
            let notified = self.room.notified();
            {
                let state = self.state.lock();
                if state.stopped || !state.is_full() {
                    return;
                }
            }
            notified.await;
        }
    }

    /// Waits for steps or the end, and takes all there is; `None` once the end was taken.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(super) async fn next_bytes(&self, write_end: impl Fn(&End, &mut String)) -> Option<Bytes> {
        loop {
            let (bytes, ended) = self.take(&write_end);
            if !bytes.is_empty() {
                self.room.notify_waiters();
                return Some(bytes.into());
            }
            if ended {
                return None;
            }
            self.filled.notified().await;
        }
    }

    /// Takes all there is, and returns whether that includes the end.
    fn take(&self, write_end: impl Fn(&End, &mut String)) -> (String, bool) {
        let mut state = self.state.lock();
        let mut bytes = std::mem::take(&mut state.text);
        state.steps = 0;
        if let Some(end) = state.end.take() {
            write_end(&end, &mut bytes);
            state.ended = true;
        }
        (bytes, state.ended)
    }
}

#[cfg(test)]
mod tests;
