//! [`Outlet`]: the steps and the end of one chat on their way to the wire.
//!
//! The agent writes into a buffer that is bounded; the connection, or the body of the HTTP answer,
//! takes from it. The end of a chat needs no room, so it is never lost.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use rpc_core::net::WeakLink;
use rpc_core::{CloseFrame, Limits, Refused};
use tokio::sync::Notify;

use super::protocol::ServerSide;
use crate::error::ChatError;
use crate::frame::Reply;
use crate::http::push_data;
use crate::id::RpcId;
use crate::server::ServerConn;

/// Steps that wait, at most.
const MAX_STEPS: usize = 128;
/// Bytes of them, at most; a single larger step passes.
const MAX_BYTES: usize = 16 * 1024;

/// How a chat ends.
pub(super) type End = Result<Box<Reply>, Box<ChatError>>;

/// Why a step was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotAdded {
    /// Try again when there is [room](Outlet::room).
    Full,
    /// Nothing more is taken.
    Stopped,
    /// The step is none.
    Refused(Refused),
}

/// Whom to tell that something was added.
pub(super) enum Bell {
    /// The task of a WebSocket.
    Link(WeakLink<ServerSide>),
    /// The body of an HTTP answer.
    Body(Notify),
}

pub(super) struct Outlet {
    state: Mutex<State>,
    room: Notify,
    bell: Bell,
    max_step: usize,
}

#[derive(Default)]
struct State {
    /// The steps as JSON, one behind the other, from `text_at` on.
    text: String,
    text_at: usize,
    /// Their lengths.
    steps: VecDeque<usize>,
    end: Option<End>,
    /// The end was taken; there is no second one.
    ended: bool,
    /// No more steps are taken.
    stopped: bool,
    /// Whoever takes will look without being told.
    told: bool,
    /// The machine had no room; it will tell when it has.
    stuck: bool,
}

impl State {
    fn is_full(&self) -> bool {
        self.steps.len() >= MAX_STEPS || self.text.len() - self.text_at >= MAX_BYTES
    }

    fn first(&self) -> Option<&str> {
        let len = *self.steps.front()?;
        self.text.get(self.text_at..self.text_at + len)
    }

