//! Writes the wire types of each protocol as TypeScript, from their Rust source, and the recorded
//! frames to check them with.
//!
//! `switchboard-typescript FOLDER` compares each crate's `types/frames.d.ts` with what its source
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
mod write;

use std::path::Path;
use std::{env, fs};

use frames::Frames;
use source::Source;
use write::Writer;

const PROTOCOLS: [&str; 5] = ["acolyte", "connectonion", "exoclaw", "smarthole", "snek"];

fn main() {
    let target = env::args().nth(1).expect("the folder for the frames");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for protocol in PROTOCOLS {
        let folder = root.join(format!("{protocol}-proto"));
        let source = Source::read(&folder);
        let text = Writer::new(protocol, &source).write();
        let file = folder.join("types/frames.d.ts");
        if env::var_os("ACCEPT").is_some() {
            fs::create_dir_all(folder.join("types")).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let is_same = fs::read_to_string(&file).is_ok_and(|it| it == text);
        assert!(is_same, "{protocol}: the types have changed: ACCEPT=1 .ci/run types");
        let frames = Frames::collect(protocol, &folder.join("tests"));
        let types = file.canonicalize().unwrap().with_extension("").with_extension("");
        let program = frames.program(types.to_str().unwrap());
        fs::write(Path::new(&target).join(format!("{protocol}.ts")), program).unwrap();
        let (sent, written) = frames.counts();
        println!("{protocol}: {sent} frames as they were sent, {written} as they are written, {} odd", frames.odd);
    }
}
