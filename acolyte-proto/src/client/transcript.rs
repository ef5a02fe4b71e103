//! [`Transcript`]: the updates of a chat, folded into its current state.

use std::collections::HashMap;

use rpc_core::Str;

use super::weight::{of_checklist, of_event, of_part};
use super::{ChatUpdate, Outcome};
use crate::event::{Checklist, Event, Notice, Part, ToolCall, ToolResult, Usage};
use crate::frame::Reply;
use crate::id::TaskId;

/// The bytes that a transcript keeps by default.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The current state of a chat, for a screen or for a summary at its end. Feed it every update.
///
/// Numbers are never added up: the last usage is kept, and the reply's takes precedence. A
/// checklist replaces the one of its group.
///
/// ```
/// use acolyte_proto::client::{ChatUpdate, Transcript};
/// use acolyte_proto::event::{Event, Usage};
///
/// let mut transcript = Transcript::new();
/// for event in [
///     Event::text("Hello, "),
///     Event::Usage(Usage::new(3_000, 1)),
///     Event::text("world."),
///     Event::Usage(Usage::new(11, 2)),
/// ] {
///     transcript.apply(&ChatUpdate::Event(event));
/// }
/// assert_eq!(transcript.text(), "Hello, world.");
/// assert_eq!(transcript.usage(), Some(Usage::new(11, 2)));
/// ```
#[derive(Clone, Debug)]
pub struct Transcript {
    max_bytes: usize,
    bytes: usize,
    truncated: bool,
    task_id: Option<TaskId>,
    position: Option<u32>,
    text: String,
    reasoning: String,
    usage: Option<Usage>,
    tools: Vec<ToolRun>,
    tool_of: HashMap<Str, usize>,
    checklists: Vec<Checklist>,
    checklist_of: HashMap<Str, usize>,
    notices: Vec<Notice>,
    outcome: Option<Outcome>,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolRun {
    /// The call; `None` if the tool's output came without one.
    pub call: Option<ToolCall>,
    /// The tool.
    pub name: Str,
    /// The tool's output.
    pub output: Vec<Part>,
    /// The tool's result; `None` while it runs.
    pub result: Option<ToolResult>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self::new()
    }
}

