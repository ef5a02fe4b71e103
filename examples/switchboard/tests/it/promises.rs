//! What the guides promise is held by tests that exist.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::tree::{list, read, root};
use crate::uniform::tests_near;

/// Whether this file, from the root, holds a function of this name.
fn holds(path: &str, name: &str) -> bool {
    let path = root().join(path);
    path.is_file() && read(&path).contains(&format!("fn {name}("))
}

/// The rows of the tables that end with tests, without the rule below their heads.
fn promises(text: &str) -> Vec<&str> {
    let mut promising = false;
    let mut rows = Vec::new();
    for line in text.lines() {
        if !line.starts_with('|') {
            promising = false;
        } else if line.ends_with("| Kept by |") || line.ends_with("| Tests |") {
            promising = true;
        } else if promising && !line.starts_with("|---") {
            rows.push(line);
        }
    }
    rows
}

/// What is between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A row of two cells.
fn cells(row: &str) -> (&str, &str) {
    let cells = row.trim_matches('|').rsplit_once(" | ").expect("two cells");
    (cells.0.trim(), cells.1.trim())
}

/// The section of a text below a heading of the second level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The items of a list, each in one line.
fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(item) = line.strip_prefix("- ") {
            items.push(item.to_owned());
        } else if let (Some(more), Some(item)) = (line.strip_prefix("  "), items.last_mut()) {
            item.push(' ');
            item.push_str(more);
        }
    }
    items
}

/// The first column of a table, without its head.
fn first_column(text: &str) -> Vec<String> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let names = rows.filter_map(|row| row.split('|').nth(1));
    names.skip(1).map(|name| name.trim().to_owned()).collect()
}

const PROMISES: &str = "rpc-core/PROMISES.md";
/// The section of [`PROMISES`] whose rows are those of a table in the page below.
const FAILURES: &str = "Common failures";
const RELIABILITY: &str = "rpc-core/src/guide/reliability.md";

/// The guides of all crates.
fn pages() -> Vec<String> {
    let guide = Path::new("rpc-core/src/guide");
    let files = list(&root().join(guide)).into_iter();
    let core = files.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let core = core.map(|path| guide.join(path.file_name().unwrap()).display().to_string());
    let crates = list(&root()).into_iter();
    let crates = crates.filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        name.ends_with("-proto").then(|| format!("{name}/GUIDE.md"))
    });
    core.chain(crates).collect()
}

#[test]
fn every_page_promises_what_the_list_of_promises_says() {
    let list = read(&root().join(PROMISES));
    let pages = pages();
    assert!(pages.len() >= 15, "only {} pages", pages.len());
    for page in &pages {
        let text = read(&root().join(page));
        let promised = items(section(&text, "Promises"));
        let listed = promises(section(&list, page)).into_iter();
        let listed: Vec<_> = listed.map(|row| cells(row).0.to_owned()).collect();
        assert_eq!(promised.len(), listed.len(), "{page} and {PROMISES}");
        for (promise, listed) in promised.iter().zip(&listed) {
            let is_same = match listed.strip_suffix('…') {
                Some(beginning) => promise.starts_with(beginning),
                None => promise == listed,
            };
            assert!(is_same, "{page}: {promise}\n{PROMISES}: {listed}");
        }
        let least = if page.ends_with("/GUIDE.md") { 26 } else { 2 };
        assert!(listed.len() >= least, "{page}: {} promises", listed.len());
    }
    let failures = first_column(section(&read(&root().join(RELIABILITY)), FAILURES));
    let listed = promises(section(&list, FAILURES)).into_iter();
    let listed = listed.filter_map(|row| cells(row).0.split_once(' '));
    let listed: Vec<_> = listed.map(|(_, name)| name.to_owned()).collect();
    assert_eq!(failures, listed, "{RELIABILITY} and {PROMISES}");
    let headings = list.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(headings, pages.len() + 1, "a section for each page");
}

#[test]
fn every_promise_names_tests_that_exist() {
    let list = read(&root().join(PROMISES));
    let mut known: HashMap<String, HashSet<String>> = HashMap::new();
    let (mut rows, mut problems) = (0, Vec::new());
    for part in list.split("\n## ").skip(1) {
        let heading = part.lines().next().unwrap_or_default();
        let folder = if heading == FAILURES {
            "rpc-core"
        } else {
            heading
        };
        let folder = folder.split('/').next().unwrap_or_default();
        for row in promises(part) {
            rows += 1;
            let names: Vec<_> = quoted(cells(row).1).collect();
            if names.is_empty() {
                problems.push(format!("no test: {row}"));
            }
            for name in names {
                let (folder, name) = name.split_once("::").unwrap_or((folder, name));
                let tests = known
                    .entry(folder.to_owned())
                    .or_insert_with(|| tests_near(folder));
                if !tests.contains(name) {
                    problems.push(format!("{heading}: no test {name}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(rows > 290, "only {rows} promises");
}

#[test]
fn every_escape_that_was_tried_is_tried_by_a_test() {
    let text = read(&root().join("examples/switchboard/src/daemon/CONFINEMENT.md"));
    let rows = promises(&text);
    assert!(rows.len() >= 15, "only {} escapes", rows.len());
    for row in rows {
        let names: Vec<_> = quoted(row).filter(|name| name.contains(".rs::")).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            let (file, name) = name.split_once("::").unwrap();
            assert!(
                holds(&format!("examples/switchboard/{file}"), name),
                "no test: {name}"
            );
        }
    }
}

#[test]
fn the_readme_leads_to_every_crate_and_every_page_of_the_guide() {
    let readme = read(&root().join("README.md"));
    for page in pages() {
        let name = page.rsplit('/').next().unwrap_or_default();
        let crates = page.split('/').next().unwrap_or_default();
        let link = match name {
            "GUIDE.md" => format!("({crates}/README.md)"),
            _ => format!("({page})"),
        };
        assert!(readme.contains(&link), "{link} is not in the README");
    }
}
