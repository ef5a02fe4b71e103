//! [`Scripted`]: a deterministic model that answers by rules, without a network.

mod plan;
mod words;

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role};

use super::{CallPiece, ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError, Usage};
use crate::assistant::FAILED;
use crate::assistant::conversation::estimate;

/// The answer if no rule applies.
pub const HELP: &str =
    "I am a scripted model: ask me to count, for the time, for dice, or to search";

/// The answer to `show markdown`.
const SAMPLE: &str = include_str!("scripted/sample.md");

rpc_core::config! {
    /// A model that answers by rules: it counts, calls the tools that a text asks for, repeats their results, states the
    /// facts in its instructions, and describes images by type and size. `show markdown` gives a sample. A coding agent
    /// carries out a plan (`plan: read a.txt; run make`). Like real models, it streams a word at a time and reports its
    /// usage.
    ///
    /// With [`with_commands`](Self::with_commands) a text can also be a command:
    ///
    /// | text | what happens |
    /// |---|---|
    /// | `!tool NAME {json}` | it calls that tool, whether offered or not, and repeats what it says; several lines make several calls |
    /// | `!slow N [MILLISECONDS]` | it says N words with a pause before each, by default 100 ms |
    /// | `!think TEXT` | it thinks aloud, and says it |
    /// | `!fail [TEXT]` | the provider fails before it has said anything |
    /// | `!break` | the answer breaks off after some words |
    #[derive(Clone, Debug)]
    pub struct Scripted {
        /// The pause before each piece of an answer. Default none.
        pub pace: Duration = Duration::ZERO => with_pace,
        /// Whether it follows commands. Default no, because commands can make it slow.
        pub commands: bool = false => with_commands,
        /// Whether it repeats text that it does not understand. Default no: it lists what it understands.
        pub echo: bool = false => with_echo,
    }
}

#[async_trait]
impl ChatModel for Scripted {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let asked = |message: &&ChatMessage| message.role == Role::User;
        let at = request.messages.iter().rposition(asked).unwrap_or_default();
        let since = request.messages.get(at..).unwrap_or_default();
        let (question, since) = since.split_first().unzip();
        let content = question.map(|it| it.content.clone()).unwrap_or_default();
        let text = content.text();
        let results = results(since.unwrap_or_default());
        let (order, rest) = split_word(if self.commands { text.trim() } else { "" });
        let mut pace = self.pace;
        let mut error = None;
        let pieces = match order {
            "!tool" if results.is_empty() => calls(&ordered(&text), 0),
            "!slow" => {
                let (count, pause) = split_word(rest);
                pace = Duration::from_millis(pause.parse().unwrap_or(100).min(10_000));
                spoken(&numbers(count.parse().unwrap_or(10).min(10_000)))
            }
            "!think" => {
                let thought = Delta::Thought(format!("shall I say {rest:?}?"));
                [vec![thought], spoken(rest)].concat()
            }
            "!fail" if rest.is_empty() => {
                return Err(ModelError::broken("told to fail".to_owned()));
            }
            "!fail" => return Err(ModelError::broken(rest.to_owned())),
            "!break" => {
                error = Some(Err(ModelError::Cut));
                vec![Delta::Text("so far so good".to_owned())]
            }
            _ => answer(&request, &content, &results, self.echo),
        };
        let pieces = billed(&request, pieces).into_iter().map(Ok).chain(error);
        let paced = stream::iter(pieces).then(move |piece| async move {
            if matches!(piece, Ok(Delta::Text(_) | Delta::ToolCall(_))) && !pace.is_zero() {
                tokio::time::sleep(pace).await;
            }
            piece
        });
        Ok(paced.boxed())
    }
}

/// Adds the usage to an answer: the tokens read at the beginning, all tokens before the end.
fn billed(request: &ChatRequest<'_>, mut pieces: Vec<Delta>) -> Vec<Delta> {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let prompt = count(request.messages.iter().copied().map(estimate).sum());
    let usage = |completion| Delta::Usage(Usage { prompt, completion });
    let said = pieces
        .iter()
        .filter(|it| matches!(it, Delta::Text(_) | Delta::ToolCall(_)));
    let completion = count(said.count());
    if let Some(Delta::Finish(_)) = pieces.last() {
        pieces.insert(pieces.len() - 1, usage(completion));
    }
    pieces.insert(0, usage(0));
    pieces
}

/// Returns the results of the tools as text, each with whether it is a failure.
fn results(since: &[&ChatMessage]) -> Vec<(String, bool)> {
    let results = since.iter().filter(|message| message.role == Role::Tool);
    let texts = results.map(|message| message.content.text());
    texts
        .map(|text| match text.strip_prefix(FAILED) {
            Some(why) => (why.to_owned(), true),
            None => (
                found(&text).unwrap_or_else(|| text.trim_end().to_owned()),
                false,
            ),
        })
        .collect()
}

