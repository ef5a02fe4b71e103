//! What a tool needs before it runs: the user's approval, or the user's answer.

use std::time::SystemTime;

use connectonion_proto::frame::{
    ApprovalNeeded, AskUser, DiffPreview, EventKind, Mode, PlanReview, Rejection, Scope,
};
use rpc_core::Json;
use serde_json::{Map, Value, json};
use snek_proto::llm::tool::ToolDefinition;
use snek_proto::llm::toolloop::{Call, ToolFailure};

use super::super::tools::{ASK_USER, WRITE_FILE, needs_approval};
use super::{Stop, Work};
use crate::assistant::tools::ToolContext;
use crate::text::counted;

/// What a session remembers of what the user has allowed.
const PERMISSIONS: &str = "permissions";
pub(super) const REFUSED: &str = "the user does not allow it";

impl Work<'_> {
    /// Runs a tool if it is permitted, or returns why it is not.
    pub(super) async fn permitted(
        &self,
        call: &Call,
        arguments: &Json,
    ) -> Result<Result<Value, ToolFailure>, Stop> {
        if call.name == ASK_USER {
            return self.ask_user(&call.arguments).await;
        }
        if needs_approval(&call.name) && !self.is_allowed(&call.name) {
            if matches!(self.mode(), Some(Mode::Plan | Mode::ReadOnly)) {
                let plan = format!("{} {}", call.name, arguments.get());
                let word = self.turn.plan_review(PlanReview::new(plan)).await;
                let word = word?;
                let why = format!("not run, because only a plan is made. The user says: {word}");
                return Ok(Err(ToolFailure::Call(why)));
            }
            if let Some(refusal) = self.approve(call, arguments).await? {
                return Ok(Err(refusal));
            }
        }
        let cx = ToolContext {
            past: self.talk.past().to_vec(),
            now: SystemTime::now(),
        };
        let (tools, call) = (self.worker.tools.clone(), call.clone());
        let run = move || tools.run(&call.name, &call.arguments, &cx);
        let ended = tokio::task::spawn_blocking(run).await;
        Ok(ended.unwrap_or_else(|_| Err(ToolFailure::Tool("the tool has panicked".to_owned()))))
    }

    async fn ask_user(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<Result<Value, ToolFailure>, Stop> {
        let Some(text) = arguments.get("question").and_then(Value::as_str) else {
            let why = "the argument \"question\" has to be a string";
            return Ok(Err(ToolFailure::Call(why.to_owned())));
        };
        let mut question = AskUser::new(text);
        let options = arguments.get("options").and_then(Value::as_array);
        let options = options.into_iter().flatten().filter_map(Value::as_str);
        let options: Vec<_> = options.collect();
        if !options.is_empty() {
            question = question.with_options(options);
        }
        let answer = self.turn.ask_user(question).await?;
        let value = serde_json::from_str(answer.get());
        Ok(Ok(value.unwrap_or_default()))
    }

    fn mode(&self) -> Option<Mode> {
        self.turn.mode()
    }

    /// Returns whether a tool needs no (further) approval.
    fn is_allowed(&self, tool: &str) -> bool {
        matches!(
            self.mode(),
            Some(Mode::AcceptEdits | Mode::Auto | Mode::FullAccess | Mode::Ulw)
        ) || self.permissions().contains_key(tool)
    }

    fn permissions(&self) -> Map<String, Value> {
        let member = self.turn.member(PERMISSIONS);
        let parsed = member.and_then(|it| serde_json::from_str(it.get()).ok());
        parsed.unwrap_or_default()
    }

    /// Asks for the user's approval. Returns `None` if it is given.
    async fn approve(&self, call: &Call, arguments: &Json) -> Result<Option<ToolFailure>, Stop> {
        let description = match self.preview(call)? {
            Ok(Some(words)) => words,
            Ok(None) => self.description(&call.name).to_owned(),
            Err(why) => return Ok(Some(ToolFailure::Call(why))),
        };
        let mut needed = ApprovalNeeded::new(call.name.as_str(), arguments.clone(), description);
        needed.tool_call_id = Some(call.id.as_str().into());
        let approval = self.turn.approve(needed).await?;
        if approval.approved {
            if approval.scope == Some(Scope::Session) {
                let mut permissions = self.permissions();
                let permission = json!({ "allowed": true, "source": "user" });
                permissions.insert(call.name.clone(), permission);
                self.turn.set_member(PERMISSIONS, &permissions)?;
            }
            return Ok(None);
        }
        let why = match &approval.feedback {
            Some(feedback) => format!("{REFUSED}: {feedback}"),
            None => REFUSED.to_owned(),
        };
        match approval.mode {
            Some(Rejection::Soft | Rejection::Explain) => Ok(Some(ToolFailure::Call(why))),
            _ => Err(Stop::Refused),
        }
    }

    /// Returns what a tool is for.
    fn description(&self, tool: &str) -> &str {
        let definitions = self.worker.tools.definitions().iter();
        let mut known = definitions.filter(|it| it.name() == tool);
        known.next().map_or("", ToolDefinition::description)
    }

    /// Shows the change that a tool would make to a file. Returns it in words, or why it would fail; `None` if it
    /// would change none.
    fn preview(&self, call: &Call) -> Result<Result<Option<String>, String>, Stop> {
        let text = |name| call.arguments.get(name).and_then(Value::as_str);
        let (Some(folder), WRITE_FILE) = (&self.worker.folder, call.name.as_str()) else {
            return Ok(Ok(None));
        };
        let (Some(path), Some(new)) = (text("path"), text("text")) else {
            return Ok(Ok(None));
        };
        let change = match folder.preview_write(path, new) {
            Ok(change) => change,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let (shown, diff) = (&*change.path, &change.diff);
        let text = diff.unified(shown, change.is_new());
        let mut preview = DiffPreview::new(shown, text, !change.is_new());
        preview.truncated = Some(false);
        self.emit(EventKind::DiffPreview(preview))?;
        let lines = |count: usize| counted(count, "line");
        Ok(Ok(Some(match change.is_new() {
            true => format!("Write {} to {shown}", lines(new.lines().count())),
            false => format!(
                "Change {shown}: {} added, {} removed",
                lines(diff.added),
                lines(diff.removed)
            ),
        })))
    }
}