impl Transcript {
    /// Creates an empty transcript, which keeps at most 16 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_bytes: MAX_BYTES,
            bytes: 0,
            truncated: false,
            task_id: None,
            position: None,
            text: String::new(),
            reasoning: String::new(),
            usage: None,
            tools: Vec::new(),
            tool_of: HashMap::new(),
            checklists: Vec::new(),
            checklist_of: HashMap::new(),
            notices: Vec::new(),
            outcome: None,
        }
    }

    /// Sets how many bytes are kept. Everything beyond is left out, except the outcome.
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Applies the next update.
    pub fn apply(&mut self, update: &ChatUpdate) {
        match update {
            ChatUpdate::Accepted { task_id } => self.task_id = Some(task_id.clone()),
            ChatUpdate::Queued { position } => self.position = Some(*position),
            ChatUpdate::Started => self.position = None,
            ChatUpdate::Event(event) => {
                self.position = None;
                self.apply_event(event);
            }
            ChatUpdate::Ended(outcome) => {
                self.position = None;
                self.outcome = Some(outcome.clone());
            }
            ChatUpdate::Unknown { .. } | ChatUpdate::Warning(_) => {}
        }
    }

    fn apply_event(&mut self, event: &Event) {
        match event {
            Event::TextDelta(text) if self.take(text.len()) => self.text.push_str(text),
            Event::Reasoning(text) if self.take(text.len()) => self.reasoning.push_str(text),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::ToolCall(call) if self.take(of_event(event) + size_of::<ToolRun>()) => {
                self.tool_of.insert(call.id.clone(), self.tools.len());
                self.tools.push(ToolRun {
                    name: call.name.clone(),
                    call: Some(call.clone()),
                    output: Vec::new(),
                    result: None,
                });
            }
            Event::ToolOutput(output) => {
                let size = of_part(&output.content) + size_of::<Part>();
                if let Some(tool) = self.tool(&output.id, &output.name, size) {
                    tool.output.push(output.content.clone());
                }
            }
            Event::ToolResult(result) => {
                if let Some(tool) = self.tool(&result.id, &result.name, 0) {
                    tool.result = Some(result.clone());
                }
            }
            Event::Checklist(list) | Event::Tasklist(list) => self.apply_checklist(list),
            Event::Notice(notice) if self.take(of_event(event) + size_of::<Notice>()) => {
                self.notices.push(notice.clone());
            }
            _ => {}
        }
    }

    fn apply_checklist(&mut self, list: &Checklist) {
        let known = self.checklist_of.get(&list.group_id).copied();
        if let Some(old) = known.and_then(|at| self.checklists.get(at)) {
            self.bytes = self.bytes.saturating_sub(of_checklist(old));
        }
        if !self.take(of_checklist(list)) {
            return;
        }
        let list = list.clone();
        match known.and_then(|at| self.checklists.get_mut(at)) {
            Some(old) => *old = list,
            None => {
                let group = list.group_id.clone();
                self.checklist_of.insert(group, self.checklists.len());
                self.checklists.push(list);
            }
        }
    }

    /// Returns the run of this call, created if the call was never reported; `None` if there is no
    /// room.
    fn tool(&mut self, id: &Str, name: &Str, size: usize) -> Option<&mut ToolRun> {
        let known = self.tool_of.get(id).copied();
        let more = match known {
            Some(_) => 0,
            None => id.len() + name.len() + size_of::<ToolRun>(),
        };
        if !self.take(size + more) {
            return None;
        }
        let at = known.unwrap_or_else(|| {
            self.tool_of.insert(id.clone(), self.tools.len());
            self.tools.push(ToolRun {
                call: None,
                name: name.clone(),
                output: Vec::new(),
                result: None,
            });
            self.tools.len() - 1
        });
        self.tools.get_mut(at)
    }

    /// Reserves room, or notes that something is left out.
    const fn take(&mut self, bytes: usize) -> bool {
        let sum = self.bytes.saturating_add(bytes);
        let fits = sum <= self.max_bytes;
        if fits {
            self.bytes = sum;
        } else {
            self.truncated = true;
        }
        fits
    }

    /// Returns the model's text so far, including text beside tool calls.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the model's reasoning so far.
    #[must_use]
    pub fn reasoning(&self) -> &str {
        &self.reasoning
    }

    /// Returns the last usage: the reply's, or else the last estimate.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let reply = self.reply().and_then(|reply| reply.usage.as_ref());
        let total = reply.map(|usage| Usage::new(usage.input_tokens, usage.output_tokens));
        total.or(self.usage)
    }

    /// Returns the tool calls, in order.
    #[must_use]
    pub fn tools(&self) -> &[ToolRun] {
        &self.tools
    }

    /// Returns the latest version of each checklist, in order of first appearance.
    #[must_use]
    pub fn checklists(&self) -> &[Checklist] {
        &self.checklists
    }

    /// Returns the notices, in order.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Returns the id of the task, once the chat is accepted.
    #[must_use]
    pub const fn task_id(&self) -> Option<&TaskId> {
        self.task_id.as_ref()
    }

    /// Returns the position in the server's queue, while the chat waits there.
    #[must_use]
    pub const fn position(&self) -> Option<u32> {
        self.position
    }

    /// Returns how the chat has ended; `None` while it goes on.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Returns the last reply, also of a chat whose model failed.
    #[must_use]
    pub fn reply(&self) -> Option<&Reply> {
        match self.outcome.as_ref()? {
            Outcome::Done(reply) | Outcome::Failed(super::Failure::Model(reply)) => Some(reply),
            _ => None,
        }
    }

    /// Returns whether something was left out for lack of room.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.truncated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ChecklistItem, ItemStatus, ToolOutput, ToolResult};

    fn after(events: impl IntoIterator<Item = Event>) -> Transcript {
        let mut transcript = Transcript::new();
        for event in events {
            transcript.apply(&ChatUpdate::Event(event));
        }
        transcript
    }

    fn list(status: ItemStatus) -> Event {
        let item = ChecklistItem {
            status,
            ..ChecklistItem::new("1", "do it", 0)
        };
        Event::Checklist(Checklist {
            items: vec![item],
            ..Checklist::new("g", "Plan")
        })
    }

    #[test]
    fn a_checklist_replaces_the_one_of_its_group() {
        let transcript = after([list(ItemStatus::Pending), list(ItemStatus::Done)]);
        let [only] = transcript.checklists() else {
            panic!("{transcript:?}")
        };
        assert_eq!(only.items[0].status, ItemStatus::Done);
    }

    #[test]
    fn outputs_and_results_find_their_calls() {
        let part = |text: &'static str| Part::text(text);
        let args = rpc_core::Json::new("{}").unwrap();
        let transcript = after([
            Event::ToolCall(ToolCall::new("a", "read", args.clone())),
            Event::ToolCall(ToolCall::new("b", "run", args)),
            Event::ToolOutput(ToolOutput::new("a", "read", part("1"))),
            Event::ToolOutput(ToolOutput::new("a", "read", part("more"))),
            Event::ToolResult(ToolResult::ok("a", "read")),
            Event::ToolOutput(ToolOutput::new("b", "run", part("2"))),
            Event::ToolResult(ToolResult::failed("b", "run")),
            Event::ToolOutput(ToolOutput::new("c", "stray", part("3"))),
        ]);
        let [read, run, stray] = transcript.tools() else {
            panic!("{transcript:?}")
        };
        assert_eq!(
            (&read.output[..], &read.result),
            (
                &[part("1"), part("more")][..],
                &Some(ToolResult::ok("a", "read"))
            )
        );
        assert_eq!(run.result, Some(ToolResult::failed("b", "run")));
        assert!(stray.call.is_none() && stray.name == "stray");
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said_so() {
        let mut transcript = Transcript::new().with_max_bytes(4);
        for text in ["abc", "def", "g"] {
            transcript.apply_event(&Event::text(text));
        }
        assert_eq!(transcript.text(), "abcg");
        assert!(transcript.is_truncated());
    }
}
