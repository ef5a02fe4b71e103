//! Any text is refused with places in it, or gives a configuration that can be used.

use std::fs;

use proptest::prelude::*;

use super::super::Config;
use super::{FULL, origin};

/// The key of the texts. No message repeats it.
const KEY: &str = "sk-hunter2-hunter2";

fn check(text: &str) {
    let loaded = Config::parse(text, &origin());
    assert!(
        Config::parse(text, &origin()) == loaded,
        "the same text has to give the same"
    );
    match &loaded {
        Ok(config) => usable(config),
        Err(error) => {
            let place = error.strip_prefix(&format!("{}:", origin().file.display()));
            let mut parts = place.unwrap().splitn(3, ':');
            let mut number = || parts.next().unwrap().parse::<usize>().unwrap();
            let (line, column) = (number(), number());
            let lines: Vec<_> = text.split('\n').collect();
            let columns = 1..=lines[line - 1].chars().count() + 1;
            assert!(columns.contains(&column), "a column that is not there");
            assert!(
                !parts.next().unwrap().trim().is_empty(),
                "an error without a reason"
            );
        }
    }
    // Only where it is a key for certain: a message may repeat other values.
    let is_key = text.matches(KEY).count() == 1
        && text.contains(&format!("\napi_key = \"{KEY}\"\n"))
        && !text.contains('\'')
        && !text.contains("\"\"\"");
    if is_key {
        let shown = format!("{loaded:?}");
        assert!(!shown.contains(KEY), "the key of the provider is shown");
    }
}

/// What the gateway relies on.
fn usable(config: &Config) {
    let agent = &config.agent;
    assert!(
        agent.model.max_tokens != Some(0) && agent.max_tool_rounds > 0,
        "an agent that may say nothing"
    );
    assert!(!agent.id.is_empty(), "an agent without a name");
    assert!(config.gateway.max_connections > 0, "nobody may connect");
}

#[test]
fn difficult_texts_are_refused_or_usable() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/gateway/config/tests/texts"
    );
    for entry in fs::read_dir(folder).unwrap() {
        check(&fs::read_to_string(entry.unwrap().path()).unwrap());
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_or_usable(text in "(?s).{0,200}") {
        check(&text);
    }

    #[test]
    fn a_damaged_file_is_refused_or_usable(at in 0..FULL.len(), new in "(?s).{0,3}", length in 0_usize..20) {
        let end = (at + length).min(FULL.len());
        check(&format!("{}{new}{}", &FULL[..at], &FULL[end..]));
    }
}
