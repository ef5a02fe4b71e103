//! [`Frames`]: descriptions of ConnectOnion's frames.

use connectonion_proto::frame::{
    Answer, ClientFrame, Connect, EventKind, Response, Scope, ServerFrame, StreamEvent, ToolStatus,
};

use rpc_core::net::Direction;
use rpc_core::{Json, Limits};

use super::Describe;

/// A describer of a client's frames. The frames of a run are indented.
#[derive(Clone, Debug, Default)]
pub struct Frames;

impl Describe for Frames {
    fn describe(&mut self, direction: Direction, text: &str) -> Option<String> {
        let limits = Limits::unlimited();
        match direction {
            Direction::Out => said(&ClientFrame::decode(text, &limits).ok()?),
            Direction::In => heard(&ServerFrame::decode(text, &limits).ok()?),
        }
    }
}

pub(crate) fn said(frame: &ClientFrame) -> Option<String> {
    Some(match frame {
        ClientFrame::Connect(connect) => connects(connect),
        ClientFrame::Input(input) => {
            let prompt = input.prompt.as_deref().unwrap_or_default();
            format!("INPUT {prompt:?}")
        }
        ClientFrame::Response(response) => answers(response),
        ClientFrame::ModeChange(change) => format!("mode_change {}", change.mode.name()),
        ClientFrame::Interrupt => "INTERRUPT".to_owned(),
        ClientFrame::OnboardSubmit(_) => "ONBOARD_SUBMIT ***".to_owned(),
        ClientFrame::SessionQuery(_) => "SESSION_STATUS?".to_owned(),
        ClientFrame::Pong => "PONG".to_owned(),
        _ => return None,
    })
}

fn connects(connect: &Connect) -> String {
    let from = connect.signed.from.as_deref();
    let who = from.map_or("without a signature".to_owned(), |from| {
        format!("as {}", cut(from))
    });
    let session = connect.session_id.as_deref();
    let session = session.map_or(String::new(), |id| format!(", session {}", cut(id)));
    let after = match &connect.last_msg_id {
        Some(_) => ", after the last event",
        None => "",
    };
    format!("CONNECT {who}{session}{after}")
}

fn answers(response: &Response) -> String {
    let what = match &response.answer {
        Answer::Approval(approval) if approval.approved => {
            format!(
                "approved, {}",
                approval.scope.as_ref().map_or("once", Scope::name)
            )
        }
        Answer::Approval(approval) => match approval.feedback.as_deref() {
            Some(why) => format!("refused: {why}"),
            None => "refused".to_owned(),
        },
        Answer::Ulw(ulw) => ulw.action.name().to_owned(),
        other => format!("{:?}", other.text().unwrap_or_default()),
    };
    format!("  {} {what}", response.answer.tag())
}

pub(crate) fn heard(frame: &ServerFrame) -> Option<String> {
    Some(match frame {
        ServerFrame::Connected(connected) => {
            let id = cut(&connected.session_id);
            let newer = match &connected.session {
                Some(_) => ", with a newer conversation",
                None => "",
            };
            format!("CONNECTED {id}, {}{newer}", connected.status.name())
        }
        ServerFrame::Output(output) => format!("OUTPUT {:?}", output.result),
        ServerFrame::Event(event) => happened(event),
        ServerFrame::RuntimeInputAck(_) => "  RUNTIME_INPUT_ACK".to_owned(),
        ServerFrame::Error(error) => format!("ERROR {}", error.message),
        ServerFrame::OnboardRequired(required) => {
            format!("ONBOARD_REQUIRED {}", required.methods.get())
        }
        ServerFrame::OnboardSuccess(_) => "ONBOARD_SUCCESS".to_owned(),
        ServerFrame::SessionStatus(status) => format!("SESSION_STATUS {}", status.status.name()),
        ServerFrame::Ping => "PING".to_owned(),
        _ => return None,
    })
}

