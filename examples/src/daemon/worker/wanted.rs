//! Which model a chat names, and whose it is: read from the name, as known servers do.

/// Providers that a name may begin with, before a slash.
const PREFIXES: [(&str, &str); 5] = [
    ("anthropic", "anthropic"),
    ("google", "google"),
    ("openai", "openai"),
    ("openai-compatible", "openai"),
    ("vercel", "vercel"),
];
/// How the names of providers' own models begin.
const FAMILIES: [(&str, &str); 2] = [("claude", "anthropic"), ("gemini", "google")];
/// Whose a model is otherwise: many servers have this provider's interface.
const OTHERS: &str = "openai";

/// The provider that has the model of this name, and the provider's own name for it.
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
