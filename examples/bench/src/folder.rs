//! [`Folder`]: files of one measurement.

use std::path::{Path, PathBuf};

/// A folder below cargo's target folder: `/tmp` may be in memory. Removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let own = std::env::current_exe().unwrap();
        let name = format!("bench-{name}-{}", std::process::id());
        let folder = own.parent().unwrap().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
