//! [`Steps`]: what an agent does, as events of the view at a terminal.

use connectonion_proto::frame::{
    Compact, EventKind, Output, ReceivedFile, TextDelta, ToolStatus, Usage,
};
use rpc_core::{Json, Str};

use crate::chat::telling;
use crate::chat::terminal::ChatEvent;
use crate::markdown::code;
use crate::pages::Pages;

/// Turns steps into events. Growing texts are shown once, also when their whole follows.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    answer: Growing,
    thought: Growing,
    /// What the next question is about.
    pub(super) preview: Option<Pages>,
}

/// What is shown of a text that grows.
#[derive(Debug, Default)]
struct Growing {
    id: String,
    shown: String,
}

impl Growing {
    /// Adds a part. Returns whether it begins another text than the one that is shown.
    fn push(&mut self, delta: &TextDelta) -> bool {
        let is_other = delta.message_id != *self.id;
        let is_next = is_other && !self.shown.is_empty();
        if is_other {
            self.id = delta.message_id.to_string();
            self.shown.clear();
        }
        self.shown.push_str(&delta.content);
        is_next
    }

    /// What is not shown yet of the whole text, and whether that is another one than the one that is shown.
    fn rest<'t>(&mut self, whole: &'t str) -> (&'t str, bool) {
        let shown = std::mem::take(&mut self.shown);
        let rest = whole.strip_prefix(&*shown);
        (rest.unwrap_or(whole), rest.is_none())
    }
}

/// More of an answer, or another one.
fn text(text: &str, is_next: bool) -> Vec<ChatEvent> {
    let end = is_next.then_some(ChatEvent::TextEnd);
    let text = ChatEvent::Text(text.to_owned());
    end.into_iter().chain([text]).collect()
}

impl Steps {
    /// What a step shows. `own` is what this user has said.
    pub(crate) fn step(&mut self, kind: &EventKind, own: bool) -> Vec<ChatEvent> {
        let note = |text: String| vec![ChatEvent::Note(text)];
        let quote = |text: &Str| note(text.to_string());
        match kind {
            EventKind::AssistantDelta(delta) => text(&delta.content, self.answer.push(delta)),
            EventKind::ThinkingDelta(delta) => {
                self.thought.push(delta);
                vec![ChatEvent::Thinking(delta.content.to_string())]
            }
            // Not the model's own words.
            EventKind::Thinking(remark) if remark.kind.as_deref() == Some("retry") => {
                note(remark.content.as_deref().unwrap_or_default().to_owned())
            }
            EventKind::Thinking(whole) => {
                let whole = whole.content.as_deref().unwrap_or_default();
                let (rest, _) = self.thought.rest(whole);
                vec![ChatEvent::Thinking(rest.to_owned())]
            }
            EventKind::Assistant(whole) => {
                let (rest, is_next) = self.answer.rest(whole);
                // Known agents say their answer twice.
                self.answer.shown = whole.to_string();
                text(rest, is_next)
            }
            EventKind::LlmCall(_) => vec![ChatEvent::Activity("thinking".to_owned())],
            EventKind::LlmResult(result) => {
                let usage = result
                    .usage
                    .as_ref()
                    .and_then(|it| it.parse::<Usage>().ok());
                let tokens = usage.map(|it| it.input_tokens.saturating_add(it.output_tokens));
                tokens.map(ChatEvent::Usage).into_iter().collect()
            }
            EventKind::ToolCall(call) => {
                self.answer = Growing::default();
                vec![ChatEvent::ToolCall {
                    id: call.tool_id.as_deref().unwrap_or_default().to_owned(),
                    name: call.name.to_string(),
                    arguments: telling(call.args.as_ref().map_or("", Json::get)),
                }]
            }
            // Above the question, whole.
            EventKind::DiffPreview(diff) => {
                let preview = diff.preview.as_deref().unwrap_or_default();
                let pages =
                    Pages::new(format!("A change of {}", code(&diff.path)), "diff", preview);
                let shown = ChatEvent::Preview(pages.question());
                self.preview = Some(pages);
                vec![shown]
            }
            EventKind::ToolResult(result) => {
                let text = result.result.as_deref().or(result.error.as_deref());
                let text = text.unwrap_or_default().to_owned();
                let has_failed = result.status.as_ref().is_some_and(ToolStatus::is_error);
                vec![ChatEvent::ToolResult {
                    id: result.tool_id.as_deref().unwrap_or_default().to_owned(),
                    outcome: if has_failed { Err(text) } else { Ok(text) },
                }]
            }
            EventKind::ToolBlocked(blocked) => {
                let why = blocked.message.as_deref().or(blocked.reason.as_deref());
                let why = why.unwrap_or("no reason given");
                vec![ChatEvent::Warning(format!(
                    "{} may not run: {why}",
                    blocked.tool
                ))]
            }
            EventKind::UserInput(input) if input.runtime_input => {
                note(format!("the agent reads: {}", input.content))
            }
            EventKind::UserInput(input) if !own => vec![ChatEvent::User(input.content.to_string())],
            EventKind::FilesReceived(received) => {
                let files: Vec<ReceivedFile> = received.files.parse().unwrap_or_default();
                let names: Vec<_> = files.iter().map(|file| &*file.name).collect();
                note(format!("the agent has got {}", names.join(", ")))
            }
            EventKind::ModeChanged(changed) => note(format!("mode: {}", changed.mode.name())),
            EventKind::Compact(compact) => note(shortened(compact)),
            EventKind::Intent(intent) => intent.ack.iter().flat_map(quote).collect(),
            EventKind::Eval(eval) => eval.summary.iter().flat_map(quote).collect(),
            EventKind::AgentImage(image) => note(format!("an image of {} bytes", image.len())),
            _ => Vec::new(),
        }
    }

