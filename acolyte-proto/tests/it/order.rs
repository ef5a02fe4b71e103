//! [`OrderChecker`]: the order of what a server sends on one connection.

use std::collections::{HashMap, HashSet};

use acolyte_proto::event::Event;
use acolyte_proto::frame::{Answer, ClientFrame, Request, ServerFrame};
use acolyte_proto::id::RpcId;

/// Follows one connection from the client's side and says where the server breaks the order.
/// Acolyte specification, *Invariants* and *Queue semantics*.
///
/// Every chat: accepted, queued any number of times, started, events, one end. One runs at a time;
/// they start in their order; when one starts or is aborted, those that wait know their places.
/// Outputs and results of tools follow their call. After its end a chat is silent.
#[derive(Debug, Default)]
pub(crate) struct OrderChecker {
    /// Starts that are neither accepted nor refused.
    asked: HashMap<RpcId, usize>,
    /// Chats that go on.
    chats: HashMap<RpcId, Chat>,
    /// Ids of chats that have ended.
    ended: HashSet<RpcId>,
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
    Accepted,
    Queued,
    Running,
}

/// What is wrong.
type Checked = Result<(), String>;

impl OrderChecker {
    /// The client has sent a request that the server can read.
    pub(crate) fn sent(&mut self, frame: &ClientFrame) {
        let id = frame.id.clone();
        match &frame.request {
            Request::ChatStart(_) => *self.asked.entry(id).or_default() += 1,
            Request::StatusGet => drop(self.open.insert(id, "status.result")),
            Request::ChatAbort(_) => drop(self.open.insert(id, "chat.abort.result")),
            Request::TaskStatus(_) => drop(self.open.insert(id, "task.status.result")),
            // No server reads another one.
            _ => {}
        }
    }

    /// The server has sent an answer.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(crate) fn received(&mut self, frame: &ServerFrame) -> Checked {
        self.check(frame)
            .map_err(|rule| format!("{} of {}: {rule}", frame.answer.tag(), frame.id))
    }

    /// Nothing more is sent.
    ///
    /// # Errors
    /// What was not answered to its end.
    pub(crate) fn finished(&self) -> Checked {
        let asked = self.asked.iter().filter(|it| *it.1 > 0).map(|it| it.0);
        let mut open = self.open.keys().chain(self.chats.keys()).chain(asked);
        match open.next() {
            Some(id) => Err(format!("{id} has no end")),
            None => Ok(()),
        }
    }

    fn check(&mut self, frame: &ServerFrame) -> Checked {
        let id = &frame.id;
        match &frame.answer {
            Answer::Accepted(_) => self.accepted(id),
            Answer::Queued(position) => self.queued(id, *position),
            Answer::Started => self.started(id),
            Answer::Event(event) => self.event(id, event),
            Answer::Done(_) | Answer::Failed(_) => self.ended(id),
            Answer::AbortResult(result) => {
                self.answered(id, frame.answer.tag())?;
                match result.aborted {
                    true => self.aborted(&result.request_id),
                    false => Ok(()),
                }
            }
            Answer::Status(_) | Answer::TaskStatus(_) => self.answered(id, frame.answer.tag()),
            Answer::Error(_) => self.refused(id),
            _ => Err("no server of this crate sends it".to_owned()),
        }
    }

    /// Whether a start waited for this answer.
    fn take_start(&mut self, id: &RpcId) -> bool {
        let asked = self.asked.get_mut(id).filter(|asked| **asked > 0);
        asked.map(|asked| *asked -= 1).is_some()
    }

    fn accepted(&mut self, id: &RpcId) -> Checked {
        if !self.take_start(id) {
            return Err("nobody has started it".to_owned());
        }
        match self.chats.insert(id.clone(), Chat::default()) {
            Some(_) => Err("a chat with this id goes on".to_owned()),
            None => Ok(()),
        }
    }

    fn moves(&mut self, id: &RpcId, from: &[Stage], to: Stage) -> Checked {
        let Some(chat) = self.chats.get_mut(id) else {
            return Err("no such chat goes on".to_owned());
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

    fn event(&mut self, id: &RpcId, event: &Event) -> Checked {
        self.moves(id, &[Stage::Running], Stage::Running)?;
        let Some(chat) = self.chats.get_mut(id) else {
            return Ok(());
        };
        let (call, name) = match event {
            Event::ToolCall(call) => {
                chat.calls.insert(call.id.to_string());
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
        if self.chats.remove(id).is_none() {
            return Err("no such chat goes on".to_owned());
        }
        self.ended.insert(id.clone());
        self.waiting.retain(|it| it != id);
        self.running.take_if(|running| running == id);
        Ok(())
    }

    fn aborted(&mut self, id: &RpcId) -> Checked {
        // With a message of its own, or without.
        if !self.ended.contains(id) || self.chats.contains_key(id) {
            self.ended(id)?;
        }
        self.places_are_known()
    }

    fn refused(&mut self, id: &RpcId) -> Checked {
        let is_answer = id.is_unreadable() || self.open.remove(id).is_some();
        if !is_answer && !self.take_start(id) && self.chats.contains_key(id) {
            return Err("the chat goes on".to_owned());
        }
        // Else it may be about a request that could not be read except for its id.
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
            let reported = self.chats.get(id).map_or(0, |chat| chat.position);
            if reported != place {
                return Err(format!("{id} was told {reported} and is at {place}"));
            }
        }
        Ok(())
    }
}
