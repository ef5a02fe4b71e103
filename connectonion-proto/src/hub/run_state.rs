//! [`RunState`]: the conversation of a session during a run.

use std::collections::VecDeque;

use rpc_core::json::{find_member, parse};
use rpc_core::{Instant, Json, Limits, Str, Text};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde::ser::Serializer;
use serde_json::value::RawValue;

use super::event::Now;
use crate::codec::to_json;
use crate::frame::Session;
use crate::limits::{ULW_TURNS, ULW_TURNS_USED};
use crate::replay::Entry;
use crate::session::{Prompt, RunId};

/// The additions of a run to a session. They stay separate until the whole session is needed, so
/// that adding a message or an event costs the same in long and short conversations.
pub(super) struct RunState {
    /// `None` until the prompt is stored.
    pub(super) run: Option<RunId>,
    pub(super) prompt: Prompt,
    /// The wall time of its start.
    pub(super) began: f64,
    pub(super) started: Instant,
    /// The session before the run.
    base: Option<Json>,
    pub(super) turn: u64,
    pub(super) iteration: u64,
    messages: Vec<Json>,
    pub(super) message_bytes: usize,
    /// The last message, if it is a text of the agent.
    last_said: Option<String>,
    trace: VecDeque<Text>,
    pub(super) trace_bytes: usize,
    /// Members set by the agent or a change of mode.
    members: Vec<(Str, Json)>,
    /// How many times the run was begun again.
    pub(super) reruns: u32,
    /// The acknowledged inputs, read or not, for the storage.
    pub(super) acknowledged: Vec<Prompt>,
    /// Storing the start of this run has failed, and possibly the end of the one before: the next
    /// record must include the session before it.
    pub(super) is_base_unstored: bool,
    /// The result is being stored.
    pub(super) is_ending: bool,
    /// Events that wait to be stored.
    pub(super) unstored: Vec<Entry>,
    /// Events are being stored.
    pub(super) is_storing: bool,
    /// The number and size of the events that were to be stored so far.
    pub(super) kept: usize,
    pub(super) kept_bytes: usize,
}

impl RunState {
    /// Begins a run, or begins it again so often, with a prompt that is the last message of `base`
    /// already.
    pub(super) fn new(base: Option<Json>, prompt: Prompt, reruns: Option<u32>, now: Now) -> Self {
        let turn = base.as_ref().and_then(|base| {
            let turn = find_member(base.get(), "turn")?;
            turn.get().parse::<u64>().ok()
        });
        let mut work = Self {
            run: None,
            began: now.unix,
            started: now.instant,
            base,
            turn: turn.unwrap_or_default(),
            reruns: reruns.unwrap_or_default(),
            iteration: 0,
            messages: Vec::new(),
            message_bytes: 0,
            last_said: None,
            trace: VecDeque::new(),
            trace_bytes: 0,
            members: Vec::new(),
            acknowledged: Vec::new(),
            is_base_unstored: false,
            is_ending: false,
            unstored: Vec::new(),
            is_storing: false,
            kept: 0,
            kept_bytes: 0,
            prompt,
        };
        if reruns.is_none() {
            work.turn = work.turn.saturating_add(1);
            work.push_message(user_message(&work.prompt));
        }
        work
    }

    /// Returns the session before this run.
    pub(super) const fn base(&self) -> Option<&Json> {
        self.base.as_ref()
    }

    pub(super) fn push_message(&mut self, message: Json) {
        self.last_said = agents_text(message.get());
        self.message_bytes += message.get().len();
        self.messages.push(message);
    }

    /// Adds the agent's answer, unless it is already the agent's last message.
    pub(super) fn say(&mut self, text: &str) {
        if !text.is_empty() && self.last_said.as_deref() != Some(text) {
            self.push_message(message("assistant", Content::Text(text)));
        }
    }

