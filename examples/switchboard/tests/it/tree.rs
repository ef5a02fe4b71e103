//! Finding and reading the files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = package.parent().expect("a folder around it");
    examples.parent().expect("a workspace around it").to_owned()
}

/// The text of a file, which must exist.
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a folder holds, sorted; nothing if there is no such folder.
pub(crate) fn list(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// All Rust files below a folder.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder, ".rs")
}

/// All files below a folder whose names end so, build output and hidden folders left out.
pub(crate) fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in list(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                found.extend(files(&path, end));
            }
        } else if name.ends_with(end) {
            found.push(path);
        }
    }
    found
}
