//! The protocol crates look alike: features, names, faults.

use std::collections::HashSet;

use crate::tree::{read, root, rust_files};

/// A protocol crate that is finished, and what it has beyond the common part.
struct Finished {
    folder: &'static str,
    /// Features of its own, after the common ones.
    own_features: &'static [&'static str],
    /// Common items that do not apply to it. Its guide says why.
    without: &'static [&'static str],
}

/// A crate joins this list when it is finished; from then on it has to stay uniform.
const FINISHED: &[Finished] = &[
    Finished {
        folder: "snek-proto",
        own_features: &["cluster", "nats", "triggers", "schema", "fetch"],
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
        own_features: &["nats", "file", "auth"],
        without: &[],
    },
    Finished {
        folder: "acolyte-proto",
        own_features: &["sse"],
        without: &[],
    },
];

/// In this order, in every protocol crate and in the core.
const FEATURES: [&str; 9] = [
    "default", "tokio", "ws", "tls", "proxy", "server", "web", "metrics", "testing",
];

/// At these paths in every protocol crate.
const ITEMS: [&str; 24] = [
    "frame::ClientFrame",
    "frame::ServerFrame",
    "codec::encode",
    "codec::encode_into",
    "client::ClientConn",
    "client::ClientConfig",
    "client::ClientEvent",
    "client::ClientState",
    "client::reconnect_policy",
    "server::ServerConn",
    "server::ServerConfig",
    "server::ServerEvent",
    "net::Client",
    "net::Connection",
    "net::Events",
    "net::ConnectError",
    "net::connect",
    "net::connect_lazy",
    "net::connect_with",
    "net::dialer",
    "net::Server",
    "net::ServerOptions",
    "net::ServerHandle",
    "net::http_config",
];

/// What some type of a module does in every protocol crate, under the same names.
const METHODS: [(&str, &[&str]); 3] = [
    (
        "client",
        &["new", "state", "in_flight", "next_timeout", "close_with"],
    ),
    ("server", &["new", "next_timeout", "close_with"]),
    ("net", &["deref"]), // to the link of the client
];

/// Modules that every protocol crate has, besides those of [`ITEMS`].
const MODULES: [&str; 3] = ["error", "id", "limits"];

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

/// The public interface of a crate, a line an item, and the path that its items begin with.
fn interface(folder: &str) -> (String, String) {
    let items = read(&root().join(format!(".ci/api/{folder}.txt")));
    (items, folder.replace('-', "_"))
}

/// Whether one of these items is declared, or exported, under this path.
fn exports(items: &str, path: &str) -> bool {
    items.lines().any(|line| {
        let (declared, after) = line.split_once(path).unwrap_or_default();
        let goes_on = |c: char| c.is_alphanumeric() || c == '_';
        let is_whole = !after.starts_with(goes_on) && !after.starts_with("::");
        is_whole && declared.contains("pub ") && declared.ends_with(' ') && !declared.contains("::")
    })
}

pub(crate) fn assert_none(problems: &[String]) {
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
    let mut expected = FEATURES.to_vec();
    expected.extend(["file", "file-store", "sessions", "nats"]);
    assert_eq!(features(&core), expected, "rpc-core");
}

