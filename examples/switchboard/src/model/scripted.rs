//! [`Scripted`]: a deterministic model that answers by rules, without a network.

mod code;
mod commands;
mod work;

use std::fmt::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role};

use self::code::Next;
use self::commands::Command;
use super::{CallPiece, ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError, Usage};
use crate::assistant::FAILED;
use crate::assistant::conversation::estimate;

/// The answer if no rule applies.
pub const HELP: &str =
    "I am a scripted model: ask me to count, for the time, for dice, or to search";

const COUNTING: &str = "I count:";
/// The answer to `show markdown`.
const SAMPLE: &str = include_str!("scripted/sample.md");

rpc_core::config! {
    /// A model that answers by rules: it counts, calls the tools `time` (or `clock`), `dice`, `search`,
    /// `echo` and those of an agent, repeats their results, states the facts in its instructions, and
    /// describes images by type and size. `show markdown` gives a sample. With the tools of a coding agent it reads, searches, edits
    /// and runs as requested, and carries out a plan (`plan: read a.txt; run make`). Like real models,
    /// it streams one or two words at a time and reports its usage.
    ///
    /// With [`with_commands`](Self::with_commands) a text can also be a command:
    ///
    /// | text | what happens |
    /// |---|---|
    /// | `!tool NAME {json}` | it calls that tool, whether offered or not, and repeats what it says; several lines make several calls |
    /// | `!loop NAME {json}` | it calls that tool again and again, as long as tools are offered |
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
        let mut pace = self.pace;
        let question = question(&request).filter(|_| self.commands);
        let command = question.and_then(|(question, since)| {
            let text = question.content.text();
            let command = commands::parse(&text)?;
            match command {
                Command::Slow { pause, .. } => pace = pause,
                Command::Fail(message) => {
                    return Some(Err(ModelError::broken(message)));
                }
                _ => {}
            }
            let pieces = command.answer(!request.tools.is_empty(), &results(since))?;
            Some(Ok(pieces))
        });
        let pieces = match command {
            Some(pieces) => pieces?,
            None => answer(&request, self.echo).into_iter().map(Ok).collect(),
        };
        let paced = stream::iter(billed(&request, pieces)).then(move |piece| async move {
            let is_said = matches!(piece, Ok(Delta::Text(_) | Delta::ToolCall(_)));
            if is_said && !pace.is_zero() {
                tokio::time::sleep(pace).await;
            }
            piece
        });
        Ok(paced.boxed())
    }
}

/// Adds the usage to an answer: the tokens read at the beginning, all tokens before the end.
fn billed(
    request: &ChatRequest<'_>,
    pieces: Vec<Result<Delta, ModelError>>,
) -> Vec<Result<Delta, ModelError>> {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let prompt = count(request.messages.iter().copied().map(estimate).sum());
    let usage = |completion| Ok(Delta::Usage(Usage { prompt, completion }));
    let said = |piece: &&Result<Delta, _>| matches!(piece, Ok(Delta::Text(_) | Delta::ToolCall(_)));
    let completion = count(pieces.iter().filter(said).count());
    let mut billed = vec![usage(0)];
    for piece in pieces {
        if matches!(piece, Ok(Delta::Finish(_))) {
            billed.push(usage(completion));
        }
        billed.push(piece);
    }
    billed
}

