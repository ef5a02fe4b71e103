//! [`Conversations`]: the messages of each channel, and how many of them a model gets.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rpc_core::sync::Mutex;
use snek_proto::limits::{CONTEXT_WINDOW_TOKEN_LIMIT, DEFAULT_OPENAI_LIMIT, MAX_MESSAGE_HISTORY};
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role};

use crate::model::extra;

/// Most channels to remember; the least recently used one is forgotten first.
const MAX_CHANNELS: usize = 1000;
/// The rough cost of an image, whatever its size.
const IMAGE_TOKENS: usize = 1000;

rpc_core::config! {
    /// Limits on the messages to keep and to send.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ConversationLimits {
        /// Most messages kept per channel. Default [`MAX_MESSAGE_HISTORY`].
        pub kept: usize = MAX_MESSAGE_HISTORY => with_kept,
        /// Most messages sent to a model at once; the instructions, the question and the newest calls are
        /// always sent. Default [`DEFAULT_OPENAI_LIMIT`].
        pub sent: usize = DEFAULT_OPENAI_LIMIT => with_sent,
        /// Most [tokens](estimate) kept per channel, and sent; the instructions, the question and the newest
        /// calls are always sent. Default [`CONTEXT_WINDOW_TOKEN_LIMIT`].
        pub tokens: usize = CONTEXT_WINDOW_TOKEN_LIMIT => with_tokens,
    }
}

/// Estimates the tokens of a message: one for every three bytes of its texts, names, arguments and further members,
/// 1,000 for an image, and four for the message itself. Real counts depend on the model; for most
/// languages they are lower.
pub fn estimate(message: &ChatMessage) -> usize {
    let bytes = |text: &str| text.len().div_ceil(3);
    let content = match &message.content {
        Content::Text(text) => bytes(text),
        Content::Blocks(blocks) => {
            let cost = |block: &Block| match block {
                Block::Text(text) => bytes(text),
                _ => IMAGE_TOKENS,
            };
            blocks.iter().map(cost).sum()
        }
        _ => 0,
    };
    let calls = message.tool_calls.iter();
    let calls: usize = calls
        .map(|call| bytes(&call.name) + bytes(&call.arguments) + bytes(&call.id))
        .sum();
    4 + content + calls + extra::size(message).div_ceil(3)
}

/// Returns a text without its middle if it has more characters than that: its beginning and its end matter most
/// to a model. Keeps 200 characters at least.
pub fn without_middle(text: &str, most: usize) -> Cow<'_, str> {
    let most = most.max(200);
    let length = text.chars().count();
    if length <= most {
        return Cow::Borrowed(text);
    }
    let half = most / 2 - 50;
    let begin: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(length - half).collect();
    let left_out = length - 2 * half;
    format!("{begin}\n({left_out} or more characters left out)\n{end}").into()
}

/// The messages of all channels. Bounded in channels, messages and tokens.
#[derive(Debug, Default)]
pub struct Conversations {
    limits: ConversationLimits,
    channels: Mutex<(HashMap<String, Channel>, u64)>,
}

#[derive(Debug, Default)]
struct Channel {
    messages: VecDeque<Arc<ChatMessage>>,
    tokens: usize,
    last_used: u64,
    /// Whether people know that the conversation is too long for the model, if it is.
    is_outgrowth_told: Option<bool>,
}

impl Conversations {
    /// Creates empty conversations.
    pub fn new(limits: ConversationLimits) -> Self {
        Self {
            limits,
            channels: Mutex::default(),
        }
    }

    /// Returns the limits.
    pub const fn limits(&self) -> ConversationLimits {
        self.limits
    }

    /// Adds messages to a channel, without messages of others between them. Returns the earlier
    /// messages, oldest first.
    pub fn add(&self, channel: &str, messages: Vec<ChatMessage>) -> Vec<Arc<ChatMessage>> {
        let mut guard = self.channels.lock();
        let (channels, uses) = &mut *guard;
        *uses += 1;
        if !channels.contains_key(channel) && channels.len() >= MAX_CHANNELS {
            let oldest = channels.iter().min_by_key(|(_, channel)| channel.last_used);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                channels.remove(&oldest);
            }
        }
        let channel = channels.entry(channel.to_owned()).or_default();
        channel.last_used = *uses;
        let before = channel.messages.iter().cloned().collect();
        for message in messages {
            channel.tokens += estimate(&message);
            channel.messages.push_back(Arc::new(message));
        }
        channel.trim(self.limits);
        before
    }

    /// Forgets the newest message with this text.
    pub fn forget(&self, channel: &str, text: &str) {
        let mut guard = self.channels.lock();
        let Some(channel) = guard.0.get_mut(channel) else {
            return;
        };
        let is_it = |it: &Arc<ChatMessage>| it.content.text() == text;
        let place = channel.messages.iter().rposition(is_it);
        if let Some(message) = place.and_then(|place| channel.messages.remove(place)) {
            channel.tokens = channel.tokens.saturating_sub(estimate(&message));
        }
    }

    /// Notes that a channel's conversation is too long for the model.
    pub fn outgrow(&self, channel: &str) {
        if let Some(channel) = self.channels.lock().0.get_mut(channel) {
            channel.is_outgrowth_told.get_or_insert(false);
        }
    }

    /// Returns, once for each channel, whether messages were left out because the conversation has
    /// too many tokens.
    pub fn has_news_of_outgrowth(&self, channel: &str) -> bool {
        let mut guard = self.channels.lock();
        let channel = guard.0.get_mut(channel);
        let is_told = channel.and_then(|channel| channel.is_outgrowth_told.as_mut());
        is_told.is_some_and(|is_told| !std::mem::replace(is_told, true))
    }
}

