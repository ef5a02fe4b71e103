//! The protocol crates look alike: features, documentation, type names, file sizes.

use std::path::{Path, PathBuf};

use crate::tree::{list, read, root, rust_files};

/// A protocol crate that is finished, and what it has beyond the common part.
struct Finished {
    folder: &'static str,
    /// Features of its own, after the common ones.
    own_features: &'static [&'static str],
    /// Common items that do not apply to it. Its README says why.
    without: &'static [&'static str],
}

/// A crate joins this list when it is finished; from then on it has to stay uniform.
const FINISHED: &[Finished] = &[
    Finished {
        folder: "snek-proto",
        own_features: &["schema", "fetch"],
        without: &[],
    },
    Finished {
        folder: "exoclaw-proto",
        own_features: &[],
        without: &[],
    },
    Finished {
        folder: "smarthole-proto",
        own_features: &[],
        without: &[],
    },
    Finished {
        folder: "connectonion-proto",
        own_features: &["auth"],
        without: &[],
    },
    Finished {
        folder: "acolyte-proto",
        own_features: &["sse"],
        without: &[],
    },
];

/// In this order, in every protocol crate and in the core.
const FEATURES: [&str; 6] = ["default", "tokio", "ws", "tls", "server", "testing"];

/// In this order, in every protocol crate's README, which is its crate documentation.
const HEADINGS: [&str; 7] = [
    "Protocol",
    "Frames",
    "Client",
    "Server",
    "Timeouts",
    "Limits",
    "Deviations",
];

/// At these paths in every protocol crate.
const ITEMS: [&str; 20] = [
    "ClientFrame",
    "ServerFrame",
    "frame::ClientFrame",
    "frame::ServerFrame",
    "codec::encode",
    "codec::encode_into",
    "client::ClientConn",
    "client::ClientConfig",
    "client::ClientEvent",
    "server::ServerConn",
    "server::ServerConfig",
    "server::ServerEvent",
    "net::Client",
    "net::Connection",
    "net::Events",
    "net::connect",
    "fuzzing::client_frames",
    "fuzzing::server_frames",
    "fuzzing::client_conn",
    "fuzzing::server_conn",
];

/// Modules that every protocol crate has, besides those of [`ITEMS`].
const MODULES: [&str; 3] = ["error", "id", "limits"];

const MAX_LINES: usize = 600;

/// The lines of a section of a manifest, without comments.
fn section<'a>(manifest: &'a str, name: &str) -> Vec<&'a str> {
    manifest
        .lines()
        .skip_while(|line| *line != format!("[{name}]"))
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Names of features in order; a list over several lines counts once.
fn features(manifest: &str) -> Vec<&str> {
    section(manifest, "features")
        .iter()
        .filter(|line| !line.starts_with([' ', ']']))
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .collect()
}

/// The file of a module, given as `a` or `a::b`; the crate's root if it is empty.
fn module_file(package: &Path, module: &str) -> Option<PathBuf> {
    if module.is_empty() {
        return Some(package.join("src/lib.rs"));
    }
    let base = package.join("src").join(module.replace("::", "/"));
    [base.with_extension("rs"), base.join("mod.rs")]
        .into_iter()
        .find(|path| path.is_file())
}

/// Whether this source declares or re-exports a public item of this name.
fn exports(source: &str, name: &str) -> bool {
    source.split(';').any(|statement| {
        let words = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect()
        };
        // Re-exports end at a semicolon; declarations are looked for line by line.
        let reexported = statement
            .rsplit_once("pub use ")
            .is_some_and(|(_, list)| words(list).iter().any(|word| word == name));
        let declared = statement.lines().any(|line| {
            let words = words(line);
            let kind = |word: &String| {
                ["struct", "enum", "trait", "type", "fn", "mod"].contains(&word.as_str())
            };
            words.first().is_some_and(|word| word == "pub")
                && words
                    .windows(2)
                    .any(|pair| kind(&pair[0]) && pair[1] == name)
        });
        reexported || declared
    })
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn protocol_crates_have_the_same_features() {
    for krate in FINISHED {
        let manifest = read(&root().join(krate.folder).join("Cargo.toml"));
        let mut expected = FEATURES.to_vec();
        expected.extend(krate.own_features);
        assert_eq!(features(&manifest), expected, "{}", krate.folder);
        assert!(
            section(&manifest, "features").contains(&"default = []"),
            "{}: nothing is on by default",
            krate.folder
        );
    }
    let core = read(&root().join("rpc-core/Cargo.toml"));
    assert_eq!(features(&core), FEATURES, "rpc-core");
}

#[test]
fn published_crates_inherit_what_the_workspace_sets() {
    let folders = FINISHED.iter().map(|krate| krate.folder);
    for folder in folders.chain(["rpc-core"]) {
        let manifest = read(&root().join(folder).join("Cargo.toml"));
        let package = section(&manifest, "package");
        for key in [
            "version",
            "edition",
            "rust-version",
            "license",
            "authors",
            "categories",
            "exclude",
        ] {
            let line = format!("{key}.workspace = true");
            assert!(package.contains(&line.as_str()), "{folder}: {line}");
        }
        for key in ["description", "readme", "documentation", "keywords"] {
            assert!(
                package.iter().any(|line| line.starts_with(key)),
                "{folder}: {key}"
            );
        }
        assert_eq!(
            section(&manifest, "lints"),
            ["workspace = true"],
            "{folder}"
        );
        assert_eq!(
            section(&manifest, "package.metadata.docs.rs"),
            [
                "all-features = true",
                "rustdoc-args = [\"--cfg\", \"docsrs\"]"
            ],
            "{folder}: docs.rs shows all features, and which one each item needs"
        );
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(
                read(&root().join(folder).join(licence)),
                read(&root().join(licence)),
                "{folder}: {licence} goes along"
            );
        }
    }
}