    /// What the end of a run shows.
    pub(crate) fn output(&mut self, output: &Output) -> Vec<ChatEvent> {
        let (rest, is_next) = self.answer.rest(&output.result);
        let mut events = text(rest, is_next);
        events.extend(not_stored(output).map(ChatEvent::Note));
        events.push(ChatEvent::Ended);
        *self = Self::default();
        events
    }
}

/// What a host says that has not stored an answer.
pub(crate) fn not_stored(output: &Output) -> Option<String> {
    let why = output.not_stored.as_deref()?;
    Some(format!(
        "the agent may forget this answer, which was not stored: {why}"
    ))
}

/// What becomes of a conversation that has grown too long for the model.
pub(crate) fn shortened(compact: &Compact) -> String {
    match (&*compact.status, &compact.message, &compact.error) {
        ("compacting", ..) => "the conversation is being made shorter".to_owned(),
        ("error", _, Some(error)) => {
            format!("the conversation was not made shorter: {error}")
        }
        ("error", ..) => "the conversation was not made shorter".to_owned(),
        (_, Some(message), _) => message.to_string(),
        (_, None, _) => "the conversation was made shorter".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use connectonion_proto::frame::Thinking;

    use super::*;

    #[test]
    fn a_growing_answer_is_shown_once() {
        let mut steps = Steps::default();
        let mut text = |kind| match &steps.step(&kind, true)[..] {
            [ChatEvent::Text(text)] => text.clone(),
            other => panic!("{other:?}"),
        };
        let part = |text: &str| EventKind::AssistantDelta(TextDelta::new(text, "m"));
        assert_eq!(text(part("Hel")), "Hel");
        assert_eq!(text(part("lo")), "lo");
        assert_eq!(text(EventKind::Assistant("Hello!".into())), "!");
        let output = Output::new("s", "Hello!", 1);
        let shown = [ChatEvent::Text(String::new()), ChatEvent::Ended];
        assert_eq!(steps.output(&output), shown);
    }

    #[test]
    fn a_remark_between_thoughts_is_a_note() {
        let mut remark = Thinking::new("asking again in 1 s");
        remark.kind = Some("retry".into());
        let step = Steps::default().step(&EventKind::Thinking(remark), true);
        assert_eq!(step, [ChatEvent::Note("asking again in 1 s".to_owned())]);
    }

    #[test]
    fn another_text_ends_the_one_before() {
        let mut steps = Steps::default();
        let mut next = |kind| steps.step(&kind, true).contains(&ChatEvent::TextEnd);
        let part = |text: &str, id: &str| EventKind::AssistantDelta(TextDelta::new(text, id));
        assert!(!next(part("Hel", "m")));
        assert!(next(part("Well", "n")));
        let output = Output::new("s", "What now?", 1);
        let shown = ChatEvent::Text("What now?".to_owned());
        let expected = [ChatEvent::TextEnd, shown, ChatEvent::Ended];
        assert_eq!(steps.output(&output), expected);
    }

    #[test]
    fn a_cut_conversation_is_reported_in_words() {
        let mut compact = Compact::new("done");
        assert_eq!(shortened(&compact), "the conversation was made shorter");
        compact.message = Some("it no longer gets the 2 oldest messages".into());
        let step = Steps::default().step(&EventKind::Compact(compact), true);
        let about = "it no longer gets the 2 oldest messages".to_owned();
        assert_eq!(step, [ChatEvent::Note(about)]);
        let mut failed = Compact::new("error");
        failed.error = Some("no room".into());
        assert!(shortened(&failed).ends_with("was not made shorter: no room"));
    }
}
