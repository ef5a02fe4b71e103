//! [`Frames`]: descriptions of Exoclaw's frames.

use exoclaw_proto::frame::{Call, ClientFrame, Request, ServerFrame, StreamEvent};
use rpc_core::net::Direction;
use rpc_core::{Json, Limits};

use super::Describe;
use switchboard_wire::recent::Recent;

/// A describer of a client's frames. Requests get numbers that are easier to follow than their ids.
#[derive(Debug, Default)]
pub struct Frames {
    /// Number and method of open requests, by id.
    requests: Recent<String, (u64, String)>,
    last: u64,
}

impl Describe for Frames {
    fn describe(&mut self, direction: Direction, text: &str) -> Option<String> {
        let limits = Limits::default();
        match direction {
            Direction::Out => match ClientFrame::decode(text, &limits).ok()? {
                ClientFrame::Token(token) => Some(format!("token {}", token.expose())),
                ClientFrame::Request(request) => Some(self.request(&request)),
                _ => None,
            },
            Direction::In => self.answer(&ServerFrame::decode(text, &limits).ok()?),
        }
    }
}

impl Frames {
    pub(crate) fn request(&mut self, request: &Request) -> String {
        self.last += 1;
        let (number, method) = (self.last, request.call.tag().to_owned());
        let what = arguments(&request.call);
        let id = request.id.text().into_owned();
        let described = format!("#{number} {method} {what}").trim_end().to_owned();
        self.requests.insert(id, (number, method));
        described
    }

    pub(crate) fn answer(&mut self, frame: &ServerFrame) -> Option<String> {
        Some(match frame {
            ServerFrame::Hello(hello) => {
                // A new connection: nothing that was asked before will be answered.
                self.requests.clear();
                format!("hello, version {}", hello.version().unwrap_or("unknown"))
            }
            ServerFrame::AuthFailed { error, code } => {
                let code = code.map(|code| format!(", code {code}"));
                format!("refused: {error}{}", code.unwrap_or_default())
            }
            ServerFrame::Result { id, result } => {
                let (number, method) = self.requests.remove(id.as_str())?;
                format!("  #{number} {method}: {}", result.get())
            }
            ServerFrame::Error { id, error } => {
                let (number, method) = self.requests.remove(id.as_deref()?)?;
                format!("  #{number} {method} failed: {error}")
            }
            ServerFrame::Stream { id, event } => {
                let number = self.requests.get(id.as_str())?.0;
                if matches!(event, StreamEvent::Done) {
                    self.requests.remove(id.as_str());
                }
                format!("  #{number} {}", step(event))
            }
            _ => return None,
        })
    }
}

fn arguments(call: &Call) -> String {
    match call {
        Call::ChatSend(chat) => {
            let from = &chat.session;
            let (channel, account, peer) = (&from.channel, &from.account, from.peer());
            format!("as {channel}/{account}/{peer}: {}", chat.content)
        }
        Call::Ping | Call::Status | Call::PluginList => String::new(),
        other => {
            let params = Json::of(other).ok().and_then(|call| call.member("params"));
            params.map_or_else(String::new, |params| params.get().to_owned())
        }
    }
}

fn step(event: &StreamEvent) -> String {
    match event {
        StreamEvent::Text(text) => format!("text {text:?}"),
        StreamEvent::ToolUse(tool) => format!("tool_use {}({})", tool.name, tool.input.get()),
        StreamEvent::ToolResult(result) => {
            let failed = if result.is_error { " failed" } else { "" };
            format!("tool_result{failed}: {}", result.content)
        }
        StreamEvent::Usage(usage) => {
            let (read, written) = (usage.input_tokens, usage.output_tokens);
            format!("usage: {read} tokens read, {written} written")
        }
        StreamEvent::Error(error) => format!("error: {error}"),
        other => other.tag().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(frames: &mut Frames, direction: Direction, text: &str) -> String {
        let described = frames.describe(direction, text);
        described.unwrap_or_else(|| format!("raw {text}"))
    }

    #[test]
    fn a_chat_reads_like_a_conversation() {
        let mut frames = Frames::default();
        let chat = r#"{"id":"a1","method":"chat.send","params":{"channel":"c","account":"ann","content":"hi"}}"#;
        let ping = r#"{"id":"a2","method":"ping","params":{}}"#;
        for (direction, text, expected) in [
            (
                Direction::In,
                r#"{"ok":true,"version":"0.1.0"}"#,
                "hello, version 0.1.0",
            ),
            (Direction::Out, chat, "#1 chat.send as c/ann/main: hi"),
            (Direction::Out, ping, "#2 ping"),
            (
                Direction::In,
                r#"{"data":"Ho","event":"text","id":"a1"}"#,
                "  #1 text \"Ho\"",
            ),
            (
                Direction::In,
                r#"{"id":"a2","result":"pong"}"#,
                "  #2 ping: \"pong\"",
            ),
            (
                Direction::In,
                r#"{"data":{"id":"t","name":"echo","input":{"message":"x"}},"event":"tool_use","id":"a1"}"#,
                r#"  #1 tool_use echo({"message":"x"})"#,
            ),
            (
                Direction::In,
                r#"{"data":{"tool_use_id":"t","content":"no","is_error":true},"event":"tool_result","id":"a1"}"#,
                "  #1 tool_result failed: no",
            ),
            (
                Direction::In,
                r#"{"data":{"input_tokens":3,"output_tokens":4},"event":"usage","id":"a1"}"#,
                "  #1 usage: 3 tokens read, 4 written",
            ),
            (Direction::In, r#"{"event":"done","id":"a1"}"#, "  #1 done"),
            (
                Direction::In,
                r#"{"event":"done","id":"a1"}"#,
                r#"raw {"event":"done","id":"a1"}"#,
            ),
        ] {
            assert_eq!(shown(&mut frames, direction, text), expected);
        }
    }

    #[test]
    fn a_refusal_names_its_code_and_a_failure_its_method() {
        let mut frames = Frames::default();
        let refused = r#"{"error":"auth_failed","code":4001}"#;
        let expected = "refused: auth_failed, code 4001";
        assert_eq!(shown(&mut frames, Direction::In, refused), expected);
        let status = r#"{"id":"a1","method":"status","params":{}}"#;
        assert_eq!(shown(&mut frames, Direction::Out, status), "#1 status");
        let failed = r#"{"id":"a1","error":"no"}"#;
        assert_eq!(
            shown(&mut frames, Direction::In, failed),
            "  #1 status failed: no"
        );
        let late = r#"{"id":"0","error":"no"}"#;
        assert_eq!(
            shown(&mut frames, Direction::In, late),
            format!("raw {late}")
        );
    }

    #[test]
    fn a_token_is_shown_as_it_comes_from_the_connection_which_hides_it() {
        let token = exoclaw_proto::codec::redact(r#"{"token":"hunter2"}"#).into_owned();
        let mut frames = Frames::default();
        assert_eq!(shown(&mut frames, Direction::Out, &token), "token ***");
    }
}