/// Returns the last message of a person, and the messages after it.
fn question<'r, 'a>(
    request: &'r ChatRequest<'a>,
) -> Option<(&'a ChatMessage, &'r [&'a ChatMessage])> {
    let asked = |message: &&ChatMessage| message.role == Role::User;
    let at = request.messages.iter().rposition(asked)?;
    match request.messages.get(at..)? {
        [question, since @ ..] => Some((question, since)),
        [] => None,
    }
}

/// Returns the results of the tools as text.
fn results(since: &[&ChatMessage]) -> Vec<String> {
    since
        .iter()
        .filter(|message| message.role == Role::Tool)
        .map(|message| result(&message.content.text()))
        .collect()
}

fn answer(request: &ChatRequest<'_>, echo: bool) -> Vec<Delta> {
    let Some((question, since)) = question(request) else {
        return spoken(HELP);
    };
    let results = results(since);
    if let Some(next) = code(request, question, &results) {
        return next;
    }
    if !results.is_empty() {
        return spoken(&results.join("; "));
    }
    let text = question.content.text();
    let (nick, text) = text.split_once(": ").unwrap_or(("", &text));
    let images = images(&question.content);
    if !images.is_empty() {
        return spoken(&format!("I see {}", images.join(" and ")));
    }
    let offered = |name: &str| {
        let mut tools = request.tools.iter();
        tools.any(|tool| tool.name() == name)
    };
    let work = work::wanted(text).filter(|(name, _)| offered(name));
    let mut wanted = work.map_or_else(|| wanted_tools(text), |it| vec![it]);
    for (name, _) in &mut wanted {
        if *name == "time" && !offered(name) {
            *name = "clock";
        }
    }
    if !wanted.is_empty() && wanted.iter().all(|(name, _)| offered(name)) {
        return calls(&wanted, 0);
    }
    let has = |known: &str| words(text).any(|word| word == known);
    if has("show") && has("markdown") {
        return spoken(SAMPLE.trim_end());
    }
    // What another one like this has counted is not counted again.
    if has("count") && !text.contains(COUNTING) {
        return spoken(&count(nick, text));
    }
    if asks_for_facts(text)
        && let Some(facts) = facts(request)
    {
        return spoken(&format!("I know: {facts}"));
    }
    if echo && !question.content.text().trim().is_empty() {
        return spoken(&question.content.text());
    }
    spoken(HELP)
}

/// Returns the answer to a text, with the tools of a coding agent.
fn code(
    request: &ChatRequest<'_>,
    question: &ChatMessage,
    results: &[String],
) -> Option<Vec<Delta>> {
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name() == name);
    if !offered("file-read") {
        return None;
    }
    let marked = results
        .iter()
        .map(|result| match result.strip_prefix(FAILED) {
            Some(why) => (why.to_owned(), true),
            None => (result.clone(), false),
        });
    let results: Vec<_> = marked.collect();
    Some(match code::next(&question.content.text(), &results)? {
        Next::Call(name, arguments) => calls(&[(name, arguments)], results.len()),
        Next::Say(text) => spoken(&text),
    })
}

/// Returns whether a text is like `what do you know of me?` or `what is my name?`.
fn asks_for_facts(text: &str) -> bool {
    let is_question = text.trim_end().ends_with('?');
    words(text).any(|word| match &*word {
        "know" | "remember" => true,
        "my" => is_question,
        _ => false,
    })
}

/// Returns the facts in the instructions.
fn facts(request: &ChatRequest<'_>) -> Option<String> {
    let messages = request.messages.iter();
    let mut texts = messages
        .filter(|message| message.role == Role::System)
        .map(|message| message.content.text());
    texts.find_map(|text| {
        let (_, facts) = text.split_once("Known facts:")?;
        let lines = facts
            .lines()
            .map(|line| line.trim_start_matches(['-', ' ']));
        let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    })
}

/// Returns the tools that the text asks for, with arguments.
fn wanted_tools(text: &str) -> Vec<(&'static str, String)> {
    let has = |known: &[&str]| words(text).any(|word| known.contains(&&*word));
    if let Some(message) = text.trim().strip_prefix("echo ") {
        let message = serde_json::json!({ "message": message.trim() });
        return vec![("echo", message.to_string())];
    }
    if has(&["search", "find", "said", "say"]) {
        let query = serde_json::json!({ "query": query(text) });
        return vec![("search", query.to_string())];
    }
    let mut wanted = Vec::new();
    if has(&["time", "clock", "late", "hour"]) {
        wanted.push(("time", "{}".to_owned()));
    }
    if has(&["dice", "roll", "throw"]) {
        let dice = words(text).find(|word| word.split_once('d').is_some_and(is_dice));
        let dice = serde_json::json!({ "dice": dice.unwrap_or_else(|| "1d6".to_owned()) });
        wanted.push(("dice", dice.to_string()));
    }
    wanted
}