#[test]
fn protocol_readmes_have_the_same_headings_in_order() {
    let mut problems = Vec::new();
    for krate in FINISHED {
        let package = root().join(krate.folder);
        let readme = read(&package.join("README.md"));
        let mut in_code = false;
        let found: Vec<_> = readme
            .lines()
            .filter(|line| {
                in_code ^= line.starts_with("```");
                !in_code
            })
            .filter_map(|line| line.strip_prefix("## "))
            .filter(|heading| HEADINGS.contains(heading))
            .collect();
        if found != HEADINGS {
            problems.push(format!(
                "{}/README.md: headings {found:?} instead of {HEADINGS:?}",
                krate.folder
            ));
        }
        let lib = read(&package.join("src/lib.rs"));
        if !lib.contains("#![doc = include_str!(\"../README.md\")]") {
            problems.push(format!(
                "{}: the README is not the crate documentation",
                krate.folder
            ));
        }
    }
    assert_none(&problems);
}

#[test]
fn protocol_crates_have_the_same_names_at_the_same_paths() {
    let mut problems = Vec::new();
    for krate in FINISHED {
        let package = root().join(krate.folder);
        for item in ITEMS.iter().filter(|item| !krate.without.contains(item)) {
            let (module, name) = item.rsplit_once("::").unwrap_or(("", item));
            let file = module_file(&package, module);
            let there = file.is_some_and(|file| exports(&read(&file), name));
            if !there {
                problems.push(format!("{}: no {item}", krate.folder));
            }
        }
        let lib = read(&package.join("src/lib.rs"));
        for module in MODULES.iter().filter(|name| !krate.without.contains(name)) {
            if !exports(&lib, module) {
                problems.push(format!("{}: no module {module}", krate.folder));
            }
        }
    }
    assert_none(&problems);
}

/// The rows of tables whose last column names tests: the crate's own, or the core's.
fn promises(readme: &str) -> Vec<&str> {
    let mut promising = false;
    let mut rows = Vec::new();
    for line in readme.lines() {
        if !line.starts_with('|') {
            promising = false;
        } else if line.ends_with("| Shown by |") {
            promising = true;
        } else if promising && !line.starts_with("|---") {
            rows.push(line);
        }
    }
    rows
}

#[test]
fn every_promise_names_tests_that_exist() {
    let mut problems = Vec::new();
    for krate in FINISHED {
        let folder = krate.folder;
        let mut sources = String::new();
        for place in [folder, "rpc-core"] {
            for part in ["src", "tests"] {
                for file in rust_files(&root().join(place).join(part)) {
                    sources.push_str(&read(&file));
                }
            }
        }
        let readme = read(&root().join(folder).join("README.md"));
        let rows = promises(&readme);
        assert!(rows.len() > 25, "{folder}: {} promises", rows.len());
        for row in rows {
            let tests = row.rsplit('|').nth(1).unwrap_or_default();
            let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
            if names.is_empty() {
                problems.push(format!("{folder}: no test: {row}"));
            }
            let missing = names
                .iter()
                .filter(|name| !sources.contains(&format!("fn {name}(")));
            problems.extend(missing.map(|name| format!("{folder}: no test {name}")));
        }
    }
    assert_none(&problems);
}

#[test]
fn every_rust_file_says_what_it_holds_and_stays_small() {
    let mut problems = Vec::new();
    let files = rust_files(&root());
    assert!(files.len() > 50, "the tree was found");
    for path in files {
        let text = read(&path);
        let lines = text.lines().count();
        let name = path
            .strip_prefix(root())
            .unwrap_or(&path)
            .display()
            .to_string();
        if lines > MAX_LINES {
            problems.push(format!("{name}: {lines} lines, at most {MAX_LINES}"));
        }
        if !text.starts_with("//!") {
            problems.push(format!("{name}: the first line does not start with `//!`"));
        }
    }
    assert_none(&problems);
}

#[test]
fn libraries_define_no_macros() {
    let mut problems = Vec::new();
    let packages = list(&root());
    for package in packages.iter().filter(|path| path.is_dir()) {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with("-proto") || name == "rpc-core" {
            for path in rust_files(&package.join("src")) {
                if read(&path).contains("macro_rules!") {
                    problems.push(format!("{}: macro_rules!", path.display()));
                }
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn exports_are_found_in_every_form() {
    let source = "pub mod a;\npub use b::{C, D as E};\n#[must_use]\npub const fn f() {}\n\
                  pub(crate) struct G;\nuse h::I;\npub struct J<'a> {\n    k: u8,\n}\n";
    for name in ["a", "C", "E", "f", "J"] {
        assert!(exports(source, name), "{name}");
    }
    for name in ["h", "I", "k", "L"] {
        assert!(!exports(source, name), "{name}");
    }
}
