//! Every fuzz target: its seeds pass, so do random bytes, and all that belongs to it is there.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use bodies::TARGETS;
use proptest::prelude::*;
use regex::Regex;
use serde_json::Value;

const MAX_SEED: usize = 1024;
const PROTOCOLS: [&str; 5] = ["acolyte", "connectonion", "exoclaw", "smarthole", "snek"];

fn fuzz() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("a folder around it")
}

/// What a folder of `fuzz/` holds, sorted.
fn list(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(fuzz().join(folder)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn stems(folder: &str) -> Vec<String> {
    let stem = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    list(folder).iter().map(stem).collect()
}

/// Runs every seed, so that one failure does not hide the others.
#[test]
fn the_seeds_of_every_target_pass() {
    let mut failed = Vec::new();
    let mut replayed = 0;
    for (target, body) in TARGETS {
        let seeds = list(Path::new("seeds").join(target));
        assert!(!seeds.is_empty(), "{target} has no seeds");
        for path in seeds {
            let input = fs::read(&path).unwrap();
            let len = input.len();
            assert!(len <= MAX_SEED, "{}: {len} bytes", path.display());
            if catch_unwind(|| body.run(&input)).is_err() {
                failed.push(path.display().to_string());
            }
            replayed += 1;
        }
    }
    println!("{replayed} seeds");
    let count = failed.len();
    assert!(
        failed.is_empty(),
        "{count} seeds fail:\n{}",
        failed.join("\n")
    );
}

/// Collects the texts in a value, and what is no text as JSON.
fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => return into.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| texts(part, into)),
        Value::Object(parts) => parts.values().for_each(|part| texts(part, into)),
        _ => {}
    }
    into.push(value.to_string());
}

#[test]
fn every_text_in_the_vectors_keeps_the_rules_of_frames() {
    let mut failed = Vec::new();
    for protocol in PROTOCOLS {
        let mut inputs = Vec::new();
        for path in list(format!("../{protocol}-proto/tests/vectors")) {
            let Ok(whole) = fs::read_to_string(&path) else {
                continue;
            };
            let values = serde_json::Deserializer::from_str(&whole).into_iter::<Value>();
            let values = values.map(|it| it.unwrap());
            values.for_each(|value| texts(&value, &mut inputs));
        }
        assert!(!inputs.is_empty(), "{protocol} has no vectors");
        for (target, body) in TARGETS {
            let is_of_frames = target.starts_with(protocol) && target.ends_with("_frames");
            let inputs = inputs.iter().filter(|_| is_of_frames);
            let fails = |it: &&String| catch_unwind(|| body.run(it.as_bytes())).is_err();
            failed.extend(inputs.filter(fails).map(|it| format!("{target}: {it}")));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn targets_seeds_and_the_manifest_name_the_same_things() {
    let names: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(stems("seeds"), names, "fuzz/seeds");
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let bins = manifest.split("[[bin]]").skip(1);
    let mut bins: Vec<_> = bins.filter_map(|bin| bin.split('"').nth(1)).collect();
    bins.sort_unstable();
    assert_eq!(bins, names, "fuzz/Cargo.toml");
    let readme = fs::read_to_string(fuzz().join("README.md")).unwrap();
    for name in &names {
        let row = readme
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| `{name}` | `")));
        let dictionary = row.and_then(|row| row.split('`').next()).expect(name);
        let dictionary = fuzz().join(format!("dict/{dictionary}.dict"));
        assert!(
            dictionary.is_file(),
            "{name} in README: {}",
            dictionary.display()
        );
    }
}

/// The types are listed in TypeScript, which is generated from them.
#[test]
fn dictionaries_hold_every_name_of_the_types() {
    let comment = Regex::new(r"(?s)/\*\*.*?\*/|//[^\n]*").unwrap();
    let name = Regex::new(r#"[{;\s]"?([A-Za-z_]\w*)"?\??:\s|"([^"\n]+)""#).unwrap();
    let mut missing = Vec::new();
    for protocol in PROTOCOLS {
        let types = fuzz().join(format!("../{protocol}-proto/types/frames.d.ts"));
        let types = fs::read_to_string(types).unwrap();
        let types = comment.replace_all(&types, "");
        let dictionary = fuzz().join(format!("dict/{protocol}.dict"));
        let dictionary = fs::read_to_string(dictionary).unwrap();
        for found in name.captures_iter(&types) {
            let name = found.get(1).or(found.get(2)).unwrap().as_str();
            if !dictionary.contains(&format!(r#"\"{name}\""#)) {
                missing.push(format!("{protocol}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_protocol_has_targets_for_its_frames_and_machines() {
    for protocol in PROTOCOLS {
        for body in [
            "client_frames",
            "server_frames",
            "client_conn",
            "server_conn",
        ] {
            let name = format!("{protocol}_{body}");
            let is_there = TARGETS.iter().any(|(target, _)| *target == name);
            assert!(is_there, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_keep_the_rules_of_every_target(
        data in prop::collection::vec(any::<u8>(), 0..400),
        text: String,
    ) {
        for (_, body) in TARGETS {
            body.run(&data);
            body.run(text.as_bytes());
        }
    }
}
