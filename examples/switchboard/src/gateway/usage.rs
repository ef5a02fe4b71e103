//! [`UsageEntry`]: the usage of one run of a model, and [`Price`].

use crate::model::provider::Provider;
use serde::{Deserialize, Serialize};

/// A price in US dollars for a million tokens. Prices of providers change, so none is built in: the
/// configuration sets them, and an unknown cost is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// The price of tokens that the model reads.
    pub input: f64,
    /// The price of tokens that the model writes.
    pub output: f64,
}

impl Price {
    /// Creates a price.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output }
    }

    /// Returns the price of a model: the configured one, or zero for the scripted model.
    pub fn of(provider: Provider, configured: Option<Self>) -> Option<Self> {
        match provider {
            Provider::Scripted => Some(Self::new(0.0, 0.0)),
            _ => configured,
        }
    }

    /// Returns the cost of these tokens in US dollars.
    #[allow(clippy::cast_precision_loss)] // Exact up to 9 thousand million million tokens.
    pub fn cost(self, input_tokens: u64, output_tokens: u64) -> f64 {
        (self.input * input_tokens as f64 + self.output * output_tokens as f64) / 1e6
    }
}

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The cost in US dollars, if the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How it ended.
    pub ending: Ending,
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

    /// Sets the tokens, and the cost if there is a price.
    pub fn with_tokens(mut self, input: u64, output: u64, price: Option<Price>) -> Self {
        self.input_tokens = input;
        self.output_tokens = output;
        self.cost = price.map(|price| price.cost(input, output));
        self
    }

    /// Adds the tokens and the cost of a later run to this one.
    pub(super) fn add(&mut self, later: &Self) {
        self.at = later.at;
        self.input_tokens = self.input_tokens.saturating_add(later.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(later.output_tokens);
        self.estimated |= later.estimated;
        self.cost = self.cost.zip(later.cost).map(|(one, other)| one + other);
        self.ending = later.ending;
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
    fn a_cost_follows_the_price_of_a_million() {
        let price = Price::new(3.0, 15.0);
        let entry = UsageEntry::new(1, "s", "a").with_tokens(1_000_000, 200_000, Some(price));
        assert_eq!(entry.cost, Some(6.0));
        assert_eq!(entry.tokens(), 1_200_000);
        assert_eq!(entry.with_tokens(5, 5, None).cost, None);
    }

    #[test]
    fn only_configured_prices_are_known_and_the_script_is_free() {
        let configured = Some(Price::new(1.0, 2.0));
        assert_eq!(Price::of(Provider::OpenAi, None), None);
        assert_eq!(Price::of(Provider::OpenAi, configured), configured);
        assert_eq!(
            Price::of(Provider::Scripted, None),
            Some(Price::new(0.0, 0.0))
        );
    }

    #[test]
    fn an_entry_is_read_back_as_it_was_written() {
        let entry = UsageEntry {
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            estimated: true,
            ending: Ending::Cancelled,
            ..UsageEntry::new(1, "s", "a").with_tokens(3, 4, Some(Price::new(1.0, 2.0)))
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
        let entry = UsageEntry::new(1, "s", "a").with_tokens(u64::MAX, 1, None);
        assert_eq!(entry.tokens(), u64::MAX);
    }
}
