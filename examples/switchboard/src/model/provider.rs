//! [`Provider`]: the providers of models, with the facts about each.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use snek_proto::limits::CONTEXT_WINDOW_TOKEN_LIMIT;

/// A provider of models, by the interface that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Provider {
    /// A few rules, no network, no key: [`Scripted`](super::scripted::Scripted).
    #[default]
    Scripted,
    /// OpenAI's chat completions, which many other servers have too.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// Ollama's own interface.
    Ollama,
    /// A vLLM server: OpenAI's chat completions on an address of your own.
    Vllm,
}

/// The error for an unknown name of a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider '{name}'; choose one of {}", Provider::names())]
pub struct UnknownProvider {
    /// The name.
    pub name: String,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 5] = [
        Self::Scripted,
        Self::OpenAi,
        Self::Anthropic,
        Self::Ollama,
        Self::Vllm,
    ];

    /// Returns its name in options, configurations and the names of key files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::Vllm => "vllm",
        }
    }

    /// Returns the names of all, for a message.
    pub fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    /// Returns its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Scripted => "the scripted model",
            Self::OpenAi => "OpenAI",
            Self::Anthropic => "Anthropic",
            Self::Ollama => "Ollama",
            Self::Vllm => "vLLM",
        }
    }

    const fn help(self) -> &'static str {
        match self {
            Self::Scripted => "scripted answers, no network",
            Self::OpenAi => "OpenAI's chat completions, and every server with this interface",
            Self::Anthropic => "Anthropic, and every server with its interface",
            Self::Ollama => "models on your own machine",
            Self::Vllm => "a vLLM server",
        }
    }

    /// Returns the environment variable for its key, or `None` if it never has one.
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Scripted => None,
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Ollama => Some("OLLAMA_API_KEY"),
            Self::Vllm => Some("VLLM_API_KEY"),
        }
    }

    /// Returns the environment variable for another address.
    pub const fn base_variable(self) -> Option<&'static str> {
        match self {
            Self::Scripted => None,
            Self::Vllm => Some("VLLM_BASE_URL"),
            Self::OpenAi => Some("OPENAI_BASE_URL"),
            Self::Anthropic => Some("ANTHROPIC_BASE_URL"),
            Self::Ollama => Some("OLLAMA_HOST"),
        }
    }

    /// Returns its own address.
    pub const fn default_base(self) -> &'static str {
        match self {
            Self::Scripted => "",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Ollama => "http://127.0.0.1:11434",
            Self::Vllm => "http://127.0.0.1:8000/v1",
        }
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

    /// Returns its usual model, or `None` if it has none.
    pub const fn default_model(self) -> Option<&'static str> {
        match self {
            Self::Scripted => Some("scripted"),
            Self::Anthropic => Some("claude-sonnet-4-5-20250929"),
            _ => None,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let mut all = Self::ALL.into_iter();
        let name = name.trim();
        let known = all.find(|known| known.as_str().eq_ignore_ascii_case(name));
        known.ok_or_else(|| UnknownProvider {
            name: super::error::excerpt(name),
        })
    }
}

impl ValueEnum for Provider {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.as_str()).help(self.help()))
    }
}
