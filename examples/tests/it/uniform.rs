//! The protocol crates look alike: features, type names, file sizes, faults.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::tree::{list, read, root, rust_files};

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

/// At these paths in every protocol crate.
const ITEMS: [&str; 25] = [
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
    "net::connect",
    "net::connect_with",
    "net::dialer",
    "net::link_config",
    "net::ClientProtocol",
    "net::Server",
    "net::ServerOptions",
    "net::ServerHandle",
    "net::http_config",
    "limits::SHUTDOWN_TIMEOUT",
];

/// What every protocol crate's types do, under the same names. A type may have another name behind
/// an alias, so only the files are looked at: a folder, and what is declared somewhere in it.
const METHODS: [(&str, &[&str]); 4] = [
    (
        "client",
        &[
            "new",
            "state",
            "in_flight",
            "next_timeout",
            "close",
            "close_with",
            "with_limits",
        ],
    ),
    (
        "server",
        &[
            "new",
            "next_timeout",
            "close",
            "close_with",
            "with_keep_alive",
            "with_limits",
        ],
    ),
    (
        "net",
        &["ready", "closed", "state", "close", "drain", "link"],
    ),
    (
        "net/serve",
        &[
            "bind",
            "local_addr",
            "url",
            "handle",
            "run",
            "with_connection",
            "with_http",
            "with_driver",
            "with_shutdown_timeout",
        ],
    ),
];

/// What machines do by the core's means, and no machine by its own.
const OF_THE_CORE: [(&str, &str); 3] = [
    ("close_emitted", "MachineCore tells the end once"),
    (
        "event_bytes +=",
        "MachineCore counts what waiting events hold",
    ),
    (
        "catch_unwind(AssertUnwindSafe(|| check(",
        "testing::vectors runs vectors",
    ),
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
                ["struct", "enum", "trait", "type", "fn", "mod", "const"].contains(&word.as_str())
            };
            words.first().is_some_and(|word| word == "pub")
                && words
                    .windows(2)
                    .any(|pair| kind(&pair[0]) && pair[1] == name)
        });
        reexported || declared
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

#[test]
fn protocol_crates_do_the_same_by_the_same_names() {
    let mut problems = Vec::new();
    for krate in FINISHED {
        for (folder, methods) in METHODS {
            let files = rust_files(&root().join(krate.folder).join("src").join(folder));
            let sources: String = files.iter().map(|file| read(file)).collect();
            for method in methods {
                let declared = ["fn", "const fn", "async fn"]
                    .iter()
                    .any(|kind| sources.contains(&format!("    pub {kind} {method}(")))
                    || sources.contains(&format!("    pub fn {method}<"))
                    // A setter of `config!`.
                    || [',', '('].iter().any(|end| sources.contains(&format!("=> {method}{end}")));
                if !declared {
                    problems.push(format!(
                        "{}: nothing in {folder} can {method}",
                        krate.folder
                    ));
                }
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn protocol_crates_have_no_copies_of_what_the_core_does() {
    let mut problems = Vec::new();
    for krate in FINISHED {
        for part in ["src", "tests"] {
            for file in rust_files(&root().join(krate.folder).join(part)) {
                let text = read(&file);
                for (copy, instead) in OF_THE_CORE {
                    if text.contains(copy) {
                        problems.push(format!("{}: {copy}: {instead}", file.display()));
                    }
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
    let mut known = HashSet::new();
    for place in [
        folder,
        "rpc-core",
        "fuzz/bodies",
        "fuzz/testing",
        "examples",
    ] {
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

/// `config!`, `tagged!`, and what repeats in serializers; words and open objects of one protocol.
const WITH_MACROS: [&str; 4] = [
    "rpc-core/src/config.rs",
    "rpc-core/src/json",
    "rpc-core/src/words.rs",
    "acolyte-proto/src/frame/open.rs",
];

#[test]
fn libraries_define_few_macros() {
    let mut problems = Vec::new();
    let packages = list(&root());
    for package in packages.iter().filter(|path| path.is_dir()) {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with("-proto") || name == "rpc-core" {
            for path in rust_files(&package.join("src")) {
                let known = WITH_MACROS.iter();
                let may = known
                    .into_iter()
                    .any(|known| path.starts_with(root().join(known)));
                if !may && read(&path).contains("macro_rules!") {
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
