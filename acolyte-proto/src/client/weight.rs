//! The approximate sizes of events in bytes, for the bounds of queues.

use rpc_core::{Json, Str};

use super::{ChatUpdate, ClientEvent, Failure, Outcome, Warning};
use crate::error::{ChatError, ErrorDetail};
use crate::event::{Checklist, Event, Part};
use crate::frame::{Extra, Reply, Skill, Status};

type Text<'a> = Option<&'a str>;

impl ClientEvent {
    /// Returns the approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Chat { update, .. } => update.inner_weight(),
                Self::Status { result, .. } => {
                    result.as_ref().map_or(0, |status| of_status(status))
                }
                Self::ServerError(error) => error.message().len(),
                Self::Unknown { tag, raw } => of_unknown(tag, raw),
                Self::Warning(warning) => warning.weight(),
                _ => 0,
            }
    }
}

impl ChatUpdate {
    /// Returns the approximate size in bytes.
    #[cfg(feature = "tokio")]
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.inner_weight()
    }

    fn inner_weight(&self) -> usize {
        match self {
            Self::Event(event) => of_event(event),
            Self::Unknown { tag, raw } => of_unknown(tag, raw),
            Self::Warning(warning) => warning.weight(),
            Self::Ended(outcome) => outcome.weight(),
            Self::Accepted { .. } | Self::Queued { .. } | Self::Started => 0,
        }
    }
}

impl Outcome {
    fn weight(&self) -> usize {
        match self {
            Self::Done(reply) | Self::Failed(Failure::Model(reply)) => of_reply(reply),
            Self::Failed(Failure::Server(error)) | Self::Aborted { error: Some(error) } => {
                of_error(error)
            }
            Self::Refused { error } => error.message().len(),
            _ => 0,
        }
    }
}

impl Warning {
    fn weight(&self) -> usize {
        match self {
            Self::ToolWithoutCall { tool_call_id } => tool_call_id.len(),
            _ => 0,
        }
    }
}

/// Returns the approximate size of an event's contents in bytes, beside its own size.
fn of_event(event: &Event) -> usize {
    match event {
        Event::Reasoning(text) | Event::TextDelta(text) | Event::SkillDeactivated(text) => {
            text.len()
        }
        Event::ToolCall(call) => call.id.len() + call.name.len() + call.args.get().len(),
        Event::ToolOutput(output) => output.id.len() + output.name.len() + of_part(&output.content),
        Event::ToolResult(result) => {
            let detail = result.detail.as_deref().map_or(0, of_detail);
            let code = sum([result.code.as_deref()]);
            result.id.len() + result.name.len() + code + detail + of_extra(&result.extra)
        }
        Event::Checklist(list) | Event::Tasklist(list) => of_checklist(list),
        Event::Error(error) => of_error(error),
        Event::Notice(notice) => notice.message.len() + sum([notice.source.as_deref()]),
        Event::SkillActivated(skill) => of_skill(skill),
        Event::Unknown { tag, raw } => of_unknown(tag, raw),
        Event::Status(_) | Event::Usage(_) => 0,
    }
}

fn of_checklist(list: &Checklist) -> usize {
    let items = list.items.iter();
    let items = items.map(|item| size_of_val(item) + item.id.len() + item.label.len());
    list.group_id.len() + list.group_title.len() + items.sum::<usize>()
}

fn of_part(part: &Part) -> usize {
    let list = |list: &[Str]| {
        let sizes = list.iter().map(|text| size_of_val(text) + text.len());
        sizes.sum::<usize>()
    };
    match part {
        Part::ToolHeader(header) => {
            header.label_key.len() + sum([header.detail.as_deref(), header.state.as_deref()])
        }
        Part::Text(text) => text.len(),
        Part::FileHeader(header) => header.label_key.len() + list(&header.targets),
        Part::ScopeHeader(header) => {
            header.label_key.len() + header.scope.len() + list(&header.patterns)
        }
        Part::EditHeader(header) => header.label_key.len() + header.path.len(),
        Part::Diff(line) => line.text.len(),
        Part::ShellOutput(output) => output.text.len(),
        Part::Truncated(truncated) => sum([truncated.unit.as_deref()]),
        Part::Unknown { tag, raw } => of_unknown(tag, raw),
        Part::NoOutput => 0,
    }
}

fn of_unknown(tag: &str, raw: &Json) -> usize {
    tag.len() + raw.get().len()
}

fn of_extra(extra: &Extra) -> usize {
    let members = extra.iter();
    members
        .map(|(name, value)| name.len() + value.get().len())
        .sum()
}

fn of_skill(skill: &Skill) -> usize {
    skill.name.len() + skill.instructions.len()
}

fn of_error(error: &ChatError) -> usize {
    let detail = error.detail.as_deref().map_or(0, of_detail);
    error.message.len() + sum([error.code.as_deref()]) + detail
}

fn of_detail(detail: &ErrorDetail) -> usize {
    sum([
        detail.code.as_deref(),
        detail.category.as_deref(),
        detail.kind.as_deref(),
        detail.source.as_deref(),
        detail.tool.as_deref(),
    ])
}

fn of_reply(reply: &Reply) -> usize {
    let tools = reply.tool_calls.iter();
    let tools = tools.map(|name| size_of_val(name) + name.len());
    let skills = reply.active_skills.iter();
    let skills = skills.map(|skill| size_of_val(skill) + of_skill(skill));
    reply.output.len()
        + reply.model.len()
        + sum([reply.error.as_deref()])
        + tools.sum::<usize>()
        + skills.sum::<usize>()
}

fn of_status(status: &Status) -> usize {
    size_of_val(status) + status.model.len() + status.capabilities.len()
}

fn sum<const N: usize>(texts: [Text<'_>; N]) -> usize {
    texts.into_iter().flatten().map(str::len).sum()
}