fn is_dice((count, sides): (&str, &str)) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number(count) && number(sides)
}

/// Returns the lower-case words. Text in quotation marks is ignored, because others wrote it.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut own = String::new();
    for (number, part) in text.split(['«', '»']).enumerate() {
        if number % 2 == 0 {
            own.push_str(part);
        }
    }
    let words = own.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.into_iter()
}

/// Returns the text to search for: what follows the last of some words.
fn query(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let key = |word: &&str| ["search", "find", "for", "about"].contains(word);
    let after = words.iter().rposition(key).map_or(0, |at| at + 1);
    let rest = words.get(after..).unwrap_or_default().join(" ");
    let around = |c: char| c.is_ascii_punctuation();
    rest.trim_matches(around).to_owned()
}

fn count(nick: &str, text: &str) -> String {
    let to = words(text).find_map(|word| word.parse().ok());
    let to: u32 = to.unwrap_or(3).clamp(1, 20);
    let mut counted = match nick {
        "" => COUNTING.to_owned(),
        nick => format!("{nick}, {COUNTING}"),
    };
    for number in 1..=to {
        let _ = write!(counted, " {number}");
    }
    counted + " - done"
}

/// Returns the result of a tool as text.
fn result(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let Some(found) = value.get("found").and_then(Value::as_array) else {
        return text.to_owned();
    };
    let found: Vec<_> = found
        .iter()
        .filter_map(Value::as_str)
        .map(|line| format!("«{}»", line.replace(['«', '»'], "\"")))
        .collect();
    match found.as_slice() {
        [] => "I found nothing".to_owned(),
        [one] => format!("I found {one}"),
        many => format!("I found {} messages: {}", many.len(), many.join(", ")),
    }
}

/// Describes the images of a message, as blocks or in the text, by type and size.
fn images(content: &Content) -> Vec<String> {
    let blocks = match content {
        Content::Blocks(blocks) => blocks.as_slice(),
        _ => &[],
    };
    let as_blocks = blocks.iter().filter_map(|block| match block {
        Block::ImageUrl(url) => Some(describe(url)),
        _ => None,
    });
    let text = content.text();
    let inline = text.split("[image: ").skip(1);
    let inline = inline.filter_map(|rest| Some(describe(rest.split_once(']')?.0)));
    as_blocks.chain(inline).collect()
}

fn describe(url: &str) -> String {
    let data = url.strip_prefix("data:");
    let Some((mime, base64)) = data.and_then(|data| data.split_once(";base64,")) else {
        return format!("an image at {url}");
    };
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    format!("an image of type {mime} with {bytes} bytes")
}

/// Returns a text in pieces of a word, and the end.
fn spoken(text: &str) -> Vec<Delta> {
    let words = text.split_inclusive(' ').map(str::to_owned);
    let end = Delta::Finish(Finish::Stop);
    words.map(Delta::Text).chain([end]).collect()
}

/// Returns calls with interleaved pieces, and ids that count from a number.
fn calls(wanted: &[(impl AsRef<str>, String)], from: usize) -> Vec<Delta> {
    let mut deltas = Vec::new();
    for (index, (name, _)) in wanted.iter().enumerate() {
        deltas.push(Delta::ToolCall(CallPiece {
            index: Some(index),
            id: Some(format!("call_{}", from + index)),
            name: Some(name.as_ref().to_owned()),
            ..CallPiece::default()
        }));
    }
    for half in 0..2 {
        for (index, (_, arguments)) in wanted.iter().enumerate() {
            let middle = arguments.chars().count() / 2;
            let chars = arguments.chars();
            let piece = match half {
                0 => chars.take(middle).collect(),
                _ => chars.skip(middle).collect(),
            };
            deltas.push(Delta::ToolCall(CallPiece {
                index: Some(index),
                arguments: piece,
                ..CallPiece::default()
            }));
        }
    }
    deltas.push(Delta::Finish(Finish::ToolCalls));
    deltas
}

#[cfg(test)]
mod tests;
