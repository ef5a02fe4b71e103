//! [`Outlet`]: answers and chunks on their way to one connection's machine.
//!
//! All requests of a connection write into one queue, without a task or a channel of their own, and
//! one wake-up of the connection's task moves everything that has gathered.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rpc_core::backlog::Backlog;
use rpc_core::text::beginning;
use rpc_core::{CloseFrame, Json, Limits, Refused};
use tokio::sync::Notify;

use crate::error::RpcError;
use crate::frame::StreamEvent;
use crate::server::{RequestId, ServerConn};

/// Steps of chats that wait, at most: about as much as leaves in one write. Thousands of chats may
/// say something before the first of them gets its turn to send, and more would not send it sooner.
const MAX_STEPS: usize = 128;
/// Bytes of them, at most; a single larger step passes.
const MAX_BYTES: usize = 16 * 1024;
/// A text buffer that is larger is given back when it is empty.
const KEPT: usize = 512;

/// One thing to tell the machine.
#[derive(Debug)]
pub(super) enum Step {
    /// So many bytes of text, which stand in the queue's buffer.
    Text(usize),
    /// In a box, because it is several times as large as the rest and far rarer than texts.
    Event(Box<StreamEvent>),
    Reply(Json),
    /// An error response; after the first event, the event `error` and `done`.
    Refuse(Box<RpcError>),
    /// The event `error`, and `done`.
    Error(Box<RpcError>),
    Done,
}

/// What follows from adding something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// The connection's task has to be told.
    First,
    /// It will come by itself.
    Waits,
}

/// Why a step was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAdded {
    /// Try again when there is [room](Outlet::room).
    Full,
    /// The client has left, or the chat was [ended](State::ended).
    Gone,
}

pub(super) struct Outlet {
    state: Mutex<State>,
    room: Notify,
    left: Notify,
    /// Texts are cut into pieces of this length, which fit a message even if every character has
    /// to be escaped.
    piece: usize,
}

#[derive(Default)]
struct State {
    steps: Backlog<(RequestId, Step)>,
    /// The texts of the steps, one behind the other, from `text_at` on.
    text: String,
    text_at: usize,
    /// What the other steps hold.
    bytes: usize,
    /// Chats that a step too large for a message has ended, until their own end comes.
    ended: HashSet<RequestId>,
    /// The task will look without being told, or the machine will tell when it has room.
    told: bool,
    /// The machine has refused the first step for want of room.
    stuck: bool,
    gone: bool,
}

impl State {
    fn is_full(&self) -> bool {
        self.steps.len() >= MAX_STEPS || self.bytes() >= MAX_BYTES
    }

    fn bytes(&self) -> usize {
        self.text.len() - self.text_at + self.bytes
    }

    fn push(&mut self, id: RequestId, step: Step) -> Added {
        self.bytes += weight(&step);
        self.steps.push_back((id, step));
        if std::mem::replace(&mut self.told, true) {
            Added::Waits
        } else {
            Added::First
        }
    }

    /// Takes off the first step, which the machine has taken.
    fn pop(&mut self) {
        let Some((id, step)) = self.steps.pop_front() else {
            return;
        };
        self.bytes -= weight(&step);
        match step {
            Step::Text(len) => self.text_at += len,
            Step::Event(_) => {}
            Step::Reply(_) | Step::Refuse(_) | Step::Error(_) | Step::Done => {
                self.ended.remove(&id);
            }
        }
    }

    /// Frees the room of texts that have left.
    fn tidy(&mut self) {
        if self.text_at == self.text.len() {
            self.text.clear();
            self.text_at = 0;
            if self.text.capacity() > KEPT {
                self.text = String::new();
            }
        } else if self.text_at > MAX_BYTES {
            self.text.drain(..self.text_at);
            self.text_at = 0;
        }
    }
}

/// About how many bytes a step holds beside the text buffer.
fn weight(step: &Step) -> usize {
    match step {
        Step::Event(event) => event.weight(),
        Step::Reply(value) => value.get().len(),
        Step::Text(_) | Step::Refuse(_) | Step::Error(_) | Step::Done => 0,
    }
}

impl Outlet {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::default(),
            room: Notify::new(),
            left: Notify::new(),
            piece: (limits.max_message_bytes / 8).max(4),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a first piece of a text, and says how long it is.
    pub(super) fn add_text(&self, id: RequestId, text: &str) -> Result<(usize, Added), NotAdded> {
        let piece = beginning(text, self.piece);
        let mut state = self.open(id)?;
        state.text.push_str(piece);
        Ok((piece.len(), state.push(id, Step::Text(piece.len()))))
    }

    pub(super) fn add_event(
        &self,
        id: RequestId,
        event: StreamEvent,
    ) -> Result<Added, (NotAdded, StreamEvent)> {
        match self.open(id) {
            Ok(mut state) => Ok(state.push(id, Step::Event(Box::new(event)))),
            Err(not_added) => Err((not_added, event)),
        }
    }

