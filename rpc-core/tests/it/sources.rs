//! What holds for every source file of this crate, and for the tests that its documentation names.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

/// Path from the crate's root, and text, of every source file.
fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        gather(&root().join(folder), &mut files);
    }
    files.sort();
    assert!(files.len() > 50, "the sources were not found");
    let named = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        (name.replace('\\', "/"), text)
    };
    files.into_iter().map(named).collect()
}

/// Whether a file is part of a library, and not a test.
fn is_library(name: &str) -> bool {
    name.starts_with("src/")
}

#[test]
fn every_file_is_short_and_says_what_lives_there() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= 600, "{name} has {lines} lines");
        assert!(
            text.starts_with("//! "),
            "{name} starts without a description"
        );
    }
}

#[test]
fn every_public_async_function_documents_cancel_safety() {
    let mut found = 0;
    for (name, text) in sources() {
        let library = is_library(&name);
        let mut docs = String::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if let Some(doc) = line.strip_prefix("///") {
                docs.push_str(doc);
                docs.push('\n');
                continue;
            }
            if library && line.starts_with("pub async fn") {
                found += 1;
                let says = docs.lines().any(|doc| doc.trim() == "# Cancel safety");
                assert!(says, "{name}:{}: no `# Cancel safety`", number + 1);
            }
            if !line.starts_with("#[") {
                docs.clear();
            }
        }
        // A macro could hide a function. Those of `json` make types and serializers, `config!` setters,
        // `debug_fields!`, `dynamic!`, `from_failures!` and `as_text!` implementations, `page!` empty modules.
        let may = ["config", "debug", "dynamic", "guide/mod", "id"];
        let may = may.iter().any(|file| name == format!("src/{file}.rs"));
        let may = may || !library || name.contains("src/json/");
        assert!(may || !text.contains("macro_rules!"), "{name}");
    }
    assert!(found > 15, "only {found} functions were found");
}

#[test]
fn every_test_named_in_the_fault_table_exists() {
    let table = fs::read_to_string(root().join("FAULTS.md")).unwrap();
    // `tests/it/ws.rs::name` and `src/outbox.rs::name` between backticks.
    let quoted = table.split('`').skip(1).step_by(2);
    let named: Vec<_> = quoted.filter_map(|it| it.split_once(".rs::")).collect();
    assert!(named.len() >= 5, "only {} tests are named", named.len());
    let sources = sources();
    for (file, test) in named {
        let file = format!("{file}.rs");
        let exists = sources
            .iter()
            .any(|(name, text)| *name == file && text.contains(&format!("fn {test}(")));
        assert!(exists, "{file}::{test} is named and does not exist");
    }
}

#[test]
fn the_list_of_common_failures_has_every_number_once() {
    let promises = fs::read_to_string(root().join("PROMISES.md")).unwrap();
    let mut numbers: Vec<u32> = promises
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=33).collect::<Vec<_>>());
}

#[test]
fn every_public_enum_is_non_exhaustive_or_documents_why_not() {
    let mut found = 0;
    for (name, text) in sources() {
        if !is_library(&name) {
            continue;
        }
        let mut above = String::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            // An enum without values is a name for a type parameter.
            if line.starts_with("pub enum ") && !line.ends_with("{}") {
                found += 1;
                let says = above.contains("#[non_exhaustive]") || above.contains("xhaustive");
                assert!(says, "{name}:{}: may it grow?", number + 1);
            }
            if line.is_empty() {
                above.clear();
            } else {
                above.push_str(line);
            }
        }
    }
    assert!(found > 15, "only {found} enums were found");
}

#[test]
fn unsafe_code_is_forbidden() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("[lints]\nworkspace = true"));
    let workspace = fs::read_to_string(root().join("../Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"forbid\""));
}

#[test]
fn no_feature_is_on_by_default() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("\ndefault = []\n"));
}
