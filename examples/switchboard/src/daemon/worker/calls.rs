//! The calls of a chat's model: each is made, or the user is asked first.

use std::path::PathBuf;

use acolyte_proto::error::AppError;
use acolyte_proto::event::{Event, Notice, ToolCall, ToolOutput, ToolResult};
use serde_json::{Map, Value};
use snek_proto::llm::toolloop::{Call, ToolFailure};

use super::{Chat, aborted, is_open};
use crate::assistant::CUT_CALL;
use crate::daemon::ask_first::{Answer, Pending, Step};
use crate::daemon::toolbox::{SHELL_RUN, Shown};
use crate::daemon::{Code, ToolError, Workspace, git};
use crate::markdown::code;

impl Chat<'_> {
    pub(super) async fn announce(&mut self, id: &str, name: &str, arguments: Value) {
        let event = ToolCall::new(id.to_owned(), name.to_owned(), arguments);
        self.emit(Event::ToolCall(event)).await;
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
        let reported = match &result {
            Ok(_) => ToolResult::ok(&*call.id, &*call.name),
            Err(problem) => problem.result(&call.id, &call.name),
        };
        let result = result.map(Value::from);
        let result = result.map_err(|problem| ToolFailure::Call(problem.message.into_owned()));
        self.turn.on_result(&call.id, result);
        self.emit(Event::ToolResult(reported)).await;
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
        self.emit(Event::ToolResult(problem.result(id, name))).await;
    }

    async fn header(&self, id: &str, name: &str) {
        if let Some(header) = self.worker.toolbox.header(name, &Map::new()) {
            self.show(id, name, header).await;
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
                let decisions = &self.worker.decisions;
                if !self.session.is_some_and(|id| decisions.is_asking(id)) {
                    return Ok(Some(step));
                }
                let why =
                    "the user is being asked something else in this session: end here, and say so";
                self.refused = Some(ToolError::new(Code::Declined, why));
                Ok(None)
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
    ///
    /// # Errors
    /// Another chat of the session has just asked.
    pub(super) fn wait(self, task: String, step: Step) -> Result<(), AppError> {
        let Some(id) = self.session else {
            return Ok(());
        };
        let pending = Pending {
            task,
            workspace: self.workspace,
            turn: self.turn,
            asked: step.pages.question(),
            step,
            has_rival: false,
        };
        match self.worker.decisions.keep(id, pending) {
            true => Ok(()),
            false => Err(is_open("it was asked at the same time")),
        }
    }

    /// Goes on with a chat that has asked, with the user's answer. Returns what the user wants done.
    ///
    /// # Errors
    /// The folder of the chat is gone.
    pub(super) fn resume(
        &mut self,
        pending: Pending,
        answer: &str,
        here: &Workspace,
    ) -> Result<String, AppError> {
        let folder = pending.workspace.path().to_string_lossy();
        self.workspace = here.within(&folder).map_err(|why| super::refused(&why))?;
        self.turn = pending.turn;
        match (Answer::parse(answer, &pending.step), self.session) {
            (Answer::Yes, _) => self.allowed = Some(pending.step),
            (Answer::Always, Some(id)) => self.worker.decisions.allow(id, pending.step.kind),
            (Answer::Always | Answer::More, _) => {}
            (Answer::No(why), _) => self.refused = Some(ToolError::new(Code::Declined, why)),
        }
        Ok(pending.task)
    }

    /// Names the repositories that commands of the chat have made: Git runs what their settings name.
    pub(super) async fn name_repositories(&self) {
        let before = self
            .repositories
            .as_ref()
            .filter(|_| !self.watch.is_aborted());
        let Some(before) = before else {
            return;
        };
        for made in self.find_repositories().await {
            if !before.contains(&made) {
                let path = made.strip_prefix(self.workspace.path()).unwrap_or(&made);
                let notice = format!(
                    "a command has made the repository {}: git runs what its settings name, so look at them before \
                     you use git there",
                    code(&path.to_string_lossy())
                );
                self.emit(Event::Notice(Notice::warn(notice))).await;
            }
        }
    }

    async fn find_repositories(&self) -> Vec<PathBuf> {
        let root = self.workspace.path().to_owned();
        let found = tokio::task::spawn_blocking(move || git::folders(&root)).await;
        found.unwrap_or_default()
    }

    /// Runs a tool, and passes on its output while it works.
    async fn run(&mut self, call: &Call) -> Result<String, ToolError> {
        let Call {
            id,
            name,
            arguments,
            ..
        } = call;
        if name == SHELL_RUN && self.repositories.is_none() {
            self.repositories = Some(self.find_repositories().await);
        }
        let (sender, mut shown) = tokio::sync::mpsc::unbounded_channel();
        // Not more than a tool shows: its parts are counted.
        let mut show = move |shown| {
            let _ = sender.send(shown);
        };
        let running = self
            .toolbox
            .run(&self.workspace, name, arguments, &mut show);
        let mut running = std::pin::pin!(running);
        let result = loop {
            tokio::select! {
                result = &mut running => break result,
                Some(part) = shown.recv() => self.show(id, name, part).await,
            }
        };
        while let Ok(part) = shown.try_recv() {
            self.show(id, name, part).await;
        }
        result
    }

    async fn show(&self, id: &str, name: &str, shown: Shown) {
        match shown {
            Shown::Part(part) => {
                let output = ToolOutput::new(id, name, part);
                self.emit(Event::ToolOutput(output)).await;
            }
            Shown::Checklist(list) => self.emit(Event::Checklist(list)).await,
            Shown::Change(change) if change.is_nothing() => {}
            Shown::Change(change) => self.worker.memory.changed(self.session, &change).await,
        }
    }
}
