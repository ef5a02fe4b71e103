//! [`ModelRouter`]: a router whose language model chooses the receiver of a message.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use serde_json::{Map, Value};
use smarthole_proto::router::{Candidate, Choice, Keywords, RouteRequest, Router, RouterError};
use snek_proto::llm::chat::{ChatMessage, ToolCall};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};

use crate::assistant::conversation::ConversationLimits;
use crate::assistant::{Turn, many_rounds};
use crate::model::http::RequestPolicy;
use crate::model::{ChatModel, ModelError, Refusal, find_tool};
use crate::text::printable;

/// The default instructions for the model.
pub const SYSTEM: &str = "\
    You sort the messages of one person to the programs that can deal with them. Each tool stands for \
    one program and says what that program does.\n\
    - Call a tool for every message, and never answer the message yourself: a program will.\n\
    - As a rule one program is right. Call several only if the message has something for each of them.\n\
    - Give the complete message as 'message', in the person's own words.\n\
    - Give one short sentence as 'reason': the person reads it.\n\
    - If you are not sure, call the tool of the program that is most likely to be right.";

/// The longest name of a tool that the known interfaces accept.
const MAX_TOOL_NAME: usize = 64;
/// The longest description of a tool that the known interfaces accept, in characters.
const MAX_TOOL_DESCRIPTION: usize = 1024;

/// Returns the policy for interactive requests: after a 429, or without a connection, retries after
/// 1, 2 and 4 s, unless the provider sends a wait.
pub fn policy() -> RequestPolicy {
    let mut retry = BackoffPolicy::new(Duration::from_secs(1), 2.0);
    retry.max_attempts = Some(3);
    RequestPolicy::default()
        .with_retry(retry)
        .with_max_wait(Duration::from_secs(10))
}

/// A router whose language model chooses: each candidate is a tool, and every tool call is a
/// choice. Without one, a client that its answer names is the choice, or else the words of the descriptions decide.
///
/// It asks once for each [`route`](Router::route). The model itself retries after a 429, because it
/// knows the wait that its provider requests: see [`policy`].
#[derive(Debug)]
pub struct ModelRouter {
    model: Arc<dyn ChatModel>,
    /// The instructions for the model. Default [`SYSTEM`].
    pub system: String,
}

impl ModelRouter {
    /// Creates a router that asks this model.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self {
            model,
            system: SYSTEM.to_owned(),
        }
    }

    async fn ask(
        &self,
        question: &str,
        tools: &[ToolDefinition],
    ) -> Result<(Vec<ToolCall>, String), ModelError> {
        let past = vec![Arc::new(ChatMessage::system(&self.system))];
        let question = ChatMessage::user(question);
        let mut turn = Turn::new(
            ConversationLimits::default(),
            many_rounds(1),
            past,
            question,
        );
        let asked = turn.ask(turn.context(), &*self.model, None, tools);
        let mut answer = asked.await?;
        while let Some(delta) = answer.next().await {
            delta?;
        }
        let text = answer.whole.text().to_owned();
        Ok((turn.on_answer(answer), text))
    }
}

impl Router for ModelRouter {
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
        if request.candidates.is_empty() {
            return Ok(Vec::new());
        }
        let tools = tools(&request.candidates);
        let asked = self.ask(&question(request), &tools).await;
        let (calls, text) = asked.map_err(|error| router_error(&error))?;
        let choices = choices(request, &tools, &calls);
        if !choices.is_empty() {
            return Ok(choices);
        }
        // A small model takes no tools, or writes the name of a client.
        let is_end = |c: char| !c.is_alphanumeric() && !"-_".contains(c);
        let mut named = request.candidates.iter().filter(|client| {
            let mut words = text.split(is_end);
            words.any(|word| word.eq_ignore_ascii_case(&client.name))
        });
        match (named.next(), named.next()) {
            (Some(client), None) => Ok(vec![Choice::new(client.name.clone())]),
            _ => Keywords::new().route(request).await,
        }
    }
}

/// Converts an error. Its text contains no key and no address, so it is safe to show.
fn router_error(error: &ModelError) -> RouterError {
    let message = error.to_string();
    match error {
        ModelError::Setup { .. }
        | ModelError::NoKey { .. }
        | ModelError::Refused {
            refusal: Refusal::Key | Refusal::Permission,
            ..
        } => RouterError::Denied(message.into()),
        ModelError::Refused {
            refusal: Refusal::RateLimit,
            ..
        } => RouterError::RateLimited,
        ModelError::TimedOut { after, .. } => RouterError::TimedOut(*after),
        ModelError::Refused { refusal, .. } if !refusal.passes() && *refusal != Refusal::Broken => {
            RouterError::Failed(message.into())
        }
        ModelError::BadAnswer { .. } | ModelError::TooLarge { .. } => {
            RouterError::Failed(message.into())
        }
        _ => RouterError::Unavailable(message.into()),
    }
}