    fn pop(&mut self) {
        self.text_at += self.steps.pop_front().unwrap_or_default();
        if self.steps.is_empty() {
            self.clear();
        } else if self.text_at > MAX_BYTES {
            self.text.drain(..self.text_at);
            self.text_at = 0;
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        // A large step is not paid for until the end of the chat.
        self.text.shrink_to(MAX_BYTES);
        self.text_at = 0;
        self.steps.clear();
    }
}

impl Outlet {
    pub(super) fn new(bell: Bell, limits: &Limits) -> Self {
        Self {
            state: Mutex::default(),
            room: Notify::new(),
            bell,
            // The id and the names around it take the rest.
            max_step: limits.max_message_bytes.saturating_sub(2 * 1024),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a step, which `write` appends as JSON.
    pub(super) fn add(
        &self,
        write: impl FnOnce(&mut String) -> Result<(), Refused>,
    ) -> Result<(), NotAdded> {
        let mut state = self.lock();
        if state.stopped {
            return Err(NotAdded::Stopped);
        }
        if state.is_full() {
            return Err(NotAdded::Full);
        }
        let start = state.text.len();
        let written = write(&mut state.text);
        let len = state.text.len() - start;
        if let Err(refused) = written {
            state.text.truncate(start);
            return Err(NotAdded::Refused(refused));
        }
        if len > self.max_step {
            state.text.truncate(start);
            let error = ChatError::new("A step of the chat is too large to be sent.");
            state.end = Some(Err(Box::new(error)));
            state.stopped = true;
            self.ring(state);
            return Err(NotAdded::Stopped);
        }
        state.steps.push_back(len);
        self.ring(state);
        Ok(())
    }

    /// Adds the end, unless there is one already. Nothing is taken after it.
    pub(super) fn end(&self, end: End) {
        let mut state = self.lock();
        state.stopped = true;
        if !state.ended {
            state.end.get_or_insert(end);
        }
        self.ring(state);
        self.room.notify_waiters();
    }

    /// The chat was aborted: drops the steps that wait and takes no more. Its end is still told.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.clear();
        drop(state);
        self.room.notify_waiters();
    }

    /// Waits until there is room, or nothing more is taken.
    pub(super) async fn room(&self) {
        loop {
            // Made before the look, so that no change falls between.
            let notified = self.room.notified();
            {
                let state = self.lock();
                if state.stopped || !state.is_full() {
                    return;
                }
            }
            notified.await;
        }
    }

    fn ring(&self, mut state: MutexGuard<'_, State>) {
        if std::mem::replace(&mut state.told, true) {
            return;
        }
        drop(state);
        match &self.bell {
            Bell::Link(link) => link.nudge(),
            Bell::Body(filled) => filled.notify_one(),
        }
    }

    /// The connection's task begins a turn, in which it will look.
    pub(super) fn begin_turn(&self) {
        self.lock().told = true;
    }

    /// The machine has room again.
    pub(super) fn resume(&self) {
        let mut state = self.lock();
        state.stuck = false;
        state.told = false;
        if !state.steps.is_empty() || state.end.is_some() {
            self.ring(state);
        }
    }

    /// Tells the machine everything that waits, as far as it has room. `true` once the end is told.
    pub(super) fn gather_into(&self, id: &RpcId, conn: &mut ServerConn) -> bool {
        let mut state = self.lock();
        if state.stuck {
            return false;
        }
        let was_full = state.is_full();
        while let Some(step) = state.first() {
            match conn.written_event(id, step) {
                Err(Refused::QueueFull) => {
                    state.stuck = true;
                    break;
                }
                // Aborted meanwhile, or closed: nobody is to have it.
                Ok(()) | Err(_) => state.pop(),
            }
        }
        let mut ended = false;
        if !state.stuck
            && let Some(end) = state.end.take()
        {
            ended = tell_end(conn, id, &end);
            state.ended = ended;
            state.stuck = !ended;
            state.end = (!ended).then_some(end);
        }
        state.told = state.stuck;
        let has_room = was_full && !state.is_full();
        drop(state);
        if has_room {
            self.room.notify_waiters();
        }
        ended
    }

    /// Waits for something and takes all of it as events of a stream over HTTP; `None` once the end
    /// was taken.
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
            match &self.bell {
                Bell::Body(filled) if !ended => filled.notified().await,
                _ => return None,
            }
        }
    }

    /// Takes what there is, and whether the end was taken.
    fn take(&self, write_end: impl Fn(&End, &mut String)) -> (String, bool) {
        let mut state = self.lock();
        let mut bytes = String::new();
        while let Some(step) = state.first() {
            push_data(step, &mut bytes);
            state.pop();
        }
        if let Some(end) = state.end.take() {
            write_end(&end, &mut bytes);
            state.ended = true;
        }
        state.told = false;
        (bytes, state.ended)
    }
}

/// Ends the chat; `false` if there is no room for it yet.
fn tell_end(conn: &mut ServerConn, id: &RpcId, end: &End) -> bool {
    let mut told = match end {
        Ok(reply) => conn.done(id, reply),
        Err(error) => conn.fail(id, error),
    };
    if let Err(Refused::TooLarge { .. } | Refused::Encode { .. }) = told {
        let error = ChatError::new("The reply is too large to be sent.");
        told = conn.fail(id, &error);
    }
    if let Err(Refused::TooLarge { .. }) = told {
        // The limits leave no room for any end: better no connection than a chat for ever.
        let frame = CloseFrame::new(CloseFrame::TOO_BIG, "no end of the chat fits");
        conn.close_with(frame, Instant::now());
    }
    // Of the other refusals none goes away: the chat is gone already.
    told != Err(Refused::QueueFull)
}

#[cfg(test)]
mod tests;
