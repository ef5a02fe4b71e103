//! The texts of the crates have one form: READMEs, guides and specifications. Their links lead somewhere.

use std::collections::{BTreeSet, HashSet};
use std::iter;
use std::path::Path;

use pulldown_cmark::{BrokenLink, Event, Options, Parser, Tag};
use regex::Regex;

use crate::tree::{files, read, root};
use crate::uniform::{assert_none, crates, promises, tests_of};

/// In this order, in every protocol crate's README, which is its crate documentation.
const README: [&str; 5] = [
    "Client",
    "Server",
    "Features",
    "Where to look",
    "Where to change what",
];

/// In this order, in every protocol crate's guide, which is its module `guide`.
const GUIDE: [&str; 6] = [
    "Frames", "Client", "Server", "Timeouts", "Limits", "Promises",
];

/// What a reader who never saw a crate looks for in its README first.
const CHANGES: [&str; 3] = ["add a method", "add an event", "change a timeout"];

/// Lines of a README.
const MAX_README: usize = 150;

/// Whether rustdoc shows a text as a module, so that its links are names of items.
fn is_page(path: &Path) -> bool {
    path.parent().is_some_and(|it| it.ends_with("src/guide"))
}

#[test]
fn links_of_plain_markdown_lead_to_files_or_urls() {
    let mut texts = files(&root(), ".md");
    texts.extend(files(&root().join(".github"), ".md"));
    texts.retain(|path| !is_page(path));
    let (mut found, mut problems) = (0, Vec::new());
    for path in texts {
        let folder = path.parent().expect("a folder");
        let text = read(&path);
        let mut names = Vec::new();
        let nameless = |link: BrokenLink<'_>| {
            if link.reference.starts_with('`') {
                names.push(link.reference.to_string());
            }
            None
        };
        let events =
            Parser::new_with_broken_link_callback(&text, Options::ENABLE_TABLES, Some(nameless));
        for event in events {
            let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event
            else {
                continue;
            };
            found += 1;
            let file = dest_url.split('#').next().unwrap_or_default();
            let is_outside = file.starts_with("http") || file.starts_with("mailto:");
            if !is_outside && !folder.join(file).exists() {
                problems.push(format!("{}: there is no {file}", path.display()));
            }
        }
        let names = names.into_iter();
        problems.extend(names.map(|name| format!("{}: [{name}] leads nowhere", path.display())));
    }
    assert_none(&problems);
    assert!(found > 100, "only {found} links");
}

/// Every path of a package's interface, from each of its segments on.
fn interface(package: &str) -> HashSet<String> {
    let text = read(&root().join(format!(".ci/api/{package}.txt")));
    // A method of a generic type, too.
    let text = Regex::new("<[^<>]*>::").unwrap().replace_all(&text, "::");
    let is_path = |it: char| it.is_alphanumeric() || "_:".contains(it);
    let paths = text.split(|it| !is_path(it)).flat_map(|path| {
        // That of a field ends with the colon before its type.
        let path = path.trim_end_matches(':');
        let starts = path.match_indices("::").map(|(at, _)| at + 2);
        iter::once(0).chain(starts).map(|at| path[at..].to_owned())
    });
    paths.collect()
}

