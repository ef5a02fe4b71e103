//! [`OrderChecker`]: the order of what a server sends on one connection.

use std::collections::{HashMap, HashSet};

use crate::error::RefusalKind;
use crate::event::Event;
use crate::frame::{Answer, ClientFrame, Request, ServerFrame};
use crate::id::RpcId;

/// Follows one connection from the client's side and says where the server breaks the order.
/// Acolyte specification, *Invariants* and *Queue semantics*.
///
/// Every chat: accepted, queued any number of times, started, events, one end. One runs at a time;
/// they start in their order; when one starts or is aborted, those that wait know their places.
/// Outputs and results of tools follow their call. After its end a chat is silent.
#[derive(Debug, Default)]
pub struct OrderChecker {
    chats: HashMap<RpcId, Chat>,
    /// What waits, in its order.
    waiting: Vec<RpcId>,
    running: Option<RpcId>,
    /// Requests with one answer, that have none yet.
    open: HashMap<RpcId, &'static str>,
}

#[derive(Debug, Default)]
struct Chat {
    stage: Stage,
    position: u32,
    calls: HashSet<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Stage {
    #[default]
    Asked,
    Accepted,
    Queued,
    Running,
    Ended,
}

/// What is wrong.
type Checked = Result<(), String>;

impl OrderChecker {
    /// Nothing was sent yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The client has sent a request that the server can read.
    pub fn sent(&mut self, frame: &ClientFrame<'_>) {
        let id = frame.id.clone();
        match &frame.request {
            Request::ChatStart(_) => {
                let is_over = |chat: &Chat| chat.stage == Stage::Ended;
                if self.chats.get(&id).is_none_or(is_over) {
                    self.chats.insert(id, Chat::default());
                }
            }
            Request::StatusGet => drop(self.open.insert(id, "status.result")),
            Request::ChatAbort { .. } => drop(self.open.insert(id, "chat.abort.result")),
            Request::TaskStatus { .. } => drop(self.open.insert(id, "task.status.result")),
        }
    }

    /// The server has sent an answer.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn received(&mut self, frame: &ServerFrame<'_>) -> Checked {
        self.check(frame)
            .map_err(|rule| format!("{} of {}: {rule}", frame.answer.tag(), frame.id))
    }

    /// Nothing more is sent.
    ///
    /// # Errors
    /// What was not answered to its end.
    pub fn finished(&self) -> Checked {
        let unanswered = self.open.keys().next();
        let open = |it: &(&RpcId, &Chat)| it.1.stage != Stage::Ended;
        let unended = self.chats.iter().find(open).map(|it| it.0);
        match unanswered.or(unended) {
            Some(id) => Err(format!("{id} has no end")),
            None => Ok(()),
        }
    }

    fn check(&mut self, frame: &ServerFrame<'_>) -> Checked {
        let id = &frame.id;
        match &frame.answer {
            Answer::Accepted { .. } => self.moves(id, &[Stage::Asked], Stage::Accepted),
            Answer::Queued { position } => self.queued(id, *position),
            Answer::Started => self.started(id),
            Answer::Event(event) => self.event(id, event),
            Answer::Done(_) | Answer::Failed(_) => self.ended(id),
            Answer::AbortResult {
                request_id,
                aborted,
            } => {
                self.answered(id, frame.answer.tag())?;
                match aborted {
                    true => self.aborted(request_id),
                    false => Ok(()),
                }
            }
            Answer::Status(_) | Answer::TaskStatus(_) => self.answered(id, frame.answer.tag()),
            Answer::Error { error } => self.refused(id, error),
            Answer::Unknown(_) => Err("no server of this crate sends it".to_owned()),
        }
    }

    fn moves(&mut self, id: &RpcId, from: &[Stage], to: Stage) -> Checked {
        let Some(chat) = self.chats.get_mut(id) else {
            return Err("there is no such chat".to_owned());
        };
        if !from.contains(&chat.stage) {
            return Err(format!("the chat is {:?}", chat.stage));
        }
        chat.stage = to;
        Ok(())
    }

    fn queued(&mut self, id: &RpcId, position: u32) -> Checked {
        self.moves(id, &[Stage::Accepted, Stage::Queued], Stage::Queued)?;
        if position == 0 {
            return Err("positions count from 1".to_owned());
        }
        if let Some(chat) = self.chats.get_mut(id) {
            chat.position = position;
        }
        if !self.waiting.contains(id) {
            self.waiting.push(id.clone());
            return self.places_are_known();
        }
        Ok(())
    }

    fn started(&mut self, id: &RpcId) -> Checked {
        if let Some(running) = &self.running {
            return Err(format!("{running} still runs"));
        }
        self.moves(id, &[Stage::Accepted, Stage::Queued], Stage::Running)?;
        self.running = Some(id.clone());
        match self.waiting.first() {
            Some(first) if first != id => return Err(format!("{first} was before it")),
            Some(_) => drop(self.waiting.remove(0)),
            None => {}
        }
        self.places_are_known()
    }

    fn event(&mut self, id: &RpcId, event: &Event<'_>) -> Checked {
        self.moves(id, &[Stage::Running], Stage::Running)?;
        let Some(chat) = self.chats.get_mut(id) else {
            return Ok(());
        };
        let (call, name) = match event {
            Event::ToolCall(call) => {
                chat.calls.insert(call.id.clone().into_owned());
                return Ok(());
            }
            Event::ToolOutput(output) => (&output.id, &output.name),
            Event::ToolResult(result) => (&result.id, &result.name),
            _ => return Ok(()),
        };
        match chat.calls.contains(&**call) {
            true => Ok(()),
            false => Err(format!("`{name}` was not called as {call}")),
        }
    }

    fn ended(&mut self, id: &RpcId) -> Checked {
        let stages = [Stage::Accepted, Stage::Queued, Stage::Running];
        self.moves(id, &stages, Stage::Ended)?;
        self.leave(id);
        Ok(())
    }

    fn aborted(&mut self, id: &RpcId) -> Checked {
        // With a message of its own, or without.
        let stages = [Stage::Accepted, Stage::Queued, Stage::Running, Stage::Ended];
        self.moves(id, &stages, Stage::Ended)?;
        self.leave(id);
        self.places_are_known()
    }

    fn leave(&mut self, id: &RpcId) {
        self.waiting.retain(|it| it != id);
        self.running.take_if(|running| running == id);
    }

    fn refused(&mut self, id: &RpcId, error: &str) -> Checked {
        if id.is_unreadable() || self.open.remove(id).is_some() {
            return Ok(());
        }
        if RefusalKind::of(error) == RefusalKind::AlreadyRunning {
            return Ok(());
        }
        if self.chats.contains_key(id) {
            return self.moves(id, &[Stage::Asked], Stage::Ended);
        }
        // A request that could not be read but for its id.
        Ok(())
    }

    fn answered(&mut self, id: &RpcId, tag: &str) -> Checked {
        match self.open.remove(id) {
            Some(wanted) if wanted == tag => Ok(()),
            Some(wanted) => Err(format!("{wanted} was asked for")),
            None => Err("nothing was asked for".to_owned()),
        }
    }

    fn places_are_known(&self) -> Checked {
        for (place, id) in (1..).zip(&self.waiting) {
            let told = self.chats.get(id).map_or(0, |chat| chat.position);
            if told != place {
                return Err(format!("{id} was told {told} and is at {place}"));
            }
        }
        Ok(())
    }
}
