//! Writes the tests of vectors as functions, for where there is no harness of tests.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut code, mut names) = (String::new(), String::new());
    for protocol in ["connectonion", "exoclaw", "smarthole", "snek"] {
        let package = root.join(format!("{protocol}-proto"));
        println!(
            "cargo::rerun-if-changed={}",
            package.join("tests/it").display()
        );
        let here = format!("\"{}\"", package.display());
        let read = |file: &str| {
            let text = fs::read_to_string(package.join("tests/it").join(file)).unwrap();
            let text = text.replace("env!(\"CARGO_MANIFEST_DIR\")", &here);
            let lines = text.lines().filter(|line| !line.starts_with("//!"));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        let mut parent = String::new();
        for line in read("vectors.rs").lines() {
            match line
                .strip_prefix("mod ")
                .and_then(|it| it.strip_suffix(';'))
            {
                // They need a runtime.
                Some("retries") => {}
                Some(topic) => {
                    let text = read(&format!("vectors/{topic}.rs"));
                    for test in text.split("#[test]\nfn ").skip(1) {
                        let name = test.split('(').next().unwrap();
                        // A page dials no URL with a user.
                        if name != "dialed_urls_match_the_vectors" {
                            names += &format!("{protocol}::{topic}::{name},");
                        }
                    }
                    let text = text.replace("#[test]\nfn ", "pub(crate) fn ");
                    parent += &format!("pub(crate) mod {topic} {{\n{text}}}\n");
                }
                None => parent += &format!("{line}\n"),
            }
        }
        code += &format!("#[allow(dead_code)]\nmod {protocol} {{\n{parent}}}\n");
    }
    code += &format!("const TESTS: &[fn()] = &[{names}];\n");
    fs::write(
        Path::new(&env::var("OUT_DIR").unwrap()).join("vectors.rs"),
        code,
    )
    .unwrap();
}
