//! What the README says about itself: its headings, and the tests that it names.

use std::fs;
use std::path::Path;

const README: &str = include_str!("../../README.md");

#[test]
fn the_headings_come_in_order() {
    let headings: Vec<_> = README
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let expected = [
        "Protocol",
        "Frames",
        "Client",
        "Server",
        "Timeouts",
        "Limits",
        "Deviations",
    ];
    assert_eq!(headings, expected);
}

/// The text of every Rust file below a directory.
fn sources(directory: &Path, into: &mut String) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_promise_names_tests_that_exist() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    for directory in ["src", "tests", "../rpc-core/src", "../rpc-core/tests"] {
        sources(&own.join(directory), &mut text);
    }
    let mut rows = 0;
    let mut promising = false;
    for line in README.lines() {
        if !line.starts_with('|') {
            promising = false;
        } else if line.contains("| Shown by |") {
            promising = true;
        } else if promising && !line.starts_with("|---") {
            let tests = line.rsplit('|').nth(1).unwrap();
            let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
            assert!(!names.is_empty(), "no test: {line}");
            for name in names {
                assert!(text.contains(&format!("fn {name}()")), "no test {name}");
            }
            rows += 1;
        }
    }
    assert!(rows > 25, "only {rows} promises were found");
}