/// Returns a tool for each candidate, in the same order.
fn tools(candidates: &[Candidate]) -> Vec<ToolDefinition> {
    let mut taken = HashSet::new();
    let tool = |candidate: &Candidate| {
        let name = tool_name(&candidate.name, &mut taken);
        let message = Param::new("message", ParamType::String)
            .with_description("the complete message, in the person's own words");
        let reason = Param::new("reason", ParamType::String)
            .with_default("")
            .with_description("why this program, in one short sentence");
        ToolDefinition::new(name, description(candidate))
            .param(message)
            .param(reason)
    };
    candidates.iter().map(tool).collect()
}

/// Returns `route_to_` and the name, in the form that interfaces accept. Clients whose names would
/// become equal (`a-b` and `a_b`) get a number.
fn tool_name(client: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let whole: String = "route_to_"
        .chars()
        .chain(client.chars().map(plain))
        .collect();
    let cut = |room: usize| whole.get(..whole.len().min(room)).unwrap_or(&whole);
    let numbered = (2_u32..).map(|number| {
        let number = format!("_{number}");
        format!("{}{number}", cut(MAX_TOOL_NAME - number.len()))
    });
    let mut names = std::iter::once(cut(MAX_TOOL_NAME).to_owned()).chain(numbered);
    let free = names.find(|name| !taken.contains(name));
    let free = free.unwrap_or_default();
    taken.insert(free.clone());
    free
}

fn description(candidate: &Candidate) -> String {
    let mut text = candidate.description.as_str().to_owned();
    if !candidate.capabilities.is_empty() {
        let words: Vec<&str> = candidate.capabilities.iter().map(AsRef::as_ref).collect();
        let _ = write!(text, "\nCapabilities: {}", words.join(", "));
    }
    match text.char_indices().nth(MAX_TOOL_DESCRIPTION - 1) {
        Some((at, last)) if at + last.len_utf8() < text.len() => {
            format!("{}…", text.get(..at).unwrap_or_default())
        }
        _ => text,
    }
}

/// Returns the person's message, and the clients that have sent it back already.
fn question(request: &RouteRequest) -> Cow<'_, str> {
    let text = request.text.as_str();
    if request.rejections.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut text = format!("{text}\n\n[Not from the person: this message was sent back before.");
    for rejection in &request.rejections {
        let (client, reason) = (&rejection.client, &rejection.reason);
        let _ = write!(
            text,
            "\n- {client:?} had it and gave the reason {reason:?}."
        );
    }
    text.push_str("\nThose programs are not offered again: choose another one.]");
    Cow::Owned(text)
}

/// Converts the calls to choices.
fn choices(request: &RouteRequest, tools: &[ToolDefinition], calls: &[ToolCall]) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for call in calls {
        let tool = find_tool(tools, &call.name);
        let at = tools
            .iter()
            .position(|it| Some(it.name()) == tool.map(ToolDefinition::name));
        let Some(candidate) = at.and_then(|at| request.candidates.get(at)) else {
            let tool = printable(&call.name);
            tracing::warn!(%tool, "a choice of the model is left out: it names no client");
            continue;
        };
        let arguments = serde_json::from_str::<Map<String, Value>>(&call.arguments);
        let arguments = arguments.unwrap_or_default();
        let text = |name| arguments.get(name).and_then(Value::as_str).map(str::trim);
        let message = text("message").unwrap_or_default();
        // Called twice, with a part each time: the client gets the whole, once.
        if let Some(twice) = choices.iter_mut().find(|old| old.client == candidate.name) {
            twice.text = None;
            continue;
        }
        let mut choice = Choice::new(candidate.name.clone());
        if !message.is_empty() && message != request.text.trim() {
            choice.text = Some(message.into());
        }
        if let Some(reason) = text("reason").filter(|reason| !reason.is_empty()) {
            choice.reason = Some(reason.into());
        }
        choices.push(choice);
    }
    if choices.is_empty() {
        tracing::info!(calls = calls.len(), "the model chose no client");
    }
    choices
}

#[cfg(test)]
mod tests;
