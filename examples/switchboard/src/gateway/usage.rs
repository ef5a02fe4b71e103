//! [`UsageEntry`]: the usage of one run of a model.

use serde::{Deserialize, Serialize};

/// The end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The answer is complete.
    #[default]
    Done,
    /// The provider failed.
    ProviderError,
    /// The client left.
    Cancelled,
    /// The model called tools too often.
    TooManyRounds,
    /// The gateway failed, or was stopped.
    Aborted,
    /// An end that only a newer gateway knows.
    #[serde(other)]
    Other,
}

/// An entry of the usage log. It has numbers and names, never the text of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageEntry {
    /// When the run ended, in seconds since 1970.
    pub at: u64,
    /// The key of the session.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Whether the tokens are an estimate, because the run ended before the provider reported them.
    pub estimated: bool,
    /// How it ended.
    pub ending: Ending,
    /// Whether it was no reply: the model was asked what to remember of one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub memory: bool,
}

impl UsageEntry {
    /// Creates an entry without usage.
    pub fn new(at: u64, session: impl Into<String>, agent: impl Into<String>) -> Self {
        Self {
            at,
            session: session.into(),
            agent: agent.into(),
            ..Self::default()
        }
    }

    /// Sets the tokens.
    pub const fn with_tokens(mut self, input: u64, output: u64) -> Self {
        self.input_tokens = input;
        self.output_tokens = output;
        self
    }

    /// Returns all tokens, as budgets count them.
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_back_as_it_was_written() {
        let entry = UsageEntry {
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            estimated: true,
            ending: Ending::Cancelled,
            ..UsageEntry::new(1, "s", "a").with_tokens(3, 4)
        };
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<UsageEntry>(&text).unwrap(), entry);
        let plain = UsageEntry::new(1, "s", "a");
        let text = serde_json::to_string(&plain).unwrap();
        assert_eq!(serde_json::from_str::<UsageEntry>(&text).unwrap(), plain);
    }

    #[test]
    fn an_unknown_ending_is_read_as_other() {
        let entry: UsageEntry = serde_json::from_str(r#"{"ending":"eaten"}"#).unwrap();
        assert_eq!(entry.ending, Ending::Other);
        let entry: UsageEntry = serde_json::from_str(r#"{"ending":"too_many_rounds"}"#).unwrap();
        assert_eq!(entry.ending, Ending::TooManyRounds);
    }

    #[test]
    fn tokens_do_not_overflow() {
        let entry = UsageEntry::new(1, "s", "a").with_tokens(u64::MAX, 1);
        assert_eq!(entry.tokens(), u64::MAX);
    }
}
