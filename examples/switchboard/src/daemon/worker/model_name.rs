//! The model that a chat names, and its provider, which follows from the name as in known servers.

/// Providers that a name may begin with, before a slash.
const PREFIXES: [(&str, &str); 7] = [
    ("anthropic", "anthropic"),
    ("google", "google"),
    ("ollama", "ollama"),
    ("openai", "openai"),
    ("openai-compatible", "openai"),
    ("vercel", "vercel"),
    ("vllm", "vllm"),
];
/// The prefixes of the providers' own models.
const FAMILIES: [(&str, &str); 2] = [("claude", "anthropic"), ("gemini", "google")];
/// The provider of all other models, unless the server has another one with models of any name: many
/// servers have its interface.
const OTHERS: &str = "openai";
/// The providers with models of any name.
const OF_ANY_NAME: [&str; 2] = ["ollama", "vllm"];

/// Returns the provider of the model with this name, and the provider's own name for it. `own` is
/// the provider of the server.
pub(super) fn provider<'a>(name: &'a str, own: &'static str) -> (&'static str, &'a str) {
    let prefixed = name.split_once('/').and_then(|(prefix, rest)| {
        let known = PREFIXES.iter().find(|it| it.0.eq_ignore_ascii_case(prefix));
        Some((known?.1, rest))
    });
    prefixed.unwrap_or_else(|| {
        let lower = name.to_ascii_lowercase();
        let family = FAMILIES.iter().find(|it| lower.starts_with(it.0));
        let others = OF_ANY_NAME.into_iter().find(|name| *name == own);
        let family = family.map(|it| it.1);
        (family.or(others).unwrap_or(OTHERS), name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_models_of_any_name_if_its_provider_has() {
        for (name, own, expected) in [
            ("gpt-5", "openai", ("openai", "gpt-5")),
            ("llama3.2", "ollama", ("ollama", "llama3.2")),
            ("ollama/llama3.2", "ollama", ("ollama", "llama3.2")),
            ("meta-llama/Llama-3", "vllm", ("vllm", "meta-llama/Llama-3")),
            ("llama3.2", "anthropic", ("openai", "llama3.2")),
            ("claude-x", "ollama", ("anthropic", "claude-x")),
        ] {
            assert_eq!(provider(name, own), expected);
        }
    }
}
