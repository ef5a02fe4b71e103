//! The calls of a chat's model: each is made, or the user is asked first.

use acolyte_proto::error::AppError;
use acolyte_proto::event::{Event, ToolCall, ToolOutput, ToolResult};
use serde_json::{Map, Value};
use snek_proto::llm::toolloop::{Call, ToolFailure};

use super::{Chat, aborted};
use crate::assistant::CUT_CALL;
use crate::daemon::ask_first::{Answer, Pending, Step};
use crate::daemon::toolbox::Shown;
use crate::daemon::{Code, ToolError};

impl Chat<'_> {
    pub(super) async fn announce(&mut self, id: &str, name: &str, arguments: Value) {
        let event = ToolCall::new(id.to_owned(), name.to_owned(), arguments);
        self.tell(Event::ToolCall(event)).await;
        self.called.push(name.to_owned());
    }

    /// Makes a call, unless the user has to allow it first.
    pub(super) async fn make(&mut self, call: Call) -> Result<Option<Step>, AppError> {
        if self.asks {
            if let Some(step) = self.question(&call).await? {
                return Ok(Some(step));
            }
            let arguments = Value::from(call.arguments.clone());
            self.announce(&call.id, &call.name, arguments).await;
        }
        self.allowed = None;
        if self.watch.is_aborted() {
            return Err(aborted());
        }
        let result = match self.refused.take() {
            Some(problem) => {
                self.header(&call.id, &call.name).await;
                Err(problem)
            }
            None => tokio::select! {
                biased;
                () = self.watch.aborted() => return Err(aborted()),
                result = self.run(&call) => result,
            },
        };
        let told = match &result {
            Ok(_) => ToolResult::ok(&*call.id, &*call.name),
            Err(problem) => problem.result(&call.id, &call.name),
        };
        let result = result.map(Value::from);
        let result = result.map_err(|problem| ToolFailure::Call(problem.message.into_owned()));
        self.turn.on_result(&call.id, result);
        self.tell(Event::ToolResult(told)).await;
        Ok(None)
    }

    /// Tells of a call that cannot be made.
    pub(super) async fn refuse(&mut self, id: &str, name: &str, why: String) {
        if self.asks {
            self.announce(id, name, Value::from(Map::new())).await;
        }
        self.header(id, name).await;
        let code = if why == CUT_CALL {
            Code::TooLarge
        } else {
            Code::Call
        };
        let problem = ToolError::new(code, why);
        self.tell(Event::ToolResult(problem.result(id, name))).await;
    }

    async fn header(&self, id: &str, name: &str) {
        if let Some(header) = self.worker.toolbox.header(name, &Map::new()) {
            self.tell(event(id, name, header)).await;
        }
    }

    /// Returns what the user has to be asked before a call is made. A call that would fail is not
    /// asked about: it fails.
    async fn question(&mut self, call: &Call) -> Result<Option<Step>, AppError> {
        if self.refused.is_some() {
            return Ok(None);
        }
        let toolbox = &self.worker.toolbox;
        let step = tokio::select! {
            biased;
            () = self.watch.aborted() => return Err(aborted()),
            step = toolbox.preview(&self.workspace, &call.name, &call.arguments) => step,
        };
        match step {
            // What was allowed is what was shown: the file may have changed since.
            Ok(Some(step)) if !self.allows(&step) && self.allowed.as_ref() != Some(&step) => {
                Ok(Some(step))
            }
            Ok(_) => Ok(None),
            Err(problem) => {
                self.refused = Some(problem);
                Ok(None)
            }
        }
    }

    fn allows(&self, step: &Step) -> bool {
        let decisions = &self.worker.decisions;
        self.session
            .is_some_and(|id| decisions.allows(id, step.kind))
    }

    /// Keeps what waits for the user's answer, which the next chat of the session brings.
    pub(super) fn wait(self, task: String, step: Step) {
        let Some(id) = self.session else {
            return;
        };
        let pending = Pending {
            task,
            workspace: self.workspace,
            turn: self.turn,
            step,
        };
        self.worker.decisions.keep(id, pending);
    }

    /// Goes on with a chat that has asked, with the user's answer. Returns what the user wants done.
    pub(super) fn resume(&mut self, pending: Pending, answer: &str) -> String {
        (self.workspace, self.turn) = (pending.workspace, pending.turn);
        match (Answer::parse(answer), self.session) {
            (Answer::Yes, _) => self.allowed = Some(pending.step),
            (Answer::Always, Some(id)) => self.worker.decisions.allow(id, pending.step.kind),
            (Answer::Always, None) => {}
            (Answer::No(why), _) => self.refused = Some(ToolError::new(Code::Declined, why)),
        }
        pending.task
    }

    /// Runs a tool, and passes on its output while it works.
    async fn run(&self, call: &Call) -> Result<String, ToolError> {
        let Call {
            id,
            name,
            arguments,
            ..
        } = call;
        let (sender, mut shown) = tokio::sync::mpsc::unbounded_channel();
        // Not more than a tool shows: its parts are counted.
        let mut show = move |shown| {
            let _ = sender.send(shown);
        };
        let toolbox = &self.worker.toolbox;
        let running = toolbox.run(&self.workspace, name, arguments, &mut show);
        let mut running = std::pin::pin!(running);
        let result = loop {
            tokio::select! {
                result = &mut running => break result,
                Some(part) = shown.recv() => self.tell(event(id, name, part)).await,
            }
        };
        while let Ok(part) = shown.try_recv() {
            self.tell(event(id, name, part)).await;
        }
        result
    }
}

fn event(id: &str, name: &str, shown: Shown) -> Event {
    match shown {
        Shown::Part(part) => Event::ToolOutput(ToolOutput::new(id, name, part)),
        Shown::Checklist(list) => Event::Checklist(list),
    }
}