impl Channel {
    /// Drops the oldest messages, and the results of dropped calls.
    fn trim(&mut self, limits: ConversationLimits) {
        let mut cut = false;
        if self.tokens > limits.tokens {
            self.is_outgrowth_told.get_or_insert(false);
        }
        while let Some(first) = self.messages.front()
            && (self.messages.len() > limits.kept
                || self.tokens > limits.tokens
                || cut && first.role == Role::Tool)
        {
            self.tokens = self.tokens.saturating_sub(estimate(first));
            self.messages.pop_front();
            cut = true;
        }
    }
}

/// Selects the messages of a conversation for a model: all instructions, the last message of the user, the calls
/// since with their results, and the newest others within the limits. A tool's result never comes without its
/// call, nor a call without its results.
pub fn trim<'a>(messages: &[&'a ChatMessage], limits: ConversationLimits) -> Vec<&'a ChatMessage> {
    let is_question = |message: &&ChatMessage| message.role == Role::User;
    let question = messages.iter().rposition(is_question).unwrap_or_default();
    let calls = messages.iter().rposition(|it| !it.tool_calls.is_empty());
    let calls = calls.filter(|at| *at > question).unwrap_or(messages.len());
    let is_always = |at: usize, message: &ChatMessage| {
        at == question
            || at == calls
            || at > calls && message.role == Role::Tool
            || message.role == Role::System
    };
    let always = || {
        messages
            .iter()
            .enumerate()
            .filter(|(at, it)| is_always(*at, it))
    };
    let mut room = limits.sent.saturating_sub(always().count());
    let cost = always().map(|(_, message)| estimate(message)).sum();
    let mut tokens = limits.tokens.saturating_sub(cost);
    let mut first = messages.len();
    // Of a message and the results that follow it.
    let (mut count, mut cost) = (0, 0);
    for (at, message) in messages.iter().enumerate().rev() {
        if is_always(at, message) {
            continue;
        }
        count += 1;
        cost += estimate(message);
        if count > room || cost > tokens {
            break;
        }
        if message.role != Role::Tool {
            room -= std::mem::take(&mut count);
            tokens -= std::mem::take(&mut cost);
            first = at;
        }
    }
    let places = messages.iter().enumerate();
    let kept = places.filter(|(at, message)| *at >= first || is_always(*at, message));
    kept.map(|(_, message)| *message).collect()
}

#[cfg(test)]
mod tests {
    use snek_proto::llm::chat::ToolCall;

    use super::*;

    fn limits(kept: usize, sent: usize, tokens: usize) -> ConversationLimits {
        ConversationLimits { kept, sent, tokens }
    }

    fn user(number: usize) -> ChatMessage {
        ChatMessage::user(format!("{number}"))
    }

    /// A call and its results.
    fn round(name: &str, results: usize) -> Vec<ChatMessage> {
        let ids = (0..results).map(|number| format!("{name}{number}"));
        let calls = ids.clone().map(|id| ToolCall::new(id, "t", "{}")).collect();
        let call = ChatMessage::assistant("").with_tool_calls(calls);
        let results = ids.map(|id| ChatMessage::tool(id, "r"));
        std::iter::once(call).chain(results).collect()
    }

    fn kept(conversations: &Conversations) -> Vec<Arc<ChatMessage>> {
        conversations.add("c", Vec::new())
    }

