//! The programs of the READMEs compile with the dependencies that their README names, and with no other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tree::{read, root};

/// The texts that begin with dependencies and programs.
const TEXTS: [(&str, &str); 7] = [
    ("readme", "README.md"),
    ("core", "rpc-core/src/guide/adding_a_protocol.md"),
    ("snek", "snek-proto/README.md"),
    ("exoclaw", "exoclaw-proto/README.md"),
    ("smarthole", "smarthole-proto/README.md"),
    ("connectonion", "connectonion-proto/README.md"),
    ("acolyte", "acolyte-proto/README.md"),
];

/// The blocks of a text between fences of one of these kinds.
fn blocks<'a>(text: &'a str, kinds: &[&str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, fenced)) = rest.split_once("\n```") {
        let (kind, block) = fenced.split_once('\n').unwrap();
        let (block, after) = block.split_once("\n```").unwrap();
        if kinds.contains(&kind) {
            found.push(block);
        }
        rest = after;
    }
    found
}

/// A program as its reader sees it compile: without the marks that hide lines from the page.
fn program(block: &str) -> String {
    let lines = block.lines().map(|line| match line {
        "#" => "",
        line => line.strip_prefix("# ").unwrap_or(line),
    });
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    format!("#![deny(warnings)]\n{lines}")
}

/// Writes the package of one text, as a reader would who follows it.
fn package(folder: &Path, name: &str, text: &str) {
    let text = read(&root().join(text));
    let dependencies = blocks(&text, &["toml"])[0];
    let dependencies = dependencies.replace("../switchboard", root().to_str().unwrap());
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{dependencies}\n"
    );
    let programs = folder.join(name).join("src/bin");
    fs::create_dir_all(&programs).unwrap();
    fs::write(folder.join(name).join("Cargo.toml"), manifest).unwrap();
    let written = blocks(&text, &["rust", "rust,no_run", ""]);
    let written = written
        .into_iter()
        .filter(|block| block.contains("fn main"));
    for (index, block) in written.enumerate() {
        fs::write(programs.join(format!("{name}_{index}.rs")), program(block)).unwrap();
    }
}

#[test]
#[ignore = "builds some two hundred crates; at night"]
fn the_programs_of_readmes_need_the_dependencies_that_these_name() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("readmes");
    let _ = fs::remove_dir_all(&folder);
    for (name, text) in TEXTS {
        package(&folder, name, text);
    }
    let members = TEXTS.map(|(name, _)| name);
    let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n");
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    // The same versions as here: nothing is looked up.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let checked = Command::new(env!("CARGO"))
        .args([
            "check",
            "--offline",
            "--workspace",
            "--bins",
            "--target-dir",
        ])
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."))
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
}
