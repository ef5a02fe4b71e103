//! One message of a model with tool calls, and their answers so far.

use std::collections::HashSet;

use crate::llm::chat::{ChatMessage, ToolCall, ToolCallId};

#[derive(Debug)]
pub(super) struct Round {
    message: ChatMessage,
    /// Answers to the first of the calls.
    answers: Vec<ChatMessage>,
}

impl Round {
    /// Creates a round. Every call gets an id that is unique in the message.
    pub(super) fn new(mut message: ChatMessage, number: usize) -> Self {
        let ids = message.tool_calls.iter().map(|call| call.id.clone());
        let mut taken: HashSet<ToolCallId> = ids.filter(|id| !id.is_empty()).collect();
        // Ids in `taken` that no earlier call has used up.
        let mut unused = taken.clone();
        let mut next = 0_usize;
        for call in &mut message.tool_calls {
            if unused.remove(&call.id) {
                continue;
            }
            call.id = loop {
                next += 1;
                let id = ToolCallId::new(format!("call_{number}_{next}"));
                if taken.insert(id.clone()) {
                    break id;
                }
            };
        }
        Self {
            message,
            answers: Vec::new(),
        }
    }

    /// Returns the first call without an answer.
    pub(super) fn next_call(&self) -> Option<&ToolCall> {
        self.message.tool_calls.get(self.answers.len())
    }

    /// Answers the first call without an answer.
    pub(super) fn answered(mut self, text: String) -> Self {
        if let Some(call) = self.next_call() {
            let answer = ChatMessage::tool(call.id.clone(), text);
            self.answers.push(answer);
        }
        self
    }

    /// Returns the message and all the answers, with this text for the calls that have none.
    pub(super) fn finish(mut self, text: &str) -> impl Iterator<Item = ChatMessage> {
        while self.next_call().is_some() {
            self = self.answered(text.to_owned());
        }
        std::iter::once(self.message).chain(self.answers)
    }
}
