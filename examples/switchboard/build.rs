//! Passes the programs of the READMEs and guides to `tests/it/readmes.rs`, which runs them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// A text, the name of its programs, and where they connect to.
const TEXTS: [(&str, &str, &str); 7] = [
    ("snek-proto/README.md", "snek", "wss://snek.molodetz.nl"),
    ("exoclaw-proto/README.md", "exoclaw", "ws://127.0.0.1:7200"),
    (
        "smarthole-proto/README.md",
        "smarthole",
        "ws://127.0.0.1:9473",
    ),
    (
        "smarthole-proto/GUIDE.md",
        "smarthole_guide",
        "ws://127.0.0.1:9473",
    ),
    (
        "connectonion-proto/README.md",
        "connectonion",
        "http://127.0.0.1:8000",
    ),
    (
        "connectonion-proto/GUIDE.md",
        "connectonion_guide",
        "http://127.0.0.1:8000",
    ),
    (
        "acolyte-proto/README.md",
        "acolyte",
        "http://127.0.0.1:6767",
    ),
];

fn main() -> io::Result<()> {
    let package = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    let (mut modules, mut names) = (String::new(), String::new());
    for (text, name, url) in TEXTS {
        let path = Path::new(&package).join("../..").join(text);
        println!("cargo::rerun-if-changed={}", path.display());
        for (index, program) in programs(&fs::read_to_string(path)?).enumerate() {
            let name = format!("{name}_{}", index + 1);
            let program = runnable(program, url);
            let _ = writeln!(modules, "pub(crate) mod {name} {{\n{program}\n}}\n");
            let _ = write!(names, "{name:?}, ");
        }
    }
    let all = format!("{modules}pub(crate) const NAMES: &[&str] = &[{names}];\n");
    fs::write(Path::new(&folder).join("readmes.rs"), all)
}

/// What is compiled with the documentation and not run with it.
fn programs(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("\n```rust,no_run\n").skip(1);
    blocks.filter_map(|block| Some(block.split_once("\n```\n")?.0))
}

/// The program as it is, except for the server that it talks to and what its caller has to see.
fn runnable(program: &str, url: &str) -> String {
    program
        .replace(&format!("{url:?}"), "&crate::readmes::url()")
        .replace("\"127.0.0.1:8000\"", "crate::readmes::url()")
        .replace("async fn main()", "pub(crate) async fn main()")
        .replace("async fn host(", "pub(crate) async fn host(")
}
