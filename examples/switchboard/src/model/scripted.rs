//! [`Scripted`]: a deterministic model that answers by rules, without a network.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role};

use super::{CallPiece, ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError, Usage};
use crate::assistant::FAILED;
use crate::assistant::conversation::estimate;

/// The answer if no rule applies.
pub const HELP: &str = "I am a scripted model: ask me to count, or to show markdown. Choose a real one with --provider, \
    or with provider below [agent] in a gateway's file";

/// The tool that a gateway offers when it asks what of a turn is worth knowing later.
pub const REMEMBER: &str = "remember";

/// The answer to `show markdown`.
const SAMPLE: &str = include_str!("scripted/sample.md");

rpc_core::config! {
    /// A model that answers by rules: it counts, repeats the results of tools, and describes images by type and size.
    /// `show markdown` gives a sample. Like real models, it streams a word at a time and reports its usage.
    ///
    /// With [`with_commands`](Self::with_commands) a text can also be a command. Where a terminal has commands of its
    /// own, it begins with `!` or a space.
    ///
    /// | text | what happens |
    /// |---|---|
    /// | `/call NAME JSON` | it calls that tool, whether offered or not, and repeats the result; several lines make several calls |
    /// | `/call remember JSON` | a gateway learns the `subject`, `relation` and `value` in it after the turn |
    /// | `/slow N [MILLISECONDS]` | it says N words with a pause before each, by default 100 ms |
    /// | `/think TEXT` | it thinks aloud, and says it |
    /// | `/fail [TEXT]` | the provider fails before it has said anything |
    /// | `/break` | the answer breaks off after some words |
    #[derive(Clone, Debug)]
    pub struct Scripted {
        /// The pause before each piece of an answer. Default none.
        pub pace: Duration = Duration::ZERO => with_pace,
        /// Whether it follows commands. Default no, because commands can make it slow.
        pub commands: bool = false => with_commands,
        /// Whether it repeats other text, and at first thinks [`HELP`]. Default no: then that is the answer.
        pub echo: bool = false => with_echo,
    }
}

