//! Conversations as texts: what is read from them, and what is added to them.

use rpc_core::json::{find_member, parse};
use rpc_core::{Json, Limits, Str, Text};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde::ser::Serializer;
use serde_json::value::RawValue;

use super::Prompt;
use crate::frame::Session;
use crate::limits::{ULW_TURNS, ULW_TURNS_USED};

/// An encoded event, as a value.
pub(super) struct Event<'a>(pub(super) &'a Text);

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(self.0.as_str()) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_unit(),
        }
    }
}

/// Returns a session between runs with the events of its interrupted run and with acknowledged,
/// unread inputs. Its time of change is now, so that it is newer than its clients' copies, which lack
/// them.
pub(super) fn with_rest<'a>(
    session: &Json,
    events: impl Iterator<Item = &'a Text>,
    inputs: &[Prompt],
    updated: f64,
) -> Json {
    let limits = Limits::unlimited();
    let Ok(mut whole) = Session::parse(session.get(), &limits) else {
        return session.clone();
    };
    let messages = inputs.iter().map(user_message);
    let added = whole.append("messages", messages);
    added
        .and_then(|()| whole.append("trace", events.map(Event)))
        .and_then(|()| whole.set("updated", &updated))
        .and_then(|()| Json::of(&whole))
        .unwrap_or_else(|_| session.clone())
}

/// Returns a session in another mode, changed now, so that it is newer than its clients' copies.
pub(super) fn with_mode(
    session: Option<&Json>,
    mode: &Json,
    turns: Option<&Json>,
    updated: f64,
) -> Option<Json> {
    let limits = Limits::unlimited();
    let whole = session.and_then(|session| Session::parse(session.get(), &limits).ok());
    let mut whole = whole.unwrap_or_default();
    whole.append("messages", [(); 0]).ok()?;
    whole.set("mode", mode).ok()?;
    match turns {
        Some(turns) => whole.set(ULW_TURNS, turns).ok()?,
        None => whole.remove(ULW_TURNS),
    }
    whole.remove(ULW_TURNS_USED);
    whole.set("updated", &updated).ok()?;
    Json::of(&whole).ok()
}

/// Returns a session without one of its members.
pub(super) fn without(session: &Json, name: &str) -> Option<Json> {
    let limits = Limits::unlimited();
    let mut whole = Session::parse(session.get(), &limits).ok()?;
    whole.remove(name);
    Json::of(&whole).ok()
}

/// Returns the number of messages of a session.
pub(super) fn count_messages(session: &str) -> usize {
    let messages = find_member(session, "messages");
    let messages =
        messages.and_then(|list| parse::<Vec<IgnoredAny>>(list.get(), &Limits::unlimited()).ok());
    messages.map_or(0, |list| list.len())
}

/// Returns the images of the last message of a session; `None` if it is not the user's.
pub(super) fn images_of_last_prompt(session: &Json) -> Option<Vec<Str>> {
    let messages = find_member(session.get(), "messages")?;
    let messages = parse::<Vec<&RawValue>>(messages.get(), &Limits::unlimited()).ok()?;
    let last = messages.last()?.get();
    if find_member(last, "role")?.as_str()? != "user" {
        return None;
    }
    let parts = find_member(last, "content")?;
    let Ok(parts) = parse::<Vec<&RawValue>>(parts.get(), &Limits::unlimited()) else {
        return Some(Vec::new());
    };
    let image = |part: &&RawValue| {
        let url = find_member(find_member(part.get(), "image_url")?.get(), "url")?;
        Some(Str::from(&*url.as_str()?))
    };
    Some(parts.iter().filter_map(image).collect())
}

/// Returns the text of an agent's message that is only text.
pub(super) fn agents_text(message: &str) -> Option<String> {
    let member = |name| find_member(message, name);
    let is_agent = member("role")?.as_str()? == "assistant" && member("tool_calls").is_none();
    let content = member("content").filter(|_| is_agent)?;
    content.as_str().map(std::borrow::Cow::into_owned)
}

/// A message in the form of the models: a text, or parts if there are images.
#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Url<'a> },
}

#[derive(Serialize)]
struct Url<'a> {
    url: &'a str,
}

fn message(role: &'static str, content: Content<'_>) -> Json {
    // Texts are JSON.
    Json::of(&Message { role, content }).unwrap_or_default()
}

pub(super) fn agent_message(text: &str) -> Json {
    message("assistant", Content::Text(text))
}

pub(super) fn user_message(prompt: &Prompt) -> Json {
    let text = &*prompt.text;
    let content = match prompt.images.is_empty() {
        true => Content::Text(text),
        false => {
            let images = prompt.images.iter().map(|url| Part::ImageUrl {
                image_url: Url { url },
            });
            Content::Parts(std::iter::once(Part::Text { text }).chain(images).collect())
        }
    };
    message("user", content)
}
