//! Runs a crate's `examples/`, and checks that each is listed and short enough to read.

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::fail;

/// The `main` of an example.
pub type Main = fn() -> Result<(), Box<dyn Error>>;

/// Lines of an example.
const MAX_LINES: usize = 60;

/// Checks that `programs` are the files in the `examples/` of the crate at `manifest_dir`, that none is
/// longer than 60 lines, and that each runs to its end.
///
/// # Panics
/// If one of that is not so.
#[track_caller]
pub fn run(manifest_dir: &str, programs: &[(&str, Main)]) {
    let folder = Path::new(manifest_dir).join("examples");
    let mut found = files(&folder).unwrap_or_else(|error| fail(&format!("{folder:?}: {error}")));
    found.sort();
    let mut listed: Vec<_> = programs
        .iter()
        .map(|(name, _)| format!("{name}.rs"))
        .collect();
    listed.sort();
    let names: Vec<_> = found.iter().map(|(name, _)| name.clone()).collect();
    if names != listed {
        fail(&format!("in {folder:?}: {names:?}, but listed: {listed:?}"));
    }
    if let Some((name, lines)) = found.iter().find(|(_, lines)| *lines > MAX_LINES) {
        fail(&format!("{name}: {lines} lines, at most {MAX_LINES}"));
    }
    for (name, main) in programs {
        if let Err(error) = main() {
            fail(&format!("{name}: {error}"));
        }
    }
}

/// The names of the files in `folder`, each with its number of lines.
fn files(folder: &Path) -> std::io::Result<Vec<(String, usize)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or(OsStr::new("")).to_string_lossy();
        let lines = fs::read_to_string(&path)?.lines().count();
        files.push((name.into_owned(), lines));
    }
    Ok(files)
}
