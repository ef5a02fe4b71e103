//! [`Lines`]: the format of Ollama's answers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::answer::{Dialect, Framing, Pieces};
use crate::model::think::Think;
use crate::model::{CallPiece, Finish, MAX_CALLS, ModelError, Usage};

/// Ollama's lines, each a JSON object. The one with `done` completes an answer. An error may come in
/// the middle, after status 200.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    think: Think,
    calls: usize,
}

impl Dialect for Lines {
    const FRAMING: Framing = Framing::Lines;

    fn event(
        &mut self,
        _name: Option<&str>,
        data: &str,
        out: &mut Pieces,
    ) -> Result<(), ModelError> {
        if !data.starts_with('{') {
            return Err(ModelError::bad("it is no JSON object"));
        }
        let line: Line<'_> = serde_json::from_str(data).map_err(ModelError::bad)?;
        if line.error.is_some() {
            return Err(ModelError::reported(data));
        }
        if let Some(message) = line.message {
            out.thought(message.thinking.unwrap_or_default().into_owned());
            if let Some(text) = message.content.filter(|text| !text.is_empty()) {
                self.think.push(&text, out);
            }
            for call in message.tool_calls.into_iter().flatten() {
                self.call(call, out)?;
            }
        }
        if line.done == Some(true) {
            self.think.end(out);
            out.usage(Usage {
                prompt: line.prompt_eval_count.unwrap_or_default(),
                completion: line.eval_count.unwrap_or_default(),
            });
            let reason = line.done_reason.unwrap_or(Cow::Borrowed("stop"));
            out.finish(match &*reason {
                "stop" if self.calls > 0 => Finish::ToolCalls,
                reason => Finish::from(reason),
            });
            out.end();
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, out: &mut Pieces) -> Result<(), ModelError> {
        self.event(None, body, out)
    }
}

impl Lines {
    /// Adds a call, which is always whole.
    fn call(&mut self, call: Call<'_>, out: &mut Pieces) -> Result<(), ModelError> {
        if self.calls >= MAX_CALLS {
            return Err(ModelError::TooManyCalls { max: MAX_CALLS });
        }
        let arguments = call.function.arguments.map_or("", RawValue::get);
        out.call(CallPiece {
            index: Some(self.calls),
            id: call.id.map(Cow::into_owned),
            name: call.function.name.map(Cow::into_owned),
            arguments: arguments.to_owned(),
        });
        self.calls += 1;
        Ok(())
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
    done: Option<bool>,
    #[serde(borrow)]
    done_reason: Option<Cow<'a, str>>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
