//! Tasks: a server's records of accepted chats.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

pub use crate::frame::task::{Task, TaskState};
use crate::id::TaskId;

/// An invalid transition of a task; its record is unchanged. The known server logs and ignores
/// these, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task cannot change from {from:?} to {to:?}")]
pub(crate) struct BadTransition {
    /// The current state.
    from: TaskState,
    /// The requested state.
    to: TaskState,
}

impl TaskState {
    /// Returns the state after a transition to `to`. Staying in a state is always valid.
    ///
    /// # Errors
    /// [`BadTransition`]: a task only goes forward, and a task that has ended does not change.
    pub(crate) const fn transition(self, to: Self) -> Result<Self, BadTransition> {
        let is_next = match self {
            Self::Accepted => matches!(to, Self::Queued | Self::Running | Self::Cancelled),
            Self::Queued => matches!(to, Self::Running | Self::Cancelled),
            Self::Running => to.is_terminal(),
            Self::Completed | Self::Failed | Self::Cancelled => false,
        };
        if is_next || self as u8 == to as u8 {
            Ok(to)
        } else {
            Err(BadTransition { from: self, to })
        }
    }
}

/// The tasks of all connections of a server, in memory: a restart forgets them.
///
/// When the registry is full, it forgets the oldest task that has ended. Tasks that have not ended
/// are never forgotten, because their queues are already bounded; so the registry may exceed its
/// bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskRegistry {
    tasks: HashMap<TaskId, Record>,
    /// Those that have ended, by age.
    ended: BTreeMap<u64, TaskId>,
    next_age: u64,
    max: usize,
    load: Load,
}

#[derive(Clone, Debug)]
struct Record {
    task: Task,
    age: u64,
}

/// The load of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Remembered tasks.
    pub(crate) total: usize,
    /// Running tasks.
    pub(crate) running: usize,
    /// Waiting tasks.
    pub(crate) queued: usize,
}

impl TaskRegistry {
    /// Creates an empty registry that keeps this many records.
    #[must_use]
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    /// Notes the new state of a task. [`TaskState::Accepted`] creates a record; other states of an
    /// unknown task are ignored.
    ///
    /// # Errors
    /// [`BadTransition`], with nothing changed.
    pub(crate) fn note(
        &mut self,
        id: &TaskId,
        state: TaskState,
        now: SystemTime,
    ) -> Result<(), BadTransition> {
        let Some(record) = self.tasks.get_mut(id) else {
            if state == TaskState::Accepted {
                self.insert(id.clone(), now);
            }
            return Ok(());
        };
        let before = record.task.state;
        let after = before.transition(state)?;
        if after == before {
            return Ok(());
        }
        record.task.state = after;
        // Clocks may be set back; a record's times are not.
        record.task.updated_at = now.max(record.task.updated_at);
        if after.is_terminal() {
            self.ended.insert(record.age, id.clone());
        }
        self.count(before, after);
        self.forget();
        Ok(())
    }

    /// Returns the record of a task, of any connection.
    #[must_use]
    pub(crate) fn get(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id).map(|record| &record.task)
    }

    #[must_use]
    pub(crate) const fn load(&self) -> Load {
        self.load
    }

    fn insert(&mut self, id: TaskId, now: SystemTime) {
        let task = Task::new(id.clone(), now);
        let age = self.next_age;
        self.next_age += 1;
        self.tasks.insert(id, Record { task, age });
        self.load.total = self.tasks.len();
        self.forget();
    }

    fn count(&mut self, before: TaskState, after: TaskState) {
        match before {
            TaskState::Running => self.load.running -= 1,
            TaskState::Queued => self.load.queued -= 1,
            _ => {}
        }
        match after {
            TaskState::Running => self.load.running += 1,
            TaskState::Queued => self.load.queued += 1,
            _ => {}
        }
    }

    /// Makes room by forgetting ended tasks.
    fn forget(&mut self) {
        while self.tasks.len() > self.max {
            let Some((_, oldest)) = self.ended.pop_first() else {
                break;
            };
            self.tasks.remove(&oldest);
        }
        self.load.total = self.tasks.len();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::TaskState::{Accepted, Cancelled, Completed, Failed, Queued, Running};
    use super::*;

    const ALL: [TaskState; 6] = [Accepted, Queued, Running, Completed, Failed, Cancelled];

    fn id(n: usize) -> TaskId {
        format!("task_{n}").parse::<TaskId>().unwrap()
    }

    #[test]
    fn a_task_only_moves_forward() {
        let allowed = [
            (Accepted, Queued),
            (Accepted, Running),
            (Accepted, Cancelled),
            (Queued, Running),
            (Queued, Cancelled),
            (Running, Completed),
            (Running, Failed),
            (Running, Cancelled),
        ];
        for from in ALL {
            for to in ALL {
                let expected = from == to || allowed.contains(&(from, to));
                assert_eq!(from.transition(to).is_ok(), expected, "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn a_record_has_the_time_of_its_last_change() {
        let start = SystemTime::UNIX_EPOCH;
        let later = start + Duration::from_secs(1);
        let mut registry = TaskRegistry::new(1_000);
        assert_eq!(registry.get(&id(0)), None);
        registry.note(&id(0), Accepted, start).unwrap();
        registry.note(&id(0), Running, later).unwrap();
        let task = registry.get(&id(0)).unwrap();
        assert_eq!(
            (task.state, task.created_at, task.updated_at),
            (Running, start, later)
        );
        let (from, to) = (Running, Queued);
        assert_eq!(
            registry.note(&id(0), Queued, start),
            Err(BadTransition { from, to })
        );
        registry.note(&id(0), Completed, start).unwrap();
        assert_eq!(registry.get(&id(0)).unwrap().updated_at, later);
    }

    #[test]
    fn the_oldest_ended_task_is_evicted_first() {
        let now = SystemTime::UNIX_EPOCH;
        let mut registry = TaskRegistry::new(3);
        for n in 0..3 {
            registry.note(&id(n), Accepted, now).unwrap();
        }
        registry.note(&id(2), Cancelled, now).unwrap();
        registry.note(&id(1), Cancelled, now).unwrap();
        registry.note(&id(3), Accepted, now).unwrap();
        let known = |registry: &TaskRegistry| -> Vec<usize> {
            (0..6).filter(|n| registry.get(&id(*n)).is_some()).collect()
        };
        assert_eq!(known(&registry), [0, 2, 3]);
        registry.note(&id(4), Accepted, now).unwrap();
        registry.note(&id(5), Accepted, now).unwrap();
        assert_eq!(known(&registry), [0, 3, 4, 5]);
        registry.note(&id(4), Cancelled, now).unwrap();
        assert_eq!(known(&registry), [0, 3, 5]);
    }

    #[test]
    fn load_counts_remembered_running_and_waiting_tasks() {
        let now = SystemTime::UNIX_EPOCH;
        let mut registry = TaskRegistry::new(1_000);
        for (n, states) in [
            &[Accepted, Running, Completed][..],
            &[Accepted, Running],
            &[Accepted, Queued],
            &[Accepted, Queued, Running],
            &[Accepted, Queued, Cancelled],
            &[Running],
        ]
        .into_iter()
        .enumerate()
        {
            for state in states {
                registry.note(&id(n), *state, now).unwrap();
            }
        }
        let load = registry.load();
        assert_eq!((load.total, load.running, load.queued), (5, 2, 1));
    }
}
