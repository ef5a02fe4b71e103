//! The calls of a chat's model: each is made, or the user is asked first.

use acolyte_proto::error::ChatError;
use acolyte_proto::event::{Event, ToolCall, ToolOutput, ToolResult};
use serde_json::{Map, Value};
use snek_proto::llm::chat::ChatMessage;

use super::{Chat, aborted};
use crate::daemon::Problem;
use crate::daemon::ask_first::{Answer, Pending, Step};
use crate::daemon::problem::Code;
use crate::daemon::toolbox::Shown;

/// A call of the model.
#[derive(Debug)]
pub(in crate::daemon) struct OpenCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Result<Map<String, Value>, Problem>,
    /// Why it is not made, although its arguments are well.
    pub(super) refused: Option<Problem>,
    /// The user has allowed this.
    pub(super) allowed: Option<Step>,
}

impl Chat<'_> {
    pub(super) async fn announce(&mut self, call: &OpenCall) {
        let told = call.arguments.as_ref().ok().cloned();
        let told = Value::from(told.unwrap_or_default());
        let event = ToolCall::new(call.id.clone(), call.name.clone(), told);
        self.tell(Event::ToolCall(event)).await;
        self.called.push(call.name.clone());
    }

    /// Makes the open calls, up to one that the user has to allow.
    pub(super) async fn call_all(&mut self) -> Result<Option<Step>, ChatError> {
        while let Some(mut call) = self.open.pop_front() {
            if self.asks {
                if let Some(step) = self.question(&mut call).await? {
                    self.open.push_front(call);
                    return Ok(Some(step));
                }
                self.announce(&call).await;
            }
            let arguments = match call.refused {
                Some(problem) => Err(problem),
                None => call.arguments,
            };
            self.call(&call.id, &call.name, arguments).await?;
        }
        Ok(None)
    }

    /// Returns what the user has to be asked before a call is made. A call that would fail is not
    /// asked about: it fails.
    async fn question(&self, call: &mut OpenCall) -> Result<Option<Step>, ChatError> {
        let (Ok(arguments), None) = (&call.arguments, &call.refused) else {
            return Ok(None);
        };
        let toolbox = &self.worker.toolbox;
        let step = tokio::select! {
            biased;
            () = self.watch.aborted() => return Err(aborted()),
            step = toolbox.preview(&self.workspace, &call.name, arguments) => step,
        };
        match step {
            // What was allowed is what was shown: the file may have changed since.
            Ok(Some(step)) if !self.allows(&step) && call.allowed.as_ref() != Some(&step) => {
                Ok(Some(step))
            }
            Ok(_) => Ok(None),
            Err(problem) => {
                call.refused = Some(problem);
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
            past: self.past,
            since: self.since,
            failed: self.failed,
            open: self.open,
            number: self.number,
            step,
        };
        self.worker.decisions.keep(id, pending);
    }

    /// Goes on with a chat that has asked, with the user's answer. Returns what the user wants done.
    pub(super) fn resume(&mut self, pending: Pending, answer: &str) -> String {
        self.workspace = pending.workspace;
        (self.past, self.since) = (pending.past, pending.since);
        (self.failed, self.open) = (pending.failed, pending.open);
        self.number = pending.number;
        match (Answer::parse(answer), self.open.front_mut(), self.session) {
            (Answer::Yes, Some(call), _) => call.allowed = Some(pending.step),
            (Answer::Always, _, Some(id)) => self.worker.decisions.allow(id, pending.step.kind),
            (Answer::No(why), Some(call), _) => {
                call.refused = Some(Problem::new(Code::Declined, why));
            }
            _ => {}
        }
        pending.task
    }

    /// Runs a tool, passes on its output, and keeps its result for the model.
    async fn call(
        &mut self,
        id: &str,
        name: &str,
        arguments: Result<Map<String, Value>, Problem>,
    ) -> Result<(), ChatError> {
        if self.watch.is_aborted() {
            return Err(aborted());
        }
        let result = match arguments {
            Ok(arguments) => tokio::select! {
                biased;
                () = self.watch.aborted() => return Err(aborted()),
                result = self.run(id, name, &arguments) => result,
            },
            Err(problem) => {
                if let Some(header) = self.worker.toolbox.header(name, &Map::new()) {
                    self.tell(event(id, name, header)).await;
                }
                Err(problem)
            }
        };
        let result = match result {
            Ok(text) => {
                self.since.push(ChatMessage::tool(id, text));
                ToolResult::ok(id, name)
            }
            Err(problem) => {
                self.failed.push(id.to_owned());
                self.since.push(ChatMessage::tool(id, &*problem.message));
                problem.result(id, name)
            }
        };
        self.tell(Event::ToolResult(result)).await;
        Ok(())
    }

    /// Runs a tool, and passes on its output while it works.
    async fn run(
        &self,
        id: &str,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<String, Problem> {
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