fn happened(event: &StreamEvent) -> String {
    let name = event.kind.tag();
    let what = match &event.kind {
        EventKind::UserInput(input) => format!("{:?}", input.content),
        EventKind::Assistant(said) => format!("{said:?}"),
        EventKind::AssistantDelta(more) | EventKind::ThinkingDelta(more) => {
            format!("{:?}", more.content)
        }
        EventKind::LlmCall(call) => call.model.as_deref().unwrap_or_default().to_owned(),
        EventKind::LlmResult(result) => match result.tool_calls_count.unwrap_or(0) {
            0 => "in words".to_owned(),
            1 => "wants 1 tool".to_owned(),
            count => format!("wants {count} tools"),
        },
        EventKind::Thinking(thought) => thought.content.as_deref().unwrap_or_default().to_owned(),
        EventKind::ToolCall(call) => {
            format!(
                "{}({})",
                call.name,
                call.args.as_ref().map_or("", Json::get)
            )
        }
        EventKind::ToolResult(result) => {
            let failed = result.status.as_ref().is_some_and(ToolStatus::is_error);
            let text = result.result.as_deref().unwrap_or_default();
            format!("{}{text}", if failed { "failed: " } else { "" })
        }
        EventKind::AskUser(ask) => {
            let options = ask.options.as_ref().map_or("", Json::get);
            format!("{:?} {options}", ask.question)
        }
        EventKind::ApprovalNeeded(needed) => {
            let arguments = needed.arguments.as_ref().map_or("", Json::get);
            format!("{}({arguments})", needed.tool)
        }
        EventKind::ModeChanged(changed) => changed.mode.name().to_owned(),
        _ => String::new(),
    };
    format!("  {name} {what}").trim_end().to_owned()
}

/// Returns the beginning of a long id.
fn cut(id: &str) -> String {
    let begin: String = id.chars().take(8).collect();
    format!("{begin}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reads_like_a_conversation() {
        let mut frames = Frames;
        for (direction, text, expected) in [
            (
                Direction::Out,
                r#"{"type":"CONNECT","payload":{},"from":"0x3d4017c3e843","session_id":"550e8400-e29b","last_msg_id":"x"}"#,
                "CONNECT as 0x3d4017…, session 550e8400…, after the last event",
            ),
            (
                Direction::Out,
                r#"{"type":"CONNECT","payload":{}}"#,
                "CONNECT without a signature",
            ),
            (
                Direction::In,
                r#"{"type":"CONNECTED","session_id":"550e8400-e29b","status":"running"}"#,
                "CONNECTED 550e8400…, running",
            ),
            (
                Direction::Out,
                r#"{"type":"INPUT","prompt":"hi"}"#,
                r#"INPUT "hi""#,
            ),
            (
                Direction::In,
                r#"{"type":"tool_call","id":"e","ts":1,"tool_id":"c","name":"add","args":{"a":1}}"#,
                r#"  tool_call add({"a":1})"#,
            ),
            (
                Direction::In,
                r#"{"type":"tool_result","id":"e","ts":1,"tool_id":"c","status":"error","result":"no"}"#,
                "  tool_result failed: no",
            ),
            (
                Direction::Out,
                r#"{"type":"APPROVAL_RESPONSE","approved":true,"scope":"session"}"#,
                "  APPROVAL_RESPONSE approved, session",
            ),
            (
                Direction::Out,
                r#"{"type":"ASK_USER_RESPONSE","answer":"red"}"#,
                r#"  ASK_USER_RESPONSE "red""#,
            ),
            (
                Direction::Out,
                r#"{"type":"ONBOARD_SUBMIT","payload":{"invite_code":"secret"}}"#,
                "ONBOARD_SUBMIT ***",
            ),
            (
                Direction::In,
                r#"{"type":"OUTPUT","result":"done","session_id":"s"}"#,
                r#"OUTPUT "done""#,
            ),
        ] {
            assert_eq!(frames.describe(direction, text).as_deref(), Some(expected));
        }
        assert_eq!(frames.describe(Direction::In, "nonsense"), None);
    }
}
