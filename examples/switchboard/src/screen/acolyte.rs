//! [`Frames`]: descriptions of Acolyte's frames.

use acolyte_proto::event::{DiffMarker, Event, FileHeader, Part, RunKind, ToolHeader};
use acolyte_proto::frame::{Answer, ClientFrame, Request, ServerFrame};
use acolyte_proto::id::RpcId;
use rpc_core::Limits;
use rpc_core::net::Direction;

use super::Describe;
use crate::daemon::checklist::mark;
use switchboard_wire::recent::Recent;

/// A describer of a client's frames. Requests get numbers that are easier to follow than their ids.
#[derive(Debug, Default)]
pub struct Frames {
    /// The numbers of open requests.
    requests: Recent<String, u64>,
    last: u64,
}

impl Describe for Frames {
    fn describe(&mut self, direction: Direction, text: &str) -> Option<String> {
        let limits = Limits::unlimited();
        match direction {
            Direction::Out => Some(self.asked(&ClientFrame::decode(text, &limits).ok()?)),
            Direction::In => self.heard(&ServerFrame::decode(text, &limits).ok()?),
        }
    }
}

impl Frames {
    pub(crate) fn asked(&mut self, frame: &ClientFrame) -> String {
        let which = |id: &RpcId, known: &Recent<String, u64>| match known.get(id.as_str()) {
            Some(number) => format!("#{number}"),
            None => id.to_string(),
        };
        let what = match &frame.request {
            Request::StatusGet => "status.get".to_owned(),
            Request::ChatStart(request) => format!("chat.start {:?}", request.message),
            Request::ChatAbort(request_id) => {
                format!("chat.abort {}", which(request_id, &self.requests))
            }
            Request::TaskStatus(_) => "task.status".to_owned(),
            _ => "something else".to_owned(),
        };
        self.last += 1;
        self.requests.insert(frame.id.to_string(), self.last);
        format!("#{} {what}", self.last)
    }

    pub(crate) fn heard(&mut self, frame: &ServerFrame) -> Option<String> {
        let number = *self.requests.get(frame.id.as_str())?;
        let (what, is_over) = match &frame.answer {
            Answer::Status(status) => {
                let version = &status.protocol_version;
                (
                    format!("status: version {version}, {}", status.capabilities),
                    true,
                )
            }
            Answer::Accepted(_) => ("accepted".to_owned(), false),
            Answer::Queued(position) => (format!("queued, place {position}"), false),
            Answer::Started => ("started".to_owned(), false),
            Answer::Event(event) => (happened(event)?, false),
            Answer::Done(reply) => {
                let error = reply.error.as_ref();
                let error = error.map_or(String::new(), |error| format!(", but {error}"));
                (format!("done {:?}{error}", reply.output), true)
            }
            Answer::Failed(error) => {
                let code = error.code.as_deref().unwrap_or("no code");
                (format!("error {:?}, {code}", error.message), true)
            }
            Answer::AbortResult(result) => {
                let aborted = if result.aborted {
                    "aborted"
                } else {
                    "nothing to abort"
                };
                (aborted.to_owned(), true)
            }
            Answer::TaskStatus(task) => {
                let state = task.as_ref().map_or("unknown", |task| task.state.name());
                (format!("task {state}"), true)
            }
            Answer::Error(refusal) => (format!("refused: {}", refusal.error), true),
            _ => return None,
        };
        if is_over {
            self.requests.remove(frame.id.as_str());
        }
        Some(format!("  #{number} {what}"))
    }
}

/// Describes an event.
pub(crate) fn happened(event: &Event) -> Option<String> {
    Some(match event {
        Event::Status(state) if state.kind == RunKind::Running => "runs".to_owned(),
        Event::TextDelta(text) => format!("text {text:?}"),
        Event::ToolCall(call) => format!("{}({})", call.name, call.args.get()),
        Event::ToolOutput(output) => format!("  {}", part(&output.content)),
        Event::ToolResult(result) if result.is_error() => {
            let code = result.code.as_deref().unwrap_or("no code");
            format!("{} failed: {code}", result.name)
        }
        Event::ToolResult(result) => format!("{} ok", result.name),
        Event::Usage(usage) => {
            format!("usage {} + {}", usage.input_tokens, usage.output_tokens)
        }
        Event::Checklist(list) | Event::Tasklist(list) => {
            let item = |item: &acolyte_proto::event::ChecklistItem| {
                format!("{} {}", mark(&item.status), item.label)
            };
            let items: Vec<_> = list.items.iter().map(item).collect();
            format!("{}: {}", event.tag(), items.join("  "))
        }
        _ => return None,
    })
}

fn part(part: &Part) -> String {
    match part {
        Part::EditHeader(edit) => format!("{} +{} -{}", edit.path, edit.added, edit.removed),
        Part::Diff(line) => {
            let mark = match line.marker {
                DiffMarker::Add => '+',
                DiffMarker::Remove => '-',
                DiffMarker::Context => ' ',
            };
            format!("{} {mark} {}", line.line_number, line.text)
        }
        Part::ShellOutput(output) => format!("| {}", output.text),
        Part::Text(text) => text.to_string(),
        Part::ToolHeader(ToolHeader {
            detail: Some(detail),
            ..
        }) => detail.to_string(),
        Part::FileHeader(FileHeader { targets, .. }) => targets.join(", "),
        Part::ScopeHeader(search) => format!("{} found", search.matches),
        other => other.tag().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_reads_like_a_conversation() {
        let mut frames = Frames::default();
        for (direction, text, expected) in [
            (
                Direction::Out,
                r#"{"id":"rpc_a","type":"chat.start","payload":{"request":{"message":"hi","history":[],"model":"m"}}}"#,
                r#"#1 chat.start "hi""#,
            ),
            (
                Direction::In,
                r#"{"id":"rpc_a","type":"chat.accepted","taskId":"task_a"}"#,
                "  #1 accepted",
            ),
            (
                Direction::In,
                r#"{"id":"rpc_a","type":"chat.queued","position":2}"#,
                "  #1 queued, place 2",
            ),
            (
                Direction::In,
                r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-call","toolCallId":"c","toolName":"t","args":{"a":1}}}"#,
                r#"  #1 t({"a":1})"#,
            ),
            (
                Direction::In,
                r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-output","toolCallId":"c","toolName":"t","content":{"kind":"diff","marker":"add","lineNumber":3,"text":"x"}}}"#,
                "  #1   3 + x",
            ),
            (
                Direction::Out,
                r#"{"id":"rpc_b","type":"chat.abort","payload":{"requestId":"rpc_a"}}"#,
                "#2 chat.abort #1",
            ),
            (
                Direction::In,
                r#"{"id":"rpc_a","type":"chat.error","errorMessage":"aborted","errorCode":"E_ABORTED"}"#,
                r#"  #1 error "aborted", E_ABORTED"#,
            ),
            (
                Direction::In,
                r#"{"id":"rpc_b","type":"chat.abort.result","requestId":"rpc_a","aborted":true}"#,
                "  #2 aborted",
            ),
        ] {
            assert_eq!(frames.describe(direction, text).as_deref(), Some(expected));
        }
        assert_eq!(frames.describe(Direction::In, "nonsense"), None);
    }
}
