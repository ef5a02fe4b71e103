//! [`Transcript`]: the updates of a chat, folded into its current state.

use std::collections::HashMap;

use acolyte_proto::client::{ChatUpdate, Failure, Outcome};
use acolyte_proto::event::{
    Checklist, ChecklistItem, Event, ItemStatus, Part, ToolCall, ToolOutput, ToolResult,
};
use acolyte_proto::frame::Reply;
use acolyte_proto::id::{TaskId, ToolCallId};
use rpc_core::Str;

/// The current state of a chat. A checklist replaces the one of its group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) task_id: Option<TaskId>,
    pub(crate) text: String,
    pub(crate) tools: Vec<ToolRun>,
    pub(crate) checklists: Vec<Checklist>,
    pub(crate) outcome: Option<Outcome>,
    tool_of: HashMap<ToolCallId, usize>,
}

/// One call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct ToolRun {
    /// `None` if the tool's output came without a call.
    pub(crate) call: Option<ToolCall>,
    pub(crate) name: Str,
    pub(crate) output: Vec<Part>,
    pub(crate) result: Option<ToolResult>,
}

impl Transcript {
    pub(crate) fn apply(&mut self, update: &ChatUpdate) {
        match update {
            ChatUpdate::Accepted { task_id } => self.task_id = Some(task_id.clone()),
            ChatUpdate::Event(event) => self.apply_event(event),
            ChatUpdate::Ended(outcome) => self.outcome = Some(outcome.clone()),
            _ => {}
        }
    }

    fn apply_event(&mut self, event: &Event) {
        match event {
            Event::TextDelta(text) => self.text.push_str(text),
            Event::ToolCall(call) => self.tool(&call.id, &call.name).call = Some(call.clone()),
            Event::ToolOutput(output) => {
                let tool = self.tool(&output.id, &output.name);
                tool.output.push(output.content.clone());
            }
            Event::ToolResult(result) => {
                self.tool(&result.id, &result.name).result = Some(result.clone());
            }
            Event::Checklist(list) | Event::Tasklist(list) => {
                let mut known = self.checklists.iter_mut();
                match known.find(|old| old.group_id == list.group_id) {
                    Some(old) => old.clone_from(list),
                    None => self.checklists.push(list.clone()),
                }
            }
            _ => {}
        }
    }

    /// The run of this call.
    fn tool(&mut self, id: &ToolCallId, name: &Str) -> &mut ToolRun {
        let at = *self.tool_of.entry(id.clone()).or_insert(self.tools.len());
        if at == self.tools.len() {
            self.tools.push(ToolRun {
                call: None,
                name: name.clone(),
                output: Vec::new(),
                result: None,
            });
        }
        &mut self.tools[at]
    }

    /// The last reply, also of a chat whose model failed.
    pub(crate) fn reply(&self) -> Option<&Reply> {
        match self.outcome.as_ref()? {
            Outcome::Done(reply) | Outcome::Failed(Failure::Model(reply)) => Some(reply),
            _ => None,
        }
    }
}

fn after(events: impl IntoIterator<Item = Event>) -> Transcript {
    let mut transcript = Transcript::default();
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
    let [only] = &transcript.checklists[..] else {
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
    let [read, run, stray] = &transcript.tools[..] else {
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
