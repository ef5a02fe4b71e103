//! Tables of cases for tests: what a provider sends, and what is read of it.

use crate::model::provider::Provider;

/// A row of a table.
pub(crate) struct Case {
    /// The title, and what stands in place of `%`.
    pub(crate) name: String,
    /// The providers that it is for.
    pub(crate) providers: Vec<Provider>,
    /// The lines that are given.
    pub(crate) given: Vec<String>,
    /// The lines that are expected.
    pub(crate) expected: Vec<String>,
}

/// Reads a table. A case has a title, providers, given lines, and expected ones behind `= `. It runs once for each line
/// `% A | B | C | D`, with these in place of `%`, `%2`, `%3` and `%4`; `(nothing)` is an empty one.
pub(crate) fn read(table: &str) -> Vec<Case> {
    let mut all = Vec::new();
    for case in table.split("\n\n").skip(1) {
        let mut lines = case.lines().filter(|line| !line.starts_with('#'));
        let providers = match lines.next().unwrap() {
            "all" => vec![
                Provider::OpenAi,
                Provider::Anthropic,
                Provider::Ollama,
                Provider::Vllm,
            ],
            name => vec![Provider::read(name).unwrap()],
        };
        let lines: Vec<&str> = lines.collect();
        let of = |mark| lines.iter().filter_map(move |line| line.strip_prefix(mark));
        let mut variants: Vec<&str> = of("% ").collect();
        if variants.is_empty() {
            variants.push("");
        }
        for variant in variants {
            let mut parts = variant.splitn(4, " | ");
            let parts = [(); 4].map(|()| match parts.next() {
                None | Some("(nothing)") => "",
                Some(part) => part,
            });
            let filled = |line: &str| {
                let line = (1..4).rev().fold(line.to_owned(), |line, part| {
                    line.replace(&format!("%{}", part + 1), parts[part])
                });
                line.replace('%', parts[0])
            };
            let is_given = |line: &&&str| !line.starts_with("% ") && !line.starts_with("= ");
            all.push(Case {
                name: format!("{} {variant}", case.lines().next().unwrap()),
                providers: providers.clone(),
                given: lines
                    .iter()
                    .filter(is_given)
                    .map(|line| filled(line))
                    .collect(),
                expected: of("= ").map(|line| filled(line.trim_start())).collect(),
            });
        }
    }
    all
}