#[test]
fn published_crates_inherit_what_the_workspace_sets() {
    let workspace = read(&root().join("Cargo.toml"));
    let keys = section(&workspace, "workspace.package").into_iter();
    let keys: Vec<_> = keys
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .collect();
    assert!(keys.contains(&"license"), "{keys:?}");
    let folders = FINISHED.iter().map(|krate| krate.folder);
    for folder in folders.chain(["rpc-core"]) {
        let manifest = read(&root().join(folder).join("Cargo.toml"));
        let package = section(&manifest, "package");
        for key in &keys {
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
fn protocol_crates_have_the_same_names_at_the_same_paths() {
    let mut problems = Vec::new();
    for krate in FINISHED {
        let (items, name) = interface(krate.folder);
        for item in ITEMS.iter().chain(&MODULES) {
            if !krate.without.contains(item) && !exports(&items, &format!("{name}::{item}")) {
                problems.push(format!("{}: no {item}", krate.folder));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn protocol_crates_do_the_same_by_the_same_names() {
    let mut problems = Vec::new();
    for krate in FINISHED {
        let (items, name) = interface(krate.folder);
        for (module, methods) in METHODS {
            let module = format!("fn {name}::{module}::");
            for method in methods {
                let ends = [format!("::{method}("), format!("::{method}<")];
                let is_there = |line: &str| {
                    line.contains(&module) && ends.iter().any(|end| line.contains(end))
                };
                if !items.lines().any(is_there) {
                    let folder = krate.folder;
                    problems.push(format!("{folder}: nothing in {module} can {method}"));
                }
            }
        }
    }
    assert_none(&problems);
}

/// The folders of the protocol crates.
pub(crate) fn crates() -> impl Iterator<Item = &'static str> {
    FINISHED.iter().map(|krate| krate.folder)
}

/// The rows of tables whose last column names tests: the crate's own, the core's, or the examples'.
pub(crate) fn promises(text: &str) -> Vec<&str> {
    let mut promising = false;
    let mut rows = Vec::new();
    for line in text.lines() {
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

/// The names of the tests in a source.
fn tests(source: &str) -> Vec<&str> {
    let mut is_test = false;
    let mut names = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
            names.extend(rest.split('(').next());
            is_test = false;
        }
    }
    names
}

/// The tests of a crate, of the core, of what tests share, and of the examples.
pub(crate) fn tests_near(folder: &str) -> HashSet<String> {
    tests_of(&[
        folder,
        "rpc-core",
        "fuzz/bodies",
        "fuzz/testing",
        "examples",
        "examples/cli",
        "examples/switchboard",
        "examples/wire",
    ])
}

/// The tests of these packages.
pub(crate) fn tests_of(places: &[&str]) -> HashSet<String> {
    let mut known = HashSet::new();
    for place in places {
        for part in ["src", "tests"] {
            for file in rust_files(&root().join(place).join(part)) {
                known.extend(tests(&read(&file)).into_iter().map(str::to_owned));
            }
        }
    }
    known
}

#[test]
fn every_fault_is_checked_for_every_protocol_crate() {
    let table = read(&root().join("rpc-core/FAULTS.md"));
    let mut problems = Vec::new();
    for (heading, side) in [("Servers", "server"), ("Clients", "client")] {
        let goes_through = format!("the_{side}_survives_every_fault");
        let file = format!("faults_{side}.rs");
        let section = table.split("\n## ").find_map(|it| it.strip_prefix(heading));
        let rows = promises(section.expect("a section"));
        // Names with a path are of one crate, and looked for there.
        let cells = rows.iter().filter_map(|row| row.rsplit('|').nth(1));
        let cells = cells.filter(|cell| !cell.contains("::"));
        // `test`, `other` except `some-proto`
        let cells = cells.filter_map(|cell| cell.split(" except ").next());
        let named: HashSet<_> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        assert!(named.len() > 20, "{heading}: {} names", named.len());
        let list = read(&root().join(format!("fuzz/testing/src/faults/{side}/mod.rs")));
        let (_, list) = list.split_once("pub fn check_all<").expect("the list");
        let list = list.split("\n}").next().unwrap_or_default();
        let mut listed: HashSet<_> = list.split('"').skip(1).step_by(2).collect();
        for krate in FINISHED {
            let folder = krate.folder;
            let source = read(&root().join(folder).join("tests/it").join(&file));
            let mut own = tests(&source);
            if !own.contains(&&*goes_through) {
                problems.push(format!("{folder}/{file}: no test {goes_through}"));
            }
            own.retain(|name| *name != goes_through);
            let is_missing = |name: &&&str| !listed.contains(**name) && !own.contains(name);
            let missing = named.iter().filter(is_missing);
            problems.extend(missing.map(|name| format!("{folder}: no test {name}")));
            let unnamed = own.into_iter().filter(|name| !named.contains(name));
            problems.extend(unnamed.map(|name| format!("{folder}: {name} has no row")));
        }
        listed.retain(|name| !named.contains(name));
        problems.extend(listed.iter().map(|name| format!("{name} has no row")));
    }
    assert_none(&problems);
}

#[test]
fn every_fault_of_one_crate_names_tests_that_exist() {
    let table = read(&root().join("rpc-core/FAULTS.md"));
    let quoted = table.split('`').skip(1).step_by(2);
    // `some-proto/file::test`
    let named: Vec<_> = quoted
        .filter_map(|quoted| quoted.split_once("-proto/"))
        .filter_map(|(name, test)| Some((name, test.split_once("::")?)))
        .collect();
    assert!(named.len() > 15, "only {} are named", named.len());
    let mut problems = Vec::new();
    for (name, (file, test)) in named {
        let file = format!("{name}-proto/tests/it/{file}.rs");
        if !tests(&read(&root().join(&file))).contains(&test) {
            problems.push(format!("{file}: no test {test}"));
        }
    }
    assert_none(&problems);
}

#[test]
fn tests_are_found_in_every_form() {
    let source = "#[test]\nfn a() {}\nfn b() {}\n#[tokio::test(start_paused = true)]\n\
                  #[ignore = \"it\"]\nasync fn c() {}\n    #[test]\n    fn d(\n";
    assert_eq!(tests(source), ["a", "c", "d"]);
}

#[test]
fn exports_are_found_in_every_form() {
    let items = "pub mod a\npub const fn a::f()\n#[non_exhaustive] pub struct a::S<T>\n\
                 pub fn a::S::g(&self) -> a::X\npub type a::Alias = b::C\n";
    for path in ["a", "a::f", "a::S", "a::S::g", "a::Alias"] {
        assert!(exports(items, path), "{path}");
    }
    for path in ["a::X", "b::C", "S", "f", "a::Ali"] {
        assert!(!exports(items, path), "{path}");
    }
}
