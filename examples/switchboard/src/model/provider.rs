//! [`Provider`]: the providers of models, with the facts about each.

use std::fmt;

use clap::ValueEnum;
use snek_proto::limits::CONTEXT_WINDOW_TOKEN_LIMIT;

/// A provider of models, by the interface that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
#[value(rename_all = "lower")]
pub enum Provider {
    /// Scripted answers, no network.
    #[default]
    Scripted,
    /// OpenAI's chat completions, and every server with this interface.
    OpenAi,
    /// Anthropic, and every server with its interface.
    Anthropic,
    /// Models on your own machine.
    Ollama,
    /// A vLLM server.
    Vllm,
}

impl Provider {
    /// Returns its name in options, its name for people, and its address.
    const fn facts(self) -> [&'static str; 3] {
        match self {
            Self::Scripted => ["scripted", "the scripted model", ""],
            Self::OpenAi => ["openai", "OpenAI", "https://api.openai.com/v1"],
            Self::Anthropic => ["anthropic", "Anthropic", "https://api.anthropic.com"],
            Self::Ollama => ["ollama", "Ollama", "http://127.0.0.1:11434"],
            Self::Vllm => ["vllm", "vLLM", "http://127.0.0.1:8000/v1"],
        }
    }

    /// Returns its name in options, configurations and the names of key files.
    pub const fn as_str(self) -> &'static str {
        self.facts()[0]
    }

    /// Returns its name for people.
    pub const fn title(self) -> &'static str {
        self.facts()[1]
    }

    /// Returns the environment variable for its key.
    pub fn key_variable(self) -> String {
        self.as_str().to_uppercase() + "_API_KEY"
    }

    /// Returns the environment variable for another address.
    pub fn base_variable(self) -> String {
        let is_host = self == Self::Ollama;
        self.as_str().to_uppercase() + if is_host { "_HOST" } else { "_BASE_URL" }
    }

    /// Returns its own address.
    pub const fn default_base(self) -> &'static str {
        self.facts()[2]
    }

    /// Returns whether its own address refuses requests without a key.
    pub const fn needs_key(self) -> bool {
        matches!(self, Self::OpenAi | Self::Anthropic)
    }

    /// Returns the most tokens of a conversation to send, unless configured otherwise. What
    /// Ollama gets, it reserves memory for.
    pub const fn default_context(self) -> usize {
        match self {
            Self::Ollama => 8192,
            _ => CONTEXT_WINDOW_TOKEN_LIMIT,
        }
    }

    /// Returns its usual model, or an empty text if it has none.
    pub const fn default_model(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Anthropic => "claude-sonnet-4-5-20250929",
            _ => "",
        }
    }

    /// Reads a name.
    ///
    /// # Errors
    /// A message for people with all names.
    pub fn read(name: &str) -> Result<Self, String> {
        let all = Self::value_variants().iter().map(|it| it.as_str());
        let all = all.collect::<Vec<_>>().join(", ");
        let name = super::error::excerpt(name);
        Self::from_str(&name, true)
            .map_err(|_| format!("unknown provider '{name}'; choose one of {all}"))
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