/// Returns the result of a search as text.
fn found(result: &str) -> Option<String> {
    let value: Value = serde_json::from_str(result).ok()?;
    let lines = value
        .get("found")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str);
    let lines: Vec<_> = lines.map(|line| format!("«{line}»")).collect();
    Some(match lines.len() {
        0 => "I found nothing".to_owned(),
        _ => format!("I found {}", lines.join(", ")),
    })
}

fn answer(
    request: &ChatRequest<'_>,
    content: &Content,
    results: &[(String, bool)],
    echo: bool,
) -> Vec<Delta> {
    let text = &*content.text();
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name() == name);
    if let Some(next) = plan::next(text, results).filter(|_| offered("checklist")) {
        return match next {
            Ok(call) => calls(&[call], results.len()),
            Err(text) => spoken(&text),
        };
    }
    if !results.is_empty() {
        let texts: Vec<&str> = results.iter().map(|(text, _)| &**text).collect();
        return spoken(&texts.join("; "));
    }
    let images = images(content);
    if !images.is_empty() {
        return spoken(&format!("I see {}", images.join(" and ")));
    }
    let wanted = words::wanted(text, &offered);
    if !wanted.is_empty() {
        return calls(&wanted, 0);
    }
    let has = |word: &str| words::words(text).any(|known| known == word);
    if has("show") && has("markdown") {
        return spoken(SAMPLE.trim_end());
    }
    if has("count") {
        let to = words::words(text).find_map(|word| word.parse().ok());
        let counted = numbers(to.unwrap_or(3).min(20));
        let nick = text.split_once(": ").map(|(nick, _)| format!("{nick}, "));
        let nick = nick.unwrap_or_default();
        return spoken(&format!("{nick}I count: {counted} - done"));
    }
    let asks = has("know") || has("remember") || has("my") && text.trim_end().ends_with('?');
    if let Some(facts) = facts(request).filter(|_| asks) {
        return spoken(&format!("I know: {facts}"));
    }
    match echo && !text.trim().is_empty() {
        true => spoken(text),
        false => spoken(HELP),
    }
}

/// Returns the numbers from 1.
fn numbers(to: u32) -> String {
    let numbers: Vec<_> = (1..=to.max(1)).map(|number| number.to_string()).collect();
    numbers.join(" ")
}

/// Returns the facts in the instructions.
fn facts(request: &ChatRequest<'_>) -> Option<String> {
    let messages = request.messages.iter();
    let mut systems = messages.filter(|message| message.role == Role::System);
    systems.find_map(|message| {
        let text = message.content.text();
        let lines = text.split_once("Known facts:")?.1.lines();
        let lines = lines.map(|line| line.trim_start_matches(['-', ' ']));
        let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    })
}

/// Describes the images of a message, as blocks or in the text, by type and size.
fn images(content: &Content) -> Vec<String> {
    let blocks = match content {
        Content::Blocks(blocks) => blocks.as_slice(),
        _ => &[],
    };
    let as_blocks = blocks.iter().filter_map(|block| match block {
        Block::ImageUrl(url) => Some(&**url),
        _ => None,
    });
    let text = content.text();
    let inline = text.split("[image: ").skip(1);
    let inline = inline.filter_map(|rest| Some(rest.split_once(']')?.0));
    let describe = |url: &str| {
        let data = url.strip_prefix("data:")?.split_once(";base64,");
        let (kind, data) = data?;
        let bytes = data.trim_end_matches('=').len() * 3 / 4;
        Some(format!("an image of type {kind} with {bytes} bytes"))
    };
    let all = as_blocks.chain(inline);
    all.map(|url| describe(url).unwrap_or_else(|| format!("an image at {url}")))
        .collect()
}

/// Returns the calls that the lines of a text order.
fn ordered(text: &str) -> Vec<(String, String)> {
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("!tool "));
    lines
        .map(|call| match split_word(call.trim()) {
            (name, "") => (name.to_owned(), "{}".to_owned()),
            (name, arguments) => (name.to_owned(), arguments.to_owned()),
        })
        .collect()
}

/// Returns the first word and the text after it.
fn split_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Returns a text in pieces of a word, and the end.
fn spoken(text: &str) -> Vec<Delta> {
    let words = text.split_inclusive(' ').map(str::to_owned);
    let end = Delta::Finish(Finish::Stop);
    words.map(Delta::Text).chain([end]).collect()
}

/// Returns calls, with ids that count from a number.
fn calls(wanted: &[(String, String)], from: usize) -> Vec<Delta> {
    let pieces = wanted.iter().enumerate().map(|(index, (name, arguments))| {
        Delta::ToolCall(CallPiece {
            index: Some(index),
            id: Some(format!("call_{}", from + index)),
            name: Some(name.clone()),
            arguments: arguments.clone(),
            ..CallPiece::default()
        })
    });
    pieces.chain([Delta::Finish(Finish::ToolCalls)]).collect()
}

#[cfg(test)]
mod tests;
