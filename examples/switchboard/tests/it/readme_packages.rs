//! The programs of READMEs and guides compile as they stand there, with the dependencies that these name and no other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tree::{read, root};

/// The folders of the texts, and those that name dependencies and have programs.
const TEXTS: [(&str, &[&str]); 7] = [
    (".", &["README.md"]),
    ("rpc-core", &["src/guide/adding_a_protocol.md", "README.md"]),
    ("snek-proto", &["README.md", "GUIDE.md"]),
    ("exoclaw-proto", &["README.md", "GUIDE.md"]),
    ("smarthole-proto", &["README.md", "GUIDE.md"]),
    ("connectonion-proto", &["README.md", "GUIDE.md"]),
    ("acolyte-proto", &["README.md", "GUIDE.md"]),
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

/// A program as its reader copies it: plain Markdown hides no line. What is none gets an empty one.
fn program(block: &str) -> String {
    match block.contains("fn main") {
        true => format!("#![deny(warnings)]\n{block}\n"),
        false => format!("#![deny(warnings)]\n#![allow(dead_code)]\n{block}\nfn main() {{}}\n"),
    }
}

/// Writes the package of the texts of a folder, as a reader would who follows them.
fn package(folder: &Path, name: &str, of: &str, texts: &[&str]) {
    let texts = texts.iter().map(|text| read(&root().join(of).join(text)));
    let text = texts.collect::<String>();
    let dependencies = blocks(&text, &["toml"]).join("\n");
    let dependencies = dependencies.replace("../switchboard", root().to_str().unwrap());
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{dependencies}\n"
    );
    let programs = folder.join(name).join("src/bin");
    fs::create_dir_all(&programs).unwrap();
    fs::write(folder.join(name).join("Cargo.toml"), manifest).unwrap();
    let written = blocks(&text, &["rust", "rust,no_run", ""]);
    let written = written.into_iter().filter(|block| block.contains("fn "));
    for (index, block) in written.enumerate() {
        fs::write(programs.join(format!("{name}_{index}.rs")), program(block)).unwrap();
    }
}

#[test]
#[ignore = "builds some two hundred crates; at night"]
fn the_programs_of_readmes_need_the_dependencies_that_these_name() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("readmes");
    let _ = fs::remove_dir_all(&folder);
    let members = TEXTS.map(|(of, _)| format!("programs-of-{of}").replace('.', "readme"));
    let mut manifest = format!("[workspace]\nmembers = {members:?}\n[patch.crates-io]\n");
    for (name, (of, texts)) in members.iter().zip(TEXTS) {
        package(&folder, name, of, texts);
        // A release names versions, which are not in the registry yet.
        let published = of.replace("rpc-core", "switchboard-rpc-core");
        if of != "." {
            let path = root().join(of);
            manifest += &format!("{published} = {{ path = {path:?} }}\n");
        }
    }
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
