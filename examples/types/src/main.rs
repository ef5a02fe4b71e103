//! Writes the wire types of each protocol as TypeScript, from their Rust source, and the recorded
//! frames to check them with.
//!
//! `switchboard-types FOLDER` compares each crate's `types/frames.d.ts` with what its source
//! says, or writes it if `ACCEPT` is set, and puts the frames into the folder: `.ci/run types`.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "what it does not understand has to stop it"
)]

mod frames;
mod known;
mod serde_attrs;
mod source;
mod syntax;
mod text;
mod write;

use std::path::{Path, PathBuf};
use std::{env, fs};

use frames::Frames;
use source::Source;
use write::Writer;

const PROTOCOLS: [&str; 5] = ["acolyte", "connectonion", "exoclaw", "smarthole", "snek"];

fn main() {
    let frames = env::args().nth(1).expect("the folder for the frames");
    for protocol in PROTOCOLS {
        let (types, text) = types(protocol);
        if env::var_os("ACCEPT").is_some() {
            fs::create_dir_all(types.parent().unwrap()).unwrap();
            fs::write(&types, text).unwrap();
        } else {
            assert_same(&types, &text);
        }
        let all = Frames::collect(protocol, &folder(protocol).join("tests"));
        let program = Path::new(&frames).join(format!("{protocol}.ts"));
        fs::write(program, all.program(&types)).unwrap();
        println!("{protocol}: {}", all.counts());
    }
}

/// The crate of a protocol.
fn folder(protocol: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .unwrap()
        .join(format!("{protocol}-proto"))
}

/// The file with the types of a protocol, and what should be in it.
fn types(protocol: &str) -> (PathBuf, String) {
    let folder = folder(protocol);
    let text = Writer::new(protocol, &Source::read(&folder)).write();
    (folder.join("types/frames.d.ts"), text)
}

fn assert_same(file: &Path, text: &str) {
    let is_same = fs::read_to_string(file).is_ok_and(|it| it == text);
    assert!(
        is_same,
        "{} is not what the Rust types say. If they should have changed: ACCEPT=1 .ci/run types",
        file.display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typescript_types_match_the_rust_types() {
        for protocol in PROTOCOLS {
            let (file, text) = types(protocol);
            assert_same(&file, &text);
        }
    }
}
