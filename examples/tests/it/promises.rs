//! What the top-level README and the pages of the guide promise is kept by tests that exist.

use std::path::Path;

use crate::tree::{list, read, root};

/// Whether this file, from the root, holds a function of this name.
fn holds(path: &str, name: &str) -> bool {
    let path = root().join(path);
    path.is_file() && read(&path).contains(&format!("fn {name}("))
}

/// Markdown's links: the text and where it leads.
fn links(text: &str) -> Vec<(&str, &str)> {
    text.split('[')
        .filter_map(|part| part.split_once("]("))
        .filter_map(|(text, rest)| Some((text, rest.split_once(')')?.0)))
        .collect()
}

/// The rows of the tables that end with tests.
fn promises(text: &str) -> Vec<&str> {
    let mut promising = false;
    let mut rows = Vec::new();
    for line in text.lines() {
        if !line.starts_with('|') {
            promising = false;
        } else if line.ends_with("| Kept by |") || line.ends_with("| Promise | Test |") {
            promising = true;
        } else if promising && !line.starts_with("|---") {
            rows.push(line);
        }
    }
    rows
}

#[test]
fn every_promise_of_the_readme_names_tests_that_exist() {
    let readme = read(&root().join("README.md"));
    let rows = promises(&readme);
    assert!(rows.len() >= 25, "only {} promises", rows.len());
    for row in rows {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let tests = links(tests);
        assert!(!tests.is_empty(), "no test: {row}");
        for (name, path) in tests {
            let name = name.trim_matches('`');
            assert!(holds(path, name), "no test {name} in {path}");
        }
    }
}

#[test]
fn every_link_of_the_readme_leads_somewhere() {
    let readme = read(&root().join("README.md"));
    let links = links(&readme);
    assert!(links.len() > 60, "only {} links", links.len());
    for (text, target) in links {
        let outside = target.starts_with("http") || target.starts_with('#');
        assert!(
            outside || root().join(target).exists(),
            "[{text}]({target})"
        );
    }
}

/// That a row names tests of this package, and they exist.
fn kept(row: &str, package: &str) {
    let names: Vec<_> = row
        .split('`')
        .filter(|name| name.contains(".rs::"))
        .collect();
    assert!(!names.is_empty(), "no test: {row}");
    for name in names {
        let (file, name) = name.split_once("::").unwrap();
        assert!(holds(&format!("{package}/{file}"), name), "no test: {name}");
    }
}

#[test]
fn every_escape_that_was_tried_is_tried_by_a_test() {
    let text = read(&root().join("examples/daemon/CONFINEMENT.md"));
    let rows = promises(&text);
    assert!(rows.len() >= 15, "only {} escapes", rows.len());
    rows.into_iter().for_each(|row| kept(row, "examples"));
}

#[test]
fn every_page_of_the_guide_is_named_in_the_readme_and_keeps_what_it_promises() {
    let readme = read(&root().join("README.md"));
    let folder = Path::new("rpc-core/src/guide");
    let mut pages = 0;
    for path in list(&root().join(folder)) {
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        pages += 1;
        let page = folder.join(path.file_name().unwrap());
        let link = format!("({})", page.display());
        assert!(readme.contains(&link), "{link} is not in the README");
        let text = read(&path);
        let rows = promises(&text);
        assert!(rows.len() > 1, "{link}: {} promises", rows.len());
        rows.into_iter().for_each(|row| kept(row, "rpc-core"));
    }
    assert!(pages >= 8, "only {pages} pages");
}
