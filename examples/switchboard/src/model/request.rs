//! [`acceptable`]: makes a request that any provider takes out of any conversation; and its [`body`].

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role, ToolCall, ToolCallId};
use snek_proto::llm::image::detect_mime;
use snek_proto::llm::tool::ToolDefinition;

use super::extra::{self, FROM, ID};
use super::{ChatRequest, ModelError};
use crate::assistant::FAILED;

/// The placeholder for a missing message of the user.
pub(super) const NOTHING: &str = "(no text)";
/// The longest id of a call, and the longest name of a tool.
const MAX_ID: usize = 40;
const MAX_NAME: usize = 64;

/// Returns the body of a request for a streamed answer. The parameters of its tools stay in order.
pub(super) fn body<T: Serialize>(
    model: &str,
    messages: Vec<Value>,
    tools: &[T],
    mut more: Value,
) -> Result<Bytes, ModelError> {
    #[derive(Serialize)]
    struct Body<'a, T> {
        #[serde(flatten)]
        more: Value,
        model: &'a str,
        messages: Vec<Value>,
        stream: bool,
        #[serde(skip_serializing_if = "<[T]>::is_empty")]
        tools: &'a [T],
    }
    if let Some(members) = more.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    let stream = true;
    let body = Body {
        more,
        model,
        messages,
        stream,
        tools,
    };
    Ok(serde_json::to_vec(&body).map_err(ModelError::bad)?.into())
}

/// Returns a conversation that every provider takes.
///
/// All instructions come first and in one message. Then the user begins, and the sides take turns: messages of one
/// side are joined. Each call has an id of its own, an acceptable name, an object as arguments, and directly behind it its one
/// result. An image has the type of its bytes. What only the provider of an answer knows is kept for the `origin`
/// alone.
pub(super) fn acceptable(request: &ChatRequest<'_>, origin: &str) -> Vec<ChatMessage> {
    let mut out: Vec<ChatMessage> = Vec::new();
    let systems = request.messages.iter().filter(|it| it.role == Role::System);
    for system in systems.filter(|it| !is_blank(&it.content)) {
        push(
            &mut out,
            ChatMessage::system(system.content.text().into_owned()),
        );
    }
    let first = out.len();
    let mut ids = HashSet::new();
    for (at, message) in request.messages.iter().enumerate() {
        if matches!(message.role, Role::System | Role::Tool) {
            continue;
        }
        let mut message = (*message).clone();
        message.tool_call_id = None;
        if message.role != Role::Assistant {
            message.tool_calls.clear();
        }
        if origin.is_empty() || message.extra.get(FROM) != Some(&origin.into()) {
            extra::clear(&mut message);
        }
        if let Content::Blocks(blocks) = &mut message.content {
            blocks.iter_mut().for_each(label);
        }
        let behind = request.messages.iter().skip(at + 1);
        let behind = behind.take_while(|it| it.role != Role::Assistant);
        let mut results: Vec<_> = behind.filter(|it| it.role == Role::Tool).collect();
        let mut answers = Vec::new();
        for call in &mut message.tool_calls {
            let id = Some(&call.id);
            let found = results.iter().position(|it| it.tool_call_id.as_ref() == id);
            let result = found.map(|at| results.remove(at).content.clone());
            let result = result.unwrap_or_else(|| format!("{FAILED}it was not run").into());
            call.id = acceptable_id(call, &ids);
            ids.insert(call.id.clone());
            call.name = acceptable_name(&call.name, request.tools);
            if !is_object(&call.arguments) {
                "{}".clone_into(&mut call.arguments);
            }
            let mut answer = ChatMessage::tool(&*call.id, "");
            answer.content = result;
            answers.push(answer);
        }
        push(&mut out, message);
        out.extend(answers);
    }
    if out.len() == first {
        out.push(ChatMessage::user(NOTHING));
    }
    for message in &mut out {
        if message.role == Role::User && is_blank(&message.content) {
            message.content = NOTHING.into();
        }
    }
    out
}

/// Returns a conversation with words in place of the calls with which the `origin` has given nothing, if there are any.
pub(super) fn in_words(request: &ChatRequest<'_>, origin: &str) -> Option<Vec<ChatMessage>> {
    let mut names = HashMap::new();
    let out = request.messages.iter().map(|message| {
        let mut message = (*message).clone();
        let of_call = message.tool_call_id.as_ref();
        if let Some(name) = of_call.and_then(|id| names.get(id)) {
            return ChatMessage::user(format!("({name} returned: {})", message.content.text()));
        }
        if !extra::is_given(&message, origin) {
            let mut text = message.content.text().into_owned();
            for call in std::mem::take(&mut message.tool_calls) {
                text += &format!("\n(called {} with {})", call.name, call.arguments);
                names.insert(call.id, call.name);
            }
            message.content = text.trim_start().into();
        }
        message
    });
    let out = out.collect();
    (!names.is_empty()).then_some(out)
}