#[async_trait]
impl ChatModel for Scripted {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let asked = |message: &&ChatMessage| message.role == Role::User;
        let at = request.messages.iter().rposition(asked).unwrap_or_default();
        let (before, since) = request.messages.split_at(at);
        let (question, since) = since.split_first().unzip();
        let content = question.map(|it| it.content.clone()).unwrap_or_default();
        let is_lesson = request.tools.iter().any(|it| it.name() == REMEMBER);
        if is_lesson {
            return Ok(self.lesson(&request, &content.text()));
        }
        let text = content.text();
        let results = results(since.unwrap_or_default());
        let command = command(&text).filter(|_| self.commands);
        let (order, rest) = command.unwrap_or_default();
        let mut pace = self.pace;
        let mut error = None;
        let pieces = match order {
            _ if !results.is_empty() => spoken(&results.join("; ")),
            "call" => match calls(&text, |name| name != REMEMBER) {
                calls if calls.len() == 1 => spoken("noted"),
                calls => calls,
            },
            "slow" => {
                let (count, pause) = split_word(rest);
                pace = Duration::from_millis(pause.parse().unwrap_or(100).min(10_000));
                spoken(&numbers(count.parse().unwrap_or(10).min(10_000)))
            }
            "think" => {
                let thought = Delta::Thought(format!("shall I say {rest:?}?"));
                [vec![thought], spoken(rest)].concat()
            }
            "fail" if rest.is_empty() => {
                return Err(ModelError::broken("told to fail".to_owned()));
            }
            "fail" => return Err(ModelError::broken(rest.to_owned())),
            "break" => {
                error = Some(Err(ModelError::Cut));
                vec![Delta::Text("so far so good".to_owned())]
            }
            _ => match (answer(&content), text.trim()) {
                (Some(answer), _) => spoken(&answer),
                (None, echo) if self.echo && !echo.is_empty() => {
                    let is_first = before.iter().all(|it| it.role != Role::Assistant);
                    let help = is_first.then(|| Delta::Thought(HELP.to_owned()));
                    help.into_iter().chain(spoken(echo)).collect()
                }
                _ => spoken(HELP),
            },
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

impl Scripted {
    /// Returns the calls that the question of a turn orders to remember something. Without one it takes no tokens.
    fn lesson(&self, request: &ChatRequest<'_>, turn: &str) -> Deltas {
        let turn: Value = serde_json::from_str(turn).unwrap_or_default();
        let question = turn["question"].as_str().filter(|_| self.commands);
        let calls = calls(question.unwrap_or_default(), |name| name == REMEMBER);
        let pieces = match calls.len() {
            1 => vec![Delta::Usage(Usage::default()), Delta::Finish(Finish::Stop)],
            _ => billed(request, calls),
        };
        stream::iter(pieces.into_iter().map(Ok)).boxed()
    }
}

/// Adds the usage to an answer: the tokens read at the beginning, all tokens before the end.
fn billed(request: &ChatRequest<'_>, mut pieces: Vec<Delta>) -> Vec<Delta> {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let prompt = count(request.messages.iter().copied().map(estimate).sum());
    let usage = |completion| Delta::Usage(Usage { prompt, completion });
    let words = pieces
        .iter()
        .filter(|it| matches!(it, Delta::Text(_) | Delta::ToolCall(_)));
    let completion = count(words.count());
    if let Some(Delta::Finish(_)) = pieces.last() {
        pieces.insert(pieces.len() - 1, usage(completion));
    }
    pieces.insert(0, usage(0));
    pieces
}

/// Returns the results of the tools as text, without the mark of a failure.
fn results(since: &[&ChatMessage]) -> Vec<String> {
    let results = since.iter().filter(|message| message.role == Role::Tool);
    let texts = results.map(|message| message.content.text());
    texts
        .map(|text| {
            text.strip_prefix(FAILED)
                .unwrap_or(&text)
                .trim_end()
                .to_owned()
        })
        .collect()
}

/// Returns the answer to a text that a rule knows.
fn answer(content: &Content) -> Option<String> {
    if let images @ [_, ..] = &*images(content) {
        return Some(format!("I see {}", images.join(" and ")));
    }
    let text = content.text();
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words.map(str::to_lowercase).collect();
    let has = |word: &str| words.iter().any(|known| known == word);
    if has("show") && has("markdown") {
        return Some(SAMPLE.trim_end().to_owned());
    }
    let to = words.iter().find_map(|word| word.parse().ok());
    let counted = has("count").then(|| numbers(to.unwrap_or(3).min(20)))?;
    let nick = text.split_once(": ").map(|(nick, _)| format!("{nick}, "));
    let nick = nick.unwrap_or_default();
    Some(format!("{nick}I count: {counted} - done"))
}

/// Returns the numbers from 1.
fn numbers(to: u32) -> String {
    let numbers: Vec<_> = (1..=to.max(1)).map(|number| number.to_string()).collect();
    numbers.join(" ")
}

/// Describes the images of a message by type and size.
fn images(content: &Content) -> Vec<String> {
    let Content::Blocks(blocks) = content else {
        return Vec::new();
    };
    let describe = |url: &str| match url.split_once(";base64,") {
        Some((kind, data)) => {
            let kind = kind.trim_start_matches("data:");
            let bytes = data.trim_end_matches('=').len() * 3 / 4;
            format!("an image of type {kind} with {bytes} bytes")
        }
        None => format!("an image at {url}"),
    };
    let images = blocks.iter().filter_map(|block| match block {
        Block::ImageUrl(url) => Some(describe(url)),
        _ => None,
    });
    images.collect()
}

/// Returns the name of a command, and what follows it.
fn command(text: &str) -> Option<(&str, &str)> {
    Some(split_word(text.trim().strip_prefix(['/', '!'])?))
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

/// Returns the calls of some tools that the lines of a text order.
fn calls(text: &str, is_meant: fn(&str) -> bool) -> Vec<Delta> {
    let commands = text.lines().filter_map(command);
    let orders = commands.filter(|(name, _)| *name == "call");
    let orders = orders.map(|(_, call)| split_word(call));
    let orders = orders.filter(|(name, _)| is_meant(name)).enumerate();
    let pieces = orders.map(|(index, (name, arguments))| {
        Delta::ToolCall(CallPiece {
            index: Some(index),
            id: Some(format!("call_{index}")),
            name: Some(name.to_owned()),
            arguments: if arguments.is_empty() {
                "{}"
            } else {
                arguments
            }
            .to_owned(),
            ..CallPiece::default()
        })
    });
    pieces.chain([Delta::Finish(Finish::ToolCalls)]).collect()
}

#[cfg(test)]
mod tests;
