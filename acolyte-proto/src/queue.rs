//! [`Queue`]: the chats of one connection, of which one runs and the others wait.

use std::collections::VecDeque;

use crate::error::{already_running, queue_full};
use crate::id::RpcId;

/// The chats of one connection: at most one runs, the others wait in order of arrival. Acolyte
/// specification, *Queue semantics*.
///
/// It only keeps the order; [`ServerConn`](crate::server::ServerConn) decides what to send. An id
/// is in use from [`start`](Self::start) until its chat is [finished](Self::finish) or, while it
/// waits, [aborted](Self::abort). A running chat that was aborted keeps its place until its work
/// has ended.
///
/// Lookups of waiting chats are linear: the queue is short, and each change sends every position
/// again anyway.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    running: Option<Running<T>>,
    waiting: VecDeque<(RpcId, T)>,
    max_waiting: usize,
}

#[derive(Clone, Debug)]
struct Running<T> {
    id: RpcId,
    chat: T,
    aborted: bool,
}

/// The place of a chat in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// The chat runs.
    Running,
    /// The chat waits.
    Waiting {
        /// Its position, from 1. The running chat does not count.
        position: u32,
    },
}

/// Why a chat cannot be added to the queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueueError {
    /// A chat with this id runs, waits, or was aborted and has not ended yet. Retrying helps once
    /// that chat has ended.
    #[error("{}", already_running(id))]
    Busy {
        /// The id.
        id: RpcId,
    },
    /// The queue is full. Retrying helps once a chat has ended.
    #[error("{}", queue_full(*max))]
    Full {
        /// The largest number of waiting chats.
        max: usize,
    },
}

/// The effect of an abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aborted<T> {
    /// No chat has this id, or it has ended: nothing was aborted.
    Unknown,
    /// The chat waited and was removed. The [positions](Queue::positions) behind it have changed.
    Waiting(T),
    /// The chat is running: end its work, then call [`finish`](Queue::finish).
    Running {
        /// Whether the chat was already aborted before.
        again: bool,
    },
}

impl<T> Queue<T> {
    /// Creates an empty queue with room for this many waiting chats besides the running one.
    #[must_use]
    pub(crate) const fn new(max_waiting: usize) -> Self {
        Self {
            running: None,
            waiting: VecDeque::new(),
            max_waiting,
        }
    }

    /// Runs a chat, or puts it at the end of the queue.
    ///
    /// # Errors
    /// [`QueueError`], with nothing changed.
    pub(crate) fn start(&mut self, id: RpcId, chat: T) -> Result<QueuePosition, QueueError> {
        self.check(&id)?;
        if self.running.is_none() {
            self.run(id, chat);
            return Ok(QueuePosition::Running);
        }
        self.waiting.push_back((id, chat));
        Ok(QueuePosition::Waiting {
            position: position(self.waiting.len()),
        })
    }

    /// Checks whether [`start`](Self::start) would accept a chat with this id.
    ///
    /// # Errors
    /// [`QueueError`]
    pub(crate) fn check(&self, id: &RpcId) -> Result<(), QueueError> {
        if self.contains(id) {
            return Err(QueueError::Busy { id: id.clone() });
        }
        if self.running.is_some() && self.waiting.len() >= self.max_waiting {
            return Err(QueueError::Full {
                max: self.max_waiting,
            });
        }
        Ok(())
    }

    /// Removes a waiting chat, or marks the running one as aborted.
    pub(crate) fn abort(&mut self, id: &RpcId) -> Aborted<T> {
        if let Some(running) = self.running.as_mut().filter(|running| running.id == *id) {
            let again = std::mem::replace(&mut running.aborted, true);
            return Aborted::Running { again };
        }
        let place = self.waiting.iter().position(|(waits, _)| waits == id);
        match place.and_then(|place| self.waiting.remove(place)) {
            Some((_, chat)) => Aborted::Waiting(chat),
            None => Aborted::Unknown,
        }
    }

    /// Removes the running chat, which has ended, and [runs](Self::running) the first waiting one.
    /// Returns `None` if `id` is not the running chat.
    pub(crate) fn finish(&mut self, id: &RpcId) -> Option<T> {
        let ended = self.running.take_if(|running| running.id == *id)?;
        if let Some((id, chat)) = self.waiting.pop_front() {
            self.run(id, chat);
        }
        Some(ended.chat)
    }

    /// Removes all chats, the running one first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (RpcId, T)> {
        let running = self
            .running
            .take()
            .map(|running| (running.id, running.chat));
        let waiting = std::mem::take(&mut self.waiting);
        running.into_iter().chain(waiting)
    }

    /// Returns the running chat, aborted or not.
    #[must_use]
    pub(crate) fn running(&self) -> Option<(&RpcId, &T)> {
        let running = self.running.as_ref()?;
        Some((&running.id, &running.chat))
    }

    /// Returns the running chat, for changes.
    pub(crate) fn running_mut(&mut self) -> Option<(&RpcId, &mut T)> {
        let running = self.running.as_mut()?;
        Some((&running.id, &mut running.chat))
    }

    /// Returns whether the running chat was aborted.
    #[must_use]
    pub(crate) fn is_aborted(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.aborted)
    }

    /// Returns the waiting chats and their positions, to be sent after every change of the queue.
    pub(crate) fn positions(&self) -> impl ExactSizeIterator<Item = (&RpcId, u32)> {
        let ids = self.waiting.iter().enumerate();
        ids.map(|(ahead, (id, _))| (id, position(ahead + 1)))
    }

    /// Returns the number of waiting chats.
    #[must_use]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of all chats.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }

    /// Returns whether there are no chats.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_none()
    }

    /// Returns whether this id is in use.
    #[must_use]
    pub(crate) fn contains(&self, id: &RpcId) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.id == *id)
            || self.waiting.iter().any(|(waits, _)| waits == id)
    }

    fn run(&mut self, id: RpcId, chat: T) {
        self.running = Some(Running {
            id,
            chat,
            aborted: false,
        });
        if self.waiting.is_empty() {
            // Hardly any connection ever has a line.
            self.waiting = VecDeque::new();
        }
    }
}

fn position(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
