//! [`Events`]: the format of Anthropic's answers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::answer::{Dialect, Pieces};
use crate::model::{CallPiece, Finish, MAX_CALLS, ModelError, Usage};

/// Anthropic's events. Only `message_stop` completes an answer. Text, thinking and tool calls are
/// passed on; citations, calls of the provider's own tools and unknown events are ignored.
#[derive(Clone, Debug, Default)]
pub struct Events {
    tokens: Tokens,
    stop_reason: Option<Finish>,
    /// The open blocks of calls.
    calls: Vec<usize>,
}

/// The counts so far. Each covers the whole answer.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    input: u64,
    cache_creation: u64,
    cache_read: u64,
    output: u64,
}

impl Dialect for Events {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        out: &mut Pieces,
    ) -> Result<(), ModelError> {
        // An error is told in any shape.
        if name == Some("error") {
            return Err(ModelError::reported(data));
        }
        if !data.starts_with('{') {
            return match is_known(name) {
                true => Err(ModelError::bad("it is no JSON object")),
                false => Ok(()),
            };
        }
        let event: Event<'_> = match serde_json::from_str(data) {
            Ok(event) => event,
            // An event of later days may have other members.
            Err(_) if !is_known(name) => return Ok(()),
            Err(error) => return Err(ModelError::bad(error)),
        };
        match event.kind.as_deref().or(name).unwrap_or_default() {
            "message_start" => {
                if let Some(usage) = event.message.and_then(|message| message.usage) {
                    self.bill(usage, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.block(event.index.unwrap_or_default(), block, out)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.delta(event.index.unwrap_or_default(), delta, out);
                }
            }
            "content_block_stop" => {
                let index = event.index.unwrap_or_default();
                self.calls.retain(|known| *known != index);
            }
            "message_delta" => {
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    self.stop_reason = Some(finish(&reason));
                }
                if let Some(usage) = event.usage {
                    self.bill(usage, out);
                }
            }
            "message_stop" => {
                if let Some(reason) = self.stop_reason.take() {
                    out.finish(reason);
                }
                out.end();
            }
            "error" => return Err(ModelError::reported(data)),
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, out: &mut Pieces) -> Result<(), ModelError> {
        let message: Message<'_> = serde_json::from_str(body).map_err(ModelError::bad)?;
        if message.kind.as_deref() == Some("error") || message.error.is_some() {
            return Err(ModelError::reported(body));
        }
        let Some(blocks) = message.content else {
            return Err(ModelError::bad("there is no content in it"));
        };
        for (index, block) in blocks.into_iter().enumerate() {
            self.block(index, block, out)?;
        }
        if let Some(usage) = message.usage {
            self.bill(usage, out);
        }
        if let Some(reason) = message.stop_reason {
            out.finish(finish(&reason));
        }
        Ok(())
    }
}

impl Events {
    fn block(
        &mut self,
        index: usize,
        block: Block<'_>,
        out: &mut Pieces,
    ) -> Result<(), ModelError> {
        match block.kind.as_deref().unwrap_or_default() {
            "text" => {
                if let Some(text) = block.text.filter(|text| !text.is_empty()) {
                    out.text(text.into_owned());
                }
            }
            "thinking" => out.thought(block.thinking.unwrap_or_default().into_owned()),
            "tool_use" => {
                if self.calls.len() >= MAX_CALLS {
                    return Err(ModelError::TooManyCalls { max: MAX_CALLS });
                }
                self.calls.push(index);
                // As a rule empty, and followed by pieces.
                let input = block.input.map_or("", RawValue::get);
                let is_empty = input == "null"
                    || input
                        .chars()
                        .all(|c| matches!(c, '{' | '}') || c.is_whitespace());
                out.call(CallPiece {
                    index: Some(index),
                    id: block.id.map(Cow::into_owned),
                    name: block.name.map(Cow::into_owned),
                    arguments: if is_empty { "" } else { input }.to_owned(),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn delta(&self, index: usize, delta: BlockDelta<'_>, out: &mut Pieces) {
        match delta.kind.as_deref().unwrap_or_default() {
            "text_delta" => out.text(delta.text.unwrap_or_default().into_owned()),
            "thinking_delta" => out.thought(delta.thinking.unwrap_or_default().into_owned()),
            "input_json_delta" if self.calls.contains(&index) => {
                let arguments = delta.partial_json.unwrap_or_default().into_owned();
                if !arguments.is_empty() {
                    out.call(CallPiece {
                        index: Some(index),
                        arguments,
                        ..CallPiece::default()
                    });
                }
            }
            _ => {}
        }
    }

    fn bill(&mut self, usage: WireUsage, out: &mut Pieces) {
        let tokens = &mut self.tokens;
        for (place, value) in [
            (&mut tokens.input, usage.input_tokens),
            (
                &mut tokens.cache_creation,
                usage.cache_creation_input_tokens,
            ),
            (&mut tokens.cache_read, usage.cache_read_input_tokens),
            (&mut tokens.output, usage.output_tokens),
        ] {
            *place = value.unwrap_or(*place);
        }
        let cached = tokens.cache_creation.saturating_add(tokens.cache_read);
        out.usage(Usage {
            prompt: tokens.input.saturating_add(cached),
            completion: tokens.output,
        });
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    }
}

/// Returns whether the event must decode. Some servers omit the names.
fn is_known(name: Option<&str>) -> bool {
    matches!(
        name,
        None | Some(
            "message_start"
                | "content_block_start"
                | "content_block_delta"
                | "content_block_stop"
                | "message_delta"
                | "message_stop"
        )
    )
}

/// The members of all events.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    message: Option<MessageStart>,
    index: Option<usize>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<BlockDelta<'a>>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct MessageStart {
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    usage: Option<WireUsage>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// More of a block, or of the message.
#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[cfg(test)]
mod tests;
