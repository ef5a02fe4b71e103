//! [`Events`]: the format of answers of the Responses API.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::answer::{Dialect, Pieces};
use crate::model::{CallPiece, Finish, MAX_CALLS, ModelError, Usage};

/// Events of the Responses API. Only `response.completed` and `response.incomplete` complete an
/// answer. Text, refusals, summaries of thoughts and calls of our tools are passed on; the rest is
/// ignored.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// The items that are calls, and whether their arguments have begun.
    calls: Vec<(usize, bool)>,
    has_text: bool,
}

impl Dialect for Events {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        out: &mut Pieces,
    ) -> Result<(), ModelError> {
        if name == Some("error") {
            return Err(ModelError::reported(data));
        }
        if data == "[DONE]" {
            return Ok(());
        }
        if !data.starts_with('{') {
            return Err(ModelError::bad("it is no JSON object"));
        }
        let event: Event<'_> = serde_json::from_str(data).map_err(ModelError::bad)?;
        let index = event.output_index.unwrap_or_default();
        let text = |delta: Option<Cow<'_, str>>| delta.unwrap_or_default().into_owned();
        match event.kind.as_deref().or(name).unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.has_text = true;
                out.text(text(event.delta));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                out.thought(text(event.delta));
            }
            "response.output_item.added" => {
                if let Some(item) = event.item.filter(Item::is_call) {
                    self.call(index, item, out)?;
                }
            }
            "response.function_call_arguments.delta" => self.arguments(index, event.delta, out),
            "response.function_call_arguments.done" => {
                self.all_arguments(index, event.arguments, out);
            }
            "response.output_item.done" => {
                if let Some(item) = event.item.filter(Item::is_call) {
                    match self.calls.iter().any(|(known, _)| *known == index) {
                        true => self.all_arguments(index, item.arguments, out),
                        false => self.call(index, item, out)?,
                    }
                }
            }
            "response.completed" | "response.incomplete" => {
                let response = event.response.unwrap_or_default();
                self.end(response, out)?;
                out.end();
            }
            "response.failed" | "error" => return Err(ModelError::reported(data)),
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, out: &mut Pieces) -> Result<(), ModelError> {
        let response: Response<'_> = serde_json::from_str(body).map_err(ModelError::bad)?;
        let has_failed = response.error.is_some_and(|error| error.get() != "null");
        if has_failed || response.status.as_deref() == Some("failed") {
            return Err(ModelError::reported(body));
        }
        if response.output.is_none() {
            return Err(ModelError::bad("there is no output in it"));
        }
        self.end(response, out)
    }
}

impl Events {
    fn call(&mut self, index: usize, item: Item<'_>, out: &mut Pieces) -> Result<(), ModelError> {
        if self.calls.len() >= MAX_CALLS {
            return Err(ModelError::TooManyCalls { max: MAX_CALLS });
        }
        let arguments = item.arguments.unwrap_or_default().into_owned();
        self.calls.push((index, !arguments.is_empty()));
        out.call(CallPiece {
            index: Some(index),
            id: item.call_id.map(Cow::into_owned),
            name: item.name.map(Cow::into_owned),
            arguments,
        });
        Ok(())
    }

    /// Adds a piece of the arguments of a known call.
    fn arguments(&mut self, index: usize, piece: Option<Cow<'_, str>>, out: &mut Pieces) {
        let arguments = piece.unwrap_or_default().into_owned();
        let mut calls = self.calls.iter_mut();
        if let Some((_, begun)) = calls.find(|(known, _)| *known == index)
            && !arguments.is_empty()
        {
            *begun = true;
            out.call(CallPiece {
                index: Some(index),
                arguments,
                ..CallPiece::default()
            });
        }
    }

    /// Adds the whole arguments, unless they came in pieces.
    fn all_arguments(&mut self, index: usize, all: Option<Cow<'_, str>>, out: &mut Pieces) {
        if self.calls.contains(&(index, false)) {
            self.arguments(index, all, out);
        }
    }

    fn end(&mut self, response: Response<'_>, out: &mut Pieces) -> Result<(), ModelError> {
        // Whoever sends no pieces sends all of it at the end.
        let is_told = self.has_text || !self.calls.is_empty();
        let items = response.output.unwrap_or_default();
        for (index, item) in items.into_iter().enumerate().filter(|_| !is_told) {
            if item.is_call() {
                self.call(index, item, out)?;
                continue;
            }
            let parts = item.content.into_iter().flatten();
            for text in parts.filter_map(|part| part.text.or(part.refusal)) {
                out.text(text.into_owned());
            }
        }
        if let Some(usage) = response.usage {
            out.usage(Usage {
                prompt: usage.input_tokens.unwrap_or_default(),
                completion: usage.output_tokens.unwrap_or_default(),
            });
        }
        let reason = response.incomplete_details.and_then(|it| it.reason);
        out.finish(match reason.as_deref() {
            Some("max_output_tokens") => Finish::Length,
            Some("content_filter") => Finish::ContentFilter,
            Some(other) => Finish::Other(other.to_owned()),
            None if self.calls.is_empty() => Finish::Stop,
            None => Finish::ToolCalls,
        });
        Ok(())
    }
}

/// The members of all events.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    output_index: Option<usize>,
    #[serde(borrow)]
    delta: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<Cow<'a, str>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
}

#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<Vec<Item<'a>>>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<Vec<Part<'a>>>,
}

impl Item<'_> {
    fn is_call(&self) -> bool {
        self.kind.as_deref() == Some("function_call")
    }
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    refusal: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[cfg(test)]
mod tests;