    pub(super) fn push_trace(&mut self, event: Text, max_bytes: usize) {
        self.trace_bytes += event.len();
        self.trace.push_back(event);
        while self.trace_bytes > max_bytes
            && let Some(oldest) = self.trace.pop_front()
        {
            self.trace_bytes -= oldest.len();
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Json) {
        match self.members.iter_mut().find(|(known, _)| *known == *name) {
            Some((_, place)) => *place = value,
            None => self.members.push((name.into(), value)),
        }
    }

    /// Sets the mode, and how many turns the user allows in it.
    pub(super) fn set_mode(&mut self, mode: Json, turns: Option<Json>) {
        self.set("mode", mode);
        for (name, value) in [(ULW_TURNS, turns), (ULW_TURNS_USED, None)] {
            if value.is_some() || self.get(name).is_some() {
                // Null is absent.
                self.set(name, value.unwrap_or_default());
            }
        }
    }

    /// Returns a current member.
    pub(super) fn get(&self, name: &str) -> Option<Json> {
        let set = self.members.iter().find(|(known, _)| *known == *name);
        set.map(|(_, value)| value.clone()).or_else(|| {
            let base = self.base.as_ref()?;
            find_member(base.get(), name)
        })
    }

    /// Returns the current session.
    pub(super) fn render(&self, session_id: &str, result: Option<&str>, updated: f64) -> Json {
        let whole = self.build(session_id, result, updated);
        // Everything in it is JSON already.
        whole.unwrap_or_default()
    }

    fn build(
        &self,
        session_id: &str,
        result: Option<&str>,
        updated: f64,
    ) -> Result<Json, rpc_core::Refused> {
        let limits = no_limits();
        let base = self.base.as_ref();
        let base = base.and_then(|base| Session::parse(base.get(), &limits).ok());
        let mut session = base.unwrap_or_default();
        session.set("session_id", session_id)?;
        session.append("messages", &self.messages)?;
        session.append("trace", self.trace.iter().map(Event))?;
        session.set("turn", &self.turn)?;
        session.set("user_prompt", &self.prompt.text)?;
        for (name, value) in &self.members {
            session.set(name, value)?;
        }
        session.set("iteration", &self.iteration)?;
        match result {
            Some(result) => session.set("result", result)?,
            None => session.remove("result"),
        }
        session.set("updated", &updated)?;
        to_json(&session)
    }
}

/// Returns limits for sessions: their contents came within the limits of a connection.
pub(super) fn no_limits() -> Limits {
    Limits::unlimited()
}

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
    let limits = no_limits();
    let Ok(mut whole) = Session::parse(session.get(), &limits) else {
        return session.clone();
    };
    let messages = inputs.iter().map(user_message);
    let added = whole.append("messages", messages);
    added
        .and_then(|()| whole.append("trace", events.map(Event)))
        .and_then(|()| whole.set("updated", &updated))
        .and_then(|()| to_json(&whole))
        .unwrap_or_else(|_| session.clone())
}

/// Returns a session in another mode, changed now, so that it is newer than its clients' copies.
pub(super) fn with_mode(
    session: Option<&Json>,
    mode: &Json,
    turns: Option<&Json>,
    updated: f64,
) -> Option<Json> {
    let limits = no_limits();
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
    to_json(&whole).ok()
}

/// Returns a session without one of its members.
pub(super) fn without(session: &Json, name: &str) -> Option<Json> {
    let limits = no_limits();
    let mut whole = Session::parse(session.get(), &limits).ok()?;
    whole.remove(name);
    to_json(&whole).ok()
}

/// Returns the number of messages of a session.
pub(super) fn count_messages(session: &str) -> usize {
    let messages = find_member(session, "messages");
    let messages =
        messages.and_then(|list| parse::<Vec<IgnoredAny>>(list.get(), &no_limits()).ok());
    messages.map_or(0, |list| list.len())
}

/// Returns the images of the last message of a session; `None` if it is not the user's.
pub(super) fn images_of_last_prompt(session: &Json) -> Option<Vec<Str>> {
    let messages = find_member(session.get(), "messages")?;
    let messages = parse::<Vec<&RawValue>>(messages.get(), &no_limits()).ok()?;
    let last = messages.last()?.get();
    if find_member(last, "role")?.as_str()? != "user" {
        return None;
    }
    let parts = find_member(last, "content")?;
    let Ok(parts) = parse::<Vec<&RawValue>>(parts.get(), &no_limits()) else {
        return Some(Vec::new());
    };
    let image = |part: &&RawValue| {
        let url = find_member(find_member(part.get(), "image_url")?.get(), "url")?;
        Some(Str::from(&*url.as_str()?))
    };
    Some(parts.iter().filter_map(image).collect())
}

/// Returns the text of an agent's message that is only text.
fn agents_text(message: &str) -> Option<String> {
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
    to_json(&Message { role, content }).unwrap_or_default()
}

/// Returns the user's message.
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
