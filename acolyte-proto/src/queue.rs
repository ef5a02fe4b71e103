//! [`Queue`]: the chats of one connection, of which one runs and the others wait in line.

use std::collections::VecDeque;

use crate::error::{already_running, queue_full};
use crate::id::RpcId;
use crate::limits::MAX_QUEUED;

/// The chats of one connection: at most one runs, the others wait in the order in which they came.
/// Acolyte specification, *Queue semantics*.
///
/// It decides and remembers; what is sent when is the business of
/// [`ServerConn`](crate::server::ServerConn). An id is in use from [`start`](Self::start) until
/// its chat is [finished](Self::finish) or was [aborted](Self::abort) while it waited. A running
/// chat that was aborted keeps its place until its work has come to an end.
///
/// Whoever waits is looked up along the line: it is short, and each change makes every position be
/// told again anyway.
///
/// ```
/// use acolyte_proto::id::RpcId;
/// use acolyte_proto::queue::{Place, Queue};
///
/// let mut queue = Queue::new();
/// let (a, b) = (RpcId::parse("rpc_a")?, RpcId::parse("rpc_b")?);
/// assert_eq!(queue.start(a.clone(), "first"), Ok(Place::Running));
/// assert_eq!(queue.start(b.clone(), "second"), Ok(Place::Waiting { position: 1 }));
/// assert_eq!(queue.finish(&a), Some("first"));
/// assert_eq!(queue.running(), Some((&b, &"second")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Queue<T> {
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

/// Where a chat has come to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a chat runs or waits")]
pub enum Place {
    /// It runs.
    Running,
    /// It waits.
    Waiting {
        /// Its place in the line, from 1. The running chat does not count.
        position: u32,
    },
}

/// Why a chat has no place in the queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// A chat with this id runs, waits, or was aborted and has not come to an end yet. The same
    /// start is fine once that chat has ended.
    #[error("{}", already_running(id))]
    Busy {
        /// The id.
        id: RpcId,
    },
    /// As many chats as may wait do wait. Retrying helps once one of them has ended.
    #[error("{}", queue_full(*max))]
    Full {
        /// How many may wait.
        max: usize,
    },
}

/// What an abort has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a chat waits, runs, or is unknown")]
pub enum Aborted<T> {
    /// No chat has this id, or it has ended: nothing was aborted.
    Unknown,
    /// It waited and is gone. The [positions](Queue::positions) behind it have moved.
    Waiting(T),
    /// It runs, and has to be brought to its end: [`finish`](Queue::finish) it then.
    Running {
        /// It was aborted before and has not come to its end since.
        again: bool,
    },
}

impl<T> Queue<T> {
    /// An empty queue, in which at most [`MAX_QUEUED`] chats wait.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_max_waiting(MAX_QUEUED)
    }

    /// An empty queue, in which at most this many chats wait beside the one that runs.
    #[must_use]
    pub const fn with_max_waiting(max_waiting: usize) -> Self {
        Self {
            running: None,
            waiting: VecDeque::new(),
            max_waiting,
        }
    }

    /// Lets a chat run, or puts it at the end of the line.
    ///
    /// # Errors
    /// [`QueueError`], with nothing changed.
    pub fn start(&mut self, id: RpcId, chat: T) -> Result<Place, QueueError> {
        self.check(&id)?;
        if self.running.is_none() {
            self.run(id, chat);
            return Ok(Place::Running);
        }
        self.waiting.push_back((id, chat));
        Ok(Place::Waiting {
            position: position(self.waiting.len()),
        })
    }

    /// Whether [`start`](Self::start) would take a chat with this id.
    ///
    /// # Errors
    /// [`QueueError`]
    pub fn check(&self, id: &RpcId) -> Result<(), QueueError> {
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

    /// Takes a waiting chat out of the line, or marks the running one as aborted.
    pub fn abort(&mut self, id: &RpcId) -> Aborted<T> {
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

    /// The running chat has come to its end: takes it out, and lets the first of the line
    /// [run](Self::running). `None` if this is not the running chat.
    pub fn finish(&mut self, id: &RpcId) -> Option<T> {
        let ended = self.running.take_if(|running| running.id == *id)?;
        if let Some((id, chat)) = self.waiting.pop_front() {
            self.run(id, chat);
        }
        Some(ended.chat)
    }

    /// Takes out every chat, the running one first.
    pub fn drain(&mut self) -> impl Iterator<Item = (RpcId, T)> {
        let running = self
            .running
            .take()
            .map(|running| (running.id, running.chat));
        let waiting = std::mem::take(&mut self.waiting);
        running.into_iter().chain(waiting)
    }

    /// The chat that runs, aborted or not.
    #[must_use]
    pub fn running(&self) -> Option<(&RpcId, &T)> {
        let running = self.running.as_ref()?;
        Some((&running.id, &running.chat))
    }

    /// The chat that runs, to be changed.
    #[must_use]
    pub fn running_mut(&mut self) -> Option<(&RpcId, &mut T)> {
        let running = self.running.as_mut()?;
        Some((&running.id, &mut running.chat))
    }

    /// Whether the chat that runs was aborted.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.aborted)
    }

    /// The chats that wait, and where; as they are told after every change of the line.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = (&RpcId, u32)> {
        let ids = self.waiting.iter().enumerate();
        ids.map(|(ahead, (id, _))| (id, position(ahead + 1)))
    }

    /// How many chats wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many chats there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_none()
    }

    /// Whether this id is in use.
    #[must_use]
    pub fn contains(&self, id: &RpcId) -> bool {
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

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn position(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
