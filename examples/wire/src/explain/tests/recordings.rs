//! Recordings of real peers, which the explainer has to know wholly.

use std::fs;
use std::path::{Path, PathBuf};

use rpc_core::testing::Side;

use super::{Explainer, Protocol, Shown};
use crate::transcript::tests::recordings::parse;

/// Files beside the recordings.
const NONE: [&str; 2] = [
    "real-client-acceptance.jsonl",
    "session_results-1.2.1.jsonl",
];

/// The agent of the recordings has an event of its own.
const OWN: &str = "my_progress";

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            files(&path, found);
        } else if name.ends_with(".jsonl") && !NONE.contains(&name) {
            found.push(path);
        }
    }
}

#[test]
fn recordings_of_real_servers_are_explained_without_an_unknown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut problems = Vec::new();
    for (name, protocol, least) in [
        ("acolyte-proto", Protocol::Acolyte, 300),
        ("connectonion-proto", Protocol::ConnectOnion, 1900),
        ("exoclaw-proto", Protocol::Exoclaw, 160),
    ] {
        let mut recordings = Vec::new();
        for folder in ["tests/vectors", "tests/transcripts"] {
            let folder = root.join(name).join(folder);
            if folder.exists() {
                files(&folder, &mut recordings);
            }
        }
        let mut frames = 0;
        for file in recordings {
            let transcript = parse(&fs::read_to_string(&file).unwrap());
            let transcript =
                transcript.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let mut explainer = Explainer::new(None, Shown::all());
            for (index, entry) in transcript.entries.iter().enumerate() {
                let explained = explainer.explain(index + 1, entry);
                // Clients send nonsense on purpose.
                if entry.from != Some(Side::Server) {
                    continue;
                }
                frames += usize::from(entry.data.starts_with('{'));
                let is_wrong = explained.is_unknown()
                    || explained.fault.is_some()
                    || explained.relations.wrong.is_some();
                if is_wrong && explained.kind != OWN {
                    problems.push(format!("{}: {explained:?}", file.display()));
                }
            }
            if let Some(found) = explainer.protocol() {
                assert_eq!(found, protocol, "{}", file.display());
            }
        }
        assert!(frames >= least, "{name}: only {frames} frames");
    }
    assert!(
        problems.is_empty(),
        "{}\n{}",
        problems.len(),
        problems.join("\n")
    );
}