    /// Adds the end of a request. There is one for each, so they need no bound of their own.
    pub(super) fn add_end(&self, id: RequestId, end: Step) -> Added {
        let mut state = self.lock();
        if state.gone {
            return Added::Waits;
        }
        state.push(id, end)
    }

    /// The queue, if it takes something of this chat.
    fn open(&self, id: RequestId) -> Result<MutexGuard<'_, State>, NotAdded> {
        let state = self.lock();
        if state.gone || state.ended.contains(&id) {
            Err(NotAdded::Gone)
        } else if state.is_full() {
            Err(NotAdded::Full)
        } else {
            Ok(state)
        }
    }

    /// Waits until there is room, or the client has left.
    pub(super) async fn room(&self) {
        wait(&self.room, || {
            let state = self.lock();
            state.gone || !state.is_full()
        })
        .await;
    }

    /// Waits until the client has left.
    pub(super) async fn left(&self) {
        wait(&self.left, || self.is_gone()).await;
    }

    pub(super) fn is_gone(&self) -> bool {
        self.lock().gone
    }

    /// The client has left: drops what waits and takes nothing more.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        *state = State {
            gone: true,
            ..State::default()
        };
        drop(state);
        self.room.notify_waiters();
        self.left.notify_waiters();
    }

    /// The connection's task begins a turn, in which it will look: whoever adds something until then
    /// need not tell it.
    pub(super) fn begin_turn(&self) {
        self.lock().told = true;
    }

    /// The machine has room again: whether the task has to be told.
    pub(super) fn resume(&self) -> Added {
        let mut state = self.lock();
        state.stuck = false;
        state.told = !state.steps.is_empty();
        if state.told {
            Added::First
        } else {
            Added::Waits
        }
    }

    /// As [`move_into`](Self::move_into), unless the machine has said before that it has no room.
    pub(super) fn gather_into(&self, conn: &mut ServerConn) {
        let state = self.lock();
        if !state.stuck {
            self.tell_all(state, conn);
        }
    }

    /// Tells the machine everything that waits, as far as it has room.
    pub(super) fn move_into(&self, conn: &mut ServerConn) {
        self.tell_all(self.lock(), conn);
    }

    fn tell_all(&self, mut state: MutexGuard<'_, State>, conn: &mut ServerConn) {
        let was_full = state.is_full();
        let mut blocked = false;
        while let Some((id, step)) = state.steps.front() {
            let id = *id;
            let text = state.text.get(state.text_at..).unwrap_or_default();
            let mut told = tell(conn, id, step, text);
            if let Err(Refused::TooLarge { .. } | Refused::Encode { .. }) = told {
                told = too_large(conn, id);
                if told.is_ok() {
                    // An end takes it out again.
                    state.ended.insert(id);
                }
            }
            blocked = matches!(told, Err(Refused::QueueFull));
            if blocked {
                break;
            }
            state.pop();
        }
        state.stuck = blocked;
        state.told = blocked;
        state.tidy();
        let has_room = was_full && !state.is_full();
        drop(state);
        if has_room {
            self.room.notify_waiters();
        }
    }
}

/// Waits until `ready` holds; `changed` is notified when it may.
async fn wait(changed: &Notify, ready: impl Fn() -> bool) {
    loop {
        // Made before the look, so that no change falls between.
        let notified = changed.notified();
        if ready() {
            return;
        }
        notified.await;
    }
}

fn tell(conn: &mut ServerConn, id: RequestId, step: &Step, text: &str) -> Result<(), Refused> {
    match step {
        Step::Text(len) => conn.text(id, text.get(..*len).unwrap_or_default()),
        Step::Event(event) => conn.event(id, event),
        Step::Reply(value) => conn.reply(id, value),
        Step::Refuse(error) => refuse(conn, id, error),
        Step::Error(error) => conn.error(id, error.message()),
        Step::Done => conn.done(id),
    }
}

fn refuse(conn: &mut ServerConn, id: RequestId, error: &RpcError) -> Result<(), Refused> {
    match conn.fail(id, error) {
        Err(Refused::Invalid { .. }) => conn.error(id, error.message()),
        other => other,
    }
}

/// Ends a request of which something does not fit a message.
fn too_large(conn: &mut ServerConn, id: RequestId) -> Result<(), Refused> {
    let told = refuse(conn, id, &RpcError::new("the answer is too large"));
    if let Err(Refused::TooLarge { .. }) = told {
        // The limits leave no room for any answer: better no connection than a request for ever.
        let frame = CloseFrame::new(CloseFrame::TOO_BIG, "no answer fits");
        conn.close_with(frame, Instant::now());
    }
    told
}

#[cfg(test)]
mod tests;