    /// Every result is behind its call, and every call has its results.
    fn is_whole<'a>(messages: impl IntoIterator<Item = &'a ChatMessage>) -> bool {
        let mut open = Vec::new();
        for message in messages {
            if let Some(id) = &message.tool_call_id {
                let Some(at) = open.iter().position(|open| open == id) else {
                    return false;
                };
                open.remove(at);
            } else if !open.is_empty() {
                return false;
            }
            open.extend(message.tool_calls.iter().map(|call| call.id.clone()));
        }
        open.is_empty()
    }

    #[test]
    fn the_oldest_messages_are_forgotten() {
        let conversations = Conversations::new(limits(3, 200, 1000));
        for number in 0..5 {
            conversations.add("c", vec![user(number)]);
        }
        let expected: Vec<_> = (2..5).map(|number| Arc::new(user(number))).collect();
        assert_eq!(kept(&conversations), expected);
        assert_eq!(conversations.add("other", vec![user(9)]), []);
        let conversations = Conversations::default();
        for number in 0..100 {
            conversations.add("c", vec![user(number)]);
        }
        assert_eq!(kept(&conversations).len(), 50);
        let costs = |tokens: usize| ChatMessage::user("x".repeat(3 * (tokens - 4)));
        conversations.add("c", vec![costs(120_000)]);
        assert_eq!(kept(&conversations).len(), 1);
        conversations.add("c", vec![costs(120_001)]);
        assert_eq!(kept(&conversations).len(), 0);
    }

    #[test]
    fn two_hundred_messages_are_sent_at_most() {
        let all: Vec<_> = std::iter::once(ChatMessage::system("s"))
            .chain((0..=300).map(user))
            .collect();
        let trimmed = trim(
            &all.iter().collect::<Vec<_>>(),
            ConversationLimits::default(),
        );
        assert_eq!(trimmed.len(), 200);
        assert_eq!(trimmed[1], &user(102));
    }

    #[test]
    fn channels_are_forgotten_too() {
        let conversations = Conversations::default();
        for number in 0..=MAX_CHANNELS {
            conversations.add(&number.to_string(), vec![user(1)]);
        }
        assert_eq!(conversations.add("0", Vec::new()).len(), 0);
        assert_eq!(conversations.add("500", Vec::new()).len(), 1);
        assert_eq!(conversations.channels.lock().0.len(), MAX_CHANNELS);
    }

    #[test]
    fn results_are_kept_with_their_calls_or_not_at_all() {
        for max in 1..20 {
            for tokens in [20, 50, 100, 1000] {
                let conversations = Conversations::new(limits(max, 200, tokens));
                for number in 0..6 {
                    conversations.add("c", vec![user(number)]);
                    conversations.add("c", round(&format!("{number}-"), number % 4));
                    let kept = kept(&conversations);
                    assert!(kept.len() <= max);
                    assert!(is_whole(kept.iter().map(AsRef::as_ref)), "{max} {kept:?}");
                }
            }
        }
    }

    #[test]
    fn a_model_gets_the_question_and_the_newest_turns_that_fit() {
        let past = [vec![user(1)], round("p", 3), vec![user(2)]].concat();
        let turn = [vec![user(3)], round("a", 1), round("b", 2)].concat();
        let all = [vec![ChatMessage::system("s")], past, turn.clone()].concat();
        let all: Vec<&ChatMessage> = all.iter().collect();
        for sent in 2..14 {
            for tokens in [10, 30, 60, 90, 1000] {
                let trimmed = trim(&all, limits(50, sent, tokens));
                // Instructions, question, and the newest round.
                assert!(trimmed.len() <= sent.max(5), "{sent} {trimmed:?}");
                assert!(is_whole(trimmed.iter().copied()), "{sent} {trimmed:?}");
                assert_eq!(trimmed.first(), all.first());
                assert_eq!(trimmed[trimmed.len() - 3..], all[all.len() - 3..]);
                assert!(trimmed.contains(&&turn[0]), "{sent} {trimmed:?}");
            }
        }
        assert_eq!(trim(&all, ConversationLimits::default()), all);
        // The newest round fits, the one before it does not.
        let trimmed = trim(&all, limits(50, 6, 1000));
        assert_eq!((trimmed.len(), trimmed.last()), (5, all.last()));
        // Instructions, question and an earlier message cost five tokens each.
        let short = [ChatMessage::system("s"), user(1), user(3)];
        let short: Vec<&ChatMessage> = short.iter().collect();
        for (tokens, count) in [(14, 2), (15, 3)] {
            let trimmed = trim(&short, limits(50, 200, tokens));
            assert_eq!(trimmed.len(), count, "{tokens}");
        }
    }

    #[test]
    fn an_image_costs_the_same_whatever_its_size() {
        let image = |bytes: usize| {
            let url = format!("data:image/png;base64,{}", "A".repeat(bytes));
            ChatMessage::user(vec![Block::Text("hi".to_owned()), Block::ImageUrl(url)])
        };
        assert_eq!(estimate(&image(4)), estimate(&image(40_000)));
        assert_eq!(estimate(&ChatMessage::user("123")), 5);
    }
}