#[test]
fn the_names_in_the_texts_of_a_crate_are_those_of_its_interface() {
    // Not the names of tests and members, which are in small letters.
    let name = Regex::new(r"^(\w+::[\w:]+|[A-Z][a-z]\w*)$").unwrap();
    let core = interface("switchboard-rpc-core");
    let mut problems = Vec::new();
    for folder in crates() {
        let own = interface(folder);
        for text in ["README.md", "GUIDE.md", "SPEC.md"] {
            for event in Parser::new_ext(
                &read(&root().join(folder).join(text)),
                Options::ENABLE_TABLES,
            ) {
                if let Event::Code(code) = event
                    && name.is_match(&code)
                    && !own.contains(&*code)
                    && !core.contains(&*code)
                {
                    problems.push(format!("{folder}/{text}: there is no {code}"));
                }
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn the_versions_of_peers_are_those_that_are_installed() {
    let support = read(&root().join(".github/SUPPORT.md"));
    let (_, table) = support.split_once("\n### Versions\n").unwrap();
    let (table, _) = table.split_once("\nA test").unwrap();
    let row = Regex::new(r"(?m)^\| `(.+)` \| ([\d.]+) \|$").unwrap();
    let pinned = Regex::new(r#""([@a-z/-]+)(?:==|@)([\d.]+)""#).unwrap();
    let pairs = |found: &Regex, text: &str| -> BTreeSet<(String, String)> {
        let pair = |it: regex::Captures<'_>| (it[1].to_owned(), it[2].to_owned());
        found.captures_iter(text).map(pair).collect()
    };
    let installed = pairs(&pinned, &read(&root().join(".ci/peers/run")));
    assert_eq!(pairs(&row, table), installed);
    assert!(installed.len() > 5, "only {installed:?}");
}

/// Headings of the second level, without what is in code.
fn headings(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let outside = text.lines().filter(|line| {
        in_code ^= line.starts_with("```");
        !in_code
    });
    outside
        .filter_map(|line| line.strip_prefix("## "))
        .collect()
}

#[test]
fn protocol_readmes_and_guides_have_the_same_headings_in_order() {
    let mut problems = Vec::new();
    for folder in crates() {
        let package = root().join(folder);
        let files: [(&str, &[&str]); 2] = [("README.md", &README), ("GUIDE.md", &GUIDE)];
        for (file, expected) in files {
            let text = read(&package.join(file));
            let mut found = headings(&text);
            found.retain(|heading| expected.contains(heading));
            if found != expected {
                problems.push(format!(
                    "{folder}/{file}: headings {found:?} instead of {expected:?}"
                ));
            }
        }
        let lib = read(&package.join("src/lib.rs"));
        if !lib.contains("#![doc = include_str!(\"../README.md\")]") {
            problems.push(format!(
                "{folder}: the README is not the crate documentation"
            ));
        }
    }
    assert_none(&problems);
}

#[test]
fn readmes_are_short_and_say_where_to_change_what() {
    let mut problems = Vec::new();
    let short = ["", "rpc-core", "examples", "examples/switchboard"].into_iter();
    for folder in short.chain(crates()) {
        let lines = read(&root().join(folder).join("README.md")).lines().count();
        if lines > MAX_README {
            problems.push(format!("{folder}/README.md: {lines} lines"));
        }
    }
    let core = ["rpc-core"].into_iter();
    for folder in core.chain(crates()) {
        let package = root().join(folder);
        let readme = read(&package.join("README.md"));
        let (_, table) = readme.split_once("\n## Where to change what\n").unwrap();
        for change in CHANGES {
            if folder != "rpc-core" && !table.contains(&format!("\n| {change}")) {
                problems.push(format!("{folder}/README.md does not say where to {change}"));
            }
        }
        let quoted = table.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|path| path.contains('/') || path.ends_with(".md"));
        for path in paths {
            if !package.join(path).exists() {
                problems.push(format!("{folder}/README.md: there is no {path}"));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn every_line_of_a_specification_names_tests_that_exist() {
    let mut problems = Vec::new();
    for folder in crates() {
        let own = tests_of(&[folder]);
        let text = read(&root().join(folder).join("SPEC.md"));
        let rows = promises(&text);
        assert!(rows.len() > 25, "{folder}/SPEC.md: {} promises", rows.len());
        for row in rows {
            let tests = row.rsplit('|').nth(1).unwrap_or_default();
            let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
            if names.is_empty() {
                problems.push(format!("{folder}/SPEC.md: no test: {row}"));
            }
            // One outside of the crate says where it is.
            let missing = names.iter().filter(|name| match name.split_once("::") {
                Some((place, name)) => !tests_of(&[place]).contains(name),
                None => !own.contains(**name),
            });
            problems.extend(missing.map(|name| format!("{folder}/SPEC.md: no test {name}")));
        }
    }
    assert_none(&problems);
}

#[test]
fn every_protocol_crate_documents_its_specification_line_by_line() {
    let mut problems = Vec::new();
    for folder in crates() {
        let package = root().join(folder);
        let lib = read(&package.join("src/lib.rs"));
        if !lib.contains("#[doc = include_str!(\"../SPEC.md\")]\npub mod spec {}\n") {
            problems.push(format!("{folder}: SPEC.md is not the module spec"));
        }
        if !lib.contains("#[doc = include_str!(\"../GUIDE.md\")]\npub mod guide {}\n") {
            problems.push(format!("{folder}: GUIDE.md is not the module guide"));
        }
        for page in ["[`spec`]", "[`guide`]"] {
            if !read(&package.join("README.md")).contains(page) {
                problems.push(format!("{folder}/README.md does not lead to {page}"));
            }
        }
        let spec = read(&package.join("SPEC.md"));
        for row in spec.lines().filter(|line| line.starts_with('|')) {
            let cells = row.trim_matches('|').split(" | ").count();
            if cells != 3 && !row.starts_with("|---") {
                problems.push(format!("{folder}/SPEC.md: {cells} cells: {row}"));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn the_guide_adds_up_what_each_server_holds_of_what_it_receives() {
    let guide = read(&root().join("rpc-core/src/guide/limits.md"));
    for (name, http) in [
        ("Snek", snek_proto::net::http_config()),
        ("Exoclaw", exoclaw_proto::net::http_config()),
        ("SmartHole", smarthole_proto::net::http_config()),
        ("Acolyte", acolyte_proto::net::http_config()),
        ("of ConnectOnion", connectonion_proto::net::http_config()),
    ] {
        let connections = http.limits.max_connections;
        let sum = format!("256 MiB + {} MiB = ", (connections * 48).div_ceil(1024));
        let mut rows = guide.lines().filter(|line| line.starts_with("| of "));
        let row = rows.find(|row| row.contains(name)).unwrap();
        assert!(row.contains(&sum), "{row}: {sum}");
    }
}
