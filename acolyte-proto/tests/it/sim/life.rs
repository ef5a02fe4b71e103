//! What a server does to the tasks of one connection, played by a naive model, and what its client
//! has to hear because of that.

use std::collections::{HashMap, VecDeque};

use acolyte_proto::id::TaskId;
use acolyte_proto::task::TaskState;
use switchboard_testing::sim::{Outcome, ensure};

/// Something that is reported about a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Accepted,
    Queued(u32),
    /// Perhaps: a server that goes away cancels those who wait, and tells no more places.
    PerhapsQueued(u32),
    Started,
    /// The so many-th piece of the reply.
    Piece(u64),
    /// The last of a chat.
    Ended(TaskState),
}

/// What a client has received.
#[derive(Clone, Debug)]
enum Received {
    Step(Report),
    /// The end, which may mean each of these.
    End(&'static [TaskState]),
}

impl Received {
    fn fits(&self, reported: &Report) -> bool {
        match (self, reported) {
            (Self::Step(Report::Queued(received)), Report::PerhapsQueued(place)) => {
                received == place
            }
            (Self::Step(received), reported) => received == reported,
            (Self::End(states), Report::Ended(state)) => states.contains(state),
            (Self::End(_), _) => false,
        }
    }
}

/// The line of one connection, by the naive model.
#[derive(Debug, Default)]
pub(crate) struct ConnectionModel {
    waiting: Vec<TaskId>,
    running: Option<TaskId>,
    /// What the client has to hear of each chat, in this order.
    reported: HashMap<TaskId, VecDeque<Report>>,
    /// What it has received. A server that takes no events learns of its own deeds later.
    received: HashMap<TaskId, VecDeque<Received>>,
    states: HashMap<TaskId, TaskState>,
    pieces: HashMap<TaskId, u64>,
}

impl ConnectionModel {
    /// How many chats were accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.states.len()
    }

    /// The server, which may be going away, says that a task has come into a state.
    pub(crate) fn on_task(&mut self, task: &TaskId, state: TaskState, goes: bool) -> Outcome {
        let before = self.states.insert(task.clone(), state);
        let is_over = before.is_some_and(is_terminal);
        ensure(!is_over, || format!("{task:?} is {state:?} after its end"))?;
        let is_new = before.is_none();
        ensure(is_new == (state == TaskState::Accepted), || {
            format!("{task:?} is {state:?} after {before:?}")
        })?;
        match state {
            TaskState::Accepted => self.report(task, Report::Accepted)?,
            TaskState::Queued => {
                self.waiting.push(task.clone());
                self.report(task, Report::Queued(self.waiting.len() as u32))?;
            }
            TaskState::Running => {
                let is_free = self.running.is_none();
                ensure(is_free, || {
                    format!("{task:?} runs beside {:?}", self.running)
                })?;
                if self.waiting.is_empty() {
                    ensure(before == Some(TaskState::Accepted), || {
                        "it did not wait".to_owned()
                    })?;
                } else {
                    let first = self.waiting.remove(0);
                    ensure(first == *task, || format!("{task:?} runs before {first:?}"))?;
                    self.report_positions(Report::Queued)?;
                }
                self.running = Some(task.clone());
                self.report(task, Report::Started)?;
            }
            TaskState::Completed | TaskState::Failed => {
                let ran = self.running.take();
                ensure(ran.as_ref() == Some(task), || {
                    format!("{task:?} did not run")
                })?;
                self.report(task, Report::Ended(state))?;
            }
            TaskState::Cancelled => {
                self.report(task, Report::Ended(state))?;
                if self.running.take_if(|running| running == task).is_none() {
                    self.waiting.retain(|waits| waits != task);
                    self.report_positions(if goes {
                        Report::PerhapsQueued
                    } else {
                        Report::Queued
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The server has sent a piece of a chat's reply; its number.
    pub(crate) fn next_piece(&self, task: &TaskId) -> u64 {
        self.pieces.get(task).copied().unwrap_or_default()
    }

    /// The piece has left.
    pub(crate) fn on_piece(&mut self, task: &TaskId) -> Outcome {
        let piece = self.next_piece(task);
        self.pieces.insert(task.clone(), piece + 1);
        self.report(task, Report::Piece(piece))
    }

    /// The connection has ended at the server: so has every chat.
    pub(crate) fn check_all_ended(&self) -> Outcome {
        let open = self.states.iter().find(|(_, state)| !is_terminal(**state));
        ensure(open.is_none(), || format!("{open:?} never ended"))
    }

    /// The client hears something of a chat: it has to be what comes next.
    pub(crate) fn received(&mut self, task: &TaskId, received: Report) -> Outcome {
        self.receive(task, Received::Step(received))
    }

    /// The client hears the end of a chat, which may mean each of these.
    pub(crate) fn received_end(&mut self, task: &TaskId, states: &'static [TaskState]) -> Outcome {
        self.receive(task, Received::End(states))
    }

    /// Everything that was received was reported.
    pub(crate) fn check_all_reported(&self) -> Outcome {
        let odd = self
            .received
            .iter()
            .find(|(_, received)| !received.is_empty());
        ensure(odd.is_none(), || format!("nobody reported {odd:?}"))
    }

    fn receive(&mut self, task: &TaskId, received: Received) -> Outcome {
        self.received
            .entry(task.clone())
            .or_default()
            .push_back(received);
        self.compare(task)
    }

    fn compare(&mut self, task: &TaskId) -> Outcome {
        let (reported, received) = (self.reported.get_mut(task), self.received.get_mut(task));
        let (Some(reported), Some(received)) = (reported, received) else {
            return Ok(());
        };
        while let (Some(next), Some(came)) = (reported.front(), received.front()) {
            let fits = came.fits(next);
            if fits {
                received.pop_front();
            } else if !matches!(next, Report::PerhapsQueued(_)) {
                return Err(format!("{task:?}: received {came:?} instead of {next:?}"));
            }
            reported.pop_front();
        }
        Ok(())
    }

    fn report_positions(&mut self, reported: fn(u32) -> Report) -> Outcome {
        for (index, task) in self.waiting.clone().iter().enumerate() {
            self.report(task, reported(index as u32 + 1))?;
        }
        Ok(())
    }

    fn report(&mut self, task: &TaskId, reported: Report) -> Outcome {
        self.reported
            .entry(task.clone())
            .or_default()
            .push_back(reported);
        self.compare(task)
    }
}

const fn is_terminal(state: TaskState) -> bool {
    matches!(
        state,
        TaskState::Completed | TaskState::Failed | TaskState::Cancelled
    )
}
