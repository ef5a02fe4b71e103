//! The model that a chat names, and its provider, which follows from the name as in known servers.

/// Providers that a name may begin with, before a slash.
const PREFIXES: [(&str, &str); 5] = [
    ("anthropic", "anthropic"),
    ("google", "google"),
    ("openai", "openai"),
    ("openai-compatible", "openai"),
    ("vercel", "vercel"),
];
/// The prefixes of the providers' own models.
const FAMILIES: [(&str, &str); 2] = [("claude", "anthropic"), ("gemini", "google")];
/// The provider of all other models: many servers have its interface.
const OTHERS: &str = "openai";

/// Returns the provider of the model with this name, and the provider's own name for it.
pub(super) fn provider(name: &str) -> (&'static str, &str) {
    let prefixed = name.split_once('/').and_then(|(prefix, rest)| {
        let known = PREFIXES.iter().find(|it| it.0.eq_ignore_ascii_case(prefix));
        Some((known?.1, rest))
    });
    prefixed.unwrap_or_else(|| {
        let lower = name.to_ascii_lowercase();
        let family = FAMILIES.iter().find(|it| lower.starts_with(it.0));
        (family.map_or(OTHERS, |it| it.1), name)
    })
}
