//! [`Cut`]: the part of a conversation that a model gets.

use snek_proto::llm::chat::ChatMessage;

use super::{ChatRequest, Notice};
use crate::conversation::{ConversationLimits, trim};

/// A part of a conversation.
pub(super) struct Cut<'a> {
    messages: Vec<&'a ChatMessage>,
    failed: Vec<usize>,
    left_out: usize,
}

impl<'a> Cut<'a> {
    /// Cuts a conversation to so many tokens. Returns `None` if nothing can be left out, or has to
    /// be.
    pub(super) fn to(request: &ChatRequest<'a>, tokens: usize) -> Option<Self> {
        let limits = ConversationLimits::default()
            .with_sent(usize::MAX)
            .with_tokens(tokens);
        let kept = trim(&request.messages, limits);
        let left_out = request.messages.len() - kept.len();
        let at = |old: &usize| kept.iter().position(|kept| kept == old);
        (left_out > 0).then(|| Self {
            failed: request.failed.iter().filter_map(at).collect(),
            messages: kept
                .iter()
                .filter_map(|at| request.messages.get(*at).copied())
                .collect(),
            left_out,
        })
    }

    pub(super) fn request<'r>(&'r self, whole: &ChatRequest<'r>) -> ChatRequest<'r> {
        ChatRequest {
            messages: self.messages.clone(),
            failed: &self.failed,
            ..whole.clone()
        }
    }

    pub(super) const fn notice(&self) -> Notice {
        Notice::Shortened {
            left_out: self.left_out,
        }
    }
}
