//! [`Frames`]: descriptions of Snek's frames.

use rpc_core::net::Direction;
use rpc_core::{Limits, Str};
use snek_proto::frame::{ClientFrame, Event, Final, ServerFrame};

use super::Describe;
use switchboard_wire::recent::Recent;

/// A describer of a client's frames. An answer is shown with its method.
#[derive(Debug, Default)]
pub struct Frames {
    /// The methods of calls in flight, because an answer does not name its method.
    methods: Recent<String, Str>,
}

impl Describe for Frames {
    fn describe(&mut self, direction: Direction, text: &str) -> Option<String> {
        let limits = Limits::default();
        match direction {
            Direction::Out => {
                let frame = ClientFrame::decode(text, &limits).ok()?;
                Some(self.request(&frame))
            }
            Direction::In => self.heard(ServerFrame::decode(text, &limits).ok()?),
        }
    }
}

impl Frames {
    pub(crate) fn heard(&mut self, frame: ServerFrame) -> Option<String> {
        match frame.call_id().and_then(|id| self.methods.remove(id.get())) {
            Some(method) => Some(answer(&method, frame)),
            None => event(frame),
        }
    }

    pub(crate) fn request(&mut self, frame: &ClientFrame) -> String {
        if frame.method == "login" {
            // A new connection: nothing that was asked before will be answered.
            self.methods.clear();
        }
        if let Some(id) = &frame.call_id {
            self.methods
                .insert(id.get().to_owned(), frame.method.clone());
        }
        let args = frame.args.get();
        let args = args
            .strip_prefix('[')
            .and_then(|args| args.strip_suffix(']'));
        format!("{}({})", frame.method, args.unwrap_or(".."))
    }
}

fn answer(method: &str, frame: ServerFrame) -> String {
    match frame.into_result() {
        Ok(answer) => format!("  {method}: {}", answer.data().get()),
        Err(error) => format!("  {method} failed: {error}"),
    }
}

fn event(frame: ServerFrame) -> Option<String> {
    Some(told(&frame.into_event()?.ok()?))
}

pub(crate) fn told(event: &Event) -> String {
    match event {
        Event::Message(message) => {
            let mark = if message.is_final == Final::Yes {
                ""
            } else {
                " (so far)"
            };
            format!(
                "#{} {}{mark}: {}",
                message.channel_uid, message.user_nick, message.message
            )
        }
        Event::SetTyping { data } => {
            let who = data.user_nick.as_deref().or(data.username.as_deref());
            let (who, channel) = (who.unwrap_or_default(), data.channel_uid.as_deref());
            format!("#{} {who} is typing", channel.unwrap_or_default())
        }
        Event::Join { data } => format!("joined #{}", data.channel_uid),
        Event::Leave { data } => format!("left #{}", data.channel_uid),
        other => format!("event {}", other.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_with_the_method_that_it_belongs_to() {
        let mut frames = Frames::default();
        let call = r#"{"method":"get_user","args":[null],"kwargs":{},"callId":"7"}"#;
        let shown = frames.describe(Direction::Out, call);
        assert_eq!(shown.as_deref(), Some("get_user(null)"));
        let answer = r#"{"callId":"7","success":false,"data":{"error":"no"}}"#;
        let shown = frames.describe(Direction::In, answer);
        assert_eq!(shown.as_deref(), Some("  get_user failed: no"));
        assert_eq!(frames.describe(Direction::In, answer), None);
    }

    #[test]
    fn a_message_reads_like_a_line_of_chat() {
        let text = r#"{"event":"message","message":"hi","username":"bo","user_nick":"Bo","channel_uid":"c","is_final":false}"#;
        let mut frames = Frames::default();
        let shown = frames.describe(Direction::In, text);
        assert_eq!(shown.as_deref(), Some("#c Bo (so far): hi"));
        assert_eq!(frames.describe(Direction::In, "nonsense"), None);
    }
}