/// Adds a message, or joins it with the last one if that is of the same side.
fn push(out: &mut Vec<ChatMessage>, message: ChatMessage) {
    let is_empty = is_blank(&message.content) && message.tool_calls.is_empty();
    match out.last_mut() {
        Some(last) if last.role == message.role => {
            last.content = match (std::mem::take(&mut last.content), message.content) {
                (one, other) if is_blank(&other) => one,
                (one, other) if is_blank(&one) => other,
                (Content::Text(one), Content::Text(other)) => format!("{one}\n\n{other}").into(),
                (one, other) => [blocks(one), blocks(other)].concat().into(),
            };
            last.tool_calls.extend(message.tool_calls);
            last.extra.extend(message.extra);
        }
        _ if message.role != Role::Assistant => out.push(message),
        _ if is_empty => {}
        Some(last) if last.role != Role::System => out.push(message),
        _ => out.extend([ChatMessage::user(NOTHING), message]),
    }
}

fn is_blank(content: &Content) -> bool {
    match content {
        Content::Blocks(blocks) => blocks
            .iter()
            .all(|it| matches!(it, Block::Text(text) if text.trim().is_empty())),
        other => other.text().trim().is_empty(),
    }
}

fn blocks(content: Content) -> Vec<Block> {
    match content {
        Content::Text(text) => vec![Block::Text(text)],
        Content::Blocks(blocks) => blocks,
        _ => Vec::new(),
    }
}

/// Names an image by its bytes, whatever it was named by.
fn label(block: &mut Block) {
    let Block::ImageUrl(url) = block else {
        return;
    };
    let data = url.strip_prefix("data:");
    let Some((kind, data)) = data.and_then(|it| it.split_once(";base64,")) else {
        return;
    };
    let begin = data.get(..data.len().min(64) / 4 * 4).unwrap_or_default();
    let begin = STANDARD.decode(begin).unwrap_or_default();
    // This name counts only if the bytes tell nothing.
    let found = detect_mime("image.ief?", &begin);
    if found != "image/ief" && found != kind {
        *url = format!("data:{found};base64,{data}");
    }
}

/// Returns an id that is short, and is not one of the others: the one that the provider gave if it is that.
fn acceptable_id(call: &ToolCall, others: &HashSet<ToolCallId>) -> ToolCallId {
    let own = call.extra.get(ID).and_then(Value::as_str);
    let new = (0..=others.len()).map(|number| ToolCallId::new(format!("call_{number}")));
    let ids = own.into_iter().chain([&*call.id]).map(ToolCallId::new);
    let is_free = |id: &ToolCallId| (1..=MAX_ID).contains(&id.len()) && !others.contains(id);
    ids.chain(new).find(is_free).unwrap_or_default()
}

/// Returns a name that every provider takes: the model's own if it is one, the tool's, or the letters of the model's.
fn acceptable_name(out: &str, tools: &[ToolDefinition]) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = |name: &str| (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_part);
    let tool = find_tool(tools, out).map(ToolDefinition::name);
    if let Some(name) = [Some(out), tool].into_iter().flatten().find(|it| fits(it)) {
        return name.to_owned();
    }
    let out = if out.is_empty() { "_" } else { out };
    let letters = out.chars().map(|c| if is_part(c) { c } else { '_' });
    letters.take(MAX_NAME).collect()
}

/// Returns the tool that a model means: by its letters and digits, with or without what other
/// programs put around it, as in `functions.NAME:0`.
pub(crate) fn find_tool<'a>(tools: &'a [ToolDefinition], out: &str) -> Option<&'a ToolDefinition> {
    let letters = |name: &str| {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.collect::<String>().to_ascii_lowercase()
    };
    let exact = tools.iter().find(|tool| tool.name() == out);
    exact.or_else(|| {
        let out = out.trim();
        // Other programs put names around it, and marks and numbers behind it.
        let is_name = |c: char| c.is_alphanumeric() || "_-.:/".contains(c);
        let mut runs = out.split(|c| !is_name(c)).filter(|it| !it.is_empty());
        let run = runs.next().filter(|_| !out.contains(char::is_whitespace));
        let parts = run.unwrap_or_default().rsplit(['.', ':', '/']);
        let mut parts = parts.filter_map(|it| it.rsplit("__").next());
        let end = parts.find(|it| it.contains(char::is_alphabetic));
        [Some(out), end].into_iter().flatten().find_map(|out| {
            let out = letters(out);
            let is_meant = |tool: &&ToolDefinition| !out.is_empty() && letters(tool.name()) == out;
            let mut meant = tools.iter().filter(is_meant);
            meant.next().filter(|_| meant.next().is_none())
        })
    })
}

/// Returns the schema of a tool's parameters, in the order of its definition.
pub(super) fn parameters(definition: &ToolDefinition) -> Result<Box<RawValue>, ModelError> {
    #[derive(Deserialize)]
    struct Outer {
        function: Inner,
    }
    #[derive(Deserialize)]
    struct Inner {
        parameters: Box<RawValue>,
    }
    let json = serde_json::to_string(definition).map_err(ModelError::bad)?;
    let outer: Outer = serde_json::from_str(&json).map_err(ModelError::bad)?;
    Ok(outer.function.parameters)
}

/// Returns the arguments of an acceptable call.
pub(super) fn object(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_default()
}

/// Returns whether the arguments are a JSON object.
pub(crate) fn is_object(arguments: &str) -> bool {
    serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object())
}
